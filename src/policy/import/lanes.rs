//! `checkpoints.json` (C1–C3): each record belongs to the lane that it names.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::event::Payload;
use crate::model::import::ImportKind;
use crate::model::lane::{Origin, STAGES};
use crate::model::run::{NONE, RunKey, RunStatus};
use crate::model::time::Timestamp;

use super::part::{ImportInput, Part, created, imported};
use super::read::{Place, Problem};

/// What a record may say of its stage (C2).
const STATUSES: [&str; 7] = [
    "ready",
    "in_progress",
    "failed",
    "blocked",
    "complete",
    "rolled_back",
    "retrying",
];

pub(super) fn read(document: &Value, at: &ImportInput<'_>) -> Result<Vec<Part>, Problem> {
    let mut parts: Vec<Part> = Vec::new();
    let records = Place::root(document).items()?;
    let place = |record: &Value| {
        let named = |name: &str| {
            record[name]
                .as_str()
                .filter(|name| *name != NONE)
                .map(str::to_owned)
        };
        ["run_id", "phase", "lane", "stage"].map(named)
    };
    let last: BTreeMap<_, usize> = records
        .iter()
        .enumerate()
        .map(|(at, record)| (place(record.value), at))
        .collect();
    for (number, record) in records.iter().enumerate() {
        let run_id = record.required("run_id")?.name()?;
        let (phase, lane) = (name(record, "phase")?, name(record, "lane")?);
        let key = RunKey::new(run_id, phase, lane);
        let stage = one_of(&record.required("stage")?, &STAGES)?;
        if let Some(status) = record.field("status") {
            one_of(&status, &STATUSES)?;
        }
        for text in [
            "base_branch",
            "worktree_path",
            "log_path",
            "resume_hint",
            "rollback_hint",
            "target_branch",
        ] {
            record.text_of(text)?;
        }
        let when = record.time_of("timestamp")?;
        let known = parts.iter().position(|part| part.key == key);
        let index = known.unwrap_or_else(|| {
            parts.push(Part {
                key: key.clone(),
                events: Vec::new(),
                left_out: Vec::new(),
            });
            parts.len() - 1
        });
        let part = &mut parts[index];
        if last.get(&place(record.value)) != Some(&number) {
            part.left_out
                .push(record.problem("a later record of this stage is in the file"));
            continue;
        }
        match newer(at, &key, stage, record.value, when) {
            Known::Same => continue,
            Known::Newer => {
                part.left_out
                    .push(record.problem("the ledger has a newer record of this stage"));
                continue;
            }
            Known::No => {}
        }
        let is_new = at.state.run(&key).is_none() && part.events.is_empty();
        let moment = when.unwrap_or(at.now);
        if is_new {
            let worktree = record.text_of("worktree_path")?;
            part.events
                .push((moment, created(at, &key, None, worktree)));
        }
        part.events
            .push((moment, imported(at, ImportKind::Lanes, stage, record.value)));
        if at.state.run(&key).is_none() {
            let reason = format!("its record of {stage} was imported");
            let status = stands(record.value["status"].as_str());
            // The record is the last word about it: it is what tells whether anything has happened since.
            let last = part.events.len() - 1;
            part.events
                .insert(last, (moment, Payload::RunStatusChanged { status, reason }));
        }
    }
    Ok(parts)
}

enum Known {
    No,
    Same,
    Newer,
}

/// Whether the ledger has this record already, or a later one of its stage.
fn newer(
    at: &ImportInput<'_>,
    key: &RunKey,
    stage: &str,
    record: &Value,
    when: Option<Timestamp>,
) -> Known {
    let records = at.state.lane_records(key);
    let Some(known) = records.iter().find(|known| known.stage == stage) else {
        return Known::No;
    };
    match known.origin {
        Origin::Imported(document) if document.imported.document == *record => Known::Same,
        Origin::Imported(_) => Known::No,
        Origin::Own(checkpoint) | Origin::Retry(checkpoint) => {
            let ours = record["checkpoint_id"].as_str() == Some(checkpoint.id.as_str());
            match (ours, when) {
                (true, _) => Known::Same,
                (false, Some(when)) if when > checkpoint.created_at => Known::No,
                _ => Known::Newer,
            }
        }
    }
}

fn name<'a>(record: &Place<'a>, field: &str) -> Result<Option<&'a str>, Problem> {
    let named = record.field(field).map(|field| field.name()).transpose()?;
    Ok(named.filter(|name| *name != NONE))
}

fn one_of<'a>(field: &Place<'a>, words: &[&str]) -> Result<&'a str, Problem> {
    let word = field.text()?;
    if words.contains(&word) {
        return Ok(word);
    }
    Err(field.problem(format!("'{word}' is none of {}", words.join(", "))))
}

fn stands(status: Option<&str>) -> RunStatus {
    match status {
        Some("failed") => RunStatus::Failed,
        Some("blocked") => RunStatus::Blocked,
        Some("rolled_back") => RunStatus::RolledBack,
        _ => RunStatus::Paused,
    }
}
