//! What becomes of a file that has something of the hook or the plugin: worked out first, then written whole or not at all.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::durable::{Root, Sync};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::model::hint::quote;
use crate::model::{Hint, HookAgent};
use crate::policy::hook::plugin::{Entry, Owner, owner};
use crate::policy::hook::settings::{plain, reads_comments};
use serde_json::Value;

/// For whom the hook is set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// Everybody who works on the project: a file that is committed.
    #[default]
    Project,
    /// This user in this project.
    Local,
    /// This user everywhere.
    User,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Task {
    /// Put in.
    Install,
    /// Take out.
    Uninstall,
}

/// How much is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The hook alone.
    Hook,
    /// The plugin: the hook, commands, a skill and the MCP server.
    Plugin,
}

/// What is set up, and for whom.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Setup {
    pub part: Part,
    pub agent: HookAgent,
    pub place: Place,
    pub program: Called,
}

/// How `recover` is called.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Called {
    /// As a shell reads it.
    pub(super) line: String,
    /// Where no shell does.
    pub(super) path: String,
}

impl Called {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            line: quote(path),
            path: path.to_string_lossy().into_owned(),
        }
    }

    /// By its name.
    pub(in crate::engine) fn by_name() -> Self {
        Self::new(Path::new("recover"))
    }
}

/// The path of a file that belongs to the project or the home folder.
pub(super) fn absolute(context: &Context, place: Place, file: &str) -> Result<PathBuf> {
    let root = match place {
        Place::User => context
            .home()
            .ok_or_else(|| Error::new(ErrorKind::Usage, "$HOME is not set"))?,
        Place::Project | Place::Local => context.worktree(),
    };
    Ok(root.join(file))
}

pub(super) fn to_nothing(link: &Path) -> Error {
    let message = format!(
        "{} is a broken symbolic link: create its target, or remove the link first",
        link.display()
    );
    Error::new(ErrorKind::Config, message).hint(Hint::program("readlink").arg(link))
}

/// The link to nothing on the way to a file, or the file itself.
pub(super) fn dangling(path: &Path) -> Option<&Path> {
    path.ancestors().find(|at| at.is_symlink() && !at.exists())
}

/// What a file is to hold.
#[derive(Debug)]
pub(in crate::engine) struct Plan {
    /// The way to the file: nothing is followed in it.
    pub root: Root,
    pub path: PathBuf,
    pub before: Option<String>,
    /// `None`: the file goes.
    pub after: Option<String>,
    pub executable: bool,
    /// What leads to the file and goes in its stead.
    pub link: Option<PathBuf>,
    /// How many of the folders around the file go with it where nothing else is in them.
    pub folders: usize,
    /// What the user has to know about it.
    pub remark: Option<String>,
}

impl Plan {
    pub(in crate::engine) fn new(
        root: Root,
        path: PathBuf,
        before: Option<String>,
        after: Option<String>,
    ) -> Self {
        Self {
            root,
            path,
            before,
            after,
            executable: false,
            link: None,
            folders: 0,
            remark: None,
        }
    }

    /// One that leaves the file as it is.
    pub(in crate::engine) fn unchanged(root: Root, path: PathBuf, text: Option<String>) -> Self {
        Self::new(root, path, text.clone(), text)
    }

