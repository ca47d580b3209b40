//! Secrets: values that are found in a text by their fingerprints, and files that look like secrets, by name or content.
//!
//! A secret of the environment in which a run was recorded is masked in every shell that looks at the run. It is not stored
//! for that: kept are its length, a hash that rolls over a text to find where it may be, and a salted SHA-256 that says
//! whether it is.

mod redact;

#[cfg(test)]
pub(super) use redact::PATTERNS;
pub use redact::redact;
pub(crate) use redact::{
    REDACTED, Redactor, is_secret_name, may_hold_secret, redact_json, redact_json_text,
    redacted_json_text,
};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::model::path::RepoPath;
use crate::policy::patterns::Single;

/// Those of the latest values are kept: tokens that live for a job come anew with each.
const MOST: usize = 1000;
/// No variable of an environment is longer, in bytes.
const LONGEST: usize = 1 << 20;
const BASE: u32 = 16_777_619;

/// Hashes of values under one salt, as they are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fingerprints {
    salt: String,
    /// The latest last.
    values: Vec<Fingerprint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Fingerprint {
    /// In bytes.
    length: usize,
    rolling: u32,
    sha256: String,
}

impl Fingerprints {
    /// None yet; `salt` is random.
    pub fn new(salt: String) -> Self {
        Self {
            salt,
            values: Vec::new(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Takes these values in too; says whether one was new.
    pub fn add<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) -> bool {
        let before = self.values.len();
        for value in values.into_iter().filter(|value| !value.is_empty()) {
            let bytes = value.as_bytes();
            let sha256 = salted(&self.salt, bytes);
            if self.values.iter().all(|known| known.sha256 != sha256) {
                self.values.push(Fingerprint {
                    length: bytes.len(),
                    rolling: hash(bytes),
                    sha256,
                });
            }
        }
        let is_new = self.values.len() > before;
        self.values.drain(..self.values.len().saturating_sub(MOST));
        is_new
    }
}

/// The same, to look texts through.
#[derive(Clone, Debug)]
pub(crate) struct Finder {
    salt: String,
    /// By length, the longest first.
    lengths: Vec<OfLength>,
}

/// The values of one length, in bytes.
#[derive(Clone, Debug)]
struct OfLength {
    length: usize,
    /// What the hash of a byte is multiplied with when it leaves the window.
    top: u32,
    /// By the hash that rolls, the salted one.
    values: BTreeMap<u32, Vec<String>>,
}

impl From<Fingerprints> for Finder {
    fn from(Fingerprints { salt, values }: Fingerprints) -> Self {
        let mut lengths: BTreeMap<usize, BTreeMap<u32, Vec<String>>> = BTreeMap::new();
        for Fingerprint {
            length,
            rolling,
            sha256,
        } in values
            .into_iter()
            .filter(|value| (1..=LONGEST).contains(&value.length))
        {
            lengths
                .entry(length)
                .or_default()
                .entry(rolling)
                .or_default()
                .push(sha256);
        }
        let of_length = |(length, values)| {
            let top = (1..length).fold(1_u32, |power, _| power.wrapping_mul(BASE));
            OfLength {
                length,
                top,
                values,
            }
        };
        Self {
            salt,
            lengths: lengths.into_iter().rev().map(of_length).collect(),
        }
    }
}

impl Finder {
    /// Whether both are of the same salt, which each state has for itself.
    fn is_of_state_of(&self, other: &Self) -> bool {
        self.salt == other.salt
    }

    /// The text with `mask` in place of each value, longer ones first; `None` where it holds none.
    pub(crate) fn mask(&self, text: &str, mask: &str) -> Option<String> {
        let mut masked = None;
        for of_length in &self.lengths {
            masked = self
                .mask_length(masked.as_deref().unwrap_or(text), of_length, mask)
                .or(masked);
        }
        masked
    }

    fn mask_length(&self, text: &str, known: &OfLength, mask: &str) -> Option<String> {
        let (bytes, length) = (text.as_bytes(), known.length);
        let mut masked: Option<String> = None;
        // What is before it is in `masked`; where the window begins, and its hash.
        let (mut done, mut at, mut rolling) = (0, 0, hash(bytes.get(..length)?));
        loop {
            // Between two characters only: no value begins or ends within one.
            let found = known.values.get(&rolling).zip(text.get(at..at + length));
            if found.is_some_and(|(values, window)| {
                values.contains(&salted(&self.salt, window.as_bytes()))
            }) {
                let masked = masked.get_or_insert_default();
                masked.push_str(&text[done..at]);
                masked.push_str(mask);
                done = at + length;
                let Some(next) = bytes.get(done..done + length) else {
                    break;
                };
                (at, rolling) = (done, hash(next));
                continue;
            }
            let Some(next) = bytes.get(at + length) else {
                break;
            };
            let gone = u32::from(bytes[at]).wrapping_mul(known.top);
            rolling = rolling
                .wrapping_sub(gone)
                .wrapping_mul(BASE)
                .wrapping_add(u32::from(*next));
            at += 1;
        }
        masked.map(|masked| masked + &text[done..])
    }
}

fn salted(salt: &str, bytes: &[u8]) -> String {
    let digest = Sha256::new()
        .chain_update(salt.as_bytes())
        .chain_update([0])
        .chain_update(bytes)
        .finalize();
    format!("{digest:x}")
}

fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |hash: u32, byte| {
        hash.wrapping_mul(BASE).wrapping_add(u32::from(*byte))
    })
}

