//! A night's list: each task is an iteration with its own budget, what needs one that was given up waits, the rest goes on.

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::kill;

/// Notes what it gets, and fails as a test does at the tasks in `../failing`.
const AGENT: &str = "{ echo \"== $RECOVER_TASK $RECOVER_ITERATION.$RECOVER_ATTEMPT\"; cat; } >> ../seen; echo $RECOVER_TASK >> work; \
                     ! grep -qx \"$RECOVER_TASK\" ../failing";

const NIGHT: &str = r#"
[[task]]
id = "port"
needs = ["parser"]
prompt = "Port the tests."

[[task]]
id = "parser"
prompt = "Fix the parser."
attempts = 2

[[task]]
id = "docs"
feedback = { spelling = "! grep -q speling work" }

[[task]]
id = "release"
needs = ["port", "docs"]
"#;

fn night(failing: &str) -> TestEnv {
    let env = quick();
    env.write("../night.toml", NIGHT);
    env.write("../failing", failing);
    env
}

fn run(env: &TestEnv, code: i32, file: &str, more: &[&str]) -> Value {
    let run = ["run", "--run", "n", "--tasks", file];
    env.json(code, &[&run[..], more, &["--", "sh", "-c", AGENT]].concat())
}

/// What was begun, in order.
fn begun(env: &TestEnv) -> Vec<String> {
    let seen = env.read("../seen");
    let begun = seen.lines().filter_map(|line| line.strip_prefix("== "));
    begun.map(str::to_owned).collect()
}

/// Each task with where it stands.
fn tasks(document: &Value) -> Vec<String> {
    let all = document["tasks"]
        .as_array()
        .unwrap_or_else(|| panic!("{document:#}"));
    let word = |one: &Value, key: &str| one[key].as_str().unwrap_or("?").to_owned();
    all.iter()
        .map(|one| format!("{} {}", word(one, "id"), word(one, "status")))
        .collect()
}

#[test]
fn tasks_run_in_the_order_of_what_they_need_with_their_prompts() {
    let env = night("");
    let document = run(&env, 0, "../night.toml", &["--prompt", "Be brief."]);
    assert_eq!(
        begun(&env),
        ["parser 1.1", "port 2.1", "docs 3.1", "release 4.1"]
    );
    assert_eq!(
        tasks(&document),
        ["parser done", "port done", "docs done", "release done"]
    );
    let seen = env.read("../seen");
    assert!(
        seen.contains("== parser 1.1\nBe brief.\n\nFix the parser.\n== port"),
        "{seen}"
    );
    assert!(seen.contains("== docs 3.1\nBe brief.\n\ndocs\n"), "{seen}");
    let docs = &document["iterations"][2]["attempts"][0]["feedback_results"];
    assert_eq!(docs["spelling"]["passed"], true, "its own check: {docs}");
    let others = &document["iterations"][3]["attempts"][0]["feedback_results"];
    assert!(others.get("spelling").is_none(), "{others}");
}

// A7: what is given up is left to a person.
#[test]
fn what_needs_a_task_that_is_given_up_waits_and_the_rest_goes_on() {
    let env = night("parser\n");
    let document = run(&env, 8, "../night.toml", &[]);
    assert_eq!(
        begun(&env),
        ["parser 1.1", "parser 1.2", "docs 3.1"],
        "its own attempts"
    );
    let expected = [
        "parser given_up",
        "port waiting",
        "docs done",
        "release waiting",
    ];
    assert_eq!(tasks(&document), expected);
    assert_eq!(
        document["tasks"][3]["waits_for"],
        serde_json::json!(["port"])
    );
    assert_eq!(tasks(&env.json(0, &["status"])), expected);
    assert_eq!(tasks(&env.json(0, &["report"])["report"]), expected);
    for words in [&["status"][..], &["status", "-v"], &["report"]] {
        let text = env.recover(words).expect(0).stdout;
        assert!(text.contains("1 given up, 2 waiting, 1 done"), "{text}");
        assert!(text.contains("release (needs port)"), "{text}");
    }
    // A person mends it: what waited goes on.
    env.write("../failing", "");
    let resumed = env.json(0, &["resume", "--strategy", "retry_with_context"]);
    assert_eq!(
        tasks(&resumed),
        ["parser done", "port done", "docs done", "release done"],
        "{resumed:#}"
    );
    assert_eq!(begun(&env)[3..], ["parser 1.3", "port 2.1", "release 4.1"]);
    // The tasks are the iterations.
    env.error(2, &["resume", "--iterations", "9"]);
}

