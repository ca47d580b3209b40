//! Commands that cannot be started, found out before anything is paid for (S15).

use std::path::Path;

use crate::agent;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::run_settings::{folder_of, loops_of, shell_of};
use crate::model::feedback::FeedbackResult;
use crate::model::hint::Hint;
use crate::model::path::FolderId;
use crate::model::run::{Run, RunSpec};
use crate::policy::program::first_program;
use crate::policy::text::misspelt;
use crate::process::{SpawnError, find_program, names_beside};

/// Refuses (2) to begin with a command that cannot be started, with the nearest name that could be; `argv` is the command
/// and starts in `dir`.
pub(crate) fn require_command(context: &Context, argv: &[String], dir: &FolderId) -> Result<()> {
    let folder = folder_of(context, dir);
    let Some(problem) = problem_of(context, argv, &folder) else {
        return Ok(());
    };
    let error = Error::new(
        ErrorKind::Usage,
        format!("cannot start the command: {}", problem.text()),
    );
    Err(match problem.near.zip(argv.first()) {
        Some((near, program)) if *program == problem.program => {
            error.hint(context.rerun_with(program, &near))
        }
        _ if agent::detect(Some(&problem.program), None, b"").is_some() => {
            error.hint(Hint::recover(["agents"]))
        }
        _ => error,
    })
}

/// Refuses (2) a bound on cost or tokens that the command's records can never reach: it would look like one and be none.
/// What nobody knows of a command beforehand may still come.
pub(super) fn require_reachable_bounds(context: &Context, spec: &RunSpec) -> Result<()> {
    let retry = &context.settings().retry;
    let kind = agent::detect(Some(&spec.command.join(" ")), spec.agent.as_deref(), b"");
    let (who, tells_cost, tells_tokens) = match kind {
        Some(kind) => (kind.as_str(), kind.tells_cost(), kind.tells_tokens()),
        None => ("a command without an agent's records", false, false),
    };
    let is_known = kind.is_some() || spec.agent.as_deref() == Some("none");
    let bounds = [
        (
            "max_cost_usd",
            "cost",
            retry.max_cost_usd.is_some() && !tells_cost,
        ),
        (
            "max_tokens",
            "tokens",
            retry.max_tokens.is_some() && !tells_tokens,
        ),
    ];
    let Some((key, what, _)) = bounds
        .into_iter()
        .find(|(.., unreachable)| *unreachable && is_known)
    else {
        return Ok(());
    };
    let message = format!("[retry] {key} can never be reached: {who} reports no {what}");
    Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["config", "--origins"])))
}

/// Says which of the other commands that come with a run cannot be started: they may come to be while it runs.
pub(super) fn warn_of_others(context: &Context, spec: &RunSpec) {
    let until = spec
        .until
        .as_ref()
        .map(|line| ("--until", shell_argv(context, spec, line), &spec.until_dir));
    let fallback = (!spec.fallback.is_empty())
        .then(|| ("--fallback", spec.fallback.clone(), &spec.fallback_dir));
    for (name, argv, dir) in until.into_iter().chain(fallback) {
        if let Some(problem) = problem_of(context, &argv, &folder_of(context, dir)) {
            context.warn(format!(
                "{name} cannot be started as it is: {}",
                problem.text()
            ));
        }
    }
}

/// The checks of a run that could not be started now, as far as that can be known without starting them, and why.
pub(crate) fn missing_checks(context: &Context, run: &Run) -> Vec<(String, String)> {
    let missing = loops_of(context, run).into_iter().filter_map(|one| {
        let argv = shell_argv(context, &run.spec, &one.command);
        let problem = problem_of(context, &argv, &folder_of(context, &one.dir))?;
        Some((one.name, problem.text()))
    });
    missing.collect()
}

/// Refuses (2) another attempt where a check could not be started after the last one, and still cannot.
pub(crate) fn require_checks(context: &Context, run: &Run) -> Result<()> {
    let before: Vec<&String> = last_missing(run)
        .filter(|_| run.attempts().next().is_some())
        .collect();
    let still = missing_checks(context, run)
        .into_iter()
        .find(|(name, _)| before.contains(&name));
    let Some((name, why)) = still else {
        return Ok(());
    };
    let message = format!(
        "the check '{name}' could not be started after the last attempt and still cannot: {why}; another attempt would be \
         spent for nothing: mend it, or give another with --feedback {name}=CMD"
    );
    Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["status"]).run(&run.key)))
}

/// What a person reads of a check that cannot be started.
pub(super) fn told(name: &str, why: &str) -> String {
    format!(
        "the check '{name}' cannot be started: {why}; where that is still so after an attempt, the run stops"
    )
}

/// The checks that could not be started when they were last run.
pub(super) fn last_missing(run: &Run) -> impl Iterator<Item = &String> {
    let latest = run
        .attempts()
        .rev()
        .map(|(_, attempt)| &attempt.feedback_results)
        .find(|results| !results.is_empty());
    let results = latest.or(run.baseline.as_ref()).into_iter().flatten();
    results
        .filter(|(_, result): &(&String, &FeedbackResult)| result.missing)
        .map(|(name, _)| name)
}

/// Why a command cannot be started.
pub(crate) struct Problem {
    /// What was looked for.
    program: String,
    error: SpawnError,
    /// What may be meant.
    near: Option<String>,
}

impl Problem {
    /// In one line.
    pub(crate) fn text(&self) -> String {
        let near = self
            .near
            .as_ref()
            .map(|near| format!("; did you mean '{near}'?"))
            .unwrap_or_default();
        format!("{}{near}", self.error.message)
    }
}

/// What is wrong with a command that starts in `folder`; a line for the configured shell is read as far as it goes.
pub(crate) fn problem_of(context: &Context, argv: &[String], folder: &Path) -> Option<Problem> {
    let path = context.env("PATH").map(std::ffi::OsString::from);
    let look = |program: &str| {
        let error = find_program(program, folder, path.as_deref()).err()?;
        // What lies in the folder is started by its path.
        let here = (!program.contains('/')).then(|| format!("./{program}"));
        let here = here.filter(|here| find_program(here, folder, None).is_ok());
        let names = names_beside(program, folder, path.as_deref());
        let near =
            here.or_else(|| misspelt(program, names.iter().map(String::as_str)).map(str::to_owned));
        Some(Problem {
            program: program.to_owned(),
            error,
            near,
        })
    };
    // A folder that is gone is made before the command starts: what is relative to it is not there.
    let program = argv.first()?;
    let line = match argv {
        [shell, flag, line] if *shell == context.settings().runner.shell && flag == "-c" => {
            first_program(line)
        }
        _ => None,
    };
    look(program).or_else(|| look(&line?))
}

fn shell_argv(context: &Context, spec: &RunSpec, line: &str) -> Vec<String> {
    vec![shell_of(context, spec), "-c".to_owned(), line.to_owned()]
}
