//! Installs the hook in an agent's settings or in git's hooks, and uninstalls it.
//! A file that does not look as it should is refused and left as it is; every file is replaced whole or not at all.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::durable::{Root, Sync};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::git::Repo;
use crate::model::hint::quote;
use crate::model::{Hint, HookAgent};
use crate::policy::hook::settings::{
    GIT_HOOKS, PLUGIN_MARK, git_block, is_bare, may_hold_ours, opencode_plugin, plain, pretty,
    program_in, reads_comments, settings, with_block, with_ours, without_block, without_ours,
};

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

/// What an installation changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Changes {
    pub changed: bool,
    pub files: Vec<FileChange>,
    /// What cannot be seen in the settings.
    pub notes: Vec<String>,
}

/// What it would change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangesPlan<'a> {
    changed: bool,
    plan: PlannedFiles<'a>,
    notes: &'a [String],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct PlannedFiles<'a> {
    files: &'a [FileChange],
}

impl Changes {
    fn new(files: Vec<FileChange>, mut notes: Vec<String>) -> Self {
        notes.extend(files.iter().filter_map(|file| file.note.clone()));
        Self {
            changed: files.iter().any(FileChange::is_changed),
            files,
            notes,
        }
    }

    /// What a dry run answers.
    pub(crate) fn planned(&self) -> ChangesPlan<'_> {
        let files = &self.files;
        ChangesPlan {
            changed: false,
            plan: PlannedFiles { files },
            notes: &self.notes,
        }
    }
}

/// Settings to copy.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Printed {
    agent: &'static str,
    /// The file that it belongs in, relative to the project.
    path: Option<&'static str>,
    pub content: String,
    notes: Vec<String>,
    /// The content, where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<Map<String, Value>>,
}

/// What became of one file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "hook_file")]
pub(crate) struct FileChange {
    pub agent: &'static str,
    #[serde(serialize_with = "lossy")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    #[schemars(extend("enum" = ["created", "modified", "deleted", "unchanged"]))]
    pub change: &'static str,
    /// What the user has to know about it.
    #[serde(skip)]
    pub note: Option<String>,
}

impl FileChange {
    pub(crate) fn is_changed(&self) -> bool {
        self.change != "unchanged"
    }
}

fn lossy<S: Serializer>(path: &Path, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// The file that an agent's settings are in, relative to the project (or the home folder).
pub(in crate::engine) fn settings_file(agent: HookAgent, place: Place) -> Option<&'static str> {
    match (agent, place) {
        (HookAgent::Claude, Place::Project | Place::User) => Some(".claude/settings.json"),
        (HookAgent::Claude, Place::Local) => Some(".claude/settings.local.json"),
        (HookAgent::Codex, Place::Project | Place::User) => Some(".codex/hooks.json"),
        (HookAgent::Gemini, Place::Project | Place::User) => Some(".gemini/settings.json"),
        (HookAgent::Opencode, Place::Project) => Some(".opencode/plugins/recover.js"),
        (HookAgent::Opencode, Place::User) => Some(".config/opencode/plugins/recover.js"),
        (HookAgent::Codex | HookAgent::Gemini | HookAgent::Opencode, Place::Local)
        | (HookAgent::Git, _) => None,
    }
}

/// A file that holds the hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Installed {
    /// The file.
    pub path: PathBuf,
    /// What is called there, as a shell reads it; `None` where a user made something else of it.
    pub program: Option<String>,
}

