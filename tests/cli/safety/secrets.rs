//! Secrets of real shapes, put wherever a user may have one: where each is shown, and that what runs stays as typed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::env::TestEnv;
use crate::run::supervision::until;

/// Texts with a secret in them, and the secret; put together here, so that nobody takes this file for a leak.
fn secrets() -> Vec<(String, String)> {
    let long = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let bare = |prefix: &str, rest: &str| {
        let secret = format!("{prefix}{rest}");
        (secret.clone(), secret)
    };
    let around = |before: &str, secret: &str, after: &str| {
        (format!("{before}{secret}{after}"), secret.to_owned())
    };
    vec![
        bare("ghp_", long),
        bare("github_pat_", &format!("11ABCDEFG0_{long}")),
        bare("sk-ant-", &format!("api03-{long}")),
        bare("sk-proj-", long),
        bare("sk_live_", &long[..24]),
        bare("whsec_", &long[..24]),
        bare("AKIA", "IOSFODNN7EXAMPL2"),
        bare("glpat-", &long[..20]),
        bare("npm_", long),
        bare("pypi-", &format!("AgEIcHlwaS5vcmc{long}")),
        bare("hf_", &long[..34]),
        bare("xoxb-", &format!("123456789012-{}", &long[..24])),
        bare("SG.", &format!("{}.{long}", &long[..22])),
        bare("AIza", &format!("Sy{long}")),
        bare("ya29.", long),
        bare("dop_v1_", "0123456789abcdef0123456789abcdef"),
        bare("eyJ", &format!("hbGciOiJIUzI1NiJ9.{long}.{}", &long[..20])),
        around(
            "https://hooks.slack.com/services/",
            &format!("T00000000/B00000000/{}", &long[..24]),
            "",
        ),
        around("https://me:", "hunter2-in-a-url", "@git.example.com/x.git"),
        around("https://", "q7Wx3ZrT9vLmK2pYb8Nc", "@git.example.com/x.git"),
        around("curl -u bob:", "hunter2-of-curl", " https://example.com"),
        bare("xapp-", "1-A7391846205-kLmP3rT9vYb2"),
        bare("SK", "7f3a9c1e5b8d2046f7a9c3e1b5d80246"),
        around("AccountKey=", "q7Wx3ZrT9vLmK2pYb8Nc==", ";EndpointSuffix=x"),
        around("{'token': '", "kq83zz71plain9", "'}"),
        around("Authorization: Bearer ", "bearer-0123456789", ""),
        around("password=", "hunter2-in-a-pair", ""),
        around("by value ", "corr3ct h0rse battery", ""),
        around("by name ", "pin-0987-654321", ""),
        around("by pattern ", "ACME-778899", ""),
    ]
}

fn env() -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("DB_PASSWORD", "corr3ct h0rse battery")
        .set("MY_PIN", "pin-0987-654321");
    env.set("AUTH_MODE", "production")
        .set("SSH_AUTH_SOCK", "/tmp/agent.sock-1");
    env.write(
        ".ultraplan/recover.toml",
        "[redact]\npatterns = ['ACME-[0-9]+']\nvariables = [\"MY_PIN\"]\n[cooldown]\ncooldown_ms = 1\n",
    );
    env
}

