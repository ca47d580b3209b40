//! Finds out what becomes of each path of a restore, before the first write.
//! It can be done, or with rights that its owner may give, or the system does not let the path be replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;

use rustix::{
    fs::{Access, AtFlags, FileType, Mode, StatVfsMountFlags},
    io::Errno,
};

use crate::git::base::openat::{self, MAX_OPEN};
use crate::git::base::{At as _, FileStat, Result};
use crate::git::repo::repository::Repo;
use crate::model::path::{Blocked, PathReason, RepoPath};
use crate::os::{FOLDER_BY_PATH, attributes};
use crate::policy::restore::RestorePlan;

/// What was found out about the paths of a plan.
pub(super) struct Outcomes {
    /// Paths that the system does not let be replaced.
    pub blocked: BTreeMap<RepoPath, Blocked>,
    /// Folders whose owner lacks rights and may give them, with their permissions.
    pub lent: BTreeMap<RepoPath, u32>,
}

/// Examines every path that a plan changes.
pub(super) fn outcomes(repo: &Repo, plan: &RestorePlan) -> Result<Outcomes> {
    let mut survey = Survey::new(repo)?;
    let mut blocked = BTreeMap::new();
    for (path, renames) in plan.changes() {
        if let Some(why) = survey.path(path, renames)? {
            blocked.insert(path.clone(), why);
        }
    }
    Ok(Outcomes {
        blocked,
        lent: survey.lent,
    })
}

/// Goes through sorted paths.
struct Survey {
    user: rustix::process::Uid,
    /// Files that the kernel swaps to: device and inode.
    swaps: BTreeSet<(u64, u64)>,
    /// The work tree's root, and the folders down to that of the last path.
    open: Vec<Folder>,
    lent: BTreeMap<RepoPath, u32>,
}

/// A folder on the way to a path.
struct Folder {
    path: RepoPath,
    /// Opened for its place only, which needs no rights in it.
    dir: OwnedFd,
    about: About,
    /// Why nothing below it is touched.
    foreign: Option<Blocked>,
    /// Why no name in it can be changed.
    closed: Option<Blocked>,
}

/// What the system says of a path.
#[derive(Clone, Copy)]
struct About {
    kind: FileType,
    permissions: u32,
    owner: u32,
    id: (u64, u64),
    is_mount: bool,
    /// Immutable or append-only.
    is_fixed: bool,
}

impl Survey {
    fn new(repo: &Repo) -> Result<Self> {
        let root = repo.workdir();
        let dir = rustix::fs::open(root, FOLDER_BY_PATH, Mode::empty()).at(root)?;
        let stat = rustix::fs::fstat(&dir).at(root)?;
        let user = rustix::process::geteuid();
        let mut survey = Self {
            user,
            swaps: swaps(),
            open: Vec::new(),
            lent: BTreeMap::new(),
        };
        // Whatever the work tree itself is mounted on, it is this one.
        let about = About {
            is_mount: false,
            ..About::of(&stat, None)
        };
        let closed = survey.closed(&RepoPath::default(), &dir, about);
        survey.open.push(Folder {
            path: RepoPath::default(),
            dir,
            about,
            foreign: None,
            closed,
        });
        Ok(survey)
    }

    /// Why a path cannot be replaced or removed (`renames`) or get another mode; `None` where it can.
    fn path(&mut self, path: &RepoPath, renames: bool) -> Result<Option<Blocked>> {
        let (parent, name) = openat::split(path);
        let (user, is_root) = (self.user.as_raw(), self.user.is_root());
        let Some(at) = self.enter(&parent)? else {
            return Ok(None);
        };
        let folder = &self.open[at];
        if let Some(why) = folder.foreign.or(folder
            .closed
            .filter(|why| renames || *why == Blocked::ReadOnly))
        {
            return Ok(Some(why));
        }
        let Some(found) = folder.about(name).on(path)? else {
            return Ok(None);
        };
        let is_others = !is_root && found.owner != user;
        let is_sticky = folder.about.permissions & 0o1000 != 0 && folder.about.owner != user;
        Ok(match () {
            () if found.is_mount => Some(Blocked::MountPoint),
            () if found.is_fixed => Some(Blocked::Immutable),
            () if self.swaps.contains(&found.id) => Some(Blocked::Busy),
            () if is_others && (is_sticky || !renames) => Some(Blocked::NotOwner),
            () => None,
        })
    }

