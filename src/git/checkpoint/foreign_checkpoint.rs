//! What a checkpoint of another work tree says of this one: no more than the commit it was taken on.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{AttrCheckFlags, AttrValue, Repository};

use super::stored::StoredCheckpoint;
use crate::git::base::{Error, GITLINK, Result, parse_oid};
use crate::git::repo::repository::Repo;
use crate::git::tree::TreeLookup;
use crate::model::{Entry, EntryKind, IndexExtra, Manifest, ObjectId, RepoPath, Snapshot};

impl StoredCheckpoint {
    /// The commit that it was taken on as if that had been captured, clean, in the work tree that `here` is of: what git
    /// does not know of (modes, which paths of a sparse checkout are there) is as it is there now. `None` where there
    /// was no commit.
    ///
    /// What was not committed (edits, untracked files, staged content, what was skipped) lay in the other work tree and
    /// says nothing of this one.
    pub fn base(&self, repo: &Repo, here: &Manifest) -> Result<Option<Self>> {
        let Some(commit) = &self.manifest.head.commit else {
            return Ok(None);
        };
        let tree = repo.tree_of(commit)?;
        let lookup = TreeLookup::stored(repo)?;
        let mut file_modes = Vec::new();
        for listed in &here.file_modes {
            let found = lookup.find(&tree, &listed.path)?;
            if found.is_some_and(|(mode, _)| (mode & 0o100 != 0) == (listed.mode & 0o100 != 0)) {
                file_modes.push(listed.clone());
            }
        }
        let mut index_extras = Vec::new();
        for extra in here.index_extras.iter().filter(|extra| is_mark(extra)) {
            if let Some((mode, oid)) = lookup.find(&tree, &extra.path)? {
                let oid = ObjectId(oid.to_string());
                index_extras.push(IndexExtra {
                    mode,
                    oid,
                    ..extra.clone()
                });
            }
        }
        let manifest = Manifest {
            modes: here.modes,
            file_modes,
            folder_modes: here.folder_modes.clone(),
            empty_folders: Vec::new(),
            skipped: Vec::new(),
            partial: false,
            nested: Vec::new(),
            operation: None,
            has_index: true,
            index_extras,
            ..self.manifest.clone()
        };
        Ok(Some(Self {
            tree: tree.clone(),
            index_tree: Some(tree),
            manifest,
            ..self.clone()
        }))
    }
}

/// Whether an index entry is listed for a mark alone.
fn is_mark(extra: &IndexExtra) -> bool {
    extra.stage == 0 && !extra.intent_to_add && (extra.assume_unchanged || extra.skip_worktree)
}

impl Repo {
    /// Makes of the content that a commit has the content that a work tree has of it.
    ///
    /// A commit holds what git converted (ends of lines, `$Id$`, filters); a capture holds the bytes that were there. Where a
    /// path is converted, what is there `now`, else what the `captured` checkpoint has, replaces the commit's as far as it
    /// comes to the same. A path that a sparse checkout leaves out stays out.
    pub(crate) fn as_checked_out(
        &self,
        lookup: &TreeLookup<'_>,
        captured: &StoredCheckpoint,
        here: &Manifest,
        now: &Snapshot,
        target: &mut Snapshot,
    ) -> Result<()> {
        let sparse: BTreeSet<&RepoPath> = here
            .index_extras
            .iter()
            .filter(|extra| extra.skip_worktree)
            .map(|extra| &extra.path)
            .collect();
        target
            .entries
            .retain(|path, _| now.entries.contains_key(path) || !sparse.contains(path));
        let converts_all = converts_all(self)?;
        for (path, entry) in target
            .entries
            .iter_mut()
            .filter(|(_, entry)| entry.kind == EntryKind::File)
        {
            let Some(by) = Conversion::of(&self.inner, path, converts_all)? else {
                continue;
            };
            let there = now.entries.get(path).cloned();
            let then = captured.view().entry(lookup, path)?;
            let committed = captured
                .index_tree
                .as_ref()
                .map(|tree| lookup.find(tree, path))
                .transpose()?
                .flatten();
            let unstaged = committed
                .is_some_and(|(mode, oid)| mode != GITLINK && oid.to_string() == entry.oid.0);
            let same = |raw: &Entry| -> Result<bool> {
                Ok(raw.kind == EntryKind::File
                    && match by {
                        // What a filter makes of it only git knows.
                        Conversion::Filter => {
                            unstaged && then.as_ref().is_some_and(|then| then.oid == raw.oid)
                        }
                        Conversion::Text => {
                            let read = |oid| lookup.blob(parse_oid(oid)?);
                            plain(&read(&raw.oid)?) == plain(&read(&entry.oid)?)
                        }
                    })
            };
            for raw in there.iter().chain(&then) {
                if same(raw)? {
                    entry.oid = raw.oid.clone();
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Whether the configuration converts files that no attribute speaks of.
fn converts_all(repo: &Repo) -> Result<bool> {
    let converts = repo.config()?.get_string("core.autocrlf");
    Ok(converts.is_ok_and(|value| value != "false"))
}

/// How git converts a file.
#[derive(Clone, Copy)]
enum Conversion {
    /// Its line ends, or `$Id$`.
    Text,
    /// By a program, or from another encoding.
    Filter,
}

impl Conversion {
    fn of(repository: &Repository, path: &RepoPath, converts_all: bool) -> Result<Option<Self>> {
        let at = Path::new(OsStr::from_bytes(path.as_bytes()));
        let set = |name: &str| -> Result<bool> {
            let value = repository.get_attr_bytes(at, name, AttrCheckFlags::FILE_THEN_INDEX);
            let value = value.map_err(Error::git(format!("read the attributes of {path}")))?;
            Ok(!matches!(
                AttrValue::always_bytes(value),
                AttrValue::Unspecified | AttrValue::False
            ))
        };
        for name in ["filter", "working-tree-encoding"] {
            if set(name)? {
                return Ok(Some(Self::Filter));
            }
        }
        for name in ["text", "eol", "crlf", "ident"] {
            if set(name)? {
                return Ok(Some(Self::Text));
            }
        }
        Ok(converts_all.then_some(Self::Text))
    }
}

/// Text with plain line ends and `$Id$` as it is committed.
fn plain(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some((first, after)) = rest.split_first() {
        if rest.starts_with(b"\r\n") {
            rest = after;
            continue;
        }
        out.push(*first);
        rest = after;
        if out.ends_with(b"$Id")
            && rest.first() == Some(&b':')
            && let Some(end) = rest.iter().position(|byte| matches!(byte, b'$' | b'\n'))
            && rest[end] == b'$'
        {
            rest = &rest[end..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_git_converts_comes_to_the_same() {
        for (raw, committed) in [
            (&b"a\r\nb\r\n"[..], &b"a\nb\n"[..]),
            (b"x $Id: 0123 $ y", b"x $Id$ y"),
            (b"$Id: not\nclosed $", b"$Id: not\nclosed $"),
            (b"\r \r\r\n", b"\r \r\n"),
            (b"", b""),
        ] {
            assert_eq!(plain(raw), committed);
        }
    }
}
