//! Hints are commands that work from any folder: one in a hint names the work tree it is about.

use crate::engine::{Context, Error, ErrorKind};

/// The error with a hint that can be copied.
pub fn complete(context: &Context, mut error: Error) -> Error {
    if error.hint.is_none() && error.kind == ErrorKind::Locked {
        // Somebody else is at it: the same again, with more patience.
        error.hint = Some(context.rerun_command(&["--lock-timeout", "60s"]));
    }
    let git = format!("git -C {}", context.worktree_id().shell_word());
    error.hint = error.hint.map(|hint| located(&hint, &context.hint_command(None, &[]), &git));
    error
}

/// Puts `recover` (`recover -C DIR`) and `git` (`git -C DIR`) in the place of the program in each command that names no
/// folder yet.
fn located(hint: &str, recover: &str, git: &str) -> String {
    let one = |command: &str| match command.split_once(' ') {
        Some((program, rest)) if !rest.starts_with("-C ") => match program {
            "recover" => format!("{recover} {rest}"),
            "git" => format!("{git} {rest}"),
            _ => command.to_owned(),
        },
        _ => command.to_owned(),
    };
    hint.split(" && ").map(one).collect::<Vec<_>>().join(" && ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_located() {
        let at = |hint| located(hint, "recover -C '/a b'", "git -C '/a b'");
        assert_eq!(at("recover doctor"), "recover -C '/a b' doctor");
        assert_eq!(at("git switch main"), "git -C '/a b' switch main");
        assert_eq!(at("recover -C /x status"), "recover -C /x status");
        assert_eq!(
            at("mkdir -p /x && git -C /y status && recover log"),
            "mkdir -p /x && git -C /y status && recover -C '/a b' log"
        );
    }
}
