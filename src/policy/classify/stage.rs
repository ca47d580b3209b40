//! Which stage a command is, guessed from its words.

use std::sync::LazyLock;

use regex::RegexSet;

use crate::model::failure::LoopKind;
use crate::policy::patterns::{Matches, Patterns, Single};

/// What a command that contains such words does. Asked in this order: `cargo test && cargo clippy` is a test.
const WORDS: &[(LoopKind, &str)] = &[
    (
        LoopKind::Agent,
        r"^(?:claude|codex|gemini|opencode|aider|qwen|goose|amp|cursor-agent|crush|cline|copilot|kiro-cli|droid)(?:\s|$)",
    ),
    (
        LoopKind::Typecheck,
        r"\btsc\b.*--noEmit|\b(?:mypy|pyright|basedpyright|pytype|pyre|vue-tsc|svelte-check|flow check|sorbet|dialyzer|dialyxir|phpstan|psalm)\b|\b(?:cargo check|srb tc|deno check|ty check|gleam check)\b|\btype-?check\b|\bcheck[-:]types?\b|\btypes?:check\b",
    ),
    (
        LoopKind::Lint,
        r"\b(?:clippy|rustfmt|eslint|oxlint|prettier|biome|ruff|flake8|pylint|black|isort|golangci-lint|staticcheck|revive|gofmt|goimports|shellcheck|shfmt|rubocop|standardrb|stylelint|clang-format|clang-tidy|cppcheck|ktlint|detekt|hadolint|yamllint|markdownlint\S*|credo|hlint|ormolu|swiftlint|swiftformat|checkstyle\S*|spotless\S*|phpcs|php-cs-fixer|actionlint|codespell|cspell|typos|taplo|bandit|pre-commit|tflint|sqlfluff|standard|xo|ameba|luacheck|dprint|cargo-deny)\b|\bcargo (?:fmt|deny|audit)\b|\bgo vet\b|\bdeno (?:lint|fmt)\b|\bmix format\b|\bdotnet format\b|\bzig fmt\b|\bbuf lint\b|\blint\b|\bfmt\b|\bformat(?:-check|:check)?\b",
    ),
    (
        LoopKind::Test,
        r"\b(?:pytest|py\.test|unittest|nose2?|tox|nox|jest|vitest|mocha|ava|tap|karma|jasmine|cypress|playwright|rspec|minitest|phpunit|pest|paratest|behat|behave|cucumber|ctest|bats|prove|busted|gotestsum|nextest|ginkgo|surefire|testcafe|wdio|nightwatch|molecule|robot|ert|hspec|criterion|tarpaulin|llvm-cov|c8|nyc)\b|\btests?\b|\bspecs?\b|\bverify\b|\bcheck(?:\.\w+)?\b|\be2e\b|\bcoverage\b",
    ),
    (
        LoopKind::Build,
        r"\b(?:make|cmake|ninja|meson|gcc|g\+\+|cc|clang|rustc|javac|kotlinc|scalac|swiftc|ghc|tsc|webpack|vite|rollup|esbuild|parcel|gradlew?|mvnw?|ant|sbt|bazel|buck2?|msbuild|xcodebuild|zig|cabal|stack|docker|podman|pip3?|npm|yarn|pnpm|bun|poetry|uv|bundle|composer|gem|apt|apt-get|dnf|apk|brew|conda|go|cargo|dotnet|mix|rebar3|git|curl|wget|rsync|tar|configure|autoreconf|protoc|terraform|helm|nx|turbo|lerna|next|nuxt|ng|flutter|dart|elm|dune|opam|nix|just|task|rake)\b|\bbuild\b|\binstall\b|\bcompile\b",
    ),
];

/// In ASCII text.
static ASCII: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(WORDS.iter().map(|(_, words)| *words)));
/// Where other letters are about, too: what ends a word then costs tables that take longer than all the rest.
static UNICODE: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(WORDS.iter().map(|(_, words)| *words)).ok());
/// What stands before the program.
static PREFIX: Single = Single::new(
    r"^(?:\s*(?:\w+=\S*|env|exec|time|nice|nohup|sudo|command|npx|bunx|(?:g?timeout)(?:\s+-\S+)*\s+\S+|-y|-[\w-]+)\s+)+",
);

