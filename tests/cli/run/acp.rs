//! Agents driven by the Agent Client Protocol (`run --agent acp:CMD`), by a small one whose every word is scripted.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::supervision::{ended, kill, until};

/// What every scripted agent can do. What it hears is in `../heard`, a message a line.
const AGENT: &str = r#"
import json, os, signal, sys, time
heard = open("../heard", "a")
def send(message):
    sys.stdout.write(json.dumps(dict({"jsonrpc": "2.0"}, **message)) + "\n")
    sys.stdout.flush()
def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    heard.write(line)
    heard.flush()
    return json.loads(line)
def answer(request, result):
    send({"id": request["id"], "result": result})
def refuse(request, code, message, **data):
    send({"id": request["id"], "error": {"code": code, "message": message, "data": data}})
def update(what, **more):
    send({"method": "session/update", "params": {"sessionId": "s-1", "update": dict({"sessionUpdate": what}, **more)}})
def says(text):
    update("agent_message_chunk", content={"type": "text", "text": text})
number = 100
def ask(method, **params):
    global number
    number += 1
    send({"id": number, "method": method, "params": dict({"sessionId": "s-1"}, **params)})
    while True:
        said = hear()
        if said.get("id") == number and "method" not in said:
            return said
ALL = [{"optionId": "a", "name": "Always", "kind": "allow_always"}, {"optionId": "y", "name": "Yes", "kind": "allow_once"},
       {"optionId": "n", "name": "No", "kind": "reject_once"}]
def may(kind, *paths, **more):
    call = dict({"toolCallId": "t-%d" % number, "title": kind + " it", "kind": kind, "status": "pending",
                 "locations": [{"path": path} for path in paths]}, **more)
    outcome = ask("session/request_permission", toolCall=call, options=ALL)["result"]["outcome"]
    return outcome.get("optionId", outcome["outcome"])
def note(*words):
    with open("../noted", "a") as file:
        file.write(json.dumps(words) + "\n")
def begin(load=True):
    answer(hear(), {"protocolVersion": 1, "agentCapabilities": {"loadSession": load}})
    session = hear()
    answer(session, {"sessionId": "s-1"} if session["method"] == "session/new" else None)
    return hear()
def end(prompt, reason="end_turn", **more):
    answer(prompt, dict({"stopReason": reason}, **more))
    while True:
        hear()
here = os.getcwd()
"#;

/// A repository with an agent that does this.
fn agent(scene: &str) -> TestEnv {
    let env = TestEnv::repo();
    let quick = "[cooldown]\nduration = '1ms'\n[retry]\nbase_delay = '1ms'\nmax_delay = '1ms'\n[runner]\ngrace = '1s'\n";
    env.write(".ultraplan/recover.toml", quick);
    plays(&env, scene);
    env
}

/// From now on the agent does this.
fn plays(env: &TestEnv, scene: &str) {
    env.put("../agent.py", format!("{AGENT}{scene}"));
}

#[track_caller]
fn run(env: &TestEnv, code: i32, more: &[&str]) -> Value {
    let mut args = vec![
        "run",
        "--prompt",
        "Fix it.",
        "--agent",
        "acp:python3 ../agent.py",
    ];
    args.extend(more);
    env.json(code, &args)
}

/// The failure of the last attempt.
fn failure(document: &Value) -> &Value {
    let attempts = document["iterations"][0]["attempts"].as_array();
    &attempts.and_then(|all| all.last()).expect("an attempt")["failure"]
}

