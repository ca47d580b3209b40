//! `plugin install`, `uninstall`, `status`: commands, a skill and an MCP server beside an agent's hook.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::env::TestEnv;

const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// Every file below a folder, git's and the state aside, with what it holds.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.ends_with(".git") || path.ends_with(".ultraplan") {
                continue;
            }
            let name = path
                .strip_prefix(folder)
                .expect("below")
                .display()
                .to_string();
            if path.is_dir() {
                all.insert(format!("{name}/"), String::new());
                folders.push(path);
            } else {
                let bytes = std::fs::read(path).expect("a file");
                all.insert(name, bytes.escape_ascii().to_string());
            }
        }
    }
    all
}

fn status(env: &TestEnv, agent: &str, place: &str) -> Value {
    let document = env.json(0, &["plugin", "status", agent]);
    let plugins = document["plugins"].as_array().expect("a list");
    plugins
        .iter()
        .find(|plugin| plugin["place"] == place)
        .expect("the place")
        .clone()
}

fn states(plugin: &Value) -> Vec<&str> {
    let files = plugin["files"].as_array().expect("a list");
    files
        .iter()
        .filter_map(|file| file["state"].as_str())
        .collect()
}

// What is there stays to the byte, twice is once, a dry run writes nothing, and folders that were made go again.
#[test]
fn a_plugin_is_installed_and_taken_out_to_the_byte() {
    for agent in AGENTS {
        for place in ["project", "user"] {
            let env = TestEnv::repo();
            let home = env.root().join("home");
            let root = if place == "user" {
                home
            } else {
                env.work().to_owned()
            };
            for (file, theirs) in [
                (".claude/settings.json", "{ \"model\":\"opus\" }\r\n"),
                (
                    ".mcp.json",
                    "{\"mcpServers\":{ \"x\":{\"command\":\"x\"} }}",
                ),
                (".claude.json", "{\"projects\": {}, \"n\": 1.50}"),
                (
                    ".codex/config.toml",
                    "model = 'x' # mine\r\n[mcp_servers.x]\r\ncommand = 'x'",
                ),
                (
                    ".gemini/settings.json",
                    "// mine\n{\n\t\"ui\": {} // \"last\"\n}\n",
                ),
            ] {
                std::fs::create_dir_all(root.join(file).parent().expect("a folder")).expect("it");
                std::fs::write(root.join(file), theirs).expect("a file");
            }
            let before = files(&root);
            let with = |words: &[&str]| {
                let mut words = words.to_vec();
                words.extend((place == "user").then_some("--user"));
                env.json(0, &words)
            };
            let planned = with(&["--dry-run", "plugin", "install", agent]);
            assert_eq!(
                (files(&root), &planned["changed"]),
                (before.clone(), &json!(false))
            );
            let install = ["plugin", "install", agent, "--program", "/opt/a b/recover"];
            let done = with(&install);
            let list = |document: &Value| document["files"].as_array().map(Vec::len);
            assert_eq!(list(&done), list(&planned["plan"]), "{done:#}");
            assert_eq!(done["changed"], true);
            assert_eq!(with(&install)["changed"], false, "{agent} {place}");
            let now = status(&env, agent, place);
            assert_eq!(
                (&now["installed"], &now["complete"]),
                (&json!(true), &json!(true)),
                "{now:#}"
            );
            let installed = files(&root);
            let all = installed.values().cloned().collect::<String>();
            for part in [
                "hook run",
                "/opt/a b/recover",
                "When to take a checkpoint",
                "recover undo --dry-run",
            ] {
                assert!(all.contains(part), "{agent} {place}: {part}");
            }
            with(&["plugin", "uninstall", agent]);
            assert_eq!(files(&root), before, "{agent} {place}");
            assert_eq!(with(&["plugin", "uninstall"])["changed"], false);
            let gone = status(&env, agent, place);
            assert_eq!(gone["installed"], false, "{gone:#}");
        }
        // Where there was nothing, there is nothing.
        let env = TestEnv::repo();
        let before = files(env.work());
        env.json(0, &["plugin", "install", agent]);
        env.json(0, &["plugin", "uninstall"]);
        assert_eq!(files(env.work()), before, "{agent}");
    }
}

