//! The programs that a command line starts, wrappers (`env`, `sh -c`, `npx`, `docker run`) taken off.
//!
//! What a command is, an agent or a check, follows from the programs that it starts and not from words elsewhere in the
//! line: a prompt may speak of anything.

/// How deep a wrapper may lie in another.
const DEPTH: usize = 8;

/// A program with its arguments; the first word is its name without a folder.
pub(crate) type Words = Vec<String>;

/// The programs of a command that is started directly.
pub(super) fn of_command(words: &[String]) -> Vec<Words> {
    unwrap(words, 0, &mut Words::new())
}

/// The programs of a line for a shell.
pub(crate) fn of_line(line: &str) -> Vec<Words> {
    of_script(line, 0, &mut Words::new())
}

/// Programs that run others elsewhere: in a container, on another machine.
const ELSEWHERE: [&str; 5] = ["docker", "podman", "nerdctl", "kubectl", "ssh"];

/// The surroundings in which a line's programs run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The time zone that the line sets.
    pub time_zone: Option<String>,
    /// Whether they run in a container or on another machine.
    pub is_elsewhere: bool,
}

/// The surroundings in which the programs of a line for a shell run.
pub(crate) fn surroundings(line: &str) -> Surroundings {
    let mut around = Words::new();
    let programs = of_script(line, 0, &mut around);
    let is_elsewhere = |word: &str| ELSEWHERE.contains(&word.rsplit('/').next().unwrap_or(word));
    // What these start is not taken off them.
    let sets = |words: &&Words| words[0] == "export" || is_elsewhere(&words[0]);
    around.extend(programs.iter().filter(sets).flatten().cloned());
    let time_zone = around.iter().rev().find_map(|word| {
        let (before, set) = word.split_once("TZ=")?;
        let zone = set.split_whitespace().next().unwrap_or_default();
        ["", "-e", "--env="]
            .contains(&before)
            .then(|| zone.to_owned())
    });
    Surroundings {
        time_zone,
        is_elsewhere: around.iter().any(|word| is_elsewhere(word)),
    }
}

/// What is taken off the programs is added to `around`.
fn of_script(script: &str, depth: usize, around: &mut Words) -> Vec<Words> {
    simple_commands(script)
        .iter()
        .flat_map(|words| unwrap(words, depth, around))
        .collect()
}

/// How a wrapper names what it starts.
enum Form {
    /// Its options, of which some take a value, then arguments of its own, then the program.
    Arguments(Wrapper),
    /// A script for a shell behind an option with this letter.
    Script(char),
    /// A module behind `-m`, else a script of its own language.
    Module,
}

/// A wrapper that has the program among its arguments.
struct Wrapper {
    /// Its own commands that start one, of which one comes first; empty where it has none.
    commands: &'static str,
    /// Options that take a value.
    valued: &'static str,
    /// How many arguments of its own come before the program.
    own: usize,
}

impl Wrapper {
    /// The program that it starts, with its arguments.
    fn started<'a>(&self, rest: &'a [String]) -> Option<&'a [String]> {
        let is_own = |word: &String| is_of(self.commands, word);
        let behind = if self.commands.is_empty() {
            0
        } else {
            let at = rest.iter().position(|word| !word.starts_with('-'));
            at.filter(|at| is_own(&rest[*at]))? + 1
        };
        arguments(&rest[behind..], self.valued).get(self.own..)
    }
}

const fn before(valued: &'static str) -> Form {
    wrapper("", valued, 0)
}

const fn after(commands: &'static str) -> Form {
    wrapper(commands, "-p --package --python --with -n --name -w -c", 0)
}

const fn wrapper(commands: &'static str, valued: &'static str, own: usize) -> Form {
    Form::Arguments(Wrapper {
        commands,
        valued,
        own,
    })
}

