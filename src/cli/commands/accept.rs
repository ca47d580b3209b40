//! Runs `accept`.

use super::super::args::AcceptArgs;
use super::super::replies::ExitCode;
use super::super::screens::{answer, require_yes};
use super::super::ui::{Reply, Ui};
use super::manual_fix::show;
use crate::engine::{Context, Error, ErrorKind, Result, accept, isolated};
use crate::model::{Hint, PathReason, RepoPath, RunId};
use crate::policy::text::escape;

/// `recover accept`.
pub(super) fn accept(context: &mut Context, args: &AcceptArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    if args
        .message
        .as_ref()
        .is_some_and(|message| message.trim().is_empty())
    {
        return Err(Error::new(
            ErrorKind::Usage,
            "-m: a commit needs a message; without -m it is written from the record",
        ));
    }
    let undecided = if context.dry_run() {
        accept::Uncommitted::Prompt
    } else {
        accept::Uncommitted::Refuse
    };
    let mut request = accept::Request {
        run_id: args.run.run_id.clone().map(RunId::from),
        per_iteration: args.per_iteration,
        branch: args.branch.clone(),
        rebase: args.rebase,
        message: args.message.clone(),
        include: args
            .include
            .iter()
            .map(|path| context.in_work_tree("--include", path))
            .collect::<Result<_>>()?,
        all: args.all,
        checks: !args.no_checks,
        prepare: args.prepare.clone(),
        // A dry run lists such files, and what the commit would be.
        uncommitted: args.uncommitted.unwrap_or(undecided),
        show: show(ui),
    };
    if ui.interactive && !context.says_yes() && !context.dry_run() {
        let mut planning = request.clone();
        if planning.uncommitted == accept::Uncommitted::Refuse {
            planning.uncommitted = accept::Uncommitted::Prompt;
        }
        let planned = accept::accept(&context.rehearsal()?, &planning)?;
        if request.uncommitted == accept::Uncommitted::Refuse
            && !planned.result.changed_work.is_empty()
        {
            request.uncommitted = ask_uncommitted(context, ui, &planned)?;
        }
        if !planned.result.look_at.is_empty() {
            let shown = told(&planned.result, false);
            require_yes(context, ui, &shown, "Commit it all the same?")?;
        }
        let includable: Vec<&PathReason> = planned.result.includable().collect();
        let question = "Commit these files too? y yes, n commit without them, q cancel";
        if !includable.is_empty()
            && answer(
                context,
                ui,
                &listed(&includable),
                question,
                &['y', 'n', 'q'],
            )? == 'y'
        {
            request
                .include
                .extend(includable.iter().map(|one| one.path.clone()));
        }
    }
    let accepted = accept::accept(context, &request)?;
    let text = ui.text(|| {
        text_of(&accepted) + &shown_by(&accepted, &ui.knowing(context)) + &undone_by(&accepted)
    });
    let is_whole = accepted.result.undecided().next().is_none();
    let (run, left_out) = (&accepted.run, &accepted.result.left_out);
    if run.was_accepted() && left_out.is_empty() {
        isolated::tidy(context, &run.key);
    } else if run.was_accepted() && run.spec.isolated.is_some() {
        let close = Hint::recover(["close"]).run(&run.key);
        context.note(format!(
            "what is left out is in {}, which stays until it is taken; removed by: {}",
            run.worktree,
            ui.command(&close)
        ));
    }
    Ok(Reply::new(accepted, text).exit(ExitCode::PARTIAL.unless(is_whole)))
}

/// Asks which version counts of files that had uncommitted changes before the run.
fn ask_uncommitted(
    context: &Context,
    ui: &Ui,
    planned: &accept::Accepted,
) -> Result<accept::Uncommitted> {
    let patch = accept::changed_work_patch(context, planned)?;
    let shown = format!("The run changed files that had uncommitted changes before it:\n{patch}");
    let question = "Which version counts? k yours: it is put back, uncommitted, and the run's is left as FILE.run; r the run's: \
                    it is committed, and yours stays in the run's first checkpoint; q cancel";
    Ok(
        match answer(context, ui, &shown, question, &['k', 'r', 'q'])? {
            'k' => accept::Uncommitted::Keep,
            _ => accept::Uncommitted::Replace,
        },
    )
}

/// The command that shows what was committed.
fn shown_by(accepted: &accept::Accepted, ui: &Ui) -> String {
    let made: Vec<_> = accepted.result.commits.iter().collect();
    let show = match made[..] {
        [one] => one
            .commit
            .as_ref()
            .map(|commit| Hint::git(["show", commit.short()])),
        [first, .., last] => {
            first
                .commit
                .as_ref()
                .zip(last.commit.as_ref())
                .map(|(first, last)| {
                    Hint::git([
                        "log",
                        "-p",
                        &format!("{}^..{}", first.short(), last.short()),
                    ])
                })
        }
        [] => None,
    };
    show.map(|show| format!("Shown by: {}\n", ui.command(&show)))
        .unwrap_or_default()
}

