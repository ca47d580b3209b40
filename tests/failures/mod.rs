//! The labelled failures in `cases`; README.md has their form.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The records, in the order of their names. `RECOVER_FAILURE_CASES` names another folder of them.
pub fn labelled() -> Vec<Value> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failures/cases");
    let folder = std::env::var_os("RECOVER_FAILURE_CASES").map_or_else(own, PathBuf::from);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(
        files.len() >= 50,
        "only {} cases in {}",
        files.len(),
        folder.display()
    );
    files.iter().map(|file| record(file)).collect()
}

fn record(path: &Path) -> Value {
    let (mut file, mut text) = (File::open(path).expect("it opens"), String::new());
    let read = if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(BufReader::new(file)).read_to_string(&mut text)
    } else {
        file.read_to_string(&mut text)
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
