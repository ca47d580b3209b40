//! The agents' own hooks, installed by recover and called by the real programs.
//!
//! A checkpoint before each edit and each risky command, the files as they were to the byte, and the settings too.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use recover::testing::model::AgentKind;
use serde_json::{Value, json};

use crate::agents::{Agent as _, PROMPT, Place, Start, each};
use crate::stub::Answer;

/// How an agent is set up here.
pub struct Hooked {
    /// Where its project's settings are, and what somebody put there; `None` where they are all the hook's own.
    settings: Option<(&'static str, &'static str)>,
    /// The folder that is made for the hook.
    folder: &'static str,
    /// The program, free to run commands.
    pub line: &'static str,
}

pub fn hooked(agent: AgentKind) -> Hooked {
    match agent {
        AgentKind::Claude => Hooked {
            settings: Some((
                ".claude/settings.json",
                "{ \"model\":\"stub\" ,\r\n\t\"permissions\": {\"allow\":[\"Bash(rm:*)\"]} }",
            )),
            folder: ".claude",
            line: "claude -p --output-format json --permission-mode acceptEdits --allowedTools Read,Write,Edit,Bash",
        },
        AgentKind::Codex => Hooked {
            settings: Some((
                ".codex/hooks.json",
                "{\"hooks\" :{ \"SessionStart\":[ ]\t} }\r\n",
            )),
            folder: ".codex",
            line: "codex exec --json --skip-git-repo-check -m gpt-5.5 --dangerously-bypass-approvals-and-sandbox",
        },
        AgentKind::Gemini => Hooked {
            settings: Some((
                ".gemini/settings.json",
                "// ours\r\n{ \"ui\":{\"hideTips\":true} /* quiet */ ,\r\n\t\"hooks\": { // none yet\r\n } }",
            )),
            folder: ".gemini",
            line: "gemini --output-format json --approval-mode yolo",
        },
        _ => Hooked {
            settings: None,
            folder: ".opencode/plugins",
            line: "opencode run --format json",
        },
    }
}

/// What an agent wants to know of a folder before it takes its settings for granted.
pub fn trust(place: &Place) {
    let (work, home) = (
        place.env.work().display().to_string(),
        place.env.root().join("home"),
    );
    match place.agent {
        AgentKind::Claude => {
            let trusted = json!({"hasCompletedOnboarding": true, "projects": {work: {"hasTrustDialogAccepted": true}}});
            std::fs::write(home.join(".claude.json"), trusted.to_string()).expect("its settings");
        }
        AgentKind::Codex => {
            let config = home.join(".codex/config.toml");
            let text = std::fs::read_to_string(&config).expect("its configuration");
            std::fs::write(
                config,
                format!("{text}[projects.{work:?}]\ntrust_level = \"trusted\"\n"),
            )
            .expect("trusted");
        }
        _ => {}
    }
}

/// Every file of the work tree with what it holds; what is git's, npm's and recover's own aside, and what opencode puts
/// beside its plugins for itself.
pub fn files(place: &Place) -> BTreeMap<String, String> {
    let own = "-path ./.git -o -name node_modules -o -name .ultraplan -o -path './.opencode/[!p]*' -o -path './.opencode/package*'";
    let listed = place
        .env
        .sh(&format!("find . \\( {own} \\) -prune -o -type f -print"));
    let read = |path: &str| {
        let bytes = std::fs::read(place.env.work().join(path)).expect("a file");
        (path.to_owned(), bytes.escape_ascii().to_string())
    };
    listed.stdout.lines().map(read).collect()
}