fn lines(env: &TestEnv, path: &str) -> Vec<Value> {
    let text = env.sh(&format!("cat {path}")).stdout;
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Triggers and descriptions of all checkpoints.
fn checkpoints(env: &TestEnv) -> Vec<(String, String)> {
    let listed = env.json(0, &["checkpoint", "list"]);
    let all = listed["checkpoints"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|one| (text(&one["trigger"]), text(&one["description"])))
        .collect()
}

#[test]
fn an_agent_is_driven_through_a_session_and_its_words_are_records() {
    let env = agent(
        r#"
prompt = begin()
update("plan", entries=[{"content": "Look", "priority": "high", "status": "completed"},
                        {"content": "Fix", "priority": "high", "status": "in_progress"}])
says("I fix ")
says("it.\n")
update("tool_call", toolCallId="t", title="Read", kind="read", status="pending", rawInput={"path": "a.txt"})
update("tool_call_update", toolCallId="t", status="completed")
says("All is done.")
update("usage_update", used=10, size=100, cost={"amount": 0.25, "currency": "USD"})
end(prompt, usage={"inputTokens": 30, "outputTokens": 7, "totalTokens": 42, "cachedReadTokens": 5})
"#,
    );
    let args = [
        "run",
        "--prompt",
        "Fix it.",
        "--agent",
        "acp:python3 ../agent.py",
    ];
    let ran = env.recover(&args).expect(0);
    for said in [
        "[plan, 1 of 2 done: Fix]",
        "I fix it.\n",
        "> read: a.txt",
        "All is done.",
    ] {
        assert!(ran.stdout.contains(said), "{ran:?}");
    }
    let heard = lines(&env, "../heard");
    let methods: Vec<&str> = heard
        .iter()
        .filter_map(|one| one["method"].as_str())
        .collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt"]);
    assert_eq!(
        heard[0]["params"]["clientCapabilities"],
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false})
    );
    assert_eq!(heard[1]["params"]["cwd"], json!(env.work()));
    let prompt = heard[2]["params"]["prompt"][0]["text"].as_str();
    assert!(prompt.is_some_and(|prompt| prompt.contains("Fix it.")));
    let status = env.json(0, &["status"]);
    let run = &status["run"];
    assert_eq!(
        (&run["cost_usd"], &run["tokens"]["total"]),
        (&json!(0.25), &json!(42)),
        "{status:#}"
    );
    assert!(env.read_state("events.jsonl").contains("s-1"));
}

#[test]
fn what_stays_in_the_work_tree_is_permitted_once_and_nothing_for_ever() {
    let scene = r#"
os.symlink("/tmp", "out")
os.symlink(here, "../in")
prompt = begin()
inside, outside = here + "/a.txt", here + "/../x"
for kind, paths in [("read", ["/etc/passwd"]), ("search", []), ("think", []), ("edit", [inside]), ("delete", [here + "/new/b"]),
                    ("move", [inside, here + "/b"]), ("edit", [here + "/../in/a.txt"]), ("edit", ["a.txt"])]:
    note("yes", may(kind, *paths))
for kind, paths in [("edit", [outside]), ("edit", [here + "/none/../../x"]), ("edit", []), ("move", [inside, outside]), ("delete", [here + "/out/x"]),
                    ("edit", [here + "/.git/config"]), ("edit", [here + "/.ultraplan/state/x"]), ("execute", [inside]),
                    ("fetch", []), ("other", [inside]), ("switch_mode", [])]:
    note("no", may(kind, *paths))
note("no", may("edit", inside, rawInput={"file_path": "/etc/x"}))
note("no", may("edit", inside, content=[{"type": "diff", "path": "/etc/x", "newText": ""}]))
ALL.pop(1)
note("no", may("edit", inside))
ALL.pop(1)
note("no", may("edit", inside))
open("made", "w").close()
end(prompt)
"#;
    let env = agent(scene);
    run(&env, 0, &[]);
    let chosen = |wanted: &str| {
        let noted = lines(&env, "../noted");
        let of = noted.into_iter().filter(|one| one[0] == wanted);
        of.map(|one| one[1].clone()).collect::<Vec<_>>()
    };
    assert_eq!(chosen("yes"), vec![json!("y"); 8]);
    let no = chosen("no");
    assert_eq!(no.len(), 15);
    assert_eq!(no[..13], vec![json!("n"); 13], "{no:?}");
    // Where nothing holds for once only, nothing is chosen; what is permitted is never so for ever.
    assert_eq!(no[13..], [json!("cancelled"), json!("cancelled")]);
}

