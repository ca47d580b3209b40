//! Arguments of `remote`.

use clap::{Args, Subcommand};

use super::values::size;
use crate::engine::base::clock::WaitLimit;

/// Keep runs on a git server, so that they outlive this machine.
///
/// A run that lies on a git remote goes on in any clone: recover resume --remote NAME --run R. One machine holds it at a
/// time. Nothing is sent unless --remote or your own configuration names a remote, and before the first time you are shown what
/// would leave.
#[derive(Args, Debug)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct RemoteArgs {
    #[command(subcommand)]
    pub command: RemoteCommand,
}

/// What to do about runs on a remote.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum RemoteCommand {
    Status(RemoteStatusArgs),
    Push(RemotePushArgs),
    Fetch(RemoteFetchArgs),
    Claim(RemoteClaimArgs),
    Release(RemoteReleaseArgs),
    Prune(RemotePruneArgs),
    Check(RemoteCheckArgs),
}

/// Which remote.
#[derive(Args, Debug)]
pub(crate) struct RemoteName {
    /// Git remote, by its name [default: remote.name of your configuration]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
}

/// Show who holds the runs on a remote, and what is not sent.
///
/// Without the server it shows what was seen last.
#[derive(Args, Debug)]
pub(crate) struct RemoteStatusArgs {
    #[command(flatten)]
    pub name: RemoteName,
}

/// Send what is new of the runs that lie on a remote.
///
/// With --run that run, also for the first time. A run that this clone does not hold is claimed for it, and released.
#[derive(Args, Debug)]
pub(crate) struct RemotePushArgs {
    #[command(flatten)]
    pub name: RemoteName,

    /// Wait for the server or the run's holder, at most DUR (then exit 9)
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<WaitLimit>,
}

/// Fetch and verify what is new on a remote.
///
/// Nothing is claimed, and the runs here stay as they are.
#[derive(Args, Debug)]
pub(crate) struct RemoteFetchArgs {
    #[command(flatten)]
    pub name: RemoteName,
}

/// Claim a run on a remote for this clone.
///
/// Its events are in the record here then; files stay as they are. recover resume --remote goes on with it.
#[derive(Args, Debug)]
pub(crate) struct RemoteClaimArgs {
    #[command(flatten)]
    pub name: RemoteName,

    /// Take it from a holder that may be at work
    #[arg(long)]
    pub steal: bool,

    /// Wait for the server or the run's holder, at most DUR (then exit 9)
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<WaitLimit>,
}

/// Give the claim of a run back.
///
/// With what is new of it. Any machine may go on with the run then.
#[derive(Args, Debug)]
pub(crate) struct RemoteReleaseArgs {
    #[command(flatten)]
    pub name: RemoteName,

    /// Also where another machine holds it
    #[arg(long)]
    pub force: bool,
}

/// Remove runs from a remote that are not kept any longer.
///
/// Those that are accepted or closed, and others when their checkpoints are not kept here any longer ([retention]); with --run
/// that one, as soon as it has ended. This cannot be undone, and the server may keep deleted objects for weeks: a secret that
/// went there has to be changed.
#[derive(Args, Debug)]
pub(crate) struct RemotePruneArgs {
    #[command(flatten)]
    pub name: RemoteName,
}

/// Find out what a remote's server guarantees.
///
/// On a reference for the moment it is tried whether one can be made, is visible at once, can be followed by another state,
/// and whether of two pushes from one state the server refuses one: what a run needs. Then whether it takes an object of
/// --size bytes, and whether it deletes the reference again, which only prune would need. Ends with 13 where something is
/// missing that a run needs.
#[derive(Args, Debug)]
pub(crate) struct RemoteCheckArgs {
    #[command(flatten)]
    pub name: RemoteName,

    /// Bytes of the object that is sent, which nothing compresses; 0 sends none
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub size: u64,
}
