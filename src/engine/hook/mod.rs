//! What an agent's hook does at a moment of a session (S10, L2–L4).
//! It takes checkpoints before what may change or destroy files, records a turn that failed, and takes a last checkpoint at
//! the end.
//!
//! Every session is a run of its own (`claude-SESSION`), so that sessions side by side do not mix; below a `recover run`,
//! or a loop that names its run, the checkpoints are that run's, and its attempts are left to whoever makes them.

pub(crate) mod call;
pub(crate) mod install;
pub(crate) mod plan;
pub(crate) mod plugin;
pub(crate) mod plugin_status;
pub(crate) mod status;

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::runs::{self, Naming};
use crate::engine::base::{Context, ErrorKind, Result};
use crate::engine::checkpoint::{Created, Options, create, due, record_operation, text_before};
use crate::engine::record::attempt_record::Ending;
use crate::engine::record::select;
use crate::engine::record::storage::Request;
use crate::engine::recovery::lost;
use crate::engine::run::own_loop;
use crate::engine::runs::prune;
use crate::model::agent_record::{AgentError, AgentKind, AgentRecord};
use crate::model::checkpoint::trigger;
use crate::model::failure::{EvidenceSource, FailureEvidence};
use crate::model::hook::{HookEvent, Moment, ToolCall, TurnFailure};
use crate::model::{
    AttemptEnd, AttemptOutcome, CheckKind, Checkpoint, CheckpointType, Decision, Failure,
    HookAgent, Payload, Run, RunId, RunKey, RunStatus,
};
use crate::policy::classify::classify;
use crate::policy::hook::{ToolCallRisk, occasion};
use crate::policy::prompt::restored_text;

/// Said where nothing is captured because the configuration wants nothing captured.
const TURNED_OFF: &str = "checkpoints are turned off: [checkpoint] enabled = false";

/// Whose run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The hook's own: a session's, or one that the settings name.
    Hook,
    /// Another user's, who makes its attempts: the environment names it.
    Others,
}

/// What was done about a moment.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Handled {
    /// Whether a checkpoint was taken.
    #[serde(skip)]
    pub changed: bool,
    /// The run that it belongs to.
    pub run: Option<RunKey>,
    /// The new checkpoint, or the one that holds the same already.
    pub checkpoint: Option<Checkpoint>,
    /// The failure that was recorded.
    pub failure: Option<Failure>,
    /// What was decided about it.
    pub decision: Option<Decision>,
    /// Why nothing was done.
    pub reason: Option<&'static str>,
    /// What the agent hears beside its tool call or prompt: that files went back since it last saw them.
    pub additional_context: Option<AdditionalContext>,
}

/// What a hook adds to the conversation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct AdditionalContext {
    /// The agent's name of the moment.
    #[serde(rename = "hookEventName")]
    pub event: &'static str,
    /// The text.
    #[serde(rename = "additionalContext")]
    pub text: String,
}

impl Handled {
    /// Nothing was done, for this reason.
    fn nothing(reason: &'static str) -> Self {
        Self {
            reason: Some(reason),
            ..Self::default()
        }
    }
}

/// The name of a session's run.
pub fn session_run(agent: HookAgent, session_id: Option<&str>) -> RunId {
    match session_id {
        Some(id) => format!("{}-{id}", agent.as_str()).into(),
        None => agent.as_str().into(),
    }
}

/// How the run is named that a moment belongs to, and whose it is; `naming` is what the flags and the environment say.
fn name(naming: &mut Naming, by_flag: bool, agent: HookAgent, event: &HookEvent) -> Owner {
    if naming.run_id.is_some() {
        return if by_flag { Owner::Hook } else { Owner::Others };
    }
    // git has no sessions: what it does belongs to whatever is under way.
    if agent != HookAgent::Git {
        naming.run_id = Some(session_run(agent, event.session_id.as_deref()));
    }
    Owner::Hook
}

/// Whether a checkpoint is the first of its run and may take its time, because the whole tree is read.
fn is_first(context: &Context) -> bool {
    let first = || {
        let state = context.load()?.state;
        Ok::<bool, crate::engine::base::error::Error>(
            select::find(context, &state)?.is_none_or(|run| state.latest(&run.key).is_none()),
        )
    };
    first().unwrap_or(true)
}

/// A call of a hook, and whose checkpoints it takes.
#[derive(Clone, Copy)]
pub(super) struct Occurrence<'a> {
    pub agent: HookAgent,
    pub owner: Owner,
    pub event: &'a HookEvent,
}

