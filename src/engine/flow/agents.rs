//! Which agents can be started by name, and which of them are installed.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::policy::settings::AgentProfile;
use crate::policy::text::escape;
use crate::process::{Interrupts, Program, Show, Supervised, find_program};

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// A profile and its program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "agent")]
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
        let path = find_program(&profile.program, &worktree, search.as_deref()).ok();
        // What comes with a project is started when somebody asks for it, and not to be examined.
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
