//! What the ledger records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent_record::{LimitLeft, Tokens, Usage};
use super::attempt::Preconditions;
use super::import::Imported;
use super::run::Leftover;
use super::step::StepStart;
use super::{
    AttemptOutcome, Change, Checkpoint, CheckpointId, Condition, Decision, Failure,
    FeedbackResults, FolderId, IterationStatus, ManualFixSession, ManualFixStatus, ObjectId,
    Operation, ProcessId, RunId, RunKey, RunSpec, RunStatus, StepEnd, Strategy, TaskId, Timestamp,
    Verdict,
};

/// The schema of the events that this version writes. Older ones are read; newer ones are read where possible and
/// never written after (exit 15). What says nothing new is written with the schema in which it came ([`Payload::schema`]).
pub const EVENT_SCHEMA: u32 = 3;

/// Who speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum EventSource {
    /// The program's own bookkeeping.
    #[default]
    Recover,
    /// The reaction to an error (L5).
    Recovery,
}

/// One line of the ledger, its checksum aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Fields")]
pub struct Event {
    /// Position in the ledger, 1-based without gaps.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// The schema it was written with.
    pub schema: u32,
    /// The run it is about.
    #[serde(flatten)]
    pub run: Option<RunKey>,
    /// Who speaks.
    pub source: EventSource,
    /// What happened.
    #[serde(flatten)]
    pub payload: Payload,
}

/// An event as it is read. A flattened `Option<RunKey>` would be `None` where its fields are wrong.
#[derive(Deserialize)]
struct Fields {
    seq: u64,
    at: Timestamp,
    schema: u32,
    run_id: Option<RunId>,
    phase: Option<String>,
    lane: Option<String>,
    source: EventSource,
    #[serde(flatten)]
    payload: Payload,
}

