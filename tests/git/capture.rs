//! Captures: what is in them, and what is left out with a reason.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use recover::testing::git::Error;
use recover::testing::git::MemoryFile;
use recover::testing::model::EntryKind;
use recover::testing::model::RepoPath;

use crate::bench::{Bench, entries};

fn reason(bench: &Bench, path: &str) -> Option<String> {
    let skipped = bench.capture().manifest.skipped;
    skipped
        .into_iter()
        .find(|skipped| skipped.path == RepoPath::from(path))
        .map(|skipped| skipped.reason)
}

#[test]
fn content_is_taken_byte_for_byte_whatever_filters_are_configured() {
    let bench = Bench::with_commit();
    let trap = bench.folder.path().join("ran");
    bench.git(&["config", "core.autocrlf", "true"]);
    bench.git(&[
        "config",
        "filter.x.clean",
        &format!("touch {}; cat", trap.display()),
    ]);
    bench.git(&[
        "config",
        "core.fsmonitor",
        &format!("touch {}", trap.display()),
    ]);
    bench.write(".gitattributes", "* text=auto ident filter=x\n");
    bench.write("crlf", "a\r\nb\n$Id$\r\n");
    let stored = bench.checkpoint();
    assert_eq!(
        bench.git(&["cat-file", "blob", &format!("{}:crlf", stored.commit)]),
        "a\r\nb\n$Id$\r\n"
    );
    bench.write("crlf", "x");
    bench.restore(&stored).unwrap();
    assert_eq!(bench.read("crlf"), b"a\r\nb\n$Id$\r\n");
    assert!(!trap.exists(), "a filter ran");
}

#[test]
fn ignored_is_left_out_but_tracked_is_taken() {
    let bench = Bench::with_commit();
    bench.write(".gitignore", "*.log\n/target\n!keep.log\n");
    bench.write("sub/.gitignore", "/local\n");
    for path in [
        "a.log",
        "keep.log",
        "target/x",
        "sub/local",
        "local",
        "target/deep/tracked",
    ] {
        bench.write(path, path);
    }
    bench.git(&["add", "-f", "target/deep/tracked"]);
    let stored = bench.checkpoint();
    let listing = entries(&bench, &stored.commit);
    let paths: Vec<_> = listing.lines().map(|line| &line[7..]).collect();
    assert_eq!(
        paths,
        [
            ".gitignore",
            "base",
            "keep.log",
            "local",
            "sub/.gitignore",
            "target/deep/tracked"
        ]
    );
}

#[test]
fn what_one_capture_takes_on_request_the_next_leaves_out() {
    let bench = Bench::new();
    bench.write(".gitignore", "*.ign\n");
    bench.write("in/kept", "x");
    fs::create_dir_all(bench.path("one/empty.ign")).unwrap();
    bench.write("two/file.ign", "y");
    bench.write("three/deep.ign/file", "z");
    bench.checkpoint();
    // What the cache says of a folder counts once its times are old enough.
    std::thread::sleep(std::time::Duration::from_millis(120));
    let by_rules = bench.capture().tree;
    let asked = ["one/empty.ign", "two/file.ign", "three/deep.ign/file"].map(RepoPath::new);
    let more = bench.checkpoint_of(&[], &asked.iter().cloned().collect());
    for path in &asked {
        assert!(
            more.snapshot(&bench.repo())
                .unwrap()
                .entries
                .contains_key(path),
            "{path}"
        );
    }
    assert_eq!(bench.capture().tree, by_rules);
    let empty: Vec<RepoPath> = bench
        .checkpoint()
        .manifest
        .empty_folders
        .into_iter()
        .map(|folder| folder.path)
        .collect();
    assert_eq!(empty, ["one", "three", "two"].map(RepoPath::new));
}

#[test]
fn assume_unchanged_and_skip_worktree_files_are_taken() {
    let bench = Bench::with_commit();
    bench.write("assumed", "1");
    bench.write("skipped", "1");
    bench.commit("two");
    bench.git(&["update-index", "--assume-unchanged", "assumed"]);
    bench.git(&["update-index", "--skip-worktree", "skipped"]);
    bench.write("assumed", "2");
    bench.write("skipped", "2");
    let stored = bench.checkpoint();
    for path in ["assumed", "skipped"] {
        assert_eq!(
            bench.git(&["show", &format!("{}:{path}", stored.commit)]),
            "2"
        );
    }
    assert_eq!(stored.manifest.index_extras.len(), 2);
}

