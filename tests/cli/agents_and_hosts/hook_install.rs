//! `hook install`, `hook uninstall`, `hook print`: the settings that make agents and git call (S10).

use serde_json::{Value, json};

use crate::agents_and_hosts::hook_run::{edit, triggers};
use crate::env::TestEnv;

// Settings that are there keep everything else, twice is once, and out again is as before.
#[test]
fn settings_are_merged_and_taken_out_again() {
    for (agent, file) in [
        ("claude", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
    ] {
        let env = TestEnv::repo();
        let theirs = "{\n    \"z\": 1.5,\n    \"hooks\": {\n        \"Notification\": [\n            {\n                \
                      \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \
                      \"command\": \"true\"\n                    }\n                ]\n            }\n        ]\n    },\n    \
                      \"a\": [\n        1\n    ]\n}";
        env.write(file, theirs);
        let planned = env.json(0, &["--dry-run", "hook", "install", agent]);
        assert_eq!(
            (&planned["changed"], &planned["plan"]["files"][0]["change"]),
            (&json!(false), &json!("modified"))
        );
        assert_eq!(env.read(file), theirs);
        let done = env.json(0, &["hook", "install", agent, "--program", "recover"]);
        assert_eq!(done["changed"], true, "{done}");
        let installed = env.read(file);
        let value: Value = serde_json::from_str(&installed).expect("JSON");
        assert_eq!((&value["z"], &value["a"]), (&json!(1.5), &json!([1])));
        assert!(
            installed.contains(&format!("recover hook run {agent} || true")),
            "{installed}"
        );
        assert!(
            installed.starts_with("{\n    \"z\": 1.5,\n    \"hooks\": {\n        \"Notification\""),
            "{installed}"
        );
        let again = env.json(0, &["hook", "install", agent, "--program", "recover"]);
        assert_eq!(
            (&again["changed"], &again["files"][0]["change"]),
            (&json!(false), &json!("unchanged"))
        );
        env.json(0, &["hook", "uninstall", agent]);
        assert_eq!(env.read(file), theirs, "{agent}");
        assert_eq!(env.json(0, &["hook", "uninstall"])["changed"], false);
    }
}

#[test]
fn a_settings_file_that_cannot_be_read_is_left_alone() {
    let env = TestEnv::repo();
    for broken in [
        "{ // a comment\n}",
        "[]",
        "{\"hooks\": 3}",
        "{\"hooks\": {\"Stop\": {}}}",
        "\u{feff}{}",
    ] {
        env.write(".claude/settings.json", broken);
        let refused = env.json(2, &["hook", "install", "claude"]);
        assert_eq!(refused["error"]["code"], "config", "{broken}");
        assert_eq!(env.read(".claude/settings.json"), broken);
    }
    env.write(".claude/settings.json", b"\xff\xfe".as_slice());
    env.json(2, &["hook", "install", "claude"]);
    env.write(".opencode/plugins/recover.js", "// mine\n");
    assert_eq!(
        env.error(13, &["hook", "install", "opencode"])["code"],
        "already_exists"
    );
    env.json(0, &["hook", "uninstall", "opencode"]);
    assert_eq!(env.read(".opencode/plugins/recover.js"), "// mine\n");
    env.json(2, &["hook", "install", "codex", "--local"]);
    assert_eq!(env.recover(&["hook", "install", "aider"]).code, 2);
}

// Whatever a settings file looks like, all bytes but ours stay, and none is left; so do no folders that were made.
#[test]
fn settings_files_are_restored_byte_for_byte() {
    let odd = [
        "{\"a\":12345678901234567890123,\"b\":1.00}",
        "{\"a\": 1, \"a\": 2}",
        "{\r\n\t\"model\" : \"opus\",\r\n\r\n\t\"hooks\": { }\r\n}\r\n",
        "{ \"hooks\": {\"Stop\":[],\"PreToolUse\":[ {\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]} ]}}",
        "{}",
    ];
    for (agent, file) in [
        ("claude", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
    ] {
        let env = TestEnv::repo();
        for odd in odd {
            env.write(file, odd);
            env.json(0, &["hook", "install", agent]);
            let installed = env.read(file);
            serde_json::from_str::<Value>(&installed).expect("JSON");
            assert!(
                installed.contains(&format!("hook run {agent}")),
                "{installed}"
            );
            env.json(0, &["hook", "uninstall", agent]);
            assert_eq!(env.read(file), odd, "{agent}");
        }
        env.sh(&format!(
            "rm -r {}",
            file.split('/').next().expect("a folder")
        ))
        .expect(0);
        env.json(0, &["hook", "install", agent]);
        env.json(0, &["hook", "uninstall", agent]);
        assert!(
            !env.exists(file.split('/').next().expect("a folder")),
            "{agent}"
        );
    }
    let env = TestEnv::repo();
    env.write(".opencode/own.txt", "mine");
    env.json(0, &["hook", "install", "opencode"]);
    env.json(0, &["hook", "uninstall", "opencode"]);
    assert!(env.exists(".opencode/own.txt") && !env.exists(".opencode/plugins"));
}

// Comments stay where they are for an agent that reads them, and one that does not is said; a file that held nothing is
// there again, and holds nothing.
#[test]
fn comments_and_empty_files_stay_as_they_are() {
    let env = TestEnv::repo();
    let (file, commented) = (
        ".gemini/settings.json",
        "// ours, not the tool's\n{\n  /* {\"hooks\": [ */\n  \"hooks\": { // before each tool\n    \"BeforeTool\": [\n      // none yet\n    ]\n  },\n  \"ui\": {\"theme\": \"a // b\"} // \"last\",\n}\n",
    );
    for text in [commented, "", "\n", " \t\r\n"] {
        env.write(file, text);
        env.json(0, &["hook", "install", "gemini", "--program", "recover"]);
        let installed = env.read(file);
        assert!(installed.contains("recover hook run gemini"), "{installed}");
        for line in text.lines() {
            assert!(installed.contains(line), "{line:?} is gone: {installed}");
        }
        assert_eq!(
            env.json(0, &["hook", "install", "gemini", "--program", "recover"])["changed"],
            false,
            "{text:?}"
        );
        env.json(0, &["hook", "uninstall", "gemini"]);
        assert!(env.exists(file), "it was there before: {text:?}");
        assert_eq!(env.read(file), text);
    }
    env.write(".codex/hooks.json", commented);
    let refused = env.json(2, &["hook", "install", "codex"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("allows no comments")),
        "{refused}"
    );
    assert!(
        refused["error"]["hint"]
            .as_str()
            .is_some_and(|text| text.contains("hook print codex")),
        "{refused}"
    );
    assert_eq!(env.read(".codex/hooks.json"), commented);
}

// What is wrong with a hook nobody would see: it calls nothing, or another recover, or the agent does not call it.
#[test]
fn the_doctor_examines_the_hooks() {
    let env = TestEnv::repo();
    let examined = || {
        let document = env.json(0, &["doctor"]);
        assert_eq!(document["problems"], json!([]), "{document}");
        document["hooks"].as_array().expect("a list").clone()
    };
    assert_eq!(examined(), Vec::<Value>::new());
    assert_eq!(env.recover(&["doctor"]).expect(0).stdout, "No problems.\n");
    let only = || {
        let hooks = examined();
        assert_eq!(hooks.len(), 1, "{hooks:?}");
        hooks[0].clone()
    };
    let noted = |words: &str| {
        let hook = only();
        assert!(
            hook["note"]
                .as_str()
                .is_some_and(|note| note.contains(words)),
            "{words}: {hook:#}"
        );
        hook
    };
    env.json(
        0,
        &[
            "hook",
            "install",
            "claude",
            "--program",
            "/nonexistent/recover",
        ],
    );
    let gone = noted("calls /nonexistent/recover, which is not there");
    assert_eq!(
        (&gone["agent"], &gone["program"]),
        (&json!("claude"), &json!("/nonexistent/recover"))
    );
    assert!(
        gone["path"]
            .as_str()
            .is_some_and(|path| path.ends_with(".claude/settings.json")),
        "{gone}"
    );
    let program = env!("CARGO_BIN_EXE_recover");
    env.script("../other recover", &format!("exec {program} \"$@\""));
    let other = env.root().join("other recover").display().to_string();
    env.json(0, &["hook", "install", "claude", "--program", &other]);
    noted("other recover; this is ");
    env.json(0, &["hook", "install", "claude", "--program", program]);
    noted("never called: ");
    // The agent was at work here, and did not call.
    let record = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "s-1", "result": "Done.",
        "usage": {"input_tokens": 3, "output_tokens": 4}});
    env.script("claude", &format!("echo '{record}'"));
    env.json(0, &["run", "--prompt", "x", "--", "./claude", "-p"]);
    let idle = noted("never called, though claude was at work at ");
    assert_eq!(
        (&idle["last_called"], &idle["called_version"]),
        (&Value::Null, &Value::Null)
    );
    let call = edit(&env, "s", "a.txt").to_string();
    env.recover_fed(&call, &["hook", "run", "claude"]).expect(0);
    let called = only();
    assert!(
        called["last_called"].is_string() && called["note"].is_null(),
        "{called:#}"
    );
    assert_eq!(called["called_version"], env!("CARGO_PKG_VERSION"));
    let text = env.recover(&["doctor"]).expect(0).stdout;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("No problems."));
    let row = lines.find(|line| line.contains(" claude ")).expect("a row");
    assert!(
        row.contains("/.claude/settings") && !row.contains("never"),
        "{text}"
    );
    // It was called once, and is not any more.
    env.json(0, &["run", "--prompt", "x", "--", "./claude", "-p"]);
    noted("not called any more, though claude was at work at ");
}

