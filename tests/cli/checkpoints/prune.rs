//! `checkpoint prune`: what goes, what stays, and why.

use std::collections::BTreeMap;

use crate::env::TestEnv;
use serde_json::Value;

pub const DAY: i64 = 86_400;

/// Checkpoints of one run, each with a content of its own, `age` days old.
fn checkpoints(env: &mut TestEnv, run: &str, ages: &[i64]) -> Vec<String> {
    ages.iter()
        .enumerate()
        .map(|(number, age)| {
            env.write("a.txt", format!("{run} {number}\n").repeat(400));
            at(env, -age * DAY);
            let made = env.json(0, &["checkpoint", "create", "--run", run]);
            made["checkpoint"]["id"].as_str().expect("an id").to_owned()
        })
        .collect()
}

/// Sets the clock to so many seconds after a fixed moment.
pub fn at(env: &mut TestEnv, seconds: i64) {
    let base = 1_790_000_000 + seconds;
    let text = env
        .sh(&format!("date -u -d @{base} +%Y-%m-%dT%H:%M:%S.000Z"))
        .expect(0)
        .stdout;
    env.set("RECOVER_TEST_NOW", text.trim());
}

/// Bytes of all files of the object database.
fn objects_size(env: &TestEnv) -> u64 {
    let sizes = env
        .sh("find .git/objects -type f -printf '%s\\n'")
        .expect(0)
        .stdout;
    sizes
        .lines()
        .map(|size| size.parse::<u64>().expect("a size"))
        .sum()
}

