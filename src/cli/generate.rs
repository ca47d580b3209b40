//! Man pages, made from the clap tree.

use std::path::Path;
use std::{fs, io};

use anyhow::Context as _;
use clap::builder::StyledStr;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::config;
use crate::engine::{Error, Result};

use super::args::help;
use super::replies::ExitCode;
use super::schema;

/// What `recover` reads from the environment.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("RECOVER_RUN_ID", "The run to work on, as --run names it."),
    (
        "RECOVER_SESSION",
        "The session whose budget the run shares; without it a run is a session of its own.",
    ),
    (
        "RECOVER_STATE_DIR",
        "The state directory, as --state-dir names it.",
    ),
    (
        "RECOVER_MAX_ATTEMPTS, RECOVER_COOLDOWN, RECOVER_TIMEOUT",
        "Override the configured limits.",
    ),
    (
        "RECOVER_WAIT",
        "How long run and resume wait at most in all, as their --wait says it.",
    ),
    ("RECOVER_SAFE_MODE", "Overrides the configured safe mode."),
    (
        "RECOVER_LOG",
        "What is logged on stderr, such as debug; as -v, with the filters of the tracing library.",
    ),
    ("NO_COLOR", "No colour, whatever the terminal."),
    (
        "HOME",
        "The home folder, which is never rolled back as a whole.",
    ),
];

/// What `recover` keeps where.
const FILES: [(&str, &str); 5] = [
    (
        ".ultraplan/recover.toml",
        "The configuration; recover init writes it with every key and its default.",
    ),
    (
        ".ultraplan/state/events.jsonl",
        "The ledger: everything that has happened, one event a line; from 8 MiB on the older lines are packed (recover log reads them).",
    ),
    (
        ".ultraplan/state/recovery.json",
        "The error count and the cooldown, for loops that read files.",
    ),
    (
        ".ultraplan/state/recover/runs/",
        "Logs and prompts of each run; report.md where it failed or needs a person.",
    ),
    (
        "refs/recover/",
        "The checkpoints: ordinary commits in the repository's own object store.",
    ),
];

/// The whole clap tree.
pub fn command() -> clap::Command {
    help::command("recover")
}

