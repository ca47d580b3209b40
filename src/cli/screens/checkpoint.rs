//! Choosing a checkpoint, with a look at what has changed since.

use crate::engine::flow::inspect::diff;
use crate::engine::flow::rollback::{Targets, targets};
use crate::engine::recovery::crash;
use crate::engine::restore::request::Restore;
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::id::CheckpointId;
use crate::model::selector::Selector;

use super::super::ui::{Ui, escape};
use super::confirm::{How, confirm};
use super::list::{List, Picked};
use super::rollback::label;
use super::{Talk, same_as, size};

/// Asks which one; `words` is the command, of which the checkpoint is the missing word.
pub(crate) fn choose(context: &Context, ui: &Ui, words: &[&str]) -> Result<Selector> {
    let targets = all(context)?;
    let ui = &ui.knowing(context);
    let talk = Talk::begin(context, ui)?;
    let id = pick(&talk, &targets, &mut 0)?;
    talk.say_all(&same_as(&with(words, id.as_str(), &[])));
    Ok(Selector::Id(id.into()))
}

/// Asks which one, and whether what would happen may; `flags` are those that were given already.
pub(crate) fn restore(
    context: &Context,
    ui: &Ui,
    how: How,
    flags: &[String],
    plan: &dyn Fn(&Context, &Selector, How) -> Result<Restore>,
) -> Result<(Selector, How)> {
    let targets = all(context)?;
    let ui = &ui.knowing(context);
    let talk = Talk::begin(context, ui)?;
    let mut at = 0;
    loop {
        let id = pick(&talk, &targets, &mut at)?;
        let selector = Selector::Id(id.to_string());
        let Some(how) = confirm(&talk, how, &|context, how| plan(context, &selector, how))? else {
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
fn all(context: &Context) -> Result<Targets> {
    let mut targets = targets(context)?;
    targets.checkpoints.reverse();
    if targets.checkpoints.is_empty() {
        return Err(
            Error::new(ErrorKind::NoCheckpoint, "No checkpoint available")
                .hint(Hint::recover(["checkpoint", "create"])),
        );
    }
    Ok(targets)
}

fn pick(talk: &Talk<'_>, targets: &Targets, at: &mut usize) -> Result<CheckpointId> {
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
    let settled = crash::load_recovered(talk.context)?;
    let Some(checkpoint) = settled.checkpoint(&checkpoint.id) else {
        talk.say("It is gone.");
        return Ok(());
    };
    let difference = diff(talk.context, checkpoint, None, &[], patch)?;
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
