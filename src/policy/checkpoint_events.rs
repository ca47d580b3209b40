//! Events as checkpoints carry them: without secrets, and merged with what is left of a damaged ledger.
//!
//! Checkpoints' commits may be pushed, and leave the machine in bundles. The second part is the pure part of `doctor --rebuild`.
//!
//! Each checkpoint holds its run's events since the one before it, so a run's own events are known in their exact order.
//! The runs among one another, and what is left of the ledger, are put in the order of their times.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use serde_json::Value;

use super::secrets::{REDACTED, may_hold_secret, redact_json};
use crate::model::event::EVENT_SCHEMA;
use crate::model::{
    Checkpoint, Event, EventSource, Payload, RunKey, RunSpec, RunStatus, State, StepEnd,
    StepStatus, Timestamp,
};

/// What happened, without secrets; as it is where it holds none.
pub fn masked_payload(payload: &Payload) -> Cow<'_, Payload> {
    let holds = serde_json::to_string(payload).is_ok_and(|text| may_hold_secret(&text));
    let document = if holds {
        serde_json::to_value(payload).ok()
    } else {
        None
    };
    let Some(document) = document else {
        return Cow::Borrowed(payload);
    };
    let masked = redact_json(document.clone());
    if masked == document {
        return Cow::Borrowed(payload);
    }
    let mut parsed = None;
    masked_where(document, &masked, |document| {
        let payload = serde_json::from_value(document.clone()).ok();
        let fits = payload.is_some();
        parsed = payload.or(parsed.take());
        fits
    });
    parsed.map_or(Cow::Borrowed(payload), |masked| {
        Cow::Owned(noted(masked, payload))
    })
}

/// The masked payload, with what it lacks noted where it is run again, beside what was noted before.
fn noted(mut masked: Payload, whole: &Payload) -> Payload {
    let more = match (&masked, whole) {
        (
            Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec, .. },
            Payload::RunCreated { spec: whole, .. } | Payload::RunSpecChanged { spec: whole, .. },
        ) => unlike(&**whole, &**spec),
        (Payload::StepStarted(start), Payload::StepStarted(whole)) => unlike(&**whole, &**start),
        _ => Vec::new(),
    };
    if let Some(note) = note_of(&mut masked) {
        let new: Vec<String> = more
            .into_iter()
            .filter(|name| !note.contains(name))
            .collect();
        note.extend(new);
    }
    masked
}

/// Where a payload notes which of its fields lack a secret; `None` where nothing of it is run again.
fn note_of(payload: &mut Payload) -> Option<&mut Vec<String>> {
    match payload {
        Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec, .. } => {
            Some(&mut spec.masked)
        }
        Payload::StepStarted(start) => Some(&mut start.masked),
        _ => None,
    }
}

/// Notes what an event from a checkpoint or a remote lacks: an earlier version masked it and noted nothing. By the mask's
/// text, for nothing else is left to know it by: a command that was typed so has to be given again once too often.
pub(crate) fn note_masks(payload: &mut Payload) {
    let lacking = match &*payload {
        Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec, .. } => {
            with_masks(&**spec)
        }
        Payload::StepStarted(start) => with_masks(&**start),
        _ => return,
    };
    if let Some(note) = note_of(payload).filter(|note| note.is_empty()) {
        *note = lacking;
    }
}

/// A payload by which two records of the same event are the same: without secrets, and without the note of what was masked,
/// which one of them may lack.
pub(crate) fn without_secrets(payload: &Payload) -> Payload {
    let mut payload = masked_payload(payload).into_owned();
    if let Some(note) = note_of(&mut payload) {
        note.clear();
    }
    payload
}

/// The fields of a value in which something is masked, by name.
fn with_masks<T: Serialize>(value: &T) -> Vec<String> {
    fields(value, |_, value| value.to_string().contains(REDACTED))
}

/// The fields in which two values of a type differ, by name.
fn unlike<T: Serialize>(one: &T, other: &T) -> Vec<String> {
    let one = serde_json::to_value(one).unwrap_or_default();
    fields(other, |name, value| one.get(name) != Some(value))
}

/// The fields of a value of which this is true, by name.
fn fields<T: Serialize>(value: &T, holds: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let document = serde_json::to_value(value).unwrap_or_default();
    let fields = document.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| holds(name, value))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Of the fields that were masked those that still are: whatever was given anew is whole.
