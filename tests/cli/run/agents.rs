//! Agents as people start them: their records, sessions, profiles, what they cost.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::CHECK;
use crate::run::supervision::{ended, kill, until};

fn quick() -> TestEnv {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = '1ms'\n[retry]\nbase_delay = '1ms'\n[weather]\nprobes = ['1ms']\n",
    );
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
    let args = [
        "run",
        "--run",
        "r",
        "--attempts",
        "2",
        "--feedback",
        "test=false",
        "--",
        "./codex",
        "exec",
        "--json",
    ];
    let document = env.json(8, &args);
    let tokens = |input: u64, output: u64, read: u64| {
        let total = input + output + read;
        json!({"input": input, "output": output, "cache_read": read, "cache_write": 0, "total": total})
    };
    let iteration = &document["iterations"][0];
    // The counts of a thread go on where it goes on.
    assert_eq!(
        iteration["attempts"][0]["tokens"],
        tokens(500, 100, 500),
        "{document}"
    );
    assert_eq!(
        iteration["attempts"][1]["tokens"],
        tokens(500, 100, 500),
        "{document}"
    );
    assert_eq!(iteration["tokens"], tokens(1000, 200, 1000));
    assert_eq!(document["run"]["tokens"], tokens(1000, 200, 1000));
    assert_eq!(document["run"]["cost_usd"], Value::Null);
    let status = env.json(0, &["status"]);
    assert_eq!(
        status["session"],
        json!({"id": "r", "cost_usd": null, "tokens": tokens(1000, 200, 1000)})
    );
    let text = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(
        text.contains(
            "Cost:        unknown, tokens: 2.2k (input 1.0k, output 200, from cache 1.0k"
        ),
        "{text}"
    );
    let report = &env.json(0, &["report", "--format", "json"])["report"];
    assert_eq!(
        report["summary"]["tokens"],
        tokens(1000, 200, 1000),
        "{report}"
    );
    assert_eq!(report["attempts"][1]["tokens"], tokens(500, 100, 500));
    assert!(
        env.recover(&["report"])
            .expect(0)
            .stdout
            .contains("- **Cost:** 2.2k tokens")
    );
    let runs = env.recover(&["runs"]).expect(0).stdout;
    assert!(runs.contains("TOKENS") && runs.contains("2.2k"), "{runs}");
    assert_eq!(env.json(0, &["runs"])["runs"][0]["tokens"]["total"], 2200);
}

/// Claude Code counts cost and the tokens of its models on over a session that is resumed, beside those of the turn.
#[test]
fn a_resumed_session_is_not_counted_twice() {
    let env = quick();
    env.script(
        "claude",
        r#"n=$(cat ../n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > ../n
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":'0.$((n * 2))',"result":"done","usage":{"input_tokens":100,"output_tokens":20},"modelUsage":{"opus":{"inputTokens":'$((n * 100))',"outputTokens":'$((n * 20))',"cacheReadInputTokens":0,"cacheCreationInputTokens":0}}}'"#,
    );
    let args = [
        "run",
        "--attempts",
        "3",
        "--feedback",
        "test=false",
        "--",
        "./claude",
        "-p",
    ];
    let document = env.json(8, &args);
    assert_eq!(
        (
            &document["run"]["cost_usd"],
            &document["run"]["tokens"]["total"]
        ),
        (&json!(0.6), &json!(360)),
        "{document}"
    );
    for attempt in document["iterations"][0]["attempts"].as_array().unwrap() {
        assert_eq!(
            (&attempt["cost_usd"], &attempt["tokens"]["total"]),
            (&json!(0.2), &json!(120)),
            "{document}"
        );
    }
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
    assert_eq!(
        (
            &status["run"]["cost_usd"],
            &status["run"]["tokens"]["total"]
        ),
        (&json!(0.25), &json!(15)),
        "{status}"
    );
    assert_eq!(
        (
            &status["session"]["cost_usd"],
            &status["session"]["tokens"]["total"]
        ),
        (&json!(0.5), &json!(30))
    );
    let text = env
        .recover(&["--run", "b", "status", "-v"])
        .expect(0)
        .stdout;
    assert!(
        text.contains("Cost:        $0.25, tokens: 15 ")
            && text.contains("session night: $0.50, 30 tokens"),
        "{text}"
    );
}

/// `[retry] max_tokens` ends a run as `max_cost_usd` does; a bound that no record can reach is refused before it begins.
#[test]
fn tokens_are_a_budget() {
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nmax_tokens = 2000\n[cooldown]\nduration = '1ms'\n",
    );
    env.script("codex", CODEX);
    let args = [
        "run",
        "--attempts",
        "9",
        "--feedback",
        "test=false",
        "--",
        "./codex",
        "exec",
        "--json",
    ];
    let document = env.json(7, &args);
    assert_eq!(document["decision"]["stopped_by"], "tokens", "{document}");
    assert_eq!(
        document["iterations"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let status = env.json(7, &["retry-status", "--check"]);
    let budget = status["budgets"]
        .as_array()
        .unwrap()
        .iter()
        .find(|budget| budget["scope"] == "tokens")
        .unwrap();
    assert_eq!(
        *budget,
        json!({"scope": "tokens", "used": 2200, "limit": 2000, "left": 0, "unit": "tokens"})
    );

    let env = quick();
    env.write(".ultraplan/recover.toml", "[retry]\nmax_cost_usd = 1.0\n");
    env.script("codex", CODEX);
    let refused = env.json(2, &["run", "--", "./codex", "exec", "--json"]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "[retry] max_cost_usd can never be reached: codex reports no cost"
    );
    env.recover(&["run", "--agent", "none", "--", "true"])
        .expect(2);
    assert_eq!(env.json(0, &["runs"])["runs"], json!([]));
    // What a script starts is not known before.
    env.recover(&["run", "--", "true"]).expect(0);
}

/// Answers of a model with what each used, then nothing: the agent hangs, or what ends it is given.
fn cut_off(end: &str) -> String {
    let answer = |id: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"On it."}}],"usage":{{"input_tokens":100,"output_tokens":4000,"cache_read_input_tokens":100000,"cache_creation_input_tokens":0}}}},"session_id":"s-1"}}"#
        )
    };
    format!(
        "cat <<'EOF'\n{}\n{}\n{{\"type\":\"assis\nEOF\n{end}",
        answer("m1"),
        answer("m2")
    )
}

