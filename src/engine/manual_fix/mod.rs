//! A person's fix between two attempts (B8, B9): opened, shown, verified, continued or given up.
//!
//! What the feedback loops say of the work tree as it is.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::liveness::Driving;
use crate::engine::record::run_settings::{folder_of, is_unchecked, loops_of_fix};
use crate::engine::record::storage::Request;
use crate::engine::record::{checkpoint, events, select};
use crate::engine::remote::require_consent_to_drive;
use crate::engine::run::fix_session::{active, changes_since, log_of, new_session, open, prepare};
use crate::engine::run::{DriveOptions, Driven, LoopSetting, drive, no_loops, run_loops};
use crate::engine::trust::{self, agreed};
use crate::engine::{inspect, recovery};
use crate::model::checkpoint::trigger;
use crate::model::failure::Location;
use crate::model::{
    Action, CheckpointId, Failure, Hint, IterationStatus, ManualFixSession, ManualFixStatus,
    ObjectId, Payload, RunKey, RunStatus, State, Strategy, Verdict,
};
use crate::policy::classify::classify;
use crate::policy::prompt::manual_fix_context;
use crate::policy::report::run_state;
use crate::policy::retry::end_of_fix;
use crate::policy::text::plain_text;
use crate::process::Show;
use crate::store::NewEvent;

pub(crate) use crate::engine::run::fix_session::{Fix, log_dir, status};

pub(crate) mod watch;

/// Opens a session for the run that a command works on; the open one where there is one.
pub(crate) fn start(context: &Context) -> Result<Fix> {
    let (state, key) = meant(context)?;
    let run = &run_of(&state, &key)?;
    if run.failure.is_none()
        && !matches!(
            run.status,
            RunStatus::Failed | RunStatus::Escalated | RunStatus::Paused
        )
    {
        let (key, status) = (&run.key, run_state(run));
        let message = format!("run {key} is {status}: there is nothing to fix");
        let hint = Hint::recover(["status"]).run(key);
        return Err(Error::new(ErrorKind::NotFailed, message).hint(hint));
    }
    if context.dry_run() {
        let session = run
            .manual_fix
            .clone()
            .filter(|session| session.status == ManualFixStatus::Active);
        let session = session.unwrap_or_else(|| {
            new_session(run, "fix_new".into(), CheckpointId::default(), context)
        });
        return Ok(Fix {
            session,
            run: run.clone(),
        });
    }
    open(context, &run.key)
}

/// The run that is meant; what a crash left is dealt with before.
fn meant(context: &Context) -> Result<(Arc<State>, RunKey)> {
    if !context.dry_run() {
        recovery::recover(context)?;
    }
    let state = recovery::load_recovered(context)?;
    let key = select::require(context, &state)?.key.clone();
    Ok((state, key))
}

/// What came of going on with a fix.
#[derive(Debug)]
pub(crate) struct Continued {
    /// The session, completed, and its run.
    pub fix: Fix,
    /// What came of the next iterations; `None` where nothing was run.
    pub driven: Option<Driven>,
}

/// Makes the verified fix the iteration's result and a good checkpoint, then goes on with the next iterations.
pub(crate) fn resume_with_fix(
    context: &Context,
    options: &DriveOptions,
    prepare_only: bool,
) -> Result<Continued> {
    let (state, key) = meant(context)?;
    let fix = active(&state, &key)?;
    if !fix.run.spec.command.is_empty() && !prepare_only && !context.dry_run() {
        require_consent_to_drive(context, &key)?;
    }
    let prepared = prepare(context)?;
    let same = fix.session.verified_tree.as_ref() == Some(&prepared.capture.tree);
    if !fix.session.verified || !same {
        if is_unchecked(context, &fix.run) {
            let message = format!("Cannot continue - fix not verified: {}", no_loops(&key));
            return Err(Error::new(ErrorKind::NotVerified, message)
                .hint(Hint::recover(end_of_fix(true)).run(&key)));
        }
        let message = if fix.session.verified {
            "Cannot continue - files changed since the fix was verified"
        } else {
            "Cannot continue - fix not verified"
        };
        return Err(Error::new(ErrorKind::NotVerified, message)
            .hint(Hint::recover(["manual-fix", "verify"]).run(&key)));
    }
    if !fix.run.spec.command.is_empty() && !prepare_only {
        trust::require_to_drive(context, &fix.run)?;
        agreed::require_whole(context, &key, &fix.run.spec)?;
    }
    let changes = changes_since(context, &state, &fix.session, &prepared)?;
    if context.dry_run() {
        return Ok(Continued { fix, driven: None });
    }
    let ledger = context.store().lock()?;
    let session = active(ledger.state(), &key)?.session;
    let iteration = session
        .issue
        .as_ref()
        .and_then(|failure| failure.iteration)
        .unwrap_or(fix.run.current_iteration);
    let request = Request {
        description: "Manual fix".to_owned(),
        trigger: trigger::MANUAL_FIX.to_owned(),
        after_iteration: Some(iteration),
        verdict: Verdict::Passed,
        feedback_results: session.verification_results.clone(),
        ..Request::default()
    };
    let instructions = manual_fix_context(&ManualFixSession {
        detected_changes: changes.clone(),
        ..session
    });
    let next = iteration.saturating_add(1).max(fix.run.current_iteration);
    let payloads = vec![
        Payload::IterationChanged {
            iteration,
            status: IterationStatus::Completed,
            reason: Some("fixed by hand".to_owned()),
        },
        Payload::ManualFixEnded {
            status: ManualFixStatus::Completed,
            changes,
        },
        events::resumed(Strategy::ContinueNext, next, Some(instructions)),
    ];
    let following: Vec<_> = payloads
        .into_iter()
        .map(|payload| NewEvent::about(&key, payload))
        .collect();
    let good = checkpoint::record_with(context, &ledger, &key, &prepared, request, |_| {
        following.clone()
    })?;
    let events = std::iter::once(checkpoint::event(&good))
        .chain(following)
        .collect();
    events::append(ledger, &key, good.created_at, events)?;
    drop(prepared);

    let runs = !context
        .load()?
        .state
        .run(&key)
        .is_none_or(|run| run.spec.command.is_empty());
    let driven = if runs && !prepare_only {
        Some(drive(context, &Driving::take(context, &key)?, options)?)
    } else {
        None
    };
    let run = run_of(&context.load()?.state, &key)?;
    let session = run.manual_fix.clone().unwrap_or(fix.session);
    Ok(Continued {
        fix: Fix { session, run },
        driven,
    })
}

