//! Many lanes on one state directory at once, and a lane's script that is killed again and again.
//!
//! `RECOVER_LANES_ALL=1` makes the first one as large as it is meant to be.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::TestEnv;
use crate::seen::{assert_clean, text};

/// Work trees, a lane in each.
const LANES: usize = 8;

/// Operations in all.
fn operations() -> usize {
    if std::env::var_os("RECOVER_LANES_ALL").is_some() {
        1000
    } else {
        120
    }
}

/// What one lane did.
#[derive(Default)]
struct Did {
    /// Ids of the checkpoints that were told.
    checkpoints: Vec<String>,
    /// The last note of each stage.
    notes: BTreeMap<&'static str, String>,
    /// Failures that were recorded.
    failures: u32,
    /// How many of them may be retried.
    allowed: u32,
    /// Steps that were run.
    steps: u32,
}

struct Worker<'a> {
    env: &'a TestEnv,
    place: PathBuf,
    lane: String,
}

impl Worker<'_> {
    fn run(&self, args: &[&str]) -> (i32, Value) {
        let mut all = vec![
            "--json",
            "--lock-timeout",
            "120s",
            "-C",
            self.place.to_str().expect("UTF-8"),
        ];
        let at = args
            .iter()
            .position(|arg| *arg == "--")
            .unwrap_or(args.len());
        all.extend(&args[..at]);
        all.extend(["--run", "night", "--lane", &self.lane]);
        all.extend(&args[at..]);
        let ran = self.env.recover(&all);
        (ran.code, ran.json())
    }

    fn work(&self, operations: usize, done: &AtomicU32) -> Did {
        const STAGES: [&str; 3] = ["before_lane_start", "after_lane_start", "after_lane_tests"];
        let mut did = Did::default();
        for number in 0..operations {
            let note = format!("{} {number}", self.lane);
            fs::write(self.place.join("work.txt"), &note).expect("written");
            match number % 5 {
                0 | 1 => {
                    let stage = STAGES[number % 3];
                    let create = [
                        "checkpoint",
                        "create",
                        "--stage",
                        stage,
                        "--status",
                        "ready",
                        "--notes",
                        &note,
                    ];
                    let (code, document) = self.run(&create);
                    assert_eq!(code, 0, "{document}");
                    did.checkpoints.push(text(&document["checkpoint"]["id"]));
                    did.notes.insert(stage, note);
                }
                2 => {
                    let subtask = format!("{}/{number}", self.lane);
                    assert_eq!(self.run(&["attempt", "start", "--subtask", &subtask]).0, 0);
                    let (code, document) = self.run(&[
                        "attempt",
                        "fail",
                        "--message",
                        "odd",
                        "--no-rollback",
                        "--check",
                    ]);
                    assert!(matches!(code, 5..=8), "{code}: {document}");
                    did.checkpoints.push(text(&document["checkpoint_id"]));
                    did.failures += 1;
                    did.allowed += u32::from(matches!(code, 5 | 6));
                }
                3 => {
                    let (code, document) =
                        self.run(&["step", &format!("step {number}"), "--", "true"]);
                    assert_eq!(
                        (code, &document["executed"]),
                        (0, &true.into()),
                        "{document}"
                    );
                    did.steps += 1;
                }
                _ => {
                    let (code, document) =
                        self.run(&["rollback", "--to", "latest", "--edits", "discard"]);
                    assert_eq!(code, 0, "{document}");
                    did.checkpoints.extend(
                        document["result"]["safety_checkpoint_id"]
                            .as_str()
                            .map(str::to_owned),
                    );
                }
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        did
    }
}

// C1, concurrency: eight work trees with a process each on one state directory; whoever reads the records
// meanwhile always reads a whole document, nothing is lost, and a budget that all share is exact.
#[test]
fn eight_lanes_at_once_lose_nothing() {
    let env = TestEnv::repo();
    let (all, failures) = (operations() / LANES, operations() / LANES / 5 * LANES);
    let limit = u32::try_from(failures * 3 / 4).expect("few");
    let config = format!(
        "[retry]\nmax_attempts = 10000\ntask_max_attempts = 100000\nsession_max_attempts = {limit}\n\
         [retention]\nkeep_last = 100000\nmax_per_session = 'none'\n"
    );
    env.write(".ultraplan/recover.toml", config);
    let workers: Vec<Worker<'_>> = (0..LANES)
        .map(|number| {
            let lane = format!("L{number}");
            env.git(&["worktree", "add", "-q", "-b", &lane, &format!("../{lane}")]);
            Worker {
                env: &env,
                place: env.root().join(&lane),
                lane,
            }
        })
        .collect();
    let (begun, done, over) = (Instant::now(), AtomicU32::new(0), AtomicBool::new(false));
    let (did, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut read, mut records) = (0_u32, 0);
            while !over.load(Ordering::Relaxed) {
                for view in [
                    "checkpoints.json",
                    "recovery.json",
                    "attempt_history.json",
                    "active_checkpoint.json",
                ] {
                    let Ok(bytes) = fs::read(env.work().join(".ultraplan/state").join(view)) else {
                        continue;
                    };
                    let document: Value =
                        serde_json::from_slice(&bytes).expect("a whole document at every instant");
                    if view == "checkpoints.json" {
                        let now = document.as_array().expect("an array").len();
                        assert!(now >= records, "a record was lost: {now} after {records}");
                        records = now;
                    }
                    read += 1;
                }
            }
            read
        });
        let threads: Vec<_> = workers
            .iter()
            .map(|worker| scope.spawn(|| worker.work(all, &done)))
            .collect();
        let did: Vec<std::thread::Result<Did>> = threads
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        over.store(true, Ordering::Relaxed);
        let read = reader.join().expect("every document was whole");
        (
            did.into_iter()
                .map(|did| did.expect("every operation ended well"))
                .collect::<Vec<_>>(),
            read,
        )
    });
    let took = begun.elapsed();
    assert_eq!(done.load(Ordering::Relaxed) as usize, all * LANES);
    assert!(read > 100, "{read}");

    let list = env.json(0, &["checkpoint", "list", "--all-runs"])["checkpoints"].clone();
    let known: Vec<String> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| text(&one["id"]))
        .collect();
    for id in did.iter().flat_map(|did| &did.checkpoints) {
        assert!(known.contains(id), "{id} is lost");
    }
    let records = env.state_json("checkpoints.json");
    for (worker, did) in workers.iter().zip(&did) {
        for (stage, note) in &did.notes {
            let found = records
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["lane"] == worker.lane && one["stage"] == *stage);
            assert_eq!(found.expect("a record")["notes"], *note, "{stage}");
        }
        let status = worker.run(&["status"]).1;
        let steps = status["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .filter(|step| step["status"] == "done")
            .count();
        assert_eq!(steps, did.steps as usize);
    }
    // Of failures that come one by one, those before the limit may be retried: one less than it allows.
    let failed: u32 = did.iter().map(|did| did.failures).sum();
    let allowed: u32 = did.iter().map(|did| did.allowed).sum();
    assert_eq!((failed as usize, allowed), (failures, limit - 1));
    let retry = workers[0].run(&["retry-status"]).1;
    let session = retry["budgets"]
        .as_array()
        .unwrap()
        .iter()
        .find(|budget| budget["scope"] == "session")
        .unwrap();
    assert_eq!(
        (&session["used"], &session["left"]),
        (&failed.into(), &0.into()),
        "{retry}"
    );
    // Numbers without a gap, every line sound, every checkpoint whole.
    assert_eq!(
        env.json(0, &["checkpoint", "verify"])["checked"],
        known.len()
    );
    assert_clean(&env);
    let cached = env.state_json("recovery.json");
    fs::remove_file(env.work().join(".ultraplan/state/recover/fold.cache")).ok();
    assert_eq!(
        env.json(0, &["sync"])["changed"],
        false,
        "the ledger folded from its start says the same"
    );
    assert_eq!(env.state_json("recovery.json"), cached);
    println!(
        "{} operations in {took:.1?}, {read} documents read meanwhile, {} checkpoints",
        all * LANES,
        known.len()
    );
}

