//! `rollback`, `undo`, `redo`.

use clap::{ArgGroup, Args, ValueEnum};

use crate::model::operation::Scope;
use crate::model::selector::Selector;

/// Put the work tree back to a checkpoint. A verified safety checkpoint comes first: `recover undo` takes it back.
///
/// Only paths that differ between now and the checkpoint are touched; what is ignored or was not captured is kept. A lane
/// that is not told where to goes back to its safest prior stage. On a
/// terminal any other run is shown with the places it can go back to, and what will happen, and asks.
#[derive(Args, Debug, Default)]
#[command(group = ArgGroup::new("target").args(["iteration", "to", "full"]))]
pub struct RollbackArgs {
    /// To before this iteration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iteration: Option<u32>,

    /// To this checkpoint: id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(long, value_name = "SELECTOR")]
    pub to: Option<Selector>,

    /// To before the run
    #[arg(long)]
    pub full: bool,

    /// What to put back
    #[arg(long, value_enum, default_value_t = ScopeArg::All)]
    pub scope: ScopeArg,

    /// Only these paths (globs)
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub path: Vec<String>,

    /// What to do about commits made since
    #[arg(long, value_enum, overrides_with = "commits")]
    pub commits: Option<CommitsArg>,

    /// What to do about paths that a person edited since the run last wrote
    #[arg(long, value_enum, default_value_t = EditsArg::Refuse, overrides_with = "edits")]
    pub edits: EditsArg,

    /// Put the captured index back too
    #[arg(long)]
    pub restore_index: bool,
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
    /// Move HEAD back all the same; the commits stay reachable
    Drop,
    /// Make one new commit with the checkpoint's content on top
    Revert,
}

/// `--edits`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EditsArg {
    /// Refuse and list them
    #[default]
    Refuse,
    /// Leave them as they are
    Keep,
    /// Restore over them; undo brings them back
    Discard,
}

/// Take back the last rollback, restore or undo of this work tree, HEAD and index included; again goes further back.
#[derive(Args, Debug, Default)]
pub struct UndoArgs {
    /// What to do about commits made since
    #[arg(long, value_enum)]
    pub commits: Option<CommitsArg>,

    /// What to do about paths that a person edited since
    #[arg(long, value_enum, default_value_t = EditsArg::Refuse)]
    pub edits: EditsArg,
}
