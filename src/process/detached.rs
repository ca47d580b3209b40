//! A command that outlives this process: in a session of its own, bounded in time, its failure logged.
//!
//! Who starts it neither waits for it nor is ended with it. The bound is kept by a second process of this program, which
//! is all that is left once the first one has ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::setsid;

use super::{Captured, Interrupts, Program, Show, Supervised};
use crate::model::time::Timestamp;
use crate::os::own_program;
use crate::policy::secrets::redact;
use crate::policy::settings::RedactSettings;
use crate::policy::text::escape;

/// What the helper is called with before what it masks, as JSON ([`RedactSettings`]), and the command.
pub(crate) const DETACHED: &str = "__detached";
/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to end then.
const GRACE: Duration = Duration::from_millis(500);

/// A command to start and forget.
#[derive(Debug)]
pub(crate) struct Detached {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// What it has in its environment beside that of this process.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// Where a line is added when it fails.
    pub log: File,
    /// What is masked in that line beside the usual secrets.
    pub redact: RedactSettings,
}

impl Detached {
    /// Starts it.
    ///
    /// # Errors
    /// The helper could not be started, or took nothing. Whatever the command does is the log's to say.
    pub(crate) fn start(self) -> io::Result<()> {
        let (mut helper, written) = self.spawn()?;
        // Nobody waits for it; but as long as this process lives, what has ended must be collected.
        std::thread::Builder::new()
            .name("detached".to_owned())
            .spawn(move || helper.wait())?;
        written
    }

    /// Starts it and waits until it has ended: whether it did so well, and in time.
    pub(crate) fn run(self) -> io::Result<bool> {
        let (mut helper, _written) = self.spawn()?;
        Ok(helper.wait()?.success())
    }

    /// The helper, and whether it took what it reads.
    fn spawn(self) -> io::Result<(Child, io::Result<()>)> {
        fcntl_setfl(&self.log, fcntl_getfl(&self.log)? | OFlags::APPEND)?;
        let mut helper = Command::new(own_program()?);
        helper
            .arg(DETACHED)
            .arg(serde_json::to_string(&self.redact)?)
            .args(&self.argv)
            .current_dir(&self.cwd)
            .envs(self.env);
        helper
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(self.log);
        let mut helper = helper.spawn()?;
        let written = helper
            .stdin
            .take()
            .map_or(Ok(()), |mut stdin| stdin.write_all(&self.stdin));
        Ok((helper, written))
    }
}

/// The helper: runs the command, the words after what it masks, in a session of its own, and says on stderr if that fails.
pub(crate) fn run_detached(argv: &[OsString]) -> u8 {
    match supervised(argv) {
        Ok(None) => 0,
        Ok(Some(problem)) => failed(argv, &problem),
        Err(error) => failed(argv, &error.to_string()),
    }
}

fn failed(argv: &[OsString], problem: &str) -> u8 {
    let now = Timestamp::new(SystemTime::now().into());
    let command: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let line = format!("{now} {problem}: {}", command.join(" "));
    // With the log gone there is nobody left to report to.
    let _ = writeln!(io::stderr(), "{}", redact(&line));
    1
}

/// Runs the command; why it failed, if it did.
fn supervised(argv: &[OsString]) -> io::Result<Option<String>> {
    // What ends the terminal or the group of whoever started it does not end it.
    setsid()?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let command = Supervised {
        stdin: Some(input),
        deadline: Some(LIMIT),
        grace: GRACE,
        show: Show::Nothing,
        ..Supervised::new(Program::Argv(argv.to_vec()), ".")
    };
    let exit = command.run(&Interrupts::disconnected(), |_| Ok(()))?;
    if let Some(error) = exit.spawn_error {
        return Ok(Some(error.message));
    }
    let said = last_line(exit.stderr).or_else(|| last_line(exit.stdout));
    let said = said.map(|line| format!(" ({line})")).unwrap_or_default();
    Ok(match (exit.timed_out, &exit.signal, exit.exit_code) {
        (true, ..) => Some(format!("not done after {} s{said}", LIMIT.as_secs())),
        (_, Some(signal), _) => Some(format!("ended by {signal}{said}")),
        (_, _, Some(0)) => None,
        (_, _, code) => Some(format!("exit {}{said}", code.unwrap_or(-1))),
    })
}

/// The last line of an output that says something.
fn last_line(output: Captured) -> Option<String> {
    let bytes = output.into_bytes();
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .map(escape)
}