/// The script of a lane: its work tree, work, tests, a pull request whose command fails the first time.
const SCRIPT: &str = r#"
set -e
export RECOVER_RUN_ID=night
log() { printf 'echo begin %s >> "$LOG"; %s; echo end %s >> "$LOG"' "$1" "$2" "$1"; }
once() { name=$1; shift; recover --lane SL-1 step "$name" "$@"; }
recover --lane SL-1 checkpoint create --stage before_lane_start --status ready --base-branch main --if-changed -q > /dev/null
once worktree --stage after_lane_start -- sh -c "$(log worktree 'test -e ../lane/.git || { git worktree prune; git worktree add -q -B lane ../lane; }; sleep 0.15')"
cd ../lane
once work -- sh -c "$(log work 'echo w >> work.txt; sleep 0.3')"
once test --stage after_lane_tests -- sh -c "$(log test 'sleep 0.3')"
once pr --stage pre_pr -- sh -c "$(log pr 'sleep 0.2; if [ ! -e "$TRIED" ]; then touch "$TRIED"; echo failed pr >> "$LOG"; exit 1; fi')"
"#;

/// How often each step's command began, and ended.
fn logged(env: &TestEnv, word: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let log = fs::read_to_string(env.root().join("log")).unwrap_or_default();
    for name in log.lines().filter_map(|line| line.strip_prefix(word)) {
        *counts.entry(name.trim().to_owned()).or_default() += 1;
    }
    counts
}

