//! Paths that the system does not let a restore replace, and rights that their owner may give.

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};
use crate::rollback::targets::bound;
use crate::run::attempts::quick;
use crate::seen::{checkpoint, paths, text};

/// Executes `line` in a mount name space of its own; `None` where that cannot be had.
fn with_mounts(env: &TestEnv, line: &str) -> Option<Ran> {
    if env.sh("unshare -rm mount -t tmpfs none /mnt").code != 0 {
        eprintln!("skipped: no mount in a user namespace");
        return None;
    }
    let line = line.replace("recover ", concat!(env!("CARGO_BIN_EXE_recover"), " "));
    Some(Ran::of(
        &env.command("unshare")
            .args(["-rm", "sh", "-c", &line])
            .output()
            .expect("unshare"),
    ))
}

/// The paths of a list with their reasons.
fn reasons(list: &Value) -> Vec<(String, String)> {
    let all = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    all.iter()
        .map(|one| (text(&one["path"]), text(&one["reason"])))
        .collect()
}

fn named(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(path, reason)| ((*path).to_owned(), (*reason).to_owned()))
        .collect()
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
        (
            "echo 2 > ro/f && mount --bind ro ro && mount -o remount,ro,bind ro",
            &[("ro/f", "read_only")],
        ),
    ];
    for (mount, kept) in cases {
        let env = TestEnv::repo();
        env.write("ro/f", "1\n");
        env.write("gone", "here\n");
        env.put("../host", "host\n");
        let id = checkpoint(&env);
        env.remove("gone");
        let command = format!("recover --json rollback --to {id} --edits discard");
        let Some(refused) = with_mounts(&env, &format!("{mount} && {command}")) else {
            return;
        };
        let error = refused.expect(13).json()["error"].clone();
        assert_eq!(
            (&error["code"], reasons(&error["paths"])),
            (&"blocked".into(), named(kept)),
            "{mount}"
        );
        assert!(text(&error["hint"]).contains("--best-effort"), "{error}");
        assert!(!env.exists("gone"));
        env.sh("rm -rf vol").expect(0);
        let plan = with_mounts(
            &env,
            &format!("{mount} && {command} --best-effort --dry-run"),
        )
        .expect("mounts")
        .expect(3);
        assert_eq!(reasons(&plan.json()["plan"]["kept"]), named(kept));
        env.sh("rm -rf vol").expect(0);
        let done = with_mounts(&env, &format!("{mount} && {command} --best-effort"))
            .expect("mounts")
            .expect(3)
            .json();
        assert_eq!(
            (&done["result"]["success"], reasons(&done["result"]["kept"])),
            (&false.into(), named(kept))
        );
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
    let Some(ran) = with_mounts(&env, &line) else {
        return;
    };
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
    for args in [
        &["rollback", "--edits", "discard", "--to"][..],
        &["checkpoint", "restore", "--edits", "discard"],
    ] {
        let args = [args, &[&id]].concat();
        let error = env.json(13, &args)["error"].clone();
        assert_eq!(reasons(&error["paths"]), kept, "{args:?}");
        let done = env.json(3, &[&args[..], &["--best-effort"]].concat());
        assert_eq!(reasons(&done["result"]["kept"]), kept);
        assert_eq!(
            (env.read("a.txt"), env.read("b.txt")),
            ("two\n".into(), "b\n".into())
        );
        env.json(0, &["undo"]);
        assert!(!env.exists("b.txt"));
        env.sh("chattr -i a.txt && echo three > a.txt && chattr +i a.txt")
            .expect(0);
        let again = env.json(13, &["redo", "--edits", "discard"])["error"].clone();
        assert_eq!(
            (&again["code"], reasons(&again["paths"])),
            (&"blocked".into(), kept.clone()),
            "{again}"
        );
        env.json(3, &["redo", "--edits", "discard", "--best-effort"]);
        assert_eq!(
            (env.read("a.txt"), env.read("b.txt")),
            ("three\n".into(), "b\n".into())
        );
        env.sh("chattr -i a.txt && echo two > a.txt && rm b.txt && chattr +i a.txt")
            .expect(0);
    }
    // What was left is not taken for an edit of somebody.
    env.json(
        3,
        &[
            "rollback",
            "--to",
            &id,
            "--edits",
            "discard",
            "--best-effort",
        ],
    );
    env.sh("chattr -i a.txt").expect(0);
    env.json(0, &["rollback", "--to", &id]);
    assert_eq!(env.read("a.txt"), "one\n");
}

