//! Whether a program can be started, found out without starting it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{Program, SpawnError, SpawnErrorKind};

/// Where a program is looked for that is named without a slash, when nobody says.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// So much of a script's first line the system looks at.
const FIRST_LINE: u64 = 256;

impl Program {
    /// Looks for `program` as [`Supervised::run`](super::Supervised::run) does that starts in `dir`, with `path` for `PATH`.
    ///
    /// # Errors
    /// It is not there, it may not be executed, what its first line names is not there, or it is text without such a line.
    pub(crate) fn find(
        program: &str,
        dir: &Path,
        path: Option<&OsStr>,
    ) -> Result<PathBuf, SpawnError> {
        let candidates = if program.contains('/') {
            vec![dir.join(program)]
        } else {
            folders(dir, path)
                .map(|folder| folder.join(program))
                .collect()
        };
        let mut refused = None;
        for candidate in candidates {
            match look(&candidate, program) {
                Ok(()) => return Ok(candidate),
                // What is there and cannot be started says more than that nothing is elsewhere.
                Err(error) => refused = refused.or(candidate.is_file().then_some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| not_found(format!("{program}: not found"))))
    }

    /// The names of what could be started in its place: what is on `PATH`, else what is in the same folder.
    pub(crate) fn names_beside(program: &str, dir: &Path, path: Option<&OsStr>) -> Vec<String> {
        let (prefix, places) = match program.rsplit_once('/') {
            Some((folder, _)) => (format!("{folder}/"), vec![dir.join(format!("{folder}/"))]),
            None => (String::new(), folders(dir, path).collect()),
        };
        let entries = places
            .iter()
            .filter_map(|place| fs::read_dir(place).ok())
            .flatten()
            .flatten();
        let startable = entries.filter(|entry| look(&entry.path(), program).is_ok());
        let mut names: Vec<String> = startable
            .filter_map(|entry| Some(format!("{prefix}{}", entry.file_name().to_str()?)))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn folders(dir: &Path, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let path = path.map_or_else(|| OsString::from(USUAL_PATH), OsStr::to_owned);
    // An empty one is the current folder, as `join` has it.
    std::env::split_paths(&path)
        .map(|folder| dir.join(folder))
        .collect::<Vec<_>>()
        .into_iter()
}

fn look(file: &Path, program: &str) -> Result<(), SpawnError> {
    if !fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return Err(not_found(format!("{program}: not found")));
    }
    if access(file, Access::EXEC_OK).is_err() {
        let message = format!(
            "{program}: not executable (chmod +x {})",
            crate::model::hint::quote(file)
        );
        return Err(SpawnError {
            kind: SpawnErrorKind::PermissionDenied,
            message,
        });
    }
    let Some(head) = head(file) else {
        return Ok(());
    };
    match head.strip_prefix(b"#!") {
        Some(line) => match interpreter(line).filter(|path| !path.exists()) {
            Some(path) => Err(not_found(format!(
                "{program}: its first line names {}, which is not there",
                path.display()
            ))),
            None => Ok(()),
        },
        None if is_text(&head) => {
            let message = format!(
                "{program}: a script without a first line that says what runs it, such as #!/bin/sh"
            );
            Err(SpawnError {
                kind: SpawnErrorKind::Other,
                message,
            })
        }
        None => Ok(()),
    }
}

/// The beginning of a file. One that cannot be read is started all the same.
fn head(file: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file)
        .ok()?
        .take(FIRST_LINE)
        .read_to_end(&mut head)
        .ok()?;
    Some(head)
}

/// What runs a script, by what follows `#!`.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    let path = Path::new(OsStr::from_bytes(word));
    path.is_absolute().then(|| path.to_owned())
}

/// Whether it is text, which only a shell would run: the system starts no such file.
fn is_text(head: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    !head.is_empty() && !head.iter().any(is_control)
}

fn not_found(message: String) -> SpawnError {
    SpawnError {
        kind: SpawnErrorKind::NotFound,
        message,
    }
}
