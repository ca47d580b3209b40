//! What a folder holds, byte for byte, so that two moments can be compared.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use crate::env::TestEnv;

/// Path to permissions and content of everything below a folder, `.git` and the state directory aside.
pub type Seen = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

/// Reads it.
pub fn seen(root: &Path) -> Seen {
    let mut all = Seen::new();
    walk(root, root, &mut all);
    all
}

fn walk(root: &Path, folder: &Path, all: &mut Seen) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let relative = path.strip_prefix(root).expect("below");
        if relative == Path::new(".git") || relative == Path::new(".ultraplan/state") {
            continue;
        }
        // It comes and goes with the state directory.
        if relative == Path::new(".ultraplan") {
            walk(root, &path, all);
            continue;
        }
        let metadata = path.symlink_metadata().expect("there");
        let content = if metadata.is_symlink() {
            std::fs::read_link(&path)
                .expect("a link")
                .as_os_str()
                .as_bytes()
                .to_vec()
        } else if metadata.is_file() {
            std::fs::read(&path).expect("readable")
        } else {
            Vec::new()
        };
        all.insert(
            relative.as_os_str().as_bytes().to_vec(),
            (metadata.mode(), content),
        );
        if metadata.is_dir() {
            walk(root, &path, all);
        }
    }
}

/// Takes a checkpoint and returns its id.
#[track_caller]
pub fn checkpoint(env: &TestEnv) -> String {
    text(&env.json(0, &["checkpoint", "create"])["checkpoint"]["id"])
}

/// Goes back to a checkpoint, whatever anybody edited since.
#[track_caller]
pub fn back_to(env: &TestEnv, checkpoint: &str) -> Value {
    env.json(0, &["rollback", "--to", checkpoint, "--edits", "discard"])
}

/// A string of a document.
#[track_caller]
pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

/// The `path` of each object in a list.
#[track_caller]
pub fn paths(list: &Value) -> Vec<String> {
    list.as_array()
        .unwrap_or_else(|| panic!("no list: {list}"))
        .iter()
        .map(|entry| text(&entry["path"]))
        .collect()
}

/// Asserts that git finds nothing wrong and that nothing is left over.
#[track_caller]
pub fn assert_clean(env: &TestEnv) {
    env.git(&["fsck", "--strict", "--no-dangling"]);
    let left = env
        .sh("find . -name '.recover-tmp-*' -o -name 'journal*' -path '*recover*' -o -name '*.lock' -path './.git/*' \
         -o -path './.git/recover/quarantine/objects/??' -o -name 'holds-*'");
    assert_eq!(left.stdout, "", "left over");
}