/// Writes the man pages into `folder`, one a command.
pub(super) fn man_pages(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    pages(&command(), None, folder)?;
    let others = [
        ("recover.toml.5", configuration_page()),
        ("recover-guide.7", guide_page(include_str!("guide.md"))),
        ("recover-json.7", documents_page()),
    ];
    for (name, page) in others {
        let file = folder.join(name);
        fs::write(&file, page.render())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// A page about what is no command.
fn page_of(name: &str, section: &str, about: &str, description: &str) -> Roff {
    let mut roff = Roff::new();
    let source = format!("recover {}", env!("CARGO_PKG_VERSION"));
    roff.control(
        "TH",
        [&name.to_uppercase(), section, "", &source, "recover"],
    );
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {about}"))]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(description)]);
    roff
}

/// `recover.toml(5)`: every key of the configuration.
fn configuration_page() -> Roff {
    let description = "A project's file is .ultraplan/recover.toml; recover init writes it. The user's own is \
                       ~/.config/recover/config.toml ($XDG_CONFIG_HOME). Flags go before the environment, then a task's \
                       section, the project's file, the user's, the preset and the default; recover config --origins \
                       shows which value is in force. Durations read 500ms, 90s, 10m, 2h, 7d; sizes 100KiB, 50MiB, 10MB.";
    let mut roff = page_of(
        "recover.toml",
        "5",
        "the configuration of recover",
        description,
    );
    for section in config::reference() {
        roff.control("SH", [section.title.as_str()]);
        roff.text([roman(section.doc)]);
        for key in section.keys {
            let default = if key.default.is_empty() {
                String::new()
            } else {
                format!(" [{}]", key.default)
            };
            roff.control("TP", []);
            roff.text([bold(key.name), roman(format!(" = {}{default}", key.takes))]);
            roff.text([roman(key.meaning)]);
        }
    }
    recipes(&mut roff);
    pages_named(
        &mut roff,
        &[
            ("recover", "(1)"),
            ("recover-init", "(1)"),
            ("recover-config", "(1)"),
        ],
    );
    roff
}

/// Ways to be notified, ready to be copied into the user's own file.
fn recipes(roff: &mut Roff) {
    roff.control("SH", ["NOTIFICATIONS"]);
    roff.text([roman(
        "What [notify] command starts has 10 s. Nothing waits for it; that it failed stands in notify.log beside the run's \
         logs and nowhere else. An end that needs a person is needs_person, every other one ended. It reads the document \
         notify on its input (recover schema notify); recover run --notify CMD is for one run.",
    )]);
    for recipe in config::NOTIFY_RECIPES {
        roff.control("SS", [recipe.title]);
        roff.control("nf", []);
        for line in recipe.toml.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
}

/// `recover-guide(7)`, from a page of headings, paragraphs, lists and commands.
fn guide_page(guide: &str) -> Roff {
    let (description, sections) = guide.split_once("\n## ").unwrap_or((guide, ""));
    let mut roff = page_of(
        "recover-guide",
        "7",
        "how to work with recover",
        &description.replace('\n', " "),
    );
    for section in sections.split("\n## ") {
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        roff.control("SH", [title.to_uppercase().as_str()]);
        for (number, part) in body.split("```").enumerate() {
            match part.split_once('\n') {
                // Its first line names the language.
                Some((_, commands)) if number % 2 == 1 => {
                    roff.control("PP", []).control("EX", []);
                    for line in commands.lines() {
                        roff.text([roman(line)]);
                    }
                    roff.control("EE", []);
                }
                _ => part
                    .split("\n\n")
                    .for_each(|paragraph| prose(&mut roff, paragraph.trim())),
            }
        }
    }
    pages_named(&mut roff, &[("recover", "(1)"), ("recover.toml", "(5)")]);
    roff
}

/// A paragraph, or the items of a list, with what is quoted in bold.
fn prose(roff: &mut Roff, paragraph: &str) {
    let is_list = paragraph.starts_with("- ");
    let items = format!("\n{paragraph}");
    for item in items
        .split(if is_list { "\n- " } else { "\n\n" })
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        if is_list {
            roff.control("IP", ["\\(bu", "2"]);
        } else {
            roff.control("PP", []);
        }
        let pieces = item
            .split('`')
            .map(|piece| piece.replace('\n', " "))
            .enumerate();
        let pieces = pieces.map(|(at, piece)| {
            if at % 2 == 1 {
                bold(piece)
            } else {
                roman(piece)
            }
        });
        roff.text(pieces.collect::<Vec<_>>());
    }
}

/// `recover-json(7)`: the fields of every document.
fn documents_page() -> Roff {
    let description = "With --json a command prints one document on stdout, and nothing else there. Each begins with \
                       schema_version and command, and has warnings where there are any. Fields may be added; none is \
                       renamed or removed without another schema_version. recover schema COMMAND prints the JSON Schema.";
    let mut roff = page_of(
        "recover-json",
        "7",
        "the documents of recover --json",
        description,
    );
    for (title, fields) in schema::fields() {
        roff.control("SH", [title.as_str()]);
        for (name, takes) in fields {
            roff.control("TP", []);
            roff.text([bold(name)]);
            roff.text([roman(takes)]);
        }
    }
    pages_named(&mut roff, &[("recover", "(1)"), ("recover-schema", "(1)")]);
    roff
}

/// The page of `command`, and those below it.
fn pages(command: &clap::Command, parent: Option<&clap::Command>, folder: &Path) -> Result<()> {
    let file = folder.join(format!("{}.1", file_name(command)));
    let failed = |error| Error::io(format!("cannot write {}", file.display()), error);
    let text = page(command, parent).map_err(failed)?;
    fs::write(&file, text).map_err(failed)?;
    shown(command).try_for_each(|sub| pages(sub, Some(command), folder))
}

fn page(command: &clap::Command, parent: Option<&clap::Command>) -> io::Result<Vec<u8>> {
    // Global flags are described once, on recover(1).
    let own = command
        .clone()
        .display_name(file_name(command))
        .mut_args(|arg| {
            let hide = arg.is_hide_set()
                || (parent.is_some() && (arg.is_global_set() || arg.get_id() == "help"));
            arg.hide(hide)
        });
    let has_options = own.get_arguments().any(|arg| !arg.is_hide_set());
    let has_subcommands = shown(command).next().is_some();
    let man = Man::new(own)
        .title(file_name(command).to_uppercase())
        .date("")
        .source(format!("recover {}", env!("CARGO_PKG_VERSION")))
        .manual("recover");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    if has_subcommands {
        man.render_subcommands_section(&mut text)?;
    }
    if has_options {
        man.render_options_section(&mut text)?;
    }
    let own = match parent {
        Some(_) => {
            let help = command.get_after_long_help().or(command.get_after_help());
            help.map(ToString::to_string)
        }
        None => Some(StyledStr::from(help::daily()).to_string()),
    };
    own.map_or(Ok(()), |own| {
        examples(&own.replace(help::UNBROKEN, " ")).to_writer(&mut text)
    })?;
    if parent.is_none() {
        listed(
            "EXIT STATUS",
            ExitCode::DOCUMENTED
                .iter()
                .map(|(code, meaning)| (code.number().to_string(), *meaning)),
        )
        .to_writer(&mut text)?;
        listed("ENVIRONMENT", ENVIRONMENT).to_writer(&mut text)?;
        listed("FILES", FILES).to_writer(&mut text)?;
    }
    see_also(command, parent).to_writer(&mut text)?;
    Ok(text)
}

/// What stands below the options in `--help`, with its lines as they are.
fn examples(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    for line in text.trim_start_matches("Examples:\n").lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

/// `recover checkpoint create`.
fn words(command: &clap::Command) -> String {
    command
        .get_bin_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned()
}

/// `recover-checkpoint-create`.
fn file_name(command: &clap::Command) -> String {
    words(command).replace(' ', "-")
}

fn synopsis(command: &clap::Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for (number, line) in usage.trim_start_matches("Usage:").lines().enumerate() {
        if number > 0 {
            roff.control("br", []);
        }
        let name = words(command);
        let rest = line.trim().strip_prefix(&name).unwrap_or(line).to_owned();
        roff.text([bold(name), roman(rest)]);
    }
    roff
}

fn listed<T: Into<String>>(
    title: &str,
    entries: impl IntoIterator<Item = (T, &'static str)>,
) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning)]);
    }
    roff
}

