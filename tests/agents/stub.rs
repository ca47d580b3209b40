//! A stand-in for the model's API on 127.0.0.1: answers as it is told and records what it was sent.
//!
//! It speaks as much of the Anthropic messages API, the `OpenAI` responses and chat APIs and the Gemini API as the
//! agents' programs use. The programs themselves are the real ones.

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
    /// The model has a file of the work tree read, by the agent's own tool: some edit no other.
    Reads {
        /// The file, absolute.
        path: String,
    },
    /// The model has a file's only line replaced by another, by the agent's own editor.
    Edits {
        /// The file, absolute.
        path: String,
        /// What it holds.
        old: &'static str,
        /// What it is to hold.
        new: &'static str,
    },
    /// The model has a file of the work tree written, by the agent's own tool.
    Writes {
        /// The file, absolute.
        path: String,
        /// All of it.
        content: &'static str,
    },
    /// The model has a shell command run, by the agent's own tool.
    Runs(String),
    /// The model calls a tool of a server of the agent's: both have these words in their common name.
    Calls(&'static str, &'static str),
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
    fn turns(&self) -> impl Iterator<Item = &Value> {
        let lists = ["messages", "input", "contents"]
            .into_iter()
            .filter_map(|name| self.body[name].as_array());
        lists.flatten()
    }

    /// All that the user's side of the conversation holds, oldest first.
    pub fn user_texts(&self) -> Vec<String> {
        let texts = |turn: &Value| {
            let content = if turn["parts"].is_array() {
                &turn["parts"]
            } else {
                &turn["content"]
            };
            match content {
                Value::String(text) => vec![text.clone()],
                Value::Array(parts) => parts
                    .iter()
                    .filter_map(|part| part["text"].as_str().map(str::to_owned))
                    .collect::<Vec<_>>(),
                _ => Vec::new(),
            }
        };
        self.turns()
            .filter(|turn| turn["role"] == "user")
            .flat_map(texts)
            .collect()
    }

    /// Whether the conversation holds an earlier answer of the model: the session was gone on with.
    pub fn goes_on(&self) -> bool {
        let is_answer = |turn: &Value| {
            ["assistant", "model"]
                .iter()
                .any(|role| turn["role"] == *role)
        };
        self.turns()
            .any(|turn| is_answer(turn) || turn["type"] == "function_call")
    }

    /// Whether the program asks for itself: a title, a commit's message, notes for later.
    fn is_aside(&self) -> bool {
        // The Anthropic API's system prompt stands beside the conversation, and only a conversation has tools.
        if self.body["system"].is_array() && self.tools().is_empty() {
            return true;
        }
        // It asks what is left of a limit, or how long a text is; or what a person may want next.
        let last = self.user_texts().pop().unwrap_or_default();
        if self.body["max_tokens"] == 1 || last.starts_with("[SUGGESTION MODE") {
            return true;
        }
        let system = self
            .turns()
            .find(|turn| turn["role"] == "system")
            .map(|turn| turn["content"].to_string());
        let aside = ["title generator", "managed memory", "Git commit messages"];
        system.is_some_and(|system| aside.iter().any(|what| system.contains(what)))
    }

    /// The tools that the model may call; one of a namespace as `NAMESPACE/NAME`.
    fn tools(&self) -> Vec<String> {
        let listed = self.body["tools"].as_array().cloned().unwrap_or_default();
        let inner = listed.iter().flat_map(|tool| {
            tool["functionDeclarations"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        });
        let own = listed
            .iter()
            .map(|tool| {
                if tool["function"].is_object() {
                    &tool["function"]
                } else {
                    tool
                }
            })
            .cloned();
        let spaces = listed.iter().filter(|tool| tool["type"] == "namespace");
        let in_namespaces = spaces.flat_map(|space| {
            let tools = space["tools"].as_array().into_iter().flatten();
            tools.filter_map(|tool| {
                Some(format!(
                    "{}/{}",
                    space["name"].as_str()?,
                    tool["name"].as_str()?
                ))
            })
        });
        let named = inner.chain(own);
        named
            .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
            .chain(in_namespaces)
            .collect()
    }
}

/// The form of a request and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Messages,
    Responses,
    Chat,
    Gemini,
}

