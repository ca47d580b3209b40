//! Runs `hook` and `plugin`.

use comfy_table::Cell;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::super::args::{
    GlobalArgs, HookArgs, HookCommand, HookRunArgs, PlaceArgs, PluginArgs, PluginCommand,
};
use super::super::render::{Table, column, date_time, words};
use super::super::replies::ExitCode;
use super::super::ui::{Form, Reply, Ui, escape};
use crate::engine::base::context;
use crate::engine::{Context, Error, ErrorKind, Result, hook};
use crate::model::HookAgent;
use crate::policy::secrets::redact;

/// Nothing was done: whoever called the hook is not stopped by that.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TroubleReply<'a> {
    changed: bool,
    trouble: Trouble<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "hook_trouble")]
pub(crate) struct Trouble<'a> {
    code: &'a str,
    message: &'a str,
}

/// Dispatches all but `hook run`, which must not fail.
pub(super) fn execute(context: &Context, args: &HookArgs, ui: &Ui) -> Result<Reply> {
    match &args.command {
        HookCommand::Print(args) => {
            let printed = hook::install::print(context, args.agent, args.program.as_deref());
            Ok(Reply::new(&printed, &printed.content).form(Form::Verbatim))
        }
        HookCommand::Install(args) => {
            let (place, program) = (args.place.into(), args.program.as_deref());
            let changes = hook::install::install(
                context,
                hook::plan::Part::Hook,
                args.agent,
                place,
                program,
            )?;
            Ok(changed(context, &changes))
        }
        HookCommand::Uninstall(args) => {
            let changes = hook::install::uninstall(
                context,
                hook::plan::Part::Hook,
                args.agent,
                args.place.into(),
            )?;
            Ok(changed(context, &changes))
        }
        HookCommand::Status => {
            let hooks = hook::status::status(context)?;
            let text = ui.text(|| hooks_table(&ui.knowing(context), &hooks.hooks));
            Ok(Reply::new(hooks, text))
        }
        HookCommand::Run(_) => Err(Error::new(
            ErrorKind::Usage,
            "hook run is started by agents and git, and needs no such call",
        )),
    }
}

/// Runs `plugin`.
pub(super) fn execute_plugin(context: &Context, args: &PluginArgs, ui: &Ui) -> Result<Reply> {
    let place = |user: bool| {
        if user {
            hook::plan::Place::User
        } else {
            hook::plan::Place::Project
        }
    };
    match &args.command {
        PluginCommand::Install(args) => {
            let (place, program) = (place(args.user), args.program.as_deref());
            let changes = hook::install::install(
                context,
                hook::plan::Part::Plugin,
                args.agent,
                place,
                program,
            )?;
            Ok(changed(context, &changes))
        }
        PluginCommand::Uninstall(args) => {
            let place = place(args.user);
            let changes =
                hook::install::uninstall(context, hook::plan::Part::Plugin, args.agent, place)?;
            Ok(changed(context, &changes))
        }
        PluginCommand::Status(args) => {
            let status = hook::plugin_status::status(context, args.agent);
            let text = ui.text(|| plugins_text(&status.plugins));
            Ok(Reply::new(status, text))
        }
    }
}

/// A line a place that has something of a plugin, and one for each file of it that is not current.
fn plugins_text(plugins: &[hook::plugin_status::PluginStatus]) -> String {
    let mut text = String::new();
    for plugin in plugins {
        let state = match &plugin.note {
            Some(note) => escape(note),
            None if plugin.complete => "installed".to_owned(),
            None if plugin.installed => "installed in part".to_owned(),
            None => "not installed".to_owned(),
        };
        let (agent, place) = (plugin.agent, plugin.place);
        text.push_str(&format!("{agent} ({place}): {state}\n"));
        let other = plugin.files.iter().filter(|file| file.state != "current");
        for file in other.filter(|_| plugin.installed) {
            let path = escape(&file.path.to_string_lossy());
            text.push_str(&format!("  {path}: {}\n", file.state));
        }
    }
    text
}

