//! Runs `agents`.

use crate::engine::flow::agents::agents as known;
use crate::engine::{Context, Result};

use super::super::render;
use super::super::replies::upkeep::AgentsReply;
use super::super::ui::{Reply, Ui};

/// `recover agents`.
pub fn agents(context: &Context, ui: &Ui) -> Result<Reply> {
    let agents = known(context)?;
    let text = ui.text(|| render::agents_table(ui, &agents));
    Ok(Reply::new(AgentsReply { agents: &agents }, text))
}
