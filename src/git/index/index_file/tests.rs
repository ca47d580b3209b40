//! The index reader and writer, compared with git's own; split and sparse indexes with what git reads of them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::git::repo::repository::Repo;

/// Runs git with some input; its output.
fn git(folder: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
        .current_dir(folder)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    output.stdout
}

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q", "-b", "main"], b"");
    folder
}

fn read(folder: &Path) -> IndexFile {
    IndexFile::parse(&fs::read(folder.join(".git/index")).unwrap()).unwrap()
}

/// What `git ls-files --stage --debug -z` prints of these entries.
fn debug(index: &IndexFile) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in index.entries() {
        text.extend(format!("{:06o} {} {}\t", entry.mode, entry.oid, entry.stage).into_bytes());
        text.extend(entry.path);
        text.push(0);
        let stat = entry.stat;
        let (ctime, mtime) = (stat.ctime, stat.mtime);
        let flags = (u32::from(entry.stage) << 12)
            | (u32::from(entry.assume_unchanged) << 15)
            | (u32::from(entry.intent_to_add) << 29)
            | (u32::from(entry.skip_worktree) << 30)
            | (u32::from(entry.intent_to_add || entry.skip_worktree) << 14);
        text.extend(
            format!(
                "  ctime: {}:{}\n  mtime: {}:{}\n",
                ctime.0, ctime.1, mtime.0, mtime.1
            )
            .into_bytes(),
        );
        text.extend(format!("  dev: {}\tino: {}\n", stat.dev, stat.ino).into_bytes());
        text.extend(format!("  uid: {}\tgid: {}\n", stat.uid, stat.gid).into_bytes());
        text.extend(format!("  size: {}\tflags: {flags:x}\n", stat.size).into_bytes());
    }
    text
}

/// An entry for `git update-index --index-info`: the name, how it came about, a mark.
type Wanted = (String, u8, u8);

fn wanted() -> impl Strategy<Value = Vec<Wanted>> {
    let name = "(d[ab]/){0,3}f([a-c]{1,3}|[ \u{e9}\n\\\\]|x{4200})";
    prop::collection::vec((name, 0..8_u8, 0..6_u8), 0..20)
}

/// Makes an index of them with git.
fn make(folder: &Path, wanted: &[Wanted], version: &str) {
    // git adds nothing to an entry that it was told to skip.
    let _ = fs::remove_file(folder.join(".git/index"));
    let mut info = Vec::new();
    let (mut marks, mut done) = (Vec::new(), std::collections::BTreeSet::new());
    let blob =
        String::from_utf8(git(folder, &["hash-object", "-w", "--stdin"], b"content")).unwrap();
    let blob = blob.trim();
    for (name, kind, mark) in wanted.iter().filter(|(name, ..)| done.insert(name.clone())) {
        match kind {
            0..=2 if name.len() < 200 => {
                let path = folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, name).unwrap();
                let option: &[&str] = if *kind == 0 {
                    &["add", "-N", "--"]
                } else {
                    &["add", "--"]
                };
                git(folder, &[option, &[name]].concat(), b"");
            }
            3 => {
                for stage in 1..=3 {
                    info.extend(format!("100755 {blob} {stage}\t{name}\0").into_bytes());
                }
                continue;
            }
            4 => info.extend(format!("160000 {blob} 0\t{name}\0").into_bytes()),
            _ => info.extend(format!("120000 {blob} 0\t{name}\0").into_bytes()),
        }
        match mark {
            0 => marks.push(("--skip-worktree", name)),
            1 => marks.push(("--assume-unchanged", name)),
            _ => {}
        }
    }
    git(folder, &["update-index", "-z", "--index-info"], &info);
    for (option, name) in marks {
        git(
            folder,
            &["update-index", option, "-z", "--stdin"],
            format!("{name}\0").as_bytes(),
        );
    }
    git(
        folder,
        &[
            "update-index",
            "--index-version",
            version,
            "--force-write-index",
        ],
        b"",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_field_is_the_one_that_git_reads(wanted in wanted(), version in 2..=4_u8) {
        let folder = repository();
        make(folder.path(), &wanted, &version.to_string());
        let index = read(folder.path());
        let listing = git(folder.path(), &["ls-files", "--stage", "--debug", "-z"], b"");
        let ours = debug(&index);
        prop_assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&listing));
        prop_assert!(!index.is_split() && !index.sparse);
    }
}