pub(crate) fn still_masked(spec: &RunSpec) -> Vec<String> {
    let masks = with_masks(spec);
    spec.masked
        .iter()
        .filter(|name| masks.contains(name))
        .cloned()
        .collect()
}

/// The document with every text masked with which it still `fits`: a word of ours that only looks like a secret is none.
fn masked_where(document: Value, masked: &Value, mut fits: impl FnMut(&Value) -> bool) -> Value {
    if fits(masked) {
        return masked.clone();
    }
    let mut places = Vec::new();
    differing(&document, masked, String::new(), &mut places);
    places.into_iter().fold(document, |document, place| {
        let mut tried = document.clone();
        if let (Some(text), Some(mask)) = (tried.pointer_mut(&place), masked.pointer(&place)) {
            text.clone_from(mask);
        }
        if fits(&tried) { tried } else { document }
    })
}

/// Where two documents of the same form differ.
fn differing(one: &Value, other: &Value, place: String, places: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            for ((name, one), other) in one.iter().zip(other.values()) {
                let name = name.replace('~', "~0").replace('/', "~1");
                differing(one, other, format!("{place}/{name}"), places);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                differing(one, other, format!("{place}/{at}"), places);
            }
        }
        _ if one != other => places.push(place),
        _ => {}
    }
}

/// Why what is recorded cannot be run.
pub(crate) const MASKED: &str =
    "held a secret, which is not in the checkpoints that it was rebuilt from";

/// A checkpoint with the events that it carries.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// Its record.
    pub checkpoint: Checkpoint,
    /// The run's events since its previous checkpoint, and those that were to follow its own.
    pub events: Vec<Event>,
}

/// A ledger that was put together again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rebuilt {
    /// Its events; their numbers are old ones still.
    pub events: Vec<Event>,
    /// How many of them are in the checkpoints only.
    pub recovered: u64,
}

/// An event and where it stood.
#[derive(Clone, Debug)]
struct Item {
    event: Event,
    /// The event's number; a checkpoint's own event, which is not in it, comes right after the last number before it.
    order: (u64, u64),
    left: bool,
}

/// Puts a ledger together from what is `left` of the old one and from the checkpoints.
///
/// Events that are in both are taken once. A run or checkpoint that was only taken in from its reference gives way to the
/// real events. Where a run's beginning was pruned, it is made up from its first checkpoint. A run whose iterations are
/// all done counts as complete: the event that says so comes after its last checkpoint.
pub(crate) fn rebuild(left: Vec<Event>, recorded: Vec<Recorded>, now: Timestamp) -> Rebuilt {
    let mut chains = chains(recorded);
    let left = drop_stand_ins(left, &chains);
    let same_numbers = {
        let numbered: BTreeSet<String> = left
            .iter()
            .map(|event| format!("{} {}", event.seq, identity(event)))
            .collect();
        let both = |item: &Item| {
            numbered.contains(&format!("{} {}", item.event.seq, identity(&item.event)))
        };
        chains.values().flatten().any(both)
    };
    let known: BTreeSet<String> = left.iter().map(identity).collect();
    for (key, chain) in &mut chains {
        chain.retain(|item| !known.contains(&identity(&item.event)));
        let made = |event: &Event| matches!(event.payload, Payload::RunCreated { .. });
        let is_known = left
            .iter()
            .any(|event| event.run.as_ref() == Some(key) && made(event));
        if !is_known && !chain.iter().any(|item| made(&item.event)) {
            let first = beginning(key, chain.iter().map(|item| &item.event));
            chain.splice(0..0, first);
        }
    }
    let recovered = chains.values().map(|chain| chain.len() as u64).sum();
    let touched: Vec<RunKey> = chains
        .iter()
        .filter(|(_, chain)| !chain.is_empty())
        .map(|(key, _)| key.clone())
        .collect();
    let mut queues: Vec<VecDeque<Item>> = chains.into_values().map(VecDeque::from).collect();
    queues.push(
        left.into_iter()
            .map(|event| Item {
                order: (event.seq, 0),
                event,
                left: true,
            })
            .collect(),
    );
    let mut events = merge(queues, same_numbers);
    number_checkpoints(&mut events);
    finish_complete_runs(&mut events, &touched, now);
    end_open_steps(&mut events, &touched, now);
    Rebuilt { events, recovered }
}

