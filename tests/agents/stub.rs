//! A stand-in for the model's API on 127.0.0.1: answers as it is told and records what it was sent.
//!
//! It speaks as much of the Anthropic messages API and of the `OpenAI` responses API as the agents' programs use. The
//! programs themselves are the real ones.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// What the API does with one request for the model.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The model's last word.
    Says(&'static str),
    /// The model has a file of the work tree written, by the agent's own tool.
    Writes {
        /// The file, absolute.
        path: String,
        /// All of it.
        content: &'static str,
    },
    /// The API refuses.
    Refuses {
        /// HTTP status.
        status: u16,
        /// Headers beside the usual ones.
        headers: Vec<(&'static str, String)>,
        /// The body.
        body: Value,
    },
    /// The connection is cut in the middle of the stream.
    Cut,
    /// Nothing comes, for this long.
    Hangs(Duration),
}

/// One request for the model.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its body.
    pub body: Value,
}

impl Asked {
    /// All that the user's side of the conversation holds, oldest first.
    pub fn user_texts(&self) -> Vec<String> {
        let turns = self.body["messages"].as_array().or(self.body["input"].as_array()).cloned().unwrap_or_default();
        let texts = turns.iter().filter(|turn| turn["role"] == "user").flat_map(|turn| match &turn["content"] {
            Value::String(text) => vec![text.clone()],
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        });
        texts.filter(|text| !text.starts_with('<')).collect()
    }

    /// Whether the conversation holds an earlier answer of the model: the session was gone on with.
    pub fn goes_on(&self) -> bool {
        let turns = self.body["messages"].as_array().or(self.body["input"].as_array());
        turns.is_some_and(|turns| turns.iter().any(|turn| turn["role"] == "assistant"))
    }
}

#[derive(Default)]
struct Shared {
    answers: VecDeque<Answer>,
    asked: Vec<Asked>,
}

/// A server, for as long as it is kept.
pub struct Stub {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl Stub {
    /// A server that gives these answers in turn, and the last one from then on.
    pub fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Mutex::new(Shared { answers: answers.into(), asked: Vec::new() }));
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                // An agent that is killed leaves its connection: nobody is there to be told.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the model was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        locked(&self.shared).asked.clone()
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, shared: &Mutex<Shared>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let anthropic = path.starts_with("/v1/messages") && !path.contains("count_tokens");
    if !anthropic && !path.starts_with("/v1/responses") {
        return send(stream, 404, &[], "application/json", b"{}");
    }
    let body: Value = serde_json::from_slice(&body)?;
    let answer = {
        let mut shared = locked(shared);
        shared.asked.push(Asked { body: body.clone() });
        if shared.answers.len() > 1 { shared.answers.pop_front() } else { shared.answers.front().cloned() }
    };
    match answer.unwrap_or(Answer::Says("Done.")) {
        Answer::Refuses { status, headers, body } => {
            send(stream, status, &headers, "application/json", body.to_string().as_bytes())
        }
        Answer::Hangs(time) => {
            std::thread::sleep(time);
            Ok(())
        }
        Answer::Cut => {
            let (mut stream, events) = (stream, events(anthropic, &Content::Text("I was about to")));
            let half = &events.as_bytes()[..events.len() / 2];
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n")?;
            stream.write_all(half)?;
            stream.shutdown(std::net::Shutdown::Both)
        }
        Answer::Says(text) => stream_events(stream, &events(anthropic, &Content::Text(text))),
        // The agent sends back what its tool answered: then it is done.
        Answer::Writes { path, content } => stream_events(stream, &events(anthropic, &Content::Write(&path, content))),
    }
}

fn stream_events(stream: TcpStream, events: &str) -> io::Result<()> {
    send(stream, 200, &[], "text/event-stream", events.as_bytes())
}

fn send(mut stream: TcpStream, status: u16, headers: &[(&str, String)], kind: &str, body: &[u8]) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len())?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "Connection: close\r\n\r\n")?;
    stream.write_all(body)?;
    stream.flush()
}

enum Content<'a> {
    Text(&'a str),
    Write(&'a str, &'a str),
}

fn events(anthropic: bool, content: &Content<'_>) -> String {
    let events = if anthropic { messages(content) } else { responses(content) };
    let texts: Vec<String> = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("")))
        .collect();
    texts.concat()
}

fn messages(content: &Content<'_>) -> Vec<Value> {
    let (block, delta, stop) = match content {
        Content::Text(text) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
        }
        Content::Write(path, content) => (
            json!({"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {}}),
            json!({"type": "input_json_delta",
                "partial_json": json!({"file_path": path, "content": content}).to_string()}),
            "tool_use",
        ),
    };
    let usage = json!({"input_tokens": 25, "output_tokens": 1, "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 10});
    vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "stub", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

fn responses(content: &Content<'_>) -> Vec<Value> {
    let item = match content {
        Content::Text(text) => json!({"type": "message", "role": "assistant", "id": "m1",
            "content": [{"type": "output_text", "text": text}]}),
        Content::Write(path, content) => json!({"type": "function_call", "id": "f1", "call_id": "call_1",
            "name": "exec_command",
            "arguments": json!({"cmd": format!("printf %s '{content}' > '{path}'")}).to_string()}),
    };
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.output_item.done", "item": item}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "usage": {"input_tokens": 30,
            "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 37}}}),
    ]
}
