//! Hints work from any folder: a command in a hint names the work tree it is about.

use clap::CommandFactory;

use crate::engine::{Context, Error};

use super::args::Cli;

/// The error with a hint that can be copied.
pub fn complete(context: &Context, mut error: Error) -> Error {
    error.hint = error.hint.map(|hint| located(&hint, &context.hint_command(None, &[])));
    error
}

/// Puts `prefix` (`recover -C DIR`) in the place of each `recover` that a subcommand follows.
fn located(hint: &str, prefix: &str) -> String {
    let tree = Cli::command();
    let mut out = String::new();
    let mut rest = hint;
    while let Some(at) = rest.find("recover ") {
        let (before, from) = rest.split_at(at);
        let after = &from["recover ".len()..];
        let word: String = after.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let begins = before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '`' || c == '(');
        out.push_str(before);
        out.push_str(if begins && tree.find_subcommand(&word).is_some() { prefix } else { "recover" });
        out.push(' ');
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_located_and_words_are_not() {
        let at = |hint| located(hint, "recover -C '/a b'");
        assert_eq!(at("recover doctor"), "recover -C '/a b' doctor");
        assert_eq!(at("free space: recover checkpoint prune"), "free space: recover -C '/a b' checkpoint prune");
        assert_eq!(at("recover -C /x status"), "recover -C /x status");
        assert_eq!(at("use the newer recover; nothing was changed"), "use the newer recover; nothing was changed");
        assert_eq!(at("run recover as the owner"), "run recover as the owner");
    }
}
