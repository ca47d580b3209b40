//! Completion: the shell asks `recover` itself, with `COMPLETE=SHELL` in its environment, at each Tab.
//!
//! clap's engine knows commands, flags and files; the completers here add what only the state knows. The scripts that register
//! us in bash, zsh and fish are our own, beside this file: clap's leave words unquoted that a shell would expand, and do
//! not complete what follows `--` as a command of its own. Each gets a line a candidate: the word, a tab, its help.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use clap::{CommandFactory, FromArgMatches, ValueEnum as _};
use clap_complete::engine::{PathCompleter, ValueCompleter as _, complete};
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Powershell, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};

use crate::engine::{Context, Error, ErrorKind, Result, rollback, runs as recorded, status};
use crate::model::hint::quote;
use crate::model::{CheckKind, Selector, Strategy};
use crate::policy::report::run_state;
use crate::policy::retry::label;

use super::args::{Cli, GlobalArgs, expand_aliases, word_of};
use super::generate::command;
use super::render::when;
use super::setup::context;
use super::ui::escape;

/// The variable that a shell sets when it asks; clap's engine takes it out of the environment.
const VARIABLE: &str = "COMPLETE";

const SHELLS: Shells<'static> = Shells(&[
    &OwnScript {
        shell: "bash",
        registration: include_str!("recover.bash"),
    },
    &OwnScript {
        shell: "zsh",
        registration: include_str!("recover.zsh"),
    },
    &OwnScript {
        shell: "fish",
        registration: include_str!("recover.fish"),
    },
    &Powershell,
    &Elvish,
]);

/// Answers a shell that registers us or completes a line. `false` where nobody asked: this is an ordinary call.
pub(super) fn answer(args: &[OsString]) -> clap::error::Result<bool> {
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(|| with_candidates(command()))
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(args, folder.as_deref())
}

/// The tree with what only the state knows, for every argument that takes such a value.
fn with_candidates(tree: clap::Command) -> clap::Command {
    let with = |arg: clap::Arg| {
        let value = arg.get_value_parser().type_id();
        let known: Known = match arg.get_id().as_str() {
            "run" | "run_id" => runs,
            "feedback" => return arg.add(ArgValueCompleter::new(feedback)),
            "series" => series,
            "clear" => limits,
            "agent" if value == TypeId::of::<String>() => agents,
            _ if value == TypeId::of::<Selector>() => checkpoints,
            _ if value == TypeId::of::<Strategy>() => |context| Ok(strategies(context)),
            _ => return arg,
        };
        arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
            offered(typed, known)
        }))
    };
    tree.mut_args(with).mut_subcommands(with_candidates)
}

/// A shell with a registration script of ours.
struct OwnScript {
    shell: &'static str,
    registration: &'static str,
}

impl EnvCompleter for OwnScript {
    fn name(&self) -> &'static str {
        self.shell
    }

    fn is(&self, name: &str) -> bool {
        name == self.shell
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        _bin: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        // All three read a word in single quotes alike, but for a quote in it, which no sensible path has.
        let quoted = quote(completer);
        let script = self
            .registration
            .replace("COMPLETER", &quoted)
            .replace("VAR=", &format!("{variable}="));
        out.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        tree: &mut clap::Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let words = expand_aliases(words);
        let last = words.len().saturating_sub(1);
        let typed = words
            .get(last)
            .map(|word| word.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut candidates = complete(tree, words, last, folder)?;
        let is_flag = |candidate: &CompletionCandidate| {
            candidate.get_value().as_encoded_bytes().starts_with(b"-")
        };
        // Flags come once a dash is typed, or where there is nothing else.
        if !typed.starts_with('-') && !candidates.iter().all(is_flag) {
            candidates.retain(|candidate| !is_flag(candidate));
        }
        for candidate in candidates {
            let Some(word) = candidate
                .get_value()
                .to_str()
                .filter(|word| is_one_line(word))
            else {
                continue;
            };
            let help = candidate
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let help = help.lines().next().unwrap_or_default();
            writeln!(out, "{word}\t{help}")?;
        }
        Ok(())
    }
}

/// A word is a line of the answer: what would be several, or would steer the terminal, is not offered.
fn is_one_line(word: &str) -> bool {
    !word.is_empty() && !word.chars().any(char::is_control)
}

/// A word with its help.
type Word = (String, String);

/// What there is of one kind.
type Known = fn(&Context) -> Result<Vec<Word>>;

/// The name of a check, and behind `NAME=` the files that may be its command.
fn feedback(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    if let Some((name, command)) = typed.split_once('=') {
        let files = PathCompleter::any().complete(OsStr::new(command));
        let candidate = |file: CompletionCandidate| file.add_prefix(format!("{name}="));
        return files.into_iter().map(candidate).collect();
    }
    let kinds = CheckKind::value_variants().iter().skip(1).map(word_of);
    let fitting = kinds.filter(|kind| kind.starts_with(&*typed));
    fitting
        .map(|kind| CompletionCandidate::new(format!("{kind}=")))
        .collect()
}

