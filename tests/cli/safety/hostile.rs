//! What a clone may hold in the places of ours: links, FIFOs and sockets, against every command.
//!
//! Nothing outside of the project changes, nothing hangs, and the place is named.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::env::{Ran, TestEnv};

/// No command needs so long, on whatever machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trick {
    LinkToFile,
    LinkToFolder,
    LinkToNothing,
    LinkToItself,
    LinkToDevice,
    Fifo,
    Socket,
}

const TRICKS: [Trick; 7] = [
    Trick::LinkToFile,
    Trick::LinkToFolder,
    Trick::LinkToNothing,
    Trick::LinkToItself,
    Trick::LinkToDevice,
    Trick::Fifo,
    Trick::Socket,
];

impl Trick {
    fn plant(self, at: &Path, outside: &Path) {
        match self {
            Self::LinkToFile => symlink(outside.join("victim"), at).expect("a link"),
            Self::LinkToFolder => symlink(outside.join("folder"), at).expect("a link"),
            Self::LinkToNothing => symlink(outside.join("nothing"), at).expect("a link"),
            Self::LinkToItself => symlink(at, at).expect("a link"),
            Self::LinkToDevice => symlink("/dev/zero", at).expect("a link"),
            Self::Fifo => fifo(at),
            // The path of a socket is short: it is made where that is and moved.
            Self::Socket => {
                let short = std::env::temp_dir().join(format!(
                    "s{}{:?}",
                    std::process::id(),
                    std::thread::current().id()
                ));
                drop(UnixListener::bind(&short).expect("a socket"));
                let moved = fs::rename(&short, at);
                moved.expect("moved");
            }
        }
    }
}

fn fifo(at: &Path) {
    assert!(
        Command::new("mkfifo")
            .arg(at)
            .status()
            .expect("mkfifo starts")
            .success()
    );
}

/// What is to come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Every command is refused.
    Refused,
    /// Every command that reads the ledger is refused; `doctor` names it as a problem, and the configuration needs none.
    Ledger,
    /// Commands that go there are refused, others do not notice.
    RefusedWhereUsed,
    /// A view: it makes way at the next write, or stays.
    MakesWay,
}

/// The places, below the work tree. `@` stands for the name of the ledger's second copy.
const PLACES: [(&str, Expected); 39] = [
    (".ultraplan", Expected::Refused),
    (".ultraplan/state", Expected::Refused),
    (".ultraplan/recover.toml", Expected::Refused),
    (".ultraplan/state/events.jsonl", Expected::Ledger),
    (".ultraplan/state/recover", Expected::Refused),
    (".ultraplan/state/recover/ledger.lock", Expected::Refused),
    (".ultraplan/state/recover/steps.lock", Expected::Refused),
    (".ultraplan/state/recover/ledger-created", Expected::Refused),
    (".ultraplan/state/recover/fold.cache", Expected::Refused),
    (".ultraplan/state/recover/views.json", Expected::Refused),
    (".ultraplan/state/recover/active.json", Expected::Refused),
    (".ultraplan/state/recover/runs", Expected::Refused),
    (".ultraplan/state/recover/battles", Expected::Refused),
    (".ultraplan/state/recover/manual-fix", Expected::Refused),
    (
        ".ultraplan/state/recover/identity",
        Expected::RefusedWhereUsed,
    ),
    (
        ".ultraplan/state/recover/before",
        Expected::RefusedWhereUsed,
    ),
    (
        ".ultraplan/state/recover/damaged",
        Expected::RefusedWhereUsed,
    ),
    (".git/recover/states", Expected::RefusedWhereUsed),
    (".git/recover/doubt", Expected::RefusedWhereUsed),
    (".git/recover/written/packs", Expected::RefusedWhereUsed),
    (".git/recover", Expected::Refused),
    (".git/recover/lock", Expected::Refused),
    (".git/recover/journal.json", Expected::Refused),
    (".git/recover/index-cache", Expected::Refused),
    (".git/recover/cache-stamp", Expected::Refused),
    (".git/recover/in-use", Expected::Refused),
    (".git/recover/written", Expected::Refused),
    (".git/recover/quarantine", Expected::Refused),
    (".git/recover/@", Expected::Refused),
    (".git/refs/recover", Expected::RefusedWhereUsed),
    (".ultraplan/state/.gitignore", Expected::RefusedWhereUsed),
    (
        ".ultraplan/state/recover/runs/night",
        Expected::RefusedWhereUsed,
    ),
    (
        ".git/recover/quarantine/objects",
        Expected::RefusedWhereUsed,
    ),
    (".claude", Expected::RefusedWhereUsed),
    (".ultraplan/state/recovery.json", Expected::MakesWay),
    (".ultraplan/state/checkpoints.json", Expected::MakesWay),
    (".ultraplan/state/attempt_history.json", Expected::MakesWay),
    (
        ".ultraplan/state/active_checkpoint.json",
        Expected::MakesWay,
    ),
    (
        ".ultraplan/state/recover/battles/T/night.json",
        Expected::MakesWay,
    ),
];

