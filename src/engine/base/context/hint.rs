//! Hints that work from any folder: commands to copy, with the place that they are about.
//!
//! What another user left where this one is to write: `sudo recover` does, as `sudo git` does.

use std::path::{Path, PathBuf};

use super::Context;
use crate::engine::base::error::{Error, ErrorKind};
use crate::git::repo::owner;
use crate::model::{Hint, Place, Run, RunId};
use crate::policy::secrets::redact;

impl Context {
    /// This work tree, with the state directory where that was named.
    pub(crate) fn place(&self) -> Place {
        self.place_of(self.worktree())
    }

    /// Another folder with the same state directory.
    pub(crate) fn place_of(&self, folder: impl Into<PathBuf>) -> Place {
        let state_dir = self
            .setup
            .state_dir
            .as_ref()
            .filter(|_| self.setup.shows.is_none())
            .map(|_| self.store().dir().to_owned());
        Place {
            folder: folder.into(),
            state_dir,
        }
    }

    /// The work tree that commands about a run need, where that is another one than this. A run that has one for itself is
    /// reached by its name from the one that it was begun in.
    pub(crate) fn elsewhere(&self, run: &Run) -> Option<Place> {
        let home = run.spec.isolated.as_ref().map(|isolated| &isolated.home);
        let home = home.filter(|home| self.is_worktree_of_repo(home));
        if let Some(home) = home {
            return Some(self.place_of(home.path()));
        }
        let is_other = run.worktree != self.worktree_id()
            && self.has_git()
            && self.is_worktree_of_repo(&run.worktree);
        is_other.then(|| self.place_of(run.worktree.path()))
    }

    /// `recover` with these words about a run; it works from any folder.
    pub(crate) fn hint_about(&self, run: &Run, words: &[&str]) -> Hint {
        let place = self.elsewhere(run).unwrap_or_else(|| self.place());
        Hint::recover(words).run(&run.key).at(place)
    }

    /// The hint with the place that it is about, so that it works from any folder.
    pub(crate) fn placed(&self, hint: Hint) -> Hint {
        hint.at(self.place())
    }

    /// The hint as a line that works from any folder.
    pub(crate) fn line(&self, hint: Hint) -> String {
        self.placed(hint).to_string()
    }

    /// The error with a hint that works from any folder.
    pub(crate) fn locate(&self, mut error: Error) -> Error {
        if error.hint.is_none() && error.kind == ErrorKind::Locked {
            // Another process holds the lock: the same once more, with more patience.
            error.hint = Some(self.rerun(&["--lock-timeout", "60s"]));
        }
        if error.hint.is_none() && is_denied(&error) {
            error.hint = self
                .left_by_another()
                .map(|left| left.hint(self.cwd()))
                .or_else(|| closed_hint(self.written_to()));
        }
        // One that cannot be shown whole is no command to copy.
        error.hint = error.hint.map(|hint| hint.at(self.place())).filter(|hint| {
            let line = hint.to_string();
            redact(&line) == line
        });
        error
    }

    /// The command that was given once more, where it was, with another command after the `--`.
    pub(crate) fn rerun_with(&self, argv: &[String]) -> Hint {
        let mut words = self.setup.asked.clone().unwrap_or_default();
        if let Some(dashes) = words.iter().position(|word| word == "--") {
            words.truncate(dashes + 1);
            words.extend(argv.iter().cloned());
        }
        self.again(&words, &[])
    }

    /// The command that was given once more, with numbers of checkpoints as they are written.
    pub(crate) fn rerun_numbered(&self) -> Hint {
        let mut words = self.setup.asked.clone().unwrap_or_default();
        let is_value =
            |before: &str| before.starts_with('-') && !before.contains('=') && before != "--to";
        for at in 0..words.len() {
            let is_number = words[at].bytes().all(|byte| byte.is_ascii_digit());
            if is_number
                && !at
                    .checked_sub(1)
                    .is_some_and(|before| is_value(&words[before]))
            {
                words[at].insert(0, '@');
            }
        }
        self.again(&words, &[])
    }

