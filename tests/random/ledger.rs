//! Any bytes as the ledger, alone and beside a whole second copy.
//!
//! What is read is all that is there, what is there is read or refused, and no damage gives attempts back.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use recover::testing::model::State;
use recover::testing::model::Timestamp;
use recover::testing::model::{EVENT_SCHEMA, Event, Payload};
use recover::testing::model::{Run, RunKey};
use recover::testing::policy::RetrySettings;
use recover::testing::policy::retry_status;
use recover::testing::store::{NewEvent, Store, StoreError, salvage};
use recover::testing::store::{
    active_checkpoint, attempt_view, battle, encode, lane_records, recovery_state,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::driver::{Target, folder, kind_of, seen};

const LABEL: &[u8] = b",\"checksum\":\"";

pub struct Ledger {
    folder: TempDir,
    /// What the second copy holds.
    whole: Vec<u8>,
    events: Vec<Event>,
    copy: PathBuf,
}

fn store(dir: PathBuf) -> Store {
    Store::new(dir, Duration::from_secs(5))
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_790_000_000_000)
}

/// The only file in a folder.
fn only(folder: &Path) -> PathBuf {
    let mut found = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let file = found.next().unwrap();
    assert!(found.next().is_none(), "more than one file");
    file
}

impl Ledger {
    pub fn new() -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join("git")).unwrap();
        let whole = fs::read(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random/corpus/ledger/failures"),
        )
        .unwrap();
        let mut ledger = Self {
            folder,
            whole,
            events: Vec::new(),
            copy: PathBuf::new(),
        };
        ledger.set(&ledger.whole);
        let paired = ledger.paired();
        drop(paired.lock().unwrap());
        ledger.events = events(&paired.read_lines(0).unwrap());
        ledger.copy = only(&ledger.folder.path().join("git/recover"));
        assert_eq!(fs::read(&ledger.copy).unwrap(), ledger.whole);
        ledger
    }

    fn alone(&self) -> Store {
        store(self.folder.path().join("alone"))
    }

    fn paired(&self) -> Store {
        store(self.folder.path().join("paired")).with_copy(Some(&self.folder.path().join("git")))
    }

    /// Makes these bytes the ledger in both places, without anything that was derived from another.
    fn set(&self, bytes: &[u8]) {
        for place in ["alone", "paired"] {
            let dir = self.folder.path().join(place);
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("events.jsonl"), bytes).unwrap();
        }
    }

    /// No repair leaves fewer events than the copy has, and none of its failures is forgotten.
    fn play_paired(&self, input: &[u8], goes_on: bool) {
        if fs::read(&self.copy).unwrap() != self.whole {
            fs::write(&self.copy, &self.whole).unwrap();
        }
        let paired = self.paired();
        let Ok(loaded) = paired.load() else { return };
        let read = events(&paired.read_lines(0).unwrap());
        assert!(
            loaded.newer.is_some() || read.len() >= self.events.len(),
            "{} events are left",
            read.len()
        );
        // Of lines that are the copy's own none is passed over.
        if read.iter().all(|event| self.events.contains(event)) {
            assert_eq!(read, self.events);
            assert_eq!(attempts(&loaded.state), attempts(&folded(&self.events)));
        }
        if goes_on && loaded.newer.is_none() {
            match paired.lock() {
                Ok(ledger) => assert_eq!(
                    *ledger.state(),
                    *loaded.state,
                    "repaired it is what was read"
                ),
                Err(error) => panic!(
                    "it was read and cannot be locked: {error}\n{}",
                    input.escape_ascii()
                ),
            }
            assert_eq!(*self.paired().load().unwrap().state, *loaded.state);
        }
    }

    /// A ledger that was set back to some of its first lines beside a copy that is damaged: never fewer events than can
    /// still be read of the copy.
    fn play_as_copy(&self, input: &[u8], salvaged: &[Event]) {
        let lines: Vec<&[u8]> = self.whole.split_inclusive(|byte| *byte == b'\n').collect();
        self.set(&lines[..lines.len() / 2].concat());
        fs::write(&self.copy, input).unwrap();
        let paired = self.paired();
        let Ok(loaded) = paired.load() else { return };
        let read = paired.read_lines(0).unwrap().len() as u64;
        assert!(
            loaded.newer.is_some() || read >= lines.len() as u64 / 2,
            "{read} events are left"
        );
        if salvaged.iter().all(|event| self.events.contains(event)) {
            let known = salvaged.iter().map(|event| event.seq).max().unwrap_or(0);
            assert!(
                read >= known,
                "{read} events are left, and the copy has number {known}"
            );
        }
    }
}

