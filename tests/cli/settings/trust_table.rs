//! Who is asked, refused, ignored or served, in every situation in which a project's configuration may be somebody else's.
//! `cargo test --test cli trust_table:: -- --nocapture` prints the table with the words of each answer.

use std::fs;
use std::os::unix::fs::symlink;

use crate::env::{Ran, TestEnv};
use crate::state::foreign_state::is_root;
use crate::terminal::Terminal;

const FILE: &str = ".ultraplan/recover.toml";
const CHECK: &str = "[[feedback]]\nname = 'test'\ncommand = 'echo checked >> ../checks'\n";
const STRANGER: u32 = 54321;

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Asked,
    Refused,
    Ignored,
    Served,
}
use Outcome::{Asked, Ignored, Refused, Served};

/// One line of the table; what is said must be in the words.
#[track_caller]
fn row(env: &TestEnv, situation: &str, args: &[&str], expected: &Outcome, said: &str) {
    row_with(env, situation, args, &[], expected, said);
}

#[track_caller]
fn row_with(
    env: &TestEnv,
    situation: &str,
    args: &[&str],
    vars: &[(&str, &str)],
    expected: &Outcome,
    said: &str,
) {
    let (outcome, words) = if *expected == Asked {
        let Some(mut terminal) = Terminal::of(env, args) else {
            return;
        };
        terminal.expect("Trust it?");
        terminal.press("n");
        let (code, words) = terminal.end();
        assert_eq!(code, 13, "{words}");
        (Asked, words)
    } else {
        let ran = Ran::of(
            &env.recover_command(args)
                .envs(vars.iter().copied())
                .output()
                .expect("recover starts"),
        );
        let outcome = match ran.code {
            0 if ran.stderr.contains("is ignored") => Ignored,
            0 => Served,
            2 | 11 | 13 => Refused,
            code => panic!("{situation}: {args:?} ended with {code}\n{}", ran.stderr),
        };
        let words = if ran.stderr.contains("error: ") || outcome == Ignored {
            ran.stderr
        } else {
            ran.stdout
        };
        (outcome, words)
    };
    assert_eq!(outcome, *expected, "{situation}: {args:?}\n{words}");
    assert!(
        words.contains(said),
        "{situation}: {args:?}: {said}\n{words}"
    );
    let words = words
        .replace(&*env.root().to_string_lossy(), "<root>")
        .trim()
        .replace('\n', "<br>")
        .replace('|', "\\|");
    let vars = vars.iter().map(|(name, value)| format!("{name}={value}"));
    let call = vars
        .chain(["recover".to_owned(), args.join(" ")])
        .collect::<Vec<_>>()
        .join(" ");
    let outcome = format!("{outcome:?}").to_lowercase();
    eprintln!("| {situation} | `{call}` | {outcome} | {words} |");
}

/// What looks, adds or goes back is served whatever is trusted.
#[track_caller]
fn others_are_served(env: &TestEnv, situation: &str) {
    for args in [
        &["checkpoint", "create"][..],
        &["status"],
        &["log"],
        &["doctor"],
        &["rollback", "--to", "latest"],
        &["hook", "run", "git", "post-commit"],
    ] {
        row(env, situation, args, &Served, "");
    }
}

fn clone() -> TestEnv {
    let env = TestEnv::repo();
    env.put(FILE, CHECK);
    env
}

const RUN: [&str; 3] = ["run", "--", "true"];

#[test]
fn in_a_project_of_ones_own_and_in_a_clone() {
    eprintln!("| situation | command | outcome | words |\n| --- | --- | --- | --- |");
    let own = TestEnv::repo();
    row(
        &own,
        "own project, nothing configured",
        &["init"],
        &Served,
        "",
    );
    row(
        &own,
        "own project, nothing configured",
        &RUN,
        &Served,
        "complete",
    );
    own.put(FILE, CHECK);
    row(
        &own,
        "own project, a check of one's own added",
        &RUN,
        &Refused,
        "feedback.test",
    );
    row(
        &own,
        "own project, a check of one's own added",
        &["trust"],
        &Served,
        "Trusted from now on",
    );
    row(&own, "own project, trusted", &RUN, &Served, "complete");

    let env = clone();
    row(
        &env,
        "clone with checks",
        &RUN,
        &Refused,
        "asks for is not trusted yet",
    );
    row(
        &env,
        "clone with checks, on a terminal",
        &RUN,
        &Asked,
        "is not trusted yet",
    );
    others_are_served(&env, "clone with checks");
    row(
        &env,
        "clone with checks",
        &["config"],
        &Served,
        "# not trusted",
    );
    row(
        &env,
        "clone with checks",
        &["run", "--trust", "--", "true"],
        &Served,
        "complete",
    );
    row(
        &env,
        "clone with checks, CI",
        &RUN,
        &Refused,
        "RECOVER_TRUST=1",
    );
    row_with(
        &env,
        "clone with checks, CI",
        &RUN,
        &[("RECOVER_TRUST", "1")],
        &Served,
        "complete",
    );
    row(
        &env,
        "clone with checks",
        &["trust", "--dry-run"],
        &Served,
        "Not trusted",
    );
    row(
        &env,
        "clone with checks",
        &["trust"],
        &Served,
        "Trusted from now on",
    );
    row(
        &env,
        "clone with checks, trusted",
        &RUN,
        &Served,
        "complete",
    );
    env.put(FILE, CHECK.replace("echo", "printf"));
    row(
        &env,
        "pull that changes a check",
        &RUN,
        &Refused,
        "has changed since it was trusted",
    );
    row(
        &env,
        "pull that changes a check, on a terminal",
        &RUN,
        &Asked,
        "~ feedback.test",
    );
    others_are_served(&env, "pull that changes a check");
    env.put(FILE, CHECK);
    env.git(&["worktree", "add", "-q", "../linked"]);
    fs::create_dir(env.root().join("linked/.ultraplan")).expect("a folder");
    fs::copy(env.work().join(FILE), env.root().join("linked").join(FILE)).expect("the file");
    row(
        &env,
        "linked work tree of a trusted one",
        &["-C", "../linked", "run", "--", "true"],
        &Served,
        "complete",
    );
}

