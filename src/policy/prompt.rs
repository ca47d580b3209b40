//! The prompt of an attempt (B6, B9): the base prompt, what went wrong before, lessons (A5), and what a person adds.

use std::fmt::Write;

use itertools::Itertools as _;

use super::changes::tampering_text;
use super::refused::REFUSED;
use super::secrets::redact;
use super::text::{Text, cut, excerpt};
use crate::model::checkpoint::Checkpoints;
use crate::model::failure::CauseDetail;
use crate::model::run::RestoredFiles;
use crate::model::{
    Attempt, AttemptOutcome, Condition, Failure, FailureType, Iteration, ManualFixSession,
    RepoPath, Run, Strategy,
};

/// Paths left by a rollback that a message names at most.
const LEFT: usize = 20;
/// Files of an attempt that are named at most.
const FILES: usize = 8;

/// What goes into an attempt's prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptParts<'a> {
    /// The run, as it stands.
    pub run: &'a Run,
    /// Those of all runs: what each attempt changed.
    pub checkpoints: &'a Checkpoints,
    /// What the attempt is booked on.
    pub subtask: &'a str,
    /// How the run was resumed.
    pub strategy: Option<Strategy>,
    /// Whether the error of the previous attempt goes in.
    pub error_context: bool,
    /// What a person adds.
    pub instructions: Option<&'a str>,
    /// Bytes that the error of the previous attempt may take; more of it is cut to the first error and the last lines.
    pub limit: usize,
}

/// The prompt; `None` when there is nothing at all to say.
pub(crate) fn prompt(parts: &PromptParts<'_>) -> Option<String> {
    let mut sections = Vec::new();
    if let Some(base) = parts.run.terms().prompt.as_deref() {
        sections.push(base.trim_end().to_owned());
    }
    // What failed in an iteration that was given up is no error of this one; that of a later one, which the run went back
    // from, is.
    let own = |failure: &&Failure| {
        failure
            .iteration
            .is_none_or(|number| number >= parts.run.current_iteration)
    };
    if let Some(text) = given_up(parts) {
        sections.push(text);
    }
    let failure = parts.run.failure.as_ref().filter(own);
    let failure = match failure.filter(|_| parts.error_context) {
        Some(failure) if is_session_lost(failure) => before_the_loss(parts),
        failure => failure.map(|failure| (failure, parts.run.was_interrupted())),
    };
    let failed = match failure {
        Some((failure, true)) => {
            let mut text = format!(
                "You were interrupted; go on.\n\nWhat interrupted you was not your doing: {}",
                failure.message
            );
            // What it was at when its time was up.
            let details = failure.details.as_deref().map_or("", str::trim);
            if failure.kind == FailureType::Timeout && !details.is_empty() {
                text = format!("{text}\n\n{details}");
                cut(&mut text, parts.limit);
            }
            sections.push(format!("## Interrupted\n\n{}", redact(&text)));
            // A conversation that goes on knows what it was about.
            parts
                .run
                .agent_session
                .is_none()
                .then(|| before_the_interruption(parts))
                .flatten()
        }
        Some((failure, false)) => Some(failure),
        None => None,
    };
    if let Some(failure) = failed {
        sections.push(format!(
            "## Previous Attempt Failed\n\n{}",
            failed_context(parts, failure)
        ));
    }
    if let Some(text) = weakened(parts.run).filter(|_| parts.error_context) {
        sections.push(format!("## Checks Were Weakened\n\n{}", redact(&text)));
    }
    if let Some(paths) = refused(parts.run) {
        sections.push(format!(
            "## Writes Were Refused\n\nOnly the project, temporary files and your own program's may be written: do without {}",
            redact(paths)
        ));
    }
    match parts.instructions.map_or("", str::trim) {
        "" => {}
        text if text.starts_with("## ") => sections.push(text.to_owned()),
        text => sections.push(format!("## Additional Instructions\n\n{text}")),
    }
    let restored = parts.run.restored.as_ref();
    if let Some(text) = restored.and_then(left_text) {
        sections.insert(0, text);
    }
    let is_new = |restored: &&RestoredFiles| {
        parts.run.agent_session.is_some() && restored.written + restored.deleted > 0
    };
    if let Some(restored) = restored.filter(is_new).filter(|_| !sections.is_empty()) {
        let text = format!("## Files Were Restored\n\n{}", restored_text(restored));
        sections.insert(0, text);
    }
    (!sections.is_empty()).then(|| sections.join("\n\n") + "\n")
}

