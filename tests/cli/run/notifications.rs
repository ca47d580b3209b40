//! Notifying a person who is away: what is started, what it reads, and what cannot start it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::run::attempts::quick;
use crate::run::supervision::until;

/// Writes down what it got: the event, then the document and the line.
const KEEP: &str = "cat > ../$RECOVER_EVENT.json; printf '%s' \"$RECOVER_SUMMARY\" > ../$RECOVER_EVENT.txt; \
                    echo $RECOVER_EVENT $RECOVER_RUN_ID >> ../events";
const CHECK: &str =
    "test=! grep -q broken base || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";

/// Writes the user's own configuration.
fn own(env: &TestEnv, text: &str) {
    let path = env.root().join("home/.config/recover/config.toml");
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("the user's file");
}

fn toml(command: &str) -> String {
    format!("[notify]\ncommand = '''{command}'''\n")
}

/// The events that somebody was notified of, once there are so many, and not one more a while later.
fn events(env: &TestEnv, count: usize) -> Vec<String> {
    let read = || fs::read_to_string(env.root().join("events")).unwrap_or_default();
    until("notifications", || read().lines().count() >= count);
    thread::sleep(Duration::from_millis(300));
    let mut all: Vec<String> = read().lines().map(str::to_owned).collect();
    all.sort();
    all
}

/// The document that an event came with; it is as the schema says.
fn document(env: &TestEnv, event: &str) -> Value {
    let stdout = fs::read_to_string(env.root().join(format!("{event}.json"))).expect("a document");
    Ran {
        code: 0,
        stdout,
        stderr: String::new(),
    }
    .json()
}

fn log(env: &TestEnv, run: &str) -> String {
    let found = env
        .sh(&format!(
            "find .ultraplan/state -path '*{run}*' -name notify.log"
        ))
        .stdout;
    env.read(found.trim())
}

#[test]
fn the_end_of_a_run_is_told_with_its_document_and_a_line() {
    let mut env = quick();
    own(&env, &toml(KEEP));
    env.set("MY_API_TOKEN", "hunter22-of-the-night");
    env.recover(&[
        "run",
        "--run",
        "r",
        "--",
        "sh",
        "-c",
        "echo two > a.txt # hunter22-of-the-night",
    ])
    .expect(0);
    assert_eq!(events(&env, 1), ["ended r"]);
    let told = document(&env, "ended");
    assert_eq!(
        (&told["command"], &told["event"]),
        (&"notify".into(), &"ended".into())
    );
    assert_eq!(
        (&told["run"]["run_id"], &told["run"]["status"]),
        (&"r".into(), &"complete".into())
    );
    assert_eq!(told["night"], env.json(0, &["status"])["night"]);
    let summary = fs::read_to_string(env.root().join("ended.txt")).expect("a line");
    assert!(
        summary.starts_with("work: run r ended: complete; 1 iteration: 1 passed; "),
        "{summary}"
    );
    assert_eq!(told["summary"], summary.as_str());
    assert!(
        !told.to_string().contains("hunter22") && told["run"]["command"].as_str().is_some(),
        "{told:#}"
    );
}

#[test]
fn what_is_given_up_and_who_is_needed_is_told_once_each() {
    let env = quick();
    own(&env, &toml(KEEP));
    env.write("base", "sound\n");
    env.git(&["add", "base"]);
    env.git(&["commit", "-qm", "base"]);
    let agent = "[ $RECOVER_ITERATION = 1 ] && echo broken $RECOVER_ATTEMPT > base; true";
    let args = [
        "run",
        "--run",
        "r",
        "--iterations",
        "3",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        agent,
    ];
    env.recover(&args).expect(8);
    assert_eq!(events(&env, 2), ["gave_up r", "needs_person r"]);
    assert_eq!(document(&env, "gave_up")["iteration"], 1);
    let needs = document(&env, "needs_person");
    assert!(
        needs["report_path"]
            .as_str()
            .is_some_and(|path| path.ends_with("report.md")),
        "{needs:#}"
    );
    assert_eq!(needs["night"]["iterations"]["given_up"], 1);
    let line = fs::read_to_string(env.root().join("needs_person.txt")).expect("a line");
    assert!(
        line.contains("run r needs you") && line.contains("1 given up"),
        "{line}"
    );
}