// A file that a user edited is theirs from then on; one of another version is replaced.
#[test]
fn a_users_edits_survive() {
    let env = TestEnv::repo();
    env.json(0, &["plugin", "install", "claude", "--program", "recover"]);
    let (undo, skill) = (
        ".claude/commands/recover/undo.md",
        ".claude/skills/recover/SKILL.md",
    );
    let edited = env.read(undo) + "Mine.\n";
    env.write(undo, &edited);
    env.write(
        ".mcp.json",
        env.read(".mcp.json")
            .replace("\"mcp\"", "\"mcp\", \"--run\", \"x\""),
    );
    let server = env.read(".mcp.json");
    let settings = env
        .read(".claude/settings.json")
        .replacen('{', "{\"mine\": 1,", 1);
    env.write(".claude/settings.json", settings);
    env.remove(skill);
    let now = status(&env, "claude", "project");
    assert_eq!(
        states(&now),
        [
            "current", "current", "current", "current", "edited", "missing"
        ]
    );
    assert_eq!(
        (&now["installed"], &now["complete"]),
        (&json!(true), &json!(false))
    );
    let text = env
        .recover(&["plugin", "status", "claude"])
        .expect(0)
        .stdout;
    assert!(
        text.starts_with("claude (project): installed in part\n")
            && text.contains("undo.md: edited\n"),
        "{text}"
    );
    let again = env.json(0, &["plugin", "install", "claude", "--program", "recover"]);
    assert!(
        again["notes"]
            .to_string()
            .contains("undo.md was edited: it is left as it is"),
        "{again}"
    );
    assert_eq!(
        (env.read(undo), env.read(".mcp.json")),
        (edited.clone(), server)
    );
    assert!(env.exists(skill));
    env.json(0, &["plugin", "uninstall", "claude"]);
    assert_eq!(env.read(undo), edited);
    assert_eq!(env.read(".claude/settings.json"), "{\"mine\": 1\n}\n");
    assert!(!env.exists(skill) && !env.exists(".mcp.json"));
}

// What another program made is refused whole, with the way on; so is what there is no plugin for.
#[test]
fn a_plugin_that_cannot_be_installed_changes_nothing() {
    let env = TestEnv::repo();
    for (agent, file, theirs, code) in [
        ("claude", ".claude/skills/recover/SKILL.md", "mine\n", 13),
        (
            "claude",
            ".mcp.json",
            "{\"mcpServers\": {\"recover\": {\"command\": \"mine\"}}}",
            2,
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.recover]\ncommand = 'mine'\n",
            2,
        ),
        ("codex", ".codex/config.toml", "not toml", 2),
        (
            "gemini",
            ".gemini/commands/recover/undo.toml",
            "mine = 1\n",
            13,
        ),
        ("opencode", ".opencode/plugins/recover.js", "// mine\n", 13),
    ] {
        env.write(file, theirs);
        let before = files(env.work());
        let refused = env.error(code, &["plugin", "install", agent]);
        assert!(
            refused["message"].to_string().contains(file) && refused["hint"].is_string(),
            "{refused}"
        );
        let status = status(&env, agent, "project");
        assert!(
            status["note"].is_string() && status["installed"] == false,
            "{status:#}"
        );
        env.json(0, &["plugin", "uninstall", agent]);
        assert_eq!(files(env.work()), before, "{agent}");
        env.remove(file);
    }
    for agent in ["aider", "git"] {
        let refused = env.recover(&["plugin", "install", agent]).expect(2);
        assert!(
            refused.stderr.contains("claude, codex, gemini, opencode"),
            "{}",
            refused.stderr
        );
    }
}

// Both are one installation: the hook works on, and forgetting everything takes the plugin along.
#[test]
fn the_hook_is_part_of_the_plugin() {
    let env = TestEnv::repo();
    for agent in AGENTS {
        env.json(0, &["hook", "install", agent]);
        assert_eq!(status(&env, agent, "project")["complete"], false);
        env.json(0, &["plugin", "install", agent]);
        env.json(0, &["hook", "install", agent]);
        assert_eq!(status(&env, agent, "project")["complete"], true, "{agent}");
        env.json(0, &["hook", "uninstall", agent]);
        let left = status(&env, agent, "project");
        assert_eq!(
            (&left["installed"], &left["complete"]),
            (&json!(true), &json!(false)),
            "{agent}"
        );
        env.json(0, &["plugin", "uninstall", agent]);
    }
    let before = files(env.work());
    env.json(0, &["plugin", "install", "claude"]);
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    env.recover(&["forget", "--all", "--yes"]).expect(0);
    assert_eq!(files(env.work()), before);
}
