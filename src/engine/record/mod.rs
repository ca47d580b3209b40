//! What makes events and checkpoints, and what is known of them without recovery: captures, working memory, nested
//! repositories, lanes, and which processes are gone.

pub mod foreign;
