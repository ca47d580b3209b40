//! Makes and stores the report that an attempt's end calls for.

use std::path::PathBuf;

use crate::durable::Sync;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, Result};
use crate::engine::base::runs;
use crate::engine::record::attempt_record::Ended;
use crate::engine::record::liveness;
use crate::engine::record::run_settings::loops_of;
use crate::git::tree::{Objects, changes};
use crate::model::decision::Action;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::policy::path_filter::Selection;
use crate::policy::redact::redact;
use crate::policy::report::{AttemptChanges, Report, Source, Span, Stuck, markdown, report, spans};
use crate::store::views::attempt_history_of;

use super::budgets::status_of;
use super::night::{night, outlook};
use super::preconditions::reconsider;

/// The name of the report beside a run's logs.
const FILE: &str = "report.md";

pub(in crate::engine) fn make(
    context: &Context,
    state: &State,
    run: &Run,
    subtask: Option<&str>,
) -> Result<Report> {
    let mut run = run.clone();
    reconsider(context, &mut run);
    let run = &run;
    let events = context.store().events_of(&run.key)?;
    let now = context.clock.now();
    let stuck = attempt_history_of(state, run)
        .stuck_subtasks
        .into_iter()
        .map(|stuck| Stuck {
            subtask_id: stuck.subtask_id.to_owned(),
            reason: stuck.reason.to_owned(),
            escalated_at: stuck.escalated_at,
            attempt_count: stuck.attempt_count,
        });
    let night = night(context, state, run);
    Ok(report(&Source {
        state,
        run,
        events: &events,
        retry: &status_of(context, state, run),
        loops: &loops_of(context, run),
        stuck: &stuck.collect::<Vec<_>>(),
        night: night.as_ref(),
        outlook: outlook(context, state, run, night.as_ref()),
        unfinished: liveness::unfinished_operation(context)?.as_deref(),
        changes: &changed(context, state, &spans(state, &events)),
        subtask,
        command: &|words| context.hint_about(run, words).to_string(),
        now,
    }))
}

/// What attempts changed. A checkpoint that cannot be read is no reason for having no report.
fn changed(context: &Context, state: &State, spans: &[Span]) -> Vec<AttemptChanges> {
    let mut all = Vec::with_capacity(spans.len());
    for span in spans {
        match compare(context, state, span) {
            Ok(Some(changes)) => all.push(changes),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the report does not know what an attempt changed");
            }
        }
    }
    all
}

fn compare(context: &Context, state: &State, span: &Span) -> Result<Option<AttemptChanges>> {
    let (Some(from), Some(to)) = (state.checkpoint(&span.from), state.checkpoint(&span.to)) else {
        return Ok(None);
    };
    let repo = context.repo()?;
    let (before, after) = (
        repo.load_checkpoint(&from.commit)?,
        repo.load_checkpoint(&to.commit)?,
    );
    let changes = changes(
        Objects::stored(repo),
        before.view(),
        after.view(),
        &Selection::all(),
    )?;
    Ok(Some(AttemptChanges {
        attempt: span.attempt,
        changes,
    }))
}

/// Keeps the report where a person is to hear of how an attempt ended.
pub(crate) fn after(context: &Context, key: &RunKey, ended: Ended) -> Ended {
    let called_for = ended
        .end
        .decision
        .as_ref()
        .is_some_and(|decision| decision.has(Action::Escalate));
    let report = if called_for { keep(context, key) } else { None };
    Ended { report, ..ended }
}

/// Keeps the report beside the run's logs and says where. Whatever goes wrong with it changes nothing but that.
pub(crate) fn keep(context: &Context, key: &RunKey) -> Option<PathBuf> {
    let kept = try_keep(context, key);
    kept.inspect_err(|error| tracing::warn!(%error, run = %key, "the report was not written"))
        .ok()
}

fn try_keep(context: &Context, key: &RunKey) -> Result<PathBuf> {
    let state = context.load()?.state;
    let run = runs::named(&state, &key.run_id, Some(&key.phase), Some(&key.lane))?;
    let text = markdown(&make(context, &state, run, None)?);
    let text = redact(&text);
    let folder = context.store().run_dir(key);
    let path = folder.join(FILE);
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
    let root = context.store().root();
    root.create_dir_all(&folder).map_err(failed)?;
    root.reap(&folder);
    root.write(&path, text.as_bytes(), Sync::All)
        .map_err(failed)?;
    Ok(path)
}
