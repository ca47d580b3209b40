//! `manual-fix …`.

use clap::{Args, Subcommand};

use super::values::Wait;

/// Hand over to a person: the run waits, changes are told, the feedback loops judge, the run goes on with the fix.
///
/// Alone and on a terminal: start or take up a session, watch it, verify after each change, and ask whether to continue.
/// Without a terminal it is the same as start and status.
#[derive(Args, Debug)]
pub struct ManualFixArgs {
    #[command(subcommand)]
    pub command: Option<ManualFixCommand>,

    /// Open $VISUAL or $EDITOR at the first error
    #[arg(long)]
    pub edit: bool,
}

/// What to do about a manual fix.
#[derive(Debug, Subcommand)]
pub enum ManualFixCommand {
    /// Open a session (a second start returns the open one)
    Start {
        /// Open $VISUAL or $EDITOR at the first error
        #[arg(long)]
        edit: bool,
    },
    /// Show the session and what has changed since it began
    Status,
    /// Tell each change as it comes and verify once it is quiet, until a signal ends it; the session stays open
    Watch {
        /// End with 0 once the fix is verified (after DUR with 9)
        #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        wait: Option<Wait>,
    },
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