/// Whether a word is one of a list, in which blanks are between them.
fn is_of(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// Options of `docker run` and `docker exec` that take a value.
const CONTAINER: &str = "\
    -a -c -e -h -l -m -p -u -v -w --add-host --attach --cap-add --cap-drop --cidfile --cpus \
    --device --dns --env --env-file --gpus --group-add --hostname --ipc --label --log-driver \
    --log-opt --memory --mount --name --net --network --pid --platform --publish --pull \
    --restart --runtime --security-opt --shm-size --stop-signal --tmpfs --ulimit --user \
    --userns --volume --workdir";

fn form(program: &str) -> Option<Form> {
    Some(match program {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish" | "script" | "su" => {
            Form::Script('c')
        }
        "env" => before("-u --unset -C --chdir"),
        "exec" | "nohup" | "command" | "builtin" | "setsid" | "unbuffer" | "winpty"
        | "caffeinate" | "then" | "do" | "else" | "if" | "while" | "until" | "!" | "{" => {
            before("-a")
        }
        "time" => before("-f -o --format --output"),
        "nice" => before("-n --adjustment"),
        "ionice" => before("-c -n --class --classdata"),
        "stdbuf" => before("-i -o -e"),
        "sudo" | "doas" => before("-u -g -h -C --user --group"),
        "xvfb-run" => before("-n -s -f --server-num --server-args"),
        "npx" | "bunx" | "pnpx" | "uvx" => before("-p --package --python --with --from"),
        "timeout" | "gtimeout" => wrapper("", "-k -s --kill-after --signal", 1),
        "chrt" | "taskset" => wrapper("", "", 1),
        "npm" | "mise" => after("exec x"),
        "pnpm" | "yarn" => after("dlx exec"),
        "bun" => after("x"),
        "bundle" | "asdf" => after("exec"),
        "uv" | "poetry" | "pipenv" | "pdm" | "rye" | "hatch" | "conda" | "mamba" | "micromamba"
        | "pipx" => after("run"),
        "direnv" => wrapper("exec", "", 1),
        "docker" | "podman" | "nerdctl" => wrapper("run exec", CONTAINER, 1),
        "python" | "python3" | "py" | "node" | "deno" | "ruby" | "php" | "perl" => Form::Module,
        _ => return None,
    })
}

/// Takes variables, wrappers and their options off, which are added to `around`, until a program is left.
fn unwrap(words: &[String], depth: usize, around: &mut Words) -> Vec<Words> {
    let is_assignment = |word: &String| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let start = words
        .iter()
        .position(|word| !is_assignment(word))
        .unwrap_or(words.len());
    let Some((first, rest)) = words[start..].split_first() else {
        return Vec::new();
    };
    around.extend_from_slice(&words[..start]);
    let name = first.rsplit('/').next().unwrap_or(first);
    // A package may be asked for in a version.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let itself = || {
        vec![
            std::iter::once(name.to_owned())
                .chain(rest.iter().cloned())
                .collect(),
        ]
    };
    let inner = match form(name).filter(|_| depth < DEPTH) {
        None => None,
        Some(Form::Arguments(wrapper)) => wrapper.started(rest),
        Some(Form::Script(letter)) => {
            let is_option = |word: &String| {
                word.strip_prefix('-').is_some_and(|letters| {
                    letters.ends_with(letter)
                        && letters.chars().all(|one| one.is_ascii_alphabetic())
                })
            };
            if let Some(script) = rest
                .iter()
                .position(is_option)
                .and_then(|at| rest.get(at + 1))
            {
                around.push(name.to_owned());
                return of_script(script, depth + 1, around);
            }
            // A script in a file, that is a program of the user's.
            Some(arguments(rest, "-o"))
        }
        Some(Form::Module) => match rest.iter().position(|word| word == "-m") {
            Some(at) if rest[..at].iter().all(|word| word.starts_with('-')) => rest.get(at + 1..),
            _ if rest.iter().any(|word| word == "--test") => None,
            _ => Some(arguments(rest, "-e -c -r -W -X")),
        },
    };
    match inner {
        Some(inner) if !inner.is_empty() => {
            around.push(name.to_owned());
            around.extend_from_slice(&rest[..rest.len() - inner.len()]);
            unwrap(inner, depth + 1, around)
        }
        _ => itself(),
    }
}

/// What comes after the options.
fn arguments<'a>(mut words: &'a [String], valued: &str) -> &'a [String] {
    while let Some((word, rest)) = words
        .split_first()
        .filter(|(word, _)| word.starts_with('-'))
    {
        if word == "--" {
            return rest;
        }
        let skipped = usize::from(is_of(valued, word));
        words = rest.get(skipped..).unwrap_or_default();
    }
    words
}

