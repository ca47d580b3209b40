//! Restores: files, modes, links, and what must not be touched.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use recover::testing::git::Error;
use recover::testing::git::{Expect, RestoreJournal};
use recover::testing::model::Head;
use recover::testing::model::RepoPath;
use recover::testing::model::{Entry, EntryKind, ObjectId};
use recover::testing::policy::Selection;
use recover::testing::policy::{PlannedWrite, RestorePlan};

use crate::bench::Bench;

#[test]
fn modes_empty_folders_and_links_come_back_and_undo_undoes() {
    let bench = Bench::with_commit();
    bench.write("private", "x");
    bench.chmod("private", 0o600);
    bench.write("tool", "x");
    bench.chmod("tool", 0o755);
    bench.write("folder/file", "x");
    bench.chmod("folder", 0o750);
    fs::create_dir_all(bench.path("empty/inside")).unwrap();
    symlink("tool", bench.path("link")).unwrap();
    let first = bench.checkpoint();
    for path in ["private", "tool", "link"] {
        fs::remove_file(bench.path(path)).unwrap();
    }
    fs::remove_dir_all(bench.path("folder")).unwrap();
    fs::remove_dir_all(bench.path("empty")).unwrap();
    bench.write("folder", "a file now");
    bench.write("link/file", "a folder now");
    bench.write("new/deep/file", "new");
    let (safety, _, _) = bench.restore(&first).unwrap();
    let mode = |path: &str| {
        bench
            .path(path)
            .symlink_metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(
        (mode("private"), mode("tool"), mode("folder")),
        (0o600, 0o755, 0o750)
    );
    assert!(bench.path("empty/inside").is_dir());
    assert_eq!(
        fs::read_link(bench.path("link")).unwrap().to_str(),
        Some("tool")
    );
    assert!(!bench.exists("new"));
    assert!(bench.capture().same_as(&first, &[]).unwrap());
    bench.restore(&safety).unwrap();
    assert!(bench.capture().same_as(&safety, &[]).unwrap());
    bench.fsck();
}

#[test]
fn unchanged_files_keep_their_mtime_and_inode() {
    let bench = Bench::with_commit();
    bench.write("same", "x");
    bench.write("other", "1");
    let stored = bench.checkpoint();
    let stat = || {
        bench
            .path("same")
            .metadata()
            .map(|stat| (stat.ino(), stat.mtime_nsec(), stat.ctime_nsec()))
            .unwrap()
    };
    let before = stat();
    bench.write("other", "2");
    let (_, plan, _) = bench.restore(&stored).unwrap();
    assert_eq!(stat(), before);
    assert_eq!(plan.write.len(), 1);
}

#[test]
fn ignored_files_of_now_or_then_are_kept() {
    let bench = Bench::with_commit();
    bench.write(".gitignore", "*.then\n");
    bench.write("data.then", "precious");
    let stored = bench.checkpoint();
    bench.write(".gitignore", "*.now\n");
    bench.write("data.now", "precious");
    bench.write("new/cache.now", "precious");
    bench.write("new/file", "x");
    let (_, plan, done) = bench.restore(&stored).unwrap();
    for path in ["data.then", "data.now", "new/cache.now"] {
        assert_eq!(bench.read(path), b"precious", "{path}");
    }
    assert!(!bench.exists("new/file"));
    assert_eq!(plan.kept.len(), 1, "{:?}", plan.kept);
    assert_eq!(
        done.kept.len(),
        1,
        "the folder stays for what is in it: {:?}",
        done.kept
    );
}

#[test]
fn a_path_that_is_ignored_now_is_captured_before_it_is_restored() {
    let bench = Bench::with_commit();
    bench.write("config", "then");
    let stored = bench.checkpoint();
    bench.write(".gitignore", "config\n");
    bench.write("config", "now");
    let (safety, _, _) = bench.restore(&stored).unwrap();
    assert_eq!(bench.read("config"), b"then");
    bench.restore(&safety).unwrap();
    assert_eq!(bench.read("config"), b"now");
}

#[test]
fn something_uncaptured_in_the_way_is_refused_before_anything_is_written() {
    let bench = Bench::with_commit();
    bench.write("place", "a file");
    bench.write("other", "1");
    let stored = bench.checkpoint();
    fs::remove_file(bench.path("place")).unwrap();
    bench.write(".git/info/exclude", "*.o\n");
    bench.write("place/build.o", "ignored");
    bench.write("other", "2");
    let error = bench.restore(&stored).unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(bench.read("other"), b"2");
    assert_eq!(bench.read("place/build.o"), b"ignored");
}

#[test]
fn an_edit_made_meanwhile_is_never_lost() {
    let bench = Bench::with_commit();
    bench.write("a", "1");
    bench.write("b", "1");
    let stored = bench.checkpoint();
    bench.write("a", "2");
    bench.write("b", "2");
    let mut plan = RestorePlan::default();
    let error = bench
        .restore_with(&stored, &Selection::all(), &mut |planned, _| {
            plan = planned.clone();
            bench.write("b", "3");
        })
        .unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(
        (bench.read("a"), bench.read("b")),
        (b"2".to_vec(), b"3".to_vec())
    );
    // The caller reverts what was done.
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    let done = repo
        .execute_restore(&lock, &plan.invert(), Expect::CutOff, &|| false)
        .unwrap();
    assert_eq!(
        (bench.read("a"), bench.read("b")),
        (b"2".to_vec(), b"3".to_vec())
    );
    assert_eq!(done.kept.len(), 1);
}

#[test]
fn new_and_deleted_meanwhile_are_noticed() {
    let bench = Bench::with_commit();
    bench.write("a", "1");
    let stored = bench.checkpoint();
    fs::remove_file(bench.path("a")).unwrap();
    bench.write("b", "1");
    for (path, content) in [("a", "made"), ("b", "edited")] {
        let result = bench.restore_with(&stored, &Selection::all(), &mut |_, _| {
            bench.write(path, content);
        });
        assert!(matches!(result, Err(Error::Conflict { .. })), "{path}");
        assert_eq!(bench.read(path), content.as_bytes());
        bench.write("b", "1");
        let _ = fs::remove_file(bench.path("a"));
    }
}

#[test]
fn a_symlink_put_in_the_place_of_a_folder_leads_nowhere() {
    let bench = Bench::with_commit();
    let outside = bench.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    bench.write("folder/file", "1");
    bench.write("folder/gone", "1");
    let stored = bench.checkpoint();
    bench.write("folder/file", "2");
    let result = bench.restore_with(&stored, &Selection::all(), &mut |_, _| {
        fs::rename(bench.path("folder"), bench.path("moved")).unwrap();
        symlink(&outside, bench.path("folder")).unwrap();
    });
    assert!(
        matches!(
            result,
            Err(Error::UnsafePath { .. } | Error::Conflict { .. })
        ),
        "{result:?}"
    );
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // Captured as a link, it is replaced like any other.
    fs::remove_dir_all(bench.path("moved")).unwrap();
    bench.restore(&stored).unwrap();
    assert_eq!(bench.read("folder/gone"), b"1");
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"outside");
}