// What was seen of the calls, not what is in a file, says whether a hook works.
#[test]
fn the_status_tells_of_calls_that_were_seen() {
    let env = TestEnv::repo();
    let status = |agent: &str| {
        let document = env.json(0, &["hook", "status"]);
        let hooks = document["hooks"].as_array().expect("a list").clone();
        hooks
            .into_iter()
            .find(|hook| hook["agent"] == agent)
            .expect("the agent")
    };
    let none = status("claude");
    assert_eq!(
        (&none["installed"], &none["path"], &none["last_called"]),
        (&json!(false), &Value::Null, &Value::Null)
    );
    assert!(
        none["note"]
            .as_str()
            .expect("a note")
            .contains("hook install claude"),
        "{none}"
    );
    env.json(0, &["hook", "install", "claude"]);
    let idle = status("claude");
    assert_eq!(
        (&idle["installed"], &idle["last_called"]),
        (&json!(true), &Value::Null)
    );
    assert!(
        idle["note"].as_str().expect("a note").contains("trusted"),
        "{idle}"
    );
    let mut hook = env.recover_command(&["hook", "run", "claude"]);
    hook.stdin(std::process::Stdio::piped());
    let mut child = hook.spawn().expect("it starts");
    std::io::Write::write_all(
        &mut child.stdin.take().expect("stdin"),
        edit(&env, "s", "a.txt").to_string().as_bytes(),
    )
    .expect("written");
    assert!(child.wait().expect("its end").success());
    let called = status("claude");
    assert!(
        called["last_called"].is_string() && called["note"].is_null(),
        "{called}"
    );
    assert!(
        called["path"]
            .as_str()
            .expect("a path")
            .ends_with(".claude/settings.json"),
        "{called}"
    );
    assert_eq!(status("git")["installed"], false);
    assert!(
        env.recover(&["hook", "status"])
            .expect(0)
            .stdout
            .contains("LAST CALLED")
    );
}

