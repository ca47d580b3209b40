//! How each command is called: arguments to an engine request, the engine's answer to a document and text.
//! A file each, or one for a few that belong together.

mod accept;
pub(super) mod attempt;
pub(super) mod checkpoint;
pub(super) mod demo;
mod exchange;
pub(super) mod hook;
mod inspect;
mod limits;
pub(super) mod log;
mod manual_fix;
mod mcp;
mod remote;
pub(super) mod restore;
mod run;
mod runs;
mod service;
pub(super) mod status;
mod step;
mod trust;
mod worker;

use super::args::{
    AttemptCommand, CheckpointCommand, CloseArgs, Command, GlobalArgs, HookCommand,
    ManualFixCommand, PluginCommand, RemoteCommand, ServiceCommand,
};
use super::ui::{Reply, Ui};
use crate::engine::isolated::Needs;
use crate::engine::runs::Chosen;
use crate::engine::trust::Reach;
use crate::engine::{Context, Result, isolated, remote as claims};
use crate::model::id::RunId;

pub(super) use hook::run as run_hook;
pub(super) use status::overview;
pub(super) use trust::{ask as ask_for_trust, ask_for_consent};

/// What a command needs and may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    /// It works in any folder, also one that is no place for a run.
    Anywhere,
    /// It fails where the user's own configuration is broken. Status and ways back work without it.
    UserConfig,
    /// It fails where the project's configuration is broken: what is started, decided or deleted by it, or reports it. A pull
    /// or an agent that breaks the file prevents neither status, nor checkpoints, nor ways back.
    Config,
    /// It works from what is recorded where the repository cannot be opened, and answers with that one's state.
    Reads,
    /// It writes to the run that it is about, so that it says which of several it took.
    Writes,
    /// It runs children or waits, so that signals are its own to handle.
    Supervises,
    /// Only the holder of the runs that it writes to may call it.
    Claims,
    /// What it would decide about, if a supervised agent called it.
    Decides(Reach),
}