/// The simple commands of a shell's script: what stands between `;`, `|`, `&`, line ends and parentheses, in words.
/// Redirections are left out. What only a shell could expand stays as it is written.
pub(super) fn simple_commands(script: &str) -> Vec<Words> {
    let (mut commands, mut words, mut word) = (Vec::new(), Words::new(), None::<String>);
    let mut quote = None;
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            // `2>&1` is no end of a command.
            (None, '&') if word.as_ref().is_some_and(|word| word.ends_with('>')) => {
                word.get_or_insert_default().push('&');
            }
            (None, ';' | '|' | '&' | '\n' | '(' | ')') => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.iter_mut().for_each(without_redirections);
    commands.retain(|words| !words.is_empty());
    commands
}

fn without_redirections(words: &mut Words) {
    let mut is_target = false;
    words.retain(|word| {
        let was_target = std::mem::take(&mut is_target);
        let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let target = rest.trim_start_matches(['<', '>']);
        let redirects = target.len() < rest.len();
        is_target = redirects && target.is_empty();
        !was_target && !redirects
    });
}

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
    fn wrappers_are_taken_off() {
        for (line, programs) in [
            ("claude -p x", "claude -p x"),
            ("FOO=1 timeout -k 5 30m codex exec x", "codex exec x"),
            ("/usr/bin/env -u A B=2 /opt/bin/claude -p", "claude -p"),
            (
                "sh -c 'cd app && claude -p \"make the tests pass\" 2>err.log | tee log'",
                "cd app;claude -p make the tests pass;tee log",
            ),
            ("bash -lc 'npx -y @openai/codex@1 exec'", "codex exec"),
            (
                "docker run --rm -v /a:/b -w /b node:20 npm test",
                "npm test",
            ),
            ("docker exec -it box claude", "claude"),
            ("docker build .", "docker build ."),
            ("uv run --with x pytest -q", "pytest -q"),
            ("python3 -m pytest -q", "pytest -q"),
            ("python3 loop.py --tests", "loop.py --tests"),
            ("node --test", "node --test"),
            ("bash loop.sh test", "loop.sh test"),
            ("sudo -u me nice -n 5 make", "make"),
            ("script -qc 'gemini -p hi' /dev/null", "gemini -p hi"),
            ("npm exec -- claude -p", "claude -p"),
            ("npm run test", "npm run test"),
            ("direnv exec . cargo test", "cargo test"),
            (
                "(cd a; make) && echo 'done; really'",
                "cd a;make;echo done; really",
            ),
            ("cat < in >> out", "cat"),
            ("make 2>&1 | tee log", "make;tee log"),
            ("", ""),
            ("sh", "sh"),
            ("sh -c", "sh -c"),
            ("env", "env"),
            ("timeout 5", "timeout 5"),
        ] {
            let found: Vec<String> = of_line(line).iter().map(|words| words.join(" ")).collect();
            assert_eq!(found.join(";"), programs, "{line}");
        }
    }

    #[test]
    fn surroundings_are_what_is_taken_off() {
        for (line, time_zone, is_elsewhere) in [
            ("TZ=Europe/Berlin claude -p x", Some("Europe/Berlin"), false),
            (
                "/usr/bin/env -u A TZ=Asia/Tokyo codex",
                Some("Asia/Tokyo"),
                false,
            ),
            (
                "bash -c 'export TZ=UTC; timeout 5m codex exec y'",
                Some("UTC"),
                false,
            ),
            (
                "docker run -it -e TZ=Asia/Kolkata img claude",
                Some("Asia/Kolkata"),
                true,
            ),
            ("podman exec --env=TZ=UTC0 box claude", Some("UTC0"), true),
            ("kubectl exec pod -- claude -p x", None, true),
            (
                "sh -c '/usr/bin/ssh host \"TZ=CET claude -p x\" | tee log'",
                Some("CET"),
                true,
            ),
            ("TZ= claude", Some(""), false),
            // A prompt says nothing of where it is read.
            ("claude -p 'TZ=UTC docker run x'", None, false),
            ("claude TZ=UTC", None, false),
            ("env MYTZ=UTC claude", None, false),
            ("", None, false),
        ] {
            let expected = Surroundings {
                time_zone: time_zone.map(str::to_owned),
                is_elsewhere,
            };
            assert_eq!(surroundings(line), expected, "{line}");
        }
    }

    #[test]
    fn nothing_is_unwrapped_for_ever() {
        let mut line = "true".to_owned();
        for _ in 0..12 {
            line = format!("sh -c {}", shlex::try_quote(&line).unwrap());
        }
        assert_eq!(of_line(&line).len(), 1);
        assert_eq!(of_line(&"env ".repeat(100_000)).len(), 1);
    }

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
