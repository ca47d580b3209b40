//! Arguments of the commands about runs as a whole: `runs`, `browse`, `close`, `forget`, `accept`, `remote`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::engine::accept;
use crate::engine::base::clock;

use super::{RunName, duration, lines, name, size};

/// List the runs, newest first.
///
/// The status of each, its iterations and attempts, cost and disk use. * marks the default run of commands that name none.
#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    /// Also list runs that are closed or accepted
    #[arg(long)]
    pub all: bool,

    /// List the runs that lie on this remote
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,

    /// List only the runs with an event in this time, such as 24h
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub since: Option<Duration>,

    /// Show only the newest N runs
    #[arg(long, value_name = "N", value_parser = lines, allow_negative_numbers = true)]
    pub limit: Option<usize>,
}

/// Close runs that you are done with.
///
/// Other commands then ignore them unless they are named. An open manual fix is aborted. Files stay as they are, and so do good checkpoints; recover resume RUN opens the run
/// again. The default is the run marked * in recover runs.
#[derive(Args, Debug)]
pub(crate) struct CloseArgs {
    /// Runs to close
    #[arg(value_name = "RUN", value_parser = name)]
    pub run_id: Vec<String>,

    /// Close every run here that has ended, well or badly; with --yes also those whose work waits for you
    #[arg(long, conflicts_with = "run_id")]
    pub all_ended: bool,
}
/// Remove runs for good, with their checkpoints.
///
/// Their logs and references too; this cannot be undone. Files of the work tree stay as they are. With --all every trace of recover in this repository goes: the state directory
/// but for files of other programs, all checkpoints, the hooks' lines in agents' settings, and a recover.toml that git
/// does not track.
#[derive(Args, Debug)]
pub(crate) struct ForgetArgs {
    /// Runs to remove
    #[arg(value_name = "RUN", value_parser = name, required_unless_present_any = ["all", "vault"])]
    pub run_id: Vec<String>,

    /// Remove every trace of recover in this repository
    #[arg(long, conflicts_with = "run_id")]
    pub all: bool,

    /// Also remove what was sent of them to this remote
    ///
    /// First, and nothing at all where another machine holds one of the runs or the server is away. The server may keep deleted
    /// objects for weeks: a secret that went there has to be changed.
    #[arg(long, value_name = "NAME", conflicts_with = "vault")]
    pub remote: Option<String>,

    /// Remove the vault with this id, or of the project in this folder
    ///
    /// From any folder; recover restore-project lists them.
    #[arg(long, value_name = "ID|PATH", conflicts_with_all = ["run_id", "all"])]
    pub vault: Option<String>,
}

/// List vaults, or bring a removed project back.
///
/// A vault is a copy of a repository outside of its work tree, from which it comes back when the whole folder was removed:
/// repository, branches, index, ledger, and the files of a checkpoint. Where only .git was removed or replaced, recover doctor
/// --repair brings it back. Without a project the vaults are listed. Passwords in git's configuration are not in it.
#[derive(Args, Debug, Default)]
pub(crate) struct RestoreProjectArgs {
    /// The vault's id, or the folder where the project was
    #[arg(value_name = "ID|PATH")]
    pub vault: Option<String>,

    /// Restore into this folder, which is empty or not there
    #[arg(long, value_name = "DIR", requires = "vault", value_hint = clap::ValueHint::DirPath)]
    pub into: Option<std::path::PathBuf>,

    /// Restore the files of this checkpoint [default: the latest]
    #[arg(long, value_name = "CHECKPOINT", requires = "vault")]
    pub to: Option<String>,
}

/// Show the limits of agents' accounts, or remove them
///
/// A usage limit or an outage that one run meets holds all runs on this machine with the same account, in any repository, until
/// it is over: no agent is started into it. Then one run tries it, and the others follow 20 s apart ([weather] gap) once a model
/// has answered. [weather] shared = false leaves a run out of it.
#[derive(Args, Debug)]
pub(crate) struct LimitsArgs {
    /// Remove all, or those of an agent or an account
    ///
    /// Runs that wait for them go on. A run that met one itself waits on: recover retry-status --reset ends that wait.
    #[arg(long, value_name = "ACCOUNT", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "the flag has a value or not")]
    pub clear: Option<Option<String>>,
}

/// Resume runs by themselves after the machine restarts.
///
/// A service of your own calls recover resume --interrupted --all-repos when the machine starts, and every 15 minutes: a timer of
/// systemd's user manager, an agent of launchd, or two lines of your crontab, by what is there.
#[derive(Args, Debug)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    pub command: ServiceCommand,
}

