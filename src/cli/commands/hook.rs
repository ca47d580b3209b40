//! Runs `hook`.

use std::cell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Context as _;
use comfy_table::Cell;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::args::{
    GlobalArgs, HookArgs, HookCommand, HookInstallArgs, HookPrintArgs, HookRunArgs,
    HookUninstallArgs, PlaceArgs,
};
use super::super::render::{Table, column, date_time, when, words};
use super::super::replies::{ExitCode, of_error};
use super::super::ui::{Form, Reply, Ui, escape};
use crate::agent::hooks::read;
use crate::engine::base::context::{BrokenConfig, Setup};
use crate::engine::hook::install::{FileChange, Place, Task, carry_out, printed, settings_file};
use crate::engine::hook::status::{HookStatus, is_unsaid, record_call, status};
use crate::engine::hook::{Handled, handle, is_first, name};
use crate::engine::{Context, Error, ErrorKind, Result, forget};
use crate::model::hint::quote;
use crate::model::hook::{HookAgent, HookEvent, Moment};
use crate::model::time::{Timestamp, format_duration};
use crate::policy::secrets::redact;
use crate::process::Interrupts;

/// How much of stdin is read. A tool call holds what is to be written.
const LARGEST: u64 = 64 << 20;
/// How long to wait for other processes: an agent waits as long.
const PATIENCE: Duration = Duration::from_secs(2);
/// The first checkpoint of a session reads the whole tree.
const FIRST: u32 = 6;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PrintReply<'a> {
    agent: &'a str,
    /// The file that it belongs in, relative to the project.
    path: Option<&'a str>,
    content: &'a str,
    notes: &'a [String],
    /// The content, where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<Map<String, Value>>,
}

/// What an installation changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangesReply<'a> {
    changed: bool,
    files: &'a [FileChange],
    notes: &'a [String],
}

/// What it would change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangesPlanReply<'a> {
    changed: bool,
    plan: ChangesPlan<'a>,
    notes: &'a [String],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ChangesPlan<'a> {
    files: &'a [FileChange],
}

/// What became of a moment that an agent or git reported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HandledReply<'a> {
    changed: bool,
    moment: &'a Moment,
    #[serde(flatten)]
    handled: &'a Handled,
}

/// Nothing was done: whoever called the hook is not stopped by that.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TroubleReply<'a> {
    changed: bool,
    trouble: Trouble<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "hook_trouble")]
pub(crate) struct Trouble<'a> {
    code: &'a str,
    message: &'a str,
}

/// Dispatches all but `hook run`, which must not fail.
pub(super) fn execute(context: &Context, args: &HookArgs, ui: &Ui) -> Result<Reply> {
    match &args.command {
        HookCommand::Print(args) => Ok(print(context, args)),
        HookCommand::Install(args) => install(context, args),
        HookCommand::Uninstall(args) => uninstall(context, args),
        HookCommand::Status => status_of_all(context, ui),
        HookCommand::Run(_) => Err(Error::new(
            ErrorKind::Usage,
            "hook run is started by itself",
        )),
    }
}

fn status_of_all(context: &Context, ui: &Ui) -> Result<Reply> {
    let hooks = status(context)?;
    let text = ui.text(|| hooks_table(&ui.knowing(context), &hooks.hooks));
    Ok(Reply::new(hooks, text))
}

fn print(context: &Context, args: &HookPrintArgs) -> Reply {
    let agent = args.agent;
    let (program, note) = program(context, args.program.as_deref());
    let text = printed(agent, &program);
    let notes = notes(agent, note);
    let document = PrintReply {
        agent: agent.as_str(),
        path: settings_file(agent, Place::Project),
        content: &text,
        notes: &notes,
        settings: serde_json::from_str(&text).ok(),
    };
    Reply::new(document, text.as_str()).form(Form::Verbatim)
}

