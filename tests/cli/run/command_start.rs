//! Where commands start, and what becomes of those that cannot be started.

use crate::env::{Ran, TestEnv};
use crate::run::supervision::kill;

fn quick() -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    env
}

fn at(env: &TestEnv, folder: &str, args: &[&str]) -> Ran {
    Ran::of(
        &env.recover_command(args)
            .current_dir(env.work().join(folder))
            .output()
            .expect("recover starts"),
    )
}

/// S15: what the command line names starts where it was typed, also when the run is resumed from elsewhere; what
/// `recover.toml` names at its project's root, or in its own `dir`.
#[test]
fn commands_start_where_they_were_typed() {
    let env = quick();
    env.write("sub/here", "");
    env.write("other/there", "");
    let config = "[[feedback]]\nname = 'root'\ncommand = 'test -f a.txt'\n\
                  [[feedback]]\nname = 'own'\ncommand = 'test -f there'\ndir = './other/'\n";
    env.write(".ultraplan/recover.toml", config);
    let run = |command: &str| {
        let check = "mine=test -f here && test -f ok";
        [
            "--json",
            "run",
            "--run",
            "r",
            "--iterations",
            "2",
            "--attempts",
            "1",
            "--feedback",
            check,
            "--until",
            "test -f here && test -f never",
            "--fallback",
            "pwd > ../../fell-back",
            "--",
            "sh",
            "-c",
            command,
        ]
        .map(str::to_owned)
    };
    let args = run("pwd > ../went; test -f here");
    let ran = at(&env, "sub", &args.each_ref().map(String::as_str));
    let document = ran.json();
    let results = &document["iterations"][0]["attempts"][0]["feedback_results"];
    assert_eq!(
        (&results["root"]["passed"], &results["own"]["passed"]),
        (&true.into(), &true.into()),
        "{document}"
    );
    assert_eq!(results["mine"]["passed"], false, "{document}");
    assert!(
        env.read("went").trim_end().ends_with("/work/sub"),
        "{}",
        env.read("went")
    );
    let fell_back = std::fs::read_to_string(env.root().join("fell-back")).unwrap();
    assert!(fell_back.trim_end().ends_with("/work/sub"), "{fell_back}");

    // Taken up from the root, it starts in the same folder.
    env.write("sub/ok", "");
    env.remove("went");
    // Its first iteration was given up: a person has to review it.
    let document = env.json(8, &["resume", "--run", "r", "--strategy", "retry_same"]);
    assert!(
        env.read("went").trim_end().ends_with("/work/sub"),
        "{document}"
    );
    let results = &document["iterations"].as_array().unwrap().last().unwrap()["attempts"];
    let last = results.as_array().unwrap().last().unwrap();
    assert_eq!(
        last["feedback_results"]["mine"]["passed"], true,
        "{document}"
    );
}

/// B8: `manual-fix verify` runs the checks where they were typed.
#[test]
fn a_fix_is_verified_where_the_checks_were_typed() {
    let env = quick();
    env.write("sub/here", "");
    let ran = at(
        &env,
        "sub",
        &[
            "run",
            "--attempts",
            "1",
            "--feedback",
            "mine=test -f here && test -f ok",
            "--",
            "true",
        ],
    );
    ran.expect(8);
    env.json(0, &["manual-fix", "start"]);
    env.json(100, &["manual-fix", "verify"]);
    env.write("sub/ok", "");
    env.json(0, &["manual-fix", "verify"]);
}

/// A folder that a rollback, or the command itself, removed is made again for the next command.
#[test]
fn a_folder_that_is_gone_is_made_again() {
    let env = quick();
    std::fs::create_dir(env.work().join("new")).unwrap();
    let command = "pwd >> ../../went; rmdir ../new; exit 3";
    at(
        &env,
        "new",
        &["run", "--attempts", "2", "--", "sh", "-c", command],
    )
    .expect(8);
    let went = std::fs::read_to_string(env.root().join("went")).unwrap();
    assert_eq!(went.lines().count(), 2, "{went}");
}

#[test]
fn the_folder_of_a_check_is_one_of_the_project() {
    let env = quick();
    for dir in ["../x", "/tmp", "a/../../b", ""] {
        env.write(
            ".ultraplan/recover.toml",
            format!("[[feedback]]\nname = 'a'\ncommand = 'b'\ndir = '{dir}'\n"),
        );
        let error = env.error(2, &["config"]);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(":4") && message.contains("a folder of the project"),
            "{dir}: {message}"
        );
    }
}

