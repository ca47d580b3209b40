//! File systems on which others can change files without notifying this machine.

use std::path::Path;

/// The name of the file system, if it is such a one.
#[cfg(target_os = "linux")]
pub(super) fn name_of(path: &Path) -> Option<&'static str> {
    // `f_type` is wider than the magic numbers on some machines and signed on others.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast
    )]
    let magic = rustix::fs::statfs(path).ok()?.f_type as u32;
    name_by(magic)
}

/// The name of the file system, if it is such a one: elsewhere the system's watcher knows by itself.
#[cfg(not(target_os = "linux"))]
pub(super) fn name_of(_path: &Path) -> Option<&'static str> {
    None
}

/// By statfs(2).
#[cfg(target_os = "linux")]
fn name_by(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xfe53_4d42 | 0xff53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x786f_4256 => "a shared folder",
        0x0bd0_0bd0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(name_by(0x6969), Some("NFS"));
        assert_eq!(name_by(0xef53), None, "ext4");
        assert_eq!(name_by(0x9fa0), None, "proc");
        assert_eq!(name_of(Path::new("/proc")), None);
        assert_eq!(name_of(Path::new("/no/such/path")), None);
    }
}
