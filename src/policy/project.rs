//! What kind of project a folder holds: the checks and the agent that its own files suggest (`init`).
//!
//! A target of the project's Makefile or justfile goes before what its language is known for: whoever wrote it knows what
//! it needs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::model::feedback::CheckKind;

/// A file or folder at the top of a project, with its content where [`READ`] names it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its name.
    pub name: String,
    /// What it holds; empty where that was not read.
    pub content: String,
}

/// The files whose content matters.
pub(crate) const READ: [&str; 9] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "Makefile",
    "makefile",
    "justfile",
    "Justfile",
];

/// Files and folders that an agent's users have.
const AGENTS: [(&str, &[&str]); 6] = [
    ("claude", &[".claude", "CLAUDE.md"]),
    ("codex", &[".codex"]),
    ("gemini", &[".gemini", "GEMINI.md"]),
    (
        "opencode",
        &[".opencode", "opencode.json", "opencode.jsonc"],
    ),
    ("qwen", &[".qwen", "QWEN.md"]),
    ("aider", &[".aider.conf.yml"]),
];

/// The kinds in the order in which checks run: what is quick and says most first.
const KINDS: [CheckKind; 4] = [
    CheckKind::Typecheck,
    CheckKind::Build,
    CheckKind::Test,
    CheckKind::Lint,
];

/// A check that fits the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "init_check")]
pub(crate) struct Suggested {
    pub kind: CheckKind,
    /// The shell command.
    pub command: String,
    /// The file that says so.
    pub found: &'static str,
}

/// What fits a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Project {
    /// Checks that fit it, in the order in which they run.
    pub checks: Vec<Suggested>,
    /// The agents whose settings were found.
    pub agents: Vec<&'static str>,
}

/// Looks at what lies at the top of a project.
pub(crate) fn recognise(found: &[Found]) -> Project {
    let top = Top(found);
    let mut checks = targets(&top);
    let own: BTreeSet<&str> = checks.iter().map(|check| check.kind.as_str()).collect();
    let known = [rust(&top), node(&top), python(&top), go(&top), java(&top)].concat();
    checks.extend(
        known
            .into_iter()
            .filter(|check| !own.contains(check.kind.as_str())),
    );
    // What is tested is built; a build alone says what nothing else does.
    if checks.iter().any(|check| check.kind == CheckKind::Test) {
        checks.retain(|check| check.kind != CheckKind::Build);
    }
    let place = |check: &Suggested| KINDS.iter().position(|kind| *kind == check.kind);
    checks.sort_by_key(place);
    let has_any = |names: &&[&str]| names.iter().any(|name| top.has(name));
    let agents = AGENTS
        .iter()
        .filter(|(_, names)| has_any(names))
        .map(|(agent, _)| *agent)
        .collect();
    Project { checks, agents }
}

/// The lines of a `recover.toml` for a project.
pub(crate) fn configuration(project: &Project) -> String {
    let mut text =
        "# How `recover` supervises runs in this project. All keys: recover init --full\n"
            .to_owned();
    // A string takes whatever is written.
    if let [agent] = project.agents.as_slice() {
        let _ = write!(text, "\n[runner]\nagent = \"{agent}\"\n");
    }
    let mut names = BTreeSet::new();
    for check in &project.checks {
        let kind = check.kind.as_str();
        let program = check.command.split(' ').next().unwrap_or(kind);
        let name = if names.contains(kind) {
            format!("{program}-{kind}")
        } else {
            kind.to_owned()
        };
        let command = toml_string(&check.command);
        let _ = write!(
            text,
            "\n[[feedback]]\nname = \"{name}\"\nkind = \"{kind}\"\ncommand = {command}\n"
        );
        names.insert(name);
    }
    if project.checks.is_empty() {
        text.push_str(
            "\n# A command that must pass after each attempt; without one \"passed\" means that the command exits with 0.\n\
             # [[feedback]]\n# name = \"test\"\n# kind = \"test\"\n# command = \"./test.sh\"\n",
        );
    }
    text
}

fn toml_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// What lies at the top.
struct Top<'a>(&'a [Found]);

impl Top<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|found| found.name == name)
    }

    fn content(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|found| found.name == name)
            .map(|found| found.content.as_str())
    }

    fn first(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        names
            .iter()
            .find_map(|name| Some((*name, self.content(name)?)))
    }
}

fn check(kind: CheckKind, command: impl Into<String>, found: &'static str) -> Suggested {
    Suggested {
        kind,
        command: command.into(),
        found,
    }
}

/// Names of targets, recipes and scripts, by what they are for; the first that is there counts.
const NAMES: [(CheckKind, &[&str]); 4] = [
    (CheckKind::Test, &["test", "tests", "check"]),
    (CheckKind::Lint, &["lint"]),
    (CheckKind::Typecheck, &["typecheck", "type-check", "types"]),
    (CheckKind::Build, &["build"]),
];