#[test]
fn a_run_that_waits_for_a_known_time_says_until_when() {
    let mut env = quick();
    own(&env, &toml(KEEP));
    env.set("RECOVER_TEST_NOW", "2030-03-01T22:00:00.000Z")
        .set("TZ", "IST-5:30");
    let limit = r#"printf '{"type":"result","subtype":"success","is_error":true,"session_id":"s","result":"Claude AI usage limit reached|1898647200"}\n'; exit 1"#;
    env.recover(&[
        "run",
        "--run",
        "r",
        "--no-wait",
        "--agent",
        "claude",
        "--",
        "sh",
        "-c",
        limit,
    ])
    .expect(6);
    assert_eq!(events(&env, 2), ["ended r", "parked r"]);
    let until = document(&env, "parked")["until"]
        .as_str()
        .expect("a time")
        .to_owned();
    assert!(until.starts_with("2030-03-02T02:0"), "{until}");
    let line = fs::read_to_string(env.root().join("parked.txt")).expect("a line");
    assert!(
        line.contains("is waiting until 2030-03-02 07:3"),
        "the reader's own time: {line}"
    );
}

// A loop of one's own has no supervisor that ends: its attempts say it.
#[test]
fn a_loop_of_ones_own_is_told_too() {
    let env = quick();
    own(&env, &toml(KEEP));
    env.json(0, &["attempt", "start", "--run", "loop"]);
    let full = "write error: No space left on device";
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "loop",
            "--exit-code",
            "1",
            "--message",
            full,
        ],
    );
    assert_eq!(events(&env, 1), ["needs_person loop"]);
    // It goes on regardless: the same once more is no news.
    for _ in 0..2 {
        env.json(0, &["attempt", "start", "--run", "loop"]);
        env.json(
            0,
            &[
                "attempt",
                "fail",
                "--run",
                "loop",
                "--exit-code",
                "1",
                "--message",
                full,
            ],
        );
    }
    assert_eq!(events(&env, 1), ["needs_person loop"]);
    env.json(0, &["attempt", "pass", "--run", "loop"]);
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "loop",
            "--exit-code",
            "1",
            "--message",
            full,
        ],
    );
    assert_eq!(events(&env, 2), ["needs_person loop", "needs_person loop"]);
}

// Another reason for which a person is needed is news, whatever it was before.
#[test]
fn a_person_who_is_needed_for_another_reason_is_told_of_it() {
    let env = quick();
    own(&env, &toml(KEEP));
    let (key, full) = (
        "Invalid API key \u{b7} Please run /login",
        "write error: No space left on device",
    );
    for (number, message) in [key, full, key].into_iter().enumerate() {
        env.json(0, &["attempt", "start", "--run", "loop"]);
        env.json(
            0,
            &[
                "attempt",
                "fail",
                "--run",
                "loop",
                "--exit-code",
                "1",
                "--message",
                message,
                "--no-rollback",
            ],
        );
        assert_eq!(events(&env, number + 1).len(), number + 1, "{message}");
        let reason = document(&env, "needs_person")["reason"]
            .as_str()
            .expect("a reason")
            .to_owned();
        assert_eq!(reason.contains("machine"), message == full, "{reason}");
    }
}

// What a failing command prints holds what only the user knows to be a secret.
#[test]
fn the_log_of_what_failed_holds_no_configured_secret() {
    let env = quick();
    let fails = "echo to ACME-778899 and pin-0987-654321 >&2; exit 3";
    own(
        &env,
        &format!("[redact]\npatterns = ['ACME-[0-9]+']\n{}", toml(fails)),
    );
    env.recover(&["run", "--run", "r", "--", "sh", "-c", "echo two > a.txt"])
        .expect(0);
    until("it failed", || {
        env.sh("cat $(find .ultraplan/state -name notify.log)")
            .stdout
            .contains("exit 3")
    });
    let log = log(&env, "r");
    assert!(
        log.contains("[redacted]") && !log.contains("ACME-778899"),
        "{log}"
    );
}

#[test]
fn a_goal_that_was_not_reached_is_why_a_run_ends() {
    let env = quick();
    own(&env, &toml(KEEP));
    let ended = env.json(
        7,
        &[
            "run",
            "--run",
            "r",
            "--iterations",
            "2",
            "--until",
            "test -e no",
            "--",
            "true",
        ],
    );
    let reason = "the goal was not reached in 2 iterations: test -e no";
    assert_eq!(
        (&ended["decision"]["reason"], &ended["decision"]["actions"]),
        (&reason.into(), &vec!["none"].into())
    );
    assert_eq!(events(&env, 1), ["ended r"]);
    assert_eq!(document(&env, "ended")["reason"], reason);
    let status = env.recover(&["status"]).expect(0).stdout;
    assert!(
        status.starts_with(&format!("Run r: needs you ({reason}); ")),
        "{status}"
    );
    // By hand it can be reached still.
    env.write("no", "");
    assert_eq!(env.json(0, &["resume"])["outcome"], "complete");
}

