//! The user's hooks around a commit, as `git commit` runs them.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::Context as _;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::git::program::misleading_variables;
use crate::process::{Program, Show, Supervised};

/// Runs a hook, where there is one; what it prints goes to stderr.
///
/// # Errors
/// It ends with another code than 0 (13), or a signal came meanwhile.
pub(super) fn run(
    context: &Context,
    name: &str,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<()> {
    let hook = context.repo()?.hooks_dir()?.join(name);
    // git, too, passes over one that may not be executed.
    if !hook.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0) {
        return Ok(());
    }
    let argv = std::iter::once(hook.into_os_string()).chain(arguments.iter().cloned()).collect();
    let is_set = |name: &OsString| environment.iter().any(|(set, _)| set == name);
    let supervised = Supervised {
        env_set: environment.to_vec(),
        env_remove: misleading_variables().into_iter().filter(|name| !is_set(name)).collect(),
        show: Show::PassthroughStderr,
        grace: context.settings().runner.grace,
        ..Supervised::new(Program::Argv(argv), context.worktree())
    };
    let exit =
        supervised.run(&context.interrupts, |_| Ok(())).with_context(|| format!("cannot run the hook {name}"))?;
    if let Some(signal) = exit.cancelled {
        let message = format!("interrupted while the hook {name} ran; nothing was changed");
        return Err(Error::new(ErrorKind::Interrupted(signal.exit_code()), message));
    }
    let why = match (&exit.spawn_error, exit.exit_code) {
        (None, Some(0)) => return Ok(()),
        (Some(error), _) => error.message.clone(),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => exit.signal.unwrap_or_default(),
    };
    Err(Error::new(ErrorKind::NotVerified, format!("the hook {name} refused the commit ({why})")))
}