/// Commands that read and commands that write.
const COMMANDS: [&[&str]; 30] = [
    &["status"],
    &["checkpoint", "create", "--run", "night"],
    &["log"],
    &["run", "--run", "other", "--attempts", "1", "--", "false"],
    &["checkpoint", "list"],
    &["attempt", "fail", "--run", "night", "--message", "error"],
    &["checkpoint", "show", "@1"],
    &["step", "--run", "night", "build", "--", "true"],
    &["checkpoint", "diff", "@1"],
    &[
        "rollback", "--to", "@1", "--run", "night", "--edits", "discard", "--yes",
    ],
    &["retry-status", "--run", "night"],
    &["undo", "--yes"],
    &["doctor"],
    &["sync"],
    &["report", "--run", "night"],
    &[
        "resume",
        "--run",
        "night",
        "--strategy",
        "retry_with_context",
    ],
    &["attempt", "list", "--run", "night"],
    &["checkpoint", "prune", "--keep-last", "3", "--yes"],
    &["config"],
    &["hook", "install", "claude"],
    &["checkpoint", "verify"],
    &["manual-fix", "start", "--run", "night"],
    &["rollback", "--to", "@1", "--run", "night", "--dry-run"],
    &["import", "documents"],
    &["sync", "--dry-run"],
    &["attempt", "start", "--run", "third"],
    &["manual-fix", "status", "--run", "night"],
    &["retry-status", "--reset", "--run", "night"],
    &["checkpoint", "create", "--dry-run", "--run", "night"],
    &["init", "--force"],
];

/// Everything below a folder: mode, time of the last change, content.
fn listing(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).expect("there");
        let content = if found.is_file() {
            fs::read(&path).expect("readable")
        } else {
            Vec::new()
        };
        if found.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
        }
        all.insert(
            path,
            (found.mode(), found.mtime(), found.mtime_nsec(), content),
        );
    }
    all
}

/// A project with a run that failed, and a folder outside of it.
fn project() -> (TestEnv, PathBuf) {
    let env = TestEnv::repo();
    let fail = [
        "--attempts",
        "1",
        "--prompt",
        "go",
        "--",
        "sh",
        "-c",
        "echo x >> a.txt; exit 1",
    ];
    let run = [&["run", "--run", "night", "--task", "T"], fail.as_slice()].concat();
    assert_ne!(env.recover(&run).code, 0);
    env.recover(&["checkpoint", "create", "--run", "night"])
        .expect(0);
    env.write("documents/recovery.json", env.read_state("recovery.json"));
    let outside = env.root().join("outside");
    fs::create_dir_all(outside.join("folder")).expect("a folder");
    for victim in ["victim", "folder/victim", "folder/settings.json"] {
        fs::write(outside.join(victim), "precious\n").expect("a victim");
    }
    (env, outside)
}