#[track_caller]
fn assert_masked(what: &str, text: &str, secrets: &[(String, String)]) {
    for (_, secret) in secrets {
        let escaped = secret.replace('"', "\\\"");
        assert!(
            !text.contains(secret.as_str()) && !text.contains(&escaped),
            "{what} shows {secret}:\n{text}"
        );
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// What shows something of a run.
const SHOWN: [&[&str]; 22] = [
    &["status", "--run", "r"],
    &["--json", "status", "--run", "r"],
    &["log"],
    &["--json", "log"],
    &["report", "--run", "r"],
    &["report", "--run", "r", "--format", "html"],
    &["--json", "report", "--run", "r"],
    &["report", "--run", "r", "-o", "../report.json"],
    &["runs", "--all"],
    &["--json", "runs", "--all"],
    &["attempt", "list"],
    &["--json", "attempt", "list"],
    &["retry-status", "--run", "r"],
    &["--json", "checkpoint", "list", "--all-runs"],
    &["checkpoint", "show", "latest"],
    &["--json", "checkpoint", "show", "latest"],
    &[
        "--json",
        "resume",
        "--run",
        "r",
        "--prepare",
        "--strategy",
        "retry_with_context",
    ],
    &[
        "--json",
        "--dry-run",
        "rollback",
        "--run",
        "r",
        "--to",
        "initial",
    ],
    &["--json", "manual-fix", "status", "--run", "r"],
    &["--json", "config"],
    &["--json", "doctor"],
    &["--json", "sync"],
];

/// On disk they are where they are needed again and in the raw logs, for nobody else to read.
#[track_caller]
fn assert_kept(env: &TestEnv, secrets: &[(String, String)]) {
    let state = env.work().join(".ultraplan/state");
    let mut raw = Vec::new();
    for path in files(&state) {
        let bytes = fs::read(&path).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        if secrets
            .iter()
            .any(|(_, secret)| text.contains(secret.as_str()))
        {
            let name = path
                .strip_prefix(&state)
                .expect("below it")
                .to_string_lossy()
                .into_owned();
            assert_eq!(
                fs::metadata(&path).expect("a file").permissions().mode() & 0o077,
                0,
                "{name}"
            );
            let needed = [
                "events.jsonl",
                "recover/active.json",
                "recover/fold.cache",
                "recover/ledger.lock",
                "recover/views.lock",
            ]
            .contains(&name.as_str());
            let of_run = name.starts_with("recover/runs/")
                && [".log", ".txt", ".md"]
                    .iter()
                    .any(|end| name.ends_with(end))
                && !name.ends_with("report.md");
            raw.push((name, needed || of_run));
        }
    }
    assert!(raw.iter().all(|(_, allowed)| *allowed), "{raw:#?}");
    assert!(
        raw.iter().any(|(name, _)| name == "events.jsonl"),
        "{raw:#?}"
    );
}

// trust.md, 5: what is needed to run again is as it was typed, for its owner alone; it is masked wherever it is shown.
#[test]
fn secrets_are_masked_wherever_they_are_shown_and_run_as_they_were_typed() {
    let env = env();
    let secrets = secrets();
    let all: Vec<&str> = secrets.iter().map(|(text, _)| text.as_str()).collect();
    let all = all.join(" ; ");
    for (text, _) in secrets
        .iter()
        .filter(|(text, _)| !text.contains('/') && text.len() < 120)
    {
        env.write(&format!("named {text}.txt"), "x\n");
    }
    env.script(
        "agent.sh",
        "cat > ../stdin-$RECOVER_ATTEMPT; printf '%s\\n' \"$@\" > ../args-$RECOVER_ATTEMPT\n\
         echo new >> \"named $2.txt\"; printf '%s\\n' \"$1\"; printf 'error: %s\\n' \"$1\" >&2; exit 1",
    );
    let check = format!("check=test \"{}\" = x", all.replace('"', ""));
    let run = [
        "-q",
        "--json",
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--no-wait",
        "--prompt",
        &all,
        "--approach",
        &all,
        "--feedback",
        &check,
        "--",
        "./agent.sh",
        &all,
        "twice",
    ];
    let ran = env.recover(&run);
    assert_masked("run", &ran.stdout, &secrets);
    assert_masked("run, stderr", &ran.stderr, &secrets);
    assert_eq!(
        env.read("../stdin-1"),
        format!("{all}\n"),
        "the agent gets the user's own text"
    );

    let resume = [
        "-q",
        "--json",
        "resume",
        "--run",
        "r",
        "--strategy",
        "retry_with_context",
        "--wait",
        "--instructions",
        &all,
    ];
    let resumed = env.recover(&resume);
    assert_masked("resume", &(resumed.stdout + &resumed.stderr), &secrets);
    assert_eq!(
        env.read("../args-2"),
        env.read("../args-1"),
        "it runs the same command"
    );
    assert!(env.read("../args-1").starts_with(&all));
    let prompt = env.read("../stdin-2");
    let (own, added) = prompt
        .split_once("## Previous Attempt Failed")
        .expect("what went wrong");
    let (added, instructions) = added
        .split_once("## Additional Instructions")
        .expect("the instructions");
    assert_eq!(
        (own.trim(), instructions.trim()),
        (all.as_str(), all.as_str())
    );
    assert_masked("what is added to the prompt", added, &secrets);

    env.recover(&["-q", "checkpoint", "create", "-m", &all])
        .expect(0);
    env.recover(&[
        "-q",
        "checkpoint",
        "create",
        "--lane",
        "L",
        "--stage",
        "pre_pr",
        "--status",
        "ready",
        "--notes",
        &all,
    ]);
    env.recover(&[
        "-q", "step", "deploy", "--run", "r", "--", "sh", "-c", "true", &all,
    ])
    .expect(0);
    for args in SHOWN {
        let ran = env.recover(args);
        assert_masked(&args.join(" "), &(ran.stdout + &ran.stderr), &secrets);
    }
    assert_masked("the written report", &env.read("../report.json"), &secrets);
    let wrong = env
        .recover(&["report", "--run", "r", "--subtask", &all])
        .expect(4);
    assert_masked("an error", &(wrong.stdout + &wrong.stderr), &secrets);
    let here = format!("-C{}", env.work().display());
    for args in [
        &["checkpoint", "show", &all][..],
        &["--json", "checkpoint", "show", &all],
        &[&here, "checkpoint", "show", &all],
        &["--state-dir=.ultraplan/state", "checkpoint", "show", &all],
    ] {
        let wrong = env.recover(args).expect(2);
        assert_masked("a usage error", &(wrong.stdout + &wrong.stderr), &secrets);
    }
    assert_masked(
        "the messages of checkpoints",
        &env.sh("git log --all --format=%s").stdout,
        &secrets,
    );
    assert_kept(&env, &secrets);
    // From a shell that does not have the variables.
    for args in SHOWN {
        let ran = env
            .recover_command(args)
            .env_remove("DB_PASSWORD")
            .env_remove("MY_PIN")
            .output()
            .expect("it runs");
        let said = [ran.stdout, ran.stderr].concat();
        assert_masked(&args.join(" "), &String::from_utf8_lossy(&said), &secrets);
    }
}

// What only the agent said is in the raw log alone, for a shell without the variable too, also while it is at work.
#[test]
fn what_an_agent_said_of_its_environment_is_masked_in_every_shell() {
    let mut env = TestEnv::repo();
    env.set("DEPLOY_TOKEN", "corr3ct-h0rse \"battery\"");
    env.script(
        "agent.sh",
        "echo \"with $DEPLOY_TOKEN\"; echo \"error: $DEPLOY_TOKEN is refused\" >&2\n: > ../said; read line < ../go",
    );
    env.sh("mkfifo ../go");
    let mut run = env.recover_command(&[
        "-q",
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--no-wait",
        "--",
        "./agent.sh",
    ]);
    let mut run = run.spawn().expect("it runs");
    until("it said so", || env.exists("../said"));
    let look = |args: &[&str]| {
        let ran = env
            .recover_command(args)
            .env_remove("DEPLOY_TOKEN")
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        assert!(!said.contains("corr3ct"), "{args:?} shows it:\n{said}");
        said
    };
    let live = look(&["--json", "status", "--run", "r"]);
    assert!(live.contains("[redacted]"), "{live}");
    env.sh("echo fail > ../go");
    run.wait().expect("it ends");
    for args in SHOWN {
        look(args);
    }
}

// trust.md, 5: what only looks like one stays.
#[test]
fn what_is_no_secret_stays() {
    let env = env();
    let said = "A Tester in production at /tmp/agent.sock-1: failed";
    let document = env.json(0, &["attempt", "fail", "--run", "r", "--message", said]);
    let message = document["failure"]["message"].as_str().expect("a message");
    assert!(
        message.contains("A Tester in production at /tmp/agent.sock-1"),
        "{message}"
    );
}

// trust.md, 5: [redact] adds; a pattern that is none is a usage error at its place.
#[test]
fn a_bad_pattern_is_named_with_its_place() {
    let env = TestEnv::repo();
    for (text, said) in [
        (
            "[redact]\npatterns = ['(']\n",
            "recover.toml:2:12: 'redact.patterns' is a list ('(': error: unclosed group",
        ),
        (
            "[redact]\npatterns = ['x*']\n",
            "'x*': it matches the empty text",
        ),
        (
            "[redact]\nvariables = ['A B']\n",
            "'redact.variables' is a list: expected a list of names of variables",
        ),
        (
            "[redact]\npattern = []\n",
            "did you mean 'redact.patterns'?",
        ),
    ] {
        env.write(".ultraplan/recover.toml", text);
        let ran = env.recover(&["status"]).expect(2);
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

// A patch is for git: what it holds stays as it is.
#[test]
fn a_patch_is_content() {
    let env = env();
    env.recover(&["-q", "checkpoint", "create"]).expect(0);
    env.write("a.txt", "password=hunter2-in-a-pair\n");
    env.recover(&["-q", "checkpoint", "create"]).expect(0);
    let patch = env
        .recover(&["checkpoint", "diff", "@1", "@2", "--patch"])
        .expect(0)
        .stdout;
    assert!(patch.contains("+password=hunter2-in-a-pair"), "{patch}");
    // What is said about it is not.
    env.recover(&["-q", "checkpoint", "pin", "@2", "--note", "by ACME-778899"])
        .expect(0);
    for json in [&[][..], &["--json"]] {
        let shown = env
            .recover(&[json, &["checkpoint", "show", "@2", "--patch"]].concat())
            .expect(0)
            .stdout;
        assert!(
            !shown.contains("ACME") && shown.contains("+password=hunter2-in-a-pair"),
            "{shown}"
        );
    }
}

/// A run that failed, with secrets in its command, its prompt, what it tried and what is said of its checkpoints.
fn failed_run(env: &TestEnv, all: &str) {
    env.script(
        "agent.sh",
        "printf '%s\\n' \"$1\" > ../given; echo \"error: $1\" >&2; exit 1",
    );
    let run = [
        "-q",
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--no-wait",
        "--prompt",
        all,
        "--approach",
        all,
    ];
    env.recover(&[&run[..], &["--", "./agent.sh", all]].concat());
    env.recover(&["-q", "checkpoint", "create", "--run", "r", "-m", all])
        .expect(0);
    let texts = [
        "--notes",
        all,
        "--test-command",
        all,
        "--trigger",
        all,
        "--base-branch",
        all,
        "--target-branch",
        all,
    ];
    let stage = [
        &["--lane", "L", "--stage", "pre_pr", "--status", "ready"],
        &texts[..],
    ]
    .concat();
    env.recover(&[&["-q", "checkpoint", "create"], &stage[..]].concat())
        .expect(0);
}

// trust.md, 5: commits may be pushed, and leave the machine in bundles.
#[test]
fn commits_and_bundles_of_checkpoints_hold_no_secrets() {
    let env = env();
    let secrets = secrets();
    let all = secrets
        .iter()
        .map(|(text, _)| text.as_str())
        .collect::<Vec<_>>()
        .join(" ; ");
    failed_run(&env, &all);
    env.json(
        0,
        &[
            "checkpoint",
            "export",
            "latest",
            "--run",
            "r",
            "--bundle",
            "../r.bundle",
        ],
    );
    env.sh("git init -q --bare ../other && git -C ../other fetch -q ../r.bundle 'refs/*:refs/*'")
        .expect(0);
    for place in [".", "../other"] {
        let objects = env
            .sh(&format!(
                "git -C {place} cat-file --batch-all-objects --batch"
            ))
            .expect(0)
            .stdout;
        assert!(
            objects.contains("attempt_ended") && objects.contains("[redacted]"),
            "{place}: {objects}"
        );
        assert_masked(place, &objects, &secrets);
    }
}

// What was rebuilt from checkpoints lacks the secrets: nothing is run without them.
#[test]
fn a_rebuilt_run_is_given_its_command_again() {
    let env = env();
    let secret = "api_token=abcd-123456";
    failed_run(&env, secret);
    fs::remove_dir_all(env.work().join(".ultraplan/state")).expect("the state");
    fs::remove_dir_all(env.work().join(".git/recover")).expect("its copy");
    assert_eq!(
        env.json(0, &["doctor", "--rebuild"])["rebuilt"]["failures"],
        1
    );
    env.remove("../given");
    let refused =
        env.json(2, &["resume", "--run", "r", "--strategy", "retry_same"])["error"].clone();
    let message = refused["message"].as_str().expect("a message");
    assert!(
        message.contains("held a secret") && message.contains("after --"),
        "{refused}"
    );
    assert!(!env.exists("../given"), "it was not run");
    let again = [
        "resume",
        "--run",
        "r",
        "--strategy",
        "retry_same",
        "--wait",
        "--",
        "./agent.sh",
        secret,
    ];
    let resumed = env.recover(&again);
    assert!(
        resumed.stderr.contains("the prompt of run r held a secret"),
        "{}",
        resumed.stderr
    );
    assert_eq!(env.read("../given"), format!("{secret}\n"));
}

/// The events that checkpoints carry, as a version wrote them that did not note what it masked.
fn forget_what_is_masked(env: &TestEnv) {
    let without = |line: &str| {
        let (said, _) = line.rsplit_once(",\"checksum\":").expect("a checksum");
        let (before, after) = said.split_once(",\"masked\":[").unwrap_or((said, "]"));
        let said = format!("{before}{}", after.split_once(']').expect("its end").1);
        let checksum = crc32fast::hash(format!("{said}}}").as_bytes());
        format!("{said},\"checksum\":\"{checksum:08x}\"}}\n")
    };
    for line in env
        .git(&[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/recover",
        ])
        .lines()
    {
        let (name, commit) = line.split_once(' ').expect("a name and a commit");
        let parents = env.git(&["rev-list", "--parents", "-1", commit]);
        let state = parents.split_whitespace().last().expect("a parent");
        let events = env.git(&["show", &format!("{state}:events.jsonl")]);
        env.write("../events", events.lines().map(without).collect::<String>());
        let script = "set -e; blob=$(git hash-object -w ../events); old=$(git rev-parse $2:events.jsonl)
            tree=$(git ls-tree $2 | sed s/$old/$blob/ | git mktree)
            made=$(git cat-file commit $2 | sed \"1s/.*/tree $tree/\" | git hash-object -t commit -w --stdin)
            git update-ref $1 $(git cat-file commit $3 | sed \"s/^parent $2/parent $made/\" | git hash-object -t commit -w --stdin)";
        let mut rewrite = env.command("sh");
        let done = rewrite
            .args(["-c", script, "sh", name, state, commit])
            .status();
        assert!(done.expect("sh starts").success(), "{name} is written anew");
    }
}

// The same for checkpoints of a version that did not note what it masked: a command, a check, a step, a compensation.
#[test]
fn a_run_rebuilt_from_old_checkpoints_is_given_its_command_again() {
    let env = env();
    let secret = "api_token=abcd-123456";
    failed_run(&env, secret);
    let step = [
        "step",
        "deploy",
        "--run",
        "r",
        "--compensate",
        "echo api_token=abcd-123456 > ../compensated",
        "--",
    ];
    env.recover(&[&step[..], &["sh", "-c", "echo $0 >> ../stepped", secret]].concat())
        .expect(0);
    let target = env.json(0, &["checkpoint", "list", "--run", "r"])["checkpoints"][0]["id"].clone();
    env.write("a.txt", "more\n");
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    forget_what_is_masked(&env);
    fs::remove_dir_all(env.work().join(".ultraplan/state")).expect("the state");
    fs::remove_dir_all(env.work().join(".git/recover")).expect("its copy");
    assert_eq!(
        env.json(0, &["doctor", "--rebuild"])["rebuilt"]["failures"],
        1
    );
    env.remove("../given");
    env.remove("../stepped");
    let refused =
        env.json(2, &["resume", "--run", "r", "--strategy", "retry_same"])["error"].clone();
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("held a secret")),
        "{refused}"
    );
    let refused = env.json(2, &["step", "deploy", "--run", "r"])["error"].clone();
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("held a secret")),
        "{refused}"
    );
    let target = target.as_str().expect("an id");
    let back = env.json(
        0,
        &[
            "rollback", "--run", "r", "--to", target, "--edits", "discard",
        ],
    );
    assert!(
        back["result"]["crossed"]
            .to_string()
            .contains("held a secret"),
        "{back}"
    );
    assert!(
        !env.exists("../given") && !env.exists("../stepped") && !env.exists("../compensated"),
        "nothing was run"
    );
    // Rebuilt once more it is the same.
    assert_eq!(
        env.json(0, &["doctor", "--rebuild"])["rebuilt"]["changed"],
        false
    );
}

// The checks of such a run are not run for a person's fix, or before its work is accepted, either.
#[test]
fn checks_that_lack_a_secret_judge_nothing() {
    let env = env();
    let check = "unit=echo api_token=abcd-123456 >> ../given; grep -q fixed a.txt";
    let run = [
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--iterations",
        "1",
        "--feedback",
        check,
    ];
    env.recover(&[&run[..], &["--", "sh", "-c", "echo two > a.txt"]].concat());
    fs::remove_dir_all(env.work().join(".ultraplan/state")).expect("the state");
    fs::remove_dir_all(env.work().join(".git/recover")).expect("its copy");
    env.json(0, &["doctor", "--rebuild"]);
    env.remove("../given");
    env.json(0, &["manual-fix", "start", "--run", "r"]);
    env.write("a.txt", "fixed\n");
    let refused = env.json(2, &["manual-fix", "verify", "--run", "r"])["error"].clone();
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("held a secret")),
        "{refused}"
    );
    assert!(!env.exists("../given"), "it was not run");
}

