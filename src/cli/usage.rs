//! What clap has to say: help and version, and wrong arguments (exit 2).

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::args::VALUE_FLAGS;
use super::generate;
use super::replies::{Document, ExitCode};
use super::ui::write_document;
use crate::engine::answers;
use crate::model::hint::join;
use crate::policy::secrets::redact;
use crate::process::{Program, Stderr};

/// Words that other tools have for what is called otherwise here: the command, and what it does.
const OTHER_WORDS: [(&[&str], &str, &str); 13] = [
    (
        &["abort", "cancel", "stop", "end"],
        "close",
        "closes a run that you are done with; Ctrl-C stops one at work",
    ),
    (&["history", "events"], "log", "shows what happened"),
    (
        &["reset", "revert", "checkout", "back"],
        "rollback",
        "restores the work tree from a checkpoint",
    ),
    (
        &["restore"],
        "checkpoint restore",
        "restores files of a checkpoint",
    ),
    (
        &["commit", "merge", "apply"],
        "accept",
        "commits what a run did",
    ),
    (
        &["rm", "remove", "delete"],
        "forget",
        "removes runs for good, with their checkpoints",
    ),
    (&["ls"], "runs", "lists the runs"),
    (&["version"], "--version", "prints the version"),
    (
        &["save", "snapshot", "stash"],
        "checkpoint create",
        "keeps the work tree as it is",
    ),
    (
        &["continue", "retry"],
        "resume",
        "takes a failed or interrupted run up again",
    ),
    (
        &["clean", "gc", "prune"],
        "checkpoint prune",
        "removes old checkpoints",
    ),
    (
        &["start", "exec"],
        "run -- CMD",
        "runs a command under supervision",
    ),
    (&["fix"], "manual-fix", "hands a failed run over to you"),
];

/// What people call `--feedback`.
const OTHER_FLAGS: [&str; 5] = ["--check", "--checks", "--test", "--verify", "--validate"];

/// Flags that other tools have for what is called otherwise here, and what to give instead.
const OTHER_NAMES: [(&[&str], &str); 3] = [
    (
        &["-n"],
        "'--dry-run' shows what would be done, '--limit N' the newest N",
    ),
    (
        &["-f", "--force"],
        "'--yes' answers every question; where edits or commits are in the way, the refusal names the flag",
    ),
    (
        &["-l", "--list"],
        "'recover runs' lists the runs, 'recover list' the checkpoints",
    ),
];

/// Prints it; with `--json` a usage error is a document too.
pub(super) fn answer(args: &[OsString], error: &mut clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version are answers. A closed pipe ends quietly.
        let _ = error.print();
        return ExitCode::DONE;
    }
    if let Some(meant) = meant(args, error) {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![meant.into()]),
        );
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
            error.remove(kind);
        }
    } else if let Some(line) = line_of_program(args, error) {
        // Beside a command that resembles it.
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![line.into()]),
        );
    }
    if args
        .iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json")
    {
        let command = command_of(args);
        let help = if command.is_empty() {
            "recover --help".to_owned()
        } else {
            format!("recover {command} --help")
        };
        let message = message_of(error, &command);
        let body = answers::ErrorBody {
            code: "usage",
            exit_code: 2,
            message: &message,
            hint: Some(help.as_str().into()),
            paths: &[],
        };
        let named = if command.is_empty() {
            "recover"
        } else {
            &command
        };
        let document = Document::new(named, answers::ErrorDocument { error: body }, &[]);
        // A closed pipe ends quietly.
        let _ = write_document(&document);
    }
    let plain = error.render().to_string();
    // Without the colours, where something typed is a secret.
    let _ = match redact(&plain) {
        Cow::Borrowed(_) => error.print(),
        Cow::Owned(redacted) => Stderr.write_all(redacted.as_bytes()),
    };
    ExitCode::USAGE
}

