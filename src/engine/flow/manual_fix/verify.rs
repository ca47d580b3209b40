//! What the feedback loops say of the work tree as it is.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::flow::fix_session::{Fix, active, changes_since, log_dir, prepare, status};
use crate::engine::flow::project_trust;
use crate::engine::flow::run::{LoopSetting, no_loops, run_loops};
use crate::engine::flow::whole;
use crate::engine::record::run_settings::{identity, loops_of_fix, shell_of};
use crate::engine::record::select;
use crate::engine::recovery::crash;
use crate::model::event::Payload;
use crate::model::failure::Failure;
use crate::model::manifest::ObjectId;
use crate::model::run::RunKey;
use crate::policy::classify::classify;
use crate::process::Show;

use super::recover_unless_dry;

/// What came of running the feedback loops.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    /// The session with its results, and its run.
    pub fix: Fix,
    /// Whether files changed while the loops ran, so that nothing is known of the tree as it is.
    pub outdated: bool,
    /// The tree as it is.
    pub tree: ObjectId,
    /// Why the first loop failed that did.
    pub failure: Option<Failure>,
}

/// Runs the feedback loops. Verified is only the exact tree that was there before and after them.
pub(crate) fn verify(context: &Context, show: Show) -> Result<Fix> {
    recover_unless_dry(context)?;
    let state = crash::load_recovered(context)?;
    let key = select::require(context, &state)?.key.clone();
    if context.dry_run() {
        let run = active(&state, &key)?.run;
        project_trust::require_for_fix(context, &run)?;
        if loops_of_fix(context, &run).is_empty() {
            return Err(no_loops(&key));
        }
        return status(context);
    }
    let judged = judge(context, &key, show)?;
    if judged.outdated {
        tracing::warn!("files changed while the checks ran: verify again");
    }
    Ok(judged.fix)
}

/// Runs the feedback loops for the open session of a run.
pub(super) fn judge(context: &Context, key: &RunKey, show: Show) -> Result<Judged> {
    let state = crash::load_recovered(context)?;
    let fix = active(&state, key)?;
    project_trust::require_for_fix(context, &fix.run)?;
    whole::require_checks(key, &fix.run.spec)?;
    let loops = loops_of_fix(context, &fix.run);
    if loops.is_empty() {
        return Err(no_loops(key));
    }
    let folder = log_dir(context, &fix.session);
    context.create_state_dir(&folder)?;
    let before = prepare(context)?.capture.tree;
    let iteration = fix
        .session
        .issue
        .as_ref()
        .and_then(|failure| failure.iteration);
    let env = identity(
        context,
        &fix.run,
        iteration.unwrap_or(fix.run.current_iteration),
        None,
    );
    let shell = &shell_of(context, &fix.run.spec);
    let setting = LoopSetting {
        env: &env,
        show,
        log_dir: &folder,
        shell,
        root: context.worktree(),
    };
    let report = run_loops(context, &loops, &setting)?;
    if let Some(code) = report.interrupted {
        return Err(Error::new(
            ErrorKind::Interrupted(code),
            "interrupted while the checks ran",
        ));
    }
    let prepared = prepare(context)?;
    let tree = prepared.capture.tree.clone();
    let verified = report.passed() && tree == before;
    let changes = changes_since(context, &state, &fix.session, &prepared)?;
    drop(prepared);
    let (now, rules) = (context.clock.now(), &context.settings().rules);
    let failure = report
        .first_failure
        .as_ref()
        .map(|(_, evidence)| classify(evidence, None, rules, now));
    let ledger = context.store().lock()?;
    active(ledger.state(), key)?;
    let payload = Payload::ManualFixVerified {
        changes,
        results: report.results,
        verified,
        tree: tree.clone(),
    };
    let fix = active(&*context.record_in(ledger, key, vec![payload])?, key)?;
    Ok(Judged {
        fix,
        outdated: tree != before,
        tree,
        failure,
    })
}
