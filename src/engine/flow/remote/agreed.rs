//! What came from another machine starts nothing before the user agreed to it.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::model::hint::join;
use crate::model::run::{Run, RunKey, RunSpec};
use crate::policy::redact::redact;
use crate::policy::remote::sha256;

use super::record::{self, lock, remotes_of};

/// Names what a run starts, so that it is agreed to once.
pub(super) fn print(spec: &RunSpec) -> String {
    let said = (
        &spec.command,
        &spec.feedback,
        &spec.configured,
        &spec.until,
        &spec.fallback,
        &spec.prompt,
        &spec.launch,
        &spec.notify,
    );
    sha256(serde_json::to_string(&said).unwrap_or_default().as_bytes())
}

/// Refuses (13) to start what a run has from another machine and nobody here agreed to.
pub fn require_agreed(context: &Context, run: &Run) -> Result<()> {
    match unagreed(context, run)? {
        Some(remote) if !context.trusts_call() => Err(not_agreed(context, &run.key, &remote, &run.spec)),
        _ => Ok(()),
    }
}

/// The same of what a recorded step starts: it was never shown.
pub fn require_agreed_step(context: &Context, key: &RunKey, boot_id: Option<&str>) -> Result<()> {
    let is_from_elsewhere =
        boot_id.is_none_or(crate::policy::remote::is_elsewhere) && !foreign_on(context, key)?.is_empty();
    if !is_from_elsewhere || context.trusts_call() {
        return Ok(());
    }
    let message =
        format!("a step of run {key} was recorded on another machine; --trust or RECOVER_TRUST=1 runs it here");
    Err(Error::new(ErrorKind::NotTrusted, message).hint(context.rerun(&["--trust"])))
}

/// Whether what a run starts was typed here or agreed to.
pub fn is_agreed(context: &Context, run: &Run) -> bool {
    unagreed(context, run).is_ok_and(|remote| remote.is_none())
}

/// The user typed or agreed to what the run starts from now on.
pub fn note_agreed(context: &Context, run: &Run) -> Result<()> {
    for remote in foreign_on(context, &run.key)? {
        let mut locked = lock(context, &run.key, &remote)?;
        locked.record.trusted = Some(print(&run.spec));
        locked.save(context)?;
    }
    Ok(())
}

/// Refuses what would start what came from there.
pub(super) fn not_agreed(context: &Context, key: &RunKey, remote: &str, spec: &RunSpec) -> Error {
    let mut shown = vec![format!("command {}", join(&spec.command))];
    shown.extend(spec.prompt.as_ref().map(|prompt| format!("prompt {prompt}")));
    let checks = spec.configured.iter().flat_map(|configured| &configured.feedback).chain(&spec.feedback);
    shown.extend(checks.map(|check| format!("check {} = {}", check.name, check.command)));
    shown.extend(spec.until.as_ref().map(|until| format!("until {until}")));
    shown.extend((!spec.fallback.is_empty()).then(|| format!("fallback {}", join(&spec.fallback))));
    shown.extend(spec.notify.as_ref().map(|notify| format!("notify {notify}")));
    let message = format!(
        "run {key} on {remote} would start what came from there: {}; nothing was started. Review it; --trust or \
         RECOVER_TRUST=1 allows it for this run until it changes",
        redact(&shown.join("; "))
    );
    Error::new(ErrorKind::NotTrusted, message).hint(context.rerun(&["--trust"]))
}

/// The remote that what a run starts came from and was not agreed to.
fn unagreed(context: &Context, run: &Run) -> Result<Option<String>> {
    let print = print(&run.spec);
    for remote in foreign_on(context, &run.key)? {
        let trusted = record::load(context, &run.key, &remote)?.and_then(|record| record.trusted);
        if trusted.as_ref() != Some(&print) {
            return Ok(Some(remote));
        }
    }
    Ok(None)
}

/// The remotes that a run was taken in from.
fn foreign_on(context: &Context, key: &RunKey) -> Result<Vec<String>> {
    let mut foreign = Vec::new();
    for remote in remotes_of(context, key) {
        if record::load(context, key, &remote)?.is_some_and(|record| record.is_foreign) {
            foreign.push(remote);
        }
    }
    Ok(foreign)
}