fn is_session_lost(failure: &Failure) -> bool {
    failure.detail == Some(CauseDetail::SessionNotFound)
}

/// How the last attempts at the subtask failed, the latest first, and whether each was interrupted.
fn failures<'a>(parts: &PromptParts<'a>) -> impl Iterator<Item = (&'a Failure, bool)> {
    let ended = parts.run.iterations.attempts_on(parts.subtask).rev();
    ended.map_while(|(_, attempt)| Some((attempt.failure.as_ref()?, attempt.was_interrupted())))
}

/// What the attempt that did not find its session was to go on from, and whether that was an interruption.
fn before_the_loss<'a>(parts: &PromptParts<'a>) -> Option<(&'a Failure, bool)> {
    // What it waited for has no attempt of its own.
    let waits = parts.run.waits(parts.run.current_iteration);
    let waited_for = waits.and_then(|waits| waits.failure.as_deref());
    failures(parts)
        .find(|(failure, _)| !is_session_lost(failure))
        .or_else(|| Some((waited_for?, true)))
}

/// What the attempt that was interrupted was to mend.
fn before_the_interruption<'a>(parts: &PromptParts<'a>) -> Option<&'a Failure> {
    let mut failures = failures(parts);
    failures.find_map(|(failure, interrupted)| (!interrupted).then_some(failure))
}

/// The error of an attempt with the hints about it, within the prompt's limit.
fn failed_context(parts: &PromptParts<'_>, failure: &Failure) -> String {
    let mut context = error_context(failure, parts.strategy);
    let hints = hints(parts)
        .map(|hints| format!("\n\n{hints}"))
        .unwrap_or_default();
    let checks = failing_checks(parts, failure).unwrap_or_default();
    // The end of the error says more than that of the hints, which may take half of the room.
    let others = checks.len() + hints.len();
    let room = parts.limit.saturating_sub(others).max(parts.limit / 2);
    if context.len() > room {
        context = excerpt(&Text::new(context.as_bytes()), Some(1), room);
    }
    context = checks + &context + &hints;
    context = redact(&context).into_owned();
    cut(&mut context, parts.limit);
    context
}

/// The commands of the checks that failed with this failure.
fn failing_checks(parts: &PromptParts<'_>, failure: &Failure) -> Option<String> {
    let mut attempts = parts.run.iterations.attempts_on(parts.subtask).rev();
    let is_of = |attempt: &&Attempt| attempt.failure.as_ref() == Some(failure);
    let terms = parts.run.terms();
    let failed = attempts
        .find_map(|(_, attempt)| Some(attempt).filter(is_of))?
        .feedback_results
        .iter()
        .filter(|(_, result)| !result.passed)
        .filter_map(|(name, _)| terms.feedback.iter().find(|check| check.name == *name));
    let lines = failed
        .map(|check| format!("- {}: {}", check.name, check.command))
        .join("\n");
    (!lines.is_empty()).then(|| format!("Failing checks:\n{lines}\n\n"))
}

/// What was left right before this iteration: an agent that meets traces of it, or needs it, knows what became of it.
fn given_up(parts: &PromptParts<'_>) -> Option<String> {
    let run = parts.run;
    let last = (1..run.current_iteration).rev();
    let left = last.zip(run.given_up().rev());
    let left = left.take_while(|(expected, number)| expected == number);
    let mut texts: Vec<String> = left
        .filter_map(|(_, number)| run.iterations.get(number))
        .map(|iteration| given_up_text(iteration, parts.checkpoints))
        .collect();
    texts.reverse();
    (!texts.is_empty()).then(|| {
        let text = format!(
            "## Given Up\n\n{}\nIt is left to a person: do not go on with it unless this task needs it.",
            texts.join("\n")
        );
        redact(&text).into_owned()
    })
}