/// Targets of a justfile, else of a Makefile.
fn targets(top: &Top<'_>) -> Vec<Suggested> {
    let (program, (file, content)) = match (
        top.first(&["justfile", "Justfile"]),
        top.first(&["Makefile", "makefile"]),
    ) {
        (Some(just), _) => ("just", just),
        (None, Some(make)) => ("make", make),
        (None, None) => return Vec::new(),
    };
    // `name:`, and for just also `name argument='default':`; not an assignment, nor a line of a recipe.
    let heads = content
        .lines()
        .filter(|line| !line.starts_with([' ', '\t', '#', '.', '@']) && !line.contains(":="));
    let heads = heads
        .filter_map(|line| line.split_once(':'))
        .flat_map(|(head, _)| head.split_whitespace());
    let names: BTreeSet<&str> = heads.collect();
    let chosen = |(kind, known): &(CheckKind, &'static [&'static str])| {
        let name = known.iter().find(|name| names.contains(**name))?;
        Some(check(*kind, format!("{program} {name}"), file))
    };
    NAMES.iter().filter_map(chosen).collect()
}

fn rust(top: &Top<'_>) -> Vec<Suggested> {
    let Some(manifest) = top.content("Cargo.toml") else {
        return Vec::new();
    };
    let is_workspace = manifest.contains("[workspace]");
    let workspace = if is_workspace { " --workspace" } else { "" };
    let test = format!("cargo test{workspace}");
    let mut checks = vec![check(CheckKind::Test, test, "Cargo.toml")];
    let lints = manifest.contains("[lints") || manifest.contains("[workspace.lints");
    if lints || top.has("clippy.toml") || top.has(".clippy.toml") {
        let command = format!("cargo clippy{workspace} --all-targets -- -D warnings");
        checks.push(check(CheckKind::Lint, command, "Cargo.toml"));
    }
    checks
}

fn node(top: &Top<'_>) -> Vec<Suggested> {
    let Some(text) = top.content("package.json") else {
        return Vec::new();
    };
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let program = [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
    ]
    .iter()
    .find(|(lock, _)| top.has(lock))
    .map_or("npm", |(_, program)| *program);
    // What npm writes into a new package.
    let is_real = |name: &str| {
        package["scripts"][name]
            .as_str()
            .is_some_and(|script| !script.contains("no test specified"))
    };
    let run = |name: &str| match name {
        "test" if program != "bun" => format!("{program} test"),
        _ => format!("{program} run {name}"),
    };
    let chosen = |(kind, known): &(CheckKind, &'static [&'static str])| {
        let name = known.iter().find(|name| is_real(name))?;
        Some(check(*kind, run(name), "package.json"))
    };
    let mut checks: Vec<Suggested> = NAMES.iter().filter_map(chosen).collect();
    let is_checked = checks
        .iter()
        .any(|check| check.kind == CheckKind::Typecheck);
    if top.has("tsconfig.json") && !is_checked {
        let command = "npx tsc --noEmit";
        checks.push(check(CheckKind::Typecheck, command, "tsconfig.json"));
    }
    checks
}

/// Maven's or Gradle's own test goal, by the wrapper that the project brings where it does.
fn java(top: &Top<'_>) -> Vec<Suggested> {
    let known = [
        ("pom.xml", "mvnw", "mvn"),
        ("build.gradle", "gradlew", "gradle"),
        ("build.gradle.kts", "gradlew", "gradle"),
    ];
    let Some((file, wrapper, program)) = known.into_iter().find(|(file, ..)| top.has(file)) else {
        return Vec::new();
    };
    let wrapper = Some(format!("./{wrapper}")).filter(|_| top.has(wrapper));
    let command = wrapper.unwrap_or_else(|| program.to_owned()) + " test";
    vec![check(CheckKind::Test, command, file)]
}

fn python(top: &Top<'_>) -> Vec<Suggested> {
    if top.has("tox.ini") {
        return vec![check(CheckKind::Test, "tox", "tox.ini")];
    }
    let Some((file, text)) = top.first(&["pyproject.toml", "setup.cfg", "setup.py"]) else {
        return Vec::new();
    };
    let prefix = match (top.has("uv.lock"), top.has("poetry.lock")) {
        (true, _) => "uv run ",
        (_, true) => "poetry run ",
        _ => "",
    };
    let has_tests =
        top.has("tests") || top.has("test") || top.has("pytest.ini") || text.contains("pytest");
    let has_ruff = text.contains("tool.ruff") || top.has("ruff.toml");
    let has_mypy = text.contains("tool.mypy") || top.has("mypy.ini");
    let has_pyright = text.contains("tool.pyright") || top.has("pyrightconfig.json");
    let known = [
        (has_tests, CheckKind::Test, "pytest"),
        (has_ruff, CheckKind::Lint, "ruff check ."),
        (has_mypy, CheckKind::Typecheck, "mypy ."),
        (has_pyright, CheckKind::Typecheck, "pyright"),
    ];
    let chosen = known.into_iter().filter(|(is, ..)| *is);
    chosen
        .map(|(_, kind, command)| check(kind, format!("{prefix}{command}"), file))
        .collect()
}

