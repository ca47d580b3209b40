//! Output: one answer on stdout (a document with `--json`, else text), everything else on stderr.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::styling::{AnsiColor, Style};
use rustix::termios::Winsize;
use serde::Serialize;
use serde_json::Map;

use super::args::GlobalArgs;
use super::replies::{Document, ExitCode, Repository, document_text};
use super::terminal_text::wrapped;
use super::warned;
use crate::engine::{Context, Error, answers, inspect};
use crate::git::program::pager;
use crate::model::checkpoint::trigger;
use crate::model::hint::{Advice, Reader};
use crate::model::{Checkpoint, CheckpointId, Hint, RepositoryState, State};
use crate::policy::secrets::{redact, redact_json_text, redacted_json_text};
use crate::policy::settings::ColorWhen;
use crate::process::{Stderr, page};

pub(super) use crate::policy::text::{escape, escape_lines};

/// What a command answers.
#[derive(Debug)]
pub(super) struct Reply {
    /// The document's fields, `schema_version` and `command` aside, as they are written for people; an error where they
    /// cannot be written as JSON.
    document: serde_json::Result<String>,
    /// The repository, where the command does without it.
    repository: Option<Repository>,
    /// What was warned of.
    warnings: Vec<String>,
    /// The text for people.
    pub text: String,
    /// What the process ends with.
    pub exit: ExitCode,
    /// The command that the document is one of, where it is not the one that was given.
    command: Option<&'static str>,
    /// What the text is.
    form: Form,
    /// On a terminal it goes through a pager.
    paged: Option<Paged>,
}

/// What a text is, and what may be done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Its lines are fitted to a terminal.
    Text,
    /// Its lines are for a program to read.
    Verbatim,
    /// The same, and nothing of it is masked.
    Content,
}

/// What goes through a pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paged {
    /// A patch, always: the pager may be there to colour it. With what git calls the command that prints it.
    Patch(&'static str),
    /// A text, where it is longer than the terminal.
    Text(&'static str),
}

impl Reply {
    /// An answer made of a document and text.
    pub(super) fn new(document: impl Serialize, text: impl Into<String>) -> Self {
        let document = serde_json::to_string_pretty(&document);
        Self {
            document,
            repository: None,
            warnings: Vec::new(),
            text: text.into(),
            exit: ExitCode::DONE,
            command: None,
            form: Form::Text,
            paged: None,
        }
    }

    /// As the answer of this command, which was carried out for another one.
    #[must_use]
    pub(super) fn of(self, command: &'static str) -> Self {
        let command = Some(command);
        Self { command, ..self }
    }

    /// The same with nothing for people.
    #[must_use]
    pub(super) fn without_text(self) -> Self {
        let text = String::new();
        Self { text, ..self }
    }

    /// An answer for people, where no document was asked for.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::new(Map::new(), text)
    }

    /// As content that a program is to take as it is (a patch, a script): nothing of it is masked.
    #[must_use]
    pub(super) fn content(self) -> Self {
        self.form(Form::Content)
    }

    /// Through a pager, where it is long.
    #[must_use]
    pub(super) fn paged(self, paged: Paged) -> Self {
        Self {
            paged: Some(paged),
            ..self
        }
    }

    /// As a text of this form.
    #[must_use]
    pub(super) fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// With what was warned of, where there is any.
    #[must_use]
    pub(super) fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    /// With the state of the repository.
    #[must_use]
    pub(super) fn repository(self, state: Option<RepositoryState>) -> Self {
        Self {
            repository: state.map(|state| Repository { state }),
            ..self
        }
    }

    /// With this exit code.
    #[must_use]
    pub(super) fn exit(mut self, exit: ExitCode) -> Self {
        self.exit = exit;
        self
    }
}

/// The verb of what was done, or in a dry run would be.
pub(super) fn verb<'a>(context: &Context, would: &'a str, did: &'a str) -> &'a str {
    if context.dry_run() { would } else { did }
}

