//! Arguments of `bisect`.

use clap::Args;

use crate::model::selector::Selector;

/// Find the checkpoint that made CMD fail
///
/// Each one is shown in a temporary work tree, never in yours, and CMD runs there: exit code 0 says good, 125 that it cannot
/// say, any other below 128 bad. What CMD or --prepare makes there stays from one checkpoint to the next. Of 40 checkpoints at
/// most 7 are tested. A CMD that does not always say the same of the same files leads to the wrong one.
#[derive(Args, Debug)]
pub(crate) struct BisectArgs {
    /// Checkpoint at which CMD passes
    #[arg(long, value_name = "SEL", default_value = "initial")]
    pub good: Selector,

    /// Checkpoint at which CMD fails
    #[arg(long, value_name = "SEL", default_value = "latest")]
    pub bad: Selector,

    /// Shell command to run before CMD at each checkpoint
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,

    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}
