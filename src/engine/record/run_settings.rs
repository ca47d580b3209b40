//! What holds for a run: its settings, its feedback loops, and what its commands get to know.

use std::ffi::OsString;

use crate::engine::base::context::Context;
use crate::model::feedback::FeedbackLoop;
use crate::model::run::Run;
use crate::policy::settings::Settings;

/// The settings with the run's own overrides.
pub fn settings_of(context: &Context, run: &Run) -> Settings {
    let mut settings = context.settings().clone();
    if let Some(attempts) = run.spec.attempts {
        settings.retry.override_attempts = Some(attempts);
    }
    settings
}

/// The loops of a run: the configured ones and those it was given, the latter winning where names meet.
pub fn loops_of(context: &Context, run: &Run) -> Vec<FeedbackLoop> {
    let mut loops: Vec<FeedbackLoop> = context.settings().feedback.clone();
    for own in &run.spec.feedback {
        match loops.iter_mut().find(|known| known.name == own.name) {
            Some(known) => *known = own.clone(),
            None => loops.push(own.clone()),
        }
    }
    loops
}

/// What every command of a run gets to know: whose it is, and where the run stands.
pub fn identity(run: &Run, iteration: u32, attempt: Option<u32>) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("RECOVER_RUN_ID".into(), run.key.run_id.clone().into()),
        ("RECOVER_ITERATION".into(), iteration.to_string().into()),
        ("RECOVER_SESSION".into(), run.session.clone().into()),
    ];
    variables.extend(attempt.map(|number| ("RECOVER_ATTEMPT".into(), number.to_string().into())));
    variables
}

/// The file of a loop's log; `which` tells its executions apart.
pub fn log_name(name: &str, which: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{name}{which}.log")
}
