//! Agents that can be started, for people.

use comfy_table::Cell;

use crate::engine::flow::agents::Agent;
use crate::engine::flow::hook::status::HookStatus;
use crate::model::time::Timestamp;
use crate::policy::escape::escape;

use super::super::ui::Ui;
use super::tables::{Table, column, date_time, when, words};

/// All of them by name, with the programs that are installed.
pub(crate) fn agents_table(ui: &Ui, agents: &[Agent]) -> String {
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

/// The hooks of all agents, a row each.
pub(crate) fn hooks_table(ui: &Ui, hooks: &[HookStatus]) -> String {
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

/// The hooks that are installed, a line each and one for what is to be done.
pub(crate) fn hooks_text(ui: &Ui, hooks: &[HookStatus], now: Timestamp) -> String {
    let mut text = String::new();
    for hook in hooks {
        let path = hook
            .path
            .as_ref()
            .map(|path| escape(&path.to_string_lossy()))
            .unwrap_or_default();
        let program = escape(hook.program.as_deref().unwrap_or("-"));
        let called = hook.last_called.map_or_else(
            || "never called".to_owned(),
            |at| format!("last called {}", when(at, now)),
        );
        text.push_str(&format!(
            "Hook of {}: in {path}, calls {program}, {called}\n",
            hook.agent
        ));
        if let Some(note) = &hook.note {
            text.push_str(&format!("  {}\n", escape(&ui.advice(note))));
        }
    }
    text
}