/// The file at this place that holds the hook.
pub(super) fn installed_in(context: &Context, agent: HookAgent, place: Place) -> Option<Installed> {
    let found = |path: PathBuf, text: &str| Installed {
        path,
        program: program_in(text, agent),
    };
    if agent == HookAgent::Git {
        let folder = Some(place)
            .filter(|place| *place == Place::Project)
            .and_then(|_| hooks_folder(context).ok())?;
        let calls = |path: PathBuf| {
            let script = read(&named(&path), &path).ok().flatten()?;
            (without_block(&script) != script).then(|| found(path, &script))
        };
        return GIT_HOOKS
            .iter()
            .map(|hook| folder.join(hook))
            .find_map(calls);
    }
    let (root, path) = place_of_settings(context, agent, place).ok()?;
    let text = read(&root, &path).ok().flatten()?;
    let has = match agent {
        HookAgent::Opencode => text.starts_with(PLUGIN_MARK),
        _ => may_hold_ours(&text, agent),
    };
    has.then(|| found(path, &text))
}

/// What is put into the settings, as text to copy. Without `program` `recover` is called by its name or path.
pub(crate) fn print(context: &Context, agent: HookAgent, program: Option<&str>) -> Printed {
    let (program, note) = called(context, program);
    let text = match agent {
        HookAgent::Claude | HookAgent::Codex | HookAgent::Gemini => {
            pretty(&settings(agent, &program), "  ") + "\n"
        }
        HookAgent::Opencode => opencode_plugin(&program),
        HookAgent::Git => {
            let blocks = GIT_HOOKS.map(|hook| format!("# {hook}\n{}", git_block(&program, hook)));
            blocks.join("\n")
        }
    };
    Printed {
        agent: agent.as_str(),
        path: settings_file(agent, Place::Project),
        notes: notes(agent, note),
        settings: serde_json::from_str(&text).ok(),
        content: text,
    }
}

/// Installs the hook of an agent; a dry run only says what would become of which file.
pub(crate) fn install(
    context: &Context,
    agent: HookAgent,
    place: Place,
    program: Option<&str>,
) -> Result<Changes> {
    let (program, note) = called(context, program);
    let files = carry_out(context, Task::Install, agent, place, &program)?;
    Ok(Changes::new(files, notes(agent, note)))
}

/// Takes the hook of these agents out, by default of all that may have it.
pub(crate) fn uninstall(
    context: &Context,
    named: Option<HookAgent>,
    place: Place,
) -> Result<Changes> {
    let has = |agent: &HookAgent| match agent {
        HookAgent::Git => context.has_git() && place == Place::Project,
        agent => settings_file(*agent, place).is_some(),
    };
    let agents: Vec<HookAgent> = match named {
        Some(agent) => vec![agent],
        None => HookAgent::ALL.iter().copied().filter(has).collect(),
    };
    let (mut files, mut refused) = (Vec::new(), None);
    for agent in agents {
        match carry_out(context, Task::Uninstall, agent, place, "recover") {
            Ok(changes) => files.extend(changes),
            // What one of them refuses is no reason to leave the hook in the others.
            Err(error) => {
                tracing::warn!(%error, "the hook of {} is not taken out", agent.as_str());
                refused = refused.or(Some(error));
            }
        }
    }
    match refused {
        Some(error) => Err(error),
        None => Ok(Changes::new(files, Vec::new())),
    }
}

/// How recover is called, and what there is to say about that.
fn called(context: &Context, wanted: Option<&str>) -> (String, Option<String>) {
    if let Some(wanted) = wanted {
        return (quote(wanted), None);
    }
    let path = context.env("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("recover").is_file()) {
        return ("recover".to_owned(), None);
    }
    let Ok(own) = std::env::current_exe() else {
        let note = "recover is not on PATH: the hook does nothing until it is";
        return ("recover".to_owned(), Some(note.to_owned()));
    };
    let note = format!(
        "recover is not on PATH: it is called as {}, which is right on this machine only",
        own.display()
    );
    (quote(&own), Some(note))
}

