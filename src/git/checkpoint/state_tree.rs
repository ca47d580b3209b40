//! The layout of a checkpoint's state tree, shared by who writes it and who reads it.

use git2::{ObjectType, Oid};

use crate::git::base::error::{Error, Result};
use crate::git::base::names;
use crate::git::base::object_id::id_of;
use crate::git::odb::objects::ObjectWriter;
use crate::git::odb::trees::{self, Flat};
use crate::model::manifest::ObjectId;
use crate::model::manifest::{MANIFEST_VERSION, Manifest};
use crate::model::path::RepoPath;

/// A file of the loop's working memory, relative to the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Its path.
    pub path: RepoPath,
    /// Its content.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
}

impl MemoryFile {
    /// The id of its content.
    pub fn blob(&self) -> Result<ObjectId> {
        Ok(ObjectId(
            id_of(ObjectType::Blob, &self.content)?.to_string(),
        ))
    }
}

/// The tree of the working memory, as it would stand in a checkpoint; `None` without any file.
pub(super) fn memory_tree(writer: &ObjectWriter, memory: &[MemoryFile]) -> Result<Option<Oid>> {
    let flat = memory_files(writer, memory, b"")?;
    if flat.is_empty() {
        Ok(None)
    } else {
        trees::write(writer, &flat).map(Some)
    }
}

pub(super) fn memory_files(
    writer: &ObjectWriter,
    memory: &[MemoryFile],
    below: &[u8],
) -> Result<Flat> {
    let mut flat = Flat::new();
    for file in memory {
        if let Some(reason) = names::unsafe_path(&file.path) {
            return Err(Error::UnsafePath {
                path: file.path.to_lossy().as_ref().into(),
                reason: reason.to_owned(),
            });
        }
        let mode = if file.mode & 0o100 == 0 {
            0o100_644
        } else {
            0o100_755
        };
        let oid = writer.write(ObjectType::Blob, &file.content)?;
        flat.insert(RepoPath::new(below).join(file.path.as_bytes()), (mode, oid));
    }
    Ok(flat)
}

/// The folder of the copies of nested repositories in the state tree.
pub(in crate::git) const FOLDER: &str = "nested";

/// Reads a manifest, refusing a newer one.
pub(in crate::git) fn parse_manifest(bytes: &[u8]) -> Result<Manifest> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let unreadable = |error: serde_json::Error| Error::corrupt(format!("manifest: {error}"));
    let Version { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
    if version > MANIFEST_VERSION {
        return Err(Error::Newer {
            what: format!("a checkpoint's manifest (version {version})"),
        });
    }
    let mut manifest: Manifest = serde_json::from_slice(bytes).map_err(unreadable)?;
    // They are written so; what looks paths up relies on it, whoever wrote them.
    for list in [
        &mut manifest.file_modes,
        &mut manifest.folder_modes,
        &mut manifest.empty_folders,
    ] {
        list.sort_unstable();
    }
    Ok(manifest)
}
