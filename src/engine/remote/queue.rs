//! The runs that several machines share out among them, as each sees them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::list::{refresh_found, state_there};
use super::record::RunThere;
use super::server::{Miss, Server};
use crate::engine::base::{Context, Result};
use crate::engine::record::liveness::is_driven;
use crate::git::remote::Remote;
use crate::model::{ObjectId, Run, RunId, RunKey};
use crate::policy::remote::Hold;

/// A run on a remote, as whoever may go on with it sees it.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub run: Run,
    /// The machine that has it, or had it last.
    pub host: String,
    /// After what time it is free at the latest, if its holder shows no sign of life; `None`: this work tree may have it now.
    pub free_in: Option<Duration>,
    /// How long it may show no sign of life.
    pub lease: Duration,
    tip: ObjectId,
}

/// The runs there whose ids begin so. What was read before, and is the same there, is not read again.
///
/// # Errors
/// The server is away (9).
pub(crate) fn queued(
    context: &Context,
    begin: &str,
    mut known: BTreeMap<RunKey, Queued>,
) -> Result<BTreeMap<RunKey, Queued>> {
    let server = Server::named(context)?;
    let place = Remote::runs_of(Some(&RunId::from(begin)));
    let found = server.below(&place).map_err(Miss::error)?;
    let (found, _) = refresh_found(&server, &found, None)?;
    let mut all = BTreeMap::new();
    for (key, tip) in found {
        let there = RunThere::on(&server, &key);
        let (record, standing) = (there.record()?, there.standing(&tip)?);
        let (hold, free_in) = there.hold(&record, &standing);
        let is_held = match hold {
            Hold::Held => true,
            // In another work tree of this clone.
            Hold::Ours => is_driven(context, &key),
            Hold::Free => false,
        };
        let read = known.remove(&key).filter(|known| known.tip == tip);
        let run = match read {
            Some(known) => Some(known.run),
            None => state_there(&server, &key, &tip)?.0.run(&key).cloned(),
        };
        if let Some(run) = run {
            let queued = Queued {
                run,
                lease: there.lease(&standing),
                host: standing.claim.host,
                free_in: is_held.then_some(free_in),
                tip,
            };
            all.insert(key, queued);
        }
    }
    Ok(all)
}
