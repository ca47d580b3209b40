//! How each command is called: arguments to an engine request, the engine's answer to a document and text.
//! A file each, or one for a few that belong together.

mod accept;
pub(super) mod attempt;
pub(super) mod checkpoint;
mod exchange;
pub(super) mod hook;
mod inspect;
pub(super) mod log;
mod manual_fix;
mod remote;
pub(super) mod restore;
mod run;
mod runs;
pub(super) mod status;
mod step;
mod trust;

use super::args::{
    AttemptCommand, CheckpointCommand, Command, HookCommand, ManualFixCommand, RemoteCommand,
};
use super::ui::{Reply, Ui};
use crate::engine::remote::{require_claim, send_recorded};
use crate::engine::runs::Chosen;
use crate::engine::trust::Reach;
use crate::engine::{Context, Result};
use crate::model::id::RunId;

pub(super) use hook::run as run_hook;
pub(super) use status::once;
pub(super) use trust::{ask as ask_for_trust, ask_for_consent};

/// Whether a command works in any folder, also one that is no place for a run.
pub(super) fn needs_settings_only(command: &Command) -> bool {
    match command {
        Command::Classify(_) | Command::Config(_) | Command::Agents => true,
        Command::Hook(args) => matches!(args.command, HookCommand::Print(_)),
        _ => false,
    }
}

/// Whether a command fails where the user's own configuration is broken. Nobody is kept from seeing where a run stands, or
/// from going back, by that.
pub(super) fn needs_user_config(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::Resume(_)
            | Command::Remote(_)
            | Command::Agents
            | Command::Config(_)
    )
}

/// Whether a command fails where the project's configuration is broken: what is started, decided or deleted by it, or tells of
/// it. A pull or an agent that breaks the file keeps nobody from looking, from a checkpoint, or from going back.
pub(super) fn needs_config(command: &Command) -> bool {
    match command {
        Command::Checkpoint(args) => matches!(args.command, CheckpointCommand::Prune(_)),
        Command::ManualFix(args) => !matches!(
            args.command,
            Some(ManualFixCommand::Status | ManualFixCommand::Abort)
        ),
        Command::Attempt(args) => !matches!(args.command, AttemptCommand::List),
        Command::Status(_)
        | Command::Runs(_)
        | Command::Log(_)
        | Command::Report(_)
        | Command::Browse
        | Command::Rollback(_)
        | Command::Undo(_)
        | Command::Redo(_)
        | Command::Doctor(_)
        | Command::Forget(_)
        | Command::Hook(_)
        | Command::Init(_)
        | Command::Completions(_)
        | Command::Schema(_)
        | Command::Man(_) => false,
        Command::Run(_)
        | Command::Resume(_)
        | Command::RetryStatus(_)
        | Command::Classify(_)
        | Command::Step(_)
        | Command::Accept(_)
        | Command::Bisect(_)
        | Command::Close(_)
        | Command::Remote(_)
        | Command::Import(_)
        | Command::Sync(_)
        | Command::Trust(_)
        | Command::Config(_)
        | Command::Agents => true,
    }
}

/// Whether a command works from what is recorded where the repository cannot be opened, and answers with that one's state.
pub(super) fn reads(command: &Command) -> bool {
    match command {
        Command::Status(_)
        | Command::Log(_)
        | Command::Runs(_)
        | Command::Report(_)
        | Command::Doctor(_) => true,
        Command::RetryStatus(args) => !args.reset,
        Command::Checkpoint(args) => matches!(args.command, CheckpointCommand::List(_)),
        Command::Attempt(args) => matches!(args.command, AttemptCommand::List),
        Command::Hook(args) => matches!(args.command, HookCommand::Status),
        _ => false,
    }
}

/// Whether a command writes to the run that it is about, so that it says which of several it took.
pub(super) fn writes(command: &Command) -> bool {
    match command {
        Command::Resume(_)
        | Command::Rollback(_)
        | Command::Step(_)
        | Command::Accept(_)
        | Command::Close(_) => true,
        Command::Checkpoint(args) => matches!(
            args.command,
            CheckpointCommand::Create(_)
                | CheckpointCommand::Restore(_)
                | CheckpointCommand::Pin(_)
                | CheckpointCommand::Unpin(_)
        ),
        Command::ManualFix(args) => !matches!(
            args.command,
            Some(ManualFixCommand::Status | ManualFixCommand::Watch { .. })
        ),
        Command::RetryStatus(args) => args.reset,
        Command::Attempt(args) => !matches!(args.command, AttemptCommand::List),
        _ => false,
    }
}