impl Api {
    fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        match path {
            "/v1/messages" => Some(Self::Messages),
            "/v1/responses" => Some(Self::Responses),
            "/v1/chat/completions" => Some(Self::Chat),
            _ => path
                .ends_with(":streamGenerateContent")
                .then_some(Self::Gemini),
        }
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
        let shared = Arc::new(Mutex::new(Shared {
            answers: answers.into(),
            asked: Vec::new(),
        }));
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

    /// From now on gives these answers.
    pub fn answer(&self, answers: Vec<Answer>) {
        locked(&self.shared).answers = answers.into();
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
    let Some(api) = Api::of(&path) else {
        return send(stream, 404, &[], "application/json", b"{}");
    };
    let asked = Asked {
        body: serde_json::from_slice(&body)?,
    };
    let (answer, number) = if asked.is_aside() {
        (Some(Answer::Says("Done.")), 0)
    } else {
        let mut shared = locked(shared);
        shared.asked.push(asked.clone());
        let last = shared.answers.len() <= 1;
        let answer = if last {
            shared.answers.front().cloned()
        } else {
            shared.answers.pop_front()
        };
        (answer, shared.asked.len())
    };
    match answer.unwrap_or(Answer::Says("Done.")) {
        Answer::Refuses {
            status,
            headers,
            body,
        } => send(
            stream,
            status,
            &headers,
            "application/json",
            body.to_string().as_bytes(),
        ),
        Answer::Hangs(time) => {
            std::thread::sleep(time);
            Ok(())
        }
        Answer::Cut => {
            let (mut stream, events) = (
                stream,
                events(api, &Content::Text("I was about to".to_owned()), number),
            );
            let half = &events.as_bytes()[..events.len() / 2];
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n"
            )?;
            stream.write_all(half)?;
            stream.shutdown(std::net::Shutdown::Both)
        }
        // What the agent's tool answers, it sends back.
        answer => stream_events(stream, &events(api, &content(&answer, &asked), number)),
    }
}

fn stream_events(stream: TcpStream, events: &str) -> io::Result<()> {
    send(stream, 200, &[], "text/event-stream", events.as_bytes())
}

fn send(
    mut stream: TcpStream,
    status: u16,
    headers: &[(&str, String)],
    kind: &str,
    body: &[u8],
) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n",
        body.len()
    )?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "Connection: close\r\n\r\n")?;
    stream.write_all(body)?;
    stream.flush()
}

/// What the model says.
enum Content {
    Text(String),
    /// A tool's name and its arguments; those of one that takes plain text are that text.
    Call(String, Value),
}

/// The answer by the tools that the request names.
fn content(answer: &Answer, asked: &Asked) -> Content {
    let tools = asked.tools();
    let call = |known: &[&str], arguments: &dyn Fn(&str) -> Value| {
        let tool = known
            .iter()
            .find(|name| tools.iter().any(|tool| tool == *name))?;
        Some(Content::Call((*tool).to_owned(), arguments(tool)))
    };
    match answer {
        Answer::Reads { path } => {
            let arguments = |tool: &str| match tool {
                "read" => json!({"filePath": path}),
                "exec_command" => json!({"cmd": format!("cat '{path}'")}),
                _ => json!({"file_path": path}),
            };
            call(&["Read", "read_file", "read", "exec_command"], &arguments)
                .unwrap_or_else(|| Content::Text(format!("Show me {path}.")))
        }
        Answer::Edits { path, old, new } => {
            let patch = format!(
                "*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"
            );
            let arguments = |tool: &str| match tool {
                "edit" => json!({"filePath": path, "oldString": old, "newString": new}),
                "apply_patch" => json!(patch),
                // The program knows its editor there too.
                "exec_command" => json!({"cmd": format!("apply_patch <<'EOF'\n{patch}EOF\n")}),
                "replace" => {
                    json!({"file_path": path, "old_string": old, "new_string": new, "instruction": "Change it"})
                }
                _ => json!({"file_path": path, "old_string": old, "new_string": new}),
            };
            call(
                &["Edit", "replace", "edit", "apply_patch", "exec_command"],
                &arguments,
            )
            .unwrap_or_else(|| Content::Text(format!("Change {old} to {new} in {path}.")))
        }
        Answer::Writes { path, content } => {
            let arguments = |tool: &str| match tool {
                "write" => json!({"filePath": path, "content": content}),
                "create" => json!({"path": path, "file_text": content}),
                "exec_command" => json!({"cmd": format!("printf %s '{content}' > '{path}'")}),
                _ => json!({"file_path": path, "content": content}),
            };
            // Without tools the whole file is in the text.
            let name = path.rsplit('/').next().unwrap_or(path);
            call(
                &["Write", "write_file", "write", "create", "exec_command"],
                &arguments,
            )
            .unwrap_or_else(|| Content::Text(format!("{name}\n```\n{content}\n```\n")))
        }
        Answer::Runs(command) => {
            let arguments = |tool: &str| match tool {
                "exec_command" => json!({"cmd": command}),
                _ => json!({"command": command, "description": "Run it"}),
            };
            call(
                &["Bash", "run_shell_command", "bash", "exec_command"],
                &arguments,
            )
            .unwrap_or_else(|| Content::Text(format!("Run `{command}`.")))
        }
        Answer::Calls(server, tool) => {
            let named = tools
                .iter()
                .find(|name| name.contains(server) && name.ends_with(tool));
            match named {
                Some(name) => Content::Call(name.clone(), json!({})),
                None => Content::Text(format!("Call {tool} of {server}.")),
            }
        }
        Answer::Says(text) => Content::Text((*text).to_owned()),
        Answer::Refuses { .. } | Answer::Cut | Answer::Hangs(_) => Content::Text(String::new()),
    }
}

