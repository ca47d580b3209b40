//! Whose a folder is, and whether it may be believed.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::Config;
use rustix::fs::{Access, AtFlags, CWD};

use crate::durable::sudo_caller;
use crate::git::base::error::{Error, Result};

/// Whether what belongs to `owner` may be believed: it is the user's, root's, or under `sudo` that of who called it.
fn is_ours(owner: u32) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    owner == ours || owner == 0 || sudo_caller() == Some(owner)
}

/// Refuses a folder or file of another user's. What is not there belongs to nobody. `project` is the folder that the user
/// may have declared safe (`safe.directory`).
pub(crate) fn check(path: &Path, project: &Path) -> Result<()> {
    match foreign(path) {
        Some(owner) if !is_declared_safe(project) => Err(Error::ForeignOwner {
            path: path.to_owned(),
            owner,
            root: project.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The owner of a file or folder that is not ours; of a link, it is the link's own.
pub(crate) fn foreign(path: &Path) -> Option<u32> {
    fs::symlink_metadata(path)
        .ok()
        .map(|found| found.uid())
        .filter(|owner| !is_ours(*owner))
}

/// Whether a folder belongs to another user, root included.
pub(crate) fn is_of_another(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.uid() != rustix::process::geteuid().as_raw())
}

/// What another user left in a folder that we write to, as `sudo` does, and we may not use; folders are looked into `depth`
/// levels deep. To root it makes no difference, and none where a project is shared.
pub(crate) fn left_by_another(folder: &Path, depth: usize) -> Option<(PathBuf, u32)> {
    let ours = rustix::process::geteuid().as_raw();
    let found = fs::symlink_metadata(folder).ok().filter(|_| ours != 0)?;
    // What nobody writes, as git's objects, is only read.
    let mut needed = if found.mode() & 0o200 == 0 {
        Access::READ_OK
    } else {
        Access::READ_OK | Access::WRITE_OK
    };
    needed.set(Access::EXEC_OK, found.is_dir());
    let is_usable = || {
        found.is_symlink() || rustix::fs::accessat(CWD, folder, needed, AtFlags::EACCESS).is_ok()
    };
    if found.uid() != ours && !is_usable() {
        return Some((folder.to_owned(), found.uid()));
    }
    let deeper = depth.checked_sub(1).filter(|_| found.is_dir())?;
    fs::read_dir(folder)
        .ok()?
        .flatten()
        .find_map(|entry| left_by_another(&entry.path(), deeper))
}

/// Whether something of ours in a folder lacks rights that its owner, this user, may give: folders, and with `files` also
/// files that are to be written. Folders are looked into `depth` levels deep.
pub(crate) fn is_closed(folder: &Path, depth: usize, files: bool) -> bool {
    let Ok(found) = fs::symlink_metadata(folder) else {
        return false;
    };
    if found.is_symlink() || (found.is_file() && !files) {
        return false;
    }
    let mut needed = Access::READ_OK | Access::WRITE_OK;
    needed.set(Access::EXEC_OK, found.is_dir());
    let is_denied = || {
        rustix::fs::accessat(CWD, folder, needed, AtFlags::EACCESS)
            == Err(rustix::io::Errno::ACCESS)
    };
    if found.uid() == rustix::process::geteuid().as_raw() && is_denied() {
        return true;
    }
    let Some(deeper) = depth.checked_sub(1).filter(|_| found.is_dir()) else {
        return false;
    };
    fs::read_dir(folder).is_ok_and(|names| {
        names
            .flatten()
            .any(|name| is_closed(&name.path(), deeper, files))
    })
}

/// Whether everybody may put something into a folder.
pub(crate) fn is_open_to_all(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.mode() & 0o002 != 0)
}

/// Whether the user, the system or the command line declared the folder safe, as git reads `safe.directory`: never the
/// repository itself.
pub(crate) fn is_declared_safe(project: &Path) -> bool {
    let mut safe = false;
    for value in declared() {
        match value.as_slice() {
            // An empty value takes back what was said before.
            b"" => safe = false,
            b"*" => safe = true,
            value => safe |= is_same(value, project),
        }
    }
    safe
}

fn is_same(value: &[u8], project: &Path) -> bool {
    let named = |value: &[u8]| {
        let path = Path::new(std::ffi::OsStr::from_bytes(value));
        let path = match path.strip_prefix("~") {
            Ok(rest) => std::env::home_dir().unwrap_or_default().join(rest),
            Err(_) => path.to_owned(),
        };
        fs::canonicalize(&path).unwrap_or(path)
    };
    match value.strip_suffix(b"/*") {
        Some(above) => project.starts_with(named(above)) && project != named(above),
        None => project == named(value),
    }
}

/// The values of `safe.directory`, in their order.
fn declared() -> Vec<Vec<u8>> {
    let env = |name: &str| std::env::var_os(name);
    let is_set = |name: &str| {
        env(name).is_some_and(|value| !matches!(value.as_bytes(), b"" | b"0" | b"false" | b"no"))
    };
    let system = match env("GIT_CONFIG_SYSTEM") {
        _ if is_set("GIT_CONFIG_NOSYSTEM") => None,
        Some(file) => Some(PathBuf::from(file)),
        None => Config::find_system().ok(),
    };
    let of_user = match env("GIT_CONFIG_GLOBAL") {
        Some(file) => vec![PathBuf::from(file)],
        None => [Config::find_xdg(), Config::find_global()]
            .into_iter()
            .flatten()
            .collect(),
    };
    let mut all = Vec::new();
    for file in system.into_iter().chain(of_user) {
        let Ok(config) = Config::open(&file) else {
            continue;
        };
        let Ok(mut values) = config.multivar("safe.directory", None) else {
            continue;
        };
        while let Some(Ok(entry)) = values.next() {
            all.push(entry.value_bytes().to_vec());
        }
    }
    // What a caller's `git -c` or its environment says is no repository's word either.
    let count = std::env::var("GIT_CONFIG_COUNT")
        .ok()
        .and_then(|count| count.parse::<u32>().ok())
        .unwrap_or(0);
    let named = |number: &u32| {
        env(&format!("GIT_CONFIG_KEY_{number}"))
            .is_some_and(|key| key.eq_ignore_ascii_case("safe.directory"))
    };
    let values = (0..count.min(1024))
        .filter(named)
        .filter_map(|number| env(&format!("GIT_CONFIG_VALUE_{number}")));
    all.extend(values.map(|value| value.as_bytes().to_vec()));
    all
}
