//! State that a clone, an archive or a cache brought: it holds back, and nothing else (trust).

use serde_json::Value;

use crate::env::TestEnv;
use crate::interface::hints::paste;
use crate::seen::text;

const LEDGER: &str = ".ultraplan/state/events.jsonl";
const NOW: &str = "2030-01-01T00:00:00.000Z";

/// A project with a run that failed and would run `touch ../ran` again, in a cooldown; its state is not tracked.
fn failed(mut env: TestEnv) -> TestEnv {
    env.set("RECOVER_TEST_NOW", NOW);
    env.write("a.txt", "one\n");
    env.json(
        6,
        &[
            "run",
            "--run",
            "r",
            "--no-wait",
            "--feedback",
            "test=touch ../checked; false",
            "--",
            "touch",
            "../ran",
        ],
    );
    env.sh("rm -f ../ran ../checked").expect(0);
    env
}

/// The same project as a clone brings it, at the very place that is recorded.
fn cloned() -> TestEnv {
    let mut env = failed(TestEnv::repo());
    // Without a vault, which would miss the repository that was there.
    env.set("CI", "true");
    env.git(&["add", "-f", ".ultraplan"]);
    env.git(&["commit", "-q", "-m", "with its state"]);
    env.sh("cd .. && git clone -q work clone && mv work gone && mv clone work")
        .expect(0);
    env
}

/// As an archive brings it.
fn unpacked(env: &TestEnv) {
    env.sh("cd .. && tar cf work.tar work && mv work gone && tar xf work.tar")
        .expect(0);
}

fn nothing_ran(env: &TestEnv) {
    assert!(!env.root().join("ran").exists() && !env.root().join("checked").exists());
}

/// The warning about state that was not recorded here.
const ELSEWHERE: &str = "was not created here";

/// What comes from elsewhere is read, and the first warning says `said_first` about it; it is never added to, and nothing of it is
/// run.
#[track_caller]
fn assert_foreign(env: &TestEnv, reason: &str, said_first: &str) {
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
        assert!(
            text(&error["hint"]).contains(&format!("-C {}", env.work().display())),
            "{error}"
        );
        assert!(text(&error["message"]).contains("--state-dir"), "{error}");
        nothing_ran(env);
    }
    let check = env
        .recover(&["--json", "retry-status", "--check"])
        .expect(6);
    assert_eq!(check.json()["error_count"], 1);
    assert!(check.stderr.contains(said_first), "{}", check.stderr);
    for (args, said_first) in [
        (&["status"][..], said_first),
        (&["log"], said_first),
        (&["report"], said_first),
        (&["checkpoint", "list"], said_first),
        (&["attempt", "list"], said_first),
        // It is about to use the state, so that this is what matters.
        (
            &[
                "--dry-run",
                "resume",
                "--strategy",
                "retry_same",
                "--prepare-only",
            ],
            ELSEWHERE,
        ),
    ] {
        let ran = env.recover(&[&["--json"], args].concat());
        let said = ran.json();
        assert_eq!(ran.code, 0, "{args:?}: {said}");
        let warned = said["warnings"][0].as_str().unwrap_or_default();
        assert!(
            warned.contains(said_first) && warned.contains("trust --state"),
            "{args:?}: {said}"
        );
    }
    let shown = env.json(0, &["trust", "--state", "--dry-run"]);
    assert_eq!(
        (&shown["changed"], &shown["state"]["foreign"]),
        (&false.into(), &true.into()),
        "{shown}"
    );
    assert_eq!(shown["state"]["reason"], reason, "{shown}");
    assert_eq!(env.read(LEDGER), before);
    nothing_ran(env);
}

fn commands(shown: &Value) -> Vec<String> {
    let all = shown["state"]["commands"].as_array().expect("a list");
    all.iter()
        .map(|one| format!("{}: {}", text(&one["kind"]), text(&one["text"])))
        .collect()
}

