//! Arguments of `trust`.

use clap::Args;

/// Trust what a project's configuration starts.
///
/// Values of .ultraplan/recover.toml that start programs, widen rights or mask what is shown (checks, [runner] command,
/// fallback, agent and shell, [agent.NAME], [notify], [redact], skip_permissions) came with the project, perhaps with a clone:
/// they count only once they are trusted. recover trust shows them, with what changed since, and remembers them for this repository and all its work
/// trees; any change of one of them ends it. A command that would start an untrusted one asks on a terminal, and is refused
/// elsewhere (13); --trust, or RECOVER_TRUST=1 in the environment, is enough for one call. What is typed on the command line,
/// and what your own configuration says, needs no trust.
///
/// State that came with a clone, an archive or a cache only holds back: its cooldowns and counts are honoured, nothing that
/// is recorded in it is run, and nothing is added to it. --state takes it over whole, as if it had been made here, and on a
/// terminal asks first; with --dry-run it shows what is in it, and which recorded commands could be run then. In CI, where a
/// cache brings the state directory, RECOVER_TRUST=1 in the environment is enough for a call.
#[derive(Args, Debug)]
pub(crate) struct TrustArgs {
    /// Take the state directory over: its runs, checkpoints and recorded commands
    #[arg(long, conflicts_with = "revoke")]
    pub state: bool,

    /// Forget what was trusted of this repository's configuration
    #[arg(long)]
    pub revoke: bool,
}
