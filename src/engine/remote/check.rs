//! What a remote's server guarantees: asked for, and before the first run is made there.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::remote_consent::require_consent;
use crate::git::remote::{Answer, Examined, Finding, Limits, Remote};
use crate::model::hint::Hint;
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
    let remote = chosen(context, name)?;
    require_consent(context, &remote)?;
    if context.dry_run() {
        return Ok(Checked {
            remote: remote.name,
            url: remote.url,
            usable: false,
            guarantees: Vec::new(),
            left: None,
        });
    }
    let found = match examine(context, &remote, size)? {
        Ok(found) => found,
        Err(Unreached { said, .. }) => {
            let message = format!(
                "remote '{}' ({}) cannot be reached: {said}",
                remote.name, remote.url
            );
            return Err(Error::new(ErrorKind::Failed, message).hint(context.rerun(&[])));
        }
    };
    let usable = found.is_usable();
    if usable {
        remember(context, &remote)?;
    }
    Ok(Checked {
        remote: remote.name,
        url: remote.url,
        usable,
        guarantees: found.findings,
        left: found.left,
    })
}

/// A server that could not be asked.
#[derive(Clone, Debug)]
pub(super) struct Unreached {
    /// In git's words, or its own.
    pub said: String,
    /// When it wants to be asked again.
    pub after: Option<Duration>,
}

/// Refuses (13) a server that lacks what a run needs; one that is away is the answer. It is examined once: that it has it
/// is remembered with the consent.
pub(super) fn require_guarantees(
    context: &Context,
    remote: &Remote,
) -> Result<Result<(), Unreached>> {
    if context.dry_run() || context.trust_record().is_checked(&remote.url) {
        return Ok(Ok(()));
    }
    let found = match examine(context, remote, 0)? {
        Ok(found) => found,
        Err(unreached) => return Ok(Err(unreached)),
    };
    if found.is_usable() {
        return remember(context, remote).map(Ok);
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
    let hint = Hint::recover(["remote", "check", "--remote", &remote.name]);
    Err(Error::new(ErrorKind::RemoteRefused, message).hint(hint))
}

fn examine(context: &Context, remote: &Remote, size: u64) -> Result<Result<Examined, Unreached>> {
    let nonce = new_id().map_err(|error| Error::io("no random number can be had", error))?;
    let nonce: String = nonce
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(12)
        .collect();
    let stopped = || context.interrupts.pending().is_some();
    let failed = |message: String| Err(Error::new(ErrorKind::Failed, message));
    match remote.examine(
        context.repo()?,
        &nonce,
        size,
        &Limits::new(PATIENCE, &stopped),
    )? {
        Answer::Done(found) => Ok(Ok(found)),
        Answer::Away { said, after } => Ok(Err(Unreached { said, after })),
        Answer::Cut(said) => Ok(Err(Unreached { said, after: None })),
        Answer::Refused(said) => failed(format!(
            "remote '{}' ({}) refuses: {said}",
            remote.name, remote.url
        )),
        Answer::Moved => {
            failed("the server has another value than the one that was pushed".to_owned())
        }
    }
}

/// The remote that a command is about: the one that was named, else the one of the user's configuration.
pub(crate) fn chosen(context: &Context, name: Option<&str>) -> Result<Remote> {
    let Some(name) = name.or(context.settings().remote.name.as_deref()) else {
        let message = "no remote is named: --remote NAME, or [remote] name in your own configuration \
                       (~/.config/recover/config.toml); git remote lists those that git knows";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::git(["remote", "--verbose"])));
    };
    Ok(Remote::named(context.repo()?, name)?)
}

fn remember(context: &Context, remote: &Remote) -> Result<()> {
    let kept = context
        .trust_record()
        .add_checked(&remote.url, context.clock.now());
    kept.map_err(|error| {
        Error::io(
            format!("cannot remember that {} was examined", remote.url),
            error,
        )
    })
}
