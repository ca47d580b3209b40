//! Object ids and modes as a tree names them: read from text, and computed of content in memory.
//!
//! SHA-1 is the only algorithm that is supported. What is written as a file, a pack or the index computes its own as it goes.

use git2::{ObjectType, Oid};
use sha1::{Digest as _, Sha1};

use super::error::{Error, Result};
use crate::model::manifest::EntryKind;

/// The id that git gives to empty content.
pub(in crate::git) const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// Reads an object id of the model.
pub(in crate::git) fn parse_oid(id: &crate::model::manifest::ObjectId) -> Result<Oid> {
    Oid::from_str(&id.0).map_err(|_| Error::corrupt(format!("'{id}' is not an object id")))
}

/// [`parse_oid`] of what may be missing.
pub(in crate::git) fn oid_of(id: Option<&crate::model::manifest::ObjectId>) -> Result<Option<Oid>> {
    id.map(parse_oid).transpose()
}

/// The id of an object, without a look for content that was made to collide: for what has to be that of a known id, and
/// for trees, which are made here.
pub(in crate::git) fn id_of(kind: ObjectType, data: &[u8]) -> Result<Oid> {
    let mut hash = Sha1::new();
    hash.update(object_header(kind, data.len() as u64));
    hash.update(data);
    Oid::from_bytes(&hash.finalize()).map_err(Error::git("hash an object"))
}

/// What a loose object begins with, and what is hashed before the content.
pub(in crate::git) fn object_header(kind: ObjectType, size: u64) -> String {
    format!("{} {size}\0", kind.str())
}

/// The git file mode of a tree.
pub(in crate::git) const TREE: u32 = 0o040_000;

/// The git file mode of a submodule.
pub(in crate::git) const GITLINK: u32 = 0o160_000;

/// The kind of an entry with this git file mode.
pub(in crate::git) fn kind_of(mode: u32) -> Result<EntryKind> {
    match mode & 0o170_000 {
        0o100_000 => Ok(EntryKind::File),
        0o120_000 => Ok(EntryKind::Symlink),
        0o160_000 => Ok(EntryKind::Gitlink),
        _ => Err(Error::corrupt(format!("file mode {mode:o} in a tree"))),
    }
}
