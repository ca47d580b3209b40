//! Help: which commands belong together, examples below each, and what the short one leaves out.
//!
//! `-h` fits 24 lines of 80 columns: flags of every day have `hide_short_help` unset, and the first paragraph of what is
//! said of each fits a line. `--help` has everything.

use std::fmt::Write as _;
use std::io;

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Command, CommandFactory};
use rustix::termios::tcgetwinsize;

use super::super::terminal_text::wrapped;
use super::Cli;
use super::examples::{self, Example};

const HEADER: Style = AnsiColor::Green.on_default().bold();
const LITERAL: Style = AnsiColor::Cyan.on_default().bold();

/// The colours of help and of wrong arguments: those of the terminal's sixteen that cargo has.
pub(super) const STYLES: Styles = Styles::styled()
    .header(HEADER)
    .usage(HEADER)
    .literal(LITERAL)
    .placeholder(AnsiColor::Cyan.on_default())
    .valid(LITERAL)
    .invalid(AnsiColor::Yellow.on_default().bold())
    .error(AnsiColor::Red.on_default().bold());

/// The commands by what they are for, in the order in which a user meets them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["run", "init", "demo"]),
    ("Look", &["status", "log", "report", "runs", "browse"]),
    (
        "Go back",
        &["rollback", "undo", "redo", "checkpoint", "bisect"],
    ),
    (
        "Go on",
        &[
            "resume",
            "retry-status",
            "limits",
            "service",
            "manual-fix",
            "accept",
            "discard",
            "close",
        ],
    ),
    (
        "Loops and scripts",
        &["attempt", "step", "hook", "plugin", "mcp", "classify"],
    ),
    (
        "Plumbing",
        &[
            "agents",
            "config",
            "trust",
            "doctor",
            "forget",
            "restore-project",
            "import",
            "sync",
            "remote",
            "worker",
            "completions",
            "schema",
        ],
    ),
];

/// A paragraph, which is broken where the terminal ends.
const EXIT_CODES: &str = "\
    Exit codes: 0 done; 1 failed; 2 usage or configuration; 3 done in part; 4 not found; 5 attempt failed, retry allowed; \
    6 wait; 7 budget exhausted; 8 a person is needed; 9 gave up waiting; 10 no state or repository; 11 locked; 12 corrupt; \
    13 refused; 14 no space; 15 newer state; 16 an operation was interrupted; 70 a bug; 100 checks failed; \
    129/130/143 interrupted.";

/// Where all the rest is.
const GUIDE: &str = "The guide: man recover-guide; recover man DIR writes the man pages into DIR.";

/// How the top level is laid out: its commands by their groups stand in `before-help`.
const ROOT: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// The whole tree of commands, with examples.
pub(crate) fn command(name: &str) -> Command {
    let mut root = Cli::command().bin_name(name.to_owned());
    root.build();
    with_examples(root, "")
}

/// The same for who asks for help, or typed something wrong.
pub(in crate::cli) fn for_people(name: &str) -> Command {
    let root = command(name);
    let (short, long) = (groups_in_short(), groups_in_full(&root));
    let footer = format!("{}\n\n{GUIDE}\n\n{EXIT_CODES}", daily());
    // They stand in groups.
    root.mut_subcommands(|sub| sub.hide(true))
        .override_usage(format!("{name} [OPTIONS] [COMMAND]"))
        .help_template(ROOT)
        .before_help(short)
        .after_help(format!(
            "recover COMMAND -h explains one command; --help has examples of it.\n{GUIDE}"
        ))
        .before_long_help(long)
        .after_long_help(footer)
}

fn is_general(arg: &clap::Arg) -> bool {
    arg.get_id() == "help" || arg.get_id() == "version"
}

fn with_examples(command: Command, words: &str) -> Command {
    let below = |sub: Command| {
        let words = format!("{words} {}", sub.get_name());
        with_examples(sub, words.trim_start())
    };
    let command = command.mut_subcommands(below);
    let command = command.mut_args(|arg| {
        if is_general(&arg) {
            arg.help_heading("Global options")
        } else {
            arg
        }
    });
    let own = examples::of(words);
    if own.is_empty() {
        command
    } else {
        command.after_long_help(section(own))
    }
}

/// What is typed every day.
pub(in crate::cli) fn daily() -> String {
    section(examples::DAILY)
}

/// A space at which clap must not break a line: half a command that is pasted would be another one.
pub(in crate::cli) const UNBROKEN: &str = "\u{e000}";

