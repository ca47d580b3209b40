//! Starts a child with its pipes, of which we hold the other ends, and finds out whether a program can be started without starting it.
//!
//! Where a child may write in some places only, this very program, as a helper, confines itself and then becomes the command.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::io::{self, IsTerminal, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::{
    fd::{AsFd, OwnedFd},
    unix::process::CommandExt,
};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, atomic::AtomicBool};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use super::output::{Capture, Captured, Keep};
use super::pty::{self, Pty};
use super::{ProcessId, Program, Show, SpawnError, SpawnErrorKind, Stderr, Supervised, orphan};
use crate::model::spec::Places;
use crate::os::{confined, enlarge_pipe, own_program, pipe_size};

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
    let Some(program) = argv.first() else {
        return Ok(Err(SpawnError {
            kind: SpawnErrorKind::NotFound,
            message: "the command is empty".to_owned(),
        }));
    };
    let mut line = argv.clone();
    if let Some(places) = &spec.confined {
        // The helper starts, whatever becomes of the command.
        let path = std::env::var_os("PATH");
        let found = Program::find(&program.to_string_lossy(), &spec.cwd, path.as_deref());
        if let Err(error) = found {
            return Ok(Err(error));
        }
        line = confining(&own_program()?, places, &argv)?;
    }
    let mut command = if let Some(helper) = &spec.pty {
        pty::helper_for(helper.as_os_str(), &line)
    } else {
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        command
    };
    command.current_dir(&spec.cwd);
    command.env(orphan::SUPERVISOR, orphan::mark_of(&ProcessId::own()));
    command.envs(spec.env_set.iter().map(|(name, value)| (name, value)));
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    let passthrough = spec.show.is_passthrough();
    command.stdin(match (&spec.input, &spec.stdin) {
        (Some(input), _) => Stdio::from(input.try_clone()?),
        (None, Some(_)) => Stdio::piped(),
        (None, None) if passthrough => Stdio::inherit(),
        (None, None) => Stdio::null(),
    });
    let [output, errors] = spec.heard();
    if !passthrough || output {
        command.stdout(Stdio::piped());
    } else if spec.show == Show::PassthroughStderr {
        command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    }
    if !passthrough || errors {
        command.stderr(Stdio::piped());
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

/// What the helper is called with before the places and the command.
pub(crate) const CONFINED: &str = "__confined";

/// The command line of the helper `program` that becomes `argv` and writes in these places only.
fn confining(
    program: &Path,
    places: &Places,
    argv: &[OsString],
) -> serde_json::Result<Vec<OsString>> {
    let places = serde_json::to_string(places)?;
    let helper = [program.into(), CONFINED.into(), places.into()];
    Ok(helper.iter().chain(argv).cloned().collect())
}

/// Becomes the command, confined; `words` are those after [`CONFINED`]. Only returns if that failed, with what to exit with: why is
/// printed on stderr.
pub(crate) fn exec_confined(words: &[OsString]) -> u8 {
    let Some((places, argv)) = words.split_first() else {
        return 126;
    };
    let places = places
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(Places { write, never }) = places else {
        return 126;
    };
    let error = match confined(argv, &write, &never) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    };
    let program = argv.first().map(|program| program.to_string_lossy());
    let program = program.unwrap_or_default();
    // With nobody there to read it, the exit code says it.
    let _ = writeln!(Stderr, "recover: cannot start {program} confined: {error}");
    126
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

/// What the child can still read from its input.
pub(super) struct Input<'a> {
    /// `None` once it got everything, or does not want more.
    pub(super) pipe: Option<OwnedFd>,
    left: &'a [u8],
}

impl<'a> Input<'a> {
    /// `pipe` must not block.
    pub(super) fn new(pipe: Option<OwnedFd>, bytes: &'a [u8]) -> Self {
        Self {
            pipe: pipe.filter(|_| !bytes.is_empty()),
            left: bytes,
        }
    }

    /// Gives the child as much as it takes just now.
    pub(super) fn feed(&mut self) {
        while let Some(pipe) = &self.pipe {
            match rustix::io::write(pipe, self.left) {
                Ok(count) => self.left = &self.left[count..],
                Err(Errno::AGAIN | Errno::INTR) => return,
                // It closed its end.
                Err(_) => self.pipe = None,
            }
            if self.left.is_empty() {
                self.pipe = None;
            }
        }
    }
}

/// One of the child's output streams.
pub(super) struct Output {
    /// `None` once it ended.
    pub(super) pipe: Option<OwnedFd>,
    capture: Capture,
    /// Bytes that may still be read.
    allowance: usize,
    /// The child has no descriptor of its terminal open just now.
    hung_up: bool,
}

impl Output {
    pub(super) fn new(pipe: Option<OwnedFd>, keep: Keep) -> Self {
        if let Some(pipe) = &pipe {
            enlarge_pipe(pipe);
        }
        Self {
            pipe,
            capture: Capture::new(keep),
            allowance: usize::MAX,
            hung_up: false,
        }
    }

    /// Says that nobody of the group lives: what the pipe can hold by now may be theirs, more is not.
    pub(super) fn limit_to_pipe(&mut self) {
        self.allowance = self.pipe.as_ref().map_or(0, pipe_size);
    }

    /// The pipe, if there may be something to read and waiting for it makes sense.
    pub(super) fn open(&self) -> Option<&OwnedFd> {
        self.pipe
            .as_ref()
            .filter(|_| self.allowance > 0 && !self.hung_up)
    }