fn given_up_text(iteration: &Iteration, checkpoints: &Checkpoints) -> String {
    let attempts = iteration.attempts.len();
    let plural = if attempts == 1 { "" } else { "s" };
    let mut text = format!(
        "Iteration {} was given up after {attempts} attempt{plural}.\n",
        iteration.number
    );
    let Some(last) = iteration.attempts.last() else {
        return text;
    };
    if let Some(approach) = &last.approach {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Tried: {approach}");
    }
    if let Some(files) = files_of(last, checkpoints) {
        let _ = writeln!(text, "Files: {files}");
    }
    if let Some(failure) = &last.failure {
        let _ = writeln!(text, "Error: {}", failure.message);
    }
    text
}

/// What an attempt changed, by name.
fn files_of(attempt: &Attempt, checkpoints: &Checkpoints) -> Option<String> {
    let checkpoint = checkpoints.by_id(attempt.checkpoint_id.as_ref()?)?;
    let all = &checkpoint.changed_paths;
    let totals = checkpoint.changes;
    let changed = totals.modified + totals.created + totals.deleted;
    named_files(all, u64::max(changed, all.len() as u64))
}

/// The first of `all` files, by name.
fn named_files(paths: &[RepoPath], all: u64) -> Option<String> {
    let named: Vec<String> = paths.iter().take(FILES).map(RepoPath::to_string).collect();
    let more = match all.saturating_sub(named.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| named.join(", ") + &more)
}

/// For an agent that remembers its files as they were before.
pub(crate) fn restored_text(restored: &RestoredFiles) -> String {
    let (written, deleted) = (restored.written, restored.deleted);
    let by = if restored.of_run {
        "recover"
    } else {
        "a person"
    };
    let files = named_files(&restored.paths, written + deleted)
        .map(|files| format!(" ({files})"))
        .unwrap_or_default();
    let text = format!(
        "The work tree went back to checkpoint {} at {}, restored by {by}: files written: {written}, \
         deleted: {deleted}{files}. What was changed since that checkpoint is not there any more: read the files again before you \
         go on.",
        restored.checkpoint_id, restored.at
    );
    redact(&text).into_owned()
}

/// What of an attempt that was rolled back is still there.
fn left_text(restored: &RestoredFiles) -> Option<String> {
    let names = restored.kept.iter().take(LEFT);
    let names = names.map(|kept| format!("- {}", kept.path)).join("\n");
    let more = restored.kept.len().saturating_sub(LEFT);
    let more = match more {
        0 => String::new(),
        more => format!("\n- and {more} more"),
    };
    (!names.is_empty()).then(|| {
        let text = format!(
            "## Files Of An Earlier Attempt\n\nThese paths are left of an attempt that was rolled back, and could not be \
             removed or replaced. Do not build on them:\n{names}{more}"
        );
        redact(&text).into_owned()
    })
}

fn error_context(failure: &Failure, strategy: Option<Strategy>) -> String {
    let details = failure
        .details
        .as_deref()
        .map(str::trim)
        .filter(|details| !details.is_empty());
    match (strategy, details) {
        (Some(Strategy::RollbackAndRetry), Some(details)) => {
            format!(
                "Previous attempt failed: {}\n\nIts changes were rolled back.\n\n{details}",
                failure.message
            )
        }
        (Some(Strategy::RollbackAndRetry), None) => {
            format!("Previous attempt failed: {}", failure.message)
        }
        (_, Some(details)) if details.contains(failure.message.as_str()) => details.to_owned(),
        (_, Some(details)) => format!("{}\n\n{details}", failure.message),
        (_, None) => failure.message.clone(),
    }
}

