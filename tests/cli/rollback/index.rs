//! git's index: what a run staged goes back with its files, what a person staged stays. git itself is the judge.

use std::collections::BTreeMap;

use crate::env::TestEnv;
use crate::seen::{assert_clean, checkpoint};

fn staged(env: &TestEnv) -> String {
    env.git(&["diff", "--cached", "--name-status", "--no-renames"])
}

fn entries(env: &TestEnv) -> String {
    env.git(&["ls-files", "-s", "-t"])
}

// What an attempt that was rolled back staged is not in the next attempt's commit.
#[test]
fn what_a_rolled_back_attempt_staged_is_not_committed_by_the_next() {
    let env = TestEnv::repo();
    env.script(
        "../agent.sh",
        "if [ $RECOVER_ATTEMPT = 1 ]; then echo x > evil.txt; echo broken > a.txt; git add -A; exit 1; fi\n\
         echo b > new.txt; git add new.txt; git commit -qm second",
    );
    env.json(
        0,
        &[
            "run",
            "--attempts",
            "2",
            "--on-failure",
            "rollback",
            "--",
            "../agent.sh",
        ],
    );
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "new.txt\n"
    );
    assert_clean(&env);
}

// The same for an iteration that was given up.
#[test]
fn what_a_given_up_iteration_staged_is_unstaged() {
    let env = TestEnv::repo();
    env.script(
        "../agent.sh",
        "if [ $RECOVER_ITERATION = 1 ]; then echo x > evil.txt; git rm -q --cached a.txt; git add evil.txt; exit 0; fi\n\
         echo b > new.txt; git add new.txt; git commit -qm second",
    );
    let args = [
        "run",
        "--iterations",
        "2",
        "--attempts",
        "1",
        "--feedback",
        "t=test ! -e evil.txt",
    ];
    env.json(8, &[&args[..], &["--", "../agent.sh"]].concat());
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "new.txt\n"
    );
    assert_eq!(staged(&env), "");
}

// A submodule that an attempt added leaves nothing that keeps the next one from adding it.
#[test]
fn a_submodule_of_a_rolled_back_attempt_is_no_obstacle() {
    let env = TestEnv::repo();
    env.sh("git clone -q . ../lib").expect(0);
    env.script(
        "../agent.sh",
        "git -c protocol.file.allow=always submodule add -q ../lib vendor/lib || exit 7\n[ $RECOVER_ATTEMPT = 2 ]",
    );
    env.json(
        0,
        &[
            "run",
            "--attempts",
            "2",
            "--on-failure",
            "rollback",
            "--",
            "../agent.sh",
        ],
    );
    assert_eq!(staged(&env), "A\t.gitmodules\nA\tvendor/lib\n");
}

// What a person staged since the run's last checkpoint stays, partly staged files included; the numbers are said.
#[test]
fn what_a_person_staged_stays() {
    let env = TestEnv::repo();
    env.write("b.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-qm", "b"]);
    checkpoint(&env);
    env.write("evil.txt", "x\n");
    env.write("b.txt", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    env.git(&["add", "evil.txt"]);
    checkpoint(&env);
    // As by `git add -p`: the first hunk alone.
    let blob = env
        .sh("printf 'one\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n' | git hash-object -w --stdin")
        .expect(0)
        .stdout;
    env.git(&[
        "update-index",
        "--cacheinfo",
        &format!("100644,{},b.txt", blob.trim()),
    ]);
    let before = entries(&env);
    let plan = env.json(0, &["rollback", "--to", "@1", "--dry-run"])["plan"].clone();
    assert_eq!(entries(&env), before);
    let result = env.json(0, &["rollback", "--to", "@1"])["result"].clone();
    assert_eq!(plan["index"], result["index"]);
    assert_eq!(
        (
            result["index"]["restored"].as_u64(),
            result["index"]["kept"].as_u64()
        ),
        (Some(1), Some(1)),
        "{result}"
    );
    assert_eq!(staged(&env), "M\tb.txt\n");
    assert_eq!(env.read("b.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    env.json(0, &["undo"]);
    assert_eq!(entries(&env), before);
    let text = env
        .recover(&["rollback", "--to", "@1", "--edits", "discard"])
        .expect(0)
        .stdout;
    assert!(text.contains("index: 2 paths restored\n"), "{text}");
    assert_eq!(staged(&env), "");
    env.json(0, &["undo"]);
    assert_eq!(entries(&env), before);
    env.json(0, &["redo"]);
    assert_eq!(staged(&env), "");
    assert_clean(&env);
}

// Paths alone, the working memory and files under another HEAD leave the index as it is.
#[test]
fn parts_and_another_head_leave_the_index() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("evil.txt", "x\n");
    env.git(&["add", "evil.txt"]);
    checkpoint(&env);
    for how in [["--path", "evil.txt"], ["--scope", "state"]] {
        env.json(0, &["rollback", "--to", "@1", how[0], how[1]]);
        assert_eq!(staged(&env), "A\tevil.txt\n");
    }
    env.write("b.txt", "b\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-qm", "mine", "b.txt"]);
    let result = env.json(
        0,
        &[
            "rollback",
            "--to",
            "@1",
            "--commits",
            "keep",
            "--edits",
            "discard",
        ],
    )["result"]
        .clone();
    assert_eq!(result["index"]["restored"], 0, "{result}");
    assert_eq!(staged(&env), "A\tevil.txt\n");
}

