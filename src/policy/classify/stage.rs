//! Which stage a command is, guessed from its words.

use std::sync::LazyLock;

use regex::RegexSet;

use crate::model::feedback::CheckKind;
use crate::policy::patterns::{Patterns, Single};
use crate::policy::program;
use crate::policy::program::is_own;

/// What a command that contains such words does. Asked in this order: `cargo test && cargo clippy` is a test.
const WORDS: &[(CheckKind, &str)] = &[
    (
        CheckKind::Agent,
        r"^(?:claude|codex|gemini|opencode|aider|qwen|goose|amp|cursor-agent|crush|cline|copilot|kiro-cli|droid)(?:\s|$)",
    ),
    (
        CheckKind::Typecheck,
        r"\btsc\b.*--noEmit|\b(?:mypy|pyright|basedpyright|pytype|pyre|vue-tsc|svelte-check|flow check|sorbet|dialyzer|dialyxir|phpstan|psalm)\b|\b(?:cargo check|srb tc|deno check|ty check|gleam check)\b|\btype-?check\b|\bcheck[-:]types?\b|\btypes?:check\b",
    ),
    (
        CheckKind::Lint,
        r"\b(?:clippy|rustfmt|eslint|oxlint|prettier|biome|ruff|flake8|pylint|black|isort|golangci-lint|staticcheck|revive|gofmt|goimports|shellcheck|shfmt|rubocop|standardrb|stylelint|clang-format|clang-tidy|cppcheck|ktlint|detekt|hadolint|yamllint|markdownlint\S*|credo|hlint|ormolu|swiftlint|swiftformat|checkstyle\S*|spotless\S*|phpcs|php-cs-fixer|actionlint|codespell|cspell|typos|taplo|bandit|pre-commit|tflint|sqlfluff|standard|xo|ameba|luacheck|dprint|cargo-deny)\b|\bcargo (?:fmt|deny|audit)\b|\bgo vet\b|\bdeno (?:lint|fmt)\b|\bmix format\b|\bdotnet format\b|\bzig fmt\b|\bbuf lint\b|\blint\b|\bfmt\b|\bformat(?:-check|:check)?\b",
    ),
    (
        CheckKind::Test,
        r"\b(?:pytest|py\.test|unittest|nose2?|tox|nox|jest|vitest|mocha|ava|tap|karma|jasmine|cypress|playwright|rspec|minitest|phpunit|pest|paratest|behat|behave|cucumber|ctest|bats|prove|busted|gotestsum|nextest|ginkgo|surefire|testcafe|wdio|nightwatch|molecule|robot|ert|hspec|criterion|tarpaulin|llvm-cov|c8|nyc)\b|\btests?\b|\bspecs?\b|\bverify\b|\bcheck(?:\.\w+)?\b|\be2e\b|\bcoverage\b",
    ),
    (
        CheckKind::Build,
        r"\b(?:make|cmake|ninja|meson|gcc|g\+\+|cc|clang|rustc|javac|kotlinc|scalac|swiftc|ghc|tsc|webpack|vite|rollup|esbuild|parcel|gradlew?|mvnw?|ant|sbt|bazel|buck2?|msbuild|xcodebuild|zig|cabal|stack|docker|podman|pip3?|npm|yarn|pnpm|bun|poetry|uv|bundle|composer|gem|apt|apt-get|dnf|apk|brew|conda|go|cargo|dotnet|mix|rebar3|git|curl|wget|rsync|tar|configure|autoreconf|protoc|terraform|helm|nx|turbo|lerna|next|nuxt|ng|flutter|dart|elm|dune|opam|nix|just|task|rake)\b|\bbuild\b|\binstall\b|\bcompile\b",
    ),
];

/// In ASCII text.
static ASCII: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(patterns()));
/// Where other letters are about, too: what ends a word then costs tables that take longer than all the rest.
static UNICODE: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(patterns()).ok());
/// Programs that are a tool of one of the stages by their own name. Names alone count here: a script of the user's may be
/// called anything.
static TOOLS: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(WORDS.iter().map(|(_, words)| format!("^(?:{words})$"))).ok());
/// Words that name no tool.
static GENERIC: Single = Single::new(
    r"^(?:build|check|compile|coverage|e2e|fmt|format(?:-check)?|install|lint|specs?|standard|tests?|type-?check|verify)$",
);
/// Package managers that run whatever the project calls by a name.
const RUNNERS: [&str; 9] = [
    "npm", "pnpm", "yarn", "bun", "just", "task", "rake", "turbo", "nx",
];

/// The patterns of [`WORDS`].
pub(super) fn patterns() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(_, words)| *words)
}