/// A bound on cost or tokens holds for attempts that were cut off, too: what they used is estimated by what was seen.
#[test]
fn what_was_cut_off_is_estimated() {
    for (bound, end, scope) in [
        ("max_cost_usd = 0.3", "sleep 20", "cost"),
        ("max_tokens = 300_000", "kill -9 $$", "tokens"),
    ] {
        let env = quick();
        env.write(
            ".ultraplan/recover.toml",
            format!("[retry]\n{bound}\n[cooldown]\nduration = '1ms'\n[retry.causes.TOOL_TIMEOUT]\nbase_delay = '1ms'\n"),
        );
        env.script("claude", &cut_off(end));
        let args = [
            "run",
            "--attempts",
            "9",
            "--timeout",
            "1s",
            "--prompt",
            "x",
            "--",
            "./claude",
            "-p",
        ];
        let document = env.json(7, &args);
        assert_eq!(document["decision"]["stopped_by"], scope, "{document}");
        let attempts = document["iterations"][0]["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 2, "{document}");
        // Two answers by the list's price: 200 read, 200,000 from the cache, 8,000 written.
        assert_eq!(attempts[0]["cost_usd"], 0.1806, "{document}");
        assert_eq!(attempts[0]["tokens"]["total"], 208_200);
        let note = attempts[0]["notes"][0].as_str().unwrap();
        assert!(
            note.contains("$0.18") && note.contains("estimated"),
            "{note}"
        );
    }
    // Records that never say what an answer used: by how long it is, and what was read for it.
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nmax_tokens = 200\n[cooldown]\nduration = '1ms'\n[retry.causes.TOOL_TIMEOUT]\nbase_delay = '1ms'\n",
    );
    let said = "I look at the tests, then I change what they say is wrong. ".repeat(4);
    env.script(
        "codex",
        &format!(
            "cat <<'EOF'\n{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{{\"type\":\"item.completed\",\"item\":{{\"type\":\
             \"agent_message\",\"text\":\"{said}\"}}}}\n{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\
             \"text\":\"{said}\"}}}}\nEOF\nsleep 20"
        ),
    );
    let args = [
        "run",
        "--attempts",
        "9",
        "--timeout",
        "1s",
        "--",
        "./codex",
        "exec",
        "--json",
    ];
    let document = env.json(7, &args);
    assert_eq!(document["decision"]["stopped_by"], "tokens", "{document}");
    let attempts = document["iterations"][0]["attempts"].as_array().unwrap();
    assert!(
        attempts[0]["tokens"]["total"].as_u64() > Some(100),
        "{document}"
    );
}

/// So it is where `recover` itself was killed with the agent.
#[test]
fn what_was_lost_with_its_supervisor_is_estimated() {
    let env = quick();
    env.script("claude", &cut_off("sleep 1; kill -9 $PPID; sleep 20"));
    env.recover(&["run", "--run", "r", "--prompt", "x", "--", "./claude", "-p"]);
    env.json(0, &["doctor", "--repair"]);
    let status = env.json(0, &["status", "--run", "r"]);
    assert_eq!(status["run"]["cost_usd"], 0.1806, "{status}");
}

/// A stand-in for an agent that says how it was started and what it was told.
fn stand_in(env: &TestEnv, name: &str) {
    env.script(
        &format!("bin/{name}"),
        "if [ \"$1\" = --version ]; then echo '9.8.7 (stand-in)'; exit; fi\n\
         printf '%s\\n' \"$@\" > ../args; cat > ../stdin; cp \"$RECOVER_PROMPT_FILE\" ../prompt; date +%N > state",
    );
}

fn with_bin(env: &mut TestEnv) {
    let path = format!(
        "{}/bin:{}",
        env.work().display(),
        std::env::var("PATH").expect("a PATH")
    );
    env.set("PATH", &path);
}

/// `--agent NAME` without a command starts each agent in its unattended form, with leave to edit and no more.
#[test]
fn an_agent_is_started_by_its_name() {
    let forms = [
        (
            "claude",
            "-p --output-format stream-json --verbose --permission-mode acceptEdits",
            true,
        ),
        (
            "codex",
            "exec --json --skip-git-repo-check --sandbox workspace-write",
            true,
        ),
        (
            "gemini",
            "--output-format stream-json --approval-mode auto_edit",
            true,
        ),
        ("opencode", "run --format json", true),
        (
            "qwen",
            "--output-format stream-json --approval-mode auto-edit",
            true,
        ),
        (
            "copilot",
            "--output-format json --no-ask-user --prompt=Fix it.\n --allow-tool=write",
            false,
        ),
    ];
    for (name, form, on_stdin) in forms {
        let mut env = quick();
        with_bin(&mut env);
        stand_in(&env, name);
        let document = env.json(0, &["run", "--agent", name, "--prompt", "Fix it."]);
        assert_eq!(document["outcome"], "complete", "{name}: {document}");
        let args = env.sh("tr '\\n' ' ' < ../args").stdout;
        assert_eq!(args.trim(), form.replace('\n', " "), "{name}");
        assert_eq!(
            env.sh("cat ../stdin").stdout,
            if on_stdin { "Fix it.\n" } else { "" },
            "{name}"
        );
    }
    let mut env = quick();
    with_bin(&mut env);
    stand_in(&env, "aider");
    env.recover(&["run", "--agent", "aider", "--prompt", "Fix it."])
        .expect(0);
    let args = env.sh("cat ../args").stdout;
    let args: Vec<&str> = args.lines().collect();
    assert_eq!(
        args[..3],
        ["--no-pretty", "--no-check-update", "--message-file"]
    );
    assert!(
        args[3].ends_with("/prompt.md") && args[4..] == ["--yes-always"],
        "{args:?}"
    );
    assert_eq!(env.sh("cat ../prompt").stdout, "Fix it.\n");
}