#[test]
fn state_that_came_with_a_clone_only_holds_back() {
    let env = cloned();
    assert_foreign(&env, "tracked_by_git", ELSEWHERE);
    // Elsewhere everything works, and the other state stays as it is.
    env.json(0, &["--state-dir", "../mine", "checkpoint", "create"]);
    env.json(0, &["--state-dir", "../mine", "checkpoint", "list"]);
    assert_foreign(&env, "tracked_by_git", ELSEWHERE);
    // In another place than its own it is no less foreign.
    env.sh(
        "cd .. && mv work other && mkdir work && mv other/.git other/.ultraplan other/a.txt work",
    )
    .expect(0);
    env.git(&["rm", "-rq", "--cached", ".ultraplan"]);
    env.git(&["commit", "-qm", "without its state"]);
    assert_foreign(
        &env,
        "unknown_id",
        "is not the one in which its runs were recorded",
    );
}

#[test]
fn each_commit_is_asked_anew_what_it_tracks() {
    let (env, other) = (failed(TestEnv::repo()), failed(TestEnv::repo()));
    env.json(0, &["checkpoint", "create"]);
    let own = env.read(LEDGER);
    // Another ledger comes with a commit, and with that alone: the index has it no more.
    env.write(LEDGER, other.read(LEDGER));
    env.git(&["add", "-f", LEDGER]);
    env.git(&["commit", "-qm", "another ledger"]);
    env.git(&["rm", "-q", "--cached", LEDGER]);
    for _ in 0..2 {
        let error = env.error(13, &["checkpoint", "create"]);
        assert_eq!(error["code"], "foreign_state", "{error}");
        let state = &env.json(0, &["trust", "--state", "--dry-run"])["state"];
        assert_eq!(
            (&state["foreign"], &state["reason"]),
            (&true.into(), &"tracked_by_git".into()),
            "{state}"
        );
    }
    // A commit without it is another one again.
    env.git(&["commit", "-qm", "without it"]);
    env.write(LEDGER, &own);
    env.json(0, &["checkpoint", "create"]);
}

#[test]
fn state_that_is_taken_over_counts() {
    let env = cloned();
    let shown = env.json(0, &["trust", "--state", "--dry-run"]);
    assert_eq!(
        commands(&shown),
        ["command: touch ../ran", "feedback: touch ../checked; false"]
    );
    assert_eq!(
        (&shown["state"]["runs"], &shown["state"]["id"]),
        (&1.into(), &Value::Null),
        "{shown}"
    );
    // What the refusal says works as it is: who types it has said yes.
    let hint = text(&env.error(13, &["resume"])["hint"]);
    let taken = paste(&env, &format!("{hint} --json")).expect(0).json();
    assert_eq!(
        (&taken["changed"], &taken["state"]["foreign"]),
        (&true.into(), &false.into()),
        "{taken}"
    );
    assert_eq!(text(&taken["state"]["id"]).len(), 32, "{taken}");
    let again = env.json(0, &["trust", "--state"]);
    assert_eq!(
        (&again["changed"], &again["state"]["id"]),
        (&false.into(), &taken["state"]["id"])
    );
    assert!(again["warnings"].is_null());
    env.json(8, &["resume", "--strategy", "retry_same", "--wait"]);
    assert!(env.root().join("ran").exists(), "it was run");
    // What is committed of it may be set back as ever.
    let tries = env.json(0, &["retry-status"])["error_count"].clone();
    env.git(&["reset", "-q", "--hard"]);
    assert_eq!(env.json(0, &["retry-status"])["error_count"], tries);
    env.json(0, &["checkpoint", "create"]);
}