/// The command that takes back what was committed in the work tree that the run has for itself, where that is not seen.
fn undone_by(accepted: &accept::Accepted) -> String {
    let run = &accepted.run;
    if !accepted.changed || accepted.result.merge.is_some() || run.spec.isolated.is_none() {
        return String::new();
    }
    format!("Undone by: {}\n", Hint::recover(["undo"]).run(&run.key))
}

fn text_of(accepted: &accept::Accepted) -> String {
    let accept::Accepted {
        changed,
        run,
        result,
        plan,
    } = accepted;
    let key = escape(&run.key.to_string());
    if !plan.as_ref().map_or(*changed, |plan| plan.changed) {
        let rest = if run.was_accepted() && !result.left_out.is_empty() {
            " but these files"
        } else {
            ""
        };
        return format!(
            "Nothing to commit of run {key}{rest}.\n{}",
            told(result, true)
        );
    }
    let verb = if plan.is_some() {
        "Would commit"
    } else {
        "Committed"
    };
    let branch = result.branch.as_deref();
    let place = branch.map_or("a detached HEAD".to_owned(), escape);
    let advice = match (branch, plan) {
        (Some(_), _) => "",
        (None, Some(_)) => "HEAD is on no branch: --branch NAME begins one for it.\n",
        (None, None) => "HEAD is on no branch: git switch -c NAME begins one for it.\n",
    };
    format!(
        "{verb} run {key} on {place}:\n{}{advice}",
        told(result, true)
    )
}

/// The commits, what is left out, and with `all` nothing of what is to look at, which stands in front otherwise.
fn told(accepted: &accept::AcceptResult, all: bool) -> String {
    let mut text = left_out(accepted);
    if !accepted.look_at.is_empty() {
        text.push_str(if all {
            "  to look at:\n"
        } else {
            "To look at first:\n"
        });
        for note in &accepted.look_at {
            text.push_str(&format!("    {}\n", escape(note)));
        }
    }
    if !all {
        text.push_str("Would commit:\n");
    }
    for made in &accepted.commits {
        let id = made
            .commit
            .as_ref()
            .map_or(String::new(), |commit| format!("{} ", commit.short()));
        text.push_str(&format!("  {id}{}\n", escape(&made.subject)));
        // Of one that was made, git shows them.
        for path in made.files.iter().filter(|_| made.commit.is_none()) {
            text.push_str(&format!("    {}\n", escape(&path.to_lossy())));
        }
    }
    if !accepted.beside.is_empty() {
        text.push_str("  your uncommitted changes are back; the run's versions are:\n");
        for path in &accepted.beside {
            text.push_str(&format!("    {}\n", escape(&path.to_lossy())));
        }
    }
    if !accepted.ticked.is_empty() {
        text.push_str("  ticked in the list of tasks, which is left uncommitted:\n");
        for id in &accepted.ticked {
            text.push_str(&format!("    {}\n", escape(id)));
        }
    }
    if let Some(kept) = &accepted.kept_ref {
        text.push_str(&format!(
            "  the run's own commits are kept: {}\n",
            escape(kept)
        ));
    }
    let is_of_run = |path: &&RepoPath| accepted.of_runs.iter().any(|one| one.path == **path);
    let edited: Vec<_> = accepted
        .hand_edits
        .iter()
        .filter(|path| !is_of_run(path))
        .collect();
    if !edited.is_empty() {
        text.push_str("  edited since the run, and still uncommitted:\n");
        for path in edited {
            text.push_str(&format!("    {}\n", escape(&path.to_lossy())));
        }
    }
    if !accepted.of_runs.is_empty() {
        text.push_str("  left in the work tree by runs, and still uncommitted:\n");
        for one in &accepted.of_runs {
            let (path, run) = (escape(&one.path.to_lossy()), escape(&one.reason));
            text.push_str(&format!("    {path}  (of run {run})\n"));
        }
    }
    text
}

/// What is left out, what a person has to decide about first.
fn left_out(accepted: &accept::AcceptResult) -> String {
    let mut all: Vec<&PathReason> = accepted.left_out.iter().collect();
    all.sort_by_key(|one| !accepted.undecided().any(|other| other == *one));
    if all.is_empty() {
        return String::new();
    }
    listed(&all)
}

/// Paths that are left out, each with the reason.
fn listed(paths: &[&PathReason]) -> String {
    let line = |one: &&PathReason| {
        format!(
            "    {}  ({})\n",
            escape(&one.path.to_lossy()),
            accept::explained(one)
        )
    };
    format!(
        "  left out:\n{}",
        paths.iter().map(line).collect::<String>()
    )
}