/// All permissions are skipped on request only; a command of the user's has its own flags.
#[test]
fn permissions_are_skipped_with_yolo_only() {
    let mut env = quick();
    with_bin(&mut env);
    stand_in(&env, "claude");
    env.recover(&["run", "--agent", "claude", "--yolo", "--prompt", "x"])
        .expect(0);
    let args = env.sh("cat ../args").stdout;
    assert!(
        args.contains("--dangerously-skip-permissions") && !args.contains("acceptEdits"),
        "{args}"
    );
    env.recover(&[
        "run", "--agent", "claude", "--yolo", "--prompt", "x", "--", "true",
    ])
    .expect(2);
}

/// A command goes before `[runner] command`, that before the agent; without any, or without a prompt, nothing begins.
#[test]
fn a_command_goes_before_the_profile() {
    let mut env = quick();
    with_bin(&mut env);
    stand_in(&env, "claude");
    let command = |env: &TestEnv, args: &[&str]| {
        let document = env.json(
            0,
            &[
                &["--dry-run", "run", "--agent", "claude", "--prompt", "x"],
                args,
            ]
            .concat(),
        );
        document["plan"]["spec"]["command"][0]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(command(&env, &[]), "claude");
    env.write(
        ".ultraplan/recover.toml",
        "[runner]\ncommand = ['sleep', '0']\n",
    );
    assert_eq!(command(&env, &[]), "sleep");
    assert_eq!(command(&env, &["--", "true"]), "true");
    env.write(".ultraplan/recover.toml", "[runner]\nagent = 'claude'\n");
    let planned = env.json(0, &["--dry-run", "run", "--prompt", "x"]);
    assert_eq!(planned["plan"]["spec"]["launch"]["agent"], "claude");
    let refused = env.error(2, &["run"]);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("claude needs a prompt"),
        "{refused}"
    );
    let refused = env.error(2, &["run", "--agent", "cluade", "--prompt", "x"]);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("did you mean 'claude'?"),
        "{refused}"
    );
    assert!(
        refused["hint"].as_str().unwrap().contains("agents"),
        "{refused}"
    );
}

/// The configuration adds an agent that recover does not know, with what its exit codes mean, and changes built-in ones.
#[test]
fn an_agent_is_a_section_of_the_configuration() {
    let mut env = quick();
    with_bin(&mut env);
    env.script(
        "bin/mybot",
        "printf '%s\\n' \"$@\" > ../args; cat > ../stdin; echo thinking; exit 4",
    );
    stand_in(&env, "claude");
    let own = "[agent.mybot]\nargs = ['--batch', '--task', '{prompt_file}']\nprompt = 'file'\n\
               edit_args = ['--allow-edits']\nexit_codes = { 4 = 'AUTH_FAILED' }\n\
               [agent.claude]\nargs = ['-p', '--model', 'opus']\n";
    env.write(".ultraplan/recover.toml", own);
    let document = env.json(8, &["run", "--agent", "mybot", "--prompt", "Fix it."]);
    let failure = &document["iterations"][0]["attempts"][0]["failure"];
    assert_eq!(
        (&failure["type"], &failure["cause"]),
        (&json!("agent_error"), &json!("AUTH_FAILED")),
        "{document}"
    );
    let args = env.sh("cat ../args").stdout;
    assert!(
        args.starts_with("--batch\n--task\n/") && args.ends_with("/prompt.md\n--allow-edits\n"),
        "{args}"
    );
    env.recover(&["run", "--agent", "claude", "--prompt", "x"])
        .expect(0);
    assert_eq!(
        env.sh("cat ../args").stdout,
        "-p\n--model\nopus\n--permission-mode\nacceptEdits\n"
    );
    for (wrong, why) in [
        ("[agent.none]\nargs = []\n", "no name for [agent.NAME]"),
        ("[agent.x]\nprompt = 'pipe'\n", "one of \"stdin\""),
        ("[agent.x]\nargz = []\n", "did you mean"),
        (
            "[agent.x]\nexit_codes = { 4 = 'LOST' }\n",
            "causes by exit code",
        ),
    ] {
        env.write(".ultraplan/recover.toml", wrong);
        let refused = env.error(2, &["config"]);
        assert!(
            refused["message"].as_str().unwrap().contains(why),
            "{refused}"
        );
    }
}