/// Installs an agent's hook in the project's settings.
pub(super) fn install_for(context: &Context, agent: HookAgent) -> Result<Reply> {
    let place = PlaceArgs::default();
    install(
        context,
        &HookInstallArgs {
            agent,
            place,
            program: None,
        },
    )
}

fn install(context: &Context, args: &HookInstallArgs) -> Result<Reply> {
    let agent = args.agent;
    let (program, note) = program(context, args.program.as_deref());
    let files = carry_out(context, Task::Install, agent, args.place.into(), &program)?;
    Ok(changed(context, &files, false, notes(agent, note)))
}

fn uninstall(context: &Context, args: &HookUninstallArgs) -> Result<Reply> {
    let place = Place::from(args.place);
    let named = args.agent;
    let has = |agent: &HookAgent| match agent {
        HookAgent::Git => context.has_git() && place == Place::Project,
        agent => settings_file(*agent, place).is_some(),
    };
    let agents: Vec<HookAgent> = match named {
        Some(agent) => vec![agent],
        None => HookAgent::ALL.into_iter().filter(has).collect(),
    };
    let (mut files, mut refused) = (Vec::new(), None);
    for agent in &agents {
        match carry_out(context, Task::Uninstall, *agent, place, "recover") {
            Ok(changes) => files.extend(changes),
            // What one of them refuses is no reason to leave the hook in the others.
            Err(error) => {
                tracing::warn!(%error, "the hook of {} is not taken out", agent.as_str());
                refused = refused.or(Some(error));
            }
        }
    }
    match refused {
        Some(error) => Err(error),
        None => Ok(changed(context, &files, agents.len() != 1, Vec::new())),
    }
}

/// The answer; where it is about several agents, unchanged files are not printed.
fn changed(
    context: &Context,
    files: &[FileChange],
    several: bool,
    mut notes: Vec<String>,
) -> Reply {
    let mut text = String::new();
    let is_changed = |file: &&FileChange| file.change != "unchanged";
    let any = files.iter().any(|file| is_changed(&file));
    for file in files.iter().filter(|file| !several || is_changed(file)) {
        let would = if context.dry_run() && is_changed(&file) {
            "would be "
        } else {
            ""
        };
        text.push_str(&format!(
            "{}: {would}{}\n",
            escape(&file.path.to_string_lossy()),
            file.change
        ));
    }
    if text.is_empty() {
        text.push_str("The hook is nowhere here.\n");
    }
    notes.extend(files.iter().filter_map(|file| file.note.clone()));
    for note in &notes {
        text.push_str(&format!("note: {}\n", escape(note)));
    }
    let notes = notes.as_slice();
    if context.dry_run() {
        Reply::new(
            ChangesPlanReply {
                changed: false,
                plan: ChangesPlan { files },
                notes,
            },
            text,
        )
    } else {
        Reply::new(
            ChangesReply {
                changed: any,
                files,
                notes,
            },
            text,
        )
    }
}

/// How recover is called, and what is to be said about that.
fn program(context: &Context, wanted: Option<&str>) -> (String, Option<String>) {
    if let Some(wanted) = wanted {
        return (quote(wanted), None);
    }
    let path = context.env("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("recover").is_file()) {
        return ("recover".to_owned(), None);
    }
    match std::env::current_exe() {
        Ok(own) => {
            let own = own.to_string_lossy().into_owned();
            let note = format!(
                "recover is not on PATH: it is called as {own}, which is right on this machine only"
            );
            (quote(&own), Some(note))
        }
        Err(_) => (
            "recover".to_owned(),
            Some("recover is not on PATH: the hook does nothing until it is".to_owned()),
        ),
    }
}

