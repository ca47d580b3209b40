//! What git wrote and did not sync: after a power failure it can be empty, or gone, while the index names it.

use crate::env::TestEnv;
use crate::seen::checkpoint;

/// Content that does not become small.
fn content(seed: u32) -> String {
    (0..999_u32)
        .map(|n| n.wrapping_add(seed).wrapping_mul(2_654_435_761).to_string())
        .collect()
}

/// The file of an object that git wrote by itself.
fn object_file(env: &TestEnv, id: &str) -> std::path::PathBuf {
    let (folder, file) = id.trim().split_at(2);
    env.work().join(format!(".git/objects/{folder}/{file}"))
}

/// Stages files, and empties the objects that git wrote of them.
fn stage_and_empty(env: &TestEnv, paths: &[&str]) {
    env.sh(&format!(
        "touch -d '1 minute ago' {0}; git add {0}",
        paths.join(" ")
    ))
    .expect(0);
    for path in paths {
        let file = object_file(env, &env.git(&["rev-parse", &format!(":{path}")]));
        env.sh(&format!("chmod u+w {0}; : > {0}", file.display()))
            .expect(0);
    }
}

/// Overwrites six bytes of an object in the user's one pack.
fn harm_packed(env: &TestEnv, oid: &str) {
    let line = format!(
        "set -e; pack=$(ls -S .git/objects/pack/*.pack | head -1); chmod u+w \"$pack\"
        at=$(git verify-pack -v \"$pack\" | sed -n 's/^{} .* //p')
        printf ABCDEF | dd of=\"$pack\" bs=1 seek=$((at + 40)) conv=notrunc status=none",
        oid.trim()
    );
    env.sh(&line).expect(0);
}

// before a file is overwritten or deleted its copy was read back.
#[test]
fn a_rollback_over_files_whose_objects_are_empty_can_be_undone() {
    let env = TestEnv::repo();
    let first = checkpoint(&env);
    env.write("a.txt", "hours of work\n");
    env.write("new1", "more\n");
    stage_and_empty(&env, &["a.txt", "new1"]);
    env.json(0, &["rollback", "--to", &first, "--edits", "discard"]);
    assert!(!env.exists("new1"));
    env.json(0, &["undo", "--edits", "discard"]);
    assert_eq!(
        (env.read("a.txt").as_str(), env.read("new1").as_str()),
        ("hours of work\n", "more\n")
    );
    env.git(&["fsck", "--strict"]);
}

// The same with a few bytes of an old pack: nothing about it is new, so only reading the object shows it.
#[test]
fn a_rollback_over_a_file_whose_packed_object_is_damaged_can_be_undone() {
    for nested in [false, true] {
        let env = TestEnv::repo();
        let place = if nested { "inner/" } else { "" };
        if nested {
            env.sh("git init -q inner; cd inner; echo one > one; git add one; git commit -qm one")
                .expect(0);
        }
        let first = checkpoint(&env);
        let file = format!("{place}x.txt");
        env.write(&file, content(1));
        env.sh(&format!(
            "cd ./{place}; touch -d '1 minute ago' x.txt; git add x.txt; git commit -qm x; git repack -adq"
        ))
        .expect(0);
        checkpoint(&env);
        let oid = env.git(&["hash-object", &file]);
        if nested {
            // The copy in the database around it.
            env.sh("git repack -adq").expect(0);
        }
        harm_packed(&env, &oid);
        let nested = if nested { "--nested" } else { "--quiet" };
        env.json(
            0,
            &[
                "rollback",
                "--to",
                &first,
                "--edits",
                "discard",
                "--commits",
                "keep",
                nested,
            ],
        );
        assert!(!env.exists(&file));
        env.json(0, &["undo", "--edits", "discard"]);
        assert_eq!(env.read(&file), content(1));
    }
}

// an index entry is no proof that its object is whole, in a run's first checkpoint as in any other.
#[test]
fn a_capture_stores_again_what_git_lost() {
    for earlier in [false, true] {
        let env = TestEnv::repo();
        if earlier {
            checkpoint(&env);
        }
        env.write("a.txt", "hours of work\n");
        env.write("new1", "more\n");
        stage_and_empty(&env, &["a.txt", "new1"]);
        let made = env.recover(&["checkpoint", "create"]).expect(0);
        assert!(made.stderr.contains("empty or damaged"), "{}", made.stderr);
        env.json(0, &["checkpoint", "verify"]);
        env.git(&["fsck", "--strict"]);
        env.write("b.txt", "b\n");
        let next = env.recover(&["checkpoint", "create"]).expect(0);
        assert!(!next.stderr.contains("damaged"), "{}", next.stderr);
    }
}

// A damaged object whose content is nowhere any more is not believed later on either.
#[test]
fn an_object_that_stays_damaged_is_never_believed() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "hours of work\n");
    stage_and_empty(&env, &["a.txt"]);
    env.write("a.txt", "something else\n");
    let made = env.recover(&["checkpoint", "create"]).expect(0);
    assert!(
        made.stderr.contains("a.txt"),
        "what is staged is lost: {}",
        made.stderr
    );
    env.json(0, &["checkpoint", "verify"]);
    checkpoint(&env);
    env.write("a.txt", "hours of work\n");
    env.write("b.txt", "hours of work\n");
    checkpoint(&env);
    env.json(0, &["checkpoint", "verify", "latest"]);
    env.git(&["cat-file", "-e", ":a.txt"]);
}