    pub(in crate::engine) fn change(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, Some(_)) => "created",
            (Some(_), None) => "deleted",
            (Some(before), Some(after)) if before != after => "modified",
            _ => "unchanged",
        }
    }

    /// A script that is there keeps its mode, also where git does not run it for that.
    pub(super) fn note(&self, task: Task) -> Option<String> {
        if self.remark.is_some() {
            return self.remark.clone();
        }
        let mode = mode_of(&self.root, &self.path)?;
        let idle =
            self.executable && task == Task::Install && self.before.is_some() && mode & 0o111 == 0;
        idle.then(|| {
            format!(
                "{} is not executable: git does not run it until it is",
                self.path.display()
            )
        })
    }

    pub(in crate::engine) fn write(&self) -> Result<()> {
        let failed = |error| Error::cannot("write", &self.path, error);
        if self.change() == "unchanged" {
            return Ok(());
        }
        if read(&self.root, &self.path)? != self.before {
            let message = format!(
                "{} has just been changed by another process: do this again",
                self.path.display()
            );
            return Err(Error::new(ErrorKind::Conflicts, message));
        }
        match &self.after {
            None => {
                if let Some(link) = &self.link {
                    return named(link).remove_file(link).map_err(failed);
                }
                self.root.remove_file(&self.path).map_err(failed)?;
                let folders = self.path.ancestors().skip(1).take(self.folders);
                // One that holds something else, or is another user's, stays.
                let _gone: usize = folders
                    .take_while(|folder| self.root.remove_dir(folder).is_ok())
                    .count();
                Ok(())
            }
            Some(text) => {
                if let Some(folder) = self.path.parent() {
                    self.root.create_dir_all(folder).map_err(failed)?;
                }
                let text = text.as_bytes();
                let is_new = self.root.kind(&self.path).map_err(failed)?.is_none();
                let written = if is_new && self.executable {
                    self.root.write_mode(&self.path, text, 0o755, Sync::All)
                } else {
                    self.root.write(&self.path, text, Sync::All)
                };
                written.map_err(failed)
            }
        }
    }
}

fn mode_of(root: &Root, path: &Path) -> Option<u32> {
    Some(root.open(path).ok()?.metadata().ok()?.permissions().mode())
}

pub(super) fn read(root: &Root, path: &Path) -> Result<Option<String>> {
    let bytes = root.read_present(path);
    let bytes = bytes.map_err(|error| Error::cannot("read", path, error))?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| {
        let message = format!("{} is left as it is: it is no text", path.display());
        Error::new(ErrorKind::Config, message).hint(Hint::recover(["hook", "print", "--help"]))
    })
}

fn refused(path: &Path, why: &str) -> Error {
    let message = format!(
        "{} is left as it is: {why}; repair it, or add what hook print prints yourself",
        path.display()
    );
    Error::new(ErrorKind::Config, message).hint(Hint::recover(["hook", "print", "--help"]))
}

/// The way to a file and its path. Those of the project are never followed; of the user's own a link may
/// lead anywhere, as to a folder of dotfiles, as long as what it leads to is the user's.
pub(super) fn resolved(context: &Context, place: Place, file: &str) -> Result<(Root, PathBuf)> {
    let file = absolute(context, place, file)?;
    if place != Place::User {
        return Ok((Root::shared(context.worktree()), file));
    }
    if let Some(link) = dangling(&file) {
        return Err(to_nothing(link));
    }
    let real = |at: &Path| Some((std::fs::canonicalize(at).ok()?, file.strip_prefix(at).ok()?));
    let Some((there, rest)) = file.ancestors().find_map(real) else {
        return Ok((named(&file), file));
    };
    let path = if rest.as_os_str().is_empty() {
        there.clone()
    } else {
        there.join(rest)
    };
    let ours = rustix::process::geteuid().as_raw();
    if path != file && std::fs::metadata(&there).is_ok_and(|found| found.uid() != ours) {
        let message = format!(
            "{} leads to {}, which belongs to another user",
            file.display(),
            path.display()
        );
        let list = Hint::program("readlink").arg("-f").arg(&file);
        return Err(Error::new(ErrorKind::UnsafePath, message).hint(list));
    }
    // From the home folder on: the folders that are made in it can go again.
    let home = context
        .home()
        .and_then(|home| std::fs::canonicalize(home).ok());
    let root = match home {
        Some(home) if path.starts_with(&home) => Root::shared(home),
        _ => named(&path),
    };
    Ok((root, path))
}

/// The way to a file whose folder is resolved.
pub(super) fn named(path: &Path) -> Root {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir());
    Root::shared(folder.unwrap_or(Path::new("/")))
}

