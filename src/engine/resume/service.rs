//! The user's own service that resumes runs which ended with the machine: `service install`, `status` and `uninstall`.
//!
//! It is a timer of systemd's user manager, an agent of launchd, or lines of the crontab, by what is there. Files and lines
//! have a mark with a checksum: what a user wrote or edited is left as it is, all other bytes stay.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::durable::Root;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::hook::plan::{OwnFile, Place, Plan, Task, require_writable};
use crate::engine::hook::plugin_status::{PluginFileStatus, state};
use crate::model::Hint;
use crate::model::hint::join;
use crate::policy::service::{CronLines, FOLDERS, NAME, Start, cron_lines_in, with_cron_lines};

/// What starts the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum Manager {
    Systemd,
    Launchd,
    Cron,
}

/// What an installation or its removal changed, or would change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "service_changes")]
pub(crate) struct Changes {
    pub changed: bool,
    /// What starts it; `null` where there is nothing to remove.
    #[schemars(extend("enum" = ["systemd", "launchd", "cron", null]))]
    pub manager: Option<&'static str>,
    pub files: Vec<FileChange>,
    /// What is called beside that.
    pub commands: Vec<String>,
    /// What cannot be seen in the files.
    pub notes: Vec<String>,
}

/// What becomes of one file.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "service_file")]
pub(crate) struct FileChange {
    /// Its path; `crontab` is the user's.
    pub path: PathBuf,
    #[schemars(extend("enum" = ["created", "modified", "deleted", "unchanged"]))]
    pub change: &'static str,
}

/// What there is of the service.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "service_status")]
pub(crate) struct Status {
    /// What starts it, or would; `null` where nothing could.
    #[schemars(extend("enum" = ["systemd", "launchd", "cron", null]))]
    pub manager: Option<&'static str>,
    /// Whether any of it is there.
    pub installed: bool,
    /// Whether all of it is there, as this version makes it or as a user edited it.
    pub complete: bool,
    /// Whether its manager starts it.
    pub active: bool,
    /// Whether the user's manager begins with the machine rather than at login; `null` where that is not known.
    pub lingering: Option<bool>,
    pub files: Vec<PluginFileStatus>,
}

impl Manager {
    const ALL: [Self; 3] = [Self::Systemd, Self::Launchd, Self::Cron];

    /// Whether it is there and answers this user.
    fn answers(self) -> bool {
        match self {
            Self::Systemd => succeeds(&["systemctl", "--user", "show", "--property=Version"]),
            Self::Launchd => succeeds(&["launchctl", "version"]),
            Self::Cron => crontab().is_ok(),
        }
    }

    /// What becomes of each of its files.
    fn plans(self, context: &Context, task: Task) -> Result<Vec<Plan>> {
        let start = start(context)?;
        let own = |folder: &str, folders, (name, text): (String, String)| {
            let own = OwnFile {
                place: Place::User,
                file: &format!("{folder}/{name}"),
                text,
                folders,
                list: Hint::recover(["service", "status"]),
            };
            own.plan(context, task)
        };
        match self {
            Self::Systemd => {
                let config = context
                    .env(FOLDERS[0])
                    .filter(|folder| folder.starts_with('/'));
                let (config, folders) = config.map_or((".config".to_owned(), 3), |set| (set, 2));
                let folder = format!("{config}/systemd/user");
                let units = start.units().into_iter();
                units.map(|unit| own(&folder, folders, unit)).collect()
            }
            Self::Launchd => {
                let agent = (format!("{NAME}.plist"), start.agent());
                Ok(vec![own("Library/LaunchAgents", 2, agent)?])
            }
            Self::Cron => Ok(vec![of_crontab(&start, task)?]),
        }
    }

    /// Whether it starts the service as things are.
    fn is_active(self) -> bool {
        let timer = format!("{NAME}.timer");
        match self {
            Self::Systemd => ["is-enabled", "is-active"]
                .iter()
                .all(|ask| succeeds(&["systemctl", "--user", "--quiet", ask, &timer])),
            Self::Launchd => succeeds(&["launchctl", "print", &agent_target()]),
            Self::Cron => crontab()
                .ok()
                .flatten()
                .is_some_and(|crontab| cron_lines_in(&crontab) != CronLines::None),
        }
    }

    /// What is called before the files change, and after it.
    fn commands(self, task: Task, plans: &[Plan]) -> [Vec<Vec<String>>; 2] {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let is_changed = plans.iter().any(|plan| plan.change() != "unchanged");
        let is_active = self.is_active();
        let timer = format!("{NAME}.timer");
        let reload = || words(&["systemctl", "--user", "daemon-reload"]);
        match (self, task) {
            (Self::Cron, _) => [Vec::new(), Vec::new()],
            (_, Task::Install) if is_active && !is_changed => [Vec::new(), Vec::new()],
            (_, Task::Uninstall) if !is_active && !is_changed => [Vec::new(), Vec::new()],
            (Self::Systemd, Task::Install) => {
                let enable = words(&["systemctl", "--user", "enable", "--now", &timer]);
                [Vec::new(), vec![reload(), enable]]
            }
            (Self::Systemd, Task::Uninstall) => {
                let disable = words(&["systemctl", "--user", "disable", "--now", &timer]);
                [vec![disable], vec![reload()]]
            }
            (Self::Launchd, _) => {
                let out = words(&["launchctl", "bootout", &agent_target()]);
                let path = plans.first().map(|plan| plan.path.to_string_lossy());
                let load = words(&[
                    "launchctl",
                    "bootstrap",
                    &domain(),
                    &path.unwrap_or_default(),
                ]);
                let out = is_active.then_some(out).into_iter().collect();
                let load = (task == Task::Install).then_some(load);
                [out, load.into_iter().collect()]
            }
        }
    }