#[test]
fn only_what_is_asked_for_is_told_and_the_command_line_goes_first() {
    let env = quick();
    own(
        &env,
        &format!("{}on = ['parked']\n", toml("touch ../not-this")),
    );
    env.recover(&["run", "--", "true"]).expect(0);
    own(&env, &toml("touch ../not-this"));
    env.recover(&[
        "run",
        "--run",
        "r",
        "--notify",
        KEEP,
        "--on-failure",
        "stop",
        "--",
        "false",
    ]);
    assert_eq!(events(&env, 1), ["ended r"]);
    // It is the run's, until it is given another one.
    env.recover(&["resume", "r", "--strategy", "retry_same"]);
    assert_eq!(events(&env, 2), ["ended r", "ended r"]);
    env.recover(&["resume", "r", "--strategy", "retry_same", "--notify", ""]);
    env.recover(&["run", "--dry-run", "--notify", KEEP, "--", "true"])
        .expect(0);
    assert_eq!(events(&env, 2).len(), 2);
    assert!(!env.root().join("not-this").exists());
}

// Nothing waits for it, and what it does wrong is nobody's but the log's.
#[test]
fn it_is_detached_bounded_and_its_failure_is_logged() {
    let env = quick();
    let begun = Instant::now();
    let long = format!("sleep {}", 70_000 + std::process::id() % 10_000);
    env.recover(&[
        "run",
        "--run",
        "slow",
        "--notify",
        &format!("{long}; touch ../late"),
        "--",
        "true",
    ])
    .expect(0);
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    env.recover(&[
        "run",
        "--run",
        "after",
        "--notify",
        "sleep 1; cat > ../after.json",
        "--",
        "true",
    ])
    .expect(0);
    env.recover(&[
        "run",
        "--run",
        "bad",
        "--notify",
        "echo no route >&2; exit 3",
        "--",
        "true",
    ])
    .expect(0);
    own(&env, "[notify]\ncommand = ['/no/such/program', 'x']\n");
    env.recover(&["run", "--run", "missing", "--", "true"])
        .expect(0);
    until("the one after the run's end", || {
        env.root().join("after.json").exists()
    });
    until("a failure", || {
        log(&env, "bad").contains("exit 3 (no route)")
    });
    until("what is not there", || {
        log(&env, "missing").contains("/no/such/program")
    });
    until("the limit", || {
        log(&env, "slow").contains("not done after 10 s")
    });
    assert!(begun.elapsed() < Duration::from_secs(40) && !env.root().join("late").exists());
    let (first, rest) = long.split_at(1);
    assert_eq!(
        env.sh(&format!("pgrep -f '[{first}]{rest}'")).stdout,
        "",
        "it is still there"
    );
}

// A clone must not start anything.
#[test]
fn a_projects_command_needs_trust() {
    let mut env = quick();
    let project = |text: &str| format!("[cooldown]\nduration = \"10ms\"\n{text}");
    env.put(".ultraplan/recover.toml", project(&toml("touch ../owned")));
    let error = env.error(13, &["run", "--run", "r", "--", "true"]);
    assert_eq!(error["code"], "not_trusted");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("notify.command")),
        "{error}"
    );
    env.json(0, &["attempt", "start", "--run", "loop"]);
    let full = "write error: No space left on device";
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "loop",
            "--exit-code",
            "1",
            "--message",
            full,
        ],
    );
    // The user's own goes first, and so does what is typed: then there is nothing to ask about.
    own(&env, &toml(KEEP));
    env.recover(&["run", "--run", "r", "--", "true"]).expect(0);
    assert_eq!(events(&env, 1), ["ended r"]);
    env.recover(&["run", "--run", "s", "--notify", KEEP, "--", "true"])
        .expect(0);
    assert_eq!(events(&env, 2).len(), 2);
    assert!(!env.root().join("owned").exists());
    own(&env, "");
    env.set("RECOVER_TRUST", "1");
    env.recover(&["run", "--run", "t", "--", "true"]).expect(0);
    until("the trusted one", || env.root().join("owned").exists());
}

// Nor may it keep from somebody what happens.
#[test]
fn a_projects_choice_of_events_needs_trust() {
    let env = quick();
    own(&env, &toml(KEEP));
    env.put(".ultraplan/recover.toml", "[notify]\non = []\n");
    let error = env.error(13, &["run", "--run", "r", "--", "true"]);
    let message = error["message"].as_str().expect("a message");
    let expected = "asks for is not trusted yet: notify.on = []; nothing was started";
    assert!(message.contains(expected), "{message}");
    own(&env, &format!("{}on = ['ended']\n", toml(KEEP)));
    env.recover(&["run", "--run", "r", "--", "true"]).expect(0);
    assert_eq!(events(&env, 1), ["ended r"]);
}

