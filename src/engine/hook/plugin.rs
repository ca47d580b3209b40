//! What becomes of the files that the plugin has beside the hook's, and what of them is installed.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::install::{self, called, installed_in};
use super::plan::{OwnFile, Part, Place, Plan, Setup, Task, of_settings};
use crate::engine::base::{Context, Result};
use crate::model::{Hint, HookAgent};
use crate::policy::hook::plugin::{Entry, files, marked};
use crate::policy::program::first_program;

/// The agents that have a plugin.
pub(crate) const AGENTS: [HookAgent; 4] = [
    HookAgent::Claude,
    HookAgent::Codex,
    HookAgent::Gemini,
    HookAgent::Opencode,
];

/// What a user has to know of an agent's plugin.
pub(super) fn note(agent: HookAgent, place: Place) -> Option<&'static str> {
    match agent {
        HookAgent::Claude if place == Place::Project => {
            Some("Claude Code asks once whether it may start the MCP server of .mcp.json")
        }
        HookAgent::Codex => Some(
            "Codex has skills for commands: $recover:undo, $recover:status and $recover:checkpoint",
        ),
        _ => None,
    }
}

/// The agent's own folder, relative to the project or the home folder.
fn folder(agent: HookAgent, place: Place) -> &'static str {
    match agent {
        HookAgent::Claude => ".claude",
        HookAgent::Codex => ".codex",
        HookAgent::Gemini => ".gemini",
        HookAgent::Opencode if place == Place::User => ".config/opencode",
        HookAgent::Opencode | HookAgent::Git => ".opencode",
    }
}

/// What becomes of each file that is not the hook's.
pub(super) fn plans(context: &Context, task: Task, setup: &Setup) -> Result<Vec<Plan>> {
    let (agent, place) = (setup.agent, setup.place);
    let server = match agent {
        HookAgent::Claude if place == Place::User => Some((Entry::Server, ".claude.json")),
        HookAgent::Claude => Some((Entry::Server, ".mcp.json")),
        HookAgent::Codex => Some((Entry::Table, ".codex/config.toml")),
        HookAgent::Gemini | HookAgent::Opencode | HookAgent::Git => None,
    };
    let server = server.map(|(entry, file)| of_settings(context, task, setup, entry, file));
    let folder = folder(agent, place);
    let of_file = |(path, text): (String, String)| {
        let file = format!("{folder}/{path}");
        let own = OwnFile {
            place,
            file: &file,
            text: marked(&text, "plugin"),
            folders: file.matches('/').count(),
            list: Hint::recover(["plugin", "status", agent.as_str()]),
        };
        own.plan(context, task)
    };
    server
        .into_iter()
        .chain(files(agent).into_iter().map(of_file))
        .collect()
}

/// What is installed of an agent's plugin at one place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "plugin_status")]
pub(crate) struct PluginStatus {
    pub agent: &'static str,
    /// `project` or `user`.
    #[schemars(extend("enum" = ["project", "user"]))]
    pub place: &'static str,
    /// Whether all of it is there, as this version makes it.
    pub complete: bool,
    /// Whether any of it is.
    pub installed: bool,
    pub files: Vec<PluginFileStatus>,
    /// Why that cannot be said.
    pub note: Option<String>,
}

/// One file of a plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "plugin_file")]
pub(crate) struct PluginFileStatus {
    pub path: PathBuf,
    /// `outdated` has a part of it, or what another version made.
    #[schemars(extend("enum" = ["current", "edited", "outdated", "missing"]))]
    pub state: &'static str,
}

/// Every agent's plugin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Plugins {
    pub plugins: Vec<PluginStatus>,
}

/// What is installed, by what an installation would change.
pub(crate) fn status(context: &Context, named: Option<HookAgent>) -> Plugins {
    let agents = AGENTS.into_iter();
    let wanted = agents.filter(|agent| named.is_none_or(|named| named == *agent));
    let plugins = wanted.flat_map(|agent| {
        [Place::Project, Place::User].map(|place| status_of(context, agent, place))
    });
    Plugins {
        plugins: plugins.collect(),
    }
}

fn status_of(context: &Context, agent: HookAgent, place: Place) -> PluginStatus {
    // However the program is called there: whether that is right is for `hook status` to say.
    let program = installed_in(context, agent, place)
        .and_then(|found| first_program(found.program.as_deref()?));
    let setup = Setup {
        part: Part::Plugin,
        agent,
        place,
        program: called(context, program.as_deref()).0,
    };
    let planned = |task| install::plans(context, task, &setup);
    let (files, note) =
        match planned(Task::Install).and_then(|all| Ok((all, planned(Task::Uninstall)?))) {
            Ok((all, uninstall)) => (all.into_iter().zip(uninstall).map(state).collect(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
    let is_there = |file: &PluginFileStatus| file.state != "missing";
    PluginStatus {
        agent: agent.as_str(),
        place: if place == Place::User {
            "user"
        } else {
            "project"
        },
        complete: note.is_none()
            && files
                .iter()
                .all(|file: &PluginFileStatus| ["current", "edited"].contains(&file.state)),
        installed: files.iter().any(is_there),
        files,
        note,
    }
}

/// What a file is by what would become of it.
pub(in crate::engine) fn state((install, uninstall): (Plan, Plan)) -> PluginFileStatus {
    let state = match (install.change(), uninstall.change()) {
        ("unchanged", _) if install.remark.is_some() => "edited",
        ("unchanged", _) => "current",
        (_, "unchanged") => "missing",
        _ => "outdated",
    };
    PluginFileStatus {
        path: install.path,
        state,
    }
}