// The same for whatever else of it is run; and a command that only looks masked is none.
#[test]
fn a_rebuilt_run_lacks_its_checks_too() {
    let secret = "api_token=abcd-123456";
    for (flags, what, again) in [
        (
            ["--until", "test api_token=abcd-123456 = x"],
            "the until",
            None,
        ),
        (
            ["--feedback", "unit=echo api_token=abcd-123456; exit 3"],
            "the feedback",
            Some("unit=exit 3"),
        ),
    ] {
        let env = env();
        env.sh("printf 'exit 1\n' > agent.sh && chmod +x agent.sh && echo ran >> ../given")
            .expect(0);
        let run = ["run", "--run", "r", "--attempts", "1", "--iterations", "1"];
        env.recover(
            &[
                &run[..],
                &flags[..],
                &["--", "sh", "./agent.sh", "[redacted]"],
            ]
            .concat(),
        );
        fs::remove_dir_all(env.work().join(".ultraplan/state")).expect("the state");
        fs::remove_dir_all(env.work().join(".git/recover")).expect("its copy");
        env.json(0, &["doctor", "--rebuild"]);
        let resume = ["resume", "--run", "r", "--strategy", "retry_same"];
        let refused = env.json(2, &resume)["error"].clone();
        let message = refused["message"].as_str().expect("a message");
        assert!(
            message.starts_with(what) && message.contains("held a secret"),
            "{refused}"
        );
        assert!(!refused.to_string().contains(secret), "{refused}");
        if let Some(given) = again {
            env.sh("printf 'echo ran > ../again\n' > agent.sh")
                .expect(0);
            env.recover(&[&resume[..], &["--feedback", given]].concat());
            assert_eq!(
                env.read("../again"),
                "ran\n",
                "what was given again is whole"
            );
        }
    }
}

