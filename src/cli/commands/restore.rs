//! Runs the commands that go back: `rollback`, `undo`, `redo`, and `bisect`, which finds out where to.

use itertools::Itertools as _;

use super::super::args::{BisectArgs, DiscardArgs, How, RollbackArgs, UndoArgs, word_of};
use super::super::render;
use super::super::replies::ExitCode;
use super::super::screens::{choose_rollback, confirm_rollback, require_yes};
use super::super::ui::{Reply, Ui};
use crate::engine::{Context, ErrorKind, Result, answers, bisect, isolated, remote, rollback, run};
use crate::model::{Checkpoint, Hint, OperationKind, RunStatus, Scope};
use crate::policy::bisection::Judged;
use crate::policy::text::{count, escape};

/// The answer of anything that puts files back.
pub(super) fn reply(context: &Context, restore: &rollback::Restore, ui: &Ui) -> Result<Reply> {
    let ui = &ui.knowing(context);
    let after = answers::AfterRestore::new(context, restore)?;
    let result = &restore.result;
    let back = restore.taken_back_by(context);
    let text = render::restore_text(ui, restore, &back, context.dry_run())
        + &render::lane_text(after.lane.as_ref(), ui);
    let reply = if context.dry_run() {
        let (changed, plan) = (false, result);
        Reply::new(
            answers::RestorePlan {
                changed,
                plan,
                after,
            },
            text,
        )
    } else {
        let changed = restore.changed;
        Reply::new(
            answers::Restored {
                changed,
                result,
                after,
            },
            text,
        )
    };
    // What was to be taken back outside the work tree and was not.
    Ok(reply.exit(ExitCode::PARTIAL.unless(result.success)))
}

/// `recover rollback`.
pub(super) fn rollback(context: &mut Context, args: &RollbackArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let files = &args.files;
    let mut how = files.how;
    let options = files.options(context, args.scope, rollback::Commits::default())?;
    let mut is_confirmed = context.dry_run();
    let target = match (args.iteration, &args.to, args.full) {
        (Some(number), _, _) => rollback::Target::Iteration(number),
        (None, Some(selector), _) => rollback::Target::Checkpoint(selector.clone()),
        (None, None, true) => rollback::Target::Full,
        (None, None, false) if ui.interactive && !rollback::is_of_lane(context)? => {
            let mut words = files.words();
            if args.scope != Scope::All {
                words.splice(..0, ["--scope".to_owned(), word_of(&args.scope)]);
            }
            let choice = choose_rollback(context, ui, &options, how, &words)?;
            context.confirm();
            is_confirmed = true;
            how = choice.how;
            choice.target
        }
        (None, None, false) => rollback::Target::Safest,
    };
    if ui.interactive && !is_confirmed {
        how = confirm_rollback(context, ui, &options, &target, how)?;
        context.confirm();
    }
    reply(
        context,
        &rollback::rollback(context, &target, &how.options(&options))?,
        ui,
    )
}

/// `recover discard`.
pub(super) fn discard(context: &mut Context, args: &DiscardArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let mut how = args.how;
    let options = |how: How| rollback::Options {
        nested: args.nested,
        ..how.whole()
    };
    if ui.interactive && !context.dry_run() && !context.says_yes() {
        let target = rollback::Target::Discard;
        how = confirm_rollback(context, ui, &options(how), &target, how)?;
        context.confirm();
    }
    let restore = rollback::discard(context, &options(how))?;
    let closed = restore
        .run
        .as_ref()
        .filter(|run| run.status == RunStatus::Closed);
    if let Some(run) = closed.filter(|_| !context.dry_run()) {
        remote::release(context, &run.key, false);
    }
    let answer = reply(context, &restore, ui)?;
    if let Some(run) = closed {
        isolated::tidy(context, &run.key);
    }
    Ok(answer)
}

/// `recover undo`.
pub(super) fn undo(context: &mut Context, args: &UndoArgs, ui: &Ui) -> Result<Reply> {
    let given = rollback::Options::default();
    asking(context, ui, |context| {
        rollback::undo(context, &args.how.options(&given), args.of_run)
    })
}