#[test]
fn with_yolo_all_is_permitted_but_nothing_for_ever() {
    let env = agent(
        "prompt = begin()\nfor kind in ['execute', 'fetch', 'other', 'delete']: note(may(kind, '/etc/x'))\nend(prompt)\n",
    );
    run(&env, 0, &["--yolo"]);
    assert_eq!(lines(&env, "../noted"), vec![json!(["y"]); 4]);
}

#[test]
fn what_was_not_permitted_is_the_failure_of_an_attempt_that_changed_nothing() {
    let env = agent(
        "prompt = begin()\nmay('execute', rawInput={'command': 'make'})\nsays('I could not.')\nend(prompt)\n",
    );
    let document = run(&env, 8, &[]);
    let failure = failure(&document);
    assert_eq!(failure["cause"], "PERMISSION_DENIED", "{document:#}");
    let message = failure["message"].as_str().expect("a message");
    assert_eq!(
        message,
        "Not permitted: execute it; recover run --yolo permits everything"
    );
}

#[test]
fn a_checkpoint_comes_before_each_call_that_changes_something() {
    let env = agent(
        r#"
prompt = begin()
assert may("edit", here + "/a.txt") == "y"
open("a.txt", "w").write("two\n")
assert may("delete", here + "/a.txt") == "y"
os.remove("a.txt")
assert may("execute", rawInput={"command": "git clean -fdx"}) == "y"
open("b.txt", "w").write("b\n")
update("tool_call", toolCallId="unasked", title="write", kind="edit", status="in_progress",
       locations=[{"path": here + "/c.txt"}])
assert "result" in ask("fs/write_text_file", path=here + "/c.txt", content="c\n")
end(prompt)
"#,
    );
    run(&env, 0, &["--yolo"]);
    let all = checkpoints(&env);
    for (why, about) in [
        ("risky", "Before delete a.txt"),
        ("risky", "Before execute git clean -fdx"),
        ("before_edit", "Before edit c.txt"),
    ] {
        assert!(all.contains(&(why.to_owned(), about.to_owned())), "{all:?}");
    }
    let show = |about: &str, path: &str| {
        let listed = env.json(0, &["checkpoint", "list"]);
        let all = listed["checkpoints"].as_array().expect("a list").clone();
        let one = all
            .iter()
            .find(|one| one["description"] == about)
            .expect("it");
        let commit = one["commit"].as_str().expect("a commit");
        env.sh(&format!("git show {commit}:{path}")).stdout
    };
    assert_eq!(show("Before delete a.txt", "a.txt"), "two\n");
    assert_eq!(show("Before execute git clean -fdx", "a.txt"), "");
    assert_eq!(show("Before edit c.txt", "b.txt"), "b\n");
    assert_eq!(env.read("c.txt"), "c\n");
}

