//! A supervised child: its group, its deadline, its output, and the signals in between.
//!
//! [`Supervised::run`] starts a command in a process group of its own and stays with it until nothing of the group is
//! left. One thread does it all in one `poll` loop: output is read, shown, logged and kept; input is fed; the deadline
//! and requests to stop become SIGTERM and, after a grace period, SIGKILL to the group. Nothing that the child does can
//! hold it up: not a flood of output, not a closed or a full stream, not a daemon that keeps the pipe open, not
//! processes that ignore signals. Memory is bounded whatever is printed.
//!
//! - `spawn` starts the child, confined where it is to be, `supervise` is the loop, `ending` decides who is signalled when.
//! - `oversight` is for whoever watches over a child from another thread.
//! - `pipe` moves bytes, `output` keeps head and tail, `log` writes the file, `screen` shows it live.
//! - [`Interrupts`] are the requests to stop that this process gets; `suspend` is Ctrl-Z.
//! - `pty` gives a child a terminal of its own; [`Terminal`] takes ours.
//! - [`Footer`] is a line below everything that is shown.
//! - `detached` starts a command that outlives this process; `init` is for a `recover` that is PID 1.
//! - `mark` finds what belongs to an attempt outside its group.
//! - `orphan` deals with children whose supervisor was killed; `group` and `table` are the system's view of processes.

mod detached;
mod ending;
mod footer;
mod log;
mod mark;
mod orphan;
mod output;
mod oversight;
mod passthrough;
mod pty;
mod signals;
mod spawn;
mod supervise;
mod suspend;
mod table;
mod terminal;
mod watchdog;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use crate::model::run::ProcessId;
pub(crate) use detached::{DETACHED, Detached, run_detached};
pub(crate) use footer::{Footer, Stderr};
pub(crate) use mark::Mark;
pub use orphan::GroupEnd;
pub(crate) use orphan::git_at_work;
pub(crate) use orphan::run_as_child;
pub use output::Keep;
pub(crate) use output::{Captured, Watch, Watcher};
pub(crate) use pty::{HELPER, exec_on_terminal};
pub use signals::Interrupts;
pub(crate) use signals::{Signal, SignalGuard, survive_file_size_limit};
pub(crate) use spawn::{CONFINED, exec_confined, page};
pub(crate) use suspend::{Registered, Suspension, on_suspend};
pub(crate) use terminal::{Terminal, Typing};
pub(crate) use watchdog::{WATCHDOG, Watchdog, run_watchdog};

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments. A name without a slash is looked up in the child's `PATH`; a relative path is
    /// relative to the child's working folder.
    Argv(Vec<OsString>),
    /// A line for `/bin/sh -c`.
    Shell(OsString),
}

/// Where the child's output is shown while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Show {
    /// Each stream on our stream of the same name.
    #[default]
    Live,
    /// Both on our stderr, because our stdout is for an answer.
    Stderr,
    /// Nowhere.
    Nothing,
    /// The child gets our own streams, untouched: nothing is kept or logged, and without
    /// [`stdin`](Supervised::stdin) our input is the child's too. If that input is a terminal, the child stays in our
    /// process group, because another one could not read from it; then Ctrl-C is the child's own affair, other signals
    /// and the deadline end the child alone, and its descendants are not looked after.
    Passthrough,
    /// As [`Passthrough`](Self::Passthrough), but both on our stderr.
    PassthroughStderr,
}

impl Show {
    /// Whether the child has our own streams.
    pub(crate) fn is_passthrough(self) -> bool {
        matches!(self, Self::Passthrough | Self::PassthroughStderr)
    }
}

/// A command and how to supervise it.
#[derive(Clone, Debug)]
pub struct Supervised {
    /// What to run.
    pub program: Program,
    /// The child's working folder.
    pub cwd: PathBuf,
    /// Variables that the child gets beside those of this process.
    pub env_set: Vec<(OsString, OsString)>,
    /// Variables that the child does not get; wins over `env_set`.
    pub env_remove: Vec<OsString>,
    /// What the child can read from its input, which is then closed; `None` is `/dev/null`. The child need not read it.
    pub stdin: Option<Vec<u8>>,
    /// What it reads in place of that: the other end is held by whoever talks with it.
    pub input: Option<Arc<File>>,
    /// How long the child may run, on a clock that stands still while the machine is suspended.
    pub deadline: Option<Duration>,
    /// How long the group may take to end after it was asked to, before it is killed.
    pub grace: Duration,
    /// Where output is shown.
    pub show: Show,
    /// With [`Show::Passthrough`]: keep what the child writes as well, but for a stream that is a terminal.
    pub hears: bool,
    /// An empty file that gets stdout and stderr as they come.
    pub log: Option<Arc<File>>,
    /// Bytes that the log may have, not counting a marker line: its first quarter is the output's head, the rest the
    /// tail. Output that fits is there in full.
    pub log_limit: u64,
    /// How much of each stream is kept in memory.
    pub keep: Keep,
    /// Who looks at the output as it comes.
    pub watcher: Option<Watcher>,
    /// Where the child may write; `None`: wherever its user may.
    pub confined: Option<crate::model::spec::Places>,
    /// What whoever watches over the child needs.
    pub(crate) oversight: oversight::Oversight,
    /// The child gets a terminal of its own, on which both its streams are one and count as stdout. What is typed on
    /// ours goes there, unless it has [`stdin`](Self::stdin); Ctrl-C and Ctrl-Z stay ours. The path is that of a program
    /// that calls [`exec_on_terminal`] when its first argument is [`HELPER`]: see `os::own_program`.
    pub pty: Option<PathBuf>,
}

