//! Starts a child with its pipes.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::pty::{self, Pty};
use super::{Program, Show, SpawnError, SpawnErrorKind, Supervised, orphan};

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
        let message = "the command is empty".to_owned();
        return Ok(Err(SpawnError {
            kind: SpawnErrorKind::NotFound,
            message,
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
    command.env(orphan::SUPERVISOR, orphan::mark_of(&orphan::own_id()));
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
    if spec.show == Show::PassthroughStderr {
        command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    }
    let pty = match &spec.pty {
        Some(_) => Some(Pty::attach(
            &mut command,
            spec.stdin.is_none() && pty::is_typed_on(),
        )?),
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
    if let Some(mut pty) = pty {
        if let Err(error) = pty.wait()? {
            child.wait()?;
            return Ok(Err(spawn_error(spec, program, &error)));
        }
        return Ok(Ok(Spawned {
            child,
            stdin,
            outputs: [Some(pty.ours), None],
            foreground,
        }));
    }
    let outputs = [
        child.stdout.take().map(OwnedFd::from),
        child.stderr.take().map(OwnedFd::from),
    ];
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
