//! What a project's configuration starts and permits counts only where the user trusts it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::terminal::Terminal;

const FILE: &str = ".ultraplan/recover.toml";
const CHECK: &str = "[[feedback]]\nname = 'test'\ncommand = 'echo checked >> ../checks'\n";

fn checks(env: &TestEnv) -> usize {
    fs::read_to_string(env.root().join("checks"))
        .unwrap_or_default()
        .lines()
        .count()
}

/// A clone with a configuration that nobody here has seen.
fn clone() -> TestEnv {
    let env = TestEnv::repo();
    env.put(FILE, CHECK);
    env
}

fn changes(document: &Value) -> Vec<(String, String)> {
    let values = document["values"].as_array().expect("values");
    let text = |value: &Value, key: &str| value[key].as_str().expect("text").to_owned();
    values
        .iter()
        .map(|value| (text(value, "key"), text(value, "change")))
        .collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter()
        .map(|(key, change)| ((*key).to_owned(), (*change).to_owned()))
        .collect()
}

#[test]
fn nothing_of_a_clone_is_started_before_it_is_trusted() {
    let env = clone();
    let error = env.error(13, &["run", "--", "true"]);
    assert_eq!(error["code"], "not_trusted");
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("feedback.test = echo checked") && message.contains(FILE),
        "{message}"
    );
    assert_eq!(
        error["hint"],
        format!("recover -C {} trust", env.work().display())
    );
    assert_eq!(checks(&env), 0);
    assert!(
        !env.exists(".ultraplan/state"),
        "nothing was recorded, no checkpoint taken"
    );
    env.error(13, &["run", "--dry-run", "--", "true"]);
    // The hint works from any folder.
    env.sh(&format!(
        "cd / && {} -C '{}' trust",
        env!("CARGO_BIN_EXE_recover"),
        env.work().display()
    ))
    .expect(0);
    env.json(0, &["run", "--run", "r", "--", "true"]);
    assert_eq!(checks(&env), 2, "before the first attempt, and after it");
}

#[test]
fn who_only_looks_or_goes_back_is_never_asked() {
    let env = clone();
    for args in [
        &["checkpoint", "create"][..],
        &["status"],
        &["log"],
        &["runs"],
        &["doctor"],
        &["config"],
        &["checkpoint", "list"],
        &["rollback", "--to", "latest"],
        &["report"],
        &["retry-status"],
        &["agents"],
        &["attempt", "start"],
        &["attempt", "fail", "--message", "x"],
        &["step", "s", "--", "true"],
    ] {
        let document = env.json(0, args);
        assert!(document["error"].is_null(), "{args:?}: {document}");
    }
    env.recover(&["hook", "run", "git", "post-commit"])
        .expect(0);
    assert_eq!(checks(&env), 0);
}

#[test]
fn a_file_that_starts_and_permits_nothing_needs_no_trust() {
    let env = TestEnv::repo();
    env.put(
        FILE,
        "skip_permissions = false\n[retry]\nmax_attempts = 5\n[runner]\ntimeout = '5m'\nagent = 'auto'\ncommand = []\n\
         [[rule]]\nid = 'x'\npattern = 'x'\ncause = 'UNKNOWN'\n",
    );
    env.json(0, &["run", "--run", "r", "--", "true"]);
    let trust = env.json(0, &["trust"]);
    assert_eq!(
        (&trust["changed"], &trust["trusted"], &trust["values"]),
        (&json!(false), &json!(true), &json!([]))
    );
    assert!(!env.root().join("home/.local/state/recover/trust").exists());
}