/// Whether a command runs children or waits, so that signals are its own to handle.
pub(super) fn supervises(command: &Command) -> bool {
    match command {
        Command::Run(_)
        | Command::Resume(_)
        | Command::Step(_)
        | Command::Accept(_)
        | Command::Bisect(_)
        | Command::Browse
        | Command::Remote(_) => true,
        Command::Status(args) => args.watch,
        Command::RetryStatus(args) => args.wait.is_some(),
        Command::Log(args) => args.follow,
        Command::ManualFix(args) => !matches!(
            args.command,
            Some(
                ManualFixCommand::Start { .. } | ManualFixCommand::Status | ManualFixCommand::Abort
            )
        ),
        _ => false,
    }
}

/// The run that a command names without a flag, where it works on that one alone.
pub(super) fn named_run(command: &Command) -> Option<&str> {
    match command {
        Command::Accept(args) => args.run_id.as_deref(),
        _ => None,
    }
}

/// The git remote that a command names.
pub(super) fn remote(command: &Command) -> Option<&str> {
    let named = match command {
        Command::Run(args) => &args.remote,
        Command::Resume(args) => &args.remote,
        Command::Runs(args) => &args.remote,
        Command::Remote(args) => match &args.command {
            RemoteCommand::Status(name)
            | RemoteCommand::Fetch(name)
            | RemoteCommand::Prune(name) => &name.remote,
            RemoteCommand::Push(args) => &args.name.remote,
            RemoteCommand::Claim(args) => &args.name.remote,
            RemoteCommand::Release(args) => &args.name.remote,
            RemoteCommand::Check(args) => &args.name.remote,
        },
        _ => return None,
    };
    named.as_deref()
}

/// The runs that a command writes to, where only whoever holds a run may do so.
fn needs_claim(command: &Command) -> Option<Chosen> {
    let ids = |ids: &[String]| Chosen::Ids(ids.iter().cloned().map(RunId::from).collect());
    match command {
        Command::Rollback(_) | Command::Undo(_) | Command::Redo(_) | Command::Accept(_) => {
            Some(ids(&[]))
        }
        Command::Checkpoint(args) if matches!(args.command, CheckpointCommand::Restore(_)) => {
            Some(ids(&[]))
        }
        Command::ManualFix(args) => {
            let reads = matches!(
                args.command,
                Some(ManualFixCommand::Status | ManualFixCommand::Watch { .. })
            );
            (!reads).then(|| ids(&[]))
        }
        Command::RetryStatus(args) if args.reset => Some(ids(&[])),
        Command::Close(args) if args.all_ended => Some(Chosen::Ended),
        Command::Close(args) => Some(ids(&args.run_id)),
        _ => None,
    }
}

/// What a command would decide about, if a supervised agent called it.
pub(super) fn reach(command: &Command) -> Reach {
    match command {
        Command::Rollback(_) | Command::Undo(_) | Command::Redo(_) | Command::Resume(_) => {
            Reach::Tree
        }
        Command::Checkpoint(args) => match &args.command {
            CheckpointCommand::Restore(_) => Reach::Tree,
            CheckpointCommand::Prune(_) | CheckpointCommand::Unpin(_) => Reach::Record,
            CheckpointCommand::Create(_)
            | CheckpointCommand::List(_)
            | CheckpointCommand::Show(_)
            | CheckpointCommand::Diff(_)
            | CheckpointCommand::Pin(_)
            | CheckpointCommand::Verify(_)
            | CheckpointCommand::Export(_) => Reach::Nothing,
        },
        Command::ManualFix(args) => match &args.command {
            Some(ManualFixCommand::Continue { .. } | ManualFixCommand::Abort) => Reach::Tree,
            None
            | Some(
                ManualFixCommand::Start { .. }
                | ManualFixCommand::Status
                | ManualFixCommand::Watch { .. }
                | ManualFixCommand::Verify,
            ) => Reach::Nothing,
        },
        Command::RetryStatus(args) if args.reset => Reach::Record,
        Command::Attempt(args) => match &args.command {
            AttemptCommand::Start(_) | AttemptCommand::Pass(_) | AttemptCommand::Fail(_) => {
                Reach::Run
            }
            AttemptCommand::List => Reach::Nothing,
        },
        Command::Import(_)
        | Command::Trust(_)
        | Command::Accept(_)
        | Command::Close(_)
        | Command::Forget(_) => Reach::Record,
        Command::Remote(args) => match &args.command {
            RemoteCommand::Status(_) | RemoteCommand::Fetch(_) => Reach::Nothing,
            RemoteCommand::Push(_)
            | RemoteCommand::Claim(_)
            | RemoteCommand::Release(_)
            | RemoteCommand::Prune(_)
            | RemoteCommand::Check(_) => Reach::Record,
        },
        Command::Doctor(args) if args.repair || args.rebuild => Reach::Record,
        Command::Hook(args) => match &args.command {
            HookCommand::Uninstall(_) => Reach::Record,
            HookCommand::Print(_)
            | HookCommand::Install(_)
            | HookCommand::Status
            | HookCommand::Run(_) => Reach::Nothing,
        },
        // A run of its own within an attempt is supervised like any other one.
        Command::Run(_)
        | Command::RetryStatus(_)
        | Command::Classify(_)
        | Command::Step(_)
        | Command::Status(_)
        | Command::Runs(_)
        | Command::Browse
        | Command::Bisect(_)
        | Command::Log(_)
        | Command::Report(_)
        | Command::Sync(_)
        | Command::Init(_)
        | Command::Config(_)
        | Command::Agents
        | Command::Doctor(_)
        | Command::Completions(_)
        | Command::Schema(_)
        | Command::Man(_) => Reach::Nothing,
    }
}

