//! Paths inside a work tree: bytes, `/`-separated, relative.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{IntoStaticStr, VariantArray};

/// A path relative to the work tree. Any bytes but NUL; `/` separates.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Takes the bytes as they are.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For people and for JSON; bytes that are not UTF-8 are replaced.
    pub fn to_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The folder that holds it; `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0[..slash].to_vec()))
    }

    /// Its folders, outermost first, itself excluded.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| Self(self.0[..at].to_vec()))
    }

    /// Whether this is `other` or lies below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        other.0.is_empty()
            || self
                .0
                .strip_prefix(other.0.as_slice())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// Where it is, below this folder.
    pub fn below(&self, root: &std::path::Path) -> std::path::PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        root.join(std::ffi::OsStr::from_bytes(&self.0))
    }

    /// The path of `name` in this folder.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        if self.0.is_empty() {
            return Self(name.to_vec());
        }
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        Self(bytes)
    }
}

impl From<&str> for RepoPath {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_lossy())
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_lossy())
    }
}

/// What a path is written as.
#[derive(Serialize, Deserialize, JsonSchema)]
struct PathObject<'a> {
    path: Cow<'a, str>,
    /// In base64, where the path is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let path = self.to_lossy();
        // Only what is not UTF-8 was replaced.
        let encoded = || base64::engine::general_purpose::STANDARD.encode(&self.0);
        let path_bytes = matches!(path, Cow::Owned(_)).then(encoded);
        PathObject { path, path_bytes }.serialize(serializer)
    }
}

impl JsonSchema for RepoPath {
    fn schema_name() -> Cow<'static, str> {
        "path".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        PathObject::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = PathObject::deserialize(deserializer)?;
        match object.path_bytes {
            None => Ok(Self(object.path.into_owned().into_bytes())),
            Some(text) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(text);
                bytes.map(Self).map_err(serde::de::Error::custom)
            }
        }
    }
}

/// A path and why something was not done to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PathReason {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// The reason, a sentence or a fixed word.
    pub reason: String,
    /// Size in bytes; only for what is no folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How many files a folder holds that was left out as too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
}

/// The reason of a folder that was left out because there were more untracked files than are captured.
pub(crate) const TOO_MANY: &str = "too_many";

/// How the reason of a path begins that is a repository of its own.
pub(crate) const NESTED: &str = "nested repository";
/// How the reason of a path begins that should have been captured and could not be.
pub(crate) const UNREADABLE: &str = "cannot be read";

/// Why the system does not let a restore replace a path: a fixed word each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Blocked {
    /// It is a mount point, or lies below one.
    MountPoint,
    /// Its file system is mounted read-only.
    ReadOnly,
    /// The kernel swaps to it.
    Busy,
    /// It or its folder is immutable or append-only (`chattr`).
    Immutable,
    /// It or its folder belongs to another user.
    NotOwner,
}

impl Blocked {
    const ALL: &[Self] = Self::VARIANTS;
}

impl PathReason {
    /// One of which neither size nor number of files is known or of use.
    pub fn new(path: RepoPath, reason: impl Into<String>) -> Self {
        Self {
            path,
            reason: reason.into(),
            size: None,
            files: None,
        }
    }

    /// Whether the system did not let a restore replace the path.
    pub fn is_blocked(&self) -> bool {
        Blocked::ALL
            .iter()
            .any(|blocked| blocked.as_str() == self.reason)
    }

    /// Whether the path was left out by no policy: it could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.reason.starts_with(UNREADABLE)
    }
}

/// What a part of a file's or reference's name is cut to: with what is put around it, it fits any file system (255).
const LONGEST_PART: usize = 100;

/// A part of a name, cut where no file system would take it; a checksum of `whole` then keeps it apart from others
/// that begin alike. `name` is plain ASCII.
#[must_use]
pub(crate) fn short_part(mut name: String, whole: &str) -> String {
    if name.len() > LONGEST_PART {
        name.truncate(LONGEST_PART);
        name.push_str(&format!("-{:08x}", crc32fast::hash(whole.as_bytes())));
    }
    name
}

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

/// A path without `.` and `..`, which need not be there; a link counts as the folder that it is named for.
pub(crate) fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_utf8_survives_json() {
        let path = RepoPath::new(b"a/\xff\xfe".to_vec());
        let text = serde_json::to_string(&path).unwrap();
        assert!(text.contains("path_bytes"));
        assert_eq!(serde_json::from_str::<RepoPath>(&text).unwrap(), path);
        assert_eq!(
            serde_json::to_string(&RepoPath::from("a b")).unwrap(),
            r#"{"path":"a b"}"#
        );
    }

    #[test]
    fn prefixes_end_at_a_separator() {
        assert!(RepoPath::from("a/b").starts_with(&RepoPath::from("a")));
        assert!(!RepoPath::from("ab").starts_with(&RepoPath::from("a")));
        let ancestors: Vec<_> = RepoPath::from("a/b/c").ancestors().collect();
        assert_eq!(ancestors, [RepoPath::from("a"), RepoPath::from("a/b")]);
        assert_eq!(
            RepoPath::from("a/b/c").parent(),
            Some(RepoPath::from("a/b"))
        );
    }
}

#[cfg(test)]
mod folder_tests {
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
