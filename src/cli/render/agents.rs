//! Agents that can be started, for people.

use comfy_table::Cell;

use crate::engine::flow::agents::Agent;
use crate::engine::flow::hook::status::HookStatus;
use crate::policy::escape::escape;

use super::super::ui::Ui;
use super::tables::{finish, table};

/// All of them by name, with the programs that are installed.
pub fn agents_table(ui: &Ui, agents: &[Agent]) -> String {
    let mut table = table(ui, &["AGENT", "PROGRAM", "INSTALLED", "VERSION", "OUTPUT", "SESSIONS"]);
    for agent in agents {
        let path = agent.path.as_ref().map(|path| escape(&path.to_string_lossy()));
        table.add_row([
            Cell::new(&agent.name),
            Cell::new(escape(&agent.program)),
            Cell::new(path.unwrap_or_else(|| "no".to_owned())),
            Cell::new(agent.version.as_deref().unwrap_or("-")),
            Cell::new(&agent.output),
            Cell::new(if agent.sessions { "yes" } else { "no" }),
        ]);
    }
    finish(&table)
}

/// The hooks of all agents, a row each.
pub fn hooks_table(ui: &Ui, hooks: &[HookStatus]) -> String {
    let mut table = table(ui, &["AGENT", "INSTALLED", "VERSION", "LAST CALLED", "NOTE"]);
    for hook in hooks {
        let path = hook.path.as_ref().map(|path| escape(&path.to_string_lossy()));
        let called = hook.last_called.map_or_else(|| "never".to_owned(), |at| at.to_string());
        table.add_row([
            Cell::new(hook.agent),
            Cell::new(path.unwrap_or_else(|| "no".to_owned())),
            Cell::new(hook.version.as_deref().unwrap_or("-")),
            Cell::new(called),
            Cell::new(escape(hook.note.as_deref().unwrap_or("-"))),
        ]);
    }
    finish(&table)
}