fn see_also(command: &clap::Command, parent: Option<&clap::Command>) -> Roff {
    let above = parent.map(file_name);
    let root = above
        .clone()
        .filter(|name| name != "recover")
        .map(|_| "recover".to_owned());
    let beside = parent
        .filter(|parent| parent.get_bin_name() != Some("recover"))
        .into_iter()
        .flat_map(shown);
    let others = beside.filter(|sub| sub.get_name() != command.get_name());
    let names = root
        .into_iter()
        .chain(above)
        .chain(others.chain(shown(command)).map(file_name));
    let names: Vec<String> = names.collect();
    let mut all: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "(1)")).collect();
    if parent.is_none() {
        all.extend([("recover.toml", "(5)"), ("recover-json", "(7)")]);
    }
    let mut roff = Roff::new();
    pages_named(&mut roff, &all);
    roff
}

/// The pages to see as well, each with its section.
fn pages_named(roff: &mut Roff, pages: &[(&str, &str)]) {
    let mut line: Vec<Inline> = Vec::new();
    for (number, (name, section)) in pages.iter().enumerate() {
        if number > 0 {
            line.push(roman(", "));
        }
        line.extend([italic(*name), roman(*section)]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shown_command_has_a_page_with_its_sections() {
        let folder = tempfile::tempdir().unwrap();
        man_pages(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let create = read("recover-checkpoint-create.1");
        for part in [
            ".TH RECOVER-CHECKPOINT-CREATE 1",
            "recover checkpoint create",
            ".SH SYNOPSIS",
            ".SH \"SEE ALSO\"",
        ] {
            assert!(create.contains(part), "{part}\n{create}");
        }
        assert!(
            !create.contains("state\\-dir"),
            "global flags are described once\n{create}"
        );
        assert!(
            read("recover-agents.1").contains(".SH EXAMPLES\n.nf"),
            "examples are kept line by line"
        );
        let root = read("recover.1");
        assert!(!root.contains('\u{1b}'), "colours are for terminals");
        for part in [
            ".SH EXAMPLES\n.nf",
            ".SH \"EXIT STATUS\"",
            ".SH ENVIRONMENT",
            ".SH FILES",
            "lock\\-timeout",
        ] {
            assert!(root.contains(part), "{part}\n{root}");
        }
        assert!(!folder.path().join("recover-man.1").exists());
    }

    #[test]
    fn the_short_list_of_exit_codes_names_each() {
        let help = help::for_people("recover").render_long_help().to_string();
        let codes = help.split("Exit codes:").nth(1).unwrap();
        let named: Vec<&str> = codes.split(|c: char| !c.is_ascii_digit()).collect();
        for (code, _) in ExitCode::DOCUMENTED {
            assert!(
                named.contains(&code.number().to_string().as_str()),
                "{code:?} is missing\n{codes}"
            );
        }
    }
}