// What stays is no edit that was discarded.
#[test]
fn an_edit_that_cannot_be_replaced_is_not_discarded() {
    let env = TestEnv::repo();
    let id = checkpoint(&env);
    env.write("a.txt", "mine\n");
    env.write("b.txt", "mine\n");
    if !immutable(&env, "a.txt") {
        return;
    }
    let back = ["rollback", "--to", &id, "--edits", "discard"];
    let done = env.json(3, &[&back[..], &["--best-effort"]].concat());
    assert_eq!(paths(&done["result"]["kept"]), ["a.txt"]);
    assert_eq!(paths(&done["result"]["edited"]), ["b.txt"]);
    env.sh("chattr -i a.txt").expect(0);
}

// One rule for what no checkpoint takes, whether it is in the place of a file or of a folder: everything else is restored.
#[test]
fn what_is_in_the_way_is_left_on_request() {
    for (line, path) in [
        ("rm -r d; mkfifo d", "d"),
        ("rm d/b; mkfifo d/b", "d/b"),
        ("git init -q d", "d"),
    ] {
        let env = TestEnv::repo();
        env.write("d/b", "b\n");
        let id = checkpoint(&env);
        env.write("a.txt", "two\n");
        env.sh(line).expect(0);
        let back = ["rollback", "--to", &id, "--edits", "discard"];
        let done = env.json(3, &[&back[..], &["--best-effort"]].concat());
        assert_eq!(done["result"]["success"], false, "{done}");
        assert_eq!(env.read("a.txt"), "one\n");
        let kept = paths(&done["result"]["kept"]);
        assert!(kept.contains(&path.to_owned()), "{done}");
        // And how it comes out of the way.
        let mut warnings = done["warnings"]
            .as_array()
            .expect("warnings")
            .iter()
            .map(text);
        let way = warnings.find_map(|one| Some(format!("mv {}", one.split_once(": mv ")?.1)));
        let program = concat!(env!("CARGO_BIN_EXE_recover"), " ");
        env.sh(&way.expect("a command").replace("recover ", program))
            .expect(0);
        assert_eq!(env.read("d/b"), "b\n", "{line}");
    }
}

// Promise 6: what an attempt changed and closed is opened for the restore, and ends as the checkpoint says.
#[test]
fn a_changed_file_that_its_owner_may_not_read_is_restored() {
    for mode in ["000", "200"] {
        let env = quick();
        env.write("secret", "s\n");
        bound(
            &env,
            &format!(
                "run --run night --attempts 2 --on-failure rollback -- sh -c '[ $RECOVER_ATTEMPT = 2 ] || \
                 {{ echo changed > secret; chmod {mode} secret; exit 1; }}'"
            ),
        )
        .expect(0);
        assert_eq!(
            (env.read("secret"), env.mode("secret")),
            ("s\n".into(), 0o644),
            "{mode}"
        );
        bound(
            &env,
            &format!("run --run other -- sh -c 'echo changed > secret; chmod {mode} secret'"),
        )
        .expect(0);
        bound(&env, "rollback --to initial --run other").expect(0);
        assert_eq!(
            (env.read("secret"), env.mode("secret")),
            ("s\n".into(), 0o644),
            "{mode}"
        );
    }
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
    let refused = bound(&env, "--json rollback --to @1 --edits discard")
        .expect(13)
        .json()["error"]
        .clone();
    assert_eq!(
        reasons(&refused["paths"]),
        named(&[("build", "not_owner"), ("build/x", "not_owner")])
    );
    assert_eq!((env.read("own/f"), env.mode("own")), ("g\n".into(), 0o555));
    let done = bound(
        &env,
        "--json rollback --to @1 --edits discard --best-effort",
    )
    .expect(3)
    .json();
    assert_eq!(paths(&done["result"]["kept"]), ["build", "build/x"]);
    assert_eq!(
        (env.read("own/f"), env.exists("own/h"), env.mode("own")),
        ("f\n".into(), false, 0o755)
    );
    assert_eq!(env.read("build/x"), "x\n");
    // It is taken back, and ends with the mode that there was.
    bound(&env, "undo").expect(0);
    assert_eq!(
        (env.read("own/f"), env.exists("own/h"), env.mode("own")),
        ("g\n".into(), true, 0o555)
    );
}

