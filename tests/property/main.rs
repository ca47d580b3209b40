//! Random trees and changes against a simple oracle.
//!
//! What a checkpoint took comes back byte for byte, what it did not take is not touched, and every restore can be taken back
//! and done again.
//!
//! A failure names its seed: `RECOVER_PROPERTY_SEED=… cargo test --test property` plays that case alone.
//! `RECOVER_PROPERTY_CASES` says how many to play.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not recognise as such"
)]

mod case;
mod driver;
mod oracle;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use case::{End, play};

/// Cases through the library; through the built program there are fewer.
const CASES: u64 = 2000;
const PROGRAM_CASES: u64 = 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    })
}

/// A folder in memory where there is one: syncing is not what is tested here.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place: PathBuf = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::tempdir_in(place)
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// A repository with one commit, to be copied.
fn template(folder: &Path) -> PathBuf {
    let root = folder.join("template");
    std::fs::create_dir(&root).unwrap();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(&root)
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            command.env_remove(name);
        }
        assert!(command.status().unwrap().success(), "git {args:?}");
    };
    git(&["init", "-q", "-b", "main", "--template="]);
    for (key, value) in [
        ("user.name", "A"),
        ("user.email", "a@b"),
        ("core.excludesFile", "/dev/null"),
    ] {
        git(&["config", key, value]);
    }
    for (path, content) in [("a", "a\n"), ("b", "b\n")] {
        std::fs::write(root.join(path), content).unwrap();
        git(&["add", path]);
    }
    git(&["commit", "-q", "-m", "first"]);
    // Something that belongs to the user and must stay: a branch, a tag, a stash.
    std::fs::write(root.join("a"), "stashed\n").unwrap();
    git(&["stash", "-q"]);
    git(&["branch", "side"]);
    git(&["tag", "v1"]);
    std::fs::create_dir_all(root.join(".git/info")).unwrap();
    root
}

fn play_all(cases: u64, program: bool) {
    let all = folder();
    let template = template(all.path());
    let one = number("RECOVER_PROPERTY_SEED");
    let (begin, cases) = one.map_or((1, cases), |seed| (seed, 1));
    let next = AtomicU64::new(0);
    let (failed, ends) = (
        Mutex::new(Vec::new()),
        Mutex::new(BTreeMap::<End, u64>::new()),
    );
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cases || failed.lock().unwrap().len() >= 3 {
                return;
            }
            let seed = begin + number;
            let place = all.path().join(seed.to_string());
            std::fs::create_dir(&place).unwrap();
            if let Ok(end) =
                catch_unwind(AssertUnwindSafe(|| play(seed, &place, &template, program)))
            {
                *ends.lock().unwrap().entry(end).or_default() += 1;
            } else {
                eprintln!("failed: RECOVER_PROPERTY_SEED={seed} cargo test --test property");
                failed.lock().unwrap().push(seed);
            }
            if number.is_multiple_of(100) && failed.lock().unwrap().is_empty() {
                let git = Command::new("git")
                    .current_dir(place.join("work"))
                    .args(["fsck", "--strict", "--no-dangling"])
                    .output();
                let output = git.unwrap();
                assert!(
                    output.status.success(),
                    "{seed}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
            std::fs::remove_dir_all(&place).unwrap();
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let (failed, ends) = (failed.into_inner().unwrap(), ends.into_inner().unwrap());
    eprintln!("{cases} cases: {ends:?}");
    assert!(failed.is_empty(), "seeds that failed: {failed:?}");
    let whole = ends.get(&End::Whole).copied().unwrap_or(0);
    assert!(
        one.is_some() || whole * 2 > cases,
        "too few cases came to their end"
    );
}

#[test]
fn any_tree_comes_back_and_nothing_else_is_touched() {
    play_all(number("RECOVER_PROPERTY_CASES").unwrap_or(CASES), false);
}

#[test]
fn the_program_does_the_same() {
    play_all(PROGRAM_CASES, true);
}
