//! Arguments of `step`.

use clap::Args;

/// Run CMD once per run.
///
/// A step that has succeeded is skipped with exit code 0 the next time. Steps are identified by run, phase, lane and name. A failed step runs again; one that was interrupted says so before it
/// runs again. Without CMD it runs as it was recorded, with its flags. If two processes run the same step, the second waits for the first. The exit code is CMD's own (128 + n
/// for signal n). CMD gets RECOVER_RUN_ID, RECOVER_PHASE, RECOVER_LANE and RECOVER_STEP.
#[derive(Args, Debug)]
pub(crate) struct StepArgs {
    /// Name of the step
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Record this stage of the lane when CMD ends
    ///
    /// Complete if it succeeded, else failed.
    #[arg(long, hide_possible_values = true, value_name = "S", value_parser = super::values::STAGES)]
    pub stage: Option<String>,

    /// Branch to merge the lane into [default: its base]
    #[arg(long, value_name = "B", requires = "stage")]
    pub target_branch: Option<String>,

    /// Restore the files unless CMD succeeds
    ///
    /// Whoever changed them meanwhile; files that are ignored, over the size limit or in a nested repository are not
    /// covered.
    #[arg(long)]
    pub atomic: bool,

    /// What CMD will do; recorded before it runs
    #[arg(long, value_name = "T", requires = "atomic")]
    pub intent: Option<String>,

    /// Files covered by --atomic (globs) [default: all]
    #[arg(long, value_name = "GLOB", num_args = 1.., requires = "atomic")]
    pub path: Vec<String>,

    /// Shell command that reverts the step's effects
    ///
    /// Those outside the work tree; a rollback past the step runs it.
    #[arg(long, value_name = "CMD2")]
    pub compensate: Option<String>,

    /// Command to run [default: the recorded one]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}
