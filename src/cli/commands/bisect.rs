//! Runs `bisect`.

use crate::engine::flow::bisect::{Found, Request, bisect as find};
use crate::engine::{Context, Result};
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::policy::amounts::count;
use crate::policy::bisection::Judged;
use crate::policy::escape::escape;

use super::super::args::BisectArgs;
use super::super::exit::ExitCode;
use super::super::ui::{Reply, Ui};

/// `recover bisect`.
pub(super) fn bisect(context: &Context, args: &BisectArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let request = Request {
        good: args.good.clone(),
        bad: args.bad.clone(),
        prepare: args.prepare.clone(),
        command: args.command.clone(),
    };
    let say = |left: usize, checkpoint: &Checkpoint, judged: Judged| {
        let word = match judged {
            Judged::Good => "good",
            Judged::Bad => "bad",
            Judged::Skipped => "skipped",
        };
        if !ui.quiet {
            Ui::say(&format!(
                "{word}: {} ({}); at most {left} left",
                checkpoint.id,
                escape(&checkpoint.description)
            ));
        }
    };
    let found = find(context, &request, &say)?;
    let text = ui.text(|| text_of(context, &found, &ui.knowing(context)));
    let exit = if found.candidates.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::Partial
    };
    Ok(Reply::new(found, text).exit(exit))
}

fn text_of(context: &Context, found: &Found, ui: &Ui) -> String {
    if context.dry_run() {
        return format!(
            "Would look through {} checkpoints of run {}.\n",
            found.checkpoints,
            escape(&found.run.key.to_string())
        );
    }
    if let (Some(good), Some(bad), 1..) = (
        &found.last_good,
        found.candidates.first(),
        found.removed_between,
    ) {
        let removed = count(found.removed_between, "checkpoint");
        let changes = Hint::recover([
            "checkpoint",
            "diff",
            good.id.as_str(),
            bad.as_str(),
            "--patch",
        ]);
        return format!(
            "The change lies between {} and {}: {removed} between them were removed.\nChanges:   {}\n",
            ui.id(&good.id),
            ui.id(bad),
            ui.command(&context.placed(changes))
        );
    }
    let Some(bad) = &found.first_bad else {
        let all: Vec<String> = found.candidates.iter().map(|id| ui.id(id)).collect();
        return format!(
            "Some could not be tested. The first bad one is one of: {}\n",
            all.join(", ")
        );
    };
    let mut text = format!(
        "First bad: {} ({})\n",
        ui.id(&bad.id),
        escape(&ui.description(bad))
    );
    if let Some(attempt) = bad.attempt {
        text.push_str(&format!(
            "Attempt:   iteration {}, attempt {attempt}\n",
            bad.after_iteration
        ));
    }
    if let Some(good) = &found.last_good {
        let changes = Hint::recover([
            "checkpoint",
            "diff",
            good.id.as_str(),
            bad.id.as_str(),
            "--patch",
        ]);
        text.push_str(&format!(
            "Last good: {} ({})\n",
            ui.id(&good.id),
            escape(&ui.description(good))
        ));
        text.push_str(&format!(
            "Changes:   {}\n",
            ui.command(&context.placed(changes))
        ));
    }
    text
}
