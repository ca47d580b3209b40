//! Secrets out of text that is shown, leaves the machine or is put into a prompt.
//!
//! Masked are the usual patterns, and what a [`Redactor`] knows beside them: the values of variables that hold secrets,
//! and the configured patterns. It is made once, before anything is shown, and holds for the whole process: a secret of
//! its environment is none of one of its parts alone.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use regex::Regex;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

use super::{Finder, Fingerprints};
use crate::policy::patterns::{Found, Patterns, Single};
use crate::policy::settings::RedactSettings;

/// What a secret becomes.
pub(crate) const REDACTED: &str = "[redacted]";

/// Each pattern keeps its group `keep`, where it has one, and `after`, and replaces the rest. Each has literals without
/// which it matches nothing, so that most texts cost one search for those; they are written out far enough that no field of
/// our own documents (`tokens`, `session`) is one.
pub(crate) const PATTERNS: &[&str] = &[
    // A private key, also when its end is cut off.
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    // One whose beginning is cut off.
    r"(?:[A-Za-z0-9+/]{40,}={0,2}\s+)*[A-Za-z0-9+/]+={0,2}\s+-----END [A-Z ]*PRIVATE KEY-----",
    // Passwords in URLs; a user name alone stays, but where it is long and holds a digit, as a token does.
    r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?P<after>@)",
    r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]*://)[A-Za-z_-]*[0-9][A-Za-z0-9_-]{12,}(?P<after>@)",
    r"(?P<keep>\bcurl\b[^\r\n|;&]*?\s(?:-[a-zA-Z]*[uU]|--user|--proxy-user)[\s=]?(?:\\*[\x22'])?[^\s:'\x22\\]+:)(?:\\*[^\s'\x22\\])+",
    r"(?i)(?P<keep>\b(?:proxy-)?authorization\b[\x22'\\]*\s*[:=][\s\x22'\\]*(?:(?:bearer|basic|token|digest)\s+)?)(?:\\*[^\s'\x22,;\\])+",
    r"(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}",
    r"(?i)(?P<keep>\b(?:set-)?cookie:\s*)[^\r\n]+",
    r"\b(?:sk-|pk-|rk-)(?:ant-|proj-|or-|svcacct-|live-|test-)?[A-Za-z0-9_*-]{8,}",
    r"\b(?:sk_|pk_|rk_|whsec_)(?:live_|test_)?[A-Za-z0-9]{10,}",
    r"\b(?:(?:ghp_|gho_|ghu_|ghs_|ghr_)[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{10,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|xox[abeprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|dop_v1_[a-f0-9]{16,}|ya29\.[A-Za-z0-9_-]{10,}|AIza[A-Za-z0-9_-]{30,})",
    r"\b(?:(?:gldt-|glrt-|glrtr-|glptt-|glft-|glimt-|glagent-|gloas-|glsoat-|glcbt-|glffct-)[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{32,}|xai-[A-Za-z0-9]{40,}|(?:hvs|hvb|hvr)\.[A-Za-z0-9_-]{24,}|(?:shpat|shpca|shppa|shpss)_[A-Fa-f0-9]{32}|(?:lin_api_|lin_oauth_)[A-Za-z0-9]{32,}|(?:dp\.pt|dp\.st|dp\.ct|dp\.sa|dp\.scim|dp\.audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}|AGE-SECRET-KEY-[A-Z0-9-]{40,})",
    r"\b(?:dapi[0-9a-f]{32}(?:-[0-9])?|cio[A-Za-z0-9]{32})\b",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?P<keep>\bhttps://hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]{8,}",
    r"(?P<keep>\bhttps://(?:canary\.|ptb\.)?(?:discord|discordapp)\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/)[A-Za-z0-9_-]{20,}",
    // A bot's number, and what begins with the `A` of its zeros.
    r"(?P<keep>\b(?:bot)?)[0-9]{4,15}(?:0:A|1:A|2:A|3:A|4:A|5:A|6:A|7:A|8:A|9:A)[A-Za-z0-9_-]{34}(?P<after>[^A-Za-z0-9_-]|\z)",
    r"(?P<keep>(?:[?&;]|\\u0026)sig=)[A-Za-z0-9%+/_-]{40,}=*",
    // Base64 of name and password: no word, since it holds a digit or its padding or is that long.
    r"(?P<keep>\\*[\x22']auth\\*[\x22']\s*:\s*\\*[\x22'])(?:[A-Za-z+/]*[0-9][A-Za-z0-9+/]{8,}={0,2}|[A-Za-z0-9+/]{8,}={1,2}|[A-Za-z0-9+/]{32,})(?P<after>\\*[\x22'])",
    // The lines of a `.netrc`.
    r"(?P<keep>\b(?:machine\s+[^\s]+|default)(?:\s+(?:login|account)\s+[^\s]+)+\s+password\s+)[^\s\x22']+",
    // No port, which holds no letter, and no option without its value.
    r"(?P<keep>\b(?:mysql|mysqldump|mysqladmin|mysqlimport|mysqlcheck|mysqlshow|mariadb|mariadb-dump|mariadb-admin)\s(?:[^\r\n|;&]*?\s)?-p(?:\\*[\x22'])?)(?:[0-9:.]*[^\s'\x220-9:.\\][^\s'\x22\\]{3,}|[^\s'\x22\\]{3,}[^\s'\x220-9:.\\][^\s'\x22\\]*)",
    r"\b(?:SK0|SK1|SK2|SK3|SK4|SK5|SK6|SK7|SK8|SK9|SKa|SKb|SKc|SKd|SKe|SKf)[0-9a-f]{31}\b",
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,20}\b",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    r"(?i)(?P<keep>[\w-]*(?:api[_-]?key|account[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?(?:key|access[_-]?key))?|passw(?:or)?d|passphrase|access_token|access-token|accesstoken|auth_token|auth-token|authtoken|refresh_token|refresh-token|refreshtoken|client_token|client-token|clienttoken|session_token|session-token|sessiontoken|id_token|id-token|idtoken|api_token|api-token|apitoken|bot_token|bot-token|bottoken|npm_token|npm-token|npmtoken|github_token|github-token|githubtoken|gitlab_token|gitlab-token|gitlabtoken|private[_-]?key|credential|client[_-]?secret|identitytoken|registrytoken)(?:\\*[\x22'])?\s*(?:=>|:=|[=:])\s*(?:\\*[\x22'])?)(?:\\*[^\s\x22',;&)}\]\\]){4,}",
    // One of a name that code has too holds a digit.
    r"(?P<keep>\b(?:[Tt]oken=(?:\\*[\x22'])?|(?:[Tt]oken\\+[\x22']|[Tt]oken\x22|[Tt]oken')\s*:\s*\\*[\x22']))[A-Za-z._~+/-]*[0-9][A-Za-z0-9._~+/=-]{5,}",
    r"(?P<keep>\b[A-Z0-9_]*(?:TOKEN=|SECRET=|PASSWORD=|PASSWD=|APIKEY=|API_KEY=|PRIVATE_KEY=)\s*(?:\\*[\x22'])?)(?:\\*[^\s\x22',;&\\]){4,}",
    r"(?P<keep>\b[A-Z0-9_]*(?:TOKEN |TOKEN\t|SECRET |SECRET\t|PASSWORD |PASSWORD\t|PASSWD |PASSWD\t|APIKEY |APIKEY\t|API_KEY |API_KEY\t|PRIVATE_KEY |PRIVATE_KEY\t)\s*=\s*(?:\\*[\x22'])?)(?:\\*[^\s\x22',;&\\]){4,}",
    r"(?P<keep>(?:-password|-token|-api-key|-secret)[= ])[^\s]+",
];

/// What the system says of a path, and nothing else in that word: after the name of a file such as `secret:` it is no value.
static SYSTEM_ERROR: Single = Single::new(
    r"(?i)^(?:address already in use|argument list too long|bad file descriptor|bad interpreter|broken pipe|cannot allocate memory|cannot open directory|command not found|connection refused|connection reset by peer|connection timed out|device or resource busy|directory not empty|disk quota exceeded|exec format error|file exists|file name too long|file too large|host is down|illegal seek|input/output error|interrupted system call|invalid argument|invalid cross-device link|is a directory|name or service not known|network is unreachable|no route to host|no space left on device|no such device|no such file or directory|no such process|not a directory|operation not permitted|operation not supported|permission denied|read-only file system|resource temporarily unavailable|stale file handle|text file busy|too many levels of symbolic links)(?:[^\w-]|$)",
);

/// The patterns by their literals, and each on its own, with its groups and Unicode.
static SECRETS: LazyLock<(Patterns, Vec<Single>)> = LazyLock::new(|| {
    (
        Patterns::new(PATTERNS.iter().copied()),
        PATTERNS.iter().copied().map(Single::new).collect(),
    )
});

/// A value that is shorter would mask words that are no secret.
const SHORTEST_VALUE: usize = 8;
/// The same of a variable that the user names as a secret.
const SHORTEST_NAMED: usize = 4;

/// What is masked beside the usual patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    /// Longest first: one may be part of another.
    values: Vec<String>,
    /// The same as they stand in a JSON text, where that is something else.
    in_json: Vec<String>,
    patterns: Vec<Regex>,
    /// Those of earlier processes that recorded something.
    known: Vec<Finder>,
}