// A folder that goes, or becomes something else, is opened as well and has no mode to end with.
#[test]
fn a_closed_folder_that_goes_is_opened_for_it() {
    let env = TestEnv::repo();
    env.sh("ln -s a.txt link").expect(0);
    bound(&env, "checkpoint create").expect(0);
    env.sh("rm link; mkdir -p link new/deep; echo l > link/l; echo n > new/deep/n; chmod 555 link new/deep new")
        .expect(0);
    bound(&env, "rollback --to @1 --edits discard").expect(0);
    assert!(!env.exists("new") && env.sh("test -L link").code == 0);
    bound(&env, "undo").expect(0);
    assert_eq!(
        (env.read("new/deep/n"), env.mode("new"), env.mode("link")),
        ("n\n".into(), 0o555, 0o555)
    );
}

/// Three iterations under a user whom permissions bind; the first one is given up.
fn night(env: &TestEnv, first: &str, check: &str) -> Ran {
    env.script(
        "../agent.sh",
        &format!("cat > ../prompt-$RECOVER_ITERATION\n[ $RECOVER_ITERATION = 1 ] && {{ {first}; }}\necho $RECOVER_ITERATION > work-$RECOVER_ITERATION"),
    );
    let command = format!(
        "--json run --run r --iterations 3 --prompt p --feedback 'test={check}' -- sh ../agent.sh"
    );
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
    let statuses: Vec<&Value> = document["iterations"]
        .as_array()
        .expect("iterations")
        .iter()
        .map(|one| &one["status"])
        .collect();
    assert_eq!(
        statuses,
        ["skipped", "completed", "completed"],
        "{document:#}"
    );
    assert_eq!(
        (env.read("base"), env.read("build/x")),
        ("sound\n".into(), "x\n".into())
    );
    assert!(
        env.read("../prompt-2").contains("build/x"),
        "{}",
        env.read("../prompt-2")
    );
    assert!(env.json(0, &["checkpoint", "show", "good"])["checkpoint"]["after_iteration"] == 3);
}

// What the checks read, or the checkpoint has, stops it: 8, everything else is back, and nothing of it is good.
#[test]
fn a_night_stops_where_what_is_left_can_change_a_verdict() {
    for (first, path) in [
        (
            "mkdir tests; echo x > tests/test_x.py; chown -R 1234 tests",
            "tests/test_x.py",
        ),
        ("echo broken > kept/f; chown -R 1234 kept", "kept/f"),
    ] {
        let env = quick();
        if !is_root(&env) {
            return;
        }
        env.write("base", "sound\n");
        env.write("kept/f", "f\n");
        let ran = night(
            &env,
            &format!("echo broken > base; {first}"),
            "! grep -q broken base",
        )
        .expect(8);
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
        let verdicts: Vec<&Value> = all
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| &one["verdict"])
            .collect();
        assert!(!verdicts.contains(&&"passed".into()), "{verdicts:?}");
    }
}

/// Two attempts, of which the first does `first` and fails.
fn attempts(env: &TestEnv, first: &str) -> Ran {
    attempts_then(env, first, "")
}

fn attempts_then(env: &TestEnv, first: &str, then: &str) -> Ran {
    env.script(
        "../agent.sh",
        &format!(
            "cat > ../prompt-$RECOVER_ATTEMPT\nif [ $RECOVER_ATTEMPT = 1 ]; then {first}; exit 1; fi{then}"
        ),
    );
    let command =
        "--json run --run r --attempts 2 --on-failure rollback --prompt p -- sh ../agent.sh";
    bound(env, command)
}

// Promise 6: whatever the reason, a path that the checkpoint has and that stays as the attempt left it stops the night; a
// person's rollback lists it.
#[test]
fn a_night_stops_where_the_checkpoint_has_other_files() {
    for (first, path) in [
        ("rm a.txt; mkfifo a.txt", "a.txt"),
        ("git init -q d; echo bad > d/c", "d/c"),
        ("truncate -s 200M u", "u"),
        ("echo bad > own/f", "own"),
    ] {
        let env = quick();
        env.write("d/c", "c\n");
        env.sh("git add d; git commit -qm d; git init -q own; echo f > own/f; git -C own add f; git -C own commit -qm own")
            .expect(0);
        env.write("u", "u\n");
        let ran = attempts(&env, &format!("echo new > n; {first}")).expect(8);
        assert_eq!(ran.json()["outcome"], "paused", "{first}");
        assert!(ran.stdout.contains(path), "{}", ran.stdout);
        assert!(!env.exists("n"), "everything else is back");
        // An attempt in such a tree proves nothing.
        bound(&env, "--json resume --strategy continue_next --yes");
        let all = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
        let all = all.as_array().expect("a list").iter();
        assert!(all.clone().all(|one| one["verdict"] != "passed"), "{first}");
        if path == "own" {
            // It has an option of its own.
            env.json(0, &["rollback", "--to", "initial", "--nested"]);
            assert_eq!(env.read("own/f"), "f\n");
            continue;
        }
        let done = env.json(0, &["rollback", "--to", "initial"]);
        let kept = &done["result"]["kept"];
        assert!(paths(kept).contains(&path.to_owned()), "{done}");
        env.sh(&format!("rm -rf {path} d/.git")).expect(0);
        env.json(0, &["rollback", "--to", "initial", "--edits", "discard"]);
        assert!(env.exists(path));
    }
}

