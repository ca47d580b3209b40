//! What is not the agent's doing is waited for and uses up no attempt: outages, quotas, the network.

use serde_json::{Value, json};

use crate::env::TestEnv;

const EVENING: &str = "2030-03-01T22:00:00.000Z";

/// What an agent begins with: `now` is the time of the run's clock, and `n` counts its calls.
const HEAD: &str = r#"
n=$(($(cat ../calls 2>/dev/null || echo 0) + 1)); echo $n > ../calls
echo "${RECOVER_AGENT_SESSION-none}" >> ../sessions; cat > ../prompt.$n
now=$(grep -o '"at":"[^"]*"' .ultraplan/state/events.jsonl | tail -1 | cut -d'"' -f4)
"#;

/// Claude Code, with `starts`, `answers`, `ends IS_ERROR STATUS TEXT`.
const CLAUDE: &str = r#"
session=${RECOVER_AGENT_SESSION:-s-$n}
starts() { echo '{"type":"system","subtype":"init","session_id":"'$session'"}'; }
answers() { echo '{"type":"assistant","session_id":"'$session'","message":{"id":"m'$n'","content":[{"type":"text","text":"Working."}],"usage":{"input_tokens":100,"output_tokens":10}}}'; }
ends() { printf '{"type":"result","subtype":"success","is_error":%s,"api_error_status":%s,"session_id":"%s","total_cost_usd":0.01,"result":"%s"}\n' "$1" "$2" "$session" "$3"; [ "$1" = false ] || exit 1; }
done_() { echo done > work.txt; ends false null done; exit 0; }
starts
"#;

const CODEX: &str = r#"
echo '{"type":"thread.started","thread_id":"t-'$n'"}'; echo '{"type":"turn.started"}'
done_() { echo done > work.txt; echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}'; echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}'; exit 0; }
"#;

const GEMINI: &str = r#"
echo '{"type":"init","session_id":"g-'$n'"}'
done_() { echo done > work.txt; echo '{"type":"message","role":"assistant","content":"Done."}'; echo '{"type":"result","status":"success"}'; exit 0; }
"#;

fn evening(name: &str, body: &str) -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", EVENING);
    let kind = match name {
        "claude" => CLAUDE,
        "codex" => CODEX,
        _ => GEMINI,
    };
    env.script(name, &format!("{HEAD}{kind}{body}"));
    env
}

fn args<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", "--run", "r", "--agent", name, "--prompt", "Do it."];
    let command = match name {
        "claude" => ["--", "./claude", "-p"],
        "codex" => ["--", "./codex", "exec"],
        _ => ["--", "./gemini", "-p"],
    };
    [&run[..], more, &command].concat()
}

fn sessions(env: &TestEnv) -> Vec<String> {
    let text = env.sh("cat ../sessions").stdout;
    text.lines().map(str::to_owned).collect()
}

/// The ends of attempts in the ledger.
fn ends(env: &TestEnv) -> Vec<Value> {
    let ledger = env.read_state("events.jsonl");
    let event = |line: &str| -> Value { serde_json::from_str(line).expect("JSON") };
    ledger
        .lines()
        .map(event)
        .filter(|event| event["type"] == "attempt_ended")
        .map(|mut event| {
            let at = event["at"].take();
            let mut end = event["payload"].take();
            end["at"] = at;
            end
        })
        .collect()
}

fn attempts(document: &Value) -> &Vec<Value> {
    document["iterations"][0]["attempts"]
        .as_array()
        .expect("attempts")
}

fn overloaded() -> &'static str {
    "ends true 529 'API Error: 529 Overloaded'"
}

