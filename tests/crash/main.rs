//! The crash sweep: kills the real program, or makes a system call fail, at each call that changes anything (`strace`).
//! Afterwards either the state before or the target is there byte for byte, the next commands work, and nothing is left over.
//!
//! `strace` injects the faults. A run of a few dozen points, spread over all, is the default; `RECOVER_CRASH_ALL=1`
//! sweeps every one. What a loss of power leaves is in [`power`].

mod disk;
#[path = "../cli/env.rs"]
mod env;
mod isolated;
mod ledger;
mod power;
#[path = "../cli/seen.rs"]
#[allow(dead_code)]
mod seen;
mod vault;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use env::TestEnv;
use recover::testing::model::Payload;
use recover::testing::model::RunSpec;
use recover::testing::model::Timestamp;
use recover::testing::store::{NewEvent, Store};
use seen::{Seen, assert_clean, checkpoint, seen};

/// Calls that change something on disk; of `openat` those count that make a file.
const CALLS: [&str; 27] = [
    "write",
    "pwrite64",
    "writev",
    "fsync",
    "fdatasync",
    "syncfs",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "symlinkat",
    "ftruncate",
    "fchmod",
    "fchmodat",
    "openat",
    "copy_file_range",
    "pwritev",
    "fallocate",
    "truncate",
    "sync_file_range",
    "symlink",
];

/// How many points of each command the default run takes, beside one of each kind of call that these leave out.
const SAMPLE: usize = 6;

/// One occurrence of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    call: &'static str,
    /// As a thread counts its own.
    when: usize,
    /// Whether something is changed: all calls but `openat`, which may only read.
    changes: bool,
}

/// What is done to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    /// It fails, and so do the later ones; but for `openat`: what is there can still be opened on a full disk.
    Error(&'static str),
    /// It and all later ones fail, whatever they are.
    Lasting(&'static str),
}

impl Fault {
    fn name(self) -> String {
        match self {
            Self::Kill => "SIGKILL".to_owned(),
            Self::Error(errno) => errno.to_owned(),
            Self::Lasting(errno) => format!("{errno} lasting"),
        }
    }

    /// Whether it may come at the point.
    fn applies_to(self, point: &Point) -> bool {
        match self {
            Self::Kill => point.changes,
            Self::Error(errno) | Self::Lasting(errno) => takes_space(errno, point),
        }
    }
}

/// Whether an error of that kind may come at the point.
fn takes_space(errno: &str, point: &Point) -> bool {
    // A full disk does not hinder removing; cutting a file down and permissions take no space. What may not be removed can
    // be written.
    if errno == "EPERM" {
        return ["unlink", "unlinkat", "rmdir"].contains(&point.call);
    }
    // What fails for want of descriptors may be any file that is opened.
    point.call == "openat" && (point.changes || errno == "EMFILE")
        || errno != "EMFILE"
            && matches!(
                point.call,
                "write"
                    | "pwrite64"
                    | "writev"
                    | "fsync"
                    | "fdatasync"
                    | "mkdir"
                    | "mkdirat"
                    | "rename"
                    | "renameat"
                    | "renameat2"
                    | "linkat"
                    | "link"
                    | "symlinkat"
                    | "symlink"
                    | "fallocate"
                    | "pwritev"
                    | "copy_file_range"
            )
}

/// A command that is cut off, and what it starts from.
struct Case {
    args: &'static [&'static str],
    git: bool,
    before: fn(&TestEnv),
}

impl Case {
    /// What begins its command line where permissions have to bind it: root passes them over.
    fn bound(&self) -> &'static str {
        let closed = [ROLLBACK_CLOSED.args, PASS_CLOSED.args].contains(&self.args);
        let is_root = || TestEnv::plain().sh("id -u").stdout.trim() == "0";
        if closed && is_root() {
            "setpriv --bounding-set=-dac_override,-dac_read_search"
        } else {
            ""
        }
    }
}

fn strace_is_there() -> bool {
    if TestEnv::plain().sh("command -v strace").code == 0 {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "strace is missing: nothing can be proven here"
    );
    eprintln!("skipped: strace is missing");
    false
}

/// Two checkpoints with files, modes, links and folders that differ, and a working memory.
fn start(git: bool) -> TestEnv {
    let env = if git {
        TestEnv::repo()
    } else {
        TestEnv::plain()
    };
    env.write("a.txt", "one\n");
    env.write("stays.txt", "same\n");
    env.write("old/deep/file", "old\n");
    env.write(".ultraplan/state/plan.json", "1");
    env.sh("ln -s a.txt link; mkdir empty; chmod 640 a.txt")
        .expect(0);
    checkpoint(&env);
    env.sh("rm -r old empty link; mkdir link; echo l > link/l; chmod 600 stays.txt")
        .expect(0);
    env.write("a.txt", "two\n");
    env.write("new/file", "new\n");
    env.write(".ultraplan/state/plan.json", "2");
    env.write(".ultraplan/state/sub/other.json", "2");
    if git {
        env.sh("git add -A").expect(0);
    }
    checkpoint(&env);
    env
}

