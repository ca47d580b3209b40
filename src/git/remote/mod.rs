//! Remotes: git servers that the user's own `git` talks to, with the user's credentials, proxies and keys.
//!
//! A remote is a name that git knows. One call is one connection: it lists references, pushes exact updates that force
//! nothing, or fetches references to places of ours. `call` runs git within a time limit, and `answer` classifies what came
//! of it. What leaves this machine of a checkpoint is decided in `outgoing`; what a state of
//! a run is made of, in `state_commit`. Names in the trees of fetched checkpoints are looked through in `fetched_names`.

mod answer;
mod call;
mod check;
mod fetched_names;
mod names;
mod outgoing;
mod state_commit;
mod transport;

pub use answer::Answer;
pub use call::Limits;
pub(crate) use check::Finding;
pub use check::{Examined, SCRATCH};
pub(crate) use fetched_names::FetchedNames;
pub(crate) use names::{
    RUNS, SIDE, incoming_of, is_of_run, pending_ref, run_component, run_ref, side_ref, tracking_of,
    tracking_ref,
};
pub(crate) use outgoing::{Captured, Leaving, count_filtered, filtered, leaving_of};
pub use outgoing::{Filter, Outgoing, leaving, outgoing};
pub use state_commit::{NewState, write_state};
pub(crate) use state_commit::{is_before, read_state};
pub use transport::{Remote, Update};
