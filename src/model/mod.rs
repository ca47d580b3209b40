//! Plain data: what a run, a checkpoint, a failure and a decision are, and how events add up to a state. One file a thing.
//! Nothing here does I/O or reads a clock.

pub(crate) mod agent_record;
pub(crate) mod attempt;
pub(crate) mod checkpoint;
pub(crate) mod decision;
pub(crate) mod event;
pub(crate) mod failure;
pub(crate) mod feedback;
pub(crate) mod hint;
pub(crate) mod hook;
pub(crate) mod id;
pub(crate) mod import;
pub(crate) mod lane;
pub(crate) mod lazy_compressed;
pub(crate) mod manifest;
pub(crate) mod operation;
pub(crate) mod path;
pub(crate) mod remote;
pub(crate) mod run;
pub(crate) mod run_line;
pub(crate) mod selector;
pub(crate) mod spec;
pub(crate) mod state;
pub(crate) mod step;
pub(crate) mod tasks;
pub(crate) mod time;
pub(crate) mod vault;

pub(crate) use attempt::{
    Attempt, AttemptOutcome, Iteration, IterationStatus, ManualFixSession, ManualFixStatus,
    ProcessId,
};
pub(crate) use checkpoint::{
    ChangeTotals, Checkpoint, CheckpointType, LaneFields, StorageType, Verdict,
};
pub(crate) use decision::{Action, Decision, Standing, Strategy};
pub(crate) use event::{AttemptEnd, Event, EventSource, Payload};
pub(crate) use failure::{Cause, Condition, Failure, FailureType};
pub(crate) use feedback::{CheckKind, FeedbackLoop, FeedbackResult, FeedbackResults};
pub(crate) use hint::{Hint, Place};
pub(crate) use hook::HookAgent;
pub(crate) use id::{CheckpointId, RunId, RunKey, TaskId};
pub(crate) use import::ImportKind;
pub(crate) use manifest::{
    CaptureRules, Change, ChangeType, Entry, EntryKind, Head, IndexExtra, Manifest, Nested,
    ObjectId, PathMode, Snapshot,
};
pub(crate) use operation::{HeadMove, Operation, OperationKind, Scope};
pub(crate) use path::{FolderId, PathReason, RepoPath};
pub(crate) use remote::Claim;
pub(crate) use run::{Run, RunSpec, RunStatus};
pub(crate) use run_line::RunLine;
pub(crate) use selector::Selector;
pub(crate) use spec::{Task, TaskList};
pub(crate) use state::{Named, State};
pub(crate) use step::{Step, StepEnd, StepStatus, ToldStep};
pub(crate) use time::Timestamp;
pub(crate) use vault::{RepositoryState, VaultRecord};

/// The version of the documents: fields may be added, never renamed or removed without raising it.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Names the values of enums by the words of documents and of the command line, which `strum` derives.
macro_rules! words {
    ($($kind:ty),+ $(,)?) => { $(
        impl $kind {
            /// Its word in documents and on the command line.
            pub const fn as_str(self) -> &'static str {
                self.into_str()
            }
        }
    )+ };
}

words! {
    agent_record::AgentKind, attempt::IterationStatus, checkpoint::Verdict, decision::Action,
    decision::Strategy, decision::BudgetScope, failure::FailureType, failure::Severity,
    failure::Cause, failure::Condition, failure::SuggestedAction, failure::EvidenceSource,
    feedback::CheckKind, hook::HookAgent, import::ImportKind, manifest::ChangeType,
    operation::OperationKind, operation::Scope, path::Blocked, run::RunStatus, step::StepStatus
}
