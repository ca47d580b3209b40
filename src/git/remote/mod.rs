//! Remotes: git servers that the user's own `git` talks to, with the user's credentials, proxies and keys.
//!
//! A remote is a name that git knows. One call is one connection: it lists references, pushes exact updates that force
//! nothing, or fetches references to places of ours. `call` runs git within a time limit, and `answer` classifies what came
//! of it. What leaves this machine of a checkpoint is decided in `outgoing`; `run_state` has the references of runs, what
//! their states are made of, and what is examined of fetched ones.

mod answer;
mod backend;
mod call;
mod check;
mod outgoing;
pub(super) mod run_state;
mod transport;

pub use answer::Answer;
pub use backend::{Remote, Update};
pub use call::Limits;
pub use check::Examined;
pub(crate) use check::Finding;
pub use outgoing::{Filter, Outgoing};
pub use run_state::NewState;
