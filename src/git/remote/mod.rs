//! Remotes: git servers that the user's own `git` talks to, with the user's credentials, proxies and keys; and object stores.
//!
//! A remote is a name that git knows, or the configuration. One call is one connection: it lists references, pushes exact updates that force
//! nothing, or fetches references to places of ours. `call` runs git within a time limit, and `answer` classifies what came
//! of it. What leaves this machine of a checkpoint is decided in `outgoing`; `run_state` has the references of runs, what
//! their states are made of, and what is examined of fetched ones.

mod answer;
mod backend;
mod call;
mod check;
mod outgoing;
pub(super) mod run_state;
#[cfg(feature = "store")]
mod store;
mod transport;

pub use answer::{Answer, Missed};
pub use backend::Remote;
pub use call::Limits;
pub use check::Examined;
pub(crate) use check::Finding;
pub use outgoing::{Filter, Outgoing};
pub use run_state::NewState;