fn reasons(list: &Value) -> BTreeMap<String, String> {
    let of = |one: &Value| {
        let reasons: Vec<&str> = one["reasons"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(!reasons.is_empty(), "{one}");
        (
            one["id"].as_str().expect("an id").to_owned(),
            reasons.join("; "),
        )
    };
    list.as_array().expect("a list").iter().map(of).collect()
}

// B14, S14: the configured limits; every checkpoint has a reason; references and contents go.
#[test]
fn the_configured_limits_hold_with_a_reason_for_each() {
    let mut env = TestEnv::repo();
    let ids = checkpoints(
        &mut env,
        "r",
        &[40, 39, 38, 20, 20, 20, 20, 20, 20, 20, 5, 4, 3],
    );
    at(&mut env, 0);
    let planned = env.json(0, &["checkpoint", "prune", "--dry-run"]);
    assert_eq!(planned["changed"], false);
    assert_eq!(
        env.git(&["for-each-ref", "refs/recover"]).lines().count(),
        13
    );
    let before = objects_size(&env);
    let done = env.json(0, &["checkpoint", "prune"]);
    assert_eq!(
        (&done["removed"], &done["kept"]),
        (&planned["removed"], &planned["kept"]),
        "the very plan"
    );
    let (kept, removed) = (reasons(&done["kept"]), reasons(&done["removed"]));
    assert_eq!(kept.len() + removed.len(), 13);
    assert_eq!(removed.keys().cloned().collect::<Vec<_>>(), ids[1..3]);
    assert!(kept[&ids[0]].contains("initial"), "{kept:?}");
    assert!(
        removed.values().all(|why| why == "older than max_age"),
        "{removed:?}"
    );
    // What was freed is the files that are gone; before, it is the content that would go, not compressed.
    assert_eq!(
        done["freed_bytes"].as_u64().unwrap(),
        before - objects_size(&env)
    );
    assert!(
        planned["freed_bytes"].as_u64().unwrap() > 2000,
        "{}",
        planned["freed_bytes"]
    );
    assert!(
        done["objects_removed"].as_u64().unwrap() >= 6,
        "{}",
        done["objects_removed"]
    );
    assert_eq!(planned["objects_removed"], 0);
    assert!(done["objects_left"].is_null());
    env.git(&["fsck", "--strict"]);

    let refs = env.git(&["for-each-ref", "refs/recover"]);
    assert!(refs.lines().count() == 11 && !refs.contains(&ids[1]));
    assert_eq!(
        env.json(4, &["checkpoint", "show", &ids[1]])["error"]["code"],
        "no_checkpoint"
    );
    env.json(0, &["doctor"]);
    assert_eq!(env.json(0, &["checkpoint", "prune"])["changed"], false);
    assert_eq!(env.json(0, &["checkpoint", "prune"])["freed_bytes"], 0);
}

// S14: protections come before any limit.
#[test]
fn protected_ones_stay_whatever_is_asked() {
    let mut env = TestEnv::repo();
    let ids = checkpoints(&mut env, "r", &[9, 8, 7, 6, 5, 4]);
    env.json(0, &["checkpoint", "pin", &ids[1]]);
    env.write("a.txt", "phase");
    let milestone =
        env.json(0, &["checkpoint", "create", "--type", "phase"])["checkpoint"]["id"].clone();
    env.write("a.txt", "good");
    env.json(0, &["attempt", "pass"]);
    let good = env.json(0, &["checkpoint", "show", "good"])["checkpoint"]["id"].clone();
    let undo =
        env.json(0, &["checkpoint", "restore", &ids[2]])["result"]["safety_checkpoint_id"].clone();
    at(&mut env, 0);
    let done = env.json(
        0,
        &[
            "checkpoint",
            "prune",
            "--max-age",
            "1s",
            "--drop-passed",
            "--drop-failed",
        ],
    );
    let kept = reasons(&done["kept"]);
    let why = |id: &Value| kept.get(id.as_str().unwrap()).cloned().unwrap_or_default();
    assert!(kept[&ids[1]].contains("pinned"), "{kept:?}");
    assert!(why(&milestone).contains("milestone"), "{kept:?}");
    assert!(why(&good).contains("good"), "{kept:?}");
    assert!(why(&undo).contains("undo"), "{kept:?}");
    assert!(reasons(&done["removed"]).contains_key(&ids[3]), "{done}");
    env.json(0, &["undo"]);
    assert_eq!(env.read("a.txt"), "good");
}

// S14: an open run can always be put back to where it began and to where it was last good.
#[test]
fn an_open_run_keeps_its_initial_and_its_last_good_one() {
    let mut env = crate::morning::manual_fix::failed_run();
    let id =
        |selector: &str| env.json(0, &["checkpoint", "show", selector])["checkpoint"]["id"].clone();
    let (initial, good) = (id("initial"), id("good"));
    env.set("RECOVER_TEST_NOW", "2040-01-01T00:00:00.000Z");
    let done = env.json(
        0,
        &[
            "checkpoint",
            "prune",
            "--max-age",
            "1s",
            "--drop-passed",
            "--drop-failed",
        ],
    );
    let kept = reasons(&done["kept"]);
    assert!(
        kept[initial.as_str().unwrap()].contains("initial"),
        "{kept:?}"
    );
    assert!(
        kept[good.as_str().unwrap()].contains("last good"),
        "{kept:?}"
    );
    env.json(0, &["rollback", "--full"]);
    assert!(!env.exists("state"));
}

// B14: the flags, each.
#[test]
fn flags_say_what_stays() {
    let kept = |flags: &[&str]| {
        let mut env = TestEnv::repo();
        let ids = checkpoints(&mut env, "r", &[30, 30, 16, 15, 8, 2, 2, 1]);
        at(&mut env, 0);
        let done = env.json(0, &[&["checkpoint", "prune", "--dry-run"], flags].concat());
        let kept = reasons(&done["kept"]);
        assert!(kept[&ids[0]].contains("initial"), "{kept:?}");
        let others = ids.iter().enumerate().skip(1);
        others
            .filter(|(_, id)| kept.contains_key(*id))
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    // The last one is what undo starts from.
    assert_eq!(kept(&["--keep-last", "2"]), [6, 7]);
    assert_eq!(kept(&["--keep-within", "9d"]), [4, 5, 6, 7]);
    assert_eq!(kept(&["--keep-daily", "2"]), [6, 7]);
    assert_eq!(kept(&["--keep-weekly", "2"]).len(), 2);
    assert_eq!(kept(&["--max-age", "10d"]), [4, 5, 6, 7]);
    assert_eq!(kept(&["--max-age", "10d", "--keep-last", "1"]), [7]);
    // About 1,600 bytes each.
    assert_eq!(kept(&["--max-total-size", "5KiB"]), [5, 6, 7]);
    assert_eq!(kept(&["--max-total-size", "1GiB"]).len(), 7);
}

// S13: a failed run keeps its checkpoints as evidence, until they are old.
#[test]
fn failed_runs_keep_theirs_until_they_are_old() {
    let mut env = TestEnv::repo();
    at(&mut env, 0);
    env.json(
        6,
        &[
            "run",
            "--run",
            "r",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            "echo x > x; exit 3",
        ],
    );
    let prune = [
        "checkpoint",
        "prune",
        "--keep-last",
        "0",
        "--max-age",
        "1s",
        "--run",
        "r",
        "--yes",
    ];
    at(&mut env, 3 * DAY);
    let kept = env.json(0, &prune);
    assert!(
        reasons(&kept["kept"])
            .values()
            .all(|why| why.contains("the run failed")),
        "{kept}"
    );
    at(&mut env, 31 * DAY);
    let late = env.json(0, &prune);
    assert!(
        reasons(&late["kept"])
            .values()
            .all(|why| !why.contains("the run failed")),
        "{late}"
    );
}

// Contract: emptying a run takes its name and a yes.
#[test]
fn removing_everything_has_to_be_said() {
    let mut env = TestEnv::repo();
    at(&mut env, 0);
    env.json(
        0,
        &["run", "--run", "a", "--", "sh", "-c", "echo 1 > a.txt"],
    );
    env.json(
        0,
        &["run", "--run", "b", "--", "sh", "-c", "echo 2 > a.txt"],
    );
    at(&mut env, 9 * DAY);
    let all = ["checkpoint", "prune", "--run", "a", "--max-age", "1s"];
    let refused = env.json(13, &all);
    assert_eq!(refused["error"]["code"], "confirmation_needed");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--yes"),
        "{refused}"
    );
    // Whatever else is to be removed beside that.
    for more in [
        &[][..],
        &["--max-age", "1s"],
        &["--drop-passed", "--drop-failed"],
        &["--max-total-size", "1GiB"],
    ] {
        let refused = env.json(
            13,
            &[&["checkpoint", "prune", "--keep-last", "0"], more].concat(),
        );
        assert_eq!(refused["error"]["code"], "confirmation_needed", "{more:?}");
    }
    assert_eq!(
        env.json(0, &["checkpoint", "list", "--all-runs"])["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    let done = env.json(0, &[&all[..], &["--yes"]].concat());
    assert_eq!(
        (
            done["removed"].as_array().unwrap().len(),
            done["kept"].as_array().unwrap().len()
        ),
        (2, 0)
    );
    let left = env.json(0, &["checkpoint", "list", "--all-runs"]);
    assert!(
        left["checkpoints"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["run_id"] == "b")
    );
}

// A kill between the event and the references: the leftover is removed, never taken in again.
#[test]
fn a_leftover_reference_is_never_taken_in_again() {
    let mut env = TestEnv::repo();
    let ids = checkpoints(&mut env, "r", &[9, 8, 7]);
    let name = format!("refs/recover/r/{}", ids[1]);
    let commit = env.git(&["rev-parse", &name]);
    at(&mut env, 0);
    // Without the lists the objects stay, as they do after such a kill.
    env.sh("rm -r .git/recover/written").expect(0);
    env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
    env.git(&["update-ref", &name, commit.trim()]);
    env.json(0, &["checkpoint", "create"]);
    assert!(!env.git(&["for-each-ref", "refs/recover"]).contains(&ids[1]));
    env.json(4, &["checkpoint", "show", &ids[1]]);
}

// S13: a run that ended well keeps its newest three, its milestones and what it began with, once it is tidied up.
#[test]
fn a_complete_run_is_tidied_up_after_its_end() {
    let env = TestEnv::repo();
    // The state specification wants it at once.
    env.write(".ultraplan/recover.toml", "preset = \"state\"\n");
    let run = |env: &TestEnv, name: &str| {
        env.json(
            0,
            &[
                "run",
                "--run",
                name,
                "--iterations",
                "6",
                "--",
                "sh",
                "-c",
                "echo $RECOVER_ITERATION$RECOVER_RUN_ID > a.txt",
            ],
        );
        let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
        let mut after: Vec<u64> = Vec::new();
        for one in list["checkpoints"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["run_id"] == name)
        {
            after.push(one["after_iteration"].as_u64().unwrap());
        }
        after
    };
    assert_eq!(run(&env, "a"), [0, 4, 5, 6]);
    assert_eq!(
        env.git(&["for-each-ref", "refs/recover"]).lines().count(),
        4
    );
    let pruned = env.json(0, &["checkpoint", "prune", "--run", "a"]);
    let why = reasons(&pruned["kept"])
        .into_values()
        .collect::<Vec<_>>()
        .join("; ");
    assert!(
        why.contains("complete run") && why.contains("began with"),
        "{why}"
    );
    env.json(0, &["rollback", "--run", "a", "--full"]);
    assert_eq!(env.read("a.txt"), "one\n");
    env.write(
        ".ultraplan/recover.toml",
        "[retention]\non_success_keep_last = \"none\"\n",
    );
    assert_eq!(run(&env, "b"), [0, 1, 2, 3, 4, 5, 6]);
}

// S13: a week long the checkpoint of every iteration stays, then the next end of a run tidies up.
#[test]
fn every_iteration_can_be_gone_back_to_for_a_week() {
    let mut env = TestEnv::repo();
    at(&mut env, 0);
    let nine = [
        "run",
        "--run",
        "a",
        "--iterations",
        "9",
        "--",
        "sh",
        "-c",
        "echo $RECOVER_ITERATION > a.txt",
    ];
    env.json(0, &nine);
    at(&mut env, 6 * DAY);
    env.json(
        0,
        &["run", "--run", "b", "--", "sh", "-c", "echo b > b.txt"],
    );
    let kept = env.json(0, &["checkpoint", "prune", "--run", "a"]);
    assert!(
        reasons(&kept["kept"])
            .values()
            .any(|why| why.contains("ended less than 7d ago")),
        "{kept}"
    );
    for number in (1..=9).rev() {
        env.json(
            0,
            &["rollback", "--run", "a", "--iteration", &number.to_string()],
        );
        let before = if number == 1 {
            "one".to_owned()
        } else {
            (number - 1).to_string()
        };
        assert_eq!(env.read("a.txt").trim(), before);
        env.json(0, &["undo"]);
    }
    let count = |env: &TestEnv| env.git(&["for-each-ref", "refs/recover/a"]).lines().count();
    assert!(count(&env) >= 10, "{}", count(&env));

    let mut env = TestEnv::repo();
    at(&mut env, 0);
    env.json(0, &nine);
    assert_eq!(count(&env), 10);
    at(&mut env, 8 * DAY);
    env.json(
        0,
        &["run", "--run", "b", "--", "sh", "-c", "echo b > b.txt"],
    );
    assert_eq!(
        count(&env),
        3,
        "what is older than max_age goes with the rest"
    );
}

// S14: what all checkpoints hold beyond what branches hold is looked at when a run ends; what branches hold counts nothing.
#[test]
fn too_much_goes_when_a_run_ends_oldest_first() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[retention]\nmax_total_size = \"300KiB\"\n",
    );
    env.write("large", vec![b'x'; 200_000]);
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "large"]);
    let random = "head -c 60000 /dev/urandom > data; echo $RECOVER_ITERATION > a.txt";
    env.json(
        0,
        &[
            "run",
            "--run",
            "a",
            "--iterations",
            "3",
            "--",
            "sh",
            "-c",
            random,
        ],
    );
    let count = || env.git(&["for-each-ref", "refs/recover"]).lines().count();
    assert_eq!(count(), 4, "each captures 200 KB that a branch holds");
    env.json(
        0,
        &[
            "run",
            "--run",
            "b",
            "--iterations",
            "3",
            "--",
            "sh",
            "-c",
            random,
        ],
    );
    assert!((4..7).contains(&count()), "{}", count());
    env.json(0, &["rollback", "--run", "b", "--iteration", "3"]);
}

