//! A confined run: what its processes may write, and what becomes of what they were refused.

use serde_json::{Value, json};

use crate::env::TestEnv;

/// A repository whose place for temporary files is apart from it, with other projects and secrets beside it.
fn configured(more: &str) -> TestEnv {
    let mut env = TestEnv::repo();
    let quick = "[cooldown]\nduration = '1ms'\n[retry]\nbase_delay = '1ms'\nmax_delay = '1ms'\n";
    env.write(".ultraplan/recover.toml", format!("{quick}{more}"));
    for folder in ["tmp", "other", "home/.ssh", "home/.claude", "home/cache"] {
        std::fs::create_dir_all(env.root().join(folder)).expect("works");
    }
    let temporary = env.root().join("tmp").display().to_string();
    env.set("TMPDIR", &temporary);
    env
}

/// Why a test has nothing to show here: the kernel cannot confine.
fn cannot_confine(env: &TestEnv) -> bool {
    env.recover(&["run", "--run", "probe", "--confine", "--", "true"])
        .code
        == 13
}

fn attempts(document: &Value) -> &Vec<Value> {
    document["iterations"][0]["attempts"]
        .as_array()
        .expect("attempts")
}

#[test]
fn a_confined_attempt_does_its_work_and_nothing_else() {
    let env = configured("");
    if cannot_confine(&env) {
        return;
    }
    env.script(
        "claude",
        "cat > ../tmp/prompt.$RECOVER_ATTEMPT\n\
         echo work $RECOVER_ATTEMPT > made && mkdir -p sub && mv made sub/made && git add -A && git commit -q -m work || exit 3\n\
         echo x > $TMPDIR/scratch && echo x > /dev/null && echo x > ~/.claude/history || exit 4\n\
         for file in ~/.ssh/config ../other/file ~/.local/state/recover/vault/x ~/.local/state/recover/trust/x; do\n\
           echo x > $file && exit 5\n\
         done\n\
         rm -rf ~ && exit 6\n\
         [ $RECOVER_ATTEMPT = 2 ]",
    );
    let args = [
        "run",
        "--confine",
        "--prompt",
        "Fix it.",
        "--",
        "./claude",
        "-p",
    ];
    let document = env.json(0, &args);
    let first = &attempts(&document)[0];
    assert!(
        first["conditions"]
            .as_array()
            .expect("works")
            .contains(&json!("confined")),
        "{document:#}"
    );
    let note = first["notes"][0].as_str().expect("works");
    assert!(
        note.contains(".ssh/config, ../other/file") && note.ends_with(" more"),
        "{note}"
    );
    assert!(env.exists("../home/.ssh") && !env.exists("../home/.ssh/config"));
    assert!(!env.exists("../other/file"));
    let prompt = env.read("../tmp/prompt.2");
    assert!(
        prompt.contains("## Writes Were Refused") && prompt.contains("../other/file"),
        "{prompt}"
    );
    assert_eq!(env.git(&["log", "--format=%s", "-n", "1"]).trim(), "work");
}

/// The user's own configuration adds places; a project's may ask for the confinement and nothing more.
#[test]
fn only_the_user_widens_what_may_be_written() {
    let env = configured("[run]\nconfine = true\n");
    if cannot_confine(&env) {
        return;
    }
    let run = ["run", "--", "sh", "-c", "echo x > ~/cache/x"];
    assert_ne!(env.recover(&run).code, 0);
    env.put(
        "../home/.config/recover/config.toml",
        "[run]\nconfine_write = ['~/cache']\n",
    );
    env.recover(&run).expect(0);
    env.recover(&[
        "run",
        "--confine=off",
        "--",
        "sh",
        "-c",
        "echo x > ../other/x",
    ])
    .expect(0);
    env.write(".ultraplan/recover.toml", "[run]\nconfine_write = ['/']\n");
    env.error(2, &run);
}

/// A linked work tree is committed in, and what it shares with the others is not written but for objects and references.
#[test]
fn hooks_and_settings_of_a_shared_git_folder_are_not_written() {
    let env = configured("");
    if cannot_confine(&env) {
        return;
    }
    env.git(&["worktree", "add", "-q", "../linked"]);
    let work = "echo work > made && git add made && git commit -q -m linked || exit 3\n\
                echo x > $(git rev-parse --git-common-dir)/hooks/post-commit && exit 5\n\
                git config user.name other && exit 6; echo done";
    let ran = env.recover(&[
        "-C",
        "../linked",
        "run",
        "--confine",
        "--",
        "sh",
        "-c",
        work,
    ]);
    ran.expect(0);
    assert_eq!(
        env.git(&["log", "--format=%s", "-n", "1", "linked"]).trim(),
        "linked"
    );
}

/// A check runs what the attempt made: it is confined, too, and so is what runs on a terminal of its own.
#[test]
fn checks_and_terminals_are_confined() {
    let env = configured("");
    if cannot_confine(&env) {
        return;
    }
    let check = "test=! touch ../other/by-check";
    env.recover(&["run", "--confine", "--feedback", check, "--", "true"])
        .expect(0);
    let args = [
        "run",
        "--confine",
        "--pty",
        "--",
        "sh",
        "-c",
        "! touch ../other/by-terminal",
    ];
    env.recover(&args).expect(0);
    assert!(!env.exists("../other/by-check") && !env.exists("../other/by-terminal"));
    // A command that is not there is refused as ever.
    env.error(2, &["run", "--confine", "--", "./no-such-program"]);
}

/// Where the kernel cannot do it, nothing is begun unless that is accepted.
#[test]
fn a_system_that_cannot_confine_is_said() {
    let env = configured("");
    if env.sh("command -v strace").code != 0 {
        return;
    }
    let program = env!("CARGO_BIN_EXE_recover");
    let without = "strace -f -qq -o /dev/null -e trace=landlock_create_ruleset -e inject=landlock_create_ruleset:error=ENOSYS";
    let refused = env.sh(&format!("{without} {program} --json run --confine -- true"));
    assert_eq!(refused.code, 13, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stdout.contains("not_confined") && refused.stdout.contains("Landlock"));
    let tried = env.sh(&format!(
        "{without} {program} run --confine=try -- touch ../other/x"
    ));
    assert_eq!(tried.code, 0, "{}{}", tried.stdout, tried.stderr);
    assert!(tried.stderr.contains("not confined: "), "{}", tried.stderr);
    assert!(env.exists("../other/x"));
}
