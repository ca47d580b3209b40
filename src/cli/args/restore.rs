//! Arguments of `rollback`, `undo` and `redo`.

use clap::{ArgGroup, Args, ValueEnum};

use crate::engine::restore::request::Commits;
use crate::model::operation::Scope;
use crate::model::selector::Selector;
use crate::policy::restore_plan::Edits;

/// Restore the work tree from a checkpoint. A verified safety checkpoint is taken first, so `recover undo` can revert it.
///
/// Only paths that differ from the checkpoint are touched; ignored and uncaptured files are kept. Without a target a lane
/// goes back to its safest earlier stage; any other run prompts for one on a terminal, and shows what will happen.
///
/// Example: recover rollback --to good --dry-run
#[derive(Args, Debug, Default)]
#[command(group = ArgGroup::new("target").args(["iteration", "to", "full"]))]
pub struct RollbackArgs {
    /// Restore the state before iteration N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iteration: Option<u32>,

    /// Restore this checkpoint: id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(long, value_name = "SELECTOR")]
    pub to: Option<Selector>,

    /// Restore the state before the first attempt
    #[arg(long)]
    pub full: bool,

    /// What to restore
    #[arg(long, value_enum, default_value_t = ScopeArg::All)]
    pub scope: ScopeArg,

    /// Restore only these paths (globs)
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub path: Vec<String>,

    /// What to do about commits made since
    #[arg(long, value_enum, overrides_with = "commits")]
    pub commits: Option<CommitsArg>,

    /// What to do about files that were edited by hand since the run last wrote
    #[arg(long, value_enum, default_value_t = EditsArg::Refuse, overrides_with = "edits")]
    pub edits: EditsArg,

    /// Restore the captured index too
    #[arg(long)]
    pub restore_index: bool,

    /// Restore the files of nested repositories and submodules too; their HEAD, branches and index stay
    #[arg(long)]
    pub nested: bool,
}

/// `--scope`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// Files, working memory, and HEAD where it is the run's own to move
    #[default]
    All,
    /// Files only
    Files,
    /// The working memory below the state directory only
    State,
}

impl From<ScopeArg> for Scope {
    fn from(arg: ScopeArg) -> Self {
        match arg {
            ScopeArg::All => Self::All,
            ScopeArg::Files => Self::Files,
            ScopeArg::State => Self::State,
        }
    }
}

/// `--commits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CommitsArg {
    /// Move HEAD only over the run's own commits, else refuse
    Refuse,
    /// Leave HEAD where it is
    Keep,
    /// Move HEAD back anyway; the commits stay reachable under refs/recover/
    Drop,
    /// Add one commit with the checkpoint's content
    Revert,
}

impl From<CommitsArg> for Commits {
    fn from(arg: CommitsArg) -> Self {
        match arg {
            CommitsArg::Refuse => Self::Refuse,
            CommitsArg::Keep => Self::Keep,
            CommitsArg::Drop => Self::Drop,
            CommitsArg::Revert => Self::Revert,
        }
    }
}

/// `--edits`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EditsArg {
    /// Refuse and list them
    #[default]
    Refuse,
    /// Leave them as they are
    Keep,
    /// Overwrite them; undo brings them back
    Discard,
}

impl From<EditsArg> for Edits {
    fn from(arg: EditsArg) -> Self {
        match arg {
            EditsArg::Refuse => Self::Refuse,
            EditsArg::Keep => Self::Keep,
            EditsArg::Discard => Self::Discard,
        }
    }
}

/// Undo the last rollback, restore or undo of this work tree, including HEAD and index. Repeat to go further back.
#[derive(Args, Debug, Default)]
pub struct UndoArgs {
    /// What to do about commits made since
    #[arg(long, value_enum)]
    pub commits: Option<CommitsArg>,

    /// What to do about files that were edited by hand since
    #[arg(long, value_enum, default_value_t = EditsArg::Refuse)]
    pub edits: EditsArg,
}