/// Whether a file's name, whatever folder it is in, is one that secrets are kept under.
pub(crate) fn is_secret_path(path: &RepoPath) -> bool {
    let name = path
        .as_bytes()
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    is_secret_file_name(&String::from_utf8_lossy(name))
}

/// Whether the name of a file, without its folders, is one of a secret.
fn is_secret_file_name(name: &str) -> bool {
    /// Keys, files of credentials, private keys of SSH (with `.pub` they are no secret), environments.
    static SECRET: Single = Single::new(
        r"\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)$|^(?:\.(?:netrc|pgpass|htpasswd|npmrc|pypirc|git-credentials)|(?:credentials|secrets|service-account)\.json|credentials|id_(?:rsa|dsa|ecdsa|ed25519)|\.env(?:rc|\..*)?)$",
    );
    /// Environment files with such an end are examples.
    static EXAMPLE: Single = Single::new(r"^\.env.*\.(?:example|sample|template|dist)$");
    let name = name.to_lowercase();
    SECRET.first(&name).is_some() && EXAMPLE.first(&name).is_none()
}

/// This many bytes show whether content is text, as git has it.
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
    use proptest::prelude::*;

    fn of(values: &[&str]) -> Fingerprints {
        let mut made = Fingerprints::new("salt".to_owned());
        made.add(values.iter().copied());
        made
    }

    fn masked(known: &Fingerprints, text: &str) -> Option<String> {
        Finder::from(known.clone()).mask(text, "*")
    }

    #[test]
    fn a_value_is_found_wherever_it_stands() {
        let known = of(&["hunter22", "hünter-33", "hunter22-longer"]);
        let text = "hunter22hunter22 x hünter-33, hunter22-longer hunter2";
        assert_eq!(masked(&known, text).as_deref(), Some("** x *, * hunter2"));
        assert_eq!(masked(&known, "hunter2"), None);
        assert_eq!(masked(&known, ""), None);
        assert_eq!(masked(&Fingerprints::default(), text), None);
    }

    #[test]
    fn nothing_of_a_value_is_kept_and_the_oldest_go() {
        let mut known = of(&["hunter22"]);
        assert!(!known.add(["hunter22"]));
        let text = serde_json::to_string(&known).unwrap();
        assert!(!text.contains("hunter"), "{text}");
        assert_eq!(serde_json::from_str::<Fingerprints>(&text).unwrap(), known);
        let many: Vec<String> = (0..MOST)
            .map(|number| format!("value-{number:08}"))
            .collect();
        assert!(known.add(many.iter().map(String::as_str)));
        assert_eq!(
            masked(&known, "hunter22 value-00000000").as_deref(),
            Some("hunter22 *")
        );
    }

    #[test]
    fn what_cannot_be_a_value_is_none() {
        let mut known = of(&["hunter22"]);
        known.values[0].length = usize::MAX;
        assert_eq!(masked(&known, "hunter22"), None);
        let bytes = "ü".as_bytes();
        let tail = Fingerprint {
            length: 1,
            rolling: hash(&bytes[1..]),
            sha256: salted("salt", &bytes[1..]),
        };
        assert_eq!(
            masked(
                &Fingerprints {
                    salt: "salt".to_owned(),
                    values: vec![tail]
                },
                "ü"
            ),
            None
        );
    }

    proptest! {
        #[test]
        fn it_masks_what_who_knows_the_values_would_mask(
            text in "[ab-é]{0,40}", values in prop::collection::vec("[ab-é]{4,6}", 0..4),
        ) {
            let mut sorted = values.clone();
            sorted.sort_by_key(|value| std::cmp::Reverse(value.len()));
            let simple = |text: &str, of_length: &[&String]| {
                let mut made = String::new();
                let mut rest = text;
                'text: while let Some(first) = rest.chars().next() {
                    for value in of_length {
                        if let Some(after) = rest.strip_prefix(value.as_str()) {
                            made.push('*');
                            rest = after;
                            continue 'text;
                        }
                    }
                    made.push(first);
                    rest = &rest[first.len_utf8()..];
                }
                made
            };
            let mut expected = text.clone();
            for length in (4..=12).rev() {
                let of_length: Vec<&String> = sorted.iter().filter(|value| value.len() == length).collect();
                expected = simple(&expected, &of_length);
            }
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            prop_assert_eq!(masked(&of(&values), &text).unwrap_or(text), expected);
        }
    }

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
            assert!(is_secret_file_name(name), "{name}");
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
            assert!(!is_secret_file_name(name), "{name}");
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
