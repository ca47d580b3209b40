//! What a remote's server guarantees: asked for, and before the first run is made there.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::server::{Miss, Reach, Server};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::remote_consent::require_consent;
use crate::git::remote::{Answer, Examined, Finding, Limits};
use crate::store::new_id;

/// How long one connection may take.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What a remote's server guarantees.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// The remote's name.
    pub remote: String,
    /// Where it is; without user and password.
    pub url: String,
    /// Whether everything holds that a run needs.
    pub usable: bool,
    /// In the order in which they were tried.
    pub guarantees: Vec<Finding>,
    /// The reference for the moment, where the server did not delete it.
    pub left: Option<String>,
}

/// Finds out what the server of a remote guarantees; an object of `size` bytes is sent.
pub(crate) fn check(context: &Context, name: Option<&str>, size: u64) -> Result<Checked> {
    let server = name.map_or_else(|| Server::named(context), |name| Server::of(context, name))?;
    require_consent(context, &server.remote)?;
    let (remote, url) = (server.name().to_owned(), server.remote.url.clone());
    let mut checked = Checked {
        remote,
        url,
        usable: false,
        guarantees: Vec::new(),
        left: None,
    };
    if context.dry_run() {
        return Ok(checked);
    }
    let found = match examine(&server, size) {
        Err(Miss::Away(away)) => {
            let message = format!(
                "remote '{}' ({}) cannot be reached: {}",
                checked.remote, checked.url, away.said
            );
            return Err(Error::new(ErrorKind::Failed, message).hint(context.rerun(&[])));
        }
        found => found.map_err(Miss::error)?,
    };
    checked.usable = found.is_usable();
    if checked.usable {
        remember(&server)?;
    }
    checked.guarantees = found.findings;
    checked.left = found.left;
    Ok(checked)
}

/// Refuses (13) a server that lacks what a run needs. It is examined once: that it has it is remembered with the consent.
pub(super) fn require_guarantees(server: &Server<'_>) -> Reach<()> {
    let (context, remote) = (server.context, &server.remote);
    if context.dry_run() || context.trust_record().is_checked(&remote.url) {
        return Ok(());
    }
    let found = examine(server, 0)?;
    if found.is_usable() {
        return Ok(remember(server)?);
    }
    let missing = found
        .findings
        .iter()
        .filter(|finding| finding.required && finding.holds != Some(true));
    let missing: Vec<String> = missing
        .map(|finding| format!("{} ({})", finding.name, finding.detail))
        .collect();
    let message = format!(
        "the server of remote '{}' ({}) lacks what a run needs there: {}",
        remote.name,
        remote.url,
        missing.join(", ")
    );
    Err(Error::new(ErrorKind::RemoteRefused, message)
        .hint(server.hint("check"))
        .into())
}

fn examine(server: &Server<'_>, size: u64) -> Reach<Examined> {
    let (context, remote) = (server.context, &server.remote);
    let nonce = new_id().map_err(|error| Error::io("no random number can be had", error))?;
    let nonce: String = nonce
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(12)
        .collect();
    let stopped = || context.interrupts.pending().is_some();
    let limits = Limits::new(PATIENCE, &stopped);
    let failed = |message: String| Err(Error::new(ErrorKind::Failed, message).into());
    match remote.examine(context.repo()?, &nonce, size, &limits)? {
        Answer::Done(found) => Ok(found),
        Answer::Refused(said) => failed(format!(
            "remote '{}' ({}) refuses: {said}",
            remote.name, remote.url
        )),
        Answer::Moved => {
            failed("the server has another value than the one that was pushed".to_owned())
        }
        away => Err(server.away(away)),
    }
}

fn remember(server: &Server<'_>) -> Result<()> {
    let (context, url) = (server.context, &server.remote.url);
    let remembered = context.trust_record().add_checked(url, context.clock.now());
    remembered.map_err(|error| Error::io(format!("cannot remember that {url} was examined"), error))
}