/// What cannot be seen in the settings.
fn notes(agent: HookAgent, first: Option<String>) -> Vec<String> {
    let of_agent: &[&str] = match agent {
        HookAgent::Claude => {
            &["failed turns are reported (StopFailure) by Claude Code 2.1.78 and newer"]
        }
        HookAgent::Codex => &[
            "Codex runs a project's hooks once they are trusted: look at them with /hooks",
            "Codex runs no hook when a turn fails: supervise it with `recover run -- codex exec --json …`",
        ],
        HookAgent::Gemini => &[
            "Gemini CLI runs no hook when a turn fails: supervise it with `recover run -- gemini …`",
        ],
        HookAgent::Opencode => &["opencode reads its plugins when it starts"],
        HookAgent::Git => &[
            "git calls no hook before reset, clean, checkout and stash: an agent's own hook sees those commands, git's cannot",
        ],
    };
    let of_agent = of_agent.iter().map(|note| (*note).to_owned());
    first.into_iter().chain(of_agent).collect()
}

/// Does it; a dry run only says what would become of which file.
pub(in crate::engine) fn carry_out(
    context: &Context,
    task: Task,
    agent: HookAgent,
    place: Place,
    program: &str,
) -> Result<Vec<FileChange>> {
    let mut plans = Vec::new();
    if agent == HookAgent::Git {
        if place != Place::Project {
            return Err(Error::new(
                ErrorKind::Usage,
                "git's hooks are those of this repository",
            ));
        }
        let folder = hooks_folder(context)?;
        for hook in GIT_HOOKS {
            let plan = of_script(&folder.join(hook), task, hook, program)?;
            if plan.change() != "unchanged"
                && !folder_of(&plan.path).is_some_and(|at| is_own(context.repo(), &at))
            {
                let message = format!(
                    "{hook} is a link to {}, outside of this repository",
                    plan.path.display()
                );
                return Err(outside(&message));
            }
            plans.push(plan);
        }
    } else {
        plans.push(match agent {
            HookAgent::Opencode => of_plugin(context, place, task, program)?,
            _ => of_settings(context, place, task, agent, program)?,
        });
    }
    for plan in plans.iter().filter(|plan| plan.change() != "unchanged") {
        if let Some(link) = dangling(&plan.path) {
            return Err(to_nothing(link));
        }
    }
    if !context.dry_run() {
        if plans.iter().any(|plan| plan.change() != "unchanged") {
            context.check_writes("changing settings and scripts")?;
        }
        plans.iter().try_for_each(Plan::write)?;
    }
    let told = |plan: Plan| FileChange {
        agent: agent.as_str(),
        change: plan.change(),
        note: plan.note(task),
        path: plan.path,
    };
    Ok(plans.into_iter().map(told).collect())
}

/// The command that prints the settings to copy.
fn print_hint(agent: HookAgent) -> Hint {
    Hint::recover(["hook", "print", agent.as_str()])
}

fn to_nothing(link: &Path) -> Error {
    let message = format!(
        "{} is a broken symbolic link: create its target, or remove the link first",
        link.display()
    );
    Error::new(ErrorKind::Config, message).hint(Hint::program("readlink").arg(link))
}

/// The link to nothing on the way to a file, or the file itself.
fn dangling(path: &Path) -> Option<&Path> {
    path.ancestors().find(|at| at.is_symlink() && !at.exists())
}

/// The folder that a file is in, or will be.
fn folder_of(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .skip(1)
        .find_map(|at| std::fs::canonicalize(at).ok())
}

fn settings_path(context: &Context, agent: HookAgent, place: Place) -> Result<PathBuf> {
    let Some(file) = settings_file(agent, place) else {
        let message = format!(
            "{} has no settings of a user in a project: leave --local out, or add --user",
            agent.as_str()
        );
        return Err(Error::new(ErrorKind::Usage, message).hint(print_hint(agent)));
    };
    let root = match place {
        Place::User => context
            .home()
            .ok_or_else(|| Error::new(ErrorKind::Usage, "$HOME is not set"))?,
        Place::Project | Place::Local => context.worktree(),
    };
    Ok(root.join(file))
}