/// How to talk.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags are what a command line is made of"
)]
pub(super) struct Ui {
    /// One JSON document on stdout.
    pub json: bool,
    /// Only errors on stderr.
    pub quiet: bool,
    /// Whether all that is known is to be shown.
    pub verbose: bool,
    /// When to use colour, where the command line or the environment says so.
    pub color_asked: Option<ColorWhen>,
    /// Colour on stdout.
    pub color: bool,
    /// Columns of the terminal; `None` where stdout is not one.
    pub width: Option<u16>,
    /// Whether a user is there to answer a question.
    pub interactive: bool,
    /// Colour on stderr.
    pub stderr_color: bool,
    /// Whether stderr is a terminal.
    pub stderr_terminal: bool,
    /// Whether a terminal's cursor may be moved: not where a user wants no escape codes at all.
    pub moves: bool,
    /// Whether a line on stderr can be overwritten: not where stdout goes to a program that may use the terminal itself.
    pub redraws: bool,
    /// Whether single keys may be taken from the terminal, which such a program may read as well.
    pub keys: bool,
    /// Whether the terminal shows more than ASCII.
    pub unicode: bool,
    /// Whether long answers go through a pager.
    pub pages: bool,
    /// Lines of the terminal.
    pub rows: u16,
    /// Columns of the terminal that is stderr.
    pub stderr_width: Option<u16>,
    /// What a person who reads a text on a terminal knows already.
    pub reader: Arc<Reader>,
}

impl Ui {
    /// The text for people, which is not even made where a program asks: long tables take longer than all else.
    pub(super) fn text(&self, render: impl FnOnce() -> String) -> String {
        if self.json { String::new() } else { render() }
    }

    /// Reads flags, `NO_COLOR` and the terminal.
    pub(super) fn new(global: &GlobalArgs) -> Self {
        let terminal = io::stdout().is_terminal();
        let stderr_terminal = io::stderr().is_terminal();
        let (plain, redraws) = (wants_no_color(), terminal_is_known());
        let asked = !global.json && !global.no_input && !global.yes;
        let interactive = asked && io::stdin().is_terminal() && stderr_terminal;
        let size = rustix::termios::tcgetwinsize(io::stdout())
            .ok()
            .filter(|_| terminal);
        let width = size.map(columns);
        let ui = Self {
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose > 0,
            color_asked: global.color.or(plain.then_some(ColorWhen::Never)),
            color: false,
            width,
            interactive,
            stderr_color: false,
            stderr_terminal,
            moves: redraws && !plain,
            redraws: redraws && terminal,
            keys: terminal && io::stdin().is_terminal() && !global.no_input,
            unicode: locale_is_utf8(),
            pages: terminal
                && redraws
                && asked
                && io::stdin().is_terminal()
                && !global.no_pager
                && !is_unattended(),
            rows: size.map_or(0, |size| if size.ws_row == 0 { 24 } else { size.ws_row }),
            stderr_width: stderr_columns(),
            reader: Arc::default(),
        };
        ui.colored(ColorWhen::Auto)
    }

    /// With colour as the user's configuration wants it, unless the command line or the environment says otherwise.
    #[must_use]
    pub(super) fn colored(self, configured: ColorWhen) -> Self {
        let wanted = |terminal| match self.color_asked.unwrap_or(configured) {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => colors(terminal),
        };
        let (color, stderr_color) = (
            wanted(io::stdout().is_terminal()) && !self.json,
            wanted(self.stderr_terminal),
        );
        Self {
            color,
            stderr_color,
            ..self
        }
    }