/// A project in which nothing may be tried any more, its state where a clone, an unpacked archive and one without git bring
/// it: at another path than the one that is recorded, which is still there.
fn brought_elsewhere() -> Vec<TestEnv> {
    let brought = [
        (TestEnv::repo(), "git clone -q ../work ../there"),
        (
            TestEnv::repo(),
            "cp -r ../work ../there && rm -rf ../there/.git && git -C ../there init -q -b main",
        ),
        (
            TestEnv::plain(),
            "cp -r ../work ../there && rm -r ../home/.local",
        ),
    ];
    brought
        .map(|(env, bring)| {
            let env = failed(env);
            env.json(8, &["resume", "--strategy", "retry_same", "--wait"]);
            env.sh("rm -f ../ran ../checked").expect(0);
            env.sh(
                "test ! -d .git || (git add -f .ultraplan && git commit -q -m 'with its state')",
            )
            .expect(0);
            env.json(8, &["retry-status", "--check"]);
            env.sh(bring).expect(0);
            env
        })
        .into()
}

// A clone lies at another path than the project: its state held nothing back there, and was nobody's once it was taken over.
#[test]
fn state_from_another_place_holds_back_and_is_taken_over_whole() {
    for env in brought_elsewhere() {
        let at = |code, args: &[&str]| env.json(code, &[&["-C", "../there"], args].concat());
        let held = at(8, &["retry-status", "--check"]);
        assert_eq!(
            (&held["error_count"], &held["can_retry"]),
            (&3.into(), &false.into()),
            "{held}"
        );
        let warned = held["warnings"].to_string();
        assert!(
            warned.contains("was not created here") && !warned.contains("doctor --rebuild"),
            "{warned}"
        );
        assert_eq!(at(0, &["status"])["run"]["run_id"], "r");
        let problems = at(12, &["doctor"])["problems"].to_string();
        assert!(
            problems.contains("foreign_state") && !problems.contains("moved_project"),
            "{problems}"
        );
        at(13, &["checkpoint", "create"]);
        at(0, &["trust", "--state", "--yes"]);
        let taken = env
            .recover(&["-C", "../there", "--json", "retry-status", "--check"])
            .expect(8);
        assert_eq!(taken.json()["error_count"], 3, "{}", taken.stdout);
        assert!(!taken.stderr.contains("recorded at"), "{}", taken.stderr);
        nothing_ran(&env);
        at(8, &["resume", "--strategy", "retry_same", "--wait"]);
        assert!(env.root().join("ran").exists(), "its run goes on here");
        assert_eq!(at(8, &["retry-status", "--check"])["error_count"], 4);
        // The project that it came from goes on by itself.
        assert_eq!(env.json(8, &["retry-status", "--check"])["error_count"], 3);
    }
}

#[test]
fn state_that_a_cache_brings_to_another_place_counts_there() {
    for mut env in brought_elsewhere() {
        env.set("RECOVER_TRUST", "1");
        let at = |code, args: &[&str]| env.json(code, &[&["-C", "../there"], args].concat());
        assert_eq!(at(8, &["retry-status", "--check"])["error_count"], 3);
        at(8, &["resume", "--strategy", "retry_same", "--wait"]);
        assert_eq!(at(8, &["retry-status", "--check"])["error_count"], 4);
        env.set("RECOVER_TRUST", "0");
        let kept = env
            .recover(&["-C", "../there", "--json", "retry-status", "--check"])
            .expect(8);
        assert!(
            !kept.stderr.contains("recorded at") && kept.json()["error_count"] == 4,
            "{}",
            kept.stderr
        );
    }
}

