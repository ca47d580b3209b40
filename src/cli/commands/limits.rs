//! Runs `limits`.

use comfy_table::Cell;

use super::super::args::LimitsArgs;
use super::super::render::{Table, column, when, words};
use super::super::ui::{Reply, Ui, verb};
use crate::engine::{Context, Result, runs};
use crate::model::Timestamp;
use crate::model::failure::Weather;
use crate::policy::text::{count, escape};

/// `recover limits`.
pub(super) fn limits(context: &Context, args: &LimitsArgs, ui: &Ui) -> Result<Reply> {
    let Some(wanted) = &args.clear else {
        let list = runs::limits::list(context)?;
        let text = ui.text(|| table(ui, &list.limits, context.clock.now()));
        return Ok(Reply::new(list, text));
    };
    let cleared = runs::limits::clear(context, wanted.as_deref())?;
    let verb = verb(context, "Would remove", "Removed");
    let text = format!("{verb} {}.\n", count(cleared.files, "limit"));
    Ok(Reply::new(cleared, text))
}

fn table(ui: &Ui, all: &[runs::limits::LimitLine], now: Timestamp) -> String {
    if all.is_empty() {
        return "No run on this machine has met a limit lately.\n".to_owned();
    }
    let columns = [
        column("AGENT", 0),
        column("ACCOUNT", 1),
        column("LIMIT", 0),
        column("STATE", 0),
        column("UNTIL", 0),
        words("MET BY", 2),
    ];
    let mut table = Table::new(ui, &columns);
    for limit in all {
        let what = match (limit.reason, &limit.model) {
            (Weather::UsageLimit, Some(model)) => format!("{model} limit"),
            _ => limit.what.clone(),
        };
        let met_by = format!("{} in {}", limit.met_by.run, limit.met_by.worktree);
        table.add_row([
            Cell::new(escape(&limit.agent)),
            Cell::new(escape(&limit.account)),
            Cell::new(escape(&what)),
            Cell::new(limit.state),
            Cell::new(when(limit.until, now)),
            Cell::new(escape(&met_by)),
        ]);
    }
    table.text()
}