/// What cannot be seen in the settings.
fn notes(agent: HookAgent, first: Option<String>) -> Vec<String> {
    let of_agent: &[&str] = match agent {
        HookAgent::Claude => {
            &["failed turns are reported (StopFailure) by Claude Code 2.1.78 and newer"]
        }
        HookAgent::Codex => &[
            "Codex runs a project's hooks once they are trusted: look at them with /hooks",
            "Codex runs no hook when a turn fails: supervise it with `recover run -- codex exec --json …`",
        ],
        HookAgent::Gemini => &[
            "Gemini CLI runs no hook when a turn fails: supervise it with `recover run -- gemini …`",
        ],
        HookAgent::Opencode => &["opencode reads its plugins when it starts"],
        HookAgent::Git => &[
            "git calls no hook before reset, clean, checkout and stash: an agent's own hook sees those commands, git's cannot",
        ],
    };
    first
        .into_iter()
        .chain(of_agent.iter().map(|note| (*note).to_owned()))
        .collect()
}

/// `recover hook run`: whatever becomes of it, whoever called is neither held up nor stopped.
pub(crate) fn run(
    global: &GlobalArgs,
    args: &HookRunArgs,
    setup: impl FnOnce(PathBuf) -> Setup,
    ui: &Ui,
) -> ExitCode {
    let watchdog = Watchdog::start(args.deadline);
    let says = cell::Cell::new(true);
    let answer = || answer(global, args, setup, &watchdog, &says);
    let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(answer));
    match answered {
        Ok(Ok((event, handled))) => {
            if ui.json {
                let document = HandledReply {
                    changed: handled.changed,
                    moment: &event.moment,
                    handled: &handled,
                };
                ui.answer("hook run", Reply::new(document, ""));
            } else {
                tracing::info!(
                    reason = handled.reason,
                    changed = handled.changed,
                    "the hook is done"
                );
            }
        }
        Ok(Err(error)) => {
            let hint = error
                .hint
                .as_ref()
                .map(|hint| format!(" ({hint})"))
                .unwrap_or_default();
            if says.get() {
                trouble(&format!("{error}{hint}"));
            }
            if ui.json {
                let trouble = Trouble {
                    code: of_error(error.kind).0,
                    message: &error.message,
                };
                let body = TroubleReply {
                    changed: false,
                    trouble,
                };
                ui.answer("hook run", Reply::new(body, ""));
            }
        }
        Err(_) => trouble("a bug in recover; what it says above helps to find it"),
    }
    ExitCode::DONE
}

/// One line on stderr. With stderr closed there is nobody left to report to.
fn trouble(text: &str) {
    use std::io::Write;
    let _ = writeln!(
        std::io::stderr(),
        "recover hook: nothing was done: {}",
        escape(&redact(text))
    );
}

fn answer(
    global: &GlobalArgs,
    args: &HookRunArgs,
    setup: impl FnOnce(PathBuf) -> Setup,
    watchdog: &Watchdog,
    says: &cell::Cell<bool>,
) -> Result<(HookEvent, Handled)> {
    let agent = args.agent;
    let event = event(agent, args.event.as_deref())?;
    let named = global.directory.clone().filter(|named| named.is_absolute());
    let here = named
        .map_or_else(std::env::current_dir, Ok)
        .context("cannot find the current folder")?;
    let folder = folder(global, agent, &event, &here);
    let mut setup = setup(std::fs::canonicalize(&folder).unwrap_or(folder));
    setup.lock_timeout = setup.lock_timeout.min(PATIENCE);
    // Whoever installed the hook has said yes to its checkpoints.
    setup.yes = true;
    // What is kept before an agent deletes something cannot be had afterwards.
    setup.broken_config = BrokenConfig::IsIgnored;
    // That nothing can be protected is said once a session.
    setup.reads = true;
    // An agent would read it as something about the tool that it called.
    setup.note = |text| tracing::info!("{text}");
    let owner = name(&mut setup.naming, global.run.is_some(), agent, &event);
    let context = Context::new(setup, Interrupts::disconnected())?;
    let once = |error: Error| {
        let is_place = matches!(
            error.kind,
            ErrorKind::UnsupportedRepository | ErrorKind::ForeignState
        );
        says.set(!is_place || is_unsaid(&context, agent, event.session_id.as_deref()));
        context.locate(error)
    };
    if context.unusable().is_some() {
        context.repo().map_err(once)?;
    }
    context.warn_of_config();
    watchdog.extend(args.deadline * FIRST);
    if forget::finish(&context)? {
        return Ok((
            event,
            Handled::nothing("recover forget --all was cut off: it is finished now"),
        ));
    }
    watchdog.extend(args.deadline);
    if context.dry_run() {
        return Err(Error::new(
            ErrorKind::SafeMode,
            "a dry run, or safe_mode = \"dry_run\"",
        ));
    }
    if is_first(&context) {
        watchdog.extend(args.deadline * FIRST);
    }
    let handled = handle(&context, agent, owner, &event).map_err(once);
    record_call(&context, agent);
    let handled = handled?;
    Ok((event, handled))
}

