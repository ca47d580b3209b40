//! The rollback screen (B11): where to, what will happen, and a yes.

use crate::engine::flow::rollback::{Options, Target, Targets, rollback, targets};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::hint::Hint;
use crate::model::selector::Selector;

use super::super::render::{in_words, when};
use super::super::ui::Ui;
use super::confirm::{How, confirm, confirm_given};
use super::list::{List, Picked};
use super::{Talk, same_as, size};

/// What a person chose.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Where to.
    pub target: Target,
    /// And how.
    pub how: How,
}

/// A line of the list.
struct Row {
    target: Target,
    words: Vec<String>,
    label: String,
    good: bool,
    /// What happens to the run.
    after: String,
}

/// Asks. `options` and `words` are what was given by flags already.
pub(crate) fn choose(
    context: &Context,
    ui: &Ui,
    options: &Options,
    how: How,
    words: &[String],
) -> Result<Choice> {
    let mut targets = targets(context)?;
    targets
        .checkpoints
        .retain(|checkpoint| !checkpoint.is_safety());
    if targets.checkpoints.is_empty() {
        return Err(
            Error::new(ErrorKind::NoCheckpoint, "No checkpoint available")
                .hint(Hint::recover(["checkpoint", "create"])),
        );
    }
    let ui = &ui.knowing(context);
    let talk = Talk::begin(context, ui)?;
    let rows = rows(&talk, &targets);
    let run = &targets.run;
    let total = run
        .spec
        .iterations_total
        .map_or_else(String::new, |total| format!(" of {total}"));
    talk.ask(&format!(
        "Rollback of run {}: {}, iteration {}{total}",
        run.key,
        in_words(run.status.as_str()),
        run.shown_iteration()
    ));
    talk.ask("Nothing is changed before you say yes. Where to?");
    talk.say("");
    let labels: Vec<String> = rows.iter().map(|row| ui.shown(&row.label)).collect();
    let mut at = rows.iter().position(|row| row.good).unwrap_or(0);
    loop {
        let help = "arrows or j/k, Enter shows what will happen, q leaves";
        let Picked::Item(picked) = List::new(&talk, &labels, &[], help, at).pick()? else {
            continue;
        };
        at = picked;
        let row = &rows[at];
        let plan =
            |context: &Context, how: How| rollback(context, &row.target, &how.options(options));
        talk.say("");
        talk.ask(&labels[at]);
        if options.scope.covers_files() && options.paths.is_empty() {
            talk.ask(&row.after);
        }
        let Some(how) = confirm(&talk, how, &plan)? else {
            continue;
        };
        let same: Vec<String> = ["rollback".to_owned()]
            .into_iter()
            .chain(row.words.clone())
            .chain(words.to_vec())
            .chain(how.words())
            .collect();
        talk.say_all(&same_as(&same));
        return Ok(Choice {
            target: row.target.clone(),
            how,
        });
    }
}

/// Asks about a target that was given. What changes nothing, and what is refused whatever a person says, is left to the
/// rollback itself.
pub(crate) fn confirm_target(
    context: &Context,
    ui: &Ui,
    options: &Options,
    target: &Target,
    how: How,
) -> Result<How> {
    let plan = |context: &Context, how: How| rollback(context, target, &how.options(options));
    let may_be_asked = match plan(&context.rehearsal()?, how) {
        Ok(restore) => restore.changed,
        Err(error) => matches!(
            error.kind,
            ErrorKind::HandEdits | ErrorKind::HeadMoved | ErrorKind::Blocked
        ),
    };
    if may_be_asked {
        confirm_given(&Talk::begin(context, ui)?, how, &plan)
    } else {
        Ok(how)
    }
}

/// Newest first; the whole run last.
fn rows(talk: &Talk<'_>, targets: &Targets) -> Vec<Row> {
    let run = &targets.run;
    let current = run.shown_iteration();
    let from =
        |number: u32| format!("The run continues from iteration {number}; its history stays.");
    let mut rows = vec![Row {
        target: Target::Iteration(current),
        words: vec!["--iteration".to_owned(), current.to_string()],
        label: format!("undo iteration {current} only"),
        good: false,
        after: from(current),
    }];
    for checkpoint in targets.checkpoints.iter().rev() {
        rows.push(Row {
            target: Target::Checkpoint(Selector::Id(checkpoint.id.to_string())),
            words: vec!["--to".to_owned(), checkpoint.id.to_string()],
            label: label(talk, checkpoint, targets),
            good: targets.last_good.as_ref() == Some(&checkpoint.id),
            after: from(
                checkpoint
                    .after_iteration
                    .saturating_add(1)
                    .min(run.current_iteration.max(1)),
            ),
        });
    }
    if targets.initial.is_some() {
        rows.push(Row {
            target: Target::Full,
            words: vec!["--full".to_owned()],
            label: "undo the entire run".to_owned(),
            good: false,
            after: "The run starts fresh from iteration 1; its history stays.".to_owned(),
        });
    }
    rows
}

/// What matters most first: a narrow terminal cuts the rest.
pub(super) fn label(talk: &Talk<'_>, checkpoint: &Checkpoint, targets: &Targets) -> String {
    let initial = targets.initial.as_ref() == Some(&checkpoint.id);
    let (number, seq) = (checkpoint.after_iteration, checkpoint.seq);
    let (verdict, age) = (
        checkpoint.verdict.as_str(),
        when(checkpoint.created_at, talk.context.clock.now()),
    );
    let over = targets
        .superseded
        .contains(&checkpoint.id)
        .then_some("superseded".to_owned());
    let pin = checkpoint.pinned.then_some("pinned".to_owned());
    // What is only said once more has no room.
    let is_said = [trigger::INITIAL, trigger::ATTEMPT].contains(&checkpoint.trigger.as_str());
    let description = (!is_said).then(|| talk.ui.description(checkpoint));
    let damaged = checkpoint.damaged.then_some("damaged".to_owned());
    let what = damaged
        .into_iter()
        .chain(over)
        .chain(pin)
        .chain(description)
        .collect::<Vec<_>>()
        .join(", ");
    if size().0 < 70 {
        let place = if initial {
            "before".to_owned()
        } else {
            format!("after {number}")
        };
        return format!("{place:<8} {verdict:<10} @{seq:<3} {age} {what}");
    }
    let place = if initial {
        "before the run".to_owned()
    } else {
        format!("after iteration {number}")
    };
    format!("{place:<18} {verdict:<10} {age:<15} @{seq:<4} {what}")
}