/// S8, S15: a command that cannot be started is named before anything is made, with what may be meant.
#[test]
fn a_command_that_cannot_be_started_is_named_before_anything_is_made() {
    let mut env = quick();
    env.script("bin/claude", "exit 0");
    env.write("plain.sh", "#!/bin/sh\nexit 0\n");
    env.script("no-interpreter", "exit 0");
    env.write("no-interpreter", "#!/no/such/python3 -u\nexit 0\n");
    let path = format!(
        "{}:{}",
        env.work().join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    env.set("PATH", &path);
    for (command, said) in [
        ("cluade", "cluade: not found; did you mean 'claude'?"),
        (
            "./bin/claud",
            "./bin/claud: not found; did you mean './bin/claude'?",
        ),
        ("no-such-agent-at-all", "no-such-agent-at-all: not found"),
        ("./plain.sh", "./plain.sh: not executable (chmod +x"),
        ("./no-interpreter", "/no/such/python3"),
        ("./bin", "./bin: not found"),
    ] {
        for flags in [&["run"][..], &["run", "--dry-run"]] {
            let error = env.error(2, &[flags, &["--", command, "-p", "x"]].concat());
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(said), "{command}: {error}");
        }
    }
    assert!(
        !env.exists(".ultraplan/state/events.jsonl"),
        "nothing was recorded"
    );
    assert_eq!(env.git(&["for-each-ref", "refs/recover"]), "");
    // The hint is the same command with the right name.
    let hint = env.error(2, &["run", "--", "cluade", "-p", "x"])["hint"]
        .as_str()
        .unwrap()
        .to_owned();
    let hint = hint.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1);
    env.sh(&format!("cd / && {hint}")).expect(0);
}

/// S15: a check that cannot be started is named at once and stops nothing; where an attempt does not bring it, no other
/// attempt is paid for.
#[test]
fn a_check_that_cannot_be_started_stops_the_run_before_the_second_attempt() {
    for baseline in ["true", "false"] {
        let env = quick();
        env.write(
            ".ultraplan/recover.toml",
            format!("[checks]\nbaseline = {baseline}\n"),
        );
        let command = "echo x >> ../attempts";
        let run = [
            "run",
            "--attempts",
            "5",
            "--feedback",
            "test=./check.sh --all",
            "--",
            "sh",
            "-c",
            command,
        ];
        let document = env.json(2, &run);
        assert_eq!(
            std::fs::read_to_string(env.root().join("attempts")).unwrap(),
            "x\n",
            "{document}"
        );
        let warnings = document["warnings"].to_string();
        assert!(
            warnings.contains("the check 'test' cannot be started")
                && warnings.contains("check.sh"),
            "{warnings}"
        );
        assert_eq!(document["outcome"], "failed", "{document}");
        if baseline == "true" {
            assert_eq!(document["baseline"]["test"]["missing"], true, "{document}");
        }
        let status = env.json(0, &["status"]);
        assert_eq!(status["run"]["status"], "failed", "{status}");

        // It is told again before anything is spent; once it is there, the run goes on.
        let document = env.json(2, &["resume", "--strategy", "retry_same"]);
        assert!(
            document["warnings"]
                .to_string()
                .contains("feedback: test: ./check.sh: not found"),
            "{document}"
        );
        env.script("check.sh", "exit 0");
        let document = env.json(0, &["resume", "--strategy", "retry_same"]);
        assert_eq!(document["outcome"], "complete", "{document}");
    }
}

