//! Paths that the system does not let a restore replace, and rights that their owner may give.

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::rollback::bound;
use crate::run::quick;
use crate::seen::{checkpoint, paths, text};

/// Executes `line` in a mount name space of its own; `None` where that cannot be had.
fn with_mounts(env: &TestEnv, line: &str) -> Option<Ran> {
    if env.sh("unshare -rm mount -t tmpfs none /mnt").code != 0 {
        eprintln!("skipped: no mount in a user namespace");
        return None;
    }
    let line = line.replace("recover ", concat!(env!("CARGO_BIN_EXE_recover"), " "));
    Some(Ran::of(&env.command("unshare").args(["-rm", "sh", "-c", &line]).output().expect("unshare")))
}

/// The paths of a list with their reasons.
fn reasons(list: &Value) -> Vec<(String, String)> {
    let all = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    all.iter().map(|one| (text(&one["path"]), text(&one["reason"]))).collect()
}

fn named(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(path, reason)| ((*path).to_owned(), (*reason).to_owned())).collect()
}

// Promise 6: a mounted file, a volume that the checkpoint does not have, a read-only one.
#[test]
fn mounts_are_found_before_anything_is_written() {
    let cases: [(&str, &[(&str, &str)]); 3] = [
        ("mount --bind ../host a.txt", &[("a.txt", "mount_point")]),
        (
            "mkdir vol && mount -t tmpfs none vol && echo art > vol/art",
            &[("vol", "mount_point"), ("vol/art", "mount_point")],
        ),
        ("echo 2 > ro/f && mount --bind ro ro && mount -o remount,ro,bind ro", &[("ro/f", "read_only")]),
    ];
    for (mount, kept) in cases {
        let env = TestEnv::repo();
        env.write("ro/f", "1\n");
        env.write("gone", "here\n");
        env.put("../host", "host\n");
        let id = checkpoint(&env);
        env.remove("gone");
        let command = format!("recover --json rollback --to {id} --edits discard");
        let Some(refused) = with_mounts(&env, &format!("{mount} && {command}")) else { return };
        let error = refused.expect(13).json()["error"].clone();
        assert_eq!((&error["code"], reasons(&error["paths"])), (&"blocked".into(), named(kept)), "{mount}");
        assert!(text(&error["hint"]).contains("--best-effort"), "{error}");
        assert!(!env.exists("gone"));
        env.sh("rm -rf vol").expect(0);
        let plan =
            with_mounts(&env, &format!("{mount} && {command} --best-effort --dry-run")).expect("mounts").expect(3);
        assert_eq!(reasons(&plan.json()["plan"]["kept"]), named(kept));
        env.sh("rm -rf vol").expect(0);
        let done = with_mounts(&env, &format!("{mount} && {command} --best-effort")).expect("mounts").expect(3).json();
        assert_eq!((&done["result"]["success"], reasons(&done["result"]["kept"])), (&false.into(), named(kept)));
        assert_eq!(env.read("gone"), "here\n");
    }
}

#[test]
fn nothing_of_a_volume_is_deleted() {
    let env = TestEnv::repo();
    let id = checkpoint(&env);
    let line = format!(
        "mkdir -p new/vol && mount -t tmpfs none new/vol && mkdir new/vol/d && echo art > new/vol/d/art && echo x > new/x \
         && recover --json rollback --to {id} --edits discard --best-effort; cat new/vol/d/art; ls new"
    );
    let Some(ran) = with_mounts(&env, &line) else { return };
    assert!(ran.stdout.ends_with("art\nvol\n"), "{ran:?}");
}

fn immutable(env: &TestEnv, path: &str) -> bool {
    let is = env.sh(&format!("chattr +i {path}")).code == 0;
    if !is {
        eprintln!("skipped: no file can be made immutable");
    }
    is
}

// All restores have the option, and what they leave is no edit by hand of anybody.
#[test]
fn an_immutable_file_is_left_on_request() {
    let env = TestEnv::repo();
    env.write("b.txt", "b\n");
    let id = checkpoint(&env);
    env.write("a.txt", "two\n");
    env.remove("b.txt");
    if !immutable(&env, "a.txt") {
        return;
    }
    let kept = named(&[("a.txt", "immutable")]);
    for args in [&["rollback", "--edits", "discard", "--to"][..], &["checkpoint", "restore", "--edits", "discard"]] {
        let args = [args, &[&id]].concat();
        let error = env.json(13, &args)["error"].clone();
        assert_eq!(reasons(&error["paths"]), kept, "{args:?}");
        let done = env.json(3, &[&args[..], &["--best-effort"]].concat());
        assert_eq!(reasons(&done["result"]["kept"]), kept);
        assert_eq!((env.read("a.txt"), env.read("b.txt")), ("two\n".into(), "b\n".into()));
        env.json(0, &["undo"]);
        assert!(!env.exists("b.txt"));
        env.sh("chattr -i a.txt && echo three > a.txt && chattr +i a.txt").expect(0);
        let again = env.json(13, &["redo", "--edits", "discard"])["error"].clone();
        assert_eq!((&again["code"], reasons(&again["paths"])), (&"blocked".into(), kept.clone()), "{again}");
        env.json(3, &["redo", "--edits", "discard", "--best-effort"]);
        assert_eq!((env.read("a.txt"), env.read("b.txt")), ("three\n".into(), "b\n".into()));
        env.sh("chattr -i a.txt && echo two > a.txt && rm b.txt && chattr +i a.txt").expect(0);
    }
    // What was left is not taken for an edit of somebody.
    env.json(3, &["rollback", "--to", &id, "--edits", "discard", "--best-effort"]);
    env.sh("chattr -i a.txt").expect(0);
    env.json(0, &["rollback", "--to", &id]);
    assert_eq!(env.read("a.txt"), "one\n");
}