    /// Whether it is to be read at each look: the child may open its terminal again, and no wait tells when.
    pub(super) fn is_hung_up(&self) -> bool {
        self.hung_up && self.pipe.is_some()
    }

    /// Whether, when nobody of the group lives, everything that the group wrote was read.
    pub(super) fn is_drained(&self) -> bool {
        self.open().is_none_or(|pipe| {
            let mut fds = [PollFd::new(pipe, PollFlags::IN)];
            !matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(1..))
        })
    }

    /// Reads once from a pipe that is ready, or [hung up](Self::is_hung_up); 0 if there was nothing, or it ended.
    /// `lives` says that the child's end is not known.
    pub(super) fn read(&mut self, buffer: &mut [u8], lives: bool) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        let limit = buffer.len().min(self.allowance);
        let read = rustix::io::read(pipe, &mut buffer[..limit]);
        // Of a child's terminal that nobody has open a read fails.
        self.hung_up = lives && read == Err(Errno::IO);
        match read {
            Err(Errno::IO) if lives => Ok(0),
            Ok(0) | Err(Errno::IO) => {
                self.pipe = None;
                Ok(0)
            }
            Ok(count) => {
                if self.allowance < usize::MAX {
                    self.allowance -= count;
                }
                self.capture.push(&buffer[..count]);
                Ok(count)
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands out what was kept.
    pub(super) fn finish(&mut self) -> Captured {
        std::mem::replace(&mut self.capture, Capture::new(Keep { head: 0, tail: 0 })).finish()
    }
}

/// A duration as `poll` takes it.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// Where a program is looked for that is named without a slash, when nobody says.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// So much of a script's first line the system looks at.
const FIRST_LINE: u64 = 256;

impl Program {
    /// Looks for `program` as [`Supervised::run`](super::Supervised::run) does that starts in `dir`, with `path` for `PATH`.
    ///
    /// # Errors
    /// It is not there, it may not be executed, what its first line names is not there, or it is text without such a line.
    pub(crate) fn find(
        program: &str,
        dir: &Path,
        path: Option<&OsStr>,
    ) -> Result<PathBuf, SpawnError> {
        let candidates = if program.contains('/') {
            vec![dir.join(program)]
        } else {
            folders(dir, path)
                .map(|folder| folder.join(program))
                .collect()
        };
        let mut refused = None;
        for candidate in candidates {
            match look(&candidate, program) {
                Ok(()) => return Ok(candidate),
                // What is there and cannot be started says more than that nothing is elsewhere.
                Err(error) => refused = refused.or(candidate.is_file().then_some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| not_found(format!("{program}: not found"))))
    }

    /// The names of what could be started in its place: what is on `PATH`, else what is in the same folder.
    pub(crate) fn names_beside(program: &str, dir: &Path, path: Option<&OsStr>) -> Vec<String> {
        let (prefix, places) = match program.rsplit_once('/') {
            Some((folder, _)) => (format!("{folder}/"), vec![dir.join(format!("{folder}/"))]),
            None => (String::new(), folders(dir, path).collect()),
        };
        let entries = places
            .iter()
            .filter_map(|place| fs::read_dir(place).ok())
            .flatten()
            .flatten();
        let startable = entries.filter(|entry| look(&entry.path(), program).is_ok());
        let mut names: Vec<String> = startable
            .filter_map(|entry| Some(format!("{prefix}{}", entry.file_name().to_str()?)))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn folders(dir: &Path, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let path = path.map_or_else(|| OsString::from(USUAL_PATH), OsStr::to_owned);
    // An empty one is the current folder, as `join` has it.
    std::env::split_paths(&path)
        .map(|folder| dir.join(folder))
        .collect::<Vec<_>>()
        .into_iter()
}

fn look(file: &Path, program: &str) -> Result<(), SpawnError> {
    if !fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return Err(not_found(format!("{program}: not found")));
    }
    if access(file, Access::EXEC_OK).is_err() {
        let message = format!(
            "{program}: not executable (chmod +x {})",
            crate::model::hint::quote(file)
        );
        return Err(SpawnError {
            kind: SpawnErrorKind::PermissionDenied,
            message,
        });
    }
    let Some(head) = head(file) else {
        return Ok(());
    };
    match head.strip_prefix(b"#!") {
        Some(line) => match interpreter(line).filter(|path| !path.exists()) {
            Some(path) => Err(not_found(format!(
                "{program}: its first line names {}, which is not there",
                path.display()
            ))),
            None => Ok(()),
        },
        None if is_text(&head) => {
            let message = format!(
                "{program}: a script without a first line that says what runs it, such as #!/bin/sh"
            );
            Err(SpawnError {
                kind: SpawnErrorKind::Other,
                message,
            })
        }
        None => Ok(()),
    }
}

/// The beginning of a file. One that cannot be read is started all the same.
fn head(file: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file)
        .ok()?
        .take(FIRST_LINE)
        .read_to_end(&mut head)
        .ok()?;
    Some(head)
}

/// What runs a script, by what follows `#!`.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    let path = Path::new(OsStr::from_bytes(word));
    path.is_absolute().then(|| path.to_owned())
}

/// Whether it is text, which only a shell would run: the system starts no such file.
fn is_text(head: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    !head.is_empty() && !head.iter().any(is_control)
}

fn not_found(message: String) -> SpawnError {
    SpawnError {
        kind: SpawnErrorKind::NotFound,
        message,
    }
}