// Conflicts, intent-to-add, marks and deletions go back as well, in an index of any form.
#[test]
fn every_kind_of_entry_goes_back() {
    for form in [
        &[][..],
        &["update-index", "--split-index"],
        &["update-index", "--index-version", "4"],
    ] {
        let env = TestEnv::repo();
        env.write("d/f", "f\n");
        env.git(&["add", "-A"]);
        env.git(&["commit", "-qm", "d"]);
        if !form.is_empty() {
            env.git(form);
        }
        env.write("wip.txt", "w\n");
        env.git(&["add", "-N", "wip.txt"]);
        let (before, first) = (entries(&env), checkpoint(&env));
        let blob = env.git(&["rev-parse", "HEAD:a.txt"]);
        let line = |stage: u8| format!("100644 {} {stage}\tboth.txt\\n", blob.trim());
        let lines = [line(1), line(2), line(3)].concat();
        env.sh(&format!("printf '{lines}' | git update-index --index-info"))
            .expect(0);
        env.sh("git rm -q --cached a.txt; git add wip.txt; git update-index --skip-worktree d/f")
            .expect(0);
        checkpoint(&env);
        let after = entries(&env);
        let result = env.json(0, &["rollback", "--to", &first])["result"].clone();
        assert_eq!(entries(&env), before, "{form:?} {result}");
        assert_eq!(result["index"]["restored"], 4, "{result}");
        env.json(0, &["undo"]);
        assert_eq!(entries(&env), after, "{form:?}");
    }
}

// A file that is staged stays in the way of what a run had as a folder there: no index holds both.
#[test]
fn a_staged_file_and_a_folder_of_its_name_never_meet() {
    let env = TestEnv::repo();
    let blob = env.git(&["rev-parse", "HEAD:a.txt"]);
    let put = |path: &str| {
        env.git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("100644,{},{path}", blob.trim()),
        ])
    };
    put("x/y");
    checkpoint(&env);
    env.git(&["rm", "-q", "--cached", "x/y"]);
    checkpoint(&env);
    put("x");
    env.json(0, &["rollback", "--to", "@1"]);
    assert_eq!(staged(&env), "A\tx\n");
    env.git(&["write-tree"]);
}

// Random staging by a run and by a person, against the rule itself: an entry as the run left it gets the checkpoint's.
#[test]
fn random_staging_follows_the_rule() {
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let env = TestEnv::repo();
        let paths = ["a.txt", "b.txt", "c.txt", "d/e", "d/f"];
        let mut stage = |env: &TestEnv| {
            for path in paths {
                if rng.bool() {
                    continue;
                }
                if rng.u8(..3) == 0 {
                    env.git(&["rm", "-q", "-f", "--cached", "--ignore-unmatch", path]);
                    continue;
                }
                let blob = env
                    .sh(&format!(
                        "echo {} | git hash-object -w --stdin",
                        rng.u8(..3)
                    ))
                    .expect(0)
                    .stdout;
                env.git(&[
                    "update-index",
                    "--add",
                    "--cacheinfo",
                    &format!("100644,{},{path}", blob.trim()),
                ]);
            }
            let all = env.git(&["ls-files", "-s"]);
            let line = |line: &str| {
                line.split_once('\t')
                    .map(|(entry, path)| (path.to_owned(), entry.to_owned()))
            };
            all.lines()
                .filter_map(line)
                .collect::<BTreeMap<String, String>>()
        };
        let then = stage(&env);
        checkpoint(&env);
        let left = stage(&env);
        checkpoint(&env);
        let now = stage(&env);
        let all = env.git(&["ls-files", "-s"]);
        let changed = env.json(0, &["rollback", "--to", "@1"])["changed"] == true;
        let found = env.git(&["ls-files", "-s"]);
        for path in paths {
            let wanted = if now.get(path) == left.get(path) {
                then.get(path)
            } else {
                now.get(path)
            };
            let line = wanted.map(|entry| format!("{entry}\t{path}\n"));
            let is_there = found
                .lines()
                .any(|line| line.ends_with(&format!("\t{path}")));
            assert_eq!(line.is_some(), is_there, "seed {seed}, {path}: {found}");
            assert!(
                line.is_none_or(|line| found.contains(&line)),
                "seed {seed}, {path}: {found}"
            );
        }
        if changed {
            env.json(0, &["undo"]);
        }
        assert_eq!(env.git(&["ls-files", "-s"]), all, "seed {seed}");
    }
}

// git itself damages a whole index that it folds where a file in a folder is only intended to be added.
#[test]
fn a_sparse_index_with_an_intent_to_add_stays_one_that_git_reads() {
    let env = TestEnv::repo();
    for path in ["src/a/f1", "src/a/f2", "src/b/g1", "src/b/g2", "doc/c"] {
        env.write(path, path);
    }
    env.sh("git add src doc && git commit -qm more && git sparse-checkout set --cone --sparse-index src/a && \
            echo n > src/new && echo n > new && git add -N src/new new")
        .expect(0);
    let first = checkpoint(&env);
    env.sh("echo bad >> src/a/f1; git add src/a/f1").expect(0);
    checkpoint(&env);
    let ran = env
        .recover(&["--yes", "rollback", "--to", &first, "--edits", "discard"])
        .expect(0);
    assert!(
        ran.stderr.contains("add --intent-to-add -- src/new"),
        "{}",
        ran.stderr
    );
    let status = || env.git(&["status", "--porcelain"]);
    assert_eq!(status(), " A new\n?? src/new\n");
    env.json(0, &["--yes", "undo"]);
    assert_eq!(status(), " A new\nM  src/a/f1\n?? src/new\n");
    env.git(&["add", "--intent-to-add", "--", "src/new"]);
    assert_eq!(status(), " A new\nM  src/a/f1\n A src/new\n");
    env.git(&["fsck", "--no-dangling"]);
}
