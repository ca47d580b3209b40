//! Loops of one's own by `attempt`, `retry-status`, `rollback` and `resume`, with failures injected into what they run.

use std::path::PathBuf;

use crate::env::{Ran, TestEnv};

/// What each of them needs: `recover` on the path, a run that the environment names, waits that are short.
fn project(run: &str) -> TestEnv {
    let mut env = TestEnv::repo();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_recover"));
    let folder = program.parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    env.set("PATH", &format!("{folder}:{path}"));
    env.set("RECOVER_RUN_ID", run);
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = '50ms'\n[retry.causes.NETWORK_ERROR]\nbase_delay = '50ms'\n[retry.causes.TOOL_TIMEOUT]\n\
         base_delay = '50ms'\n",
    );
    env
}

/// Which number of its starts this is, and how often it was started.
const COUNT: &str = "n=$(cat ../starts 2>/dev/null || echo 0); n=$((n + 1)); echo $n > ../starts";

fn run(env: &TestEnv, program: &str, script: &str) -> Ran {
    let output = env.command(program).arg(script).output();
    Ran::of(&output.expect("it starts"))
}

const BASH: &str = r"
while recover retry-status --check --wait=1m > /dev/null; do
    recover attempt start > /dev/null || exit
    if ../task > ../task.log 2>&1; then
        recover attempt pass
        exit
    fi
    recover attempt fail --exit-code $? --loop test --log ../task.log
    recover rollback --to good
done
recover retry-status --check
";

/// A loop in a shell: what an attempt broke is taken back before the next one, and what passed stays.
#[test]
fn a_loop_in_a_shell() {
    let env = project("loop");
    env.script(
        "../task",
        &format!(
            "{COUNT}\necho \"try $n\" >> a.txt\ncase $n in\n1) touch junk; echo 'FAILED test_login: expected 200, got 404'; \
             exit 1 ;;\n2) echo 'FAILED test_logout: expected 204, got 500'; exit 1 ;;\nesac"
        ),
    );
    env.script("../loop", BASH);
    run(&env, "sh", "../loop").expect(0);
    assert_eq!(env.read("a.txt"), "one\ntry 3\n");
    assert!(!env.exists("junk"));
    let history = &env.json(0, &["attempt", "list"])["subtasks"]["loop/iteration-1"];
    assert_eq!(history["status"], "completed", "{history}");
    assert_eq!(
        history["attempts"][0]["error"],
        "FAILED test_login: expected 200, got 404"
    );
    assert_eq!(
        history["rollbacks"].as_array().map(Vec::len),
        Some(2),
        "{history}"
    );
}

/// The same loop with work that never passes: it ends by itself, with the budget's own code, and the files are as before.
#[test]
fn a_loop_in_a_shell_gives_up() {
    let env = project("loop");
    env.script(
        "../task",
        &format!("{COUNT}\necho \"try $n\" > a.txt; echo \"FAILED test_$n: 1 != $n\"; exit 1"),
    );
    env.script("../loop", BASH);
    run(&env, "sh", "../loop").expect(8);
    assert_eq!(env.read("../starts"), "3\n");
    assert_eq!(env.read("a.txt"), "one\n");
    assert_eq!(
        env.json(0, &["attempt", "list"])["stuck_subtasks"][0]["subtask_id"],
        "loop/iteration-1"
    );
}

const ORCHESTRATOR: &str = r#"
import json, subprocess

def recover(*args):
    ran = subprocess.run(["recover", "--json", *args], capture_output=True, text=True)
    return ran.returncode, json.loads(ran.stdout)

def done(place, task):
    for number in range(1, 100):
        code, status = recover("retry-status", "--check", "--wait=1m")
        if code != 0:
            recover("resume", "--strategy", "continue_next", "--prepare-only")
            return status["last_error"]
        recover("attempt", "start", "--iteration", str(place), "--subtask", task, "--approach", f"way {number}")
        work = subprocess.run(["sh", "../task", task, str(number)], capture_output=True, text=True)
        if work.returncode == 0:
            recover("attempt", "pass")
            return "passed"
        with open("../task.log", "w") as log:
            log.write(work.stdout + work.stderr)
        recover("attempt", "fail", "--exit-code", str(work.returncode), "--loop", "test", "--log", "../task.log")
        recover("rollback", "--to", "good")

