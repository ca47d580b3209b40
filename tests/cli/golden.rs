//! Scripted sessions, and all that they print: the texts and documents that people and scripts rely on.
//!
//! A session is a file of `tests/golden`: blocks of shell lines, parted by empty lines. What each block prints, and how it
//! ends, is compared with the transcript beside this file in `snapshots/`. What differs from run to run (paths, object
//! ids, durations, process ids) is replaced by placeholders that are numbered in the order of their first appearance,
//! so that two mentions of one commit stay two mentions of one commit.
//!
//! `INSTA_UPDATE=always cargo test --test cli golden::` writes the transcripts anew; the difference is the review.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use regex::{Captures, Regex};

use crate::env::{Ran, TestEnv};

/// What differs from run to run, with its placeholder. The first group that matched is what is replaced.
const VOLATILE: [(&str, &str); 10] = [
    (r"\b([0-9a-f]{40})\b", "oid"),
    (
        r"(?:commit|index|[0-9a-f]{7}\.\.)\s*\b([0-9a-f]{7,12})\b",
        "short",
    ),
    (
        r#""(?:duration_ms|elapsed_ms|mtime_ms|pid|driver_pid|freed_bytes|size_bytes)": (\d+)"#,
        "number",
    ),
    (r#""(?:mtime|last_detected_at)": "([^"]+)""#, "mtime"),
    (r"\b(\d+(?:\.\d+)? ?m?s)\b", "time"),
    (r"\bpid (\d+)", "pid"),
    (r#"(?:vault/|"id": ")([0-9a-f]{32})\b"#, "vault"),
    // A column is as wide as the longest amount in it.
    (r"(SIZE {2,}|\b\d+(?:\.\d+)? (?:B|KiB|MiB) {2,})", "size"),
    (r"\b(\d+(?:\.\d+)? (?:B|bytes|KiB|MiB))\b", "size"),
    (r#""signature": "([0-9a-f]+)""#, "signature"),
];

fn normalised(text: &str, env: &TestEnv) -> String {
    let mut text = text.replace(&*env.root().to_string_lossy(), "<root>");
    text = text.replace(
        concat!("recover ", env!("CARGO_PKG_VERSION")),
        "recover <version>",
    );
    for (pattern, name) in VOLATILE {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let pattern = Regex::new(pattern).expect("a pattern");
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
            let (whole, part) = (&found[0], &found[1]);
            let next = seen.len() + 1;
            let number = *seen.entry(part.to_owned()).or_insert(next);
            // Amounts say nothing when they are counted.
            let shown = if matches!(name, "oid" | "short") {
                format!("<{name} {number}>")
            } else {
                format!("<{name}>")
            };
            whole.replace(part, &shown)
        });
        text = replaced.into_owned();
    }
    text
}

/// Documents are easier to compare a field a line.
fn readable(stdout: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(stdout) {
        Ok(document) if document.is_object() => format!("{document:#}\n"),
        _ => stdout.to_owned(),
    }
}

fn transcript(script: &str) -> String {
    let mut env = TestEnv::repo();
    let tools = env.root().join("tools");
    fs::create_dir(&tools).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_recover"), tools.join("recover")).expect("a link");
    let path = std::env::var("PATH").expect("PATH");
    env.set("PATH", &format!("{}:{path}", tools.display()));
    env.set("RECOVER_TEST_NOW", "2030-01-01T12:00:00.000Z");
    env.set("COLUMNS", "120");
    let mut out = String::new();
    for block in script
        .split("\n\n")
        .map(str::trim)
        .filter(|block| !block.is_empty())
    {
        // A moment that the following blocks happen at.
        if let Some(now) = block.strip_prefix("@now ") {
            env.set("RECOVER_TEST_NOW", now);
            continue;
        }
        let Ran {
            code,
            stdout,
            stderr,
        } = env.sh(block);
        let stdout = readable(&stdout);
        out += &format!("$ {}\n", block.replace('\n', "\n> "));
        out += &stdout;
        for line in stderr.lines() {
            out += &format!("! {line}\n");
        }
        out += &format!("= {code}\n\n");
    }
    normalised(&out, &env)
}

#[test]
fn scripted_sessions_print_what_they_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut scripts: Vec<_> = fs::read_dir(&folder)
        .expect("sessions")
        .map(|entry| entry.expect("one").path())
        .collect();
    scripts.sort();
    assert!(scripts.len() >= 6, "{scripts:?}");
    let run = |path: &Path| transcript(&fs::read_to_string(path).expect("a session"));
    let transcripts: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = scripts
            .iter()
            .map(|path| scope.spawn(move || run(path)))
            .collect();
        running
            .into_iter()
            .map(|one| one.join().expect("a transcript"))
            .collect()
    });
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for (path, transcript) in scripts.iter().zip(transcripts) {
        insta::assert_snapshot!(
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
            transcript
        );
    }
}
