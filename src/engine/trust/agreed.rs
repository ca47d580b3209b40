//! Recorded commands that are not run: what came from another machine before the user agreed to it, and what lacks its secrets.
//!
//! That it came from there is noted in a file of its own: what is known of a remote goes when the run leaves that, this stays.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::durable::Sync;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::model::hint::join;
use crate::model::{Hint, Run, RunKey, RunSpec};
use crate::policy::checkpoint_events::{MASKED, still_masked};
use crate::policy::remote::{is_elsewhere, sha256};
use crate::policy::secrets::redact;
use crate::policy::settings::RetrySettings;

/// Where what a run starts came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TakenIn {
    /// The remote.
    remote: String,
    /// What of it was agreed to.
    trusted: Option<String>,
}

impl TakenIn {
    fn place(context: &Context, key: &RunKey) -> PathBuf {
        context.store().run_dir(key).join("taken-in.json")
    }

    /// `None` where everything that the run starts was typed here.
    fn load(context: &Context, key: &RunKey) -> Result<Option<Self>> {
        let path = Self::place(context, key);
        let bytes = context.store().root().read_present(&path);
        let Some(bytes) = bytes.with_context(|| format!("cannot read {}", path.display()))? else {
            return Ok(None);
        };
        // One that cannot be read vouches for nothing.
        Ok(Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::warn!(%error, "{} cannot be read: nothing of the run is agreed to", path.display());
            Self { remote: "another machine".to_owned(), trusted: None }
        })))
    }

    fn save(&self, context: &Context, key: &RunKey) -> Result<()> {
        let path = Self::place(context, key);
        let text = serde_json::to_vec(self)
            .with_context(|| format!("cannot encode {}", path.display()))?;
        let written = context.store().root().replace(&path, &text, Sync::All);
        Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
    }
}

/// Names what a run starts, where, and how often, so that it is agreed to once.
pub(crate) fn print(spec: &RunSpec) -> String {
    sha256(serde_json::to_string(spec).unwrap_or_default().as_bytes())
}

/// What of a run from elsewhere was agreed to.
pub(crate) fn trusted(context: &Context, key: &RunKey) -> Result<Option<String>> {
    Ok(TakenIn::load(context, key)?.and_then(|taken_in| taken_in.trusted))
}

/// Notes that what a run starts comes from a remote; `own` is the run as it was here before, if it was.
pub(crate) fn note_taken_in(
    context: &Context,
    key: &RunKey,
    remote: &str,
    own: Option<&Run>,
) -> Result<()> {
    if TakenIn::load(context, key)?.is_some() {
        return Ok(());
    }
    // What was typed here needs nobody's word, should it come back.
    let trusted = own.map(|own| print(&own.spec));
    TakenIn {
        remote: remote.to_owned(),
        trusted,
    }
    .save(context, key)
}

/// Refuses (13) to start what a run has from another machine and nobody here agreed to.
pub(crate) fn require_agreed(context: &Context, run: &Run) -> Result<()> {
    match unagreed(context, run)? {
        Some(remote) if !context.trusts_call() => {
            Err(not_agreed(context, &run.key, &remote, &run.spec))
        }
        _ => Ok(()),
    }
}

/// The same of what a recorded step starts, by the boot that it was recorded in: it was never shown.
pub(crate) fn require_agreed_step(
    context: &Context,
    key: &RunKey,
    boot_id: Option<&str>,
) -> Result<()> {
    if !boot_id.is_some_and(is_elsewhere) || context.trusts_call() {
        return Ok(());
    }
    let message = format!(
        "a step of run {key} was recorded on another machine; --trust or RECOVER_TRUST=1 runs it here"
    );
    Err(Error::new(ErrorKind::NotTrusted, message).hint(context.rerun(&["--trust"])))
}

/// Whether what a run starts was typed here or agreed to.
pub(crate) fn is_agreed(context: &Context, run: &Run) -> bool {
    unagreed(context, run).is_ok_and(|remote| remote.is_none())
}

/// The user typed or agreed to what the run starts from now on.
pub(crate) fn note_agreed(context: &Context, run: &Run) -> Result<()> {
    let Some(taken_in) = TakenIn::load(context, &run.key)? else {
        return Ok(());
    };
    let print = print(&run.spec);
    if taken_in.trusted.as_ref() == Some(&print) {
        return Ok(());
    }
    TakenIn {
        trusted: Some(print),
        ..taken_in
    }
    .save(context, &run.key)
}

/// The budgets that are always shown.
const BUDGETS: [&str; 3] = ["max_attempts", "task_max_attempts", "session_max_attempts"];

/// A run's recorded budgets, as `[retry]` names them: how many attempts, and what is not as by default.
fn budgets(policy: &Value) -> String {
    let default = serde_json::to_value(RetrySettings::default()).unwrap_or_default();
    let mut shown = Vec::new();
    different(policy, &default, "", &mut shown);
    format!("budgets {}", shown.join(", "))
}

/// Lists the values that are not the default ones, each with its name below `name`.
fn different(value: &Value, default: &Value, name: &str, shown: &mut Vec<String>) {
    if let Value::Object(fields) = value {
        for (field, value) in fields {
            let name = if name.is_empty() {
                field.clone()
            } else {
                format!("{name}.{field}")
            };
            different(value, &default[field], &name, shown);
        }
    } else if value != default || BUDGETS.contains(&name) {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        shown.push(format!("{name} = {text}"));
    }
}