tasks = ["parse", "store", "serve"]
print(json.dumps({task: done(place, task) for place, task in enumerate(tasks, 1)}))
"#;

/// An orchestrator of several tasks: one is given up and left to a person, and the others are done all the same.
#[test]
fn an_orchestrator_in_python() {
    let env = project("release");
    env.script(
        "../task",
        "case $1$2 in\nstore*) echo \"bad $2\" > store.txt; echo \"FAILED test_store: assert $2 == 0\"; exit 1 ;;\nserve1) \
         touch half; echo 'curl: (6) Could not resolve host: registry.example.org' >&2; exit 6 ;;\nesac\necho ok > $1.txt",
    );
    env.put("../orchestrate.py", ORCHESTRATOR);
    let ran = run(&env, "python3", "../orchestrate.py").expect(0);
    let results: serde_json::Value = serde_json::from_str(&ran.stdout).expect("its results");
    assert_eq!(
        results,
        serde_json::json!({"parse": "passed", "store": "FAILED test_store: assert 3 == 0", "serve": "passed"})
    );
    assert!(env.exists("parse.txt") && env.exists("serve.txt"));
    assert!(!env.exists("store.txt") && !env.exists("half"));
    // Going on after a rollback accepts nothing: what was given up stays for a person.
    let history = env.json(0, &["attempt", "list"]);
    assert_eq!(
        history["stuck_subtasks"][0]["subtask_id"], "store",
        "{history}"
    );
    assert_eq!(history["stuck_subtasks"][0]["attempt_count"], 3);
    let status = |task: &str| history["subtasks"][task]["status"].clone();
    assert_eq!(
        ["parse", "store", "serve"].map(status),
        ["completed", "stuck", "completed"]
    );
}

const JOB: &str = r"
recover retry-status --check > /dev/null
case $? in
0) ;;
6) exit 75 ;;
*) exit 1 ;;
esac
recover attempt start > /dev/null
timeout 2 ../step > ../step.log 2>&1
code=$?
case $code in
0) recover attempt pass; exit ;;
124) recover attempt fail --timed-out --log ../step.log ;;
*) recover attempt fail --exit-code $code --log ../step.log ;;
esac
recover rollback --to good
recover retry-status --check > /dev/null
case $? in 0 | 6) exit 75 ;; *) exit 1 ;; esac
";

/// A job that is started again by its scheduler (75: try again later), one attempt each: what is counted is shared.
#[test]
fn a_job_that_its_scheduler_repeats() {
    let env = project("nightly");
    env.script("../job", JOB);
    let scheduled = |step: &str| {
        env.script("../step", &format!("{COUNT}\n{step}"));
        (0..40)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                run(&env, "sh", "../job").code
            })
            .find(|code| *code != 75)
    };
    let heals = "case $n in\n1) touch half; echo 'npm error network request to https://registry.example.org failed, reason: \
                 getaddrinfo ENOTFOUND registry.example.org'; exit 1 ;;\n2) touch half; sleep 20 ;;\nesac\necho built > out";
    assert_eq!(scheduled(heals), Some(0));
    assert_eq!(
        (env.read("../starts"), env.read("out")),
        ("3\n".into(), "built\n".into())
    );
    assert!(!env.exists("half"), "what was cut off is taken back");
    let causes: Vec<String> = env
        .events("attempt_ended")
        .iter()
        .filter_map(|event| Some(event["payload"]["failure"]["cause"].as_str()?.to_owned()))
        .collect();
    assert_eq!(causes, ["NETWORK_ERROR", "TOOL_TIMEOUT"]);

    // One that never heals is no job for ever.
    env.remove("../starts");
    assert_eq!(scheduled("echo 'npm error 404'; exit 1"), Some(1));
    let stopped = env.recover(&["retry-status", "--check"]).code;
    assert!([7, 8].contains(&stopped), "{stopped}");
    // A person looked: it begins anew.
    env.json(0, &["retry-status", "--reset"]);
    assert_eq!(scheduled("echo again > out"), Some(0));
}

