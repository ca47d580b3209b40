//! Where the hook is installed, and whether it is called: some agents skip hooks that nobody trusted and say nothing.
//!
//! Which agents can be started by name, and which of them are installed.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::install::{Installed, installed_in};
use super::plan::Place;
use crate::agent::detect;
use crate::engine::base::{Context, Result, UserFiles};
use crate::model::hint::Advice;
use crate::model::{Attempt, AttemptOutcome, Hint, HookAgent, Run, State, Timestamp};
use crate::os::own_program;
use crate::policy::program::first_program;
use crate::policy::settings::AgentProfile;
use crate::policy::text::escape;
use crate::process::{Interrupts, Program, Show, Supervised};

/// One agent's hook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct HookStatus {
    /// Who calls it.
    pub agent: &'static str,
    /// Whether it is in settings that apply here.
    pub installed: bool,
    /// The first file that it is in.
    pub path: Option<PathBuf>,
    /// What is called there, as it is written.
    pub program: Option<String>,
    /// The version of the agent's program; `None` where it is not installed, does not say, or was not asked (`doctor`).
    pub version: Option<String>,
    /// When it was called last for this work tree; `None` where that was never seen.
    pub last_called: Option<Timestamp>,
    /// The version of `recover` that was called then; `None` for one that did not say.
    pub called_version: Option<String>,
    /// What is to be done.
    pub note: Option<Advice>,
}

/// The last call.
#[derive(Debug, Serialize, Deserialize)]
struct Call {
    at: Timestamp,
    version: Option<String>,
}

/// Every agent's hook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Hooks {
    pub hooks: Vec<HookStatus>,
}

/// All agents' hooks; their programs are asked for their versions.
pub(crate) fn status(context: &Context) -> Result<Hooks> {
    let known = agents(context)?.agents;
    let mut hooks = look(context)?;
    for hook in &mut hooks {
        hook.version = known
            .iter()
            .find(|known| known.name == hook.agent)
            .and_then(|known| known.version.clone());
    }
    Ok(Hooks { hooks })
}

/// The hooks that are installed, without a question to anybody's program.
pub(crate) fn installed(context: &Context) -> Result<Vec<HookStatus>> {
    Ok(look(context)?
        .into_iter()
        .filter(|hook| hook.installed)
        .collect())
}

fn look(context: &Context) -> Result<Vec<HookStatus>> {
    let state = context.load()?.state;
    let problem = context.repository_problem()?;
    let of = |agent: HookAgent| -> HookStatus {
        let places = [Place::Local, Place::Project, Place::User];
        let found = places
            .into_iter()
            .find_map(|place| installed_in(context, agent, place));
        let call = last_call(context, agent);
        let note = match &found {
            Some(_) if problem.is_some() => problem
                .as_ref()
                .map(|problem| format!("protects nothing here: {problem}").into()),
            None => Some(Advice::with("", install(context, agent), "")),
            Some(found) => wrong_program(context, agent, found, call.as_ref()).or_else(|| {
                not_called(context, &state, agent, found, call.as_ref()).map(Into::into)
            }),
        };
        let (path, program) = found.map_or((None, None), |found| (Some(found.path), found.program));
        let (last_called, called_version) =
            call.map_or((None, None), |call| (Some(call.at), call.version));
        HookStatus {
            agent: agent.as_str(),
            installed: path.is_some(),
            path,
            program,
            version: None,
            last_called,
            called_version,
            note,
        }
    };
    Ok(HookAgent::ALL.iter().copied().map(of).collect())
}

fn install(context: &Context, agent: HookAgent) -> Hint {
    context.placed(Hint::recover(["hook", "install", agent.as_str()]))
}

/// What is called is not there, or is another `recover` than this one.
fn wrong_program(
    context: &Context,
    agent: HookAgent,
    found: &Installed,
    call: Option<&Call>,
) -> Option<Advice> {
    let program = found.program.as_deref()?;
    let again = install(context, agent);
    let search = context.env("PATH").map(std::ffi::OsString::from);
    // What a shell would have to work out is not looked for.
    let named = first_program(program)?;
    let Ok(called) = Program::find(&named, context.worktree(), search.as_deref()) else {
        let what = format!("calls {named}, which is not there: the hook does nothing; ");
        return Some(Advice::with(what, again, ""));
    };
    let own = std::fs::canonicalize(own_program().ok()?).ok()?;
    if std::fs::canonicalize(&called).is_ok_and(|called| called == own) {
        return None;
    }
    let version = call
        .and_then(|call| call.version.as_deref())
        .filter(|version| *version != env!("CARGO_PKG_VERSION"));
    let version = version
        .map(|version| format!(", version {version} when it was called last"))
        .unwrap_or_default();
    let what = format!(
        "calls {}{version}; this is {}, version {}; ",
        called.display(),
        own.display(),
        env!("CARGO_PKG_VERSION")
    );
    Some(Advice::with(what, again, ""))
}

/// No call was seen, or none since the agent was at work here.
fn not_called(
    context: &Context,
    state: &State,
    agent: HookAgent,
    found: &Installed,
    call: Option<&Call>,
) -> Option<String> {
    let since = std::fs::metadata(&found.path)
        .and_then(|file| file.modified())
        .ok();
    let since = since
        .map(|at| Timestamp::new(DateTime::<Utc>::from(at)))
        .max(call.map(|call| call.at));
    let runs = state
        .runs_of(&context.worktree_id())
        .filter(|run| is_of(run, agent));
    let began = runs
        .flat_map(Run::attempts)
        .map(|(_, attempt)| attempt)
        .filter(|attempt| is_session(attempt));
    let latest = began.map(|attempt| attempt.started_at).max();
    let (name, why) = (agent.as_str(), why(agent));
    let never = match call {
        Some(_) => "not called any more",
        None => "never called",
    };
    match latest.filter(|at| Some(*at) > since) {
        Some(at) => Some(format!("{never}, though {name} was at work at {at}: {why}")),
        None => call.is_none().then(|| format!("{never}: {why}")),
    }
}

