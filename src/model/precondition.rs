//! The file, credential or variable that a permission or login failure depends on, as it was when the attempt ended.

use serde::{Deserialize, Serialize};

/// What was examined when such an attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preconditions {
    /// Goes into the checksums of variables, so that none can be looked up or compared with another record's.
    pub salt: String,
    /// One by one.
    pub seen: Vec<Precondition>,
}

/// One thing that was examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// Of which kind.
    pub kind: PreconditionKind,
    /// A path, relative to the work tree where it lies there; `~/…` below the home folder; a variable.
    pub name: String,
    /// How it was, never what was in it; `None` where it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// What is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreconditionKind {
    /// Mode and owner of a path, and whether its file system can be written to.
    Permissions,
    /// Who runs the command: user and groups.
    User,
    /// Which file credentials are in, and when that was written.
    Credentials,
    /// A salted checksum of a variable's value.
    Variable,
    /// What a newer version looks at.
    #[serde(other)]
    Unknown,
}