const ITEMS: &str = r"
number=0
for item in first second third; do
    number=$((number + 1))
    while recover retry-status --iteration $number --wait=1m > /dev/null; do
        recover attempt start --iteration $number > /dev/null || exit
        if ../task $item > ../task.log 2>&1; then
            recover attempt pass
            break
        else
            recover attempt fail --exit-code $? --loop test --log ../task.log
        fi
        recover rollback --to good
    done
done
";

/// A loop over items asks for each of them: one that is given up ends neither the loop nor the answer for itself.
#[test]
fn a_loop_over_items_goes_on_past_one_that_is_given_up() {
    let env = project("night");
    env.script(
        "../task",
        "echo $1 > $1\n[ $1 != second ] || { echo 'FAILED test_second: 1 != 2'; exit 1; }",
    );
    env.script("../loop", ITEMS);
    run(&env, "sh", "../loop").expect(0);
    assert!(env.exists("first") && env.exists("third") && !env.exists("second"));
    let history = env.json(0, &["attempt", "list"]);
    let second = &history["subtasks"]["night/iteration-2"];
    assert_eq!(second["status"], "stuck", "{history}");
    assert_eq!(second["attempts"].as_array().map(Vec::len), Some(3));
    let check = ["retry-status", "--check"];
    for item in [["--iteration", "2"], ["--subtask", "night/iteration-2"]] {
        let given_up = env.json(8, &[&check[..], &item].concat());
        assert_eq!(given_up["can_retry"], false, "{given_up}");
        assert_eq!(given_up["error_count"], 3, "{given_up}");
        assert_eq!(given_up["last_error"], "FAILED test_second: 1 != 2");
    }
    let next = env.json(0, &[&check[..], &["--iteration", "4"]].concat());
    assert_eq!(next["can_retry"], true, "{next}");
    assert!(next["last_error"].is_null(), "{next}");
}

/// What ends one item of a loop does not end the others; what each of them would meet does.
#[test]
fn a_failure_that_all_items_would_meet_holds_for_all() {
    for (message, others) in [("it went wrong", 0), ("HTTP 401: invalid api key", 8)] {
        let mut env = TestEnv::repo();
        env.set("RECOVER_COOLDOWN", "0s").set("RECOVER_RUN_ID", "r");
        for _ in 0..2 {
            env.json(0, &["attempt", "start", "--iteration", "1"]);
            env.json(
                0,
                &["attempt", "fail", "--exit-code", "1", "--message", message],
            );
        }
        env.json(8, &["retry-status", "--check"]);
        env.json(8, &["retry-status", "--check", "--iteration", "1"]);
        env.json(others, &["retry-status", "--check", "--iteration", "2"]);
    }
}

/// Going on past what was given up says with what, and what is left for that.
#[test]
fn going_on_past_an_item_says_what_comes_next() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_COOLDOWN", "0s").set("RECOVER_RUN_ID", "r");
    for _ in 0..3 {
        env.json(0, &["attempt", "start", "--iteration", "3"]);
        let fail = ["attempt", "fail", "--loop", "test", "--message", "FAIL"];
        env.json(0, &[&fail[..], &["--exit-code", "1"]].concat());
    }
    let next = env
        .recover(&["resume", "--strategy", "continue_next"])
        .expect(0);
    assert_eq!(next.stdout, "");
    assert!(
        next.stderr.contains("run r continues with iteration 4: ")
            && next.stderr.contains(" attempt start --run r begins it"),
        "{}",
        next.stderr
    );
    let status = env.json(0, &["retry-status", "--check"]);
    assert_eq!(status["budgets"][0]["used"], 0, "{status}");
}
