//! Runs `retry-status`, `init`, `config`, `doctor`, `completions` and `schema`.

use anyhow::Context as _;

use crate::config;
use crate::durable::{Root, Sync};
use crate::engine::flow::doctor::{NEWER_LEDGER, NO_SPACE, READ_ONLY, doctor as examine};
use crate::engine::flow::{project_trust, retry};
use crate::engine::recovery::rebuild::RebuildReport;
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::hint::Hint;

use super::super::args::{
    CompletionsArgs, ConfigArgs, DoctorArgs, InitArgs, ManArgs, RetryStatusArgs, SchemaArgs, Wait,
};
use super::super::completion::startup;
use super::super::exit::ExitCode;
use super::super::generate;
use super::super::render;
use super::super::replies::status::RetryReply;
use super::super::replies::upkeep::{CompletionsReply, ConfigReply, InitReply, ManReply, SchemaReply};
use super::super::schema;
use super::super::ui::{Reply, escape};

/// `recover retry-status`.
pub fn retry_status(context: &Context, args: &RetryStatusArgs) -> Result<Reply> {
    let retry = match args.wait {
        _ if args.reset && !context.dry_run() => retry::reset(context)?,
        Some(Wait::Forever) => retry::wait(context, None)?,
        Some(Wait::AtMost(longest)) => retry::wait(context, Some(longest))?,
        None => retry::look(context)?,
    };
    let now = context.clock.now();
    let asked = args.check || args.wait.is_some();
    let exit = if asked { ExitCode::of_standing(retry.standing) } else { ExitCode::Done };
    Ok(Reply::new(RetryReply::new(&retry, now), render::retry_text(&retry, now)).exit(exit))
}

/// `recover init`.
pub fn init(context: &Context, args: &InitArgs) -> Result<Reply> {
    let path = context.worktree().join(".ultraplan").join("recover.toml");
    let root = Root::shared(context.worktree());
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
    if root.has(&path).map_err(failed)? && !args.force {
        let message = format!("{} already exists: --force overwrites it", path.display());
        return Err(Error::new(ErrorKind::AlreadyExists, message).hint(Hint::recover(["config"])));
    }
    if !context.dry_run() {
        context.check_writes("writing a configuration")?;
        if let Some(folder) = path.parent() {
            root.create_dir_all(folder).map_err(failed)?;
        }
        root.write(&path, config::template().as_bytes(), Sync::All).map_err(failed)?;
        // Who wrote it trusts it.
        project_trust::trust(&context.at(context.cwd())?)?;
    }
    let verb = if context.dry_run() { "Would write" } else { "Wrote" };
    let text = format!("{verb} {}\n", path.display());
    Ok(Reply::new(InitReply { changed: !context.dry_run(), path: path.to_string_lossy() }, text))
}

/// `recover config`.
pub fn config(context: &Context, args: &ConfigArgs) -> Reply {
    let mut text = String::new();
    let mut values = serde_json::Map::new();
    let mut origins = serde_json::Map::new();
    for entry in context.config().origins() {
        let origin = entry.origin.to_string();
        let comment = if args.origins { format!("  # {origin}") } else { String::new() };
        text.push_str(&format!("{} = {}{comment}\n", entry.key, entry.toml));
        origins.insert(entry.key.clone(), origin.into());
        values.insert(entry.key, entry.value);
    }
    let mut untrusted = serde_json::Map::new();
    for entry in context.config().withheld() {
        text.push_str(&format!("# not trusted (recover trust): {} = {}  # {}\n", entry.key, entry.toml, entry.origin));
        untrusted.insert(entry.key, entry.value);
    }
    let path = context.config().file.to_string_lossy();
    let user_path = context.config().user_file.as_ref().map(|path| path.to_string_lossy());
    let document = ConfigReply { path, user_path, config: values, untrusted, origins: args.origins.then_some(origins) };
    Reply::new(document, text)
}

/// `recover doctor`.
pub fn doctor(context: &Context, args: &DoctorArgs) -> Result<Reply> {
    context.require_something()?;
    let report = examine(context, args.repair && !context.dry_run(), args.rebuild)?;
    let mut text = String::new();
    if let Some(rebuilt) = &report.rebuilt {
        text.push_str(&rebuilt_text(rebuilt, context.dry_run()));
    }
    for problem in &report.problems {
        text.push_str(&format!("{}: {}\n", problem.code, escape(&problem.message)));
    }
    for repaired in &report.repaired {
        text.push_str(&format!("repaired: {}\n", escape(repaired)));
    }
    if report.problems.is_empty() && report.repaired.is_empty() && report.rebuilt.is_none() {
        text.push_str("No problems.\n");
    }
    let exit = match report.problems.as_slice() {
        [] => ExitCode::Done,
        problems if problems.iter().any(|problem| problem.code == NEWER_LEDGER) => ExitCode::Newer,
        problems if problems.iter().all(|problem| problem.code == NO_SPACE) => ExitCode::NoSpace,
        problems if problems.iter().all(|problem| [NO_SPACE, READ_ONLY].contains(&problem.code)) => ExitCode::Refused,
        _ => ExitCode::Corrupt,
    };
    Ok(Reply::new(report, text).exit(exit))
}

fn rebuilt_text(rebuilt: &RebuildReport, planned: bool) -> String {
    if !rebuilt.changed {
        return "The ledger is whole and knows every checkpoint: nothing to rebuild.\n".to_owned();
    }
    let verb = if planned { "Would hold" } else { "Now holds" };
    let mut text = format!(
        "{verb} {} runs, {} attempts ({} failed), {} checkpoints; {} events came from checkpoints, {} lines were unreadable.\n",
        rebuilt.runs,
        rebuilt.attempts,
        rebuilt.failures,
        rebuilt.checkpoints,
        rebuilt.recovered_events,
        rebuilt.unreadable_lines
    );
    if let Some(aside) = &rebuilt.kept_aside {
        text.push_str(&format!("The old ledger is kept in {aside}\n"));
    }
    text
}

/// `recover completions`.
pub fn completions(args: &CompletionsArgs) -> Reply {
    let script = startup::line(args.shell);
    Reply::new(CompletionsReply { script }, script)
}

/// `recover schema`.
pub fn schema(args: &SchemaArgs) -> Result<Reply> {
    let command = args.command.join(" ");
    let made = if command.is_empty() { Some(schema::all()) } else { schema::of(&command) };
    let Some(made) = made else {
        let first = args.command.first().map_or("", String::as_str);
        let alike: Vec<&str> = schema::commands().filter(|name| name.split(' ').next() == Some(first)).collect();
        let known = if alike.is_empty() { schema::commands().collect() } else { alike };
        let known = known.join(", ");
        let message = format!("'{command}' answers with no document of its own; one of these does: {known}");
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["schema"])));
    };
    let text = serde_json::to_string_pretty(&made).context("cannot write the schema")?;
    Ok(Reply::new(SchemaReply { schema: made }, text + "\n"))
}

/// `recover man`.
pub fn man(args: &ManArgs) -> Result<Reply> {
    generate::man_pages(&args.folder)?;
    Ok(Reply::new(ManReply { path: args.folder.to_string_lossy() }, ""))
}