#[test]
fn a_person_may_accept_what_was_given_up_and_what_waits_goes_on() {
    let env = night("parser\n");
    run(&env, 8, "../night.toml", &[]);
    let resumed = env.json(0, &["resume", "--strategy", "continue_next"]);
    assert_eq!(
        tasks(&resumed),
        ["parser given_up", "port done", "docs done", "release done"],
        "{resumed:#}"
    );
}

#[test]
fn a_checklist_is_ticked_by_accept_and_by_nothing_else() {
    let env = quick();
    let list = "# Tonight\n\n- [ ] Fix the parser\n  It loses the last line.\n- [x] Old\n- [ ] Hopeless\n- [ ] Write docs\n";
    env.write("TASKS.md", list);
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "list"]);
    env.write("../failing", "Hopeless\n");
    let document = run(&env, 8, "TASKS.md", &[]);
    assert_eq!(
        tasks(&document),
        [
            "Fix the parser done",
            "Hopeless given_up",
            "Write docs done"
        ]
    );
    let seen = env.read("../seen");
    assert!(
        seen.contains("Fix the parser\n\nIt loses the last line.\n"),
        "{seen}"
    );
    assert_eq!(env.read("TASKS.md"), list);
    let accepted = env.json(0, &["accept", "--all", "--yes"]);
    assert_eq!(
        accepted["ticked"],
        serde_json::json!(["Fix the parser", "Write docs"])
    );
    let ticked = list
        .replace("[ ] Fix", "[x] Fix")
        .replace("[ ] Write", "[x] Write");
    assert_eq!(env.read("TASKS.md"), ticked);
    assert_eq!(
        env.git(&["show", "HEAD:TASKS.md"]),
        list,
        "a change of its own"
    );
    // Taken back, they are open again, and with it done again ticked.
    let undone = env.recover(&["undo", "--dry-run"]).expect(0);
    assert_eq!(
        (env.read("TASKS.md"), undone.stderr.contains("ticked")),
        (ticked.clone(), false)
    );
    let undone = env.recover(&["undo"]).expect(0);
    assert!(
        undone
            .stderr
            .contains("no longer ticked in the list of tasks: 'Fix the parser', 'Write docs'"),
        "{}",
        undone.stderr
    );
    assert_eq!(env.read("TASKS.md"), list);
    env.json(0, &["redo"]);
    assert_eq!(env.read("TASKS.md"), ticked);
    // The next night begins with what is open.
    let run = ["run", "--run", "next", "--tasks", "TASKS.md", "--", "true"];
    assert_eq!(tasks(&env.json(0, &run)), ["Hopeless done"]);
}

#[test]
fn what_a_person_adds_is_done_and_what_an_attempt_adds_is_to_review() {
    let env = quick();
    env.write("../list.md", "- [ ] one\n- [ ] two\n");
    env.write("../failing", "one\n");
    let agent = format!("grep -q made ../list.md || echo '- [ ] made up' >> ../list.md; {AGENT}");
    let run = [
        "run",
        "--run",
        "n",
        "--no-wait",
        "--tasks",
        "../list.md",
        "--",
    ];
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = \"1s\"\n");
    let ended = env.json(6, &[&run[..], &["sh", "-c", &agent]].concat());
    assert_eq!(
        tasks(&ended),
        ["one failed", "two pending", "made up to_review"]
    );
    env.write("../failing", "");
    env.write(
        "../list.md",
        "- [ ] three\n- [ ] one\n- [ ] two\n- [ ] made up\n",
    );
    let resumed = env.json(0, &["resume", "--wait"]);
    let expected = ["one done", "two done", "three done", "made up to_review"];
    assert_eq!(tasks(&resumed), expected, "{resumed:#}");
    assert_eq!(begun(&env), ["one 1.1", "one 1.2", "two 2.1", "three 3.1"]);
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(
        text.contains("made up (added during an attempt; recover resume --tasks FILE runs it)"),
        "{text}"
    );
    // Who has reviewed it gives the list again.
    let resumed = env.json(0, &["resume", "--tasks", "../list.md"]);
    assert_eq!(
        tasks(&resumed),
        ["one done", "two done", "three done", "made up done"],
        "{resumed:#}"
    );
}