/// What a program sent to a listener: a request's headers and body, or a mail.
fn heard(mut stream: TcpStream) -> String {
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let mut reader = BufReader::new(stream.try_clone().expect("a reader"));
    // Who speaks first tells one protocol from the other.
    let mut all = String::new();
    let is_mail = {
        stream
            .set_read_timeout(Some(Duration::from_millis(500)))
            .expect("a timeout");
        let silent = reader.fill_buf().is_err();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a timeout");
        silent
    };
    let say =
        |stream: &mut TcpStream, text: &str| stream.write_all(text.as_bytes()).expect("an answer");
    if is_mail {
        say(&mut stream, "220 here\r\n");
        let mut in_data = false;
        for line in reader.lines().map_while(Result::ok) {
            all.push_str(&line);
            all.push('\n');
            match line.as_str() {
                "." if in_data => {
                    in_data = false;
                    say(&mut stream, "250 kept\r\n");
                }
                _ if in_data => {}
                "DATA" => {
                    in_data = true;
                    say(&mut stream, "354 go on\r\n");
                }
                "QUIT" => {
                    say(&mut stream, "221 bye\r\n");
                    break;
                }
                _ => say(&mut stream, "250 well\r\n"),
            }
        }
        return all;
    }
    let mut length = 0;
    for line in reader.by_ref().lines().map_while(Result::ok) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.parse().expect("a number");
        }
        all.push_str(&line);
        all.push('\n');
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    all.push_str(&String::from_utf8_lossy(&body));
    say(
        &mut stream,
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    all
}

/// What a mail's reader sees.
fn mail_text(said: &str) -> String {
    use base64::Engine as _;
    let body = said.split("base64\n\n").nth(1).expect("a body");
    let body: String = body.lines().take_while(|line| *line != ".").collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(body)
        .expect("base64");
    String::from_utf8(bytes).expect("text")
}

// The recipes of recover.toml(5), as they stand there but for the place that each sends to.
#[test]
fn the_recipes_of_the_manual_work() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let place = listener.local_addr().expect("its address").to_string();
    let (send, heard_of) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if send.send(heard(stream)).is_err() {
                break;
            }
        }
    });
    let mut env = quick();
    let manual = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/man/recover.toml.5"))
        .expect("the page")
        .replace("\\-", "-");
    // There is no desktop: what would show it sends it on.
    env.script(
        "../bin/notify-send",
        &format!("printf '%s\\n' \"$@\" | curl -fsS --data-binary @- http://{place}/desktop"),
    );
    let path: PathBuf = env.root().join("bin");
    env.set(
        "PATH",
        &format!(
            "{}:{}",
            path.display(),
            std::env::var("PATH").expect("PATH")
        ),
    );
    let mut told = Vec::new();
    for (number, recipe) in recover::testing::config::NOTIFY_RECIPES.iter().enumerate() {
        assert!(
            manual.contains(&format!(".SS \"{}\"", recipe.title)),
            "{}",
            recipe.title
        );
        let mut text = recipe
            .toml
            .replace("smtps://SMTP.EXAMPLE.COM", &format!("smtp://{place}"));
        for public in ["https://ntfy.sh", "https://hooks.slack.com"] {
            text = text.replace(public, &format!("http://{place}"));
        }
        own(&env, &text);
        let run = format!("r{number}");
        env.recover(&[
            "run",
            "--run",
            &run,
            "--",
            "sh",
            "-c",
            "echo '\"two\"' > a.txt",
        ])
        .expect(0);
        let said = heard_of
            .recv_timeout(Duration::from_secs(20))
            .unwrap_or_else(|_| panic!("{}", log(&env, &run)));
        let text = if said.contains("base64") {
            mail_text(&said)
        } else {
            said.clone()
        };
        assert!(
            text.contains(&format!(
                "work: run {run} ended: complete; 1 iteration: 1 passed; "
            )),
            "{said}"
        );
        told.push(said);
    }
    assert!(
        told[0].starts_with("POST /YOUR-TOPIC ") && told[0].contains("Title: recover: ended\n"),
        "{}",
        told[0]
    );
    let body = told[1].split("\n\n").nth(1).expect("a body");
    let slack: Value = serde_json::from_str(body).expect("what Slack takes");
    assert!(
        slack["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("work: run r1 ended")),
        "{slack}"
    );
    assert!(
        told[2].contains("--app-name=recover\n--\nrecover: ended\nwork: run r2"),
        "{}",
        told[2]
    );
    assert!(
        told[3].contains("RCPT TO:<YOU@EXAMPLE.COM>")
            && told[3].contains("\nSubject: recover: ended in run r3\n")
    );
    assert!(
        told[3].contains("\nMIME-Version: 1.0\n") && told[3].lines().all(|line| line.len() <= 78),
        "{}",
        told[3]
    );
    let mail = mail_text(&told[3]);
    let json = mail
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("the document");
    assert_eq!(
        serde_json::from_str::<Value>(json).expect("JSON")["run"]["run_id"],
        "r3"
    );
}
