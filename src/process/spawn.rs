//! Starts a child with its pipes.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write as _};
use std::os::{
    fd::{AsFd, OwnedFd},
    unix::process::CommandExt,
};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, atomic::AtomicBool};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use super::pty::{self, Pty};
use super::{ProcessId, Program, Show, SpawnError, SpawnErrorKind, Supervised, orphan};

/// A child that was just started, with our ends of its pipes.
pub(super) struct Spawned {
    pub(super) child: Child,
    /// Non-blocking.
    pub(super) stdin: Option<OwnedFd>,
    /// With a terminal there is only one.
    pub(super) outputs: [Option<OwnedFd>; 2],
    /// It is in our process group, in front of a terminal.
    pub(super) foreground: bool,
}

/// Starts it; the inner error is the command's fault, the outer one ours.
pub(super) fn spawn(spec: &Supervised) -> io::Result<Result<Spawned, SpawnError>> {
    let argv = match &spec.program {
        Program::Argv(argv) => argv.clone(),
        Program::Shell(line) => vec!["/bin/sh".into(), "-c".into(), line.clone()],
    };
    let Some((program, arguments)) = argv.split_first() else {
        return Ok(Err(SpawnError {
            kind: SpawnErrorKind::NotFound,
            message: "the command is empty".to_owned(),
        }));
    };
    let mut command = if let Some(helper) = &spec.pty {
        pty::helper_for(helper.as_os_str(), &argv)
    } else {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    };
    command.current_dir(&spec.cwd);
    command.env(orphan::SUPERVISOR, orphan::mark_of(&ProcessId::own()));
    command.envs(spec.env_set.iter().map(|(name, value)| (name, value)));
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    let passthrough = spec.show.is_passthrough();
    command.stdin(match &spec.stdin {
        Some(_) => Stdio::piped(),
        None if passthrough => Stdio::inherit(),
        None => Stdio::null(),
    });
    if !passthrough {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    if spec.pipes_errors() {
        command.stderr(Stdio::piped());
    }
    if spec.show == Show::PassthroughStderr {
        command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    }
    let is_typed = spec.stdin.is_none() && pty::is_typed_on();
    let pty = match &spec.pty {
        Some(_) => Some(Pty::attach(&mut command, is_typed)?),
        None => None,
    };
    let foreground = passthrough && spec.stdin.is_none() && io::stdin().is_terminal();
    if !foreground && pty.is_none() {
        command.process_group(0);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(spawn_error(spec, command.get_program(), &error))),
    };
    // With it go our copies of what is the child's.
    drop(command);
    let stdin = child.stdin.take().map(OwnedFd::from);
    if let Some(stdin) = &stdin
        && let Err(error) = rustix::io::ioctl_fionbio(stdin, true)
    {
        // A write that blocks would hold up everything.
        let _ = child.kill();
        child.wait()?;
        return Err(error.into());
    }
    let outputs = if let Some(mut pty) = pty {
        if let Err(error) = pty.wait()? {
            child.wait()?;
            return Ok(Err(spawn_error(spec, program, &error)));
        }
        [Some(pty.ours), None]
    } else {
        [
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        ]
    };
    Ok(Ok(Spawned {
        child,
        stdin,
        outputs,
        foreground,
    }))
}

fn spawn_error(spec: &Supervised, program: &OsStr, error: &io::Error) -> SpawnError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => SpawnErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => SpawnErrorKind::PermissionDenied,
        _ => SpawnErrorKind::Other,
    };
    // The system gives one error for the folder and the program; the folder is easily asked.
    let message = match std::fs::metadata(&spec.cwd) {
        Ok(folder) if folder.is_dir() => format!("{}: {error}", program.display()),
        Ok(_) => format!("{}: not a folder", spec.cwd.display()),
        Err(error) => format!("{}: {error}", spec.cwd.display()),
    };
    SpawnError { kind, message }
}

/// What a shell ends with where there is no such program.
const NOT_FOUND: i32 = 127;

/// What pagers are told where nobody tells them: to end by themselves where all fits, to show colours, to leave it there.
const TOLD: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Shows a text with a shell command, and returns when it was left; `false` where there is no such program.
///
/// # Errors
/// The shell could not be started, or the text could not be written. That it was left early is none.
pub(crate) fn page(command: &str, text: &[u8]) -> io::Result<bool> {
    // Ctrl-C is the pager's own affair.
    flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::piped());
    let told = TOLD
        .into_iter()
        .filter(|(name, _)| std::env::var_os(name).is_none());
    let mut pager = shell.envs(told).spawn()?;
    let written = pager
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(text));
    let ended = pager.wait()?;
    if ended.code() == Some(NOT_FOUND) {
        return Ok(false);
    }
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(true),
    }
}
