//! Whether a check runs something else than before.
//! Its script, the recipe or entry that it names, the configuration of its tools, the project's CI.

use super::is_test_path;
use crate::model::feedback::FeedbackLoop;
use crate::policy::changes::ChangedFile;
use crate::policy::patterns::Single;
use crate::policy::program;

/// A feedback loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its shell command.
    pub command: &'a str,
    /// Where it starts, relative to the work tree; empty for its root.
    pub dir: &'a str,
}

impl<'a> From<&'a FeedbackLoop> for Loop<'a> {
    fn from(one: &'a FeedbackLoop) -> Self {
        Self {
            name: &one.name,
            command: &one.command,
            dir: one.dir.text(),
        }
    }
}

/// Programs that run the program named after them.
const WRAPPERS: &[&str] = &[
    "env", "time", "timeout", "nice", "ionice", "chrt", "exec", "command", "sudo", "nohup",
    "xvfb-run", "if", "then", "do", "while", "!", "{", "else", "npx", "bunx",
];
/// Programs that run the script named after them.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "ruby", "perl", "php",
    "deno", "bun", "tsx", "ts-node", "lua", "Rscript", "source", ".", "bats",
];
const PACKAGE_RUNNERS: &[&str] = &["npm", "yarn", "pnpm", "bun"];
const RECIPE_RUNNERS: &[(&str, &[&str])] = &[
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("gmake", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
];

/// Tools, and the start of the names of their configuration; behind a `#` only the sections of that name count.
const CONFIGURATION: &[(&[&str], &[&str])] = &[
    (
        &["pytest", "py.test", "tox", "nox"],
        &[
            "pytest.ini",
            ".pytest.ini",
            "tox.ini",
            "noxfile.py",
            "pyproject.toml#tool.pytest",
            "setup.cfg#tool:pytest",
        ],
    ),
    (&["jest"], &["jest.config.", "package.json#jest"]),
    (&["vitest"], &["vitest.config."]),
    (&["mocha"], &[".mocharc"]),
    (&["playwright"], &["playwright.config."]),
    (&["cypress"], &["cypress.config."]),
    (
        &["eslint"],
        &[
            ".eslintrc",
            "eslint.config.",
            ".eslintignore",
            "package.json#eslintConfig",
        ],
    ),
    (&["biome"], &["biome.json"]),
    (&["tsc"], &["tsconfig"]),
    (
        &["ruff"],
        &["ruff.toml", ".ruff.toml", "pyproject.toml#tool.ruff"],
    ),
    (&["flake8"], &[".flake8", "setup.cfg#flake8"]),
    (
        &["mypy"],
        &[
            "mypy.ini",
            ".mypy.ini",
            "pyproject.toml#tool.mypy",
            "setup.cfg#mypy",
        ],
    ),
    (
        &["pyright"],
        &["pyrightconfig.json", "pyproject.toml#tool.pyright"],
    ),
    (
        &["pylint"],
        &[".pylintrc", "pylintrc", "pyproject.toml#tool.pylint"],
    ),
    (
        &["cargo"],
        &[
            "clippy.toml",
            ".clippy.toml",
            "rustfmt.toml",
            ".rustfmt.toml",
            "nextest.toml",
            "Cargo.toml#lints",
            "Cargo.toml#workspace.lints",
        ],
    ),
    (&["golangci-lint"], &[".golangci."]),
    (&["rubocop"], &[".rubocop.yml"]),
    (&["rspec"], &[".rspec"]),
    (&["phpunit"], &["phpunit.xml"]),
    (&["phpstan"], &["phpstan.neon"]),
];

/// What of the changed files makes a feedback loop run something else, a line each. New files weaken nothing.
pub(super) fn changed_commands(files: &[ChangedFile], loops: &[Loop<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let seen: Vec<Vec<ChangedFile>> = loops.iter().map(|one| seen_from(files, one.dir)).collect();
    for (at, file) in files
        .iter()
        .enumerate()
        .filter(|(_, file)| file.before.is_some())
    {
        let is_gone = file.after.is_none();
        let fate = if is_gone {
            "was deleted"
        } else {
            "was changed"
        };
        let by_loop = loops.iter().zip(&seen).find_map(|(one, seen)| {
            let (file, files) = if one.dir.is_empty() {
                (file, files)
            } else {
                (&seen[at], seen.as_slice())
            };
            Some((one.name, what_it_runs(file, files, one.command)?))
        });
        if let Some((name, what)) = by_loop {
            notes.push(format!(
                "{}: {what} of the check '{name}' {fate}",
                file.path
            ));
        } else if is_ci(&file.path) {
            notes.push(format!("{}: the CI configuration {fate}", file.path));
        } else if file.path.ends_with(".ultraplan/recover.toml")
            || file.path == ".ultraplan/recover.toml"
        {
            let differs = ["feedback", "checks"]
                .iter()
                .any(|name| section(file.old_text(), name) != section(file.new_text(), name));
            if differs {
                notes.push(format!("{}: the checks are set differently", file.path));
            }
        }
    }
    notes
}

/// The files by the names that a command has for them which starts in `dir`; none for the work tree's root, where they are
/// what they are.
fn seen_from(files: &[ChangedFile], dir: &str) -> Vec<ChangedFile> {
    let below = |path: &str| path.strip_prefix(dir)?.strip_prefix('/').map(str::to_owned);
    let renamed = |file: &ChangedFile| match below(&file.path) {
        Some(path) => ChangedFile {
            path,
            ..file.clone()
        },
        None => file.clone(),
    };
    if dir.is_empty() {
        Vec::new()
    } else {
        files.iter().map(renamed).collect()
    }
}

/// Whether a file of this path says what is checked, or how: a test, a script, recipe or configuration of a check, CI. It need
/// not exist: what a check would read of it counts.
pub(crate) fn is_of_checks(path: &str, loops: &[Loop<'_>]) -> bool {
    let name = base(path);
    let is_configuration = || {
        let files = CONFIGURATION.iter().flat_map(|(_, files)| *files);
        let mut begins = files.map(|entry| entry.split_once('#').map_or(*entry, |(file, _)| file));
        begins.any(|begin| name.starts_with(begin))
    };
    let is_named = |one: &Loop<'_>| {
        let seen = path
            .strip_prefix(one.dir)
            .map_or(path, |rest| rest.trim_start_matches('/'));
        let file = ChangedFile {
            path: seen.to_owned(),
            before: None,
            after: None,
        };
        // A folder passed to a check means every file in it.
        let covers = |word: &String| {
            let is_path = word.contains(['/', '.']);
            let word = word.trim_start_matches("./").trim_end_matches('/');
            is_path
                && (seen == word
                    || seen
                        .strip_prefix(word)
                        .is_some_and(|rest| rest.starts_with('/')))
        };
        simple_commands(one.command)
            .iter()
            .filter_map(|words| program_of(words))
            .any(|(program, rest)| is_script(&file, program, rest) || rest.iter().any(covers))
    };
    is_test_path(path)
        || is_ci(path)
        || path.starts_with(".ultraplan/")
        || name == "conftest.py"
        || RECIPE_RUNNERS
            .iter()
            .any(|(_, usual)| usual.contains(&name))
        || is_configuration()
        || loops.iter().any(is_named)
}

fn is_ci(path: &str) -> bool {
    static CI: Single = Single::new(
        r"^(?:(?:\.gitlab-ci|\.travis|azure-pipelines|bitbucket-pipelines|\.drone|appveyor|\.cirrus)\.yml|Jenkinsfile)$|^\.(?:github/workflows|circleci|buildkite|ci|woodpecker)/",
    );
    CI.first(path).is_some()
}

/// What a changed file is to a command, where it is anything.
fn what_it_runs(file: &ChangedFile, files: &[ChangedFile], command: &str) -> Option<&'static str> {
    let commands = with_package_scripts(files, command);
    let mut tools: Vec<&str> = Vec::new();
    for words in &commands {
        let Some((program, rest)) = program_of(words) else {
            continue;
        };
        if is_script(file, program, rest) {
            return Some("the script");
        }
        if is_recipe_changed(file, program, rest) || is_entry_changed(file, program, rest) {
            return Some("the command");
        }
        tools.push(base(program));
        // A runner's tool may be an argument: `python -m pytest`, `uv run pytest`.
        tools.extend(rest.iter().map(|word| base(word)));
    }
    is_configuration_changed(file, &tools).then_some("the configuration")
}

/// The simple commands of a shell line, and those of the package's entries that it names, where the file is among the
/// changed ones.
fn with_package_scripts(files: &[ChangedFile], command: &str) -> Vec<Vec<String>> {
    let mut commands = simple_commands(command);
    let package = files.iter().find(|file| file.path == "package.json");
    let mut known = 0;
    while let Some(package) = package.filter(|_| known < commands.len() && commands.len() < 50) {
        let words = commands[known].clone();
        known += 1;
        let entry = program_of(&words).and_then(|(program, rest)| package_entry(program, rest));
        let text = entry.and_then(|entry| script_of(package.old_text(), &entry));
        if let Some(text) = text
            .as_ref()
            .and_then(serde_json::Value::as_str)
            .filter(|text| *text != command)
        {
            commands.extend(simple_commands(text));
        }
    }
    commands
}

/// The simple commands of a shell line. What a shell is given with `-c`, and what is in backticks, counts as well.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for words in program::simple_commands(&text.replace('`', "\n")) {
        let inner = program_of(&words).and_then(|(program, rest)| {
            let is_option = |word: &String| ["-c", "-ec", "-lc"].contains(&word.as_str());
            let script = rest.get(rest.iter().position(is_option)? + 1);
            script.filter(|_| INTERPRETERS.contains(&base(program)))
        });
        if let Some(inner) = inner.filter(|inner| inner.len() < text.len()) {
            commands.extend(simple_commands(inner));
        }
        commands.push(words);
    }
    commands
}