impl Occurrence<'_> {
    /// Whether a run is that of the agent's session.
    fn is_of_session(self, key: &RunKey) -> bool {
        key.run_id == session_run(self.agent, self.event.session_id.as_deref())
    }
}

/// Does what is to be done.
fn handle(context: &Context, call: Occurrence<'_>) -> Result<Handled> {
    context.require_something()?;
    if let Some(context) = at_work(context)? {
        return handle(&context, call);
    }
    let restored = restored(context, call)?;
    let mut handled = at_moment(context, call)?;
    if let Some((key, added)) = restored {
        let payload = Payload::OperationRecorded {
            name: "restore".to_owned(),
            announces_restore: true,
        };
        context.record(&key, vec![payload])?;
        handled.additional_context = Some(added);
    }
    let own = handled.run.as_ref().filter(|key| call.is_of_session(key));
    if let Some(key) = own.filter(|_| call.owner == Owner::Hook) {
        lost::note_caller(context, key);
    }
    Ok(handled)
}

/// What was restored since the agent last worked here, where its program takes that at this moment.
fn restored(
    context: &Context,
    call: Occurrence<'_>,
) -> Result<Option<(RunKey, AdditionalContext)>> {
    let event = match (call.agent, &call.event.moment) {
        (HookAgent::Claude | HookAgent::Codex, Moment::BeforeTool(_)) => "PreToolUse",
        (HookAgent::Claude | HookAgent::Codex, Moment::Prompt) => "UserPromptSubmit",
        (HookAgent::Gemini, Moment::Prompt) => "BeforeAgent",
        _ => return Ok(None),
    };
    let state = context.load()?.state;
    let run = run_of_moment(context, &state)?;
    let restored = run.and_then(|run| Some((&run.key, run.restored.as_ref()?)));
    let changed = restored.filter(|(_, restored)| restored.written + restored.deleted > 0);
    Ok(changed.map(|(key, restored)| {
        let text = restored_text(restored);
        (key.clone(), AdditionalContext { event, text })
    }))
}

fn at_moment(context: &Context, call: Occurrence<'_>) -> Result<Handled> {
    match &call.event.moment {
        Moment::BeforeTool(tool) => before_tool(context, call, tool),
        Moment::Git { hook } => before_git(context, hook),
        Moment::Compacting => at_rest(
            context,
            trigger::PHASE,
            "Before the conversation is shortened",
        ),
        Moment::TurnEnded { .. } => turn_ended(context, call),
        Moment::TurnFailed(failure) => turn_failed(context, call, failure),
        Moment::SessionEnded => session_ended(context, call.owner),
        Moment::Prompt | Moment::Other { .. } => {
            Ok(Handled::nothing("nothing to do about this event"))
        }
    }
}

/// Where several runs fit (lanes of one, sessions side by side), the one that is at work here, else the latest.
fn at_work(context: &Context) -> Result<Option<Context>> {
    let state = context.load()?.state;
    let named = context.naming().run_id.as_ref();
    let is_meant = match named {
        Some(_) => {
            !matches!(select::find(context, &state), Err(error) if error.kind == ErrorKind::Ambiguous)
        }
        None => false,
    };
    if is_meant {
        return Ok(None);
    }
    let is_under_way = |run: &Run| match named {
        Some(id) => run.key.run_id == *id && !run.status.has_ended(),
        None => run.status == RunStatus::InProgress,
    };
    let here = state
        .runs_of(&context.worktree_id())
        .filter(|run| is_under_way(run));
    let run = here.max_by_key(|run| {
        (
            runs::driver(context.store(), run).is_some(),
            run.live.is_some(),
            run.last_seq,
        )
    });
    run.map(|run| context.for_run(&run.key)).transpose()
}