#[test]
fn what_cannot_be_written_as_it_is_stays() {
    let env = TestEnv::repo();
    let twice = "{\"hooks\": {}, \"hooks\": {}}";
    env.write(".claude/settings.json", twice);
    let refused = env.json(2, &["hook", "install", "claude"]);
    assert!(
        refused["error"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("hook print")),
        "{refused}"
    );
    assert_eq!(env.read(".claude/settings.json"), twice);
    assert_eq!(
        env.json(0, &["hook", "uninstall", "claude"])["changed"],
        false
    );
    let other = "{\n  \"hooks\": {\n    \"enabled\": true\n  },\n  \"a\": 0.5\n}\n";
    env.write(".gemini/settings.json", other);
    env.json(0, &["hook", "install", "gemini"]);
    assert!(
        env.read(".gemini/settings.json")
            .contains("\"enabled\": true")
    );
    env.json(0, &["hook", "uninstall", "gemini"]);
    assert_eq!(env.read(".gemini/settings.json"), other);
    // A link to nothing is somebody's, and stays one.
    env.sh("rm .claude/settings.json; ln -s ../nowhere/settings.json .claude/settings.json")
        .expect(0);
    assert_eq!(
        env.error(13, &["hook", "install", "claude"])["code"],
        "unsafe_path"
    );
    assert!(
        env.work().join(".claude/settings.json").is_symlink()
            && !env.work().join("nowhere").exists()
    );
    let home = env.root().join("home/.claude");
    std::fs::create_dir_all(&home).expect("a folder");
    std::os::unix::fs::symlink("/nowhere/settings.json", home.join("settings.json"))
        .expect("a link");
    assert_eq!(
        env.error(2, &["hook", "install", "claude", "--user"])["code"],
        "config"
    );
}