static REDACTOR: LazyLock<RwLock<Arc<Redactor>>> = LazyLock::new(RwLock::default);

impl Redactor {
    /// The secrets among the variables `env`, by their names or as `settings` name them, and the configured patterns.
    /// `is_path` tells whether a value is a path that exists, which is no secret.
    pub(crate) fn new(
        env: impl IntoIterator<Item = (String, String)>,
        settings: &RedactSettings,
        is_path: impl Fn(&str) -> bool,
    ) -> Self {
        let is_named = |name: &str| settings.variables.iter().any(|variable| variable == name);
        // A guess by the name is held against the value; what the user names is a secret, whatever it looks like.
        let is_secret = |name: &str, value: &str| {
            let named = is_named(name) && value.chars().count() >= SHORTEST_NAMED;
            named || is_secret_name(name) && may_be_secret(value) && !is_path(value)
        };
        // Of a key of several lines each may be shown alone.
        let lines = |(name, value): (String, String)| {
            let lines = value.lines().map(|line| line.trim().to_owned());
            lines
                .filter(|line| is_secret(&name, line))
                .collect::<Vec<_>>()
        };
        let mut values: Vec<String> = env.into_iter().flat_map(lines).collect();
        values.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let in_json = values.iter().filter_map(|value| {
            let text = Value::from(value.as_str()).to_string();
            let inner = &text[1..text.len() - 1];
            (inner != value).then(|| inner.to_owned())
        });
        // What the configuration holds was examined when it was read.
        let patterns = settings
            .patterns
            .iter()
            .filter_map(|pattern| Regex::new(pattern).ok());
        Self {
            in_json: in_json.collect(),
            patterns: patterns.collect(),
            values,
            known: Vec::new(),
        }
    }

