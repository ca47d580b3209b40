//! Long answers and patches go through git's pager on a terminal.

use crate::env::TestEnv;
use crate::terminal::Terminal;

/// What a command shows on a terminal of 24 lines, with these variables.
fn shown(env: &TestEnv, args: &[&str], vars: &[(&str, &str)]) -> Option<String> {
    let vars: Vec<(&str, &str)> = vars.iter().copied().chain([("NO_COLOR", "1")]).collect();
    Some(Terminal::with(env, args, (80, 24), &vars)?.end().1)
}

fn recorded() -> TestEnv {
    let env = TestEnv::repo();
    for number in 0..30 {
        env.write("a.txt", format!("{number}\n"));
        env.recover(&["-q", "checkpoint", "create"]).expect(0);
    }
    env
}

#[test]
fn long_lists_and_patches_go_through_gits_pager() {
    let mut env = recorded();
    let pager = |name: &'static str| (name, "sed s/^/PAGED:/");
    let Some(log) = shown(&env, &["log"], &[pager("GIT_PAGER")]) else {
        return;
    };
    assert!(
        log.lines().count() > 24 && log.lines().all(|line| line.starts_with("PAGED:")),
        "{log}"
    );
    for args in [
        &["checkpoint", "list"][..],
        &["checkpoint", "diff", "initial", "--patch"],
        &["checkpoint", "show", "latest", "--patch"],
    ] {
        let said = shown(&env, args, &[pager("PAGER")]).expect("a terminal");
        assert!(said.starts_with("PAGED:"), "{args:?}: {said}");
    }
    // What fits, what nobody wants there, and what goes to a program does not.
    for (args, vars) in [
        (&["log", "--limit", "3"][..], vec![pager("GIT_PAGER")]),
        (&["status"], vec![pager("GIT_PAGER")]),
        (&["log", "--no-pager"], vec![pager("GIT_PAGER")]),
        (&["log", "--json"], vec![pager("GIT_PAGER")]),
        (&["log"], vec![("GIT_PAGER", "cat"), pager("PAGER")]),
        (&["log"], vec![("GIT_PAGER", "")]),
        (&["log"], vec![pager("GIT_PAGER"), ("TERM", "dumb")]),
    ] {
        let said = shown(&env, args, &vars).expect("a terminal");
        assert!(
            !said.contains("PAGED:") && !said.trim().is_empty(),
            "{args:?} {vars:?}: {said}"
        );
    }
    assert!(
        !env.recover_command(&["log"])
            .env("GIT_PAGER", "sed s/^/PAGED:/")
            .output()
            .expect("it runs")
            .stdout
            .starts_with(b"PAGED")
    );

    // git's own configuration, the user's.
    let config = env.root().join("home/gitconfig");
    std::fs::write(
        &config,
        "[core]\n\tpager = sed s/^/CORE:/\n[pager]\n\tdiff = sed s/^/DIFF:/\n\tlog = false\n",
    )
    .expect("a file");
    env.set("GIT_CONFIG_GLOBAL", config.to_str().expect("text"));
    let begins = |args: &[&str], begin: &str| {
        let said = shown(&env, args, &[]).expect("a terminal");
        assert!(said.starts_with(begin), "{args:?}: {said}");
    };
    begins(&["checkpoint", "diff", "initial", "--patch"], "DIFF:");
    begins(&["checkpoint", "show", "latest", "--patch"], "CORE:");
    begins(&["log"], "Run manual");
}

// A program that is not there, or that is left early, loses nothing; what came with a clone is never started.
#[test]
fn a_pager_is_never_in_the_way() {
    let env = recorded();
    let Some(said) = shown(&env, &["log"], &[("GIT_PAGER", "no-such-pager-here")]) else {
        return;
    };
    assert!(said.contains("checkpoint_created"), "{said}");
    let terminal = Terminal::with(
        &env,
        &["log"],
        (80, 24),
        &[("NO_COLOR", "1"), ("GIT_PAGER", "head -n 1")],
    );
    let (code, said) = terminal.expect("a terminal").end();
    assert_eq!((code, said.lines().count()), (0, 1), "{said}");
    env.git(&["config", "core.pager", "touch ../owned; cat"]);
    env.git(&["config", "pager.log", "touch ../owned; cat"]);
    shown(&env, &["log"], &[("PAGER", "cat")]).expect("a terminal");
    assert!(
        !env.root().join("owned").exists(),
        "what a repository says of itself is not started"
    );
}
