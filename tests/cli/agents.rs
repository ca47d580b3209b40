//! Agents as people start them: their records, sessions, profiles, what they cost.

use serde_json::{Value, json};

use crate::env::TestEnv;

fn quick() -> TestEnv {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '1ms'\n[retry]\nbase_delay = '1ms'\n");
    env
}

/// A stand-in for Codex: the counts of its records go on from those that it kept for the session.
const CODEX: &str = r#"
used=$(cat ../used 2>/dev/null || echo 0); used=$((used + 1000)); echo $used > ../used
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Changed it."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":'$used',"cached_input_tokens":'$((used / 2))',"output_tokens":'$((used / 10))'}}'
date +%N > state
"#;

/// Tokens and cost are told for each attempt, iteration, run and session; what is unknown is no zero.
#[test]
fn tokens_are_told_wherever_cost_is() {
    let env = quick();
    env.script("codex", CODEX);
    let args = ["run", "--run", "r", "--attempts", "2", "--feedback", "test=false", "--", "./codex", "exec", "--json"];
    let document = env.json(8, &args);
    let tokens = |input: u64, output: u64, read: u64| {
        let total = input + output + read;
        json!({"input": input, "output": output, "cache_read": read, "cache_write": 0, "total": total})
    };
    let iteration = &document["iterations"][0];
    // The counts of a thread go on where it goes on.
    assert_eq!(iteration["attempts"][0]["tokens"], tokens(500, 100, 500), "{document}");
    assert_eq!(iteration["attempts"][1]["tokens"], tokens(500, 100, 500), "{document}");
    assert_eq!(iteration["tokens"], tokens(1000, 200, 1000));
    assert_eq!(document["run"]["tokens"], tokens(1000, 200, 1000));
    assert_eq!(document["run"]["cost_usd"], Value::Null);
    let status = env.json(0, &["status"]);
    assert_eq!(status["session"], json!({"id": "r", "cost_usd": null, "tokens": tokens(1000, 200, 1000)}));
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(text.contains("Cost:        unknown, tokens: 2.2k (input 1.0k, output 200, from cache 1.0k"), "{text}");
    let report = &env.json(0, &["report", "--format", "json"])["report"];
    assert_eq!(report["summary"]["tokens"], tokens(1000, 200, 1000), "{report}");
    assert_eq!(report["attempts"][1]["tokens"], tokens(500, 100, 500));
    assert!(env.recover(&["report"]).expect(0).stdout.contains("- **Cost:** 2.2k tokens"));
    let runs = env.recover(&["runs"]).expect(0).stdout;
    assert!(runs.contains("TOKENS") && runs.contains("2.2k"), "{runs}");
    assert_eq!(env.json(0, &["runs"])["runs"][0]["tokens"]["total"], 2200);
}

/// A session that several runs share is summed up over them.
#[test]
fn a_session_sums_up_its_runs() {
    let env = quick();
    env.script("claude", r#"echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5},"result":"done"}'"#);
    for run in ["a", "b"] {
        let mut command = env.recover_command(&["run", "--run", run, "--", "./claude", "-p"]);
        command.env("RECOVER_SESSION", "night");
        assert!(command.output().unwrap().status.success());
    }
    let status = env.json(0, &["--run", "b", "status"]);
    assert_eq!((&status["run"]["cost_usd"], &status["run"]["tokens"]["total"]), (&json!(0.25), &json!(15)), "{status}");
    assert_eq!((&status["session"]["cost_usd"], &status["session"]["tokens"]["total"]), (&json!(0.5), &json!(30)));
    let text = env.recover(&["--run", "b", "status"]).expect(0).stdout;
    assert!(
        text.contains("Cost:        $0.25, tokens: 15 ") && text.contains("session night: $0.50, 30 tokens"),
        "{text}"
    );
}

/// `[retry] max_tokens` ends a run as `max_cost_usd` does; a bound that no record can reach is refused before it begins.
#[test]
fn tokens_are_a_budget() {
    let env = quick();
    env.write(".ultraplan/recover.toml", "[retry]\nmax_tokens = 2000\n[cooldown]\nduration = '1ms'\n");
    env.script("codex", CODEX);
    let args = ["run", "--attempts", "9", "--feedback", "test=false", "--", "./codex", "exec", "--json"];
    let document = env.json(7, &args);
    assert_eq!(document["decision"]["stopped_by"], "tokens", "{document}");
    assert_eq!(document["iterations"][0]["attempts"].as_array().unwrap().len(), 2);
    let status = env.json(7, &["retry-status", "--check"]);
    let budget = status["budgets"].as_array().unwrap().iter().find(|budget| budget["scope"] == "tokens").unwrap();
    assert_eq!(*budget, json!({"scope": "tokens", "used": 2200, "limit": 2000, "left": 0, "unit": "tokens"}));

    let env = quick();
    env.write(".ultraplan/recover.toml", "[retry]\nmax_cost_usd = 1.0\n");
    env.script("codex", CODEX);
    let refused = env.json(2, &["run", "--", "./codex", "exec", "--json"]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(message, "[retry] max_cost_usd can never be reached: codex reports no cost");
    env.recover(&["run", "--agent", "none", "--", "true"]).expect(2);
    assert_eq!(env.json(0, &["runs"])["runs"], json!([]));
    // What a script starts is not known before.
    env.recover(&["run", "--", "true"]).expect(0);
}
