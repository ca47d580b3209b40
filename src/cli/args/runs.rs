//! Arguments of `runs`, `close` and `forget`.

use clap::Args;

use super::values::name;

/// List the runs, newest first: how each ended, what was done, and what it takes. A * marks the one that a command is about
/// that names none.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  recover runs               the runs that are not closed\n  recover runs --all --json  all of them, for a script"
)]
pub struct RunsArgs {
    /// Also list runs that are closed or accepted
    #[arg(long)]
    pub all: bool,

    /// Show only the newest N runs
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Close runs that you are done with: no command is about them any more unless it names them.
///
/// An open manual fix is aborted. Files stay as they are, and so do good checkpoints; recover resume RUN opens the run
/// again. Without RUN it is the run that recover runs marks.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  recover close               close the run that recover runs marks\n  recover close --all-ended   close every run here that has ended, well or badly"
)]
pub struct CloseArgs {
    /// Runs to close
    #[arg(value_name = "RUN", value_parser = name)]
    pub run_id: Vec<String>,

    /// Close every run of this work tree that has ended, well or badly
    #[arg(long, conflicts_with = "run_id")]
    pub all_ended: bool,
}
/// Remove runs for good, with their checkpoints, logs and references. This cannot be undone.
///
/// Files of the work tree stay as they are. With --all every trace of recover in this repository goes: the state directory
/// but for files of other programs, all checkpoints, the hooks' lines in agents' settings, and a recover.toml that git
/// does not track.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  recover forget night-1 --dry-run   show what would be removed\n  recover forget night-1 --yes       remove one run without a question\n  recover forget --all               leave the repository as it was before recover"
)]
pub struct ForgetArgs {
    /// Runs to remove
    #[arg(value_name = "RUN", value_parser = name, required_unless_present = "all")]
    pub run_id: Vec<String>,

    /// Remove every trace of recover in this repository
    #[arg(long, conflicts_with = "run_id")]
    pub all: bool,
}