// S13: a failed run keeps all of them.
#[test]
fn a_failed_run_keeps_all() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[retention]\nkeep_last = 1\nkeep_successful = false\n",
    );
    let agent = "echo $RECOVER_ITERATION > a.txt; test $RECOVER_ITERATION != 4";
    env.json(
        6,
        &[
            "run",
            "--run",
            "a",
            "--iterations",
            "5",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    assert_eq!(
        env.json(0, &["checkpoint", "list"])["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
}

// S14: the lanes of a run share the session's limit.
#[test]
fn a_sessions_limit_counts_over_its_lanes() {
    let mut env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[retention]\nmax_per_session = 4\n",
    );
    env.set("RECOVER_SESSION", "s");
    for number in 0..8 {
        env.write("a.txt", format!("{number}\n"));
        let lane = if number % 2 == 0 { "x" } else { "y" };
        env.json(0, &["checkpoint", "create", "--run", "r", "--lane", lane]);
    }
    let done = env.json(0, &["checkpoint", "prune"]);
    // What each lane began with stays as well.
    let initial = reasons(&done["kept"])
        .values()
        .filter(|why| why.contains("initial"))
        .count();
    assert_eq!(
        (done["kept"].as_array().unwrap().len(), initial),
        (6, 2),
        "{done}"
    );
    assert!(
        reasons(&done["removed"])
            .values()
            .all(|why| why == "over max_per_session"),
        "{done}"
    );
}

// Contract: limits that keep nothing take a name and a yes, also where protections would save some.
#[test]
fn limits_that_keep_nothing_have_to_be_confirmed() {
    let mut env = TestEnv::repo();
    checkpoints(&mut env, "r", &[3, 2, 1]);
    at(&mut env, 0);
    for flags in [
        &["--keep-last", "0"][..],
        &["--keep-last", "0", "--yes"],
        &["--keep-daily", "0", "--run", "r"],
    ] {
        let refused = env.json(13, &[&["checkpoint", "prune"], flags].concat());
        assert_eq!(refused["error"]["code"], "confirmation_needed", "{flags:?}");
    }
    env.json(
        0,
        &[
            "checkpoint",
            "prune",
            "--keep-last",
            "0",
            "--run",
            "r",
            "--yes",
        ],
    );
}

// S10: one is due once the latest is as old as the interval.
#[test]
fn a_checkpoint_is_taken_when_it_is_due() {
    let mut env = TestEnv::repo();
    at(&mut env, 0);
    let due = ["checkpoint", "create", "--if-due"];
    let first = env.json(0, &due);
    assert_eq!(first["changed"], true);
    env.write("a.txt", "two\n");
    at(&mut env, 299);
    let early = env.json(0, &due);
    assert_eq!(
        (&early["changed"], &early["checkpoint"]["id"]),
        (&false.into(), &first["checkpoint"]["id"])
    );
    at(&mut env, 300);
    assert_eq!(env.json(0, &due)["changed"], true);
    // A clock that was set back says nothing.
    at(&mut env, 10);
    assert_eq!(env.json(0, &due)["changed"], true);
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\ninterval = \"none\"\n",
    );
    assert_eq!(env.json(0, &due)["changed"], true);
}

// What git has packed is git's to collect: nothing is freed then.
#[test]
fn nothing_is_freed_where_no_file_is_removed() {
    let mut env = TestEnv::repo();
    checkpoints(&mut env, "r", &[41, 40, 39, 3]);
    env.git(&["repack", "-adq"]);
    env.git(&["prune-packed"]);
    let before = objects_size(&env);
    let done = env.json(0, &["--yes", "checkpoint", "prune", "--keep-last", "1"]);
    assert_eq!(
        done["removed"].as_array().expect("a list").len(),
        2,
        "{done}"
    );
    assert_eq!(
        (&done["freed_bytes"], &done["objects_removed"]),
        (&0.into(), &0.into()),
        "{done}"
    );
    assert_eq!(objects_size(&env), before);
}

// S13, S14: milestones are archived on request: written whole, read back, only then removed; plain git takes them back.
#[test]
fn old_milestones_are_archived_whole_before_they_go() {
    let mut env = TestEnv::repo();
    at(&mut env, -40 * DAY);
    // What an open run began with stays whatever it is.
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    env.write("a.txt", "milestone\n");
    env.write("new file", b"\x00\x01binary");
    let phase = env.json(
        0,
        &["checkpoint", "create", "--run", "r", "--type", "phase"],
    );
    env.write("a.txt", "pinned\n");
    let pinned = env.json(0, &["checkpoint", "create", "--run", "r", "--pin"]);
    at(&mut env, -10 * DAY);
    env.write("a.txt", "young\n");
    env.json(
        0,
        &["checkpoint", "create", "--run", "r", "--type", "phase"],
    );
    env.write("a.txt", "now\n");
    at(&mut env, 0);
    let prune = ["checkpoint", "prune", "--archive", "../archive"];
    let kept_before = env.json(0, &["checkpoint", "prune"]);
    assert_eq!(
        (&kept_before["removed"], &kept_before["archived"]),
        (
            &Value::from(Vec::<Value>::new()),
            &Value::from(Vec::<Value>::new())
        )
    );

    let planned = env.json(0, &[&["--dry-run"], &prune[..]].concat());
    assert!(!env.exists("../archive"), "a dry run writes nothing");
    let done = env.json(0, &prune);
    assert_eq!(
        (&planned["archived"], &done["changed"]),
        (&done["archived"], &Value::from(true)),
        "the very plan"
    );
    let id = |made: &Value| made["checkpoint"]["id"].as_str().expect("an id").to_owned();
    let archived = reasons(&done["archived"]);
    assert_eq!(
        archived.keys().cloned().collect::<Vec<_>>(),
        [id(&phase), id(&pinned)]
    );
    assert_eq!(
        (
            archived[&id(&phase)].as_str(),
            archived[&id(&pinned)].as_str()
        ),
        ("milestone", "pinned")
    );
    assert_eq!(
        env.git(&["for-each-ref", "refs/recover"]).lines().count(),
        2,
        "the young one stays"
    );
    env.json(4, &["checkpoint", "show", &id(&phase)]);

    // It comes back as it was, here and where nothing of it is known.
    let first = &done["archived"][0];
    let path = first["path"].as_str().expect("a path");
    let hint = first["hint"].as_str().expect("a hint");
    env.git(&["bundle", "verify", "-q", path]);
    assert_eq!(env.sh(&format!("cd / && {hint}")).expect(0).stdout, "");
    let source = format!("--source=refs/archived/{}", id(&phase));
    env.git(&["restore", &source, "--", "."]);
    assert_eq!(env.read("a.txt"), "milestone\n");
    let elsewhere = env.root().join("elsewhere");
    let elsewhere = elsewhere.to_str().expect("text");
    env.git(&["init", "-q", elsewhere]);
    env.git(&[
        "-C",
        elsewhere,
        "fetch",
        "-q",
        path,
        "refs/recover/*:refs/archived/*",
    ]);
    let tree = |folder: &str, name: &str| {
        env.git(&["-C", folder, "rev-parse", &format!("{name}^{{tree}}")])
    };
    let there = env.git(&["-C", elsewhere, "for-each-ref", "--format=%(refname)"]);
    assert_eq!(
        tree(elsewhere, there.trim()),
        tree(".", &format!("refs/archived/{}", id(&phase)))
    );
    // Nothing is left to archive.
    assert_eq!(env.json(0, &prune)["changed"], false);
}

// S13: a milestone stays where it is when its bundle is not what it should be, or would not hold all of it.
#[test]
fn what_cannot_be_archived_whole_stays() {
    let mut env = TestEnv::repo();
    at(&mut env, -40 * DAY);
    // What an open run began with stays whatever it is.
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    env.json(0, &["checkpoint", "create", "--run", "n"]);
    env.write("a.txt", "milestone\n");
    let made = env.json(
        0,
        &["checkpoint", "create", "--run", "r", "--type", "phase"],
    );
    let id = made["checkpoint"]["id"].as_str().expect("an id");
    at(&mut env, 0);
    // What the work tree was left as last is never archived: an undo needs it.
    let later = |env: &TestEnv| {
        env.write("a.txt", "later\n");
        env.json(0, &["checkpoint", "create", "--run", "later"]);
    };
    later(&env);
    let prune = ["checkpoint", "prune", "--archive", "../archive"];
    let planned = env.json(0, &[&["--dry-run"], &prune[..]].concat());
    let path = planned["archived"][0]["path"]
        .as_str()
        .expect("a path")
        .to_owned();
    let folder = std::path::Path::new(&path)
        .parent()
        .expect("a folder")
        .to_owned();
    std::fs::create_dir_all(&folder).expect("made");
    // What was interrupted by a crash of the machine, say.
    std::fs::write(&path, "# v2 git bundle\n").expect("written");
    env.json(12, &prune);
    env.json(0, &["checkpoint", "show", id]);
    let exported = env.root().join("whole");
    env.json(
        0,
        &[
            "checkpoint",
            "export",
            id,
            "--bundle",
            exported.to_str().expect("text"),
        ],
    );
    let mut damaged = std::fs::read(&exported).expect("read");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    std::fs::write(&path, &damaged).expect("written");
    assert_ne!(env.recover(&prune).code, 0);
    env.json(0, &["checkpoint", "show", id]);
    // What is there whole, from a prune that was interrupted, is taken as it is.
    std::fs::copy(&exported, &path).expect("copied");
    assert_eq!(env.json(0, &prune)["archived"][0]["id"], id);
    env.json(4, &["checkpoint", "show", id]);

    at(&mut env, -40 * DAY);
    env.git(&["init", "-q", "inner"]);
    env.write("inner/b.txt", "inner\n");
    let made = env.json(
        0,
        &["checkpoint", "create", "--run", "n", "--type", "phase"],
    );
    let id = made["checkpoint"]["id"].as_str().expect("an id");
    at(&mut env, 0);
    std::fs::remove_dir_all(env.work().join("inner")).expect("removed");
    later(&env);
    let kept = env.json(0, &prune);
    assert!(
        reasons(&kept["kept"])[id].contains("not archived"),
        "{kept}"
    );
    env.json(0, &["checkpoint", "show", id]);
}

// Another checkpoint in the place of the first one, which is gone, would take back less than was asked for.
#[test]
fn the_initial_checkpoint_is_no_other_once_it_is_gone() {
    let env = TestEnv::repo();
    let agent = "echo $RECOVER_ITERATION > a.txt";
    env.json(
        0,
        &[
            "run",
            "--run",
            "r",
            "--iterations",
            "3",
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    assert_eq!(
        env.json(0, &["checkpoint", "show", "initial"])["checkpoint"]["seq"],
        1
    );
    // While it is open it cannot go.
    env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
    for back in [&["--to", "initial"][..], &["--full"]] {
        let refused = env.json(4, &[&["rollback"], back].concat());
        assert_eq!(refused["error"]["code"], "no_checkpoint", "{refused}");
    }
    assert_eq!(env.read("a.txt"), "3\n");
}