    fn write(self, plan: &Plan) -> Result<()> {
        if self != Self::Cron {
            return plan.write();
        }
        if plan.change() == "unchanged" {
            return Ok(());
        }
        if crontab()? != plan.before {
            let message = "the crontab has just been changed by another process: do this again";
            return Err(Error::new(ErrorKind::Conflicts, message));
        }
        match &plan.after {
            Some(text) => called(&["crontab", "-"], text).map(drop),
            None => called(&["crontab", "-r"], "").map(drop),
        }
    }

    /// What cannot be seen in the files.
    fn notes(self) -> Vec<String> {
        let begins = match self {
            Self::Systemd if lingering() != Some(true) => Some(
                "it starts when you log in and stops when you log out, together with the run that it resumed; \
                `loginctl enable-linger` makes it start at boot and go on",
            ),
            Self::Launchd => Some("it starts when you log in"),
            Self::Systemd | Self::Cron => None,
        };
        let variables = match self {
            Self::Systemd => ": those belong in ~/.config/environment.d/NAME.conf",
            Self::Launchd | Self::Cron => "",
        };
        let variables = format!(
            "what it resumes has the PATH that the run had, and no other variable of your shell, such as an agent's key{variables}"
        );
        begins
            .map(str::to_owned)
            .into_iter()
            .chain([variables])
            .collect()
    }
}

/// Installs the service; a dry run only says what would be done.
///
/// # Errors
/// Nothing here could start it; a file of the user's own is in the way (13).
pub(crate) fn install(context: &Context) -> Result<Changes> {
    let Some(manager) = Manager::ALL.into_iter().find(|one| one.answers()) else {
        let message = "no service manager answers (systemctl --user, launchd, crontab): have this command run when \
        the machine starts";
        let call = Hint::recover(["resume", "--interrupted", "--all-repos"]);
        return Err(Error::new(ErrorKind::Failed, message).hint(call));
    };
    let plans = manager.plans(context, Task::Install)?;
    let mut changes = carry_out(context, manager, Task::Install, &plans)?;
    changes.notes.extend(manager.notes());
    Ok(changes)
}

/// Removes it, whatever starts it, and leaves a run that it resumed at work where its manager can.
///
/// # Errors
/// The manager does not answer: nothing was removed.
pub(crate) fn uninstall(context: &Context) -> Result<Changes> {
    for manager in Manager::ALL {
        let plans = plans_of_installed(context, manager)?;
        if !plans.is_empty() {
            return carry_out(context, manager, Task::Uninstall, &plans);
        }
    }
    Ok(Changes {
        changed: false,
        manager: None,
        files: Vec::new(),
        commands: Vec::new(),
        notes: Vec::new(),
    })
}

/// What there is of it.
pub(crate) fn status(context: &Context) -> Result<Status> {
    let mut found = None;
    for manager in Manager::ALL {
        if !plans_of_installed(context, manager)?.is_empty() {
            found = Some(manager);
            break;
        }
    }
    let manager = found.or_else(|| Manager::ALL.into_iter().find(|one| one.answers()));
    let files: Vec<PluginFileStatus> = match found {
        None => Vec::new(),
        Some(manager) => {
            let install = manager.plans(context, Task::Install)?.into_iter();
            let uninstall = manager.plans(context, Task::Uninstall)?;
            install.zip(uninstall).map(state).collect()
        }
    };
    Ok(Status {
        manager: manager.map(Into::into),
        installed: found.is_some(),
        complete: found.is_some()
            && files
                .iter()
                .all(|file| ["current", "edited"].contains(&file.state)),
        active: found.is_some_and(Manager::is_active),
        lingering: manager
            .filter(|one| *one == Manager::Systemd)
            .and_then(|_| lingering()),
        files,
    })
}

/// What becomes of its files where they are taken out; none where nothing of it is there.
fn plans_of_installed(context: &Context, manager: Manager) -> Result<Vec<Plan>> {
    if manager == Manager::Cron && !manager.answers() {
        return Ok(Vec::new());
    }
    let plans = manager.plans(context, Task::Uninstall)?;
    let is_there = |plan: &Plan| plan.change() != "unchanged" || plan.remark.is_some();
    Ok(if plans.iter().any(is_there) {
        plans
    } else {
        Vec::new()
    })
}

