//! The entries and files of the plugin, and the folder `plugin/`, which is generated from them and its `source`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::settings::{opencode_plugin, settings};
use super::*;

const DESCRIPTION: &str = env!("CARGO_PKG_DESCRIPTION");
const REFRESH: &str = "RECOVER_TEST_REFRESH=1 cargo test --lib the_folder_is_generated";

/// What every manifest has, and what this agent's has beside it.
fn manifest(more: &Value) -> String {
    let mut manifest = json!({"name": "recover", "version": env!("CARGO_PKG_VERSION"), "description": DESCRIPTION});
    for (name, value) in more.as_object().unwrap() {
        manifest[name] = value.clone();
    }
    pretty(&manifest, "  ") + "\n"
}

/// The servers as an agent's plugin has them.
fn servers() -> Value {
    json!({SERVERS: {NAME: server("recover")}})
}

fn json_text(value: &Value) -> String {
    pretty(value, "  ") + "\n"
}

fn author() -> Value {
    json!({"name": "the authors of recover"})
}

/// A list of one plugin, in the form that three agents share.
fn marketplace(source: &str) -> String {
    let plugin = json!({"name": "recover", "source": source, "description": DESCRIPTION});
    json_text(
        &json!({"name": "recover", "owner": author(), "description": DESCRIPTION, "plugins": [plugin]}),
    )
}