/// What was probably meant: a command that stands after no `--`, or that is called otherwise elsewhere.
fn meant(args: &[OsString], error: &clap::Error) -> Option<String> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(word) = named(ContextKind::InvalidSubcommand) {
        let known = OTHER_WORDS.iter().find(|(words, ..)| words.contains(&word));
        return known.map(|(_, command, does)| format!("'recover {command}' {does}"));
    }
    let takes_checks = ["run", "resume"].contains(&command_of(args).as_str());
    if takes_checks
        && error.kind() == ErrorKind::UnknownArgument
        && named(ContextKind::InvalidArg).is_some_and(|word| OTHER_FLAGS.contains(&word))
    {
        return Some(
            "a check is given with '--feedback NAME=CMD', such as --feedback test='cargo test'"
                .to_owned(),
        );
    }
    let word =
        named(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    if word.starts_with('-') {
        let known = OTHER_NAMES.iter().find(|(names, _)| names.contains(&word));
        return known.map(|(_, instead)| (*instead).to_owned());
    }
    let command = command_of(args);
    let at = args.iter().position(|arg| arg == word)?;
    let line = |before: &[OsString], more: &[&str]| {
        let words = before.iter().map(OsString::as_os_str);
        format!("recover {}", join(words.chain(more.iter().map(OsStr::new))))
    };
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    if ["undo", "redo"].contains(&command.as_str()) {
        return Some(format!(
            "'recover {command}' is about the last operation here; 'recover rollback --to @N' goes to a checkpoint, \
             'recover discard RUN' takes a whole run back"
        ));
    }
    if command == "rollback" && is_number && args[at - 1] == "iteration" {
        let own = &args[1..at - 1];
        return Some(format!(
            "to after iteration {word}: {}; '--iteration {word}' is to before it",
            line(own, &[&format!("iteration:{word}")])
        ));
    }
    if command == "rollback" {
        let number = if is_number { "@" } else { "" };
        let to = format!("{number}{word}");
        let before = args[1..at].iter().map(OsString::as_os_str);
        let line = before.chain([OsStr::new("--to"), OsStr::new(&to)]);
        let line = line.chain(args[at + 1..].iter().map(OsString::as_os_str));
        return Some(format!(
            "a checkpoint is named with --to: recover {}",
            join(line)
        ));
    }
    if !["run", "resume", "step"].contains(&command.as_str()) {
        return None;
    }
    if args[at..].iter().any(|arg| arg == "--") {
        let why = "the command begins after --, and a value of several words is one in quotes (a duration: 5m)";
        return Some(format!("leave out '{word}': {why}"));
    }
    let has = |flag: &str| args[1..at].iter().any(|arg| arg == flag);
    if has("--agent") && !has("--prompt") {
        let words = args[at..].iter().map(|word| word.to_string_lossy());
        let prompt = words.collect::<Vec<_>>().join(" ");
        return Some(format!(
            "a prompt is given with --prompt: {}",
            line(&args[1..at], &["--prompt", &prompt])
        ));
    }
    let own = args[1..at].iter().map(OsString::as_os_str);
    // A single word with blanks is a line for a shell.
    let shell = if at + 1 == args.len() && word.contains(' ') {
        &["--", "sh", "-c"][..]
    } else {
        &["--"]
    };
    let line = own
        .chain(shell.iter().map(OsStr::new))
        .chain(args[at..].iter().map(OsString::as_os_str));
    Some(format!("put the command after --: recover {}", join(line)))
}

/// The line that runs what stands in a command's place, where that is a program.
fn line_of_program(args: &[OsString], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let dir = std::env::current_dir().ok()?;
    Program::find(word, &dir, std::env::var_os("PATH").as_deref()).ok()?;
    let at = args.iter().position(|arg| arg == word.as_str())?;
    let before = args[1..at].iter().map(OsString::as_os_str);
    let line = before
        .chain(["run", "--"].map(OsStr::new))
        .chain(args[at..].iter().map(OsString::as_os_str));
    Some(format!(
        "to run '{word}' under supervision: recover {}",
        join(line)
    ))
}

/// The subcommands that the arguments name.
pub(super) fn command_of(args: &[OsString]) -> String {
    let mut at = generate::command();
    let mut names = Vec::new();
    let mut words = args.iter().skip(1).map(|arg| arg.to_string_lossy());
    while let Some(word) = words.next() {
        if VALUE_FLAGS.contains(&word.as_ref()) {
            words.next();
        } else if word == "--" {
            break;
        } else if !word.starts_with('-') {
            let Some(found) = at.find_subcommand(word.as_ref()) else {
                break;
            };
            names.push(found.get_name().to_owned());
            at = found.clone();
        }
    }
    names.join(" ")
}

/// The message without the usage below it, with the tip where clap has one.
fn message_of(error: &clap::Error, command: &str) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return format!("{command}: a subcommand is missing");
    }
    let text = error.render().to_string();
    let mut parts = text.split("\n\n");
    let first = parts
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    let message = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    match parts.find_map(|part| part.trim().strip_prefix("tip: ")) {
        Some(tip) => format!("{message} ({})", tip.trim()),
        None => message,
    }
}
