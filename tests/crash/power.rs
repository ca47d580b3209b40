//! Power lost: every block write and flush below a real file system is recorded while git and the program work on it.
//!
//! At a sampled point the disk is put together again from what was flushed and some sectors of what was not, mounted, and
//! judged with git as the oracle: what was acknowledged is there, no lock is left, the next commands work.
//!
//! A few points of each file system are the default. `RECOVER_POWER_POINTS=40` takes more, `RECOVER_CRASH_ALL=1` every
//! acknowledgement and every flush, `RECOVER_POWER_SEED` the points of another run, `RECOVER_POWER_PROGRAM` another program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use fastrand::Rng;
use serde_json::Value;
use sha1::{Digest as _, Sha1};

use crate::disk::{Disk, Request, replay};
use crate::env::{Ran, TestEnv};
use crate::seen::{Seen, seen};

/// Set in the process that has mounts of its own: the folder for its images.
const INSIDE: &str = "RECOVER_POWER_INSIDE";

/// A file system, and how it is made and mounted.
struct FileSystem {
    test: &'static str,
    make: &'static str,
    mount: &'static str,
    /// Repairs an image that cannot be mounted, as the start of a machine does.
    repair: Option<&'static str>,
    /// Whether the blocks of a deleted file are used again before the deletion is on disk: after a loss of power the file can be
    /// back with the content of another one. What git deletes once it is in a pack is at risk then, whoever relies on it.
    reuses_early: bool,
    /// What the disk writes as one. Btrfs relies on that for its superblock of 4,096 bytes, and refuses one that is torn.
    sector_bytes: usize,
    /// XFS refuses less than 300 MiB. Only what is written takes space.
    mebibytes: u64,
}

impl FileSystem {
    /// Mounts an image after the crash. A sector at a time can reach the disk, also of a superblock, whose checksum is wrong then.
    fn mount_again<'a>(&self, image: &Path, at: &'a Path) -> Result<Mounted<'a>, String> {
        let mounted = Mounted::new(image, at, self.mount);
        let (Err(error), Some(repair)) = (&mounted, self.repair) else {
            return mounted;
        };
        eprintln!("repaired: {error}");
        // Up to 3 says that it was repaired.
        shell(&format!(
            "{repair} '{}' > /dev/null || test $? -lt 4",
            image.display()
        ))?;
        Mounted::new(image, at, self.mount)
    }
}

/// A command of the recording, and where it began and ended in the disk's log.
struct Step {
    line: String,
    begin: usize,
    end: usize,
    /// The references of checkpoints after it.
    checkpoints: BTreeMap<String, String>,
    ledger: String,
    /// What it wrote and deleted in the work tree, where it was a restore.
    restored: BTreeMap<Vec<u8>, Option<(u32, Vec<u8>)>>,
}

/// What is wrong after a loss of power:
///
/// - a checkpoint, an event or a restored file is lost whose command had exited with 0;
/// - so are the commits that a checkpoint leads to, or those that `accept` keeps;
/// - a lock is left;
/// - a checkpoint that was taken after the loss, exit 0, cannot be read, history that git lost aside;
/// - a command does not work, although git does;
/// - git's folder, removed once the next commands were through, does not come back from the vault as it was.
const KINDS: [&str; 6] = ["lost", "history", "lock", "damaged", "refused", "vault"];

/// What is wrong, by its kind.
#[derive(Default)]
struct Wrong([Vec<String>; KINDS.len()]);

impl Wrong {
    fn add(&mut self, kind: &str, what: String) {
        let at = KINDS.iter().position(|one| *one == kind).expect("a kind");
        self.0[at].push(what);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value} is no number"))
    })
}

/// Starts the test once more with mounts of its own: they, and the loop devices below them, end with it however it ends.
fn tier(system: &FileSystem) {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return sweep(system, &PathBuf::from(folder));
    }
    let maker = system.make.split(' ').next().unwrap_or_default();
    let probe = format!(
        "command -v {maker} losetup mount > /dev/null && unshare --mount true && test -w /dev/fuse"
    );
    let probe = TestEnv::plain().sh(&format!("PATH=$PATH:/usr/sbin:/sbin; {probe}"));
    if probe.code != 0 {
        eprintln!(
            "skipped: power loss on {}: needs {maker}, root, /dev/fuse and loop devices: {}",
            system.test, probe.stderr
        );
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let test = std::env::current_exe().expect("this program");
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let ran = Command::new("unshare")
        .args(["--mount", "--fork", "--kill-child", "--"])
        .arg(test)
        .args(["--exact", &format!("power::{}", system.test), "--nocapture"])
        .env("PATH", path)
        .env(INSIDE, folder.path())
        .output()
        .expect("unshare starts");
    eprintln!("{}", String::from_utf8_lossy(&ran.stderr));
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stdout)
    );
}