#[test]
fn files_are_read_and_written_in_the_work_tree_without_following_links() {
    let env = agent(
        r#"
open("four.txt", "w").write("1\n2\n3\n4")
open("binary", "wb").write(b"\xff\xfe")
os.symlink("../secret", "link")
os.symlink("..", "up")
os.chmod("four.txt", 0o755)
prompt = begin()
def read(path, **more):
    said = ask("fs/read_text_file", path=path, **more)
    note(said.get("result", said.get("error")))
read(here + "/four.txt")
read(here + "/four.txt", line=2, limit=2)
read(here + "/four.txt", line=9)
for path in ["none", "link", "up/secret", "../secret", "binary", ""]:
    read(here + "/" + path)
read("/etc/passwd")
def write(path, content="x"):
    said = ask("fs/write_text_file", path=path, content=content)
    note(said.get("result", said.get("error")))
write(here + "/four.txt", "new")
write(here + "/some/where/x")
for path in ["link", "up/secret", "../secret", ".git/config", ".ultraplan/state/events.jsonl", "some"]:
    write(here + "/" + path)
write("/etc/x")
end(prompt)
"#,
    );
    env.put("../secret", "s");
    run(&env, 0, &[]);
    let noted: Vec<Value> = lines(&env, "../noted")
        .into_iter()
        .map(|one| one[0].clone())
        .collect();
    let content = |text: &str| json!({"content": text});
    assert_eq!(
        noted[..3],
        [content("1\n2\n3\n4"), content("2\n3\n"), content("")]
    );
    assert_eq!(noted[3]["code"], -32002, "{noted:?}");
    for refused in noted[4..10].iter().chain(&noted[12..]) {
        assert!(refused["code"].is_i64(), "{noted:?}");
    }
    assert_eq!(
        (&noted[10], &noted[11], noted.len()),
        (&Value::Null, &Value::Null, 19)
    );
    assert_eq!(
        (
            env.read("four.txt").as_str(),
            env.read("some/where/x").as_str()
        ),
        ("new", "x")
    );
    assert_eq!(env.mode("four.txt"), 0o755);
    assert_eq!(env.read("../secret"), "s");
}

/// The agent's own processes may write where any confined attempt may; so may what it has `recover` write.
#[test]
fn a_confined_agent_writes_in_the_work_tree_only() {
    let mut env = agent(
        r#"
prompt = begin()
if os.environ["RECOVER_ATTEMPT"] == "1":
    try:
        open("../other/file", "w")
    except PermissionError as error:
        says("open ../other/file: " + error.strerror)
    open("made", "w").write("x")
    wrote = ask("fs/write_text_file", path=here + "/../other/file", content="x")
    note("error" in wrote)
    end(prompt, "refusal")
end(prompt)
"#,
    );
    for folder in ["tmp", "other"] {
        std::fs::create_dir(env.root().join(folder)).expect("a folder");
    }
    for file in ["heard", "noted"] {
        std::fs::write(env.root().join(file), "").expect("a file");
    }
    let root = env.root().display().to_string();
    env.set("TMPDIR", &format!("{root}/tmp"));
    env.write(
        "../home/.config/recover/config.toml",
        format!("[run]\nconfine_write = [\"{root}/heard\", \"{root}/noted\"]\n"),
    );
    let probe = ["run", "--run", "probe", "--confine", "--", "true"];
    if env.recover(&probe).code == 13 {
        return;
    }
    let document = run(&env, 0, &["--confine", "--attempts", "2"]);
    let attempts = &document["iterations"][0]["attempts"];
    assert!(
        attempts[0]["conditions"].to_string().contains("confined"),
        "{attempts:#}"
    );
    assert!(!env.exists("../other/file") && env.exists("../other"));
    assert_eq!(lines(&env, "../noted"), [json!([true])]);
    let prompt = lines(&env, "../heard")
        .iter()
        .map(Value::to_string)
        .rfind(|line| line.contains("session/prompt"));
    assert!(prompt.is_some_and(|prompt| prompt.contains("Writes Were Refused")));
}

#[test]
fn what_is_not_offered_or_is_about_no_session_is_refused() {
    let env = agent(
        r#"
first = hear()
note(ask("fs/read_text_file", path=here + "/a.txt")["error"]["code"])
answer(first, {"protocolVersion": 1, "agentCapabilities": {}})
answer(hear(), {"sessionId": "s-1"})
prompt = hear()
for method in ["terminal/create", "terminal/output", "elicitation/create", "_mine/x"]:
    note(ask(method)["error"]["code"])
send({"method": "_mine/notice", "params": {}})
note(ask("fs/read_text_file", sessionId="s-2", path=here + "/a.txt")["error"]["code"])
note(ask("fs/read_text_file", path=7)["error"]["code"])
note(ask("session/request_permission", toolCall=7, options=ALL)["error"]["code"])
note(ask("session/request_permission", toolCall={"toolCallId": "t", "kind": "read"}, options=7)["result"]["outcome"]["outcome"])
open("made", "w").close()
end(prompt)
"#,
    );
    run(&env, 0, &[]);
    let noted: Vec<Value> = lines(&env, "../noted")
        .into_iter()
        .map(|one| one[0].clone())
        .collect();
    let (invalid, unknown) = (json!(-32602), json!(-32601));
    let none = vec![unknown; 4];
    let expected = [
        vec![invalid.clone()],
        none,
        vec![invalid; 3],
        vec![json!("cancelled")],
    ]
    .concat();
    assert_eq!(noted, expected);
}

