//! Everything that makes an event or a checkpoint.
//! Captures, the working memory, nested repositories, storage, lane records, the run that a command works on; and which
//! attempts and steps have lost their process.

pub(crate) mod adopt;
pub(crate) mod attempt_record;
mod changes;
pub(crate) mod checkpoint;
pub(crate) mod damage;
pub(crate) mod edits;
pub(crate) mod events;
pub(crate) mod foreign;
pub(crate) mod forgotten;
pub(crate) mod git_locks;
pub(crate) mod git_settings;
pub(crate) mod lane;
pub(crate) mod liveness;
mod loan;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod nested;
pub(crate) mod own_commits;
pub(crate) mod remote_consent;
pub(crate) mod request;
pub(crate) mod run_settings;
pub(crate) mod seed_json;
pub(crate) mod select;
pub(crate) mod sizes;
pub(crate) mod storage;
