//! Arguments of `trust`.

use clap::Args;

/// Take over state that came from elsewhere.
///
/// It counts then as if it had been made here. State that came with a clone, an archive or a cache only holds back: its cooldowns and counts are honoured, nothing that
/// is recorded in it is run, and nothing is added to it. --state takes it over whole, and asks first; with --dry-run it
/// shows what is in it, and which recorded commands could be run then. In CI, where a cache brings the state directory,
/// RECOVER_TRUST=1 in the environment is enough for a call.
#[derive(Args, Debug)]
pub struct TrustArgs {
    /// Take the state directory over: its runs, checkpoints and recorded commands
    #[arg(long, required = true)]
    pub state: bool,
}