#[test]
fn a_retry_goes_on_in_the_session_and_what_that_said_before_is_not_new() {
    let scene = |load: &str| {
        format!(
            r#"
answer(hear(), {{"protocolVersion": 1, "agentCapabilities": {{"loadSession": {load}}}}})
session = hear()
if session["method"] == "session/load":
    for number in range(20):
        update("tool_call", toolCallId="old", title="npm test", kind="execute", status="pending")
        update("tool_call_update", toolCallId="old", status="completed")
    says("Said before.")
    update("usage_update", used=1, size=2, cost={{"amount": 0.5, "currency": "USD"}})
answer(session, {{"sessionId": "s-1"}} if session["method"] == "session/new" else None)
prompt = hear()
says("Done.")
update("usage_update", used=1, size=2, cost={{"amount": 0.75 if session["method"] == "session/load" else 0.5, "currency": "USD"}})
end(prompt)
"#
        )
    };
    let check = "t=test \"$RECOVER_ATTEMPT\" = 2";
    let methods = |env: &TestEnv| {
        let heard = lines(env, "../heard");
        let sessions = heard.iter().filter_map(|one| one["method"].as_str());
        let sessions = sessions.filter(|method| ["session/new", "session/load"].contains(method));
        sessions.map(str::to_owned).collect::<Vec<_>>()
    };
    let env = agent(&scene("True"));
    let document = run(&env, 0, &["--attempts", "2", "--feedback", check]);
    assert_eq!(
        methods(&env),
        ["session/new", "session/load"],
        "{document:#}"
    );
    assert_eq!(lines(&env, "../heard")[4]["params"]["sessionId"], "s-1");
    assert_eq!(document["run"]["cost_usd"], 0.75, "{document:#}");
    let logged = document["iterations"][0]["attempts"][1]["log_path"].as_str();
    let logged = std::fs::read_to_string(logged.expect("a log")).expect("readable");
    assert!(logged.contains("Said before."), "the log has all");
    let env = agent(&scene("False"));
    run(&env, 0, &["--attempts", "2", "--feedback", check]);
    assert_eq!(methods(&env), ["session/new", "session/new"]);
}