/// The events of each run, in order.
fn chains(mut recorded: Vec<Recorded>) -> BTreeMap<RunKey, Vec<Item>> {
    recorded.sort_by_key(|one| (one.checkpoint.seq, one.checkpoint.created_at));
    let mut chains: BTreeMap<RunKey, Vec<Item>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for Recorded { checkpoint, events } in recorded {
        let chain = chains.entry(checkpoint.run.clone()).or_default();
        let mut last = chain.last().map_or(0, |item| item.order.0);
        let taken = Payload::CheckpointCreated {
            checkpoint: Box::new(checkpoint.clone()),
            adopted: false,
            own_commits: Vec::new(),
        };
        let mut own = Some(added(&checkpoint.run, checkpoint.created_at, taken));
        let mut push = |event: Event, order: (u64, u64)| {
            if seen.insert(identity(&event)) {
                chain.push(Item {
                    event,
                    order,
                    left: false,
                });
            }
        };
        for mut event in events {
            note_masks(&mut event.payload);
            let ends = matches!(&event.payload, Payload::AttemptEnded(end) if end.checkpoint_id.as_ref() == Some(&checkpoint.id));
            if ends && let Some(own) = own.take() {
                push(own, (last, checkpoint.seq));
            }
            last = event.seq;
            push(event, (last, 0));
        }
        if let Some(own) = own {
            push(own, (last, checkpoint.seq));
        }
    }
    chains
}

/// What makes an event the same as another one, whatever its number.
fn identity(event: &Event) -> String {
    let run = event
        .run
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    match &event.payload {
        Payload::CheckpointCreated { checkpoint, .. } => {
            format!("checkpoint {run} {}", checkpoint.id)
        }
        Payload::RunCreated { .. } => format!("run {run}"),
        Payload::AttemptEnded(end) => format!(
            "end {run} {} {} {:?}",
            end.iteration, end.attempt, end.checkpoint_id
        ),
        Payload::AttemptStarted {
            iteration, attempt, ..
        } => format!("begin {run} {} {iteration} {attempt}", event.at),
        // What a checkpoint carries of it has no secrets.
        payload => {
            let masked = without_secrets(payload);
            format!(
                "{run} {} {}",
                event.at,
                serde_json::to_string(&masked).unwrap_or_default()
            )
        }
    }
}

/// Leaves out what was only made up from references: the checkpoints carry the real events.
fn drop_stand_ins(mut left: Vec<Event>, chains: &BTreeMap<RunKey, Vec<Item>>) -> Vec<Event> {
    let mut real: BTreeMap<String, &Event> = BTreeMap::new();
    for item in chains.values().flatten() {
        real.insert(identity(&item.event), &item.event);
    }
    left.retain(|event| match &event.payload {
        Payload::CheckpointCreated { adopted: true, .. } => !real.contains_key(&identity(event)),
        // One that was made up says nothing of what the run executes.
        Payload::RunCreated { spec, .. } => real.get(&identity(event)).is_none_or(|real| {
            let is_real = real.payload == event.payload || **spec != RunSpec::default();
            real.at > event.at || (real.at == event.at && is_real)
        }),
        _ => true,
    });
    left
}

/// The creation of a run whose own event was pruned with its first checkpoints.
fn beginning<'a>(key: &RunKey, mut events: impl Iterator<Item = &'a Event>) -> Option<Item> {
    let first = events.find_map(|event| match &event.payload {
        Payload::CheckpointCreated { checkpoint, .. } => Some(checkpoint),
        _ => None,
    })?;
    let payload = Payload::RunCreated {
        task_id: first.task_id.clone(),
        session: key.run_id.to_string(),
        worktree: first.worktree.clone(),
        spec: Box::new(RunSpec::default()),
    };
    Some(Item {
        event: added(key, first.created_at, payload),
        order: (0, 0),
        left: false,
    })
}

/// One list of all; the order within each is kept.
fn merge(mut queues: Vec<VecDeque<Item>>, by_number: bool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let head = |queue: &VecDeque<Item>| {
            queue.front().map(|item| {
                let at = if by_number {
                    None
                } else {
                    Some((item.event.at, item.left))
                };
                Reverse((at, item.order))
            })
        };
        let next = (0..queues.len()).rev().max_by_key(|at| head(&queues[*at]));
        match next.and_then(|at| queues[at].pop_front()) {
            Some(item) => events.push(item.event),
            None => return events,
        }
    }
}

/// Checkpoints of ledgers that knew nothing of each other may have the same number.
fn number_checkpoints(events: &mut [Event]) {
    let mut used = BTreeSet::new();
    for event in events {
        if let Payload::CheckpointCreated { checkpoint, .. } = &mut event.payload
            && !used.insert(checkpoint.seq)
        {
            checkpoint.seq = used.last().map_or(1, |last| last + 1);
            used.insert(checkpoint.seq);
        }
    }
}

