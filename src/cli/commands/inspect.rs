//! Runs `retry-status`, `init`, `config`, `doctor`, `agents`, `completions`, `schema` and `man`.

use anyhow::Context as _;
use clap_complete::Shell;
use comfy_table::Cell;

use super::super::args::{
    CompletionsArgs, ConfigArgs, DoctorArgs, InitArgs, ManArgs, RetryStatusArgs, SchemaArgs,
};
use super::super::render::{self, Table, column};
use super::super::replies::{CompletionsReply, ConfigReply, ExitCode, ManReply, SchemaReply};
use super::super::screens::agrees;
use super::super::ui::{Form, Reply, Ui, escape};
use super::super::{generate, schema};
use super::hook::hooks_table;
use crate::engine::run::retry;
use crate::engine::{Context, Error, ErrorKind, Result, doctor, hook, init as engine_init, vault};
use crate::model::{Hint, HookAgent};
use crate::policy::text::count;

/// `recover retry-status`.
pub(super) fn retry_status(context: &Context, args: &RetryStatusArgs) -> Result<Reply> {
    let about = retry::About {
        iteration: args.iteration,
        subtask: args.subtask.clone(),
        task: context.naming().task.clone(),
    };
    let retry = match args.wait {
        _ if args.reset && !context.dry_run() => retry::reset(context)?,
        Some(limit) => retry::wait(context, limit.longest(), &about)?,
        None => retry::look(context, &about)?,
    };
    let asked = args.check || args.wait.is_some();
    let exit = match retry.under_way {
        _ if !asked => ExitCode::DONE,
        Some(_) => ExitCode::LOCKED,
        None => ExitCode::of_standing(retry.standing),
    };
    let text = render::retry_text(&retry, context.clock.now());
    Ok(Reply::new(retry.document(context), text).exit(exit))
}

/// `recover init`.
pub(super) fn init(context: &Context, args: &InitArgs, ui: &Ui) -> Result<Reply> {
    let written = engine_init::init(context, args.force, args.full)?;
    let (path, project) = (&written.path, &written.project);
    let mut text = String::new();
    for check in &project.checks {
        text.push_str(&format!(
            "Found {}: {} runs {}\n",
            check.found,
            check.kind.as_str(),
            escape(&check.command)
        ));
    }
    for agent in &project.agents {
        text.push_str(&format!("Found settings of {agent}\n"));
    }
    if project.checks.is_empty() {
        text.push_str(
            "Found nothing here that says how the project is checked: name a check in the file\n",
        );
    }
    if context.dry_run() {
        text.push_str(&format!("Would write {path}:\n\n{}", written.text));
    } else {
        text.push_str(&format!("Wrote {path}\n"));
    }
    for agent in &project.agents {
        let offered = offer_hook(context, agent, &mut text, ui)?;
        text.push_str(&offered);
    }
    let form = if context.dry_run() {
        Form::Verbatim
    } else {
        Form::Text
    };
    Ok(Reply::new(written, text).form(form))
}

/// Asks on a terminal whether the agent's hook shall be installed, after what was `found` before; elsewhere says how.
fn offer_hook(context: &Context, agent: &str, found: &mut String, ui: &Ui) -> Result<String> {
    let Some(hook) = HookAgent::ALL
        .iter()
        .copied()
        .find(|hook| hook.as_str() == agent)
    else {
        return Ok(String::new());
    };
    let command = Hint::recover(["hook", "install", agent]);
    let command = ui.knowing(context).command(&context.placed(command));
    let advice = format!("Checkpoints before {agent}'s edits and risky commands: {command}\n");
    if !ui.interactive || context.dry_run() {
        return Ok(advice);
    }
    let shown = std::mem::take(found);
    let shown = format!(
        "{shown}The hook of {agent} takes a checkpoint before its edits and risky commands."
    );
    if !agrees(
        context,
        ui,
        &shown,
        "Install it in this project's settings?",
    )? {
        return Ok(advice);
    }
    Ok(super::hook::install_for(context, hook)?.text)
}