/// The stage that a command line is, or `None` where its words do not tell.
pub fn guess_stage(command: &str) -> Option<LoopKind> {
    let mut guesses = command.split(['&', ';', '|', '\n']).filter(|part| !part.trim().is_empty()).map(part);
    let mut best: Option<LoopKind> = None;
    for guess in guesses.by_ref().flatten() {
        // The strongest claim of any part; a build that comes before a test belongs to it.
        let rank = |kind: LoopKind| WORDS.iter().position(|(stage, _)| *stage == kind);
        if best.is_none_or(|kind| kind == LoopKind::Build || rank(guess) == Some(0)) {
            best = Some(guess);
        }
    }
    best
}

/// What a feedback loop does: by its name, else by its command, else a test (the usual reason to have one).
pub fn guess_loop(name: &str, command: &str) -> LoopKind {
    let by = |text: &str| guess_stage(text).filter(|kind| *kind != LoopKind::Agent);
    by(&name.to_ascii_lowercase().replace('_', "-")).or_else(|| by(command)).unwrap_or(LoopKind::Test)
}

fn part(part: &str) -> Option<LoopKind> {
    let part = part.trim();
    let start = PREFIX.first(part).map_or(0, |found| found.whole.end);
    let words = part[start..].trim_start();
    let program = words.split_whitespace().next().unwrap_or_default();
    // Names of programs count without their folder; names of files do not count at all.
    let base = program.rsplit('/').next().unwrap_or(program);
    let line = format!("{base}{}", &words[program.len()..]);
    // `npm test`, `make lint`: what is asked for beats who is asked, which is why builds come last.
    let first = if line.is_ascii() {
        ASCII.matches(line.as_bytes(), &mut Matches::default()).first().map(|number| usize::from(*number))
    } else {
        UNICODE.as_ref()?.matches(&line).iter().next()
    };
    first.map(|index| WORDS[index].0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::patterns::oracle;

    #[test]
    fn every_pattern_compiles_and_is_asked_where_it_matches() {
        oracle::nothing_is_missed(&WORDS.iter().map(|(_, words)| *words).collect::<Vec<_>>());
        assert!(PREFIX.compiles() && UNICODE.is_some());
    }

    #[test]
    fn loops_are_told_by_their_name_then_by_their_command() {
        for (name, command, kind) in [
            ("test", "make everything", LoopKind::Test),
            ("unit-tests", "npm run x", LoopKind::Test),
            ("unit_tests", "npm run x", LoopKind::Test),
            ("typecheck", "npm run tsc", LoopKind::Typecheck),
            ("type-check", "npm run x", LoopKind::Typecheck),
            ("Type_Check", "npm run x", LoopKind::Typecheck),
            ("lint", "cargo clippy", LoopKind::Lint),
            ("a", "npx tsc --noEmit", LoopKind::Typecheck),
            ("a", "cargo fmt --check", LoopKind::Lint),
            ("a", "cargo check", LoopKind::Typecheck),
            ("a", "cargo build --release", LoopKind::Build),
            ("a", "npm run test:unit", LoopKind::Test),
            ("a", "./verify.sh", LoopKind::Test),
            ("a", "claude -p review", LoopKind::Test),
            ("build", "cargo test --no-run", LoopKind::Build),
        ] {
            assert_eq!(guess_loop(name, command), kind, "{name}: {command}");
        }
    }

    #[test]
    fn commands_tell_their_stage() {
        for (command, stage) in [
            ("cargo test", Some(LoopKind::Test)),
            ("python -m pytest -q", Some(LoopKind::Test)),
            ("npm run lint", Some(LoopKind::Lint)),
            ("npx tsc --noEmit", Some(LoopKind::Typecheck)),
            ("npx tsc -p .", Some(LoopKind::Build)),
            ("claude -p \"fix the failing test\"", Some(LoopKind::Agent)),
            ("FOO=1 timeout 30m codex exec x", Some(LoopKind::Agent)),
            ("make", Some(LoopKind::Build)),
            ("make -s check", Some(LoopKind::Test)),
            ("go test ./...", Some(LoopKind::Test)),
            ("go vet ./...", Some(LoopKind::Lint)),
            ("cargo clippy -- -D warnings", Some(LoopKind::Lint)),
            ("npm ci && npm test", Some(LoopKind::Test)),
            ("./gradlew build", Some(LoopKind::Build)),
            ("true", None),
            ("", None),
        ] {
            assert_eq!(guess_stage(command), stage, "{command}");
        }
    }
}
