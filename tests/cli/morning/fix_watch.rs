//! `manual-fix watch`: changes are told as they come and judged once it is quiet.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::morning::manual_fix::failed_run;
use crate::run::supervision::{ended, kill};

/// How long anything may take that should happen soon, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process whose stdout is read line by line.
pub struct Told {
    child: Child,
    lines: Receiver<String>,
    /// All that was read.
    pub seen: Vec<String>,
}

impl Told {
    pub fn by(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .all(|line| sender.send(line).is_ok())
        });
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits for a line that `fits`.
    #[track_caller]
    pub fn until(&mut self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            match self
                .lines
                .recv_timeout(PATIENCE.saturating_sub(begun.elapsed()))
            {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if fits(&line) {
                        return line;
                    }
                }
                Err(error) => {
                    let mut stderr = String::new();
                    let _ = self.child.kill();
                    let _ = self
                        .child
                        .stderr
                        .take()
                        .map(|mut pipe| pipe.read_to_string(&mut stderr));
                    panic!("{what}: {error}\n{:#?}\n{stderr}", self.seen);
                }
            }
        }
    }

    /// Waits for this line.
    #[track_caller]
    pub fn line(&mut self, line: &str) {
        self.until(line, |seen| seen == line);
    }

    /// Reads on for a while.
    pub fn read_on(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(line) = self
            .lines
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.seen.push(line);
        }
    }

    /// Ends it with a signal; what it said besides stdout.
    pub fn stop(self, signal: &str) -> Ran {
        kill(signal, self.child.id());
        self.end()
    }

    /// Waits for its end.
    pub fn end(self) -> Ran {
        ended(self.child)
    }
}

/// An open session of a run whose check wants `good` in `state`.
fn session(config: &str) -> TestEnv {
    let env = failed_run();
    env.write(".ultraplan/recover.toml", config);
    env.json(0, &["manual-fix", "start"]);
    env
}

const NO_VERIFY: &str = "[manual_fix]\nverify_on_change = false\n";

fn watched(env: &TestEnv) -> Told {
    let told = Told::by(env.recover_command(&["manual-fix", "watch"]));
    // Whatever is told after this is told of what the test does.
    std::thread::sleep(Duration::from_millis(700));
    told
}

fn is_open(env: &TestEnv) -> Value {
    let status = env.json(0, &["manual-fix", "status"]);
    assert_eq!(status["session"]["status"], "active", "{status}");
    status
}

// B8: created, modified, deleted, renamed, taken back; in folders that were not there before; ignored ones are not told.
#[test]
fn changes_are_told_a_line_each() {
    let env = session(NO_VERIFY);
    env.write("lines", "1\n2\n3\n");
    env.write(".gitignore", "ignored/\n*.log\n");
    let mut told = watched(&env);
    told.line("created .gitignore +2 -0");
    told.line("created lines +3 -0");

    let begun = Instant::now();
    env.write("state", "good\nbetter\n");
    told.line("modified state +2 -1");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    // Other content with the same counts is another change.
    env.write("state", "good\nworse\n");
    told.line("modified state +2 -1");
    env.write("state", "bad\n");
    told.line("reverted state");

    env.write("deep/er/new.txt", "1\n");
    told.line("created deep/er/new.txt +1 -0");
    env.write("deep/er/new.txt", "1\n2\n");
    told.line("created deep/er/new.txt +2 -0");
    std::fs::remove_dir_all(env.work().join("deep")).unwrap();
    told.line("reverted deep/er/new.txt");
    env.write("deep/er/new.txt", "again\n");
    told.line("created deep/er/new.txt +1 -0");

    env.sh("mv a.txt b.txt");
    told.line("renamed a.txt -> b.txt +0 -0");
    env.sh("mv b.txt a.txt");
    told.line("reverted b.txt");
    env.sh("rm a.txt");
    told.line("deleted a.txt +0 -1");

    env.write("ignored/x", "1");
    env.write("build.log", "1");
    env.sh("git add lines; git status");
    told.read_on(Duration::from_millis(800));
    let other: Vec<_> = told
        .seen
        .iter()
        .filter(|line| line.contains("ignored/") || line.contains(".log"))
        .collect();
    assert!(other.is_empty(), "{other:?}");
    let before = env
        .sh("find . -path ./.git -prune -o -path ./.ultraplan -prune -o -type f -exec cat {} +")
        .stdout;
    let ended = told.stop("-INT").expect(130);
    assert!(
        ended.stderr.contains("manual-fix watch"),
        "{}",
        ended.stderr
    );
    let after = env
        .sh("find . -path ./.git -prune -o -path ./.ultraplan -prune -o -type f -exec cat {} +")
        .stdout;
    assert_eq!(before, after);
    is_open(&env);
}