#[test]
fn names_of_the_repository_are_refused_before_any_write() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    let blob = ObjectId(bench.git(&["rev-parse", "HEAD:base"]).trim().to_owned());
    let write = |path: &str| PlannedWrite {
        path: RepoPath::from(path),
        from: None,
        entry: Entry {
            kind: EntryKind::File,
            oid: blob.clone(),
            mode: 0o644,
        },
    };
    for path in [
        ".git/hooks/x",
        ".GIT/x",
        "a/git~1",
        "../x",
        "a/./b",
        ".g\u{200c}it/x",
        "a//b",
    ] {
        let plan = RestorePlan {
            write: vec![write("first"), write(path)],
            ..RestorePlan::default()
        };
        let error = repo
            .execute_restore(&lock, &plan, Expect::Captured, &|| false)
            .unwrap_err();
        assert!(matches!(error, Error::UnsafePath { .. }), "{path}: {error}");
        assert!(!bench.exists("first"));
    }
}

#[test]
fn a_selection_touches_nothing_else() {
    let bench = Bench::with_commit();
    bench.write("src/a", "1");
    bench.write("docs/a", "1");
    let stored = bench.checkpoint();
    bench.write("src/a", "2");
    bench.write("src/b", "2");
    bench.write("docs/a", "2");
    bench
        .restore_with(
            &stored,
            &Selection::globs(&["src"]).unwrap(),
            &mut |_, _| {},
        )
        .unwrap();
    assert_eq!(
        (bench.read("src/a"), bench.read("docs/a")),
        (b"1".to_vec(), b"2".to_vec())
    );
    assert!(!bench.exists("src/b"));
}