/// The program of a simple command and its arguments, without assignments and what only wraps it.
fn program_of(words: &[String]) -> Option<(&str, &[String])> {
    let mut wrapped = false;
    for (at, word) in words.iter().enumerate() {
        let assigns = word
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && !name.contains(['/', '-']));
        let of_wrapper =
            wrapped && (word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit()));
        if WRAPPERS.contains(&base(word)) {
            wrapped = true;
        } else if !assigns && !of_wrapper {
            return Some((word, &words[at + 1..]));
        }
    }
    None
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn same_path(word: &str, path: &str) -> bool {
    word.trim_start_matches("./") == path
}

/// Whether the command runs this file: as its program, or as the script of an interpreter. Test files that are named to a
/// runner are no scripts of the loop.
fn is_script(file: &ChangedFile, program: &str, rest: &[String]) -> bool {
    if same_path(program, &file.path) {
        return true;
    }
    let interprets = INTERPRETERS.contains(&base(program)) || base(program).starts_with("python");
    let script = rest
        .iter()
        .find(|word| !word.starts_with('-') && *word != "run");
    let by_module = rest.first().is_some_and(|word| word == "-m");
    let runs = interprets && !by_module && script.is_some_and(|word| same_path(word, &file.path));
    // `node tests/run.js` runs the tests; what became of those is examined for itself.
    runs && !(is_test_path(&file.path) && !file.path.ends_with("sh") && file.after.is_some())
}