// Nor is one that is gone, without any damaged one beside it.
#[test]
fn what_is_staged_and_gone_is_in_no_checkpoint() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "staged\n");
    env.git(&["add", "a.txt"]);
    let blob = env.git(&["rev-parse", ":a.txt"]);
    let (folder, name) = blob.trim().split_at(2);
    env.remove(&format!(".git/objects/{folder}/{name}"));
    env.write("a.txt", "edited\n");
    let made = env.recover(&["checkpoint", "create"]).expect(0);
    assert!(
        made.stderr.contains("what is staged is lost"),
        "{}",
        made.stderr
    );
    env.json(0, &["checkpoint", "verify"]);
    env.write("a.txt", "again\n");
    checkpoint(&env);
    env.json(0, &["checkpoint", "verify"]);
}

// A commit that is damaged is no part of a checkpoint: what is in the checkpoint is whole.
#[test]
fn a_damaged_head_is_no_part_of_a_checkpoint() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "two\n");
    env.sh("git commit -qam two").expect(0);
    let head = env.git(&["rev-parse", "HEAD"]);
    env.sh(&format!(
        "chmod u+w {0}; : > {0}",
        object_file(&env, &head).display()
    ))
    .expect(0);
    let made = env.recover(&["checkpoint", "create"]).expect(0);
    assert!(
        made.stderr.contains("HEAD's commit is damaged"),
        "{}",
        made.stderr
    );
    let latest = env.json(0, &["checkpoint", "show", "latest"])["checkpoint"].clone();
    env.git(&[
        "rev-list",
        "--objects",
        latest["commit"].as_str().expect("a commit"),
    ]);
}

// The same where git's commit reached the disk, and a file in it did not.
#[test]
fn a_head_that_lost_a_file_is_no_part_of_a_checkpoint() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "two\n");
    env.sh("git commit -qam two").expect(0);
    let lost = env.git(&["rev-parse", "HEAD:a.txt"]);
    env.sh(&format!(
        "chmod u+w {0}; : > {0}; : > a.txt",
        object_file(&env, &lost).display()
    ))
    .expect(0);
    let made = env.recover(&["checkpoint", "create"]).expect(0);
    assert!(
        made.stderr.contains("HEAD's commit is damaged"),
        "{}",
        made.stderr
    );
    let latest = env.json(0, &["checkpoint", "show", "latest"])["checkpoint"].clone();
    let commit = latest["commit"].as_str().expect("a commit");
    env.sh(&format!(
        "git rev-list --objects --no-object-names {commit} | git cat-file --batch > /dev/null"
    ))
    .expect(0);
    env.json(0, &["checkpoint", "verify", "latest"]);
    // What comes back, as an editor's copy does, makes it whole again.
    env.write("a.txt", "two\n");
    let made = env.recover(&["checkpoint", "create"]).expect(0);
    assert!(
        !made.stderr.contains("HEAD's commit is damaged"),
        "{}",
        made.stderr
    );
}