    /// With what is known of the secrets of earlier processes, beside what is known by the one that holds: a process may look
    /// at the states of several work trees.
    #[must_use]
    pub(crate) fn knowing(mut self, known: Fingerprints) -> Self {
        self.known.clone_from(&Self::current().known);
        if !known.is_empty() {
            let known = Finder::from(known);
            // What was known of the same state before is part of it.
            self.known.retain(|other| !other.is_of_state_of(&known));
            self.known.push(known);
        }
        self
    }

    /// Has [`redact`] mask this too, from now on.
    pub(crate) fn install(self) {
        *REDACTOR.write() = Arc::new(self);
    }

    /// The one that holds.
    pub(crate) fn current() -> Arc<Self> {
        Arc::clone(&REDACTOR.read())
    }

    /// The values that are masked, longest first.
    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    /// The values as they may stand in a text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.values.iter().chain(&self.in_json).map(String::as_str)
    }

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut redacted = Cow::Borrowed(text);
        for value in self.texts().filter(|value| value.len() <= text.len()) {
            if memchr::memmem::find(redacted.as_bytes(), value.as_bytes()).is_some() {
                redacted = Cow::Owned(redacted.replace(value, REDACTED));
            }
        }
        for known in &self.known {
            if let Some(masked) = known.mask(&redacted, REDACTED) {
                redacted = Cow::Owned(masked);
            }
        }
        for pattern in &self.patterns {
            if let Cow::Owned(replaced) = pattern.replace_all(&redacted, regex::NoExpand(REDACTED))
            {
                redacted = Cow::Owned(replaced);
            }
        }
        redacted
    }

    /// Whether a text may hold anything to mask.
    fn may_be_in(&self, text: &str) -> bool {
        let has = |value: &str| memchr::memmem::find(text.as_bytes(), value.as_bytes()).is_some();
        let is_known = |known: &Finder| known.mask(text, REDACTED).is_some();
        !self.patterns.is_empty() || self.texts().any(has) || self.known.iter().any(is_known)
    }
}