#[test]
fn include_adds_and_exclude_leaves_out() {
    let mut bench = Bench::with_commit();
    bench.write(".gitignore", "*.env\n/out/\n");
    for path in ["a.env", "out/keep/x", "out/other", "big/data", "big/more"] {
        bench.write(path, path);
    }
    bench.rules.include = vec!["*.env".into(), "out/keep".into()];
    bench.rules.exclude = vec!["big/*".into()];
    let captured = bench.capture();
    let paths: Vec<_> = captured
        .snapshot()
        .unwrap()
        .entries
        .keys()
        .map(|path| path.to_lossy().into_owned())
        .collect();
    assert_eq!(paths, [".gitignore", "a.env", "base", "big", "out/keep/x"]);
    let skipped: Vec<_> = captured
        .manifest
        .skipped
        .iter()
        .map(|skipped| skipped.path.to_lossy().into_owned())
        .collect();
    assert_eq!(skipped, ["big/data", "big/more"]);
    assert!(!captured.partial);
}

#[test]
fn the_state_folder_is_no_part_of_it() {
    let mut bench = Bench::with_commit();
    bench.write(".ultraplan/state/events.jsonl", "{}");
    bench.rules.excluded_dirs = vec![bench.path(".ultraplan/state")];
    let captured = bench.capture();
    let (before, tree) = (captured.snapshot().unwrap(), captured.tree.clone());
    drop(captured);
    assert!(
        before
            .entries
            .keys()
            .all(|path| !path.starts_with(&RepoPath::from(".ultraplan")))
    );
    assert!(before.skipped.is_empty());
    bench.git(&["add", "-f", ".ultraplan/state/events.jsonl"]);
    assert_eq!(bench.capture().tree, tree, "not even when it is tracked");
    bench.write(".ultraplan/recover.toml", "");
    assert!(
        bench
            .capture()
            .snapshot()
            .unwrap()
            .entries
            .contains_key(&RepoPath::from(".ultraplan/recover.toml"))
    );
}

#[test]
fn any_name_is_taken() {
    let bench = Bench::with_commit();
    let long = "x".repeat(255);
    let names: [&[u8]; 7] = [
        b"new\nline",
        b"\xff\xfe",
        long.as_bytes(),
        b" ",
        b"back\\slash",
        "e\u{301}".as_bytes(),
        "\u{e9}".as_bytes(),
    ];
    for name in names {
        bench.write(name, name);
    }
    let stored = bench.checkpoint();
    for name in names {
        fs::remove_file(bench.path(name)).unwrap();
    }
    bench.restore(&stored).unwrap();
    for name in names {
        assert_eq!(bench.read(name), name);
    }
    bench.fsck();
}

#[test]
fn names_of_the_repository_are_listed_not_taken() {
    let bench = Bench::with_commit();
    bench.write("a/.GIT/config", "x");
    bench.write("b/.git/junk", "x");
    let captured = bench.capture();
    let skipped: Vec<_> = captured
        .manifest
        .skipped
        .iter()
        .map(|skipped| skipped.path.to_lossy().into_owned())
        .collect();
    assert_eq!(skipped, ["a/.GIT", "b/.git"]);
}

#[test]
fn what_is_no_file_is_listed_and_never_opened() {
    let mut bench = Bench::with_commit();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(bench.path("socket")).unwrap();
    bench.rules.max_file_size = 10;
    bench.write("large", "more than ten bytes");
    bench.write("base", "tracked, so the limit is not for it");
    assert_eq!(reason(&bench, "fifo").as_deref(), Some("a FIFO"));
    assert_eq!(reason(&bench, "socket").as_deref(), Some("a socket"));
    assert_eq!(
        reason(&bench, "large").as_deref(),
        Some("over max_file_size")
    );
    assert_eq!(reason(&bench, "base"), None);
    assert!(!bench.capture().partial, "left out by policy");
}

#[test]
fn what_cannot_be_read_makes_it_partial() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: root can read everything");
        return;
    }
    let bench = Bench::with_commit();
    bench.write("secret", "x");
    bench.chmod("secret", 0);
    let captured = bench.capture();
    assert!(captured.partial);
    assert_eq!(captured.manifest.skipped.len(), 1);
}

