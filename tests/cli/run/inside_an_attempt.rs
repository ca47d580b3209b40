//! What a supervised agent may do with `recover`, and what no reset gives it.

use serde_json::Value;

use crate::env::TestEnv;

/// A run of three attempts whose agent does `line` and fails.
fn run_of(line: &str) -> (TestEnv, i32, usize) {
    let env = with_cooldown();
    let (code, count) = attempts(&env, line);
    (env, code, count)
}

fn with_cooldown() -> TestEnv {
    let mut env = TestEnv::repo();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_recover"))
        .parent()
        .expect("a folder")
        .to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    env.set("PATH", &format!("{}:{path}", program.display()));
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = \"0s\"\n");
    env
}

fn attempts(env: &TestEnv, line: &str) -> (i32, usize) {
    let line = format!(
        "echo x >> ../count; test $(wc -l < ../count) -lt 9 || kill -TERM $PPID; {line}; exit 1"
    );
    let ran = env.recover(&[
        "run",
        "--run",
        "r",
        "--attempts",
        "3",
        "--on-failure",
        "retry",
        "--",
        "sh",
        "-c",
        &line,
    ]);
    let count = std::fs::read_to_string(env.root().join("count"))
        .expect("it ran")
        .lines()
        .count();
    (ran.code, count)
}

/// Calls `recover` in an attempt, in each of the ways that hide where it comes from, and returns codes and answers.
fn inside(args: &str) -> Vec<(i32, Value)> {
    let env = with_cooldown();
    if args.contains("other") {
        env.json(0, &["checkpoint", "create", "--run", "other"]);
    }
    let call = |before: &str, n: u32| {
        format!("{before} recover --json {args} > ../answer-{n} 2>/dev/null; echo $? > ../code-{n}")
    };
    let clean = "env -u RECOVER_ATTEMPT_MARK -u RECOVER_RUN_ID -u RECOVER_SUPERVISOR";
    let all = [
        call("", 1),
        call(clean, 2),
        call(&format!("{clean} setsid -w"), 3),
    ]
    .join("; ");
    env.recover(&[
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        &format!("{all}; exit 0"),
    ])
    .expect(0);
    let read = |name: String| std::fs::read_to_string(env.root().join(name)).expect("written");
    let answer = |n: u32| {
        (
            read(format!("code-{n}")).trim().parse().expect("a code"),
            read(format!("answer-{n}")),
        )
    };
    (1..=3)
        .map(answer)
        .map(|(code, text)| (code, serde_json::from_str(&text).expect("a document")))
        .collect()
}

// Contract: three attempts are three, whatever the agent resets, removes or repairs meanwhile.
#[test]
fn no_reset_inside_a_run_gives_it_more_attempts() {
    for line in [
        "recover retry-status --reset",
        // Out of reach of every guard: nothing of it descends from the attempt or has its mark.
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" setsid -f recover retry-status --reset --run r; sleep 0.5",
        "recover checkpoint prune --keep-last 0 --yes; recover doctor --rebuild; recover doctor --repair",
    ] {
        let (_, code, count) = run_of(line);
        assert!(
            matches!(code, 7 | 8) && count == 3,
            "{line}: {code} {count}"
        );
    }
    // Without its ledger it may stop earlier, never later.
    for line in [
        "rm -rf .ultraplan/state",
        "rm -rf .ultraplan/state .git/recover",
        ": > .ultraplan/state/events.jsonl",
        "sed -i '4,$d' .ultraplan/state/events.jsonl",
    ] {
        let (_, _, count) = run_of(line);
        assert!(count <= 3, "{line}: {count}");
    }
}

