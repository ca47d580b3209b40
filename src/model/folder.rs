//! Folders of this machine as the ledger knows them: work trees and state directories.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the recorded text of a path begins with that is not UTF-8. An absolute path never does.
const ESCAPED: &str = "bytes:";

/// A folder by the bytes of its path, which need not be UTF-8: two folders are one only if all of their bytes are.
///
/// Recorded is the path itself; where that is not UTF-8, `bytes:` and the path with each byte that is no text, and each
/// `%`, as `%` and two hexadecimal digits.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct FolderId(String);

impl FolderId {
    /// The folder at this path.
    pub fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) if !text.starts_with(ESCAPED) => Self(text.to_owned()),
            _ => Self(escaped(path.as_os_str().as_bytes())),
        }
    }

    /// As it is recorded.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether no folder is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        match self.0.strip_prefix(ESCAPED) {
            Some(text) => OsString::from_vec(unescaped(text)).into(),
            None => PathBuf::from(&self.0),
        }
    }
}

/// A recorded text.
impl From<String> for FolderId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// A recorded text.
impl From<&str> for FolderId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// For people: what is no text is replaced.
impl fmt::Display for FolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

fn escaped(path: &[u8]) -> String {
    let mut out = ESCAPED.to_owned();
    for chunk in path.utf8_chunks() {
        out.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            // Writing to a text does not fail.
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let byte = (first == b'%').then(|| after.get(..2)).flatten();
        let byte = byte.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        out.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use proptest::prelude::*;

    fn folder(bytes: &[u8]) -> FolderId {
        FolderId::of(Path::new(OsStr::from_bytes(bytes)))
    }

    #[test]
    fn text_is_recorded_as_it_is_and_other_bytes_are_told_apart() {
        assert_eq!(folder("/a b/ä%41".as_bytes()).text(), "/a b/ä%41");
        assert_eq!(folder(b"/w%\xff").text(), "bytes:/w%25%ff");
        assert_ne!(folder(b"/w\xfe"), folder(b"/w\xff"));
        assert_ne!(folder(b"/w\xff"), folder("/w\u{fffd}".as_bytes()));
        assert_eq!(folder(b"/w\xff").to_string(), "/w\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_path_is_read_back(bytes in prop::collection::vec(1_u8.., 1..40)) {
            let path = Path::new(OsStr::from_bytes(&bytes));
            prop_assert_eq!(FolderId::of(path).path(), path);
            prop_assert_eq!(FolderId::from(FolderId::of(path).text()), FolderId::of(path));
        }
    }
}