/// The properties of a command.
pub(super) fn properties(command: &Command) -> &'static [Property] {
    use Property::{Anywhere, Claims, Config, Decides, Reads, Supervises, UserConfig, Writes};
    use Reach::{Record, Run, Tree};
    match command {
        // A run of its own within an attempt is supervised like any other one.
        Command::Run(_) | Command::Worker(_) => &[UserConfig, Config, Supervises],
        Command::Resume(args) if args.interrupted && args.all_repos => {
            &[Anywhere, Supervises, Decides(Tree)]
        }
        Command::Resume(args) if args.interrupted => &[Supervises, Decides(Tree)],
        Command::Resume(_) => &[UserConfig, Config, Writes, Supervises, Decides(Tree)],
        Command::Rollback(_) | Command::Discard(_) => &[Writes, Claims, Decides(Tree)],
        Command::Undo(_) | Command::Redo(_) => &[Claims, Decides(Tree)],
        Command::Checkpoint(args) => match args.command {
            CheckpointCommand::Create(_) | CheckpointCommand::Pin(_) => &[Writes],
            CheckpointCommand::Unpin(_) => &[Writes, Decides(Record)],
            CheckpointCommand::Restore(_) => &[Writes, Claims, Decides(Tree)],
            CheckpointCommand::Prune(_) => &[Config, Decides(Record)],
            CheckpointCommand::List(_) => &[Reads],
            CheckpointCommand::Show(_)
            | CheckpointCommand::Diff(_)
            | CheckpointCommand::Verify(_)
            | CheckpointCommand::Export(_) => &[],
        },
        Command::ManualFix(args) => match args.command {
            None | Some(ManualFixCommand::Verify) => &[Config, Writes, Supervises, Claims],
            Some(ManualFixCommand::Start { .. }) => &[Config, Writes, Claims],
            Some(ManualFixCommand::Status) => &[],
            Some(ManualFixCommand::Watch { .. }) => &[Config, Supervises],
            Some(ManualFixCommand::Continue { .. }) => {
                &[Config, Writes, Supervises, Claims, Decides(Tree)]
            }
            Some(ManualFixCommand::Abort) => &[Writes, Claims, Decides(Tree)],
        },
        Command::RetryStatus(args) if args.reset => &[Config, Writes, Claims, Decides(Record)],
        Command::RetryStatus(args) if args.wait.is_some() => &[Config, Reads, Supervises],
        Command::RetryStatus(_) => &[Config, Reads],
        Command::Attempt(args) => match args.command {
            AttemptCommand::Start(_) | AttemptCommand::Pass(_) | AttemptCommand::Fail(_) => {
                &[Config, Writes, Decides(Run)]
            }
            AttemptCommand::List => &[Reads],
        },
        Command::Classify(_) => &[Anywhere, Config],
        Command::Step(_) => &[Config, Writes, Supervises],
        Command::Status(args) if args.watch => &[Reads, Supervises],
        Command::Log(args) if args.follow => &[Reads, Supervises],
        Command::Doctor(args) if args.repair || args.rebuild => &[Reads, Decides(Record)],
        Command::Status(_)
        | Command::Log(_)
        | Command::Runs(_)
        | Command::Report(_)
        | Command::Doctor(_) => &[Reads],
        Command::Browse(_) => &[Supervises],
        Command::Limits(args) if args.clear.is_some() => &[Anywhere, Decides(Record)],
        Command::Limits(_) => &[Anywhere],
        Command::Service(args) => match args.command {
            ServiceCommand::Status => &[Anywhere],
            ServiceCommand::Install | ServiceCommand::Uninstall => &[Anywhere, Decides(Record)],
        },
        Command::Accept(_) => &[Config, Writes, Supervises, Claims, Decides(Record)],
        Command::Bisect(_) => &[Config, Supervises],
        Command::Close(_) => &[Config, Writes, Claims, Decides(Record)],
        Command::Forget(args) if args.vault.is_some() => &[Anywhere, Decides(Record)],
        Command::Forget(args) if args.remote.is_some() => {
            &[UserConfig, Config, Supervises, Decides(Record)]
        }
        Command::Forget(_) => &[Decides(Record)],
        Command::RestoreProject(args) if args.vault.is_none() => &[Anywhere],
        Command::RestoreProject(_) => &[Anywhere, Decides(Tree)],
        Command::Remote(args) => match args.command {
            RemoteCommand::Status(_) | RemoteCommand::Fetch(_) => &[UserConfig, Config, Supervises],
            RemoteCommand::Push(_)
            | RemoteCommand::Claim(_)
            | RemoteCommand::Release(_)
            | RemoteCommand::Prune(_)
            | RemoteCommand::Check(_) => &[UserConfig, Config, Supervises, Decides(Record)],
        },
        Command::Import(_) | Command::Trust(_) => &[Config, Decides(Record)],
        Command::Sync(_) => &[Config],
        Command::Config(_) | Command::Agents => &[Anywhere, UserConfig, Config],
        Command::Demo(_) => &[Anywhere, Supervises],
        Command::Hook(args) => match args.command {
            HookCommand::Print(_) => &[Anywhere],
            HookCommand::Uninstall(_) => &[Decides(Record)],
            HookCommand::Status => &[Reads],
            HookCommand::Install(_) | HookCommand::Run(_) => &[],
        },
        Command::Plugin(args) => match args.command {
            PluginCommand::Uninstall(_) => &[Decides(Record)],
            PluginCommand::Install(_) | PluginCommand::Status(_) => &[],
        },
        Command::Init(_)
        | Command::Completions(_)
        | Command::Schema(_)
        | Command::Man(_)
        | Command::Mcp => &[],
    }
}

/// Whether a command has this property.
pub(super) fn has(command: &Command, property: Property) -> bool {
    properties(command).contains(&property)
}

/// What a command would decide about, if a supervised agent called it.
pub(super) fn reach(command: &Command) -> Reach {
    let decides = properties(command)
        .iter()
        .find_map(|property| match property {
            Property::Decides(reach) => Some(*reach),
            _ => None,
        });
    decides.unwrap_or(Reach::Nothing)
}

/// Goes to the work tree that the named run has for itself, where the command works in that; finishes what a kill left of
/// others.
pub(super) fn go_there(command: &Command, context: &mut Context) -> Result<()> {
    let works_there = [Property::Writes, Property::Claims]
        .map(|one| has(command, one))
        .contains(&true)
        || matches!(command, Command::Bisect(_));
    if !works_there && !matches!(command, Command::Run(_)) || !context.has_git() {
        return Ok(());
    }
    isolated::sweep(context)?;
    let needs = match command {
        Command::Undo(_) => Needs::Branch,
        Command::Resume(_) | Command::Rollback(_) | Command::Accept(_) | Command::Discard(_) => {
            Needs::Files
        }
        _ => Needs::None,
    };
    if works_there && let Some(there) = isolated::there(context, needs)? {
        *context = there;
    }
    Ok(())
}