/// Errors of the protocol, of an API and of the agent itself, each with its cause.
#[test]
fn what_goes_wrong_has_its_cause() {
    let error = |code: i64, message: &str, data: &str| {
        format!("prompt = begin()\nrefuse(prompt, {code}, {message:?}{data})\nwhile True: hear()\n")
    };
    let cases: Vec<(String, &str, &str)> = vec![
        (error(401, "Incorrect API key provided", ""), "AUTH_FAILED", "Incorrect API key"),
        (error(-32603, "Internal error", ", details='429 Rate limit reached for requests'"), "RATE_LIMITED", "429"),
        (error(429, "Resource has been exhausted", ""), "RATE_LIMITED", "exhausted"),
        (error(-32603, "Internal error", ", details='prompt is too long: 212345 tokens > 200000 maximum'"), "CONTEXT_EXHAUSTED", "too long"),
        ("answer(hear(), {'protocolVersion': 1})\nrefuse(hear(), -32000, 'Authentication required')\nhear()\n".to_owned(), "AUTH_FAILED", "Authentication required"),
        ("answer(hear(), {'protocolVersion': 2})\nhear()\n".to_owned(), "UNKNOWN", "version 2 of the protocol"),
        ("prompt = begin()\nend(prompt, 'max_tokens')\n".to_owned(), "CONTEXT_EXHAUSTED", "max_tokens"),
        ("prompt = begin()\nend(prompt, 'max_turn_requests')\n".to_owned(), "UNKNOWN", "max_turn_requests"),
        ("prompt = begin()\nend(prompt, 'refusal')\n".to_owned(), "INVALID_INPUT", "refusal"),
        // Broken agents.
        ("begin()\nsys.exit(0)\n".to_owned(), "UNKNOWN", "without an answer to the prompt"),
        ("begin()\nos.kill(os.getpid(), signal.SIGSEGV)\n".to_owned(), "CRASHED", "SIGSEGV"),
        ("hear()\nsys.stderr.write('Error: no space left on device\\n')\nsys.exit(3)\n".to_owned(), "DISK_FULL", "no space left"),
        ("answer(hear(), {'protocolVersion': 1})\nanswer(hear(), {})\nwhile True: hear()\n".to_owned(), "UNKNOWN", "named no session"),
        // Its answer to the prompt before that was asked is none.
        ("hear()\nsend({'id': 3, 'result': {'stopReason': 'end_turn'}})\nsys.exit(0)\n".to_owned(), "UNKNOWN", "without an answer"),
    ];
    for (scene, cause, message) in cases {
        let env = agent(&scene);
        let args = [
            "--json",
            "run",
            "--prompt",
            "Fix it.",
            "--agent",
            "acp:python3 ../agent.py",
            "--attempts",
            "1",
            "--no-wait",
        ];
        let ran = env.recover(&args);
        assert!([6, 7, 8].contains(&ran.code), "{scene}: {ran:?}");
        let document = ran.json();
        let failure = failure(&document);
        assert_eq!(failure["cause"], cause, "{scene}: {document:#}");
        let said = failure["message"].as_str().expect("a message");
        assert!(said.contains(message), "{scene}: {said}");
    }
}

/// Whatever it prints between, an agent that answers has answered.
#[test]
fn rubbish_holds_up_nothing() {
    let env = agent(
        r#"
print("Loading…"); print("{broken"); print("[]"); print("{}"); print('{"jsonrpc": "2.0"}'); print("null")
prompt = begin()
sys.stdout.write("{" + "x" * (9 << 20) + "}\n")
sys.stdout.write('{"jsonrpc":"2.0","method":"session/update","params":7}\n')
update("tool_call", toolCallId=7)
update("tool_call")
send({"id": None, "method": "fs/read_text_file"})
send({"id": 3})
"#,
    );
    // An answer with neither a result nor an error names no reason to stop.
    let document = run(&env, 8, &["--attempts", "1"]);
    let said = failure(&document)["message"].as_str().expect("a message");
    assert!(said.contains("names no stop reason"), "{document:#}");
    plays(
        &env,
        "prompt = begin()\nprint('x' * (9 << 20))\nfor i in range(20000): update('tool_call_update', toolCallId='t%d' % i)\nsays('Done.')\nend(prompt)\n",
    );
    run(&env, 0, &[]);
}

