//! Where the next attempt begins and with what: its iteration and its prompt's parts, its files, the ledger's word on it.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::ResumeRequest;
use crate::agent;
use crate::engine::base::clock::millis;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::run_settings::configured_checks;
use crate::engine::recovery;
use crate::engine::restore::request::{Restore, RestoreResult};
use crate::engine::rollback::{refuse_mixed, restore_checkpoint, rollback_target, tell_of_edits};
use crate::engine::run::tasks;
use crate::model::hint::join;
use crate::model::{
    Checkpoint, Hint, Iteration, IterationStatus, Named, Payload, Run, RunSpec, RunStatus, State,
    Strategy,
};
use crate::policy::checkpoint_events::still_masked;
use crate::policy::restore::Edits;

/// How a run is resumed.
pub(super) struct Way<'a> {
    pub context: &'a Context,
    pub state: &'a State,
    pub run: &'a Run,
    pub request: &'a ResumeRequest,
    /// `None` where it starts afresh.
    pub strategy: Option<Strategy>,
}

/// Whether there is something to give up: an iteration that is yet to come, or to come again, is not.
fn was_tried(iteration: &Iteration) -> bool {
    !matches!(
        iteration.status,
        IterationStatus::Pending | IterationStatus::Superseded
    )
}

/// What a resume would do, as its dry run says.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "resume_plan")]
pub(crate) struct Plan {
    /// The iteration that it would go on with; the last one where none is left.
    pub iteration: u32,
    /// Whether none is left, so that nothing would be run.
    #[serde(skip)]
    pub none_left: bool,
    /// Whether the prompt would say how the last attempt ended.
    pub error_context: bool,
    /// What would be run; empty where nothing would be.
    pub command: Vec<String>,
    /// What would become of the files; `null` where they stay.
    #[serde(serialize_with = "only_result")]
    #[schemars(with = "Option<RestoreResult>")]
    pub restore: Option<Restore>,
}

#[expect(clippy::ref_option, reason = "serde asks so")]
fn only_result<S: Serializer>(
    restore: &Option<Restore>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    restore
        .as_ref()
        .map(|restore| &restore.result)
        .serialize(to)
}

