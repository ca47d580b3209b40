//! `--dry-run` (contract: "every mutating command: print the same plan, change nothing").
//!
//! Each byte, name and time of the work tree, the state directory and the repository stays as it was.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::env::TestEnv;

/// Every command that changes anything, with arguments that fit [`with_history`]; each is also asked where there is nothing.
const COMMANDS: &[&[&str]] = &[
    &["run", "--run", "other", "--", "touch", "made"],
    &[
        "run",
        "--run",
        "other",
        "--feedback",
        "test=false",
        "--passthrough",
        "--",
        "true",
    ],
    &["resume"],
    &[
        "resume",
        "--prepare-only",
        "--strategy",
        "rollback_and_retry",
    ],
    &["resume", "--strategy", "retry_with_context"],
    &["--resume", "--restart"],
    &["rollback", "--to", "@1"],
    &["rollback", "--full", "--edits", "discard"],
    &["rollback", "--to", "@1", "--scope", "state"],
    &["--rollback", "--iteration", "1", "--commits", "keep"],
    &["discard"],
    &["discard", "--edits", "keep"],
    &["undo"],
    &["redo"],
    &["checkpoint", "create", "-m", "x"],
    &["checkpoint", "create", "--if-changed"],
    &["checkpoint", "create", "--storage", "patch"],
    &["checkpoint", "create", "--storage", "commit"],
    &["checkpoint", "restore", "@1"],
    &["checkpoint", "restore", "@1", "--path", "a.txt"],
    &["checkpoint", "prune", "--keep-last", "0"],
    &["checkpoint", "prune", "--run", "job", "--keep-last", "0"],
    &[
        "checkpoint",
        "prune",
        "--keep-last",
        "0",
        "--archive",
        "../archive",
    ],
    &["checkpoint", "pin", "@1"],
    &["checkpoint", "unpin", "@1"],
    &["checkpoint", "export", "@1", "--patch", "out.patch"],
    &["checkpoint", "export", "@1", "--bundle", "out.bundle"],
    &["checkpoint", "export", "@1", "--format", "seed-json"],
    &["manual-fix", "start"],
    &["manual-fix", "verify"],
    &["manual-fix", "continue"],
    &["manual-fix", "abort"],
    &["retry-status", "--reset"],
    &["attempt", "start"],
    &["attempt", "pass"],
    &["attempt", "fail", "--exit-code", "1", "--message", "x"],
    &[
        "attempt", "fail", "--run", "new", "--phase", "05", "--plan", "2", "--check",
    ],
    &["step", "build", "--", "touch", "made"],
    &["step", "build2", "--atomic", "--", "touch", "made"],
    &["init"],
    &["init", "--force"],
    &["doctor", "--repair"],
    &["doctor", "--rebuild"],
    &["hook", "install", "claude"],
    &["hook", "install", "git"],
    &["hook", "uninstall", "git"],
    &["plugin", "install", "codex"],
    &["plugin", "uninstall", "codex"],
    &["sync"],
    &["report", "-o", "report.md"],
];

/// Everything below a folder: type, permissions, size, times, content. What only reading changes is left out.
fn everything(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let found = path.symlink_metadata().expect("what was listed");
        let content = match found.file_type() {
            kind if kind.is_dir() => {
                open.extend(
                    path.read_dir()
                        .expect("a folder")
                        .map(|entry| entry.expect("an entry").path()),
                );
                Vec::new()
            }
            kind if kind.is_symlink() => path
                .read_link()
                .expect("a link")
                .as_os_str()
                .as_bytes()
                .to_owned(),
            _ => std::fs::read(&path).expect("a file"),
        };
        let times = (
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        );
        let said = format!(
            "{:o} {} {times:?} {:08x}",
            found.mode(),
            found.ino(),
            crc32fast::hash(&content)
        );
        all.insert(path, said);
    }
    all
}

/// Asks for each command's plan; what is refused is refused for what it finds, never as a wrong command line.
#[track_caller]
fn changes_nothing(env: &TestEnv) {
    let before = everything(&env.root());
    for args in COMMANDS {
        let ran = env.recover(&[&["--dry-run", "--json"], *args].concat());
        assert!(
            ![1, 2, 70, 101].contains(&ran.code),
            "{args:?}: {}\n{}{}",
            ran.code,
            ran.stdout,
            ran.stderr
        );
        ran.json();
        let after = everything(&env.root());
        let differ = |(path, said): &(&PathBuf, &String)| before.get(*path) != Some(*said);
        let changed: Vec<_> = after.iter().filter(differ).map(|(path, _)| path).collect();
        let gone: Vec<_> = before
            .keys()
            .filter(|path| !after.contains_key(*path))
            .collect();
        assert!(
            changed.is_empty() && gone.is_empty(),
            "{args:?}: changed {changed:?}, gone {gone:?}"
        );
    }
}

/// A failed run with checkpoints, a restore to undo, and edits that no checkpoint has.
fn with_history(env: &TestEnv) {
    env.write("sub/b.txt", "b\n");
    env.json(
        8,
        &[
            "run",
            "--run",
            "job",
            "--retries",
            "0",
            "--on-failure",
            "stop",
            "--feedback",
            "test=test -e fixed",
            "--",
            "touch",
            "work",
        ],
    );
    env.json(0, &["checkpoint", "create", "--run", "job", "-m", "second"]);
    env.json(0, &["checkpoint", "restore", "@1", "--run", "job"]);
    env.write("a.txt", "edited\n");
    // Old enough for git to think of removing them, were they not made young again.
    let objects = env.work().join(".git/objects");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(9 * 24 * 3600);
    for path in everything(&objects)
        .into_keys()
        .filter(|path| path.is_file())
    {
        std::fs::File::open(path)
            .and_then(|file| file.set_modified(old))
            .expect("an old object");
    }
}

#[test]
fn nothing_is_made_where_nothing_is() {
    changes_nothing(&TestEnv::repo());
    changes_nothing(&TestEnv::plain());
}

#[test]
fn nothing_is_changed_where_there_is_history() {
    let env = TestEnv::repo();
    with_history(&env);
    changes_nothing(&env);
    // With a session of manual fixing there is something to verify, too.
    env.json(0, &["manual-fix", "start", "--run", "job"]);
    env.write("fixed", "");
    changes_nothing(&env);
}

#[test]
fn nothing_is_changed_without_git_or_with_repositories_inside() {
    let env = TestEnv::plain();
    env.write("a.txt", "one\n");
    with_history_without_git(&env);
    changes_nothing(&env);

    let env = TestEnv::repo();
    env.write("inner/x", "x\n");
    env.git(&["-C", "inner", "init", "-q"]);
    changes_nothing(&env);
}

/// Something is recorded, and nothing was ever captured.
fn with_history_without_git(env: &TestEnv) {
    env.json(0, &["attempt", "start", "--run", "job"]);
}

/// The safe mode of that name is a dry run of everything.
#[test]
fn the_safe_mode_dry_run_changes_nothing() {
    let mut env = TestEnv::repo();
    with_history(&env);
    env.set("RECOVER_SAFE_MODE", "dry_run");
    changes_nothing(&env);
}
