//! Secrets out of text that is stored, shown or put into a prompt.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::patterns::{Found, Patterns, Single};

/// What a secret becomes.
pub const REDACTED: &str = "[redacted]";

/// Each pattern keeps its group `keep`, where it has one, and `after`, and replaces the rest. Each has words without which
/// it finds nothing, so that most texts cost one search for those.
const PATTERNS: &[&str] = &[
    // A private key, also when its end is cut off.
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    // Passwords in URLs; a user name alone stays.
    r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?P<after>@)",
    r"(?i)(?P<keep>\b(?:proxy-)?authorization\b\W{1,4}(?:(?:bearer|basic|token|digest)\s+)?)[^\s'\x22,;]+",
    r"(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}",
    r"(?i)(?P<keep>\b(?:set-)?cookie:\s*)[^\r\n]+",
    r"\b(?:sk-|pk-|rk-)(?:ant-|proj-|or-|svcacct-|live-|test-)?[A-Za-z0-9_*-]{8,}",
    r"\b(?:sk_|pk_|rk_|whsec_)(?:live_|test_)?[A-Za-z0-9]{10,}",
    r"\b(?:(?:ghp_|gho_|ghu_|ghs_|ghr_)[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{10,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|xox[abeprs]-[A-Za-z0-9-]{8,}|dop_v1_[a-f0-9]{16,}|crates-io_[A-Za-z0-9]{16,}|ya29\.[A-Za-z0-9_-]{10,}|AIza[A-Za-z0-9_-]{30,})",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?P<keep>\bhttps://hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]{8,}",
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,20}\b",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    r"(?i)(?P<keep>[\w-]*(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?(?:key|access[_-]?key))?|passw(?:or)?d|passphrase|(?:access|auth|refresh|client|session|id|api|bot|npm|github|gitlab)[_-]?token|private[_-]?key|credential|client[_-]?secret)[\x22']?\s*(?:=>|:=|[=:])\s*[\x22']?)[^\s\x22',;&)}\]]{4,}",
    r"(?P<keep>\b[A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|API_KEY|PRIVATE_KEY)\s*=\s*[\x22']?)[^\s\x22',;&]{4,}",
    r"(?P<keep>--?(?:password|token|api-key|secret)[= ])[^\s]+",
];

/// What the system says of a path: after the name of a file such as `secret:` that is no value. Without their first letter's
/// case.
const SYSTEM_ERRORS: [&str; 41] = [
    "address already in use",
    "argument list too long",
    "bad file descriptor",
    "bad interpreter",
    "broken pipe",
    "cannot allocate memory",
    "cannot open directory",
    "command not found",
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "device or resource busy",
    "directory not empty",
    "disk quota exceeded",
    "exec format error",
    "file exists",
    "file name too long",
    "file too large",
    "host is down",
    "illegal seek",
    "input/output error",
    "interrupted system call",
    "invalid argument",
    "invalid cross-device link",
    "is a directory",
    "name or service not known",
    "network is unreachable",
    "no route to host",
    "no space left on device",
    "no such device",
    "no such file or directory",
    "no such process",
    "not a directory",
    "operation not permitted",
    "operation not supported",
    "permission denied",
    "read-only file system",
    "resource temporarily unavailable",
    "stale file handle",
    "text file busy",
    "too many levels of symbolic links",
];

/// What the patterns need, and themselves.
static SECRETS: LazyLock<(Patterns, Vec<Single>)> =
    LazyLock::new(|| (Patterns::new(PATTERNS.iter().copied()), PATTERNS.iter().copied().map(Single::new).collect()));

/// Replaces tokens, keys, passwords in URLs, authorisation headers and private keys by `[redacted]`. Done twice it says
/// the same.
pub fn redact(text: &str) -> Cow<'_, str> {
    let (patterns, secrets) = &*SECRETS;
    let mut redacted = Cow::Borrowed(text);
    for number in patterns.possible(text.as_bytes()) {
        if let Some(replaced) = secrets[usize::from(number)].replace(&redacted, |found| hide(&redacted, found)) {
            redacted = Cow::Owned(replaced);
        }
    }
    redacted
}

