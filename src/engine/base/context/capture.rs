//! What a capture takes of a work tree, and what lies beside the checkpoints.

use std::path::Path;

use super::{Context, plain_path};
use crate::model::CaptureRules;

/// Where in the user's state folder the work trees are that were made for runs.
pub(crate) const WORKTREES: &str = "recover/worktrees";

impl Context {
    /// What a capture takes: the configured rules, and never what is ours: the state directory and the lane records.
    pub(crate) fn capture_rules(&self) -> CaptureRules {
        let settings = &self.settings().checkpoint;
        // Without an index everything is untracked.
        let factor = if self.has_git() { 1 } else { 10 };
        CaptureRules {
            max_file_size: settings.max_file_size.saturating_mul(factor),
            max_untracked_files: settings.max_untracked_files.saturating_mul(factor),
            max_untracked_bytes: settings.max_untracked_bytes.saturating_mul(factor),
            include: settings.include.clone(),
            exclude: settings
                .exclude
                .iter()
                .chain(self.shared())
                .cloned()
                .collect(),
            editor_temp_globs: Vec::new(),
            excluded_dirs: [self.store().dir(), self.store().lane_file()]
                .map(Path::to_owned)
                .into_iter()
                .chain(self.vault_in(self.worktree()))
                .collect(),
            publish_incrementally: false,
            tracked_only: self.setup.allow_home,
            before: None,
        }
    }

    /// What this work tree shares with another one, where it is one that was made for a run.
    fn shared(&self) -> &[String] {
        let shared = &self.settings().isolated.share;
        let is_made = || {
            let made = self.user_state_home()?.join(WORKTREES);
            Some(self.worktree().starts_with(plain_path(&made)))
        };
        if !shared.is_empty() && is_made().unwrap_or(false) {
            shared
        } else {
            &[]
        }
    }

    /// Globs of ignored files that are copied beside the checkpoints; none in CI, where what such files hold is the machine's.
    pub(crate) fn precious(&self) -> Vec<String> {
        if self.env("CI").is_some() {
            Vec::new()
        } else {
            self.settings().capture.precious.clone()
        }
    }
}
