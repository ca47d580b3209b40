//! Installs the hook in an agent's settings or in git's hooks, and uninstalls it.
//! A file that does not look as it should is refused and left as it is; every file is replaced whole or not at all.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::plan::{
    Called, Part, Place, Plan, Setup, Task, absolute, named, of_settings, read, require_writable,
    resolved,
};
use super::plugin;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::git::Repo;
use crate::model::{Hint, HookAgent};
use crate::policy::hook::plugin::{Entry, has_config, opencode_config};
use crate::policy::hook::settings::{
    GIT_HOOKS, PLUGIN_MARK, git_block, is_bare, may_hold_ours, opencode_plugin, pretty, program_in,
    settings, with_block, without_block,
};

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
    let file = settings_file(agent, place)?;
    let (root, path) = resolved(context, place, file).ok()?;
    let text = read(&root, &path).ok().flatten()?;
    let has = match agent {
        HookAgent::Opencode => text.starts_with(PLUGIN_MARK),
        _ => may_hold_ours(&text, agent),
    };
    has.then(|| found(path, &text))
}

/// What is put into the settings, as text to copy. Without `program` `recover` is called by its name or path.
pub(crate) fn print(context: &Context, agent: HookAgent, program: Option<&str>) -> Printed {
    let (Called { line: program, .. }, note) = called(context, program);
    let text = match agent {
        HookAgent::Claude | HookAgent::Codex | HookAgent::Gemini => {
            pretty(&settings(agent, &program), "  ") + "\n"
        }
        HookAgent::Opencode => opencode_plugin(&program, ""),
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

/// Installs the hook or the plugin of an agent; a dry run only says what would become of which file.
pub(crate) fn install(
    context: &Context,
    part: Part,
    agent: HookAgent,
    place: Place,
    program: Option<&str>,
) -> Result<Changes> {
    let (program, note) = called(context, program);
    let setup = Setup {
        part,
        agent,
        place,
        program,
    };
    let files = carry_out(context, Task::Install, &setup)?;
    let mut notes = notes(agent, note);
    if part == Part::Plugin {
        notes.extend(plugin::note(agent, place).map(str::to_owned));
    }
    Ok(Changes::new(files, notes))
}

/// Takes the hook or the plugin of these agents out, by default of all that may have it.
pub(crate) fn uninstall(
    context: &Context,
    part: Part,
    named: Option<HookAgent>,
    place: Place,
) -> Result<Changes> {
    let has = |agent: &HookAgent| match agent {
        HookAgent::Git => context.has_git() && place == Place::Project && part == Part::Hook,
        agent => settings_file(*agent, place).is_some(),
    };
    let agents: Vec<HookAgent> = match named {
        Some(agent) => vec![agent],
        None => HookAgent::ALL.iter().copied().filter(has).collect(),
    };
    let (mut files, mut refused) = (Vec::new(), None);
    for agent in agents {
        let program = Called::by_name();
        let setup = Setup {
            part,
            agent,
            place,
            program,
        };
        match carry_out(context, Task::Uninstall, &setup) {
            Ok(changes) => files.extend(changes),
            // What one of them refuses is no reason to leave it in the others.
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
pub(super) fn called(context: &Context, wanted: Option<&str>) -> (Called, Option<String>) {
    if let Some(wanted) = wanted {
        return (Called::new(Path::new(wanted)), None);
    }
    let path = context.env("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("recover").is_file()) {
        return (Called::by_name(), None);
    }
    let Ok(own) = std::env::current_exe() else {
        let note = "recover is not on PATH: the hook does nothing until it is";
        return (Called::by_name(), Some(note.to_owned()));
    };
    let note = format!(
        "recover is not on PATH: it is called as {}, which is right on this machine only",
        own.display()
    );
    (Called::new(&own), Some(note))
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
    setup: &Setup,
) -> Result<Vec<FileChange>> {
    let plans = plans(context, task, setup)?;
    require_writable(context, &plans)?;
    if !context.dry_run() {
        plans.iter().try_for_each(Plan::write)?;
    }
    let told = |plan: Plan| FileChange {
        agent: setup.agent.as_str(),
        change: plan.change(),
        note: plan.note(task),
        path: plan.path,
    };
    Ok(plans.into_iter().map(told).collect())
}

/// What becomes of each file.
pub(super) fn plans(context: &Context, task: Task, setup: &Setup) -> Result<Vec<Plan>> {
    match setup.agent {
        HookAgent::Git => of_scripts(context, task, setup),
        agent => {
            let Some(file) = settings_file(agent, setup.place) else {
                return Err(no_settings(agent));
            };
            let first = match agent {
                HookAgent::Opencode => of_plugin(context, task, setup, file)?,
                // Its server is in the same file.
                HookAgent::Gemini if setup.part == Part::Plugin => {
                    of_settings(context, task, setup, Entry::HookAndServer, file)?
                }
                _ => of_settings(context, task, setup, Entry::Hook, file)?,
            };
            let mut plans = vec![first];
            if setup.part == Part::Plugin {
                plans.extend(plugin::plans(context, task, setup)?);
            }
            Ok(plans)
        }
    }
}

fn no_settings(agent: HookAgent) -> Error {
    let message = format!(
        "{} has no settings of a user in a project: leave --local out, or add --user",
        agent.as_str()
    );
    Error::new(ErrorKind::Usage, message).hint(Hint::recover(["hook", "print", agent.as_str()]))
}

fn of_scripts(context: &Context, task: Task, setup: &Setup) -> Result<Vec<Plan>> {
    if setup.place != Place::Project {
        return Err(Error::new(
            ErrorKind::Usage,
            "git's hooks are those of this repository",
        ));
    }
    let folder = hooks_folder(context)?;
    let of_hook = |hook: &str| {
        let plan = of_script(&folder.join(hook), task, hook, &setup.program.line)?;
        let is_here = || folder_of(&plan.path).is_some_and(|at| is_own(context.repo(), &at));
        if plan.change() == "unchanged" || is_here() {
            return Ok(plan);
        }
        let message = format!(
            "{hook} is a link to {}, outside of this repository",
            plan.path.display()
        );
        Err(outside(&message))
    };
    GIT_HOOKS.into_iter().map(of_hook).collect()
}

/// The folder that a file is in, or will be.
fn folder_of(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .skip(1)
        .find_map(|at| std::fs::canonicalize(at).ok())
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

/// opencode's plugin is a file of its own.
fn of_plugin(context: &Context, task: Task, setup: &Setup, file: &str) -> Result<Plan> {
    let (root, path) = resolved(context, setup.place, file)?;
    let before = read(&root, &path)?;
    // Taken out is the link, and the file stays where a user keeps it.
    let file = absolute(context, setup.place, file)?;
    let link = (task == Task::Uninstall && file.is_symlink()).then_some(file);
    let existing = before.as_deref().unwrap_or(PLUGIN_MARK);
    if !existing.starts_with(PLUGIN_MARK) {
        return match task {
            Task::Install => {
                let message = format!(
                    "{} is not recover's: move it, or keep what hook print opencode prints under another name",
                    path.display()
                );
                Err(Error::new(ErrorKind::AlreadyExists, message)
                    .hint(Hint::recover(["hook", "print", "opencode"])))
            }
            Task::Uninstall => Ok(Plan::unchanged(root, path, before)),
        };
    }
    // Whoever installs the hook again does not lose the rest.
    let config = if setup.part == Part::Plugin || has_config(existing) {
        opencode_config(&setup.program.path)
    } else {
        String::new()
    };
    let after = (task == Task::Install).then(|| opencode_plugin(&setup.program.line, &config));
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
