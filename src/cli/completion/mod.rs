//! Completion: the shell asks `recover` itself, with `COMPLETE=SHELL` in its environment, at each Tab.
//!
//! clap's engine knows commands, flags and files; [`candidates`] adds what only the state knows. The scripts that register
//! us in bash, zsh and fish are our own, beside this file: clap's leave words unquoted that a shell would expand, and do
//! not complete what follows `--` as a command of its own. Each gets a line a candidate: the word, a tab, its help.

mod candidates;
pub(super) mod startup;

use std::any::TypeId;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap_complete::engine::complete;
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Powershell, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};

use super::args::expand_aliases;
use super::generate::command;
use crate::model::decision::Strategy;
use crate::model::hint::quote;
use crate::model::selector::Selector;

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
        if ["run", "run_id"].contains(&arg.get_id().as_str()) {
            arg.add(ArgValueCompleter::new(candidates::runs))
        } else if arg.get_id() == "agent" && value == TypeId::of::<String>() {
            arg.add(ArgValueCompleter::new(candidates::agents))
        } else if value == TypeId::of::<Selector>() {
            arg.add(ArgValueCompleter::new(candidates::checkpoints))
        } else if value == TypeId::of::<Strategy>() {
            arg.add(ArgValueCompleter::new(candidates::strategies))
        } else {
            arg
        }
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
            match self.shell {
                "bash" => writeln!(out, "{word}")?,
                _ => writeln!(out, "{word}\t{help}")?,
            }
        }
        Ok(())
    }
}

/// A word is a line of the answer: what would be several, or would steer the terminal, is not offered.
fn is_one_line(word: &str) -> bool {
    !word.is_empty() && !word.chars().any(char::is_control)
}
