//! Split and sparse indexes, compared with what git reads of them.

use super::*;
use crate::git::repo::repository::Repo;

fn expanded(folder: &Path) -> Result<IndexFile> {
    let repo = Repo::discover(folder, None)?;
    IndexFile::read(&repo, &repo.git_dir().join("index")).map(Option::unwrap)
}

fn listing(folder: &Path) -> String {
    let listing = git(folder, &["ls-files", "--stage", "--debug", "-z"], b"");
    let mut text = String::new();
    for line in String::from_utf8_lossy(&listing).split_inclusive('\n') {
        // A flag that git only has in memory: the entry is to be written beside the shared one.
        match line.trim_end().split_once("flags: ") {
            Some((size, flags)) if line.starts_with("  size") => {
                let flags = u32::from_str_radix(flags, 16).unwrap() & !0x0800_0000;
                text += &format!("{size}flags: {flags:x}\n");
            }
            _ => text += line,
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_split_index_is_read_whole(
        first in wanted(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8), 0..8),
        added in prop::collection::vec("(d[ab]/)?g[a-e]", 0..6),
        version in 2..=4_u8,
    ) {
        let folder = repository();
        make(folder.path(), &first, &version.to_string());
        git(folder.path(), &["config", "splitIndex.maxPercentChange", "100"], b"");
        git(folder.path(), &["update-index", "--split-index"], b"");
        let blob = String::from_utf8(git(folder.path(), &["hash-object", "-w", "--stdin"], b"other")).unwrap();
        let names = git(folder.path(), &["ls-files", "-z"], b"");
        let names: Vec<_> = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        let mut info = Vec::new();
        for (which, kind) in edits.iter().filter(|_| !names.is_empty()) {
            let name = String::from_utf8_lossy(names[which.index(names.len())]);
            let (mode, stages) = [("0", 0..=0), ("100755", 0..=0), ("100644", 0..=0), ("100644", 2..=3)][usize::from(*kind)].clone();
            for stage in stages {
                info.extend(format!("{mode} {} {stage}\t{name}\0", blob.trim()).into_bytes());
            }
        }
        for name in &added {
            info.extend(format!("100644 {} 0\t{name}\0", blob.trim()).into_bytes());
        }
        git(folder.path(), &["update-index", "-z", "--index-info"], &info);
        let index = expanded(folder.path()).unwrap();
        prop_assert!(!index.is_split());
        let ours = debug(&index);
        prop_assert_eq!(String::from_utf8_lossy(&ours), listing(folder.path()));
    }
}

#[test]
fn a_shared_index_that_is_gone_or_another_one_is_an_error() {
    let folder = repository();
    fs::write(folder.path().join("a"), "").unwrap();
    git(folder.path(), &["add", "a"], b"");
    git(folder.path(), &["update-index", "--split-index"], b"");
    assert_eq!(expanded(folder.path()).unwrap().entries().len(), 1);
    let names = fs::read_dir(folder.path().join(".git"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let shared = names
        .into_iter()
        .find(|path| path.to_string_lossy().contains("sharedindex"))
        .unwrap();
    fs::remove_file(&shared).unwrap();
    assert!(matches!(expanded(folder.path()), Err(Error::Corrupt(_))));
    fs::copy(folder.path().join(".git/index"), &shared).unwrap();
    assert!(matches!(expanded(folder.path()), Err(Error::Corrupt(_))));
}

#[test]
fn a_sparse_index_is_read_whole() {
    let folder = repository();
    for name in ["a/b", "c/d/e", "c/d.x", "c/d/f/g", "c-", "c0", "top"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    for version in ["2", "4"] {
        git(folder.path(), &["add", "-A"], b"");
        git(
            folder.path(),
            &[
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@b",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "x",
            ],
            b"",
        );
        git(
            folder.path(),
            &["update-index", "--index-version", version],
            b"",
        );
        git(
            folder.path(),
            &["sparse-checkout", "set", "--cone", "--sparse-index", "a"],
            b"",
        );
        let sparse = read(folder.path());
        assert!(sparse.sparse && sparse.entries().any(|entry| entry.path == b"c/"));
        let whole = expanded(folder.path()).unwrap();
        assert!(!whole.sparse);
        assert_eq!(
            String::from_utf8_lossy(&debug(&whole)),
            listing(folder.path())
        );
        assert!(
            whole
                .entries()
                .any(|entry| entry.path == b"c/d/f/g" && entry.skip_worktree)
        );
        git(folder.path(), &["sparse-checkout", "disable"], b"");
    }
}