#[test]
fn nested_and_oversized_are_kept() {
    let mut bench = Bench::with_commit();
    let stored = bench.checkpoint();
    bench.write("clone/file", "x");
    Bench::git_in(&bench.path("clone"), &["init", "-q"]).unwrap();
    bench.write("new/large", "more than ten bytes");
    bench.rules.max_file_size = 10;
    let (_, plan, done) = bench.restore(&stored).unwrap();
    assert_eq!(bench.read("clone/file"), b"x");
    assert!(bench.exists("new/large"));
    let kept = plan
        .kept
        .iter()
        .chain(&done.kept)
        .map(|kept| kept.path.clone())
        .collect::<Vec<_>>();
    assert!(kept.contains(&RepoPath::from("new")), "{kept:?}");
}

#[test]
fn a_restore_that_was_cut_off_is_finished_or_reverted() {
    let bench = Bench::with_commit();
    bench.write("a", "1");
    bench.write("kind", "file");
    let stored = bench.checkpoint();
    bench.write("a", "2");
    fs::remove_file(bench.path("kind")).unwrap();
    bench.write("kind/inside", "folder");
    bench.write("z/new", "new");
    let mut plan = RestorePlan::default();
    // Cut off after the deletions.
    let safety = bench.checkpoint();
    let _ = bench.restore_with(&stored, &Selection::all(), &mut |planned, _| {
        plan = planned.clone();
    });
    bench.restore(&safety).unwrap();
    for finish in [false, true] {
        fs::remove_file(bench.path("kind/inside")).unwrap();
        let repo = bench.repo();
        let lock = Bench::lock(&repo);
        let then = if finish { plan.clone() } else { plan.invert() };
        let done = repo
            .execute_restore(&lock, &then, Expect::CutOff, &|| false)
            .unwrap();
        assert!(done.kept.is_empty(), "{:?}", done.kept);
        drop(lock);
        let expected = if finish { &stored } else { &safety };
        assert!(
            bench.capture().same_as(expected, &[]).unwrap(),
            "finish: {finish}"
        );
    }
}

#[test]
fn the_journal_is_kept_until_it_is_removed_and_temp_files_are_reaped() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    assert_eq!(repo.restore_journal().unwrap(), None);
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    bench.write(format!(".recover-tmp-{}-1", dead.id()), "half");
    bench.write(".recover-tmp-1-1", "a living process's");
    bench.write(".recover-tmp-x", "the user's");
    let entry = Entry {
        kind: EntryKind::File,
        oid: ObjectId("0".repeat(40)),
        mode: 0o644,
    };
    let write = PlannedWrite {
        path: RepoPath::new(b"x\xff".to_vec()),
        from: None,
        entry,
    };
    let plan = RestorePlan {
        write: vec![write],
        ..RestorePlan::default()
    };
    let id = ObjectId("1".repeat(40));
    let journal = RestoreJournal {
        version: RestoreJournal::VERSION,
        operation_id: "op".into(),
        kind: "rollback".into(),
        safety_commit: id.clone(),
        target_commit: id,
        selection: vec!["src".into()],
        plan: plan.clone(),
        kept: vec![],
        head_before: Head::default(),
        head_after: None,
        restore_index: false,
        index_paths: Vec::new(),
        context: serde_json::json!({"run": "r"}),
    };
    repo.write_restore_journal(&lock, &journal).unwrap();
    assert_eq!(repo.restore_journal().unwrap(), Some(journal));
    assert_eq!(repo.reap_temp_files(&lock, &plan).unwrap(), 1);
    assert!(bench.exists(".recover-tmp-1-1") && bench.exists(".recover-tmp-x"));
    repo.remove_restore_journal(&lock).unwrap();
    assert_eq!(repo.restore_journal().unwrap(), None);
    fs::write(
        repo.recover_dir().unwrap().join("journal.json"),
        "{\"version\":99}",
    )
    .unwrap();
    assert!(matches!(repo.restore_journal(), Err(Error::Newer(_))));
    fs::write(repo.recover_dir().unwrap().join("journal.json"), "").unwrap();
    assert!(matches!(repo.restore_journal(), Err(Error::Corrupt(_))));
}

