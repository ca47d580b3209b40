//! Objects go with the last checkpoint that held them, and with nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use recover::testing::git::Discarded;
use recover::testing::git::StoredCheckpoint;

use crate::bench::Bench;
use crate::loosen::loosen;

type Steps<'s> = &'s [&'s [&'s str]];

/// Content of one checkpoint only.
const ONLY: &str = "only this one has it\n";

fn prune(bench: &Bench, gone: &StoredCheckpoint) -> Discarded {
    bench.prune(std::slice::from_ref(&gone.commit))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            all.extend(files(&entry.path()));
        } else {
            all.push(entry.path());
        }
    }
    all
}

fn size(bench: &Bench) -> u64 {
    files(&bench.path(".git/objects"))
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum()
}

/// As if the objects had been touched long ago.
fn grow_old(bench: &Bench, folder: &str) {
    for path in files(&bench.path(folder)) {
        let old = SystemTime::now() - Duration::from_secs(2 * 86_400);
        fs::File::open(path).unwrap().set_modified(old).unwrap();
    }
}

fn id_of(bench: &Bench, content: &str) -> String {
    bench.write(".git/x", content);
    bench.git(&["hash-object", ".git/x"]).trim().to_owned()
}

fn is_there(bench: &Bench, content: &str) -> bool {
    Bench::git_in(&bench.root, &["cat-file", "-e", &id_of(bench, content)]).is_ok()
}

#[test]
fn what_only_the_removed_one_held_is_gone_and_the_disk_has_room_again() {
    let bench = Bench::with_commit();
    bench.write("f", ONLY);
    bench.write("both", "shared");
    let first = bench.checkpoint();
    bench.write("f", "later");
    let second = bench.checkpoint();
    let between = size(&bench);
    let done = prune(&bench, &first);
    assert!(
        done.objects >= 3 && done.bytes > 0 && done.left.is_none(),
        "{done:?}"
    );
    assert_eq!(size(&bench), between - done.bytes);
    assert!(!is_there(&bench, ONLY) && is_there(&bench, "shared") && is_there(&bench, "later"));
    assert_eq!(second.verify(&bench.repo()).unwrap(), Vec::<String>::new());
    bench.write("f", "changed");
    bench.restore(&second).unwrap();
    assert_eq!(bench.read("f"), b"later");

    // What was shared goes with the last one that held it.
    let bench = Bench::with_commit();
    let before = size(&bench);
    bench.write("both", "shared");
    let first = bench.checkpoint();
    bench.write("more", "more");
    let second = bench.checkpoint();
    prune(&bench, &first);
    assert!(is_there(&bench, "shared"));
    prune(&bench, &second);
    assert!(!is_there(&bench, "shared"));
    assert_eq!(size(&bench), before);
    assert_eq!(
        files(&bench.path(".git/recover/written")),
        Vec::<PathBuf>::new()
    );
}

