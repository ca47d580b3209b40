//! Arguments of `trust`.

use clap::Args;

/// Take over what came from elsewhere, so that it counts as if it had been made here.
///
/// State that came with a clone, an archive or a cache only holds back: its cooldowns and counts are honoured, nothing that
/// is recorded in it is run, and nothing is added to it. --state takes it over whole, and asks first; with --dry-run it
/// shows what is in it, and which recorded commands could be run then. In CI, where a cache brings the state directory,
/// RECOVER_TRUST=1 in the environment is enough for a call.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  recover trust --state --dry-run   show what the state holds\n  recover trust --state --yes       take it over without a question"
)]
pub struct TrustArgs {
    /// Take the state directory over: its runs, checkpoints and recorded commands
    #[arg(long, required = true)]
    pub state: bool,
}
