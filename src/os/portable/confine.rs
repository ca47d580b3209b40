//! Writes of a command are confined by `sandbox-exec`, which macOS has.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::os::seatbelt::profile;

const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Whether the system can do it.
pub(crate) fn can_confine() -> bool {
    Path::new(PROGRAM).exists()
}

/// The command `argv` so that it writes only below `write`, and nothing below `never`.
#[expect(clippy::unnecessary_wraps, reason = "other systems may not be able to")]
pub(crate) fn confined(
    argv: &[OsString],
    write: &[PathBuf],
    never: &[PathBuf],
) -> io::Result<Command> {
    let mut command = Command::new(PROGRAM);
    command.arg("-p").arg(profile(write, never)).args(argv);
    Ok(command)
}
