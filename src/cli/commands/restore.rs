//! Runs the commands that go back: `rollback`, `undo`, `redo`, and `bisect`, which finds out where to.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::args::{BisectArgs, RollbackArgs, UndoArgs, UndoCommand, word_of};
use super::super::render;
use super::super::replies::ExitCode;
use super::super::screens::{How, choose_rollback, confirm_rollback, require_yes};
use super::super::ui::{Reply, Ui};
use crate::engine::bisect::{Found, Request, bisect as find};
use crate::engine::record::lane::{Hints, LaneDetails, LaneStanding, Stage};
use crate::engine::record::run_settings::is_unchecked;
use crate::engine::restore::request::{Options, Restore, RestoreResult};
use crate::engine::rollback::undo::{redo as do_again, undo as take_back};
use crate::engine::rollback::{Target, is_of_lane, rollback as roll_back};
use crate::engine::{Context, ErrorKind, Result};
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::operation::Scope;
use crate::model::run_line::RunLine;
use crate::policy::bisection::Judged;
use crate::policy::retry::resume_command;
use crate::policy::text::{count, escape};

/// A rollback, restore, undo or redo; the plan of one has its result as `plan`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestoreReply<'a> {
    changed: bool,
    result: &'a RestoreResult,
    #[serde(flatten)]
    after: AfterRestore<'a>,
}

/// What it would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestorePlanReply<'a> {
    changed: bool,
    plan: &'a RestoreResult,
    #[serde(flatten)]
    after: AfterRestore<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AfterRestore<'a> {
    run: Option<RunLine>,
    #[serde(flatten)]
    hints: Hints,
    #[serde(flatten)]
    stage: Stage,
    #[serde(flatten)]
    details: Option<&'a LaneDetails>,
}

impl<'a> AfterRestore<'a> {
    /// `lane` where the run is one.
    fn new(context: &Context, restore: &'a Restore, lane: Option<&'a LaneStanding>) -> Self {
        let run = restore.run.as_ref();
        let resume = run.map_or_else(
            || vec!["resume"],
            |run| resume_command(run, is_unchecked(context, run)),
        );
        let hints = Hints {
            resume_hint: context.placed(Hint::recover(resume).run(run.map(|run| &run.key))),
            rollback_hint: context.placed(Hint::recover([restore.kind.taken_back_by()])),
        };
        Self {
            run: run.map(RunLine::from),
            hints: lane.map_or(hints, |lane| lane.hints.clone()),
            stage: lane.map(|lane| lane.stage.clone()).unwrap_or_default(),
            details: lane.map(|lane| &lane.details),
        }
    }
}

/// The answer of anything that puts files back.
pub(super) fn reply(context: &Context, restore: &Restore, ui: &Ui) -> Result<Reply> {
    let key = restore.run.as_ref().map(|run| &run.key);
    let ui = &ui.knowing(context);
    let lane = render::lane(context, key, ui)?;
    let text = render::restore_text(ui, restore, context.dry_run())
        + &render::crossed_text(&restore.result, context.dry_run())
        + &lane.prompt;
    let standing = lane.standing.as_ref();
    let after = AfterRestore::new(context, restore, standing);
    let result = &restore.result;
    let reply = if context.dry_run() {
        let document = RestorePlanReply {
            changed: false,
            plan: result,
            after,
        };
        Reply::new(document, text)
    } else {
        let document = RestoreReply {
            changed: restore.changed,
            result,
            after,
        };
        Reply::new(document, text)
    };
    // What was to be taken back outside the work tree and was not.
    let exit = if restore.result.success {
        ExitCode::DONE
    } else {
        ExitCode::PARTIAL
    };
    Ok(reply.exit(exit))
}

/// `recover rollback`.
pub(super) fn rollback(context: &mut Context, args: &RollbackArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let options = Options {
        scope: args.scope,
        paths: args.path.clone(),
        commits: args.commits.unwrap_or_default(),
        edits: args.edits,
        restore_index: args.restore_index,
        nested: args.nested,
        precious: args.precious,
        best_effort: args.best_effort.best_effort,
        here: false,
    };
    let mut how = How {
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
            how = choice.how;
            choice.target
        }
        (None, None, false) => Target::Safest,
    };
    if ui.interactive && !is_confirmed {
        how = confirm_rollback(context, ui, &options, &target, how)?;
        context.confirm();
    }
    reply(
        context,
        &roll_back(context, &target, &how.options(&options))?,
        ui,
    )
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

fn how_of(args: &UndoArgs) -> Options {
    Options {
        commits: args.commits.unwrap_or_default(),
        edits: args.edits,
        best_effort: args.best_effort.best_effort,
        ..Options::default()
    }
}

/// `recover undo`.
pub(super) fn undo(context: &mut Context, args: &UndoCommand, ui: &Ui) -> Result<Reply> {
    asking(context, ui, |context| {
        take_back(context, &how_of(&args.how), args.of_run)
    })
}

/// `recover redo`.
pub(super) fn redo(context: &mut Context, args: &UndoArgs, ui: &Ui) -> Result<Reply> {
    asking(context, ui, |context| do_again(context, &how_of(args)))
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
            require_yes(context, ui, shown, "Go on?")?;
            reply(context, &restore(context)?, ui)
        }
        restored => reply(context, &restored?, ui),
    }
}

/// `recover bisect`.
pub(super) fn bisect(context: &Context, args: &BisectArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let request = Request {
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
    let found = find(context, &request, &say)?;
    let text = ui.text(|| text_of(context, &found, &ui.knowing(context)));
    let exit = if found.candidates.is_empty() {
        ExitCode::DONE
    } else {
        ExitCode::PARTIAL
    };
    Ok(Reply::new(found, text).exit(exit))
}

fn text_of(context: &Context, found: &Found, ui: &Ui) -> String {
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
        let all: Vec<String> = found.candidates.iter().map(|id| ui.id(id)).collect();
        return format!(
            "Some could not be tested. The first bad one is one of: {}\n",
            all.join(", ")
        );
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