fn carry_out(context: &Context, manager: Manager, task: Task, plans: &[Plan]) -> Result<Changes> {
    let is_changed = require_writable(context, plans)?;
    let [before, after] = manager.commands(task, plans);
    let changes = Changes {
        changed: is_changed || !before.is_empty() || !after.is_empty(),
        manager: Some(manager.into()),
        commands: before.iter().chain(&after).map(join).collect(),
        notes: plans
            .iter()
            .filter_map(|plan| plan.remark.clone())
            .collect(),
        files: plans
            .iter()
            .map(|plan| FileChange {
                path: plan.path.clone(),
                change: plan.change(),
            })
            .collect(),
    };
    if !context.dry_run() {
        before
            .iter()
            .try_for_each(|words| called(words, "").map(drop))?;
        plans.iter().try_for_each(|plan| manager.write(plan))?;
        after
            .iter()
            .try_for_each(|words| called(words, "").map(drop))?;
    }
    Ok(changes)
}

/// What the service starts: this program, by the path at which `PATH` has it, for a new version may come to lie there.
fn start(context: &Context) -> Result<Start> {
    let own = std::env::current_exe()
        .map_err(|error| Error::io("cannot find the program of recover".to_owned(), error))?;
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let path = context.env("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path)
        .map(|folder| folder.join("recover"))
        .find(|path| {
            path.is_absolute() && real(path).is_some_and(|found| Some(found) == real(&own))
        });
    let program = on_path.unwrap_or(own);
    let folders = FOLDERS.iter().filter_map(|name| {
        Some((
            *name,
            context.env(name).filter(|folder| !folder.is_empty())?,
        ))
    });
    let folders: Vec<_> = folders.collect();
    let words = folders.iter().map(|(_, folder)| folder.as_str());
    let program = program.to_str().unwrap_or("\u{fffd}").to_owned();
    if words
        .chain([program.as_str()])
        .any(|word| word.contains(|char: char| char.is_control() || char == '\u{fffd}'))
    {
        let message = format!(
            "a service cannot name {program:?} or a folder of {folders:?}: it contains a control character, or is \
            not UTF-8"
        );
        return Err(Error::new(ErrorKind::Usage, message));
    }
    Ok(Start { program, folders })
}

/// The user's crontab with our lines or without them.
fn of_crontab(start: &Start, task: Task) -> Result<Plan> {
    let before = crontab()?;
    let text = before.as_deref().unwrap_or_default();
    let lines = match task {
        Task::Install => start.cron_lines(),
        Task::Uninstall => String::new(),
    };
    let is_edited = cron_lines_in(text) == CronLines::Edited;
    let after = if is_edited {
        text.to_owned()
    } else {
        with_cron_lines(text, &lines)
    };
    let after = Some(after).filter(|after| !after.is_empty() || after == text && before.is_some());
    let remark = is_edited.then(|| {
        "recover's lines in the crontab were edited: they are left as they are".to_owned()
    });
    let root = Root::shared("/");
    Ok(Plan {
        remark,
        ..Plan::new(root, PathBuf::from("crontab"), before, after)
    })
}

/// The user's crontab, `None` where there is none.
fn crontab() -> Result<Option<String>> {
    let answer = output(&["crontab", "-l"], "")
        .map_err(|error| Error::io("cannot call crontab".to_owned(), error))?;
    let said = String::from_utf8_lossy(&answer.stderr);
    if answer.status.success() {
        let text = String::from_utf8(answer.stdout);
        return text.map(Some).map_err(|_| {
            Error::new(
                ErrorKind::Config,
                "the crontab is left as it is: it is no text",
            )
        });
    }
    // In the words of cron, cronie, bcron and BusyBox.
    if ["no crontab", "No such file"]
        .iter()
        .any(|words| said.contains(words))
    {
        return Ok(None);
    }
    Err(Error::new(
        ErrorKind::Failed,
        format!("crontab -l: {}", said.trim()),
    ))
}

/// Whether the user's manager begins with the machine; `None` where that is not known.
fn lingering() -> Option<bool> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let answer = output(&["loginctl", "show-user", &user, "--property=Linger"], "").ok()?;
    Some(answer.stdout.trim_ascii() == b"Linger=yes")
}

fn domain() -> String {
    format!("gui/{}", rustix::process::geteuid().as_raw())
}

fn agent_target() -> String {
    format!("{}/{NAME}", domain())
}

fn succeeds(words: &[&str]) -> bool {
    output(words, "").is_ok_and(|answer| answer.status.success())
}

/// Calls a program that must succeed.
fn called(words: &[impl AsRef<str>], input: &str) -> Result<Output> {
    let line = join(words.iter().map(AsRef::as_ref));
    let answer =
        output(words, input).map_err(|error| Error::io(format!("cannot call {line}"), error))?;
    if answer.status.success() {
        return Ok(answer);
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    let message = format!("{line}: {}", said.trim());
    Err(Error::new(ErrorKind::Failed, message).hint(Hint::recover(["service", "status"])))
}

fn output(words: &[impl AsRef<str>], input: &str) -> io::Result<Output> {
    let mut words = words.iter().map(AsRef::as_ref);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env("LC_ALL", "C");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    // One that took nothing says why.
    if output.status.success() {
        written?;
    }
    Ok(output)
}