// A state directory that projects share, and one of them does not know: the other one's runs stay its own.
#[test]
fn what_another_project_records_in_a_shared_place_stays_its_own() {
    let env = TestEnv::repo();
    env.write("a.txt", "two\n");
    env.json(
        6,
        &[
            "--state-dir",
            "../shared",
            "run",
            "--run",
            "r",
            "--no-wait",
            "--feedback",
            "test=false",
            "--",
            "true",
        ],
    );
    env.sh("git clone -q ../work ../there").expect(0);
    env.json(
        0,
        &[
            "-C",
            "../there",
            "--state-dir",
            "../shared",
            "retry-status",
            "--check",
        ],
    );
    env.json(
        0,
        &[
            "-C",
            "../there",
            "--state-dir",
            "../shared",
            "trust",
            "--state",
            "--yes",
        ],
    );
    env.json(6, &["--state-dir", "../shared", "retry-status", "--check"]);
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
    env.sh("cp -r ../work ../evil && rm -rf ../evil/.git/recover")
        .expect(0);
    let first = ours.lines().next().unwrap();
    std::fs::write(
        env.root().join("evil").join(LEDGER),
        format!("{first}\n{{}}\n"),
    )
    .unwrap();
    env.sh("cd ../evil && git add -f .ultraplan && git commit -qm evil")
        .expect(0);
    env.git(&["pull", "-q", "../evil", "main"]);
    assert_eq!(
        env.error(13, &["checkpoint", "create"])["code"],
        "foreign_state"
    );
    // What was recorded here is kept when the other one is taken over.
    let taken = env
        .recover(&["--json", "trust", "--state", "--yes"])
        .expect(0);
    assert!(
        taken
            .stderr
            .contains("another ledger was recorded here before"),
        "{}",
        taken.stderr
    );
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
    assert_foreign(&env, "unknown_id", ELSEWHERE);
    env.json(0, &["trust", "--state", "--yes"]);
    env.json(0, &["checkpoint", "create"]);
}

// Files that were copied with their times and came to have the same numbers show nothing where the state has an id.
#[test]
fn without_git_state_with_an_id_is_ours_by_that_id_alone() {
    let mut env = failed(TestEnv::plain());
    env.set(
        "XDG_STATE_HOME",
        &env.root().join("another").to_string_lossy(),
    );
    assert_foreign(&env, "unknown_id", ELSEWHERE);
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
    for (env, kept) in [
        (TestEnv::repo(), ".git/recover"),
        (TestEnv::plain(), "../home/.local/state/recover"),
    ] {
        let env = failed(env);
        let forget = || {
            env.sh(&format!(
                "rm -r {kept}/states .ultraplan/state/recover/identity"
            ))
            .expect(0)
        };
        forget();
        let looked = env.json(6, &["retry-status", "--check"]);
        assert!(looked["warnings"].is_null(), "{looked}");
        env.json(0, &["checkpoint", "create"]);
        assert!(env.exists(".ultraplan/state/recover/identity"));
        // Moved as a whole, too.
        forget();
        env.sh("cd .. && mv work moved && mkdir work").expect(0);
        env.json(
            6,
            &["-C", "../moved", "retry-status", "--run", "r", "--check"],
        );
        env.json(0, &["-C", "../moved", "checkpoint", "create"]);
    }
    // An archive cannot bring what shows that.
    let env = failed(TestEnv::plain());
    env.sh("rm -r ../home/.local/state/recover/states .ultraplan/state/recover/identity")
        .expect(0);
    unpacked(&env);
    assert_foreign(&env, "unknown_id", ELSEWHERE);
}

#[test]
fn copies_and_moved_projects_go_on() {
    for env in [TestEnv::repo(), TestEnv::plain()] {
        let env = failed(env);
        env.sh("cd .. && cp -r work copy && mv work moved && mkdir work")
            .expect(0);
        for place in ["../copy", "../moved"] {
            env.json(0, &["-C", place, "doctor", "--rebuild"]);
            env.json(6, &["-C", place, "retry-status", "--check"]);
            env.json(0, &["-C", place, "checkpoint", "create"]);
        }
    }
}

