//! Which files look like secrets, by name or content: they are committed only where a person names them.

use super::redact::redact;
use crate::model::path::RepoPath;

/// What a name ends with that holds a key.
const ENDS: [&str; 8] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
];
/// Whole names.
const NAMES: [&str; 10] = [
    ".netrc",
    ".pgpass",
    ".htpasswd",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "credentials",
    "credentials.json",
    "secrets.json",
    "service-account.json",
];
/// Private keys of SSH; with `.pub` they are no secret.
const KEYS: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
/// Environment files with such an end are examples.
const EXAMPLES: [&str; 4] = [".example", ".sample", ".template", ".dist"];

/// Whether a file's name, whatever folder it is in, is one that secrets are kept under.
pub(crate) fn is_secret_path(path: &RepoPath) -> bool {
    let name = path
        .as_bytes()
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    is_secret_name(&String::from_utf8_lossy(name))
}

/// Whether the name of a file, without its folders, is one of a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_environment = name == ".env" || name == ".envrc" || name.starts_with(".env.");
    let is_example = EXAMPLES.iter().any(|end| name.ends_with(end));
    (is_environment && !is_example)
        || ENDS.iter().any(|end| name.ends_with(end))
        || NAMES.contains(&name.as_str())
        || KEYS.contains(&name.as_str())
}

/// So many bytes show whether content is text, as git has it.
const HEAD: usize = 8000;

/// Whether content has what is masked wherever it is shown. What is no text has nothing.
pub(crate) fn has_secret(content: &[u8]) -> bool {
    if content.iter().take(HEAD).any(|byte| *byte == 0) {
        return false;
    }
    let text = String::from_utf8_lossy(content);
    redact(&text) != text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_and_content() {
        for name in [
            ".env",
            ".env.local",
            "server.pem",
            "TLS.KEY",
            "id_rsa",
            "id_ed25519",
            "credentials.json",
            ".npmrc",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            ".env.example",
            "env.rs",
            "id_rsa.pub",
            "key.rs",
            "monkey",
            "environment",
            ".envoy",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        assert!(has_secret(b"-----BEGIN RSA PRIVATE KEY-----\nabc\n"));
        assert!(has_secret(b"token ghp_0123456789abcdefghij"));
        assert!(
            has_secret(b"caf\xe9 ghp_0123456789abcdefghij"),
            "in another encoding"
        );
        assert!(!has_secret(b"nothing to see") && !has_secret(&[0xff, 0xfe]));
        assert!(!has_secret(b"\0ELF ghp_0123456789abcdefghij"), "no text");
    }
}