/// `recover redo`.
pub(super) fn redo(context: &mut Context, how: How, ui: &Ui) -> Result<Reply> {
    let given = rollback::Options::default();
    asking(context, ui, |context| {
        rollback::redo(context, &how.options(&given))
    })
}

/// Does it; what needs a yes is asked about on a terminal.
fn asking(
    context: &mut Context,
    ui: &Ui,
    restore: impl Fn(&Context) -> Result<rollback::Restore>,
) -> Result<Reply> {
    context.require_something()?;
    let restored = match restore(context) {
        Err(error) if error.kind == ErrorKind::ConfirmationNeeded && ui.interactive => {
            let shown = error.message.trim_end_matches("; pass --yes to continue");
            require_yes(context, ui, shown, "Go on?")?;
            restore(context)?
        }
        restored => restored?,
    };
    let operation = restored.result.operation.as_ref();
    let is_accept = operation.is_some_and(|one| one.command == OperationKind::Accept.as_str());
    if let Some(run) = restored
        .run
        .as_ref()
        .filter(|_| is_accept && !context.dry_run())
    {
        let ids = run::tasks::tick(context, run)?;
        let done = if run.was_accepted() {
            "ticked again"
        } else {
            "no longer ticked"
        };
        if !ids.is_empty() {
            context.note(format!(
                "{done} in the list of tasks: '{}'",
                ids.join("', '")
            ));
        }
    }
    reply(context, &restored, ui)
}

/// `recover bisect`.
pub(super) fn bisect(context: &Context, args: &BisectArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let request = bisect::Request {
        good: args.good.clone(),
        bad: args.bad.clone(),
        prepare: args.prepare.clone(),
        command: args.command.clone(),
    };
    let say = |left: usize, checkpoint: &Checkpoint, judged: Judged| {
        let word = match judged {
            Judged::Good => "good",
            Judged::Bad => "bad",
            Judged::Skipped => "skipped",
        };
        if !ui.quiet {
            Ui::say(&format!(
                "{word}: {} ({}); at most {left} left",
                checkpoint.id,
                escape(&checkpoint.description)
            ));
        }
    };
    let found = bisect::bisect(context, &request, &say)?;
    let text = ui.text(|| text_of(context, &found, &ui.knowing(context)));
    let exit = ExitCode::PARTIAL.unless(found.candidates.is_empty());
    Ok(Reply::new(found, text).exit(exit))
}

fn text_of(context: &Context, found: &bisect::Found, ui: &Ui) -> String {
    if context.dry_run() {
        return format!(
            "Would look through {} checkpoints of run {}.\n",
            found.checkpoints,
            escape(&found.run.key.to_string())
        );
    }
    if let (Some(good), Some(bad), 1..) = (
        &found.last_good,
        found.candidates.first(),
        found.removed_between,
    ) {
        let removed = count(found.removed_between, "checkpoint");
        let changes = Hint::recover([
            "checkpoint",
            "diff",
            good.id.as_str(),
            bad.as_str(),
            "--patch",
        ]);
        return format!(
            "The change lies between {} and {}: {removed} between them were removed.\nChanges:   {}\n",
            ui.id(&good.id),
            ui.id(bad),
            ui.command(&context.placed(changes))
        );
    }
    let Some(bad) = &found.first_bad else {
        let all = found.candidates.iter().map(|id| ui.id(id)).join(", ");
        return format!("Some could not be tested. The first bad one is one of: {all}\n");
    };
    let mut text = format!(
        "First bad: {} ({})\n",
        ui.id(&bad.id),
        escape(&ui.description(bad))
    );
    if let Some(attempt) = bad.attempt {
        text.push_str(&format!(
            "Attempt:   iteration {}, attempt {attempt}\n",
            bad.after_iteration
        ));
    }
    if let Some(good) = &found.last_good {
        let changes = Hint::recover([
            "checkpoint",
            "diff",
            good.id.as_str(),
            bad.id.as_str(),
            "--patch",
        ]);
        text.push_str(&format!(
            "Last good: {} ({})\n",
            ui.id(&good.id),
            escape(&ui.description(good))
        ));
        text.push_str(&format!(
            "Changes:   {}\n",
            ui.command(&context.placed(changes))
        ));
    }
    text
}
