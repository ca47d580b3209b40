//! Runs `agents`.

use crate::engine::hook::status::agents as known;
use crate::engine::{Context, Result};
use crate::model::hint::Hint;

use super::super::render;
use super::super::ui::{Reply, Ui};

/// `recover agents`.
pub(super) fn agents(context: &Context, ui: &Ui) -> Result<Reply> {
    let agents = known(context)?;
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
    let text = ui.text(|| render::agents_table(ui, &agents.agents));
    Ok(Reply::new(agents, text))
}
