//! Plain data: what a run, a checkpoint, a failure and a decision are, and how events add up to a state. One file a thing.
//! Nothing here does I/O or reads a clock.

pub mod agent_record;
pub mod attempt;
pub mod check_kind;
pub mod checkpoint;
pub mod checkpoints;
pub mod decision;
pub mod event;
pub mod failure;
pub mod feedback;
pub mod folder;
pub mod hint;
pub mod history;
pub mod hook;
pub mod id;
pub mod import;
pub mod iterations;
pub mod lane;
pub mod launch;
pub mod lazy_compressed;
pub mod manifest;
pub mod manual_fix;
pub mod operation;
pub mod path;
pub mod precondition;
pub mod remote;
pub mod run;
pub mod run_key;
pub mod selector;
pub mod snapshot;
pub mod spec;
pub mod state;
pub mod step;
pub mod time;
pub mod usage;

/// The version of the documents: fields may be added, never renamed or removed without raising it.
pub const SCHEMA_VERSION: u32 = 1;