impl Supervised {
    /// A command with the defaults: this process's environment, no input, no deadline, 5 s of grace, output shown live,
    /// no log (2 MiB if one is set), 1 MiB of each stream kept.
    pub fn new(program: Program, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program,
            cwd: cwd.into(),
            env_set: Vec::new(),
            env_remove: Vec::new(),
            stdin: None,
            input: None,
            deadline: None,
            grace: Duration::from_secs(5),
            show: Show::default(),
            hears: false,
            log: None,
            log_limit: 2 << 20,
            keep: Keep::default(),
            watcher: None,
            confined: None,
            oversight: oversight::Oversight::default(),
            pty: None,
        }
    }

    /// Whether the child's stdout and its stderr come to us although they are to be our own.
    fn heard(&self) -> [bool; 2] {
        let hears = |is_terminal: bool| self.show.is_passthrough() && self.hears && !is_terminal;
        let errors = io::stderr().is_terminal();
        let output = match self.show {
            Show::PassthroughStderr => errors,
            _ => io::stdout().is_terminal(),
        };
        [hears(output), hears(errors)]
    }

    /// Runs the command to its end. When this returns, nothing of its process group is alive (but see
    /// [`Exit::leaked`] and [`Show::Passthrough`]).
    ///
    /// `on_spawn` is called right after the child was started, so that its id can be recorded for [`ProcessId::end_group`];
    /// if it fails, the child is killed.
    ///
    /// A request to stop is handed on to the group: the signal itself, half of the grace later SIGTERM, after the grace
    /// SIGKILL; a second request, at least a quarter of a second after the first, kills at once. If one is pending
    /// already, nothing is started. The request stays pending in `interrupts`.
    ///
    /// A command that cannot be started is not an error but an [`Exit`] with a `spawn_error`. Errors are:
    /// `on_spawn` failed, the system has no pipes or threads left. The child is dead then too.
    pub fn run(
        &self,
        interrupts: &Interrupts,
        mut on_spawn: impl FnMut(&ProcessId) -> io::Result<()>,
    ) -> io::Result<Exit> {
        supervise::supervise(self, interrupts, &mut on_spawn)
    }
}

/// How a supervised command ended.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Exit {
    /// Its exit code; `None` if a signal ended it or it was not started.
    pub exit_code: Option<i32>,
    /// The signal that ended it: `SIGKILL` ….
    pub signal: Option<String>,
    /// The deadline passed while it ran. It may have an exit code all the same, if it ended itself on SIGTERM.
    pub timed_out: bool,
    /// Whoever watches over it had it ended while it ran.
    pub stopped: bool,
    /// This process was asked to stop before the child ended.
    pub cancelled: Option<Signal>,
    /// Why it was not started.
    pub spawn_error: Option<SpawnError>,
    /// From its start to its end, not counting what it left behind.
    pub duration: Duration,
    /// What it printed on stdout.
    pub stdout: Captured,
    /// What it printed on stderr.
    pub stderr: Captured,
    /// Processes of its group outlived it and had to be ended.
    pub leaked: bool,
    /// A process outside its group kept its output open (a daemon); it was left alone, and its later output is lost.
    pub detached: bool,
    /// Why the log is incomplete: writing it failed. The child was not disturbed.
    pub log_error: Option<String>,
}

impl Exit {
    /// What a shell would say: the exit code, 128 and the number for a signal, 127 or 126 for what was not started.
    pub fn shell_code(&self) -> i32 {
        if let Some(error) = &self.spawn_error {
            return if error.kind == SpawnErrorKind::NotFound {
                127
            } else {
                126
            };
        }
        let number = self.signal.as_deref().map(signals::number_of);
        match (self.exit_code, number, self.cancelled) {
            // Whatever signal ended it in the end, that is why.
            (Some(0), None, Some(signal)) | (None, _, Some(signal)) => signal.exit_code(),
            (Some(code), ..) => code,
            (None, Some(number), _) => 128 + number,
            (None, None, None) => 1,
        }
    }
}

/// Why a command could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnError {
    /// What a rule can go by.
    pub kind: SpawnErrorKind,
    /// What a person can go by; names the program or the folder.
    pub message: String,
}

/// Kinds of [`SpawnError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnErrorKind {
    /// The program, its interpreter or the working folder does not exist.
    NotFound,
    /// It exists and may not be executed.
    PermissionDenied,
    /// Anything else: not a program, too many arguments, no more processes.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_the_code_that_a_shell_gives_it() {
        let signal = |name: &str| Exit {
            signal: Some(name.to_owned()),
            ..Exit::default()
        };
        let spawn = |kind| SpawnError {
            kind,
            message: String::new(),
        };
        for (code, exit) in [
            (
                3,
                Exit {
                    exit_code: Some(3),
                    ..Exit::default()
                },
            ),
            (137, signal("SIGKILL")),
            (128 + 34, signal("SIG34")),
            (
                143,
                Exit {
                    cancelled: Some(Signal::Term),
                    ..signal("SIGTERM")
                },
            ),
            (
                130,
                Exit {
                    exit_code: Some(0),
                    cancelled: Some(Signal::Int),
                    ..Exit::default()
                },
            ),
            (
                130,
                Exit {
                    cancelled: Some(Signal::Int),
                    ..Exit::default()
                },
            ),
            (
                127,
                Exit {
                    spawn_error: Some(spawn(SpawnErrorKind::NotFound)),
                    ..Exit::default()
                },
            ),
            (
                126,
                Exit {
                    spawn_error: Some(spawn(SpawnErrorKind::PermissionDenied)),
                    ..Exit::default()
                },
            ),
        ] {
            assert_eq!(exit.shell_code(), code, "{exit:?}");
        }
    }
}
