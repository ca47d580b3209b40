//! HEAD, branches and commits, as `git log` and `git reflog` see them.

use recover::testing::git::Error;
use recover::testing::git::resolve;

use crate::bench::Bench;

#[test]
fn unborn_and_detached_heads_are_captured() {
    let bench = Bench::new();
    bench.write("a", "1");
    let stored = bench.checkpoint();
    assert_eq!(
        stored.manifest.head.branch.as_deref(),
        Some("refs/heads/main")
    );
    assert_eq!(stored.manifest.head.commit, None);
    bench.write("a", "2");
    bench.restore(&stored).unwrap();
    assert_eq!(bench.read("a"), b"1");
    bench.commit("first");
    bench.git(&["checkout", "-q", "--detach"]);
    assert!(bench.checkpoint().manifest.head.branch.is_none());
}

#[test]
fn an_operation_in_progress_is_noted() {
    let bench = Bench::with_commit();
    bench.merge_in_conflict("base");
    assert_eq!(
        bench.checkpoint().manifest.operation.as_deref(),
        Some("merge")
    );
}

#[test]
fn a_branch_is_moved_only_from_where_it_was_seen() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    let base = resolve(&repo, "HEAD").unwrap();
    bench.commit("one");
    bench.commit("two");
    let seen = repo.head().unwrap();
    let head = seen.commit.clone().unwrap();
    let commits = repo.commits_between(Some(&base), &head).unwrap();
    assert_eq!((commits.len(), &commits[0]), (2, &head));
    assert!(repo.is_ancestor(&base, &head).unwrap() && !repo.is_ancestor(&head, &base).unwrap());
    bench.commit("three");
    let error = repo
        .move_branch(&lock, &seen, Some(&base), "recover: rollback")
        .unwrap_err();
    assert!(matches!(error, Error::HeadMoved { .. }), "{error}");
    assert_eq!(bench.git(&["log", "-1", "--format=%s"]), "three\n");
    repo.move_branch(
        &lock,
        &repo.head().unwrap(),
        Some(&base),
        "recover: rollback",
    )
    .unwrap();
    assert_eq!(bench.git(&["log", "-1", "--format=%s"]), "base\n");
    assert!(
        bench
            .git(&["reflog", "-1", "main"])
            .contains("recover: rollback")
    );
    assert!(
        bench
            .git(&["reflog", "-1", "HEAD"])
            .contains("recover: rollback")
    );
    assert_eq!(bench.git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert!(!bench.exists(".git/HEAD.lock"));
    bench.git(&["checkout", "-q", "--detach"]);
    repo.move_branch(
        &lock,
        &repo.head().unwrap(),
        Some(&head),
        "recover: rollback",
    )
    .unwrap();
    assert_eq!(bench.git(&["rev-parse", "HEAD"]).trim(), head.0);
    assert_eq!(bench.git(&["rev-parse", "main"]).trim(), base.0);
    assert!(repo.head().unwrap().branch.is_none());
    bench.fsck();
}

#[test]
fn commits_that_others_may_have_are_told() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let base = resolve(&repo, "HEAD").unwrap();
    assert!(
        !repo
            .on_remote_tracking(std::slice::from_ref(&base))
            .unwrap()
    );
    bench.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    assert!(repo.on_remote_tracking(&[base]).unwrap());
}

#[test]
fn a_revert_is_one_commit_on_top() {
    let bench = Bench::with_commit();
    let stored = bench.checkpoint();
    bench.write("base", "broken");
    bench.commit("broken");
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    let seen = repo.head().unwrap();
    let top = repo
        .commit_on_top(
            &lock,
            &stored.tree,
            seen.commit.as_ref(),
            "Revert to a checkpoint\n",
        )
        .unwrap();
    repo.move_branch(&lock, &seen, Some(&top), "recover: revert")
        .unwrap();
    assert_eq!(bench.git(&["log", "-1", "--format=%an"]), "A\n");
    assert_eq!(bench.git(&["show", "HEAD:base"]), "base\n");
}