// Taking the hook out where the files are not as they were left: what holds nothing of ours is not touched, a command that
// was edited goes, a link leads to something afterwards, and one file that is refused keeps nobody else's in.
#[test]
fn the_hook_is_taken_out_of_files_that_were_changed_since() {
    let env = TestEnv::repo();
    for broken in ["", "{ // a comment\n}", "[]", "{\"hooks\": 3}"] {
        env.write(".claude/settings.json", broken);
        assert_eq!(
            env.json(0, &["hook", "uninstall", "claude"])["changed"],
            false,
            "{broken}"
        );
        assert_eq!(env.read(".claude/settings.json"), broken);
    }
    // A flag was added, and the end taken off.
    env.remove(".claude/settings.json");
    env.json(0, &["hook", "install", "claude", "--program", "recover"]);
    let edited = env
        .read(".claude/settings.json")
        .replace("claude || true", "claude --deadline 9s");
    env.write(".claude/settings.json", edited);
    env.json(0, &["hook", "uninstall", "claude"]);
    assert!(!env.exists(".claude/settings.json"));
    // Somebody keeps their settings elsewhere.
    env.write("dotfiles/claude.json", "{}\n");
    let home = env.root().join("home");
    std::fs::create_dir_all(home.join(".claude")).expect("a folder");
    let dotfiles = env.work().join("dotfiles");
    std::os::unix::fs::symlink(
        dotfiles.join("claude.json"),
        home.join(".claude/settings.json"),
    )
    .expect("a link");
    env.json(0, &["hook", "install", "claude", "--user"]);
    env.json(0, &["hook", "uninstall", "claude", "--user"]);
    assert_eq!(
        env.read("dotfiles/claude.json"),
        "{}\n",
        "the link leads to something"
    );
    env.json(0, &["hook", "install", "opencode", "--user"]);
    let plugin = home.join(".config/opencode/plugins/recover.js");
    std::fs::rename(&plugin, dotfiles.join("recover.js")).expect("moved");
    std::os::unix::fs::symlink(dotfiles.join("recover.js"), &plugin).expect("a link");
    env.json(0, &["hook", "uninstall", "opencode", "--user"]);
    assert!(plugin.symlink_metadata().is_err() && env.exists("dotfiles/recover.js"));
    // One that cannot be read as settings does not keep the others in.
    for agent in ["claude", "codex", "git"] {
        env.json(0, &["hook", "install", agent, "--program", "recover"]);
    }
    let broken = env
        .read(".claude/settings.json")
        .replacen('{', "{ // mine\n", 1);
    env.write(".claude/settings.json", &broken);
    let refused = env.json(2, &["hook", "uninstall"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .expect("text")
            .contains("not valid JSON"),
        "{refused}"
    );
    assert_eq!(env.read(".claude/settings.json"), broken);
    assert!(!env.exists(".codex/hooks.json") && !env.exists(".git/hooks/pre-push"));
}

// Where the settings go: the project, the user's own of the project, the user's; a link stays one.
#[test]
fn settings_go_where_they_are_wanted() {
    let env = TestEnv::repo();
    env.json(0, &["hook", "install", "claude", "--local"]);
    assert!(env.exists(".claude/settings.local.json") && !env.exists(".claude/settings.json"));
    env.json(0, &["hook", "uninstall", "claude", "--local"]);
    assert!(
        !env.exists(".claude/settings.local.json"),
        "it was made for the hook"
    );
    env.write("dotfiles/claude.json", "{}\n");
    env.sh("chmod 600 dotfiles/claude.json").expect(0);
    let home = env.root().join("home/.claude");
    std::fs::create_dir_all(&home).expect("a folder");
    std::os::unix::fs::symlink(
        env.work().join("dotfiles/claude.json"),
        home.join("settings.json"),
    )
    .expect("a link");
    env.json(0, &["hook", "install", "claude", "--user"]);
    assert!(home.join("settings.json").is_symlink());
    assert!(
        env.read("dotfiles/claude.json").contains("hook run claude")
            && env.mode("dotfiles/claude.json") == 0o600
    );
    env.json(0, &["hook", "install", "opencode"]);
    assert!(
        env.read(".opencode/plugins/recover.js")
            .contains("hook run opencode")
    );
    env.json(0, &["hook", "uninstall", "opencode"]);
    assert!(!env.exists(".opencode/plugins/recover.js"));
}

// What is printed is what is installed, and works when the shell runs it.
#[test]
fn printed_settings_work_as_they_stand() {
    let env = TestEnv::repo();
    let program = env!("CARGO_BIN_EXE_recover");
    let printed = env
        .recover(&["hook", "print", "claude", "--program", program])
        .expect(0)
        .stdout;
    let settings: Value = serde_json::from_str(&printed).expect("JSON");
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        .as_str()
        .expect("a command")
        .to_owned();
    env.json(0, &["hook", "install", "claude", "--program", program]);
    assert_eq!(
        serde_json::from_str::<Value>(&env.read(".claude/settings.json")).expect("JSON"),
        settings
    );
    let ran = env.sh(&format!("echo '{}' | {command}", edit(&env, "s", "a.txt")));
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "", "")
    );
    assert_eq!(triggers(&env, "claude-s"), ["initial"]);
    // A machine without the program, or with one that knows no hooks, stops no agent.
    let gone = command.replace(program, "/nonexistent/recover");
    assert_eq!(env.sh(&format!("echo '{{}}' | {gone}")).code, 0);
    for agent in ["codex", "gemini", "opencode", "git"] {
        let text = env.recover(&["hook", "print", agent]).expect(0).stdout;
        assert!(text.contains(&format!("hook run {agent}")), "{text}");
    }
}

