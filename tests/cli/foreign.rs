//! State that a clone, an archive or a cache brought: it holds back, and nothing else (trust).

use serde_json::Value;

use crate::env::TestEnv;
use crate::seen::text;

const LEDGER: &str = ".ultraplan/state/events.jsonl";
const NOW: &str = "2030-01-01T00:00:00.000Z";

/// A project with a run that failed and would run `touch ../ran` again, in a cooldown; its state is not tracked.
fn failed(mut env: TestEnv) -> TestEnv {
    env.set("RECOVER_TEST_NOW", NOW);
    env.write("a.txt", "one\n");
    env.json(
        6,
        &["run", "--run", "r", "--no-wait", "--feedback", "test=touch ../checked; false", "--", "touch", "../ran"],
    );
    env.sh("rm -f ../ran ../checked").expect(0);
    env
}

/// The same project as a clone brings it, at the very place that is recorded.
fn cloned() -> TestEnv {
    let env = failed(TestEnv::repo());
    env.git(&["add", "-f", ".ultraplan"]);
    env.git(&["commit", "-q", "-m", "with its state"]);
    env.sh("cd .. && git clone -q work clone && mv work gone && mv clone work").expect(0);
    env
}

/// As an archive brings it.
fn unpacked(env: &TestEnv) {
    env.sh("cd .. && tar cf work.tar work && mv work gone && tar xf work.tar").expect(0);
}

fn nothing_ran(env: &TestEnv) {
    assert!(!env.root().join("ran").exists() && !env.root().join("checked").exists());
}

/// What comes from elsewhere is read, and said to be so; it is never added to, and nothing of it is run.
#[track_caller]
fn assert_foreign(env: &TestEnv, reason: &str) {
    let before = env.read(LEDGER);
    for args in [
        &["resume"][..],
        &["resume", "--strategy", "retry_same", "--wait"],
        &["resume", "r", "--restart"],
        &["run", "--", "touch", "../ran"],
        &["checkpoint", "create"],
        &["checkpoint", "prune", "--keep-last", "0", "--yes"],
        &["attempt", "start"],
        &["attempt", "pass"],
        &["attempt", "fail", "--exit-code", "1"],
        &["rollback", "--to", "initial"],
        &["undo"],
        &["retry-status", "--reset"],
        &["manual-fix", "start"],
        &["manual-fix", "verify"],
        &["step", "one", "--", "touch", "../ran"],
        &["sync"],
        &["doctor", "--rebuild"],
        &["doctor", "--repair"],
    ] {
        let error = env.error(13, args);
        assert_eq!(error["code"], "foreign_state", "{args:?}: {error}");
        assert!(text(&error["hint"]).ends_with(" trust --state"), "{error}");
        assert!(text(&error["hint"]).contains(&format!("-C {}", env.work().display())), "{error}");
        assert!(text(&error["message"]).contains("--state-dir"), "{error}");
        nothing_ran(env);
    }
    let check = env.recover(&["--json", "retry-status", "--check"]).expect(6);
    assert_eq!(check.json()["error_count"], 1);
    assert!(check.stderr.contains("came from elsewhere"), "{}", check.stderr);
    for args in [
        &["status"][..],
        &["log"],
        &["report"],
        &["checkpoint", "list"],
        &["attempt", "list"],
        &["--dry-run", "resume", "--strategy", "retry_same", "--prepare-only"],
    ] {
        let ran = env.recover(&[&["--json"], args].concat());
        let said = ran.json();
        assert_eq!(ran.code, 0, "{args:?}: {said}");
        let warned = said["warnings"][0].as_str().unwrap_or_default();
        assert!(warned.contains("came from elsewhere") && warned.contains("trust --state"), "{args:?}: {said}");
    }
    let shown = env.json(0, &["trust", "--state", "--dry-run"]);
    assert_eq!((&shown["changed"], &shown["state"]["foreign"]), (&false.into(), &true.into()), "{shown}");
    assert_eq!(shown["state"]["reason"], reason, "{shown}");
    assert_eq!(env.read(LEDGER), before);
    nothing_ran(env);
}

fn commands(shown: &Value) -> Vec<String> {
    let all = shown["state"]["commands"].as_array().expect("a list");
    all.iter().map(|one| format!("{}: {}", text(&one["kind"]), text(&one["text"]))).collect()
}

#[test]
fn state_that_came_with_a_clone_only_holds_back() {
    let env = cloned();
    assert_foreign(&env, "tracked_by_git");
    // Elsewhere everything works, and the other state stays as it is.
    env.json(0, &["--state-dir", "../mine", "checkpoint", "create"]);
    env.json(0, &["--state-dir", "../mine", "checkpoint", "list"]);
    assert_foreign(&env, "tracked_by_git");
    // In another place than its own it is no less foreign.
    env.sh("cd .. && mv work other && mkdir work && mv other/.git other/.ultraplan other/a.txt work").expect(0);
    env.git(&["rm", "-rq", "--cached", ".ultraplan"]);
    env.git(&["commit", "-qm", "without its state"]);
    assert_foreign(&env, "unknown_id");
}