/// Replaces tokens, keys, passwords in URLs, authorisation headers and private keys by `[redacted]`, and what the
/// [`Redactor`] knows. Done twice it says the same.
pub fn redact(text: &str) -> Cow<'_, str> {
    let redacted = redact_usual(text);
    let redactor = Redactor::current();
    match redactor.redact(&redacted) {
        Cow::Borrowed(_) => redacted,
        Cow::Owned(more) => Cow::Owned(more),
    }
}

/// [`redact`] of every text in a document, names of fields included.
pub(crate) fn redact_json(mut document: Value) -> Value {
    mask(&mut document);
    document
}

fn mask(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => {
            fields.values_mut().for_each(mask);
            if fields.keys().any(|name| redact(name) != *name) {
                *fields = renamed(std::mem::take(fields));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn renamed(fields: Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::with_capacity(fields.len());
    for (name, value) in fields {
        let redacted = redact(&name);
        // Two names that are the same then stay two.
        let mut number = 1;
        let mut shown = redacted.clone().into_owned();
        while all.contains_key(&shown) {
            number += 1;
            shown = format!("{redacted}-{number}");
        }
        all.insert(shown, value);
    }
    all
}

/// A document as JSON text for people, redacted.
pub(crate) fn redacted_json_text(document: &impl Serialize) -> serde_json::Result<String> {
    redact_json_text(serde_json::to_string_pretty(document)?)
}

/// [`redact_json`] of a document that is written for people.
pub(crate) fn redact_json_text(text: String) -> serde_json::Result<String> {
    if !may_hold_secret(&text) {
        return Ok(text);
    }
    let mut reader = serde_json::Deserializer::from_str(&text);
    // It is deeper than what may be read by as much as was put around that.
    reader.disable_recursion_limit();
    serde_json::to_string_pretty(&redact_json(Value::deserialize(&mut reader)?))
}

/// Whether [`redact_json`] may find anything in this document: hardly any holds a secret, and one look at the text is cheap.
pub(crate) fn may_hold_secret(json: &str) -> bool {
    let redactor = Redactor::current();
    // Each text of the document is part of a line, and what may be in a part may be in the whole.
    !SECRETS.0.possible(json.as_bytes()).is_empty()
        || redactor.may_be_in(json)
        || lines_with_escapes(json).any(|line| {
            let text = unescaped(line);
            text.is_none_or(|text| {
                !SECRETS.0.possible(text.as_bytes()).is_empty() || redactor.may_be_in(&text)
            })
        })
}

fn lines_with_escapes(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let escape = memchr::memchr(b'\\', rest.as_bytes())?;
        let start =
            memchr::memrchr(b'\n', &rest.as_bytes()[..escape]).map_or(0, |newline| newline + 1);
        let (line, after) = rest[start..]
            .split_once('\n')
            .unwrap_or((&rest[start..], ""));
        rest = after;
        Some(line)
    })
}

/// A JSON text without the escapes; `None` where it has one that is no ASCII character.
fn unescaped(json: &str) -> Option<Cow<'_, str>> {
    let mut text = String::new();
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let escape = rest[at + 1..].chars().next()?;
        let mut length = 1;
        text.push(match escape {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                length = 5;
                let code = u8::from_str_radix(rest.get(at + 2..at + 6)?, 16).ok()?;
                char::from(code).is_ascii().then_some(char::from(code))?
            }
            itself => itself,
        });
        rest = rest.get(at + 1 + length..)?;
    }
    Some(if text.is_empty() {
        Cow::Borrowed(json)
    } else {
        Cow::Owned(text + rest)
    })
}