/// Whether the run starts the agent.
fn is_of(run: &Run, agent: HookAgent) -> bool {
    let hint = run
        .spec
        .launch
        .as_ref()
        .map(|launch| launch.agent.as_str())
        .or(run.spec.agent.as_deref());
    detect(Some(&run.spec.command.join(" ")), hint, b"")
        .is_some_and(|kind| kind.as_str() == agent.as_str())
}

/// Whether its agent got an answer: one that could not even begin calls nobody.
fn is_session(attempt: &Attempt) -> bool {
    attempt.outcome == Some(AttemptOutcome::Passed)
        || attempt.tokens.is_some_and(|tokens| tokens.total > 0)
}

/// The likely reason why it is not called, and the way out.
fn why(agent: HookAgent) -> &'static str {
    match agent {
        HookAgent::Claude => {
            "Claude Code skips the hooks of a folder that was never trusted; start claude here once and trust it"
        }
        HookAgent::Codex => {
            "Codex drops hooks that nobody trusted; start codex here once and trust them in /hooks"
        }
        HookAgent::Gemini => {
            "Gemini CLI skips the hooks of a folder that was never trusted; start gemini here once and trust it"
        }
        HookAgent::Opencode => "opencode reads its plugins when it starts; start it again",
        HookAgent::Git => "git calls it before the next rebase or push",
    }
}

/// Records a call. Nobody is held up where that cannot be written.
pub(super) fn record_call(context: &Context, agent: HookAgent) {
    let call = serde_json::to_vec(&Call {
        at: context.clock.now(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    });
    if let Ok(call) = call
        && context.store().private_dir().is_dir()
    {
        context.write_note(&file(context, agent), &call);
    }
}

/// Whether a session of an agent was not told yet that nothing is protected here; from now on it was. Where that cannot be
/// written down, or the call names no session, it is said each time.
pub(super) fn is_unsaid(context: &Context, agent: HookAgent, session: Option<&str>) -> bool {
    let (Some(root), Some(session)) = (context.user_state(), session) else {
        return true;
    };
    let place = crc32fast::hash(context.worktree().as_os_str().as_encoded_bytes());
    let files = UserFiles::new(root, "unprotected");
    let path = files.path(format!("{}-{place:08x}", agent.as_str()));
    if files.read::<String>(&path).ok().flatten().as_deref() == Some(session) {
        return false;
    }
    if let Err(error) = files.write(&path, &session) {
        tracing::debug!(%error, "what the session was told is not recorded");
    }
    true
}

fn last_call(context: &Context, agent: HookAgent) -> Option<Call> {
    let bytes = context
        .store()
        .root()
        .read_if_possible(&file(context, agent))
        .ok()
        .flatten()?;
    serde_json::from_slice(&bytes).ok()
}

fn file(context: &Context, agent: HookAgent) -> PathBuf {
    context
        .store()
        .private_dir()
        .join("hooks")
        .join(format!("{}.json", agent.as_str()))
}

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// A profile and its program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Agent {
    /// The profile's name.
    pub name: String,
    /// The program as the profile names it.
    pub program: String,
    /// Whether that can be started.
    pub installed: bool,
    /// What it answers to `--version`; `None` where it says nothing, or is named by its path, perhaps within the project, and was not
    /// asked.
    pub version: Option<String>,
    /// Where it is.
    pub path: Option<PathBuf>,
    /// Whose records it prints; `text` for none.
    pub output: String,
    /// Whether it can go on in an earlier session.
    pub sessions: bool,
}

/// The agents that can be started, by name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Agents {
    pub agents: Vec<Agent>,
}

/// All profiles by name; the installed programs are asked for their versions at the same time.
pub(crate) fn agents(context: &Context) -> Result<Agents> {
    let profiles = context.config().agents()?;
    let search = context.env("PATH").map(std::ffi::OsString::from);
    let worktree = context.worktree().to_path_buf();
    let interrupts = &context.interrupts;
    let look = |(name, profile): (&String, &AgentProfile)| {
        let path = Program::find(&profile.program, &worktree, search.as_deref()).ok();
        // What comes with a project is started when a user asks for it, and not to be examined.
        let asked = path.as_deref().filter(|_| !profile.program.contains('/'));
        Agent {
            name: name.clone(),
            program: profile.program.clone(),
            installed: path.is_some(),
            version: asked.and_then(|path| version(path, interrupts)),
            path: path.clone(),
            output: profile.output.clone(),
            sessions: profile.has_sessions(),
        }
    };
    let look = &look;
    thread::scope(|scope| {
        let asked: Vec<_> = profiles
            .iter()
            .map(|one| scope.spawn(move || look(one)))
            .collect();
        let joined = asked.into_iter().filter_map(|thread| thread.join().ok());
        Ok(Agents {
            agents: joined.collect(),
        })
    })
}

/// The first line of what it says of its version.
fn version(program: &Path, interrupts: &Interrupts) -> Option<String> {
    let argv = vec![program.as_os_str().to_owned(), "--version".into()];
    let home = Path::new("/").to_owned();
    let asked = Supervised {
        show: Show::Nothing,
        stdin: Some(Vec::new()),
        deadline: Some(PATIENCE),
        ..Supervised::new(Program::Argv(argv), home)
    };
    let exit = asked
        .run(interrupts, |_| Ok(()))
        .ok()
        .filter(|exit| exit.exit_code == Some(0))?;
    let said = String::from_utf8_lossy(&exit.stdout.into_bytes()).into_owned();
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(escape(line))
}
