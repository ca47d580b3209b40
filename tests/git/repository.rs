//! Repositories: the user's, private ones, locks.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recover::testing::durable::Root;
use recover::testing::git::CheckpointRef;
use recover::testing::git::{Error, Repo, WorktreeLock};
use recover::testing::git::{Expect, Verified};
use recover::testing::model::CaptureRules;
use recover::testing::policy::Selection;
use recover::testing::policy::{Baseline, Edits, PlanInput, plan};

use crate::bench::Bench;

#[test]
fn it_is_found_from_a_folder_inside() {
    let bench = Bench::with_commit();
    bench.write("a/b/c", "x");
    let repo = Repo::discover(&bench.path("a/b"), None).unwrap();
    assert_eq!(repo.workdir(), bench.root);
    assert_eq!(repo.main_worktree(), bench.root);
    assert!(matches!(
        Repo::discover(std::path::Path::new("/proc"), None),
        Err(Error::NotARepository(_))
    ));
}

#[test]
fn what_is_no_project_is_refused() {
    let bench = Bench::with_commit();
    let inside = bench.root.join("home");
    fs::create_dir(&inside).unwrap();
    for home in [bench.root.as_path(), inside.as_path()] {
        assert!(matches!(
            Repo::discover(&bench.root, Some(home)),
            Err(Error::UnsafePath { .. })
        ));
    }
    let bare = bench.folder.path().join("bare");
    fs::create_dir(&bare).unwrap();
    Bench::git_in(&bare, &["init", "-q", "--bare"]).unwrap();
    assert!(matches!(
        Repo::discover(&bare, None),
        Err(Error::Unsupported(_))
    ));
    for args in [["--object-format=sha256"], ["--ref-format=reftable"]] {
        let other = bench.folder.path().join(args[0]);
        fs::create_dir(&other).unwrap();
        Bench::git_in(&other, &["init", "-q", args[0]]).unwrap();
        let result = Repo::discover(&other, None);
        assert!(
            matches!(result, Err(Error::Unusable(_))),
            "{args:?}: {result:?}"
        );
    }
}

#[test]
fn a_repository_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a folder away");
        return;
    }
    let bench = Bench::with_commit();
    std::os::unix::fs::chown(bench.path(".git"), Some(12345), None).unwrap();
    assert!(matches!(
        Repo::discover(&bench.root, None),
        Err(Error::ForeignOwner { owner: 12345, .. })
    ));
}

#[test]
fn split_and_sparse_indexes_are_read_and_put_back() {
    let bench = Bench::with_commit();
    bench.write("a/b", "x");
    bench.write("c/d", "x");
    bench.commit("more");
    let listing = || bench.git(&["ls-files", "--stage", "-t"]);
    for make in [
        &["update-index", "--split-index"] as &[&str],
        &["sparse-checkout", "set", "--cone", "--sparse-index", "a"],
        &[
            "sparse-checkout",
            "set",
            "--no-cone",
            "--no-sparse-index",
            "/a/",
        ],
    ] {
        bench.git(make);
        bench.write("a/staged", "staged");
        bench.git(&["add", "a/staged"]);
        let before = listing();
        let stored = bench.checkpoint();
        bench.git(&["rm", "-q", "-f", "a/b", "a/staged"]);
        assert_ne!(listing(), before);
        bench.restore(&stored).unwrap();
        let repo = bench.repo();
        let lock = Bench::lock(&repo);
        let wait = std::time::Duration::from_millis(50);
        repo.refresh_index(&lock, &["a/b".into()], &Verified::default(), wait)
            .unwrap();
        repo.restore_index(&lock, &stored, wait).unwrap();
        assert_eq!(listing(), before, "{make:?}");
        assert_eq!(bench.git(&["status", "--porcelain"]), "A  a/staged\n");
        bench.git(&["rm", "-q", "-f", "a/staged"]);
        bench.fsck();
    }
}

#[test]
fn linked_worktrees_are_separate() {
    let bench = Bench::with_commit();
    let linked = bench.folder.path().canonicalize().unwrap().join("linked");
    bench.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    fs::write(linked.join("only here"), "x").unwrap();
    let repo = Repo::discover(&linked, None).unwrap();
    assert_eq!(
        (repo.workdir(), repo.main_worktree()),
        (linked.as_path(), bench.root.clone())
    );
    assert_ne!(
        repo.recover_dir().unwrap(),
        bench.repo().recover_dir().unwrap()
    );
    let _other = Bench::lock(&bench.repo());
    let lock = Bench::lock(&repo);
    let captured = repo
        .capture(
            &lock,
            &CaptureRules::default(),
            &std::collections::BTreeSet::new(),
        )
        .unwrap();
    assert_eq!(captured.stats.files, 2);
    assert_eq!(captured.head.branch.as_deref(), Some("refs/heads/linked"));
}

