//! Everything that makes an event or a checkpoint.
//! Captures, the working memory, nested repositories, storage, lane records, the run that a command works on; and which
//! attempts and steps have lost their process.

pub mod adopt;
pub mod attempt_record;
mod changes;
pub mod checkpoint;
pub mod damage;
pub mod edits;
pub mod events;
pub mod foreign;
pub mod forgotten;
pub mod git_locks;
pub mod git_settings;
pub mod lane;
pub mod liveness;
mod loan;
pub mod memory;
pub mod message;
pub mod nested;
pub mod own_commits;
pub mod remote_consent;
pub mod request;
pub mod run_settings;
pub mod seed_json;
pub mod select;
pub mod sizes;
pub mod storage;
