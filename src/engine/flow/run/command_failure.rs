//! Whether a run's command failed, before any check is run, and why.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::checkpoint;
use crate::model::agent_record::{AgentKind, AgentRecord};
use crate::model::failure::{Cause, Failure, FailureEvidence, FailureType};
use crate::model::feedback::CheckKind;
use crate::model::manifest::Change;
use crate::model::run::RunKey;
use crate::model::spec::Launch;
use crate::model::time::Timestamp;
use crate::policy::classify::{classify, lone_error};
use crate::policy::path_filter::Selection;
use crate::policy::settings::UserRule;

/// What aider says where it makes git ignore its notes.
const IGNORES: &[u8] = b"Added .aider* to .gitignore";

/// What is known of the command's end.
pub(super) struct CommandEvidence<'a> {
    /// Its output and exit.
    pub evidence: &'a FailureEvidence,
    /// What its agent recorded.
    pub record: Option<&'a AgentRecord>,
    /// The command.
    pub argv: &'a [String],
}

impl CommandEvidence<'_> {
    /// Why it failed; `None` where it is for the checks to judge.
    pub(super) fn failure(
        &self,
        context: &Context,
        key: &RunKey,
        launch: Option<&Launch>,
    ) -> Option<Failure> {
        let (evidence, record) = (self.evidence, self.record);
        let says_error =
            record.is_some_and(|record| record.final_error.is_some() && !record.is_success);
        if evidence.exit_code == Some(0)
            && !evidence.timed_out
            && !evidence.cancelled
            && !says_error
        {
            let is_agent = evidence.stage == Some(CheckKind::Agent);
            return is_agent
                .then(|| hidden_failure(context, key, (evidence, record), self.argv))
                .flatten();
        }
        let now = context.clock.now();
        let failure = classify(evidence, record, &context.settings().rules, now);
        let untold = failure.cause == Cause::Unknown && failure.detail.is_none();
        let by_code = launch
            .filter(|_| untold)
            .and_then(|launch| by_exit_code(evidence, launch, now));
        Some(by_code.unwrap_or(failure))
    }
}

/// What went wrong with an agent that says it ended well and changed nothing: its API's error is all that it printed last,
/// or it was not permitted what it wanted to do.
fn hidden_failure(
    context: &Context,
    key: &RunKey,
    (evidence, record): (&FailureEvidence, Option<&AgentRecord>),
    argv: &[String],
) -> Option<Failure> {
    let now = context.clock.now();
    let structured = record.filter(|record| record.structured);
    let denied = structured.filter(|record| !record.permission_denials.is_empty());
    let said = structured.map_or(Some(evidence.stdout.as_slice()), |record| {
        record.final_text.as_deref().map(str::as_bytes)
    });
    let failure = match (denied, said.and_then(lone_error)) {
        (Some(record), _) => {
            let record = AgentRecord {
                is_success: false,
                final_error: None,
                ..record.clone()
            };
            let mut failure = classify(evidence, Some(&record), &[], now);
            failure.message = format!(
                "{}; {}",
                failure.message,
                way_to_permit(context, record.kind, argv)
            );
            failure
        }
        (None, Some(error)) => {
            let evidence = FailureEvidence {
                message: Some(error),
                ..evidence.clone()
            };
            let record = AgentRecord {
                structured: false,
                is_success: false,
                ..AgentRecord::new(AgentKind::Aider)
            };
            let failure = classify(&evidence, Some(&record), &context.settings().rules, now);
            let is_known = failure.kind == FailureType::AgentError
                && (failure.cause, failure.detail) != (Cause::Unknown, None);
            is_known.then_some(failure)?
        }
        (None, None) => return None,
    };
    left_unchanged(context, key, evidence).then_some(failure)
}

/// The flag that was missing.
fn way_to_permit(context: &Context, kind: AgentKind, argv: &[String]) -> String {
    let profile = context
        .config()
        .agents()
        .ok()
        .and_then(|mut all| all.remove(kind.as_str()))
        .unwrap_or_default();
    let has =
        |args: &[String]| !args.is_empty() && argv.windows(args.len()).any(|some| some == args);
    let (edit, all) = (profile.edit_args.join(" "), profile.yolo_args.join(" "));
    if edit.is_empty() || has(&profile.edit_args) {
        return format!("{all} (recover run --yolo) permits everything");
    }
    format!("{edit} permits to edit, {all} everything")
}

/// Whether the work tree is what it was when the attempt began, as far as that is known, but for what the agent's program
/// keeps there for itself.
fn left_unchanged(context: &Context, key: &RunKey, evidence: &FailureEvidence) -> bool {
    let look = || -> Result<bool> {
        let state = context.load()?.state;
        let began = state
            .run(key)
            .and_then(|run| run.live.as_ref()?.baseline.as_ref());
        let Some(before) = began.and_then(|id| state.checkpoint(id)) else {
            return Ok(false);
        };
        let now = checkpoint::prepare(context)?.capture;
        if now.tree == before.tree {
            return Ok(true);
        }
        let before = context.repo()?.load_checkpoint(&before.commit)?;
        let changes = now
            .objects()
            .changes(before.view(), now.view(), &Selection::all())?;
        Ok(changes.iter().all(|change| is_own(change, evidence)))
    };
    look().unwrap_or_else(|error| {
        tracing::warn!(%error, "whether the attempt changed anything is not known");
        false
    })
}

/// Whether a change is one of aider's notes, or the line in `.gitignore` that it says it added for them.
fn is_own(change: &Change, evidence: &FailureEvidence) -> bool {
    let path = change.path.to_lossy();
    let one_line = (change.added, change.deleted) == (Some(1), Some(0));
    let said = || {
        evidence
            .stdout
            .windows(IGNORES.len())
            .any(|words| words == IGNORES)
    };
    path.starts_with(".aider.") || (path == ".gitignore" && one_line && said())
}

/// What the profile says that an exit code means, where nothing else decided.
fn by_exit_code(evidence: &FailureEvidence, launch: &Launch, now: Timestamp) -> Option<Failure> {
    let code = evidence.exit_code?.to_string();
    let cause = *launch.exit_codes.get(&code)?;
    let message = format!("{} ended with status {code}", launch.agent);
    let rule = UserRule {
        id: format!("agent.{}.exit-{code}", launch.agent),
        pattern: regex::escape(&message),
        source: None,
        stage: None,
        kind: None,
        cause,
        retryable: None,
    };
    let evidence = FailureEvidence {
        message: Some(message),
        ..evidence.clone()
    };
    Some(classify(&evidence, None, &[rule], now))
}