/// `recover config`.
pub(super) fn config(context: &Context, args: &ConfigArgs) -> Reply {
    let mut text = String::new();
    let mut values = serde_json::Map::new();
    let mut origins = serde_json::Map::new();
    for entry in context.config().origins() {
        let origin = entry.origin.to_string();
        let comment = if args.origins {
            format!("  # {origin}")
        } else {
            String::new()
        };
        text.push_str(&format!("{} = {}{comment}\n", entry.key, entry.toml));
        origins.insert(entry.key.clone(), origin.into());
        values.insert(entry.key, entry.value);
    }
    let mut untrusted = serde_json::Map::new();
    for entry in context.config().withheld() {
        text.push_str(&format!(
            "# not trusted (recover trust): {} = {}  # {}\n",
            entry.key, entry.toml, entry.origin
        ));
        untrusted.insert(entry.key, entry.value);
    }
    let path = context.config().file.to_string_lossy();
    let user_path = context
        .config()
        .user_file
        .as_ref()
        .map(|path| path.to_string_lossy());
    let document = ConfigReply {
        path,
        user_path,
        config: values,
        untrusted,
        origins: args.origins.then_some(origins),
    };
    Reply::new(document, text).form(Form::Verbatim)
}

/// `recover doctor`.
pub(super) fn doctor(context: &mut Context, args: &DoctorArgs, ui: &Ui) -> Result<Reply> {
    let mut mended = Vec::new();
    if args.repair {
        mended.extend(mend_repository(context, ui)?);
    }
    if context.lost_vault().is_none() {
        context.require_something()?;
    }
    if args.repair && !context.dry_run() && context.unusable().is_none() {
        let given = vault::give_back(context)?;
        if !given.is_empty() {
            context.reopen()?;
        }
        mended.extend(given);
    }
    let mut report = doctor::doctor(context, args.repair && !context.dry_run(), args.rebuild)?;
    report.repaired.splice(..0, mended);
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
    if !report.hooks.is_empty() {
        text.push('\n');
        text.push_str(&hooks_table(&ui.knowing(context), &report.hooks));
    }
    let errors: Vec<&str> = report
        .problems
        .iter()
        .filter(|problem| problem.severity == "error")
        .map(|problem| problem.code)
        .collect();
    let exit = match errors.as_slice() {
        [] => ExitCode::DONE,
        codes if codes.contains(&doctor::NEWER_LEDGER) => ExitCode::NEWER,
        codes if codes.iter().all(|code| *code == doctor::NO_SPACE) => ExitCode::NO_SPACE,
        codes
            if codes
                .iter()
                .all(|code| [doctor::NO_SPACE, doctor::READ_ONLY].contains(code)) =>
        {
            ExitCode::REFUSED
        }
        _ => ExitCode::CORRUPT,
    };
    Ok(Reply::new(report, text).exit(exit))
}

/// Mends what keeps git from opening the repository, where that is certain and still the user's to allow. Returns
/// what was done.
fn mend_repository(context: &mut Context, ui: &Ui) -> Result<Option<String>> {
    let unusable = context
        .unusable()
        .map(|unusable| (unusable.to_string(), unusable.repair()));
    let lost = || {
        Some((
            context.repository_problem().ok()??,
            vault::repair_of(context),
        ))
    };
    let is_lost = context.lost_vault().is_some();
    let found = if is_lost { lost() } else { unusable };
    let Some((problem, Some(what))) = found else {
        return Ok(None);
    };
    if context.dry_run() {
        context.note(format!("would {what}"));
        return Ok(None);
    }
    let asks = || agrees(context, ui, &format!("{problem}."), &format!("{what}?"));
    let may = context.says_yes() || ui.interactive && asks()?;
    if !may {
        let message = format!("{problem}: --yes allows recover to {what}");
        let hint = Hint::recover(["doctor", "--repair", "--yes"]);
        return Err(Error::new(ErrorKind::ConfirmationNeeded, message).hint(hint));
    }
    let done = if is_lost {
        vault::put_back(context)?
    } else {
        if let Some(unusable) = context.unusable() {
            unusable.mend()?;
        }
        Some(what)
    };
    context.reopen()?;
    Ok(done)
}

