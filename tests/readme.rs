//! Every command in the README is run, in its order, in one repository; those that cannot be, and those of the pages for
//! contributors, are recognised by what they say and checked in another way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "cli/env.rs"]
mod env;

use env::TestEnv;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks fenced as `sh`.
fn blocks(readme: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in readme.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => {
                let (language, block) = open.take().expect("an open block");
                match language.as_str() {
                    "sh" => found.push(block),
                    "text" => {}
                    _ => panic!("a block that no test looks at:\n{block}"),
                }
            }
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// Whether a line is one that cannot be run in a test; checks it in another way.
fn checked_otherwise(line: &str) -> bool {
    let ci = text(".ci/run");
    match line {
        // Run by a test of its own, below.
        "sh tests/demo.sh" => assert!(root().join("tests/demo.sh").exists()),
        "cargo install --locked --path ." => {
            let manifest = text("Cargo.toml");
            assert!(manifest.contains("[[bin]]\nname = \"recover\"") && root().join("Cargo.lock").exists());
        }
        "cargo test --locked"
        | "cargo fmt --check"
        | "cargo clippy --all-targets --locked -- -D warnings"
        | "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps --document-private-items --locked" => {
            let line = format!("{line} ");
            let ran = ci.lines().any(|ran| format!("{ran} ").starts_with(&line));
            assert!(ran, ".ci/run does not run: {line}");
        }
        "RECOVER_RANDOM_SECONDS=60 RECOVER_RANDOM_SEED=1 cargo test --locked --test random -- --nocapture" => {
            assert!(ci.contains("cargo test --locked --test random -- --nocapture\n"));
            let driver = text("tests/random/driver.rs");
            assert!(["RECOVER_RANDOM_SECONDS", "RECOVER_RANDOM_SEED"].iter().all(|name| driver.contains(name)));
        }
        "RECOVER_TEST_REFRESH=1 cargo test --test generated" => {
            assert!(text("tests/generated.rs").contains(&format!("\"{line}\"")));
        }
        "INSTA_UPDATE=always cargo test --test cli golden::" => {
            assert!(text("tests/cli/main.rs").contains("mod golden;"));
        }
        "cargo nextest run --profile fast" => assert!(text(".config/nextest.toml").contains("\n[profile.fast]\n")),
        "cargo build --release" => {}
        _ if line.starts_with("python3 tests/bench/") => {
            let script = line.trim_start_matches("python3 ");
            assert!(text(script).contains("target/release/recover"));
        }
        _ => return false,
    }
    true
}

/// A repository with what the README calls the agent and the checks, and a `recover` on `PATH`.
fn project() -> TestEnv {
    let mut env = TestEnv::repo();
    env.script("check.sh", "grep -qx works app.txt || { echo 'FAILED app: it does not work'; exit 1; }");
    env.script("agent.sh", "if [ $RECOVER_ATTEMPT = 1 ]; then echo broken > app.txt; else echo works > app.txt; fi");
    env.script("broken-agent.sh", "echo broken > app.txt");
    env.script("flaky-agent.sh", "test -e ../flaky || { touch ../flaky; echo 'connection reset by peer'; exit 1; }");
    env.git(&["add", "."]);
    env.git(&["commit", "-q", "-m", "agent and checks"]);
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder for programs");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_recover"), bin.join("recover")).expect("recover on PATH");
    let mut path = vec![bin];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path: PathBuf = std::env::join_paths(path).expect("a search path").into();
    // A clock that stands still: cooldowns are there, and waits are taken at once.
    env.set("PATH", &path.to_string_lossy()).set("RECOVER_TEST_NOW", "2026-01-05T10:00:00Z");
    env
}

#[test]
fn the_commands_of_the_readme_work() {
    let env = project();
    let mut said = String::new();
    let mut ran = 0;
    for block in blocks(&text("README.md")) {
        let known: Vec<bool> = block.lines().map(checked_otherwise).collect();
        if known.iter().all(|known| *known) {
            continue;
        }
        assert!(known.iter().all(|known| !known), "a block is run in part only:\n{block}");
        let result = env.sh(&format!("set -eu\n{block}"));
        assert_eq!(result.code, 0, "{block}\nstdout:\n{}\nstderr:\n{}", result.stdout, result.stderr);
        said.push_str(&result.stdout);
        ran += 1;
    }
    assert!(ran >= 8, "{ran} blocks were run");
    // What the README says about them: the first run waits, the script is told to, the fix is awaited and taken.
    for part in ["ended with 6", "wait: retry_after", "ended with 8", "complete"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(env.read("app.txt"), "works\n", "{said}");
    let document: serde_json::Value = serde_json::from_str(&env.read("retry.json")).expect("JSON");
    assert!(document["retry_after"].is_string() && document["wait_ms"].is_u64(), "{document}");
}

#[test]
fn the_commands_for_contributors_are_those_of_the_checks() {
    for block in blocks(&text("CONTRIBUTING.md")) {
        let unknown: Vec<&str> = block.lines().filter(|line| !checked_otherwise(line)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn the_demo_works() {
    let env = TestEnv::plain();
    let demo = root().join("tests/demo.sh");
    let result = env.sh(&format!("sh '{}' '{}'", demo.display(), env!("CARGO_BIN_EXE_recover")));
    let result = result.expect(0);
    assert!(
        result
            .stdout
            .ends_with("The failure was explained, rolled back and undone, and the run resumed and completed.\n")
    );
}

#[test]
fn the_exit_codes_are_those_of_the_manual() {
    let readme = text("README.md");
    let table = readme.split("## Exit codes").nth(1).and_then(|rest| rest.split("\n\n").nth(1)).expect("a table");
    let cells = table.lines().skip(2).filter_map(|row| row.split('|').nth(1));
    let listed: BTreeSet<u32> =
        cells.flat_map(|cell| cell.split(',').map(|code| code.trim().parse().unwrap())).collect();
    let manual = text("man/recover.1");
    let section =
        manual.split(".SH \"EXIT STATUS\"").nth(1).and_then(|rest| rest.split("\n.SH").next()).expect("codes");
    let codes = section.lines().filter_map(|line| line.strip_prefix("\\fB")?.strip_suffix("\\fR")?.parse().ok());
    assert_eq!(listed, codes.collect::<BTreeSet<u32>>());
}

#[test]
fn the_places_that_the_pages_name_are_there() {
    for page in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        let page_text = text(page);
        let prose: String = page_text.split("```").step_by(2).collect();
        let quoted = prose.split('`').skip(1).step_by(2);
        let is_place = |word: &&str| ["src/", "tests/", ".ci/"].iter().any(|folder| word.starts_with(folder));
        let places = quoted.filter(is_place).filter(|place| !place.contains('*'));
        let missing: Vec<&str> = places.filter(|place| !root().join(place).exists()).collect();
        assert!(missing.is_empty(), "{page}: {missing:?}");
    }
}

#[test]
fn scripts_are_sound() {
    let sound = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(root()).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(output.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&output.stderr));
    };
    sound("sh", &["-n", "tests/demo.sh"]);
    sound("bash", &["-n", ".ci/run"]);
}
