//! The conversation with an agent by the Agent Client Protocol, while its process is supervised like any other.
//!
//! What the agent says comes from the supervisor, and a thread of its own answers, since a checkpoint before a call takes its
//! time. An agent that says more than is answered is ended; one that reads nothing holds up nobody but itself.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::confine::real;
use crate::agent::acp::{self, INITIALIZE, PROMPT, SESSION, ToolCall, VERSION};
use crate::durable::{Root, Sync};
use crate::engine::base::{Context, Result};
use crate::engine::checkpoint::{Options, Request, create, due, record_operation, text_before};
use crate::model::RunKey;
use crate::model::agent_record::{AgentError, AgentRecord};
use crate::model::failure::EvidenceSource;
use crate::model::hook;
use crate::policy::acp::{choice, permits, risk};
use crate::policy::hook::ToolCallRisk;
use crate::process::{Exit, Interrupts, Supervised};

/// Bytes of an agent's messages that may wait for their answers.
const MOST_WAITING: usize = 64 << 20;
/// Bytes of a file that an agent may read.
const MAX_FILE: u64 = 8 << 20;
/// Calls that are known at the same time.
const MAX_CALLS: usize = 1024;
/// How often to look whether the attempt is to end.
const TICK: Duration = Duration::from_millis(100);
const TICK_OF_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

const INVALID_PARAMS: i64 = -32602;
const NO_METHOD: i64 = -32601;
const NOT_FOUND: i64 = -32002;
const FAILED: i64 = -32603;

/// What an attempt of an agent begins with.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    /// What it is asked.
    pub prompt: String,
    /// The session to go on in, where the agent can.
    pub session: Option<String>,
    /// Whether all is permitted.
    pub yolo: bool,
}

/// What a conversation came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Calls that were not permitted.
    pub denied: Vec<String>,
    /// Why it broke off, where that was the agent's doing and it says nothing of it.
    pub broken: Option<String>,
    /// The agent answered to the prompt, or refused to be asked.
    is_over: bool,
}

impl Outcome {
    /// Adds to what the agent's records say.
    pub(super) fn complete(self, record: &mut AgentRecord) {
        record.permission_denials = self.denied;
        if let Some(broken) = self.broken {
            record.is_success = false;
            record.final_error = Some(AgentError {
                message: broken,
                code: None,
                status: None,
                source: EvidenceSource::Stdout,
                line: 1,
            });
        }
    }

    /// What the end of a process is that has said all: it was ended, or ended by itself, because there was no more to say.
    pub(super) fn settle(&mut self, exit: &mut Exit) {
        let is_forced = exit.timed_out || exit.cancelled.is_some();
        if self.is_over && !is_forced && exit.spawn_error.is_none() {
            (exit.exit_code, exit.signal) = (Some(0), None);
        } else if self.broken.is_some() {
            (exit.exit_code, exit.signal) = (Some(1), None);
        } else if !self.is_over && exit.exit_code == Some(0) {
            self.broken = Some("the agent ended without an answer to the prompt".to_owned());
        }
    }
}

/// Hands on what the agent says.
pub(super) struct Relay {
    records: Sender<(Value, usize)>,
    waiting: Arc<AtomicUsize>,
}

impl Relay {
    /// Takes a record. Texts and the like, which nobody answers, are not handed on.
    pub(super) fn take(&self, record: &Value) {
        let is_call = record.get("params").and_then(ToolCall::of_update).is_some();
        if record.get("id").is_none() && !is_call {
            return;
        }
        let size = record.to_string().len();
        if self.waiting.fetch_add(size, Ordering::Relaxed) > MOST_WAITING {
            // The conversation breaks off with that.
            return;
        }
        // The other end is there as long as this one.
        let _ = self.records.send((record.clone(), size));
    }
}

/// One attempt's conversation.
pub(super) struct Conversation<'a> {
    context: Context,
    key: &'a RunKey,
    terms: Terms,
    folder: PathBuf,
    supervised: Supervised,
    interrupts: Interrupts,
    records: Receiver<(Value, usize)>,
    waiting: Arc<AtomicUsize>,
    /// `None` once nothing more is said.
    input: Option<OwnedFd>,
    closed_at: Option<Instant>,
    /// The number of the request whose answer is awaited.
    awaited: u64,
    session: Option<String>,
    /// Gemini CLI cannot tell a file that is not there from one that cannot be read: to it, it is empty.
    is_gemini: bool,
    is_cancelled: bool,
    calls: HashMap<String, ToolCall>,
    /// What a checkpoint was taken before.
    covered: HashSet<(String, String)>,
    outcome: Outcome,
}

