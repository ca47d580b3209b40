//! What became of a run, for people: in ten lines, or in one.

use std::fmt::Write;

use super::super::ui::{Ui, escape};
use crate::engine::status;
use crate::model::hint::{Hint, Place};
use crate::model::id::RunKey;
use crate::model::run::Run;
use crate::model::tasks::TaskStatus;
use crate::policy::report::{LeftInTree, LookAtKind, Night, ToLookAt, task, tasks_counted};
use crate::policy::text::beginning;

/// How much of what is to look at is listed.
const LOOK_AT_LINES: usize = 8;

/// How many lines there are, as a rule, for what iterations did and what is to look at.
const LISTED: usize = 4;
/// How many iterations are named, and how much is listed that a person must look at.
const NAMED: usize = 3;
/// The longest line where nothing says how wide it may be.
const LONGEST: usize = 100;

/// What a person must look at, a line each.
pub(super) fn look_at_text(ui: &Ui, all: &[ToLookAt]) -> String {
    let line = |one: &ToLookAt| format!("To look at: {}\n", escape(&ui.advice(&one.text)));
    let mut text: String = all.iter().take(LOOK_AT_LINES).map(line).collect();
    if let Some(more) = all
        .len()
        .checked_sub(LOOK_AT_LINES)
        .filter(|more| *more > 0)
    {
        let _ = writeln!(
            text,
            "To look at: {more} more (recover accept --dry-run lists them)"
        );
    }
    text
}

/// A command with no more of its run and its place than it needs here.
pub(super) fn named(command: &Hint, run: Option<&RunKey>, place: Option<&Place>) -> Hint {
    let words = command.last_words();
    // One that names another run is about that.
    let names_other = matches!(words[..], ["accept", _]);
    let hint = Hint::recover(words).run(run.filter(|_| !names_other));
    match place {
        Some(place) => hint.at(place.clone()),
        None => hint,
    }
}

/// How many tasks are listed.
const TASKS: usize = 12;

/// The tasks of a run, a line each below what they amount to; where they are many, what passed is only counted.
pub(super) fn tasks_text(run: &Run) -> String {
    let mut tasks = run.task_lines();
    if tasks.is_empty() {
        return String::new();
    }
    let mut text = format!("Tasks:      {}\n", tasks_counted(&tasks));
    if tasks.len() > TASKS {
        tasks.retain(|one| !matches!(one.status, TaskStatus::Done | TaskStatus::Pending));
    }
    for one in tasks.iter().take(TASKS) {
        let _ = writeln!(text, "            {}", escape(&task(one)));
    }
    if let Some(more) = tasks.len().checked_sub(TASKS).filter(|more| *more > 0) {
        let _ = writeln!(
            text,
            "            {more} more (recover status --json lists them)"
        );
    }
    text
}

/// What became of a run: ten lines as a rule. `first` is more about its state, `more` are lines beside it.
pub(crate) fn in_short(
    ui: &Ui,
    run: &Run,
    night: &Night,
    first: &str,
    more: &str,
    command: &dyn Fn(&Hint) -> Hint,
) -> String {
    let mut lines = Vec::new();
    // A person's own work comes before all else.
    let (lost, look): (Vec<&ToLookAt>, Vec<&ToLookAt>) = night
        .to_look_at
        .iter()
        .partition(|one| matches!(one.kind, LookAtKind::Uncommitted | LookAtKind::TakenBack));
    let to_look_at = |one: &ToLookAt| format!("To look at: {}", escape(&ui.advice(&one.text)));
    lines.extend(lost.iter().map(|one| to_look_at(one)));
    let about = if first.is_empty() || night.state == "waiting" {
        format!(" {first}").trim_end().to_owned()
    } else {
        format!(" ({first})")
    };
    lines.push(format!(
        "Run {}: {}{about}; {}",
        run.key,
        night.state,
        night.counted()
    ));
    lines.extend(more.lines().map(str::to_owned));
    let mut room = [look.len().min(NAMED), night.done.len().min(NAMED)];
    while lost.len() + room[0] + room[1] > LISTED && room != [1, 1] {
        let larger = usize::from(room[1] >= room[0] || room[0] == 1);
        room[larger] = room[larger].saturating_sub(1);
    }
    let files = night.files.map(|files| match files.changed {
        0 => "nothing".to_owned(),
        _ => files.told(),
    });
    let left = night.left.map(LeftInTree::told);
    let changed: Vec<String> = files.into_iter().chain(left).collect();
    if !changed.is_empty() {
        lines.push(format!("Changed:    {}", changed.join("; ")));
    }
    let width = ui.width.map_or(LONGEST, usize::from);
    let rest = |all: usize, shown: usize| match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!(" (+{more} more)"),
    };
    for (at, one) in night.done.iter().take(room[1]).enumerate() {
        let more = if at + 1 == room[1] {
            rest(night.done.len(), room[1])
        } else {
            String::new()
        };
        let number = format!("{:>10}  ", one.iteration);
        let left = width.saturating_sub(number.len() + more.len());
        lines.push(format!(
            "{number}{}{more}",
            beginning(&escape(&one.summary), left)
        ));
    }
    for (at, one) in look.iter().take(room[0]).enumerate() {
        let more = if at + 1 == room[0] {
            rest(look.len(), room[0])
        } else {
            String::new()
        };
        lines.push(to_look_at(one) + &more);
    }
    lines.push(format!("Took:       {}", night.took()));
    for (at, next) in night.commands.iter().enumerate() {
        let purpose = format!("{}. {}:", at + 1, capitalized(next.purpose.into_str()));
        lines.push(format!(
            "{purpose:<11} {}",
            ui.command(&command(&next.command))
        ));
    }
    ui.plain(&lines.join("\n")) + "\n"
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// What else ended, a line a run.
pub(crate) fn ended_text(ui: &Ui, ended: &[&status::EndedRun]) -> String {
    if ended.is_empty() {
        return String::new();
    }
    let since = if ui.width.is_some() {
        " since you last looked"
    } else {
        // A look is what a person sees on a terminal.
        ", not accepted or closed yet"
    };
    let mut text = format!("\nAlso ended{since}:\n");
    for one in ended {
        let next = one.night.commands.iter().find(|next| next.recommended);
        let next = next.map(|next| {
            ui.command(&named(
                &next.command,
                Some(&one.run.key),
                one.elsewhere.as_ref(),
            ))
        });
        let _ = writeln!(
            text,
            "Run {}: {}",
            one.run.key,
            ui.plain(&one.night.line(next.as_deref()))
        );
    }
    text
}