/// Runs a command that must not hang.
fn run(env: &TestEnv, args: &[&str]) -> Ran {
    let mut command = env.recover_command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("recover starts");
    let begun = Instant::now();
    while child.try_wait().expect("waited").is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().expect("killed");
            panic!("{args:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ran::of(&child.wait_with_output().expect("its output"))
}

/// Plants something, has a command run, and puts back what was there. Returns the exit code.
fn attack(
    env: &TestEnv,
    outside: &Path,
    place: &str,
    expected: Expected,
    trick: Trick,
    args: &[&str],
) -> i32 {
    let at = env.work().join(place);
    fs::create_dir_all(at.parent().expect("a folder")).expect("its folder");
    let aside = env.root().join("aside");
    let was_there = fs::rename(&at, &aside).is_ok();
    trick.plant(&at, outside);
    let before = listing(outside);
    let ran = run(env, args);
    let told = format!("{place}: {trick:?}: {args:?}\n{}{}", ran.stdout, ran.stderr);
    assert_eq!(listing(outside), before, "{told}");
    assert!((0..64).contains(&ran.code), "{told}");
    let named = ran.stderr.contains(&*at.to_string_lossy());
    match expected {
        // The configuration is shown without the repository.
        Expected::Refused if args == ["config"] && place.starts_with(".git/") => {}
        Expected::Ledger if matches!(args[0], "config" | "init" | "hook" | "doctor") => {}
        Expected::Ledger | Expected::Refused => assert!(ran.code == 13 && named, "{told}"),
        Expected::RefusedWhereUsed => {}
        Expected::MakesWay => assert!(ran.code != 13 || !named, "{told}"),
    }
    if expected == Expected::Refused {
        let now = fs::symlink_metadata(&at).expect("something is there");
        assert!(!now.is_file() && !now.is_dir(), "{told}");
    }
    let _ = fs::remove_file(&at);
    if was_there {
        fs::rename(&aside, &at).expect("put back");
    }
    ran.code
}

/// The second copy of the ledger has the name of its place.
fn second_copy(env: &TestEnv) -> Option<String> {
    let entries = fs::read_dir(env.work().join(".git/recover"))
        .expect("a folder")
        .flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.find(|name| name.starts_with("ledger-"))
}

/// Attacks with each pair of place and trick, a few commands each so that all have their turn, and with all commands where
/// `whole`. Returns for each place what each trick came to.
fn attacks(whole: bool) -> BTreeMap<(usize, Trick), BTreeMap<i32, usize>> {
    let pairs: Vec<(usize, Trick)> = (0..PLACES.len())
        .flat_map(|place| TRICKS.map(|trick| (place, trick)))
        .collect();
    let threads = 4;
    let mut all = BTreeMap::new();
    std::thread::scope(|scope| {
        let one = |share: usize| {
            let pairs = &pairs;
            move || {
                let (env, outside) = project();
                let copy = second_copy(&env);
                let mut found = BTreeMap::new();
                for (number, (place, trick)) in pairs
                    .iter()
                    .enumerate()
                    .filter(|(number, _)| number % threads == share)
                {
                    let (path, expected) = PLACES[*place];
                    let Some(path) = copy
                        .as_ref()
                        .map(|copy| path.replace('@', copy))
                        .filter(|path| !path.contains('@'))
                    else {
                        continue;
                    };
                    let codes: &mut BTreeMap<i32, usize> =
                        found.entry((*place, *trick)).or_default();
                    let turns = if whole { COMMANDS.len() } else { 3 };
                    for turn in 0..turns {
                        let command = COMMANDS[(number * 3 + turn) % COMMANDS.len()];
                        *codes
                            .entry(attack(&env, &outside, &path, expected, *trick, command))
                            .or_default() += 1;
                    }
                }
                found
            }
        };
        let running: Vec<_> = (0..threads).map(|share| scope.spawn(one(share))).collect();
        for thread in running {
            all.extend(thread.join().expect("no attack succeeded"));
        }
    });
    all
}

fn print(all: &BTreeMap<(usize, Trick), BTreeMap<i32, usize>>) {
    let head: Vec<String> = TRICKS.iter().map(|trick| format!("{trick:?}")).collect();
    eprintln!(
        "| place | {} |\n|---|{}",
        head.join(" | "),
        "---|".repeat(TRICKS.len())
    );
    for (number, (place, expected)) in PLACES.iter().enumerate() {
        let cells = TRICKS.map(|trick| {
            let codes = all.get(&(number, trick));
            let codes: Vec<String> = codes
                .into_iter()
                .flatten()
                .map(|(code, count)| format!("{code} ×{count}"))
                .collect();
            codes.join(", ")
        });
        eprintln!("| `{place}` ({expected:?}) | {} |", cells.join(" | "));
    }
}

// Exit codes of the commands that met each thing in each place; run with `--nocapture` to see them.
#[test]
fn nothing_is_written_through_a_link_and_nothing_hangs() {
    print(&attacks(false));
}

#[test]
#[ignore = "every command against every place: minutes"]
fn nothing_is_written_through_a_link_by_any_command() {
    print(&attacks(true));
}

// The hint takes the thing out of the way, and the command that was refused works.
#[test]
fn the_hint_takes_it_out_of_the_way() {
    let (env, outside) = project();
    for (place, trick) in [
        (".ultraplan/state/recover/ledger.lock", Trick::LinkToFile),
        (".git/recover/lock", Trick::Fifo),
        (".ultraplan/state/recover/steps.lock", Trick::Socket),
    ] {
        let at = env.work().join(place);
        let _ = fs::remove_file(&at);
        trick.plant(&at, &outside);
        let error = env.error(13, &["checkpoint", "create", "--run", "night"]);
        assert_eq!(error["code"], "unsafe_path", "{error}");
        let hint = error["hint"].as_str().expect("a hint");
        let ran = Ran::of(
            &env.command("sh")
                .args(["-c", hint])
                .current_dir("/")
                .output()
                .expect("sh starts"),
        );
        ran.expect(0);
        env.json(0, &["checkpoint", "create", "--run", "night"]);
    }
    // A folder holds something: it is moved.
    env.sh("rm .ultraplan/state/recover/ledger.lock; mkdir -p .ultraplan/state/recover/ledger.lock/mine").expect(0);
    let error = env.error(13, &["checkpoint", "create", "--run", "night"]);
    env.sh(error["hint"].as_str().expect("a hint")).expect(0);
    env.json(0, &["checkpoint", "create", "--run", "night"]);
    assert!(env.exists(".ultraplan/state/recover/ledger.lock.aside/mine"));
}

// Git's library reads a quarantine by its path: nothing that was planted in it is followed, written to or waited for.
#[test]
fn what_is_planted_in_a_quarantine_is_gone_before_it_is_used() {
    let places = [
        "objects/info/alternates",
        "config",
        "HEAD",
        "commondir",
        "objects/info/target",
    ];
    for (place, trick) in places.into_iter().flat_map(|place| {
        [Trick::LinkToFile, Trick::LinkToDevice, Trick::Fifo]
            .map(|trick| (place, Some(trick)))
            .into_iter()
            .chain([(place, None)])
    }) {
        let (env, outside) = project();
        let at = env.work().join(".git/recover/quarantine").join(place);
        fs::create_dir_all(at.parent().expect("a folder")).expect("its folder");
        let _ = fs::remove_file(&at);
        match trick {
            Some(trick) => trick.plant(&at, &outside),
            None => fs::hard_link(outside.join("victim"), &at).expect("a second name"),
        }
        let content = || {
            listing(&outside)
                .into_iter()
                .map(|(path, (mode, .., content))| (path, mode, content))
                .collect::<Vec<_>>()
        };
        let before = content();
        let told = format!("{place} {trick:?}");
        env.write("a.txt", "changed\n");
        for args in [
            &["attempt", "fail", "--run", "night", "--message", "error"][..],
            &["step", "--run", "night", "--atomic", "one", "--", "false"],
        ] {
            let ran = run(&env, args);
            assert_eq!(content(), before, "{told}");
            assert!(
                matches!(ran.code, 0 | 1 | 13),
                "{told}: {} {}",
                ran.code,
                ran.stderr
            );
        }
    }
    let env = TestEnv::repo();
    env.json(0, &["attempt", "fail", "--message", "error"]);
    for folder in [
        ".git/recover",
        ".git/recover/quarantine",
        ".git/recover/quarantine/objects",
    ] {
        let mode = fs::metadata(env.work().join(folder)).expect("there").mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
}

// A file that leads to another project's repository, as an archive may hold it: nothing is recorded there.
#[test]
fn a_git_file_that_leads_to_another_project_is_refused() {
    let env = TestEnv::repo();
    env.sh("git clone -q . ../victim && mkdir sub && echo 'gitdir: ../../victim/.git' > sub/.git && echo x > sub/x")
        .expect(0);
    let victim = env.root().join("victim");
    let before = listing(&victim);
    for args in [
        &["status"][..],
        &["checkpoint", "create"],
        &["run", "--", "touch", "ran"],
        &["doctor"],
        &["undo"],
    ] {
        let ran = run(&env, &[&["-C", "sub"], args].concat());
        assert!(
            ran.code == 13 && ran.stderr.contains("leads to the repository of"),
            "{args:?} {} {}",
            ran.code,
            ran.stderr
        );
    }
    env.json(0, &["checkpoint", "create"]);
    assert_eq!(listing(&victim), before);
    // One that is that project's own work tree by what the project says, is.
    env.sh("git -C ../victim config core.worktree $PWD/sub")
        .expect(0);
    env.json(0, &["-C", "sub", "checkpoint", "create"]);
}

// A file that is large and empty: it takes no disk, and would take hours to read.
#[test]
fn a_large_file_of_holes_is_not_read() {
    for place in ["events.jsonl", "recover/fold.cache", "recover/views.json"] {
        let (env, _) = project();
        env.sh(&format!("truncate -s 6G .ultraplan/state/{place}"))
            .expect(0);
        for args in [
            &["status"][..],
            &["checkpoint", "create", "--run", "night"],
            &["log"],
        ] {
            let ran = run(&env, args);
            assert!(
                matches!(ran.code, 0 | 13) && !ran.stderr.contains("out of memory"),
                "{place} {args:?} {}",
                ran.stderr
            );
            assert!(
                ran.code == 0 || ran.stderr.contains("with holes"),
                "{place} {args:?} {}",
                ran.stderr
            );
        }
        let ran = run(&env, &["--json", "status"]);
        if ran.code == 13 {
            env.sh(ran.json()["error"]["hint"].as_str().expect("a hint"))
                .expect(0);
        }
        // The second copy has it all.
        let count = env.json(0, &["status", "--run", "night"])["checkpoints"]["count"].as_u64();
        assert!(count >= Some(3), "{place} {count:?}");
    }
}

// A name with a newline in it feigns no line of ours.
#[test]
fn names_in_a_refusal_are_escaped() {
    let env = TestEnv::repo();
    env.write("a\nhint: rm -rf ~", "x\n");
    env.json(0, &["checkpoint", "create"]);
    env.write("a\nhint: rm -rf ~", "edited\n");
    let ran = env.recover(&["rollback", "--to", "@1"]).expect(13);
    assert!(!ran.stderr.contains("\nhint: rm"), "{}", ran.stderr);
}

// Git's own files: an endless one, or one that waits, is refused before anything reads it.
#[test]
fn a_file_of_gits_is_a_file() {
    for place in [
        "index",
        "config",
        "packed-refs",
        "objects/info/alternates",
        "info/exclude",
        "info/attributes",
        "shallow",
    ] {
        for trick in [Trick::LinkToDevice, Trick::Fifo, Trick::Socket] {
            let (env, outside) = project();
            let at = env.work().join(".git").join(place);
            let _ = fs::remove_file(&at);
            trick.plant(&at, &outside);
            for args in [
                &["status"][..],
                &["checkpoint", "create"],
                &["checkpoint", "pin", "@1"],
                &["rollback", "--to", "@1"],
            ] {
                let ran = run(&env, args);
                assert!(
                    ran.code == 13 && ran.stderr.contains(place),
                    "{place} {trick:?} {args:?}: {} {}",
                    ran.code,
                    ran.stderr
                );
            }
        }
    }
    // A link to a file is one, as in a work tree that shares another one's.
    let env = TestEnv::repo();
    env.sh("mv .git/index ../index && ln -s ../../index .git/index")
        .expect(0);
    env.json(0, &["checkpoint", "create"]);
}

// Who put the state elsewhere by a link is shown how to name it; the link is kept.
#[test]
fn a_link_to_state_elsewhere_is_named_in_the_hint() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    env.sh("mv .ultraplan/state ../elsewhere && ln -s ../../elsewhere .ultraplan/state")
        .expect(0);
    let error = env.error(13, &["checkpoint", "create"]);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(
        hint.contains("--state-dir")
            && error["message"]
                .as_str()
                .is_some_and(|text| text.contains("RECOVER_STATE_DIR")),
        "{error}"
    );
    let recover = Path::new(env!("CARGO_BIN_EXE_recover"))
        .parent()
        .expect("a folder")
        .display();
    env.sh(&format!("cd / && PATH={recover}:$PATH && {hint}"))
        .expect(0);
    env.recover(&["--state-dir", "../elsewhere", "checkpoint", "create"])
        .expect(0);
}

// A second name of somebody's file in a place of ours: the file keeps its content, whatever is done.
#[test]
fn a_file_with_a_second_name_is_not_written_to() {
    let (env, outside) = project();
    let mut places = Vec::new();
    for folder in [".ultraplan/state/recover", ".git/recover"] {
        let mut open = vec![env.work().join(folder)];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let kind = entry.file_type().expect("a kind");
                if kind.is_dir()
                    && entry.file_name() != "quarantine"
                    && entry.file_name() != "written"
                {
                    open.push(entry.path());
                } else if kind.is_file()
                    && !entry.file_name().to_string_lossy().starts_with("ledger-")
                {
                    places.push(entry.path());
                }
            }
        }
    }
    assert!(
        places
            .iter()
            .any(|place| place.file_name() == Some(OsStr::new("output.log"))),
        "{places:?}"
    );
    for (number, place) in places.iter().enumerate() {
        let victim = outside.join(format!("victim-{number}"));
        fs::write(&victim, "precious\n").expect("a victim");
        fs::remove_file(place).expect("removed");
        fs::hard_link(&victim, place).expect("a second name");
    }
    let content = || {
        listing(&outside)
            .into_iter()
            .map(|(path, (.., content))| (path, content))
            .collect::<Vec<_>>()
    };
    let before = content();
    for command in COMMANDS {
        let ran = run(&env, command);
        assert!((0..64).contains(&ran.code), "{command:?}: {}", ran.stderr);
        assert_eq!(content(), before, "{command:?}");
    }
}

