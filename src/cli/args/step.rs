//! `step`.

use clap::Args;

/// Run CMD once in a run: a step that is done is skipped with exit 0 the next time.
///
/// A step belongs to the run, its phase and its lane. One that failed runs again the next time; one whose recover was
/// killed says so before it runs again. Of two processes on one step the second waits, then skips it, or runs it if it
/// failed. The exit code is CMD's own (128 + n for signal n). CMD gets RECOVER_RUN_ID, RECOVER_PHASE, RECOVER_LANE and
/// RECOVER_STEP.
#[derive(Args, Debug)]
pub struct StepArgs {
    /// The step's name
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Take the checkpoint of this stage of the lane once CMD has ended: complete if it succeeded, else failed
    #[arg(long, value_name = "S", value_parser = super::values::STAGES)]
    pub stage: Option<String>,

    /// Where the lane is to be merged; recorded with its stage [default: the lane's base branch]
    #[arg(long, value_name = "B", requires = "stage")]
    pub target_branch: Option<String>,

    /// All or nothing: unless CMD succeeds, the covered files are put back as they were, whoever changed them meanwhile;
    /// what is ignored, over the size limit or in a repository of its own is not covered
    #[arg(long)]
    pub atomic: bool,

    /// What CMD is about to do; recorded before it runs
    #[arg(long, value_name = "T", requires = "atomic")]
    pub intent: Option<String>,

    /// The files that --atomic covers (globs) [default: the whole work tree]
    #[arg(long, value_name = "GLOB", num_args = 1.., requires = "atomic")]
    pub path: Vec<String>,

    /// The shell command that takes the step's effect outside the work tree back: a rollback to before the step runs it
    #[arg(long, value_name = "CMD2")]
    pub compensate: Option<String>,

    /// The command
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}
