//! What of a fetched state is believed: everything in it is unverified until it was found to fit.
//!
//! Its events are a line each, with the SHA-256 of the line before.

use serde_json::{Map, Value};

use super::{Flaw, Places, sha256};
use crate::model::event::EVENT_SCHEMA;
use crate::model::remote::{ChainedEvent, Link, Meta, REMOTE_SCHEMA, RemoteState};
use crate::model::{Claim, Event, ObjectId, Payload, RunKey};
use crate::policy::checkpoint_events::masked_payload;

/// The lines that come with a state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    /// The lines, each with its line end.
    pub text: String,
    /// Where the chain stands after them.
    pub end: Link,
}

impl Segment {
    /// What follows `link`.
    pub(crate) fn after(link: &Link) -> Self {
        Self {
            text: String::new(),
            end: link.clone(),
        }
    }

    /// Adds an event without secrets and without places of this machine; `false` where it cannot be written so that it could be
    /// read again.
    pub(crate) fn push(&mut self, event: &Event, places: &Places) -> bool {
        let masked = Event {
            payload: masked_payload(&event.payload).into_owned(),
            ..event.clone()
        };
        let Ok(Value::Object(mut fields)) =
            serde_json::to_value(&masked).map(|document| places.hide(document))
        else {
            return false;
        };
        fields.shift_remove("seq");
        let id = event_id(event.seq, &fields);
        let mut line = Map::new();
        line.insert("run_seq".to_owned(), (self.end.run_seq + 1).into());
        line.insert("id".to_owned(), id.into());
        line.insert("previous".to_owned(), self.end.sha256.clone().into());
        line.extend(fields);
        let text = Value::Object(line).to_string();
        self.end = Link {
            run_seq: self.end.run_seq + 1,
            sha256: sha256(text.as_bytes()),
        };
        self.text.push_str(&text);
        self.text.push('\n');
        true
    }
}

/// The name of an event: of its number in the ledger that it was recorded in, and of what it says.
fn event_id(seq: u64, fields: &Map<String, Value>) -> String {
    let said = Value::Object(fields.clone()).to_string();
    sha256(format!("{seq} {said}").as_bytes())[..32].to_owned()
}

/// Reads the lines of a state that follow `link`. Returns the events, and where the chain stands then.
pub(super) fn read(
    key: &RunKey,
    link: &Link,
    text: &str,
) -> Result<(Vec<ChainedEvent>, Link), Flaw> {
    let mut end = link.clone();
    let mut events = Vec::new();
    for line in text.split_terminator('\n') {
        let number = end.run_seq + 1;
        let damaged = |what: &str| Flaw::Damaged(format!("event {number}: {what}"));
        let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else {
            return Err(damaged("it is no JSON object"));
        };
        // What a newer version says may be unreadable here, and is no damage.
        let schema = fields
            .get("schema")
            .and_then(Value::as_u64)
            .ok_or_else(|| damaged("it has no schema"))?;
        if schema > u64::from(EVENT_SCHEMA) {
            return Err(Flaw::Newer(format!("event {number} has schema {schema}")));
        }
        let mut taken = |name: &str| fields.shift_remove(name).unwrap_or_default();
        if taken("run_seq").as_u64() != Some(number) {
            return Err(damaged("it has another number"));
        }
        if taken("previous").as_str() != Some(&end.sha256) {
            let why = "it does not follow the one before: the chain is broken";
            return Err(damaged(why));
        }
        let id = taken("id");
        let id = id.as_str().filter(|id| is_id(id));
        let id = id.ok_or_else(|| damaged("it has no id"))?.to_owned();
        fields.insert("seq".to_owned(), number.into());
        let event: Event = serde_json::from_value(Value::Object(fields))
            .map_err(|error| damaged(&error.to_string()))?;
        if event.run.as_ref() != Some(key) {
            return Err(damaged("it is about another run"));
        }
        events.push(ChainedEvent { id, event });
        end = Link {
            run_seq: number,
            sha256: sha256(line.as_bytes()),
        };
    }
    Ok((events, end))
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The commit that a run began on: that of its first checkpoint.
pub(crate) fn base<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<ObjectId> {
    events.into_iter().find_map(|event| match &event.payload {
        Payload::CheckpointCreated { checkpoint, .. } => checkpoint.base_commit.clone(),
        _ => None,
    })
}

/// The files of a state, with the most bytes that each may have.
const FILES: [(&str, usize); 3] = [
    ("claim.json", 4 << 10),
    ("events.jsonl", 256 << 20),
    ("meta.json", 1 << 20),
];

/// The most bytes of a file of that name that are worth reading: none of one that no state has.
pub(crate) fn most_of(name: &[u8]) -> usize {
    FILES
        .iter()
        .find(|(known, _)| known.as_bytes() == name)
        .map_or(0, |(_, most)| *most)
}

/// How many checkpoints may come with one state.
const MOST_CHECKPOINTS: usize = 100_000;

/// Texts of a claim are for people and in messages.
const LONGEST_TEXT: usize = 256;

/// A file of a state's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawFile {
    /// Its name.
    pub name: Vec<u8>,
    /// Its mode in the tree.
    pub mode: u32,
    /// Its length in bytes.
    pub size: usize,
    /// What is in it; `None` where it was not read: it is no file, or larger than any of a state's.
    pub content: Option<Vec<u8>>,
}