// What is recorded is the same as what a checkpoint carries of it: a rebuild finds nothing new, and keeps the whole.
#[test]
fn a_rebuild_prefers_what_is_left_of_the_ledger() {
    let env = env();
    failed_run(&env, "api_token=abcd-123456");
    let before = env.read(".ultraplan/state/events.jsonl");
    assert_eq!(
        env.json(0, &["doctor", "--rebuild"])["rebuilt"]["changed"],
        false
    );
    assert_eq!(env.read(".ultraplan/state/events.jsonl"), before);
}

// A command to copy works: what cannot be shown is repeated from what is recorded.
#[test]
fn a_step_with_a_secret_runs_again_by_its_hint() {
    let mut env = env();
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_recover"))
        .parent()
        .expect("a folder")
        .to_owned();
    let path = format!(
        "{}:{}",
        folder.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    env.set("PATH", &path);
    let stage = [
        "checkpoint",
        "create",
        "--run",
        "p",
        "--lane",
        "L",
        "--stage",
        "before_lane_start",
    ];
    env.json(0, &stage);
    let script = "printf '%s\\n' \"$0\" >> ../given; exit 7";
    let flags = ["--run", "p", "--lane", "L", "--stage", "after_lane_tests"];
    let step = [
        &["step", "test"],
        &flags[..],
        &["--", "sh", "-c", script, "--token=abcd-123456"],
    ]
    .concat();
    env.json(7, &step);
    let resumed = env.json(0, &["resume", "--run", "p", "--lane", "L"]);
    let hint = resumed["next_actions"][0].as_str().expect("a command");
    assert!(
        hint.contains(" step test ") && !hint.contains("[redacted]"),
        "{resumed}"
    );
    assert_eq!(env.sh(&format!("cd / && {hint}")).code, 7);
    assert_eq!(env.read("../given"), "--token=abcd-123456\n".repeat(2));
    env.sh("mkdir -p sub && cd sub && recover -q step test --run p --lane L");
    assert_eq!(
        env.read("../given"),
        "--token=abcd-123456\n".repeat(3),
        "where it ran before"
    );
    let stages = env.state_json("checkpoints.json");
    assert!(
        stages
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["stage"] == "after_lane_tests")),
        "{stages}"
    );
    let unknown = env.json(2, &["step", "other", "--run", "p", "--lane", "L"])["error"].clone();
    assert!(
        unknown["message"]
            .as_str()
            .is_some_and(|text| text.contains("was never begun")),
        "{unknown}"
    );
}