/// A night in which the provider is away for `hours`: how many probes there were.
fn night(name: &str, refuses: &str, hours: u32) -> usize {
    let healed = if hours == 1 {
        "2030-03-01T23:00"
    } else {
        "2030-03-02T06:00"
    };
    let body = format!("[ \"$now\" \\< {healed} ] || done_\n{refuses}\nexit 1");
    let env = evening(name, &body);
    let run = env.json(0, &args(name, &["--attempts", "1"]));
    assert_eq!(env.read("work.txt"), "done\n");
    assert_eq!(attempts(&run).len(), 1, "{name}: {run:#}");
    assert_eq!(
        (&attempts(&run)[0]["number"], &attempts(&run)[0]["outcome"]),
        (&json!(1), &json!("passed"))
    );
    let ends = ends(&env);
    let (healed, away) = ends.split_last().expect("attempts");
    for end in away {
        assert_eq!(
            (&end["charged"], &end["attempt"]),
            (&json!(false), &json!(1)),
            "{name}: {end:#}"
        );
    }
    assert_eq!(healed["attempt"], 1);
    let status = env.json(0, &["retry-status", "--run", "r"]);
    assert_eq!(status["error_count"], 0, "{status:#}");
    for budget in status["budgets"].as_array().expect("budgets") {
        assert_eq!(budget["used"], 0, "{name}: {status:#}");
    }
    ends.len() - 1
}

/// S8 (parking): whatever is away, for an hour or a night: no attempt is charged, and probes come less and less often.
#[test]
fn a_night_costs_no_attempt() {
    let codex = r#"echo '{"type":"error","message":"Reconnecting... 5/5"}'
m='exceeded retry limit, last status: 503 Service Unavailable'; echo '{"type":"turn.failed","error":{"message":"'$m'"}}'"#;
    let quota = r#"echo '{"type":"result","status":"error","error":{"type":"Error","message":"Quota exceeded for GenerateRequestsPerDay: 250 requests per day"}}'"#;
    let network = "ends true null 'API Error: Unable to connect to API (ENOTFOUND)'";
    for (name, refuses) in [
        ("codex", codex),
        ("claude", overloaded()),
        ("gemini", quota),
        ("claude", network),
    ] {
        let (hour, night) = (night(name, refuses, 1), night(name, refuses, 8));
        println!("{name:<8} away for 1 h: {hour} probes, for 8 h: {night} probes; 0 attempts used");
        assert!((8..=9).contains(&hour), "{name}: {hour}");
        assert!((34..=40).contains(&night), "{name}: {night}");
    }
}

/// Cost is counted for each of the attempts that were cut off, also where one takes another's place.
#[test]
fn what_probes_cost_counts() {
    let body = format!("[ $n -gt 3 ] && done_\nanswers\n{}", overloaded());
    let env = evening("claude", &body);
    let run = env.json(0, &args("claude", &["--fresh"]));
    assert_eq!(attempts(&run).len(), 1);
    assert_eq!(run["run"]["cost_usd"], 0.04, "{run:#}");
    assert_eq!(attempts(&run)[0]["cost_usd"], 0.04);
}

/// `status` says what is waited for since when, and when the next probe is.
#[test]
fn a_wait_is_told() {
    let env = evening(
        "claude",
        &format!("[ $n -gt 2 ] && done_\n{}", overloaded()),
    );
    let run = env.json(6, &args("claude", &["--no-wait"]));
    assert_eq!(
        (&run["outcome"], &run["run"]["status"]),
        (&json!("parked"), &json!("parked"))
    );
    assert_eq!(attempts(&run)[0]["charged"], false, "{run:#}");
    let parked = json!({
        "reason": "outage", "what": "529", "since": EVENING, "until": "2030-03-01T22:00:30.000Z", "probes": 0,
        "text": "waiting for the provider (529); no attempt is charged",
    });
    let status = env.json(0, &["status"]);
    assert_eq!(status["retry"]["parked"], parked, "{status:#}");
    let text = env.recover(&["status"]).expect(0).stdout;
    let told = "waiting for the provider since 22:00 (529), next probe 22:00";
    assert!(text.contains(told), "{text}");
    // The next one finds the same: it is a probe, and the wait is as old as before.
    let mut env = env;
    env.set("RECOVER_TEST_NOW", "2030-03-01T22:05:00.000Z");
    env.script(
        "claude",
        &format!(
            "{HEAD}{CLAUDE}{}",
            "ends true null 'API Error: Unable to connect to API (ECONNRESET)'"
        ),
    );
    let waits = env.recover(&["resume", "--wait=10s"]).expect(9);
    assert!(waits.stderr.contains("gave up waiting"), "{}", waits.stderr);
    let status = env.json(0, &["status"]);
    let parked = &status["retry"]["parked"];
    assert_eq!(
        (
            &parked["reason"],
            &parked["what"],
            &parked["probes"],
            &parked["since"]
        ),
        (
            &json!("network"),
            &json!("ECONNRESET"),
            &json!(1),
            &json!(EVENING)
        ),
        "{status:#}"
    );
    let text = env.recover(&["retry-status"]).expect(0).stdout;
    assert!(
        text.contains("waiting for the network since 22:00 (ECONNRESET), next probe 22:06"),
        "{text}"
    );
}

