//! Work trees that cannot be captured, or not whole: what becomes of the run.

use std::process::{Child, Stdio};

use crate::env::TestEnv;

/// An agent that writes a file in each attempt, and breaks git's index in the second.
fn breaks_the_index() -> TestEnv {
    let env = TestEnv::repo();
    env.put(
        "../agent.sh",
        "n=$(cat ../n 2>/dev/null || echo 0); n=$((n+1)); echo $n > ../n\n\
         echo $n > made$n.txt; [ $n != 2 ] || { cp .git/index ../index; printf x > .git/index; }\n",
    );
    env
}

#[test]
fn a_run_pauses_where_an_attempts_end_cannot_be_captured() {
    let env = breaks_the_index();
    let ran = env.json(
        8,
        &[
            "run",
            "--run",
            "r",
            "--iterations",
            "4",
            "--",
            "sh",
            "../agent.sh",
        ],
    );
    assert_eq!(
        (&ran["error"]["code"], &ran["error"]["exit_code"]),
        (&"no_checkpoint".into(), &8.into()),
        "{ran:#}"
    );
    assert_eq!(
        (&ran["outcome"], &ran["run"]["status"]),
        (&"paused".into(), &"paused".into())
    );
    assert_eq!(env.read("../n"), "2\n", "no attempt begins after that");
    let status = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(
        status.contains("Stopped: no checkpoint could be taken: damaged: the index"),
        "{status}"
    );
    let again = env.recover(&["resume"]).expect(8).stdout;
    assert!(
        again.starts_with("no checkpoint could be taken: "),
        "{again}"
    );
    assert!(!again.contains("Roll back:"), "{again}");
    assert_eq!(env.read("../n"), "2\n");
    env.sh("cp ../index .git/index").expect(0);
    env.recover(&["resume"]).expect(0);
    assert_eq!(env.read("../n"), "4\n");
}

#[test]
fn a_run_is_not_complete_while_its_last_attempt_is_in_no_checkpoint() {
    let env = breaks_the_index();
    env.recover(&[
        "run",
        "--run",
        "r",
        "--iterations",
        "2",
        "--",
        "sh",
        "../agent.sh",
    ])
    .expect(8);
    env.recover(&["resume"]).expect(8);
    env.sh("cp ../index .git/index").expect(0);
    env.recover(&["resume"]).expect(0);
    assert_eq!(env.read("../n"), "2\n", "what was done is not done again");
    let list = env.json(0, &["checkpoint", "list"]);
    let latest = list["checkpoints"]
        .as_array()
        .and_then(|all| all.last())
        .map(|one| one["id"].clone());
    let id = latest.unwrap_or_default();
    let shown = env.json(0, &["checkpoint", "show", id.as_str().unwrap_or_default()]);
    assert!(shown.to_string().contains("made2.txt"), "{shown:#}");
}

/// What a run says whose first attempt does this, fails, and is rolled back.
fn pauses(attempt: &str) -> (TestEnv, serde_json::Value) {
    pauses_in(TestEnv::repo(), attempt)
}

fn pauses_in(env: TestEnv, attempt: &str) -> (TestEnv, serde_json::Value) {
    env.put(
        "../agent.sh",
        format!("[ $RECOVER_ATTEMPT = 1 ] || exit 0\n{attempt}\nexit 1\n"),
    );
    let args = ["run", "--run", "r", "--attempts", "2"];
    let rest = ["--on-failure", "rollback", "--", "sh", "../agent.sh"];
    let ran = env.json(8, &[&args[..], &rest[..]].concat());
    assert_eq!(
        (&ran["outcome"], &ran["run"]["status"]),
        (&"paused".into(), &"paused".into()),
        "{ran:#}"
    );
    (env, ran)
}

#[test]
fn a_run_pauses_where_its_rollback_is_refused() {
    let (env, ran) =
        pauses("rm a.txt; echo a.txt > .gitignore; mkdir a.txt; echo important > a.txt/x");
    let error = &ran["error"];
    assert_eq!(
        (&error["code"], &error["exit_code"]),
        (&"needs_person".into(), &8.into()),
        "{ran:#}"
    );
    assert_eq!(error["paths"][0]["path"], "a.txt/x", "{ran:#}");
    let why = "Rollback failed - conflicts: a path is in the way: a.txt/x";
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(why), "{message}");
    let status = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(status.contains(&format!("Stopped: {why}")), "{status}");
    assert!(!status.contains("is gone"), "{status}");
    let status = env.json(0, &["status"]);
    let stopped_for = status["stopped_for"].as_str().unwrap_or_default();
    assert!(stopped_for.starts_with(why), "{status:#}");
    let report = env.recover(&["report"]).expect(0).stdout;
    assert!(
        report.contains(&format!("**Stopped because:** {why}")),
        "{report}"
    );
    assert_eq!(env.read("a.txt/x"), "important\n");
    env.sh("rm -r a.txt .gitignore").expect(0);
    env.recover(&["resume", "--wait"]).expect(0);
    assert_eq!(env.read("a.txt"), "one\n");
}