// What was counted is not forgotten because folders were removed: the references still know of it.
#[test]
fn state_that_was_lost_is_brought_back_before_anything_counts() {
    let env = failed(TestEnv::repo());
    env.git(&["clean", "-ffdxq"]);
    env.json(0, &["doctor", "--rebuild"]);
    env.json(6, &["retry-status", "--check"]);
    env.sh("rm -rf .ultraplan .git/recover").expect(0);
    for command in [
        &["status"][..],
        &["retry-status", "--check"],
        &["run", "--", "true"],
        &["checkpoint", "create"],
    ] {
        let refused = env.recover(command).expect(12);
        assert!(
            refused.stderr.contains("doctor --rebuild"),
            "{command:?}: {}",
            refused.stderr
        );
    }
    assert_eq!(
        env.json(12, &["doctor"])["problems"][0]["code"],
        "lost_ledger"
    );
    env.recover(&["doctor", "--repair"]).expect(12);
    assert!(
        !env.work().join(".ultraplan/state/events.jsonl").exists(),
        "nothing was begun anew"
    );
    env.json(0, &["doctor", "--rebuild"]);
    env.json(6, &["retry-status", "--check"]);
}

#[test]
fn trust_is_about_the_configuration_unless_the_state_is_named() {
    let env = TestEnv::repo();
    let ran = env.recover(&["trust"]).expect(0);
    assert!(
        ran.stdout.contains("nothing that needs trust"),
        "{}",
        ran.stdout
    );
    env.json(10, &["trust", "--state"]);
    env.error(2, &["trust", "--state", "--revoke"]);
}

/// Whether this process may give files away, and act as their owner. A skipped test says so.
pub fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("{test}: skipped, only root can give a folder away");
    }
    root
}

const STRANGER: u32 = 54321;

// Without git a stranger's configuration in an ancestor ran as whoever came by.
#[test]
fn what_a_stranger_has_in_an_ancestor_is_not_looked_at() {
    if !is_root("what_a_stranger_has_in_an_ancestor_is_not_looked_at") {
        return;
    }
    let env = TestEnv::plain();
    env.sh("mkdir -p open/mine && chmod 1777 open").expect(0);
    env.write(
        "open/.ultraplan/recover.toml",
        "[[feedback]]\nname = \"x\"\ncommand = \"touch ../../../ran\"\n",
    );
    env.write("open/.ultraplan/state/events.jsonl", "{}\n");
    env.write("open/mine/a.txt", "one\n");
    env.sh(&format!("chown -R {STRANGER} open/.ultraplan"))
        .expect(0);
    let at = |args: &[&str]| env.recover(&[&["-C", "open/mine", "--json"], args].concat());
    for args in [
        &["run", "--run", "r", "--", "true"][..],
        &["checkpoint", "create"],
        &["config"],
    ] {
        env.sh("rm -rf open/mine/.ultraplan").expect(0);
        let ran = at(args).expect(0);
        let warned = ran.json()["warnings"].to_string();
        assert_eq!(
            warned
                .matches("belongs to another user (uid 54321)")
                .count(),
            1,
            "{args:?}: {warned}"
        );
        assert_eq!(
            ran.stderr.matches("it is ignored").count(),
            1,
            "{}",
            ran.stderr
        );
    }
    assert!(!env.root().join("ran").exists());
    // An own one in the folder of a stranger, which may have been put there, neither.
    env.sh(&format!(
        "chown -R 0 open/.ultraplan && chown {STRANGER} open"
    ))
    .expect(0);
    let ran = at(&["run", "--run", "r", "--", "true"]).expect(0);
    assert!(
        ran.stderr.contains("it is ignored") && !env.root().join("ran").exists(),
        "{}",
        ran.stderr
    );
    // Our own is, as ever.
    env.sh("chown 0 open && rm -r open/mine/.ultraplan open/.ultraplan/state")
        .expect(0);
    let config = at(&["config"]).expect(0).json();
    assert!(
        text(&config["path"]).ends_with("open/.ultraplan/recover.toml")
            && config["warnings"].is_null(),
        "{config}"
    );
}