/// What to do about the service.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ServiceCommand {
    /// Install it.
    ///
    /// Installing twice changes nothing. A file of yours in its place, and units or lines that you have edited, are left alone.
    /// With systemd it starts when you log in and stops when you log out, unless loginctl enable-linger was called once.
    Install,
    /// Remove it, and nothing else.
    ///
    /// With systemd and cron a run that it resumed goes on.
    Uninstall,
    /// Show what of it is installed, and whether it is active.
    Status,
}

/// Commit what a run did
///
/// The difference from its beginning to its last good checkpoint becomes ordinary commits on the current branch, or on a new
/// one.
///
/// The commit holds what git add makes of the checkpoint's files: changed, deleted and new ones. Left out are what looks like a
/// secret, new files over [accept] max_new_file (exit code 3 for both), those that [accept] leave_out names, and what a
/// rollback could not remove. What was uncommitted before the run, or was edited since, stays uncommitted. Your hooks run and
/// your commits are signed as in git commit; what a formatter changes is part of the commit. The checks of the run run on what
/// is committed, in a temporary work tree where yours has something else; where one fails (100) nothing is changed. Without
/// RUN it is the run that recover runs marks.
#[derive(Args, Debug)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    pub run: RunName,

    /// Make one commit of everything [default]
    ///
    /// The run's own commits are folded into it, and kept under refs/recover/.
    #[arg(long, hide_short_help = true, overrides_with = "per_iteration")]
    pub squash: bool,

    /// Make one commit for each iteration
    ///
    /// On top of the run's own commits.
    #[arg(long, overrides_with = "squash")]
    pub per_iteration: bool,

    /// Begin this branch, and switch to it
    #[arg(long, value_name = "B")]
    pub branch: Option<String>,

    /// Make the run's commits again on top of your branch, rather than merge them onto it
    ///
    /// Of a run that was begun with --isolated, where the branch has moved since.
    #[arg(long, hide_short_help = true, conflicts_with = "branch")]
    pub rebase: bool,

    /// Message [default: made from the record]
    #[arg(short, long, value_name = "MSG")]
    pub message: Option<String>,

    /// Also take this file
    ///
    /// Or the large new ones in this folder. What looks like a secret is taken only by its own name. Repeatable.
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with = "all", value_hint = clap::ValueHint::AnyPath)]
    pub include: Vec<PathBuf>,

    /// Also take large new files
    #[arg(long)]
    pub all: bool,

    /// Which version of your uncommitted changes counts
    ///
    /// Needed where the run changed files that had uncommitted changes before it: keep brings your changes back, uncommitted, and leaves the run's version beside them as FILE.run; replace commits what
    /// the run made of them. Yours stay in the run's first checkpoint.
    #[arg(long, value_name = "WHICH", value_enum)]
    pub uncommitted: Option<accept::Uncommitted>,

    /// Do not run the checks of the run
    #[arg(long)]
    pub no_checks: bool,

    /// Shell command to run before the checks in a temporary work tree
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    pub prepare: Option<String>,
}

/// Keep runs on a git server or in an object store, so that they outlive this machine.
///
/// A run that lies on a remote goes on in any clone: recover resume --remote NAME --run R. One machine holds it at a
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
    /// Show who holds the runs on a remote, and what is not sent.
    ///
    /// Without the server it shows what was seen last.
    Status(RemoteName),
    Push(RemotePushArgs),
    /// Fetch and verify what is new on a remote.
    ///
    /// Nothing is claimed, and the runs here stay as they are.
    Fetch(RemoteName),
    Claim(RemoteClaimArgs),
    Release(RemoteReleaseArgs),
    /// Remove runs from a remote that are not kept any longer.
    ///
    /// Those that are accepted or closed, and others when their checkpoints are not kept here any longer ([retention]); with --run
    /// that one, as soon as it has ended. This cannot be undone, and the server may keep deleted objects for weeks: a secret that
    /// went there has to be changed.
    Prune(RemoteName),
    Check(RemoteCheckArgs),
}

// No doc comment: it would be the help of the commands that take it alone.
#[derive(Args, Debug)]
pub(crate) struct RemoteName {
    /// Git remote, by its name [default: remote.name of your configuration]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
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
    pub wait: Option<clock::WaitLimit>,
}

/// Claim a run on a remote for this clone.
///
/// Its events are copied into this clone; files stay as they are. recover resume --remote goes on with it.
#[derive(Args, Debug)]
pub(crate) struct RemoteClaimArgs {
    #[command(flatten)]
    pub name: RemoteName,

    /// Take it from a holder that may be at work
    #[arg(long)]
    pub steal: bool,

    /// Wait for the server or the run's holder, at most DUR (then exit 9)
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<clock::WaitLimit>,
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
