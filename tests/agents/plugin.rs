//! The plugin in the agents' real programs: the hook is called, a command becomes its text, the skill is offered to the model.

use std::collections::BTreeMap;
use std::path::Path;

use recover::testing::model::AgentKind;

use crate::agents::{Place, Start, each};
use crate::hooks::{HOOKED, files, hooked, place, trust};

/// How a person gives the agent the command, and what must not be in its way.
fn line(agent: AgentKind) -> String {
    let start = hooked(agent).line;
    match agent {
        AgentKind::Codex => {
            format!("{start} --dangerously-bypass-hook-trust '$recover:status today'")
        }
        AgentKind::Gemini => format!("{start} -p '/recover:status today'"),
        AgentKind::Opencode => format!("{start} --command recover:status today"),
        _ => format!("echo '/recover:status today' | {start}"),
    }
}

fn home(place: &Place) -> BTreeMap<String, String> {
    let home = place.env.root().join("home");
    let read = |name: &str| {
        let text = std::fs::read_to_string(home.join(name)).unwrap_or_default();
        (name.to_owned(), text)
    };
    [".codex/config.toml", ".gemini/settings.json"]
        .map(read)
        .into()
}

fn uses_the_plugin(agent: AgentKind, folder: &Path) {
    let mut place = place(agent, folder);
    trust(&place);
    // Otherwise the model would have to search for the tools first.
    place.env.set("ENABLE_TOOL_SEARCH", "false");
    let (before, home_before) = (files(&place), home(&place));
    let recover = env!("CARGO_BIN_EXE_recover");
    let name = agent.as_str();
    place
        .env
        .json(0, &["plugin", "install", name, "--program", recover]);
    let ran = place.env.sh(&line(agent));
    assert_eq!(ran.code, 0, "{agent:?}: {}", ran.stderr);
    let first = place
        .stub
        .asked()
        .first()
        .expect("a request")
        .body
        .to_string();
    let has = |text: &str| first.contains(text);
    let (command, skill) = (
        has("Quote the commands that `recover` recommends"),
        has("before a step that is hard to reverse"),
    );
    // For this model Codex has the tools of servers found by a search.
    let server = has("preview_rollback") || agent == AgentKind::Codex && has("\"tool_search\"");
    let listed = place.env.json(0, &["checkpoint", "list"]);
    let hooks = listed["checkpoints"].as_array().map_or(0, Vec::len);
    eprintln!(
        "| {name:<8} | command: {command} | skill: {skill} | mcp: {server} | checkpoints by the hook: {hooks} |"
    );
    assert!(command && has("today") && skill && server, "{agent:?}");
    assert_eq!(hooks, 4, "{agent:?}: {listed:#}");
    place
        .env
        .json(0, &["rollback", "--full", "--edits", "discard"]);
    place.env.json(0, &["plugin", "uninstall", name]);
    assert_eq!(
        (files(&place), home(&place)),
        (before, home_before),
        "{agent:?}"
    );
}

#[test]
fn agents_load_the_plugin() {
    each(&HOOKED, &[Start::Bare], |agent, folder, _| {
        uses_the_plugin(agent, folder);
    });
}