fn offered(typed: &OsStr, known: Known) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let words = place()
        .and_then(|global| known(&context(&global, None)?))
        .unwrap_or_default();
    let fitting = words
        .into_iter()
        .filter(|(word, _)| word.starts_with(&*typed));
    let candidate = |(order, (word, help)): (usize, Word)| {
        CompletionCandidate::new(word)
            .help(Some(escape(&help).into()))
            .display_order(Some(order))
    };
    fitting.enumerate().map(candidate).collect()
}

/// What the line says so far of where to look: `-C`, `--state-dir`, `--run` and the like.
fn place() -> Result<GlobalArgs> {
    let mut words: Vec<_> = std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(1)
        .collect();
    // The word that is being completed says nothing yet.
    words.pop();
    let line = Cli::command()
        .ignore_errors(true)
        .try_get_matches_from(expand_aliases(words));
    let found = line.and_then(|line| GlobalArgs::from_arg_matches(&line));
    found.map_err(|error| Error::new(ErrorKind::Usage, error.to_string()))
}

/// Agents that can be started.
fn agents(context: &Context) -> Result<Vec<Word>> {
    let profiles = context.config().agents()?;
    let words = profiles.into_iter().flat_map(|(name, profile)| {
        let acp = (
            format!("acp:{name}"),
            "by the Agent Client Protocol".to_owned(),
        );
        let own = (name, format!("starts {}", profile.program));
        std::iter::once(own).chain((!profile.acp.is_empty()).then_some(acp))
    });
    let others = [
        ("auto", "found out by the command"),
        ("none", "an ordinary program"),
    ];
    Ok(words
        .chain(others.map(|(word, help)| (word.to_owned(), help.to_owned())))
        .collect())
}

/// Ids of runs.
fn runs(context: &Context) -> Result<Vec<Word>> {
    let (state, now) = (context.load()?.state, context.clock.now());
    let words = state.runs.iter().rev().map(|run| {
        (
            run.key.run_id.to_string(),
            format!("{}, started {}", run_state(run), when(run.created_at, now)),
        )
    });
    let mut words: Vec<Word> = words.collect();
    // Lanes share an id.
    words.dedup_by(|one, other| one.0 == other.0);
    Ok(words)
}

/// Series of runs.
fn series(context: &Context) -> Result<Vec<Word>> {
    let state = context.load()?.state;
    let all = state.runs.iter().rev();
    let named = all.filter_map(|run| Some((run.spec.series.clone()?, &run.key)));
    let mut words: Vec<Word> = Vec::new();
    for (series, latest) in named {
        if words.iter().all(|(known, _)| *known != series) {
            words.push((series, format!("its latest run is {latest}")));
        }
    }
    Ok(words)
}

/// Agents and accounts that a limit holds.
fn limits(context: &Context) -> Result<Vec<Word>> {
    let now = context.clock.now();
    let mut words: Vec<Word> = Vec::new();
    for limit in recorded::limits::list(context)?.limits {
        let until = when(limit.until, now);
        let of_agent = (limit.agent.clone(), format!("all of {}", limit.agent));
        let of_account = (
            limit.account,
            format!("{}: {}, until {until}", limit.agent, limit.what),
        );
        for word in [of_agent, of_account] {
            if words.iter().all(|(known, _)| *known != word.0) {
                words.push(word);
            }
        }
    }
    Ok(words)
}

/// Checkpoints as selectors name them.
fn checkpoints(context: &Context) -> Result<Vec<Word>> {
    let now = context.clock.now();
    let mut words = Vec::new();
    let (all, of_one) = match rollback::targets(context) {
        Ok(targets) => {
            let named = [
                ("latest", "the latest", !targets.checkpoints.is_empty()),
                ("good", "the last good one", targets.last_good.is_some()),
                ("initial", "before the run", targets.initial.is_some()),
            ];
            let there = named.into_iter().filter(|(.., there)| *there);
            words.extend(there.map(|(word, what, _)| (word.to_owned(), what.to_owned())));
            (targets.checkpoints, true)
        }
        // Only ids say of which run they are.
        Err(error) if error.kind == ErrorKind::Ambiguous => {
            (rollback::targets_of_worktree(context)?, false)
        }
        Err(error) => return Err(error),
    };
    words.extend(all.iter().rev().map(|checkpoint| {
        let (number, verdict) = (checkpoint.after_iteration, checkpoint.verdict.as_str());
        let age = when(checkpoint.created_at, now);
        let of = if of_one {
            String::new()
        } else {
            format!("{}, ", checkpoint.run)
        };
        (
            checkpoint.id.to_string(),
            format!(
                "{of}after iteration {number}, {verdict}, {age}: {}",
                checkpoint.description
            ),
        )
    }));
    Ok(words)
}

/// Strategies that the run may be resumed with; all where it is not known which run.
fn strategies(context: &Context) -> Vec<Word> {
    let options = status::status(context)
        .map(|status| status.options)
        .unwrap_or_default();
    if options.is_empty() {
        let all = Strategy::ALL.into_iter();
        return all
            .map(|strategy| (strategy.as_str().to_owned(), label(strategy).to_owned()))
            .collect();
    }
    let possible = options.into_iter().filter(|option| option.available);
    possible
        .map(|option| (option.strategy.as_str().to_owned(), option.description))
        .collect()
}