// git's own hooks: before a rebase and a push; whatever was there keeps running, and its exit code counts.
#[test]
fn git_takes_a_checkpoint_before_a_rebase_and_a_push() {
    let env = TestEnv::repo();
    let program = env!("CARGO_BIN_EXE_recover");
    let theirs = "#!/bin/sh\ncat > ../pushed\ntest ! -e ../forbid\n";
    env.write(".git/hooks/pre-push", theirs);
    env.git(&["config", "core.fileMode", "true"]);
    env.sh("chmod 755 .git/hooks/pre-push").expect(0);
    env.json(0, &["hook", "install", "git", "--program", program]);
    let again = env.json(0, &["hook", "install", "git", "--program", program]);
    assert_eq!(again["changed"], false, "{again}");
    env.git(&["init", "-q", "--bare", "../remote"]);
    env.git(&["remote", "add", "origin", "../remote"]);
    env.write("untracked.txt", "work\n");
    env.git(&["push", "-q", "origin", "main"]);
    let pushed = std::fs::read_to_string(env.work().join("../pushed")).expect("their hook ran");
    assert!(
        pushed.contains("refs/heads/main"),
        "its input is its own: {pushed}"
    );
    env.git(&["checkout", "-q", "-b", "topic"]);
    env.write("b.txt", "b\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-q", "-m", "b"]);
    env.git(&["rebase", "-q", "-f", "main"]);
    let list = env.json(0, &["checkpoint", "list"]);
    let taken: Vec<&Value> = list["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["trigger"])
        .collect();
    assert_eq!(taken, [&json!("external"), &json!("risky")], "{list}");
    env.write("../forbid", "");
    assert_ne!(
        env.sh("git push -q origin topic").code,
        0,
        "their refusal counts"
    );
    env.json(0, &["hook", "uninstall", "git"]);
    assert_eq!(env.read(".git/hooks/pre-push"), theirs);
    assert!(!env.exists(".git/hooks/pre-rebase"));
}

