//! What would happen, and whether it may (B11).

use std::fmt::Write;

use super::super::{
    args::word_of,
    render::{crossed_text, superseded_text, unchanged_text},
};
use super::Talk;
use crate::engine::{
    Context, Error, ErrorKind, Result,
    restore::request::{Commits, Restore},
    rollback::Options,
};
use crate::policy::{restore::Edits, text::escape};

/// So many paths of a kind are named.
const NAMED: usize = 6;

/// What a person decided about what would otherwise be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct How {
    /// About commits.
    pub commits: Option<Commits>,
    /// About hand edits.
    pub edits: Edits,
    /// About paths that cannot be replaced.
    pub best_effort: bool,
}

impl How {
    /// Flags that say the same.
    pub(crate) fn words(self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(commits) = self.commits {
            words.extend(["--commits".to_owned(), word_of(&commits)]);
        }
        if self.edits != Edits::Refuse {
            words.extend(["--edits".to_owned(), word_of(&self.edits)]);
        }
        if self.best_effort {
            words.push("--best-effort".to_owned());
        }
        words
    }

    /// What a rollback is asked for, with this.
    pub(crate) fn options(self, given: &Options) -> Options {
        let commits = self.commits.unwrap_or(given.commits);
        Options {
            commits,
            edits: self.edits,
            best_effort: self.best_effort,
            ..given.clone()
        }
    }
}

/// What would be done, and how.
pub(super) type Plan<'a> = &'a dyn Fn(&Context, How) -> Result<Restore>;

/// Shows what `plan` would do and asks; `None` where another target is wanted.
pub(super) fn confirm(talk: &Talk<'_>, how: How, plan: Plan<'_>) -> Result<Option<How>> {
    asked(talk, how, plan, true)
}

/// The same for a target that was given: there is no other one.
pub(super) fn confirm_given(talk: &Talk<'_>, how: How, plan: Plan<'_>) -> Result<How> {
    asked(talk, how, plan, false)?.ok_or_else(|| super::nothing_changed(130))
}

fn asked(talk: &Talk<'_>, mut how: How, plan: Plan<'_>, another: bool) -> Result<Option<How>> {
    let rehearsal = talk.context.rehearsal()?;
    loop {
        match plan(&rehearsal, how) {
            Ok(restore) if !restore.changed => {
                talk.say_all(unchanged_text(&restore.result).trim_end());
                return Ok(None);
            }
            Ok(restore) => {
                talk.say("");
                talk.say("What will happen:");
                for line in what_will_happen(&restore) {
                    talk.ask(&format!("- {line}"));
                }
                talk.say("");
                let back = if another { "b another one, " } else { "" };
                talk.ask(&format!("Do it? y yes, {back}q leave everything as it is"));
                return match talk.one_of(keys(&['b', 'y', 'n', 'q'], another))? {
                    'y' => Ok(Some(how)),
                    'b' => Ok(None),
                    _ => Err(super::nothing_changed(130)),
                };
            }
            Err(error) => match settle(talk, how, &error, another)? {
                Some(settled) => how = settled,
                None => return Ok(None),
            },
        }
    }
}

/// The keys, without the first one where there is no other target.
fn keys(all: &[char], another: bool) -> &[char] {
    if another { all } else { &all[1..] }
}

