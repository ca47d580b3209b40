//! What shows long texts, as git has it.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// What git starts where nobody says anything.
const USUAL: &str = "less";

/// The command that git would show the output of `git KIND` with: `GIT_PAGER`, `pager.KIND`, `core.pager`, `PAGER`, else
/// `less`. `None` where it would print it.
///
/// Only what the user and the system say counts, not what a repository says of itself: that may have come with it, and would
/// be started.
pub(crate) fn pager(kind: &str) -> Option<String> {
    let of_kind = asked(&["config", "--get", &format!("pager.{kind}")]);
    let own = match of_kind.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("false" | "no" | "off" | "0" | "") => return None,
        None | Some("true" | "yes" | "on" | "1") => None,
        Some(_) => of_kind,
    };
    let from_env = |name: &str| std::env::var(name).ok();
    let general = || asked(&["config", "--get", "core.pager"]);
    let found = from_env("GIT_PAGER")
        .or(own)
        .or_else(general)
        .or_else(|| from_env("PAGER"));
    let command = found.unwrap_or_else(|| USUAL.to_owned());
    (!matches!(command.trim(), "" | "cat")).then_some(command)
}

/// What git says, asked outside of any repository; `None` where it says nothing, or is not there.
fn asked<S: AsRef<OsStr>>(words: &[S]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .args(words)
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    for place in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        command.env_remove(place);
    }
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.trim_end_matches('\n').to_owned())
}
