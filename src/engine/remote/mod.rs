//! Runs that lie on a git server, so that they outlive this machine.
//!
//! One reference a run. Each of its commits is a state: who holds the run, and what happened since the state before. A push from
//! the state that this clone knows is a compare-and-swap, so claim, events and checkpoints cannot disagree, and whoever is
//! refused has lost the run to another machine.
//!
//! - `server` is one server; it reads the states of a run and believes none of them before it is verified. `record` is what this
//!   clone knows of a run there.
//! - `incoming` takes states into the ledger; `push` makes the next one of what the ledger has, and sends it.
//! - `claim` takes and gives back the right to speak for a run, `take_over` goes on with one here, `session` holds it while it is
//!   driven.
//! - `guard` keeps local writers away from a run that another machine holds and sends what they did, also the attempts of a loop that
//!   runs its own commands; `fetched` shows a run that only lies elsewhere; `list` and `prune` are for people, and for workers
//!   that share runs out.

mod claim;
mod fetched;
mod guard;
mod incoming;
mod list;
mod prune;
mod push;
mod record;
mod server;
mod session;
mod take_over;

pub(crate) use crate::engine::record::remote_consent::give_consent;
pub(crate) use claim::TakeOver;
pub(crate) use fetched::fetched;
pub(crate) use guard::{
    before_own_attempt, before_own_end, renew, require_claim, require_new, send_own_beginning,
    send_own_end, send_recorded,
};
pub(crate) use list::{
    Queued, RemoteReport, RunRemote, claim_run, fetch, push, queued, release_run, run_remotes,
    runs, status, team_report,
};
pub(crate) use prune::{prune, remove_sent, sent, sent_to};
pub(crate) use server::Server;
pub(crate) use server::{Checked, check};
pub(crate) use session::{Session, release, require_consent_to_drive};
pub(crate) use take_over::{plan_take_over, take_over};
