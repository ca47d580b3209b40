//! What of an agent's plugin is installed, by what an installation would change.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::install::{called, installed_in, plans};
use super::plan::{Part, Place, Plan, Setup, Task};
use super::plugin::AGENTS;
use crate::engine::base::Context;
use crate::model::HookAgent;
use crate::policy::program::first_program;

/// What is installed of an agent's plugin at one place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    let planned = |task| plans(context, task, &setup);
    let (files, note) =
        match planned(Task::Install).and_then(|install| Ok((install, planned(Task::Uninstall)?))) {
            Ok((install, uninstall)) => (
                install.into_iter().zip(uninstall).map(state).collect(),
                None,
            ),
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