/// Runs a command that works anywhere, without looking at work tree or state; `None` for the others.
pub(super) fn without_context(command: &Command) -> Option<Result<Reply>> {
    match command {
        Command::Completions(args) => Some(Ok(inspect::completions(args))),
        Command::Schema(args) => Some(inspect::schema(args)),
        Command::Man(args) => Some(inspect::man(args)),
        _ => None,
    }
}

/// Runs a command. What it records of runs that lie on a remote is sent.
pub(super) fn execute(command: &Command, context: &mut Context, ui: &Ui) -> Result<Reply> {
    let written = needs_claim(command)
        .map_or_else(|| Ok(Vec::new()), |chosen| require_claim(context, &chosen))?;
    let reply = call(command, context, ui)?;
    send_recorded(context, &written);
    Ok(reply)
}

fn call(command: &Command, context: &mut Context, ui: &Ui) -> Result<Reply> {
    match command {
        Command::Run(args) => run::run(context, args, ui),
        Command::Resume(args) => run::resume(context, args, ui),
        Command::Rollback(args) => restore::rollback(context, args, ui),
        Command::Undo(args) => restore::undo(context, args, ui),
        Command::Redo(args) => restore::redo(context, args, ui),
        Command::Checkpoint(args) => checkpoint::execute(context, args, ui),
        Command::ManualFix(args) => manual_fix::execute(context, args, ui),
        Command::RetryStatus(args) => inspect::retry_status(context, args),
        Command::Attempt(args) => attempt::execute(context, args, ui),
        Command::Classify(args) => attempt::classify(context, args),
        Command::Step(args) => step::step(context, args, ui),
        Command::Status(args) => status::status(context, args, ui),
        Command::Runs(args) => runs::runs(context, args, ui),
        Command::Browse => runs::browse(context, ui),
        Command::Accept(args) => accept::accept(context, args, ui),
        Command::Bisect(args) => restore::bisect(context, args, ui),
        Command::Close(args) => runs::close(context, args),
        Command::Forget(args) => runs::forget(context, args, ui),
        Command::Remote(args) => remote::execute(context, args, ui),
        Command::Log(args) => log::log(context, args, ui),
        Command::Report(args) => log::report(context, args, ui),
        Command::Import(args) => exchange::import(context, args, ui),
        Command::Sync(args) => exchange::sync(context, args),
        Command::Trust(args) => trust::trust(context, args, ui),
        Command::Init(args) => inspect::init(context, args, ui),
        Command::Config(args) => Ok(inspect::config(context, args)),
        Command::Doctor(args) => inspect::doctor(context, args, ui),
        Command::Agents => inspect::agents(context, ui),
        Command::Hook(args) => hook::execute(context, args, ui),
        Command::Completions(args) => Ok(inspect::completions(args)),
        Command::Schema(args) => inspect::schema(args),
        Command::Man(args) => inspect::man(args),
    }
}