#[test]
fn state_that_is_taken_over_counts() {
    let env = cloned();
    let shown = env.json(0, &["trust", "--state", "--dry-run"]);
    assert_eq!(commands(&shown), ["command: touch ../ran", "feedback: touch ../checked; false"]);
    assert_eq!((&shown["state"]["runs"], &shown["state"]["id"]), (&1.into(), &Value::Null), "{shown}");
    assert_eq!(env.error(13, &["trust", "--state"])["code"], "confirmation_needed");
    assert_eq!(env.error(13, &["resume"])["code"], "foreign_state");
    let taken = env.json(0, &["trust", "--state", "--yes"]);
    assert_eq!((&taken["changed"], &taken["state"]["foreign"]), (&true.into(), &false.into()), "{taken}");
    assert_eq!(text(&taken["state"]["id"]).len(), 32, "{taken}");
    let again = env.json(0, &["trust", "--state"]);
    assert_eq!((&again["changed"], &again["state"]["id"]), (&false.into(), &taken["state"]["id"]));
    assert!(again["warnings"].is_null());
    env.json(8, &["resume", "--strategy", "retry_same", "--wait"]);
    assert!(env.root().join("ran").exists(), "it was run");
    // What is committed of it may be set back as ever.
    let tries = env.json(0, &["retry-status"])["error_count"].clone();
    env.git(&["reset", "-q", "--hard"]);
    assert_eq!(env.json(0, &["retry-status"])["error_count"], tries);
    env.json(0, &["checkpoint", "create"]);
}

#[test]
fn state_that_a_cache_brings_counts_where_the_environment_says_so() {
    let mut env = cloned();
    env.json(13, &["checkpoint", "create"]);
    env.set("RECOVER_TRUST", "1");
    let looked = env.json(6, &["retry-status", "--check"]);
    assert!(looked["warnings"].is_null(), "{looked}");
    env.json(0, &["checkpoint", "create"]);
    env.set("RECOVER_TRUST", "0");
    env.json(0, &["checkpoint", "create"]);
}

#[test]
fn a_ledger_that_git_puts_over_ours_is_not_ours() {
    let env = failed(TestEnv::repo());
    let ours = env.read(LEDGER);
    // Somebody else's commit, which knows our id from somewhere.
    env.sh("cp -r ../work ../evil && rm -rf ../evil/.git/recover").expect(0);
    let first = ours.lines().next().unwrap();
    std::fs::write(env.root().join("evil").join(LEDGER), format!("{first}\n{{}}\n")).unwrap();
    env.sh("cd ../evil && git add -f .ultraplan && git commit -qm evil").expect(0);
    env.git(&["pull", "-q", "../evil", "main"]);
    assert_eq!(env.error(13, &["checkpoint", "create"])["code"], "foreign_state");
    // What was recorded here is kept when the other one is taken over.
    let taken = env.recover(&["--json", "trust", "--state", "--yes"]).expect(0);
    assert!(taken.stderr.contains("another ledger was recorded here before"), "{}", taken.stderr);
    assert_eq!(env.read_state("recover/before/events.jsonl"), ours);
}

#[test]
fn without_git_an_archive_brings_nothing_to_run() {
    let env = failed(TestEnv::plain());
    env.json(6, &["retry-status", "--check"]);
    unpacked(&env);
    // The same user has it known by its id, as a copy or a moved project has.
    env.json(0, &["checkpoint", "create"]);
    env.sh("rm -r ../home/.local").expect(0);
    unpacked_by_another(&env);
    assert_foreign(&env, "unknown_id");
    env.json(0, &["trust", "--state", "--yes"]);
    env.json(0, &["checkpoint", "create"]);
}

/// As an archive brings it to somebody who never saw it.
fn unpacked_by_another(env: &TestEnv) {
    env.sh("cd .. && rm -rf gone work.tar").expect(0);
    unpacked(env);
}

#[test]
fn state_from_before_there_were_ids_is_ours_where_it_was_made() {
    for (env, kept) in [(TestEnv::repo(), ".git/recover"), (TestEnv::plain(), "../home/.local/state/recover")] {
        let env = failed(env);
        let forget = || env.sh(&format!("rm -r {kept}/states .ultraplan/state/recover/identity")).expect(0);
        forget();
        let looked = env.json(6, &["retry-status", "--check"]);
        assert!(looked["warnings"].is_null(), "{looked}");
        env.json(0, &["checkpoint", "create"]);
        assert!(env.exists(".ultraplan/state/recover/identity"));
        // Moved as a whole, too.
        forget();
        env.sh("cd .. && mv work moved && mkdir work").expect(0);
        env.json(6, &["-C", "../moved", "retry-status", "--run", "r", "--check"]);
        env.json(0, &["-C", "../moved", "checkpoint", "create"]);
    }
    // An archive cannot bring what shows that.
    let env = failed(TestEnv::plain());
    env.sh("rm -r ../home/.local/state/recover/states .ultraplan/state/recover/identity").expect(0);
    unpacked(&env);
    assert_foreign(&env, "unknown_id");
}

#[test]
fn copies_and_moved_projects_go_on() {
    for env in [TestEnv::repo(), TestEnv::plain()] {
        let env = failed(env);
        env.sh("cd .. && cp -r work copy && mv work moved && mkdir work").expect(0);
        for place in ["../copy", "../moved"] {
            env.json(0, &["-C", place, "doctor", "--rebuild"]);
            env.json(6, &["-C", place, "retry-status", "--check"]);
            env.json(0, &["-C", place, "checkpoint", "create"]);
        }
    }
}

#[test]
fn state_that_was_lost_begins_anew() {
    let env = failed(TestEnv::repo());
    env.git(&["clean", "-ffdxq"]);
    env.json(0, &["doctor", "--rebuild"]);
    env.json(6, &["retry-status", "--check"]);
    env.sh("rm -rf .ultraplan .git/recover/ledger-*").expect(0);
    env.json(0, &["doctor", "--rebuild"]);
    env.json(6, &["retry-status", "--check"]);
}

#[test]
fn trust_says_what_it_takes() {
    let env = TestEnv::repo();
    let ran = env.recover(&["trust"]).expect(2);
    assert!(ran.stderr.contains("--state"), "{}", ran.stderr);
    env.json(10, &["trust", "--state"]);
}
