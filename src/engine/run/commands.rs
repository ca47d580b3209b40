//! Commands that cannot be started, found out before anything is paid for (S15); and whether a run's command failed, and why.

use std::path::Path;

use crate::agent;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint;
use crate::engine::record::run_settings::{folder_of, loops_of, shell_of};
use crate::model::agent_record::{AgentKind, AgentRecord};
use crate::model::failure::FailureEvidence;
use crate::model::spec::Launch;
use crate::model::{
    Cause, Change, CheckKind, Failure, FailureType, FeedbackResult, FolderId, Hint, Run, RunKey,
    RunSpec, Timestamp, hint,
};
use crate::policy::classify::{classify, lone_error};
use crate::policy::program::first_program;
use crate::policy::restore::Selection;
use crate::policy::settings::UserRule;
use crate::policy::text::misspelt;
use crate::process::{Program, SpawnError};

/// Refuses (2) to begin with a command that cannot be started, with the nearest name that could be; `argv` is the command
/// and starts in `dir`.
pub(crate) fn require_command(context: &Context, argv: &[String], dir: &FolderId) -> Result<()> {
    if argv
        .first()
        .is_some_and(|program| program.trim().is_empty())
    {
        let message = "the command is empty: its first word names no program";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"])));
    }
    let folder = folder_of(context, dir);
    let Some(problem) = problem_of(context, argv, &folder) else {
        return Ok(());
    };
    let instead = meant(context, argv, &folder);
    let what = match &instead {
        Some((why, _)) => format!("{}; {why}", problem.error.message),
        None => problem.text(),
    };
    let error = Error::new(
        ErrorKind::Usage,
        format!("cannot start the command: {what}"),
    );
    Err(match problem.near.zip(argv.first()) {
        _ if instead.is_some() => error.hint(context.rerun_with(&instead.unwrap_or_default().1)),
        Some((near, program)) if *program == problem.program => {
            let argv: Vec<String> = [near].into_iter().chain(argv[1..].to_vec()).collect();
            error.hint(context.rerun_with(&argv))
        }
        _ if agent::detect(Some(&problem.program), None, b"").is_some() => {
            error.hint(Hint::recover(["agents"]))
        }
        _ => error.hint(Hint::recover(["run", "--help"])),
    })
}

/// What a shell does itself, without a program of that name.
const BUILTINS: [&str; 21] = [
    "exit", "return", "if", "for", "while", "until", "case", "!", "{", "cd", "source", ".",
    "export", "alias", "unset", "set", "eval", "umask", "ulimit", "pushd", "popd",
];

/// How many of them, the first, need no command after them.
const WHOLE: usize = 9;

/// What was probably meant by a command that cannot be started: a part of a shell, or a whole line as one word. Why, and the
/// command.
fn meant(context: &Context, argv: &[String], folder: &Path) -> Option<(&'static str, Vec<String>)> {
    let by_shell = |line: String| vec!["sh".to_owned(), "-c".to_owned(), line];
    let first = argv.first()?;
    // A whole line may be one word.
    let name = first.split_whitespace().next()?;
    if BUILTINS.contains(&name) {
        let is_whole = BUILTINS[..WHOLE].contains(&name) || first.contains([';', '&', '|']);
        let line = match argv {
            [line] => line.clone(),
            words => hint::join(words),
        };
        let line = if is_whole {
            line
        } else {
            format!("{line} && CMD")
        };
        return Some((
            "that is a shell builtin, not a program: sh -c runs a line",
            by_shell(line),
        ));
    }
    let is_variable = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if argv.len() > 1
        && first
            .split_once('=')
            .is_some_and(|(name, _)| is_variable(name))
    {
        let words = ["env".to_owned()].into_iter().chain(argv.iter().cloned());
        return Some(("that sets a variable, as env does", words.collect()));
    }
    if argv.len() > 1 || !first.contains(' ') {
        return None;
    }
    // `echo` and the like are programs as well as a shell's own words.
    let program = first_program(first).unwrap_or_else(|| name.to_owned());
    if problem_of(context, &[program], folder).is_some() {
        return None;
    }
    if first.contains(['|', '&', ';', '<', '>', '$', '`', '*', '?', '(', '=']) {
        return Some((
            "that is shell syntax: sh -c runs it",
            by_shell(first.clone()),
        ));
    }
    let words = shlex::split(first)?;
    Some((
        "the whole command is one quoted word: leave out the quotes",
        words,
    ))
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
    let (key, what) = match () {
        () if !is_known => return Ok(()),
        () if retry.max_cost_usd.is_some() && !tells_cost => ("max_cost_usd", "cost"),
        () if retry.max_tokens.is_some() && !tells_tokens => ("max_tokens", "tokens"),
        () => return Ok(()),
    };
    let message = format!("[retry] {key} can never be reached: {who} reports no {what}");
    Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["config", "--origins"])))
}