#[test]
fn a_flood_is_refused_with_the_folder() {
    let mut bench = Bench::with_commit();
    bench.rules.max_untracked_files = 5;
    for n in 0..10 {
        bench.write(format!("deps/lib/{n}"), "x");
    }
    let error = bench.try_capture().unwrap_err();
    assert!(
        matches!(error, Error::UntrackedFlood { folder, .. } if folder == RepoPath::from("deps/lib"))
    );
    bench.commit("tracked now");
    bench.capture();
}

#[test]
fn nested_repositories_are_noted_not_entered() {
    let bench = Bench::with_commit();
    bench.write("sub/file", "x");
    bench.write("fresh/file", "x");
    for folder in ["sub", "fresh"] {
        Bench::git_in(&bench.path(folder), &["init", "-q"]).unwrap();
    }
    let inside = bench.path("sub");
    Bench::git_in(&inside, &["add", "."]).unwrap();
    Bench::git_in(
        &inside,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=b",
            "commit",
            "-qm",
            "x",
        ],
    )
    .unwrap();
    let stored = bench.checkpoint();
    assert_eq!(stored.manifest.nested.len(), 2);
    let snapshot = stored.snapshot(&bench.repo()).unwrap();
    assert_eq!(
        snapshot.entries[&RepoPath::from("sub")].kind,
        EntryKind::Gitlink
    );
    assert!(!snapshot.entries.contains_key(&RepoPath::from("fresh")));
    assert_eq!(snapshot.skipped.len(), 2);
    bench.fsck();
}

#[test]
fn a_change_of_the_same_size_in_the_same_second_is_noticed() {
    let bench = Bench::with_commit();
    bench.git(&["config", "core.trustctime", "false"]);
    for round in 0..20 {
        bench.write("racy", format!("{round:04}"));
        let stored = bench.checkpoint();
        assert_eq!(
            bench.git(&["show", &format!("{}:racy", stored.commit)]),
            format!("{round:04}")
        );
    }
}

#[test]
fn a_change_with_the_mtime_set_back_is_noticed() {
    let bench = Bench::with_commit();
    bench.write("file", "one");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let set_back = || {
        fs::File::options()
            .write(true)
            .open(bench.path("file"))
            .unwrap()
            .set_modified(old)
            .unwrap();
    };
    set_back();
    std::thread::sleep(std::time::Duration::from_millis(120));
    let first = bench.checkpoint();
    assert_eq!(bench.capture().tree, first.tree);
    bench.write("file", "two");
    set_back();
    assert_ne!(bench.capture().tree, first.tree);
}

#[test]
fn blobs_that_were_collected_as_garbage_are_written_again() {
    let bench = Bench::with_commit();
    bench.write("file", "content");
    std::thread::sleep(std::time::Duration::from_millis(120));
    // Fills the cache and drops the objects.
    bench.capture();
    let stored = bench.checkpoint();
    assert_eq!(
        bench.git(&["show", &format!("{}:file", stored.commit)]),
        "content"
    );
    bench.fsck();
}

type Step<'a> = &'a dyn Fn();

#[test]
fn unchanged_is_the_same_and_any_change_is_not() {
    let bench = Bench::with_commit();
    fs::create_dir(bench.path("empty")).unwrap();
    bench.write("file", "x");
    bench.write("folder/file", "x");
    let memory = [MemoryFile {
        path: RepoPath::from("notes/a"),
        content: b"m".to_vec(),
        mode: 0o644,
    }];
    let stored = bench.checkpoint_of(&memory, &std::collections::BTreeSet::new());
    assert_eq!(stored.memory(&bench.repo()).unwrap()[0].content, b"m");
    assert!(bench.capture().same_as(&stored, &memory).unwrap());
    assert!(!bench.capture().same_as(&stored, &[]).unwrap());
    let changes: [(&str, Step<'_>, Step<'_>); 5] = [
        ("mode", &|| bench.chmod("file", 0o600), &|| {
            bench.chmod("file", 0o644);
        }),
        ("folder mode", &|| bench.chmod("folder", 0o700), &|| {
            bench.chmod("folder", 0o755);
        }),
        (
            "empty folder",
            &|| fs::remove_dir(bench.path("empty")).unwrap(),
            &|| {
                fs::create_dir(bench.path("empty")).unwrap();
            },
        ),
        ("content", &|| bench.write("file", "y"), &|| {
            bench.write("file", "x");
        }),
        ("index", &|| drop(bench.git(&["add", "file"])), &|| {
            drop(bench.git(&["rm", "-q", "--cached", "file"]));
        }),
    ];
    for (name, change, back) in changes {
        change();
        assert!(
            !bench.capture().same_as(&stored, &memory).unwrap(),
            "{name}"
        );
        back();
        assert!(
            bench.capture().same_as(&stored, &memory).unwrap(),
            "{name} back"
        );
    }
}