// Logs and prompts of an attempt that is made again under a known name.
#[test]
fn a_log_is_not_written_through_a_link() {
    for (name, trick) in [
        ("output.log", Trick::LinkToFile),
        ("output.log", Trick::Fifo),
        ("prompt.md", Trick::LinkToFile),
    ] {
        let env = TestEnv::repo();
        let outside = env.root().join("outside");
        fs::create_dir_all(&outside).expect("a folder");
        fs::write(outside.join("victim"), "precious\n").expect("a victim");
        env.json(0, &["checkpoint", "create", "--run", "before"]);
        let folder = ".ultraplan/state/recover/runs/night/iteration-1-attempt-1";
        fs::create_dir_all(env.work().join(folder)).expect("a folder");
        trick.plant(&env.work().join(folder).join(name), &outside);
        let before = listing(&outside);
        let ran = run(
            &env,
            &[
                "run",
                "--run",
                "night",
                "--prompt",
                "x",
                "--",
                "sh",
                "-c",
                "echo pwned",
            ],
        );
        assert_eq!(listing(&outside), before, "{name} {trick:?}");
        assert!(
            ran.code == 13 && ran.stderr.contains(name),
            "{}\n{}",
            ran.code,
            ran.stderr
        );
    }
}

// The loop's own files: a link among them is neither read nor written through.
#[test]
fn a_link_in_the_working_memory_is_not_followed() {
    let (env, outside) = project();
    env.write_state("notes/plan.md", "first\n");
    let id = env.json(0, &["checkpoint", "create", "--run", "night"])["checkpoint"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    env.sh("rm -r .ultraplan/state/notes").expect(0);
    symlink(
        outside.join("folder"),
        env.work().join(".ultraplan/state/notes"),
    )
    .expect("a link");
    symlink(
        outside.join("victim"),
        env.work().join(".ultraplan/state/secret"),
    )
    .expect("a link");
    fifo(&env.work().join(".ultraplan/state/pipe"));
    let before = listing(&outside);
    run(&env, &["checkpoint", "create", "--run", "night"]).expect(0);
    let refused = run(
        &env,
        &[
            "rollback", "--to", &id, "--run", "night", "--scope", "state", "--yes",
        ],
    );
    assert!(
        refused.code == 13 && refused.stderr.contains("notes"),
        "{}{}",
        refused.code,
        refused.stderr
    );
    assert_eq!(listing(&outside), before);
}

// Without git checkpoints are in a repository of our own, which git's library opens by its path.
#[test]
fn the_private_repository_is_not_followed_elsewhere() {
    let env = TestEnv::plain();
    env.write("a.txt", "one\n");
    env.json(0, &["checkpoint", "create"]);
    let outside = env.root().join("outside");
    fs::create_dir_all(outside.join("folder")).expect("a folder");
    let shadow = env.work().join(".ultraplan/state/recover/shadow.git");
    for place in ["", "objects", "refs", "refs/recover", "config", "recover"] {
        let at = shadow.join(place);
        let at = at.components().collect::<PathBuf>();
        let aside = env.root().join("aside");
        let was_there = fs::rename(&at, &aside).is_ok();
        symlink(outside.join("folder"), &at).expect("a link");
        env.write("a.txt", format!("two {place}\n"));
        let ran = run(&env, &["checkpoint", "create"]);
        assert!(
            ran.code == 13 && ran.stderr.contains(&*at.to_string_lossy()),
            "{place}: {}\n{}",
            ran.code,
            ran.stderr
        );
        assert_eq!(
            fs::read_dir(outside.join("folder"))
                .expect("a folder")
                .count(),
            0
        );
        fs::remove_file(&at).expect("removed");
        if was_there {
            fs::rename(&aside, &at).expect("put back");
        }
    }
    env.json(0, &["checkpoint", "create"]);
}

// The project's file says no place outside of it.
#[test]
fn the_lane_records_stay_in_the_project() {
    let env = TestEnv::repo();
    let outside = env.root().join("outside");
    fs::create_dir_all(&outside).expect("a folder");
    for place in [
        "../outside/lanes.json",
        "/tmp/recover-lanes.json",
        "a/../../outside/x",
        ".git/lanes.json",
    ] {
        env.write(
            ".ultraplan/recover.toml",
            format!("[checkpoint]\nlane_file = \"{place}\"\n"),
        );
        let error = env.error(2, &["checkpoint", "create"]);
        assert!(
            error["message"]
                .as_str()
                .expect("text")
                .contains("lane_file"),
            "{error}"
        );
    }
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nlane_file = \"lanes/all.json\"\n",
    );
    symlink(&outside, env.work().join("lanes")).expect("a link");
    let error = env.error(13, &["checkpoint", "create"]);
    assert!(
        error["message"]
            .as_str()
            .expect("text")
            .contains("lanes is a symbolic link"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
    env.remove("lanes");
    env.json(0, &["checkpoint", "create"]);
    assert_eq!(env.mode("lanes/all.json") & 0o044, 0o044, "others read it");
}

// The configuration is a file of a size that one reads.
#[test]
fn a_configuration_is_bounded() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "# filler\n".repeat(200_000));
    let error = env.error(2, &["status"]);
    assert!(
        error["message"]
            .as_str()
            .expect("text")
            .contains("more than 1048576 bytes"),
        "{error}"
    );
}