/// Says that a pipe is a word like any other, where what stands behind it is a program.
fn warn_of_pipes(context: &Context, argv: &[String], dir: &FolderId) {
    let is_joint = |word: &String| ["|", "||", "&&", ";"].contains(&word.as_str());
    let folder = folder_of(context, dir);
    let is_program =
        |word: &String| problem_of(context, std::slice::from_ref(word), &folder).is_none();
    let of_pipe = |words: &[String]| {
        !words[0].starts_with('-') && is_joint(&words[1]) && is_program(&words[2])
    };
    if let Some([_, joint, ..]) = argv.windows(3).find(|words| of_pipe(words)) {
        let quoted = |word: &String| {
            if is_joint(word) {
                word.clone()
            } else {
                hint::quote(word)
            }
        };
        let line: Vec<String> = argv.iter().map(quoted).collect();
        let by_shell = ["sh".to_owned(), "-c".to_owned(), line.join(" ")];
        context.warn(format!(
            "{} gets '{}' as a word; as a line for a shell: {}",
            argv[0],
            joint,
            context.rerun_with(&by_shell)
        ));
    }
}

/// Says which of the other commands that come with a run cannot be started: they may come to be while it runs.
pub(super) fn warn_of_others(context: &Context, spec: &RunSpec) {
    warn_of_pipes(context, &spec.command, &spec.dir);
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
        "the check '{name}' could not be started after the last attempt and still cannot: {why}; another attempt \
        would be wasted: fix the check, or replace it with --feedback {name}=CMD"
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
        let message = &self.error.message;
        match &self.near {
            Some(near) => format!("{message}; did you mean '{near}'?"),
            None => message.clone(),
        }
    }
}

/// What is wrong with a command that starts in `folder`; a line for the configured shell is read as far as it goes.
pub(crate) fn problem_of(context: &Context, argv: &[String], folder: &Path) -> Option<Problem> {
    let path = context.env("PATH").map(std::ffi::OsString::from);
    let look = |program: &str| {
        let error = Program::find(program, folder, path.as_deref()).err()?;
        // What lies in the folder is started by its path.
        let here = (!program.contains('/')).then(|| format!("./{program}"));
        let here = here.filter(|here| Program::find(here, folder, None).is_ok());
        let names = Program::names_beside(program, folder, path.as_deref());
        let names = names.iter().map(String::as_str);
        let near = here.or_else(|| misspelt(program, names).map(str::to_owned));
        let near = near.filter(|_| !BUILTINS.contains(&program));
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

/// What aider says where it makes git ignore its notes.
const IGNORES: &[u8] = b"Added .aider* to .gitignore";

/// Why a command failed, by its output and exit, and by what its agent recorded; `None` where it is for the checks to judge.
/// `changed` is [`has_changed`], asked only where it matters.
pub(super) fn failure_of(
    context: &Context,
    key: &RunKey,
    (evidence, record): (&FailureEvidence, Option<&AgentRecord>),
    (argv, launch): (&[String], Option<&Launch>),
    changed: &dyn Fn() -> Option<bool>,
) -> Option<Failure> {
    let says_error =
        record.is_some_and(|record| record.final_error.is_some() && !record.is_success);
    let is_done = evidence.exit_code == Some(0) && !says_error;
    if !evidence.timed_out && !evidence.cancelled {
        // In text a limit is one whatever the exit code was: a wrapper may have made it.
        let is_open = is_done || is_text(record) && evidence.signal.is_none();
        let hidden = (is_open && evidence.stage == Some(CheckKind::Agent))
            .then(|| hidden_failure(context, key, (evidence, record), argv, changed))
            .flatten();
        let is_limit = |failure: &Failure| failure.cause == Cause::RateLimited;
        if is_done || hidden.as_ref().is_some_and(is_limit) {
            return hidden;
        }
    }
    let now = context.clock.now();
    let failure = classify(evidence, record, &context.settings().rules, now);
    let is_unexplained = failure.cause == Cause::Unknown && failure.detail.is_none();
    let by_code = launch
        .filter(|_| is_unexplained)
        .and_then(|launch| by_exit_code(evidence, launch, now));
    Some(by_code.unwrap_or(failure))
}

/// What went wrong with an agent that may say it ended well: its API's error is all that it printed last, or it was not
/// permitted what it wanted to do. Where its records say that it ended well, only if it changed nothing.
fn hidden_failure(
    context: &Context,
    key: &RunKey,
    (evidence, record): (&FailureEvidence, Option<&AgentRecord>),
    argv: &[String],
    changed: &dyn Fn() -> Option<bool>,
) -> Option<Failure> {
    let now = context.clock.now();
    let structured = record.filter(|record| record.structured);
    let denied = structured.filter(|record| !record.permission_denials.is_empty());
    // What an agent has to say of its work is on stdout: only where that is empty, its errors are its last words.
    let printed = [&evidence.stdout, &evidence.stderr];
    let printed = printed
        .into_iter()
        .find(|text| !text.trim_ascii().is_empty());
    let said = structured.map_or(printed.map(Vec::as_slice), |record| {
        record.final_text.as_deref().map(str::as_bytes)
    });
    let is_agent = record.is_some();
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
            // Of a command that is no agent we know, these may be any tool's words.
            let is_vague = matches!(
                failure.cause,
                Cause::InvalidInput | Cause::ResourceNotFound | Cause::PermissionDenied
            );
            let is_known = failure.kind == FailureType::AgentError
                && (failure.cause, failure.detail) != (Cause::Unknown, None)
                && (!is_vague || is_agent);
            is_known.then_some(failure)?
        }
        (None, None) => return None,
    };
    let changed = changed();
    let stands = match structured {
        Some(_) => changed == Some(false),
        None => changed != Some(true) || !is_repeated(context, key, &failure),
    };
    stands.then_some(failure)
}