fn events(lines: &[(Event, String)]) -> Vec<Event> {
    lines.iter().map(|(event, _)| event.clone()).collect()
}

fn folded(events: &[Event]) -> State {
    let mut state = State::default();
    for event in events {
        state.apply(event);
    }
    state
}

/// How many attempts are charged, by run.
fn attempts(state: &State) -> Vec<(RunKey, usize, u32)> {
    let charged = |run: &Run| {
        run.attempts()
            .filter(|(_, attempt)| attempt.charged)
            .count()
    };
    state
        .runs
        .iter()
        .map(|run| (run.key.clone(), charged(run), run.error_count))
        .collect()
}

/// What every version's lines have.
#[derive(serde::Deserialize)]
struct Head {
    schema: u32,
}

/// Whether a line is an event of number `seq` with its checksum, by another reader; `None` where it holds many.
fn is_sound(line: &[u8], seq: u64) -> Option<bool> {
    if memchr::memmem::find(line, b",\"packed\":").is_some() {
        return None;
    }
    let Some(at) = line.len().checked_sub(LABEL.len() + 10) else {
        return Some(false);
    };
    let (body, end) = line.split_at(at);
    let body = [body, b"}"].concat();
    if end
        != [
            LABEL,
            format!("{:08x}\"}}", crc32fast::hash(&body)).as_bytes(),
        ]
        .concat()
    {
        return Some(false);
    }
    let Ok(body) = String::from_utf8(body) else {
        return Some(false);
    };
    match serde_json::from_str::<Event>(&body) {
        Ok(event) => Some(event.seq == seq),
        Err(_) => {
            Some(serde_json::from_str::<Head>(&body).is_ok_and(|head| head.schema > EVENT_SCHEMA))
        }
    }
}

/// What was printed is read as the same, and printed as the same.
fn is_itself(event: &Event) {
    let text = serde_json::to_string(event).unwrap();
    let read: Event = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(read, *event);
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

/// Everything that is made of the state for others.
fn show(state: &State, store: &Store) {
    let mut views = vec![encode(&recovery_state(state)), encode(&attempt_view(state))];
    views.push(encode(&active_checkpoint(state, None)));
    views.push(encode(&lane_records(state, store)));
    views.extend(
        state
            .runs
            .iter()
            .map(|run| encode(&battle(state, run, &|_| None))),
    );
    for view in views {
        serde_json::from_slice::<Value>(&view.unwrap()).unwrap();
    }
    for run in &state.runs {
        let status = retry_status(state, run, &RetrySettings::default(), now(), None);
        assert!(
            status.attempts_left
                <= status
                    .budgets
                    .iter()
                    .map(|budget| budget.left.try_into().unwrap_or(u32::MAX))
                    .max()
        );
        assert_eq!(
            store.run_dir(&run.key).parent(),
            Some(store.private_dir().join("runs").as_path())
        );
    }
    let bytes = rmp_serde::to_vec_named(state).unwrap();
    let read: State = rmp_serde::from_slice(&bytes).unwrap();
    assert_eq!(read, *state, "what the cache holds of it");
    let mut packed = state.clone();
    packed.pack();
    assert_eq!(attempts(&packed), attempts(state));
}

impl Target for Ledger {
    const NAME: &'static str = "ledger";
    const TOKENS: &'static [&'static [u8]] = &[
        b"\n",
        b"{\"seq\":",
        b"\"packed\":1,",
        b"\"type\":\"retry_reset\",\"payload\":{}",
        b"\"type\":\"run_closed\",\"payload\":{}",
        b"\"charged\":false",
        b"\"schema\":9",
        b"\"schema\":2",
        b"attempt_started",
        b"attempt_ended",
        b"run_resumed",
        b"runs_forgotten",
        b"checkpoints_pruned",
        b"passed",
        b"failed",
        b"cancelled",
        b"retry",
        b"park",
        b"rollback",
        b"continue",
        b"skip",
        b"in_progress",
        b"escalated",
        b"null",
        b"9999-12-31T23:59:59.999Z",
        b"9999-12-31T23:59:59-23:59",
        b"0000-01-01T00:00:00+23:59",
        b"run_id",
        b"-",
    ];
    const LONGEST: usize = 48 << 10;

    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64> {
        inputs.iter().map(|input| self.play_one(input)).collect()
    }

    fn complete(&self, input: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
        if rng.u8(..4) == 0 {
            return input;
        }
        let renumbered = rng.bool();
        let lines = input.split_inclusive(|byte| *byte == b'\n');
        (1..)
            .zip(lines)
            .flat_map(|(seq, line)| signed(line, renumbered.then_some(seq)))
            .collect()
    }
}