#[test]
fn only_what_the_call_would_use_is_asked_about() {
    let env = TestEnv::repo();
    let bot = "[agent.bot]\nprogram = 'true'\nyolo_args = ['--all']\n";
    for (text, ask, leave) in [
        (
            "[runner]\ncommand = 'touch ../ran'\n",
            &["run"][..],
            &["run", "--", "true"][..],
        ),
        (
            "[runner]\nfallback = 'touch ../ran'\n",
            &["run", "--", "true"],
            &["run", "--fallback", "true", "--", "true"],
        ),
        (
            "[runner]\nshell = 'bash'\n",
            &["run", "--until", "true", "--", "true"],
            &["run", "--", "true"],
        ),
        (
            "[runner]\nshell = 'bash'\n",
            &["run", "--feedback", "x=true", "--", "true"],
            &["run", "--", "true"],
        ),
        (
            "[runner]\nagent = 'claude'\n",
            &["run", "--prompt", "x"],
            &["run", "--", "true"],
        ),
        (
            bot,
            &["run", "--agent", "bot", "--prompt", "x"],
            &["run", "--", "true"],
        ),
        (
            "skip_permissions = true\n",
            &["run", "--agent", "claude", "--prompt", "x"],
            &["run", "--", "true"],
        ),
        (
            "[task.\"T\".runner]\nfallback = 'touch ../ran'\n",
            &["run", "--task", "T", "--", "true"],
            &["run", "--", "true"],
        ),
        (
            "[[feedback]]\nname = 'x'\ncommand = 'true'\n",
            &["run", "--", "true"],
            &["step", "s", "--", "true"],
        ),
    ] {
        env.put(FILE, text);
        let error = env.error(13, ask);
        assert_eq!(error["code"], "not_trusted", "{text}");
        env.json(0, leave);
    }
    assert!(!env.root().join("ran").exists());
}