fn shell(line: &str) -> Result<(), String> {
    let ran = Ran::of(
        &Command::new("sh")
            .args(["-c", line])
            .output()
            .expect("sh starts"),
    );
    if ran.code == 0 {
        Ok(())
    } else {
        Err(format!("{line}: {}", ran.stderr))
    }
}

/// A mounted image, unmounted when dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// The loop device ends with the mount.
    fn new(image: &Path, at: &'a Path, options: &str) -> Result<Self, String> {
        shell(&format!(
            "mount -o loop,noatime,{options} '{}' '{}'",
            image.display(),
            at.display()
        ))?;
        Ok(Self(at))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let place = self.0.display();
        // What the program started may take a moment to end.
        let line = format!(
            "for n in 1 2 3 4 5 6 7 8 9; do umount '{place}' && exit; sleep 0.2; done; umount -l '{place}'"
        );
        if let Err(error) = shell(&line) {
            eprintln!("{error}");
        }
    }
}

fn sweep(system: &FileSystem, folder: &Path) {
    let started = Instant::now();
    let env = TestEnv::plain();
    let root = env.root();
    let (base, live, crashed) = (
        folder.join("base"),
        folder.join("live"),
        folder.join("crashed"),
    );
    let served = folder.join("served");
    let (base_name, live_name) = (base.display().to_string(), live.display().to_string());
    shell(&format!(
        "truncate -s {}M '{base_name}' && {} '{base_name}'",
        system.mebibytes, system.make
    ))
    .expect("made");
    shell(&format!(
        "cp --sparse=always '{base_name}' '{live_name}' && : > '{}'",
        served.display()
    ))
    .expect("copied");
    let disk = match Disk::serve(&live, &served) {
        Ok(disk) => disk,
        Err(error) => return eprintln!("skipped: power loss on {}: {error}", system.test),
    };
    let steps = {
        let _disk = Mounted(&served);
        let mounted = match Mounted::new(&served, &root, system.mount) {
            Ok(mounted) => mounted,
            Err(error) => return eprintln!("skipped: power loss on {}: {error}", system.test),
        };
        let steps = record(&env, &disk, system.reuses_early);
        drop(mounted);
        steps
    };
    let log = disk.into_log();
    let flushes = log
        .iter()
        .filter(|request| matches!(request, Request::Flush))
        .count();
    eprintln!(
        "{}: {} commands, {} requests, {flushes} flushes, {:.1?}",
        system.test,
        steps.len(),
        log.len(),
        started.elapsed()
    );
    assert!(flushes > steps.len(), "no flush arrives at the disk");

    let boot = folder.join("boot_id");
    std::fs::write(&boot, "a boot\n").expect("a boot id");
    shell(&format!(
        "mount --bind '{}' /proc/sys/kernel/random/boot_id",
        boot.display()
    ))
    .expect("a boot id of one's own");
    let seed = number("RECOVER_POWER_SEED").unwrap_or_else(|| fastrand::u64(0..1 << 32));
    let mut rng = Rng::with_seed(seed);
    let points = points(&log, &steps, &mut rng);
    let mut report = String::new();
    let mut found = [0; KINDS.len()];
    for (count, &point) in points.iter().enumerate() {
        shell(&format!(
            "cp --sparse=always '{base_name}' '{}'",
            crashed.display()
        ))
        .expect("copied");
        // A disk writes what is not flushed in any order, and may have written none or all of it.
        let chance = [0.0, 0.5, 0.9, 1.0][rng.usize(..4)];
        let torn = rng.bool();
        replay(&crashed, &log[..point], system.sector_bytes, |sectors| {
            let whole = rng.f64() < chance;
            sectors
                .filter(|_| if torn { rng.f64() < chance } else { whole })
                .collect()
        });
        std::fs::write(&boot, format!("boot {count}\n")).expect("a boot id");
        let wrong = {
            let _mounted = system
                .mount_again(&crashed, &root)
                .expect("mounted after the crash");
            judge(&env, &steps, point)
        };
        for (kind, all) in wrong
            .0
            .into_iter()
            .enumerate()
            .filter(|(_, all)| !all.is_empty())
        {
            found[kind] += 1;
            let what = KINDS[kind];
            let (at, many) = (during(&steps, point), all.len());
            let first: Vec<String> = all
                .iter()
                .take(3)
                .map(|one| one.replace('\n', "; "))
                .collect();
            let first = first.join("\n    ");
            writeln!(
                report,
                "{what} {many}: point {point}, {at}, chance {chance}, torn {torn}:\n    {first}"
            )
            .expect("text");
        }
    }
    let found: Vec<String> = KINDS
        .iter()
        .zip(found)
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let (test, count, took) = (system.test, points.len(), started.elapsed());
    let summary = format!(
        "{test}: seed {seed}, {count} points, with what is wrong: {}, {took:.1?}",
        found.join(", ")
    );
    eprintln!("{summary}\n{report}");
    assert!(report.is_empty(), "{summary}\n{report}");
}

