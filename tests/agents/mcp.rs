//! `recover mcp` as the agents' programs start it: its tools reach the model, and their answers do.

use std::path::Path;

use recover::testing::model::AgentKind;
use serde_json::json;

use crate::agents::{PROMPT, Place, Start, each};
use crate::stub::Answer;

/// Adds the server to the agent's settings; the line that starts the agent.
fn with_server(place: &mut Place) -> String {
    let home = place.env.root().join("home");
    let server = json!({"command": env!("CARGO_BIN_EXE_recover"), "args": ["mcp"]});
    match place.agent {
        AgentKind::Codex => {
            let config = home.join(".codex/config.toml");
            let text = std::fs::read_to_string(&config).expect("its configuration");
            let section = format!(
                "[mcp_servers.recover]\ncommand = {}\nargs = [\"mcp\"]\n",
                server["command"]
            );
            std::fs::write(config, text + &section).expect("its configuration");
            "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox"
                .to_owned()
        }
        AgentKind::Gemini => {
            let settings = home.join(".gemini/settings.json");
            let text = std::fs::read_to_string(&settings).expect("its settings");
            let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            value["mcpServers"] = json!({"recover": server});
            std::fs::write(settings, value.to_string()).expect("its settings");
            "gemini --output-format json --approval-mode yolo".to_owned()
        }
        _ => {
            // Otherwise the model would have to search for it first.
            place.env.set("ENABLE_TOOL_SEARCH", "false");
            let config = json!({"mcpServers": {"recover": server}});
            format!(
                "claude -p --output-format json --mcp-config '{config}' --allowedTools mcp__recover__status"
            )
        }
    }
}

fn asks_for_the_status(agent: AgentKind, folder: &Path) {
    let mut place = Place::new(agent, folder, |_| {
        vec![
            Answer::Calls("recover", "status"),
            Answer::Says("I have read it."),
        ]
    });
    place
        .env
        .json(0, &["run", "--run", "of-the-night", "--", "true"]);
    let line = with_server(&mut place);
    let ran = place.env.sh(&format!("echo '{PROMPT}' | {line}"));
    assert_eq!(ran.code, 0, "{agent:?}: {}", ran.stderr);
    let asked = place.stub.asked();
    let last = asked.last().expect("a request").body.to_string();
    let answered = last.contains("of-the-night");
    eprintln!(
        "| {:<8} | mcp status | {} requests | answer reached the model: {answered} |",
        agent.as_str(),
        asked.len()
    );
    assert!(answered, "{agent:?}");
}

#[test]
fn an_agent_reads_the_status_by_its_own_tool() {
    let agents = [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini];
    each(&agents, &[Start::Bare], |agent, folder, _| {
        asks_for_the_status(agent, folder);
    });
}