/// Runs a command that works anywhere, without looking at work tree or state; `None` for the others.
pub(super) fn without_context(
    command: &Command,
    global: &GlobalArgs,
) -> Option<Result<Option<Reply>>> {
    match command {
        Command::Completions(args) => Some(Ok(Some(inspect::completions(args)))),
        Command::Schema(args) => Some(inspect::schema(args).map(Some)),
        Command::Man(args) => Some(inspect::man(args).map(Some)),
        Command::Mcp => Some(mcp::serve(global).map(|()| None)),
        _ => None,
    }
}

/// Runs a command. What it records of runs that lie on a remote is sent.
pub(super) fn execute(command: &Command, context: &mut Context, ui: &Ui) -> Result<Reply> {
    let written = if has(command, Property::Claims) {
        let chosen = match command {
            Command::Close(args) => chosen(args),
            _ => Chosen::Ids(Vec::new()),
        };
        claims::require_claim(context, &chosen)?
    } else {
        Vec::new()
    };
    // Removed when the answer is there.
    let shown = if shows_fetched(command) {
        claims::fetched(context)?
    } else {
        None
    };
    let reply = match shown {
        Some(mut shown) => call(command, &mut shown.context, ui)?,
        None => call(command, context, ui)?,
    };
    claims::send_recorded(context, &written);
    Ok(reply)
}

/// Whether a command only shows what is recorded of a run, so that a run will do that was fetched from a remote.
fn shows_fetched(command: &Command) -> bool {
    match command {
        Command::Checkpoint(args) => matches!(
            args.command,
            CheckpointCommand::List(_) | CheckpointCommand::Show(_) | CheckpointCommand::Diff(_)
        ),
        Command::Attempt(args) => matches!(args.command, AttemptCommand::List),
        Command::Status(args) => !args.watch,
        Command::RetryStatus(args) => !args.reset && args.wait.is_none(),
        Command::Log(args) => !args.follow,
        Command::Report(_) => true,
        _ => false,
    }
}

/// The runs that `close` is about.
fn chosen(args: &CloseArgs) -> Chosen {
    if args.all_ended {
        Chosen::Ended
    } else {
        Chosen::Ids(ids(&args.run_id))
    }
}

fn ids(named: &[String]) -> Vec<RunId> {
    named.iter().cloned().map(RunId::from).collect()
}

fn call(command: &Command, context: &mut Context, ui: &Ui) -> Result<Reply> {
    match command {
        Command::Run(args) => run::run(context, args, ui),
        Command::Resume(args) => run::resume(context, args, ui),
        Command::Rollback(args) => restore::rollback(context, args, ui),
        Command::Undo(args) => restore::undo(context, args, ui),
        Command::Redo(how) => restore::redo(context, *how, ui),
        Command::Checkpoint(args) => checkpoint::execute(context, args, ui),
        Command::ManualFix(args) => manual_fix::execute(context, args, ui),
        Command::RetryStatus(args) => inspect::retry_status(context, args),
        Command::Attempt(args) => attempt::execute(context, args, ui),
        Command::Classify(args) => attempt::classify(context, args),
        Command::Step(args) => step::step(context, args, ui),
        Command::Status(args) => status::status(context, args, ui),
        Command::Runs(args) => runs::runs(context, args, ui),
        Command::Limits(args) => limits::limits(context, args, ui),
        Command::Service(args) => service::execute(context, args, ui),
        Command::Browse(_) => runs::browse(context, ui),
        Command::Accept(args) => accept::accept(context, args, ui),
        Command::Discard(args) => restore::discard(context, args, ui),
        Command::Bisect(args) => restore::bisect(context, args, ui),
        Command::Close(args) => runs::close(context, args),
        Command::Forget(args) => runs::forget(context, args, ui),
        Command::RestoreProject(args) => runs::restore_project(context, args, ui),
        Command::Remote(args) => remote::execute(context, args, ui),
        Command::Worker(args) => worker::work(context, args, ui),
        Command::Log(args) => log::log(context, args, ui),
        Command::Report(args) => log::report(context, args, ui),
        Command::Import(args) => exchange::import(context, args, ui),
        Command::Sync(args) => exchange::sync(context, args),
        Command::Trust(args) => trust::trust(context, args, ui),
        Command::Demo(args) => demo::demo(context, args, ui),
        Command::Init(args) => inspect::init(context, args, ui),
        Command::Config(args) => Ok(inspect::config(context, args)),
        Command::Doctor(args) => inspect::doctor(context, args, ui),
        Command::Agents => inspect::agents(context, ui),
        Command::Hook(args) => hook::execute(context, args, ui),
        Command::Plugin(args) => hook::execute_plugin(context, args, ui),
        Command::Completions(_) | Command::Schema(_) | Command::Man(_) | Command::Mcp => {
            unreachable!("it runs without a context")
        }
    }
}
