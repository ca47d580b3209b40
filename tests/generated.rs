//! The committed completions and man pages are what the program generates.
//!
//! `RECOVER_TEST_REFRESH=1 cargo test --test generated` brings them up to date.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REFRESH: &str = "RECOVER_TEST_REFRESH=1 cargo test --test generated";

/// File names with their content.
type Files = BTreeMap<String, Vec<u8>>;

fn recover(args: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_recover"))
        .args(args)
        .output()
        .expect("recover starts");
    assert!(
        output.status.success(),
        "recover {args:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn committed(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn read(folder: &Path) -> Files {
    let Ok(entries) = fs::read_dir(folder) else {
        return Files::new();
    };
    let read = |entry: fs::DirEntry| {
        (
            entry.file_name().to_string_lossy().into_owned(),
            fs::read(entry.path()).expect("a readable file"),
        )
    };
    entries
        .map(|entry| read(entry.expect("an entry")))
        .collect()
}

/// Compares a committed folder with what it should hold, or writes it when asked to.
fn compare(folder: &str, expected: &Files) {
    let path = committed(folder);
    if std::env::var_os("RECOVER_TEST_REFRESH").is_some() {
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the folder");
        for (name, content) in expected {
            fs::write(path.join(name), content).expect("written");
        }
        return;
    }
    let found = read(&path);
    let names: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let stale: Vec<&String> = names
        .into_iter()
        .filter(|name| expected.get(*name) != found.get(*name))
        .collect();
    assert!(
        stale.is_empty(),
        "{folder}/ is out of date: {stale:?}\nrefresh it with: {REFRESH}"
    );
}

#[test]
fn completions_are_up_to_date() {
    let files = [
        ("recover.bash", "bash"),
        ("_recover", "zsh"),
        ("recover.fish", "fish"),
        ("recover.ps1", "powershell"),
    ];
    let expected = files.map(|(name, shell)| (name.to_owned(), recover(&["completions", shell])));
    compare("completions", &Files::from(expected));
}

#[test]
fn man_pages_are_up_to_date() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    recover(&["man", &folder.path().to_string_lossy()]);
    let expected = read(folder.path());
    assert!(
        expected.contains_key("recover.1") && expected.contains_key("recover-checkpoint-create.1")
    );
    compare("man", &expected);
}