// B8: what editors do when they save is one change.
#[test]
fn an_atomic_save_is_a_modification() {
    let env = session(NO_VERIFY);
    let mut told = watched(&env);
    env.sh("printf 'good\\n' > .state.tmp && mv .state.tmp state");
    told.line("modified state +1 -1");
    env.sh("mv a.txt a.txt~ && printf 'one\\ntwo\\n' > a.txt && rm a.txt~");
    told.line("modified a.txt +1 -0");
    told.read_on(Duration::from_millis(300));
    assert_eq!(told.seen, ["modified state +1 -1", "modified a.txt +1 -0"]);
    told.stop("-TERM").expect(143);
    is_open(&env);
}

// B8: many files at once are all told, each once, and what changes beside them is too.
#[test]
fn ten_thousand_files_at_once() {
    let env = session(NO_VERIFY);
    let mut told = watched(&env);
    let all = |told: &mut Told, begin: &'static str| {
        let count = std::cell::Cell::new(0);
        told.until(begin, |line| {
            count.set(count.get() + usize::from(line.starts_with(begin)));
            count.get() == 10_000
        });
    };
    env.sh("for d in $(seq 20); do mkdir -p ../many/$d; for f in $(seq 500); do echo $f > ../many/$d/f$f; done; done");
    env.sh("mv ../many many");
    all(&mut told, "created many/");
    // What is as it was is not told again, and what is not is counted anew.
    env.sh("find many -type f -exec touch {} +; echo more >> many/7/f7; rm many/8/f8; echo good > state");
    told.line("created many/7/f7 +2 -0");
    told.line("modified state +1 -1");
    assert!(told.seen.iter().any(|line| line == "reverted many/8/f8"));
    let count = told
        .seen
        .iter()
        .filter(|line| line.starts_with("created many/"))
        .count();
    assert_eq!(count, 10_001, "{:?}", &told.seen[10_000..]);
    env.sh("echo 8 > many/8/f8; rm many/7/f7; echo 7 > many/7/f7");
    told.line("created many/8/f8 +1 -0");
    env.sh("rm -r many");
    all(&mut told, "reverted many/");
    told.stop("-INT").expect(130);
}

// B8: after a quiet period the loops run, and their results are told with counts and times.
#[test]
fn the_loops_run_after_each_change() {
    let env = session("[manual_fix]\nquiet_period = \"200ms\"\n");
    let mut told = watched(&env);
    env.write("other", "1\n");
    told.line("created other +1 -0");
    told.line("verifying test");
    let failed = told.until("the result", |line| line.starts_with("FAILED test: "));
    assert!(
        failed.contains("3 passed, 1 failed") && failed.ends_with("s)"),
        "{failed}"
    );
    told.line("not verified");
    env.write("state", "good\n");
    told.line("modified state +1 -1");
    told.until("the result", |line| line.starts_with("passed test: "));
    told.line("verified");
    told.read_on(Duration::from_millis(600));
    assert_eq!(
        told.seen.last().map(String::as_str),
        Some("verified"),
        "they run once a change: {:?}",
        told.seen
    );
    let ended = told.stop("-INT").expect(130);
    assert!(
        ended.stderr.contains("manual-fix continue"),
        "{}",
        ended.stderr
    );
    assert_eq!(is_open(&env)["session"]["verified"], true);
    assert_eq!(
        env.json(0, &["manual-fix", "continue"])["outcome"],
        "complete"
    );
}

// B8: verified is only the tree that was there before and after.
#[test]
fn a_file_saved_during_the_verification_makes_it_run_again() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[manual_fix]\nquiet_period = \"200ms\"\n",
    );
    let slow =
        "test=echo run >> ../runs; if [ -e ok ] && [ -e ../slow ]; then sleep 2; fi; test -e ok";
    env.json(
        8,
        &[
            "run",
            "--on-failure",
            "manual-fix",
            "--feedback",
            slow,
            "--",
            "true",
        ],
    );
    env.sh("touch ../slow; rm ../runs");
    let mut told = watched(&env);
    env.write("ok", "");
    told.line("verifying test");
    env.await_line("../runs");
    env.write("late", "1\n");
    told.until("the result", |line| line.starts_with("outdated: "));
    told.line("created late +1 -0");
    told.line("verifying test");
    told.line("verified");
    told.stop("-INT").expect(130);
    assert_eq!(is_open(&env)["session"]["verified"], true);
    assert_eq!(env.read("../runs").lines().count(), 2);
}