fn section(examples: &[Example]) -> String {
    let mut text = format!("{HEADER}Examples:{HEADER:#}");
    for (command, meaning) in examples {
        // A string takes whatever is written.
        let _ = write!(text, "\n  # {meaning}\n  {command}");
    }
    text.replace(' ', UNBROKEN)
}

/// The names alone, a line a group where it is wide enough.
fn groups_in_short() -> String {
    let width = GROUPS
        .iter()
        .map(|(title, _)| title.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("{LITERAL}{name}{LITERAL:#}"))
            .collect();
        let blank = " ".repeat(width - title.len());
        // A string takes whatever is written.
        let _ = writeln!(
            text,
            "  {HEADER}{title}{HEADER:#}{blank}  {}",
            names.join(", ")
        );
    }
    let columns = tcgetwinsize(io::stdout())
        .ok()
        .filter(|size| size.ws_col > 0)
        .map_or(80, |size| size.ws_col);
    wrapped(&text, columns.min(80).into())
}

/// A section a group: each command with what it does.
fn groups_in_full(root: &Command) -> String {
    let width = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .map(|name| name.len())
        .max()
        .unwrap_or(0);
    let about = |name: &str| {
        root.find_subcommand(name)
            .and_then(Command::get_about)
            .map(ToString::to_string)
    };
    GROUPS
        .iter()
        .fold(String::new(), |mut text, (title, names)| {
            let _ = writeln!(text, "{HEADER}{title}:{HEADER:#}");
            for name in *names {
                let _ = writeln!(
                    text,
                    "  {LITERAL}{name:width$}{LITERAL:#}  {}",
                    about(name).unwrap_or_default()
                );
            }
            text.push('\n');
            text
        })
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::cli::args::expand_aliases;

    /// Every command that is shown, with its words after `recover`.
    fn every(command: &Command, words: &str, all: &mut Vec<(String, Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let words = format!("{words} {}", sub.get_name()).trim().to_owned();
            all.push((words.clone(), sub.clone()));
            every(sub, &words, all);
        }
    }

    fn commands() -> Vec<(String, Command)> {
        let mut all = Vec::new();
        every(&command("recover"), "", &mut all);
        all
    }

    #[test]
    fn short_help_fits_a_small_terminal() {
        let root = for_people("recover")
            .term_width(80)
            .render_help()
            .to_string();
        let all = commands()
            .into_iter()
            .map(|(words, sub)| (words, sub.term_width(80).render_help().to_string()));
        let long: Vec<String> = all
            .chain([(String::new(), root)])
            .filter(|(_, text)| {
                text.lines().count() > 24 || text.lines().any(|line| line.chars().count() > 80)
            })
            .map(|(words, text)| format!("{} lines: recover {words}\n{text}", text.lines().count()))
            .collect();
        assert!(long.is_empty(), "{}", long.join("\n"));
    }

    // Longer ones are broken by most terminals.
    #[test]
    fn examples_fit_a_small_terminal() {
        let all = commands()
            .into_iter()
            .flat_map(|(words, _)| examples::of(&words))
            .chain(examples::DAILY);
        for (command, meaning) in all {
            assert!(command.len() <= 77 && meaning.len() <= 76, "{command}");
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let root = command("recover");
        let mut shown: Vec<&str> = root
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(Command::get_name)
            .collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        for (words, sub) in commands() {
            let help = sub.clone().render_long_help().to_string();
            let help = help.replace(UNBROKEN, " ");
            let examples: Vec<&str> = help
                .lines()
                .filter_map(|line| line.strip_prefix("  recover "))
                .collect();
            assert!(!examples.is_empty(), "recover {words} has no example");
            for example in examples {
                // The shell's part of the line: what is chained or redirected, and the next column.
                let line = example
                    .split(" && ")
                    .next()
                    .unwrap_or(example)
                    .split(['<', '>'])
                    .next()
                    .unwrap_or(example);
                let line = line.split("   ").next().unwrap_or(line);
                let args = shlex::split(&format!("recover {line}")).expect(line);
                let args = expand_aliases(args.into_iter().map(Into::into)).into_iter();
                let args: Vec<_> = args
                    .map(|arg| if arg == "$?" { "1".into() } else { arg })
                    .collect();
                let parsed = command("recover").try_get_matches_from(&args);
                let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
                assert!(
                    parsed.is_ok(),
                    "recover {words}: {example}\n{}",
                    parsed.unwrap_err()
                );
            }
        }
    }
}
