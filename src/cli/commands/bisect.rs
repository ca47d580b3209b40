//! Runs `bisect`.

use super::super::{
    args::BisectArgs,
    exit::ExitCode,
    ui::{Reply, Ui},
};
use crate::engine::bisect::{Found, Request, bisect as find};
use crate::engine::{Context, Result};
use crate::model::{checkpoint::Checkpoint, hint::Hint, id::CheckpointId};
use crate::policy::{
    bisection::Judged,
    text::{count, escape},
};

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
    let text = ui.text(|| text_of(context, &found));
    let exit = if found.candidates.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::Partial
    };
    Ok(Reply::new(found, text).exit(exit))
}

fn text_of(context: &Context, found: &Found) -> String {
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
            "The change lies between {} and {bad}: {removed} between them were removed.\nChanges:   {}\n",
            good.id,
            context.line(changes)
        );
    }
    let Some(bad) = &found.first_bad else {
        let all: Vec<&str> = found.candidates.iter().map(CheckpointId::as_str).collect();
        return format!(
            "Some could not be tested. The first bad one is one of: {}\n",
            all.join(", ")
        );
    };
    let mut text = format!("First bad: {} ({})\n", bad.id, escape(&bad.description));
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
            good.id,
            escape(&good.description)
        ));
        text.push_str(&format!("Changes:   {}\n", context.line(changes)));
    }
    text
}