#[test]
fn a_killed_night_goes_on_where_it_was() {
    let env = night("");
    let agent = format!(
        "{AGENT}; if [ $RECOVER_TASK = port ] && [ ! -e ../again ]; then echo $$ > ../pid; sleep 300; fi"
    );
    let run = [
        "--json",
        "run",
        "--run",
        "n",
        "--tasks",
        "../night.toml",
        "--",
        "sh",
        "-c",
        &agent,
    ];
    let mut running = env.start(&run);
    env.await_line("../pid");
    kill("-KILL", running.id());
    running.wait().expect("it ends");
    env.write("../again", "");
    let status = env.json(0, &["status"]);
    assert_eq!(
        tasks(&status)[..2],
        ["parser done", "port failed"],
        "{status:#}"
    );
    let resumed = env.json(0, &["resume"]);
    assert_eq!(
        tasks(&resumed),
        ["parser done", "port done", "docs done", "release done"]
    );
    assert_eq!(begun(&env)[2..], ["port 2.2", "docs 3.1", "release 4.1"]);
    assert_eq!(env.read("../night.toml"), NIGHT);
}

#[test]
fn what_is_no_list_is_refused_with_its_line() {
    let env = quick();
    let refused = |name: &str, text: &str| {
        env.write(name, text);
        let run = ["run", "--tasks", name, "--", "true"];
        env.error(2, &run)["message"]
            .as_str()
            .expect("a message")
            .to_owned()
    };
    assert_eq!(
        refused("l.md", "- [x] done\n"),
        "l.md has no open task (in Markdown a line that begins with - [ ])"
    );
    assert_eq!(
        refused("l.md", "- [ ] a\n\n- [ ] a\n"),
        "l.md:3: task 'a' is there twice"
    );
    let circle = "[[task]]\nid = \"a\"\nneeds = [\"b\"]\n[[task]]\nid = \"b\"\nneeds = [\"a\"]\n";
    assert_eq!(
        refused("l.toml", circle),
        "l.toml:2: tasks need each other in a circle: a, b"
    );
    assert_eq!(
        refused(
            "l.json",
            "{\"tasks\": [\n {\"id\": \"a\", \"needs\": [\"c\"]}]}"
        ),
        "l.json:2: task 'a' needs 'c', which is no task"
    );
    let large = refused("l.md", &"- [ ] a\n".repeat(200_000));
    assert!(large.contains("it has more than 1048576 bytes"), "{large}");
    assert!(refused("l.md", "x\n").contains("no open task"));
    let missing = env.error(2, &["run", "--tasks", "none.md", "--", "true"]);
    assert_eq!(missing["message"], "there is no file none.md");
    assert_eq!(
        env.json(0, &["runs", "--all"])["runs"],
        serde_json::json!([])
    );
}

// An agent that a profile starts gets each task's prompt as it gets any.
#[test]
fn a_profile_needs_no_other_prompt() {
    let env = quick();
    env.script("../bin/mine", "echo \"$1\" >> ../seen");
    let profile = "[agent.mine]\nprogram = \"../bin/mine\"\nprompt = \"argument\"\nargs = [\"{prompt}\"]\noutput = \"text\"\n";
    env.write(".ultraplan/recover.toml", profile);
    env.write("../list.md", "- [ ] one\n- [ ] two\n");
    let document = env.json(0, &["run", "--tasks", "../list.md", "--agent", "mine"]);
    assert_eq!(tasks(&document), ["one done", "two done"]);
    assert_eq!(env.read("../seen"), "one\n\ntwo\n\n");
    let plan = env.json(
        0,
        &[
            "--dry-run",
            "run",
            "--tasks",
            "../list.md",
            "--agent",
            "mine",
        ],
    );
    assert_eq!(
        plan["plan"]["spec"]["tasks"]["tasks"][1]["id"], "two",
        "{plan:#}"
    );
}

// What the account has left is a person's: no other task is begun with less of it, until it is whole again.
#[test]
fn a_reserve_of_the_accounts_limit_is_left_alone() {
    let night = |resets_at: &str| {
        let env = quick();
        env.write("../list.md", "- [ ] one\n- [ ] two\n");
        env.script(
            "../bin/claude",
            &format!(
                "echo $RECOVER_TASK >> ../seen\n\
                 info='\"status\":\"allowed_warning\",\"resetsAt\":{resets_at},\"rateLimitType\":\"five_hour\",\"utilization\":0.85'\n\
                 echo '{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{'$info'}},\"session_id\":\"s\"}}'\n\
                 echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"s\"}}'"
            ),
        );
        env
    };
    let run = |env: &TestEnv, code: i32, reserve: &str| {
        let words = [
            "run",
            "--run",
            "n",
            "--tasks",
            "../list.md",
            "--reserve",
            reserve,
            "--",
            "../bin/claude",
        ];
        env.json(code, &words)
    };
    let env = night("4102444800");
    let document = run(&env, 6, "20%");
    assert_eq!(
        (document["outcome"].as_str(), env.read("../seen").as_str()),
        (Some("paused"), "one\n")
    );
    let why = env.json(0, &["status"])["stopped_for"].take();
    assert_eq!(
        why,
        "15 % of the account's limit are left, less than the reserve of 20 %: the next task begins after its reset at \
         2100-01-01T00:00:00.000Z"
    );
    env.json(6, &["resume"]);
    assert_eq!(env.read("../seen"), "one\n");
    for (resets_at, reserve) in [("4102444800", "15"), ("1700000000", "20%")] {
        let env = night(resets_at);
        run(&env, 0, reserve);
        assert_eq!(env.read("../seen"), "one\ntwo\n");
    }
    env.error(
        2,
        &[
            "run",
            "--tasks",
            "../list.md",
            "--reserve",
            "120%",
            "--",
            "true",
        ],
    );
}