/// Whether an agent keeps no records: what it prints is text.
fn is_text(record: Option<&AgentRecord>) -> bool {
    record.is_none_or(|record| !record.structured)
}

/// Whether an attempt that ended with an error of its API may be done all the same, so that the checks decide: it changed
/// files, and ended with a limit or as one that is done.
pub(super) fn may_be_done(
    failure: &Failure,
    (evidence, record): (&FailureEvidence, Option<&AgentRecord>),
    changed: &dyn Fn() -> Option<bool>,
) -> bool {
    (failure.cause == Cause::RateLimited || evidence.exit_code == Some(0))
        && is_text(record)
        && changed() == Some(true)
}

/// Whether the attempt before this one changed files, too, and ended with the same words: they are of the work.
fn is_repeated(context: &Context, key: &RunKey, failure: &Failure) -> bool {
    let look = || -> Result<bool> {
        let state = context.load()?.state;
        let Some(run) = state.run(key) else {
            return Ok(false);
        };
        // A probe has taken the place of the attempt before it.
        let waited = run.waits(run.current_iteration);
        let (earlier, left) =
            if let Some(earlier) = waited.and_then(|waits| waits.failure.as_deref()) {
                let begun = run.live.as_ref();
                (Some(earlier), begun.and_then(|live| live.baseline.as_ref()))
            } else {
                let mut attempts = run.attempts().rev().map(|(_, attempt)| attempt);
                let ended = attempts.find(|attempt| attempt.outcome.is_some());
                (
                    ended.and_then(|attempt| attempt.failure.as_ref()),
                    ended.and_then(|attempt| attempt.checkpoint_id.as_ref()),
                )
            };
        let is_same = earlier.is_some_and(|earlier| earlier.message == failure.message);
        let Some(left) = left.filter(|_| is_same) else {
            return Ok(false);
        };
        let mut standing = state.standing(key).rev().skip_while(|one| one.id != *left);
        let (left, began) = (standing.next(), standing.next());
        Ok(left
            .zip(began)
            .is_some_and(|(left, began)| left.tree != began.tree))
    };
    look().unwrap_or_else(|error| {
        tracing::warn!(%error, "what the attempt before ended with is not known");
        false
    })
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
    if all.is_empty() {
        return "recover run --yolo permits everything".to_owned();
    }
    if edit.is_empty() || has(&profile.edit_args) {
        return format!("{all} (recover run --yolo) permits everything");
    }
    format!("{edit} permits to edit, {all} everything")
}

/// Whether the work tree is another than when the attempt began, but for what the agent's program keeps there for itself;
/// `None` where that is not known.
pub(super) fn has_changed(
    context: &Context,
    key: &RunKey,
    evidence: &FailureEvidence,
) -> Option<bool> {
    let look = || -> Result<Option<bool>> {
        let state = context.load()?.state;
        let began = state
            .run(key)
            .and_then(|run| run.live.as_ref()?.baseline.as_ref());
        let Some(before) = began.and_then(|id| state.checkpoint(id)) else {
            return Ok(None);
        };
        let now = checkpoint::prepare(context)?.capture;
        if now.tree == before.tree {
            return Ok(Some(false));
        }
        let before = context.repo()?.load_checkpoint(&before.commit)?;
        let changes = now
            .objects()
            .changes(before.view(), now.view(), &Selection::all())?;
        let is_work = |change: &Change| !is_own(change, evidence);
        Ok(Some(changes.iter().any(is_work)))
    };
    look().unwrap_or_else(|error| {
        tracing::warn!(%error, "whether the attempt changed anything is not known");
        None
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