// What is new is named to the next attempt, what was there before and what git ignores is nobody's concern.
#[test]
fn a_night_goes_on_beside_what_no_checkpoint_takes() {
    let env = quick();
    env.write(".gitignore", "*.log\n");
    env.sh(
        "mkfifo before; truncate -s 200M big; git init -q mine; echo 1 > mine/f; echo 1 > a.log",
    )
    .expect(0);
    let first =
        "mkfifo pipe; git init -q clone; echo x > clone/x; echo 2 > a.log; truncate -s 300M new";
    attempts(&env, first).expect(0);
    let prompt = env.read("../prompt-2");
    let left = prompt
        .split("## Files Of An Earlier Attempt")
        .nth(1)
        .expect("a section");
    for path in ["- pipe", "- clone", "- new"] {
        assert!(left.contains(path), "{prompt}");
    }
    for path in ["- before", "- big", "- mine", "a.log"] {
        assert!(!left.contains(path), "{prompt}");
    }
    let all = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    let mut all = all.as_array().expect("a list").iter();
    assert!(all.any(|one| one["verdict"] == "passed"));

    let env = quick();
    let ran = attempts(&env, "mkdir tests; mkfifo tests/test_x.py").expect(8);
    assert!(ran.stdout.contains("tests/test_x.py"), "{}", ran.stdout);
}

// What a rollback of an attempt could not remove is no work of the run: neither what no checkpoint took nor what is
// immutable. What a later attempt makes beside it is.
#[test]
fn what_a_rollback_left_behind_is_not_accepted() {
    let flood = "mkdir b c; for i in $(seq 80); do echo $i > b/$i; echo $i > c/$i; done";
    let immutable_file = "mkdir b; echo 1 > b/1; chattr +i b/1";
    for first in [flood, immutable_file] {
        let env = quick();
        if first == immutable_file {
            if !immutable(&env, "a.txt") {
                continue;
            }
            env.sh("chattr -i a.txt").expect(0);
        }
        env.write(
            ".ultraplan/recover.toml",
            "[checkpoint]\nmax_untracked_files = 100\n[cooldown]\nduration = \"10ms\"\n[retry]\nbase_delay = \"10ms\"\n",
        );
        let then = "; echo good > g; echo made > b/made";
        attempts_then(&env, first, then).expect(0);
        let left = if first == flood { "b" } else { "b/1" };

        let status = env.json(0, &["status"]);
        let look = status["night"]["to_look_at"].as_array().expect("a list");
        let one = look.iter().find(|one| one["kind"] == "left_behind");
        let text = one.unwrap_or_else(|| panic!("{status}"))["text"]
            .as_str()
            .expect("text");
        assert!(text.contains(&format!(" replace {left};")), "{text}");

        let accepted = env.json(0, &["accept"]);
        assert_eq!(
            accepted["left_out"],
            json!([{"path": left, "reason": "left_behind"}]),
            "{accepted}"
        );
        let committed = env.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert_eq!(committed.trim(), "b/made\ng", "{first}");
        assert_eq!(env.read("b/1"), "1\n");
        env.json(0, &["accept", "--include", left]);
        let committed = env.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert!(committed.contains("b/1\n"), "{committed}");
        env.sh("chattr -i b/1");
    }
}