    /// The command that was given once more, from any folder: with these flags, each in the place of the same one where it
    /// was given. A word after a flag that is none itself is its value.
    pub(crate) fn rerun(&self, flags: &[&str]) -> Hint {
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
                ["--run", "--series"].contains(&word.as_str())
                    || word.starts_with("--run=")
                    || word.starts_with("--series=")
                    || word == run.as_str()
            };
            own.iter().any(is_name)
        };
        if let Some(run) = self.setup.naming.run_id.as_ref().filter(|run| !names(run)) {
            all.push(format!("--run={run}"));
        }
        all.extend(command.iter().cloned());
        Hint::recover(all).at(self.place_of(&self.setup.cwd))
    }

    /// Looks for it where this project is written to.
    pub(crate) fn left_by_another(&self) -> Option<Left> {
        Left::find(self.written_to())
    }

    fn written_to(&self) -> Vec<PathBuf> {
        let state = self.store().dir();
        let above = state
            .parent()
            .filter(|above| above.ends_with(PROJECT))
            .unwrap_or(state);
        let of_git = self
            .location
            .repo
            .get()
            .filter(|_| self.has_git())
            .map(|(repo, _)| of_git(repo.common_dir()));
        of_git
            .into_iter()
            .flatten()
            .chain([above.to_owned()])
            .collect()
    }
}

/// What a project without git is known by.
const PROJECT: &str = ".ultraplan";

/// How deep our folders are looked into: as deep as a run's logs and references are.
const DEPTH: usize = 5;

/// Places of ours in which something is another user's.
#[derive(Debug)]
pub(crate) struct Left {
    places: Vec<PathBuf>,
    /// The first of it.
    pub path: PathBuf,
    /// Whose it is.
    pub owner: u32,
}

impl Left {
    /// Looks in the folders of a project and of git; `None` for root, to whom it makes no difference.
    fn find(folders: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let found = folders
            .into_iter()
            .filter_map(|place| Some((owner::left_by_another(&place, DEPTH)?, place)));
        let (found, places): (Vec<_>, Vec<_>) = found.unzip();
        let (path, owner) = found.into_iter().next()?;
        Some(Self {
            places,
            path,
            owner,
        })
    }

    /// The command that makes it the user's again; where it is a project of another user's above the folder `start`, that
    /// makes one of the user's own there.
    pub(crate) fn hint(&self, start: &Path) -> Hint {
        if let [own] = self.places.as_slice()
            && own.ends_with(PROJECT)
            && let Some(project) = own
                .parent()
                .filter(|project| *project != start && start.starts_with(project))
            && owner::is_of_another(project)
        {
            return Hint::program("mkdir").arg(start.join(PROJECT));
        }
        let user = rustix::process::geteuid().as_raw();
        Hint::program("sudo")
            .args(["chown", "-R"])
            .arg(user.to_string())
            .args(&self.places)
    }
}

/// Folders of git's that are written to.
fn of_git(common: &Path) -> [PathBuf; 4] {
    ["recover", "refs", "objects", "logs"].map(|name| common.join(name))
}

/// What makes places writable again that lack the rights of their owner.
fn closed_hint(folders: impl IntoIterator<Item = PathBuf>) -> Option<Hint> {
    // What git made is read-only as a rule, what is ours is not.
    let is_ours = |folder: &Path| {
        !["refs", "objects", "logs"]
            .iter()
            .any(|name| folder.ends_with(name))
    };
    let (there, missing): (Vec<PathBuf>, Vec<PathBuf>) =
        folders.into_iter().partition(|folder| folder.exists());
    let closed = |folder: &PathBuf| owner::is_closed(folder, DEPTH, is_ours(folder));
    let closed: Vec<PathBuf> = there.into_iter().filter(closed).collect();
    // What is still to be made needs the folder that it is made in.
    let above = missing.iter().filter_map(|folder| folder.parent());
    let above: Vec<&Path> = above
        .filter(|folder| owner::is_closed(folder, 0, false))
        .collect();
    let opened = (!above.is_empty()).then(|| Hint::program("chmod").arg("u+rwx").args(above));
    let all =
        (!closed.is_empty()).then(|| Hint::program("chmod").args(["-R", "u+rwX"]).args(closed));
    match (opened, all) {
        (Some(opened), Some(all)) => Some(opened.and(all)),
        (opened, all) => opened.or(all),
    }
}

/// The error of who may not even look at a project, with the way out where another user left something there.
pub(super) fn explained(error: Error, start: &Path) -> Error {
    if error.hint.is_some() || !is_denied(&error) {
        return error;
    }
    let folders = start.ancestors().flat_map(|folder| {
        of_git(&folder.join(".git"))
            .into_iter()
            .chain([folder.join(PROJECT)])
    });
    let folders: Vec<PathBuf> = folders.filter(|folder| folder.is_dir()).collect();
    let hint = Left::find(folders.clone())
        .map(|left| left.hint(start))
        .or_else(|| closed_hint(folders));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Whether the system did not let us.
pub(super) fn is_denied(error: &Error) -> bool {
    let mut said = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        said += &cause.to_string();
        source = cause.source();
    }
    error.kind == ErrorKind::Failed && said.to_ascii_lowercase().contains("permission denied")
}