/// Installs an agent's hook in the project's settings.
pub(super) fn install_for(context: &Context, agent: HookAgent) -> Result<Reply> {
    let changes = hook::install::install(
        context,
        hook::plan::Part::Hook,
        agent,
        PlaceArgs::default().into(),
        None,
    )?;
    Ok(changed(context, &changes))
}

/// The answer; where it is about several agents, unchanged files are not printed.
fn changed(context: &Context, changes: &hook::install::Changes) -> Reply {
    let first = changes.files.first().map(|file| file.agent);
    let several = changes.files.iter().any(|file| Some(file.agent) != first);
    let mut text = String::new();
    let shown = changes.files.iter();
    for file in shown.filter(|file| !several || file.is_changed()) {
        let would = if context.dry_run() && file.is_changed() {
            "would be "
        } else {
            ""
        };
        let path = escape(&file.path.to_string_lossy());
        text.push_str(&format!("{path}: {would}{}\n", file.change));
    }
    if text.is_empty() {
        text.push_str("Not installed here.\n");
    }
    for note in &changes.notes {
        text.push_str(&format!("note: {}\n", escape(note)));
    }
    if context.dry_run() {
        Reply::new(changes.planned(), text)
    } else {
        Reply::new(changes, text)
    }
}

/// `recover hook run`: whatever becomes of it, whoever called is neither held up nor stopped.
pub(crate) fn run(
    global: &GlobalArgs,
    args: &HookRunArgs,
    setup: impl FnOnce(std::path::PathBuf) -> context::Setup,
    ui: &Ui,
) -> ExitCode {
    let call = hook::call::Call {
        agent: args.agent,
        event: args.event.clone(),
        directory: global.directory.clone(),
        names_run: global.run.is_some(),
        deadline: args.deadline,
    };
    let answer = || call.carry_out(setup, trouble);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(answer)) {
        Ok(Ok(called)) if ui.json => {
            ui.answer("hook run", Reply::new(called, ""));
        }
        Ok(Ok(called)) => {
            tracing::info!(
                reason = called.handled.reason,
                changed = called.changed,
                "the hook is done"
            );
            if let Some(added) = &called.handled.additional_context {
                let document = json!({"hookSpecificOutput": added});
                ui.answer(
                    "hook run",
                    Reply::text(format!("{document}\n")).form(Form::Verbatim),
                );
            }
        }
        Ok(Err(hook::call::Trouble { error, is_said })) => {
            let hint = error.hint.as_ref().map(|hint| format!(" ({hint})"));
            if !is_said {
                trouble(&format!("{error}{}", hint.unwrap_or_default()));
            }
            if ui.json {
                let trouble = Trouble {
                    code: error.kind.code().0,
                    message: &error.message,
                };
                let body = TroubleReply {
                    changed: false,
                    trouble,
                };
                ui.answer("hook run", Reply::new(body, ""));
            }
        }
        Err(_) => trouble("a bug in recover; what it says above helps to find it"),
    }
    ExitCode::DONE
}

/// One line on stderr. With stderr closed there is nobody left to report to.
fn trouble(text: &str) {
    use std::io::Write;
    let _ = writeln!(
        std::io::stderr(),
        "recover hook: nothing was done: {}",
        escape(&redact(text))
    );
}

/// The hooks of all agents, a row each.
pub(crate) fn hooks_table(ui: &Ui, hooks: &[hook::status::HookStatus]) -> String {
    let mut table = Table::new(
        ui,
        &[
            column("AGENT", 0),
            column("INSTALLED", 1),
            column("VERSION", 3),
            column("LAST CALLED", 2),
            words("NOTE", 4),
        ],
    );
    for hook in hooks {
        let path = hook
            .path
            .as_ref()
            .map(|path| escape(&path.to_string_lossy()));
        let called = hook
            .last_called
            .map_or_else(|| "never".to_owned(), date_time);
        table.add_row([
            Cell::new(hook.agent),
            Cell::new(path.unwrap_or_else(|| "no".to_owned())),
            Cell::new(hook.version.as_deref().unwrap_or("-")),
            Cell::new(called),
            Cell::new(
                hook.note
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |note| escape(&ui.advice(note))),
            ),
        ]);
    }
    table.text()
}