fn before_tool(context: &Context, call: Occurrence<'_>, tool: &ToolCall) -> Result<Handled> {
    let occasion = occasion(tool);
    if occasion == ToolCallRisk::Nothing {
        return Ok(Handled::nothing("the tool only reads"));
    }
    if occasion == ToolCallRisk::Edit
        && let Some(path) = &tool.path
        && is_elsewhere(context, path)
    {
        return Ok(Handled::nothing("the file is not in this work tree"));
    }
    if !context.settings().checkpoint.enabled {
        return Ok(Handled::nothing(TURNED_OFF));
    }
    let state = context.load()?.state;
    let run = run_of_moment(context, &state)?;
    let has_one = run.is_some_and(|run| state.latest(&run.key).is_some());
    let why = occasion.trigger().or_else(|| match run {
        Some(run) if has_one => due(context, &state, &run.key, 1),
        _ => Some(trigger::INTERVAL),
    });
    let Some(why) = why else {
        let Some(run) = run else {
            return Ok(Handled::nothing("there is no run"));
        };
        record_operation(context, &run.key, &tool.name)?;
        return Ok(Handled {
            run: Some(run.key.clone()),
            ..Handled::nothing("no checkpoint is due")
        });
    };
    let request = |why: &str, after_iteration| Request {
        after_iteration,
        ..Request::new(why, text_before(context, tool))
    };
    let first = call.owner == Owner::Hook && !has_one;
    let mut handled = if first {
        take(context, request(trigger::INITIAL, Some(0)))?
    } else {
        Handled::default()
    };
    if !first || !trigger::covers(trigger::INITIAL, why) {
        handled = take(context, request(why, None))?;
    }
    if call.owner == Owner::Hook && call.agent != HookAgent::Git {
        ensure_status(context, &handled, RunStatus::InProgress)?;
    }
    Ok(handled)
}

fn before_git(context: &Context, hook: &str) -> Result<Handled> {
    let (why, description) = match hook {
        "pre-push" => (trigger::EXTERNAL, "Before git push"),
        "pre-rebase" => (trigger::RISKY, "Before git rebase"),
        _ => return Ok(Handled::nothing("nothing to do about this event")),
    };
    if !context.settings().checkpoint.enabled {
        return Ok(Handled::nothing(TURNED_OFF));
    }
    take(context, Request::new(why, description))
}

/// A moment of an open run at which nothing is under way. A session that changed nothing so far has no run.
fn at_rest(context: &Context, why: &'static str, description: &str) -> Result<Handled> {
    let state = context.load()?.state;
    let Some(run) = run_of_moment(context, &state)? else {
        return Ok(Handled::nothing("nothing was done in this session"));
    };
    if !context.settings().checkpoint.enabled {
        return Ok(Handled {
            run: Some(run.key.clone()),
            ..Handled::nothing(TURNED_OFF)
        });
    }
    let request = Request {
        // Retention need not spare it: that is for milestones.
        kind: CheckpointType::Task,
        ..Request::new(why, description)
    };
    take(context, request)
}

/// What the agent wrote is known as its own from here on. The answer is never that it should go on, so that it does not
/// matter here whether a hook made it go on before (`stop_hook_active`).
fn turn_ended(context: &Context, call: Occurrence<'_>) -> Result<Handled> {
    if call.owner == Owner::Others {
        return Ok(Handled::nothing(
            "whoever supervises the run takes its checkpoint",
        ));
    }
    let description = format!("After a turn of {}", call.agent.as_str());
    let handled = at_rest(context, trigger::SESSION, &description)?;
    // A run that the settings name is more than the session: its budgets are not the hook's to give back.
    if let Some(key) = handled.run.as_ref().filter(|key| call.is_of_session(key)) {
        forget_failure(context, key)?;
    }
    Ok(handled)
}

/// A turn that ended well after one that failed: the failure counts no more (L4). Where anything but turns has failed
/// since the counts began, they stay: one turn says nothing about that.
fn forget_failure(context: &Context, key: &RunKey) -> Result<()> {
    let ledger = context.store().lock()?;
    let failed = |run: &Run| run.failure.is_some() && run.live.is_none() && only_turns_failed(run);
    let Some(run) = ledger.state().run(key).filter(|run| failed(run)) else {
        return Ok(());
    };
    let payload = Payload::RunResumed {
        strategy: None,
        iteration: run.current_iteration,
        supersede: false,
        instructions: None,
        error_context: true,
        granted: false,
        restart: true,
    };
    context.record_in(ledger, key, vec![payload]).map(drop)
}

/// Whether what counts against the run's budgets are turns: nobody's process ended and no feedback loop spoke.
fn only_turns_failed(run: &Run) -> bool {
    let attempts = run
        .iterations
        .ended_after(run.reset_seq)
        .map(|(_, attempt)| attempt);
    attempts
        .filter(|attempt| attempt.outcome == Some(AttemptOutcome::Failed))
        .all(|attempt| {
            attempt.exit_code.is_none()
                && attempt.signal.is_none()
                && attempt.log_path.is_none()
                && attempt.feedback_results.is_empty()
        })
}

