//! Which entries of a folder a capture takes.

use rustix::fs::FileType;

use super::{DirContext, PendingDir, Walk};
use crate::git::base::{FileStat, GITLINK, WorkQueue, is_settled, openat, unsafe_name};
use crate::git::index::user_index::Identity;
use crate::git::worktree::cache::{CachedEntry, Other, flag};
use crate::git::worktree::scan::{Content, Folder, Scan};
use crate::model::path::RepoPath;

impl<'a> Walk<'a> {
    /// Looks at one name.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn entry(
        &self,
        folder: &mut Folder,
        here: &mut DirContext<'a>,
        name: &[u8],
        kind: FileType,
        known: Option<CachedEntry<'a>>,
        queue: &mut WorkQueue<PendingDir>,
        scan: &mut Scan,
    ) {
        if kind == FileType::Directory {
            return self.subfolder(folder, here, name, queue, scan);
        }
        let stat = match openat::stat(&here.dir, name) {
            Ok(Some(stat)) => stat,
            // It went away since the folder was read: it is not there.
            Ok(None) => return,
            Err(error) => return scan.unreadable(folder.path.join(name), &error),
        };
        if stat.kind() == FileType::Directory {
            return self.subfolder(folder, here, name, queue, scan);
        }
        let is_content = matches!(stat.kind(), FileType::RegularFile | FileType::Symlink);
        let tracked = self.tracked(folder, here, name, known.as_ref());
        let was = known.map_or(0, |item| item.flags);
        let taken_before = here.same_rules && was & flag::BY_RULES != 0 && was & flag::TRACKED == 0;
        let mut flags = flag::BY_RULES | if tracked { flag::TRACKED } else { 0 };
        let settled = here.same_rules
            && is_content
            && (taken_before || (tracked && was & flag::TRACKED != 0));
        if !settled {
            let path = folder.path.join(name);
            // The rules are asked last: most files of most work trees are tracked.
            let ignored = || {
                here.ignored
                    || here.rules.matches(path.as_bytes(), false)
                    || self.editor_temp.matches(&path)
            };
            let wanted = tracked || self.include.matches(&path) || !ignored();
            if !wanted && !self.also.contains(&path) {
                return scan.add_other(folder, name, Other::IgnoredFile);
            }
            if !wanted {
                flags = 0;
            }
            if self.exclude.matches(&path) {
                return scan.skip(path, "excluded", Some(stat.size));
            }
            if let Some(reason) = unsafe_name(name) {
                return scan.skip(path, reason, Some(stat.size));
            }
            match stat.kind() {
                FileType::RegularFile | FileType::Symlink => {}
                FileType::Fifo => return scan.skip(path, "a FIFO", Some(stat.size)),
                FileType::Socket => return scan.skip(path, "a socket", Some(stat.size)),
                _ => return scan.skip(path, "a device", Some(stat.size)),
            }
        }
        self.take(folder, here, name, &stat, flags, known.as_ref(), scan);
    }

    /// Takes a file or symlink, if it is not too large.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn take(
        &self,
        folder: &mut Folder,
        here: &mut DirContext<'_>,
        name: &[u8],
        stat: &FileStat,
        mut flags: u8,
        known: Option<&CachedEntry<'_>>,
        scan: &mut Scan,
    ) {
        if flags & flag::TRACKED == 0 {
            if stat.kind() == FileType::RegularFile && stat.size > self.max_file_size {
                return scan.skip(
                    folder.path.join(name),
                    "over max_file_size",
                    Some(stat.size),
                );
            }
            here.untracked = (
                here.untracked.0 + 1,
                here.untracked.1.saturating_add(stat.size),
            );
        }
        let blob = self.content(here, name, stat, known);
        let is_same = |item: &CachedEntry<'_>| {
            blob == Content::Known(item.oid) && item.stat.git_mode() == stat.git_mode()
        };
        if let Some(item) = known.filter(|item| is_same(item)) {
            here.known += usize::from(item.flags == flags | flag::SETTLED);
            flags |= flag::SAME;
        }
        scan.add(folder, name, flags, *stat, blob);
    }

    /// Whether the user's index has the path.
    fn tracked(
        &self,
        folder: &Folder,
        here: &DirContext<'_>,
        name: &[u8],
        known: Option<&CachedEntry<'_>>,
    ) -> bool {
        match &here.index {
            Some(inside) => inside.get(name).is_some_and(|entry| entry.mode != GITLINK),
            None => match known {
                Some(item) => item.flags & flag::TRACKED != 0,
                None => !self.absent.is_empty() && self.absent.contains(&folder.path.join(name)),
            },
        }
    }

    fn content(
        &self,
        here: &DirContext<'_>,
        name: &[u8],
        stat: &FileStat,
        known: Option<&CachedEntry<'_>>,
    ) -> Content {
        if let Some(item) =
            known.filter(|item| item.flags & flag::SETTLED != 0 && item.stat == *stat)
        {
            return if self.cache.alive {
                Content::Known(item.oid)
            } else {
                Content::Cached(item.oid)
            };
        }
        let entry = here.index.and_then(|inside| inside.get(name));
        let written = self
            .index
            .and_then(|index| index.identity.as_ref())
            .map_or(0, Identity::mtime);
        match entry {
            Some(entry)
                if same_kind(entry.mode, stat)
                    && entry.stat.is_some_and(|known| known.matches(stat)) =>
            {
                // git takes content for unchanged that changed in the tick in which the index was written; we do not.
                if is_settled(stat, written) {
                    Content::FromIndex(entry.oid)
                } else {
                    Content::Unread
                }
            }
            _ => Content::Unread,
        }
    }

    fn subfolder(
        &self,
        folder: &mut Folder,
        here: &DirContext<'_>,
        name: &[u8],
        queue: &mut WorkQueue<PendingDir>,
        scan: &mut Scan,
    ) {
        let path = folder.path.join(name);
        let known = self
            .cache
            .folder(path.as_bytes())
            .filter(|_| here.same_rules);
        let taken_before =
            known.is_some_and(|known| known.flags & (flag::WANTED | flag::IGNORED) == flag::WANTED);
        if taken_before {
            scan.add_other(folder, name, Other::Folder);
            return queue.push(here.below(name, path, false, true));
        }
        let ignored = here.ignored || here.rules.matches(path.as_bytes(), true);
        // A path that the index has as a file may be a folder by now.
        let tracked = self.links.contains_key(&path) || self.tracked(folder, here, name, None);
        let wanted =
            !ignored || tracked || self.include.matches(&path) || self.also.contains(&path);
        let below = || {
            self.tracked_below(&path)
                || self.also_below(&path)
                || self.include.may_match_below(&path)
        };
        if !wanted && !below() {
            return scan.add_other(folder, name, Other::IgnoredFolder);
        }
        if self.exclude.matches(&path) {
            return scan.skip(path, "excluded", None);
        }
        if let Some(reason) = unsafe_name(name) {
            return scan.skip(path, reason, None);
        }
        scan.add_other(folder, name, Other::Folder);
        queue.push(here.below(name, path, ignored, wanted));
    }

    fn tracked_below(&self, folder: &RepoPath) -> bool {
        if let Some(index) = self.index {
            return index.has_below(folder.as_bytes());
        }
        let first = folder.join(b"");
        let inside = |path: &&RepoPath| path.as_bytes().starts_with(first.as_bytes());
        // A folder that is ignored is in the cache only for something tracked or included in it.
        self.cache.folder(folder.as_bytes()).is_some()
            || self
                .absent
                .range::<RepoPath, _>(&first..)
                .next()
                .is_some_and(inside)
    }

    fn also_below(&self, folder: &RepoPath) -> bool {
        let first = folder.join(b"");
        self.also
            .range(&first..)
            .next()
            .is_some_and(|path| path.as_bytes().starts_with(first.as_bytes()))
    }
}

/// Whether an index entry is of the kind that the file is.
fn same_kind(mode: u32, stat: &FileStat) -> bool {
    mode & 0o170_000 == stat.git_mode() & 0o170_000
}