/// A commit as it was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawState {
    /// The commit.
    pub commit: ObjectId,
    /// Its parents, in their order.
    pub parents: Vec<ObjectId>,
    /// What is directly in its tree.
    pub files: Vec<RawFile>,
}

/// Where a chain of states stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Standing {
    /// The last state.
    pub commit: ObjectId,
    /// Its claim.
    pub claim: Claim,
    /// What it is about.
    pub meta: Meta,
}

impl From<&RemoteState> for Standing {
    fn from(state: &RemoteState) -> Self {
        Self {
            commit: state.commit.clone(),
            claim: state.claim.clone(),
            meta: state.meta.clone(),
        }
    }
}

impl RawState {
    /// The file of this name, where it is an ordinary one of a size that it may have.
    fn file(&self, name: &str, most: usize) -> Result<&[u8], Flaw> {
        let damaged = |what: &str| Flaw::Damaged(format!("{name}: {what}"));
        let file = self.files.iter().find(|file| file.name == name.as_bytes());
        let file = file.ok_or_else(|| damaged("it is missing"))?;
        if file.mode != 0o100_644 {
            return Err(damaged("it is no ordinary file"));
        }
        let content = file
            .content
            .as_deref()
            .filter(|content| content.len() <= most);
        content.ok_or_else(|| damaged("it is too large"))
    }
}

/// What a state is about: read before the rest of it, of which a newer version may have made something else.
fn meta_of(raw: &RawState, key: &RunKey) -> Result<Meta, Flaw> {
    let text = raw.file("meta.json", FILES[2].1)?;
    let damaged = |what: String| Flaw::Damaged(format!("meta.json: {what}"));
    let schema = serde_json::from_slice::<serde_json::Value>(text)
        .ok()
        .and_then(|document| document.get("schema")?.as_u64())
        .ok_or_else(|| damaged("it has no schema".to_owned()))?;
    if schema > u64::from(REMOTE_SCHEMA) {
        return Err(Flaw::Newer(format!(
            "its schema is {schema}, this version knows {REMOTE_SCHEMA}"
        )));
    }
    let meta: Meta = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
    if meta.run != *key {
        return Err(damaged(format!("it is about run {}", meta.run)));
    }
    if meta.state == 0 {
        return Err(damaged("states are counted from 1".to_owned()));
    }
    Ok(meta)
}

/// The run that a state says it is of.
pub(crate) fn key_of(raw: &RawState) -> Option<RunKey> {
    serde_json::from_slice(raw.file("meta.json", FILES[2].1).ok()?).ok()
}

