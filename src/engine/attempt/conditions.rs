//! Detects what is true of an attempt beside its outcome: tampered tests, flaky checks, circular fixes.
//! It reads what the attempt left, before anything is decided.

use crate::engine::base::{Context, Result};
use crate::engine::record::attempt_record::Ending;
use crate::engine::record::run_settings::loops_of;
use crate::engine::record::storage::Prepared;
use crate::engine::record::stored::load_both;
use crate::git::tree::Objects;
use crate::model::{
    Action, Attempt, Cause, Checkpoint, Condition, Failure, FailureType, Run, RunKey, State,
};
use crate::policy::changes::{
    ChangedFile, FAILING_BEFORE, FLAKY, Loop, NetLines, Tried, failed_checks, goes_in_circle,
    is_about_the_work, is_test_path, same_failures, tampering,
};
use crate::policy::refused::REFUSED;

/// What was detected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detected {
    /// What holds of the failure too.
    pub of_failure: Vec<Condition>,
    /// What holds of the attempt only: it may have passed in the end.
    pub of_attempt: Vec<Condition>,
    /// What they are about.
    pub notes: Vec<String>,
    /// Whether this is the second fresh session in a row that failed the same way and left the tree as it was.
    pub is_stalled: bool,
    /// Between 0 and 1, spreads the delay before the next attempt.
    pub spread: f64,
}

/// Looks at what an attempt of a run left. What cannot be examined is not found: the attempt is recorded all the same.
pub(crate) fn detect(
    context: &Context,
    state: &State,
    key: &RunKey,
    about: (u32, &str),
    ending: &Ending,
    prepared: Option<&Prepared>,
) -> Detected {
    let mut detected = Detected::default();
    let Some(run) = state.run(key) else {
        return detected;
    };
    let cancelled = ending
        .end
        .failure
        .as_ref()
        .is_some_and(|failure| failure.kind == FailureType::Cancellation);
    if cancelled {
        return detected;
    }
    flaky(ending, &mut detected);
    if !ending.refused.is_empty() {
        let paths = ending.refused.join(", ");
        detected.notes.push(format!("{REFUSED}{paths}"));
        detected.of_failure.push(Condition::Confined);
    }
    baseline(run, ending, &mut detected);
    let Some(prepared) = prepared else {
        return detected;
    };
    let scene = Scene {
        context,
        state,
        run,
        prepared,
    };
    let found = scene.compare(about, ending, &mut detected);
    if let Err(error) = found {
        tracing::warn!(%error, "what the attempt changed could not be compared with earlier attempts");
    }
    detected
}

fn flaky(ending: &Ending, detected: &mut Detected) {
    for (name, _) in ending
        .end
        .feedback_results
        .iter()
        .filter(|(_, result)| result.flaky)
    {
        detected.notes.push(format!("{name}: {FLAKY}"));
        if !detected.of_attempt.contains(&Condition::Flaky) {
            detected.of_attempt.push(Condition::Flaky);
        }
    }
}

fn baseline(run: &Run, ending: &Ending, detected: &mut Detected) {
    if let Some(name) = ending
        .failed_loop
        .as_deref()
        .filter(|name| run.failed_at_baseline(name))
    {
        detected.of_failure.push(Condition::BaselineFailing);
        detected.notes.push(format!("{name}: {FAILING_BEFORE}"));
    }
}

/// An attempt's work tree and what it is compared with.
struct Scene<'a> {
    context: &'a Context,
    state: &'a State,
    run: &'a Run,
    prepared: &'a Prepared,
}

