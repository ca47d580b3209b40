//! Every command in the README is run, in its order, in one repository.
//!
//! Those that cannot be, and those of the pages for contributors, are recognised by what they say and checked in another way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod compared;
#[path = "../cli/env.rs"]
mod env;
mod recording;
#[path = "../cli/terminal.rs"]
#[allow(dead_code, reason = "pictures need a part of it")]
mod terminal;
mod workflows;

use env::TestEnv;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A fenced block of a page.
struct Block {
    language: String,
    body: String,
    /// It stands right below the block before it, and is what that prints.
    follows: bool,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut open, mut follows) = (false, false);
    for line in page.lines() {
        match (open, line.strip_prefix("```")) {
            (false, Some(language)) => {
                found.push(Block {
                    language: language.to_owned(),
                    body: String::new(),
                    follows,
                });
                open = true;
            }
            (true, Some(_)) => (open, follows) = (false, true),
            (true, None) => {
                let block = found.last_mut().expect("an open block");
                block.body.push_str(line);
                block.body.push('\n');
            }
            (false, None) => follows &= line.is_empty(),
        }
    }
    assert!(!open, "a block is not closed");
    found
}

/// The blocks fenced as `sh`; no other one but output, files, and what is checked by a test of its own.
fn scripts(page: &str) -> Vec<String> {
    let blocks = blocks(page).into_iter();
    blocks
        .filter(|block| match block.language.as_str() {
            "sh" => true,
            "text" | "yaml" => false,
            _ => panic!("a block that no test looks at:\n{}", block.body),
        })
        .map(|block| block.body)
        .collect()
}

/// Whether a line is one that cannot be run in a test; checks it in another way.
fn checked_otherwise(line: &str) -> bool {
    let ci = text(".ci/run");
    match line {
        // Run by a test of its own, below.
        "sh tests/demo.sh" => assert!(root().join("tests/demo.sh").exists()),
        "cargo install --locked --path ." => {
            let manifest = text("Cargo.toml");
            assert!(
                manifest.contains("[[bin]]\nname = \"recover\"")
                    && root().join("Cargo.lock").exists()
            );
        }
        "cargo test --locked"
        | "cargo fmt --check"
        | "cargo clippy --all-targets --locked -- -D warnings"
        | "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps --document-private-items --locked" => {
            let line = format!("{line} ");
            let ran = ci.lines().any(|ran| format!("{ran} ").starts_with(&line));
            assert!(ran, ".ci/run does not run: {line}");
        }
        "RECOVER_RANDOM_SECONDS=60 RECOVER_RANDOM_SEED=1 cargo test --locked --test random -- --nocapture" =>
        {
            assert!(ci.contains("\"$(executable random)\" --nocapture\n"));
            let driver = text("tests/random/driver.rs");
            assert!(
                ["RECOVER_RANDOM_SECONDS", "RECOVER_RANDOM_SEED"]
                    .iter()
                    .all(|name| driver.contains(name))
            );
        }
        ".ci/cross python3 -m ziglang" => {
            let ran = ci
                .lines()
                .any(|ran| ran.trim_start().starts_with(".ci/cross "));
            assert!(ran && text(".ci/cross").contains("cargo clippy "));
        }
        "RECOVER_TEST_REFRESH=1 cargo test --test generated" => {
            assert!(text("tests/generated.rs").contains(&format!("\"{line}\"")));
        }
        "INSTA_UPDATE=always cargo test --test cli golden::" => {
            assert!(text("tests/cli/main.rs").contains("mod golden;"));
        }
        "cargo nextest run --profile fast" => {
            assert!(text(".config/nextest.toml").contains("\n[profile.fast]\n"));
        }
        "cargo build --release" => {}
        // Made and installed by a part of the checks of its own.
        "packaging/build.py && sh dist/install.sh --from dist" => {
            assert!(
                [
                    "packaging/build.py ",
                    "packaging/test.sh ",
                    "packaging/test-installers.sh "
                ]
                .iter()
                .all(|name| ci.contains(name))
            );
        }
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
    env.script(
        "check.sh",
        "grep -qx works app.txt || { echo 'FAILED app: it does not work'; exit 1; }",
    );
    env.script(
        "agent.sh",
        "if [ $RECOVER_ATTEMPT = 1 ]; then echo broken > app.txt; else echo works > app.txt; fi",
    );
    env.script("broken-agent.sh", "echo broken > app.txt");
    env.script(
        "flaky-agent.sh",
        "test -e ../flaky || { touch ../flaky; echo 'connection reset by peer'; exit 1; }",
    );
    env.write("TASK.md", "Make the checks pass.\n");
    env.write("app.txt", "works\n");
    env.git(&["add", "."]);
    env.git(&["commit", "-q", "-m", "agent and checks"]);
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder for programs");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_recover"), bin.join("recover"))
        .expect("recover on PATH");
    // The agents' programs in its place, with a record each as they print it.
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"Claude Code works","session_id":"s1"}"#;
    env.script(
        "../bin/claude",
        &format!("cat > ../prompt; echo works > app.txt; echo done > task.txt; echo '{done}'"),
    );
    let done = r#"{"type":"item.completed","item":{"type":"agent_message","text":"codex works"}}"#;
    env.script(
        "../bin/codex",
        &format!("echo works > app.txt; echo '{done}'"),
    );
    let mut path = vec![bin];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let path: PathBuf = std::env::join_paths(path).expect("a search path").into();
    // A clock that stands still: cooldowns are there, and waits are taken at once.
    env.set("PATH", &path.to_string_lossy())
        .set("RECOVER_TEST_NOW", "2026-01-05T10:00:00Z");
    env
}

