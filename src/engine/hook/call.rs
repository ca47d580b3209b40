//! One call of the hook, `recover hook run`: the event is read, and what is done about it is done in time.

use std::cell::Cell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::status::{is_unsaid, record_call};
use super::{Handled, Occurrence, handle, is_first, name};
use crate::agent::hooks::read;
use crate::engine::base::context::{BrokenConfig, Setup};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::forget;
use crate::model::HookAgent;
use crate::model::hook::{HookEvent, Moment};
use crate::model::time::format_duration;
use crate::process::Interrupts;

/// How much of stdin is read. A tool call holds what is to be written.
const LARGEST: u64 = 64 << 20;
/// How long to wait for other processes: an agent waits as long.
const PATIENCE: Duration = Duration::from_secs(2);
/// The first checkpoint of a session reads the whole tree.
const FIRST: u32 = 6;

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub agent: HookAgent,
    /// Which of git's hooks; agents send their event on stdin.
    pub event: Option<String>,
    /// `-C`.
    pub directory: Option<PathBuf>,
    /// Whether a flag names the run.
    pub names_run: bool,
    pub deadline: Duration,
}

/// What became of a moment that an agent or git reported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Called {
    pub changed: bool,
    pub moment: Moment,
    #[serde(flatten)]
    pub handled: Handled,
}

/// Why nothing was done.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub error: Error,
    /// Whether it was reported to this session already.
    pub is_said: bool,
}

impl Call {
    /// Does what is to be done about the event; `gave_up` is called before the process ends because it took too long.
    pub(crate) fn carry_out(
        &self,
        setup: impl FnOnce(PathBuf) -> Setup,
        gave_up: fn(&str),
    ) -> std::result::Result<Called, Trouble> {
        let watchdog = Watchdog::start(self.deadline, gave_up);
        let is_said = Cell::new(false);
        self.answer(setup, &watchdog, &is_said)
            .map_err(|error| Trouble {
                error,
                is_said: is_said.get(),
            })
    }

    fn answer(
        &self,
        setup: impl FnOnce(PathBuf) -> Setup,
        watchdog: &Watchdog,
        is_said: &Cell<bool>,
    ) -> Result<Called> {
        let agent = self.agent;
        let event = self.read_event()?;
        let named = self.directory.clone().filter(|named| named.is_absolute());
        let here = named
            .map_or_else(std::env::current_dir, Ok)
            .context("cannot find the current folder")?;
        let folder = self.folder(&event, &here);
        let mut setup = setup(std::fs::canonicalize(&folder).unwrap_or(folder));
        setup.lock_timeout = setup.lock_timeout.min(PATIENCE);
        // Whoever installed the hook has said yes to its checkpoints.
        setup.yes = true;
        // What is captured before an agent deletes something cannot be had afterwards.
        setup.broken_config = BrokenConfig::IsIgnored;
        // That nothing can be protected is said once a session.
        setup.reads = true;
        // An agent would read it as something about the tool that it called.
        setup.note = |text| tracing::info!("{text}");
        let owner = name(&mut setup.naming, self.names_run, agent, &event);
        let context = Context::new(setup, Interrupts::disconnected())?;
        let once = |error: Error| {
            let is_place = matches!(
                error.kind,
                ErrorKind::UnsupportedRepository | ErrorKind::ForeignState
            );
            is_said.set(is_place && !is_unsaid(&context, agent, event.session_id.as_deref()));
            context.locate(error)
        };
        if context.unusable().is_some() {
            context.repo().map_err(once)?;
        }
        context.warn_of_config();
        watchdog.extend(self.deadline * FIRST);
        let handled = if forget::finish(&context)? {
            Handled::nothing("recover forget --all was interrupted: it is finished now")
        } else {
            watchdog.extend(self.deadline);
            if context.dry_run() {
                let message = "a dry run, or safe_mode = \"dry_run\"";
                return Err(Error::new(ErrorKind::SafeMode, message));
            }
            if is_first(&context) {
                watchdog.extend(self.deadline * FIRST);
            }
            let event = &event;
            let occurrence = Occurrence {
                agent,
                owner,
                event,
            };
            let handled = handle(&context, occurrence).map_err(once);
            record_call(&context, agent);
            handled?
        };
        Ok(Called {
            changed: handled.changed,
            moment: event.moment,
            handled,
        })
    }

    fn read_event(&self) -> Result<HookEvent> {
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        if self.agent == HookAgent::Git {
            let hook = self.event.clone();
            let hook = hook.ok_or_else(|| usage("which of git's hooks?".to_owned()))?;
            return Ok(HookEvent {
                session_id: None,
                cwd: None,
                moment: Moment::Git { hook },
            });
        }
        let mut input = Vec::new();
        let read_all = std::io::stdin()
            .lock()
            .take(LARGEST + 1)
            .read_to_end(&mut input);
        read_all.context("cannot read stdin")?;
        if input.len() as u64 > LARGEST {
            return Err(usage(format!("more than {} MiB on stdin", LARGEST >> 20)));
        }
        read(&input).map_err(usage)
    }

    /// The work tree is that of the folder in which the agent works, if that belongs to a repository; an agent that went
    /// elsewhere for a moment still works on its project.
    fn folder(&self, event: &HookEvent, here: &Path) -> PathBuf {
        if let Some(directory) = &self.directory {
            return here.join(directory);
        }
        let in_repository = |folder: &PathBuf| {
            folder.is_dir() && folder.ancestors().any(|at| at.join(".git").exists())
        };
        let variable = match self.agent {
            HookAgent::Claude => "CLAUDE_PROJECT_DIR",
            HookAgent::Gemini => "GEMINI_PROJECT_DIR",
            HookAgent::Codex | HookAgent::Opencode | HookAgent::Git => "",
        };
        let cwd = event.cwd.as_ref().map(PathBuf::from);
        let project = std::env::var_os(variable).map(PathBuf::from);
        let candidates = [cwd, project.clone(), Some(here.to_owned())];
        let found = candidates.into_iter().flatten().find(in_repository);
        found
            .or(project.filter(|folder| folder.is_dir()))
            .unwrap_or_else(|| here.to_owned())
    }
}

/// Ends the process in time: a capture that is cut off is as if it had not begun.
struct Watchdog(Sender<Duration>);

impl Watchdog {
    fn start(deadline: Duration, gave_up: fn(&str)) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut limit = deadline;
            loop {
                match receiver.recv_timeout(limit) {
                    Ok(longer) => limit = longer,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        gave_up(&format!("it took longer than {}", format_duration(limit)));
                        std::process::exit(0);
                    }
                }
            }
        });
        Self(sender)
    }

    fn extend(&self, limit: Duration) {
        // Who does not listen any more ends the process.
        let _ = self.0.send(limit);
    }
}