fn during(steps: &[Step], point: usize) -> String {
    match steps.iter().find(|step| point <= step.end) {
        Some(step) if point > step.begin && point < step.end => format!("during `{}`", step.line),
        Some(step) if point == step.end => format!("right after `{}`", step.line),
        Some(step) => format!("before `{}`", step.line),
        None => "at the end".to_owned(),
    }
}

/// What git and the program do on the disk, and what was there after each command.
fn record(env: &TestEnv, disk: &Disk, reuses_early: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for folder in ["work", "home/.config/recover"] {
        std::fs::create_dir_all(env.root().join(folder)).expect("a folder");
    }
    // The disk is small.
    let own = env.root().join("home/.config/recover/config.toml");
    std::fs::write(own, "[run]\nmin_free = 0\n").expect("written");
    env.git(&["init", "-q", "-b", "main"]);
    if let Ok(synced) = std::env::var("RECOVER_POWER_FSYNC") {
        env.git(&["config", "core.fsync", &synced]);
    }
    env.write("a.txt", "one\n");
    env.git(&["add", "a.txt"]);
    env.git(&["commit", "-q", "-m", "first"]);
    env.sh("sync -f .").expect(0);
    let mut step = |line: &str| {
        let line = line.replace("recover ", &format!("{} ", program()));
        let before = seen(env.work());
        let begin = disk.position();
        let ran = env.sh(&line);
        let end = disk.position();
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        let is_restore = line.contains(" rollback ") || line.contains(" undo");
        steps.push(Step {
            begin,
            end,
            checkpoints: references(env),
            ledger: std::fs::read_to_string(ledger(env)).unwrap_or_default(),
            restored: if is_restore {
                changes(&before, &seen(env.work()))
            } else {
                BTreeMap::new()
            },
            line: line.replace(&program(), "recover"),
        });
    };
    for round in 1..=3 {
        let lines = [
            "seq R 3000 > committed-R.txt; echo R >> a.txt; git add -A; git commit -qm round-R",
            "recover checkpoint create",
            // What git adds it does not sync.
            "seq R 99 > added-R.txt; head -c 70000 /dev/urandom > random-R.bin; git add -A",
            "recover checkpoint create",
            "mkdir many-R; for n in $(seq 150); do echo R $n > many-R/$n; done; git add -A; echo x > untracked-R.txt",
            "recover checkpoint create",
            "echo mine > mine-R.txt; echo mine >> a.txt; git add mine-R.txt",
            "recover rollback --to latest --edits discard",
            "recover undo",
            "recover --run night-R run -- sh -c 'seq R 500 > agent-R.txt; git add -A; git commit -qm agent; echo >> committed-R.txt'",
            "recover --run night-R accept --no-checks",
            "recover --run loop-R attempt start",
            "echo loop > loop-R.txt; echo loop >> a.txt; git add -A",
            "recover --run loop-R attempt pass",
            "recover --run loop-R checkpoint create",
            // For what the system writes back in its own time.
            if reuses_early {
                "case R in 2) sleep 6;; esac"
            } else {
                "case R in 2) sleep 6; git repack -dq;; esac"
            },
        ];
        for line in lines {
            step(&line.replace('R', &round.to_string()));
        }
    }
    steps
}

