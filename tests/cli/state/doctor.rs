//! `doctor`, and what a damaged ledger does to the others.

use crate::env::TestEnv;

const LEDGER: &str = ".ultraplan/state/events.jsonl";

fn recorded() -> TestEnv {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create", "-m", "x"]);
    env.json(
        0,
        &["attempt", "fail", "--message", "boom", "--exit-code", "1"],
    );
    env
}

/// A line with the checksum that belongs to it.
fn line(json: &str) -> String {
    let body = json.strip_suffix('}').expect("an object");
    format!(
        "{body},\"checksum\":\"{:08x}\"}}\n",
        crc32fast::hash(json.as_bytes())
    )
}

// Promise 3, contract: nothing is wrong, exit 0.
#[test]
fn a_sound_state_has_no_problems() {
    let env = recorded();
    for args in [&["doctor"][..], &["doctor", "--repair"]] {
        let report = env.json(0, args);
        assert_eq!(
            (&report["problems"], &report["repaired"]),
            (&serde_json::json!([]), &serde_json::json!([]))
        );
    }
    assert_eq!(
        TestEnv::plain().json(10, &["doctor"])["error"]["code"],
        "no_repository"
    );
}

// no leftover temp files. A kill leaves them where nobody may write again: the run goes on, or a repair looks.
#[test]
fn temporary_files_of_the_dead_do_not_stay_in_the_state_directory() {
    let env = TestEnv::repo();
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "r",
            "--message",
            "boom",
            "--exit-code",
            "1",
        ],
    );
    let run = ".ultraplan/state/recover/runs/r";
    let (beside, old, view) = (
        format!("{run}/.recover-tmp-99999999-a"),
        format!("{run}/iteration-1-attempt-1/.recover-tmp-99999999-b"),
        ".ultraplan/state/recover/battles/gone/.recover-tmp-99999999-c".to_owned(),
    );
    let living = format!("{run}/iteration-1-attempt-1/.recover-tmp-1-d");
    let draft = ".git/recover/.recover-tmp-99999999-ref.0".to_owned();
    for path in [&beside, &old, &view, &living] {
        env.write(path, "half");
    }
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    assert_eq!(
        [&beside, &old, &view].map(|path| env.exists(path)),
        [false, true, true]
    );
    env.write(&draft, "0");
    let report = env.json(0, &["doctor", "--repair"]);
    assert_eq!(
        report["repaired"],
        serde_json::json!(["removed 3 temporary files that were left over"])
    );
    assert!(![&old, &view, &draft].iter().any(|path| env.exists(path)) && env.exists(&living));
}

