//! What becomes of the files that the plugin has beside the hook's.

use super::plan::{OwnFile, Place, Plan, Setup, Task, of_settings};
use crate::engine::base::{Context, Result};
use crate::model::{Hint, HookAgent};
use crate::policy::hook::plugin::{Entry, files, marked};

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
