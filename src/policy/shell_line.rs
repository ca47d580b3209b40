//! What a line for a shell starts first, as far as that can be known without a shell.

/// Words that a shell knows without a program, and those whose arguments say what is started.
const KNOWN: &[&str] = &[
    ".", ":", "!", "[", "[[", "{", "(", "alias", "bg", "break", "builtin", "case", "cd", "command",
    "continue", "declare", "dirs", "do", "done", "echo", "elif", "else", "enable", "esac", "eval",
    "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash",
    "help", "history", "if", "in", "jobs", "kill", "let", "local", "logout", "popd", "printf",
    "pushd", "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt", "source",
    "suspend", "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit",
    "umask", "unalias", "unset", "until", "wait", "while",
];

/// Whether a word is the shell's own.
pub(crate) fn is_own(word: &str) -> bool {
    KNOWN.contains(&word)
}

/// The program of the line's first command; `None` where that is the shell's own word, or is made up when the line runs
/// (a variable, a pattern, a function).
pub(crate) fn first_program(line: &str) -> Option<String> {
    let end = line
        .find([';', '&', '|', '\n', '<', '>'])
        .unwrap_or(line.len());
    let words = shlex::split(&line[..end])?;
    let assigns = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.is_empty())
    };
    let program = words.into_iter().find(|word| !assigns(word))?;
    let plain = !program.contains(['$', '`', '*', '?', '~', '(', ')', '{', '}', '#', '[']);
    (plain && !program.is_empty() && !is_own(&program)).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_is_found_where_there_is_one() {
        for (line, expected) in [
            ("cargo test --all", Some("cargo")),
            ("A=1 B='x y' ./test.sh; exit 0", Some("./test.sh")),
            ("make|tee log", Some("make")),
            ("'a b/run' x", Some("a b/run")),
            ("cd sub && cargo test", None),
            ("$RUNNER test", None),
            ("f() { true; }; f", None),
            ("if true; then x; fi", None),
            ("~/bin/check", None),
            ("", None),
            ("'open", None),
        ] {
            assert_eq!(first_program(line).as_deref(), expected, "{line}");
        }
    }
}
