//! A program that a person reads a long text in.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// What a shell ends with where there is no such program.
const NOT_FOUND: i32 = 127;

/// What pagers are told where nobody tells them: to end by themselves where all fits, to show colours, to leave it there.
const TOLD: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Shows a text with a shell command, and returns when it was left; `false` where there is no such program.
///
/// # Errors
/// The shell could not be started, or the text could not be written. That it was left early is none.
pub(crate) fn page(command: &str, text: &[u8]) -> io::Result<bool> {
    // Ctrl-C is the pager's own affair.
    flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::piped());
    let told = TOLD
        .into_iter()
        .filter(|(name, _)| std::env::var_os(name).is_none());
    let mut pager = shell.envs(told).spawn()?;
    let written = pager
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(text));
    let ended = pager.wait()?;
    if ended.code() == Some(NOT_FOUND) {
        return Ok(false);
    }
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(true),
    }
}