impl Way<'_> {
    /// The iteration that an attempt would be made of.
    fn iteration(&self) -> u32 {
        let run = self.run;
        if self.request.restart {
            return 1;
        }
        if let Some(from) = self.request.from_iteration {
            return from;
        }
        if let Some(next) = self.first_added() {
            return next;
        }
        let failed = run.failure.as_ref().and_then(|failure| failure.iteration);
        let at = match run.status {
            // All iterations are through: what was given up is what is left to do.
            RunStatus::Escalated => failed.or_else(|| run.given_up().next()),
            _ => None,
        };
        let at = at.unwrap_or(run.current_iteration);
        // What has not failed is not skipped.
        let is_failed = || failed == Some(at) || run.iterations.get(at).is_some_and(was_tried);
        if self.strategy == Some(Strategy::ContinueNext) && is_failed() {
            run.iteration_after(at)
        } else {
            at
        }
    }

    /// The iteration of the first task that is added, where the run stands at none of its others.
    fn first_added(&self) -> Option<u32> {
        let list = self.request.terms.list.as_ref()?;
        let mut run = self.run.clone();
        if run.has_iterations_left() {
            return None;
        }
        run.spec.tasks = Some(list.clone());
        Some(run.iteration_after(0)).filter(|next| *next <= list.count())
    }

    /// Whether an attempt is granted and prepared, and nothing else is requested now: its files and its prompt stand.
    fn is_prepared(&self) -> bool {
        self.run.granted > 0
            && self.run.resumed_with.is_some()
            && !self.request.restart
            && self.request.words().is_empty()
    }

    /// The run as it would stand after [`Self::prepare`], for a dry run.
    pub(super) fn planned(&self) -> Run {
        let mut run = self.run.clone();
        if !self.is_prepared() {
            run.current_iteration = self.iteration();
            run.next_instructions.clone_from(&self.request.instructions);
            run.next_error_context = self.error_context();
            run.resumed_with = self.strategy;
        }
        run
    }

    /// Plans it, and refuses what the resume itself would. What another machine holds the checkpoints of is not planned in full.
    pub(super) fn plan(&self) -> Result<Plan> {
        let (context, run) = (self.context, self.run);
        let planned = self.planned();
        // What a killed attempt left is in a checkpoint by then, and nobody's edit.
        let recorded = context.load()?.state;
        let was_killed = run.live.is_none()
            && recorded
                .run(&run.key)
                .is_some_and(|recorded| recorded.live.is_some());
        let edits = if was_killed {
            Edits::Discard
        } else {
            Edits::Refuse
        };
        let here = recovery::load_recovered(context)?;
        let is_here = here
            .run(&run.key)
            .is_some_and(|here| here.last_seq >= run.last_seq);
        let restore = if is_here && !self.is_prepared() {
            self.restore_files(edits)?
        } else {
            None
        };
        let next = planned.current_iteration;
        let total = spec_of(run, self.request, next).iterations_total;
        let iteration = total.map_or(next, |total| next.min(total));
        let none_left = iteration < next;
        let (argv, _) = self.request.command_of(run);
        Ok(Plan {
            iteration,
            none_left,
            error_context: planned.next_error_context,
            command: if self.request.prepare_only || none_left {
                Vec::new()
            } else {
                argv.to_vec()
            },
            restore,
        })
    }

    /// Whether the next prompt says how the last attempt ended. One that was only interrupted hears of that, unless an explicit
    /// strategy says that nothing is different.
    fn error_context(&self) -> bool {
        let goes_on = self.request.strategy.is_none()
            && self.strategy == Some(Strategy::RetrySame)
            && self.run.was_interrupted();
        let is_told = matches!(
            self.strategy,
            Some(Strategy::RetryWithContext | Strategy::RollbackAndRetry)
        );
        !self.request.no_error_context && !self.request.restart && (goes_on || is_told)
    }

    /// Files first (that may be refused), then the ledger.
    pub(super) fn prepare(&self, granted: bool) -> Result<()> {
        if !self.is_prepared() {
            self.restore_files(Edits::Refuse)?;
        }
        self.context.record(&self.run.key, self.events(granted))
    }

    /// A fresh start goes back to the initial checkpoint, a rollback to the one that its cause asks for, with these edits. `None`
    /// where no files go back.
    fn restore_files(&self, edits: Edits) -> Result<Option<Restore>> {
        let (context, state, run) = (self.context, self.state, self.run);
        let initial = || state.initial(&run.key).and_then(Named::kept);
        let restore = |target: &Checkpoint, edits: Edits| {
            if edits != Edits::Discard {
                tell_of_edits(context, state, target)?;
            }
            let restored = restore_checkpoint(context, &run.key, target, edits)?;
            if !context.dry_run() {
                refuse_mixed(context, run, target, &restored)?;
            }
            Ok(Some(restored))
        };
        if self.request.restart {
            // Starting fresh is asked for, losing a user's edits is not.
            return initial().map_or(Ok(None), |initial| restore(initial, Edits::Keep));
        }
        if self.strategy != Some(Strategy::RollbackAndRetry) {
            return Ok(None);
        }
        let cause = run.failure.as_ref().map(|failure| failure.cause);
        // Who asks for it takes an initial checkpoint whose checks failed already as well.
        let Some(target) = rollback_target(state, &run.key, cause).or_else(initial) else {
            let message = "No checkpoint available to roll back to";
            return Err(Error::new(ErrorKind::NoCheckpoint, message)
                .hint(Hint::recover(["resume", "--restart"]).run(&run.key)));
        };
        // Whoever added to the list, it is not lost.
        let list = tasks::List::of_added(context, run).filter(|_| !context.dry_run());
        let restored = restore(target, edits)?;
        list.map_or(Ok(()), |list| list.put_back())?;
        Ok(restored)
    }

    /// What is recorded: another command, the iterations that are left behind, and how the run goes on.
    fn events(&self, granted: bool) -> Vec<Payload> {
        let (run, request, strategy) = (self.run, self.request, self.strategy);
        let iteration = self.iteration();
        let mut events = Vec::new();
        let mut spec = spec_of(run, request, iteration);
        if !request.prepare_only && !spec.command.is_empty() {
            spec.configured
                .get_or_insert_with(|| configured_checks(self.context));
        }
        if spec != run.spec || !request.command.is_empty() {
            events.push(Payload::RunSpecChanged {
                changes: run.spec.changes(&spec),
                spec: Box::new(spec),
            });
        }
        if self.is_prepared() {
            return events;
        }
        // What is left behind undone is left behind on request. Of what was given up and rolled back nothing is there to be
        // accepted: it stays for a person.
        let is_gone = |number: &u32| {
            let left = run.iterations.get(*number);
            left.is_some_and(|one| one.status == IterationStatus::Superseded && one.stuck.is_some())
        };
        events.extend(
            (run.current_iteration..iteration)
                // Tasks that wait, or were not their turn, are not left behind.
                .filter(|left| {
                    !is_gone(left) && (run.spec.tasks.is_none() || *left == run.current_iteration)
                })
                .map(|left| Payload::IterationChanged {
                    iteration: left,
                    status: IterationStatus::Skipped,
                    reason: Some("skipped on request: the current state was accepted".to_owned()),
                }),
        );
        events.push(Payload::RunResumed {
            strategy,
            iteration,
            supersede: request.restart || request.from_iteration.is_some(),
            instructions: request.instructions.clone(),
            error_context: self.error_context(),
            granted: granted || (strategy == Some(Strategy::ContinueNext)),
            restart: request.restart,
        });
        events
    }
}

/// What the run executes from now on.
pub(super) fn spec_of(run: &Run, request: &ResumeRequest, iteration: u32) -> RunSpec {
    let mut spec = run.spec.clone();
    if let Some(session) = request.session {
        spec.session = session;
    }
    if let Some(notify) = &request.notify {
        spec.notify = Some(notify.clone());
    }
    let terms = &request.terms;
    if let Some(timeout) = terms.timeout {
        spec.timeout_ms = Some(millis(timeout));
        spec.timeout_typed = true;
    }
    spec.attempts = terms.attempts.or(spec.attempts);
    spec.iterations_total = terms.iterations.or(spec.iterations_total);
    if let Some(list) = &terms.list {
        spec.iterations_total = Some(list.count());
        spec.tasks = Some(list.clone());
    }
    spec.agent = terms.agent.clone().or(spec.agent);
    spec.prompt = terms.prompt.clone().or(spec.prompt);
    for given in &request.feedback {
        spec.feedback.retain(|known| known.name != given.name);
        spec.feedback.push(given.clone());
    }
    if !request.command.is_empty() {
        spec.command.clone_from(&request.command);
        spec.launch.clone_from(&request.launch);
        spec.dir.clone_from(&request.dir);
        if spec.iterations_total.is_none() && spec.until.is_none() {
            spec.iterations_total = Some(iteration.max(1));
        }
    }
    spec.reads_prompt |= spec.prompt.is_none()
        && request.strategy == Some(Strategy::RetryWithContext)
        && agent::detect(Some(&join(&spec.command)), spec.agent.as_deref(), b"").is_none();
    spec.masked = still_masked(&spec);
    spec
}
