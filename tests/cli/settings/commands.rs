//! `init` and `config`.

use serde_json::Value;

use crate::env::TestEnv;

const FILE: &str = ".ultraplan/recover.toml";

// S17, contract: the template is written once, valid, and says nothing by itself.
#[test]
fn init_writes_the_template_and_never_overwrites() {
    let env = TestEnv::repo();
    let planned = env.json(0, &["init", "--dry-run"]);
    assert_eq!(planned["changed"], false);
    assert!(!env.exists(FILE));
    assert_eq!(env.json(0, &["init", "--full"])["changed"], true);
    let template = env.read(FILE);
    for key in [
        "retry.max_attempts",
        "cooldown.duration",
        "rollback.safe_mode",
        "checkpoint.lane_file",
    ] {
        assert!(template.contains(&format!("\n#{key} = ")), "{key}");
    }
    assert_eq!(env.json(13, &["init"])["error"]["code"], "already_exists");
    env.write(FILE, "[retry]\nmax_attempts = 7\n");
    env.json(13, &["init"]);
    assert_eq!(env.read(FILE), "[retry]\nmax_attempts = 7\n");
    env.json(0, &["init", "--force", "--dry-run"]);
    assert_eq!(env.read(FILE), "[retry]\nmax_attempts = 7\n");
    env.json(0, &["init", "--force", "--full"]);
    assert_eq!(env.read(FILE), template);
}

// What it writes fits the project, and works: the run is judged by the checks that it found.
#[test]
fn init_writes_what_fits_the_project() {
    let package = r#"{"scripts": {"test": "node t.js", "lint": "eslint ."}}"#;
    for (files, checks) in [
        (
            &[("Cargo.toml", "[package]\nname = \"x\"\n")][..],
            &["test: cargo test"][..],
        ),
        (
            &[("package.json", package), ("pnpm-lock.yaml", "")],
            &["test: pnpm test", "lint: pnpm run lint"],
        ),
        (
            &[("pyproject.toml", "[tool.ruff]\n[tool.pytest.ini_options]\n")],
            &["test: pytest", "lint: ruff check ."],
        ),
        (
            &[("go.mod", "module x\n")],
            &["test: go test ./...", "lint: go vet ./..."],
        ),
        (&[("Makefile", "test:\n\ttrue\n")], &["test: make test"]),
        (
            &[("justfile", "test:\n  true\n"), ("Makefile", "lint:\n")],
            &["test: just test"],
        ),
        (&[("notes.txt", "")], &[]),
    ] {
        let env = TestEnv::repo();
        for (name, content) in files {
            env.write(name, content);
        }
        env.write("CLAUDE.md", "");
        let planned = env.recover(&["init", "--dry-run"]).expect(0);
        let document = env.json(0, &["init"]);
        let text = env.read(FILE);
        assert!(planned.stdout.contains(&text), "{}", planned.stdout);
        assert!(text.lines().count() <= 16, "{text}");
        let found: Vec<String> = document["checks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|check| {
                format!(
                    "{}: {}",
                    check["kind"].as_str().unwrap(),
                    check["command"].as_str().unwrap()
                )
            })
            .collect();
        assert_eq!(
            (found, &document["agents"]),
            (
                checks.iter().map(|c| (*c).to_owned()).collect(),
                &"claude".split(' ').collect()
            )
        );
        let config = env.json(0, &["config"]);
        assert_eq!(config["config"]["runner.agent"], "claude", "{text}");
        // Nothing was installed unasked.
        assert!(!env.exists(".claude"));
        assert!(
            env.recover(&["init", "--force"])
                .expect(0)
                .stdout
                .contains("hook install claude")
        );
    }
    let env = TestEnv::repo();
    env.write("Makefile", "test:\n\ttest -f done\n");
    env.recover(&["init"]).expect(0);
    let run = env.json(0, &["run", "--attempts", "1", "--", "touch", "done"]);
    assert_eq!(
        run["iterations"][0]["attempts"][0]["feedback_results"]["test"]["passed"], true,
        "{run}"
    );
}

// Contract: file, line and the nearest key; every command refuses where nothing is recorded yet; `init --force` mends.
#[test]
fn a_broken_file_is_refused_with_its_place_and_can_be_replaced() {
    let env = TestEnv::repo();
    env.write(FILE, "# mine\n[retry]\nmax_atempts = 3\n");
    for args in [
        &["status"][..],
        &["run", "--", "true"],
        &["checkpoint", "create"],
        &["config"],
        &["doctor"],
        &["log"],
    ] {
        let error = env.json(2, args);
        assert_eq!(error["error"]["code"], "config", "{error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("recover.toml:3") && message.contains("max_atempts"),
            "{message}"
        );
        assert!(
            error["error"]["message"]
                .as_str()
                .unwrap()
                .contains("max_attempts"),
            "{error}"
        );
    }
    assert!(!env.exists(".ultraplan/state"), "nothing was done");
    env.write(FILE, "[cooldown]\nduration = 'soon'\n");
    assert!(
        env.json(2, &["config"])["error"]["message"]
            .as_str()
            .unwrap()
            .contains("recover.toml:2")
    );
    env.json(13, &["init"]);
    env.json(0, &["init", "--force"]);
    env.json(0, &["config"]);
}