/// Runs all commands of a page, and returns what they printed.
fn run_all(env: &TestEnv, page: &str) -> String {
    let mut said = String::new();
    let mut ran = 0;
    for block in scripts(page) {
        let known: Vec<bool> = block.lines().map(checked_otherwise).collect();
        if known.iter().all(|known| *known) {
            continue;
        }
        assert!(
            known.iter().all(|known| !known),
            "a block is run in part only:\n{block}"
        );
        let result = env.sh(&format!("set -eu\n{block}"));
        assert_eq!(
            result.code, 0,
            "{block}\nstdout:\n{}\nstderr:\n{}",
            result.stdout, result.stderr
        );
        said.push_str(&result.stdout);
        ran += 1;
    }
    assert!(ran >= 9, "{ran} blocks were run");
    said
}

#[test]
fn the_commands_of_the_readme_work() {
    let env = project();
    let said = run_all(&env, &text("README.md"));
    // What the README says about them.
    for part in [
        "ended with 6",
        "Run night: complete",
        "Run codex: complete",
        "Run ralph: complete",
        "try again now",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(env.read("../night.html").contains("</html>"));
}

#[test]
fn the_commands_of_the_guide_work() {
    let env = project();
    let said = run_all(&env, &text("src/cli/guide.md"));
    // Typed in one shell it would name the run of every command that follows.
    assert!(!text("src/cli/guide.md").contains("export RECOVER_RUN_ID"));
    // The first run waits, the script is told to, the fix is awaited and taken.
    for part in [
        "ended with 6",
        "wait: retry_after",
        "ended with 8",
        "complete",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(env.read("app.txt"), "works\n", "{said}");
    let document: serde_json::Value =
        serde_json::from_str(&env.read("../retry.json")).expect("JSON");
    assert!(
        document["retry_after"].is_string() && document["wait_ms"].is_u64(),
        "{document}"
    );
}

/// The page with what its commands print, and with the table of the comparison.
fn with_output(page: &str) -> String {
    let env = project();
    let here = env.root().join("work").to_string_lossy().into_owned();
    let mut page = page.to_owned();
    let all = blocks(&page);
    for pair in all
        .windows(2)
        .filter(|pair| pair[0].language == "sh" && pair[1].follows)
    {
        // What goes on is told on stderr.
        let printed = env.sh(&pair[0].body).stdout.replace(&here, "~/project");
        // How long the agent took is another time each time, though the clock stands still.
        let steady = |line: &'_ str| match line.strip_prefix("Took:       ") {
            Some(took) if took.ends_with(" ms") => "Took:       400 ms".to_owned(),
            _ => line.trim_end().to_owned(),
        };
        let lines: Vec<String> = printed.lines().map(steady).collect();
        let (before, after) = (
            format!("```text\n{}```", pair[1].body),
            format!("```text\n{}\n```", lines.join("\n")),
        );
        page = page.replacen(&before, &after, 1);
    }
    let is_row = |line: &&str| {
        line.starts_with('|') && !line.starts_with("| code") && !line.contains("meaning")
    };
    let table: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("## Why not"))
        .collect();
    let table: Vec<&str> = table
        .into_iter()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(is_row)
        .collect();
    page.replacen(&table.join("\n"), compared::table().trim_end(), 1)
}

