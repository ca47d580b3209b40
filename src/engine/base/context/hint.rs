//! Where the commands work that an error or a view gives to copy.

use std::path::PathBuf;

use crate::engine::base::error::{Error, ErrorKind};
use crate::model::hint::{Hint, Place};
use crate::model::id::RunId;
use crate::model::run::Run;
use crate::policy::redact::redact;

use super::Context;
use super::left::is_denied;

impl Context {
    /// This work tree, with the state directory where that was named.
    pub fn place(&self) -> Place {
        self.place_of(&self.worktree)
    }

    /// Another folder with the same state directory.
    pub fn place_of(&self, folder: impl Into<PathBuf>) -> Place {
        let state_dir = self
            .setup
            .state_dir
            .is_some()
            .then(|| self.store.dir().to_owned());
        Place {
            folder: folder.into(),
            state_dir,
        }
    }

    /// The work tree of this repository that a run works in, where that is another one than this.
    pub fn elsewhere(&self, run: &Run) -> Option<Place> {
        let is_other = run.worktree != self.worktree_id()
            && self.has_git()
            && self.is_worktree_of_repo(&run.worktree);
        is_other.then(|| self.place_of(run.worktree.path()))
    }

    /// `recover` with these words about a run; it works from any folder.
    pub fn hint_about(&self, run: &Run, words: &[&str]) -> Hint {
        let place = self.elsewhere(run).unwrap_or_else(|| self.place());
        Hint::recover(words).run(&run.key).at(place)
    }

    /// The hint with the place that it is about, so that it works from any folder.
    pub fn placed(&self, hint: Hint) -> Hint {
        hint.at(self.place())
    }

    /// The hint as a line that works from any folder.
    pub fn line(&self, hint: Hint) -> String {
        self.placed(hint).to_string()
    }

    /// The error with a hint that works from any folder.
    pub fn locate(&self, mut error: Error) -> Error {
        if error.hint.is_none() && error.kind == ErrorKind::Locked {
            // Another process holds the lock: the same once more, with more patience.
            error.hint = Some(self.rerun(&["--lock-timeout", "60s"]));
        }
        if error.hint.is_none() && is_denied(&error) {
            error.hint = self
                .left_by_another()
                .map(|left| left.hint(self.cwd()))
                .or_else(|| self.closed_hint());
        }
        // One that cannot be shown whole is no command to copy.
        error.hint = error.hint.map(|hint| hint.at(self.place())).filter(|hint| {
            let line = hint.to_string();
            redact(&line) == line
        });
        error
    }

    /// The command that was given once more, where it was, with another program after the `--`.
    pub fn rerun_with(&self, program: &str, other: &str) -> Hint {
        let mut words = self.setup.asked.clone().unwrap_or_default();
        let command = words
            .iter()
            .position(|word| word == "--")
            .map_or(words.len(), |at| at + 1);
        if let Some(word) = words[command..].iter_mut().find(|word| *word == program) {
            other.clone_into(word);
        }
        self.again(&words, &[])
    }

    /// The command that was given once more, from any folder: with these flags, each in the place of the same one where it
    /// was given. A word after a flag that is none itself is its value.
    pub fn rerun(&self, flags: &[&str]) -> Hint {
        self.again(self.setup.asked.as_deref().unwrap_or(&[]), flags)
    }

    fn again(&self, asked: &[String], flags: &[&str]) -> Hint {
        let end = asked
            .iter()
            .position(|word| word == "--")
            .unwrap_or(asked.len());
        let (own, command) = asked.split_at(end);
        // Names of files are as they were given: relative to where that was.
        let mut all = Vec::new();
        let has_value = |at: usize| flags.get(at + 1).is_some_and(|next| !next.starts_with('-'));
        let new = flags
            .iter()
            .enumerate()
            .filter(|(_, flag)| flag.starts_with('-'));
        let mut replaced: Vec<(&str, bool)> =
            new.map(|(at, flag)| (*flag, has_value(at))).collect();
        replaced.extend([("-C", true), ("--state-dir", true), ("--json", false)]);
        let mut words = own.iter();
        while let Some(word) = words.next() {
            let given = replaced.iter().find(|(flag, has_value)| {
                let rest = word.strip_prefix(flag);
                rest.is_some_and(|rest| {
                    rest.is_empty() || *has_value && (rest.starts_with('=') || *flag == "-C")
                })
            });
            match given {
                Some((flag, true)) if word == flag => drop(words.next()),
                Some(_) => {}
                None => all.push(word.clone()),
            }
        }
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let names = |run: &RunId| {
            let is_name = |word: &String| {
                word == "--run" || word.starts_with("--run=") || word == run.as_str()
            };
            own.iter().any(is_name)
        };
        if let Some(run) = self.setup.naming.run_id.as_ref().filter(|run| !names(run)) {
            all.push(format!("--run={run}"));
        }
        all.extend(command.iter().cloned());
        Hint::recover(all).at(self.place_of(&self.setup.cwd))
    }
}
