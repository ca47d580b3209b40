//! What is recorded of a run without its secrets is not run.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::model::hint::Hint;
use crate::model::run::{RunKey, RunSpec};
use crate::policy::checkpoint_events::{MASKED, still_masked};

/// What of a run is only read: it can do without a secret.
const TEXTS: [&str; 2] = ["prompt", "approach"];
/// Where a run's checks are recorded.
const CHECKS: [&str; 2] = ["feedback", "configured"];

/// Refuses (2) to drive a run of which something that is run lacks a secret.
pub(super) fn require(context: &Context, key: &RunKey, spec: &RunSpec) -> Result<()> {
    let (texts, lacking): (Vec<String>, Vec<String>) = still_masked(spec)
        .into_iter()
        .partition(|field| TEXTS.contains(&&**field));
    for text in texts {
        context.warn(format!(
            "the {text} of run {key} {MASKED}: it goes on without"
        ));
    }
    refuse(key, &lacking)
}

/// Refuses (2) to judge anything by checks that lack a secret.
pub(super) fn require_checks(key: &RunKey, spec: &RunSpec) -> Result<()> {
    let lacking: Vec<String> = still_masked(spec)
        .into_iter()
        .filter(|field| CHECKS.contains(&&**field))
        .collect();
    refuse(key, &lacking)
}

fn refuse(key: &RunKey, lacking: &[String]) -> Result<()> {
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