#[test]
fn trust_ends_with_any_change_and_holds_for_this_repository() {
    let env = clone();
    let first = env.json(0, &["trust", "--dry-run"]);
    assert_eq!(
        (&first["changed"], &first["trusted"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(first["plan"]["changed"], true);
    env.error(13, &["run", "--", "true"]);
    let given = env.json(0, &["trust"]);
    assert_eq!(
        (&given["changed"], &given["trusted"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(changes(&given), pairs(&[("feedback.test", "added")]));
    assert_eq!(env.json(0, &["trust"])["changed"], false);
    // What starts nothing may change.
    env.put(
        FILE,
        format!("[retry]\nmax_attempts = 5\n{CHECK}kind = 'lint'\n"),
    );
    env.json(0, &["run", "--run", "a", "--", "true"]);
    env.put(
        FILE,
        CHECK.replace("checked", "changed") + "[runner]\nfallback = ['sh', '-c', 'x y']\n",
    );
    let message = env.error(13, &["run", "--", "true"])["message"].to_string();
    assert!(
        message.contains("has changed since it was trusted"),
        "{message}"
    );
    assert!(
        message.contains("runner.fallback = sh -c 'x y'"),
        "{message}"
    );
    let shown = env.json(0, &["trust", "--dry-run"]);
    assert_eq!(
        changes(&shown),
        pairs(&[("feedback.test", "changed"), ("runner.fallback", "added")])
    );
    assert_eq!(
        shown["values"][0]["trusted_value"]["command"],
        "echo checked >> ../checks"
    );
    let text = env.recover(&["trust", "--dry-run"]).expect(0).stdout;
    assert!(
        text.contains("~ feedback.test = echo changed >> ../checks  (was echo checked"),
        "{text}"
    );
    assert!(text.contains("+ runner.fallback = sh -c 'x y'"), "{text}");
    // What was trusted and comes back (a branch that is checked out again) is.
    env.put(FILE, CHECK);
    env.json(0, &["run", "--run", "b", "--", "true"]);
    // Another repository with the very same file is another one.
    let other = clone();
    other.error(13, &["run", "--", "true"]);
    // A linked work tree is the same.
    env.git(&["worktree", "add", "-q", "../linked"]);
    fs::create_dir_all(env.root().join("linked/.ultraplan")).expect("a folder");
    fs::copy(env.work().join(FILE), env.root().join("linked").join(FILE)).expect("the file");
    env.json(0, &["-C", "../linked", "run", "--run", "c", "--", "true"]);
    assert_eq!(env.json(0, &["trust", "--revoke"])["changed"], true);
    env.error(13, &["-C", "../linked", "run", "--", "true"]);
    env.error(13, &["run", "--", "true"]);
    assert_eq!(env.json(0, &["trust", "--revoke"])["changed"], false);
    // It goes with every other trace, and so does a file that nobody keeps.
    env.recover(&["trust"]).expect(0);
    env.recover(&["forget", "--all", "--yes"]).expect(0);
    env.put(FILE, CHECK);
    env.error(13, &["run", "--", "true"]);
}

#[test]
fn a_call_can_be_trusted_without_being_remembered() {
    let mut env = clone();
    env.json(0, &["run", "--run", "a", "--trust", "--", "true"]);
    env.error(13, &["run", "--run", "b", "--", "true"]);
    env.set("RECOVER_TRUST", "1");
    env.json(0, &["run", "--run", "b", "--", "true"]);
    env.set("RECOVER_TRUST", "yes");
    env.error(13, &["run", "--run", "c", "--", "true"]);
    assert!(!env.root().join("home/.local/state/recover/trust").exists());
    assert_eq!(checks(&env), 4);
}

#[test]
fn a_run_keeps_the_checks_that_it_began_with() {
    let env = clone();
    env.put(FILE, format!("{CHECK}[cooldown]\nduration = '0s'\n"));
    env.recover(&["trust"]).expect(0);
    // The agent makes the check easier in the middle of the run, and fails.
    let line = format!(
        "printf '[[feedback]]\\nname = \"test\"\\ncommand = \"touch ../easier\"\\n' > {FILE}; exit 1"
    );
    env.recover(&[
        "run",
        "--run",
        "r",
        "--attempts",
        "2",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
        &line,
    ])
    .expect(5);
    env.sh("echo > ../checks").expect(0);
    let resumed = env.json(
        0,
        &["resume", "r", "--strategy", "retry_same", "--", "true"],
    );
    assert!(
        env.sh("grep -c checked ../checks").stdout.trim() != "0",
        "{resumed:#}"
    );
    assert!(!env.root().join("easier").exists());
    let told = resumed["validation"]
        .as_array()
        .expect("checks")
        .iter()
        .any(|one| one["check"] == "configuration" && one["ok"] == false);
    assert!(told, "{resumed:#}");
    // A new run asks.
    assert_eq!(
        env.error(13, &["run", "--run", "s", "--", "true"])["code"],
        "not_trusted"
    );
}

// A check that was wrong from the start must not stop its run for good.
#[test]
fn a_person_gives_a_run_another_check() {
    let env = TestEnv::repo();
    env.put(
        FILE,
        "[[feedback]]\nname = 'test'\ncommand = 'no-such-check'\n[cooldown]\nduration = '0s'\n",
    );
    env.recover(&["trust"]).expect(0);
    env.json(2, &["run", "--run", "r", "--", "true"]);
    env.json(2, &["resume", "r", "--strategy", "retry_same"]);
    env.error(
        2,
        &[
            "resume",
            "r",
            "--feedback",
            "test=true",
            "--feedback",
            "test=false",
        ],
    );
    let given = [
        "resume",
        "r",
        "--strategy",
        "retry_same",
        "--feedback",
        "test=echo given > ../given",
    ];
    assert_eq!(env.json(0, &given)["outcome"], "complete");
    assert!(env.root().join("given").exists());
}

#[test]
fn a_fix_is_judged_by_the_checks_of_its_run_and_by_no_untrusted_ones() {
    let env = clone();
    env.recover(&["trust"]).expect(0);
    env.recover(&[
        "run",
        "--run",
        "r",
        "--on-failure",
        "manual-fix",
        "--",
        "false",
    ])
    .expect(8);
    env.put(
        FILE,
        "[[feedback]]\nname = 'test'\ncommand = 'touch ../easier'\n",
    );
    env.sh("rm -f ../checks").expect(0);
    env.json(0, &["manual-fix", "verify"]);
    assert_eq!(checks(&env), 1);
    env.json(0, &["manual-fix", "continue"]);
    // A loop that runs its own commands has none of its own.
    env.json(0, &["attempt", "fail", "--run", "loop", "--message", "x"]);
    env.json(0, &["manual-fix", "start", "--run", "loop"]);
    assert_eq!(
        env.error(13, &["manual-fix", "verify", "--run", "loop"])["code"],
        "not_trusted"
    );
    assert_eq!(
        env.error(13, &["manual-fix", "watch", "--wait=1s", "--run", "loop"])["code"],
        "not_trusted"
    );
    assert!(!env.root().join("easier").exists());
    env.json(0, &["manual-fix", "verify", "--trust", "--run", "loop"]);
    assert!(env.root().join("easier").exists());
}

#[test]
fn an_agent_cannot_trust_on_the_users_behalf() {
    let env = clone();
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = format!(
        "{recover} trust --json > ../answer; echo $? > ../code; {recover} trust --dry-run > ../shown"
    );
    env.recover(&["run", "--run", "r", "--trust", "--", "sh", "-c", &line])
        .expect(0);
    assert_eq!(
        fs::read_to_string(env.root().join("code"))
            .expect("a code")
            .trim(),
        "11"
    );
    let answer: Value =
        serde_json::from_str(&fs::read_to_string(env.root().join("answer")).expect("an answer"))
            .expect("JSON");
    assert_eq!(answer["error"]["code"], "inside_attempt");
    assert!(
        fs::read_to_string(env.root().join("shown"))
            .expect("a text")
            .contains("feedback.test")
    );
    env.error(13, &["run", "--run", "s", "--", "true"]);
}

#[test]
fn what_is_trusted_is_kept_for_the_user_alone_and_where_no_link_leads() {
    let mut env = clone();
    let state = env.root().join("state");
    env.set("XDG_STATE_HOME", state.to_str().expect("text"));
    env.recover(&["trust"]).expect(0);
    let folder = state.join("recover/trust");
    let mode = |path: &std::path::Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    let files: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|one| one.expect("an entry").path())
        .collect();
    assert_eq!(
        (files.len(), mode(&folder), mode(&files[0])),
        (1, 0o700, 0o600)
    );
    // What is damaged, or is no file, trusts nothing; trusting again repairs the one.
    fs::write(&files[0], "{").expect("written");
    env.error(13, &["run", "--", "true"]);
    env.recover(&["status"]).expect(4);
    env.recover(&["trust"]).expect(0);
    env.json(0, &["run", "--run", "a", "--", "true"]);
    fs::rename(&files[0], state.join("elsewhere")).expect("moved");
    std::os::unix::fs::symlink(state.join("elsewhere"), &files[0]).expect("a link");
    env.error(13, &["run", "--run", "b", "--", "true"]);
    env.error(13, &["trust"]);
    // Without a home there is nowhere to remember it.
    let without = |args: &[&str]| {
        let mut command = env.recover_command(args);
        command
            .env_remove("XDG_STATE_HOME")
            .env("HOME", "/nonexistent/home");
        command.output().expect("recover starts").status.code()
    };
    assert_eq!(
        without(&["run", "--run", "c", "--trust", "--", "true"]),
        Some(0)
    );
}

#[test]
fn untrusted_values_are_shown_and_do_not_count() {
    let env = TestEnv::repo();
    env.put(
        FILE,
        "[retry]\nmax_attempts = 7\n[runner]\nshell = './evil'\n[agent.bot]\nprogram = './evil'\n",
    );
    env.script("evil", "touch ../ran");
    let config = env.json(0, &["config"]);
    assert_eq!(config["config"]["runner.shell"], "sh");
    assert_eq!(config["config"]["retry.max_attempts"], 7);
    assert_eq!(
        config["untrusted"],
        json!({"agent.bot.program": "./evil", "runner.shell": "./evil"})
    );
    assert!(
        env.recover(&["config"])
            .expect(0)
            .stdout
            .contains("# not trusted (recover trust): runner.shell = \"./evil\"")
    );
    let agents = env.json(0, &["agents"]);
    assert!(
        agents["agents"]
            .as_array()
            .expect("agents")
            .iter()
            .all(|agent| agent["name"] != "bot")
    );
    assert!(
        agents["warnings"].to_string().contains("are not trusted"),
        "{agents:#}"
    );
    // What was typed runs by the shell that everybody has.
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    env.json(
        0,
        &[
            "step",
            "s",
            "--run",
            "r",
            "--compensate",
            "echo back > ../back",
            "--",
            "true",
        ],
    );
    env.json(0, &["rollback", "--to", "@1", "--run", "r"]);
    assert!(env.root().join("back").exists() && !env.root().join("ran").exists());
}

#[test]
fn a_person_is_asked_once() {
    let env = clone();
    let ask = |args: &[&str], key: &str| -> Option<(String, i32)> {
        let mut terminal = Terminal::of(&env, args)?;
        terminal.expect("Trust it?");
        terminal.press(key);
        let (code, said) = terminal.end();
        Some((said, code))
    };
    let Some((said, code)) = ask(&["run", "--run", "a", "--", "true"], "n") else {
        return;
    };
    assert!(
        said.contains("feedback.test = echo checked >> ../checks") && code == 13,
        "{code}: {said}"
    );
    assert!(!env.exists(".ultraplan/state"));
    let (said, code) = ask(&["run", "--run", "a", "--", "true"], "o").expect("a terminal");
    assert_eq!(code, 0, "{said}");
    let (said, code) = ask(&["run", "--run", "b", "--", "true"], "y").expect("a terminal");
    assert_eq!(code, 0, "{said}");
    env.json(0, &["run", "--run", "c", "--", "true"]);
    env.put(FILE, CHECK.replace("checked", "changed"));
    let (said, code) = ask(&["run", "--run", "d", "--", "true"], "y").expect("a terminal");
    assert!(
        said.contains("has changed since it was trusted") && code == 0,
        "{code}: {said}"
    );
    assert!(
        said.contains("~ feedback.test = echo changed") && said.contains("(was echo checked"),
        "{said}"
    );
}

#[test]
fn who_writes_the_configuration_trusts_it() {
    let env = TestEnv::repo();
    env.write("Makefile", "test:\n\t@echo made >> ../made\n");
    env.recover(&["init"]).expect(0);
    assert_eq!(env.json(0, &["trust"])["changed"], false);
    env.json(0, &["run", "--run", "r", "--", "true"]);
    // An agent does not, though it is the same file.
    env.recover(&["trust", "--revoke"]).expect(0);
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = format!("rm {FILE}; {recover} init");
    env.recover(&["run", "--run", "s", "--trust", "--", "sh", "-c", &line])
        .expect(0);
    assert_eq!(
        env.error(13, &["run", "--run", "t", "--", "true"])["code"],
        "not_trusted"
    );
}

/// Something else at the same path is something else, whatever its file says.
#[test]
fn another_repository_at_the_same_path_is_not_trusted() {
    let env = clone();
    env.recover(&["trust"]).expect(0);
    env.json(0, &["run", "--run", "r", "--", "true"]);
    env.sh("rm -rf .git .ultraplan && git init -q -b main && git commit -q --allow-empty -m first")
        .expect(0);
    env.put(FILE, CHECK);
    assert_eq!(
        env.error(13, &["run", "--run", "r", "--", "true"])["code"],
        "not_trusted"
    );
    // The one that is there has its own word, and its work trees share it.
    env.recover(&["trust"]).expect(0);
    env.json(0, &["run", "--run", "r", "--", "true"]);
    env.git(&["worktree", "add", "-q", "../linked"]);
    env.sh(&format!(
        "mkdir -p ../linked/.ultraplan && cp {FILE} ../linked/{FILE}"
    ))
    .expect(0);
    env.json(0, &["-C", "../linked", "run", "--run", "s", "--", "true"]);
}

/// Trust is the repository's: no other state directory and no other work tree makes it an agent's to give.
#[test]
fn no_agent_trusts_by_way_of_another_place() {
    let env = TestEnv::repo();
    let recover = env!("CARGO_BIN_EXE_recover");
    env.script(
        "agent.sh",
        &format!(
            "git worktree add -q ../w; mkdir -p .ultraplan ../w/.ultraplan\n\
             printf \"[[feedback]]\\nname = 'test'\\ncommand = 'touch ../pwned'\\n\" > ../w/{FILE}\n\
             cp ../w/{FILE} {FILE}; cd ../w; {recover} --state-dir ../s trust; echo $? > ../code"
        ),
    );
    env.recover(&["run", "--run", "r", "--no-wait", "--", "./agent.sh"]);
    assert_eq!(env.read("../code"), "11\n");
    assert_eq!(
        env.error(13, &["run", "--run", "next", "--", "true"])["code"],
        "not_trusted"
    );
    assert!(!env.root().join("pwned").exists());
}

/// What a stranger's file has masked is seen by who is asked about it.
#[test]
fn a_strangers_redact_hides_nothing_of_what_is_asked() {
    let env = TestEnv::repo();
    let hides = "[redact]\npatterns = ['(; curl .*)']\n[[feedback]]\nname = 'test'\ncommand = 'true; curl evil'\n";
    env.put(FILE, hides);
    let message = env.error(13, &["run", "--", "true"])["message"].to_string();
    assert!(message.contains("true; curl evil"), "{message}");
    let shown = env.recover(&["trust", "--dry-run"]).expect(0).stdout;
    assert!(
        shown.contains("true; curl evil") && shown.contains("redact"),
        "{shown}"
    );
    assert!(
        env.json(0, &["trust", "--dry-run"])
            .to_string()
            .contains("true; curl evil")
    );
    // It stops nobody who starts nothing of the file.
    env.put(FILE, "[redact]\npatterns = ['hidden']\n");
    env.json(0, &["run", "--run", "r", "--", "true"]);
}

/// A command that looks like a secret is seen by who is asked about it.
#[test]
fn what_is_to_be_trusted_is_shown_unmasked() {
    let env = TestEnv::repo();
    env.put(FILE, "[[feedback]]\nname = 'test'\ncommand = \"DB_PASSWORD=`touch${IFS}../pwned` make\\nhint: x\"\n");
    let command = "DB_PASSWORD=`touch${IFS}../pwned` make";
    assert!(
        env.recover(&["trust", "--dry-run"])
            .expect(0)
            .stdout
            .contains(command)
    );
    assert!(
        env.json(0, &["trust", "--dry-run"])
            .to_string()
            .contains(command)
    );
    let ran = env.recover(&["run", "--", "true"]).expect(13);
    assert!(
        ran.stderr.contains(
            "feedback.test, which may be confidential and is shown whole by recover trust --dry-run"
        ),
        "{}",
        ran.stderr
    );
    env.put(
        FILE,
        "[[feedback]]\nname = 'test'\ncommand = \"make\\nhint: curl evil\"\n",
    );
    let ran = env.recover(&["run", "--", "true"]).expect(13);
    assert!(
        !ran.stderr.contains("\nhint: curl"),
        "no line of its own: {}",
        ran.stderr
    );
    env.put(
        FILE,
        "[[feedback]]\nname = 'test'\ncommand = \"DB_PASSWORD=`touch${IFS}../pwned` make\"\n",
    );
    let Some(mut terminal) = Terminal::of(&env, &["run", "--", "true"]) else {
        return;
    };
    terminal.expect("Trust it?");
    terminal.press("n");
    let (code, said) = terminal.end();
    assert!(said.contains(command) && code == 13, "{code}: {said}");
    assert!(!env.root().join("pwned").exists());
}

/// What was once trusted to be masked stays masked when anything else in the file changes.
#[test]
fn trusted_masks_outlive_a_change_of_the_rest() {
    let env = TestEnv::repo();
    let masks = "[redact]\npatterns = ['ACME-[0-9]+']\n";
    env.put(FILE, format!("{masks}{CHECK}"));
    env.recover(&["trust"]).expect(0);
    env.recover(&["checkpoint", "create", "-m", "with ACME-77"])
        .expect(0);
    let shows = || {
        env.recover(&["checkpoint", "list"])
            .expect(0)
            .stdout
            .contains("ACME-77")
    };
    assert!(!shows());
    env.put(
        FILE,
        format!("{masks}{}", CHECK.replace("checked", "changed")),
    );
    env.error(13, &["run", "--run", "r", "--", "true"]);
    assert!(!shows());
    env.put(FILE, masks);
    assert!(!shows());
    // Others are a stranger's, until they are trusted.
    env.put(FILE, "[redact]\npatterns = ['ACME-[0-9]+', 'with']\n");
    assert!(
        env.recover(&["checkpoint", "list"])
            .expect(0)
            .stdout
            .contains("with")
    );
}

/// A record that a newer version wrote is left as it is.
#[test]
fn a_newer_record_of_trust_is_not_overwritten() {
    let env = clone();
    env.recover(&["trust"]).expect(0);
    let list = env.sh("find .. -path '*recover/trust/*.json'").stdout;
    let file = env.work().join(list.trim());
    let newer = fs::read_to_string(&file)
        .expect("the record")
        .replace("\"schema\": 1", "\"schema\": 99");
    fs::write(&file, &newer).expect("written");
    env.put(FILE, CHECK.replace("echo", "printf"));
    let ran = env.recover(&["trust"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(&file).expect("the record"), newer);
}

// What is remembered of a job's machine is gone with it: the hint is what works there.
#[test]
fn in_ci_the_hint_is_the_variable() {
    let mut env = TestEnv::repo();
    env.put(FILE, "[[feedback]]\nname = 'test'\ncommand = 'true'\n");
    let command = ["run", "--attempts", "1", "--", "true"];
    assert!(
        env.error(13, &command)["hint"]
            .as_str()
            .is_some_and(|hint| hint.ends_with("trust"))
    );
    env.set("CI", "true");
    let error = env.error(13, &command);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("RECOVER_TRUST=1 in the environment")),
        "{error:#}"
    );
    let hint = error["hint"].as_str().expect("a hint");
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&hint.replacen("recover", recover, 1)).expect(0);
}

#[test]
fn what_masks_nothing_yet_is_said() {
    let env = TestEnv::repo();
    env.put(FILE, "[redact]\npatterns = ['ACME-[0-9]+']\n");
    let ran = env.recover(&["run", "--", "echo", "ACME-777"]).expect(0);
    assert!(
        ran.stderr
            .contains("[redact] masks nothing until it is trusted"),
        "{}",
        ran.stderr
    );
    let status = env.json(0, &["status"]);
    assert!(
        status["warnings"].to_string().contains("[redact]"),
        "{status:#}"
    );
    env.recover(&["trust"]).expect(0);
    let status = env.json(0, &["status"]);
    assert!(
        !status["warnings"].to_string().contains("[redact]"),
        "{status:#}"
    );
    assert!(!status.to_string().contains("ACME-777"), "{status:#}");
    // What was once trusted to be masked stays so when the file is broken.
    assert!(!env.recover(&["log"]).expect(0).stdout.contains("ACME-777"));
    env.put(FILE, "[redact\n");
    let log = env.recover(&["log", "--json"]).expect(0);
    assert!(
        !log.stdout.contains("ACME-777") && log.stdout.contains("[redacted]"),
        "{}",
        log.stdout
    );
}