#[test]
fn hooks_of_others_are_respected() {
    let env = TestEnv::repo();
    env.git(&["config", "core.hooksPath", ".githooks"]);
    env.write(
        ".githooks/pre-push",
        "#!/usr/bin/env python3\nprint('theirs')\n",
    );
    let refused = env.json(13, &["hook", "install", "git"]);
    let told = refused["error"]["message"].as_str();
    assert!(
        told.is_some_and(|told| told.contains("hook run git pre-push")),
        "{refused}"
    );
    assert!(!env.exists(".githooks/pre-rebase"), "all or nothing");
    env.remove(".githooks/pre-push");
    env.json(0, &["hook", "install", "git"]);
    assert!(env.exists(".githooks/pre-rebase") && !env.exists(".git/hooks/pre-rebase"));
    let outside = env.root().join("hooks").to_string_lossy().into_owned();
    env.git(&["config", "core.hooksPath", &outside]);
    assert_eq!(
        env.error(13, &["hook", "install", "git"])["code"],
        "unsafe_path"
    );
    // So is a script that is a link to one outside.
    env.git(&["config", "--unset", "core.hooksPath"]);
    env.sh("printf '#!/bin/sh\\n' > ../shared; chmod 755 ../shared; ln -s \"$PWD/../shared\" .git/hooks/pre-push")
        .expect(0);
    assert_eq!(
        env.error(13, &["hook", "install", "git"])["code"],
        "unsafe_path"
    );
    assert_eq!(env.read("../shared"), "#!/bin/sh\n");
    assert_eq!(env.json(0, &["hook", "uninstall", "git"])["changed"], false);
    // git does not run a script that is not executable; that is told, and its mode is its own.
    env.sh(
        "rm .git/hooks/pre-push; cp ../shared .git/hooks/pre-push; chmod 644 .git/hooks/pre-push",
    )
    .expect(0);
    let installed = env.json(0, &["hook", "install", "git"]);
    assert!(
        installed["notes"].to_string().contains("is not executable"),
        "{installed}"
    );
}