/// A file that `recover` makes as a whole.
#[derive(Debug)]
pub(in crate::engine) struct OwnFile<'a> {
    pub place: Place,
    /// Where it is, relative to the project or the home folder.
    pub file: &'a str,
    /// What it holds, with its mark.
    pub text: String,
    /// See [`Plan::folders`].
    pub folders: usize,
    /// What shows the state of such files.
    pub list: Hint,
}

impl OwnFile<'_> {
    /// What becomes of it. One that a user edited stays as it is, which is said; so does one of the user's own.
    ///
    /// # Errors
    /// A file of the user's own is in its place (13).
    pub(in crate::engine) fn plan(self, context: &Context, task: Task) -> Result<Plan> {
        let (root, path) = resolved(context, self.place, self.file)?;
        let before = read(&root, &path).map_err(|error| error.hint(self.list.clone()))?;
        match before.as_deref().map(owner) {
            Some(Owner::Edited) => {
                let remark = format!("{} was edited: it is left as it is", path.display());
                Ok(Plan {
                    remark: Some(remark),
                    ..Plan::unchanged(root, path, before)
                })
            }
            Some(Owner::Theirs) if task == Task::Install => {
                let message = format!("{} is not recover's: move it first", path.display());
                Err(Error::new(ErrorKind::AlreadyExists, message).hint(self.list))
            }
            Some(Owner::Theirs) => Ok(Plan::unchanged(root, path, before)),
            Some(Owner::Ours) | None => {
                let after = (task == Task::Install).then_some(self.text);
                Ok(Plan {
                    folders: self.folders,
                    ..Plan::new(root, path, before, after)
                })
            }
        }
    }
}

/// Whether any of the files changes; what leads to nothing must not, and a user's file only where that is allowed.
pub(in crate::engine) fn require_writable(context: &Context, plans: &[Plan]) -> Result<bool> {
    let mut changes = plans.iter().filter(|plan| plan.change() != "unchanged");
    let is_any = changes.clone().next().is_some();
    if let Some(link) = changes.find_map(|plan| dangling(&plan.path)) {
        return Err(to_nothing(link));
    }
    if is_any && !context.dry_run() {
        context.check_writes("changing settings and scripts")?;
    }
    Ok(is_any)
}

/// A file of settings, with or without an entry.
pub(super) fn of_settings(
    context: &Context,
    task: Task,
    setup: &Setup,
    entry: Entry,
    file: &str,
) -> Result<Plan> {
    let Setup {
        agent,
        place,
        ref program,
        ..
    } = *setup;
    let (root, path) = resolved(context, place, file)?;
    let before = read(&root, &path)?;
    let text = before.as_deref().unwrap_or_default();
    // What holds nothing of ours need not even be readable.
    if task == Task::Uninstall && !entry.may_be_in(text, agent) {
        return Ok(Plan::unchanged(root, path, before));
    }
    let refused =
        |why: &str| refused(&path, why).hint(Hint::recover(["hook", "print", agent.as_str()]));
    if !text.trim().is_empty() && entry != Entry::Table {
        let has_comments =
            || !reads_comments(agent) && serde_json::from_str::<Value>(text).is_err();
        match serde_json::from_str::<Value>(&plain(text)) {
            Err(error) => return Err(refused(&format!("it is not valid JSON ({error})"))),
            Ok(_) if has_comments() => {
                return Err(refused(&format!(
                    "it is not valid JSON: {} allows no comments",
                    agent.as_str()
                )));
            }
            Ok(_) => {}
        }
    }
    let changed = match task {
        Task::Install => entry
            .with(before.as_deref(), agent, (&program.line, &program.path))
            .map(Some),
        Task::Uninstall => entry.without(text, agent),
    };
    let changed = changed.map_err(|error| refused(&error.to_string()))?;
    // What leads to a file goes on leading to one.
    let is_linked = || absolute(context, place, file).is_ok_and(|file| file.is_symlink());
    let empty = if entry == Entry::Table { "" } else { "{}\n" };
    let after = changed.or_else(|| is_linked().then(|| empty.to_owned()));
    Ok(Plan {
        folders: usize::from(file.contains('/')),
        ..Plan::new(root, path, before, after)
    })
}
