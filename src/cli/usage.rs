//! What clap has to say: help and version, and wrong arguments (exit 2).

mod tips;

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
use crate::policy::text::misspelt;
use crate::process::{Program, Stderr};

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
    let (command, mut called) = called(args);
    if let Some(named) = bytes_named(args, error, &mut called) {
        *error = named;
    }
    // A flag that is not known is hardly ever meant as a value.
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    drop_far_guesses(error, &called);
    // That of clap shows an option that it guesses as if it were required.
    if error.get(ContextKind::Usage).is_some() {
        let usage = ContextValue::StyledStr(called.render_usage());
        error.insert(ContextKind::Usage, usage);
    }
    if let Some(meant) = meant(args, error, &command) {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![meant.into()]),
        );
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
            error.remove(kind);
        }
    } else if command.is_empty()
        && let Some(line) = line_of_program(args, error)
    {
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

/// The error with the argument that is not UTF-8, where that is what is wrong.
fn bytes_named(
    args: &[OsString],
    error: &clap::Error,
    called: &mut clap::Command,
) -> Option<clap::Error> {
    let is_bytes = |arg: &&OsString| arg.to_str().is_none();
    let arg = args
        .iter()
        .find(is_bytes)
        .filter(|_| error.kind() == ErrorKind::InvalidUtf8)?;
    let message = format!(
        "the argument '{}' is not UTF-8",
        arg.as_encoded_bytes().escape_ascii()
    );
    Some(called.error(ErrorKind::InvalidUtf8, message))
}

/// Drops those of clap's guesses that are no slip of the pen and do not begin with what was typed.
fn drop_far_guesses(error: &mut clap::Error, called: &clap::Command) {
    let is_slip = |typed: &str, guess: &str| misspelt(typed, std::iter::once(guess)).is_some();
    let begins = |typed: &str, guess: &str| typed.len() > 2 && guess.starts_with(typed);
    if let (Some(ContextValue::String(typed)), Some(ContextValue::String(guess))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::SuggestedArg),
    ) {
        let long = guess.strip_prefix("--");
        let mut all = called.get_arguments();
        // `--all` is hardly ever the beginning of `--allow-home`.
        let is_rare = all.any(|arg| {
            arg.get_long() == long && arg.is_global_set() && arg.is_hide_short_help_set()
        });
        if !is_slip(typed, guess) && (is_rare || !begins(typed, guess)) {
            error.remove(ContextKind::SuggestedArg);
        }
    }
    if let (Some(ContextValue::String(typed)), Some(ContextValue::Strings(guesses))) = (
        error.get(ContextKind::InvalidSubcommand),
        error.get(ContextKind::SuggestedSubcommand),
    ) {
        let is_near = |guess: &&String| is_slip(typed, guess) || begins(typed, guess);
        let near: Vec<String> = guesses.iter().filter(is_near).cloned().collect();
        error.remove(ContextKind::SuggestedSubcommand);
        if !near.is_empty() {
            error.insert(
                ContextKind::SuggestedSubcommand,
                ContextValue::Strings(near),
            );
        }
    }
}

/// What was probably meant, where that can be known.
fn meant(args: &[OsString], error: &clap::Error, command: &str) -> Option<String> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(word) = named(ContextKind::InvalidSubcommand) {
        return tips::of(tips::COMMANDS, command, word);
    }
    let arg = named(ContextKind::InvalidArg);
    let word = match error.kind() {
        ErrorKind::MissingRequiredArgument => return meant_by_missing(args, command),
        // A checkpoint that is none.
        ErrorKind::ValueValidation if arg?.starts_with('[') => named(ContextKind::InvalidValue)?,
        ErrorKind::UnknownArgument if arg?.starts_with('-') => {
            return meant_by_option(args, command, arg?);
        }
        ErrorKind::UnknownArgument => arg?,
        _ => return None,
    };
    // Behind the command's own name.
    let last = command.rsplit(' ').next()?;
    let begin = args
        .iter()
        .position(|arg| arg == last)
        .map_or(1, |at| at + 1);
    let at = begin + args[begin..].iter().position(|arg| arg == word)?;
    if ["checkpoint diff", "checkpoint restore"].contains(&command) {
        // git's dashes before files are none of ours.
        let is_own = |arg: &&OsString| *arg != "--";
        let own = args[1..at].iter().filter(is_own).map(OsString::as_os_str);
        let files = args[at..].iter().filter(is_own).map(OsString::as_os_str);
        let line = join(own.chain([OsStr::new("--path")]).chain(files));
        return Some(format!("a file is named with --path: recover {line}"));
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    tips::of(tips::WORDS, command, word).or_else(|| match command {
        "rollback" => Some(meant_by_rollback(args, at, word)),
        "run" | "resume" | "step" | "bisect" => Some(meant_by_command(args, at, command)),
        _ => None,
    })
}

/// Where what is missing was typed.
fn meant_by_missing(args: &[OsString], command: &str) -> Option<String> {
    let is_option = |arg: &OsString| arg.to_string_lossy().starts_with('-');
    let is_run = |arg: &OsString| arg.to_string_lossy().split('=').next() == Some("--run");
    let (last, before) = args.split_last()?;
    let word = last.to_string_lossy();
    match command {
        "forget" if args.iter().any(is_run) => {
            Some("a run to forget is named without --run: recover forget RUN".to_owned())
        }
        "bisect"
            if !args.iter().any(|arg| arg == "--")
                && !is_option(last)
                && !before.last().is_some_and(is_option)
                && (word.contains('/') || program_of(&word).is_some()) =>
        {
            Some(after_dashes(&before[1..], &args[before.len()..]))
        }
        _ => None,
    }
}

