//! Arguments of `manual-fix`.

use clap::{Args, Subcommand};

use crate::engine::base::clock::WaitLimit;

/// Fix a failed run by hand: edit, verify, continue.
#[derive(Args, Debug)]
pub(crate) struct ManualFixArgs {
    #[command(subcommand)]
    pub command: Option<ManualFixCommand>,

    /// Open $VISUAL or $EDITOR at the first error
    #[arg(long)]
    pub edit: bool,
}

/// What to do about a manual fix.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ManualFixCommand {
    /// Start a session, or return the open one
    Start {
        /// Open $VISUAL or $EDITOR at the first error
        #[arg(long)]
        edit: bool,
    },
    /// Show the session and the changes since it began
    Status,
    /// Report changes, and run the checks once the tree is idle
    ///
    /// Ends on a signal; the session stays open.
    Watch {
        /// Exit with 0 once the fix is verified (with 9 after DUR)
        #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        wait: Option<WaitLimit>,
    },
    /// Run the checks on the work tree; exits with 0 or 100
    Verify,
    /// Record the verified fix, and go on with the next iterations
    Continue {
        /// Wait instead of exiting with 6
        ///
        /// For the cooldown or the limit's reset, at most DUR (then exit 9).
        #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        wait: Option<WaitLimit>,
        /// Print the next prompt without running anything
        #[arg(long)]
        prepare_only: bool,
    },
    /// Abort the session; files stay as they are
    Abort,
}