#[test]
fn the_users_index_is_not_touched_and_its_lock_is_no_obstacle() {
    let bench = Bench::with_commit();
    bench.write("staged", "staged");
    bench.git(&["add", "staged"]);
    bench.write("staged", "not staged");
    bench.write(".git/index.lock", "");
    let before = (
        bench.read(".git/index"),
        bench.read(".git/HEAD"),
        bench.read(".git/config"),
    );
    let stored = bench.checkpoint();
    assert_eq!(
        (
            bench.read(".git/index"),
            bench.read(".git/HEAD"),
            bench.read(".git/config")
        ),
        before
    );
    assert!(bench.exists(".git/index.lock"));
    assert_eq!(
        bench.git(&["show", &format!("{}^2:staged", stored.commit)]),
        "staged"
    );
    assert_eq!(
        bench.git(&["show", &format!("{}:staged", stored.commit)]),
        "not staged"
    );
}

#[test]
fn symlinks_are_links() {
    let bench = Bench::with_commit();
    symlink("/etc", bench.path("folder")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    let stored = bench.checkpoint();
    let listing = entries(&bench, &stored.commit);
    assert!(
        listing.contains("120000 folder\n") && listing.contains("120000 dangling\n"),
        "{listing}"
    );
}

#[test]
fn checkpoints_are_ordinary_commits() {
    let bench = Bench::with_commit();
    bench.write("base", "changed\n");
    let stored = bench.checkpoint();
    bench.fsck();
    assert_eq!(bench.git(&["status", "--porcelain"]), " M base\n");
    assert_eq!(
        bench.git(&["diff", "--name-only", "HEAD", &stored.commit.0]),
        "base\n"
    );
    assert!(
        bench
            .git(&["show", "--stat", "-m", "--first-parent", &stored.commit.0])
            .contains("base")
    );
    assert_eq!(
        bench.git(&["log", "-1", "--format=%an %ae %s", &stored.commit.0]),
        "recover recover@localhost a checkpoint\n"
    );
    bench.git(&["gc", "-q", "--prune=now"]);
    bench.write("base", "lost\n");
    bench.git(&["restore", &format!("--source={}", stored.commit), "base"]);
    assert_eq!(bench.read("base"), b"changed\n");
    assert!(!bench.git(&["branch", "-a"]).contains("recover"));
    assert_eq!(bench.git(&["stash", "list"]), "");
}

#[test]
fn large_files_are_streamed() {
    let bench = Bench::with_commit();
    let content: Vec<u8> = (0..10_000_000_u32).map(|n| (n % 251) as u8).collect();
    bench.write("large", &content);
    let stored = bench.checkpoint();
    bench.write("large", "");
    bench.restore(&stored).unwrap();
    assert!(bench.read("large") == content);
    bench.fsck();
}

#[test]
fn indexes_of_any_version_and_extension_are_read() {
    let bench = Bench::with_commit();
    bench.write("a/b", "x");
    for setting in [
        ("index.version", "4"),
        ("core.untrackedCache", "true"),
        ("index.skipHash", "true"),
    ] {
        bench.git(&["config", setting.0, setting.1]);
        bench.write("a/b", setting.0);
        bench.git(&["add", "-A"]);
        bench.git(&["status"]);
        let stored = bench.checkpoint();
        assert_eq!(
            bench.git(&["show", &format!("{}^2:a/b", stored.commit)]),
            setting.0
        );
    }
}

#[test]
fn submodules_are_linked() {
    let bench = Bench::with_commit();
    let other = Bench::with_commit();
    let url = other.root.to_str().unwrap();
    bench.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url,
        "module",
    ]);
    bench.commit("module");
    let stored = bench.checkpoint();
    assert!(entries(&bench, &stored.commit).contains("160000 module\n"));
    assert_eq!(bench.git(&["diff", "HEAD", &stored.commit.0]), "");
    bench.git(&["submodule", "--quiet", "deinit", "-f", "module"]);
    let without = bench.checkpoint();
    assert_eq!(without.tree, stored.tree);
    assert!(without.manifest.skipped.is_empty());
    bench.restore(&stored).unwrap();
    bench.fsck();
}