fn changes(before: &Seen, after: &Seen) -> BTreeMap<Vec<u8>, Option<(u32, Vec<u8>)>> {
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differ = paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path));
    differ
        .map(|path| (path.clone(), after.get(path).cloned()))
        .collect()
}

fn program() -> String {
    std::env::var("RECOVER_POWER_PROGRAM")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_recover").to_owned())
}

fn recover(env: &TestEnv, args: &[&str]) -> Ran {
    Ran::of(
        &env.command(&program())
            .args(args)
            .output()
            .expect("recover starts"),
    )
}

fn ledger(env: &TestEnv) -> PathBuf {
    env.work().join(".ultraplan/state/events.jsonl")
}

/// The checkpoints as git sees them: a reference that cannot be read is none.
fn references(env: &TestEnv) -> BTreeMap<String, String> {
    let listed = env
        .sh("git for-each-ref --format='%(refname) %(objectname)' refs/recover")
        .stdout;
    listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .collect()
}

/// Where the power is lost: right after acknowledgements, when nothing more was written than had to be; before flushes, when
/// the most is not flushed; and anywhere.
fn points(log: &[Request], steps: &[Step], rng: &mut Rng) -> Vec<usize> {
    let first = steps.first().expect("a step").begin;
    let last = steps.last().expect("a step").end;
    let acknowledged: BTreeSet<usize> = steps
        .iter()
        .filter(|step| step.line.contains("recover"))
        .map(|step| step.end)
        .collect();
    let flushes: BTreeSet<usize> = (first..last)
        .filter(|&at| matches!(log[at], Request::Flush))
        .collect();
    if std::env::var_os("RECOVER_CRASH_ALL").is_some() {
        return acknowledged.union(&flushes).copied().collect();
    }
    let count = usize::try_from(number("RECOVER_POWER_POINTS").unwrap_or(8)).expect("a count");
    let (acknowledged, flushes): (Vec<_>, Vec<_>) = (
        acknowledged.into_iter().collect(),
        flushes.into_iter().collect(),
    );
    (0..count)
        .map(|at| match at % 4 {
            0 | 1 => acknowledged[rng.usize(..acknowledged.len())],
            2 => flushes[rng.usize(..flushes.len())],
            _ => rng.usize(first..=last),
        })
        .collect()
}