/// The files and folders that a command waits for the disk with, one a line; the whole file system is `syncfs`.
fn synced(env: &TestEnv, args: &str) -> Option<String> {
    if env.sh("command -v strace").code != 0 {
        assert!(
            std::env::var_os("CI").is_none(),
            "strace is missing: nothing can be counted"
        );
        return None;
    }
    let recover = env!("CARGO_BIN_EXE_recover");
    let calls = "fsync,fdatasync,syncfs";
    env.sh(&format!(
        "strace -f -y -qq -o ../calls -e trace={calls} {recover} {args}"
    ))
    .expect(0);
    let log = std::fs::read_to_string(env.root().join("calls")).expect("a log");
    Some(
        log.split_inclusive('\n')
            .filter(|line| line.contains('('))
            .collect(),
    )
}

// exit 0 means on disk, commits and their trees included.
#[test]
fn what_git_wrote_is_synced_before_a_checkpoint_is_there() {
    let env = TestEnv::repo();
    let Some(first) = synced(&env, "checkpoint create") else {
        return;
    };
    let head = object_file(&env, &env.git(&["rev-parse", "HEAD"]));
    assert!(
        first.contains("syncfs") || first.contains(&*head.to_string_lossy()),
        "{first}"
    );
    env.write("a.txt", "two\n");
    env.sh(
        "touch -d '1 minute ago' a.txt; git commit -qam two; git commit -q --allow-empty -m three",
    )
    .expect(0);
    let second = synced(&env, "checkpoint create").unwrap_or_default();
    for id in ["HEAD", "HEAD~", "HEAD^{tree}", "HEAD:a.txt"] {
        let file = object_file(&env, &env.git(&["rev-parse", id]));
        let folder = file.parent().expect("a folder");
        for path in [&*file, folder] {
            assert!(
                second.contains(&format!("<{}>", path.display())),
                "{id}: {second}"
            );
        }
    }
    // What is on disk is not synced again: not even the file that says so.
    let quiet = synced(&env, "checkpoint create --if-changed").unwrap_or_default();
    assert!(!quiet.contains("objects/"), "{quiet}");
    env.sh("echo x | git hash-object -w --stdin; git repack -adq")
        .expect(0);
    let packed = synced(&env, "checkpoint create --if-changed").unwrap_or_default();
    assert!(
        packed.contains(".pack>") && packed.contains(".idx>") && packed.contains("objects/pack>"),
        "{packed}"
    );
}

// Many are synced all at once.
#[test]
fn a_checkpoint_after_many_objects_of_gits_waits_for_the_disk_a_few_times() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.sh("mkdir many; for n in $(seq 3000); do echo $n > many/$n; done; git add many")
        .expect(0);
    // Where a build has just left a gigabyte, files are synced each by itself.
    env.sh("sync").expect(0);
    let Some(calls) = synced(&env, "checkpoint create") else {
        return;
    };
    assert!(calls.lines().count() <= 24, "{calls}");
    env.json(0, &["checkpoint", "verify"]);
}

// what was borrowed from another repository that is gone is stored here.
#[test]
fn a_capture_after_the_alternate_is_gone_holds_everything() {
    let env = TestEnv::repo();
    env.write("sub/b.txt", content(2));
    env.sh("git add sub; git commit -qm b; touch -d '1 minute ago' a.txt sub/b.txt")
        .expect(0);
    env.sh("git clone -q --shared . ../clone").expect(0);
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "sleep 0.1; cd ../clone; {recover} checkpoint create -q"
    ))
    .expect(0);
    env.sh(&format!(
        "mv .git ../gone; cd ../clone; echo new > new; {recover} checkpoint create -q"
    ))
    .expect(0);
    env.sh(&format!("cd ../clone; {recover} checkpoint verify latest"))
        .expect(0);
    env.sh(&format!(
        "cd ../clone; rm -rf sub; {recover} checkpoint restore latest --path sub --edits discard"
    ))
    .expect(0);
    let back = std::fs::read_to_string(env.root().join("clone/sub/b.txt")).expect("it is back");
    assert_eq!(back, content(2));
}