/// Where git looks for hooks.
fn hooks_folder(context: &Context) -> Result<PathBuf> {
    if !context.has_git() {
        let message = format!("{} is in no git repository", context.worktree().display());
        return Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::git(["init"])));
    }
    let repo = context.repo()?;
    let folder = repo.hooks_dir()?;
    if !is_own(Ok(repo), &folder) {
        let message = format!(
            "core.hooksPath is {}, outside of this repository",
            folder.display()
        );
        return Err(outside(&message));
    }
    Ok(folder)
}

fn is_own(repo: Result<&Repo>, folder: &Path) -> bool {
    let own = |repo: &Repo| {
        [repo.workdir(), repo.common_dir()].map(|own| std::fs::canonicalize(own).ok())
    };
    repo.is_ok_and(|repo| {
        own(repo)
            .into_iter()
            .flatten()
            .any(|own| folder.starts_with(own))
    })
}

fn outside(message: &str) -> Error {
    let message = format!(
        "{message}; add the lines that hook print git prints to the scripts there yourself"
    );
    Error::new(ErrorKind::UnsafePath, message).hint(Hint::recover(["hook", "print", "git"]))
}

/// What a file is to hold.
#[derive(Debug)]
struct Plan {
    /// The way to the file: nothing is followed in it.
    root: Root,
    path: PathBuf,
    before: Option<String>,
    /// `None`: the file goes.
    after: Option<String>,
    executable: bool,
    /// What leads to the file and goes in its stead.
    link: Option<PathBuf>,
    /// How many of the folders around the file go with it where nothing else is in them.
    folders: usize,
}

impl Plan {
    fn new(root: Root, path: PathBuf, before: Option<String>, after: Option<String>) -> Self {
        Self {
            root,
            path,
            before,
            after,
            executable: false,
            link: None,
            folders: 0,
        }
    }

    /// One that leaves the file as it is.
    fn unchanged(root: Root, path: PathBuf, text: Option<String>) -> Self {
        Self::new(root, path, text.clone(), text)
    }

    fn change(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, Some(_)) => "created",
            (Some(_), None) => "deleted",
            (Some(before), Some(after)) if before != after => "modified",
            _ => "unchanged",
        }
    }

    /// A script that is there keeps its mode, also where git does not run it for that.
    fn note(&self, task: Task) -> Option<String> {
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

    fn write(&self) -> Result<()> {
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
                let mode = mode_of(&self.root, &self.path).map(|mode| mode & 0o7777);
                let written = match mode.or(self.executable.then_some(0o755)) {
                    Some(mode) => {
                        self.root
                            .write_mode(&self.path, text.as_bytes(), mode, Sync::All)
                    }
                    None => self.root.write(&self.path, text.as_bytes(), Sync::All),
                };
                written.map_err(failed)
            }
        }
    }
}

fn mode_of(root: &Root, path: &Path) -> Option<u32> {
    Some(root.open(path).ok()?.metadata().ok()?.permissions().mode())
}

fn read(root: &Root, path: &Path) -> Result<Option<String>> {
    let bytes = root.read_present(path);
    let bytes = bytes.map_err(|error| Error::cannot("read", path, error))?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| refused(path, "it is no text"))
}

fn refused(path: &Path, why: &str) -> Error {
    let message = format!(
        "{} is left as it is: {why}; repair it, or add what hook print prints yourself",
        path.display()
    );
    Error::new(ErrorKind::Config, message).hint(Hint::recover(["hook", "print", "--help"]))
}

/// The way to an agent's settings and their path. Those of the project are never followed; of the user's own a link may
/// lead anywhere, as to a folder of dotfiles, as long as what it leads to is the user's.
fn place_of_settings(context: &Context, agent: HookAgent, place: Place) -> Result<(Root, PathBuf)> {
    let file = settings_path(context, agent, place)?;
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
        return Err(Error::new(ErrorKind::UnsafePath, message).hint(print_hint(agent)));
    }
    Ok((named(&path), path))
}