#[test]
fn a_strangers_repository_in_a_folder_for_everybody_stops_nobody() {
    if !is_root("a_strangers_repository_in_a_folder_for_everybody_stops_nobody") {
        return;
    }
    let env = TestEnv::plain();
    env.sh("mkdir -p open/mine && chmod 1777 open && git -C open init -q && echo one > open/mine/a.txt").expect(0);
    env.sh(&format!("chown -R {STRANGER} open/.git")).expect(0);
    let made = env
        .recover(&["-C", "open/mine", "checkpoint", "create"])
        .expect(0);
    assert!(
        made.stderr.contains("belongs to another user"),
        "{}",
        made.stderr
    );
    assert!(env.exists("open/mine/.ultraplan/state/recover/shadow.git"));
    // Where only its owner can have put it, and in the current folder, it is the project.
    env.error(13, &["-C", "open", "checkpoint", "create"]);
    env.sh("chmod 755 open").expect(0);
    assert_eq!(
        env.error(13, &["-C", "open/mine", "checkpoint", "create"])["code"],
        "foreign_owner"
    );
}

#[test]
fn a_strangers_project_is_refused_with_a_way_on() {
    if !is_root("a_strangers_project_is_refused_with_a_way_on") {
        return;
    }
    let (git, plain) = (TestEnv::repo(), TestEnv::plain());
    plain.write("a.txt", "one\n");
    for (mut env, given) in [
        (git, &[".git"][..]),
        (TestEnv::repo(), &["."]),
        (plain, &["."]),
        (TestEnv::repo(), &[".ultraplan"]),
        (TestEnv::repo(), &[".ultraplan/state"]),
    ] {
        env.json(0, &["checkpoint", "create"]);
        let config = env.root().join("home/.gitconfig");
        env.set("GIT_CONFIG_GLOBAL", &config.to_string_lossy());
        env.sh(&format!("chown {STRANGER} {}", given.join(" ")))
            .expect(0);
        for args in [
            &["status"][..],
            &["checkpoint", "create"],
            &["run", "--", "touch", "../ran"],
        ] {
            let error = env.error(13, args);
            assert_eq!(error["code"], "foreign_owner", "{given:?}: {error}");
        }
        assert!(!env.root().join("ran").exists());
        env.json(0, &["classify", "--message", "boom"]);
        // Under sudo by its owner it is used.
        let by_owner = env
            .recover_command(&["checkpoint", "create"])
            .env("SUDO_UID", STRANGER.to_string())
            .output();
        assert!(
            by_owner.expect("recover starts").status.success(),
            "{given:?}"
        );
        // The repository cannot say so itself.
        env.sh("git -c safe.directory='*' config safe.directory '*' || true")
            .expect(0);
        env.error(13, &["checkpoint", "create"]);
        let hint = text(&env.error(13, &["status"])["hint"]);
        env.sh(&format!("cd / && {hint}")).expect(0);
        env.json(0, &["checkpoint", "create"]);
        std::fs::write(&config, "").expect("written");
        env.error(13, &["checkpoint", "create"]);
        let declared = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
        ];
        let ran = env
            .recover_command(&["checkpoint", "create"])
            .envs(declared)
            .output();
        assert!(ran.expect("recover starts").status.success(), "{given:?}");
    }
}

#[test]
fn a_project_of_roots_is_read_by_everybody() {
    if !is_root("a_project_of_roots_is_read_by_everybody") {
        return;
    }
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "cp {recover} ../recover; chmod 755 .. ../recover; chmod -R a+rX . ../home"
    ))
    .expect(0);
    let by = |args: &str| {
        env.sh(&format!(
            "setpriv --reuid=65534 --regid=65534 --clear-groups ../recover {args}"
        ))
    };
    if by("--version").code != 0 {
        println!(
            "a_project_of_roots_is_read_by_everybody: skipped, another user cannot look into the temporary folder"
        );
        return;
    }
    assert!(by("status").expect(0).stdout.contains("manual"));
    by("checkpoint list").expect(0);
}

/// A loop's own state: so many errors, and a cooldown until then.
fn loop_state(errors: u32, until: &str) -> String {
    format!(
        "{{\"isRecovering\": true, \"lastErrorAt\": \"2029-12-31T23:59:00.000Z\", \"errorCount\": {errors}, \
         \"lastError\": \"boom\", \"cooldownUntil\": {until}}}"
    )
}