// What cleared its environment and left its ancestors looks like anybody: nobody resets what is at work.
#[test]
fn what_is_at_work_is_reset_by_nobody() {
    let escaped = "env -i PATH=\"$PATH\" HOME=\"$HOME\" setsid -f sh -c";
    let call = |name: &str, command: &str| {
        format!("recover --json {command} > ../answer-{name}; echo $? > ../code-{name}")
    };
    // It has escaped once what started it is gone.
    let alone = "while test \"$(cat /proc/$PPID/comm 2>/dev/null)\" = setsid; do sleep 0.02; done";
    let line = format!(
        "{escaped} '{alone}; {}; {}; {}; touch ../done'; until test -e ../done; do sleep 0.02; done; exit 1",
        call("r", "retry-status --reset --run r"),
        call("old", "retry-status --reset --run old"),
        // A success would clear what the task has used up.
        call("pass", "attempt pass --run old")
    );
    let env = with_cooldown();
    let run = |id: &str, line: &str| {
        env.recover(&[
            "run",
            "--run",
            id,
            "--task",
            "T",
            "--attempts",
            "3",
            "--on-failure",
            "retry",
            "--",
            "sh",
            "-c",
            line,
        ])
    };
    assert!(matches!(run("old", "exit 1").code, 7 | 8));
    let used = || env.json(0, &["retry-status", "--run", "old"])["budgets"].to_string();
    let before = used();
    assert!(matches!(run("r", &line).code, 7 | 8));
    for name in ["r", "old", "pass"] {
        let read = |what: &str| {
            std::fs::read_to_string(env.root().join(format!("{what}-{name}"))).expect("written")
        };
        let answer: Value = serde_json::from_str(&read("answer")).expect("a document");
        assert_eq!(
            (read("code").trim(), &answer["error"]["code"]),
            ("11", &"locked".into()),
            "{answer}"
        );
        let message = answer["error"]["message"].as_str().expect("text");
        assert!(
            message.contains("run r is at work (pid ") && message.contains("kill -INT"),
            "{message}"
        );
    }
    assert_ne!(used(), before, "the task's budget counts both runs");
    env.recover(&["run", "--run", "third", "--task", "T", "--", "true"])
        .expect(7);
    // Once nothing is at work it is a person's to reset.
    for name in ["r", "old"] {
        env.json(0, &["retry-status", "--reset", "--run", name]);
    }
    env.recover(&["run", "--run", "fourth", "--task", "T", "--", "true"])
        .expect(0);
}

// A ledger that goes with its copy in the middle of a run is damage, and no attempt is given again for it. One that is
// appended to between the two removals brings the other back, so that both are removed until the run has come to rest.
#[test]
fn a_run_whose_ledger_is_removed_ends_as_damaged() {
    let (env, code, count) =
        run_of("for again in 1 2 3 4 5 6; do rm -rf .git/recover .ultraplan; sleep 0.1; done");
    assert_eq!((code, count), (12, 1));
    let refused = env
        .recover(&["run", "--run", "again", "--", "true"])
        .expect(12);
    assert!(
        refused.stderr.contains("doctor --rebuild"),
        "{}",
        refused.stderr
    );
}

// A person's reset from another terminal neither.
#[test]
fn a_reset_from_outside_does_not_extend_the_run_that_is_at_work() {
    let env = with_cooldown();
    let reset = env.sh("(while ! test -e ../stop; do recover retry-status --reset --run r; sleep 0.05; done) >/dev/null 2>&1 & echo $!");
    let (code, count) = attempts(&env, "sleep 0.4");
    std::fs::write(env.root().join("stop"), "").expect("written");
    drop(reset);
    assert!(matches!(code, 7 | 8) && count == 3, "{code} {count}");
    // Once it is over a reset counts.
    env.json(0, &["retry-status", "--reset", "--run", "r"]);
    assert_eq!(
        env.json(0, &["retry-status", "--run", "r"])["error_count"],
        0
    );
}