/// The way to a file whose folder is resolved.
fn named(path: &Path) -> Root {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir());
    Root::shared(folder.unwrap_or(Path::new("/")))
}

fn of_settings(
    context: &Context,
    place: Place,
    task: Task,
    agent: HookAgent,
    program: &str,
) -> Result<Plan> {
    let (root, path) = place_of_settings(context, agent, place)?;
    let before = read(&root, &path)?;
    let text = before.as_deref().unwrap_or_default();
    // What holds nothing of ours need not even be readable.
    if task == Task::Uninstall && !may_hold_ours(text, agent) {
        return Ok(Plan::unchanged(root, path, before));
    }
    let refused = |why: &str| refused(&path, why).hint(print_hint(agent));
    if !text.trim().is_empty() {
        let has_comments =
            || !reads_comments(agent) && serde_json::from_str::<Value>(text).is_err();
        match serde_json::from_str::<Value>(&plain(text)) {
            Err(error) => return Err(refused(&format!("it is no JSON ({error})"))),
            Ok(_) if has_comments() => {
                return Err(refused(&format!(
                    "it is no JSON, for {} reads no comments",
                    agent.as_str()
                )));
            }
            Ok(_) => {}
        }
    }
    let changed = match task {
        Task::Install => with_ours(before.as_deref(), agent, program).map(Some),
        Task::Uninstall => Ok(without_ours(text, agent)),
    };
    let changed = changed.map_err(|error| refused(&error.to_string()))?;
    // What leads to a file goes on leading to one.
    let is_linked = || settings_path(context, agent, place).is_ok_and(|file| file.is_symlink());
    let after = changed.or_else(|| is_linked().then(|| "{}\n".to_owned()));
    Ok(Plan {
        folders: 1,
        ..Plan::new(root, path, before, after)
    })
}

fn of_plugin(context: &Context, place: Place, task: Task, program: &str) -> Result<Plan> {
    let (root, path) = place_of_settings(context, HookAgent::Opencode, place)?;
    let before = read(&root, &path)?;
    // Taken out is the link, and the file stays where a user keeps it.
    let file = settings_path(context, HookAgent::Opencode, place)?;
    let link = (task == Task::Uninstall && file.is_symlink()).then_some(file);
    if before
        .as_deref()
        .is_some_and(|text| !text.starts_with(PLUGIN_MARK))
    {
        return match task {
            Task::Install => {
                let message = format!(
                    "{} is not recover's: move it, or keep what hook print opencode prints under another name",
                    path.display()
                );
                let hint = print_hint(HookAgent::Opencode);
                Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint))
            }
            Task::Uninstall => Ok(Plan::unchanged(root, path, before)),
        };
    }
    let after = (task == Task::Install).then(|| opencode_plugin(program));
    Ok(Plan {
        link,
        folders: 2,
        ..Plan::new(root, path, before, after)
    })
}

fn of_script(path: &Path, task: Task, hook: &str, program: &str) -> Result<Plan> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let root = named(&path);
    let before = match read(&root, &path) {
        Err(error) if error.kind == ErrorKind::Config => return Err(foreign(&path, hook)),
        before => before?,
    };
    let after = match (task, before.as_deref()) {
        (Task::Install, script) => {
            Some(with_block(script, program, hook).ok_or_else(|| foreign(&path, hook))?)
        }
        (Task::Uninstall, None) => None,
        (Task::Uninstall, Some(script)) => {
            let left = without_block(script);
            let ours = left != script && is_bare(&left);
            (!ours).then_some(left)
        }
    };
    Ok(Plan {
        executable: true,
        ..Plan::new(root, path, before, after)
    })
}

fn foreign(path: &Path, hook: &str) -> Error {
    let message = format!(
        "{} is no shell script: nothing can be added to it; let it call recover hook run git {hook}",
        path.display()
    );
    Error::new(ErrorKind::AlreadyExists, message).hint(Hint::recover(["hook", "print", "git"]))
}
