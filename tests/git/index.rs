use std::time::Duration;

use recover::git::Error;
use recover::git::index::{index_is, refresh_index, restore_index};
use recover::model::path::RepoPath;

use crate::bench::Bench;

const WAIT: Duration = Duration::from_millis(50);

fn staged(bench: &Bench) -> String {
    bench.git(&["ls-files", "--stage", "-v", "-t"]) + &bench.git(&["diff", "--cached", "--raw", "--no-renames"])
}

#[test]
fn conflicts_intent_to_add_and_flags_come_back() {
    let bench = Bench::with_commit();
    bench.write("assumed", "1");
    bench.write("skipped", "1");
    bench.commit("files");
    bench.git(&["checkout", "-q", "-b", "other"]);
    bench.write("base", "other\n");
    bench.commit("other");
    bench.git(&["checkout", "-q", "main"]);
    bench.write("base", "main\n");
    bench.commit("main");
    assert!(Bench::git_in(&bench.root, &["merge", "other"]).is_err());
    bench.write("intent", "x");
    bench.write("only staged", "x");
    bench.git(&["add", "-N", "intent"]);
    bench.git(&["add", "only staged"]);
    std::fs::remove_file(bench.path("only staged")).unwrap();
    bench.git(&["update-index", "--assume-unchanged", "assumed"]);
    bench.git(&["update-index", "--skip-worktree", "skipped"]);
    let before = (staged(&bench), bench.git(&["status", "--porcelain"]));
    let stored = bench.checkpoint();
    bench.git(&["read-tree", "HEAD"]);
    bench.git(&["gc", "-q", "--prune=now"]);
    bench.git(&["add", "-A"]);
    assert_ne!(staged(&bench), before.0);
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    restore_index(&repo, &lock, &stored, WAIT).unwrap();
    assert_eq!((staged(&bench), bench.git(&["status", "--porcelain"])), before);
    bench.git(&["checkout", "-m", "base"]);
    assert!(!bench.exists(".git/index.lock"));
    bench.fsck();
}

// A merge of a file on one side with a folder on the other may leave both in the index, in different stages.
#[test]
fn a_file_beside_a_conflict_in_a_folder_of_its_name_comes_back() {
    let bench = Bench::with_commit();
    let id = |content: &str| {
        bench.write("content", content);
        bench.git(&["hash-object", "-w", "content"]).trim().to_owned()
    };
    let (one, two, three) = (id("1"), id("2"), id("3"));
    std::fs::remove_file(bench.path("content")).unwrap();
    let lines = format!(
        "100644 {one} 0\tb\n100644 {one} 1\tb/x\n100644 {two} 2\tb/x\n100755 {three} 3\tb/x\n\
         100644 {two} 2\tc\n100644 {three} 0\tc/deep/y\n100644 {one} 0\td\n100644 {two} 3\td/deep/z\n"
    );
    bench.write("lines", lines);
    let lines = std::fs::File::open(bench.path("lines")).unwrap();
    let mut command = std::process::Command::new("git");
    command.current_dir(&bench.root).args(["update-index", "--index-info"]).stdin(lines);
    assert!(command.status().unwrap().success());
    std::fs::remove_file(bench.path("lines")).unwrap();
    let before = bench.git(&["ls-files", "-s"]);
    assert_eq!(before.lines().count(), 9, "{before}");
    let stored = bench.checkpoint();
    bench.git(&["read-tree", "HEAD"]);
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    assert!(!index_is(&repo, &stored).unwrap());
    restore_index(&repo, &lock, &stored, WAIT).unwrap();
    assert_eq!(bench.git(&["ls-files", "-s"]), before);
    assert!(index_is(&repo, &stored).unwrap());
    // An index that differs in the file alone is another one.
    bench.git(&["update-index", "--force-remove", "b"]);
    assert!(!index_is(&repo, &stored).unwrap());
}

#[test]
fn refreshed_entries_need_no_reading() {
    let bench = Bench::with_commit();
    let stored = bench.checkpoint();
    bench.write("base", "changed\n");
    let (_, _, done) = bench.restore(&stored).unwrap();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    assert_ne!(bench.git(&["diff-files"]), "", "stat data differ before");
    refresh_index(&repo, &lock, &done.written, WAIT).unwrap();
    assert_eq!(bench.git(&["diff-files"]), "");
}

#[test]
fn a_foreign_lock_is_waited_for_and_kept_but_our_own_is_not_left() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    bench.write(".git/index.lock", "");
    let error = refresh_index(&repo, &lock, &[RepoPath::from("base")], WAIT).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(bench.exists(".git/index.lock"));
    drop(lock);
    drop(Bench::lock(&repo));
    assert!(bench.exists(".git/index.lock"), "not ours");
    std::fs::remove_file(bench.path(".git/index.lock")).unwrap();
    // A process of ours died while it held the lock.
    let (mark, held) = (bench.path(".git/recover/holds-index"), bench.path(".git/index.lock"));
    std::fs::write(&mark, held.as_os_str().as_encoded_bytes()).unwrap();
    std::fs::hard_link(&mark, &held).unwrap();
    let lock = Bench::lock(&repo);
    assert!(!held.exists() && !mark.exists());
    refresh_index(&repo, &lock, &[RepoPath::from("base")], WAIT).unwrap();
    assert!(!held.exists() && !mark.exists());
}

#[test]
fn an_index_that_was_not_there_is_removed_again() {
    let bench = Bench::new();
    bench.write("a", "1");
    let stored = bench.checkpoint();
    bench.git(&["add", "a"]);
    let repo = bench.repo();
    restore_index(&repo, &Bench::lock(&repo), &stored, WAIT).unwrap();
    assert_eq!(bench.git(&["status", "--porcelain"]), "?? a\n");
}