// The loop's own cooldown was "allowed now" as long as nothing of it was imported.
#[test]
fn a_loops_own_cooldown_holds_back_until_something_is_recorded() {
    for mut env in [TestEnv::repo(), TestEnv::plain()] {
        env.set("RECOVER_TEST_NOW", NOW);
        let file = env.work().join(".ultraplan/state/recovery.json");
        let content = loop_state(1, "\"2030-01-01T01:00:00.000Z\"");
        env.write_state("recovery.json", &content);
        let check = env
            .recover(&["--json", "retry-status", "--check"])
            .expect(6);
        let said = check.json();
        assert_eq!(
            (&said["retry_after"], &said["can_retry"]),
            (&"2030-01-01T01:00:00.000Z".into(), &false.into())
        );
        assert_eq!(
            (&said["error_count"], &said["last_error"]),
            (&1.into(), &"boom".into()),
            "{said}"
        );
        assert!(
            text(&said["warnings"][0]).contains(&file.display().to_string()),
            "{said}"
        );
        assert_eq!(
            check.stderr.matches("was not written by recover").count(),
            1,
            "{}",
            check.stderr
        );
        let status = env.json(0, &["status"]);
        assert_eq!(
            status["retry"]["retry_after"], "2030-01-01T01:00:00.000Z",
            "{status}"
        );
        assert!(
            text(&status["warnings"][0]).contains("recovery.json"),
            "{status}"
        );
        assert_eq!(env.read_state("recovery.json"), content);
        // Its count, too.
        env.write_state("recovery.json", loop_state(3, "null"));
        assert_eq!(env.json(7, &["retry-status", "--check"])["error_count"], 3);
        // It is set aside at the first write.
        env.write("a.txt", "one\n");
        env.json(0, &["checkpoint", "create"]);
        assert_eq!(
            env.read_state("recover/before/recovery.json"),
            loop_state(3, "null")
        );
        assert!(env.json(0, &["retry-status", "--check"])["warnings"].is_null());
        // One that comes later holds back a run of ours.
        env.write_state("recovery.json", &content);
        let said = env.json(6, &["retry-status", "--check"]);
        assert_eq!(said["retry_after"], "2030-01-01T01:00:00.000Z", "{said}");
        assert_eq!(env.json(0, &["status"])["retry"]["can_retry"], false);
        env.json(0, &["import", ".ultraplan/state/recovery.json"]);
        env.write_state("recovery.json", "{");
        env.json(0, &["status", "--run", "imported-loop"]);
    }
}

/// A tracked folder can be laid out as git's own, with a state that was "made here".
#[test]
fn a_folder_that_only_looks_like_gits_is_no_repository() {
    let env = failed(TestEnv::repo());
    env.sh("mkdir sub && cp -r .git/. sub/ && cp -r .ultraplan sub/ && git -C sub config core.bare false").expect(0);
    env.sh("git config -f sub/config core.worktree .").expect(0);
    for at in [
        &["-C", "sub", "status"][..],
        &["-C", "sub", "resume", "--run", "r"],
        &["-C", "sub/hooks", "status"],
    ] {
        assert_eq!(env.error(13, at)["code"], "unsafe_path", "{at:?}");
    }
    nothing_ran(&env);
    // In git's own folder it is the repository as ever.
    env.recover(&["-C", ".git", "status"]).expect(0);
}