/// The events of the answer to the request of this number.
fn events(api: Api, content: &Content, number: usize) -> String {
    let id = format!("call_{number}");
    let events = match api {
        Api::Messages => messages(content, &id),
        Api::Responses => responses(content, &id),
        Api::Chat => chat(content, &id),
        Api::Gemini => gemini(content),
    };
    let name = |event: &Value| {
        event["type"]
            .as_str()
            .map(|name| format!("event: {name}\n"))
            .unwrap_or_default()
    };
    let texts: Vec<String> = events
        .iter()
        .map(|event| format!("{}data: {event}\n\n", name(event)))
        .collect();
    let end = if api == Api::Chat {
        "data: [DONE]\n\n"
    } else {
        ""
    };
    texts.concat() + end
}

fn messages(content: &Content, id: &str) -> Vec<Value> {
    let (block, delta, stop) = match content {
        Content::Text(text) => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
        Content::Call(tool, arguments) => (
            json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
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

fn responses(content: &Content, id: &str) -> Vec<Value> {
    let item = match content {
        Content::Text(text) => json!({"type": "message", "role": "assistant", "id": "m1",
            "content": [{"type": "output_text", "text": text}]}),
        Content::Call(tool, Value::String(text)) => {
            json!({"type": "custom_tool_call", "id": "c1", "call_id": id,
            "name": tool, "input": text})
        }
        Content::Call(tool, arguments) => {
            let (namespace, name) = tool.split_once('/').unzip();
            json!({"type": "function_call", "id": "f1", "call_id": id, "namespace": namespace,
            "name": name.unwrap_or(tool), "arguments": arguments.to_string()})
        }
    };
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.output_item.done", "item": item}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "usage": {"input_tokens": 30,
            "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 37}}}),
    ]
}

fn chat(content: &Content, id: &str) -> Vec<Value> {
    let (delta, reason) = match content {
        Content::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Content::Call(tool, arguments) => (
            json!({"role": "assistant", "content": null, "tool_calls": [{"index": 0, "id": id, "type": "function",
                "function": {"name": tool, "arguments": arguments.to_string()}}]}),
            "tool_calls",
        ),
    };
    let chunk = |choices: Value| {
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "stub",
        "choices": choices})
    };
    let mut last = chunk(json!([]));
    last["usage"] = json!({"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37,
        "prompt_tokens_details": {"cached_tokens": 5}});
    vec![
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}])),
        last,
    ]
}

fn gemini(content: &Content) -> Vec<Value> {
    let part = match content {
        Content::Text(text) => json!({"text": text}),
        Content::Call(tool, arguments) => {
            json!({"functionCall": {"name": tool, "args": arguments}})
        }
    };
    vec![json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 30, "candidatesTokenCount": 7, "totalTokenCount": 37,
            "cachedContentTokenCount": 5},
        "modelVersion": "stub",
    })]
}