// A signal during the verification ends it all; the session stays open.
#[test]
fn a_signal_during_the_verification() {
    let env = TestEnv::repo();
    let slow = "test=if [ -e ok ]; then echo run > ../runs; sleep 60; fi; test -e ok";
    env.json(
        8,
        &[
            "run",
            "--on-failure",
            "manual-fix",
            "--feedback",
            slow,
            "--",
            "true",
        ],
    );
    let told = watched(&env);
    env.write("ok", "");
    env.await_line("../runs");
    told.stop("-INT").expect(130);
    assert_eq!(is_open(&env)["session"]["verified"], false);
}

// The contract: one document at the end; lines beside it on stderr; exits 9 and 4.
#[test]
fn the_contract_of_scripts() {
    let env = session("[manual_fix]\nquiet_period = \"100ms\"\n");
    env.write("new", "1\n");
    let given_up = env
        .recover(&["manual-fix", "watch", "--json", "--wait=1s"])
        .expect(9);
    let document = given_up.json();
    assert_eq!(
        (&document["command"], &document["session"]["status"]),
        (&"manual-fix watch".into(), &"active".into())
    );
    assert!(
        document["run"]["run_id"] == "r 1" && document["session"]["verified"] == false,
        "{document}"
    );
    assert!(
        given_up.stderr.contains("created new +1 -0\n"),
        "{}",
        given_up.stderr
    );
    let before = env.read(".ultraplan/state/events.jsonl");
    assert_eq!(
        env.json(0, &["manual-fix", "watch", "--dry-run"])["session"]["status"],
        "active"
    );
    assert_eq!(env.read(".ultraplan/state/events.jsonl"), before);

    let waiting = env.start(&["manual-fix", "watch", "--json", "--wait"]);
    env.write("state", "good\n");
    let verified = ended(waiting).expect(0).json();
    assert_eq!(verified["session"]["verified"], true, "{verified}");
    assert_eq!(
        env.json(0, &["manual-fix", "watch", "--wait"])["session"]["verified"],
        true,
        "at once"
    );

    let mut told = watched(&env);
    told.line("modified state +1 -1");
    env.json(0, &["manual-fix", "abort"]);
    told.line("the session has ended");
    told.end().expect(0);
    for args in [
        &["manual-fix", "watch"][..],
        &["manual-fix", "watch", "--dry-run"],
    ] {
        let error = env.json(4, args);
        assert_eq!(error["error"]["code"], "no_session", "{error}");
        assert!(
            error["error"]["hint"]
                .as_str()
                .unwrap()
                .contains("manual-fix start"),
            "{error}"
        );
    }
}

/// Whether a command can have an inotify limit of its own here.
fn limits(what: &str, limit: u32) -> Option<String> {
    let line = format!("echo {limit} > /proc/sys/user/{what} && exec \"$@\"");
    let tried = Command::new("unshare")
        .args(["-rU", "sh", "-c", &line, "sh", "true"])
        .output();
    tried
        .is_ok_and(|output| output.status.success())
        .then_some(line)
}

// B8: where the system's watches are used up, at once or later, the tree is compared now and then, and that is told.
#[test]
fn without_the_systems_reports_the_tree_is_compared() {
    for (what, limit) in [
        ("max_inotify_watches", 0),
        ("max_inotify_watches", 1),
        ("max_inotify_instances", 0),
    ] {
        let Some(line) = limits(what, limit) else {
            eprintln!("skipped: no user namespace with {what} of its own");
            continue;
        };
        let env = session("[manual_fix]\nverify_on_change = false\npoll_interval = \"300ms\"\n");
        let mut command = env.command("unshare");
        command.args([
            "-rU",
            "sh",
            "-c",
            &line,
            "sh",
            env!("CARGO_BIN_EXE_recover"),
            "manual-fix",
            "watch",
        ]);
        let mut told = Told::by(command);
        // With one watch the second folder is one too many.
        env.write("deep/new", "1\n");
        let polling = told.until("polling", |line| line.starts_with("polling: "));
        assert!(
            polling.contains("inotify") && polling.contains("0.3s"),
            "{polling}"
        );
        told.line("created deep/new +1 -0");
        env.write("deep/er/newer", "1\n");
        told.line("created deep/er/newer +1 -0");
        env.write("state", "good\n");
        told.line("modified state +1 -1");
        told.stop("-INT").expect(130);
    }
}
