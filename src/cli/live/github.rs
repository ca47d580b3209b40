//! What a job of GitHub Actions understands: groups, annotations, masks, and its summary.
//!
//! Commands of the workflow are lines on stderr: the runner reads both streams, and our stdout is for the answer.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::engine::base::progress;
use crate::engine::{Context, inspect, run};
use crate::model::failure::Location;
use crate::model::{Decision, Failure};
use crate::policy::secrets::{Redactor, redact};

/// A job's summary may have so many bytes in a step; more is refused whole.
const SUMMARY_LIMIT: u64 = 1 << 20;
/// Room for the line that says that something is missing.
const NOTICE: u64 = 200;

/// The job that this process runs in.
#[derive(Debug)]
pub(super) struct Github {
    worktree: PathBuf,
    /// Where the job's repository is: annotations name files relative to it.
    workspace: PathBuf,
    summary: Option<PathBuf>,
    /// What paths in the output of the run's commands are relative to.
    folders: Mutex<Vec<PathBuf>>,
    /// Whether a group is open.
    is_grouping: Mutex<bool>,
}

impl Github {
    /// Closes the group that is open, if one is.
    pub(super) fn end_group(&self) -> &'static str {
        if std::mem::take(&mut *self.is_grouping.lock()) {
            "::endgroup::\n"
        } else {
            ""
        }
    }

    /// Opens a group in the place of the one that is open.
    fn group(&self, title: &str) -> String {
        let end = self.end_group();
        *self.is_grouping.lock() = true;
        format!("{end}::group::{}\n", data(title))
    }

    /// The job, if this is one.
    pub(super) fn of(context: &Context) -> Option<Self> {
        if context.env("GITHUB_ACTIONS").as_deref() != Some("true") {
            return None;
        }
        let worktree = context.worktree().to_owned();
        let workspace = context
            .env("GITHUB_WORKSPACE")
            .and_then(|path| std::fs::canonicalize(path).ok());
        Some(Self {
            workspace: workspace
                .filter(|path| worktree.starts_with(path))
                .unwrap_or_else(|| worktree.clone()),
            summary: context.env("GITHUB_STEP_SUMMARY").map(PathBuf::from),
            folders: Mutex::new(folders(context)),
            is_grouping: Mutex::new(false),
            worktree,
        })
    }

    /// Has the runner hide the values of variables that hold secrets, a line each.
    pub(super) fn masks() -> String {
        let redactor = Redactor::current();
        redactor
            .values()
            .iter()
            .fold(String::new(), |lines, value| {
                lines + "::add-mask::" + &data(value) + "\n"
            })
    }

    /// What goes before the lines about it, and what after them.
    pub(super) fn around(&self, progress: &progress::ProgressEvent<'_>) -> (String, String) {
        match progress {
            progress::ProgressEvent::Baseline { .. } => (
                self.group("recover: checks before the first attempt"),
                String::new(),
            ),
            progress::ProgressEvent::Attempt {
                run,
                iteration,
                attempt,
                ..
            } => {
                let dirs = std::iter::once(&run.spec.dir)
                    .chain(run.spec.feedback.iter().map(|one| &one.dir));
                let own = dirs.map(|dir| self.worktree.join(dir.path()));
                let mut folders = self.folders.lock();
                for folder in own {
                    if !folders.contains(&folder) {
                        folders.insert(0, folder);
                    }
                }
                (
                    self.group(&format!(
                        "recover: iteration {iteration}, attempt {attempt}"
                    )),
                    String::new(),
                )
            }
            progress::ProgressEvent::Ended {
                iteration,
                attempt,
                failure,
                decision,
                ..
            } => {
                let again = decision.is_some_and(Decision::leads_to_attempt);
                let level = if again { "warning" } else { "error" };
                let title = format!("recover: iteration {iteration}, attempt {attempt} failed");
                let said = failure
                    .map(|failure| self.annotation(level, &title, failure))
                    .unwrap_or_default();
                (self.end_group().to_owned(), said)
            }
            _ => (String::new(), String::new()),
        }
    }

    fn annotation(&self, level: &str, title: &str, failure: &Failure) -> String {
        let mut properties = Vec::new();
        if let Some((file, place)) = self.place(failure) {
            properties.push(format!("file={}", property(&file)));
            properties.push(format!("line={}", place.line));
            properties.extend(place.column.map(|column| format!("col={column}")));
        }
        properties.push(format!("title={}", property(title)));
        let mut message = redact(&failure.message).into_owned();
        if let Some(details) = failure
            .details
            .as_ref()
            .filter(|details| !message.contains(details.as_str()))
        {
            message.push_str(&format!("\n{}", redact(details)));
        }
        format!("::{level} {}::{}\n", properties.join(","), data(&message))
    }

    /// The first place that the failure names in a file of the work tree.
    fn place(&self, failure: &Failure) -> Option<(String, Location)> {
        let texts = inspect::texts_of(failure);
        let place = inspect::place_in(&self.worktree, &self.folders.lock(), texts)?;
        let path = Path::new(&place.path).strip_prefix(&self.workspace).ok()?;
        Some((path.to_string_lossy().into_owned(), place))
    }

    /// Adds a report to the job's summary, as much of it as may be there.
    pub(super) fn summarize(&self, context: &Context, report: &str) {
        let Some(path) = &self.summary else { return };
        if let Err(error) = append(path, &redact(report)) {
            context.warn(format!(
                "the job's summary was not written to {}: {error}",
                path.display()
            ));
        }
    }
}

/// The folders of the configured checks, and the work tree's root.
fn folders(context: &Context) -> Vec<PathBuf> {
    let dirs = context
        .settings()
        .feedback
        .iter()
        .map(|one| run::folder_of(context, &one.dir));
    dirs.chain([context.worktree().to_owned()]).collect()
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let room = SUMMARY_LIMIT
        .saturating_sub(file.metadata()?.len())
        .saturating_sub(NOTICE);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if text.len() < room {
        return file.write_all(format!("{}\n", text.trim_end()).as_bytes());
    }
    let whole = text.as_bytes()[..room.min(text.len())]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap_or(0);
    // Where nothing fits any more, that was said.
    if whole == 0 {
        return Ok(());
    }
    file.write_all(&text.as_bytes()[..whole])?;
    file.write_all(b"\n\n(cut: a summary takes 1 MiB; `recover report` has all)\n")
}

/// As the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// As a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_said_ends_no_command() {
        assert_eq!(data("100 %\r\n::error::x"), "100 %25%0D%0A::error::x");
        assert_eq!(property("a,b:c%\n"), "a%2Cb%3Ac%25%0A");
    }

    #[test]
    fn a_summary_stays_under_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary");
        for _ in 0..3 {
            append(&path, &"ä line\n".repeat(100_000)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.len() as u64 <= SUMMARY_LIMIT && text.contains("(cut:"),
            "{}",
            text.len()
        );
    }
}