    /// Prints the answer of `command` and says what to end with: the reply's own code, unless the answer was lost. A
    /// closed pipe ends quietly.
    pub(super) fn answer(&self, command: &str, reply: Reply) -> ExitCode {
        let written = if self.json {
            let document = if reply.form == Form::Content {
                reply.document
            } else {
                reply.document.and_then(redact_json_text)
            };
            let warnings: Vec<String> = reply
                .warnings
                .iter()
                .map(|text| redact(text).into_owned())
                .collect();
            let command = reply.command.unwrap_or(command);
            let document = document.and_then(|document| {
                document_text(command, &document, reply.repository, &warnings)
            });
            document.map_err(io::Error::from).and_then(write_line)
        } else if reply.text.is_empty() {
            Ok(())
        } else {
            let end = if reply.text.ends_with('\n') { "" } else { "\n" };
            let text = match reply.form {
                Form::Content => Cow::Borrowed(reply.text.as_str()),
                _ => self.fitted(redact(&reply.text), reply.form),
            };
            let text = format!("{text}{end}");
            if self.is_paged(&text, reply.paged) {
                Ok(())
            } else {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
        };
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                tracing::error!(%error, "what was asked was done, but the answer could not be written");
                if reply.exit == ExitCode::DONE {
                    ExitCode::FAILED
                } else {
                    reply.exit
                }
            }
            _ => reply.exit,
        }
    }

    /// Shows a text in a pager where that is wanted; `false` where it is still to be printed.
    fn is_paged(&self, text: &str, paged: Option<Paged>) -> bool {
        let (kind, wanted) = match paged {
            Some(Paged::Patch(kind)) => (kind, true),
            Some(Paged::Text(kind)) => (kind, text.lines().count() >= usize::from(self.rows)),
            None => return false,
        };
        if !wanted || !self.pages {
            return false;
        }
        pager(kind).is_some_and(|command| {
            let shown = page(&command, text.as_bytes());
            shown
                .inspect_err(|error| tracing::warn!(%error, "the pager could not be used"))
                .unwrap_or(false)
        })
    }

    /// For a person on a terminal, who knows the run and the folder that they are in, and for whom checkpoints have numbers. A
    /// script needs all that it gets.
    #[must_use]
    pub(super) fn knowing(&self, context: &Context) -> Self {
        let is_read = !self.json && (self.width.is_some() || self.stderr_terminal);
        let mut knowing = self.clone();
        if is_read
            && context.store().exists()
            && let Ok(loaded) = context.load()
        {
            knowing.reader = Arc::new(Reader {
                folders: folders_here(),
                run: inspect::found_unnamed(context, &loaded.state),
                numbers: numbers(&loaded.state),
            });
        }
        knowing
    }

    /// For a person who knows the numbers of checkpoints alone.
    #[must_use]
    pub(super) fn numbering(&self, state: &State) -> Self {
        Self {
            reader: Arc::new(Reader {
                numbers: numbers(state),
                ..Reader::default()
            }),
            ..self.clone()
        }
    }

    /// Whoever reads stdout.
    fn reader(&self) -> Arc<Reader> {
        let reader = self.width.map(|_| Arc::clone(&self.reader));
        reader.unwrap_or_default()
    }

    /// What represents a checkpoint on stdout: its number for people, its id for scripts.
    pub(super) fn id(&self, id: &CheckpointId) -> String {
        self.word(id.as_str())
    }

    /// The same for a word that may be an id.
    pub(super) fn word(&self, word: &str) -> String {
        self.reader().id(word).into_owned()
    }

    /// The commands of a hint on stdout.
    pub(super) fn command(&self, hint: &Hint) -> String {
        hint.for_reader(&self.reader())
    }

    /// A sentence with a command on stdout.
    pub(super) fn advice(&self, advice: &Advice) -> String {
        advice.for_reader(&self.reader())
    }

    /// The description of a checkpoint. That of a safety checkpoint ends with the id of the one that was restored.
    pub(super) fn description(&self, checkpoint: &Checkpoint) -> String {
        self.described(&checkpoint.trigger, &checkpoint.description)
    }

    /// The same of one that was taken for this reason.
    pub(super) fn described(&self, reason: &str, description: &str) -> String {
        match description.rsplit_once(' ') {
            Some((before, id)) if reason == trigger::SAFETY => {
                format!("{before} {}", self.word(id))
            }
            _ => description.to_owned(),
        }
    }

    /// A text as it is printed on stdout, fitted to the terminal where that is one.
    pub(super) fn fitted<'a>(&self, text: Cow<'a, str>, form: Form) -> Cow<'a, str> {
        match self.width {
            Some(width) if form == Form::Text => Cow::Owned(wrapped(&text, width.into())),
            _ => text,
        }
    }

    /// Words of ours with a plain sign for what this terminal cannot show.
    pub(super) fn plain(&self, text: &str) -> String {
        if self.unicode {
            text.to_owned()
        } else {
            text.replace('−', "-")
        }
    }

    /// The text as this terminal can show it.
    pub(super) fn shown(&self, text: &str) -> String {
        self.shown_whole(&redact(text))
    }

    /// The same where nothing is masked: a person is to judge it.
    pub(super) fn shown_whole(&self, text: &str) -> String {
        let text = escape(text);
        if self.unicode {
            text
        } else {
            text.chars()
                .map(|c| if c.is_ascii() { c } else { '?' })
                .collect()
        }
    }

    /// Says something beside the answer, on stderr.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            Self::say(text);
        }
    }

    /// Prints a line on stderr, also with `--quiet`.
    pub(super) fn say(text: &str) {
        let text = format!("{}\n", escape(text));
        let text = match stderr_columns() {
            Some(width) => wrapped(&text, width.into()),
            None => text,
        };
        // With stderr closed there is nobody left to report to.
        let _ = Stderr.write_all(text.as_bytes());
    }

    /// Says something beside the answer that must not be overlooked, on stderr, also where notes are not wanted.
    pub(super) fn warn(text: &str) {
        // With stderr closed there is nobody left to report to.
        let _ = writeln!(io::stderr(), "warning: {}", escape_lines(&redact(text)));
        warned::note(text.to_owned());
    }

    /// Prints an error: on stderr for people, as a document with `--json`.
    pub(super) fn error(&self, command: &str, error: &Error) -> ExitCode {
        let exit = ExitCode::from(error.kind);
        if self.json {
            let warnings = warned::with_others(Vec::new());
            let document = Document::new(
                command,
                answers::ErrorDocument {
                    error: error.into(),
                },
                &warnings,
            );
            if let Err(problem) = write_document(&document)
                && problem.kind() != io::ErrorKind::BrokenPipe
            {
                tracing::error!(error = %problem, "the answer could not be written");
            }
        }
        let label = |style: Style, word: &str| {
            if self.stderr_color {
                format!("{style}{word}{style:#}")
            } else {
                word.to_owned()
            }
        };
        let red = AnsiColor::Red.on_default().bold();
        let mut text = format!(
            "{}: {}\n",
            label(red, "error"),
            escape_lines(&error.message)
        );
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            text.push_str(&format!(
                "caused by: {}\n",
                escape_lines(&cause.to_string())
            ));
            source = cause.source();
        }
        for reason in error.paths.iter().take(20) {
            text.push_str(&format!(
                "  {}: {}\n",
                escape(&reason.path.to_lossy()),
                escape(&reason.reason)
            ));
        }
        if error.paths.len() > 20 {
            text.push_str(&format!("  … and {} more\n", error.paths.len() - 20));
        }
        if let Some(hint) = &error.hint {
            let reader = self.stderr_width.map(|_| Arc::clone(&self.reader));
            let hint = hint.for_reader(&reader.unwrap_or_default());
            let cyan = AnsiColor::Cyan.on_default().bold();
            text.push_str(&format!(
                "{}: {}\n",
                label(cyan, "hint"),
                escape_lines(&hint)
            ));
        }
        let text = redact(&text);
        let text = match self.stderr_width {
            Some(width) => Cow::Owned(wrapped(&text, width.into())),
            None => text,
        };
        // With stderr closed there is nobody left to report to.
        let _ = io::stderr().write_all(text.as_bytes());
        exit
    }
}