#[test]
fn within_a_run() {
    let env = clone();
    env.put(FILE, format!("{CHECK}[cooldown]\nduration = '0s'\n"));
    env.recover(&["trust"]).expect(0);
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
    let situation = "agent changes a check in the middle of a run";
    let resume = ["resume", "r", "--strategy", "retry_same", "--", "true"];
    row(&env, situation, &resume, &Served, "complete");
    assert!(
        !env.root().join("easier").exists(),
        "the run kept its own check"
    );
    row(&env, situation, &RUN, &Refused, "touch ../easier");
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = format!("{recover} trust 2> ../said; test $? = 11");
    env.recover(&["run", "--run", "s", "--trust", "--", "sh", "-c", &line])
        .expect(0);
    let said = fs::read_to_string(env.root().join("said"))
        .expect("words")
        .trim()
        .replace('\n', "<br>");
    eprintln!("| agent trusts within an attempt | `recover trust` | refused | {said} |");
    row(
        &env,
        "after an agent tried to trust",
        &RUN,
        &Refused,
        "has changed since it was trusted",
    );
}

#[test]
fn among_other_users() {
    if !is_root("among_other_users") {
        return;
    }
    let env = TestEnv::plain();
    env.sh("mkdir -p open/mine && chmod 1777 open").expect(0);
    env.put("open/.ultraplan/recover.toml", CHECK);
    env.sh(&format!("chown -R {STRANGER} open/.ultraplan"))
        .expect(0);
    let situation = "/tmp/.ultraplan of another user";
    row(
        &env,
        situation,
        &["-C", "open/mine", "config"],
        &Ignored,
        "it is ignored",
    );
    row(
        &env,
        situation,
        &["-C", "open/mine", "run", "--", "true"],
        &Ignored,
        "belongs to another user (uid 54321)",
    );

    let mut env = clone();
    env.sh(&format!("chown -R {STRANGER} .")).expect(0);
    let situation = "project of another uid (container, shared disk)";
    row(
        &env,
        situation,
        &RUN,
        &Refused,
        "belongs to another user (uid 54321)",
    );
    row(
        &env,
        situation,
        &["status"],
        &Refused,
        "declare it safe as for git itself",
    );
    let sudo = [("SUDO_UID", "54321")];
    row_with(
        &env,
        "sudo by the project's owner",
        &["checkpoint", "create"],
        &sudo,
        &Served,
        "",
    );
    row_with(
        &env,
        "sudo by the project's owner",
        &RUN,
        &sudo,
        &Refused,
        "not trusted yet",
    );
    let config = env.root().join("home/.gitconfig");
    fs::write(
        &config,
        format!("[safe]\n\tdirectory = {}\n", env.work().display()),
    )
    .expect("written");
    env.set("GIT_CONFIG_GLOBAL", config.to_str().expect("text"));
    let situation = "project of another uid with safe.directory";
    row(&env, situation, &["checkpoint", "create"], &Served, "");
    row(&env, situation, &RUN, &Refused, "not trusted yet");
    row_with(
        &env,
        situation,
        &RUN,
        &[("RECOVER_TRUST", "1")],
        &Served,
        "complete",
    );

    let env = TestEnv::repo();
    let own = env.root().join("home/.config/recover");
    fs::create_dir_all(&own).expect("a folder");
    let dotfile = env.root().join("home/dotfile.toml");
    fs::write(&dotfile, "[agent.bot]\nprogram = 'true'\n").expect("written");
    symlink(&dotfile, own.join("config.toml")).expect("a link");
    let bot = ["run", "--agent", "bot", "--prompt", "x"];
    row(
        &env,
        "configuration is a link to one's dotfiles",
        &bot,
        &Served,
        "complete",
    );
    std::os::unix::fs::chown(&dotfile, Some(STRANGER), None).expect("another owner");
    let situation = "configuration is a link to another user's file";
    row(
        &env,
        situation,
        &bot,
        &Refused,
        "belongs to another user (uid 54321)",
    );
    row(
        &env,
        situation,
        &["status"],
        &Ignored,
        "your own configuration is ignored",
    );
    let project = TestEnv::repo();
    fs::create_dir(project.work().join(".ultraplan")).expect("a folder");
    fs::write(project.root().join("there.toml"), CHECK).expect("written");
    symlink(project.root().join("there.toml"), project.work().join(FILE)).expect("a link");
    row(
        &project,
        "a project's configuration is a link",
        &RUN,
        &Refused,
        "recover.toml",
    );
}
