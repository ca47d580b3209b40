//! Local writers of a run that another machine holds: what they would do, its holder would never hear of.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::recovery::crash;
use crate::model::run::RunKey;
use crate::policy::remote::Hold;

use super::claim::held;
use super::record::{self, remotes_of};
use super::server::{Reached, Server};
use super::session::last_seen;
use super::sync::whose;
use crate::engine::flow::runs::Chosen;

/// Refuses to change runs that another machine holds (11). The server is asked where this clone has ever been in touch with it
/// about the run; where it is away, what was seen last counts.
pub fn require_claim(context: &Context, chosen: &Chosen) -> Result<()> {
    if !context.has_git() || !context.store().exists() {
        return Ok(());
    }
    let state = crash::load_recovered(context)?;
    // Which run is meant, or that none is, is the command's own to say.
    let Ok(keys) = chosen.of(context, &state) else { return Ok(()) };
    keys.iter().try_for_each(|key| require(context, key))
}

fn require(context: &Context, key: &RunKey) -> Result<()> {
    for remote in remotes_of(context, key) {
        let Some(record) = record::load(context, key, &remote)? else { continue };
        let Some(tip) = record.tip.clone() else { continue };
        let server = match Server::of(context, &remote) {
            Ok(server) => server,
            Err(error) => {
                context.warn(format!("whether another machine holds run {key} is not known: {error}"));
                continue;
            }
        };
        let seen = match server.look(key) {
            Ok(Reached::Yes(Some(found))) if found != tip => match whose(&server, key, &tip)? {
                Reached::Yes(Some(standing)) => Some(standing.claim),
                Reached::Yes(None) | Reached::Away(_) => last_seen(&server, key)?,
            },
            Ok(Reached::Yes(_)) => last_seen(&server, key)?,
            Ok(Reached::Away(away)) => {
                context.warn(format!("the remote {remote} cannot be reached: {}; by what was seen last", away.said));
                last_seen(&server, key)?
            }
            Err(error) => {
                context.warn(format!("whether another machine holds run {key} is not known: {error}"));
                last_seen(&server, key)?
            }
        };
        let never = std::time::Duration::ZERO;
        let state =
            crate::policy::remote::hold(seen.as_ref(), record.nonce.as_deref(), never, std::time::Duration::MAX);
        if let (Hold::Held, Some(claim)) = (state, &seen) {
            return Err(held(&server, key, claim));
        }
    }
    Ok(())
}
