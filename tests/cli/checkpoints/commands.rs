//! `checkpoint create|list|show|diff|pin|unpin|verify`.

use std::os::unix::fs::PermissionsExt;

use crate::checkpoints::layout_0_1::loosen;
use crate::env::TestEnv;
use crate::seen::{assert_clean, checkpoint, paths, seen, text};

// B13, S1: the record says what it is, is linked to the one before it, and lists oldest first.
#[test]
fn a_checkpoint_is_recorded_listed_and_shown() {
    let env = TestEnv::repo();
    let first = env.json(0, &["checkpoint", "create", "-m", "one"])["checkpoint"].clone();
    env.write("a.txt", "two\n");
    env.write("new/b.txt", "b\n");
    let second = env.json(
        0,
        &["checkpoint", "create", "-m", "two", "--iteration", "1"],
    )["checkpoint"]
        .clone();
    assert!(
        text(&first["id"]).starts_with("ckpt_") && text(&first["id"]).ends_with("_0001"),
        "{first}"
    );
    assert_eq!(first["run_id"], "manual");
    assert_eq!(second["previous"], first["id"]);
    assert_eq!(second["after_iteration"], 1);
    assert_eq!(
        second["changes"],
        serde_json::json!({"modified": 1, "created": 1, "deleted": 0})
    );
    assert_eq!(second["captured"]["files"], 2);
    assert_eq!(second["head_ref"], "refs/heads/main");
    assert_eq!(
        text(&second["base_commit"]),
        env.git(&["rev-parse", "HEAD"]).trim()
    );
    let list = env.json(0, &["checkpoint", "list"]);
    let ids: Vec<String> = list["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["id"]))
        .collect();
    assert_eq!(ids, [text(&first["id"]), text(&second["id"])]);
    assert_eq!(
        env.json(0, &["checkpoint", "list", "--limit", "1"])["checkpoints"][0]["id"],
        second["id"]
    );
    for selector in [
        "latest",
        "latest~0",
        "@2",
        &text(&second["id"]),
        &text(&second["commit"])[..0],
        "iteration:1",
    ] {
        if !selector.is_empty() {
            assert_eq!(
                env.json(0, &["checkpoint", "show", selector])["checkpoint"]["id"],
                second["id"],
                "{selector}"
            );
        }
    }
    for selector in ["latest~1", "@1", "initial"] {
        assert_eq!(
            env.json(0, &["checkpoint", "show", selector])["checkpoint"]["id"],
            first["id"],
            "{selector}"
        );
    }
    let shown = env.json(0, &["checkpoint", "show", "latest", "--patch"]);
    assert_eq!(paths(&shown["files"]), ["a.txt", "new/b.txt"]);
    assert_eq!(shown["files"][0]["mode"], "100644");
    assert_eq!(shown["files"][0]["size"], 4);
    assert!(text(&shown["patch"]).contains("+two"), "{shown}");
    for missing in [
        "@9",
        "good",
        "latest~7",
        "iteration:9",
        "stage:pre_pr",
        "nonsense",
    ] {
        assert_eq!(
            env.json(4, &["checkpoint", "show", missing])["error"]["exit_code"],
            4,
            "{missing}"
        );
    }
    assert_clean(&env);
}

// S3: modified, created, deleted, renamed with line counts; the working memory apart.
#[test]
fn a_difference_names_every_change() {
    let env = TestEnv::repo();
    env.write("old.txt", "a long enough line to be found again\n");
    env.write("gone.txt", "x\n");
    env.write(".ultraplan/state/plan.json", "1");
    checkpoint(&env);
    env.write("a.txt", "one\ntwo\n");
    std::fs::rename(env.work().join("old.txt"), env.work().join("new.txt")).unwrap();
    std::fs::remove_file(env.work().join("gone.txt")).unwrap();
    env.write("made.txt", "m\n");
    env.write(".ultraplan/state/plan.json", "2");
    for args in [
        vec!["checkpoint", "diff", "@1"],
        vec!["checkpoint", "diff", "@1", "@2"],
    ] {
        let diff = env.json(0, &args);
        let of = |path: &str| {
            diff["changes"]
                .as_array()
                .unwrap()
                .iter()
                .find(|change| change["path"] == path)
                .cloned()
        };
        assert_eq!(of("a.txt").unwrap()["type"], "modified", "{diff}");
        assert_eq!(of("a.txt").unwrap()["added"], 1);
        assert_eq!(of("a.txt").unwrap()["deleted"], 0);
        assert_eq!(of("gone.txt").unwrap()["type"], "deleted");
        assert_eq!(of("made.txt").unwrap()["type"], "created");
        assert_eq!(of("new.txt").unwrap()["type"], "renamed");
        assert_eq!(
            of("new.txt").unwrap()["old_path"]["path"]
                .as_str()
                .or(of("new.txt").unwrap()["old_path"].as_str()),
            Some("old.txt")
        );
        assert_eq!(diff["memory_updates"][0]["path"], "plan.json");
        assert_eq!(diff["memory_updates"][0]["type"], "modified");
        if args.len() == 3 {
            assert!(diff["to"].is_null());
            checkpoint(&env);
        }
    }
    let only = env.json(0, &["checkpoint", "diff", "@1", "@2", "--path", "made*"]);
    assert_eq!(paths(&only["changes"]), ["made.txt"]);
    let patch = env
        .recover(&["checkpoint", "diff", "@2", "@1", "--patch"])
        .expect(0)
        .stdout;
    std::fs::write(env.root().join("back.patch"), patch).unwrap();
    env.git(&["apply", "../back.patch"]);
    assert_eq!(
        env.read("old.txt"),
        "a long enough line to be found again\n"
    );
}

// S3, B8: a folder that is emptied or filled was there before and is there still: only the files in it have changed. The
// totals and a manual fix say the same.
#[test]
fn a_folder_that_is_emptied_is_no_new_one() {
    let env = TestEnv::repo();
    env.write("src/b.txt", "b\n");
    env.sh("mkdir -p sub/deep").expect(0);
    checkpoint(&env);
    env.json(0, &["attempt", "fail", "--message", "boom"]);
    env.json(0, &["manual-fix", "start"]);
    env.sh("rm src/b.txt; echo f > sub/deep/f; mkdir new")
        .expect(0);
    let told = |list: &serde_json::Value| -> Vec<(String, String)> {
        list.as_array()
            .expect("a list")
            .iter()
            .map(|one| (text(&one["path"]), text(&one["type"])))
            .collect()
    };
    let expected = [
        ("new", "created"),
        ("src/b.txt", "deleted"),
        ("sub/deep/f", "created"),
    ];
    let expected = expected.map(|(path, kind)| (path.to_owned(), kind.to_owned()));
    assert_eq!(
        told(&env.json(0, &["checkpoint", "diff", "@1"])["changes"]),
        expected
    );
    let fix = env.json(0, &["manual-fix", "status"]);
    assert_eq!(told(&fix["session"]["detected_changes"]), expected);
    let changes = env.json(0, &["checkpoint", "create"])["checkpoint"]["changes"].clone();
    assert_eq!(
        changes,
        serde_json::json!({"modified": 0, "created": 2, "deleted": 1})
    );
    env.sh("rm -r sub/deep/f src new; mkdir -p src/inner")
        .expect(0);
    let expected = [
        ("new", "deleted"),
        ("src/inner", "created"),
        ("sub/deep/f", "deleted"),
    ];
    let expected = expected.map(|(path, kind)| (path.to_owned(), kind.to_owned()));
    assert_eq!(
        told(&env.json(0, &["checkpoint", "diff", "latest"])["changes"]),
        expected
    );
}

#[test]
fn a_capture_that_holds_what_was_rolled_back_to_is_known_from_then_on() {
    let env = TestEnv::repo();
    let create = |content: &str| {
        env.write("a", content);
        env.json(0, &["checkpoint", "create"])["checkpoint"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = create("1");
    create("2");
    env.json(0, &["rollback", "--to", &first, "--edits", "discard"]);
    let known = |id: &str| {
        let cache = std::fs::read(env.work().join(".git/recover/index-cache")).unwrap();
        String::from_utf8_lossy(&cache).contains(id)
    };
    assert!(!known(&first), "it is of a later one");
    let same = env.json(0, &["checkpoint", "create", "--if-changed"]);
    assert_eq!(
        (&same["changed"], &same["checkpoint"]["id"]),
        (&false.into(), &first.as_str().into())
    );
    assert!(known(&first));
}

// What is lost of the latest checkpoint is in the work tree still: nobody who holds it lets it go.
#[test]
fn what_an_unchanged_checkpoint_lacks_is_brought_back() {
    let env = TestEnv::repo();
    env.write("lost", "only here\n");
    let id = env.json(0, &["checkpoint", "create"])["checkpoint"]["id"].clone();
    let blob = env.git(&["hash-object", "lost"]).trim().to_owned();
    // As loose objects, of which one goes.
    env.sh("mv .git/objects/pack/*.pack . && for pack in *.pack; do git unpack-objects -q < $pack; rm -f $pack; done; rm -f .git/objects/pack/*")
        .expect(0);
    env.sh(&format!("rm -f .git/objects/{}/{}", &blob[..2], &blob[2..]))
        .expect(0);
    env.sh("rm -f .git/recover/index-cache").expect(0);
    assert_ne!(env.sh(&format!("git cat-file -e {blob}")).code, 0);
    let again = env.json(0, &["checkpoint", "create", "--if-changed"]);
    assert_eq!(
        (&again["changed"], &again["checkpoint"]["id"]),
        (&false.into(), &id)
    );
    env.git(&["cat-file", "-e", &blob]);
    env.write("lost", "else\n");
    env.json(
        0,
        &[
            "rollback",
            "--to",
            id.as_str().unwrap(),
            "--edits",
            "discard",
        ],
    );
    assert_eq!(env.read("lost"), "only here\n");
}

// snapshot.md: mode, empty folder, folder mode and index are changes; an mtime is none.
#[test]
fn if_changed_notices_all_but_times() {
    let env = TestEnv::repo();
    env.write("sub/x", "x\n");
    checkpoint(&env);
    let again = || {
        env.json(0, &["checkpoint", "create", "--if-changed"])["changed"]
            .as_bool()
            .unwrap()
    };
    assert!(!again());
    env.sh("touch -d 2001-01-01 a.txt").expect(0);
    assert!(!again(), "a time is no change");
    for change in [
        "chmod 600 a.txt",
        "mkdir empty",
        "chmod 700 sub",
        "git add sub/x",
        "printf 'oNe\\n' > a.txt",
        "mkdir -p .ultraplan/state; echo 1 > .ultraplan/state/plan.json",
        "git commit -qm second",
    ] {
        env.sh(change).expect(0);
        assert!(again(), "{change}");
        assert!(!again(), "{change}, again");
    }
    // An edit to the same size within the same second, with the old mtime.
    env.sh("cp -p a.txt ../t; printf 'TWO\\n' > a.txt; touch -r ../t a.txt")
        .expect(0);
    assert!(again());
    assert_clean(&env);
}

// Promise 6: plain git works on a checkpoint.
#[test]
fn plain_git_reads_a_checkpoint() {
    let env = TestEnv::repo();
    env.write("a.txt", "two\n");
    let made = env.json(0, &["checkpoint", "create", "-m", "A headline"]);
    let commit = text(&made["checkpoint"]["commit"]);
    assert!(
        env.git(&["show", "-s", "--format=%s", &commit])
            .contains("A headline")
    );
    assert!(env.git(&["diff", "HEAD", &commit]).contains("+two"));
    env.write("a.txt", "three\n");
    env.git(&["restore", "--source", &commit, "--", "a.txt"]);
    assert_eq!(env.read("a.txt"), "two\n");
    let reference = env.git(&["for-each-ref", "--format=%(refname)", "refs/recover"]);
    assert!(
        reference.trim().ends_with(&text(&made["checkpoint"]["id"])),
        "{reference}"
    );
    env.git(&["gc", "--prune=now", "-q"]);
    env.json(0, &["checkpoint", "verify"]);
    assert_clean(&env);
}

// S14: a pin is recorded with its note, and taken off again.
#[test]
fn pins_are_set_and_taken_off() {
    let env = TestEnv::repo();
    checkpoint(&env);
    let dry = env.json(0, &["--dry-run", "checkpoint", "pin", "latest"]);
    assert_eq!(
        env.json(0, &["checkpoint", "show", "latest"])["checkpoint"]["pinned"],
        false,
        "{dry}"
    );
    assert_eq!(
        env.json(0, &["checkpoint", "pin", "latest", "--note", "why"])["checkpoint"]["pinned"],
        true
    );
    assert_eq!(
        env.json(0, &["checkpoint", "show", "@1"])["checkpoint"]["pin_note"],
        "why"
    );
    assert_eq!(
        env.json(0, &["checkpoint", "unpin", "@1"])["checkpoint"]["pinned"],
        false
    );
    env.json(4, &["checkpoint", "pin", "@7"]);
}

// S15: a deleted object is found (12), and such a checkpoint is refused rather than half restored.
#[test]
fn verify_finds_a_deleted_object() {
    let env = TestEnv::repo();
    env.write("only.txt", "only here\n");
    checkpoint(&env);
    assert_eq!(env.json(0, &["checkpoint", "verify"])["checked"], 1);
    let blob = env.git(&["hash-object", "only.txt"]);
    let (folder, file) = blob.trim().split_at(2);
    loosen(env.work());
    std::fs::remove_file(env.work().join(format!(".git/objects/{folder}/{file}"))).unwrap();
    let report = env.json(12, &["checkpoint", "verify"]);
    assert!(
        text(&report["problems"][0]["message"]).contains("only.txt"),
        "{report}"
    );
    env.write("only.txt", "something else\n");
    env.write("a.txt", "changed\n");
    let before = seen(env.work());
    env.json(12, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(seen(env.work()), before);
    // What ended with 12 is what doctor names then.
    let report = env.json(12, &["doctor"]);
    assert_eq!(
        report["problems"][0]["code"], "damaged_checkpoint",
        "{report}"
    );
    assert!(
        text(&report["problems"][0]["message"]).contains("only.txt"),
        "{report}"
    );
    // A damaged one is no reason not to take the next, and does not become whole by that.
    env.json(0, &["checkpoint", "create", "--if-changed"]);
    env.json(0, &["checkpoint", "verify", "latest"]);
    env.json(12, &["doctor"]);
    env.write("only.txt", "only here\n");
    env.json(0, &["checkpoint", "create"]);
    env.json(0, &["doctor"]);
}

// an object that a power failure cut short is named; nothing hangs on it and nothing is restored from it.
#[test]
fn a_truncated_object_is_named() {
    for what in ["blob", "tree", "commit"] {
        let env = TestEnv::repo();
        env.write(
            "only.txt",
            (0..2000_u32)
                .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
                .collect::<Vec<u8>>(),
        );
        let made = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
        let object = match what {
            "blob" => env.git(&["hash-object", "only.txt"]),
            field => text(&made[field]),
        };
        let (folder, file) = object.trim().split_at(2);
        loosen(env.work());
        let line = format!(
            "o=.git/objects/{folder}/{file}; chmod u+w $o; truncate -s $(($(stat -c %s $o) / 2)) $o"
        );
        env.sh(&line).expect(0);
        let recover = env!("CARGO_BIN_EXE_recover");
        env.sh(&format!("timeout 20 {recover} checkpoint verify"))
            .expect(12);
        env.write("only.txt", "something else\n");
        env.sh(&format!(
            "timeout 20 {recover} rollback --to @1 --edits discard"
        ))
        .expect(12);
        env.sh(&format!("timeout 20 {recover} checkpoint show @1 --patch"))
            .expect(12);
        assert_eq!(env.read("only.txt"), "something else\n");
        env.sh(&format!(
            "timeout 20 {recover} checkpoint create --if-changed"
        ))
        .expect(0);
        env.sh(&format!("timeout 20 {recover} checkpoint verify latest"))
            .expect(0);
    }
}

/// The file of an object, which is loose from here on.
fn object_file(env: &TestEnv, id: &str) -> std::path::PathBuf {
    loosen(env.work());
    let (folder, file) = id.trim().split_at(2);
    env.work().join(format!(".git/objects/{folder}/{file}"))
}

/// Cuts a loose object short, or flips a bit in it, or takes it away.
fn damage(env: &TestEnv, id: &str, how: &str) {
    let path = object_file(env, id);
    let mut bytes = std::fs::read(&path).expect("an object");
    std::fs::remove_file(&path).expect("removed");
    match how {
        "cut short" => bytes.truncate(bytes.len() / 2),
        "emptied" => bytes.clear(),
        "flipped" => *bytes.last_mut().expect("a byte") ^= 1,
        _ => return,
    }
    std::fs::write(path, bytes).expect("written");
}

// What verify has found is healed by the next checkpoint, as far as the content is still there.
#[test]
fn found_damage_is_healed_by_the_next_checkpoint() {
    for how in ["cut short", "emptied", "flipped", "taken away"] {
        for what in ["untracked", "tracked", "tree"] {
            let env = TestEnv::repo();
            env.write("sub/untracked", "only here\n".repeat(200));
            env.write("sub/tracked", "also in the index\n".repeat(200));
            env.sh("git add sub/tracked; sleep 0.1").expect(0);
            let made = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
            let id = match what {
                "tree" => env.git(&["rev-parse", &format!("{}:sub", text(&made["tree"]))]),
                name => env.git(&["hash-object", &format!("sub/{name}")]),
            };
            damage(&env, &id, how);
            env.json(12, &["checkpoint", "verify"]);
            env.json(0, &["checkpoint", "create"]);
            assert_eq!(
                env.json(0, &["checkpoint", "verify"])["checked"],
                2,
                "{what} {how}"
            );
            env.git(&["fsck", "--strict"]);
            // From here on the cache is trusted again.
            assert!(!env.exists(".git/recover/doubt"), "{what} {how}");
            env.json(0, &["checkpoint", "create", "--if-changed"]);
        }
    }
}

// The same in the pack that holds the few objects of a checkpoint.
#[test]
fn a_damaged_pack_is_found_and_healed() {
    let env = TestEnv::repo();
    let content: String = (0..999_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_string())
        .collect();
    env.write("only.txt", &content);
    let made = checkpoint(&env);
    // A byte of the largest object, which is in the middle.
    let line = "set -e; pack=$(ls .git/objects/pack/*.pack); test -f \"$pack\"; chmod u+w \"$pack\"
        printf X | dd of=\"$pack\" bs=1 seek=$(($(stat -c %s \"$pack\") / 2)) conv=notrunc status=none";
    env.sh(line).expect(0);
    env.json(12, &["checkpoint", "verify"]);
    env.write("only.txt", "changed\n");
    env.json(12, &["rollback", "--to", &made, "--edits", "discard"]);
    assert_eq!(env.read("only.txt"), "changed\n");
    env.write("only.txt", &content);
    env.json(0, &["checkpoint", "create"]);
    env.json(0, &["checkpoint", "verify"]);
    env.git(&[
        "cat-file",
        "-e",
        env.git(&["hash-object", "only.txt"]).trim(),
    ]);
}

/// Does something to the pack that holds the objects of a checkpoint, in a shell where `$pack` and `$index` are its files.
fn harm_pack(env: &TestEnv, harm: &str) {
    let line = "set -e; pack=$(ls .git/objects/pack/*.pack); index=${pack%.pack}.idx; chmod u+w \"$pack\" \"$index\"";
    env.sh(&format!("{line}\n{harm}")).expect(0);
}

// A pack that was cut short is seen by its end, also where no file of the work tree is read again.
#[test]
fn a_pack_that_was_cut_short_is_noticed() {
    for harm in [
        "truncate -s $(($(stat -c %s \"$pack\") / 2)) \"$pack\"",
        ": > \"$pack\"",
        "rm -f \"$pack\"",
        ": > \"$index\"",
    ] {
        let env = TestEnv::repo();
        let content: String = (0..999_u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_string())
            .collect();
        env.write("only.txt", &content);
        // Long enough ago that its time says that it is unchanged.
        env.sh("touch -d '1 hour ago' only.txt").expect(0);
        std::thread::sleep(std::time::Duration::from_millis(50));
        checkpoint(&env);
        harm_pack(&env, harm);
        env.write("other.txt", "new\n");
        checkpoint(&env);
        let verified = env.recover(&["checkpoint", "verify", "latest"]);
        assert_eq!(verified.code, 0, "{harm}: {}", verified.stderr);
    }
}

// The same in the pack that holds the few objects of a checkpoint, whether somebody knew of the damage or not.
#[test]
fn a_damaged_pack_does_not_outlive_the_next_checkpoint() {
    // Bytes of the largest object, which is in the middle: its size stays, and so does the time of the file.
    let flip = "touch -r \"$pack\" ../time; at=$(($(stat -c %s \"$pack\") / 2))
        printf XY | dd of=\"$pack\" bs=1 seek=$at conv=notrunc status=none; touch -r ../time \"$pack\"";
    let harms = [
        (flip, 2),
        ("truncate -s $(($(stat -c %s \"$pack\") / 2)) \"$pack\"", 1),
        (": > \"$pack\"", 1),
        (": > \"$index\"", 1),
        ("rm -f \"$index\"", 1),
        ("rm -f \"$pack\"", 1),
    ];
    for (harm, healed) in harms {
        let env = TestEnv::repo();
        let content: String = (0..999_u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_string())
            .collect();
        env.write("only.txt", &content);
        // It is read again: what is damaged in the middle of a pack is seen only then.
        env.sh("touch -d '1 hour' only.txt").expect(0);
        checkpoint(&env);
        harm_pack(&env, harm);
        env.write("other.txt", "new\n");
        env.json(0, &["checkpoint", "create"]);
        let verified = env.recover(&["checkpoint", "verify", "latest"]);
        assert_eq!(verified.code, 0, "{harm}: {}", verified.stderr);
        let all = env.json(if healed == 2 { 0 } else { 12 }, &["checkpoint", "verify"]);
        assert_eq!(all["checked"], 2, "{harm}: {all}");
        env.write("only.txt", "changed\n");
        env.json(0, &["rollback", "--to", "@2", "--edits", "discard"]);
        assert_eq!(env.read("only.txt"), content, "{harm}");
    }
}

// Content that is written again replaces a damaged object of its id, whether somebody knew of the damage or not.
#[test]
fn a_damaged_object_is_no_reason_not_to_store_the_content() {
    let env = TestEnv::repo();
    let content = "kept\n".repeat(300);
    env.write("one", &content);
    checkpoint(&env);
    damage(&env, &env.git(&["hash-object", "one"]), "cut short");
    env.write("two", &content);
    checkpoint(&env);
    env.json(0, &["checkpoint", "verify"]);
    env.git(&["fsck", "--strict"]);
    // What was there before is not removed with the checkpoint that mended it.
    env.json(0, &["checkpoint", "create"]);
    env.json(0, &["--yes", "checkpoint", "prune", "--keep-last", "1"]);
    env.json(0, &["checkpoint", "verify"]);
}

// an object that cannot be opened is not a damaged one: an error of the system's, with the file's name.
#[test]
fn an_object_that_cannot_be_opened_is_not_damaged() {
    if TestEnv::plain().sh("command -v strace").code != 0 {
        return;
    }
    let env = TestEnv::repo();
    env.write("only.txt", "only here\n");
    let made = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
    env.write("only.txt", "something else\n");
    for id in [
        env.git(&["rev-parse", &format!("{}:only.txt", text(&made["tree"]))]),
        text(&made["tree"]),
        text(&made["commit"]),
    ] {
        let file = object_file(&env, &id);
        let recover = env!("CARGO_BIN_EXE_recover");
        for errno in ["EACCES", "EMFILE"] {
            for command in ["checkpoint verify", "rollback --to @1 --edits discard"] {
                let ran = env.sh(&format!(
                    "strace -f -o /dev/null -P {} -e trace=open,openat -e inject=open,openat:error={errno} {recover} {command}",
                    file.display()
                ));
                assert_eq!(ran.code, 1, "{errno}: {command}: {ran:?}");
                let named = file.to_string_lossy();
                assert!(ran.stderr.contains(&*named), "{errno}: {command}: {ran:?}");
            }
        }
    }
    env.json(0, &["checkpoint", "verify"]);
}

// snapshot.md: what is left out is listed, by policy with exit 0, by failure with exit 3.
#[test]
fn what_is_left_out_is_listed() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nmax_file_size = \"1 KiB\"\nexclude = [\"secret/**\"]\n",
    );
    env.write("big.bin", vec![7; 2000]);
    env.write("secret/key", "k\n");
    env.sh("mkfifo pipe; git init -q inner; cp big.bin inner/big.bin")
        .expect(0);
    let made = env.json(0, &["checkpoint", "create"]);
    let skipped = paths(&made["checkpoint"]["skipped"]);
    for path in ["big.bin", "pipe", "inner/big.bin"] {
        assert!(skipped.iter().any(|one| one == path), "{path}: {made}");
    }
    assert!(
        skipped.iter().any(|one| one.starts_with("secret")),
        "{made}"
    );
    // The repository inside gets a checkpoint of its own.
    env.sh("rm -rf inner").expect(0);
    let kept = seen(env.work());
    env.write("a.txt", "two\n");
    let back = env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(paths(&back["result"]["written"]), ["a.txt"]);
    assert_eq!(seen(env.work()), kept);
}

// snapshot.md: byte for byte, whatever the configuration would convert; no filter, hook or fsmonitor runs.
#[test]
fn nothing_is_converted_and_nothing_runs() {
    let env = TestEnv::repo();
    let trap = env.root().join("ran");
    let line = format!("#!/bin/sh\necho x >> {}\nexit 0\n", trap.display());
    for hook in [
        "post-checkout",
        "pre-commit",
        "reference-transaction",
        "post-index-change",
        "post-commit",
    ] {
        env.write(&format!(".git/hooks/{hook}"), &line);
    }
    env.write("trap.sh", &line);
    env.sh("chmod +x .git/hooks/* trap.sh; git config core.autocrlf true; git config core.fsmonitor ./trap.sh")
        .expect(0);
    env.sh("git config filter.x.clean ./trap.sh; git config filter.x.smudge ./trap.sh")
        .expect(0);
    env.sh("git config filter.x.required true; git config diff.x.textconv ./trap.sh")
        .expect(0);
    env.write(
        ".gitattributes",
        "*.f filter=x diff=x\n*.txt text eol=crlf ident\n",
    );
    env.write("lf.txt", "a\nb\n$Id$\n");
    env.write("crlf.txt", "a\r\nb\r\n");
    env.write("mixed.f", "a\r\nb\n\0");
    let kept = seen(env.work());
    checkpoint(&env);
    env.sh("rm -f lf.txt; printf x > crlf.txt; printf y > mixed.f")
        .expect(0);
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    env.json(0, &["checkpoint", "diff", "latest"]);
    assert_eq!(seen(env.work()), kept);
    assert!(!trap.exists(), "a program was run");
}

// snapshot.md: any name comes back; one that is not UTF-8 has path_bytes.
#[test]
fn any_name_comes_back() {
    use std::os::unix::ffi::OsStrExt;
    let env = TestEnv::repo();
    let names: [&[u8]; 7] = [
        b"line\nend",
        b"sp ace",
        b"\xff\xfe.bin",
        b"-dash",
        "é\u{301}".as_bytes(),
        b"tab\t\"q\"",
        &[b'x'; 255],
    ];
    for name in names {
        std::fs::write(env.work().join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    env.sh(
        "ln -s nowhere link; mkdir -p d/e/f; mkdir ro; echo r > ro/r; chmod 640 a.txt; chmod 555 ro; chmod 1777 d/e",
    )
    .expect(0);
    let kept = seen(env.work());
    let made = env.json(0, &["checkpoint", "create"]);
    let files =
        env.json(0, &["checkpoint", "show", &text(&made["checkpoint"]["id"])])["files"].clone();
    assert!(
        files
            .as_array()
            .unwrap()
            .iter()
            .any(|file| file["path_bytes"] == "//4uYmlu"),
        "{files}"
    );
    env.sh("chmod 755 ro; find . -mindepth 1 -maxdepth 1 ! -name .git ! -name .ultraplan -exec rm -rf {} +").expect(0);
    env.write("a.txt", "other\n");
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(seen(env.work()), kept);
    std::fs::set_permissions(
        env.work().join("ro"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
}

// a capture in the middle of a merge keeps all stages; somebody's index.lock is no obstacle and stays.
#[test]
fn a_conflicted_index_is_captured_under_a_foreign_lock() {
    let env = TestEnv::repo();
    env.sh("git switch -qc side; echo side > a.txt; git commit -qam s; git switch -q main; echo main > a.txt; git commit -qam m")
        .expect(0);
    assert_ne!(env.sh("git merge side").code, 0);
    let stages = env.git(&["ls-files", "-s", "-u"]);
    env.write(".git/index.lock", "");
    let before = std::fs::read(env.work().join(".git/index")).unwrap();
    checkpoint(&env);
    assert_eq!(
        std::fs::read(env.work().join(".git/index")).unwrap(),
        before
    );
    assert!(env.exists(".git/index.lock"));
    std::fs::remove_file(env.work().join(".git/index.lock")).unwrap();
    env.sh("echo done > a.txt; git add a.txt").expect(0);
    env.json(
        0,
        &[
            "rollback",
            "--to",
            "latest",
            "--edits",
            "discard",
            "--restore-index",
        ],
    );
    assert_eq!(env.git(&["ls-files", "-s", "-u"]), stages);
    assert!(env.read("a.txt").contains("<<<<<<<"));
}

// state.md: a reference without an event is taken in; `rm -rf .ultraplan` loses nothing that was checkpointed.
#[test]
fn checkpoints_come_back_from_their_references() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "two\n");
    let second = checkpoint(&env);
    env.sh("rm -rf .ultraplan").expect(0);
    env.write("a.txt", "three\n");
    let third = checkpoint(&env);
    let all = env.json(0, &["checkpoint", "list", "--all-runs"]);
    let ids: Vec<String> = all["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["id"]))
        .collect();
    assert!(
        ids.len() == 3 && ids.contains(&second) && ids.contains(&third),
        "{ids:?}"
    );
    env.json(0, &["rollback", "--to", &second, "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "two\n");
}

// snapshot.md, Pruning: a leftover reference of a pruned checkpoint is deleted, never adopted again.
#[test]
fn a_leftover_reference_of_a_pruned_checkpoint_goes() {
    let env = TestEnv::repo();
    for content in ["1\n", "2\n", "3\n", "4\n"] {
        env.write("a.txt", content);
        checkpoint(&env);
    }
    let references = || {
        env.git(&[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/recover",
        ])
    };
    let before = references();
    // Without the lists the objects stay, as they do when a prune is cut off before its references are gone.
    env.sh("rm -r .git/recover/written").expect(0);
    let pruned = env.json(0, &["--yes", "checkpoint", "prune", "--keep-last", "1"]);
    let removed = pruned["removed"].as_array().unwrap().len();
    assert!(removed > 0, "{pruned}");
    let after = references();
    let gone = before.lines().find(|line| !after.contains(*line)).unwrap();
    let (name, commit) = gone.split_once(' ').unwrap();
    env.git(&["update-ref", name, commit]);
    checkpoint(&env);
    assert!(!references().contains(name));
    let left = env.json(0, &["checkpoint", "list", "--all-runs"])["checkpoints"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(left, 4 - removed + 1);
}

// S10: the first iteration of a new phase begins with a checkpoint of that type, which is a milestone.
#[test]
fn a_new_phase_begins_with_a_checkpoint_of_its_own() {
    let env = TestEnv::repo();
    let kinds = |phase: &str| -> Vec<String> {
        let list = env.json(0, &["checkpoint", "list", "--run", "r", "--phase", phase]);
        let all = list["checkpoints"].as_array().expect("a list").iter();
        all.map(|one| format!("{} {}", one["trigger"], one["type"]).replace('"', ""))
            .collect()
    };
    env.json(0, &["run", "--run", "r", "--phase", "P1", "--", "true"]);
    assert_eq!(kinds("P1"), ["initial phase", "attempt task"]);
    env.json(0, &["run", "--run", "r", "--phase", "P2", "--", "true"]);
    assert_eq!(kinds("P2"), ["initial phase", "attempt task"]);
    env.json(0, &["run", "--run", "plain", "--", "true"]);
    let list = env.json(0, &["checkpoint", "list", "--run", "plain"]);
    assert_eq!(list["checkpoints"][0]["type"], "task", "{list}");
}

// As the README says: whoever looks at all branches can leave the checkpoints out.
#[test]
fn git_log_of_everything_can_leave_checkpoints_out() {
    let env = TestEnv::repo();
    env.write("a.txt", "two\n");
    env.json(0, &["checkpoint", "create"]);
    assert!(env.git(&["log", "--all", "--format=%s"]).lines().count() > 1);
    assert_eq!(
        env.git(&["log", "--exclude=refs/recover/*", "--all", "--format=%s"]),
        "first\n"
    );
}

// Where no thread can be started, one does it all: also in a tree that is large enough for several.
#[test]
fn a_large_tree_is_captured_without_threads() {
    let env = TestEnv::repo();
    if env.sh("command -v strace").code != 0 {
        assert!(std::env::var_os("CI").is_none(), "strace is missing");
        eprintln!("skipped: strace is missing");
        return;
    }
    for number in 0..2100 {
        env.write(
            &format!("d{}/f{number}", number % 20),
            format!("{number}\n"),
        );
    }
    env.sh("git add .; git commit -qm many").expect(0);
    let recover = env!("CARGO_BIN_EXE_recover");
    let without = format!(
        "strace -f -o ../calls -e trace=clone3,clone -e inject=clone3,clone:error=EAGAIN {recover}"
    );
    env.sh(&format!("{without} checkpoint create")).expect(0);
    assert!(
        env.sh("grep -c EAGAIN ../calls")
            .expect(0)
            .stdout
            .trim()
            .parse::<u32>()
            .unwrap()
            > 0
    );
    env.write("d3/f3", "changed\n");
    let made = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
    assert_eq!(
        env.git(&["show", &format!("{}:d3/f3", text(&made["commit"]))]),
        "changed\n"
    );
    env.json(0, &["checkpoint", "verify"]);
}