/// Gives the session up; files stay as they are.
pub(crate) fn abort(context: &Context) -> Result<Fix> {
    let (state, key) = meant(context)?;
    if context.dry_run() {
        return active(&state, &key);
    }
    let ledger = context.store().lock()?;
    let fix = active(ledger.state(), &key)?;
    let decision = fix.run.decision.as_ref();
    let status = if decision.is_some_and(|decision| decision.has(Action::Escalate)) {
        RunStatus::Escalated
    } else {
        RunStatus::Failed
    };
    let changes = fix.session.detected_changes;
    let payloads = vec![
        Payload::ManualFixEnded {
            status: ManualFixStatus::Aborted,
            changes,
        },
        Payload::RunStatusChanged {
            status,
            reason: "the manual fix was given up".to_owned(),
        },
    ];
    let run = run_of(&*context.record_in(ledger, &key, payloads)?, &key)?;
    let session = run.manual_fix.clone().unwrap_or(ManualFixSession {
        status: ManualFixStatus::Aborted,
        ..active(&state, &key)?.session
    });
    Ok(Fix { session, run })
}

/// The first place in a file of the work tree that the check names which failed last, else the failure that the session
/// began with.
pub(crate) fn first_place(context: &Context, session: &ManualFixSession) -> Option<Location> {
    let failed = session
        .verification_results
        .iter()
        .filter(|(_, result)| !result.passed);
    let root = context.store().root();
    // A log that is gone names nothing.
    let logs = failed.filter_map(|(name, _)| root.read(&log_of(context, session, name)).ok());
    let logs: Vec<String> = logs.map(|log| plain_text(&log)).collect();
    let texts = logs
        .iter()
        .map(String::as_str)
        .chain(session.issue.iter().flat_map(inspect::texts_of));
    inspect::place_in(context.worktree(), &folders(context, session), texts)
}

/// What the paths in the output of the checks are relative to: the folders that those start in, and the work tree's root.
fn folders(context: &Context, session: &ManualFixSession) -> Vec<PathBuf> {
    let state = context
        .load()
        .map(|loaded| loaded.state)
        .unwrap_or_default();
    let runs = state
        .runs
        .iter()
        .filter(|run| run.key.run_id == session.run_id);
    let dirs = runs
        .flat_map(|run| loops_of_fix(context, run))
        .map(|one| folder_of(context, &one.dir));
    let mut folders: Vec<PathBuf> = dirs.chain([context.worktree().to_owned()]).collect();
    folders.sort_unstable();
    folders.dedup();
    // The nearest first.
    folders.reverse();
    folders
}

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
    let (state, key) = meant(context)?;
    if context.dry_run() {
        let run = active(&state, &key)?.run;
        trust::require_for_fix(context, &run)?;
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
pub(crate) fn judge(context: &Context, key: &RunKey, show: Show) -> Result<Judged> {
    let state = recovery::load_recovered(context)?;
    let fix = active(&state, key)?;
    trust::require_for_fix(context, &fix.run)?;
    agreed::require_whole_checks(key, &fix.run.spec)?;
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
    let iteration = iteration.unwrap_or(fix.run.current_iteration);
    let setting = LoopSetting {
        show,
        ..LoopSetting::new(context, &fix.run, iteration, None, &folder)
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
