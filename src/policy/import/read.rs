//! What imports have in common: reading with complaints that name their place, and the events that a document yields.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::model::failure::FailureEvidence;
use crate::model::import::Imported;
use crate::model::{
    AttemptEnd, AttemptOutcome, Failure, FailureType, FeedbackResults, FolderId, ImportKind,
    Payload, RunKey, RunSpec, RunStatus, State, TaskId, Timestamp,
};
use crate::policy::classify::classify;

/// Lists and objects within one another: more than any of these documents has, and half of what can be read again.
pub(super) const MAX_DEPTH: usize = 64;
/// More iterations than any run has.
const MAX_ITERATION: u32 = 100_000;

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error, JsonSchema)]
#[error("{place}: {message}")]
#[schemars(rename = "import_problem")]
pub struct Problem {
    /// A JSON pointer (`/iterations/2/number`; `/` is the document).
    pub place: String,
    /// What.
    pub message: String,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub value: &'a Value,
    path: String,
}

impl<'a> Place<'a> {
    /// The whole document.
    pub(super) fn root(value: &'a Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// What is wrong here.
    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        let is_root = self.path.is_empty();
        let place = if is_root { "/" } else { &self.path }.to_owned();
        Problem {
            place,
            message: message.into(),
        }
    }

    /// Refuses what is nested deeper than any of these documents is: one that the ledger could not read again inside
    /// an event of its own, say.
    pub(super) fn no_deeper_than(&self, levels: usize) -> Result<(), Problem> {
        let inner: Vec<Self> = match self.value {
            Value::Array(_) => self.items()?,
            Value::Object(fields) => fields.keys().filter_map(|name| self.field(name)).collect(),
            _ => return Ok(()),
        };
        let Some(left) = levels.checked_sub(1) else {
            return Err(self.problem(format!("it is nested more than {MAX_DEPTH} levels deep")));
        };
        inner.iter().try_for_each(|one| one.no_deeper_than(left))
    }

    fn is_not(&self, what: &str) -> Problem {
        let found = match self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(_) => "text".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        self.problem(format!("{what} belongs here, not {found}"))
    }

    /// The fields of an object.
    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, Problem> {
        self.value
            .as_object()
            .ok_or_else(|| self.is_not("an object"))
    }

    /// A field; `None` where it is missing or null.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Self {
            value,
            path: format!("{}/{escaped}", self.path),
        })
    }

    /// A field that must be there.
    pub(super) fn required(&self, name: &str) -> Result<Self, Problem> {
        self.field(name)
            .ok_or_else(|| self.problem(format!("it has no '{name}'")))
    }

    /// A field as it is read; `None` where it is missing or null.
    pub(super) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Self) -> Result<T, Problem>,
    ) -> Result<Option<T>, Problem> {
        self.field(name).map(|field| read(&field)).transpose()
    }

    /// What a text of these represents.
    pub(super) fn word<T: Copy>(&self, known: &[(&str, T)], what: &str) -> Result<T, Problem> {
        let text = self.text()?;
        let found = known.iter().find(|(word, _)| *word == text);
        found
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| self.problem(format!("'{text}' is no {what}")))
    }

    /// A value of one of our own types.
    pub(super) fn parsed<T: DeserializeOwned>(&self, what: &str) -> Result<T, Problem> {
        serde_json::from_value(self.value.clone())
            .map_err(|_| self.problem(format!("{} is no {what}", self.value)))
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<Vec<Self>, Problem> {
        let list = self.value.as_array().ok_or_else(|| self.is_not("a list"))?;
        let item = |(at, value)| Self {
            value,
            path: format!("{}/{at}", self.path),
        };
        Ok(list.iter().enumerate().map(item).collect())
    }

    /// The items of a field's list; none where it is missing.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Self>, Problem> {
        Ok(self.optional(name, Self::items)?.unwrap_or_default())
    }

    /// Text.
    pub(super) fn text(&self) -> Result<&'a str, Problem> {
        self.value.as_str().ok_or_else(|| self.is_not("text"))
    }

    /// A name of something: text that is not empty and has nothing unprintable in it.
    pub(super) fn name(&self) -> Result<&'a str, Problem> {
        let text = self.text()?;
        if text.trim().is_empty() || text.chars().any(char::is_control) || text.len() > 500 {
            return Err(self.problem("it is empty, too long or not printable"));
        }
        Ok(text)
    }

    /// A field's text.
    pub(super) fn text_of(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        self.optional(name, Self::text)
    }

    /// A whole number that is not negative.
    pub(super) fn number(&self) -> Result<u32, Problem> {
        let number = self
            .value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.is_not("a whole number from 0"))
    }

    /// A field's number.
    pub(super) fn number_of(&self, name: &str) -> Result<Option<u32>, Problem> {
        self.optional(name, Self::number)
    }

    /// A field's number of an iteration. One that nothing can follow would never end.
    pub(super) fn iteration_of(&self, name: &str) -> Result<Option<u32>, Problem> {
        self.optional(name, |field| match field.number()? {
            number if number > MAX_ITERATION => Err(field.problem(format!(
                "iterations beyond {MAX_ITERATION} are not imported"
            ))),
            number => Ok(number),
        })
    }

    /// A field's yes or no.
    pub(super) fn flag_of(&self, name: &str) -> Result<Option<bool>, Problem> {
        self.optional(name, |field| {
            let flag = field.value.as_bool();
            flag.ok_or_else(|| field.is_not("true or false"))
        })
    }

    /// A time in ISO 8601.
    pub(super) fn time(&self) -> Result<Timestamp, Problem> {
        let text = self.text()?;
        text.parse()
            .map_err(|error| self.problem(format!("'{text}' is not a time: {error}")))
    }

    /// A field's time.
    pub(super) fn time_of(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        self.optional(name, Self::time)
    }
}