fn event(agent: HookAgent, named: Option<&str>) -> Result<HookEvent> {
    let usage = |message: String| Error::new(ErrorKind::Usage, message);
    if agent == HookAgent::Git {
        let hook = named.ok_or_else(|| usage("which of git's hooks?".to_owned()))?;
        return Ok(HookEvent {
            session_id: None,
            cwd: None,
            moment: Moment::Git {
                hook: hook.to_owned(),
            },
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
fn folder(global: &GlobalArgs, agent: HookAgent, event: &HookEvent, here: &Path) -> PathBuf {
    if let Some(directory) = &global.directory {
        return here.join(directory);
    }
    let in_repository =
        |folder: &PathBuf| folder.is_dir() && folder.ancestors().any(|at| at.join(".git").exists());
    let variable = match agent {
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

/// Ends the process in time: a capture that is cut off is as if it had not begun.
struct Watchdog(Sender<Duration>);

impl Watchdog {
    fn start(deadline: Duration) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut limit = deadline;
            loop {
                match receiver.recv_timeout(limit) {
                    Ok(longer) => limit = longer,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        trouble(&format!("it took longer than {}", format_duration(limit)));
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

/// The hooks of all agents, a row each.
pub(crate) fn hooks_table(ui: &Ui, hooks: &[HookStatus]) -> String {
    let mut table = Table::new(
        ui,
        &[
            column("AGENT", 0),
            column("INSTALLED", 1),
            column("VERSION", 3),
            column("LAST CALLED", 2),
            words("NOTE", 4),
        ],
    );
    for hook in hooks {
        let path = hook
            .path
            .as_ref()
            .map(|path| escape(&path.to_string_lossy()));
        let called = hook
            .last_called
            .map_or_else(|| "never".to_owned(), date_time);
        table.add_row([
            Cell::new(hook.agent),
            Cell::new(path.unwrap_or_else(|| "no".to_owned())),
            Cell::new(hook.version.as_deref().unwrap_or("-")),
            Cell::new(called),
            Cell::new(
                hook.note
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |note| escape(&ui.advice(note))),
            ),
        ]);
    }
    table.text()
}

/// The hooks that are installed, a line each and one for what is to be done.
pub(crate) fn hooks_text(ui: &Ui, hooks: &[HookStatus], now: Timestamp) -> String {
    let mut text = String::new();
    for hook in hooks {
        let path = hook
            .path
            .as_ref()
            .map(|path| escape(&path.to_string_lossy()))
            .unwrap_or_default();
        let program = escape(hook.program.as_deref().unwrap_or("-"));
        let called = hook.last_called.map_or_else(
            || "never called".to_owned(),
            |at| format!("last called {}", when(at, now)),
        );
        text.push_str(&format!(
            "Hook of {}: in {path}, calls {program}, {called}\n",
            hook.agent
        ));
        if let Some(note) = &hook.note {
            text.push_str(&format!("  {}\n", escape(&ui.advice(note))));
        }
    }
    text
}