/// What a case starts from, made once and copied for each point.
struct Start<'a> {
    case: &'a Case,
    env: TestEnv,
    saved: tempfile::TempDir,
}

impl<'a> Start<'a> {
    fn of(case: &'a Case, env: TestEnv) -> Self {
        (case.before)(&env);
        let saved = tempfile::tempdir().expect("a temporary folder");
        env.sh(&format!(
            "cp -a '{}/.' '{}'",
            env.root().display(),
            saved.path().display()
        ))
        .expect(0);
        Self { case, env, saved }
    }

    /// As it was, in the same place, whatever was done there since.
    fn again(&self) -> &TestEnv {
        let (root, saved) = (self.env.root(), self.saved.path());
        let script = "chmod -R u+rwX . && find . -mindepth 1 -delete && cp -a \"$1/.\" .";
        let copied = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(saved)
            .current_dir(root)
            .status();
        assert!(copied.expect("a shell").success());
        &self.env
    }
}

/// Everything that a restore may change: the work tree, the working memory, HEAD and the index.
fn everything(env: &TestEnv) -> (Seen, Seen, String) {
    let own = [
        "events.jsonl",
        "recovery.json",
        "attempt_history.json",
        "active_checkpoint.json",
        "recover",
        ".gitignore",
    ];
    let mut memory = seen(&env.work().join(".ultraplan/state"));
    memory.retain(|path, _| {
        let path = String::from_utf8_lossy(path).into_owned();
        !own.iter().any(|own| Path::new(&path).starts_with(own))
            && !path.starts_with(".recover-tmp")
    });
    let git = if env.exists(".git") {
        env.sh("git rev-parse HEAD; git ls-files -s -u; git ls-files -s")
            .stdout
    } else {
        String::new()
    };
    let mut tree = seen(env.work());
    // What is git's in the repositories inside.
    tree.retain(|path, _| !path.windows(6).any(|part| part == b"/.git/"));
    (tree, memory, git)
}

/// The calls of one undisturbed execution, those of the dynamic linker and of the C library aside.
fn calls(start: &Start<'_>) -> BTreeSet<Point> {
    let (case, env) = (start.case, start.again());
    let log = env.root().join("calls");
    let recover = env!("CARGO_BIN_EXE_recover");
    let (bound, args) = (case.bound(), case.args.join(" "));
    let line = format!(
        "{bound} strace -f -o {} -e trace={} {recover} {args}",
        log.display(),
        CALLS.join(",")
    );
    env.sh(&line).expect(0);
    let mut seen = std::collections::BTreeMap::<(&str, &'static str), usize>::new();
    let mut points = BTreeSet::new();
    // Calls are counted thread by thread, and refused in each: before these the program itself is not loaded yet.
    let mut loading = 0;
    let text = std::fs::read_to_string(log).expect("a log");
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let name = rest.trim_start().split('(').next().unwrap_or_default();
        let Some(call) = CALLS.into_iter().find(|call| *call == name) else {
            continue;
        };
        let when = seen.entry((thread, call)).or_default();
        *when += 1;
        let named = |place: &str| rest.contains(&format!("\"{place}"));
        // The temporary folder may lie in one of them.
        let own = named(&env.root().to_string_lossy());
        let system = !own
            && ["/lib", "/usr", "/etc", "/proc", "/sys", "/dev"]
                .into_iter()
                .any(named);
        // Libraries are looked for in whatever folders the environment names.
        let system = system || rest.contains(".so.") || rest.contains(".so\"");
        if call == "openat" && rest.contains(".so") && !own {
            loading = loading.max(*when);
        }
        let changes = call != "openat" || rest.contains("O_CREAT");
        if !system {
            points.insert(Point {
                call,
                when: *when,
                changes,
            });
        }
    }
    points.retain(|point| point.call != "openat" || point.when > loading);
    points
}

/// Executes the command with a fault at the given occurrence of a call, and returns how it ended.
fn disturbed(
    env: &TestEnv,
    case: &Case,
    Point { call, when, .. }: Point,
    fault: Fault,
) -> env::Ran {
    let injected = match fault {
        Fault::Kill => "signal=SIGKILL".to_owned(),
        Fault::Error(errno) | Fault::Lasting(errno) => format!("error={errno}"),
    };
    let lasts = match fault {
        Fault::Kill => false,
        Fault::Error(_) => call != "openat",
        Fault::Lasting(_) => true,
    };
    let more = if lasts { "+" } else { "" };
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "exec {} strace -f -o ../refused -e trace={call} -e inject={call}:{injected}:when={when}{more} {recover} {}",
        case.bound(),
        case.args.join(" ")
    ))
}

/// The calls that were refused, as `strace` writes them: which one an occurrence is differs a little from run to run.
fn refused(env: &TestEnv) -> Vec<String> {
    let calls = std::fs::read_to_string(env.root().join("refused")).expect("the calls");
    calls
        .lines()
        .filter(|line| line.contains("(INJECTED)"))
        .map(str::to_owned)
        .collect()
}

