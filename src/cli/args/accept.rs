//! Arguments of `accept`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::engine::accept::Uncommitted;

use super::values::name;

/// `--uncommitted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichWork {
    /// Your changes
    Keep,
    /// The run's version
    Replace,
}

impl From<WhichWork> for Uncommitted {
    fn from(which: WhichWork) -> Self {
        match which {
            WhichWork::Keep => Self::Keep,
            WhichWork::Replace => Self::Replace,
        }
    }
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
    /// Run to accept
    #[arg(value_name = "RUN", value_parser = name)]
    pub run_id: Option<String>,

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
    pub uncommitted: Option<WhichWork>,

    /// Do not run the checks of the run
    #[arg(long)]
    pub no_checks: bool,

    /// Shell command to run before the checks in a temporary work tree
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    pub prepare: Option<String>,
}
