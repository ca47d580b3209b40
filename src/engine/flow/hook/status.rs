//! Where the hook is installed, and whether it is called: some agents skip hooks that nobody trusted and say nothing.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::install::{Place, installed_in};
use crate::durable::Sync;
use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::flow::agents::agents;
use crate::model::hint::Hint;
use crate::model::hook::HookAgent;
use crate::model::time::Timestamp;

/// One agent's hook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "hook_status")]
pub struct HookStatus {
    /// Who calls it.
    pub agent: &'static str,
    /// Whether it is in settings that apply here.
    pub installed: bool,
    /// The first file that it is in.
    pub path: Option<PathBuf>,
    /// The version of the agent's program; `None` where it is not installed or does not say.
    pub version: Option<String>,
    /// When it was called last for this work tree; `None` where that was never seen.
    pub last_called: Option<Timestamp>,
    /// What is to be done.
    pub note: Option<String>,
}

/// The last call.
#[derive(Debug, Serialize, Deserialize)]
struct Call {
    at: Timestamp,
}

/// All agents' hooks.
pub fn status(context: &Context) -> Result<Vec<HookStatus>> {
    let known = agents(context)?;
    let of = |agent: HookAgent| -> HookStatus {
        let places = [Place::Local, Place::Project, Place::User];
        let path = places.into_iter().find_map(|place| installed_in(context, agent, place));
        let program = known.iter().find(|known| known.name == agent.as_str());
        let last_called = last_call(context, agent);
        let note = match (&path, last_called) {
            (None, _) => Some(context.line(Hint::recover(["hook", "install", agent.as_str()]))),
            (Some(_), None) => Some(format!("never called: {}", why_never(agent))),
            (Some(_), Some(_)) => None,
        };
        let version = program.and_then(|program| program.version.clone());
        HookStatus { agent: agent.as_str(), installed: path.is_some(), path, version, last_called, note }
    };
    Ok(HookAgent::ALL.into_iter().map(of).collect())
}

/// The likely reason, and the way out.
fn why_never(agent: HookAgent) -> &'static str {
    match agent {
        HookAgent::Claude => {
            "Claude Code skips the hooks of a folder that was never trusted; start claude here once and trust it"
        }
        HookAgent::Codex => "Codex drops hooks that nobody trusted; start codex here once and trust them in /hooks",
        HookAgent::Gemini => {
            "Gemini CLI skips the hooks of a folder that was never trusted; start gemini here once and trust it"
        }
        HookAgent::Opencode => "opencode reads its plugins when it starts; start it again",
        HookAgent::Git => "git calls it before the next rebase or push",
    }
}

/// Records a call. Nobody is held up where that cannot be written.
pub fn record_call(context: &Context, agent: HookAgent) {
    if !context.store().private_dir().is_dir() {
        return;
    }
    let write = || -> std::io::Result<()> {
        let call = serde_json::to_vec(&Call { at: context.clock.now() })?;
        let path = file(context, agent);
        let root = context.store().root();
        root.create_dir_all(path.parent().unwrap_or(&path))?;
        root.write(&path, &call, Sync::Nothing)
    };
    if let Err(error) = write() {
        tracing::warn!(%error, "the hook's call is not recorded");
    }
}

fn last_call(context: &Context, agent: HookAgent) -> Option<Timestamp> {
    let bytes = context.store().root().read_if_possible(&file(context, agent)).ok().flatten()?;
    serde_json::from_slice::<Call>(&bytes).ok().map(|call| call.at)
}

fn file(context: &Context, agent: HookAgent) -> PathBuf {
    context.store().private_dir().join("hooks").join(format!("{}.json", agent.as_str()))
}