fn turn_failed(context: &Context, call: Occurrence<'_>, failure: &TurnFailure) -> Result<Handled> {
    let Occurrence { agent, event, .. } = call;
    if call.owner == Owner::Others {
        return Ok(Handled::nothing(
            "whoever supervises the run records its failures",
        ));
    }
    let evidence = FailureEvidence {
        stage: Some(CheckKind::Agent),
        agent: Some(agent.as_str().to_owned()),
        time_zone: context.time_zone(),
        ..Default::default()
    };
    let record = record(agent, event, failure);
    let failure = classify(
        &evidence,
        Some(&record),
        &context.settings().rules,
        context.clock.now(),
    );
    let agent_session = event.session_id.clone();
    let end = AttemptEnd {
        failure: Some(failure),
        agent_session,
        ..AttemptEnd::default()
    };
    let ending = Ending {
        end,
        ..Ending::default()
    };
    let ended = own_loop::finish(context, ending)?;
    Ok(Handled {
        run: Some(ended.run.key.clone()),
        changed: ended.checkpoint.is_some(),
        checkpoint: ended.checkpoint,
        failure: ended.end.failure,
        decision: ended.end.decision,
        ..Handled::default()
    })
}

/// The failure as the agent's own record would have reported it.
fn record(agent: HookAgent, event: &HookEvent, failure: &TurnFailure) -> AgentRecord {
    let kind = AgentKind::from_name(agent.as_str()).unwrap_or(AgentKind::Claude);
    // What the program says of the error may be a status alone, and what it showed the user the reset time.
    let words: Vec<&str> = [&failure.details, &failure.last_message]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let message = if words.is_empty() {
        failure.error.clone().unwrap_or_default()
    } else {
        words.join("\n")
    };
    AgentRecord {
        structured: true,
        final_error: Some(AgentError {
            message,
            code: failure.error.clone(),
            status: None,
            source: EvidenceSource::Stdout,
            line: 1,
        }),
        session_id: event.session_id.clone(),
        final_text: failure.last_message.clone(),
        ..AgentRecord::new(kind)
    }
}

/// The session's last state is kept.
fn session_ended(context: &Context, owner: Owner) -> Result<Handled> {
    if owner == Owner::Others {
        return Ok(Handled::nothing("whoever supervises the run ends it"));
    }
    let handled = at_rest(context, trigger::SESSION, "At the end of the session")?;
    let Some(key) = &handled.run else {
        return Ok(handled);
    };
    let failed = context
        .load()?
        .state
        .run(key)
        .is_some_and(|run| run.failure.is_some());
    if !failed {
        ensure_status(context, &handled, RunStatus::Complete)?;
    }
    prune::tidy_up_due(context);
    Ok(handled)
}

fn ensure_status(context: &Context, handled: &Handled, status: RunStatus) -> Result<()> {
    let Some(key) = &handled.run else {
        return Ok(());
    };
    let differs = |run: &Run| match status {
        RunStatus::InProgress => {
            let rests = matches!(
                run.status,
                RunStatus::Pending | RunStatus::Complete | RunStatus::Paused
            );
            rests && !run.is_being_fixed()
        }
        status => run.status != status,
    };
    if !context.load()?.state.run(key).is_some_and(differs) {
        return Ok(());
    }
    let reason = if status == RunStatus::Complete {
        "the session is over"
    } else {
        "the agent is at work"
    };
    context.record_status(key, status, reason)
}

fn take(context: &Context, request: Request) -> Result<Handled> {
    let options = Options {
        skip_if_unchanged: true,
        publish_incrementally: true,
        ..Options::default()
    };
    let Created {
        changed,
        checkpoint,
    } = create(context, request, options)?;
    let reason = (!changed).then_some("nothing has changed since the latest checkpoint");
    let run = Some(checkpoint.run.clone());
    Ok(Handled {
        run,
        changed,
        checkpoint: Some(checkpoint),
        reason,
        ..Handled::default()
    })
}

/// The run that the moment belongs to, where there is one.
fn run_of_moment<'a>(
    context: &Context,
    state: &'a crate::model::state::State,
) -> Result<Option<&'a Run>> {
    match select::find(context, state) {
        Ok(run) => {
            Ok(run.filter(|run| context.naming().run_id.is_some() || !run.status.has_ended()))
        }
        Err(error) if error.kind == ErrorKind::RunNotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_elsewhere(context: &Context, path: &str) -> bool {
    let path = Path::new(path);
    // A new file's folder may have to be made first.
    let real = path
        .ancestors()
        .find_map(|folder| std::fs::canonicalize(folder).ok());
    path.is_absolute() && real.is_some_and(|real| !real.starts_with(context.worktree()))
}