#[test]
fn a_folder_that_is_ignored_now_is_captured_as_far_as_it_is_written() {
    let bench = Bench::with_commit();
    bench.write("out/a/file", "then");
    bench.write("out/b", "then");
    let stored = bench.checkpoint();
    bench.write(".git/info/exclude", "out/\n");
    bench.write("out/a/file", "now");
    bench.write("out/cache", "precious");
    fs::remove_file(bench.path("out/b")).unwrap();
    let (safety, _, _) = bench.restore(&stored).unwrap();
    assert_eq!(
        (bench.read("out/a/file"), bench.read("out/b")),
        (b"then".to_vec(), b"then".to_vec())
    );
    assert_eq!(bench.read("out/cache"), b"precious");
    bench.restore(&safety).unwrap();
    assert_eq!(bench.read("out/a/file"), b"now");
    assert_eq!(bench.read("out/cache"), b"precious");
}

#[test]
fn a_restore_without_room_is_refused_before_anything_is_written() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let free = rustix::fs::statvfs(&bench.root).unwrap();
    // Many paths of one large blob: the room they need is counted, not their objects.
    let size = 40 << 20;
    bench.write("large", vec![0_u8; size]);
    let stored = bench.checkpoint();
    let entry = stored.snapshot(&repo).unwrap().entries[&RepoPath::from("large")].clone();
    // Twice as much, as others may free some meanwhile.
    let count = free.f_bavail * free.f_frsize / size as u64 * 2 + 2;
    let write = |n| PlannedWrite {
        path: RepoPath::from(format!("copy/{n:06}").as_str()),
        from: None,
        entry: entry.clone(),
    };
    let plan = RestorePlan {
        write: (0..count).map(write).collect(),
        ..RestorePlan::default()
    };
    let error = repo.check_restore(&plan, &[]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NoSpace {
                needed: Some(_),
                ..
            }
        ),
        "{error}"
    );
    assert!(!bench.exists("copy"));
}

#[test]
fn a_symlink_to_a_folder_is_never_followed_by_a_capture() {
    let bench = Bench::with_commit();
    bench.write("real/file", "x");
    bench.commit("folder");
    fs::rename(bench.path("real"), bench.folder.path().join("outside")).unwrap();
    symlink(bench.folder.path().join("outside"), bench.path("real")).unwrap();
    let snapshot = bench.capture().snapshot().unwrap();
    assert_eq!(
        snapshot.entries[&RepoPath::from("real")].kind,
        EntryKind::Symlink
    );
    assert!(!snapshot.entries.contains_key(&RepoPath::from("real/file")));
}