/// An event that no checkpoint carries; it is numbered later.
fn added(run: &RunKey, at: Timestamp, payload: Payload) -> Event {
    Event {
        seq: 0,
        at,
        schema: EVENT_SCHEMA,
        run: Some(run.clone()),
        source: EventSource::Recover,
        payload,
    }
}

fn finish_complete_runs(events: &mut Vec<Event>, touched: &[RunKey], now: Timestamp) {
    let state = fold(events);
    let done = state.runs.iter().filter(|run| {
        let total = run
            .spec
            .iterations_total
            .filter(|_| run.spec.until.is_none());
        let all = total.is_some_and(|total| run.current_iteration > total);
        all && touched.contains(&run.key)
            && run.status == RunStatus::InProgress
            && run.live.is_none()
            && run.failure.is_none()
    });
    for run in done {
        let reason = "every iteration was done when its last checkpoint was taken".to_owned();
        let payload = Payload::RunStatusChanged {
            status: RunStatus::Complete,
            reason,
        };
        events.push(added(&run.key, now, payload));
    }
}

/// How a step ended that was under way at its run's last checkpoint is not known: it is not done, and nothing is put
/// back for it.
fn end_open_steps(events: &mut Vec<Event>, touched: &[RunKey], now: Timestamp) {
    let state = fold(events);
    for run in state.runs.iter().filter(|run| touched.contains(&run.key)) {
        for step in run
            .steps
            .iter()
            .filter(|step| step.status == StepStatus::Running)
        {
            let end = StepEnd {
                name: step.start.name.clone(),
                status: StepStatus::CutOff,
                exit_code: None,
                duration_ms: 0,
                error: None,
                rolled_back: false,
                commits: Vec::new(),
            };
            events.push(added(&run.key, now, Payload::StepEnded(end)));
        }
    }
}

/// What events add up to once they are numbered in their order.
pub(crate) fn fold(events: &[Event]) -> State {
    let mut state = State::default();
    for (seq, event) in (1..).zip(events) {
        state.apply(&Event {
            seq,
            ..event.clone()
        });
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // A version that noted nothing is recognised by the mask's text; what was noted stays as it is.
    #[test]
    fn what_lacks_a_secret_is_noted_by_the_mask() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<String>>()
        };
        let masked_of = |spec: RunSpec| {
            let mut payload = Payload::RunSpecChanged {
                spec: Box::new(spec),
                changes: Vec::new(),
            };
            note_masks(&mut payload);
            note_of(&mut payload).cloned().unwrap_or_default()
        };
        let masked = RunSpec {
            command: words(&["agent", "--token=[redacted]"]),
            until: Some("test [redacted]".to_owned()),
            ..RunSpec::default()
        };
        assert_eq!(masked_of(masked.clone()), ["command", "until"]);
        assert_eq!(
            masked_of(RunSpec {
                masked: words(&["until"]),
                ..masked.clone()
            }),
            ["until"]
        );
        assert_eq!(
            masked_of(RunSpec {
                command: words(&["agent"]),
                ..RunSpec::default()
            }),
            Vec::<String>::new()
        );
        // What is masked once more keeps the note of before.
        let more = RunSpec {
            prompt: Some("password=hunter22".to_owned()),
            masked: words(&["command"]),
            ..masked
        };
        let mut payload = masked_payload(&Payload::RunSpecChanged {
            spec: Box::new(more),
            changes: Vec::new(),
        })
        .into_owned();
        assert_eq!(
            note_of(&mut payload).cloned().unwrap_or_default(),
            ["command", "prompt"]
        );
    }

    #[test]
    fn one_word_that_cannot_be_masked_keeps_no_other_one() {
        let document = json!({"kind": "sk", "a/b": {"prompt": "secret"}, "argv": ["x", "secret"]});
        let masked = json!({"kind": "-", "a/b": {"prompt": "-"}, "argv": ["x", "-"]});
        let shown = masked_where(document.clone(), &masked, |document| {
            document["kind"] == "sk"
        });
        assert_eq!(
            shown,
            json!({"kind": "sk", "a/b": {"prompt": "-"}, "argv": ["x", "-"]})
        );
        assert_eq!(masked_where(document, &masked, |_| true), masked);
    }
}