/// A limit whose reset is named is waited for until then; where that was wrong, probes go on.
#[test]
fn a_quota_is_waited_for_until_its_reset_and_beyond() {
    // 01:00, and it holds until 02:00.
    let limited = "ends true null 'Claude AI usage limit reached|1898643600'";
    let body = format!("[ \"$now\" \\< 2030-03-02T02:00 ] || done_\n{limited}");
    let env = evening("claude", &body);
    let run = env.json(0, &args("claude", &["--attempts", "1"]));
    assert_eq!(attempts(&run).len(), 1, "{run:#}");
    let ends = ends(&env);
    let at = |number: usize| ends[number]["at"].as_str().expect("a time").to_owned();
    assert!(
        at(1).as_str() > "2030-03-02T01:01:00" && at(1).as_str() < "2030-03-02T01:02:01",
        "{}",
        at(1)
    );
    assert!(
        at(2).as_str() < "2030-03-02T01:02:31",
        "half a minute later: {}",
        at(2)
    );
    assert!(
        ends[..ends.len() - 1]
            .iter()
            .all(|end| end["charged"] == false)
    );
    assert_eq!(ends[0]["failure"]["detail"], "usage_limit");
}

/// `--wait=DUR` is the longest wait in all: 6 at once where the reset is known to come later, else 9 when it is used up.
#[test]
fn a_wait_may_be_bounded() {
    let env = evening("claude", overloaded());
    let ran = env.recover(&args("claude", &["--wait=10m"])).expect(9);
    assert!(ran.stderr.contains("gave up waiting"), "{}", ran.stderr);
    // 30 s, 1, 2 and 5 minutes are over after eight and a half.
    let made = ends(&env);
    assert_eq!(made.len(), 5);
    let status = env.json(0, &["status"]);
    assert_eq!(status["run"]["status"], "paused", "{status:#}");

    let limited = "ends true null 'Claude AI usage limit reached|1898643600'";
    let mut env = evening("claude", limited);
    let run = env.json(6, &args("claude", &["--wait=1h"]));
    assert_eq!(run["outcome"], "parked");
    assert_eq!(ends(&env).len(), 1);
    let began = env.json(0, &["status"])["retry"]["parked"]["since"].clone();
    assert_eq!(began, EVENING);
    env.json(6, &["resume", "--wait=1h"]);
    env.set("RECOVER_WAIT", "2h");
    env.json(6, &["resume"]);
    assert_eq!(ends(&env).len(), 1, "nothing was tried");
    // Long enough for the reset, and for the probe after it that finds the limit still there.
    env.set("RECOVER_WAIT", "");
    env.recover(&["resume", "--wait=185m"]).expect(9);
    assert!(ends(&env).len() > 1);
    env.json(
        6,
        &[
            "run",
            "--run",
            "x",
            "--wait=9h",
            "--no-wait",
            "--agent",
            "claude",
            "--",
            "./claude",
        ],
    );
}