#[test]
fn the_lock_is_held_by_one() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let held = Bench::lock(&repo);
    let error = WorktreeLock::acquire(&repo, Duration::from_millis(30)).unwrap_err();
    let Error::Locked { holder, .. } = error else {
        panic!("{error}")
    };
    assert!(
        holder.starts_with(&format!("pid {} (", std::process::id())),
        "{holder}"
    );
    drop(held);
    // A child that another test is starting holds the file open for a moment.
    WorktreeLock::acquire(&repo, Duration::from_secs(5)).unwrap();
}

#[test]
fn references_are_set_once_and_listed() {
    let bench = Bench::with_commit();
    let stored = bench.checkpoint();
    let repo = bench.repo();
    let name = CheckpointRef::name_of(&"a b".into(), &"c".into());
    let lock = Bench::lock(&repo);
    repo.set_ref(&lock, &name, &stored.commit).unwrap();
    assert!(matches!(
        repo.set_ref(&lock, &name, &stored.commit),
        Err(Error::HeadMoved { .. })
    ));
    assert_eq!(repo.list_refs().unwrap().0.len(), 2);
    bench.git(&["pack-refs", "--all"]);
    repo.delete_refs(&lock, std::slice::from_ref(&name))
        .unwrap();
    repo.delete_refs(&lock, &[name]).unwrap();
    assert!(
        repo.delete_refs(&lock, &["refs/heads/main".to_owned()])
            .is_err()
    );
    assert_eq!(repo.list_refs().unwrap().0.len(), 1);
}

// `git pack-refs`, which `git gc` runs, takes a new reference away, and its empty folder, before it is known to be durable.
#[test]
fn references_are_set_while_git_packs_them() {
    let bench = Bench::with_commit();
    let stored = bench.checkpoint();
    let (repo, names) = (
        bench.repo(),
        (0..1500).map(|number| {
            CheckpointRef::name_of(
                &format!("packed{}", number / 3).into(),
                &format!("c{number}").into(),
            )
        }),
    );
    let lock = Bench::lock(&repo);
    let (root, is_done) = (bench.root.clone(), AtomicBool::new(false));
    let packed = std::thread::scope(|scope| {
        let packing = scope.spawn(|| {
            let mut times = 0;
            while !is_done.load(Ordering::Relaxed) {
                Bench::git_in(&root, &["pack-refs", "--all"]).unwrap();
                times += 1;
            }
            times
        });
        let failed: Vec<Error> = names
            .filter_map(|name| repo.set_ref(&lock, &name, &stored.commit).err())
            .collect();
        is_done.store(true, Ordering::Relaxed);
        assert!(failed.is_empty(), "{failed:?}");
        packing.join().unwrap()
    });
    assert!(packed > 1);
    assert_eq!(repo.list_refs().unwrap().0.len(), 1501);
}