/// Only the empty folder differs: what is beside it is the same in both, and the folder that holds them all stays.
#[test]
fn an_empty_folder_beside_what_stays_comes_and_goes_alone() {
    let bench = Bench::with_commit();
    bench.write("holds/deep/file", "x");
    let without = bench.checkpoint();
    fs::create_dir(bench.path("holds/deep/empty")).unwrap();
    let with = bench.checkpoint();
    let (_, plan, done) = bench.restore(&without).unwrap();
    assert_eq!(plan.remove_dirs.len(), 1, "{plan:?}");
    assert!(done.kept.is_empty() && !bench.path("holds/deep/empty").exists());
    let (_, plan, _) = bench.restore(&with).unwrap();
    assert_eq!(plan.make_dirs.len(), 1, "{plan:?}");
    assert!(bench.path("holds/deep/empty").is_dir());
}

// Taking back needs no space for what was not changed yet.
#[test]
fn what_is_right_already_is_not_written_again_after_a_cut() {
    let bench = Bench::with_commit();
    bench.write("file", "1");
    let then = bench.checkpoint();
    bench.write("file", "2");
    let (_, plan, _) = bench.restore(&then).unwrap();
    let inode =
        || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(bench.path("file")).unwrap());
    let before = inode();
    let repo = bench.repo();
    let done = repo
        .execute_restore(&Bench::lock(&repo), &plan, Expect::CutOff, &|| false)
        .unwrap();
    assert_eq!(
        (done.written, inode()),
        (vec![RepoPath::from("file")], before)
    );
}

#[test]
fn one_conflict_among_many_files_leaves_nothing_half_way() {
    let bench = Bench::with_commit();
    let path = |n: usize| format!("d{}/f{n:03}", n / 50);
    let all = || (0..600).map(path);
    let content = |n: usize, time: &str| format!("{time} {n}\n").repeat(n % 7 + 1);
    (0..600).for_each(|n| bench.write(path(n), content(n, "then")));
    let stored = bench.checkpoint();
    // Some are overwritten, some made again.
    for n in 0..600 {
        if n % 5 == 0 {
            fs::remove_file(bench.path(path(n))).unwrap();
        } else {
            bench.write(path(n), content(n, "now"));
        }
    }
    let before: Vec<_> = all().map(|path| fs::read(bench.path(path)).ok()).collect();
    let temps = || {
        let mut open = vec![bench.root.clone()];
        let mut names = BTreeSet::new();
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path());
                }
                names.extend(
                    entry
                        .file_name()
                        .into_string()
                        .ok()
                        .filter(|name| name.contains("recover-tmp")),
                );
            }
        }
        names
    };
    // In the first and the last half, by each of the threads.
    for changed in [451, 599, 101] {
        let mut plan = RestorePlan::default();
        let error = bench
            .restore_with(&stored, &Selection::all(), &mut |planned, _| {
                plan = planned.clone();
                bench.write(path(changed), "edited meanwhile");
            })
            .unwrap_err();
        assert_eq!(plan.write.len(), 600);
        assert!(
            matches!(&error, Error::Conflict { paths } if paths[0].path.to_lossy() == path(changed)),
            "{error}"
        );
        for n in (0..600).filter(|n| *n != changed) {
            let found = fs::read(bench.path(path(n))).ok();
            assert!(
                found == before[n] || found == Some(content(n, "then").into_bytes()),
                "{n} is half-way"
            );
        }
        assert_eq!(temps(), BTreeSet::new());
        // The caller reverts what was done.
        let repo = bench.repo();
        let done = repo
            .execute_restore(&Bench::lock(&repo), &plan.invert(), Expect::CutOff, &|| {
                false
            })
            .unwrap();
        assert_eq!(
            done.kept
                .iter()
                .map(|kept| kept.path.to_lossy().into_owned())
                .collect::<Vec<_>>(),
            [path(changed)]
        );
        assert_eq!(bench.read(path(changed)), b"edited meanwhile");
        bench.write(path(changed), before[changed].as_ref().unwrap());
        let after: Vec<_> = all().map(|path| fs::read(bench.path(path)).ok()).collect();
        assert!(after == before);
        assert_eq!(temps(), BTreeSet::new());
    }
    bench.restore(&stored).unwrap();
    (0..600).for_each(|n| assert_eq!(bench.read(path(n)), content(n, "then").into_bytes()));
    assert_eq!(temps(), BTreeSet::new());
}