/// An option that the command does not have.
fn meant_by_option(args: &[OsString], command: &str, typed: &str) -> Option<String> {
    let root = generate::command();
    let takes = |name: &&str| {
        let long = typed.strip_prefix("--");
        let own = root.find_subcommand(name).into_iter();
        own.flat_map(clap::Command::get_arguments)
            .any(|arg| !arg.is_global_set() && long.is_some() && arg.get_long() == long)
    };
    // Some give those of a command without it.
    let mut without = ["rollback", "run"]
        .into_iter()
        .filter(|_| command.is_empty());
    let own = &args[1..];
    match without.find(takes) {
        Some("rollback") => Some(format!(
            "that is a flag of rollback: {}",
            rollback_line(own)
        )),
        Some(other) => {
            let words = own.iter().map(OsString::as_os_str);
            let line = join([OsStr::new(other)].into_iter().chain(words));
            Some(format!("that is a flag of {other}: recover {line}"))
        }
        None => {
            let digits = typed.trim_start_matches('-');
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let typed = if is_number { "--tail" } else { typed };
            tips::of(tips::OPTIONS, command, typed)
        }
    }
}

/// A word where a rollback takes none: a checkpoint or a run.
fn meant_by_rollback(args: &[OsString], at: usize, word: &str) -> String {
    let line = |before: &[OsString], more: &[&str]| {
        let words = before.iter().map(OsString::as_os_str);
        format!("recover {}", join(words.chain(more.iter().map(OsStr::new))))
    };
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && args[at - 1] == "iteration" {
        let own = &args[1..at - 1];
        return format!(
            "to after iteration {word}: {}; '--iteration {word}' restores the state before it",
            line(own, &[&format!("iteration:{word}")])
        );
    }
    if word == "iteration" {
        let own: Vec<OsString> = args[1..]
            .iter()
            .filter(|arg| *arg != "rollback")
            .cloned()
            .collect();
        return format!("a checkpoint is named with --to: {}", rollback_line(&own));
    }
    let is_checkpoint = is_number
        || ["latest", "good", "initial"].contains(&word)
        || ["@", "ckpt_", "iteration:"]
            .iter()
            .any(|begin| word.starts_with(begin));
    if !is_checkpoint {
        return format!(
            "a run is named with --run, a checkpoint with --to: {}",
            line(&args[1..at], &["--run", word])
        );
    }
    let number = if is_number { "@" } else { "" };
    let to = format!("{number}{word}");
    let before = args[1..at].iter().map(OsString::as_os_str);
    let words = before.chain([OsStr::new("--to"), OsStr::new(&to)]);
    let words = words.chain(args[at + 1..].iter().map(OsString::as_os_str));
    format!(
        "a checkpoint is named with --to, a run with --run: recover {}",
        join(words)
    )
}

/// A word where only a command after its dashes comes next.
fn meant_by_command(args: &[OsString], at: usize, command: &str) -> String {
    let word = args[at].to_string_lossy();
    if args[at..].iter().any(|arg| arg == "--") {
        let why = "the command begins after --, and a value of several words is one in quotes (a duration: 5m)";
        return format!("leave out '{word}': {why}");
    }
    let has = |flag: &str| args[1..at].iter().any(|arg| arg == flag);
    if has("--agent") && !has("--prompt") {
        let words = args[at..].iter().map(|word| word.to_string_lossy());
        let prompt = words.collect::<Vec<_>>().join(" ");
        let own = args[1..at].iter().map(OsString::as_os_str);
        let line = join(own.chain(["--prompt", &prompt].map(OsStr::new)));
        return format!("a prompt is given with --prompt: recover {line}");
    }
    let before = args[at - 1].to_string_lossy();
    let further = args[..at].iter().rev().nth(1);
    let is_value = further.is_some_and(|arg| arg.to_string_lossy().starts_with('-'));
    match command {
        // git's own word for it.
        "bisect" if before == "run" => after_dashes(&args[1..at - 1], &args[at..]),
        // The program was taken for the run.
        "bisect" if !is_value && program_of(&before).is_some() => {
            after_dashes(&args[1..at - 1], &args[at - 1..])
        }
        _ => after_dashes(&args[1..at], &args[at..]),
    }
}

/// The line with the command after its dashes; a single word with blanks is a line for a shell.
fn after_dashes(own: &[OsString], command: &[OsString]) -> String {
    let first = command[0].to_string_lossy();
    let dashes = if command.len() == 1 && first.contains(' ') {
        &["--", "sh", "-c"][..]
    } else {
        &["--"]
    };
    let program = program_of(&first).unwrap_or_else(|| first.into_owned());
    let words = own.iter().map(OsString::as_os_str);
    let words = words.chain(
        dashes
            .iter()
            .copied()
            .chain([program.as_str()])
            .map(OsStr::new),
    );
    let words = words.chain(command[1..].iter().map(OsString::as_os_str));
    format!("put the command after --: recover {}", join(words))
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
    called(args).0
}

/// The same, and the last of them.
fn called(args: &[OsString]) -> (String, clap::Command) {
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
    (names.join(" "), at)
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
