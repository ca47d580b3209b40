//! What goes on beside a run at work: sleep is held off, and the user's heartbeat command is started again and again.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::notify::{LOG, words};
use crate::durable::Root;
use crate::engine::base::{Context, Result};
use crate::model::RunKey;
use crate::os::inhibitor;
use crate::policy::settings::RedactSettings;
use crate::process::Detached;

/// Holds off sleep until it is dropped, or this process ends in whatever way: what holds it reads a pipe of this process's.
#[derive(Debug)]
pub(super) struct Awake(Child);

impl Awake {
    /// Holds it off; `None` where the system has no program for that. A closed lid is not held.
    pub(super) fn hold(why: &str) -> Option<Self> {
        let words = inhibitor(why);
        let (program, args) = words.split_first()?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // What a terminal sends to interrupt the run is not for it.
        let child = command.process_group(0).spawn();
        child
            .inspect_err(|error| tracing::debug!(%error, "sleep is not held off"))
            .ok()
            .map(Self)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if let Err(error) = self.0.wait() {
            tracing::debug!(%error, "sleep may still be held off");
        }
    }
}

/// Starts the command until it is dropped. One that is under way then has its time, and nobody waits for it.
#[derive(Debug)]
pub(super) struct Beating {
    _until_dropped: Sender<()>,
}

/// What is started.
struct Beat {
    argv: Vec<String>,
    cwd: PathBuf,
    run: String,
    root: Root,
    log: PathBuf,
    redact: RedactSettings,
}

impl Beating {
    /// Begins; `None` where there is no command. What goes wrong is said once, and ends nothing.
    pub(super) fn begin(context: &Context, key: &RunKey) -> Option<Self> {
        let settings = &context.settings().notify.heartbeat;
        let argv = settings.command.as_ref().map(words)?;
        let begun = Self::start(context, key, argv, settings.every);
        let failed = |error: &_| tracing::warn!(%error, "there is no heartbeat");
        begun.inspect_err(failed).ok()
    }

    fn start(context: &Context, key: &RunKey, argv: Vec<String>, every: Duration) -> Result<Self> {
        let folder = context.store().run_dir(key);
        context.create_state_dir(&folder)?;
        let beat = Beat {
            argv,
            cwd: context.worktree().to_owned(),
            run: key.run_id.to_string(),
            root: context.store().root().clone(),
            log: folder.join(LOG),
            redact: context.settings().redact.clone(),
        };
        let (until_dropped, ends) = channel();
        let mut is_said = false;
        let beats = move || loop {
            let problem = match beat.start() {
                Ok(true) => None,
                Ok(false) => Some(format!("{} says why", beat.log.display())),
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem.filter(|_| !is_said) {
                tracing::warn!("the heartbeat of run {} failed: {problem}", beat.run);
                is_said = true;
            }
            if ends.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        };
        let thread = thread::Builder::new().name("beating".to_owned());
        thread.spawn(beats).map_err(anyhow::Error::from)?;
        Ok(Self {
            _until_dropped: until_dropped,
        })
    }
}

impl Beat {
    /// Whether it did what it was to do.
    fn start(&self) -> io::Result<bool> {
        let env = [
            ("RECOVER_EVENT", "heartbeat"),
            ("RECOVER_RUN_ID", &self.run),
        ];
        let detached = Detached {
            argv: self.argv.iter().map(OsString::from).collect(),
            cwd: self.cwd.clone(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            stdin: Vec::new(),
            log: self.root.open_or_create(&self.log)?,
            redact: self.redact.clone(),
        };
        detached.run()
    }
}