/// The name of the package's entry that a command runs: `npm test`, `yarn lint`, `pnpm run build`.
fn package_entry(program: &str, rest: &[String]) -> Option<String> {
    if !PACKAGE_RUNNERS.contains(&base(program)) {
        return None;
    }
    let mut words = rest.iter().filter(|word| !word.starts_with('-'));
    let first = words.next()?;
    match first.as_str() {
        "run" | "run-script" => words.next().cloned(),
        "t" | "tst" => Some("test".to_owned()),
        other => Some(other.to_owned()),
    }
}

/// The value at a JSON pointer of a package's description.
fn value_at(text: &str, pointer: &str) -> Option<serde_json::Value> {
    let package: serde_json::Value = serde_json::from_str(text).ok()?;
    package.pointer(pointer).cloned()
}

fn script_of(text: &str, entry: &str) -> Option<serde_json::Value> {
    let name = entry.replace('~', "~0").replace('/', "~1");
    value_at(text, &format!("/scripts/{name}"))
}

fn is_entry_changed(file: &ChangedFile, program: &str, rest: &[String]) -> bool {
    let Some(entry) = package_entry(program, rest).filter(|_| file.path == "package.json") else {
        return false;
    };
    let around = [format!("pre{entry}"), format!("post{entry}"), entry];
    around.iter().any(|entry| {
        let old = script_of(file.old_text(), entry);
        let new = script_of(file.new_text(), entry);
        old.is_some() && old != new
    })
}

fn is_recipe_changed(file: &ChangedFile, program: &str, rest: &[String]) -> bool {
    let named = rest
        .iter()
        .position(|word| word == "-f" || word == "--file")
        .and_then(|at| rest.get(at + 1));
    let Some((_, usual)) = RECIPE_RUNNERS
        .iter()
        .find(|(name, _)| *name == base(program))
    else {
        return false;
    };
    let is_it = named.map_or_else(
        || usual.contains(&file.path.as_str()),
        |named| same_path(named, &file.path),
    );
    if !is_it {
        return false;
    }
    let mut targets = rest
        .iter()
        .filter(|word| !word.starts_with('-') && !word.contains('='))
        .peekable();
    if targets.peek().is_none() {
        return file.old_text() != file.new_text();
    }
    targets.any(|target| {
        let old = recipe(file.old_text(), target);
        !old.is_empty() && old != recipe(file.new_text(), target)
    })
}

/// The lines of a target: its head and what is indented below it.
fn recipe<'t>(text: &'t str, target: &str) -> Vec<&'t str> {
    let heads = |line: &str| {
        let head = line.split([':', ' ']).next().unwrap_or_default();
        head == target && line.contains(':') && !line.starts_with([' ', '\t', '#'])
    };
    let mut lines = text.lines().skip_while(|line| !heads(line));
    let head = lines.next();
    let body = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t']));
    head.into_iter()
        .chain(body)
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect()
}

fn is_configuration_changed(file: &ChangedFile, tools: &[&str]) -> bool {
    let name = base(&file.path);
    let used = CONFIGURATION
        .iter()
        .filter(|(names, _)| names.iter().any(|name| tools.contains(name)));
    used.flat_map(|(_, files)| *files)
        .any(|entry| match entry.split_once('#') {
            None => name.starts_with(entry),
            Some(("package.json", key)) => {
                let key = format!("/{key}");
                name == "package.json"
                    && value_at(file.old_text(), &key) != value_at(file.new_text(), &key)
            }
            Some((of, key)) => {
                let (old, new) = (section(file.old_text(), key), section(file.new_text(), key));
                name == of && !old.is_empty() && old != new
            }
        })
}

/// The lines of the sections `[name]`, `[[name]]` and those below it.
fn section<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if line.starts_with('[') {
            let head = line.trim_matches(['[', ']']).trim();
            inside = head == name
                || head
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(['.', ':']));
        }
        if inside {
            lines.push(line);
        }
    }
    lines
}