/// What a manual fix adds to the next prompt (B9).
pub(crate) fn manual_fix_context(session: &ManualFixSession) -> String {
    let issue = session
        .issue
        .as_ref()
        .map_or("(none recorded)", |failure| failure.message.as_str());
    let changes: Vec<String> = session
        .detected_changes
        .iter()
        .map(|change| format!("- {}: {}", change.kind.as_str(), change.path))
        .collect();
    let changes = if changes.is_empty() {
        "- (none)".to_owned()
    } else {
        changes.join("\n")
    };
    let text = format!(
        "## Manual Fix Applied\n\nThe user manually fixed the following issue:\n{issue}\n\nFiles changed:\n{changes}\n\n\
         Continue building on these changes."
    );
    // What a person adds to a prompt stays as it is, and so would this.
    redact(&text).into_owned()
}

/// The last attempts only: more would push the task itself out of sight.
const SHOWN: usize = 5;

/// The text for the next prompt; `None` before the first failure of this subtask.
fn hints(parts: &PromptParts<'_>) -> Option<String> {
    let earlier: Vec<&Attempt> = parts
        .run
        .iterations
        .attempts_on(parts.subtask)
        .map(|(_, attempt)| attempt)
        .filter(|attempt| {
            attempt.outcome == Some(AttemptOutcome::Failed) && !attempt.was_interrupted()
        })
        .collect();
    if earlier.is_empty() {
        return None;
    }
    let mut text = format!("Previous attempts: {}\n", earlier.len());
    for attempt in &earlier[earlier.len().saturating_sub(SHOWN)..] {
        let approach = attempt
            .approach
            .as_deref()
            .unwrap_or("(approach not recorded)");
        let error = attempt
            .failure
            .as_ref()
            .map_or("(no message)", |failure| failure.message.as_str());
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\nAttempt {}: {approach} - FAILED\n  Error: {error}\n",
            attempt.number
        );
        if let Some(files) = files_of(attempt, parts.checkpoints) {
            let _ = writeln!(text, "  Files: {files}");
        }
        for remark in remarks(attempt) {
            let _ = writeln!(text, "  Note: {remark}");
        }
    }
    text.push_str("\nIMPORTANT: Try a DIFFERENT approach than previous attempts\n");
    text.push_str("Consider: different library, different pattern, or simpler implementation");
    Some(text)
}

/// What the conditions of an attempt mean for the next one.
fn remarks(attempt: &Attempt) -> Vec<String> {
    let say = |condition: &Condition| match condition {
        Condition::Tampered => Some(format!(
            "tests were weakened ({}); restore them",
            tampering_text(&attempt.notes, "; ")
        )),
        Condition::BaselineFailing => {
            Some("this check was already failing before the first attempt".to_owned())
        }
        Condition::RepositoryRemoved => Some(
            "it removed the git repository, and everything it did was taken back; leave .git alone"
                .to_owned(),
        ),
        Condition::Stalled => Some(
            "it was ended because nothing happened any more; do not wait for input or a server"
                .to_owned(),
        ),
        Condition::Productive => Some("it was changing files when its time was up".to_owned()),
        _ => None,
    };
    attempt.conditions.iter().filter_map(say).collect()
}

/// What the last attempt was refused to write.
fn refused(run: &Run) -> Option<&str> {
    let last = run.iterations.last_ended()?;
    last.notes
        .iter()
        .find_map(|note| note.strip_prefix(REFUSED))
}

/// What to say after an attempt that passed and weakened its tests; `None` after any other.
pub(crate) fn weakened(run: &Run) -> Option<String> {
    let last = run.iterations.last_ended()?;
    let passed = last.outcome == Some(AttemptOutcome::Passed);
    if !passed || !last.conditions.contains(&Condition::Tampered) {
        return None;
    }
    let mut text = "The previous iteration passed, but its tests were weakened:\n".to_owned();
    for note in &last.notes {
        let _ = writeln!(text, "- {note}");
    }
    text.push_str("\nRestore what was taken away, unless the task asks for it.");
    Some(text)
}