/// What of these commits cannot be read, with all that they lead to: each object's content must have its name.
fn unreadable(env: &TestEnv, commits: &[&String]) -> Option<String> {
    let mut list = env.command("git");
    let listed = list
        .args(["rev-list", "--objects", "--no-object-names"])
        .args(commits)
        .output()
        .expect("git starts");
    if !listed.status.success() {
        return Some(String::from_utf8_lossy(&listed.stderr).trim().to_owned());
    }
    let mut cat = env.command("git");
    let cat = cat
        .args(["cat-file", "--batch", "--buffer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut cat = cat.stderr(Stdio::piped()).spawn().expect("git starts");
    let mut stdin = cat.stdin.take().expect("a pipe");
    let names = listed.stdout;
    let writer = std::thread::spawn(move || stdin.write_all(&names));
    let cat = cat.wait_with_output().expect("git ends");
    // It ends early where it cannot go on.
    drop(writer.join().expect("written"));
    let mut rest = cat.stdout.as_slice();
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        let words: Vec<&str> = head.split(' ').collect();
        let [id, kind, size] = words[..] else {
            return Some(head);
        };
        let size: usize = size.parse().expect("a size");
        let content = &rest[end + 1..end + 1 + size];
        let hash = Sha1::new()
            .chain_update(format!("{kind} {size}\0"))
            .chain_update(content)
            .finalize();
        let hash = hash
            .iter()
            .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        if hash != id {
            return Some(format!("{id} holds {hash}"));
        }
        rest = &rest[end + 1 + size + 1..];
    }
    (!cat.status.success()).then(|| String::from_utf8_lossy(&cat.stderr).trim().to_owned())
}

/// What of a checkpoint's own cannot be read: its tree, and those of its commit's parents but HEAD, the first one: the index
/// and the state.
fn unreadable_own(env: &TestEnv, id: &String) -> Option<String> {
    unreadable_trees(env, &format!("{id} $(git rev-parse {id}^@ | tail -n +2)"))
}

/// What of a new checkpoint cannot be read: its tree, and those of its commit's parents. What comes before those counts where
/// git had lost nothing of it.
fn unreadable_new(env: &TestEnv, id: &String, git_lost_some: bool) -> Option<String> {
    if git_lost_some {
        unreadable_trees(env, &format!("{id} {id}^@"))
    } else {
        unreadable(env, &[id])
    }
}

/// What of the trees of these commits cannot be read.
fn unreadable_trees(env: &TestEnv, commits: &str) -> Option<String> {
    let commits = env.sh(&format!("git rev-parse {commits}"));
    if commits.code != 0 {
        return Some(commits.stderr.trim().to_owned());
    }
    let trees = commits.stdout.lines();
    let trees: Vec<String> = trees.map(|commit| format!("{commit}^{{tree}}")).collect();
    unreadable(env, &trees.iter().collect::<Vec<_>>())
}

/// Judges the disk, mounted again after it lost its power at this point.
fn judge(env: &TestEnv, steps: &[Step], point: usize) -> Wrong {
    let mut wrong = Wrong::default();
    let done = steps.iter().rfind(|step| step.end <= point);
    let under_way = steps
        .iter()
        .find(|step| step.begin < point && point < step.end);

    // What was acknowledged, but for what the command under way may have removed.
    let mut acknowledged = done
        .map(|step| step.checkpoints.clone())
        .unwrap_or_default();
    if let Some(step) = under_way {
        acknowledged.retain(|name, _| step.checkpoints.contains_key(name));
    }
    let present = references(env);
    let all_is_there = acknowledged
        .iter()
        .all(|(name, id)| present.get(name) == Some(id))
        && (acknowledged.is_empty()
            || unreadable(env, &acknowledged.values().collect::<Vec<_>>()).is_none());
    for (name, id) in acknowledged.iter().filter(|_| !all_is_there) {
        let is_checkpoint = !name.contains("/+kept/");
        if present.get(name) != Some(id) {
            wrong.add(
                if is_checkpoint { "lost" } else { "history" },
                format!("{name} is {:?}", present.get(name)),
            );
        } else if is_checkpoint && let Some(why) = unreadable_own(env, id) {
            wrong.add("lost", format!("{name}: {why}"));
        } else if let Some(why) = unreadable(env, &[id]) {
            wrong.add("history", format!("{name}: {why}"));
        }
    }
    if let (Some(step), None) = (done, under_way) {
        let now = seen(env.work());
        for (path, content) in step
            .restored
            .iter()
            .filter(|(path, content)| now.get(*path) != content.as_ref())
        {
            let is = now
                .get(path)
                .map(|(mode, content)| format!("{mode:o} {} bytes", content.len()));
            let was = content
                .as_ref()
                .map(|(mode, content)| format!("{mode:o} {} bytes", content.len()));
            wrong.add(
                "lost",
                format!(
                    "restored {}: {was:?}, is {is:?}",
                    String::from_utf8_lossy(path)
                ),
            );
        }
    }

    // What git did after the last checkpoint may be gone, and then git itself does not work.
    // The machine started after them.
    let locks_before = env
        .sh("find .git -name '*.lock' -printf '%p %s bytes  ' -exec touch -d '1 year ago' {} +")
        .stdout;
    let git_works = env.sh("git status --porcelain && git write-tree && git rev-parse HEAD^{tree}");
    let head = env.sh("git rev-parse HEAD $(GIT_INDEX_FILE=.git/index git write-tree)");
    let heads: Vec<String> = head.stdout.lines().map(str::to_owned).collect();
    let broken =
        (git_works.code != 0 && !git_works.stderr.contains(".lock")).then_some(git_works.stderr);
    let broken = broken.or_else(|| unreadable(env, &heads.iter().collect::<Vec<_>>()));

    let command = |wrong: &mut Wrong, args: &[&str]| -> Option<Value> {
        let ran = recover(env, &[&["--json"], args].concat());
        let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        if ran.code == 0 {
            return Some(document);
        }
        if broken.is_none() {
            let said = document["error"]["message"].as_str().unwrap_or(&ran.stderr);
            wrong.add(
                "refused",
                format!("{}: {}: {said}", args.join(" "), ran.code),
            );
        }
        None
    };
    let create = |wrong: &mut Wrong| {
        let Some(made) = command(wrong, &["checkpoint", "create"]) else {
            return;
        };
        let commit = made["checkpoint"]["commit"]
            .as_str()
            .expect("a commit")
            .to_owned();
        if let Some(why) = unreadable_new(env, &commit, broken.is_some()) {
            wrong.add("damaged", format!("{}: {why}", made["checkpoint"]["id"]));
        }
    };
    let events = done.map_or("", |step| &step.ledger);
    if !events.is_empty() {
        command(&mut wrong, &["status"]);
    }
    create(&mut wrong);
    command(&mut wrong, &["doctor", "--repair", "--yes"]);
    let listed = command(&mut wrong, &["checkpoint", "list", "--all-runs"])
        .unwrap_or_default()
        .to_string();
    for id in acknowledged
        .keys()
        .filter(|name| !name.contains("/+kept/"))
        .filter_map(|name| name.rsplit('/').next())
    {
        if !listed.contains(id) {
            wrong.add("lost", format!("{id} is not listed"));
        }
    }
    let now = std::fs::read_to_string(ledger(env)).unwrap_or_default();
    if !now.starts_with(events) {
        wrong.add(
            "lost",
            format!(
                "ledger: {} bytes, not the {} of before",
                now.len(),
                events.len()
            ),
        );
    }
    let left = env.sh("find .git -name '*.lock'").stdout.replace('\n', " ");
    if !left.is_empty() {
        wrong.add(
            "lock",
            format!("after the repair {left} (before: {locks_before})"),
        );
    }

    env.write("after.txt", "after\n");
    let git = env.sh("git add -A && git commit -qm after");
    if git.code != 0 && (broken.is_none() || git.stderr.contains(".lock")) {
        wrong.add(
            "refused",
            format!("git (locks before: {locks_before}): {}", git.stderr.trim()),
        );
    }
    create(&mut wrong);
    env.write("after.txt", "edited\n");
    command(
        &mut wrong,
        &["rollback", "--to", "latest", "--edits", "discard"],
    );
    command(&mut wrong, &["undo"]);
    if broken.is_none() && env.read("after.txt") != "edited\n" {
        wrong.add("refused", "undo brought nothing back".to_owned());
    }
    if broken.is_none() {
        for what in put_back(env) {
            wrong.add("vault", what);
        }
    }
    wrong
}

/// What of git's folder does not come back from the vault once it is removed.
fn put_back(env: &TestEnv) -> Vec<String> {
    let before = references(env);
    let index = env.git(&["ls-files", "--stage"]);
    env.sh("rm -rf .git").expect(0);
    let ran = recover(env, &["doctor", "--repair", "--yes"]);
    if ran.code != 0 {
        return vec![format!("doctor --repair: {}: {}", ran.code, ran.stderr)];
    }
    let now = references(env);
    let missing = before
        .iter()
        .filter(|(name, id)| now.get(*name) != Some(*id));
    let mut wrong: Vec<String> = missing
        .map(|(name, _)| format!("{name} is not back"))
        .collect();
    wrong.extend(unreadable(env, &before.values().collect::<Vec<_>>()));
    if env.git(&["ls-files", "--stage"]) != index {
        wrong.push("the index is another one".to_owned());
    }
    wrong
}

const EXT4: FileSystem = FileSystem {
    test: "ext4_ordered",
    make: "mkfs.ext4 -q -F",
    mount: "noinit_itable,data=ordered",
    repair: Some("e2fsck -fy"),
    reuses_early: false,
    sector_bytes: 512,
    mebibytes: 128,
};

const XFS: FileSystem = FileSystem {
    test: "xfs",
    make: "mkfs.xfs -q",
    mount: "nouuid",
    repair: None,
    reuses_early: false,
    sector_bytes: 512,
    mebibytes: 320,
};

#[test]
fn ext4_ordered() {
    tier(&EXT4);
}

#[test]
fn ext4_writeback() {
    tier(&FileSystem {
        test: "ext4_writeback",
        mount: "noinit_itable,data=writeback",
        reuses_early: true,
        ..EXT4
    });
}

#[test]
fn xfs() {
    tier(&XFS);
}

#[test]
fn btrfs() {
    tier(&FileSystem {
        test: "btrfs",
        make: "mkfs.btrfs -q",
        mount: "defaults",
        sector_bytes: 4096,
        ..XFS
    });
}