/// The stage of a supervised command: it is the agent, unless every program that it starts, wrappers taken off, is a tool
/// that builds or checks. Words elsewhere in the line never decide.
pub(crate) fn stage_of_command(command: &[String]) -> CheckKind {
    let programs = program::of_command(command);
    strongest(
        programs
            .iter()
            .filter_map(|words| stage_of_program(words, |_| Some(CheckKind::Agent))),
    )
    .unwrap_or(CheckKind::Agent)
}

/// `None` for what a script does around its programs. What is known for no tool is for `unknown` to say, by the words that
/// say what it does.
fn stage_of_program(
    words: &[String],
    unknown: impl Fn(&str) -> Option<CheckKind>,
) -> Option<CheckKind> {
    /// Programs that only prepare something or show it.
    const AROUND: [&str; 14] = [
        "cat", "chmod", "cp", "date", "grep", "head", "ls", "mkdir", "mv", "rm", "sed", "sleep",
        "tail", "tee",
    ];
    let (program, rest) = words.split_first()?;
    if is_own(program) || AROUND.contains(&program.as_str()) {
        return None;
    }
    let is_tool = GENERIC.first(program).is_none()
        && TOOLS.as_ref().is_some_and(|tools| tools.is_match(program));
    // A prompt, and what is passed on, says nothing of the tool.
    let told = rest
        .iter()
        .take_while(|word| *word != "--" && !word.contains(char::is_whitespace));
    // Nor does an option of many words say what is done: `--no-verify`, `--disable-pip-version-check`.
    let is_aside = |word: &str| {
        word.strip_prefix("--")
            .is_some_and(|name| name.contains('-') && !name.contains('='))
    };
    let told: Vec<&str> = told
        .map(String::as_str)
        .filter(|word| !is_aside(word))
        .collect();
    let mut plain = told
        .iter()
        .copied()
        .filter(|word| !word.starts_with(['-', '+']));
    let (first, second) = (plain.next(), plain.next());
    let line = format!("{program} {}", told.join(" "));
    match (program.as_str(), first) {
        _ if program == "node" && told.contains(&"--test")
            || program == "deno" && first == Some("test") =>
        {
            Some(CheckKind::Test)
        }
        ("cargo" | "go" | "dotnet" | "swift" | "zig", Some("run" | "r")) => unknown(&line),
        (runner, Some(name)) if RUNNERS.contains(&runner) => {
            match if name.starts_with("run") {
                second
            } else {
                Some(name)
            } {
                Some("ci" | "i" | "install" | "add" | "update" | "up") => Some(CheckKind::Build),
                Some("t") => Some(CheckKind::Test),
                // By the name alone: who is asked says nothing.
                name => name.and_then(guess_part).or_else(|| unknown(&line)),
            }
        }
        _ => Some(line.as_str())
            .filter(|_| is_tool)
            .and_then(guess_part)
            .or_else(|| unknown(&line)),
    }
}

/// The stage that a command line is, or `None` where its words do not show it.
pub(crate) fn guess_stage(command: &str) -> Option<CheckKind> {
    strongest(
        program::of_line(command)
            .iter()
            .filter_map(|words| stage_of_program(words, guess_part)),
    )
}

/// The strongest claim of any part; a build that comes before a test belongs to it.
fn strongest(stages: impl Iterator<Item = CheckKind>) -> Option<CheckKind> {
    stages.reduce(|best, stage| match (best, stage) {
        (CheckKind::Build, _) | (_, CheckKind::Agent) => stage,
        _ => best,
    })
}

/// What a feedback loop does: by its name, else by its command, else a test (the usual reason to have one).
pub(crate) fn guess_loop(name: &str, command: &str) -> CheckKind {
    let by_name = guess_part(&name.to_ascii_lowercase().replace('_', "-"))
        .filter(|kind| *kind != CheckKind::Agent);
    by_name
        .or_else(|| guess_stage(command).filter(|kind| *kind != CheckKind::Agent))
        .unwrap_or(CheckKind::Test)
}