/// The agent works on what it is told; `more` is for its command line.
#[track_caller]
fn works(place: &Place, more: &str) {
    let line = format!("echo '{PROMPT}' | {} {more}", hooked(place.agent).line);
    let ran = place.env.sh(&line);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[track_caller]
fn status(place: &Place) -> Value {
    let document = place.env.json(0, &["doctor"]);
    let hooks = document["hooks"].as_array().expect("a list");
    hooks
        .iter()
        .find(|hook| hook["agent"] == place.agent.as_str())
        .cloned()
        .unwrap_or(Value::Null)
}

/// A file is written, another edited and a folder removed by the agent's own tools.
pub fn place(agent: AgentKind, folder: &Path) -> Place {
    Place::new(agent, folder, |env| {
        if let Some((path, odd)) = hooked(agent).settings {
            env.write(path, odd);
        }
        env.write("kept/\u{e4} b.bin", b"\x00\xff\r\n");
        let path = |name: &str| env.work().join(name).display().to_string();
        vec![
            Answer::Writes {
                path: path("new.txt"),
                content: "new",
            },
            Answer::Reads {
                path: path("a.txt"),
            },
            Answer::Edits {
                path: path("a.txt"),
                old: "one",
                new: "two",
            },
            Answer::Runs("rm -r kept".to_owned()),
            Answer::Says("Done."),
        ]
    })
}

fn calls_its_hooks(agent: AgentKind, folder: &Path) {
    let place = place(agent, folder);
    trust(&place);
    let before = files(&place);
    let recover = env!("CARGO_BIN_EXE_recover");
    place.env.json(
        0,
        &["hook", "install", agent.as_str(), "--program", recover],
    );
    let idle = status(&place);
    assert!(
        idle["note"]
            .as_str()
            .is_some_and(|note| note.starts_with("never called")),
        "{idle:#}"
    );
    let installed = files(&place);
    // What a person says in /hooks.
    works(
        &place,
        if agent == AgentKind::Codex {
            "--dangerously-bypass-hook-trust"
        } else {
            ""
        },
    );
    assert_eq!(place.env.read("a.txt"), "two\n");
    assert!(
        place.env.exists("new.txt") && !place.env.exists("kept"),
        "{:?}",
        place.env.sh("ls").stdout
    );
    let called = status(&place);
    assert!(
        called["last_called"].is_string() && called["note"].is_null(),
        "{called:#}"
    );

    let list = place.env.json(0, &["checkpoint", "list"]);
    let all = list["checkpoints"].as_array().expect("a list");
    let triggers: Vec<&str> = all
        .iter()
        .filter_map(|one| one["trigger"].as_str())
        .collect();
    assert_eq!(
        triggers,
        ["initial", "before_edit", "risky", "session"],
        "{agent:?}: {list:#}"
    );
    let back_to = |at: usize| {
        place.env.json(
            0,
            &[
                "rollback",
                "--to",
                all[at]["id"].as_str().expect("an id"),
                "--edits",
                "discard",
            ],
        );
    };
    back_to(2);
    assert_eq!(
        (
            place.env.read("a.txt").as_str(),
            place.env.exists("new.txt")
        ),
        ("two\n", true),
        "{agent:?}"
    );
    assert_eq!(
        std::fs::read(place.env.work().join("kept/\u{e4} b.bin")).expect("there"),
        b"\x00\xff\r\n"
    );
    back_to(1);
    assert_eq!(
        (
            place.env.read("a.txt").as_str(),
            place.env.exists("new.txt")
        ),
        ("one\n", true),
        "{agent:?}"
    );
    place
        .env
        .json(0, &["rollback", "--full", "--edits", "discard"]);
    assert_eq!(files(&place), installed, "{agent:?}");

    place.env.json(0, &["hook", "uninstall", agent.as_str()]);
    assert_eq!(files(&place), before, "{agent:?}");
    assert_eq!(
        place.env.exists(hooked(agent).folder),
        hooked(agent).settings.is_some(),
        "{agent:?}"
    );
    let kept = all
        .iter()
        .map(|one| format!("{} ({})", one["trigger"], one["description"]))
        .collect::<Vec<_>>();
    eprintln!(
        "| {:<8} | {} | rollback: every byte | settings: every byte |",
        agent.as_str(),
        kept.join(", ")
    );
}

pub const HOOKED: [AgentKind; 4] = [
    AgentKind::Claude,
    AgentKind::Codex,
    AgentKind::Gemini,
    AgentKind::Opencode,
];

#[test]
fn agents_call_their_hooks() {
    each(&HOOKED, &[Start::Bare], |agent, folder, _| {
        calls_its_hooks(agent, folder);
    });
}

/// A person takes back what the session did while it waits for a command of its own: its next tool call says so to the model.
fn learns_of_a_rollback(agent: AgentKind, folder: &Path) {
    let place = Place::new(agent, folder, |env| {
        let path = |name: &str| env.work().join(name).display().to_string();
        let waits = "touch waits; until [ -e goes-on ]; do sleep 0.1; done";
        vec![
            Answer::Writes {
                path: path("new.txt"),
                content: "new",
            },
            Answer::Runs(waits.to_owned()),
            Answer::Writes {
                path: path("other.txt"),
                content: "other",
            },
            Answer::Says("Done."),
        ]
    });
    trust(&place);
    let recover = env!("CARGO_BIN_EXE_recover");
    place.env.json(
        0,
        &["hook", "install", agent.as_str(), "--program", recover],
    );
    let more = if agent == AgentKind::Codex {
        "--dangerously-bypass-hook-trust"
    } else {
        ""
    };
    std::thread::scope(|scope| {
        let session = scope.spawn(|| works(&place, more));
        while !place.env.exists("waits") && !session.is_finished() {
            std::thread::sleep(Duration::from_millis(50));
        }
        place
            .env
            .json(0, &["rollback", "--to", "initial", "--edits", "discard"]);
        assert!(!place.env.exists("new.txt"), "{agent:?}");
        place.env.write("goes-on", "");
        session.join().expect("the session");
    });
    let asked = place.stub.asked();
    let last = asked.last().expect("a request").body.to_string();
    let said = last
        .find("restored by a person")
        .map(|at| last[at..].chars().take(160).collect::<String>());
    eprintln!("| {:<8} | {said:?} |", agent.as_str());
    assert!(
        said.is_some_and(|said| said.contains("new.txt")),
        "{agent:?}"
    );
}

#[test]
fn an_open_session_learns_of_a_rollback() {
    each(
        &[AgentKind::Claude, AgentKind::Codex],
        &[Start::Bare],
        |agent, folder, _| learns_of_a_rollback(agent, folder),
    );
}

/// Codex says nothing of hooks that nobody trusted: it works, and calls none; what was seen says so.
#[test]
fn a_hook_that_is_not_called_is_noticed() {
    let agent = AgentKind::Codex;
    let Some(folder) = agent.installed() else {
        return;
    };
    let place = place(agent, &folder);
    trust(&place);
    place.env.json(
        0,
        &[
            "hook",
            "install",
            "codex",
            "--program",
            env!("CARGO_BIN_EXE_recover"),
        ],
    );
    place.run(Start::Profile, 0, &[]);
    assert!(!place.env.exists("kept"));
    let idle = status(&place);
    let note = idle["note"].as_str().expect("a note");
    assert!(
        note.starts_with("never called, though codex was at work at ") && note.contains("/hooks"),
        "{idle:#}"
    );
}
