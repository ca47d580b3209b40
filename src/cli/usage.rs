//! What clap has to say: help and version, and wrong arguments (exit 2).

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::args::VALUE_FLAGS;
use super::args::help::UNBROKEN;
use super::generate;
use super::replies::{Document, ExitCode};
use super::ui::{colors, write_document};
use crate::engine::answers;
use crate::model::hint::join;
use crate::policy::secrets::redact;
use crate::process::{Program, Stderr};

/// Words that other tools have for what is called otherwise here: the command, and what it does.
const OTHER_WORDS: [(&[&str], &str, &str); 21] = [
    (
        &["abort", "cancel", "stop", "end", "kill", "pause"],
        "close",
        "closes a run that you are done with; Ctrl-C stops one at work",
    ),
    (
        &["history", "events", "logs", "blame"],
        "log",
        "shows what happened",
    ),
    (
        &["watch", "attach", "tail", "follow"],
        "status --watch",
        "shows a run at work, 'recover log --follow' what happens as lines",
    ),
    (
        &["reset", "revert", "back"],
        "rollback",
        "goes back to a checkpoint, 'recover discard' takes a whole run back",
    ),
    (
        &["restore", "checkout"],
        "checkpoint restore SEL --path FILE",
        "restores files of a checkpoint",
    ),
    (
        &["drop", "trash", "reject"],
        "discard",
        "takes a whole run back; recover undo brings it back",
    ),
    (
        &["commit", "merge", "apply", "keep", "add"],
        "accept",
        "commits what a run did",
    ),
    (
        &["branch", "switch"],
        "accept --branch B",
        "commits what a run did on a branch of its own",
    ),
    (
        &["rm", "remove", "delete"],
        "forget",
        "removes runs for good, with their checkpoints",
    ),
    (&["ls", "ps", "top"], "runs", "lists the runs"),
    (&["version"], "--version", "prints the version"),
    (
        &["save", "snapshot", "stash", "tag"],
        "checkpoint create",
        "records the work tree as it is, 'recover checkpoint restore' brings it back",
    ),
    (
        &["continue", "retry", "rebase"],
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
    (
        &["push", "pull", "fetch", "clone"],
        "remote",
        "shares runs through a git server",
    ),
    (
        &["ui", "tui", "gui", "dashboard"],
        "browse",
        "shows runs with their diffs and logs",
    ),
    (&["web", "html"], "report -o report.html", "writes a page"),
    (
        &["what", "why", "explain", "cost", "usage", "info"],
        "status -v",
        "says what became of a run, why, and what it cost",
    ),
    (
        &["install", "setup", "configure"],
        "init",
        "writes the project's configuration",
    ),
];

/// What people call `--feedback`.
const OTHER_FLAGS: [&str; 5] = ["--check", "--checks", "--test", "--verify", "--validate"];

/// Flags that other tools have for what is called otherwise here, of which commands (none for all), and what to give instead.
const OTHER_NAMES: [(&[&str], &[&str], &str); 12] = [
    (
        &["-n"],
        &[],
        "'--dry-run' shows what would be done, '--limit N' the newest N",
    ),
    (
        &["-f", "--force"],
        &[],
        "'--yes' answers every question; where edits or commits are in the way, the refusal names the flag",
    ),
    (
        &["-l", "--list"],
        &[],
        "'recover runs' lists the runs, 'recover list' the checkpoints",
    ),
    (
        &["-p", "--patch", "--stat", "--oneline"],
        &["log", "status", "show", "report"],
        "'recover diff A B' lists what changed between two checkpoints, with --patch line by line",
    ),
    (
        &["-p", "--model"],
        &["run", "resume"],
        "'--prompt TEXT' is for --agent; flags of an agent go after --, behind its name",
    ),
    (
        &["-i", "--loop", "--loops", "--repeat", "--times"],
        &["run", "resume"],
        "'--iterations N' makes N rounds of work, '--attempts N' tries each until it passes",
    ),
    (
        &["--fix"],
        &["doctor"],
        "'--repair' mends what is safe to mend",
    ),
    (
        &["--since", "--until", "--after", "--before"],
        &["log", "runs"],
        "'--limit N' shows the newest N",
    ),
    (&["--name", "--id"], &[], "'--run ID' names a run"),
    (&["--dir", "--cwd"], &[], "'-C DIR' works in another folder"),
    (
        &["--background", "--detach", "-d"],
        &["run", "resume"],
        "a shell does that: nohup recover run … &",
    ),
    (
        &["--hard", "--soft", "--mixed"],
        &[],
        "leave it out: files, index and the run's own commits are restored together, and recover undo reverts that",
    ),
];

/// Commands that take no such word, and how it is given.
const OTHER_PLACES: [(&[&str], &str); 4] = [
    (
        &["config"],
        "'recover config' lists every setting with its value; one is set in .ultraplan/recover.toml",
    ),
    (
        &["classify"],
        "it reads what a command printed: recover classify < FILE",
    ),
    (
        &[
            "remote fetch",
            "remote push",
            "remote status",
            "remote claim",
            "remote release",
            "remote prune",
            "remote check",
        ],
        "a remote is named with --remote NAME, a run with --run RUN",
    ),
    (&["accept", "discard"], "it is about one run at a time"),
];

/// Flags that some give without the command.
const FLAGS_OF_ROLLBACK: [&str; 3] = ["--to", "--iteration", "--full"];

/// Prints it; with `--json` a usage error is a document too.
pub(super) fn answer(args: &[OsString], error: &mut clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version are answers. A closed pipe ends quietly.
        let mut stdout = std::io::stdout();
        let text = match error.render() {
            text if colors(stdout.is_terminal()) => text.ansi().to_string(),
            text => text.to_string(),
        };
        let _ = stdout.write_all(text.replace(UNBROKEN, " ").as_bytes());
        return ExitCode::DONE;
    }
    // A flag that is not known is hardly ever meant as a value.
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
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
            message,
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
        if command_of(args) == "checkpoint" && ["rm", "remove", "delete"].contains(&word) {
            return Some("'recover checkpoint prune' removes old checkpoints".to_owned());
        }
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
    let command = command_of(args);
    if word.starts_with('-') && !(command.is_empty() && FLAGS_OF_ROLLBACK.contains(&word)) {
        let is_meant = |of: &[&str]| of.is_empty() || of.contains(&command.as_str());
        let mut known = OTHER_NAMES.iter().filter(|(_, of, _)| is_meant(of));
        let known = known.find(|(names, ..)| names.contains(&word));
        return known.map(|(.., instead)| (*instead).to_owned());
    }
    let at = args.iter().position(|arg| arg == word)?;
    if word.starts_with('-') {
        return Some(format!(
            "that is a flag of rollback: {}",
            rollback_line(&args[1..])
        ));
    }
    let line = |before: &[OsString], more: &[&str]| {
        let words = before.iter().map(OsString::as_os_str);
        format!("recover {}", join(words.chain(more.iter().map(OsStr::new))))
    };
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    if ["undo", "redo"].contains(&command.as_str()) {
        return Some(format!(
            "'recover {command}' is about the last operation here; 'recover rollback --to @N' goes to a checkpoint, \
             'recover discard RUN' reverts a whole run"
        ));
    }
    if command == "rollback" && is_number && args[at - 1] == "iteration" {
        let own = &args[1..at - 1];
        return Some(format!(
            "to after iteration {word}: {}; '--iteration {word}' restores the state before it",
            line(own, &[&format!("iteration:{word}")])
        ));
    }
    if command == "rollback" && word == "iteration" {
        let own: Vec<OsString> = args[1..]
            .iter()
            .filter(|arg| *arg != "rollback")
            .cloned()
            .collect();
        return Some(format!(
            "a checkpoint is named with --to: {}",
            rollback_line(&own)
        ));
    }
    if command == "runs" {
        return Some(format!("of one run: recover status {word}"));
    }
    if let Some((.., instead)) = OTHER_PLACES
        .iter()
        .find(|(of, _)| of.contains(&command.as_str()))
    {
        return Some((*instead).to_owned());
    }
    let is_checkpoint = is_number
        || ["latest", "good", "initial"].contains(&word)
        || ["@", "ckpt_", "iteration:"]
            .iter()
            .any(|begin| word.starts_with(begin));
    if command == "rollback" && !is_checkpoint {
        return Some(format!(
            "a run is named with --run, a checkpoint with --to: {}",
            line(&args[1..at], &["--run", word])
        ));
    }
    if command == "rollback" {
        let number = if is_number { "@" } else { "" };
        let to = format!("{number}{word}");
        let before = args[1..at].iter().map(OsString::as_os_str);
        let line = before.chain([OsStr::new("--to"), OsStr::new(&to)]);
        let line = line.chain(args[at + 1..].iter().map(OsString::as_os_str));
        return Some(format!(
            "a checkpoint is named with --to, a run with --run: recover {}",
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
    let program = program_of(word).unwrap_or_else(|| word.to_owned());
    let line = own
        .chain(
            shell
                .iter()
                .copied()
                .chain([program.as_str()])
                .map(OsStr::new),
        )
        .chain(args[at + 1..].iter().map(OsString::as_os_str));
    Some(format!("put the command after --: recover {}", join(line)))
}

/// The words as those of a rollback: `iteration 3` is a checkpoint.
fn rollback_line(words: &[OsString]) -> String {
    let mut line: Vec<String> = vec!["rollback".to_owned()];
    for word in words.iter().map(|word| word.to_string_lossy()) {
        match line.last_mut() {
            Some(last) if last == "iteration" => *last = format!("iteration:{word}"),
            Some(last) if word == "iteration" && last == "rollback" => {
                line.extend(["--to".to_owned(), word.into_owned()]);
            }
            _ => line.push(word.into_owned()),
        }
    }
    format!("recover {}", join(line.iter().map(OsStr::new)))
}

/// The program that a word names: with its folder where it lies here and not on `PATH`.
fn program_of(word: &str) -> Option<String> {
    let dir = std::env::current_dir().ok()?;
    let path = std::env::var_os("PATH");
    let beside = format!("./{word}");
    let is_there = |name: &str| Program::find(name, &dir, path.as_deref()).is_ok();
    [word.to_owned(), beside]
        .into_iter()
        .find(|name| is_there(name))
}

/// The line that runs what stands in a command's place, where that is a program.
fn line_of_program(args: &[OsString], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let program = program_of(word)?;
    let at = args.iter().position(|arg| arg == word.as_str())?;
    let before = args[1..at].iter().map(OsString::as_os_str);
    let line = before
        .chain(["run", "--", &program].map(OsStr::new))
        .chain(args[at + 1..].iter().map(OsString::as_os_str));
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