/// The stage that the words of one command imply.
fn guess_part(line: &str) -> Option<CheckKind> {
    // `npm test`, `make lint`: what is asked for beats who is asked, which is why builds come last.
    let first = if line.is_ascii() {
        ASCII
            .matches(line.as_bytes())
            .first()
            .map(|number| usize::from(*number))
    } else {
        UNICODE.as_ref()?.matches(line).iter().next()
    };
    first.map(|index| WORDS[index].0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::patterns::tests::nothing_is_missed;

    #[test]
    fn every_pattern_compiles_and_is_found_where_it_matches() {
        nothing_is_missed(&patterns().collect::<Vec<_>>());
        assert!(UNICODE.is_some() && TOOLS.is_some());
    }

    #[test]
    fn loops_are_told_by_their_name_then_by_their_command() {
        for (name, command, kind) in [
            ("test", "make everything", CheckKind::Test),
            ("unit-tests", "npm run x", CheckKind::Test),
            ("unit_tests", "npm run x", CheckKind::Test),
            ("typecheck", "npm run tsc", CheckKind::Typecheck),
            ("type-check", "npm run x", CheckKind::Typecheck),
            ("Type_Check", "npm run x", CheckKind::Typecheck),
            ("lint", "cargo clippy", CheckKind::Lint),
            ("a", "npx tsc --noEmit", CheckKind::Typecheck),
            ("a", "cargo fmt --check", CheckKind::Lint),
            ("a", "cargo check", CheckKind::Typecheck),
            ("a", "cargo build --release", CheckKind::Build),
            ("a", "npm run test:unit", CheckKind::Test),
            ("a", "./verify.sh", CheckKind::Test),
            ("a", "claude -p review", CheckKind::Test),
            ("build", "cargo test --no-run", CheckKind::Build),
        ] {
            assert_eq!(guess_loop(name, command), kind, "{name}: {command}");
        }
    }

    #[test]
    fn a_supervised_command_is_the_agent_unless_it_is_a_check() {
        for (command, stage) in [
            ("claude -p 'make the tests pass'", CheckKind::Agent),
            (
                "sh -c 'claude -p \"make the tests pass\" --output-format stream-json'",
                CheckKind::Agent,
            ),
            ("env -u X claude -p 'fix the format'", CheckKind::Agent),
            ("./agent --goal 'cargo test passes'", CheckKind::Agent),
            ("./verify.sh", CheckKind::Agent),
            ("my-test-runner", CheckKind::Agent),
            ("python loop.py --tests", CheckKind::Agent),
            ("sh -c 'echo build failed; exit 1'", CheckKind::Agent),
            ("npm run agent", CheckKind::Agent),
            ("npm start", CheckKind::Agent),
            ("cargo run -- test", CheckKind::Agent),
            ("docker run img claude -p test", CheckKind::Agent),
            ("sh -c 'npm test && claude -p x'", CheckKind::Agent),
            ("cargo test", CheckKind::Test),
            ("cargo +nightly test", CheckKind::Test),
            (
                "sh -c 'cd x && cargo build && cargo test 2>&1 | tee log'",
                CheckKind::Test,
            ),
            ("python3 -m pytest -q", CheckKind::Test),
            ("pytest", CheckKind::Test),
            ("npm test", CheckKind::Test),
            ("npm run test:unit", CheckKind::Test),
            ("yarn lint", CheckKind::Lint),
            ("node --test", CheckKind::Test),
            ("go test ./...", CheckKind::Test),
            ("docker run --rm -v /a:/b img cargo test", CheckKind::Test),
            ("make", CheckKind::Build),
            ("make -s check", CheckKind::Test),
            ("cargo build", CheckKind::Build),
            ("go build ./...", CheckKind::Build),
            ("tsc", CheckKind::Build),
            ("npx tsc --noEmit", CheckKind::Typecheck),
            ("cargo clippy -- -D warnings", CheckKind::Lint),
            ("npm ci", CheckKind::Build),
            ("./gradlew build", CheckKind::Build),
        ] {
            assert_eq!(
                stage_of_command(&shlex::split(command).unwrap()),
                stage,
                "{command}"
            );
        }
    }

    #[test]
    fn commands_tell_their_stage() {
        for (command, stage) in [
            ("cargo test", Some(CheckKind::Test)),
            ("python -m pytest -q", Some(CheckKind::Test)),
            ("npm run lint", Some(CheckKind::Lint)),
            ("npx tsc --noEmit", Some(CheckKind::Typecheck)),
            ("npx tsc -p .", Some(CheckKind::Build)),
            ("claude -p \"fix the failing test\"", Some(CheckKind::Agent)),
            ("FOO=1 timeout 30m codex exec x", Some(CheckKind::Agent)),
            ("make", Some(CheckKind::Build)),
            ("make -s check", Some(CheckKind::Test)),
            ("go test ./...", Some(CheckKind::Test)),
            ("go vet ./...", Some(CheckKind::Lint)),
            ("cargo clippy -- -D warnings", Some(CheckKind::Lint)),
            ("npm ci && npm test", Some(CheckKind::Test)),
            ("./gradlew build", Some(CheckKind::Build)),
            // A prompt may speak of anything.
            ("llm 'fix the failing test'", None),
            (
                "./agent.sh 'make the build pass' && git push",
                Some(CheckKind::Build),
            ),
            ("grep -q test notes.txt", None),
            ("cargo publish --no-verify", Some(CheckKind::Build)),
            (
                "pip install --disable-pip-version-check x",
                Some(CheckKind::Build),
            ),
            ("npm run codegen", Some(CheckKind::Build)),
            ("./verify.sh all", Some(CheckKind::Test)),
            ("true", None),
            ("", None),
        ] {
            assert_eq!(guess_stage(command), stage, "{command}");
        }
    }
}