fn redact_usual(text: &str) -> Cow<'_, str> {
    let (patterns, secrets) = &*SECRETS;
    let mut redacted = Cow::Borrowed(text);
    for number in patterns.possible(text.as_bytes()) {
        if let Some(replaced) =
            secrets[usize::from(number)].replace(&redacted, |found| hide(&redacted, found))
        {
            redacted = Cow::Owned(replaced);
        }
    }
    redacted
}

/// Whether a variable of that name holds a secret, as far as the name shows.
pub(crate) fn is_secret_name(name: &str) -> bool {
    const LAST: [&str; 3] = ["KEY", "AUTH", "PWD"];
    let name = name.to_ascii_uppercase();
    let last = name.rsplit('_').next().unwrap_or_default();
    let is_secret = |word: &str| {
        matches!(
            word,
            "TOKEN" | "SECRET" | "PASSWORD" | "PASSWD" | "CREDENTIAL" | "CREDENTIALS" | "APIKEY"
        )
    };
    LAST.contains(&last) || name.split('_').any(is_secret)
}

/// Whether a value may be a secret: words and short values are none.
fn may_be_secret(value: &str) -> bool {
    value.chars().count() >= SHORTEST_VALUE && !value.chars().all(char::is_alphabetic)
}

/// A match without its secret.
fn hide(text: &str, found: &Found) -> String {
    let part = |group: usize| found.group(group).map_or("", |range| &text[range]);
    let (whole, keep, after) = (&text[found.whole.clone()], part(1), part(2));
    let value = &whole[keep.len()..whole.len() - after.len()];
    // What was redacted before stays as it is: some patterns begin behind the mark's first character, or end before its last.
    let begin = found.whole.start + keep.len();
    let with_bracket =
        &text[begin - usize::from(text[..begin].ends_with('['))..begin + value.len()];
    if [value, with_bracket]
        .iter()
        .any(|part| *part == REDACTED || *part == &REDACTED[..REDACTED.len() - 1])
    {
        return whole.to_owned();
    }
    let of_system = || SYSTEM_ERROR.first(&text[begin..]).is_some();
    if keep.ends_with(char::is_whitespace) && of_system() || is_code(keep, value) {
        return whole.to_owned();
    }
    format!("{keep}{REDACTED}{after}")
}

/// Whether what stands after a name is no value: nothing, a type, or the name again, as in source code.
fn is_code(keep: &str, value: &str) -> bool {
    static NO_VALUE: Single =
        Single::new(r"(?i)^(?:null|none|undefined|true|false|string|&str|bytes|optional)$");
    let name = keep.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
    NO_VALUE.first(value).is_some() || value.len() > 4 && name.ends_with(value)
}

#[cfg(test)]
mod tests;