fn rebuilt_text(rebuilt: &doctor::RebuildReport, planned: bool) -> String {
    if !rebuilt.changed {
        return "The ledger is whole and knows every checkpoint: nothing to rebuild.\n".to_owned();
    }
    let verb = if planned { "Would hold" } else { "Now holds" };
    let mut text = format!(
        "{verb} {}, {} ({} failed), {}; {} from checkpoints, {} unreadable.\n",
        count(rebuilt.runs, "run"),
        count(rebuilt.attempts, "attempt"),
        rebuilt.failures,
        count(rebuilt.checkpoints, "checkpoint"),
        count(rebuilt.recovered_events, "event"),
        count(rebuilt.unreadable_lines, "line")
    );
    if let Some(aside) = &rebuilt.kept_aside {
        text.push_str(&format!("The old ledger is kept in {aside}\n"));
    }
    text
}

/// `recover completions`.
pub(super) fn completions(args: &CompletionsArgs) -> Reply {
    let script = startup_line(args.shell);
    Reply::new(CompletionsReply { script }, script).content()
}

/// What a shell's startup file, or its folder of completions, holds: it asks the program that is installed at that
/// moment, so that no script of another version is ever left behind.
fn startup_line(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => "eval \"$(COMPLETE=bash recover)\"\n",
        Shell::Zsh => {
            "#compdef recover\neval \"$(COMPLETE=zsh recover)\"\n[[ $funcstack[1] != _recover ]] || _recover \"$@\"\n"
        }
        Shell::Fish => "command -q recover; and COMPLETE=fish recover | source\n",
        Shell::Elvish => "eval (E:COMPLETE=elvish recover | slurp)\n",
        _ => {
            "$env:COMPLETE = \"powershell\"\nrecover | Out-String | Invoke-Expression\nRemove-Item Env:\\COMPLETE\n"
        }
    }
}

/// `recover schema`.
pub(super) fn schema(args: &SchemaArgs) -> Result<Reply> {
    let command = args.command.join(" ");
    let made = if command.is_empty() {
        Some(schema::all())
    } else {
        schema::of(&command)
    };
    let Some(made) = made else {
        let first = args.command.first().map_or("", String::as_str);
        let alike: Vec<&str> = schema::commands()
            .filter(|name| name.split(' ').next() == Some(first))
            .collect();
        let known = if alike.is_empty() {
            schema::commands().collect()
        } else {
            alike
        };
        let known = known.join(", ");
        let message =
            format!("'{command}' answers with no document of its own; one of these does: {known}");
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["schema"])));
    };
    let text = serde_json::to_string_pretty(&made).context("cannot write the schema")?;
    Ok(Reply::new(SchemaReply { schema: made }, text + "\n").content())
}

/// `recover man`.
pub(super) fn man(args: &ManArgs) -> Result<Reply> {
    generate::man_pages(&args.folder)?;
    Ok(Reply::new(
        ManReply {
            path: args.folder.to_string_lossy(),
        },
        "",
    ))
}

/// `recover agents`.
pub(super) fn agents(context: &Context, ui: &Ui) -> Result<Reply> {
    let agents = hook::status::agents(context)?;
    if context
        .config()
        .withheld()
        .iter()
        .any(|entry| entry.key.starts_with("agent."))
    {
        let (file, way) = (
            context.config().file.display(),
            context.line(Hint::recover(["trust"])),
        );
        context.warn(format!(
            "the agents of {file} are not trusted, and not listed: `{way}`"
        ));
    }
    let text = ui.text(|| agents_table(ui, &agents.agents));
    Ok(Reply::new(agents, text))
}

/// All of them by name, with the programs that are installed.
pub(crate) fn agents_table(ui: &Ui, agents: &[hook::status::Agent]) -> String {
    let mut table = Table::new(
        ui,
        &[
            column("AGENT", 0),
            column("PROGRAM", 2),
            column("INSTALLED", 1),
            column("VERSION", 3),
            column("OUTPUT", 5),
            column("SESSIONS", 4),
        ],
    );
    for agent in agents {
        let path = agent
            .path
            .as_ref()
            .map(|path| escape(&path.to_string_lossy()));
        table.add_row([
            Cell::new(&agent.name),
            Cell::new(escape(&agent.program)),
            Cell::new(path.unwrap_or_else(|| "no".to_owned())),
            Cell::new(agent.version.as_deref().unwrap_or("-")),
            Cell::new(&agent.output),
            Cell::new(if agent.sessions { "yes" } else { "no" }),
        ]);
    }
    table.text()
}
