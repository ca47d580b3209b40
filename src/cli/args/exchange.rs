//! Arguments of `import` and `sync`.

use std::path::PathBuf;

use clap::Args;

use crate::model::import::ImportKind;

/// Import files of other tools and archived checkpoints.
///
/// Battles, attempt histories, lane records, session checkpoints and a loop's cooldown. Formats are detected by content. All files are validated before anything is recorded; importing a file again adds only
/// what is new. Checkpoints of other tools become records; git restores their content where their commits are in this
/// repository. --run names the run for attempt histories and cooldowns. A bundle of `checkpoint prune --archive` or
/// `checkpoint export --bundle` restores its checkpoint, pinned.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// Files to import; a folder stands for the JSON files and bundles in it
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// Format of the files [default: detected]
    #[arg(long, value_name = "KIND", value_enum)]
    pub kind: Option<ImportKind>,
}

/// Rewrite the exported files from the ledger.
///
/// Those that differed are listed.
#[derive(Args, Debug, Default)]
pub(crate) struct SyncArgs {
    /// Write all of them, including session checkpoints, into this folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub to: Option<PathBuf>,
}