// What is no file is not imported, and nothing waits for it.
#[test]
fn only_files_are_imported() {
    let env = TestEnv::repo();
    fifo(&env.work().join("pipe"));
    for kind in [&[][..], &["--kind", "recovery"]] {
        for path in ["pipe", "/dev/zero"] {
            let ran = run(&env, &[&["import", path], kind].concat());
            assert!(
                ran.code == 2 && ran.stderr.contains("no ordinary file"),
                "{}\n{}",
                ran.code,
                ran.stderr
            );
        }
    }
}

// What holds prompts, command lines and output is for the user alone; what 0.1.0 left wider is tightened.
#[test]
fn what_is_recorded_is_for_the_user_alone() {
    let (env, _) = project();
    let tops = [".ultraplan/state", ".git/recover"].map(|top| env.work().join(top));
    for top in &tops {
        for (path, (mode, ..)) in listing(top) {
            // git's library makes a folder of its own below one that nobody else enters.
            if !path.starts_with(env.work().join(".git/recover/quarantine")) {
                assert_eq!(mode & 0o077, 0, "{} {mode:o}", path.display());
            }
        }
    }
    assert_eq!(
        env.mode(".ultraplan") & 0o055,
        0o055,
        "a configuration in it is everybody's"
    );
    // As 0.1.0 made them.
    for (path, mode) in [
        (".ultraplan/state/recover", 0o755),
        (".ultraplan/state/events.jsonl", 0o644),
        (".git/recover", 0o755),
        (".ultraplan/state", 0o755),
    ] {
        fs::set_permissions(env.work().join(path), fs::Permissions::from_mode(mode))
            .expect("its mode");
    }
    env.write_state("loop.md", "the loop's\n");
    env.json(0, &["checkpoint", "create", "--run", "night"]);
    assert_eq!(env.mode(".ultraplan/state/recover"), 0o700);
    assert_eq!(env.mode(".ultraplan/state/events.jsonl"), 0o600);
    assert_eq!(env.mode(".git/recover"), 0o700);
    assert_eq!(env.mode(".ultraplan/state"), 0o755, "a loop may share it");
    assert_eq!(env.mode(".ultraplan/state/loop.md") & 0o044, 0o044);
    // A report goes where somebody wants to read it.
    env.recover(&["report", "--run", "night", "-o", "report.md"])
        .expect(0);
    assert_eq!(env.mode("report.md") & 0o044, 0o044);
}

// The settings of agents in a project are files there; the user's own may be kept elsewhere.
#[test]
fn settings_of_a_project_are_not_followed() {
    let env = TestEnv::repo();
    let outside = env.root().join("outside");
    fs::create_dir_all(&outside).expect("a folder");
    fs::write(outside.join("settings.json"), "{}\n").expect("a file");
    symlink(&outside, env.work().join(".claude")).expect("a link");
    let error = env.error(13, &["hook", "install", "claude"]);
    assert!(
        error["message"]
            .as_str()
            .expect("text")
            .contains(".claude is a symbolic link"),
        "{error}"
    );
    env.remove(".claude");
    fs::create_dir(env.work().join(".claude")).expect("a folder");
    symlink(
        outside.join("settings.json"),
        env.work().join(".claude/settings.json"),
    )
    .expect("a link");
    env.error(13, &["hook", "install", "claude"]);
    assert_eq!(
        fs::read_to_string(outside.join("settings.json")).expect("read"),
        "{}\n"
    );
    symlink(&outside, env.root().join("home/.claude")).expect("a link");
    env.json(0, &["hook", "install", "claude", "--user"]);
    assert!(
        fs::read_to_string(outside.join("settings.json"))
            .expect("read")
            .contains("hook run claude")
    );
}
