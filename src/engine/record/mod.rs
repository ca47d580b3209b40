//! What makes events and checkpoints, and what is known of them without recovery: captures, working memory, nested
//! repositories, lanes, and which processes are gone.

pub mod adopt;
pub mod attempt_record;
pub mod damage;
pub mod events;
pub mod foreign;
pub mod liveness;
pub mod message;
pub mod request;
pub mod run_settings;
pub mod step_liveness;