/// What is said to come next is what comes next: no attempt where the run stops.
#[test]
fn a_run_that_a_missing_check_stops_announces_no_attempt() {
    let env = quick();
    let ran = env
        .recover(&[
            "run",
            "--attempts",
            "5",
            "--feedback",
            "test=./check.sh",
            "--",
            "true",
        ])
        .expect(2);
    let stopped = ran
        .stderr
        .find("stopped before another attempt")
        .expect("it says why");
    assert!(
        !ran.stderr[..stopped].contains("tried again"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stdout.contains("tried again"), "{}", ran.stdout);
}

/// What the attempt brings, it may need; what it takes away is its failure.
#[test]
fn a_check_that_an_attempt_brings_or_takes_away_is_the_attempts_doing() {
    let env = quick();
    let bring = "printf '#!/bin/sh\\n' > check.sh; chmod +x check.sh";
    env.json(
        0,
        &[
            "run",
            "--feedback",
            "test=./check.sh",
            "--",
            "sh",
            "-c",
            bring,
        ],
    );

    let env = quick();
    env.script("check.sh", "exit 0");
    let take = "rm -f check.sh; echo x >> ../attempts";
    let document = env.json(
        7,
        &[
            "run",
            "--attempts",
            "2",
            "--feedback",
            "test=./check.sh",
            "--",
            "sh",
            "-c",
            take,
        ],
    );
    assert_eq!(
        document["iterations"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        2,
        "{document}"
    );
}

/// What stopped the run is mended before it is resumed, not after another attempt.
#[test]
fn a_check_that_still_cannot_start_costs_no_attempt() {
    let env = quick();
    let run = [
        "run",
        "--run",
        "r",
        "--attempts",
        "3",
        "--feedback",
        "test=./nocheck.sh",
        "--",
        "true",
    ];
    env.json(2, &run);
    let error = env.error(2, &["resume", "r"]);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("still cannot: ./nocheck.sh: not found"),
        "{error}"
    );
    let attempts = || {
        env.json(0, &["status", "--run", "r"])["iterations"][0]["attempts"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(attempts(), Some(1));
    env.script("nocheck.sh", "exit 0");
    env.json(0, &["resume", "r"]);
    assert_eq!(attempts(), Some(2));
}

/// A shell runs a script that names no interpreter; the system does not.
#[test]
fn a_script_without_a_first_line_is_told_before_anything_is_spent() {
    let env = quick();
    env.put("agent", "echo hello\n");
    env.sh("chmod +x agent").expect(0);
    let error = env.error(2, &["run", "--", "./agent"]);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("such as #!/bin/sh"),
        "{error}"
    );
    assert!(!env.exists(".ultraplan/state"), "nothing was begun");
    env.recover(&["run", "--", "sh", "./agent"]).expect(0);
}

/// A command that goes while the run is under way stops it, and its attempt is not charged.
#[test]
fn a_command_that_goes_away_is_not_tried_twice() {
    let env = quick();
    env.script("agent", "rm agent; exit 1");
    let error = env.error(2, &["run", "--", "./agent"]);
    assert!(
        error["message"].as_str().unwrap().contains("./agent"),
        "{error}"
    );
    let status = env.json(0, &["status"]);
    let attempts = status["iterations"][0]["attempts"].as_array().unwrap();
    assert_eq!(
        (attempts.len(), &attempts[1]["failure"]["cause"]),
        (2, &"CANCELLED".into()),
        "{status}"
    );
}

/// S15: a switched branch, a moved HEAD and a command that is gone are told before anything is spent.
#[test]
fn what_is_not_as_it_was_is_told_before_anything_is_spent() {
    let env = quick();
    env.script("agent", "echo x >> ../attempts; exit 1");
    env.json(8, &["run", "--attempts", "1", "--", "./agent"]);
    let names = |document: &serde_json::Value| -> Vec<String> {
        let checks = document["validation"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|check| check["ok"] == false);
        checks
            .map(|check| check["check"].as_str().unwrap().to_owned())
            .collect()
    };
    let document = env.json(8, &["resume", "--strategy", "retry_same"]);
    assert_eq!(names(&document), Vec::<String>::new(), "{document}");

    env.git(&["switch", "-q", "-c", "feature"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "by hand"]);
    let document = env.json(0, &["resume", "--prepare-only", "--strategy", "retry_same"]);
    assert_eq!(names(&document), ["branch", "head"], "{document}");
    let ran = env
        .recover(&["resume", "--strategy", "retry_same"])
        .expect(8);
    let told = ran
        .stderr
        .find("feature is checked out, the run was on main")
        .expect("told");
    assert!(ran.stderr.contains("HEAD is "), "{}", ran.stderr);
    assert!(
        ran.stderr.find("attempt").is_none_or(|at| told < at),
        "{}",
        ran.stderr
    );

    let before = std::fs::read_to_string(env.root().join("attempts")).unwrap();
    env.remove("agent");
    let error = env.error(2, &["resume", "--strategy", "retry_same"]);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("./agent: not found"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(env.root().join("attempts")).unwrap(),
        before
    );
}

/// The same after a kill, whichever command finds out about it: what it finds is not what the run left.
#[test]
fn what_changed_after_a_kill_is_told_before_anything_is_spent() {
    for first in [None, Some("create")] {
        let env = crate::run::attempts::quick();
        env.script("agent", "echo $$ > ../pid; sleep 300");
        let mut run = env.start(&["run", "--run", "r", "--", "./agent"]);
        env.await_line("../pid");
        kill("-KILL", run.id());
        run.wait().expect("it ends");
        env.git(&["switch", "-q", "-c", "other"]);
        env.git(&["commit", "-q", "--allow-empty", "-m", "by hand"]);
        if let Some(command) = first {
            env.json(0, &["checkpoint", command]);
        }
        let ran = env
            .recover(&[
                "--json",
                "resume",
                "r",
                "--strategy",
                "retry_same",
                "--wait",
                "--",
                "true",
            ])
            .expect(0);
        let document = ran.json();
        let checks = document["validation"].as_array().expect("checks").iter();
        let failed: Vec<_> = checks
            .filter(|check| check["ok"] == false)
            .map(|check| check["check"].clone())
            .collect();
        assert_eq!(failed, ["branch", "head"], "{first:?}: {document}");
        assert!(
            ran.stderr
                .contains("other is checked out, the run was on main"),
            "{}",
            ran.stderr
        );
    }
}

/// A run without a check says once what "passed" means.
#[test]
fn a_run_without_a_check_says_what_passed_means() {
    let env = quick();
    let says = |ran: &Ran| ran.stderr.matches("the command exits with 0").count();
    assert_eq!(
        says(&env.recover(&["run", "--iterations", "3", "--", "true"])),
        1
    );
    assert_eq!(
        says(&env.recover(&["run", "--feedback", "test=true", "--", "true"])),
        0
    );
    assert_eq!(says(&env.recover(&["-q", "run", "--", "true"])), 0);
    assert_eq!(
        says(&env.recover(&["run", "--attempts", "1", "--", "false"])),
        1
    );
    assert_eq!(
        says(&env.recover(&["resume", "--strategy", "retry_same"])),
        0
    );
}