/// Asks about what is in the way; `None` where another target is wanted.
fn settle(talk: &Talk<'_>, how: How, error: &Error, another: bool) -> Result<Option<How>> {
    let back = if another { "b another one, " } else { "" };
    talk.say("");
    talk.ask(&format!("Not as it is: {}", error.message));
    for reason in error.paths.iter().take(NAMED) {
        talk.say(&format!(
            "  {}: {}",
            escape(&reason.path.to_lossy()),
            escape(&reason.reason)
        ));
    }
    if error.paths.len() > NAMED {
        talk.say(&format!("  and {} more", error.paths.len() - NAMED));
    }
    match error.kind {
        ErrorKind::HandEdits => {
            talk.ask(&format!(
                "k keep them, d discard them (recover undo brings them back), {back}q quit"
            ));
            Ok(match talk.one_of(keys(&['b', 'k', 'd', 'q'], another))? {
                'k' => Some(How {
                    edits: Edits::Keep,
                    ..how
                }),
                'd' => Some(How {
                    edits: Edits::Discard,
                    ..how
                }),
                'b' => None,
                _ => return Err(super::nothing_changed(130)),
            })
        }
        ErrorKind::Blocked => {
            talk.ask(&format!(
                "e everything else, those stay as they are, {back}q quit"
            ));
            Ok(match talk.one_of(keys(&['b', 'e', 'q'], another))? {
                'e' => Some(How {
                    best_effort: true,
                    ..how
                }),
                'b' => None,
                _ => return Err(super::nothing_changed(130)),
            })
        }
        ErrorKind::HeadMoved => {
            talk.ask(&format!(
                "k only the files, HEAD stays; d HEAD goes back, the commits stay reachable; r a new commit on top \
                 reverts it; {}q quit",
                back.replace(',', ";")
            ));
            Ok(
                match talk.one_of(keys(&['b', 'k', 'd', 'r', 'q'], another))? {
                    'k' => Some(How {
                        commits: Some(Commits::Keep),
                        ..how
                    }),
                    'd' => Some(How {
                        commits: Some(Commits::Drop),
                        ..how
                    }),
                    'r' => Some(How {
                        commits: Some(Commits::Revert),
                        ..how
                    }),
                    'b' => None,
                    _ => return Err(super::nothing_changed(130)),
                },
            )
        }
        _ => {
            if let Some(hint) = error.hint.clone() {
                talk.say_all(&format!("hint: {}", talk.context.line(hint)));
            }
            Ok(None)
        }
    }
}

/// A plan in sentences.
fn what_will_happen(restore: &Restore) -> Vec<String> {
    let result = &restore.result;
    let mut lines = Vec::new();
    let mut named = |verb: &str, paths: Vec<String>| {
        if paths.is_empty() {
            return;
        }
        let count = if paths.len() == 1 {
            "1 file".to_owned()
        } else {
            format!("{} files", paths.len())
        };
        let mut line = format!(
            "{count} will be {verb}: {}",
            paths[..paths.len().min(NAMED)].join(", ")
        );
        if paths.len() > NAMED {
            // Writing to a String cannot fail.
            let _ = write!(line, " and {} more", paths.len() - NAMED);
        }
        lines.push(line);
    };
    named(
        "written",
        result
            .written
            .iter()
            .map(|path| escape(&path.to_lossy()))
            .collect(),
    );
    named(
        "deleted",
        result
            .deleted
            .iter()
            .map(|path| escape(&path.to_lossy()))
            .collect(),
    );
    let kept = |kept: &crate::model::path::PathReason| {
        format!(
            "{} ({})",
            escape(&kept.path.to_lossy()),
            escape(&kept.reason)
        )
    };
    named("left as is", result.kept.iter().map(kept).collect());
    if lines.is_empty() {
        lines.push("No file changes".to_owned());
    }
    let (before, after) = (&result.head.before, &result.head.after);
    match (before, after) {
        (Some(before), Some(after)) if before != after => {
            lines.push(format!(
                "HEAD moves from {} to {}",
                before.short(),
                after.short()
            ));
        }
        (before, after) if before != after => lines.push("HEAD moves".to_owned()),
        (Some(before), _) => lines.push(format!("HEAD stays at {}", before.short())),
        _ => {}
    }
    lines.extend(
        superseded_text(result).map(|over| format!("Superseded: {over}; the history stays")),
    );
    lines.extend(crossed_text(result, true).lines().map(str::to_owned));
    lines.push(
        "First everything is saved in a safety checkpoint: recover undo restores it".to_owned(),
    );
    lines
}