/// Every generated file below `plugin/`.
fn folder() -> BTreeMap<PathBuf, String> {
    let own = json!({"author": author(), "license": env!("CARGO_PKG_LICENSE")});
    let with_hooks = |agent| json_text(&settings(agent, "recover"));
    let mut all = vec![
        (
            ".claude-plugin/marketplace.json",
            marketplace("./claude"),
        ),
        (
            ".github/plugin/marketplace.json",
            marketplace("./copilot"),
        ),
        (
            ".cursor-plugin/marketplace.json",
            marketplace("./cursor"),
        ),
        (
            ".agents/plugins/marketplace.json",
            json_text(&json!({"name": "recover", "interface": {"displayName": "recover"},
                "plugins": [{"name": "recover", "source": {"source": "local", "path": "./codex"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Productivity"}]})),
        ),
        ("claude/.claude-plugin/plugin.json", manifest(&own)),
        ("claude/.mcp.json", json_text(&servers())),
        ("claude/hooks/hooks.json", with_hooks(HookAgent::Claude)),
        (
            "codex/.codex-plugin/plugin.json",
            manifest(&json!({"author": author(), "license": env!("CARGO_PKG_LICENSE"), "skills": "./skills/",
                "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"})),
        ),
        ("codex/.mcp.json", json_text(&servers())),
        ("codex/hooks/hooks.json", with_hooks(HookAgent::Codex)),
        ("gemini/gemini-extension.json", manifest(&servers())),
        ("gemini/hooks/hooks.json", with_hooks(HookAgent::Gemini)),
        ("cursor/.cursor-plugin/plugin.json", manifest(&own)),
        ("cursor/mcp.json", json_text(&servers())),
        ("copilot/plugin.json", manifest(&own)),
        ("copilot/.mcp.json", json_text(&servers())),
        (
            "opencode/plugins/recover.js",
            opencode_plugin("recover", &opencode_config("recover")),
        ),
    ]
    .into_iter()
    .map(|(path, text)| (PathBuf::from(path), text))
    .collect::<BTreeMap<_, _>>();
    for agent in ["claude", "codex", "gemini", "cursor", "copilot", "opencode"] {
        let mut add = |path: String, text: String| all.insert(Path::new(agent).join(path), text);
        add("skills/recover/SKILL.md".to_owned(), SKILL.to_owned());
        for command in COMMANDS {
            let name = command.name;
            match agent {
                "claude" => add(format!("commands/{name}.md"), command.text.to_owned()),
                // The agent puts the plugin's name before it.
                "codex" => add(format!("skills/{name}/SKILL.md"), command.skill(name)),
                "gemini" => add(format!("commands/recover/{name}.toml"), command.toml()),
                "copilot" => add(
                    format!("skills/recover-{name}/SKILL.md"),
                    command.skill(&format!("recover-{name}")),
                ),
                "opencode" => None,
                _ => add(
                    format!("commands/recover-{name}.md"),
                    command.text.to_owned(),
                ),
            };
        }
    }
    all
}

fn files_below(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, all);
        } else {
            all.push(path);
        }
    }
}

#[test]
fn the_folder_is_generated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin");
    let expected = folder();
    let mut found = Vec::new();
    files_below(&root, &mut found);
    let stale = found.into_iter().filter(|path| {
        let path = path.strip_prefix(&root).unwrap();
        !path.starts_with("source") && !expected.contains_key(path)
    });
    let stale: Vec<PathBuf> = stale.collect();
    if std::env::var_os("RECOVER_TEST_REFRESH").is_some() {
        for path in &stale {
            fs::remove_file(path).unwrap();
        }
        for (path, text) in expected {
            fs::create_dir_all(root.join(&path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        return;
    }
    assert_eq!(stale, [] as [PathBuf; 0], "nothing generates them");
    for (path, text) in expected {
        let found = fs::read_to_string(root.join(&path)).unwrap_or_default();
        assert_eq!(found, text, "{} is out of date: {REFRESH}", path.display());
    }
}

#[test]
fn every_form_of_a_command_can_be_read() {
    for command in COMMANDS {
        let (description, body) = command.parts();
        assert!(description.len() > 20 && !description.contains(['"', ':', '\n']));
        assert!(body.contains("recover ") && body.matches(ARGUMENTS).count() == 1);
        let toml: toml::Table = command.toml().parse().unwrap();
        assert_eq!(toml["description"].as_str(), Some(description));
        assert_eq!(
            toml["prompt"]
                .as_str()
                .map(|prompt| prompt.replace("{{args}}", ARGUMENTS)),
            Some(body.to_owned())
        );
        assert!(!command.skill("x").contains(ARGUMENTS));
    }
    assert!(SKILL.starts_with("---\nname: recover\ndescription: "));
}

#[test]
fn an_edited_file_is_known() {
    for text in [SKILL, COMMANDS[0].text, "a = 1\n", ""] {
        let made = marked(text, "plugin");
        assert_eq!(owner(&made), Owner::Ours, "{made}");
        assert_eq!(owner(&(made + "more\n")), Owner::Edited);
        assert_eq!(owner(text), Owner::Theirs);
    }
}

#[test]
fn a_server_is_added_and_taken_out_to_the_byte() {
    let theirs = [
        "",
        "\n",
        "{}",
        "{ }\n",
        "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n",
        "{\"mcpServers\":{},\"a\":1.0}",
        "{\r\n\t\"hooks\": {\"Stop\": []}\r\n}\r\n",
    ];
    for entry in [Entry::Server, Entry::HookAndServer] {
        for text in theirs.map(Some).into_iter().chain([None]) {
            let with = |text: Option<&str>, path| {
                entry
                    .with(text, HookAgent::Gemini, ("recover", path))
                    .unwrap()
            };
            let added = with(text, "recover");
            assert_eq!(entry_in(&added), Some(server("recover")), "{added}");
            assert_eq!(with(Some(&added), "recover"), added, "twice is once");
            let moved = with(Some(&added), "/opt/recover");
            for made in [added, moved] {
                let left = entry.without(&made, HookAgent::Gemini).unwrap();
                assert_eq!(left.as_deref(), text, "{made}");
            }
        }
    }
    // What a user adds to the entry stays.
    let edited = "{\"mcpServers\": {\"recover\": {\"command\": \"recover\", \"args\": [\"mcp\"], \"env\": {}}}}";
    assert_eq!(with_server(Some(edited), "recover").unwrap(), edited);
    for wrong in [
        "[]",
        "{\"mcpServers\": 1}",
        "{\"mcpServers\": {\"recover\": {\"command\": \"theirs\"}}}",
        "{\"mcpServers\": {}, \"mcpServers\": {}}",
    ] {
        assert!(with_server(Some(wrong), "recover").is_err(), "{wrong}");
        assert_eq!(without_server(wrong).as_deref(), Some(wrong));
    }
}

#[test]
fn a_table_is_added_and_taken_out_to_the_byte() {
    let theirs = [
        "",
        "a = 1",
        "a = 1\n",
        "# b\r\n[mcp_servers.x]\r\ncommand = 'x'\r\n",
        "\n",
    ];
    for text in theirs.map(Some).into_iter().chain([None]) {
        let added = with_table(text, "/a \"b\"/recover").unwrap();
        let server = parsed(&added).unwrap()["mcp_servers"]["recover"].clone();
        assert_eq!(server["command"].as_str(), Some("/a \"b\"/recover"));
        assert_eq!(with_table(Some(&added), "/a \"b\"/recover").unwrap(), added);
        let moved = with_table(Some(&added), "recover").unwrap();
        for made in [&added, &moved] {
            assert_eq!(without_table(made).unwrap().as_deref(), text, "{made}");
        }
        // Codex adds what it was told behind it, and a user to the table.
        let told = format!(
            "{}\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
            added.trim_end()
        );
        let told = told.replace("args = ", "startup_timeout_sec = 9\nargs = ");
        let left = without_table(&told).unwrap().unwrap();
        assert!(
            left.ends_with("\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n"),
            "{left}"
        );
        assert!(
            !left.contains("recover") && !left.contains("startup"),
            "{left}"
        );
    }
    let own = "[mcp_servers.recover]\ncommand = 'mine'\n";
    assert!(with_table(Some(own), "recover").is_err());
    assert_eq!(without_table(own).unwrap().as_deref(), Some(own));
    let more = with_table(None, "recover").unwrap() + "[mcp_servers.recover.env]\nA = '1'\n";
    assert!(without_table(&more).is_err(), "nothing would start it");
}