#[test]
fn the_summary_of_a_run_begins_with_why_its_rollback_was_refused() {
    let env = TestEnv::repo();
    let attempt = "rm a.txt; mkdir a.txt; mkfifo a.txt/x; exit 1";
    let rest = ["--on-failure", "rollback", "--", "sh", "-c", attempt];
    let ran = env.recover(&[&["run", "--attempts", "2"][..], &rest].concat());
    let text = ran.expect(8).stdout;
    assert!(
        text.starts_with("Rollback failed - conflicts: a path is in the way: a.txt "),
        "{text}"
    );
    assert!(!text.contains("Next attempt:"), "{text}");
}

#[test]
fn a_run_pauses_where_an_attempt_replaced_the_repository() {
    let mut env = TestEnv::repo();
    // Where no copy is kept outside of the repository it cannot be put back.
    env.set("CI", "true");
    let (env, _) = pauses_in(
        env,
        "rm -rf .git; git init -q -b main; git add -A; git -c user.name=t -c user.email=t commit -qm t",
    );
    let status = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(status.contains("\nStopped: "), "{status}");
    assert!(!status.contains("is gone"), "{status}");
}

#[test]
fn a_run_pauses_where_an_attempt_broke_gits_configuration() {
    let (env, ran) = pauses("cp .git/config ../config; echo '[broken' >> .git/config");
    let message = ran["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("failed to parse config file"), "{ran:#}");
    let status = env.recover(&["status", "-v"]).expect(0).stdout;
    let stopped = status.lines().find(|line| line.starts_with("Stopped: "));
    assert!(
        stopped.is_some_and(|line| line.contains("failed to parse config file")),
        "{status}"
    );
    env.sh("cp ../config .git/config").expect(0);
    env.recover(&["resume", "--wait"]).expect(0);
}

#[test]
fn an_attempt_of_a_loop_begins_only_with_a_checkpoint_of_what_there_is() {
    let env = TestEnv::repo();
    env.sh("cp .git/index ../index; printf x > .git/index")
        .expect(0);
    assert_eq!(
        env.error(12, &["attempt", "start", "--run", "r"])["code"],
        "corrupt"
    );
    env.sh("cp ../index .git/index").expect(0);
    env.recover(&["attempt", "start", "--run", "r"]).expect(0);
    env.write("a.txt", "two\n");
    env.sh("printf x > .git/index").expect(0);
    env.recover(&["attempt", "fail", "--run", "r"]).expect(0);
    assert_eq!(
        env.error(8, &["attempt", "start", "--run", "r"])["code"],
        "no_checkpoint"
    );
    env.sh("cp ../index .git/index").expect(0);
    env.write("mine.txt", "by hand\n");
    env.recover(&["attempt", "start", "--run", "r"]).expect(0);
    env.sh("rm mine.txt; echo three > a.txt").expect(0);
    env.recover(&["attempt", "fail", "--run", "r"]).expect(0);
    let show = |at: &str| env.json(0, &["checkpoint", "show", at]).to_string();
    assert!(
        show("@2").contains("mine.txt"),
        "what was changed before an attempt is in a checkpoint"
    );
}

/// A run whose first attempt makes a folder with more files than are captured and deletes tracked work.
fn flooded() -> TestEnv {
    let env = TestEnv::repo();
    env.write("src/b.txt", "b\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "second"]);
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nmax_untracked_files = 100\n",
    );
    env.put(
        "../agent.sh",
        "n=$(cat ../n 2>/dev/null || echo 0); n=$((n+1)); echo $n > ../n\n\
         if [ $n = 1 ]; then mkdir -p app/modules/x app/src; for i in $(seq 150); do echo $i > app/modules/x/$i; done\n\
         echo half > app/src/result.txt; else rm -rf app/src src; echo broken > a.txt; fi\n",
    );
    env
}

#[test]
fn a_flood_that_an_attempt_makes_is_left_out_and_the_rest_is_captured() {
    let env = flooded();
    let ran = env
        .recover(&[
            "run",
            "--run",
            "r",
            "--iterations",
            "2",
            "--",
            "sh",
            "../agent.sh",
        ])
        .expect(0);
    assert!(
        ran.stdout.contains("app/modules/x/ (150 files"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("/app/modules/x/ to .git/info/exclude"),
        "{}",
        ran.stdout
    );
    let first = env.json(0, &["checkpoint", "show", "@2"]);
    let skipped = &first["checkpoint"]["skipped"][0];
    assert_eq!(
        (&skipped["path"], &skipped["reason"], &skipped["files"]),
        (&"app/modules/x".into(), &"too_many".into(), &150.into())
    );
    assert!(
        first.to_string().contains("app/src/result.txt"),
        "{first:#}"
    );
    for command in [&["status"][..], &["report"]] {
        let said = env.recover(command).expect(0).stdout;
        assert!(
            said.contains("/app/modules/x/ to .git/info/exclude"),
            "{said}"
        );
    }
    // What was left out is neither written nor deleted, whichever way it goes.
    let back = |to: &str| {
        let ran = env.recover(&["rollback", "--to", to]);
        assert!(matches!(ran.code, 0 | 3), "{ran:?}");
    };
    back("@2");
    assert_eq!(
        (env.read("app/src/result.txt"), env.read("src/b.txt")),
        ("half\n".to_owned(), "b\n".to_owned())
    );
    let all = || env.sh("ls app/modules/x | wc -l").stdout;
    assert_eq!(all().trim(), "150");
    back("initial");
    assert!(!env.exists("app/src") && env.read("a.txt") == "one\n");
    assert_eq!(all().trim(), "150");
    env.sh("rm -rf app/modules/x; mkdir -p app/modules/x; echo mine > app/modules/x/mine.txt")
        .expect(0);
    back("@2");
    assert_eq!(env.read("app/modules/x/mine.txt"), "mine\n");
}

#[test]
fn a_flood_from_before_the_run_refuses_it_and_one_without_a_folder_pauses_it() {
    let env = flooded();
    env.sh("mkdir pile; for i in $(seq 150); do echo $i > pile/$i; done")
        .expect(0);
    let run = [
        "run",
        "--run",
        "r",
        "--iterations",
        "3",
        "--",
        "sh",
        "../agent.sh",
    ];
    let error = env.recover(&run).expect(14).stderr;
    assert!(
        error.contains("add the line '/pile' to .git/info/exclude"),
        "{error}"
    );
    assert!(!env.exists("../n"), "no attempt");
    env.sh("rm -r pile").expect(0);
    env.put(
        "../agent.sh",
        "echo x >> ../n; for i in $(seq 150); do echo $i > loose$i; done\n",
    );
    env.recover(&[
        "run",
        "--run",
        "r2",
        "--iterations",
        "3",
        "--",
        "sh",
        "../agent.sh",
    ])
    .expect(8);
    assert_eq!(env.read("../n"), "x\n");
}

/// A shell line that goes on beside a test.
struct Beside(Child);

impl Beside {
    fn start(env: &TestEnv, line: &str) -> Self {
        let mut command = env.command("sh");
        Self(
            command
                .args(["-c", line])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("sh starts"),
        )
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The content of a file in the latest checkpoint.
fn captured(env: &TestEnv, path: &str) -> Option<String> {
    let commit = env.json(0, &["checkpoint", "list"])["checkpoints"]
        .as_array()?
        .last()?["commit"]
        .clone();
    let ran = env.sh(&format!("git show {}:{path}", commit.as_str()?));
    (ran.code == 0).then_some(ran.stdout)
}

#[test]
fn a_log_that_grows_all_the_time_is_in_the_checkpoint() {
    let env = TestEnv::repo();
    env.sh("seq 200000 > app.log").expect(0);
    let _writer = Beside::start(&env, "while :; do seq 100; sleep 0.002; done >> app.log");
    for _ in 0..3 {
        let taken = env.json(0, &["checkpoint", "create"]);
        let log = captured(&env, "app.log").expect("it is there");
        assert!(
            log.len() > 1_000_000 && env.read("app.log").starts_with(&log),
            "what it began with"
        );
        let unsettled = &taken["checkpoint"]["unsettled"];
        assert!(
            unsettled.is_null() || unsettled[0]["path"] == "app.log",
            "{unsettled}"
        );
    }
}

#[test]
fn a_database_that_is_written_is_captured_whole_or_listed() {
    let env = TestEnv::repo();
    let page = |text: &str| text.repeat(512);
    env.write("x.db", page("a") + &page("a"));
    let _writer = Beside::start(
        &env,
        "page() { printf \"%0512d\" 0 | tr 0 $1; }; while :; do for c in b c d e; do cp x.db x.db-journal; \
         page $c | dd of=x.db conv=notrunc bs=512 seek=0 status=none; sleep 0.01; \
         page $c | dd of=x.db conv=notrunc bs=512 seek=1 status=none; rm x.db-journal; done; done",
    );
    for _ in 0..20 {
        // One that could not be read whole is listed too.
        let ran = env.recover(&["--json", "checkpoint", "create"]);
        assert!(matches!(ran.code, 0 | 3), "{ran:?}");
        let taken = ran.json()["checkpoint"].take();
        if taken["partial"] == true || !taken["unsettled"].is_null() {
            assert!(
                taken["unsettled"].to_string().contains("x.db") || taken["partial"] == true,
                "{taken:#}"
            );
            continue;
        }
        let (data, journal) = (
            captured(&env, "x.db").expect("it is there"),
            captured(&env, "x.db-journal"),
        );
        let halves = data.split_at(512);
        let is_whole = |text: &str| text.len() == 1024 && text[..512] == text[512..];
        assert!(
            halves.0 == halves.1 || journal.as_deref().is_some_and(is_whole),
            "{data}\n{journal:?}"
        );
    }
}