    /// The place of a folder among the open ones; `None` where it is not there.
    fn enter(&mut self, folder: &RepoPath) -> Result<Option<usize>> {
        self.open.truncate(
            self.open
                .iter()
                .take_while(|open| folder.starts_with(&open.path))
                .count(),
        );
        let mut at = self.open.len() - 1;
        let rest = folder.as_bytes()[self.open[at].path.as_bytes().len()..].to_vec();
        for name in rest
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            let above = &self.open[at];
            let path = above.path.join(name);
            let found = above.about(name).on(&path)?;
            let Some(about) = found.filter(|found| found.kind == FileType::Directory) else {
                return Ok(None);
            };
            let dir = match rustix::fs::openat(&above.dir, name, FOLDER_BY_PATH, Mode::empty()) {
                Ok(dir) => dir,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Ok(None),
                Err(error) => return Err(openat::io_error(&path, error.into())),
            };
            let mount = about.is_mount.then(|| {
                if is_read_only(&dir) {
                    Blocked::ReadOnly
                } else {
                    Blocked::MountPoint
                }
            });
            let foreign = above.foreign.or(mount);
            let closed = self.closed(&path, &dir, about);
            self.open.push(Folder {
                path,
                dir,
                about,
                foreign,
                closed,
            });
            if self.open.len() > MAX_OPEN {
                // The root stays, where another way begins.
                self.open.remove(1);
            }
            at = self.open.len() - 1;
        }
        Ok(Some(at))
    }

    /// Why no name in a folder can be changed. Rights that its owner may give are lent.
    fn closed(&mut self, path: &RepoPath, dir: &OwnedFd, about: About) -> Option<Blocked> {
        if about.is_fixed {
            return Some(Blocked::Immutable);
        }
        let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(dir, ".", rights, AtFlags::EACCESS) {
            Err(Errno::ROFS) => Some(Blocked::ReadOnly),
            Err(Errno::PERM) => Some(Blocked::Immutable),
            Err(Errno::ACCESS) if about.owner == self.user.as_raw() => {
                self.lent.insert(path.clone(), about.permissions);
                None
            }
            Err(Errno::ACCESS) => Some(Blocked::NotOwner),
            // What else goes wrong is seen when it is done.
            _ => None,
        }
    }
}

impl About {
    /// `dev` is the file system of the folder that it is in.
    fn of(stat: &rustix::fs::Stat, dev: Option<u64>) -> Self {
        let seen = FileStat::from(*stat);
        Self {
            kind: seen.kind(),
            permissions: seen.permissions(),
            owner: stat.st_uid,
            id: (seen.dev, seen.ino),
            is_mount: dev.is_some_and(|dev| dev != seen.dev),
            is_fixed: false,
        }
    }
}

impl Folder {
    /// What is at a name; `None` where nothing is, or nothing can be seen.
    fn about(&self, name: &[u8]) -> io::Result<Option<About>> {
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(with_attributes(
                About::of(&stat, Some(self.about.id.0)),
                &self.dir,
                name,
            ))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// With what only the system's own call reports: a mount of the same file system, and attributes.
fn with_attributes(about: About, dir: &OwnedFd, name: &[u8]) -> About {
    let found = attributes(dir, name);
    About {
        is_mount: found.is_mount.unwrap_or(about.is_mount),
        is_fixed: found.is_fixed,
        ..about
    }
}

fn is_read_only(dir: &OwnedFd) -> bool {
    rustix::fs::fstatvfs(dir).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// The files that the kernel swaps to; none where it does not say.
fn swaps() -> BTreeSet<(u64, u64)> {
    let listed = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let files = listed
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    let id = |path: &str| {
        // Blanks are written in octal.
        let stat = rustix::fs::stat(path.replace("\\040", " ")).ok()?;
        let about = About::of(&stat, None);
        (about.kind == FileType::RegularFile).then_some(about.id)
    };
    files.filter_map(id).collect()
}

/// Why such a folder is kept.
pub(super) const HOLDS_OTHERS: &str = "holds files that were not captured";

impl Repo {
    /// Takes them out of the plan and lists them as kept, so that nothing is announced that will not happen. What turns up in
    /// a folder after this keeps it as well: the restore only ever removes empty ones. `files` go beside the plan.
    pub(crate) fn keep_nonempty_dirs(
        &self,
        plan: &mut RestorePlan,
        files: Vec<RepoPath>,
    ) -> Result<()> {
        let root = openat::open_root(self.workdir())?;
        let mut going: BTreeSet<RepoPath> = plan
            .delete
            .iter()
            .map(|delete| delete.path.clone())
            .chain(files)
            .collect();
        let mut staying = BTreeSet::new();
        // The deepest first: a folder that stays keeps those above it.
        for folder in plan.remove_dirs.iter().rev().map(|dir| &dir.path) {
            // One that cannot be opened is reported by the restore.
            let names = match openat::open_path(&root, folder) {
                Ok(dir) => openat::names(&dir).on(folder)?,
                Err(_) => Vec::new(),
            };
            if names.iter().all(|name| going.contains(&folder.join(name))) {
                going.insert(folder.clone());
            } else {
                staying.insert(folder.clone());
            }
        }
        plan.remove_dirs.retain(|dir| !staying.contains(&dir.path));
        let kept = |path| PathReason::new(path, HOLDS_OTHERS);
        plan.kept.extend(staying.into_iter().map(kept));
        plan.kept.sort();
        plan.kept.dedup();
        Ok(())
    }
}
