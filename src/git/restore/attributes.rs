//! Carries extended attributes and POSIX ACLs of a file over to the one that replaces it.
//! What cannot be carried never gives anybody more rights than before.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::git::base::openat;

const ACL: &str = "system.posix_acl_access";
const DEFAULT_ACL: &str = "system.posix_acl_default";
const CAPABILITIES: &str = "security.capability";
/// What the kernel makes of a file's content by itself.
const OF_CONTENT: [&str; 2] = ["security.ima", "security.evm"];
/// The largest list of names, and the largest value.
const MOST: usize = 64 << 10;

/// What became of the attributes of a file that is replaced.
#[derive(Default)]
pub(super) struct Carried {
    /// What the group may have at most, where the ACL that said so could not be carried.
    pub group: Option<u32>,
    /// What is lost, a sentence each.
    pub lost: Vec<String>,
}

/// Puts on `made` what the file at `name` has. What the folder's default ACL gave it goes, where that file has none.
pub(super) fn carry(dir: &OwnedFd, name: &[u8], made: &File) -> io::Result<Carried> {
    let mut carried = Carried::default();
    // It is gone by now, or is no file: the restore sees to that.
    let Ok(from) = openat::open_file(dir, name) else {
        return Ok(carried);
    };
    let names = names(&from)?;
    if !names.iter().any(|name| name == ACL) && has(made, ACL) {
        rustix::fs::fremovexattr(made, ACL)?;
    }
    for name in names
        .iter()
        .filter(|name| !OF_CONTENT.contains(&name.as_str()))
    {
        if name == CAPABILITIES {
            // They were given to other content.
            carried.lost.push(capabilities_lost());
            continue;
        }
        let mut value = vec![0; MOST];
        let length = rustix::fs::fgetxattr(&from, name.as_str(), value.as_mut_slice())?;
        value.truncate(length);
        if let Err(error) = rustix::fs::fsetxattr(made, name.as_str(), &value, XattrFlags::empty())
        {
            let what = if name == ACL {
                "its ACL".to_owned()
            } else {
                format!("its extended attribute {name}")
            };
            carried.lost.push(format!(
                "{what} could not be put back: {}",
                io::Error::from(error)
            ));
            if name == ACL {
                carried.group = Some(group_of(&value));
            }
        }
    }
    Ok(carried)
}

/// What is lost with a file that is deleted.
pub(super) fn lost_with_file(dir: &OwnedFd, name: &[u8]) -> Vec<String> {
    let Ok(file) = openat::open_file(dir, name) else {
        return Vec::new();
    };
    let names = names(&file).unwrap_or_default();
    let lost = names.iter().filter_map(|name| match name.as_str() {
        ACL => Some("its ACL is lost with it".to_owned()),
        CAPABILITIES => Some(capabilities_lost()),
        _ => None,
    });
    lost.collect()
}

/// What is lost with a folder that is removed.
pub(super) fn lost_with_folder(dir: &OwnedFd, name: &[u8]) -> Option<String> {
    let folder = openat::open_folder(dir, name).ok()?;
    has(&folder, DEFAULT_ACL).then(|| "its default ACL is lost with it".to_owned())
}

fn capabilities_lost() -> String {
    "its file capabilities are not put back".to_owned()
}

fn has(file: impl AsFd, name: &str) -> bool {
    rustix::fs::fgetxattr_query(file, name).is_ok()
}

/// The names of a file's attributes; none where its file system has no attributes.
fn names(file: &File) -> io::Result<Vec<String>> {
    match rustix::fs::flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut list = vec![0; MOST];
    let length = rustix::fs::flistxattr(file, list.as_mut_slice())?;
    let names = list[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

/// The rights that an ACL gives the group itself: the permissions of the file show its mask.
fn group_of(acl: &[u8]) -> u32 {
    // A version (4 bytes), then entries of tag (2), permissions (2) and id (4), all little-endian; 4 is the tag of the group.
    let mut entries = acl.get(4..).unwrap_or_default().chunks_exact(8);
    entries
        .find(|entry| entry[..2] == [4, 0])
        .map_or(0, |entry| u32::from(entry[2]) & 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_not_the_groups_right() {
        let entry = |tag: u8, rights: u8| [tag, 0, rights, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        let acl = [
            &[2, 0, 0, 0][..],
            &entry(1, 6),
            &entry(2, 6),
            &entry(4, 0),
            &entry(16, 6),
            &entry(32, 4),
        ]
        .concat();
        assert_eq!(group_of(&acl), 0);
        assert_eq!(group_of(&[&[2, 0, 0, 0][..], &entry(4, 5)].concat()), 5);
        assert_eq!(group_of(b""), 0);
    }
}
