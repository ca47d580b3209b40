//! Writes of this process and what it starts are confined by Landlock.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, path_beneath_rules,
};

/// Earlier ones let whoever is confined truncate any file, and rename nothing from one folder to another.
const LEAST: ABI = ABI::V3;

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(LEAST))?
        .create()
}

/// Whether the kernel can do it.
pub(crate) fn can_confine() -> bool {
    ruleset().is_ok()
}

/// The command `argv`, to be started by this process, which from now on writes only below `write`: a folder that may be written
/// cannot have one in it that may not.
pub(crate) fn confined(
    argv: &[OsString],
    write: &[PathBuf],
    _never: &[PathBuf],
) -> io::Result<Command> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    ruleset()
        .and_then(|rules| rules.add_rules(path_beneath_rules(write, AccessFs::from_write(LEAST))))
        .and_then(RulesetCreated::restrict_self)
        .map_err(io::Error::other)?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}