impl Scene<'_> {
    fn compare(&self, about: (u32, &str), ending: &Ending, detected: &mut Detected) -> Result<()> {
        let base = self.base();
        let failure = ending.end.failure.as_ref();
        if failure.is_some_and(|failure| failure.cause == Cause::ToolTimeout)
            && self.changed_files_since_start()
        {
            detected.of_failure.push(Condition::Productive);
        }
        detected.is_stalled = failure.is_some_and(|failure| self.is_stalled(about.1, failure));
        let judged = failure.filter(|failure| is_about_the_work(failure, ending.in_feedback_loop));
        let earlier =
            judged.map(|failure| same_failures(self.run, about.0, about.1, &failure.signature));
        let repeated = earlier.as_ref().is_some_and(|earlier| earlier.len() >= 2);
        let tampers = self.context.settings().checks.tamper;
        let files = match base {
            Some(base) if tampers || repeated => self.since(base)?,
            _ => Vec::new(),
        };
        if tampers {
            self.tampered(&files, detected);
        }
        if let Some(failure) = judged.filter(|_| repeated)
            && self.circles(base, about, ending, failure, &files)?
        {
            detected.of_failure.push(Condition::CircularFix);
        }
        Ok(())
    }

    /// What the attempt's work is measured from: the last good checkpoint, else the oldest one.
    fn base(&self) -> Option<&Checkpoint> {
        let key = &self.run.key;
        // The oldest is the initial one, if there is any.
        self.state
            .last_good(key)
            .or_else(|| self.state.standing(key).next())
    }

    fn since(&self, base: &Checkpoint) -> Result<Vec<ChangedFile>> {
        let capture = &self.prepared.capture;
        if base.tree == capture.tree {
            return Ok(Vec::new());
        }
        let before = self.context.repo()?.load_checkpoint(&base.commit)?;
        Ok(capture
            .objects()
            .changed_files(before.view(), capture.view(), is_test_path)?)
    }

    fn tampered(&self, files: &[ChangedFile], detected: &mut Detected) {
        let loops = loops_of(self.context, self.run);
        let loops: Vec<Loop<'_>> = loops.iter().map(Loop::from).collect();
        let notes = tampering(files, &loops);
        if !notes.is_empty() {
            detected.of_failure.push(Condition::Tampered);
            detected.notes.extend(notes);
        }
    }

    /// Whether the two attempts before, in this order, failed as this one did, and none but the first changed anything.
    fn is_stalled(&self, subtask: &str, failure: &Failure) -> bool {
        let ended = self
            .run
            .iterations
            .attempts_on(subtask)
            .map(|(_, attempt)| attempt);
        let mut before = ended
            .filter(|attempt| attempt.ended_seq > Some(self.run.reset_seq))
            .rev();
        let is_same = |attempt: &Attempt| {
            let same = attempt
                .failure
                .as_ref()
                .is_some_and(|one| (one.cause, one.detail) == (failure.cause, failure.detail));
            let goes_on = attempt
                .decision
                .as_ref()
                .is_some_and(|decision| decision.has(Action::Continue));
            let checkpoint = attempt
                .checkpoint_id
                .as_ref()
                .and_then(|id| self.state.checkpoint(id));
            same && goes_on
                && checkpoint
                    .is_some_and(|checkpoint| checkpoint.tree == self.prepared.capture.tree)
        };
        before.next().is_some_and(is_same) && before.next().is_some_and(is_same)
    }

    /// Whether the work tree is another one than when the attempt began: what is known of it is the last checkpoint taken
    /// of it by then, or restored in it.
    fn changed_files_since_start(&self) -> bool {
        let worktree = self.state.worktrees.get(&self.run.worktree);
        let now = || Some(&worktree?.baseline.first()?.checkpoint_id);
        let began = self
            .run
            .live
            .as_ref()
            .and_then(|live| live.baseline.as_ref());
        let before = began.or_else(now).and_then(|id| self.state.checkpoint(id));
        before.is_some_and(|before| before.tree != self.prepared.capture.tree)
    }

    fn circles(
        &self,
        base: Option<&Checkpoint>,
        about: (u32, &str),
        ending: &Ending,
        failure: &Failure,
        files: &[ChangedFile],
    ) -> Result<bool> {
        let mut earlier = Vec::new();
        for attempt in same_failures(self.run, about.0, about.1, &failure.signature) {
            let checkpoint = attempt
                .checkpoint_id
                .as_ref()
                .and_then(|id| self.state.checkpoint(id));
            let Some(checkpoint) = checkpoint else {
                continue;
            };
            earlier.push(Tried {
                tree: &checkpoint.tree,
                lines: base
                    .map(|base| self.lines_between(base, checkpoint))
                    .transpose()?,
                approach: attempt.approach.as_deref(),
                failed_checks: failed_checks(&attempt.feedback_results),
            });
        }
        let begun = self
            .run
            .iterations
            .get(about.0)
            .and_then(|iteration| iteration.attempts.last());
        let approach = ending
            .end
            .approach
            .as_deref()
            .or_else(|| begun?.approach.as_deref());
        let current = Tried {
            tree: &self.prepared.capture.tree,
            lines: base.map(|_| NetLines::of(files)),
            approach,
            failed_checks: failed_checks(&ending.end.feedback_results),
        };
        Ok(goes_in_circle(
            base.map(|base| &base.tree),
            &earlier,
            &current,
        ))
    }

    fn lines_between(&self, base: &Checkpoint, later: &Checkpoint) -> Result<NetLines> {
        if base.tree == later.tree {
            return Ok(NetLines::default());
        }
        let (before, after) = load_both(self.context, base, later)?;
        let objects = Objects::stored(self.context.repo()?);
        let files = objects.changed_files(before.view(), after.view(), is_test_path)?;
        Ok(NetLines::of(&files))
    }
}
