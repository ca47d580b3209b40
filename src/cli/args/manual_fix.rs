//! `manual-fix …`.

use clap::{Args, Subcommand};

use super::values::Wait;

/// Hand over to a person: the run waits, changes are told, the feedback loops judge, the run goes on with the fix.
#[derive(Args, Debug)]
pub struct ManualFixArgs {
    #[command(subcommand)]
    pub command: ManualFixCommand,
}

/// What to do about a manual fix.
#[derive(Debug, Subcommand)]
pub enum ManualFixCommand {
    /// Open a session (a second start returns the open one)
    Start,
    /// Show the session and what has changed since it began
    Status,
    /// Run the feedback loops on the work tree as it is; exit 0 or 100
    Verify,
    /// Make the verified fix the iteration's result and go on with the next iterations
    Continue {
        /// Wait for the cooldown or the reset (at most DUR, then exit 9) rather than exit 6
        #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        wait: Option<Wait>,
        /// Prepare and print the next prompt; run nothing
        #[arg(long)]
        prepare_only: bool,
    },
    /// Give the session up; files stay as they are
    Abort,
}