/// A command that is disturbed at each of its points, from the same state every time.
struct Sweep<'a> {
    name: &'a str,
    start: Start<'a>,
    fault: Fault,
    points: Vec<Point>,
}

impl<'a> Sweep<'a> {
    /// Executes the case once without a fault, for its points; `None` where `strace` is missing.
    fn of(name: &'a str, case: &'a Case, env: TestEnv, fault: Fault) -> Option<Self> {
        if !strace_is_there() {
            return None;
        }
        let start = Start::of(case, env);
        let points = points(&start, fault);
        Some(Self {
            name,
            start,
            fault,
            points,
        })
    }

    /// Has `check` disturb the command, by its last argument, at each point; the second names the point.
    fn each(self, mut check: impl FnMut(&TestEnv, &str, &dyn Fn() -> env::Ran)) {
        let failed = Cell::new(0);
        for point in &self.points {
            let env = self.start.again();
            let fault = self.fault.name();
            let at = format!("{}: {fault} at {} {}", self.name, point.call, point.when);
            eprintln!("{at}");
            check(env, &at, &|| {
                let ran = disturbed(env, self.start.case, *point, self.fault);
                failed.set(failed.get() + usize::from(ran.code != 0));
                ran
            });
        }
        say(self.name, &self.fault.name(), &self.points, failed.get());
    }
}

/// All points of the fault, or some spread over all of them, with each kind of call among them.
fn points(start: &Start<'_>, fault: Fault) -> Vec<Point> {
    let all: Vec<Point> = calls(start)
        .into_iter()
        .filter(|point| fault.applies_to(point))
        .collect();
    if std::env::var_os("RECOVER_CRASH_ALL").is_some() {
        return all;
    }
    let step = all.len().div_ceil(SAMPLE).max(1);
    let mut some: Vec<Point> = all.iter().copied().step_by(step).collect();
    for call in CALLS {
        let of: Vec<Point> = all
            .iter()
            .copied()
            .filter(|point| point.call == call)
            .collect();
        if !of.is_empty() && !some.iter().any(|point| point.call == call) {
            some.push(of[of.len() / 2]);
        }
    }
    some
}

/// What the sweeps did so far, for people: the last table has all of them (`--nocapture`).
fn say(name: &str, fault: &str, points: &[Point], failed: usize) {
    static ROWS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let kinds: BTreeSet<&str> = points.iter().map(|point| point.call).collect();
    let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    rows.push(format!(
        "{name:<24} {fault:<14} {:>6} {:>6} {failed:>7}",
        points.len(),
        kinds.len()
    ));
    rows.sort();
    let head = format!(
        "{:<24} {:<14} {:>6} {:>6} {:>7}",
        "all recovered:", "fault", "points", "calls", "failed"
    );
    eprintln!("{head}\n{}", rows.join("\n"));
}

/// A run is recorded before what it begins with is captured.
#[test]
fn a_run_that_is_killed_as_it_begins() {
    let case = Case {
        args: &["run", "--run", "night", "--", "touch", "work.txt"],
        git: true,
        before: |_| {},
    };
    let Some(sweep) = Sweep::of("run", &case, start(true), Fault::Kill) else {
        return;
    };
    sweep.each(|env, at, disturb| {
        disturb();
        if env.recover(&["status", "night"]).code == 0 {
            env.recover(&["resume", "night"]).expect(0);
        } else {
            env.recover(case.args).expect(0);
        }
        env.json(0, &["accept", "night"]);
        let committed = env.git(&["show", "--format=", "--name-only", "HEAD"]);
        assert!(committed.contains("work.txt"), "{at}: {committed}");
        assert_nothing_left(env, at);
    });
}

/// Kills the command at each point. `after` is what it leads to when nothing disturbs it.
fn sweep_kills(name: &str, case: &Case) {
    let Some(sweep) = Sweep::of(name, case, start(case.git), Fault::Kill) else {
        return;
    };
    let (after, ..) = everything(&sweep.start.env);
    sweep.each(|env, at, disturb| {
        let before = everything(env);
        disturb();
        // Reading works at once, and does not change anything.
        let between = everything(env);
        let status = env.json(0, &["status"]);
        env.json(0, &["checkpoint", "list", "--all-runs"]);
        assert_eq!(everything(env), between, "{at}");
        // The next command that writes settles it, one way or the other.
        let kept = env.json(0, &["checkpoint", "create"]);
        let now = everything(env);
        assert!(
            now == before || now.0 == after,
            "{at}: neither before nor after\n{status}\n{kept}"
        );
        assert_nothing_left(env, at);
        let report = env.json(0, &["checkpoint", "verify"]);
        let ids: BTreeSet<String> = listed(env);
        assert_eq!(
            report["checked"],
            ids.len(),
            "{at}: a checkpoint is listed twice"
        );
        if case.args == COMPACT.args {
            let events = env.json(0, &["log", "--limit", "1000"])["events"]
                .as_array()
                .map_or(0, Vec::len);
            assert!(events > MANY, "{at}: {events}");
            env.json(0, &["doctor"]);
            env.json(0, case.args);
            let size = std::fs::metadata(env.work().join(".ultraplan/state/events.jsonl"))
                .expect("the ledger")
                .len();
            assert!(size < 3 << 20, "{at}: {size}");
        }
        if case.args.contains(&"prune") {
            env.json(0, case.args);
            let references = env.git(&["for-each-ref", "refs/recover"]).lines().count();
            assert_eq!(references, listed(env).len(), "{at}");
            env.git(&["pack-refs", "--all"]);
        }
        // What was asked for is still possible, and can be taken back.
        if case.args[0] == "rollback" {
            env.json(0, case.args);
            assert_eq!(everything(env).0, after, "{at}");
            env.json(0, &["undo"]);
            assert_eq!(everything(env), before, "{at}: undone");
            assert_nothing_left(env, at);
        }
    });
}