#[test]
fn what_the_user_refers_to_stays() {
    let git = |bench: &Bench, all: &[&[&str]]| all.iter().for_each(|args| drop(bench.git(args)));
    let commit: &[&str] = &["commit", "-qam", "mine"];
    let add: &[&str] = &["add", "f"];
    let cases: [(&str, Steps<'_>); 8] = [
        ("commit", &[add, commit]),
        ("staged", &[add]),
        ("stash", &[add, &["stash", "-q"]]),
        (
            "reflog",
            &[add, commit, &["reset", "-q", "--hard", "HEAD~1"]],
        ),
        (
            "tag",
            &[
                add,
                commit,
                &["tag", "-a", "t", "-m", "t"],
                &["update-ref", "-d", "refs/heads/main"],
            ],
        ),
        ("note", &[&["notes", "add", "-F", "f", "HEAD"]]),
        (
            "packed",
            &[
                add,
                commit,
                &["pack-refs", "--all"],
                &["reflog", "expire", "--expire=now", "--all"],
            ],
        ),
        (
            "worktree",
            &[
                add,
                commit,
                &["worktree", "add", "-q", "--detach", "../w"],
                &["update-ref", "-d", "HEAD"],
            ],
        ),
    ];
    for (name, steps) in cases {
        let bench = Bench::with_commit();
        bench.write("f", ONLY);
        bench.write("other", name);
        let checkpoint = bench.checkpoint();
        git(&bench, steps);
        grow_old(&bench, ".git/objects");
        let done = prune(&bench, &checkpoint);
        assert!(is_there(&bench, ONLY), "{name}");
        assert!(done.objects > 0 && done.left.is_none(), "{name}: {done:?}");
        assert!(!is_there(&bench, name), "{name}");
    }
}

#[test]
fn a_conflict_and_the_index_of_another_worktree_keep_what_they_name() {
    let bench = Bench::with_commit();
    bench.git(&["worktree", "add", "-q", "../linked"]);
    bench.write("f", ONLY);
    bench.write("g", "staged elsewhere");
    let checkpoint = bench.checkpoint();
    let line = format!("100644 {} 2\tbase\n", id_of(&bench, ONLY));
    fs::write(bench.path(".git/info-line"), line).unwrap();
    bench.git(&["rm", "-q", "--cached", "base"]);
    let shell = "git update-index --index-info < .git/info-line";
    assert!(
        std::process::Command::new("sh")
            .args(["-c", shell])
            .current_dir(&bench.root)
            .status()
            .unwrap()
            .success()
    );
    let info = format!("100644,{},g", id_of(&bench, "staged elsewhere"));
    Bench::git_in(
        &bench.root.join("../linked"),
        &["update-index", "--add", "--cacheinfo", &info],
    )
    .unwrap();
    grow_old(&bench, ".git/objects");
    let done = prune(&bench, &checkpoint);
    assert!(done.objects > 0, "{done:?}");
    assert!(is_there(&bench, ONLY) && is_there(&bench, "staged elsewhere"));
}

#[test]
fn a_large_pack_goes_whole_or_not_at_all() {
    let files = |bench: &Bench| {
        (0..2100).for_each(|number| bench.write(format!("d/{number}"), format!("{number} new")));
    };
    for shared in [false, true] {
        let bench = Bench::with_commit();
        let before = size(&bench);
        files(&bench);
        let first = bench.checkpoint();
        assert!(bench.git(&["count-objects", "-v"]).contains("packs: 1\n"));
        let second = shared.then(|| {
            fs::remove_dir_all(bench.path("d")).unwrap();
            bench.write("one", "7 new");
            bench.checkpoint()
        });
        let done = prune(&bench, &first);
        assert_eq!(
            (done.objects > 2100, is_there(&bench, "8 new")),
            (!shared, shared),
            "{done:?}"
        );
        if let Some(second) = second {
            assert_eq!(second.verify(&bench.repo()).unwrap(), Vec::<String>::new());
            prune(&bench, &second);
        }
        assert_eq!(size(&bench), before);
    }
}

#[test]
fn what_a_cut_off_removal_left_is_taken_up_and_a_checkpoint_in_the_making_is_not() {
    let bench = Bench::with_commit();
    bench.write("f", ONLY);
    let checkpoint = bench.checkpoint();
    assert_eq!(
        bench.discard(std::slice::from_ref(&checkpoint.commit)),
        Discarded::default(),
        "it is named"
    );
    bench.remove_refs(std::slice::from_ref(&checkpoint.commit));
    assert_eq!(
        bench.discard(&[]),
        Discarded::default(),
        "it may be in the making"
    );
    assert!(is_there(&bench, ONLY));
    grow_old(&bench, ".git/recover/written");
    assert!(bench.discard(&[]).objects > 0 && !is_there(&bench, ONLY));
}

#[test]
fn what_was_touched_just_now_or_cannot_be_looked_through_stays() {
    let bench = Bench::with_commit();
    bench.write("f", ONLY);
    let checkpoint = bench.checkpoint();
    loosen(&bench.root);
    // git touches what it needs, and refers to it a moment later.
    bench.git(&["hash-object", "-w", "f"]);
    let done = prune(&bench, &checkpoint);
    assert!(done.objects > 0 && is_there(&bench, ONLY), "{done:?}");
    assert!(
        done.left.is_some_and(|why| why.contains("touched")),
        "what stays is said"
    );
    grow_old(&bench, ".git/objects");
    assert!(bench.discard(&[]).objects == 1 && !is_there(&bench, ONLY));

    let checkpoint = bench.checkpoint();
    bench.write("g", "g");
    bench.commit("mine");
    bench.write("g", "h");
    bench.commit("another");
    let tree = bench.git(&["rev-parse", "HEAD~1^{tree}"]).trim().to_owned();
    let path = bench.path(format!(".git/objects/{}/{}", &tree[..2], &tree[2..]));
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    bench.remove_refs(std::slice::from_ref(&checkpoint.commit));
    let done = bench.discard(std::slice::from_ref(&checkpoint.commit));
    assert!(done.objects == 0 && done.left.is_some(), "{done:?}");
    fs::write(&path, whole).unwrap();
    grow_old(&bench, ".git/objects");
    assert!(
        bench.discard(&[]).objects > 0 && is_there(&bench, ONLY),
        "committed by now"
    );
    bench.fsck();

    // Nothing goes while somebody counts on what is there.
    bench.write("f", "new");
    let checkpoint = bench.checkpoint().commit;
    let gone = std::slice::from_ref(&checkpoint);
    bench.remove_refs(gone);
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    let capture = repo.capture(&lock, &bench.rules, &BTreeSet::new());
    assert!(repo.discard_objects(&lock, gone).left.is_some());
    drop((capture, lock));
    assert!(bench.discard(gone).objects > 0);
}

#[test]
fn many_removed_at_once_are_each_settled_once() {
    let bench = Bench::with_commit();
    let mut made = Vec::new();
    for number in 0..60 {
        bench.write("f", format!("{number}\n"));
        made.push(bench.checkpoint().commit);
    }
    // So many names are not read from the folder at once.
    for number in 0..2000 {
        bench.write(
            format!(".git/recover/written/{}-{number}", "of-no-list".repeat(4)),
            "",
        );
    }
    bench.remove_refs(&made);
    let done = bench.discard(&made);
    assert!(done.left.is_none() && done.objects > 300, "{done:?}");
}