// Contract: precedence and where each value comes from.
#[test]
fn origins_tell_where_a_value_comes_from() {
    let mut env = TestEnv::repo();
    env.write(
        FILE,
        "preset = 'loop'\n[retry]\nmax_attempts = 4\n[task.\"T1\".retry]\nmax_attempts = 6\n",
    );
    let at = |env: &TestEnv, args: &[&str]| {
        let document = env.json(0, &[&["config", "--origins"], args].concat());
        let of = |key: &str| {
            (
                document["config"][key].clone(),
                document["origins"][key].as_str().unwrap().to_owned(),
            )
        };
        (
            of("retry.max_attempts"),
            of("cooldown.duration"),
            of("retention.keep_last"),
        )
    };
    let (attempts, cooldown, keep) = at(&env, &[]);
    assert_eq!(attempts.0, 4);
    assert!(attempts.1.ends_with("recover.toml:3"), "{attempts:?}");
    assert!(cooldown.1.contains("preset"), "{cooldown:?}");
    assert_eq!(keep.1, "default");
    let (attempts, ..) = at(&env, &["--task", "T1"]);
    assert_eq!(attempts.0, 6);
    env.set("RECOVER_MAX_ATTEMPTS", "9")
        .set("RECOVER_COOLDOWN", "1s");
    let (attempts, cooldown, _) = at(&env, &["--task", "T1"]);
    assert_eq!(attempts.0, 9);
    assert!(attempts.1.contains("RECOVER_MAX_ATTEMPTS") && cooldown.1.contains("RECOVER_COOLDOWN"));
    assert!(env.json(0, &["config"])["origins"].is_null());
    env.set("RECOVER_SAFE_MODE", "reckless");
    assert!(
        env.json(2, &["config"])["error"]["message"]
            .as_str()
            .unwrap()
            .contains("RECOVER_SAFE_MODE")
    );
}

// B16: the options of a task hold for its run also where a command does not name it, and for no other run.
#[test]
fn a_tasks_options_hold_for_its_run() {
    let env = TestEnv::repo();
    env.write(FILE, "[cooldown]\nduration = '0s'\n[task.\"T1\".retry]\nmax_attempts = 7\ntask_max_attempts = 8\n");
    let of_task = |env: &TestEnv, args: &[&str]| {
        let document = env.json(0, &[&["retry-status"], args].concat());
        let budgets = document["budgets"].as_array().unwrap().clone();
        budgets
            .iter()
            .find(|budget| budget["scope"] == "task")
            .unwrap()["limit"]
            .clone()
    };
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "one",
            "--task",
            "T1",
            "--message",
            "error: it does not work",
        ],
    );
    assert_eq!(of_task(&env, &["--task", "T1"]), 8);
    assert_eq!(of_task(&env, &[]), 8, "the only open run is the task's");
    assert_eq!(of_task(&env, &["--run", "one"]), 8);
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "two",
            "--message",
            "error: it does not work",
        ],
    );
    assert_ne!(of_task(&env, &["--run", "two"]), 8);
    assert_eq!(of_task(&env, &["--run", "one"]), 8);
}

// S17: each preset is taken.
#[test]
fn every_preset_is_taken() {
    let env = TestEnv::repo();
    for preset in ["battle", "loop", "actions", "state", "lane"] {
        env.write(FILE, format!("preset = '{preset}'\n"));
        assert_eq!(env.json(0, &["config"])["config"]["preset"], preset);
    }
    env.write(FILE, "preset = 'batle'\n");
    assert!(
        env.json(2, &["config"])["error"]["message"]
            .as_str()
            .unwrap()
            .contains("battle")
    );
}

const BROKEN: &str = "[retry";

// An agent that breaks the file does not end the run, and a broken file keeps nobody from looking and from going back.
#[test]
fn a_file_that_cannot_be_read_does_not_take_the_undo_button_away() {
    let mut env = TestEnv::repo();
    let agent = format!(
        "echo $RECOVER_ITERATION >> a.txt; mkdir -p .ultraplan; \
         [ $RECOVER_ITERATION != 2 ] || echo '{BROKEN}' > {FILE}; exit 0"
    );
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "3",
        "--feedback",
        "test=true",
        "--",
        "sh",
        "-c",
        &agent,
    ];
    env.recover(&run).expect(0);
    assert_eq!(env.read("a.txt"), "one\n1\n2\n3\n");
    let told = |document: &Value| {
        document["warnings"]
            .to_string()
            .contains("the project's configuration is ignored")
    };
    for args in [
        &["status"][..],
        &["log"],
        &["runs"],
        &["report"],
        &["checkpoint", "list"],
        &["checkpoint", "create"],
        &[
            "rollback", "--run", "night", "--to", "initial", "--edits", "discard",
        ],
        &["undo"],
        &["doctor"],
    ] {
        let document = env.json(0, args);
        // The rollback took the broken file away; undo brings it back.
        assert!(
            told(&document) || args == ["undo"],
            "{args:?}: {document:#}"
        );
    }
    assert_eq!(env.read("a.txt"), "one\n1\n2\n3\n");
    // What is started, decided or deleted by it, or tells of it, needs it.
    for args in [
        &["run", "--", "true"][..],
        &["resume"],
        &["retry-status"],
        &["accept"],
        &["trust"],
        &["config"],
        &["checkpoint", "prune"],
    ] {
        let error = env.error(2, args);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains(FILE)),
            "{args:?}: {error}"
        );
    }
    // What the user says in the environment counts, and is right or refused.
    env.set("RECOVER_MAX_ATTEMPTS", "x");
    env.error(2, &["status"]);
}