/// `agents` says what is installed; a program that comes with the project is not started for that.
#[test]
fn agents_are_listed_with_what_is_installed() {
    let mut env = quick();
    let bin = env.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    env.set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    stand_in(&env, "claude");
    env.sh("mv bin/claude ../bin/claude");
    env.write(
        ".ultraplan/recover.toml",
        "[agent.own]\nprogram = './own'\n",
    );
    env.script("own", "touch started; echo 1.0");
    let agents = env.json(0, &["agents"])["agents"].clone();
    let named = |name: &str| {
        agents
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == name)
            .unwrap()
            .clone()
    };
    let path = bin.join("claude");
    assert_eq!(
        named("claude"),
        json!({"name": "claude", "program": "claude", "installed": true, "version": "9.8.7 (stand-in)", "path": path,
               "output": "claude", "sessions": true})
    );
    assert_eq!(
        (&named("aider")["installed"], &named("aider")["path"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(
        (&named("own")["installed"], &named("own")["version"]),
        (&json!(true), &Value::Null)
    );
    assert!(!env.exists("started"));
    let table = env.recover(&["agents"]).expect(0).stdout;
    assert!(
        table.contains("9.8.7 (stand-in)") && table.contains("opencode"),
        "{table}"
    );
}

/// A stand-in for Claude Code that notes its session and its prompt; `body` says what it does then.
fn claude(env: &TestEnv, body: &str) {
    env.script(
        "claude",
        &format!(
            "n=$(cat ../count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > ../count\n\
             session=${{RECOVER_AGENT_SESSION-}}; echo \"${{session:-none}}\" >> ../sessions; session=${{session:-s-$n}}\n\
             cat > ../prompt.$n\n\
             echo '{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"'$session'\"}}'\n\
             ends() {{ echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":'$1',\"session_id\":\"'$session'\",\"result\":\"'\"$2\"'\"}}'; }}\n\
             answers() {{ echo '{{\"type\":\"assistant\",\"session_id\":\"'$session'\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"Working.\"}}]}}}}'; }}\n\
             {body}"
        ),
    );
}

fn sessions(env: &TestEnv) -> Vec<String> {
    env.sh("cat ../sessions")
        .stdout
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The session is in the ledger as soon as the agent names it; after a limit, the network or a kill it goes on there, and
/// is told that it was interrupted.
#[test]
fn an_interrupted_agent_goes_on_in_its_session() {
    let env = quick();
    claude(
        &env,
        "if [ $n = 1 ]; then answers; ends true 'API Error: Unable to connect to API (ECONNRESET)'; exit 1; fi; ends false done",
    );
    env.json(
        0,
        &[
            "run", "--agent", "claude", "--prompt", "Fix it.", "--", "./claude", "-p",
        ],
    );
    assert_eq!(sessions(&env), ["none", "s-1"]);
    let prompt = env.sh("cat ../prompt.2").stdout;
    assert!(
        prompt.starts_with("Fix it.\n\n## Interrupted\n\nYou were interrupted; go on."),
        "{prompt}"
    );
    assert!(
        prompt.contains("ECONNRESET") && !prompt.contains("DIFFERENT"),
        "{prompt}"
    );

    let env = quick();
    claude(
        &env,
        "if [ $n = 1 ]; then touch ../there; sleep 300; fi; ends false done",
    );
    let mut run = env.start(&[
        "--json", "run", "--run", "r", "--prompt", "Fix it.", "--", "./claude", "-p",
    ]);
    until("the session is recorded", || {
        env.sh("cat .ultraplan/state/events.jsonl 2>/dev/null")
            .stdout
            .contains("agent_session_seen")
    });
    kill("-KILL", run.id());
    run.wait().expect("it ends");
    env.json(0, &["resume"]);
    assert_eq!(sessions(&env), ["none", "s-1"]);
    let prompt = env.sh("cat ../prompt.2").stdout;
    assert!(
        prompt.contains("You were interrupted; go on.") && !prompt.contains("DIFFERENT"),
        "{prompt}"
    );
}

/// An attempt that does not find its session never began: the next one is told what that one was told.
#[test]
fn a_lost_session_is_nobodys_approach() {
    let gone = "elif [ $n = 2 ]; then echo 'No conversation found with session ID: s-1' >&2; exit 1; fi; ends false done";
    let env = quick();
    claude(
        &env,
        &format!(
            "if [ $n = 1 ]; then answers; ends true 'API Error: 529 Overloaded'; exit 1; {gone}"
        ),
    );
    // Nor does it use one up: two are allowed, and the third is the second that tried anything.
    let args = [
        "run",
        "--agent",
        "claude",
        "--attempts",
        "2",
        "--prompt",
        "Fix it.",
        "--",
        "./claude",
        "-p",
    ];
    let run = env.json(0, &args);
    assert_eq!(sessions(&env), ["none", "s-1", "none"]);
    let lost = &run["iterations"][0]["attempts"][0];
    assert_eq!(
        (&lost["failure"]["cause"], &lost["failure"]["detail"]),
        (&json!("RESOURCE_NOT_FOUND"), &json!("session_not_found")),
        "{run:#}"
    );
    let prompt = env.sh("cat ../prompt.3").stdout;
    assert!(
        prompt.contains("You were interrupted; go on.") && prompt.contains("529"),
        "{prompt}"
    );
    assert!(
        !prompt.contains("DIFFERENT") && !prompt.contains("No conversation"),
        "{prompt}"
    );

    let env = quick();
    claude(
        &env,
        &format!("if [ $n = 1 ]; then echo bad > state; ends false done; exit 0; {gone}"),
    );
    let check = "test=[ $(cat ../count) = 3 ] || { echo 'FAILED: assert 1 == 2'; exit 1; }";
    let args = [
        "run",
        "--agent",
        "claude",
        "--prompt",
        "Fix it.",
        "--feedback",
        check,
        "--",
        "./claude",
        "-p",
    ];
    env.json(0, &args);
    let prompt = env.sh("cat ../prompt.3").stdout;
    assert!(
        prompt.contains("assert 1 == 2") && !prompt.contains("No conversation"),
        "{prompt}"
    );
}

/// What no argument can hold is refused before the first attempt; what goes by standard input is not.
#[test]
fn a_prompt_that_is_no_argument_is_refused_at_the_start() {
    let mut env = quick();
    with_bin(&mut env);
    env.script("bin/copilot", "exit 0");
    env.script("bin/claude", "wc -c > ../got");
    let file = env.root().join("prompt.txt");
    std::fs::write(&file, "x".repeat(140_000)).expect("a prompt");
    let file = file.to_string_lossy().into_owned();
    let error = env.error(2, &["run", "--agent", "copilot", "--prompt-file", &file]);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| message.contains("argument")),
        "{error}"
    );
    assert_eq!(env.recover(&["status", "--json"]).code, 4, "nothing began");
    env.json(
        0,
        &[
            "run",
            "--agent",
            "claude",
            "--attempts",
            "1",
            "--prompt-file",
            &file,
        ],
    );
    assert!(env.sh("cat ../got").stdout.trim().starts_with("1400"));
}

/// Where files went back, and for another iteration, the session is a fresh one, and its prompt begins with that.
#[test]
fn a_rollback_begins_a_fresh_session() {
    let body = "if [ $RECOVER_ATTEMPT = 1 ]; then echo bad$n > state; else echo good > state; fi; ends false done";
    let run = |flags: &[&str]| {
        let env = quick();
        claude(&env, body);
        let flags = [
            &[
                "run",
                "--iterations",
                "2",
                "--on-failure",
                "rollback",
                "--prompt",
                "Fix it.",
            ],
            flags,
        ]
        .concat();
        env.write("state", "good\n");
        env.json(
            0,
            &[
                flags.as_slice(),
                &["--feedback", CHECK, "--", "./claude", "-p"],
            ]
            .concat(),
        );
        env
    };
    let env = run(&[]);
    assert_eq!(sessions(&env), ["none", "none", "none", "none"]);
    let prompt = env.sh("cat ../prompt.2").stdout;
    assert!(
        prompt.starts_with("## Files Were Restored\n\nThe work tree went back to checkpoint ckpt_"),
        "{prompt}"
    );
    assert!(
        prompt.contains("files written: 1, deleted: 0")
            && prompt.contains("\n\nFix it.\n\n## Previous"),
        "{prompt}"
    );
    assert!(
        env.sh("cat ../prompt.3").stdout.starts_with("Fix it."),
        "what was restored is told once"
    );
    let env = run(&["--same-session"]);
    assert_eq!(sessions(&env), ["none", "s-1", "s-1", "s-1"]);
    let env = quick();
    claude(
        &env,
        "[ $n = 1 ] && echo bad > state || echo good > state; ends false done",
    );
    let args = [
        "run",
        "--fresh",
        "--prompt",
        "x",
        "--feedback",
        CHECK,
        "--",
        "./claude",
        "-p",
    ];
    env.json(0, &args);
    assert_eq!(sessions(&env), ["none", "none"]);
}

/// A profile's agent gets the arguments that go on in its session; undoing a rollback restores files, too.
#[test]
fn a_profile_resumes_its_session() {
    let mut env = quick();
    with_bin(&mut env);
    env.script(
        "bin/codex",
        "echo \"$*\" >> ../args; cat >> ../stdin\n\
         echo '{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}'\n\
         [ $RECOVER_ATTEMPT = 1 ] && echo bad > state || echo good > state\n\
         echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":5,\"cached_input_tokens\":0,\"output_tokens\":1}}'",
    );
    env.json(
        0,
        &[
            "run",
            "--agent",
            "codex",
            "--prompt",
            "Fix it.",
            "--feedback",
            CHECK,
        ],
    );
    let args = env.sh("cat ../args").stdout;
    let form = "exec --json --skip-git-repo-check --sandbox workspace-write";
    assert_eq!(args, format!("{form}\n{form} resume t-1 -\n"));
    assert!(env.sh("cat ../stdin").stdout.contains("assert 1 == 2"));
}

/// Whatever writes to the agent's output can name a session: one that could be a flag never gets into its command line.
#[test]
fn a_session_is_no_flag() {
    let mut env = quick();
    with_bin(&mut env);
    env.script(
        "bin/claude",
        "echo \"$*\" >> ../args\n\
         echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"--dangerously-skip-permissions\"}'\n\
         [ $RECOVER_ATTEMPT = 1 ] && echo bad > state || echo good > state\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\",\"session_id\":\"-x\"}'",
    );
    env.json(
        0,
        &[
            "run",
            "--agent",
            "claude",
            "--prompt",
            "Fix it.",
            "--feedback",
            CHECK,
        ],
    );
    let args = env.sh("cat ../args").stdout;
    let form = "-p --output-format stream-json --verbose --permission-mode acceptEdits";
    assert_eq!(args, format!("{form}\n{form}\n"));
}

/// The fallback may be another agent: its session is not the run's.
#[test]
fn the_session_of_the_fallback_is_not_gone_on_with() {
    let mut env = quick();
    with_bin(&mut env);
    let session = |id: &str| {
        format!("echo '{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"{id}\"}}'")
    };
    env.script(
        "bin/claude",
        &format!(
            "echo \"$*\" >> ../args; {}; echo bad > state",
            session("own")
        ),
    );
    env.script("other", &format!("{}; exit 1", session("other")));
    let run = [
        "run",
        "--run",
        "r",
        "--agent",
        "claude",
        "--prompt",
        "Fix it.",
        "--attempts",
        "1",
        "--feedback",
        CHECK,
    ];
    assert_ne!(
        env.recover(&[run.as_slice(), &["--fallback", "./other"]].concat())
            .code,
        0
    );
    env.recover(&["resume", "r", "--same-session", "--strategy", "retry_same"]);
    let args = env.sh("cat ../args").stdout;
    assert!(
        args.lines().count() >= 2 && !args.contains("other"),
        "{args}"
    );
}

/// What a profile's agent prints is shown as text, its records are in the log; `--raw` shows them.
#[test]
fn records_are_shown_as_text_and_kept_in_the_log() {
    let mut env = quick();
    with_bin(&mut env);
    let records = r#"{"type":"system","subtype":"init","session_id":"s"}
{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"I run the tests."},{"type":"tool_use","name":"Bash","input":{"command":"cargo test"}}]},"session_id":"s"}
{"type":"system","subtype":"api_retry","attempt":7,"max_retries":10,"error_status":401,"error":"authentication_failed","session_id":"s"}
{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}
"#;
    env.write("records", records);
    env.script("bin/claude", "cat records");
    let shown = env
        .recover(&["run", "--run", "r", "--agent", "claude", "--prompt", "x"])
        .expect(0)
        .stdout;
    assert!(
        shown.starts_with(
            "I run the tests.\n> Bash: cargo test\n[claude retries, 7 of 10: 401]\n\n ITERATION"
        ),
        "{shown}"
    );
    let log = ".ultraplan/state/recover/runs/r/iteration-1-attempt-1/output.log";
    assert_eq!(env.read(log), records);
    let raw = env
        .recover(&["run", "--raw", "--agent", "claude", "--prompt", "x"])
        .expect(0)
        .stdout;
    assert!(raw.starts_with(records), "{raw}");
    // A command of the user's is a filter in a pipe.
    let own = env
        .recover(&["run", "--agent", "claude", "--", "bin/claude"])
        .expect(0)
        .stdout;
    assert!(own.starts_with(records), "{own}");
}

