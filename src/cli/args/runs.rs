//! Arguments of `runs`, `close` and `forget`.

use clap::Args;

use super::values::{lines, name};

/// List the runs, newest first.
///
/// How each ended, what was done, and what it takes. A * marks the one that a command is about that names none.
#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    /// Also list runs that are closed or accepted
    #[arg(long)]
    pub all: bool,

    /// List the runs that lie on this git remote
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,

    /// Show only the newest N runs
    #[arg(long, value_name = "N", value_parser = lines, allow_negative_numbers = true)]
    pub limit: Option<usize>,
}

/// Look through runs, attempts and checkpoints on a terminal.
///
/// A timeline on the left; the difference, the evidence for a failure, the log or the report on the right. It follows a run
/// at work. Nothing is changed but by a command that is shown and agreed to. The key ? lists the keys.
#[derive(Args, Debug)]
pub(crate) struct BrowseArgs {}

/// Close runs that you are done with.
///
/// No command is about them any more unless it names them. An open manual fix is aborted. Files stay as they are, and so do good checkpoints; recover resume RUN opens the run
/// again. Without RUN it is the run that recover runs marks.
#[derive(Args, Debug)]
pub(crate) struct CloseArgs {
    /// Runs to close
    #[arg(value_name = "RUN", value_parser = name)]
    pub run_id: Vec<String>,

    /// Close every run here that has ended, well or badly
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
    #[arg(value_name = "RUN", value_parser = name, required_unless_present = "all")]
    pub run_id: Vec<String>,

    /// Remove every trace of recover in this repository
    #[arg(long, conflicts_with = "run_id")]
    pub all: bool,
}
