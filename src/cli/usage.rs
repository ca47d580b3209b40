//! What clap has to say: help and version, and wrong arguments (exit 2).

use std::ffi::OsString;

use clap::error::ErrorKind;

use super::args::VALUE_FLAGS;
use super::exit::ExitCode;
use super::generate;
use super::replies::Document;
use super::replies::error::{ErrorBody, ErrorDocument};
use super::ui::write_json;

/// Prints it; with `--json` a usage error is a document too.
pub fn answer(args: &[OsString], error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version are answers. A closed pipe ends quietly.
        let _ = error.print();
        return ExitCode::Done;
    }
    if args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json") {
        let command = command_of(args);
        let help = if command.is_empty() { "recover --help".to_owned() } else { format!("recover {command} --help") };
        let message = message_of(error, &command);
        let body = ErrorBody { code: "usage", exit_code: 2, message: &message, hint: Some(&help), paths: &[] };
        let named = if command.is_empty() { "recover" } else { &command };
        let document = Document::new(named, ErrorDocument { error: body }, &[]);
        // A closed pipe ends quietly.
        let _ = write_json(&document);
    }
    let _ = error.print();
    ExitCode::Usage
}

/// The subcommands that the arguments name.
pub fn command_of(args: &[OsString]) -> String {
    let mut at = generate::command();
    let mut names = Vec::new();
    let mut words = args.iter().skip(1).map(|arg| arg.to_string_lossy());
    while let Some(word) = words.next() {
        if VALUE_FLAGS.contains(&word.as_ref()) {
            words.next();
        } else if word == "--" {
            break;
        } else if !word.starts_with('-') {
            let Some(found) = at.find_subcommand(word.as_ref()) else { break };
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
    let first = parts.next().unwrap_or_default().trim_start_matches("error: ");
    let message = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    match parts.find_map(|part| part.trim().strip_prefix("tip: ")) {
        Some(tip) => format!("{message} ({})", tip.trim()),
        None => message,
    }
}