/// A few real files to damage.
fn samples() -> Vec<Vec<u8>> {
    let folder = repository();
    let wanted: Vec<Wanted> = (0..24_u8)
        .map(|n| {
            (
                format!("da/{}f{n}", ["", "db/"][usize::from(n % 2)]),
                n % 6,
                n % 5,
            )
        })
        .collect();
    let index = || fs::read(folder.path().join(".git/index")).unwrap();
    let mut samples = Vec::new();
    for version in ["2", "3", "4"] {
        make(folder.path(), &wanted, version);
        samples.push(index());
    }
    fs::remove_file(folder.path().join(".git/index")).unwrap();
    git(folder.path(), &["add", "-A"], b"");
    git(folder.path(), &["write-tree"], b"");
    samples.push(index());
    git(folder.path(), &["update-index", "--split-index"], b"");
    fs::write(folder.path().join("da/f0"), "changed").unwrap();
    git(folder.path(), &["rm", "-q", "--cached", "da/db/f1"], b"");
    git(folder.path(), &["add", "da/f0"], b"");
    samples.push(index());
    samples
}

fn without_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len().saturating_sub(HASH);
    bytes[end..].fill(0);
    bytes
}

/// Uses everything that a parsed file offers.
fn use_up(bytes: &[u8]) {
    if let Ok(index) = IndexFile::parse(bytes) {
        assert!(index.entries().map(|entry| entry.path.len()).sum::<usize>() <= MAX_NAMES);
        if let Some(link) = &index.link {
            let _ = (link.delete.positions(100), link.replace.positions(100));
        }
    }
}

#[test]
fn damaged_bytes_are_an_error_or_an_index_and_never_a_panic() {
    for sample in samples() {
        assert!(IndexFile::parse(&sample).is_ok());
        let open = without_checksum(sample.clone());
        assert!(IndexFile::parse(&open).is_ok());
        for length in 0..sample.len() {
            assert!(
                IndexFile::parse(&sample[..length]).is_err(),
                "cut at {length}"
            );
            use_up(&without_checksum(sample[..length].to_vec()));
        }
        for at in 0..sample.len() - HASH {
            for bit in 0..8 {
                let mut damaged = sample.clone();
                damaged[at] ^= 1 << bit;
                assert!(
                    IndexFile::parse(&damaged).is_err(),
                    "bit {bit} of byte {at}"
                );
                use_up(&without_checksum(damaged));
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(which in 0..5_usize, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        static SAMPLES: std::sync::LazyLock<Vec<Vec<u8>>> = std::sync::LazyLock::new(samples);
        let mut bytes = SAMPLES[which].clone();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        use_up(&without_checksum(bytes));
    }

    #[test]
    fn a_bitmap_of_any_words_is_survived(words in prop::collection::vec(any::<u64>(), 0..8), limit in 0..1000_usize) {
        let mut bytes = vec![0; 4];
        bytes.extend(u32::try_from(words.len()).unwrap().to_be_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend([0; 4]);
        if let Ok(positions) = Bitmap::parse(&mut Input(&bytes)).unwrap().positions(limit) {
            prop_assert!(positions.is_sorted() && positions.iter().all(|position| *position < limit));
        }
    }
}

#[test]
fn a_checksum_may_be_left_out_and_a_new_extension_is_not_guessed_at() {
    let folder = repository();
    fs::write(folder.path().join("a"), "").unwrap();
    git(
        folder.path(),
        &["-c", "index.skipHash=true", "add", "a"],
        b"",
    );
    let bytes = fs::read(folder.path().join(".git/index")).unwrap();
    assert!(bytes.ends_with(&[0; HASH]));
    assert_eq!(IndexFile::parse(&bytes).unwrap().entries().len(), 1);
    let with = |extension: &[u8]| {
        let content = bytes.len() - HASH;
        IndexFile::parse(&[&bytes[..content], extension, &[0; 4], &[0; HASH]].concat())
    };
    assert!(with(b"OPTI").is_ok());
    assert!(matches!(with(b"must"), Err(Error::Unsupported(_))));
}

/// `cargo test --release -- --ignored --nocapture speed`.
#[test]
#[ignore = "a measurement"]
fn speed_of_a_large_index() {
    let folder = repository();
    let blob = "0123456789012345678901234567890123456789";
    let mut info = Vec::new();
    for n in 0..78_000 {
        write!(
            info,
            "100644 {blob} 0\tdrivers/part{}/of{}/file{n}.c\0",
            n / 1000,
            n / 50
        )
        .unwrap();
    }
    git(
        folder.path(),
        &["update-index", "-z", "--index-info"],
        &info,
    );
    for version in ["2", "4"] {
        git(
            folder.path(),
            &["update-index", "--index-version", version],
            b"",
        );
        let bytes = fs::read(folder.path().join(".git/index")).unwrap();
        let times: Vec<_> = (0..5)
            .map(|_| {
                let start = std::time::Instant::now();
                assert_eq!(IndexFile::parse(&bytes).unwrap().entries().len(), 78_000);
                start.elapsed()
            })
            .collect();
        eprintln!("version {version}, {} bytes: {times:?}", bytes.len());
    }
}

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
