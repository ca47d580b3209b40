//! The agents' own hooks, installed by recover and called by the real programs: a checkpoint before each edit and each
//! risky command, and the files as they were, to the byte.

use std::path::Path;

use crate::agents::{Agent, PROMPT, Place};
use crate::stub::Answer;

/// What Claude Code asks before it takes a folder's settings for granted.
fn trust(place: &Place) {
    let work = place.env.work().display().to_string();
    let file = place.env.root().join("home/.claude.json");
    let trusted = serde_json::json!({"hasCompletedOnboarding": true,
        "projects": {work: {"hasTrustDialogAccepted": true}}});
    std::fs::write(file, trusted.to_string()).expect("its settings");
}

fn claude(folder: &Path) {
    let odd = "{ \"model\":\"stub\" ,\r\n\t\"permissions\": {\"allow\":[\"Bash(rm:*)\"]} }";
    let place = Place::new(Agent::Claude, folder, |env| {
        env.write(".claude/settings.json", odd);
        env.write("kept/\u{e4} b.bin", b"\x00\xff\r\n");
        let path = env.work().join("a.txt").display().to_string();
        let edit = Answer::Runs("sed -i s/one/two/ a.txt && rm -r kept".to_owned());
        vec![Answer::Writes { path, content: "changed" }, edit, Answer::Says("Done.")]
    });
    trust(&place);
    let recover = env!("CARGO_BIN_EXE_recover");
    place.env.json(0, &["hook", "install", "claude", "--program", recover]);
    let before = place.env.json(0, &["hook", "status"]);
    assert_eq!(before["hooks"][0]["installed"], true, "{before:#}");
    let line = format!(
        "echo '{PROMPT}' | claude -p --output-format json --permission-mode acceptEdits --allowedTools 'Read,Write,Edit,Bash'"
    );
    let ran = place.env.sh(&line);
    assert_eq!(ran.code, 0, "{ran:?}");
    let after = place.env.json(0, &["hook", "status"]);
    assert!(after["hooks"][0]["last_called"].is_string(), "{after:#}");
    let list = place.env.json(0, &["checkpoint", "list"]);
    let taken: Vec<String> = list["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| format!("{} {}", one["trigger"].as_str().unwrap_or("?"), one["id"].as_str().unwrap_or("?")))
        .collect();
    eprintln!("claude, by its own hooks: {taken:?}");
    assert!(!place.env.exists("kept"), "the command ran: {ran:?}");
    assert!(taken.iter().any(|one| one.starts_with("risky")), "{list:#}");
    place.env.json(0, &["rollback", "--full", "--yes"]);
    assert_eq!(place.env.read("a.txt"), "one\n");
    assert_eq!(std::fs::read(place.env.work().join("kept/\u{e4} b.bin")).expect("restored"), b"\x00\xff\r\n");
    place.env.json(0, &["hook", "uninstall", "claude"]);
    assert_eq!(place.env.read(".claude/settings.json"), odd);
}

#[test]
fn claude_calls_its_hooks() {
    if let Some(folder) = Agent::Claude.installed() {
        claude(&folder);
    }
}