#[test]
fn names_of_references_are_those_that_git_lists() {
    let bench = Bench::with_commit();
    bench.commit("another");
    bench.write(".git/info/exclude", "linked\n");
    bench.git(&["worktree", "add", "-q", "linked"]);
    let linked = Repo::discover(&bench.path("linked"), None).unwrap();
    let repo = bench.repo();
    let check = |count: usize| {
        let listed = bench.git(&["for-each-ref", "--format=%(refname)", "refs/recover"]);
        let listed: Vec<&str> = listed.lines().collect();
        assert_eq!(listed.len(), count, "{listed:?}");
        assert_eq!(repo.ref_names(|_| false).unwrap(), listed);
        assert_eq!(
            linked.ref_names(|_| false).unwrap(),
            listed,
            "in a linked worktree"
        );
        let but_known: Vec<&str> = listed
            .iter()
            .filter(|name| !name.ends_with("/a"))
            .copied()
            .collect();
        assert_eq!(repo.ref_names(|id| id == "a").unwrap(), but_known);
    };
    let set =
        |name: &str, to: &str| bench.git(&["update-ref", &format!("refs/recover/{name}"), to]);
    check(0);
    for name in [
        "run/b",
        "run/a",
        "run-1/a",
        "run.1/a",
        "run0/%20",
        "deep/er/and/deeper",
        "\u{e9}/\u{e9}",
    ] {
        set(name, "HEAD");
    }
    check(7);
    // Others with the same beginning.
    bench.git(&["update-ref", "refs/recovered", "HEAD"]);
    bench.git(&["update-ref", "refs/recover-y/x", "HEAD"]);
    bench.git(&["branch", "refs/recover/x"]);
    bench.git(&["tag", "-a", "-m", "tag", "v1"]);
    bench.git(&["update-ref", "refs/recover/run/tag", "v1"]);
    check(8);
    bench.git(&["pack-refs", "--all"]);
    let packed = String::from_utf8(bench.read(".git/packed-refs")).unwrap();
    assert!(
        packed.contains("\n^")
            && packed.contains(" refs/recover/run/tag\n")
            && !bench.exists(".git/refs/recover/run/a")
    );
    check(8);
    // Both packed and not, one only not, one no more.
    set("run/a", "HEAD~1");
    set("run/c", "HEAD");
    bench.git(&["update-ref", "-d", "refs/recover/run/b"]);
    check(8);
    // What others leave.
    fs::create_dir_all(bench.path(".git/refs/recover/empty/er")).unwrap();
    let id = bench.git(&["rev-parse", "HEAD"]);
    for name in [
        "run/a.lock",
        "run/new.lock",
        "folder.lock/a",
        "run/.hidden",
        ".folder/a",
        "run/a~1",
        "run/a b",
    ] {
        bench.write(format!(".git/refs/recover/{name}"), &id);
    }
    bench.write(".git/packed-refs.lock", &id);
    check(8);
    // None of ours, but git lists it: bytes that are no text.
    bench.write(b".git/refs/recover/run/\xff", &id);
    bench.write(b".git/refs/recover/\xff/a", &id);
    assert_eq!(repo.ref_names(|_| false).unwrap().len(), 8);
    fs::remove_file(bench.path(".git/packed-refs.lock")).unwrap();
    bench.git(&["pack-refs", "--all"]);
    assert_eq!(repo.ref_names(|_| false).unwrap().len(), 8);
}

#[test]
fn without_git_a_private_repository_does() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let state = root.join(".ultraplan/state");
    fs::create_dir_all(&state).unwrap();
    fs::write(root.join("file"), "1").unwrap();
    let rules = CaptureRules {
        excluded_dirs: vec![state.clone()],
        ..CaptureRules::default()
    };
    let repo = Repo::private(&Root::own(&state), &state, &root, None).unwrap();
    let lock = Bench::lock(&repo);
    let none = std::collections::BTreeSet::new();
    let first = repo.capture(&lock, &rules, &none).unwrap();
    first.keep_objects().unwrap();
    assert_eq!((first.stats.files, &first.index_tree), (1, &None));
    fs::write(root.join("file"), "2").unwrap();
    let second = repo.capture(&lock, &rules, &none).unwrap();
    let planned = plan(&PlanInput {
        now: &second.snapshot().unwrap(),
        target: &first.snapshot().unwrap(),
        baseline: &|_| Baseline::Unknown,
        selection: &Selection::all(),
        ignored: &|_, _| false,
        left_out: &repo.left_out(&rules),
        is_output: &|_| false,
        edits: Edits::Refuse,
    });
    repo.execute_restore(&lock, &planned, Expect::Captured, &|| false)
        .unwrap();
    assert_eq!(fs::read(root.join("file")).unwrap(), b"1");
    Repo::private(&Root::own(&state), &state, &root, None).unwrap();
}

#[test]
fn captures_of_one_process_do_not_disturb_each_other() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    let none = std::collections::BTreeSet::new();
    bench.write("file", "1");
    let first = repo.capture(&lock, &bench.rules, &none).unwrap();
    bench.write("file", "2");
    let second = repo.capture(&lock, &bench.rules, &none).unwrap();
    drop(lock);
    assert!(matches!(
        WorktreeLock::acquire(&repo, Duration::ZERO),
        Err(Error::Locked { .. })
    ));
    second.keep_objects().unwrap();
    first.keep_objects().unwrap();
    for (captured, content) in [(&first, "1"), (&second, "2")] {
        assert_eq!(
            bench.git(&["show", &format!("{}:file", captured.tree)]),
            content
        );
    }
    drop((first, second));
    let lock = Bench::lock(&repo);
    assert!(!repo.recover_dir().unwrap().join("quarantine-1").exists());
    drop(lock);
}
