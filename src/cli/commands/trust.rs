//! Runs `trust`.

use std::fmt::Write as _;

use crate::engine::flow::trust::{StateReport, look, take_over};
use crate::engine::{Context, Error, ErrorKind, Result};

use super::super::args::TrustArgs;
use super::super::replies::upkeep::{TrustPlan, TrustReply};
use super::super::screens::agrees;
use super::super::ui::{Reply, Ui, escape};

/// So many recorded commands are shown to people; the document has all.
const SHOWN: usize = 20;

/// `recover trust --state`.
pub fn trust(context: &mut Context, _: &TrustArgs, ui: &Ui) -> Result<Reply> {
    if ui.interactive && !context.says_yes() && !context.dry_run() && context.store().has_content() {
        let state = look(context)?;
        if state.foreign {
            if !agrees(context, ui, &told(&state), "Take it over?")? {
                return Err(Error::new(ErrorKind::Interrupted(130), "cancelled; nothing was changed"));
            }
            context.confirm();
        }
    }
    let trusted = take_over(context)?;
    let (state, path) = (&trusted.state, escape(&trusted.state.path));
    let mut text = match (trusted.changed, context.dry_run()) {
        (false, _) => format!("The state in {path} is yours already.\n"),
        (true, true) => format!("Would take over the state in {path}\n"),
        (true, false) => format!("Took over the state in {path}\n"),
    };
    if trusted.changed {
        text.push_str(&told(state));
    }
    let document = TrustReply {
        changed: trusted.changed && !context.dry_run(),
        state,
        plan: context.dry_run().then_some(TrustPlan { changed: trusted.changed }),
    };
    Ok(Reply::new(document, text))
}

/// What the state holds, for people.
fn told(state: &StateReport) -> String {
    let mut text = format!(
        "{} runs, {} attempts, {} checkpoints; {} recorded commands and prompts\n",
        state.runs,
        state.attempts,
        state.checkpoints,
        state.commands.len()
    );
    for one in state.commands.iter().take(SHOWN) {
        let _ = writeln!(text, "  {} {}: {}", escape(&one.run.to_string()), one.kind, escape(&one.text));
    }
    if state.commands.len() > SHOWN {
        let _ = writeln!(text, "  … and {} more", state.commands.len() - SHOWN);
    }
    text
}