/// S8 (parking): `max_park` bounds the sum of an iteration's waits; then a person is needed, whose word is a plain `resume`.
#[test]
fn a_run_does_not_wait_for_ever() {
    let body = format!("[ -e ../healed ] && done_\n{}", overloaded());
    let mut env = evening("claude", &body);
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nmax_park = '1h'\n[weather]\nprobes = ['10m']\n",
    );
    let run = env.json(8, &args("claude", &[]));
    assert_eq!(run["outcome"], "escalated", "{run:#}");
    assert_eq!(run["decision"]["stopped_by"], "waiting");
    let made = ends(&env);
    assert!((6..=8).contains(&made.len()), "{}", made.len());
    let last = made.last().expect("one")["at"]
        .as_str()
        .expect("a time")
        .to_owned();
    assert_eq!(
        last, "2030-03-01T23:00:00.000Z",
        "the last probe is at the end of it"
    );
    assert!(
        made.iter()
            .all(|end| end["charged"] == false && end["attempt"] == 1)
    );
    let text = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(text.contains("Next: recover resume --run r\n"), "{text}");
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(
        text.contains("; max_park): once that is over, resume goes on); 1 iteration"),
        "{text}"
    );
    // In the morning it is still away, and waited for anew.
    env.set("RECOVER_TEST_NOW", "2030-03-02T07:00:00.000Z");
    env.recover(&["resume", "--wait=5m"]).expect(9);
    env.sh("touch ../healed");
    env.set("RECOVER_TEST_NOW", "2030-03-02T08:00:00.000Z");
    let run = env.json(0, &["resume"]);
    assert_eq!(run["outcome"], "complete", "{run:#}");
    assert_eq!(attempts(&run).len(), 1);
}

/// Once the time of the next probe has passed, nothing is said to be ahead, and the probe has the attempt's own limit.
#[test]
fn a_wait_that_is_over_is_due() {
    let body = format!("[ -e ../healed ] && done_\n{}", overloaded());
    let mut env = evening("claude", &body);
    env.json(6, &args("claude", &["--no-wait"]));
    env.set("RECOVER_TEST_NOW", "2030-03-02T07:00:00.000Z");
    for args in [&["status"][..], &[]] {
        let text = env.recover(args).expect(0).stdout;
        let told = "Run r: waiting for the provider since ";
        assert!(
            text.contains(told) && text.contains(", due since "),
            "{text}"
        );
    }
    env.sh("touch ../healed");
    let told = env.recover(&["resume"]).expect(0).stderr;
    assert!(
        told.contains("Iteration 1 of 1, attempt 1 of 3\n"),
        "{told}"
    );
}

/// Only the agent's provider is weather: what a command that is no agent, or a check, cannot reach is an error.
#[test]
fn a_command_and_a_check_are_not_waited_for() {
    let refused = "echo 'Error: connect ECONNREFUSED 127.0.0.1:5432' >&2; exit 1";
    let busy = "echo 'HTTP 503 Service Unavailable: upstream is overloaded' >&2; exit 1";
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", EVENING);
    for (name, body) in [("migrate", refused), ("deploy", busy)] {
        env.script(name, body);
        let command = format!("./{name}");
        for agent in [&[][..], &["--agent", "none"]] {
            let args = [&["run", "--attempts", "2"], agent, &["--", &command]].concat();
            let run = env.json(7, &args);
            assert_eq!(attempts(&run).len(), 2, "{run:#}");
        }
    }
    assert!(ends(&env).iter().all(|end| end["charged"] == true));

    let env = evening("claude", "done_");
    env.script("check", refused);
    let run = env.recover(&args(
        "claude",
        &["--attempts", "2", "--feedback", "db=./check", "--json"],
    ));
    let run = run.json();
    assert_eq!(attempts(&run).len(), 2, "{run:#}");
    assert!(ends(&env).iter().all(|end| end["charged"] == true));
}