/// Steps that the ledger has as done.
fn done(env: &TestEnv) -> Vec<String> {
    let status = env.recover(&["--json", "status", "--run", "night", "--lane", "SL-1"]);
    if status.code != 0 {
        return Vec::new();
    }
    let steps = status.json()["steps"].clone();
    let all = steps
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .to_vec();
    all.iter()
        .filter(|step| step["status"] == "done")
        .map(|step| text(&step["name"]))
        .collect()
}

// C4: killed at ten random points and run again each time, the script comes to its end; a step that was done
// never runs again, and one that was cut off is announced before it does.
#[test]
fn a_lane_script_that_is_killed_again_and_again_ends_well() {
    let mut env = TestEnv::repo();
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_recover"))
        .parent()
        .expect("a folder")
        .to_owned();
    let (log, tried) = (env.root().join("log"), env.root().join("tried"));
    env.set(
        "PATH",
        &format!(
            "{}:{}",
            folder.display(),
            std::env::var("PATH").unwrap_or_default()
        ),
    );
    env.set("LOG", &log.to_string_lossy())
        .set("TRIED", &tried.to_string_lossy());
    env.write("../lane.sh", SCRIPT);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut announced, mut finished): (BTreeMap<String, usize>, BTreeMap<String, usize>) =
        Default::default();
    let mut ended = false;
    for round in 0..60 {
        let said = env.root().join(format!("said-{round}"));
        let mut script = env.command("sh");
        script
            .arg("../lane.sh")
            .stdout(fs::File::create(env.root().join("out")).expect("a file"));
        script
            .stderr(fs::File::create(&said).expect("a file"))
            .process_group(0);
        let mut child = script.spawn().expect("sh starts");
        if round < 10 {
            std::thread::sleep(Duration::from_millis(random.u64(20..900)));
            env.sh(&format!("kill -KILL -{}", child.id()));
        }
        let status = child.wait().expect("it ends");
        let text = fs::read_to_string(&said).expect("text");
        for name in ["worktree", "work", "test", "pr"] {
            let cut = text
                .lines()
                .any(|line| line.contains(&format!("step '{name}' was begun at")));
            *announced.entry(name.to_owned()).or_default() += usize::from(cut);
        }
        // What was done before this round has not begun again in it.
        let begun = logged(&env, "begin ");
        for (name, times) in &finished {
            assert_eq!(
                begun.get(name),
                Some(times),
                "round {round}: {name} was done and ran again"
            );
        }
        for name in done(&env) {
            finished.entry(name.clone()).or_insert_with(|| begun[&name]);
        }
        if round >= 10 && status.success() {
            ended = true;
            break;
        }
    }
    assert!(ended, "it never came to its end");
    let failed = logged(&env, "failed ");
    for (name, times) in logged(&env, "begin ") {
        let reasons = 1 + announced[&name] + failed.get(&name).copied().unwrap_or(0);
        assert!(
            times <= reasons,
            "{name} began {times} times, for {reasons} reasons that were told"
        );
    }
    assert_eq!(
        finished.keys().collect::<Vec<_>>(),
        ["pr", "test", "work", "worktree"]
    );
    assert!(
        announced.values().sum::<usize>() > 0,
        "nothing was interrupted: the kills came too late"
    );
    let records = env.state_json("checkpoints.json");
    for stage in [
        "before_lane_start",
        "after_lane_start",
        "after_lane_tests",
        "pre_pr",
    ] {
        let found = records
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["stage"] == stage)
            .expect("a record");
        assert!(
            matches!(found["status"].as_str(), Some("complete" | "ready")),
            "{found}"
        );
    }
    assert_clean(&env);
}