/// `--attempts` bounds a full context too; without it, the second fresh session that fails the same way and changes nothing
/// is a person's.
#[test]
fn a_full_context_does_not_go_on_for_ever() {
    let full = "ends true 'Prompt is too long'; exit 1";
    let env = quick();
    claude(&env, full);
    let document = env.json(
        7,
        &[
            "run",
            "--attempts",
            "2",
            "--agent",
            "claude",
            "--",
            "./claude",
            "-p",
        ],
    );
    assert_eq!(sessions(&env), ["none", "none"]);
    assert_eq!(document["decision"]["stopped_by"], "global", "{document}");
    let env = quick();
    claude(&env, full);
    let document = env.json(8, &["run", "--agent", "claude", "--", "./claude", "-p"]);
    assert_eq!(sessions(&env), ["none", "none", "none"], "{document}");
    assert!(
        document["decision"]["reason"]
            .as_str()
            .unwrap()
            .contains("changed nothing"),
        "{document}"
    );
    // Work goes on as long as there is any.
    let env = quick();
    claude(
        &env,
        "echo $n > work; [ $n = 6 ] && { ends false done; exit 0; }; ends true 'Prompt is too long'; exit 1",
    );
    env.json(0, &["run", "--agent", "claude", "--", "./claude", "-p"]);
    assert_eq!(sessions(&env).len(), 6);
}