/// Whether files can be given away.
fn is_root(env: &TestEnv) -> bool {
    let root = env.sh("id -u").stdout.trim() == "0";
    if !root {
        eprintln!("skipped: only root may give files away");
    }
    root
}

// Without --best-effort nothing is written; what is the owner's to give is no obstacle.
#[test]
fn a_folder_of_somebody_else_is_left_on_request() {
    let env = TestEnv::repo();
    if !is_root(&env) {
        return;
    }
    env.write("own/f", "f\n");
    bound(&env, "checkpoint create").expect(0);
    env.sh("mkdir build; echo x > build/x; chown -R 1234 build; echo g > own/f; echo h > own/h; chmod 555 own")
        .expect(0);
    let refused = bound(&env, "--json rollback --to @1 --edits discard").expect(13).json()["error"].clone();
    assert_eq!(reasons(&refused["paths"]), named(&[("build", "not_owner"), ("build/x", "not_owner")]));
    assert_eq!((env.read("own/f"), env.mode("own")), ("g\n".into(), 0o555));
    let done = bound(&env, "--json rollback --to @1 --edits discard --best-effort").expect(3).json();
    assert_eq!(paths(&done["result"]["kept"]), ["build", "build/x"]);
    assert_eq!((env.read("own/f"), env.exists("own/h"), env.mode("own")), ("f\n".into(), false, 0o755));
    assert_eq!(env.read("build/x"), "x\n");
    // It is taken back, and ends with the mode that there was.
    bound(&env, "undo").expect(0);
    assert_eq!((env.read("own/f"), env.exists("own/h"), env.mode("own")), ("g\n".into(), true, 0o555));
}

/// Three iterations under a user whom permissions bind; the first one is given up.
fn night(env: &TestEnv, first: &str, check: &str) -> Ran {
    env.script(
        "../agent.sh",
        &format!("cat > ../prompt-$RECOVER_ITERATION\n[ $RECOVER_ITERATION = 1 ] && {{ {first}; }}\necho $RECOVER_ITERATION > work-$RECOVER_ITERATION"),
    );
    let command = format!("--json run --run r --iterations 3 --feedback 'test={check}' -- sh ../agent.sh");
    bound(env, &command)
}

// What the given up iteration made, and only root could remove, holds up no night; the next prompt names it.
#[test]
fn a_night_goes_on_beside_new_files_that_cannot_be_removed() {
    let env = quick();
    if !is_root(&env) {
        return;
    }
    env.write("base", "sound\n");
    let first = "echo broken > base; mkdir build; echo x > build/x; chown -R 1234 build";
    let ran = night(&env, first, "! grep -q broken base").expect(8);
    let document = ran.json();
    let statuses: Vec<&Value> =
        document["iterations"].as_array().expect("iterations").iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["skipped", "completed", "completed"], "{document:#}");
    assert_eq!((env.read("base"), env.read("build/x")), ("sound\n".into(), "x\n".into()));
    assert!(env.read("../prompt-2").contains("build/x"), "{}", env.read("../prompt-2"));
    assert!(env.json(0, &["checkpoint", "show", "good"])["checkpoint"]["after_iteration"] == 3);
}

// What the checks read, or the checkpoint has, stops it: 8, everything else is back, and nothing of it is good.
#[test]
fn a_night_stops_where_what_is_left_can_change_a_verdict() {
    for (first, path) in [
        ("mkdir tests; echo x > tests/test_x.py; chown -R 1234 tests", "tests/test_x.py"),
        ("echo broken > kept/f; chown -R 1234 kept", "kept/f"),
    ] {
        let env = quick();
        if !is_root(&env) {
            return;
        }
        env.write("base", "sound\n");
        env.write("kept/f", "f\n");
        let ran = night(&env, &format!("echo broken > base; {first}"), "! grep -q broken base").expect(8);
        let document = ran.json();
        assert_eq!(
            (&document["outcome"], &document["run"]["status"]),
            (&"paused".into(), &"paused".into()),
            "{document:#}"
        );
        assert!(ran.stderr.contains(path), "{}", ran.stderr);
        assert_eq!(env.read("base"), "sound\n");
        assert!(!env.exists("work-2"));
        // An attempt in such a tree proves nothing.
        bound(&env, "--json resume --strategy continue_next --yes").expect(0);
        assert!(env.exists("work-3"));
        let all = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
        let verdicts: Vec<&Value> = all.as_array().expect("a list").iter().map(|one| &one["verdict"]).collect();
        assert!(!verdicts.contains(&&"passed".into()), "{verdicts:?}");
    }
}