impl From<Fields> for Event {
    fn from(fields: Fields) -> Self {
        let (phase, lane) = (fields.phase.as_deref(), fields.lane.as_deref());
        Self {
            seq: fields.seq,
            at: fields.at,
            schema: fields.schema,
            run: fields.run_id.map(|id| RunKey::new(id, phase, lane)),
            source: fields.source,
            payload: fields.payload,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Payload {
    /// A run came to be.
    RunCreated {
        /// What it works on.
        task_id: Option<TaskId>,
        /// The session whose budget it shares.
        session: String,
        /// Absolute path of its work tree.
        worktree: FolderId,
        /// What it executes.
        spec: Box<RunSpec>,
    },
    /// What the run executes has changed (another command or other terms were given, a command was added to a manual run).
    RunSpecChanged {
        /// What it executes from now on.
        spec: Box<RunSpec>,
        /// Which of its terms are others than before, each as a few words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<String>,
    },
    /// The run stands elsewhere.
    RunStatusChanged {
        /// Where.
        status: RunStatus,
        /// Why.
        reason: String,
    },
    /// A person is done with the run, however it stands.
    RunClosed {},
    /// What a run did is in ordinary commits of the user's.
    RunAccepted {
        /// Those that were made for it, oldest first; none where there was nothing to commit.
        commits: Vec<ObjectId>,
        /// The reference that keeps the run's own commits that were folded into them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
        /// Whether new files of it were left out, which can be asked for still.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        left_out: bool,
        /// How it is taken back; `None` where nothing was committed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Box<Operation>>,
    },
    /// Runs were removed with all that was theirs, to the last trace but the lines of the ledger.
    RunsForgotten {
        /// Which.
        runs: Vec<RunKey>,
    },
    /// What the ledger had of the run makes way for what lies of it on a remote, which follows.
    RunReplaced {
        /// The remote.
        remote: String,
    },
    /// The run was resumed.
    RunResumed {
        /// How.
        strategy: Option<Strategy>,
        /// The iteration that comes next.
        iteration: u32,
        /// Whether iterations from there on count as not done (`--from-iteration`, `--restart`).
        supersede: bool,
        /// Text for the next prompt.
        instructions: Option<String>,
        /// Whether the next prompt carries the error.
        error_context: bool,
        /// Whether one attempt beyond the budget was granted by the explicit request.
        granted: bool,
        /// Whether the failure and its count are forgotten (`--restart`).
        restart: bool,
    },
    /// An attempt begins.
    AttemptStarted {
        /// Its iteration.
        iteration: u32,
        /// Its number.
        attempt: u32,
        /// What it tries.
        approach: Option<String>,
        /// What it is booked on.
        subtask: String,
        /// The budget's session.
        session: String,
        /// HEAD.
        head: Option<ObjectId>,
        /// The `recover` that supervises it.
        supervisor: Option<ProcessId>,
        /// Its log.
        log_path: Option<String>,
        /// Whether it runs the fallback in place of the run's command.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fallback: bool,
    },
    /// The attempt's command runs.
    ChildStarted {
        /// Its process.
        child: ProcessId,
    },
    /// The attempt's agent named its own session, in which a later attempt may go on.
    AgentSessionSeen {
        /// Its id.
        session: String,
    },
    /// An attempt is over.
    AttemptEnded(Box<AttemptEnd>),
    /// The feedback loops are run before the first attempt.
    BaselineStarted {
        /// The `recover` that runs them.
        supervisor: ProcessId,
    },
    /// The feedback loops were run on the initial checkpoint, before the first attempt.
    BaselineVerified {
        /// That checkpoint.
        checkpoint_id: CheckpointId,
        /// What they said of it.
        verdict: Verdict,
        /// One by one.
        results: FeedbackResults,
    },
    /// An iteration stands elsewhere.
    IterationChanged {
        /// Which.
        iteration: u32,
        /// Where.
        status: IterationStatus,
        /// Why.
        reason: Option<String>,
    },
    /// A checkpoint was taken.
    CheckpointCreated {
        /// Its record.
        checkpoint: Box<Checkpoint>,
        /// Whether it was found as a reference without an event and recorded.
        #[serde(default)]
        adopted: bool,
        /// Commits that whoever asked for it named as the run's own. Those that the record of a stage lists beside them
        /// are whatever is on the branch, whoever made it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        own_commits: Vec<ObjectId>,
    },
    /// Something was done that may have changed the work tree, by the agent or the loop itself (S10).
    OperationRecorded {
        /// What: the agent's tool, or the caller's own word.
        name: String,
        /// Whether the agent was given what was restored since it last worked.
        #[serde(
            default,
            alias = "hears_of_restore",
            skip_serializing_if = "std::ops::Not::not"
        )]
        announces_restore: bool,
    },
    /// A checkpoint that was archived, or taken elsewhere, came back: it says nothing of where the run or the work tree
    /// stands now.
    CheckpointReturned {
        /// Its record.
        checkpoint: Box<Checkpoint>,
    },
    /// A checkpoint was pinned or unpinned.
    CheckpointPinned {
        /// Which.
        checkpoint_id: CheckpointId,
        /// Whether it is pinned now.
        pinned: bool,
        /// The note.
        note: Option<String>,
    },
    /// What a checkpoint comes before as well: nothing had changed since.
    CheckpointLabelled {
        /// Which.
        checkpoint_id: CheckpointId,
        /// What it says beside the rest of its description.
        label: String,
    },
    /// Checkpoints were removed.
    CheckpointsPruned {
        /// Their ids.
        ids: Vec<CheckpointId>,
    },
    /// Files, state or HEAD were restored.
    Restored {
        /// What was done.
        operation: Box<Operation>,
    },
    /// A failure after which an attempt is left to begin after a rollback (L5).
    RollbackInitiated {
        /// The error.
        error: String,
        /// The phase.
        phase: String,
        /// The plan: the loop's number, else the iteration.
        plan: u64,
        /// When a retry is allowed.
        #[serde(rename = "retryAfter")]
        retry_after: Option<Timestamp>,
    },
    /// A failure after which none is left (L5).
    RalphLoopFailed {
        /// The error.
        error: String,
        /// The phase.
        phase: String,
        /// The plan: the loop's number, else the iteration.
        plan: u64,
        /// Why no retry is left.
        reason: String,
    },
    /// The counts were cleared on request (L4).
    RetryReset {},
    /// A manual fix began.
    ManualFixStarted {
        /// The session.
        session: Box<ManualFixSession>,
    },
    /// A manual fix was verified, or found wanting.
    ManualFixVerified {
        /// What had changed.
        changes: Vec<Change>,
        /// What the loops said.
        results: FeedbackResults,
        /// Whether all passed on exactly this tree.
        verified: bool,
        /// The tree.
        tree: ObjectId,
    },
    /// A manual fix is over.
    ManualFixEnded {
        /// How.
        status: ManualFixStatus,
        /// What had changed.
        changes: Vec<Change>,
    },
    /// A named step begins.
    StepStarted(Box<StepStart>),
    /// The step's command runs.
    StepChildStarted {
        /// The step's name.
        name: String,
        /// Its process.
        child: ProcessId,
    },
    /// The step's command is over.
    StepEnded(StepEnd),
    /// The command that takes a step's effect back is about to run.
    StepCompensating {
        /// The step's name.
        name: String,
        /// The `recover` that runs it.
        supervisor: ProcessId,
    },
    /// The command that takes a step's effect back is over.
    StepCompensated {
        /// The step's name.
        name: String,
        /// Whether it succeeded.
        succeeded: bool,
        /// What it ended with; `None` if that is not known.
        exit_code: Option<i32>,
    },
    /// A source system's file was taken over.
    Imported(Box<Imported>),
}

impl Payload {
    /// The schema that it came with: older versions read all that is older still.
    pub fn schema(&self) -> u32 {
        match self {
            Self::RunClosed {}
            | Self::RunAccepted { .. }
            | Self::RunsForgotten { .. }
            | Self::AgentSessionSeen { .. } => 2,
            Self::RunReplaced { .. } => 3,
            _ => 1,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// Its iteration.
    pub iteration: u32,
    /// Its number.
    pub attempt: u32,
    /// How.
    pub outcome: AttemptOutcome,
    /// Whether it counts against the budgets.
    pub charged: bool,
    /// Milliseconds from start to end.
    pub duration_ms: u64,
    /// Exit status of the command.
    pub exit_code: Option<i32>,
    /// Name of the signal that ended the command.
    pub signal: Option<String>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// Its log.
    pub log_path: Option<String>,
    /// What it tried, where that is known only now.
    pub approach: Option<String>,
    /// The checkpoint taken at its end.
    pub checkpoint_id: Option<CheckpointId>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Conditions that hold even when it passed.
    pub conditions: Vec<Condition>,
    /// What the feedback loops said.
    pub feedback_results: FeedbackResults,
    /// What was decided.
    pub decision: Option<Decision>,
    /// Commits that the attempt made.
    pub commits: Vec<ObjectId>,
    /// The agent's own session.
    pub agent_session: Option<String>,
    /// What the conditions are about, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the model gave an answer, where the agent's records say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<bool>,
    /// What it cost by the agent's records, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Tokens that it used by the agent's records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Processes that it left behind outside its session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<Leftover>,
    /// What the attempt changed of git's settings and hooks: keys and paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git_changes: Vec<String>,
    /// What would have to change before it is worth another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Box<Preconditions>>,
    /// The usage limit that its agent ended with, where what it left passed all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<Failure>>,
    /// What the account's tightest limit had left, where the agent's records say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_left: Option<LimitLeft>,
}

impl AttemptEnd {
    /// What it used up.
    pub fn usage(&self) -> Usage {
        Usage {
            cost_micros: self.cost_micros,
            tokens: self.tokens,
        }
    }

    /// One of which nothing but its outcome is known; what failed is charged.
    pub fn new(iteration: u32, attempt: u32, outcome: AttemptOutcome) -> Self {
        Self {
            iteration,
            attempt,
            outcome,
            charged: outcome == AttemptOutcome::Failed,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_comes_twice() {
        let event = |more: &str| {
            let text = format!(
                r#"{{"seq":1,"at":"2026-03-01T12:00:00.000Z","schema":1,"run_id":"r","source":"recover",{more}"type":"retry_reset","payload":{{}}}}"#
            );
            serde_json::from_str::<Event>(&text)
        };
        assert!(event("").is_ok());
        for more in [
            r#""seq":2,"#,
            r#""run_id":"q","#,
            r#""schema":1,"#,
            r#""source":"recover","#,
        ] {
            assert!(event(more).is_err(), "{more}");
        }
    }

    #[test]
    fn an_event_is_read_in_any_order_of_its_fields_and_not_without_one() {
        let fields = [
            r#""seq":1"#,
            r#""at":"2026-03-01T12:00:00.000Z""#,
            r#""schema":1"#,
            r#""source":"recovery""#,
            r#""type":"checkpoint_pinned""#,
            r#""payload":{"checkpoint_id":"c","pinned":true,"note":"n","more":[1]}"#,
            r#""run_id":"r""#,
            r#""lane":"l""#,
            r#""else":{"seq":2}"#,
        ];
        let read =
            |fields: &[&str]| serde_json::from_str::<Event>(&format!("{{{}}}", fields.join(",")));
        let event = read(&fields).unwrap();
        assert_eq!(event.run, Some(RunKey::new("r", None, Some("l"))));
        for first in 0..fields.len() {
            let mut rotated = fields;
            rotated.rotate_left(first);
            assert_eq!(read(&rotated).unwrap(), event);
            rotated.reverse();
            assert_eq!(read(&rotated).unwrap(), event);
            let without = read(&rotated[1..]).ok();
            let is_needed = !["run_id", "lane", "else"]
                .iter()
                .any(|name| rotated[0].contains(&format!("\"{name}\"")));
            assert_eq!(without.is_none(), is_needed, "{}", rotated[0]);
        }
        let run = |more: &[&str]| read(&[&fields[..6], more].concat()).map(|event| event.run);
        assert_eq!(run(&[r#""lane":"l""#]).unwrap(), None);
        assert!(
            run(&[r#""run_id":7"#]).is_err(),
            "no run is not made of a wrong one"
        );
    }

    #[test]
    fn events_of_earlier_versions_are_read() {
        let recorded = r#"{"seq":5,"at":"2026-03-01T12:00:00.000Z","schema":1,"run_id":"r","phase":"-","lane":"-",
            "source":"recover","type":"operation_recorded","payload":{"name":"restore","hears_of_restore":true}}"#;
        assert!(matches!(
            serde_json::from_str::<Event>(recorded).unwrap().payload,
            Payload::OperationRecorded {
                announces_restore: true,
                ..
            }
        ));
        let ended = r#"{"seq":4,"at":"2026-03-01T12:00:00.000Z","schema":1,"run_id":"r","phase":"-","lane":"-",
            "source":"recover","type":"attempt_ended","payload":{"iteration":1,"attempt":1,"outcome":"passed",
            "charged":false,"duration_ms":1,"exit_code":0,"signal":null,"timed_out":false,"log_path":null,
            "approach":null,"checkpoint_id":null,"failure":null,"conditions":[],"decision":null,"commits":[],
            "feedback_results":{"test":{"passed":true,"exit_code":0,"duration_ms":3,"summary":"ok",
            "passed_count":null,"failed_count":null}},"agent_session":null}}"#;
        let Payload::AttemptEnded(end) = serde_json::from_str::<Event>(ended).unwrap().payload
        else {
            panic!()
        };
        assert!(
            end.notes.is_empty()
                && end.cost_micros.is_none()
                && !end.feedback_results["test"].flaky
        );
        let started = r#"{"seq":3,"at":"2026-03-01T12:00:00.000Z","schema":1,"run_id":"r","phase":"-","lane":"-",
            "source":"recover","type":"attempt_started","payload":{"iteration":1,"attempt":1,"approach":null,
            "subtask":"s","session":"r","head":null,"supervisor":null,"log_path":null}}"#;
        let payload = serde_json::from_str::<Event>(started).unwrap().payload;
        assert!(matches!(
            payload,
            Payload::AttemptStarted {
                fallback: false,
                ..
            }
        ));
        let restored = r#"{"seq":5,"at":"2026-03-01T12:00:00.000Z","schema":1,"run_id":"r","phase":"-","lane":"-",
            "source":"recover","type":"restored","payload":{"operation":{"id":"op_0002","kind":"rollback",
            "worktree":"/w","safety_checkpoint_id":"b","checkpoint_id":"a","scope":"all",
            "head":{"before":null,"after":null},"written":1,"deleted":0}}}"#;
        let payload = serde_json::from_str::<Event>(restored).unwrap().payload;
        assert!(matches!(payload, Payload::Restored { operation } if operation.steps.is_empty()));
        let spec: RunSpec =
            serde_json::from_str(r#"{"command":["a"],"iterations_total":1}"#).unwrap();
        assert!(spec.fallback.is_empty());
    }
}