/// Where the model gave an answer the session goes on; one without an answer has nothing to go on with.
#[test]
fn a_session_with_an_answer_goes_on() {
    let body = format!(
        "case $n in 1) {0} ;; 2) answers; {0} ;; 3) {0} ;; *) done_ ;; esac",
        overloaded()
    );
    let env = evening("claude", &body);
    env.json(0, &args("claude", &[]));
    assert_eq!(sessions(&env), ["none", "none", "s-2", "s-2"]);
}

/// A fresh session is told of the failure that it is to mend, also where another one was cut off before it said a word.
#[test]
fn what_failed_is_not_forgotten_over_an_outage() {
    let body = format!(
        "case $n in 2) touch bad; answers; ends false null done ;; 3) {} ;; *) done_ ;; esac",
        overloaded()
    );
    let env = evening("claude", &body);
    let check = "test=test ! -e bad || { echo 'FAILED: assert 1 == 2'; exit 1; }";
    let more = [
        "--iterations",
        "2",
        "--on-failure",
        "rollback",
        "--feedback",
        check,
    ];
    env.json(0, &args("claude", &more));
    assert_eq!(sessions(&env), ["none", "none", "none", "none"]);
    let prompt = env.sh("cat ../prompt.4").stdout;
    assert!(
        prompt.contains("assert 1 == 2") && prompt.contains("You were interrupted"),
        "{prompt}"
    );
}

/// Who is cut off in the middle of its work again and again may be the reason: from the fourth time on it is an attempt.
#[test]
fn the_fourth_time_after_an_answer_is_charged() {
    let body = format!("[ $n -gt 5 ] && done_\nanswers\n{}", overloaded());
    let env = evening("claude", &body);
    let run = env.json(0, &args("claude", &[]));
    let charged: Vec<bool> = ends(&env)
        .iter()
        .map(|end| end["charged"] == true)
        .collect();
    assert_eq!(charged, [false, false, false, true, true, false]);
    let numbers: Vec<&Value> = attempts(&run)
        .iter()
        .map(|attempt| &attempt["number"])
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
    // Without an answer it never is.
    let env = evening(
        "claude",
        &format!("[ $n -gt 9 ] && done_\n{}", overloaded()),
    );
    assert_eq!(
        attempts(&env.json(0, &args("claude", &["--attempts", "1"]))).len(),
        1
    );
}

/// The same error of the service twice in a session: a fresh one is tried, and the work goes on in the one that gets through.
#[test]
fn a_session_that_is_broken_is_left() {
    let broken = "ends true 500 'API Error: 500 Internal server error'";
    let body = format!("[ $n = 1 ] && answers\n[ $session = s-1 ] && {broken}\ndone_");
    let env = evening("claude", &body);
    env.json(0, &args("claude", &[]));
    assert_eq!(sessions(&env), ["none", "s-1", "none"]);
    // Where the fresh one does not get through either, the service is away, and the session that has work goes on.
    let body = format!("[ $n = 1 ] && answers\n[ $n -gt 3 ] && done_\n{broken}");
    let env = evening("claude", &body);
    env.json(0, &args("claude", &[]));
    assert_eq!(sessions(&env), ["none", "s-1", "none", "s-1"]);
    // Where the fresh one gets through and ends in the same way, it is the work: an attempt.
    let body = format!("[ $n = 2 ] || answers\n[ $n -gt 3 ] && done_\n{broken}");
    let env = evening("claude", &body);
    let run = env.json(0, &args("claude", &[]));
    let charged: Vec<bool> = ends(&env)
        .iter()
        .map(|end| end["charged"] == true)
        .collect();
    assert_eq!(charged, [false, false, true, false], "{run:#}");
    assert_eq!(attempts(&run)[0]["failure"]["detail"], "service_error");
}