#[test]
fn what_decides_about_the_run_is_refused_inside_its_attempt() {
    for args in [
        "retry-status --reset",
        "checkpoint prune --keep-last 0 --yes",
        "checkpoint unpin @1",
        "doctor --repair",
        "doctor --rebuild",
        "hook uninstall",
        "plugin uninstall",
        "rollback --to initial",
        "rollback --to initial --run other",
        "--rollback --to initial",
        "undo",
        "redo",
        "checkpoint restore @1",
        "attempt start",
        "attempt pass",
        "attempt fail --exit-code 1",
        "resume",
        "import a.txt",
        "manual-fix continue",
        "manual-fix abort",
    ] {
        for (code, answer) in inside(args) {
            assert_eq!(
                (code, &answer["error"]["code"]),
                (11, &"inside_attempt".into()),
                "{args}: {answer}"
            );
            let message = answer["error"]["message"].as_str().expect("text");
            assert!(
                message.contains("run r,") && message.contains("(pid "),
                "{args}: {message}"
            );
            assert!(
                answer["error"]["hint"]
                    .as_str()
                    .is_some_and(|hint| hint.contains("status")),
                "{answer}"
            );
        }
    }
}

#[test]
fn what_only_looks_or_adds_is_allowed_inside_an_attempt() {
    for args in [
        "status",
        "retry-status",
        "log",
        "doctor",
        "checkpoint create -m inside",
        "checkpoint list",
        "checkpoint pin @1",
        "step s -- true",
        "classify --exit-code 1",
        "rollback --to initial --dry-run",
        "checkpoint prune --keep-last 0 --dry-run",
        "retry-status --reset --dry-run",
        "attempt list",
        "run --run nested-$(date +%s%N) -- true",
        "attempt fail --run other --exit-code 1",
    ] {
        for (code, answer) in inside(args) {
            assert_eq!(code, 0, "{args}: {answer}");
        }
    }
}

// A plan is no decision: an agent may see what would be committed, closed or removed.
#[test]
fn what_is_only_planned_is_shown_inside_an_attempt() {
    let env = with_cooldown();
    let plan = |name: &str| {
        format!("recover --json {name} r --dry-run > ../{name}; echo $? > ../{name}-code; ")
    };
    let real = "recover --json accept > ../real; echo $? > ../real-code; ";
    let plans: String = ["accept", "close", "forget"].map(plan).concat();
    let line = format!(
        "if [ $RECOVER_ITERATION = 1 ]; then echo more >> a.txt; exit 0; fi; {plans}{real}exit 0"
    );
    env.recover(&[
        "run",
        "--run",
        "r",
        "--iterations",
        "2",
        "--",
        "sh",
        "-c",
        &line,
    ])
    .expect(0);
    for name in ["accept", "close", "forget"] {
        let answer: Value =
            serde_json::from_str(&env.read(&format!("../{name}"))).expect("a document");
        assert_eq!(
            env.read(&format!("../{name}-code")).trim(),
            "0",
            "{name}: {answer}"
        );
        assert_eq!(
            (&answer["changed"], &answer["plan"]["changed"]),
            (&false.into(), &true.into()),
            "{name}: {answer}"
        );
    }
    let refused: Value = serde_json::from_str(&env.read("../real")).expect("a document");
    assert_eq!(
        (env.read("../real-code").trim(), &refused["error"]["code"]),
        ("11", &"inside_attempt".into())
    );
    assert_eq!(env.json(0, &["status"])["run"]["status"], "complete");
}

// The variable that every attempt has names a run that exists: that it is the attempt's own is what matters.
#[test]
fn a_run_of_the_name_that_is_at_work_is_refused() {
    let env = with_cooldown();
    let line = "recover --json run -- touch ../ran > ../answer; echo $? > ../code; touch ../asked; \
                until [ -e ../over ]; do sleep 0.05; done";
    let run = env.start(&["run", "--run", "r", "--", "sh", "-c", line]);
    crate::run::supervision::until("it has asked", || env.exists("../asked"));
    let answer: Value = serde_json::from_str(&env.read("../answer")).expect("a document");
    assert_eq!(
        (env.read("../code").trim(), &answer["error"]["code"]),
        ("11", &"inside_attempt".into()),
        "{answer}"
    );
    let refused = env.error(11, &["run", "--run", "r", "--", "touch", "../ran"]);
    assert_eq!(refused["code"], "locked");
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("(pid ")),
        "{refused}"
    );
    env.sh("touch ../over").expect(0);
    crate::run::supervision::ended(run).expect(0);
    assert!(!env.exists("../ran"));
    assert_eq!(
        env.error(13, &["run", "--run", "r", "--", "true"])["code"],
        "already_exists"
    );
}