impl<'a> Conversation<'a> {
    /// One with the agent that `supervised` starts, and what hands on its words.
    pub(super) fn new(
        context: &Context,
        key: &'a RunKey,
        terms: Terms,
        supervised: &mut Supervised,
    ) -> io::Result<(Self, Relay)> {
        let (ours, input): (_, PipeWriter) = io::pipe()?;
        let input = OwnedFd::from(input);
        rustix::io::ioctl_fionbio(&input, true)?;
        let (records, received) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        // The conversation needs to know of it, and not to hold its input open.
        let known = supervised.clone();
        supervised.input = Some(Arc::new(File::from(OwnedFd::from(ours))));
        let conversation = Self {
            context: context.for_run(key).map_err(io::Error::other)?,
            key,
            terms,
            folder: known.cwd.clone(),
            supervised: known,
            interrupts: context.interrupts.clone(),
            records: received,
            waiting: Arc::clone(&waiting),
            input: Some(input),
            closed_at: None,
            awaited: INITIALIZE,
            session: None,
            is_gemini: false,
            is_cancelled: false,
            calls: HashMap::new(),
            covered: HashSet::new(),
            outcome: Outcome::default(),
        };
        Ok((conversation, Relay { records, waiting }))
    }

    /// Leads it until the agent's output has ended.
    pub(super) fn lead(mut self) -> Outcome {
        self.ask(&json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false},
            "clientInfo": {"name": "recover", "title": "recover", "version": env!("CARGO_PKG_VERSION")},
        }));
        loop {
            match self.records.recv_timeout(TICK) {
                Ok((record, size)) => {
                    self.take(&record);
                    self.waiting.fetch_sub(size, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.outcome,
            }
            self.look();
        }
    }

    /// Ends what is to end.
    fn look(&mut self) {
        if self.is_flooded() && self.outcome.broken.is_none() {
            self.break_off("the agent sends more than is answered");
            self.supervised.oversight.end_child();
        }
        let is_to_end = self.supervised.oversight.is_to_end();
        if (is_to_end || self.interrupts.pending().is_some()) && !self.is_cancelled {
            self.is_cancelled = true;
            if let Some(session) = self.session.clone() {
                let params = json!({"sessionId": session});
                self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
            }
        }
        // Who has nothing more to hear has nothing more to do.
        let is_late = |at: Instant| at.elapsed() >= self.supervised.grace;
        if self.closed_at.is_some_and(is_late) && !is_to_end {
            self.supervised.oversight.end_child();
        }
    }

    fn take(&mut self, record: &Value) {
        let params = record.get("params").unwrap_or(&Value::Null);
        let id = record.get("id").filter(|id| !id.is_null());
        match (record.get("method").and_then(Value::as_str), id) {
            (None, Some(number)) if number.as_u64() == Some(self.awaited) => self.go_on(record),
            (Some(method), Some(id)) => {
                let answer = match self.answer(method, params) {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Err((code, message)) => json!({"jsonrpc": "2.0", "id": id,
                        "error": {"code": code, "message": message}}),
                };
                self.send(&answer);
            }
            (Some("session/update"), None) if self.awaited == PROMPT => self.note(params),
            _ => {}
        }
    }

    /// The next request after an answer.
    fn go_on(&mut self, record: &Value) {
        let is_refused = acp::refusal(record).is_some();
        let at = |pointer: &str| record.pointer(pointer);
        let place = json!({"cwd": self.folder, "mcpServers": []});
        match self.awaited {
            _ if is_refused => self.close(),
            INITIALIZE => {
                let can_load = at("/result/agentCapabilities/loadSession") == Some(&json!(true));
                self.is_gemini = at("/result/agentInfo/name") == Some(&json!("gemini-cli"));
                self.session = self.terms.session.clone().filter(|_| can_load);
                self.awaited = SESSION;
                let mut params = place;
                if let Some(session) = &self.session {
                    params["sessionId"] = json!(session);
                }
                self.ask(&params);
            }
            SESSION => {
                let named = at("/result/sessionId").and_then(Value::as_str);
                self.session = named.map(str::to_owned).or(self.session.take());
                let Some(session) = &self.session else {
                    self.break_off("the agent named no session");
                    return;
                };
                self.awaited = PROMPT;
                let prompt = json!([{"type": "text", "text": self.terms.prompt}]);
                self.ask(&json!({"sessionId": session, "prompt": prompt}));
            }
            _ => self.close(),
        }
    }

    fn is_flooded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > MOST_WAITING
    }

    fn break_off(&mut self, why: &str) {
        self.outcome.broken = Some(why.to_owned());
        self.hang_up();
    }

    fn close(&mut self) {
        self.outcome.is_over = true;
        self.hang_up();
    }

    /// There is no more to say: with its input the agent ends.
    fn hang_up(&mut self) {
        self.awaited = 0;
        self.input = None;
        self.closed_at = Some(Instant::now());
    }

    /// Sends the request whose answer is awaited.
    fn ask(&mut self, params: &Value) {
        let method = match self.awaited {
            INITIALIZE => "initialize",
            SESSION if self.session.is_some() => "session/load",
            SESSION => "session/new",
            _ => "session/prompt",
        };
        let id = self.awaited;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn send(&mut self, message: &Value) {
        let line = message.to_string() + "\n";
        let mut left = line.as_bytes();
        while let Some(input) = self.input.as_ref().filter(|_| !left.is_empty()) {
            match rustix::io::write(input, left) {
                Ok(count) => left = &left[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if Arc::strong_count(&self.waiting) > 1 => {
                    let mut ready = [PollFd::new(input, PollFlags::OUT)];
                    // What it returns is seen by the next write.
                    let _ = poll(&mut ready, Some(&TICK_OF_POLL));
                    if self.is_flooded() {
                        return;
                    }
                }
                // Nobody reads any more.
                Err(_) => self.input = None,
            }
        }
    }

    fn note(&mut self, params: &Value) {
        let Some(call) = ToolCall::of_update(params) else {
            return;
        };
        let call = self.merged(call);
        if call.is_over() {
            self.calls.remove(&call.id);
        } else {
            self.before(&call);
        }
    }

    /// A call with what earlier messages said of it.
    fn merged(&mut self, call: ToolCall) -> ToolCall {
        let earlier = self.calls.remove(&call.id);
        let call = match earlier {
            Some(earlier) => earlier.updated(call),
            None => call,
        };
        if self.calls.len() < MAX_CALLS {
            self.calls.insert(call.id.clone(), call.clone());
        }
        call
    }

    fn answer(
        &mut self,
        method: &str,
        params: &Value,
    ) -> std::result::Result<Value, (i64, String)> {
        let text = |name: &str| {
            let missing = || (INVALID_PARAMS, format!("{name} is missing"));
            params.get(name).and_then(Value::as_str).ok_or_else(missing)
        };
        if ![
            "session/request_permission",
            "fs/read_text_file",
            "fs/write_text_file",
        ]
        .contains(&method)
        {
            let method: String = method.chars().take(80).collect();
            return Err((NO_METHOD, format!("{method} is not offered")));
        }
        if self.session.as_deref() != Some(text("sessionId")?) || self.awaited != PROMPT {
            return Err((INVALID_PARAMS, "no such session is being asked".to_owned()));
        }
        match method {
            "session/request_permission" => self.permission(params),
            "fs/read_text_file" => {
                let number = |name: &str| params.get(name).and_then(Value::as_u64);
                let content = self.read(Path::new(text("path")?))?;
                Ok(json!({"content": lines_of(&content, number("line"), number("limit"))}))
            }
            _ => self.write(Path::new(text("path")?), text("content")?),
        }
    }

    fn permission(&mut self, params: &Value) -> std::result::Result<Value, (i64, String)> {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let call =
            ToolCall::deserialize(call).map_err(|error| (INVALID_PARAMS, error.to_string()))?;
        let call = self.merged(call);
        let paths = call.paths();
        let is_inside =
            !paths.is_empty() && paths.iter().all(|path| self.is_inside(Path::new(path)));
        let is_permitted = permits(call.kind(), is_inside, self.terms.yolo);
        let options = params.get("options").unwrap_or(&Value::Null);
        let chosen = choice(options, is_permitted).filter(|_| !self.is_cancelled);
        if is_permitted && chosen.is_some() {
            self.before(&call);
        } else if !self.is_cancelled {
            let title = call.title.as_deref().unwrap_or(call.kind());
            self.outcome.denied.push(title.to_owned());
        }
        Ok(match chosen {
            Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
            None => json!({"outcome": {"outcome": "cancelled"}}),
        })
    }

    /// Takes the checkpoint that a call needs before it runs. One that fails is reported; the attempt is none the worse for it.
    fn before(&mut self, call: &ToolCall) {
        let command = call.command().map(str::to_owned);
        let path = call.paths().first().map(|path| (*path).to_owned());
        let known = hook::ToolCall {
            name: call.kind().to_owned(),
            path: path.filter(|_| command.is_none()),
            command,
        };
        let about = text_before(&self.context, &known);
        if self.covered.len() > MAX_CALLS {
            self.covered.clear();
        }
        if !self.covered.insert((call.id.clone(), about.clone())) {
            return;
        }
        if let Err(error) = checkpoint_before(&self.context, self.key, &known, about) {
            tracing::warn!(%error, "no checkpoint was taken before a call of the agent");
        }
    }

    /// Whether a path is in the work tree, links resolved, and is neither git's nor our own.
    fn is_inside(&self, path: &Path) -> bool {
        let path = real(&self.folder.join(path));
        // What is not there yet is not resolved.
        let is_hidden =
            |part: Component<'_>| part == Component::ParentDir || part.as_os_str() == ".git";
        path.starts_with(real(self.context.worktree()))
            && !path.components().any(is_hidden)
            && !path.starts_with(real(self.context.store().dir()))
    }

    fn read(&self, path: &Path) -> std::result::Result<String, (i64, String)> {
        let bytes = Root::shared(self.context.worktree()).read_at_most(path, MAX_FILE);
        let bytes = match bytes {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_gemini => Vec::new(),
            bytes => bytes.map_err(|error| refused(path, &error))?,
        };
        String::from_utf8(bytes).map_err(|_| (FAILED, format!("{} is no text", path.display())))
    }

    fn write(&mut self, path: &Path, content: &str) -> std::result::Result<Value, (i64, String)> {
        if !self.is_inside(path) {
            return Err((
                INVALID_PARAMS,
                format!("{} is not in the work tree", path.display()),
            ));
        }
        self.before(&ToolCall::edit(path));
        let root = Root::shared(self.context.worktree());
        let folder = path
            .parent()
            .map_or(Ok(()), |folder| root.create_dir_all(folder));
        let written = folder.and_then(|()| root.write(path, content.as_bytes(), Sync::Nothing));
        written.map_err(|error| refused(path, &error))?;
        Ok(Value::Null)
    }
}

fn refused(path: &Path, error: &io::Error) -> (i64, String) {
    match error.kind() {
        io::ErrorKind::NotFound => (NOT_FOUND, format!("Resource not found: {}", path.display())),
        _ => (FAILED, format!("{}: {error}", path.display())),
    }
}

/// At most `most` lines from line `first` on, which counts from 1.
fn lines_of(content: &str, first: Option<u64>, most: Option<u64>) -> String {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let before = number(first.unwrap_or(1).saturating_sub(1));
    let most = most.map_or(usize::MAX, number);
    content
        .split_inclusive('\n')
        .skip(before)
        .take(most)
        .collect()
}

fn checkpoint_before(
    context: &Context,
    key: &RunKey,
    call: &hook::ToolCall,
    about: String,
) -> Result<()> {
    let risk = risk(&call.name, call);
    if risk == ToolCallRisk::Nothing || !context.settings().checkpoint.enabled {
        return Ok(());
    }
    let state = context.load()?.state;
    let why = risk.trigger().or_else(|| due(context, &state, key, 1));
    let Some(why) = why else {
        return record_operation(context, key, &call.name);
    };
    let options = Options {
        skip_if_unchanged: true,
        ..Options::default()
    };
    create(context, Request::new(why, about), options).map(drop)
}
