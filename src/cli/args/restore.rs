//! Arguments of the commands that go back: `rollback`, `undo`, `redo`, `bisect`.

use clap::{ArgGroup, Args};

use super::{RunName, number, word_of};
use crate::engine::{Context, Result, rollback};
use crate::model::operation::Scope;
use crate::model::selector::Selector;
use crate::policy::restore::Edits;

/// Restore the work tree from a checkpoint.
///
/// A verified safety checkpoint is taken first, so that recover undo can revert it. Only paths that differ from the checkpoint are touched; ignored and uncaptured files are kept. Without a target a lane
/// goes back to its safest earlier stage; any other run prompts for one on a terminal, and shows what will happen.
#[derive(Args, Debug, Default)]
#[command(group = ArgGroup::new("target").args(["iteration", "to", "full"]))]
pub(crate) struct RollbackArgs {
    /// Restore the state before iteration N
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true)]
    pub iteration: Option<u32>,

    /// Restore this checkpoint (good, initial, @7, an id)
    ///
    /// An id or a unique prefix of one, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME.
    #[arg(long, value_name = "SELECTOR")]
    pub to: Option<Selector>,

    /// Restore the state before the first attempt
    #[arg(long)]
    pub full: bool,

    /// What to restore
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Scope::All)]
    pub scope: Scope,

    #[command(flatten)]
    pub files: PutBackArgs,
}

// No doc comments: they would be the help of the commands that take these alone.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PutBackArgs {
    /// Restore only these paths (globs)
    ///
    /// From the current folder.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub path: Vec<String>,

    #[command(flatten)]
    pub how: How,

    /// Restore the whole captured index
    ///
    /// Without it, what the run staged is restored, and what a person staged since stays.
    #[arg(long, hide_short_help = true)]
    pub restore_index: bool,

    /// Restore nested repositories too
    ///
    /// The files of nested repositories and submodules; their HEAD, branches and index stay.
    #[arg(long)]
    pub nested: bool,

    /// Put back ignored files that are gone
    ///
    /// From the copies of [capture] precious: .env and the like. A file that is there is never replaced.
    #[arg(long, hide_short_help = true)]
    pub precious: bool,
}

impl PutBackArgs {
    /// What is restored of `scope`; `commits` where no flag says what to do about them.
    ///
    /// # Errors
    /// A path is not in the work tree (2).
    pub(crate) fn options(
        &self,
        context: &Context,
        scope: Scope,
        commits: rollback::Commits,
    ) -> Result<rollback::Options> {
        Ok(rollback::Options {
            scope,
            paths: context.globs_in_work_tree(&self.path)?,
            commits: self.how.commits.unwrap_or(commits),
            edits: self.how.edits,
            restore_index: self.restore_index,
            nested: self.nested,
            precious: self.precious,
            best_effort: self.how.best_effort,
            here: false,
        })
    }

    /// The flags that no screen asks about, as they were given.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (is_given, flag) in [
            (self.restore_index, "--restore-index"),
            (self.nested, "--nested"),
            (self.precious, "--precious"),
            (!self.path.is_empty(), "--path"),
        ] {
            words.extend(is_given.then(|| flag.to_owned()));
        }
        words.extend(self.path.iter().cloned());
        words
    }
}

#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct How {
    /// What to do about commits since
    #[arg(long, value_name = "HOW", value_enum, overrides_with = "commits")]
    pub commits: Option<rollback::Commits>,

    /// What to do about files edited by hand
    ///
    /// Since the run last wrote.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Edits::Refuse, overrides_with = "edits")]
    pub edits: Edits,

    /// Restore everything that can be restored
    ///
    /// Paths that the system does not allow to be replaced (mount points, read-only mounts, immutable files, folders of
    /// other users) are left as they are and listed with the reason; the command then ends with 3. Without this option
    /// such a path refuses the whole restore.
    #[arg(long, hide_short_help = true)]
    pub best_effort: bool,
}

impl How {
    /// What is restored, with this about what is in the way.
    pub(crate) fn options(self, given: &rollback::Options) -> rollback::Options {
        rollback::Options {
            commits: self.commits.unwrap_or(given.commits),
            edits: self.edits,
            best_effort: self.best_effort,
            ..given.clone()
        }
    }

    /// What `discard` restores: the index too, unless something of now is to stay.
    pub(crate) fn whole(self) -> rollback::Options {
        let stays = self.edits != Edits::Discard
            || matches!(
                self.commits,
                Some(rollback::Commits::Keep | rollback::Commits::Revert)
            );
        self.options(&rollback::Options {
            restore_index: !stays,
            ..rollback::Options::default()
        })
    }

    /// The flags that give it.
    pub(crate) fn words(self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(commits) = self.commits {
            words.extend(["--commits".to_owned(), word_of(&commits)]);
        }
        if self.edits != Edits::Refuse {
            words.extend(["--edits".to_owned(), word_of(&self.edits)]);
        }
        words.extend(self.best_effort.then(|| "--best-effort".to_owned()));
        words
    }
}

/// Discard what a run did, and close it.
///
/// Files, index and branch go back to what they were when the run began. A verified safety checkpoint is taken first: recover
/// undo restores the files, and the run with its status. Edits made since are in it, and are listed. Commits that are not the
/// run's own, or are on a remote, refuse it. It asks first; without a terminal it needs --yes. Checkpoints and history stay:
/// for [retention] after_end, at least 7 days. The default is the run marked * in recover runs.
#[derive(Args, Debug)]
#[command(mut_arg("edits", |edits| edits.default_value("discard")))]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub run: RunName,

    #[command(flatten)]
    pub how: How,

    /// Restore nested repositories too
    ///
    /// As in recover rollback.
    #[arg(long, hide_short_help = true)]
    pub nested: bool,
}

#[derive(Args, Debug, Default)]
pub(crate) struct UndoArgs {
    /// Revert what the run did by itself
    ///
    /// The rollbacks that a run makes after an attempt failed belong to the run. They are listed, and the latest is reverted
    /// once that is confirmed.
    #[arg(long)]
    pub of_run: bool,

    #[command(flatten)]
    pub how: How,
}

/// Find the checkpoint that made CMD fail
///
/// Each one is shown in a temporary work tree, never in yours, and CMD runs there: exit code 0 says good, 125 that it cannot
/// say, any other below 128 bad. What CMD or --prepare makes there stays from one checkpoint to the next. Of 40 checkpoints at
/// most 7 are tested. A CMD that does not always say the same of the same files leads to the wrong one.
#[derive(Args, Debug)]
pub(crate) struct BisectArgs {
    #[command(flatten)]
    pub run: RunName,

    /// Checkpoint at which CMD passes
    #[arg(long, value_name = "SEL", default_value = "initial")]
    pub good: Selector,

    /// Checkpoint at which CMD fails
    #[arg(long, value_name = "SEL", default_value = "latest")]
    pub bad: Selector,

    /// Shell command to run before CMD at each checkpoint
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,

    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}
