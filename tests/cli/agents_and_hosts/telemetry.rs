//! `[otel]`: the trace of a run is sent to the user's receiver when it has ended, and nothing depends on that.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::TestEnv;

fn own(env: &TestEnv, text: &str) {
    let path = env.root().join("home/.config/recover/config.toml");
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("the user's file");
}

/// A receiver that gives each request this answer; its address, and each request's head and body.
fn receiver(answer: &'static str) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().expect("a length");
                }
                head += &line;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let body = serde_json::from_slice(&body).expect("JSON");
            sender.send((head, body)).expect("the test");
            let mut stream = stream;
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, requests)
}

/// It sends the traces.
fn curl_is_there() -> bool {
    let is_there = TestEnv::plain().sh("command -v curl").code == 0;
    if !is_there {
        eprintln!("skipped: curl is missing");
    }
    is_there
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
const REFUSED: &str = "HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_trace_is_sent_when_a_run_has_ended() {
    if !curl_is_there() {
        return;
    }
    let (address, requests) = receiver(OK);
    let env = TestEnv::repo();
    own(
        &env,
        &format!("[otel]\nendpoint = \"http://{address}\"\nheaders = [\"X-Key: of mine\"]\n"),
    );
    let ran = env
        .recover(&["run", "--run", "traced", "--", "true"])
        .expect(0);
    assert!(!ran.stderr.contains("trace"), "{}", ran.stderr);
    let (head, body) = requests
        .recv_timeout(Duration::from_secs(10))
        .expect("a request");
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    for header in ["X-Key: of mine\r\n", "Content-Type: application/json\r\n"] {
        assert!(head.contains(header), "{head}");
    }
    let reported: Value = serde_json::from_str(
        &env.recover(&["report", "--format", "otlp"])
            .expect(0)
            .stdout,
    )
    .expect("JSON");
    assert_eq!(
        body, reported,
        "the trace of a run has the same ids each time"
    );
    assert!(body.to_string().contains("traced"));
}

#[test]
fn a_receiver_that_fails_changes_nothing() {
    if !curl_is_there() {
        return;
    }
    let (refuses, _requests) = receiver(REFUSED);
    // Accepted by the system, read by nobody.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_at = silent.local_addr().expect("an address");
    for (endpoint, why) in [
        (format!("http://{refuses}/v1/traces"), "error: 503"),
        ("http://127.0.0.1:1".to_owned(), "connect"),
        (format!("http://{silent_at}"), "timed out"),
        (format!("https://{refuses}"), ""),
        ("ftp://x".to_owned(), "disabled"),
    ] {
        let env = TestEnv::repo();
        own(&env, &format!("[otel]\nendpoint = \"{endpoint}\"\n"));
        for (command, code) in [("true", 0), ("false", 5)] {
            let begun = Instant::now();
            let words = ["run", "--attempts", "1", "--", command];
            let ran = env.recover(&words);
            assert_eq!(ran.code == 0, code == 0, "{endpoint}: {}", ran.stderr);
            let lines: Vec<&str> = ran.stderr.lines().collect();
            let said: Vec<&&str> = lines
                .iter()
                .filter(|line| line.contains("the trace was not sent to"))
                .collect();
            assert!(
                said.len() == 1 && said[0].contains(why),
                "{endpoint}: {}",
                ran.stderr
            );
            assert!(begun.elapsed() < Duration::from_secs(30), "{endpoint}");
        }
    }
}

// Where something is sent to is never a project's to say.
#[test]
fn a_project_names_no_receiver() {
    let (address, requests) = receiver(OK);
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        format!("[otel]\nendpoint = \"http://{address}\"\n"),
    );
    let ran = env.recover(&["run", "--", "true"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("otel"),
        "{}",
        ran.stderr
    );
    assert!(requests.try_recv().is_err());
}
