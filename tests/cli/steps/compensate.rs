//! `recover step --compensate`: effects outside the work tree, when a rollback goes back past the step (S12).

use serde_json::Value;

use crate::env::TestEnv;
use crate::seen::text;
use crate::steps::once::told;

/// A checkpoint, three steps of which the first two can be taken back, and a rollback's arguments.
fn deployed() -> (TestEnv, [&'static str; 5]) {
    let env = TestEnv::repo();
    env.json(0, &["--run", "r", "checkpoint", "create"]);
    let undo = "echo undo $RECOVER_STEP $RECOVER_RUN_ID >> ../world; echo said";
    for name in ["cluster", "deploy"] {
        let line = format!("echo {name} >> ../world; echo {name} >> a.txt");
        env.recover(&[
            "--run",
            "r",
            "step",
            name,
            "--compensate",
            undo,
            "--",
            "sh",
            "-c",
            &line,
        ])
        .expect(0);
    }
    env.recover(&[
        "--run",
        "r",
        "step",
        "mail",
        "--",
        "sh",
        "-c",
        "echo mail >> ../world",
    ])
    .expect(0);
    env.json(0, &["--run", "r", "checkpoint", "create"]);
    (env, ["--run", "r", "rollback", "--to", "@1"])
}

fn world(env: &TestEnv) -> String {
    env.sh("tr '\\n' ',' < ../world").stdout
}

fn names(list: &Value) -> Vec<String> {
    list.as_array()
        .expect("steps")
        .iter()
        .map(|step| text(&step["name"]))
        .collect()
}

// Compensations run in reverse order, with their variables, output on stderr; what has none is listed as crossed.
#[test]
fn a_rollback_takes_effects_back_in_reverse_order() {
    let (env, rollback) = deployed();
    let planned = env.json(0, &[&["--dry-run"][..], &rollback].concat())["plan"].clone();
    assert_eq!(names(&planned["compensated"]), ["deploy", "cluster"]);
    assert_eq!(names(&planned["crossed"]), ["mail"]);
    let shown = env
        .recover(&[&["--dry-run"][..], &rollback].concat())
        .expect(0)
        .stdout;
    assert!(
        shown.contains("would undo step 'deploy'") && shown.contains("would cross step 'mail'"),
        "{shown}"
    );
    assert_eq!(world(&env), "cluster,deploy,mail,");

    let ran = env
        .recover(&[&["--json"][..], &rollback].concat())
        .expect(0);
    assert_eq!(
        world(&env),
        "cluster,deploy,mail,undo deploy r,undo cluster r,"
    );
    assert!(ran.stderr.contains("said\nsaid\n"), "{}", ran.stderr);
    let result = ran.json()["result"].clone();
    assert_eq!(
        (names(&result["compensated"]), names(&result["crossed"])),
        (vec!["deploy".into(), "cluster".into()], vec!["mail".into()])
    );
    assert_eq!(result["success"], true);
    assert_eq!(env.read("a.txt"), "one\n");
    assert_eq!(told(&env, "deploy")["status"], "compensated");
    assert_eq!(
        (
            &told(&env, "mail")["status"],
            &told(&env, "mail")["crossed"]
        ),
        (&"done".into(), &true.into())
    );

    // Once is enough.
    env.recover(&rollback).expect(0);
    assert_eq!(world(&env).matches("undo").count(), 2);
    // A compensated step is not done; a crossed one is, and says so.
    env.recover(&[
        "--run",
        "r",
        "step",
        "cluster",
        "--",
        "sh",
        "-c",
        "echo again >> ../world",
    ])
    .expect(0);
    assert!(world(&env).ends_with("again,"));
    let skipped = env
        .recover(&["--run", "r", "step", "mail", "--", "false"])
        .expect(0);
    assert!(
        skipped.stderr.contains("went back to before it"),
        "{}",
        skipped.stderr
    );
}

#[test]
fn a_rollback_tells_people_what_it_crossed() {
    let (env, rollback) = deployed();
    let shown = env.recover(&rollback).expect(0).stdout;
    for part in [
        "took back step 'deploy'",
        "took back step 'cluster'",
        "crossed step 'mail'",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

// A rollback to a checkpoint after a step does not touch it; nor does one of some paths, or another kind of restore.
#[test]
fn only_a_rollback_to_before_a_step_takes_it_back() {
    let (env, _) = deployed();
    env.write("a.txt", "changed\n");
    let done = env.json(
        0,
        &["--run", "r", "rollback", "--to", "@2", "--edits", "discard"],
    );
    assert_eq!(
        (
            names(&done["result"]["compensated"]),
            names(&done["result"]["crossed"])
        ),
        (vec![], vec![])
    );
    let done = env.json(
        0,
        &["--run", "r", "rollback", "--to", "@1", "--path", "a.txt"],
    );
    assert_eq!(names(&done["result"]["crossed"]).len(), 0);
    env.json(0, &["undo"]);
    let done = env.json(0, &["--run", "r", "checkpoint", "restore", "@1"]);
    assert_eq!(
        names(&done["result"]["crossed"]),
        ["mail", "deploy", "cluster"]
    );
    assert_eq!(world(&env), "cluster,deploy,mail,");
    // Taken back, the steps are where they were.
    env.json(0, &["undo"]);
    assert_eq!(told(&env, "mail")["crossed"], false);
}

// A compensation that fails is told: 3, listed; the others run all the same, and another rollback tries it again.
#[test]
fn a_compensation_that_fails_is_told() {
    let env = TestEnv::repo();
    env.json(0, &["--run", "r", "checkpoint", "create"]);
    let undo = |name: &str| {
        format!("echo {name} >> ../world; test $RECOVER_STEP = a || test -e ../fixed || exit 7")
    };
    for name in ["a", "b"] {
        env.recover(&[
            "--run",
            "r",
            "step",
            name,
            "--compensate",
            &undo(name),
            "--",
            "true",
        ])
        .expect(0);
    }
    let result = env.json(3, &["--run", "r", "rollback", "--to", "@1"])["result"].clone();
    assert_eq!(world(&env), "b,a,");
    assert_eq!(
        (&result["success"], names(&result["crossed"])),
        (&false.into(), vec!["b".into()])
    );
    assert_eq!(result["compensated"][0]["compensate_exit_code"], 7);
    assert_eq!(
        (
            told(&env, "a")["status"].clone(),
            told(&env, "b")["status"].clone()
        ),
        ("compensated".into(), "done".into())
    );
    env.sh("touch ../fixed");
    env.json(0, &["--run", "r", "rollback", "--to", "@1"]);
    assert_eq!(
        (world(&env).as_str(), &told(&env, "b")["status"]),
        ("b,a,b,", &"compensated".into())
    );
}

// `undo` runs nothing: it lists what was taken back and is not made again.
#[test]
fn an_undo_lists_and_runs_nothing() {
    let (env, rollback) = deployed();
    env.recover(&rollback).expect(0);
    let before = world(&env);
    let undone = env.json(0, &["undo"]);
    let mut listed = names(&undone["result"]["crossed"]);
    listed.sort();
    assert_eq!(listed, ["cluster", "deploy"]);
    assert_eq!(world(&env), before);
    assert!(env.read("a.txt").contains("deploy"));
    assert_eq!(told(&env, "deploy")["status"], "compensated");
}

// A kill in the middle of a compensation: what is left of it is ended, and a rollback tries it again.
#[test]
fn a_compensation_that_is_cut_off_can_be_run_again() {
    use crate::run::supervision::{kill, lives};
    let env = TestEnv::repo();
    env.json(0, &["--run", "r", "checkpoint", "create"]);
    let undo = "echo undo >> ../world; test -e ../quick || { echo $$ > ../pid; sleep 300; }";
    env.recover(&[
        "--run",
        "r",
        "step",
        "a",
        "--compensate",
        undo,
        "--",
        "true",
    ])
    .expect(0);
    let mut child = env.start(&["--run", "r", "rollback", "--to", "@1"]);
    let pid = env.await_line("../pid");
    kill("-KILL", child.id());
    child.wait().unwrap();
    env.sh("touch ../quick");
    let ran = env
        .recover(&["--run", "r", "rollback", "--to", "@1"])
        .expect(0);
    assert!(
        ran.stderr.contains("interrupted") && !lives(&pid),
        "{}",
        ran.stderr
    );
    assert_eq!(
        (world(&env).as_str(), &told(&env, "a")["status"]),
        ("undo,undo,", &"compensated".into())
    );
}