/// Reads a state's meta data and claim, and which of its parents is the state before. Whether the rest fits is [`follow`]'s to say.
pub(crate) fn decode(
    raw: &RawState,
    key: &RunKey,
) -> Result<(Meta, Claim, Option<ObjectId>), Flaw> {
    let meta = meta_of(raw, key)?;
    for file in &raw.files {
        if !FILES.iter().any(|(name, _)| file.name == name.as_bytes()) {
            let name = String::from_utf8_lossy(&file.name).into_owned();
            return Err(Flaw::Damaged(format!(
                "its tree has what no state has: {name:?}"
            )));
        }
    }
    let claim = raw.file("claim.json", FILES[0].1)?;
    let claim: Claim = serde_json::from_slice(claim)
        .map_err(|error| Flaw::Damaged(format!("claim.json: {error}")))?;
    let is_text = |text: &String| {
        !text.is_empty() && text.len() <= LONGEST_TEXT && !text.chars().any(char::is_control)
    };
    let texts = [&claim.holder, &claim.host, &claim.nonce];
    if !texts.into_iter().all(is_text) || claim.fencing == 0 {
        return Err(Flaw::Damaged("claim.json: it names nobody".to_owned()));
    }
    let previous = raw.parents.first().cloned().filter(|_| meta.state > 1);
    if previous.is_none() && meta.state > 1 {
        let why = format!("state {} has none before it", meta.state);
        return Err(Flaw::Damaged(why));
    }
    Ok((meta, claim, previous))
}

/// The state that `raw` is, where it follows `before`.
pub(crate) fn follow(
    raw: &RawState,
    key: &RunKey,
    before: Option<&Standing>,
) -> Result<RemoteState, Flaw> {
    let (meta, claim, previous) = decode(raw, key)?;
    let damaged = |what: String| Flaw::Damaged(format!("state {}: {what}", meta.state));
    if previous.as_ref() != before.map(|before| &before.commit) {
        return Err(damaged("it does not follow the one before".to_owned()));
    }
    if meta.state != before.map_or(0, |before| before.meta.state) + 1 {
        return Err(damaged("it has another number".to_owned()));
    }
    if let Some(what) = unlawful(&claim, before.map(|before| &before.claim)) {
        return Err(damaged(what));
    }
    let link = before
        .map(|before| before.meta.chain.clone())
        .unwrap_or_default();
    let text = std::str::from_utf8(raw.file("events.jsonl", FILES[1].1)?)
        .map_err(|_| damaged("events.jsonl is no text".to_owned()))?;
    let (events, end) = read(key, &link, text).map_err(|flaw| match flaw {
        Flaw::Damaged(what) => damaged(what),
        newer @ Flaw::Newer(_) => newer,
    })?;
    if end != meta.chain {
        return Err(damaged("its events are not those that it names".to_owned()));
    }
    let parents = raw.parents.iter().skip(usize::from(previous.is_some()));
    let checkpoints: Vec<ObjectId> = parents.cloned().collect();
    if checkpoints.len() > MOST_CHECKPOINTS {
        let count = checkpoints.len();
        return Err(damaged(format!("{count} checkpoints at once")));
    }
    let of_event = |event: &Event| match &event.payload {
        Payload::CheckpointCreated { checkpoint, .. }
        | Payload::CheckpointReturned { checkpoint } => {
            Some((checkpoint.commit.clone(), checkpoint.run.clone()))
        }
        _ => None,
    };
    let named: Vec<(ObjectId, RunKey)> = events
        .iter()
        .filter_map(|one| of_event(&one.event))
        .collect();
    let is_named = |commit: &ObjectId| named.iter().any(|(named, _)| named == commit);
    if let Some(other) = checkpoints.iter().find(|commit| !is_named(commit)) {
        return Err(damaged(format!("no event names its checkpoint {other}")));
    }
    if named.iter().any(|(_, run)| run != key) {
        return Err(damaged("a checkpoint of it is another run's".to_owned()));
    }
    Ok(RemoteState {
        commit: raw.commit.clone(),
        previous,
        checkpoints,
        claim,
        meta,
        events,
    })
}

/// Why a claim cannot follow another one.
fn unlawful(claim: &Claim, before: Option<&Claim>) -> Option<String> {
    let before = before?;
    if claim.nonce == before.nonce {
        let is_same = (&claim.holder, &claim.host, claim.fencing)
            == (&before.holder, &before.host, before.fencing);
        return match (is_same, before.released) {
            (false, _) => Some("a claim changed under way".to_owned()),
            (true, true) => Some("a claim was renewed after it was released".to_owned()),
            (true, false) => None,
        };
    }
    let expected = before.fencing.saturating_add(1);
    (claim.fencing != expected)
        .then(|| format!("its fencing is {}, {expected} comes next", claim.fencing))
}