fn go(top: &Top<'_>) -> Vec<Suggested> {
    if !top.has("go.mod") {
        return Vec::new();
    }
    vec![
        check(CheckKind::Test, "go test ./...", "go.mod"),
        check(CheckKind::Lint, "go vet ./...", "go.mod"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(found: &[(&str, &str)]) -> Vec<String> {
        let found: Vec<Found> = found
            .iter()
            .map(|(name, content)| Found {
                name: (*name).into(),
                content: (*content).into(),
            })
            .collect();
        recognise(&found)
            .checks
            .into_iter()
            .map(|check| check.command)
            .collect()
    }

    #[test]
    fn languages_have_their_own() {
        assert_eq!(commands(&[("Cargo.toml", "[package]\n")]), ["cargo test"]);
        assert_eq!(
            commands(&[("Cargo.toml", "[workspace]\n[workspace.lints.rust]\n")]),
            [
                "cargo test --workspace",
                "cargo clippy --workspace --all-targets -- -D warnings"
            ]
        );
        assert_eq!(
            commands(&[("go.mod", "")]),
            ["go test ./...", "go vet ./..."]
        );
        assert_eq!(
            commands(&[
                ("pyproject.toml", "[tool.ruff]\n[tool.mypy]\n"),
                ("uv.lock", ""),
                ("tests", "")
            ]),
            ["uv run mypy .", "uv run pytest", "uv run ruff check ."]
        );
        assert_eq!(commands(&[("pom.xml", "")]), ["mvn test"]);
        assert_eq!(
            commands(&[("build.gradle.kts", ""), ("gradlew", "")]),
            ["./gradlew test"]
        );
        assert!(commands(&[("README.md", "")]).is_empty());
    }

    #[test]
    fn scripts_that_are_there_are_run_by_the_packages_own_program() {
        let text = r#"{"scripts": {"test": "vitest", "lint": "eslint .", "build": "tsc"}}"#;
        assert_eq!(
            commands(&[("package.json", text)]),
            ["npm test", "npm run lint"]
        );
        let with = [
            ("package.json", text),
            ("yarn.lock", ""),
            ("tsconfig.json", ""),
        ];
        assert_eq!(
            commands(&with),
            ["npx tsc --noEmit", "yarn test", "yarn run lint"]
        );
        let new = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        assert!(commands(&[("package.json", new)]).is_empty());
        assert!(commands(&[("package.json", "{")]).is_empty());
        assert_eq!(
            commands(&[("package.json", r#"{"scripts": {"build": "vite build"}}"#)]),
            ["npm run build"]
        );
    }

    #[test]
    fn targets_of_the_project_go_before_what_its_language_has() {
        let make = "VERSION := 1:2\n.PHONY: lint\n\ntest: build\n\t./t lint:\nbuild clean:\n\tcc\n";
        assert_eq!(
            commands(&[("Makefile", make), ("go.mod", "")]),
            ["make test", "go vet ./..."]
        );
        let just = "set shell := ['sh']\n# lint: no\ntest filter='x':\n    cargo nextest run\nlint:\n    x\n";
        assert_eq!(
            commands(&[("justfile", just), ("Makefile", make)]),
            ["just test", "just lint"]
        );
    }

    #[test]
    fn what_is_written_says_the_same() {
        let found = [
            ("Cargo.toml", "[package]"),
            ("package.json", r#"{"scripts": {"test": "a \"b\""}}"#),
            (".claude", ""),
        ];
        let found: Vec<Found> = found
            .iter()
            .map(|(name, content)| Found {
                name: (*name).into(),
                content: (*content).into(),
            })
            .collect();
        let text = configuration(&recognise(&found));
        let parsed: toml::Table = text.parse().unwrap();
        assert_eq!(parsed["runner"]["agent"].as_str(), Some("claude"));
        let names: Vec<_> = parsed["feedback"]
            .as_array()
            .unwrap()
            .iter()
            .map(|check| check["name"].as_str())
            .collect();
        assert_eq!(names, [Some("test"), Some("npm-test")]);
        assert!(
            configuration(&Project::default())
                .parse::<toml::Table>()
                .unwrap()
                .is_empty()
        );
    }
}