fn numbers(state: &State) -> HashMap<String, u64> {
    let all = state.checkpoints.values();
    all.map(|one| (one.id.to_string(), one.seq)).collect()
}

/// The current folder and those above it up to the project's: from above that another project is meant.
fn folders_here() -> Vec<PathBuf> {
    let Ok(here) = std::env::current_dir() else {
        return Vec::new();
    };
    let is_project = |folder: &&Path| {
        [".git", ".ultraplan"]
            .iter()
            .any(|name| folder.join(name).symlink_metadata().is_ok())
    };
    let project = here.ancestors().position(|folder| is_project(&folder));
    let above = here.ancestors().map(Path::to_owned);
    above
        .take(project.map_or(usize::MAX, |at| at + 1))
        .collect()
}

fn columns(size: Winsize) -> u16 {
    if size.ws_col == 0 { 80 } else { size.ws_col }
}

/// Columns of stderr, where that is a terminal.
fn stderr_columns() -> Option<u16> {
    rustix::termios::tcgetwinsize(io::stderr())
        .ok()
        .filter(|_| io::stderr().is_terminal())
        .map(columns)
}

/// Whether nobody sits at this terminal: a CI job's, or that of a supervised agent, which a pager would stop for good.
fn is_unattended() -> bool {
    ["CI", "RECOVER_ATTEMPT"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Whether what is printed has colours, unless a flag or the configuration says otherwise.
pub(super) fn colors(terminal: bool) -> bool {
    terminal && !wants_no_color() && terminal_is_known()
}

fn wants_no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Nobody knows what a terminal without a name understands.
fn terminal_is_known() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Whether the locale's characters are UTF-8: the first of the three variables that is set says so.
fn locale_is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    // Where none is set nothing is known, and what is printed otherwise is UTF-8 as well.
    set.is_none_or(|name| {
        let name = name.to_string_lossy().to_lowercase();
        name.ends_with("utf-8") || name.ends_with("utf8")
    })
}

/// Prints a document, redacted. A closed pipe is the caller's to ignore.
pub(super) fn write_document(document: &impl Serialize) -> io::Result<()> {
    write_line(redacted_json_text(document)?)
}

fn write_line(text: String) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all((text + "\n").as_bytes())?;
    out.flush()
}