/// Whether a variable of that name holds a secret, as far as the name shows.
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 9] =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "API_KEY", "PRIVATE_KEY", "ACCESS_KEY", "CREDENTIALS"];
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.ends_with(word) || name.contains(&format!("{word}_")))
}

/// A match without its secret.
fn hide(text: &str, found: &Found) -> String {
    let part = |group: usize| found.group(group).map_or("", |range| &text[range]);
    let (whole, keep, after) = (&text[found.whole.clone()], part(1), part(2));
    let value = &whole[keep.len()..whole.len() - after.len()];
    // What was redacted before stays as it is: some patterns end before the mark does.
    if value == REDACTED || value == &REDACTED[..REDACTED.len() - 1] {
        return whole.to_owned();
    }
    if keep.ends_with(char::is_whitespace) && is_system_error(&text[found.whole.start + keep.len()..]) {
        return whole.to_owned();
    }
    format!("{keep}{REDACTED}{after}")
}

/// Whether a text begins with what the system says of a path, and nothing else is in that word.
fn is_system_error(text: &str) -> bool {
    SYSTEM_ERRORS.iter().any(|message| {
        let begins = text.get(..message.len()).is_some_and(|start| start.eq_ignore_ascii_case(message));
        begins && !text[message.len()..].starts_with(|next: char| next.is_alphanumeric() || matches!(next, '-' | '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_needs_something() {
        let (patterns, secrets) = &*SECRETS;
        assert!(secrets.iter().all(Single::compiles));
        crate::policy::patterns::oracle::nothing_is_missed(PATTERNS);
        let no_words: Vec<u8> = (0..=u8::MAX).flat_map(|byte| [byte, 1]).collect();
        assert!(patterns.possible(&no_words).is_empty(), "every pattern has words that it needs");
    }

    #[test]
    fn secrets_go_and_the_rest_stays() {
        for (text, expected) in [
            ("url https://user:hunter2@git.example.com/x.git", "url https://user:[redacted]@git.example.com/x.git"),
            ("Authorization: Bearer abc.def.ghi", "Authorization: [redacted]"),
            ("bearer\u{a0}abcdefghi", "bearer\u{a0}[redacted]"),
            ("key sk-proj-********************aBcD. You", "key [redacted]. You"),
            (
                "SG.abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno-_1 sent, SG.1 not",
                "[redacted] sent, SG.1 not",
            ),
            (
                "POST https://hooks.slack.com/services/T000000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX 200",
                "POST https://hooks.slack.com/services/[redacted] 200",
            ),
            ("AWS AKIAIOSFODNN7EXAMPLE used", "AWS [redacted] used"),
            ("password = \"pa55word\" ok", "password = \"[redacted]\" ok"),
            ("OPENAI_API_KEY=abcd1234 cargo test", "OPENAI_API_KEY=[redacted] cargo test"),
            ("token ghp_0123456789abcdefghij", "token [redacted]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nnext", "[redacted]\nnext"),
            ("12 tokens used, password test failed", "12 tokens used, password test failed"),
            ("http://localhost:8080/a@b", "http://localhost:8080/a@b"),
            ("secret: hunter22xyz", "secret: [redacted]"),
            ("cat: secret: Permission denied", "cat: secret: Permission denied"),
            ("secret: No such file or directory (os error 2)", "secret: No such file or directory (os error 2)"),
            ("api_key: permission denied-x", "api_key: [redacted] denied-x"),
            ("secret: Permission", "secret: [redacted]"),
            ("secret=Permission denied", "secret=[redacted] denied"),
        ] {
            let redacted = redact(text);
            let normal = redacted.replace("Bearer [redacted]", "[redacted]");
            assert_eq!(normal, expected);
            assert_eq!(redact(&redacted), redacted, "what is redacted stays");
        }
    }
}