// What an earlier iteration made in a folder that is left with a flood is the run's own, after a person went on.
#[test]
fn what_came_before_a_flood_is_accepted() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nmax_untracked_files = 100\n[cooldown]\nduration = \"10ms\"\n[retry]\nbase_delay = \"10ms\"\n",
    );
    env.script(
        "../agent.sh",
        "if [ $RECOVER_ITERATION = 1 ]; then mkdir src; echo made > src/made; echo changed > a.txt; exit; fi\n\
         [ $RECOVER_ATTEMPT = 1 ] || exit 0\n\
         mkdir c; for i in $(seq 80); do echo $i > c/$i; echo $i > src/$i; done; exit 1",
    );
    let line = "run --run r --iterations 2 --attempts 2 --on-failure rollback -- sh ../agent.sh";
    bound(&env, line).expect(8);
    env.recover(&["resume", "--run", "r"]).expect(0);
    let accepted = env.json(0, &["accept"]);
    let committed = env.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(committed.trim(), "a.txt\nsrc/made", "{accepted}");
}

// What is brought back as it was before the rollback is the run's again.
#[test]
fn what_a_rollback_left_and_undo_brought_back_is_accepted() {
    let env = quick();
    if !immutable(&env, "a.txt") {
        return;
    }
    env.sh("chattr -i a.txt").expect(0);
    bound(
        &env,
        "run --run r -- sh -c 'echo 1 > f; chattr +i f; echo 2 > g'",
    )
    .expect(0);
    env.recover(&["rollback", "--to", "initial", "--best-effort"])
        .expect(3);
    assert!(!env.exists("g"));
    env.recover(&["undo"]).expect(0);
    let accepted = env.json(0, &["accept"]);
    assert_eq!(accepted["left_out"], json!([]), "{accepted}");
    let committed = env.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(committed.trim(), "f\ng");
    env.sh("chattr -i f").expect(0);
}

// New files without rights are an attempt's as well: captured, and taken back.
#[test]
fn what_an_attempt_made_and_closed_is_taken_back() {
    let env = quick();
    let first = "mkdir -p n/m; echo q > n/m/conftest.py; chmod 000 n; echo x > f; chmod 000 f";
    attempts(&env, first).expect(0);
    assert!(!env.exists("n") && !env.exists("f"));
    let all = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    let failed = all.as_array().expect("a list").iter();
    let failed = failed
        .clone()
        .find(|one| one["verdict"] == "failed")
        .expect("one");
    assert_eq!(failed["partial"], false, "{failed}");
}

// Promise 6: an agent's `chmod 000` neither loses what is in the folder nor stops the rollback.
#[test]
fn what_an_attempt_closed_is_captured_and_opened_again() {
    let env = quick();
    env.write("src/deep/f", "f\n");
    env.write("src/g", "g\n");
    env.sh("mkdir mine; echo secret > mine/s; chmod 000 mine")
        .expect(0);
    let agent = "if [ $RECOVER_ATTEMPT = 1 ]; then echo new > src/deep/f; echo made > src/h; chmod 000 src/g src/deep src; false; fi";
    env.script("../agent.sh", agent);
    let command = "--json run --run r --attempts 2 --on-failure rollback --feedback 't=test -r src/g' -- sh ../agent.sh";
    bound(&env, command).expect(0);
    assert_eq!(
        (
            env.read("src/deep/f"),
            env.read("src/g"),
            env.exists("src/h")
        ),
        ("f\n".into(), "g\n".into(), false)
    );
    assert_eq!(
        (env.mode("src"), env.mode("src/deep"), env.mode("src/g")),
        (0o755, 0o755, 0o644)
    );
    assert_eq!(env.mode("mine"), 0, "what a person closed stays closed");
    // The attempt's checkpoint has its content, with the modes that it left.
    let list = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    let failed = list
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["verdict"] == "failed")
        .expect("one")
        .clone();
    assert!(
        !paths(&failed["skipped"])
            .iter()
            .any(|path| path.starts_with("src")),
        "{failed}"
    );
    bound(
        &env,
        &format!(
            "--json checkpoint restore {} --edits discard",
            text(&failed["id"])
        ),
    )
    .expect(0);
    assert_eq!(env.mode("src"), 0);
    // And a restore of it goes back as well.
    bound(&env, "undo").expect(0);
    assert_eq!(
        (
            env.read("src/deep/f"),
            env.mode("src"),
            env.mode("src/deep")
        ),
        ("f\n".into(), 0o755, 0o755)
    );
    bound(&env, "redo").expect(0);
    env.sh("chmod 755 src src/deep; chmod 644 src/g").expect(0);
    assert_eq!(
        (env.read("src/deep/f"), env.read("src/h")),
        ("new\n".into(), "made\n".into())
    );
    assert!(!env.exists(".git/recover/loan.json"));
}