/// An agent that does not know its session any more begins a fresh one, once for each attempt.
#[test]
fn a_lost_session_is_begun_afresh() {
    let gone = "echo 'No conversation found with session ID: s-1' >&2; exit 1";
    let body = format!(
        "case $n in 1) answers; {} ;; 2) {gone} ;; *) done_ ;; esac",
        overloaded()
    );
    let env = evening("claude", &body);
    env.json(0, &args("claude", &["--attempts", "1"]));
    assert_eq!(sessions(&env), ["none", "s-1", "none"]);
    assert!(ends(&env).iter().all(|end| end["charged"] == false));
}

/// The times of the probes are configured.
#[test]
fn probes_are_configured() {
    let env = evening(
        "claude",
        &format!("[ $n -gt 3 ] && done_\n{}", overloaded()),
    );
    env.write(
        ".ultraplan/recover.toml",
        "[weather]\nprobes = ['5s', '1m', '1m']\n",
    );
    env.json(0, &args("claude", &[]));
    let times: Vec<String> = ends(&env)
        .iter()
        .map(|end| end["at"].as_str().expect("a time")[11..16].to_owned())
        .collect();
    assert_eq!(times[..3], ["22:00", "22:00", "22:01"]);
    let config = env.json(0, &["config"]);
    assert!(config.to_string().contains("\"1m\",\"1m\""), "{config:#}");
    for wrong in ["[]", "['0s']", "'30s'", "['soon']"] {
        env.write(
            ".ultraplan/recover.toml",
            format!("[weather]\nprobes = {wrong}\n"),
        );
        let refused = env.error(2, &["config"]);
        let message = refused["message"].as_str().expect("a message");
        assert!(
            message.contains("a list of at least one duration"),
            "{message}"
        );
    }
}

/// A service that agents log in at may be down as well; credentials that it refuses are a person's.
#[test]
fn a_login_service_that_is_down_is_waited_for() {
    for (said, code) in [
        ("Failed to refresh OAuth token: 503 Service Unavailable", 6),
        ("Login failed: getaddrinfo ENOTFOUND auth.example.com", 6),
        ("OAuth token has expired", 8),
    ] {
        let env = evening("claude", &format!("ends true null '{said}'"));
        let run = env.json(code, &args("claude", &["--no-wait"]));
        let parked = &env.json(0, &["status"])["retry"]["parked"];
        if code == 6 {
            assert_eq!(parked["reason"], "login", "{said}: {run:#}");
        } else {
            assert_eq!(run["outcome"], "escalated", "{said}: {run:#}");
        }
    }
}

/// The log of an attempt that was cut off is there beside that of the probe that took its place.
#[test]
fn the_log_of_work_that_was_cut_off_stays() {
    let body = format!("[ $n -gt 2 ] && done_\nanswers\n{}", overloaded());
    let env = evening("claude", &body);
    let run = env.json(0, &args("claude", &[]));
    let log = attempts(&run)[0]["log_path"]
        .as_str()
        .expect("a log")
        .to_owned();
    for (name, text) in [
        ("output-cut-off-1.log", "Working."),
        ("output-cut-off-2.log", "529"),
        ("output.log", "done"),
    ] {
        let path = log.replace("output.log", name);
        let found = std::fs::read_to_string(&path).expect("a log");
        assert!(found.contains(text), "{name}: {found}");
    }
}

/// The report has one line for a wait, however many probes it took.
#[test]
fn a_wait_is_one_moment_of_the_report() {
    let env = evening(
        "claude",
        &format!("[ $n -gt 4 ] && done_\n{}", overloaded()),
    );
    env.json(0, &args("claude", &[]));
    let report = &env.json(0, &["report", "--format", "json"])["report"];
    let waits = report["timeline"].as_array().expect("moments").iter();
    let waits: Vec<&Value> = waits.filter(|moment| moment["kind"] == "park").collect();
    assert_eq!(waits.len(), 1, "{report:#}");
    assert!(
        waits[0]["title"]
            .as_str()
            .expect("a title")
            .contains("22:08:30"),
        "{waits:#?}"
    );
}
