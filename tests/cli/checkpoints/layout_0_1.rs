//! The layout of version 0.1: what checkpoints added is in files of its own, whatever is written today.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Gives each object of the small packs of checkpoints a file of its own, as old as its pack, in the repository of this folder.
#[track_caller]
pub fn loosen(repository: &Path) {
    let line = "set -e
        for note in .git/recover/written/small-*; do
            test -e \"$note\" || continue
            pack=.git/objects/pack/${note##*/small-}
            test -e \"$pack.pack\" || continue
            mv \"$pack.pack\" \"$pack.idx\" .git; pack=.git/${pack##*/}
            git unpack-objects -q < \"$pack.pack\"
            git show-index < \"$pack.idx\" | sed 's,.* \\(..\\)\\(.*\\) .*,.git/objects/\\1/\\2,' | xargs touch -cr \"$pack.pack\"
            rm -f \"$pack.pack\" \"$pack.idx\" \"$note\"
        done";
    let ran = Command::new("sh")
        .args(["-c", line])
        .current_dir(repository)
        .status()
        .expect("sh starts");
    assert!(ran.success(), "{ran}");
    for list in fs::read_dir(repository.join(".git/recover/written"))
        .into_iter()
        .flatten()
        .flatten()
    {
        if list.file_name().len() != 40 {
            continue;
        }
        let text = fs::read_to_string(list.path()).expect("a list");
        let modified = list
            .metadata()
            .and_then(|list| list.modified())
            .expect("a time");
        let body =
            text[..text.rfind("end ").expect("its checksum")].replace("\nsmall ", "\nloose ");
        fs::write(
            list.path(),
            format!("{body}end {:08x}\n", crc32fast::hash(body.as_bytes())),
        )
        .expect("written");
        fs::File::open(list.path())
            .and_then(|list| list.set_modified(modified))
            .expect("its time");
    }
}
