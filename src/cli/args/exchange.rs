//! `import`, `sync`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::model::import::ImportKind;

/// Take over files of other systems (battles, attempt histories, lane records, session checkpoints, a loop's cooldown), and
/// take archived checkpoints back.
///
/// What a file is, is recognised by its content. Everything is read and judged before anything is recorded; the same file
/// again adds nothing, one that has grown adds what is new. Checkpoints are taken over as records: where their commits are
/// in this repository, git brings their content back. --run names the run for attempt histories and cooldowns. A bundle that
/// `checkpoint prune --archive` or `checkpoint export --bundle` wrote brings its checkpoint back as it was, pinned.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The files; a folder stands for the JSON files and bundles in it
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// What they are, rather than what they look like
    #[arg(long, value_name = "KIND", value_enum)]
    pub kind: Option<KindArg>,
}

/// `--kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum KindArg {
    /// A battle's JSON
    Battle,
    /// attempt_history.json
    AttemptHistory,
    /// checkpoints.json of the lane contract
    Lanes,
    /// A session's checkpoint, or active_checkpoint.json
    Session,
    /// recovery.json
    Recovery,
}

impl From<KindArg> for ImportKind {
    fn from(arg: KindArg) -> Self {
        match arg {
            KindArg::Battle => Self::Battle,
            KindArg::AttemptHistory => Self::AttemptHistory,
            KindArg::Lanes => Self::Lanes,
            KindArg::Session => Self::Session,
            KindArg::Recovery => Self::Recovery,
        }
    }
}

/// Write every view anew from the ledger, and tell which held something else.
#[derive(Args, Debug, Default)]
pub struct SyncArgs {
    /// Into this folder, as the systems they are for have them, session checkpoints included
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub to: Option<PathBuf>,
}