/// An agent that ends with 0 and printed its API's error last failed with it, whatever it changed, unless its checks pass;
/// one that quotes such an error is judged by its checks.
#[test]
fn an_error_of_the_api_is_seen_behind_a_success() {
    let banner = "echo 'Aider v0.86.2'; echo 'Model: gpt-4o with diff edit format'; echo; ";
    let error = "echo 'litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API'; \
                 echo 'key provided: sk-x. You can find your key in your account.'; ";
    let run_with = |body: &str, code: i32, flags: &[&str]| {
        let env = quick();
        env.script("aider", body);
        let (begin, end) = (["run", "--prompt", "x"], ["--", "./aider", "--yes-always"]);
        env.json(code, &[begin.as_slice(), flags, end.as_slice()].concat())
    };
    let run = |body: &str, code: i32| run_with(body, code, &[]);
    let document = run(&format!("{banner}{error}"), 8);
    let attempts = document["iterations"][0]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "{document}");
    let failure = &attempts[0]["failure"];
    assert_eq!(
        (&failure["type"], &failure["cause"]),
        (&json!("agent_error"), &json!("AUTH_FAILED")),
        "{document}"
    );
    let changing = format!("{banner}{error}touch work");
    run(&changing, 8);
    run_with(&changing, 0, &["--feedback", "test=true"]);
    run_with(&changing, 8, &["--feedback", "test=false"]);
    // What it keeps for itself is no work.
    let notes = "echo 'Added .aider* to .gitignore'; echo '.aider*' >> .gitignore; echo x > .aider.notes.md; echo; ";
    run(&format!("{notes}{error}"), 8);
    run(
        &format!("{banner}echo 'The log says \"API Error: 401\"; nothing is to be done.'"),
        0,
    );
}