#[test]
fn an_agent_that_stays_after_its_answer_is_ended_and_has_answered() {
    let env = agent(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprompt = begin()\nanswer(prompt, {'stopReason': 'end_turn'})\ntime.sleep(120)\n",
    );
    let begun = Instant::now();
    run(&env, 0, &[]);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn an_agent_that_never_answers_is_ended() {
    for scene in [
        "time.sleep(120)\n",
        "begin()\ntime.sleep(120)\n",
        "begin()\nos.close(1)\nos.close(0)\ntime.sleep(120)\n",
    ] {
        for limit in [["--timeout", "2s"], ["--idle", "1s"]] {
            let env = agent(scene);
            let begun = Instant::now();
            let document = run(&env, 7, &["--attempts", "1", limit[0], limit[1]]);
            assert!(begun.elapsed() < Duration::from_secs(60), "{scene}");
            assert_eq!(
                failure(&document)["cause"],
                "TOOL_TIMEOUT",
                "{scene}: {document:#}"
            );
        }
    }
}

/// One that sends without end and reads nothing: neither memory nor time without end.
#[test]
fn an_agent_that_sends_more_than_is_answered_is_ended() {
    let env = agent(
        "begin()\ntext = 'x' * (1 << 20)\nwhile True: send({'id': 'x' * 60000, 'method': '_mine/x', 'params': {'x': text}})\n",
    );
    let begun = Instant::now();
    let document = run(&env, 8, &["--attempts", "1"]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    let said = failure(&document)["message"].as_str().expect("a message");
    assert!(said.contains("more than is answered"), "{document:#}");
}

#[test]
fn repeats_and_budgets_are_seen_in_the_stream() {
    let env = agent(
        r#"
prompt = begin()
for number in range(30):
    update("tool_call", toolCallId=str(number), title="npm test", kind="execute", status="pending", rawInput={"command": "npm test"})
    update("tool_call_update", toolCallId=str(number), status="completed", content=[])
time.sleep(60)
"#,
    );
    let document = run(&env, 8, &["--attempts", "1"]);
    let conditions = failure(&document)["conditions"].to_string();
    assert!(
        conditions.contains("stalled") && conditions.contains("circular_fix"),
        "{document:#}"
    );
    plays(
        &env,
        "begin()\nsays('x')\nupdate('usage_update', used=1, size=2, cost={'amount': 3.0, 'currency': 'USD'})\ntime.sleep(60)\n",
    );
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nmax_cost_usd = 2.5\n[runner]\ngrace = '1s'\n",
    );
    let document = run(&env, 7, &["--attempts", "1"]);
    let said = failure(&document)["message"].as_str().expect("a message");
    assert!(said.contains("max_cost_usd"), "{document:#}");
    assert_eq!(document["run"]["cost_usd"], 3.0);
}

#[test]
fn a_signal_cancels_the_session_and_ends_the_agent() {
    let env = agent(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprompt = begin()\nopen('asked', 'w').write('x\\n')\nsaid = hear()\nnote(said['method'])\nanswer(prompt, {'stopReason': 'cancelled'})\ntime.sleep(60)\n",
    );
    let args = [
        "run",
        "--prompt",
        "Fix it.",
        "--agent",
        "acp:python3 ../agent.py",
    ];
    let child = env.start(&args);
    until("asked", || env.exists("asked"));
    kill("-INT", child.id());
    ended(child).expect(130);
    assert_eq!(lines(&env, "../noted"), [json!(["session/cancel"])]);
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_begins() {
    let env = TestEnv::repo();
    let with = |agent: &str, more: &[&str]| {
        let mut args = vec!["run", "--prompt", "Fix it.", "--agent", agent];
        args.extend(more);
        env.error(2, &args)["message"]
            .as_str()
            .expect("a message")
            .to_owned()
    };
    assert!(with("acp:aider", &[]).contains("aider does not speak"));
    assert!(with("acp:", &[]).contains("names no command"));
    assert!(with("acp:no-such-agent --acp", &[]).contains("no-such-agent"));
    assert!(with("acp:sh", &["--pty"]).contains("--pty"));
    let ran = env
        .recover(&["run", "--prompt", "x", "--agent", "acp:sh", "--passthrough"])
        .expect(2);
    assert!(ran.stderr.contains("--passthrough"), "{ran:?}");
}

/// What a clone says that an agent is is started by nobody who has not trusted it.
#[test]
fn a_profile_of_the_project_is_not_started_untrusted() {
    let env = TestEnv::repo();
    env.put(
        ".ultraplan/recover.toml",
        "[agent.gemini]\nacp = [\"./evil\"]\n",
    );
    env.script("evil", "touch ../ran");
    let args = ["run", "--prompt", "x", "--agent", "acp:gemini"];
    let ran = env.recover(&args);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(
        !env.exists("../ran") && ran.stderr.contains("trust"),
        "{ran:?}"
    );
}
