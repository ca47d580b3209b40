//! Everything that makes an event or a checkpoint.
//! Captures, the working memory, nested repositories, storage, lane records, the run that a command works on; and which
//! attempts and steps have lost their process.

pub(crate) mod at_work;
pub(crate) mod attempt_record;
pub(crate) mod checkpoint;
pub(crate) mod events;
pub(crate) mod git_state;
pub(crate) mod lane;
pub(crate) mod limits;
pub(crate) mod liveness;
pub(crate) mod memory;
pub(crate) mod nested;
pub(crate) mod remote_consent;
pub(crate) mod run_settings;
pub(crate) mod seed_json;
pub(crate) mod select;
pub(crate) mod storage;
pub(crate) mod stored;
pub(crate) mod vault;