// Exit 12 for doctor and for every command that folds the ledger; nothing is reset.
#[test]
fn a_corrupt_ledger_is_told_and_never_reset() {
    let env = recorded();
    let good = env.read(LEDGER);
    let lines: Vec<&str> = good.split_inclusive('\n').collect();
    let mut flipped = good.clone().into_bytes();
    flipped[60] ^= 1;
    let deep = format!(
        "{{\"seq\":{},\"a\":{}{}}}",
        lines.len() + 1,
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    let cases: [(&str, Vec<u8>); 4] = [
        ("a flipped bit", flipped),
        ("an empty file", Vec::new()),
        (
            "a gap",
            [&lines[..1], &lines[2..]].concat().concat().into_bytes(),
        ),
        ("deep JSON", (good.clone() + &line(&deep)).into_bytes()),
    ];
    for (what, bytes) in cases {
        env.write(LEDGER, &bytes);
        // A whole second copy would make up for it.
        env.sh(&format!(
            "for copy in .git/recover/ledger-*.jsonl; do cat {LEDGER} > $copy; done"
        ))
        .expect(0);
        for args in [&["doctor"][..], &["doctor", "--repair"]] {
            let report = env.json(12, args);
            assert_eq!(
                report["problems"][0]["code"], "corrupt_ledger",
                "{what}: {report}"
            );
            assert_eq!(report["problems"][0]["severity"], "error");
        }
        for args in [
            &["status"][..],
            &["checkpoint", "create"],
            &["checkpoint", "list"],
            &["attempt", "pass"],
            &["log"],
            &["rollback", "--full"],
            &["run", "--", "true"],
            &["retry-status"],
        ] {
            assert_eq!(
                env.json(12, args)["error"]["code"],
                "corrupt",
                "{what}: {args:?}"
            );
        }
        assert_eq!(
            std::fs::read(env.work().join(LEDGER)).unwrap(),
            bytes,
            "{what}"
        );
    }
}

// Exit 15: what a newer version wrote is not written to, and nothing else is changed.
#[test]
fn a_newer_ledger_is_left_alone() {
    let env = recorded();
    let good = env.read(LEDGER);
    let next = good.lines().count() + 1;
    let json = format!(
        "{{\"seq\":{next},\"at\":\"2030-01-01T00:00:00.000Z\",\"schema\":99,\"source\":\"recover\",\"type\":\"from_the_future\"}}"
    );
    let newer = good + &line(&json);
    env.write(LEDGER, &newer);
    std::fs::remove_file(env.work().join(".ultraplan/state/recovery.json")).unwrap();
    let refs = env.git(&["for-each-ref"]);
    for args in [&["doctor"][..], &["doctor", "--repair"]] {
        assert_eq!(
            env.json(15, args)["problems"][0]["code"],
            "newer_ledger",
            "{args:?}"
        );
    }
    env.write("a.txt", "two\n");
    for args in [
        &["checkpoint", "create"][..],
        &["attempt", "fail"],
        &["rollback", "--full"],
        &["run", "--", "true"],
        &["checkpoint", "prune"],
        &["resume"],
        &["undo"],
    ] {
        assert_eq!(env.json(15, args)["error"]["code"], "newer", "{args:?}");
    }
    assert_eq!(
        (
            env.read(LEDGER),
            env.git(&["for-each-ref"]),
            env.read("a.txt")
        ),
        (newer, refs, "two\n".to_owned())
    );
    assert!(!env.exists(".ultraplan/state/recovery.json"));
}

// A torn last line (an append that a kill cut off) is dropped with a warning.
#[test]
fn a_torn_last_line_is_dropped_with_a_warning() {
    let env = recorded();
    let good = env.read(LEDGER);
    env.write(LEDGER, good.clone() + "{\"seq\":99,\"a");
    env.json(0, &["status"]);
    let made = env.recover(&["checkpoint", "create", "--json"]).expect(0);
    assert!(made.stderr.contains("torn"), "{}", made.stderr);
    let warnings = made.json()["warnings"].clone();
    assert!(
        warnings[0]
            .as_str()
            .is_some_and(|text| text.starts_with("a torn last line is dropped")),
        "{warnings}"
    );
    assert!(env.read(LEDGER).starts_with(&good));
    env.json(0, &["doctor"]);
    // A refusal's document has it too.
    env.write(LEDGER, env.read(LEDGER) + "{\"seq\":99,\"a");
    let refused = env.json(4, &["retry-status", "--reset", "--run", "none"]);
    assert!(
        refused["warnings"][0]
            .as_str()
            .is_some_and(|text| text.starts_with("a torn")),
        "{refused}"
    );
}

// L1, A3: views are derived; --repair writes them again.
#[test]
fn repair_writes_missing_and_damaged_views_again() {
    let env = recorded();
    let recovery = env.read(".ultraplan/state/recovery.json");
    let history = env.read(".ultraplan/state/attempt_history.json");
    std::fs::remove_file(env.work().join(".ultraplan/state/recovery.json")).unwrap();
    env.write(".ultraplan/state/attempt_history.json", "{");
    env.json(0, &["doctor"]);
    let report = env.json(0, &["doctor", "--repair"]);
    assert_eq!(report["repaired"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(env.read(".ultraplan/state/recovery.json"), recovery);
    assert_eq!(env.read(".ultraplan/state/attempt_history.json"), history);
}

// Promise 3: a checkpoint whose reference or objects are gone is told.
#[test]
fn missing_references_are_told() {
    let env = recorded();
    let name = env.git(&["for-each-ref", "--format=%(refname)", "refs/recover"]);
    env.git(&["update-ref", "-d", name.lines().next().unwrap()]);
    let report = env.json(12, &["doctor"]);
    assert_eq!(report["problems"][0]["code"], "missing_reference");
    assert_eq!(report["problems"][0]["repairable"], true);
    assert!(
        env.recover(&["doctor"])
            .expect(12)
            .stdout
            .contains("has no reference")
    );
    // The commit is still there: nothing is lost.
    assert_eq!(
        env.json(0, &["doctor", "--repair"])["repaired"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    env.json(0, &["doctor"]);
    env.json(0, &["checkpoint", "verify"]);
}

// A checkpoint whose commit is gone, too, is marked, and hinders nothing from then on.
#[test]
fn a_checkpoint_that_is_gone_is_marked_as_damaged() {
    let env = recorded();
    let name = env.git(&["for-each-ref", "--format=%(refname)", "refs/recover"]);
    env.git(&["update-ref", "-d", name.lines().next().unwrap()]);
    env.sh("rm -rf ~/.local/state/recover/vault; git gc -q --prune=now")
        .expect(0);
    let report = env.json(12, &["doctor"]);
    assert_eq!(report["problems"][0]["code"], "missing_reference");
    assert_eq!(report["problems"][0]["repairable"], true);
    let repaired = env.recover(&["doctor", "--repair"]).expect(0);
    assert!(
        repaired.stdout.contains("as damaged"),
        "{}",
        repaired.stdout
    );
    let report = env.json(0, &["doctor"]);
    assert_eq!(report["problems"][0]["code"], "damaged_checkpoint");
    assert_eq!(report["problems"][0]["severity"], "warning");
    env.json(0, &["checkpoint", "create"]);
}

// What cannot be cleared away is one finding, and hides none of the others.
#[test]
fn a_quarantine_that_cannot_be_cleared_hides_no_other_finding() {
    let env = recorded();
    env.sh("mkdir -p .git/recover/quarantine/objects/pack/x.keep")
        .expect(0);
    let name = env.git(&["for-each-ref", "--format=%(refname)", "refs/recover"]);
    env.git(&["update-ref", name.lines().next().unwrap(), "main"]);
    let report = env.json(12, &["doctor", "--repair"]);
    let codes: Vec<&str> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["code"].as_str())
        .collect();
    assert!(
        codes.contains(&"quarantine") && codes.contains(&"moved_reference"),
        "{report}"
    );
}

// A power failure can leave an index that git wrote and did not sync empty, and then nothing works.
#[test]
fn an_index_that_cannot_be_read_is_replaced_by_that_of_the_latest_checkpoint() {
    let env = TestEnv::repo();
    env.write("staged.txt", "staged\n");
    env.git(&["add", "staged.txt"]);
    env.git(&["rm", "-q", "--cached", "a.txt"]);
    env.write("old.txt", "untracked\n");
    let staged = env.git(&["status", "--porcelain"]);
    let index = std::fs::read(env.work().join(".git/index")).expect("an index");
    let mut flipped = index.clone();
    flipped[100] ^= 1;
    for damaged in [&b""[..], &index[..index.len() / 2], &flipped] {
        let id = env.json(0, &["checkpoint", "create"])["checkpoint"]["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        env.write(".git/index", damaged);
        env.error(12, &["checkpoint", "create"]);
        let problem = env.json(12, &["doctor"])["problems"][0].take();
        assert_eq!(
            (&problem["code"], &problem["repairable"]),
            (&"damaged_index".into(), &true.into()),
            "{problem}"
        );
        assert!(problem["message"].to_string().contains(&id), "{problem}");
        let repaired = env.json(0, &["doctor", "--repair"])["repaired"].to_string();
        assert!(repaired.contains(&id), "{repaired}");
        assert_eq!(env.git(&["status", "--porcelain"]), staged);
        assert_eq!(env.json(0, &["doctor"])["problems"], serde_json::json!([]));
    }
}

// Where no checkpoint has one, the way out is git's.
#[test]
fn an_index_that_cannot_be_read_and_is_in_no_checkpoint_is_a_problem() {
    let env = TestEnv::repo();
    env.write(".git/index", "");
    for args in [&["doctor"][..], &["doctor", "--repair"]] {
        let problem = env.json(12, args)["problems"][0].take();
        assert_eq!(
            (&problem["code"], &problem["repairable"]),
            (&"damaged_index".into(), &false.into()),
            "{problem}"
        );
    }
}

// A power failure can leave zeros in place of a file, and more than there were bytes.
#[test]
fn an_id_of_the_state_that_is_too_long_is_replaced() {
    let env = TestEnv::repo();
    env.recover(&["checkpoint", "create", "--run", "m"])
        .expect(0);
    let damage = "head -c 64 /dev/zero > .ultraplan/state/recover/identity";
    for args in [&["status"][..], &["doctor"], &["doctor", "--repair"]] {
        env.sh(damage).expect(0);
        env.json(0, args);
    }
    env.sh(damage).expect(0);
    env.recover(&["checkpoint", "create", "--run", "m"])
        .expect(0);
    let id = env.read(".ultraplan/state/recover/identity");
    assert_eq!(id.trim_end().len(), 32, "{id:?}");
}

/// The state's own `.gitignore`, without which `git add` would commit the state.
#[test]
fn git_goes_on_ignoring_the_state() {
    let env = recorded();
    let ignore = ".ultraplan/state/.gitignore";
    for text in ["", "\u{1}\u{2}\n", "# *\n"] {
        env.write(ignore, text);
        let repaired = env.json(0, &["doctor", "--repair"])["repaired"].to_string();
        assert!(repaired.contains(ignore), "{text:?}: {repaired}");
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{text:?}");
    }
    env.write(ignore, "*\n!plan.json\n");
    let repaired = env.json(0, &["doctor", "--repair"])["repaired"].to_string();
    assert!(!repaired.contains(ignore), "{repaired}");
    assert_eq!(env.read(ignore), "*\n!plan.json\n");
}
