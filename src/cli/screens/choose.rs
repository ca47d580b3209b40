//! Choosing where to go back to: a list of checkpoints, what would happen, and whether it may (B11).

use super::super::args::How;
use super::super::render::{changes_text, time_of_day, unchanged_text};
use super::super::ui::{Ui, escape};
use super::{List, Picked, Talk, nothing_changed, same_as, size};
use crate::engine::{Context, Error, ErrorKind, Result, inspect, rollback};
use crate::model::checkpoint::trigger;
use crate::model::{Checkpoint, CheckpointId, Hint, Selector};
use crate::policy::report::run_state;
use crate::policy::restore::Edits;

/// What a person chose.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Where to.
    pub target: rollback::Target,
    /// And how.
    pub how: How,
}

/// A line of the list.
struct Row {
    target: rollback::Target,
    words: Vec<String>,
    label: String,
    good: bool,
    /// What happens to the run.
    after: String,
}

/// Asks. `options` and `words` are what was given by flags already.
pub(crate) fn choose_rollback(
    context: &Context,
    ui: &Ui,
    options: &rollback::Options,
    how: How,
    words: &[String],
) -> Result<Choice> {
    let mut targets = rollback::targets(context)?;
    targets
        .checkpoints
        .retain(|checkpoint| !checkpoint.is_safety());
    require_some(&targets)?;
    let ui = &ui.knowing(context);
    let talk = Talk::begin(context, ui)?;
    let rows = rows(&talk, &targets);
    let run = &targets.run;
    let total = run.spec.of_total();
    talk.title(&format!(
        "Rollback of run {}: {}, iteration {}{total}",
        run.key,
        run_state(run),
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
        let plan = |context: &Context, how: How| {
            rollback::rollback(context, &row.target, &how.options(options))
        };
        talk.say("");
        talk.ask(&labels[at]);
        if options.scope.covers_files() && options.paths.is_empty() {
            talk.ask(&row.after);
        }
        let Some(how) = confirm(&talk, how, &plan, ANOTHER)? else {
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
pub(crate) fn confirm_rollback(
    context: &Context,
    ui: &Ui,
    options: &rollback::Options,
    target: &rollback::Target,
    how: How,
) -> Result<How> {
    let plan =
        |context: &Context, how: How| rollback::rollback(context, target, &how.options(options));
    let may_be_asked = match plan(&context.rehearsal()?, how) {
        Ok(restore) => restore.changed,
        Err(error) => matches!(
            error.kind,
            ErrorKind::HandEdits | ErrorKind::HeadMoved | ErrorKind::Blocked
        ),
    };
    if may_be_asked {
        let talk = Talk::begin(context, ui)?;
        confirm(&talk, how, &plan, "")?.ok_or_else(|| nothing_changed(130))
    } else {
        Ok(how)
    }
}

/// Newest first; the whole run last.
fn rows(talk: &Talk<'_>, targets: &rollback::Targets) -> Vec<Row> {
    let run = &targets.run;
    let current = run.shown_iteration();
    let from =
        |number: u32| format!("The run continues from iteration {number}; its history stays.");
    let of_it =
        |one: &&Checkpoint| one.after_iteration == current && one.trigger == trigger::ATTEMPT;
    let latest = targets.checkpoints.iter().rfind(of_it);
    let summary = latest.filter(|one| !is_unnamed(one));
    let summary = summary.map(|one| format!(": {}", one.description));
    let mut rows = vec![Row {
        target: rollback::Target::Iteration(current),
        words: vec!["--iteration".to_owned(), current.to_string()],
        label: format!(
            "undo iteration {current} only{}",
            summary.unwrap_or_default()
        ),
        good: false,
        after: from(current),
    }];
    for checkpoint in targets.checkpoints.iter().rev() {
        rows.push(Row {
            target: rollback::Target::Checkpoint(Selector::Id(checkpoint.id.to_string())),
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
            target: rollback::Target::Full,
            words: vec!["--full".to_owned()],
            label: "undo the entire run".to_owned(),
            good: false,
            after: "The run starts fresh from iteration 1; its history stays.".to_owned(),
        });
    }
    rows
}

/// Whether an attempt's checkpoint says no more of it than its place.
fn is_unnamed(checkpoint: &Checkpoint) -> bool {
    checkpoint.description == format!("After iteration {}", checkpoint.after_iteration)
}

/// What matters most first: a narrow terminal cuts the rest.
pub(super) fn label(
    talk: &Talk<'_>,
    checkpoint: &Checkpoint,
    targets: &rollback::Targets,
) -> String {
    let initial = targets.initial.as_ref() == Some(&checkpoint.id);
    let (number, seq) = (checkpoint.after_iteration, checkpoint.seq);
    let verdict = checkpoint.verdict.as_str();
    let time = time_of_day(checkpoint.created_at, talk.context.clock.now());
    let commit = checkpoint
        .branch_commit
        .as_ref()
        .unwrap_or(&checkpoint.commit);
    let over = targets
        .superseded
        .contains(&checkpoint.id)
        .then_some("rolled back".to_owned());
    let pin = checkpoint.pinned.then_some("pinned".to_owned());
    // What the row says anyway has no room.
    let is_said = match checkpoint.trigger.as_str() {
        trigger::INITIAL => true,
        trigger::ATTEMPT => is_unnamed(checkpoint),
        _ => false,
    };
    let description = (!is_said).then(|| talk.ui.description(checkpoint));
    let damaged = checkpoint.damaged.then_some("damaged".to_owned());
    let what = damaged
        .into_iter()
        .chain(over)
        .chain(pin)
        .chain(description)
        .collect::<Vec<_>>()
        .join(", ");
    let place = if initial {
        "before the run".to_owned()
    } else {
        format!("after iteration {number}")
    };
    let commit = commit.short();
    format!("{place:<18} {verdict:<10} {time}  {commit}  @{seq:<3} {what}")
}

/// Asks which one; `words` is the command, of which the checkpoint is the missing word.
pub(crate) fn choose_checkpoint(context: &Context, ui: &Ui, words: &[&str]) -> Result<Selector> {
    let targets = all(context)?;
    let ui = &ui.knowing(context);
    let talk = Talk::begin(context, ui)?;
    let id = pick(&talk, &targets, &mut 0)?;
    talk.say_all(&same_as(&with(words, id.as_str(), &[])));
    Ok(Selector::Id(id.into()))
}

/// Asks which one, and whether what would happen may; `flags` are those that were given already.
pub(crate) fn choose_restore(
    context: &Context,
    ui: &Ui,
    how: How,
    flags: &[String],
    plan: &dyn Fn(&Context, &Selector, How) -> Result<rollback::Restore>,
) -> Result<(Selector, How)> {
    let targets = all(context)?;
    let ui = &ui.knowing(context);
    let talk = Talk::begin(context, ui)?;
    let mut at = 0;
    loop {
        let id = pick(&talk, &targets, &mut at)?;
        let selector = Selector::Id(id.to_string());
        let plan = |context: &Context, how| plan(context, &selector, how);
        let Some(how) = confirm(&talk, how, &plan, ANOTHER)? else {
            continue;
        };
        let flags: Vec<String> = flags.iter().cloned().chain(how.words()).collect();
        talk.say_all(&same_as(&with(
            &["checkpoint", "restore"],
            id.as_str(),
            &flags,
        )));
        return Ok((selector, how));
    }
}

fn with(words: &[&str], id: &str, flags: &[String]) -> Vec<String> {
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain([id.to_owned()]).chain(flags.to_vec()).collect()
}

/// Newest first.
fn all(context: &Context) -> Result<rollback::Targets> {
    let mut targets = rollback::targets(context)?;
    targets.checkpoints.reverse();
    require_some(&targets)?;
    Ok(targets)
}

fn require_some(targets: &rollback::Targets) -> Result<()> {
    if !targets.checkpoints.is_empty() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::NoCheckpoint, "No checkpoint available");
    Err(error.hint(Hint::recover(["checkpoint", "create"])))
}

fn pick(talk: &Talk<'_>, targets: &rollback::Targets, at: &mut usize) -> Result<CheckpointId> {
    let checkpoints = &targets.checkpoints;
    let labels: Vec<String> = checkpoints
        .iter()
        .map(|checkpoint| talk.ui.shown(&label(talk, checkpoint, targets)))
        .collect();
    talk.say("Which checkpoint?");
    loop {
        let help = "arrows or j/k, d what changed since, p as a patch, Enter, q leaves";
        match List::new(talk, &labels, &['d', 'p'], help, *at).pick()? {
            Picked::Item(picked) => {
                *at = picked;
                return Ok(checkpoints[picked].id.clone());
            }
            Picked::Asked(what, picked) => {
                *at = picked;
                preview(talk, &checkpoints[picked], what == 'p')?;
            }
        }
    }
}

/// What differs between a checkpoint and the work tree, as much as the terminal has room for beside the list.
fn preview(talk: &Talk<'_>, checkpoint: &Checkpoint, patch: bool) -> Result<()> {
    let room = size().1.saturating_sub(4).max(4);
    let settled = inspect::load_recovered(talk.context)?;
    let Some(checkpoint) = settled.checkpoint(&checkpoint.id) else {
        talk.say("It is gone.");
        return Ok(());
    };
    let difference = inspect::diff(talk.context, checkpoint, None, &[], patch)?;
    talk.say("");
    talk.say(&format!("From @{} to the work tree:", checkpoint.seq));
    let lines: Vec<String> = match &difference.patch {
        Some(patch) => patch
            .lines()
            .map(|line| escape(&line.replace('\t', "    ")))
            .collect(),
        None => difference
            .changes
            .iter()
            .map(|change| {
                let lines = match (change.added, change.deleted) {
                    (Some(added), Some(deleted)) => format!(" +{added} -{deleted}"),
                    _ => String::new(),
                };
                format!(
                    "{} {}{lines}",
                    change.kind.as_str(),
                    escape(&change.path.to_lossy())
                )
            })
            .collect(),
    };
    for line in lines.iter().take(room) {
        talk.say(&format!("  {line}"));
    }
    if lines.is_empty() {
        talk.say("  No differences.");
    }
    if lines.len() > room {
        let flag = if patch { " --patch" } else { "" };
        talk.say(&format!(
            "  and {} lines more: recover checkpoint diff {}{flag}",
            lines.len() - room,
            checkpoint.id
        ));
    }
    talk.say("Any key goes back to the list.");
    talk.any_key()
}

/// This many paths of a kind are named.
const NAMED: usize = 6;

/// The key that goes back to the list of targets, where there is one.
const ANOTHER: &str = "b another one, ";

/// What would be done, and how.
type Plan<'a> = &'a dyn Fn(&Context, How) -> Result<rollback::Restore>;

/// Shows what `plan` would do and asks, with `back` among the answers; `None` where another target is wanted.
fn confirm(talk: &Talk<'_>, mut how: How, plan: Plan<'_>, back: &str) -> Result<Option<How>> {
    let rehearsal = talk.context.rehearsal()?;
    loop {
        match plan(&rehearsal, how) {
            Ok(restore) if !restore.changed => {
                talk.say_all(unchanged_text(&restore.result).trim_end());
                return Ok(None);
            }
            Ok(restore) => {
                talk.say("");
                talk.title("What will happen:");
                for line in changes_text(talk.ui, &restore, true).lines() {
                    talk.ask(&format!("- {line}"));
                }
                talk.ask(
                    "First everything is saved in a safety checkpoint: recover undo restores it",
                );
                talk.say("");
                talk.ask(&format!(
                    "Continue? Enter or y yes, {back}q leaves everything as it is"
                ));
                return match talk.confirmed('y', &['b', 'y', 'n', 'q'])? {
                    'y' => Ok(Some(how)),
                    'b' => Ok(None),
                    _ => Err(nothing_changed(130)),
                };
            }
            Err(error) => match settle(talk, how, &error, back)? {
                Some(settled) => how = settled,
                None => return Ok(None),
            },
        }
    }
}

/// Asks about what is in the way; `None` where another target is wanted.
fn settle(talk: &Talk<'_>, how: How, error: &Error, back: &str) -> Result<Option<How>> {
    talk.say("");
    talk.ask(&format!("This needs a decision: {}", error.message));
    for reason in error.paths.iter().take(NAMED) {
        talk.say(&format!(
            "  {}: {}",
            escape(&reason.path.to_lossy()),
            escape(&reason.reason)
        ));
    }
    if error.paths.len() > NAMED {
        talk.say(&format!("  and {} more", error.paths.len() - NAMED));
    }
    let edits = |edits| How { edits, ..how };
    let commits = |commits| How {
        commits: Some(commits),
        ..how
    };
    let (question, answers) = match error.kind {
        ErrorKind::HandEdits => (
            "k keep them, d discard them (recover undo brings them back), ",
            vec![('k', edits(Edits::Keep)), ('d', edits(Edits::Discard))],
        ),
        ErrorKind::Blocked => {
            let best_effort = true;
            (
                "e everything else, those stay as they are, ",
                vec![('e', How { best_effort, ..how })],
            )
        }
        ErrorKind::HeadMoved => (
            "k only the files (HEAD stays), d HEAD goes back (the commits stay reachable), r a new commit on top reverts it, ",
            vec![
                ('k', commits(rollback::Commits::Keep)),
                ('d', commits(rollback::Commits::Drop)),
                ('r', commits(rollback::Commits::Revert)),
            ],
        ),
        _ => {
            if let Some(hint) = error.hint.clone() {
                talk.say_all(&format!("hint: {}", talk.context.line(hint)));
            }
            return Ok(None);
        }
    };
    talk.ask(&format!("{question}{back}q quit"));
    let mut wanted: Vec<char> = answers.iter().map(|(key, _)| *key).collect();
    wanted.extend(['b', 'q']);
    match talk.one_of(&wanted)? {
        'b' => Ok(None),
        key => match answers.into_iter().find(|(answer, _)| *answer == key) {
            Some((_, how)) => Ok(Some(how)),
            None => Err(nothing_changed(130)),
        },
    }
}