/// What is known beside the document.
#[derive(Clone, Copy, Debug)]
pub struct ImportInput<'a> {
    /// What the ledger holds already.
    pub state: &'a State,
    /// The file, absolute.
    pub source: &'a str,
    /// The work tree of runs that name none.
    pub worktree: &'a FolderId,
    /// The run to take it over into, where one is named and the document names none.
    pub run: Option<&'a RunKey>,
    /// The present moment.
    pub now: Timestamp,
}

/// What a document adds to one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The run.
    pub key: RunKey,
    /// What is new, in order; empty where the ledger has it all.
    pub events: Vec<(Timestamp, Payload)>,
    /// Why something of it is left out.
    pub left_out: Vec<Problem>,
}

impl Part {
    pub(super) fn new(key: &RunKey) -> Self {
        Self {
            key: key.clone(),
            events: Vec::new(),
            left_out: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, at: Timestamp, payload: Payload) {
        self.events.push((at, payload));
    }

    /// The run's status from here on.
    pub(super) fn push_status(&mut self, at: Timestamp, status: RunStatus, reason: &str) {
        let reason = reason.to_owned();
        self.push(at, Payload::RunStatusChanged { status, reason });
    }
}

/// The event that makes a run.
pub(super) fn created(
    at: &ImportInput<'_>,
    key: &RunKey,
    task_id: Option<TaskId>,
    worktree: Option<&str>,
) -> Payload {
    Payload::RunCreated {
        task_id,
        session: key.run_id.to_string(),
        worktree: worktree.map_or_else(|| at.worktree.clone(), FolderId::from),
        spec: Box::new(RunSpec::default()),
    }
}

/// The event that records the document itself.
pub(super) fn imported(
    at: &ImportInput<'_>,
    kind: ImportKind,
    id: &str,
    document: &Value,
) -> Payload {
    let (source, document) = (at.source.to_owned(), document.clone());
    Payload::Imported(Box::new(Imported {
        kind,
        id: id.to_owned(),
        source,
        document,
    }))
}

/// The document of this kind and id that the run was given last.
pub(super) fn known<'a>(
    at: &ImportInput<'a>,
    key: &RunKey,
    kind: ImportKind,
    id: &str,
) -> Option<&'a Value> {
    let run = at.state.run(key)?;
    let found = run
        .imported
        .iter()
        .rfind(|one| one.imported.kind == kind && one.imported.id == id);
    found.map(|one| &one.imported.document)
}

/// An attempt that another system made.
#[derive(Clone, Debug)]
pub(super) struct PastAttempt {
    pub iteration: u32,
    pub number: u32,
    pub subtask: String,
    pub session: String,
    pub approach: Option<String>,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub outcome: AttemptOutcome,
    pub failure: Option<Failure>,
    pub feedback_results: FeedbackResults,
}

impl PastAttempt {
    /// Its beginning and its end.
    pub(super) fn events(self) -> [(Timestamp, Payload); 2] {
        let begin = Payload::AttemptStarted {
            iteration: self.iteration,
            attempt: self.number,
            approach: self.approach,
            subtask: self.subtask,
            session: self.session,
            head: None,
            supervisor: None,
            log_path: None,
            fallback: false,
        };
        let failure = self.failure.map(|failure| Failure {
            iteration: Some(self.iteration),
            attempt: Some(self.number),
            at: failure.at.or(Some(self.ended)),
            ..failure
        });
        let taken = self.ended.since(self.started).as_millis();
        let end = AttemptEnd {
            duration_ms: u64::try_from(taken).unwrap_or(u64::MAX),
            failure,
            feedback_results: self.feedback_results,
            ..AttemptEnd::new(self.iteration, self.number, self.outcome)
        };
        [
            (self.started, begin),
            (self.ended, Payload::AttemptEnded(Box::new(end))),
        ]
    }
}

/// A failure of which only its message is known.
pub(super) fn failure_of(message: Option<&str>, at: &ImportInput<'_>) -> Failure {
    failure_of_type(message, FailureType::FeedbackFailure, at)
}

/// A failure of a known type: what a supervisor saw is not guessed from the message.
pub(super) fn failure_of_type(
    message: Option<&str>,
    kind: FailureType,
    at: &ImportInput<'_>,
) -> Failure {
    let text = message.unwrap_or("failed; why is not recorded");
    let crashed = kind == FailureType::Crash;
    let evidence = FailureEvidence {
        message: Some(text.to_owned()),
        exit_code: (!crashed).then_some(1),
        signal: crashed.then(|| "SIGKILL".to_owned()),
        timed_out: kind == FailureType::Timeout,
        cancelled: kind == FailureType::Cancellation,
        ..FailureEvidence::default()
    };
    Failure {
        message: text.to_owned(),
        ..classify(&evidence, None, &[], at.now)
    }
}