fn listed(env: &TestEnv) -> BTreeSet<String> {
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    list["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| seen::text(&one["id"]))
        .collect()
}

#[track_caller]
fn assert_nothing_left(env: &TestEnv, at: &str) {
    if env.exists(".git") {
        assert_clean(env);
        let count = env.git(&["count-objects", "-v"]);
        assert!(count.contains("garbage: 0\n"), "{at}: {count}");
    } else {
        env.sh("git --git-dir=.ultraplan/state/recover/shadow.git fsck --strict --no-dangling")
            .expect(0);
    }
    let left = env.sh(
        "find . -name '.recover-tmp-*' -o -name '*.tmp' -o -name 'tmp_obj*' -o -name journal.json -o -name loan.json -o -name 'holds-*' \
         -o -path '*/quarantine/objects/??' -o -path '*/quarantine*/objects/pack/*' -o -name 'packing*' \
         -o -name 'ledger-*.before'",
    );
    assert_eq!(left.stdout, "", "{at}");
}

/// Refuses each call with an error, from that one on: the command fails with the right code and changes nothing.
fn sweep_errors(name: &str, case: &Case, errno: &'static str, code: i32) {
    sweep_faults(name, case, Fault::Error(errno), code);
}

fn sweep_faults(name: &str, case: &Case, fault: Fault, code: i32) {
    let Some(sweep) = Sweep::of(name, case, start(case.git), fault) else {
        return;
    };
    let restores = ["rollback", "undo"].contains(&case.args[0]);
    let back = if case.args[0] == "undo" {
        "redo"
    } else {
        "undo"
    };
    sweep.each(|env, at, disturb| {
        let before = everything(env);
        let ran = disturb();
        // Where only a cache or the answer itself could not be written, the work is done.
        if ran.code == 0 {
            if restores {
                env.json(0, &[back]);
            }
        } else {
            assert!(restores || everything(env) == before, "{at}: {ran:?}");
            // A configuration that could not be opened is taken for a wrong one, a file of the tree for an unreadable one.
            let of = |call: &str| refused(env).iter().any(|line| line.contains(call));
            let unread = of(" openat(") && (ran.code == 2 || (!restores && ran.code == 3));
            assert!(
                unread || [code, 1, 11, 14, 16].contains(&ran.code),
                "{at}: {ran:?}"
            );
            // What could not be taken back is waiting for the command that is named.
            let journal = if case.git { JOURNAL } else { PRIVATE_JOURNAL };
            assert_eq!(ran.code == 16, env.exists(journal), "{at}: {ran:?}");
            if ran.code == 16 {
                // Where nothing at all can be written, nothing can be said.
                assert!(
                    ran.stderr.contains("doctor --repair") || of(" write("),
                    "{at}: {ran:?}"
                );
                env.json(0, &["doctor", "--repair"]);
            }
        }
        env.json(0, &["checkpoint", "create"]);
        if everything(env) != before && restores {
            // A view, or the answer, was all that could not be written.
            env.json(0, &[back]);
        }
        assert_eq!(everything(env), before, "{at}: {ran:?}");
        assert_nothing_left(env, at);
        if case.args.contains(&"prune") {
            // What was asked for is done the next time, and no reference without a checkpoint or the other way round.
            env.json(0, case.args);
            assert_eq!(
                env.git(&["for-each-ref", "refs/recover"]).lines().count(),
                listed(env).len(),
                "{at}"
            );
        }
        assert_eq!(
            env.json(0, &["checkpoint", "verify"])["checked"],
            listed(env).len(),
            "{at}"
        );
    });
}

const CREATE: Case = Case {
    args: &["checkpoint", "create"],
    git: true,
    before: |env| {
        env.write("a.txt", "three\n");
        env.write("more/b", "b\n");
    },
};
/// Makes most of it durable before the ledger's lock, which those of other runs wait for, and the rest under it.
const PASS: Case = Case {
    args: &["attempt", "pass", "--run", "own"],
    git: true,
    before: |env| {
        for run in ["1", "2", "3", "4", "own"] {
            env.json(0, &["attempt", "start", "--run", run]);
        }
        env.write("a.txt", "three\n");
        env.git(&["add", "a.txt"]);
        env.write("more/b", "b\n");
    },
};
/// All of it under the lock.
const PASS_ALONE: Case = Case {
    args: &["attempt", "pass"],
    git: true,
    before: |env| {
        env.json(0, &["attempt", "start"]);
        env.write("a.txt", "three\n");
        env.write("more/b", "b\n");
    },
};
/// Moves the branch and puts the index back as well.
const ROLLBACK: Case = Case {
    args: &[
        "rollback",
        "--to",
        "@1",
        "--restore-index",
        "--commits",
        "drop",
    ],
    git: true,
    before: |env| {
        env.git(&["commit", "-qm", "more"]);
    },
};
/// Folders that their owner may not write to until they are opened for the time of the restore.
const ROLLBACK_CLOSED: Case = Case {
    args: &["rollback", "--to", "@1", "--edits", "discard"],
    git: true,
    before: |env| {
        env.sh("chmod 555 new link .").expect(0);
    },
};
/// Files and folders that an attempt closed, and that are opened for the time of the capture.
const PASS_CLOSED: Case = Case {
    args: &["attempt", "pass", "-q"],
    git: true,
    before: |env| {
        env.json(0, &["attempt", "start"]);
        env.sh("chmod 000 a.txt new/file new").expect(0);
    },
};
const ROLLBACK_PLAIN: Case = Case {
    args: &["rollback", "--to", "@1"],
    git: false,
    before: |_| {},
};
const UNDO: Case = Case {
    args: &["undo"],
    git: true,
    before: |env| {
        env.git(&["commit", "-qm", "more"]);
        env.json(
            0,
            &[
                "rollback",
                "--to",
                "@1",
                "--restore-index",
                "--commits",
                "drop",
            ],
        );
    },
};

/// A restore that was cut off in the middle of its files, and what it left: a temporary file, and a lock of git's.
const REPAIR: Case = Case {
    args: &["doctor", "--repair"],
    git: true,
    before: |env| {
        let recover = env!("CARGO_BIN_EXE_recover");
        // At the first removal once the journal is there; what comes before it leaves the tree as it is.
        env.sh(&format!(
            "for n in $(seq 20); do \
             strace -f -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=SIGKILL:when=$n \
             {recover} rollback --to @1 --restore-index; test ! -e {JOURNAL} || break; done"
        ));
        // What a kill a moment later leaves as well; no process has that number.
        let line = "echo half > .recover-tmp-99999999-1; printf %s $PWD/.git/index.lock > .git/recover/holds-index; \
                    ln .git/recover/holds-index .git/index.lock";
        env.sh(line).expect(0);
        assert!(env.exists(JOURNAL), "it was interrupted");
    },
};

/// A repository inside that is changed, one that is gone, and a submodule whose repository survives its folder.
const ROLLBACK_NESTED: Case = Case {
    args: &["rollback", "--to", "@3", "--nested", "--edits", "discard"],
    git: true,
    before: |env| {
        env.sh("set -e; git init -q ../library; git -C ../library commit -q --allow-empty -m lib
             git -c protocol.file.allow=always submodule --quiet add ../library module; echo m > module/file
             for one in here gone; do git init -q $one; echo 1 > $one/file; ln -s file $one/link; done
             git add module .gitmodules")
            .expect(0);
        checkpoint(env);
        env.sh("rm -rf module gone; echo 2 > here/file; rm here/link; echo 3 > a.txt")
            .expect(0);
    },
};

/// The same repositories in a capture.
const CREATE_NESTED: Case = Case {
    args: &["checkpoint", "create"],
    git: true,
    before: |env| {
        env.sh("for one in here here/deeper; do git init -q $one; echo 1 > $one/file; done")
            .expect(0);
    },
};

/// Where a restore that is under way is noted.
const JOURNAL: &str = ".git/recover/journal.json";
/// The same without git.
const PRIVATE_JOURNAL: &str = ".ultraplan/state/recover/shadow.git/recover/journal.json";

/// Some of what is removed is packed.
const PRUNE: Case = Case {
    args: &["--yes", "checkpoint", "prune", "--keep-last", "1"],
    git: true,
    before: |env| {
        for content in ["4", "5", "6"] {
            env.write("a.txt", content);
            checkpoint(env);
        }
        env.git(&["pack-refs", "--all"]);
    },
};

/// So many small packs are there that the capture makes one of them before its own.
const MERGE: Case = Case {
    args: &["checkpoint", "create"],
    git: true,
    before: |env| {
        let small = || {
            env.sh("ls .git/recover/written | grep -c small-")
                .stdout
                .trim()
                .to_owned()
        };
        for number in 0..16 {
            if small() != "16" {
                env.write("a.txt", number.to_string());
                checkpoint(env);
            }
        }
        assert_eq!(small(), "16", "the next capture makes one of them");
        env.write("a.txt", "three\n");
    },
};

/// What was packed then is no longer needed by any checkpoint but the last: its pack is written again without that.
const PRUNE_PACKED: Case = Case {
    args: &["--yes", "checkpoint", "prune", "--keep-last", "1"],
    git: true,
    before: |env| {
        (MERGE.before)(env);
        checkpoint(env);
        assert_eq!(
            env.sh("ls .git/objects/pack | grep -c 'pack$'")
                .stdout
                .trim(),
            "2",
            "it is packed"
        );
    },
};

/// So much stands in the ledger that the next event makes it compact itself.
const COMPACT: Case = Case {
    args: &["attempt", "start"],
    git: true,
    before: |env| {
        let dir = env.work().join(".ultraplan/state");
        let store =
            Store::new(dir, Duration::from_secs(5)).with_copy(Some(&env.work().join(".git")));
        let mut ledger = store.lock().expect("the ledger");
        let run = ledger.state().runs[0].key.clone();
        let spec = RunSpec {
            prompt: Some("a prompt of some length ".repeat(1200)),
            ..RunSpec::default()
        };
        let changed = || {
            NewEvent::about(
                &run,
                Payload::RunSpecChanged {
                    spec: Box::new(spec.clone()),
                    changes: Vec::new(),
                },
            )
        };
        // The first part is too short for it, the second too few events.
        for part in [MANY * 7 / 8, MANY / 8] {
            let events = (0..part).map(|_| changed()).collect();
            ledger
                .append(Timestamp::from_millis(1_790_000_000_000), events)
                .expect("events");
        }
        let copies = env.sh("cmp .ultraplan/state/events.jsonl .git/recover/ledger-*");
        assert_eq!(copies.code, 0, "the copy is the program's own: {copies:?}");
        // Without the cache, which is written when the lock is given back, all of them are new.
        drop(ledger);
        std::fs::remove_file(store.private_dir().join("fold.cache")).expect("the cache");
    },
};
const MANY: usize = 320;

// of a compaction of the ledger: nothing of what it says is lost, at no point.
#[test]
fn a_compaction_that_is_killed() {
    sweep_kills("compaction", &COMPACT);
}

// in prune: what is protected survives, and git itself can go on.
#[test]
fn a_prune_that_is_killed() {
    sweep_kills("prune", &PRUNE);
}

// SIGKILL at each write, fsync, rename, unlink of a capture.
#[test]
fn a_capture_that_is_killed() {
    sweep_kills("checkpoint create", &CREATE);
}

#[test]
fn an_end_of_an_attempt_that_is_killed() {
    sweep_kills("attempt pass", &PASS);
}

#[test]
fn an_end_of_an_attempt_that_nobody_waits_for_and_is_killed() {
    sweep_kills("attempt pass alone", &PASS_ALONE);
}

// The same while it makes one pack of small ones: every object is there at each moment, in one of them or in several.
#[test]
fn a_capture_that_makes_one_of_small_packs_and_is_killed() {
    if strace_is_there() {
        let env = start(MERGE.git);
        (MERGE.before)(&env);
        env.recover(MERGE.args).expect(0);
        let packs = env.sh("ls .git/objects/pack | grep -c 'pack$'").stdout;
        assert_eq!(packs.trim(), "2", "they are one by now");
    }
    sweep_kills("checkpoint create that merges packs", &MERGE);
}

#[test]
fn a_failing_disk_under_a_capture_that_makes_one_of_small_packs() {
    sweep_errors("checkpoint create that merges packs", &MERGE, "EIO", 1);
}

#[test]
fn a_full_disk_under_a_capture_that_makes_one_of_small_packs() {
    sweep_errors("checkpoint create that merges packs", &MERGE, "ENOSPC", 14);
}

#[test]
fn nothing_can_be_removed_under_a_capture_that_makes_one_of_small_packs() {
    sweep_errors("checkpoint create that merges packs", &MERGE, "EPERM", 1);
}

// The same where a pack is written again for what stays in it.
#[test]
fn a_prune_of_packed_objects_that_is_killed() {
    sweep_kills("prune of packed objects", &PRUNE_PACKED);
}

#[test]
fn a_full_disk_under_a_prune_of_packed_objects() {
    sweep_errors("prune of packed objects", &PRUNE_PACKED, "ENOSPC", 14);
}

#[test]
fn a_failing_disk_under_a_prune_of_packed_objects() {
    sweep_errors("prune of packed objects", &PRUNE_PACKED, "EIO", 1);
}

// at each restored file.
#[test]
fn a_rollback_that_is_killed() {
    sweep_kills("rollback", &ROLLBACK);
}

// Promise 6: rights that were lent end as the target, or what was there before, says.
#[test]
fn a_rollback_in_closed_folders_that_is_killed() {
    sweep_kills("rollback in closed", &ROLLBACK_CLOSED);
}

#[test]
fn a_capture_of_closed_files_that_is_killed() {
    sweep_kills("attempt pass, closed", &PASS_CLOSED);
}

// The same with repositories inside: all of it or nothing.
#[test]
fn a_rollback_of_nested_repositories_that_is_killed() {
    sweep_kills("rollback --nested", &ROLLBACK_NESTED);
}

#[test]
fn a_capture_of_nested_repositories_that_is_killed() {
    sweep_kills("create with nested", &CREATE_NESTED);
}

// The same without git.
#[test]
fn a_rollback_without_git_that_is_killed() {
    sweep_kills("rollback without git", &ROLLBACK_PLAIN);
}

// in undo.
#[test]
fn an_undo_that_is_killed() {
    sweep_kills("undo", &UNDO);
}

/// An accept whose hook formatted a file: branch, index and files go back together.
const UNDO_ACCEPT: Case = Case {
    args: &["undo"],
    git: true,
    before: |env| {
        env.git(&["commit", "-qm", "more"]);
        let hook = "mkdir -p .git/hooks; printf '#!/bin/sh\\necho formatted >> new.txt; git add new.txt\\n' > .git/hooks/pre-commit; \
                    chmod +x .git/hooks/pre-commit";
        env.sh(hook).expect(0);
        env.json(
            0,
            &[
                "run",
                "--run",
                "night",
                "--",
                "sh",
                "-c",
                "echo new > new.txt",
            ],
        );
        env.json(0, &["accept", "night"]);
    },
};

#[test]
fn an_undo_of_an_accept_that_is_killed() {
    sweep_kills("undo of accept", &UNDO_ACCEPT);
}

// no space in a restore: reverted, or finished where only the answer could not be given.
#[test]
fn a_full_disk() {
    sweep_errors("rollback", &ROLLBACK, "ENOSPC", 14);
}

// ENOSPC in a capture: 14, the tree untouched, temp files gone.
#[test]
fn a_full_disk_under_a_capture() {
    sweep_errors("checkpoint create", &CREATE, "ENOSPC", 14);
}

#[test]
fn a_full_disk_under_a_rollback_of_nested_repositories() {
    sweep_errors("rollback --nested", &ROLLBACK_NESTED, "ENOSPC", 14);
}

#[test]
fn a_failing_disk_under_a_rollback_of_nested_repositories() {
    sweep_errors("rollback --nested", &ROLLBACK_NESTED, "EIO", 1);
}

#[test]
fn a_full_disk_under_a_rollback_without_git() {
    sweep_errors("rollback without git", &ROLLBACK_PLAIN, "ENOSPC", 14);
}

#[test]
fn a_failing_disk_under_a_rollback_without_git() {
    sweep_errors("rollback without git", &ROLLBACK_PLAIN, "EIO", 1);
}

// EIO is a failure, never a later success.
#[test]
fn a_failing_disk() {
    sweep_errors("rollback", &ROLLBACK, "EIO", 1);
}

// The same, and out of descriptors, for what else changes something.
#[test]
fn a_failing_disk_under_a_capture() {
    sweep_errors("checkpoint create", &CREATE, "EIO", 1);
}

#[test]
fn a_full_disk_under_an_undo() {
    sweep_errors("undo", &UNDO, "ENOSPC", 14);
}

#[test]
fn a_failing_disk_under_an_undo() {
    sweep_errors("undo", &UNDO, "EIO", 1);
}

#[test]
fn a_full_disk_under_a_prune() {
    sweep_errors("prune", &PRUNE, "ENOSPC", 14);
}

#[test]
fn a_failing_disk_under_a_prune() {
    sweep_errors("prune", &PRUNE, "EIO", 1);
}

// What cannot be removed: a temporary file, a draft that a reference is a name of, a lock, the journal.
#[test]
fn nothing_can_be_removed_under_a_rollback() {
    sweep_errors("rollback", &ROLLBACK, "EPERM", 1);
}

#[test]
fn nothing_can_be_removed_under_a_rollback_without_git() {
    sweep_errors("rollback without git", &ROLLBACK_PLAIN, "EPERM", 1);
}

#[test]
fn nothing_can_be_removed_under_an_undo() {
    sweep_errors("undo", &UNDO, "EPERM", 1);
}

#[test]
fn nothing_can_be_removed_under_a_capture() {
    sweep_errors("checkpoint create", &CREATE, "EPERM", 1);
}

// in repair: running it again converges.
#[test]
fn a_repair_that_is_killed() {
    let env = start(REPAIR.git);
    let before = everything(&env);
    let Some(sweep) = Sweep::of("doctor --repair", &REPAIR, env, Fault::Kill) else {
        return;
    };
    let after = everything(&sweep.start.env);
    sweep.each(|env, at, disturb| {
        disturb();
        env.json(0, &["status"]);
        env.json(0, REPAIR.args);
        assert_eq!(everything(env), after, "{at}");
        assert_eq!(
            env.json(0, &["doctor"])["problems"],
            serde_json::json!([]),
            "{at}"
        );
        assert_nothing_left(env, at);
        env.json(0, &["undo"]);
        assert_eq!(everything(env), before, "{at}: undone");
    });
}

// A repair that could not remove what it has to says so, and the next one does.
#[test]
fn nothing_can_be_removed_under_a_repair() {
    let fault = Fault::Error("EPERM");
    let Some(sweep) = Sweep::of("doctor --repair", &REPAIR, start(true), fault) else {
        return;
    };
    sweep.each(|env, at, disturb| {
        let ran = disturb();
        let left = env
            .sh("find . -name '.recover-tmp-*' -not -path './.git/*' -o -name 'journal.json' -o -path './.git/*.lock'");
        assert!(
            ran.code != 0 || left.stdout.is_empty(),
            "{at}: said to be done: {ran:?}\n{}",
            left.stdout
        );
        env.json(0, &["doctor", "--repair"]);
        env.git(&["add", "-A"]);
        assert_nothing_left(env, at);
        let made = env.json(0, &["checkpoint", "create"]);
        let files = env.json(
            0,
            &[
                "checkpoint",
                "show",
                made["checkpoint"]["id"].as_str().expect("an id"),
            ],
        );
        assert!(
            !files.to_string().contains(".recover-tmp-"),
            "{at}: {files}"
        );
    });
}

#[test]
fn no_descriptors_under_a_capture() {
    sweep_errors("checkpoint create", &CREATE, "EMFILE", 1);
}

#[test]
fn no_descriptors_under_a_rollback() {
    sweep_errors("rollback", &ROLLBACK, "EMFILE", 1);
}

#[test]
fn no_descriptors_under_an_undo() {
    sweep_errors("undo", &UNDO, "EMFILE", 1);
}

#[test]
fn no_descriptors_under_a_prune() {
    sweep_errors("prune", &PRUNE, "EMFILE", 1);
}

// Nothing can be opened any more, for taking back neither: the journal waits for the repair.
#[test]
fn no_descriptors_any_more_under_a_rollback() {
    sweep_faults("rollback", &ROLLBACK, Fault::Lasting("EMFILE"), 1);
}

#[test]
fn no_descriptors_any_more_under_an_undo() {
    sweep_faults("undo", &UNDO, Fault::Lasting("EMFILE"), 1);
}

const ACCEPT: Case = Case {
    args: &["accept", "--no-checks"],
    git: true,
    before: |_| {},
};

/// What is committed, staged and kept, ids of commits aside: these have a time of their own.
fn committed(env: &TestEnv) -> String {
    env.sh("git symbolic-ref -q HEAD; git log --format='%s %T' main; git ls-files -s; git status --porcelain -uall; \
         git for-each-ref --format='%(tree)' refs/recover/+kept")
        .stdout
}

// The run's own commits are folded and kept, the branch and the index are after it or before it, whenever it was killed.
#[test]
fn accept_killed_anywhere() {
    let env = TestEnv::repo();
    env.write("mine.txt", "mine\n");
    env.write("staged.txt", "staged\n");
    env.sh("git add staged.txt; mkdir -p .git/hooks; printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit")
        .expect(0);
    let agent =
        "echo x >> a.txt; echo new > new.txt; git add -A; git commit -qm agent; echo y >> a.txt";
    env.json(0, &["run", "--run", "night", "--", "sh", "-c", agent]);
    let before = committed(&env);
    let Some(sweep) = Sweep::of("accept", &ACCEPT, env, Fault::Kill) else {
        return;
    };
    let (after, tree) = (committed(&sweep.start.env), everything(&sweep.start.env).0);
    assert_ne!(before, after);
    let (mut moved, points) = (0, sweep.points.len());
    sweep.each(|env, at, disturb| {
        let code = disturb().code;
        // Until something settles it, git itself sees one of the two, the index aside.
        let head = env.git(&["log", "-1", "--format=%s"]);
        assert!(
            head == "agent\n" || head == "Accept run night\n",
            "{at}: {head}"
        );
        env.json(0, &["status"]);
        env.json(0, &["checkpoint", "create"]);
        let now = committed(env);
        assert!(
            now == before || now == after,
            "{at}: neither before nor after\n{now}\n{before}\n{after}"
        );
        assert!(code != 0 || now == after, "{at}");
        moved += usize::from(now == after);
        let accepted = env
            .read_state("events.jsonl")
            .matches("\"type\":\"run_accepted\"")
            .count();
        assert_eq!(accepted, usize::from(now == after), "{at}");
        assert_eq!(everything(env).0, tree, "{at}");
        assert_nothing_left(env, at);
        assert!(!env.exists(".git/recover/commit.json"), "{at}");
        env.json(0, &["accept", "night", "--no-checks"]);
        assert_eq!(committed(env), after, "{at}");
    });
    assert!(moved > 0 && moved < points, "{moved} of {points}");
}