/// Refuses what would start what came from there.
pub(crate) fn not_agreed(context: &Context, key: &RunKey, remote: &str, spec: &RunSpec) -> Error {
    let mut shown = vec![format!("command {}", join(&spec.command))];
    shown.extend((!spec.dir.is_empty()).then(|| format!("in {}", spec.dir)));
    shown.extend(spec.attempts.map(|attempts| format!("attempts {attempts}")));
    shown.extend(spec.policy.iter().map(budgets));
    shown.extend(spec.prompt.iter().map(|prompt| format!("prompt {prompt}")));
    let tasks = spec.tasks.iter().flat_map(|list| &list.tasks);
    shown.extend(
        tasks
            .clone()
            .map(|task| format!("task {}: {}", task.id, task.prompt)),
    );
    let checks = spec
        .configured
        .iter()
        .flat_map(|configured| &configured.feedback)
        .chain(&spec.feedback)
        .chain(tasks.flat_map(|task| &task.feedback));
    shown.extend(checks.map(|check| format!("check {} = {}", check.name, check.command)));
    shown.extend(spec.until.as_ref().map(|until| format!("until {until}")));
    shown.extend((!spec.fallback.is_empty()).then(|| format!("fallback {}", join(&spec.fallback))));
    shown.extend(spec.notify.iter().map(|notify| format!("notify {notify}")));
    let message = format!(
        "run {key} on {remote} would start what came from there: {}; nothing was started. Review it; --trust or \
         RECOVER_TRUST=1 allows it for this run until it changes",
        redact(&shown.join("; "))
    );
    Error::new(ErrorKind::NotTrusted, message).hint(context.rerun(&["--trust"]))
}

/// The remote that what a run starts came from, where that was not agreed to.
fn unagreed(context: &Context, run: &Run) -> Result<Option<String>> {
    let taken_in = TakenIn::load(context, &run.key)?;
    let is_new = |taken_in: &TakenIn| taken_in.trusted.as_ref() != Some(&print(&run.spec));
    Ok(taken_in.filter(is_new).map(|taken_in| taken_in.remote))
}

/// What of a run is only read: it can do without a secret.
const TEXTS: [&str; 2] = ["prompt", "approach"];
/// Where a run's checks are recorded.
const CHECKS: [&str; 3] = ["feedback", "configured", "tasks"];

/// Refuses (2) to drive a run of which something that is run lacks a secret.
pub(crate) fn require_whole(context: &Context, key: &RunKey, spec: &RunSpec) -> Result<()> {
    let (texts, lacking): (Vec<String>, Vec<String>) = still_masked(spec)
        .into_iter()
        .partition(|field| TEXTS.contains(&&**field));
    for text in texts {
        context.warn(format!(
            "the {text} of run {key} {MASKED}: the run continues without it"
        ));
    }
    refuse_masked(key, &lacking)
}

/// Refuses (2) to judge anything by checks that lack a secret.
pub(crate) fn require_whole_checks(key: &RunKey, spec: &RunSpec) -> Result<()> {
    let lacking: Vec<String> = still_masked(spec)
        .into_iter()
        .filter(|field| CHECKS.contains(&&**field))
        .collect();
    refuse_masked(key, &lacking)
}

fn refuse_masked(key: &RunKey, lacking: &[String]) -> Result<()> {
    let way = match lacking.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return Ok(()),
        ["command"] => "give it again after --",
        ["feedback"] => "give it again with --feedback NAME=CMD",
        ["notify"] => "give it again with --notify CMD",
        _ => "begin a new run",
    };
    let message = format!("the {} of run {key} {MASKED}: {way}", lacking.join(", "));
    Err(Error::new(ErrorKind::Usage, message)
        .hint(Hint::recover(["resume", "--prepare-only"]).run(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_place_or_budget_is_another_thing_to_agree_to() {
        let spec = RunSpec {
            command: vec!["make".to_owned()],
            attempts: Some(3),
            ..RunSpec::default()
        };
        let others = [
            RunSpec {
                dir: "sub".into(),
                ..spec.clone()
            },
            RunSpec {
                attempts: Some(300),
                ..spec.clone()
            },
            RunSpec {
                policy: Some(serde_json::json!({"max_attempts": 300})),
                ..spec.clone()
            },
            RunSpec {
                until_dir: "sub".into(),
                ..spec.clone()
            },
        ];
        assert!(others.iter().all(|other| print(other) != print(&spec)));
        assert_eq!(print(&spec.clone()), print(&spec));
    }

    #[test]
    fn budgets_are_shown_as_they_are_configured() {
        let policy = |change: &dyn Fn(&mut Value)| {
            let mut policy = serde_json::to_value(RetrySettings::default()).unwrap();
            change(&mut policy);
            budgets(&policy)
        };
        let attempts = "max_attempts = 3, task_max_attempts = 6, session_max_attempts = 21";
        assert_eq!(policy(&|_| {}), format!("budgets {attempts}"));
        let wider = policy(&|policy| {
            policy["max_wall_time"] = "9h".into();
            policy["causes"]["RATE_LIMITED"]["max_attempts"] = 99.into();
        });
        let more = "max_wall_time = 9h, causes.RATE_LIMITED.max_attempts = 99";
        assert_eq!(wider, format!("budgets {attempts}, {more}"));
    }
}