/// An attempt that changed nothing and was not permitted what it wanted is not repeated: the flag that it lacks is named.
#[test]
fn a_missing_permission_is_a_persons() {
    let denied = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"I could not edit.","permission_denials":[{"tool_name":"Write","tool_use_id":"t","tool_input":{}}]}"#;
    let mut env = quick();
    with_bin(&mut env);
    env.write("denied", denied);
    env.script("bin/claude", "cat denied");
    let failure = |document: &Value| {
        let attempts = document["iterations"][0]["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "{document}");
        assert_eq!(
            attempts[0]["failure"]["cause"], "PERMISSION_DENIED",
            "{document}"
        );
        attempts[0]["failure"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let own = env.json(
        8,
        &[
            "run",
            "--run",
            "a",
            "--feedback",
            "test=true",
            "--",
            "claude",
            "-p",
            "x",
        ],
    );
    let all = "--dangerously-skip-permissions";
    assert_eq!(
        failure(&own),
        format!(
            "Not permitted: Write; --permission-mode acceptEdits permits to edit, {all} everything"
        )
    );
    let profile = env.json(
        8,
        &["run", "--run", "b", "--agent", "claude", "--prompt", "x"],
    );
    assert_eq!(
        failure(&profile),
        format!("Not permitted: Write; {all} (recover run --yolo) permits everything")
    );
    env.script("bin/claude", "cat denied; touch work");
    env.recover(&["run", "--run", "c", "--agent", "claude", "--prompt", "x"])
        .expect(0);
}

/// Of an agent's records the next prompt has what it said last and what its last tool said, and no record.
#[test]
fn a_prompt_quotes_no_records() {
    let env = quick();
    env.write(
        "records",
        r#"{"type":"system","subtype":"init","session_id":"s","tools":["Bash","Edit"]}
{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"I look at the parser."}]},"session_id":"s"}
{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"exit 101: no test target named parse"}]},"session_id":"s"}
"#,
    );
    claude(
        &env,
        "if [ $n = 1 ]; then cat records; sleep 60; fi; ends false done",
    );
    env.json(
        0,
        &[
            "run",
            "--timeout",
            "1s",
            "--prompt",
            "Fix it.",
            "--",
            "./claude",
            "-p",
        ],
    );
    let prompt = env.sh("cat ../prompt.2").stdout;
    assert!(
        prompt.contains("Last words: I look at the parser."),
        "{prompt}"
    );
    assert!(
        prompt.contains("Last tool error: exit 101: no test target named parse"),
        "{prompt}"
    );
    assert!(!prompt.contains("\"type\""), "{prompt}");
}

/// A reset without a zone is in the local time of the command: its own, else ours; elsewhere it may be UTC, too.
#[test]
fn a_reset_without_a_zone_is_local_time() {
    let mut env = quick();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    env.write(
        "log",
        "You've hit your usage limit. Try again at 2:05 PM.\n",
    );
    let reset = |env: &TestEnv, command: &str| {
        let args = ["classify", "--exit-code", "1", "--log", "log", "--command"];
        let document = env.json(0, &[args.as_slice(), &[command]].concat());
        assert_eq!(document["cause"], "RATE_LIMITED", "{document}");
        document["retry_after"].clone()
    };
    let (utc, berlin) = ("2026-03-01T14:05:00.000Z", "2026-03-01T13:05:00.000Z");
    assert_eq!(reset(&env, "codex exec x"), utc);
    assert_eq!(reset(&env, "TZ=Europe/Berlin codex exec x"), berlin);
    for zone in [
        "Europe/Berlin",
        ":Europe/Berlin",
        "CET-1CEST,M3.5.0,M10.5.0/3",
    ] {
        env.set("TZ", zone);
        assert_eq!(reset(&env, "codex exec x"), berlin, "{zone}");
    }
    env.set("TZ", "America/New_York");
    assert_eq!(reset(&env, "docker exec box codex exec x"), utc);
    assert_eq!(reset(&env, "codex exec x"), "2026-03-01T19:05:00.000Z");
    // What a run starts knows the same.
    let script = "cat log; exit 1";
    env.script("agent", script);
    for (command, zone) in [("env TZ=Europe/Berlin ./agent", berlin), ("./agent", utc)] {
        env.set("TZ", "UTC");
        // The other one's limit holds this run as well.
        env.json(0, &["limits", "--clear"]);
        let args = ["run", "--no-wait", "--agent", "codex", "--", "sh", "-c"];
        let document = env.json(6, &[args.as_slice(), &[command]].concat());
        let failure = &document["iterations"][0]["attempts"][0]["failure"];
        assert_eq!(failure["retry_after"], zone, "{document}");
    }
}

/// A limit that is an agent's last paragraph ends the attempt, whatever changed and whatever the exit code, unless its checks
/// pass; words of the work, and what records say otherwise, are none.
#[test]
fn a_limit_in_text_ends_an_attempt_unless_its_checks_pass() {
    let limit = "You've hit your usage limit. Try again at 2:05 PM.";
    let said =
        format!("echo 'I began.'; echo; echo \"{limit}\"; echo; echo https://x.example/usage; ");
    let run = |body: &str, code: i32, args: &[&str]| {
        let mut env = quick();
        env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
        env.script("agent", body);
        let end = args.contains(&"--").then_some(&[][..]);
        let end = end.unwrap_or(&["--", "./agent"]);
        env.json(code, &[["run", "--no-wait"].as_slice(), args, end].concat())
    };
    let limited = |body: &str, args: &[&str]| {
        let document = run(body, 6, args);
        let failure = &document["iterations"][0]["attempts"][0]["failure"];
        assert_eq!(
            (&failure["cause"], &failure["retry_after"]),
            (&json!("RATE_LIMITED"), &json!("2026-03-01T14:05:00.000Z")),
            "{document}"
        );
    };
    let work = format!("echo x > work; {said}");
    limited(&work, &[]);
    limited(&work, &["--", "sh", "-c", "./agent | tee ../log"]);
    let failing = format!("{work} echo 'npm error code 1' >&2; exit 1");
    limited(&failing, &[]);
    limited(&failing, &["--feedback", "test=false"]);
    limited(&said, &["--feedback", "test=true"]);
    let on_stderr = format!("exec >&2; {work} exit 1");
    limited(&on_stderr, &["--", "sh", "-c", "./agent || true"]);
    for body in [&work, &failing] {
        let document = run(body, 0, &["--feedback", "test=true"]);
        let attempt = &document["iterations"][0]["attempts"][0];
        assert_eq!(attempt["failure"], Value::Null, "{document}");
    }
    run(
        &format!("{work} echo; echo 'That is what the banner says.'"),
        0,
        &[],
    );
    let record = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"You have hit your usage limit."}"#;
    run(
        &format!("echo x > work; echo '{record}'"),
        0,
        &["--agent", "claude"],
    );
}

