//! `recover mcp` as its clients speak with it: a message a line, an answer a line.

use serde_json::{Value, json};

use crate::env::TestEnv;

/// The answers to these messages.
#[track_caller]
fn spoken(env: &TestEnv, messages: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    answers(env, lines.join("\n"))
}

#[track_caller]
fn answers(env: &TestEnv, lines: String) -> Vec<Value> {
    let ran = env.recover_fed(lines, &["mcp"]).expect(0);
    let answer = |line: &str| serde_json::from_str(line).expect("JSON");
    ran.stdout.lines().map(answer).collect()
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// What a tool said, and whether it failed.
#[track_caller]
fn tool(env: &TestEnv, name: &str, arguments: &Value) -> (String, bool) {
    let call = request(
        1,
        "tools/call",
        &json!({"name": name, "arguments": arguments}),
    );
    let answers = spoken(env, &[call]);
    let result = &answers[0]["result"];
    let text = result["content"][0]["text"].as_str();
    (
        text.unwrap_or_else(|| panic!("{answers:#?}")).to_owned(),
        result["isError"].as_bool().expect("isError"),
    )
}

/// A run whose only attempt failed a check.
fn failed() -> TestEnv {
    let env = TestEnv::repo();
    let check = "test=grep -q good a.txt || { echo 'FAILED: a.txt is not good'; exit 1; }";
    let words = ["run", "--run", "r", "--attempts", "1", "--feedback", check];
    env.json(
        8,
        &[&words[..], &["--", "sh", "-c", "echo bad > a.txt"]].concat(),
    );
    env
}

#[test]
fn a_client_is_greeted_in_its_version_of_the_protocol() {
    let env = TestEnv::repo();
    let hello = |version: &str| {
        let params = json!({"protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        request(1, "initialize", &params)
    };
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answers = spoken(
        &env,
        &[
            hello("2025-03-26"),
            notified,
            hello("1999-01-01"),
            request(2, "ping", &json!({})),
        ],
    );
    assert_eq!(
        answers.len(),
        3,
        "a notification has no answer: {answers:#?}"
    );
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "recover");
    assert_eq!(answers[1]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answers[2], json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
}

/// Every tool costs a client's conversation what its description has.
#[test]
fn tools_are_few_and_short() {
    let env = TestEnv::repo();
    let answers = spoken(&env, &[request(1, "tools/list", &json!({}))]);
    let listed = &answers[0]["result"]["tools"];
    let names: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        names,
        [
            "status",
            "explain",
            "diff",
            "checkpoint",
            "preview_rollback"
        ]
    );
    // About four bytes a token.
    assert!(
        listed.to_string().len() < 4 * 800,
        "{}",
        listed.to_string().len()
    );
}

#[test]
fn a_failed_run_is_explained_compared_and_previewed() {
    let env = failed();
    let (status, is_error) = tool(&env, "status", &json!({}));
    assert!(
        status.contains("a.txt is not good") && !is_error,
        "{status}"
    );

    let (explained, _) = tool(&env, "explain", &json!({"run": "r"}));
    let explained: Value = serde_json::from_str(&explained).expect("JSON");
    assert_eq!(explained["failure"]["cause"], "VERIFICATION_FAILED");
    assert!(
        explained["failure"]["evidence"][0]["rule"].is_string(),
        "{explained:#}"
    );
    assert!(explained["decision"]["reason"].is_string(), "{explained:#}");

    let (plan, is_error) = tool(&env, "preview_rollback", &json!({"to": "initial"}));
    assert!(plan.contains("a.txt") && !is_error, "{plan}");
    assert_eq!(env.read("a.txt"), "bad\n");

    env.write("a.txt", "mine\n");
    let (patch, _) = tool(&env, "diff", &json!({"from": "initial", "path": "a.*"}));
    assert!(patch.contains("-one") && patch.contains("+mine"), "{patch}");
}

#[test]
fn a_checkpoint_is_taken() {
    let env = TestEnv::repo();
    env.write("new.txt", "new\n");
    let (text, is_error) = tool(
        &env,
        "checkpoint",
        &json!({"description": "before the migration"}),
    );
    assert!(text.contains("ckpt_") && !is_error, "{text}");
    let list = env.json(0, &["checkpoint", "list"]);
    let taken = list["checkpoints"].as_array().expect("a list");
    let of_tool = |one: &Value| one["description"] == "before the migration";
    assert!(taken.iter().any(of_tool), "{list:#}");
}

#[test]
fn reports_are_resources() {
    let env = failed();
    let answers = spoken(
        &env,
        &[
            request(1, "resources/list", &json!({})),
            request(
                2,
                "resources/read",
                &json!({"uri": "recover://runs/r/report"}),
            ),
            request(
                3,
                "resources/read",
                &json!({"uri": "recover://runs/none/report"}),
            ),
            request(4, "resources/templates/list", &json!({})),
        ],
    );
    assert_eq!(
        answers[0]["result"]["resources"][0]["uri"],
        "recover://runs/r/report"
    );
    let text = answers[1]["result"]["contents"][0]["text"]
        .as_str()
        .expect("a text");
    assert!(text.contains("a.txt is not good"), "{text}");
    assert_eq!(answers[2]["error"]["code"], -32_002);
    let template = &answers[3]["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "recover://runs/{run}/report");
}

/// What a command refuses is a tool's error, with the hint, for the model to read; a wrong call is the protocol's.
#[test]
fn errors_are_answers() {
    let env = TestEnv::repo();
    let (text, is_error) = tool(&env, "status", &json!({"run": "nope"}));
    assert!(
        is_error && text.contains("nope") && text.contains("(exit code 4)"),
        "{text}"
    );
    let (text, is_error) = tool(&env, "diff", &json!({"from": "--output=/etc/passwd"}));
    assert!(is_error && text.contains("exit code"), "{text}");

    let wrong = |name: &str, arguments: Value| {
        request(
            1,
            "tools/call",
            &json!({"name": name, "arguments": arguments}),
        )
    };
    let answers = spoken(
        &env,
        &[
            wrong("rollback", json!({})),
            wrong("status", json!({"colour": "red"})),
            wrong("status", json!({"run": 7})),
            request(2, "completion/complete", &json!({})),
        ],
    );
    let codes: Vec<&Value> = answers
        .iter()
        .map(|answer| &answer["error"]["code"])
        .collect();
    assert_eq!(codes, [-32_602, -32_602, -32_602, -32_601], "{answers:#?}");
}

/// A client waits for the answer to each id.
#[test]
fn whatever_has_an_id_is_answered_with_it() {
    let env = TestEnv::repo();
    let answers = spoken(
        &env,
        &[
            request(
                1,
                "tools/call",
                &json!({"name": "status", "arguments": null}),
            ),
            request(2, "tools/call", &json!({"name": "status", "arguments": []})),
            request(3, "resources/read", &json!({"uri": null})),
            request(4, "ping", &json!(null)),
            json!([1, "tools/call", {"name": "checkpoint"}]),
        ],
    );
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(
        ids,
        [&json!(1), &json!(2), &json!(3), &json!(4), &Value::Null]
    );
    let codes: Vec<&Value> = answers
        .iter()
        .map(|answer| &answer["error"]["code"])
        .collect();
    assert_eq!(codes[1..3], [-32_602, -32_002]);
    assert_eq!(*codes[4], -32_600);
    let list = env.recover(&["checkpoint", "list"]);
    assert!(!list.stdout.contains("ckpt_"), "{}", list.stdout);
}

#[test]
fn a_dry_run_takes_no_checkpoint() {
    let env = TestEnv::repo();
    let call = request(1, "tools/call", &json!({"name": "checkpoint"}));
    env.recover_fed(format!("{call}\n"), &["--dry-run", "mcp"])
        .expect(0);
    assert!(!env.exists(".ultraplan/state/events.jsonl"));
}

#[test]
fn rubbish_does_not_end_it() {
    let env = TestEnv::repo();
    let ping = request(7, "ping", &json!({}));
    let lines = format!("\n{{\n[1, 2]\n\u{fffd}\n{{\"id\": 1}}\n{ping}\n");
    let answers = answers(&env, lines);
    let codes: Vec<&Value> = answers
        .iter()
        .map(|answer| &answer["error"]["code"])
        .collect();
    assert_eq!(
        codes[..4],
        [-32_700, -32_600, -32_700, -32_600],
        "{answers:#?}"
    );
    assert_eq!(answers[4]["id"], 7);
}
