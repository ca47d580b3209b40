//! `recover report`: makes the report of a run and writes it to a file (A6, S13).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::durable::{reap, write_atomic};
use crate::engine::attempt::night::changes_of;
use crate::engine::attempt::report::make;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::runs::run_of;
use crate::engine::record::select;
use crate::engine::recovery::crash;
use crate::model::hint::Hint;
use crate::model::run::{Run, RunKey};
use crate::policy::report::{MARK, Report, pull_request};

/// The report of the run that a command works on; only of one subtask where that is named.
pub(crate) fn of_run(context: &Context, subtask: Option<&str>) -> Result<Report> {
    let state = crash::load_recovered(context)?;
    let run = select::require(context, &state)?;
    if let Some(subtask) = subtask {
        require_subtask(run, subtask)?;
    }
    make(context, &state, run, subtask)
}

/// Title and body of a pull request for the run that a command works on.
pub(crate) fn pull_request_of(context: &Context) -> Result<String> {
    let state = crash::load_recovered(context)?;
    let run = select::require(context, &state)?;
    let good = state.last_good(&run.key);
    Ok(pull_request(
        run,
        &make(context, &state, run, None)?,
        good,
        &changes_of(context, &state, run)?,
    ))
}

/// The report of this run.
pub(crate) fn of_key(context: &Context, key: &RunKey) -> Result<Report> {
    let state = context.load()?.state;
    let run = run_of(&state, key)?;
    make(context, &state, &run, None)
}

fn require_subtask(run: &Run, subtask: &str) -> Result<()> {
    let mut known: Vec<&str> = run
        .attempts()
        .map(|(_, attempt)| attempt.subtask.as_str())
        .collect();
    known.sort_unstable();
    known.dedup();
    if known.contains(&subtask) {
        return Ok(());
    }
    let which = if known.is_empty() {
        "it has no attempts".to_owned()
    } else {
        format!("known: {}", known.join(", "))
    };
    let message = format!("no subtask '{subtask}' in run {}: {which}", run.key);
    Err(Error::new(ErrorKind::NoSubtask, message)
        .hint(Hint::recover(["attempt", "list"]).run(&run.key)))
}

/// Writes a report at `path`, whole or not at all, and returns the absolute path. A file that is no report is replaced
/// only after a yes. Nothing is written in a dry run.
pub(crate) fn to_file(context: &Context, path: &Path, text: &str) -> Result<PathBuf> {
    context.check_writes("writing a report")?;
    let path = context.cwd().join(path);
    // Without -o it goes to standard output.
    let hint = || Hint::recover(["report"]);
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error).hint(hint());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(
            Error::new(ErrorKind::Usage, format!("{} is a folder", path.display())).hint(hint()),
        );
    };
    let folder = fs::canonicalize(folder).map_err(failed)?;
    let path = folder.join(name);
    if let Ok(there) = fs::metadata(&path) {
        if !there.is_file() {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("{} is no ordinary file", path.display()),
            )
            .hint(hint()));
        }
        if there.len() > 0 && !context.says_yes() && !is_report(&path) {
            let message = format!(
                "{} already exists and is not a report: --yes overwrites it",
                path.display()
            );
            return Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint()));
        }
    }
    if !context.dry_run() {
        reap(&folder);
        write_atomic(&path, text.as_bytes()).map_err(failed)?;
    }
    Ok(path)
}

/// Whether a file is a report that was written before.
fn is_report(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(200).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok()
        && (head.contains(MARK)
            || (head.contains("\"command\": \"report\"") && head.contains("\"report\": {")))
}
