//! `--edit`: the user's editor at the first error.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::super::super::ui::Ui;
use crate::engine::{
    Context, Error, ErrorKind, Result,
    record::run_settings::{folder_of, loops_of_fix},
    run::fix_session::log_of,
};
use crate::model::{hint::Hint, manual_fix::ManualFixSession};
use crate::policy::text::{Place, places, plain_text};

/// Editors that take `+LINE FILE`.
const PLUS: [&str; 18] = [
    "vi",
    "vim",
    "nvim",
    "gvim",
    "nvi",
    "view",
    "emacs",
    "emacsclient",
    "nano",
    "pico",
    "micro",
    "kak",
    "joe",
    "jed",
    "mg",
    "ne",
    "gedit",
    "less",
];
/// Editors that take `--goto FILE:LINE`.
const GOTO: [&str; 6] = [
    "code",
    "code-insiders",
    "codium",
    "vscodium",
    "cursor",
    "windsurf",
];
/// Editors that take `FILE:LINE`.
const COLON: [&str; 6] = ["hx", "helix", "subl", "sublime_text", "zed", "zeditor"];

/// The user's editor, with its own arguments.
#[derive(Debug)]
pub(super) struct Editor(Vec<String>);

impl Editor {
    /// `$VISUAL`, else `$EDITOR`.
    pub(super) fn of(context: &Context) -> Result<Self> {
        let named = context.env("VISUAL").or_else(|| context.env("EDITOR"));
        let words = named
            .as_deref()
            .and_then(shlex::split)
            .filter(|words| !words.is_empty());
        words.map(Self).ok_or_else(|| {
            Error::new(
                ErrorKind::Usage,
                "--edit needs an editor, and neither VISUAL nor EDITOR names one",
            )
            .hint(Hint::recover(["manual-fix", "start"]))
        })
    }

    /// Opens the first place in a file of the work tree that the feedback loop names which failed last, else the failure
    /// that the session began with, and waits until the editor ends.
    pub(super) fn open(
        &self,
        context: &Context,
        session: &ManualFixSession,
        ui: &Ui,
    ) -> Result<()> {
        let Some(place) = first(context, session) else {
            ui.note(
                "The failure names no place in a file of this work tree: there is nothing to open.",
            );
            return Ok(());
        };
        let Some((program, own)) = self.0.split_first() else {
            return Ok(());
        };
        let mut command = Command::new(program);
        command
            .args(own)
            .args(arguments(program, &place))
            .current_dir(context.worktree());
        if ui.json {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        let ended = command
            .status()
            .with_context(|| format!("cannot start the editor {program}"))?;
        if !ended.success() {
            ui.note(&format!("The editor {program} ended with {ended}."));
        }
        Ok(())
    }
}

/// The first place that is in a file of the work tree.
fn first(context: &Context, session: &ManualFixSession) -> Option<Place> {
    let worktree = context.worktree();
    let folders = folders(context, session);
    let failed = session
        .verification_results
        .iter()
        .filter(|(_, result)| !result.passed);
    // A log that is gone names nothing.
    let logs = failed.filter_map(|(name, _)| {
        context
            .store()
            .root()
            .read(&log_of(context, session, name))
            .ok()
    });
    let mut texts: Vec<String> = logs.map(|log| plain_text(&log)).collect();
    if let Some(failure) = &session.issue {
        texts.push(failure.message.clone());
        texts.extend(failure.details.clone());
        texts.extend(
            failure
                .evidence
                .iter()
                .map(|evidence| evidence.text.clone()),
        );
    }
    texts
        .iter()
        .flat_map(|text| places(text))
        .find_map(|place| {
            let is_ours = |path: &PathBuf| {
                path.is_file()
                    && path.starts_with(worktree)
                    && !path.starts_with(worktree.join(".git"))
            };
            let mut paths = folders
                .iter()
                .filter_map(|folder| std::fs::canonicalize(folder.join(&place.path)).ok());
            let path = paths.find(is_ours)?;
            Some(Place {
                path: path.to_string_lossy().into_owned(),
                ..place
            })
        })
}

/// What the paths in the output of the checks are relative to: the folders that those start in, and the work tree's root.
fn folders(context: &Context, session: &ManualFixSession) -> Vec<PathBuf> {
    let state = context
        .load()
        .map(|loaded| loaded.state)
        .unwrap_or_default();
    let runs = state
        .runs
        .iter()
        .filter(|run| run.key.run_id == session.run_id);
    let dirs = runs
        .flat_map(|run| loops_of_fix(context, run))
        .map(|one| folder_of(context, &one.dir));
    let mut folders: Vec<PathBuf> = dirs.chain([context.worktree().to_owned()]).collect();
    folders.sort_unstable();
    folders.dedup();
    // The nearest first.
    folders.reverse();
    folders
}

/// How an editor is given a place. One that nobody knows is given the file alone.
fn arguments(program: &str, place: &Place) -> Vec<String> {
    let name = Path::new(program)
        .file_stem()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let column = place
        .column
        .map(|column| format!(":{column}"))
        .unwrap_or_default();
    let with_colons = format!("{}:{}{column}", place.path, place.line);
    match name.as_str() {
        name if PLUS.contains(&name) => vec![format!("+{}", place.line), place.path.clone()],
        name if GOTO.contains(&name) => vec!["--goto".to_owned(), with_colons],
        name if COLON.contains(&name) => vec![with_colons],
        _ => vec![place.path.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_editor_is_told_in_its_own_way() {
        let place = Place {
            path: "/w/a.rs".to_owned(),
            line: 3,
            column: Some(5),
        };
        for (program, expected) in [
            ("vim", "+3 /w/a.rs"),
            ("/usr/bin/nvim", "+3 /w/a.rs"),
            ("nano", "+3 /w/a.rs"),
            ("code", "--goto /w/a.rs:3:5"),
            ("cursor", "--goto /w/a.rs:3:5"),
            ("hx", "/w/a.rs:3:5"),
            ("zed", "/w/a.rs:3:5"),
            ("something", "/w/a.rs"),
        ] {
            assert_eq!(arguments(program, &place).join(" "), expected, "{program}");
        }
    }
}
