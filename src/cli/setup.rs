//! What a command needs to know before it begins, from flags, the environment and the current folder.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::engine::base::{context, runs};
use crate::engine::{Context, Error, ErrorKind, Result, rollback};
use crate::model::id::{RunId, TaskId};
use crate::process::Interrupts;

use super::args::{Command, GlobalArgs, expand_aliases};
use super::commands::{self, Property};
use super::ui::Ui;

fn misplaced(cwd: &std::path::Path, why: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        format!(
            "-C {}: {why}; it takes a folder of the work tree",
            cwd.display()
        ),
    )
}

/// The context of a command that works in `-C`, or in the current folder.
pub(super) fn context(global: &GlobalArgs, command: Option<&Command>) -> Result<Context> {
    let failed = |error| Error::io("cannot find the current folder", error);
    // An absolute -C works without the current folder, which may be gone.
    let absolute = global.directory.clone().filter(|named| named.is_absolute());
    let start = std::env::current_dir()
        .or_else(|error| absolute.ok_or(error))
        .map_err(failed)?;
    let cwd = match &global.directory {
        Some(directory) => start.join(directory),
        None => start.clone(),
    };
    let named = cwd.clone();
    let found = std::fs::canonicalize(&cwd);
    let is_gone = found
        .as_ref()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let failed = |error: std::io::Error| misplaced(&named, &error.to_string());
    let cwd = match found {
        // For a lane that is resumed or rolled back the way to its work tree is printed.
        Err(_) if is_gone && matches!(command, Some(Command::Resume(_) | Command::Rollback(_))) => {
            cwd
        }
        found => found.map_err(failed)?,
    };
    let is_gone = is_gone && !cwd.exists();
    if !is_gone && !cwd.is_dir() {
        return Err(misplaced(&cwd, "not a folder"));
    }
    let setup = setup(global, command, cwd);
    let supervises = command.is_some_and(|command| commands::has(command, Property::Supervises));
    let interrupts = if supervises {
        Interrupts::install().context("cannot listen for signals")?
    } else {
        Interrupts::disconnected()
    };
    if !is_gone {
        return Context::new(setup, interrupts);
    }
    Err(refuse_gone_worktree(&setup, &start)?.unwrap_or_else(|| {
        let message = format!(
            "-C {}: no such folder, and no run had its work tree there",
            named.display()
        );
        Error::new(ErrorKind::Usage, message)
    }))
}

/// How a work tree comes back whose folder is gone, by what the state directory, else the current project knows of it.
fn refuse_gone_worktree(setup: &context::Setup, start: &Path) -> Result<Option<Error>> {
    let named = setup
        .state_dir
        .as_ref()
        .map(|dir| start.join(dir))
        .filter(|dir| dir.is_dir());
    let folders = named.into_iter().chain([start.to_owned()]);
    for cwd in folders {
        let project = Context::new(
            context::Setup {
                cwd,
                ..setup.clone()
            },
            Interrupts::disconnected(),
        )?;
        if let Some(refused) =
            rollback::refuse_gone(&project, &setup.cwd).map_err(|error| project.locate(error))?
        {
            return Ok(Some(refused));
        }
    }
    Ok(None)
}

/// The words after the program's name, where they are text.
fn asked() -> Option<Vec<String>> {
    let words = expand_aliases(std::env::args_os()).into_iter().skip(1);
    words.map(|word| word.into_string().ok()).collect()
}

/// What the flags and the environment say.
pub(super) fn setup(
    global: &GlobalArgs,
    command: Option<&Command>,
    cwd: PathBuf,
) -> context::Setup {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let of_several = matches!(command, Some(Command::Close(_) | Command::Forget(_)));
    let named = global.named_runs.first().filter(|_| !of_several);
    let run = named.or(global.run.as_ref()).cloned();
    let of_environment = env("RECOVER_RUN_ID").filter(|_| global.series.is_none());
    let has = |property| command.is_some_and(|command| commands::has(command, property));
    context::Setup {
        cwd,
        home: std::env::var_os("HOME")
            .filter(|home| !home.is_empty())
            .map(PathBuf::from),
        state_dir: global.state_dir.clone(),
        naming: runs::Naming {
            by_environment: run.is_none() && of_environment.is_some(),
            run_id: run.or(of_environment).map(RunId::from),
            series: global.series.clone(),
            phase: global.phase.clone(),
            lane: global.lane.clone(),
            task: global.task.clone().map(TaskId::from),
            session: env("RECOVER_SESSION"),
        },
        lock_timeout: global.lock_timeout,
        allow_home: global.allow_home,
        dry_run: global.dry_run,
        yes: global.yes,
        remote: global.remote.clone(),
        begins_run: matches!(command, Some(Command::Run(_))),
        writes: has(Property::Writes),
        reads: command.is_none() || has(Property::Reads),
        trust: global.trust,
        trusted: None,
        needs_user_config: has(Property::UserConfig),
        settings_only: has(Property::Anywhere),
        shows: None,
        asked: asked(),
        broken_config: match command {
            Some(Command::Init(_)) => context::BrokenConfig::IsIgnored,
            Some(_) if has(Property::Config) => context::BrokenConfig::Refuses,
            _ => context::BrokenConfig::IsLeftOut,
        },
        known_config: None,
        env,
        note: if global.quiet {
            |_| {}
        } else {
            |text| Ui::say(&format!("note: {text}"))
        },
    }
}