fn has(env: &TestEnv, program: &str) -> bool {
    let has = env.sh(&format!("command -v {program}")).code == 0;
    if !has {
        eprintln!("skipped: {program} is missing");
    }
    has
}

// Promise 7: the mask of an ACL is never the group's right, and what a folder gives new files is not added.
#[test]
fn a_replaced_file_keeps_its_acl_and_attributes() {
    let env = TestEnv::repo();
    if !has(&env, "setfacl") || !has(&env, "setfattr") {
        return;
    }
    env.write("d/plain", "one\n");
    let marked = "setfacl -m g::---,u:1234:rw a.txt && setfattr -n user.mark -v kept a.txt && setfacl -d -m u:4321:rw d";
    if env.sh(marked).code != 0 {
        eprintln!("skipped: no ACLs here");
        return;
    }
    let acl = |path: &str| env.sh(&format!("getfacl -cn {path}")).expect(0).stdout;
    let (before, plain) = (acl("a.txt"), acl("d/plain"));
    assert!(
        before.contains("group::---") && before.contains("mask::rw-"),
        "{before}"
    );
    let id = checkpoint(&env);
    env.sh("echo two > a.txt; echo two > d/plain; mkdir new; setfacl -d -m u:4321:rw new; echo n > new/n").expect(0);
    let document = env.json(0, &["rollback", "--to", &id, "--edits", "discard"]);
    assert_eq!((env.read("a.txt"), acl("a.txt")), ("one\n".into(), before));
    assert_eq!(
        (env.read("d/plain"), acl("d/plain")),
        ("one\n".into(), plain)
    );
    assert_eq!(
        env.sh("getfattr --only-values -n user.mark a.txt")
            .expect(0)
            .stdout,
        "kept"
    );
    let warnings = document["warnings"].to_string();
    assert!(
        warnings.contains("new: its default ACL is lost"),
        "{warnings}"
    );
}

#[test]
fn capabilities_are_not_given_to_other_content() {
    let env = TestEnv::repo();
    let id = checkpoint(&env);
    env.write("a.txt", "two\n");
    if !has(&env, "setcap") || env.sh("setcap cap_net_raw+ep a.txt").code != 0 {
        eprintln!("skipped: no file can be given capabilities");
        return;
    }
    let document = env.json(0, &["rollback", "--to", &id, "--edits", "discard"]);
    assert_eq!(env.sh("getcap a.txt").expect(0).stdout, "");
    assert!(
        document["warnings"]
            .to_string()
            .contains("a.txt: its file capabilities"),
        "{document}"
    );
}

// The hint makes the state writable again, whatever lacks rights.
#[test]
fn a_state_without_rights_is_opened_by_the_hint() {
    for closed in [
        "chmod -R a-w .",
        "chmod 000 .ultraplan",
        "chmod 000 .ultraplan/state",
        "chmod 000 .git/recover",
    ] {
        let env = TestEnv::repo();
        let id =
            text(&bound(&env, "--json checkpoint create").expect(0).json()["checkpoint"]["id"]);
        env.sh(&format!("echo two > a.txt; {closed}")).expect(0);
        let rollback = format!("--json rollback --to {id} --edits discard");
        let ran = bound(&env, &rollback);
        assert_ne!(ran.code, 0, "{closed}");
        let hint = text(&ran.json()["error"]["hint"]);
        assert!(hint.starts_with("chmod -R u+rwX /"), "{closed}: {hint}");
        env.sh(&hint).expect(0);
        bound(&env, &rollback).expect(0);
        assert_eq!(
            (env.read("a.txt"), env.mode("a.txt")),
            ("one\n".into(), 0o644),
            "{closed}"
        );
    }
}

// Where nothing of ours is there yet, either: the error says what was not possible, and the hint makes it so.
#[test]
fn a_project_without_rights_is_opened_by_the_hint() {
    let env = TestEnv::repo();
    env.sh("chmod -R a-w .").expect(0);
    let refused = bound(&env, "--json checkpoint create");
    assert_ne!(refused.code, 0);
    let error = refused.json()["error"].clone();
    assert!(
        text(&error["message"]).starts_with("cannot access /"),
        "{error}"
    );
    env.sh(&text(&error["hint"])).expect(0);
    bound(&env, "--json checkpoint create").expect(0);
}
