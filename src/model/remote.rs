//! What lies of a run on a git server: who holds it, what it is about, and its events in a chain.

use serde::{Deserialize, Serialize};

use super::{Event, ObjectId, RunKey};

/// The schema of what lies there that this version writes. A newer one is refused (15).
pub(crate) const REMOTE_SCHEMA: u32 = 1;

/// Who may speak for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The clone that holds it: the id of its state directory.
    pub holder: String,
    /// The name of its machine, for people.
    pub host: String,
    /// Random for each claim: what has another one is another claim.
    pub nonce: String,
    /// Rises with each claim.
    pub fencing: u64,
    /// Whether the holder is done with it.
    pub released: bool,
}

/// A place in a run's chain of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    /// Events so far.
    pub run_seq: u64,
    /// SHA-256 of the line of the last of them, hexadecimal; empty before the first.
    pub sha256: String,
}

/// What a state is about, beside claim and events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// The schema it was written with.
    pub schema: u32,
    /// The run.
    #[serde(flatten)]
    pub run: RunKey,
    /// The number of this state, 1-based: only the first has no state before it.
    pub state: u64,
    /// Where the chain of events stands with this state.
    pub chain: Link,
    /// Milliseconds after which a claim that shows no sign of life may be taken.
    pub lease_ms: u64,
    /// The budgets in force.
    pub policy: serde_json::Value,
    /// The commit that the run began on.
    pub base_commit: Option<ObjectId>,
    /// The program that wrote it.
    pub creator: String,
    /// Whether files of its checkpoints stayed where they were taken.
    #[serde(default)]
    pub partial: bool,
    /// The host whose living claim was taken with this state, on a person's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_from: Option<String>,
}

/// An event as it lies there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChainedEvent {
    /// Names it for good: a push that is repeated does not add it twice.
    pub id: String,
    /// The event; its `seq` is its number in the chain.
    pub event: Event,
}

/// One state of a run, read and found to be well-formed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RemoteState {
    /// Its commit.
    pub commit: ObjectId,
    /// The state before; `None` for the first.
    pub previous: Option<ObjectId>,
    /// The commits of the checkpoints that came with it.
    pub checkpoints: Vec<ObjectId>,
    /// Who holds the run.
    pub claim: Claim,
    /// What it is about.
    pub meta: Meta,
    /// What happened since the state before.
    pub events: Vec<ChainedEvent>,
}
