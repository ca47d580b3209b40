//! Runs `rollback`, `undo` and `redo`.

use crate::engine::flow::rollback::{Options, Target, is_of_lane, rollback as roll_back};
use crate::engine::flow::undo::{How as UndoHow, redo as do_again, undo as take_back};
use crate::engine::restore::request::Restore;
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::operation::Scope;

use super::super::args::{RollbackArgs, UndoArgs, UndoCommand, word_of};
use super::super::exit::ExitCode;
use super::super::render;
use super::super::replies::restore::{RestorePlanReply, RestoreReply};
use super::super::screens::{How, agrees, choose_rollback, confirm_rollback};
use super::super::ui::{Reply, Ui};

/// The answer of anything that puts files back.
pub(super) fn reply(context: &Context, restore: &Restore) -> Result<Reply> {
    let key = restore.run.as_ref().map(|run| &run.key);
    let lane = render::lane(context, key)?;
    let text = render::restore_text(restore, context.dry_run())
        + &render::crossed_text(&restore.result, context.dry_run())
        + &lane.prompt;
    let standing = lane.standing.as_ref();
    let reply = if context.dry_run() {
        Reply::new(RestorePlanReply::new(context, restore, standing), text)
    } else {
        Reply::new(RestoreReply::new(context, restore, standing), text)
    };
    // What was to be taken back outside the work tree and was not.
    let exit = if restore.result.success {
        ExitCode::Done
    } else {
        ExitCode::Partial
    };
    Ok(reply.exit(exit))
}

/// `recover rollback`.
pub(super) fn rollback(context: &mut Context, args: &RollbackArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let mut options = Options {
        scope: args.scope,
        paths: args.path.clone(),
        commits: args.commits.unwrap_or_default(),
        edits: args.edits,
        index: args.restore_index.into(),
        nested: args.nested,
        precious: args.precious,
        best_effort: args.best_effort.best_effort,
    };
    let how = How {
        commits: args.commits,
        edits: args.edits,
        best_effort: options.best_effort,
    };
    let mut is_confirmed = context.dry_run();
    let target = match (args.iteration, &args.to, args.full) {
        (Some(number), _, _) => Target::Iteration(number),
        (None, Some(selector), _) => Target::Checkpoint(selector.clone()),
        (None, None, true) => Target::Full,
        (None, None, false) if ui.interactive && !is_of_lane(context)? => {
            let choice = choose_rollback(context, ui, &options, how, &given(args))?;
            context.confirm();
            is_confirmed = true;
            options.commits = choice.how.commits.unwrap_or_default();
            options.edits = choice.how.edits;
            options.best_effort = choice.how.best_effort;
            choice.target
        }
        (None, None, false) => Target::Safest,
    };
    if ui.interactive && !is_confirmed {
        let how = confirm_rollback(context, ui, &options, &target, how)?;
        context.confirm();
        options.commits = how.commits.unwrap_or_default();
        options.edits = how.edits;
        options.best_effort = how.best_effort;
    }
    reply(context, &roll_back(context, &target, &options)?)
}

/// The flags that the screen does not ask about, as they were given.
fn given(args: &RollbackArgs) -> Vec<String> {
    let mut words = Vec::new();
    if args.scope != Scope::All {
        words.extend(["--scope".to_owned(), word_of(&args.scope)]);
    }
    if !args.path.is_empty() {
        words.push("--path".to_owned());
        words.extend(args.path.iter().cloned());
    }
    if args.restore_index {
        words.push("--restore-index".to_owned());
    }
    if args.nested {
        words.push("--nested".to_owned());
    }
    if args.precious {
        words.push("--precious".to_owned());
    }
    words
}

fn how_of(args: &UndoArgs) -> UndoHow {
    UndoHow {
        commits: args.commits.unwrap_or_default(),
        edits: args.edits,
        best_effort: args.best_effort.best_effort,
        of_run: false,
    }
}

/// `recover undo`.
pub(super) fn undo(context: &mut Context, args: &UndoCommand, ui: &Ui) -> Result<Reply> {
    let how = UndoHow {
        of_run: args.of_run,
        ..how_of(&args.how)
    };
    asking(context, ui, |context| take_back(context, how))
}

/// `recover redo`.
pub(super) fn redo(context: &mut Context, args: &UndoArgs, ui: &Ui) -> Result<Reply> {
    asking(context, ui, |context| do_again(context, how_of(args)))
}

/// Does it; what needs a yes is asked about on a terminal.
fn asking(
    context: &mut Context,
    ui: &Ui,
    restore: impl Fn(&Context) -> Result<Restore>,
) -> Result<Reply> {
    context.require_something()?;
    match restore(context) {
        Err(error) if error.kind == ErrorKind::ConfirmationNeeded && ui.interactive => {
            let shown = error.message.trim_end_matches("; --yes goes on");
            if !agrees(context, ui, shown, "Go on?")? {
                return Err(Error::new(
                    ErrorKind::Interrupted(130),
                    "cancelled; nothing was changed",
                ));
            }
            context.confirm();
            reply(context, &restore(context)?)
        }
        restored => reply(context, &restored?),
    }
}