/// The same words at the end of two attempts that changed files are of the work.
#[test]
fn a_limit_that_is_repeated_after_work_is_none() {
    let run = |body: &str| {
        let mut env = quick();
        env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
        let says = "echo 'You have exhausted your daily quota on this model.'";
        let number = "echo x >> ../begun; n=$(wc -l < ../begun)";
        env.script(
            "agent",
            &format!("{number}; [ $n -lt 9 ] || exit 0; {body}; {says}"),
        );
        env.json(0, &["run", "--", "./agent"]);
        env.read("../begun").lines().count()
    };
    assert_eq!(run("echo $n > work"), 2);
    // One that was refused did no work.
    assert_eq!(run("[ $n = 2 ] || echo $n > work"), 4);
}

/// A limit with which an attempt ended that passed delays the next one.
#[test]
fn a_limit_behind_a_pass_delays_the_next_attempt() {
    let mut env = quick();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    let limit =
        "[ $RECOVER_ITERATION = 2 ] || echo \"You've hit your usage limit. Try again at 2:05 PM.\"";
    env.script("agent", &format!("echo $RECOVER_ITERATION > work; {limit}"));
    let args = [
        "run",
        "--iterations",
        "2",
        "--feedback",
        "test=true",
        "--",
        "./agent",
    ];
    let document = env.json(0, &args);
    let started =
        |iteration: usize| &document["iterations"][iteration]["attempts"][0]["started_at"];
    assert_eq!(started(0), "2026-03-01T12:00:00.000Z", "{document}");
    let next = started(1).as_str().expect("a time");
    assert!(next.starts_with("2026-03-01T14:06:"), "{document}");
}

/// It is recorded: nobody begins the next iteration before the reset, and everything that is shown of the run names it.
#[test]
fn a_limit_behind_a_pass_is_recorded() {
    let mut env = quick();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    let limit = "You've hit your usage limit. Try again at 2:05 PM.";
    env.script(
        "agent",
        &format!(
            "echo x | tee -a work >> ../starts; [ -e ../over ] || {{ echo \"{limit}\"; exit 1; }}"
        ),
    );
    let check = ["--feedback", "test=true", "--", "./agent"];
    let run = ["run", "--no-wait", "--iterations", "3"];
    let ended = env.json(6, &[&run[..], &check].concat());
    assert_eq!(ended["outcome"], "parked", "{ended:#}");
    let attempt = &ended["iterations"][0]["attempts"][0];
    assert_eq!(attempt["outcome"], "passed", "{ended:#}");
    let starts = || env.read("../starts").lines().count();
    let status = env.json(6, &["retry-status", "--check"]);
    assert_eq!(
        (&status["retry_after"], &status["parked"]["reason"]),
        (&ended["decision"]["not_before"], &json!("usage_limit")),
        "{status:#}"
    );
    assert_eq!(status["error_count"], 0, "{status:#}");
    for args in [&["status", "-v"][..], &["report"], &["log"]] {
        let shown = env.recover(args).expect(0).stdout;
        assert!(shown.contains("hit your usage limit"), "{args:?}: {shown}");
    }
    // Taking it up waits for the same, and so does a bounded wait that would end too early.
    env.recover(&["resume"]).expect(6);
    env.recover(&["resume", "--wait=5m"]).expect(6);
    assert_eq!(starts(), 1);
    // After the last iteration nothing is waited for.
    let last = ["run", "--run", "last", "--no-wait", "--iterations", "1"];
    let ended = env.json(0, &[&last[..], &check].concat());
    assert_eq!(ended["outcome"], "complete", "{ended:#}");
    let status = env.json(0, &["status", "--run", "last"]);
    assert_eq!(status["retry"]["parked"], Value::Null, "{status:#}");
    env.write("../over", "");
    env.set("RECOVER_TEST_NOW", "2026-03-01T14:30:00Z");
    let all = env.json(0, &["runs"])["runs"].clone();
    let waiting = all[1]["run_id"].as_str().expect("a name");
    env.json(0, &["resume", waiting]);
    assert_eq!(env.read("../starts").lines().count(), 4);
}

/// Who looks while it waits, and after it was killed, sees that it waits, and whether anybody does.
#[test]
fn a_wait_behind_a_pass_is_seen() {
    let env = quick();
    env.script(
        "agent",
        "echo x >> work; echo \"You've hit your usage limit. Try again at $(date -d '2 hours' '+%-I:%M %p').\"; exit 1",
    );
    let args = [
        "run",
        "--run",
        "r",
        "--iterations",
        "2",
        "--feedback",
        "test=true",
    ];
    let waiting = env.start(&[&args[..], &["--", "./agent"]].concat());
    let status = || env.recover(&["status"]).stdout;
    until("it waits", || {
        status().contains("waiting for a usage limit")
    });
    let retry = env.recover(&["retry-status", "--check"]).expect(6).stdout;
    assert!(
        retry.starts_with("Wait: waiting for a usage limit") && !retry.contains("not running"),
        "{retry}"
    );
    kill("-KILL", waiting.id());
    ended(waiting);
    let shown = status();
    assert!(
        shown.contains("Note: recover is not running: recover resume --wait continues it"),
        "{shown}"
    );
    let retry = env.recover(&["retry-status", "--check"]).expect(6).stdout;
    assert!(retry.contains("recover is not running"), "{retry}");
    env.recover(&["resume"]).expect(6);
    assert_eq!(env.read("work"), "x\n");
}