#[test]
fn the_readme_shows_what_is_printed_and_what_was_compared() {
    let page = text("README.md");
    let shown = with_output(&page);
    if std::env::var_os("RECOVER_TEST_REFRESH").is_some() {
        fs::write(root().join("README.md"), &shown).expect("written");
        return;
    }
    for (line, expected) in page.lines().zip(shown.lines()) {
        assert_eq!(
            line, expected,
            "refresh it with: RECOVER_TEST_REFRESH=1 cargo test --test readme"
        );
    }
    assert_eq!(page.lines().count(), shown.lines().count());
}

#[test]
fn the_readme_is_short() {
    let lines = text("README.md").lines().count();
    assert!(
        lines <= 250,
        "{lines} lines: what is more belongs into src/cli/guide.md"
    );
}

#[test]
fn the_commands_for_contributors_are_those_of_the_checks() {
    for block in scripts(&text("CONTRIBUTING.md")) {
        let unknown: Vec<&str> = block
            .lines()
            .filter(|line| !checked_otherwise(line))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn the_demo_works() {
    let mut env = TestEnv::plain();
    let tmp = env.root();
    env.set("TMPDIR", &tmp.to_string_lossy());
    let demo = root().join("tests/demo.sh");
    let result = env.sh(&format!(
        "sh '{}' '{}'",
        demo.display(),
        env!("CARGO_BIN_EXE_recover")
    ));
    let result = result.expect(0);
    let (_, stays) = result
        .stdout
        .rsplit_once("It is all still there: cd ")
        .expect("its end");
    assert!(std::path::Path::new(stays.trim_end()).join(".git").exists());
}

#[test]
fn the_places_that_the_pages_name_are_there() {
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "docs/scale.md",
        "docs/server-costs.md",
        "src/cli/guide.md",
    ] {
        let page_text = text(page);
        let prose: String = page_text.split("```").step_by(2).collect();
        let quoted = prose.split('`').skip(1).step_by(2);
        let is_place = |word: &&str| {
            ["src/", "tests/", ".ci/", "docs/"]
                .iter()
                .any(|folder| word.starts_with(folder))
        };
        let places = quoted.filter(is_place).filter(|place| !place.contains('*'));
        let missing: Vec<&str> = places
            .filter(|place| !root().join(place).exists())
            .collect();
        assert!(missing.is_empty(), "{page}: {missing:?}");
    }
}

#[test]
fn scripts_are_sound() {
    let sound = |program: &str, args: &[&str]| {
        let output = Command::new(program)
            .args(args)
            .current_dir(root())
            .output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(
            output.status.success(),
            "{args:?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    sound("sh", &["-n", "tests/demo.sh"]);
    sound("bash", &["-n", ".ci/run"]);
    sound("bash", &["-n", "packaging/test.sh"]);
}

/// What is said of packages holds: everything that they name is there, every page is in them, and an archive has the name by
/// which it is looked for.
#[test]
fn what_is_packed_is_there() {
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let metadata = &manifest["package"]["metadata"];
    let sources: Vec<String> = metadata["deb"]["assets"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|asset| asset[0].as_str().expect("a path").to_owned())
        .collect();
    let matches = |pattern: &str, path: &str| match pattern.split_once('*') {
        Some((before, after)) => path.starts_with(before) && path.ends_with(after),
        None => pattern == path,
    };
    let mut pages = Vec::new();
    for folder in ["man", "completions"] {
        let all = fs::read_dir(root().join(folder)).expect("a folder");
        pages.extend(all.map(|entry| {
            format!(
                "{folder}/{}",
                entry.expect("an entry").file_name().to_string_lossy()
            )
        }));
    }
    // No shell of Debian's reads the fourth kind of completion.
    for page in pages
        .iter()
        .filter(|page| Path::new(page).extension().is_none_or(|kind| kind != "ps1"))
    {
        assert!(
            sources.iter().any(|source| matches(source, page)),
            "{page} is in no package"
        );
    }
    for source in sources
        .iter()
        .filter(|source| *source != "target/release/recover")
    {
        let is_there =
            root().join(source).exists() || pages.iter().any(|page| matches(source, page));
        assert!(is_there, "{source} is not there");
    }
    let (build, binstall) = (text("packaging/build.py"), &metadata["binstall"]);
    let name = "{ name }-{ version }-{ target }";
    assert!(
        build.contains("f\"recover-{package['version']}-{target}\""),
        "the archive has another name"
    );
    assert!(
        binstall["pkg-url"]
            .as_str()
            .is_some_and(|url| url.ends_with(&format!("/{name}.tar.gz")))
    );
    assert_eq!(
        binstall["bin-dir"].as_str(),
        Some(&*format!("{name}/{{ bin }}{{ binary-ext }}"))
    );
}