/// What root left is made the user's again by the command that the error gives.
#[test]
fn what_sudo_left_is_named_with_the_way_out() {
    if !is_root("what_sudo_left_is_named_with_the_way_out") {
        return;
    }
    let mut env = TestEnv::repo();
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "cp {recover} ../recover; chmod 755 .. ../recover; chown -R 65534:65534 . ../home"
    ))
    .expect(0);
    // What is made under sudo is the caller's at once.
    env.set("SUDO_UID", "65534");
    env.recover(&["checkpoint", "create"]).expect(0);
    env.recover(&[
        "run",
        "--run",
        "r",
        "--",
        "sh",
        "-c",
        "echo two > a.txt; mkdir d; echo x > d/x",
    ])
    .expect(0);
    env.recover(&["rollback", "--run", "r", "--to", "initial"])
        .expect(0);
    env.recover(&["undo"]).expect(0);
    env.recover(&[
        "accept", "--run", "r", "--branch", "b", "--all", "-m", "done",
    ])
    .expect(0);
    env.recover(&[
        "rollback",
        "--to",
        "@1",
        "--commits",
        "drop",
        "--edits",
        "discard",
    ]);
    env.recover(&["checkpoint", "prune", "--run", "r"])
        .expect(0);
    assert_eq!(env.sh("find . -user 0").stdout, "");
    env.sh("chown -R 0 .ultraplan/state/recover .git/recover .git/refs/recover")
        .expect(0);
    let by = |args: &str| {
        env.sh(&format!(
            "setpriv --reuid=65534 --regid=65534 --clear-groups ../recover {args}"
        ))
    };
    if by("--version").code != 0 {
        println!(
            "what_sudo_left_is_named_with_the_way_out: skipped, another user cannot look into the temporary folder"
        );
        return;
    }
    let refused = by("checkpoint create").expect(1).stderr;
    assert!(
        refused.contains("work/.git/recover\n"),
        "the whole path: {refused}"
    );
    let hint = refused
        .lines()
        .find_map(|line| line.strip_prefix("hint: sudo "))
        .expect("a hint")
        .to_owned();
    assert!(
        hint.starts_with("chown -R 65534 ") && hint.contains("/.git/recover"),
        "{refused}"
    );
    env.sh(&hint).expect(0);
    by("checkpoint create").expect(0);
    by("doctor").expect(0);
    // What can be looked at is told before something fails.
    env.sh("chown -R 0 .git/refs/recover").expect(0);
    let problems = by("--json doctor").json()["problems"].to_string();
    assert!(
        problems.contains("foreign_owner") && problems.contains("sudo chown -R 65534"),
        "{problems}"
    );
    // What is shared on purpose is no problem.
    env.sh("chown -R 1234 .git/refs/recover .git/logs && chmod -R a+rwX .git/refs .git/logs")
        .expect(0);
    by("doctor").expect(0);
}

/// A project of root's above is one, but not a user's to write to: the hint makes one of their own.
#[test]
fn a_project_of_roots_above_is_left_by_the_hint() {
    if !is_root("a_project_of_roots_above_is_left_by_the_hint") {
        return;
    }
    let env = TestEnv::plain();
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "cp {recover} ../recover; chmod 755 .. ../recover; chmod 1777 .; chown -R 65534 ../home"
    ))
    .expect(0);
    env.recover(&["checkpoint", "create"]).expect(0);
    env.sh("mkdir sub && chown 65534 sub").expect(0);
    let by = |args: &str| {
        env.sh(&format!(
            "cd sub && setpriv --reuid=65534 --regid=65534 --clear-groups ../../recover {args}"
        ))
    };
    if by("--version").code != 0 {
        println!(
            "a_project_of_roots_above_is_left_by_the_hint: skipped, another user cannot look into the temporary folder"
        );
        return;
    }
    let refused = by("checkpoint create").expect(1).stderr;
    let hint = refused
        .lines()
        .find_map(|line| line.strip_prefix("hint: "))
        .expect("a hint")
        .to_owned();
    assert!(
        hint.starts_with("mkdir ") && hint.ends_with("/sub/.ultraplan"),
        "{refused}"
    );
    env.sh(&format!(
        "setpriv --reuid=65534 --regid=65534 --clear-groups {hint}"
    ))
    .expect(0);
    by("checkpoint create").expect(0);
}