/// A line with the checksum that belongs to it, and with this number.
fn signed(line: &[u8], seq: Option<u64>) -> Vec<u8> {
    let Some(at) = memchr::memmem::rfind(line, LABEL) else {
        return line.to_vec();
    };
    let mut body = line[..at].to_vec();
    if let (Some(seq), Some(rest)) = (seq, body.strip_prefix(b"{\"seq\":")) {
        let end = rest
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(rest.len());
        body = [format!("{{\"seq\":{seq}").as_bytes(), &rest[end..]].concat();
    }
    let checksum = crc32fast::hash(&[&body[..], b"}"].concat());
    let end: &[u8] = if line.ends_with(b"\n") { b"\n" } else { b"" };
    [
        &body[..],
        LABEL,
        format!("{checksum:08x}\"}}").as_bytes(),
        end,
    ]
    .concat()
}

impl Ledger {
    fn play_one(&self, input: &[u8]) -> u64 {
        let found = salvage(input);
        self.play_as_copy(input, &found.events);
        for event in &found.events {
            is_itself(event);
        }
        self.set(input);
        let alone = self.alone();
        let loaded = alone.load();
        let goes_on = crc32fast::hash(input).is_multiple_of(8);
        self.play_paired(input, goes_on);
        let whole = memchr::memrchr(b'\n', input).map_or(0, |at| at + 1);
        let lines = input[..whole]
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| &line[..line.len() - 1]);
        let sound: Option<Vec<bool>> = (1..)
            .zip(lines)
            .map(|(seq, line)| is_sound(line, seq))
            .collect();
        if let Some(sound) = sound {
            let expected = !sound.is_empty() && sound.iter().all(|sound| *sound);
            assert_eq!(loaded.is_ok(), expected, "{:?}", loaded.as_ref().err());
        }
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(StoreError::Corrupt { reason, .. }) => return seen(&("corrupt", kind_of(&reason))),
            Err(error) => return seen(&kind_of(&error.to_string())),
        };
        let read = match alone.read_lines(0) {
            // What follows a line of a newer version is for that to judge.
            Err(StoreError::Corrupt { .. }) if loaded.newer.is_some() => {
                return seen(&"newer, and then corrupt");
            }
            read => read.unwrap(),
        };
        let all = events(&read);
        if loaded.newer.is_none() {
            assert_eq!(folded(&all), *loaded.state, "read at once and line by line");
            assert!(
                found
                    .events
                    .iter()
                    .filter(|event| all.contains(event))
                    .count()
                    >= all.len(),
                "all is salvaged"
            );
        }
        for after in [1, all.len() as u64 / 2] {
            let rest: Vec<_> = read
                .iter()
                .filter(|(event, _)| event.seq > after)
                .cloned()
                .collect();
            assert_eq!(alone.read_lines(after).unwrap(), rest, "from the end");
        }
        show(&loaded.state, &alone);
        if goes_on && loaded.newer.is_none() {
            let mut ledger = alone.lock().unwrap();
            assert_eq!(*ledger.state(), *loaded.state);
            let run = RunKey::new("another", None, None);
            ledger
                .append(now(), vec![NewEvent::about(&run, Payload::RetryReset {})])
                .unwrap();
            drop(ledger);
            let after = events(&self.alone().read_lines(0).unwrap());
            assert_eq!(after.len(), all.len() + 1);
            assert_eq!(after[..all.len()], all);
        }
        let kinds: BTreeSet<String> = all.iter().map(|event| kind(&event.payload)).collect();
        let runs: BTreeSet<&str> = loaded
            .state
            .runs
            .iter()
            .map(|run| run.status.as_str())
            .collect();
        seen(&(loaded.newer, kinds, runs))
    }
}

fn kind(payload: &Payload) -> String {
    let document = serde_json::to_value(payload).unwrap_or_default();
    document["type"].as_str().unwrap_or_default().to_owned()
}