// The morning's status was about what an agent had tried out on the side.
#[test]
fn a_run_within_an_attempt_is_no_other_commands_run() {
    let env = with_cooldown();
    let inner = "env -u RECOVER_RUN_ID recover --json status > ../during; exit 1";
    let line = format!(
        "env -u RECOVER_RUN_ID recover run --run inner --attempts 1 -- sh -c '{inner}'; echo $? > ../code; exit 0"
    );
    env.recover(&["run", "--run", "outer", "--", "sh", "-c", &line])
        .expect(0);
    assert_eq!(env.read("../code").trim(), "8", "it was run");
    let during: Value = serde_json::from_str(&env.read("../during")).expect("a document");
    assert_eq!(during["run"]["run_id"], "outer", "{during}");
    for command in ["status", "report", "retry-status"] {
        let said = env.json(0, &[command]);
        assert_ne!(said["run"]["run_id"], "inner", "{said}");
    }
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "outer");
    assert_eq!(
        env.json(0, &["status", "--run", "inner"])["run"]["status"],
        "escalated"
    );
    let runs = env.json(0, &["runs"]);
    let runs = runs["runs"].as_array().expect("runs");
    let chosen: Vec<_> = runs
        .iter()
        .filter(|run| run["chosen"] == true)
        .map(|run| run["run_id"].clone())
        .collect();
    assert_eq!((runs.len(), chosen), (2, vec![Value::from("outer")]));
}

// What an attempt does in another project is that one's own affair.
#[test]
fn another_project_is_not_concerned() {
    let env = with_cooldown();
    let line = "git init -q ../other && cd ../other && echo 1 > a && git add a && git commit -qm a && \
                env -u RECOVER_RUN_ID recover checkpoint create && echo 2 > a && \
                env -u RECOVER_RUN_ID recover rollback --to @1 --edits discard && env -u RECOVER_RUN_ID recover undo";
    env.recover(&[
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        line,
    ])
    .expect(0);
}

// A shell that outlived its attempt, such as one in a terminal multiplexer, is nobody's agent once the run is over.
#[test]
fn after_the_run_nothing_is_refused() {
    let env = with_cooldown();
    let line = "(while ! test -e ../over; do sleep 0.05; done; recover retry-status --reset --run r; echo $? > ../code.tmp; mv ../code.tmp ../code)";
    env.write(".ultraplan/recover.toml", "[run]\nleftovers = \"keep\"\n");
    let line = format!("setsid -f sh -c '{line}' >/dev/null 2>&1; exit 0");
    env.recover(&["run", "--run", "r", "--", "sh", "-c", &line])
        .expect(0);
    std::fs::write(env.root().join("over"), "").expect("written");
    let code = env.root().join("code");
    crate::run::supervision::until("the shell is done", || code.exists());
    assert_eq!(std::fs::read_to_string(code).expect("written"), "0\n");
}

// The variable that a CI job sets for its own calls reaches its agents, and must not let them take a ledger over.
#[test]
fn an_agent_takes_over_no_state_by_the_environment() {
    let mut env = with_cooldown();
    let other = with_cooldown();
    other.recover(&["checkpoint", "create"]).expect(0);
    env.sh(&format!(
        "cp -r '{}/.ultraplan/state' ../brought",
        other.work().display()
    ))
    .expect(0);
    env.set("RECOVER_TRUST", "1");
    let line =
        "recover --json --state-dir ../brought checkpoint create > ../answer; echo $? > ../code";
    env.recover(&[
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        line,
    ])
    .expect(0);
    let read = |name: &str| std::fs::read_to_string(env.root().join(name)).expect("written");
    assert_eq!(read("code").trim(), "13", "{}", read("answer"));
    assert!(
        read("answer").contains("foreign_state"),
        "{}",
        read("answer")
    );
    // Outside of the attempt it says what the user wants.
    env.recover(&["--state-dir", "../brought", "checkpoint", "create"])
        .expect(0);
}