// After a kill nobody knows whose it is: what was added to a list in the work tree is to review, and stays in the file.
#[test]
fn what_is_added_to_the_list_of_a_killed_run_is_not_lost() {
    let env = quick();
    env.write("TASKS.md", "- [ ] one\n- [ ] two\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "list"]);
    let agent = "[ -e ../again ] || { echo $$ > ../pid; sleep 300; }; echo x > $RECOVER_TASK.txt";
    let run = ["--json", "run", "--run", "n", "--tasks", "TASKS.md"];
    let mut running = env.start(&[&run[..], &["--", "sh", "-c", agent]].concat());
    env.await_line("../pid");
    kill("-KILL", running.id());
    running.wait().expect("it ends");
    env.write("../again", "");
    let list = "- [ ] one\n- [ ] two\n- [ ] three\n";
    env.write("TASKS.md", list);
    let resumed = env.recover(&["resume"]).expect(0);
    let said = "an attempt added 'three' to TASKS.md: not run until you have reviewed it and run recover resume --tasks TASKS.md";
    assert!(resumed.stderr.contains(said), "{}", resumed.stderr);
    assert_eq!(env.read("TASKS.md"), list);
    let resumed = env.json(0, &["resume", "--tasks", "TASKS.md"]);
    assert_eq!(tasks(&resumed), ["one done", "two done", "three done"]);
}

// The list of a run in a work tree of its own is the user's, whatever an attempt is at meanwhile.
#[test]
fn what_is_added_while_an_isolated_run_is_at_work_is_done() {
    let env = quick();
    env.write("TASKS.md", "- [ ] one\n");
    let list = env.work().join("TASKS.md").display().to_string();
    let agent =
        format!("grep -q three {list} || echo '- [ ] three' >> {list}; echo x > $RECOVER_TASK.txt");
    let run = ["run", "--isolated", "--run", "n", "--tasks", "TASKS.md"];
    let done = env.json(0, &[&run[..], &["--", "sh", "-c", &agent]].concat());
    assert_eq!(tasks(&done), ["one done", "three done"], "{done:#}");
}

// What one task meets and the others would meet, too, is no reason to leave it behind.
#[test]
fn a_full_disk_stops_the_list() {
    let env = quick();
    env.write("../list.md", "- [ ] one\n- [ ] two\n");
    let full = "echo 'write: No space left on device' >&2; exit 1";
    let document = env.json(8, &["run", "--tasks", "../list.md", "--", "sh", "-c", full]);
    assert_eq!(
        tasks(&document),
        ["one failed", "two pending"],
        "{document:#}"
    );
}

// A list in the work tree is a person's: what is added to it stays there when a task is given up.
#[test]
fn a_list_in_the_work_tree_keeps_what_a_person_added() {
    let env = quick();
    env.write("TASKS.md", "- [ ] one\n- [ ] two\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "list"]);
    env.write("../failing", "one\n");
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = \"1s\"\n");
    assert_eq!(
        tasks(&run(&env, 6, "TASKS.md", &["--no-wait"])),
        ["one failed", "two pending"]
    );
    let added = "- [ ] one\n- [ ] two\n- [ ] three\n";
    env.write("TASKS.md", added);
    let resumed = env.json(8, &["resume", "--wait"]);
    assert_eq!(
        tasks(&resumed),
        ["one given_up", "two done", "three done"],
        "{resumed:#}"
    );
    assert_eq!(env.read("TASKS.md"), added);
    assert_eq!(
        env.read("work"),
        "two\nthree\n",
        "what it did is rolled back"
    );
}
