//! The user's index after captures and restores, as `git status` sees it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::time::{Duration, SystemTime};

use recover::testing::git::Error;
use recover::testing::git::Verified;
use recover::testing::model::RepoPath;

use rustix::fs::{AtFlags, Mode, OFlags};
use sha1::{Digest as _, Sha1};

use crate::bench::Bench;

const WAIT: Duration = Duration::from_millis(50);

fn staged(bench: &Bench) -> String {
    bench.git(&["ls-files", "--stage", "-v", "-t"])
        + &bench.git(&["diff", "--cached", "--raw", "--no-renames"])
}

#[test]
fn conflicts_intent_to_add_and_flags_come_back() {
    let bench = Bench::with_commit();
    bench.write("assumed", "1");
    bench.write("skipped", "1");
    bench.commit("files");
    bench.merge_in_conflict("base");
    bench.write("intent", "x");
    bench.write("only staged", "x");
    bench.git(&["add", "-N", "intent"]);
    bench.git(&["add", "only staged"]);
    std::fs::remove_file(bench.path("only staged")).unwrap();
    bench.git(&["update-index", "--assume-unchanged", "assumed"]);
    bench.git(&["update-index", "--skip-worktree", "skipped"]);
    let before = (staged(&bench), bench.git(&["status", "--porcelain"]));
    let stored = bench.checkpoint();
    bench.git(&["read-tree", "HEAD"]);
    bench.git(&["gc", "-q", "--prune=now"]);
    bench.git(&["add", "-A"]);
    assert_ne!(staged(&bench), before.0);
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    repo.restore_index(&lock, &stored, WAIT).unwrap();
    assert_eq!(
        (staged(&bench), bench.git(&["status", "--porcelain"])),
        before
    );
    bench.git(&["checkout", "-m", "base"]);
    assert!(!bench.exists(".git/index.lock"));
    bench.fsck();
}

// A merge of a file on one side with a folder on the other may leave both in the index, in different stages.
#[test]
fn a_file_beside_a_conflict_in_a_folder_of_its_name_comes_back() {
    let bench = Bench::with_commit();
    let id = |content: &str| {
        bench.write("content", content);
        bench
            .git(&["hash-object", "-w", "content"])
            .trim()
            .to_owned()
    };
    let (one, two, three) = (id("1"), id("2"), id("3"));
    std::fs::remove_file(bench.path("content")).unwrap();
    let lines = format!(
        "100644 {one} 0\tb\n100644 {one} 1\tb/x\n100644 {two} 2\tb/x\n100755 {three} 3\tb/x\n\
         100644 {two} 2\tc\n100644 {three} 0\tc/deep/y\n100644 {one} 0\td\n100644 {two} 3\td/deep/z\n"
    );
    bench.write("lines", lines);
    let lines = std::fs::File::open(bench.path("lines")).unwrap();
    let mut command = std::process::Command::new("git");
    command
        .current_dir(&bench.root)
        .args(["update-index", "--index-info"])
        .stdin(lines);
    assert!(command.status().unwrap().success());
    std::fs::remove_file(bench.path("lines")).unwrap();
    let before = bench.git(&["ls-files", "-s"]);
    assert_eq!(before.lines().count(), 9, "{before}");
    let stored = bench.checkpoint();
    bench.git(&["read-tree", "HEAD"]);
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    assert!(!repo.index_is(&stored).unwrap());
    repo.restore_index(&lock, &stored, WAIT).unwrap();
    assert_eq!(bench.git(&["ls-files", "-s"]), before);
    assert!(repo.index_is(&stored).unwrap());
    // An index that differs in the file alone is another one.
    bench.git(&["update-index", "--force-remove", "b"]);
    assert!(!repo.index_is(&stored).unwrap());
}

#[test]
fn refreshed_entries_need_no_reading() {
    let bench = Bench::with_commit();
    let stored = bench.checkpoint();
    bench.write("base", "changed\n");
    let (_, _, done) = bench.restore(&stored).unwrap();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    assert_ne!(bench.git(&["diff-files"]), "", "stat data differ before");
    repo.refresh_index(&lock, &done.written, &Verified::default(), WAIT)
        .unwrap();
    assert_eq!(bench.git(&["diff-files"]), "");
}

#[test]
fn a_foreign_lock_is_waited_for_and_kept_but_our_own_is_not_left() {
    let bench = Bench::with_commit();
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    bench.write(".git/index.lock", "");
    let error = repo
        .refresh_index(&lock, &[RepoPath::from("base")], &Verified::default(), WAIT)
        .unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(bench.exists(".git/index.lock"));
    drop(lock);
    drop(Bench::lock(&repo));
    assert!(bench.exists(".git/index.lock"), "not ours");
    std::fs::remove_file(bench.path(".git/index.lock")).unwrap();
    // A process of ours died while it held the lock.
    let (mark, held) = (
        bench.path(".git/recover/holds-index"),
        bench.path(".git/index.lock"),
    );
    std::fs::write(&mark, held.as_os_str().as_encoded_bytes()).unwrap();
    std::fs::hard_link(&mark, &held).unwrap();
    let lock = Bench::lock(&repo);
    assert!(!held.exists() && !mark.exists());
    repo.refresh_index(&lock, &[RepoPath::from("base")], &Verified::default(), WAIT)
        .unwrap();
    assert!(!held.exists() && !mark.exists());
}

#[test]
fn an_index_that_was_not_there_is_removed_again() {
    let bench = Bench::new();
    bench.write("a", "1");
    let stored = bench.checkpoint();
    bench.git(&["add", "a"]);
    let repo = bench.repo();
    repo.restore_index(&Bench::lock(&repo), &stored, WAIT)
        .unwrap();
    assert_eq!(bench.git(&["status", "--porcelain"]), "?? a\n");
}

/// Where each entry of an index begins, by path and stage.
fn places(index: &[u8]) -> BTreeMap<(Vec<u8>, u8), usize> {
    let number = |at: usize| u32::from_be_bytes(index[at..at + 4].try_into().unwrap());
    let (version, count) = (number(4), number(8));
    let (mut at, mut name, mut found) = (12, Vec::new(), BTreeMap::new());
    for _ in 0..count {
        let flags = u16::from_be_bytes([index[at + 60], index[at + 61]]);
        let mut from = at + if flags & 0x4000 == 0 { 62 } else { 64 };
        let mut keep = 0;
        if version == 4 {
            let mut drop = usize::from(index[from] & 0x7f);
            while index[from] & 0x80 != 0 {
                from += 1;
                drop = ((drop + 1) << 7) + usize::from(index[from] & 0x7f);
            }
            from += 1;
            keep = name.len() - drop;
        }
        name.truncate(keep);
        let length = index[from..].iter().position(|byte| *byte == 0).unwrap();
        name.extend_from_slice(&index[from..from + length]);
        found.insert((name.clone(), ((flags >> 12) & 3) as u8), at);
        let used = from + length + 1 - at;
        at += if version == 4 {
            used
        } else {
            used.next_multiple_of(8)
        };
    }
    found
}

/// Metadata of a file: what is before the file mode in an entry, and what is after it.
type Stat = ([i64; 6], [i64; 3]);

fn stat(bench: &Bench, path: &str) -> Stat {
    let stat = bench.path(path).symlink_metadata().unwrap();
    let number = |number: u64| number.cast_signed();
    (
        [
            stat.ctime(),
            stat.ctime_nsec(),
            stat.mtime(),
            stat.mtime_nsec(),
            number(stat.dev()),
            number(stat.ino()),
        ],
        [
            i64::from(stat.uid()),
            i64::from(stat.gid()),
            number(stat.size()),
        ],
    )
}

fn refresh(bench: &Bench, paths: &[&str]) -> Result<(), Error> {
    let repo = bench.repo();
    let paths: Vec<RepoPath> = paths.iter().map(|path| RepoPath::from(*path)).collect();
    repo.refresh_index(&Bench::lock(&repo), &paths, &Verified::default(), WAIT)
}

/// The bytes of an index whose entries of these paths have these metadata, and all else as before.
fn patched(before: &[u8], stats: &[(&str, Stat)]) -> Vec<u8> {
    let (mut bytes, places) = (before.to_vec(), places(before));
    for (path, (first, second)) in stats {
        let at = places[&(path.as_bytes().to_vec(), 0)];
        let fields = (0..24)
            .step_by(4)
            .zip(first)
            .chain((28..40).step_by(4).zip(second));
        for (offset, value) in fields {
            let low = u32::try_from(value & 0xffff_ffff).unwrap();
            bytes[at + offset..at + offset + 4].copy_from_slice(&low.to_be_bytes());
        }
    }
    let end = bytes.len() - 20;
    if bytes[end..].iter().any(|byte| *byte != 0) {
        let checksum = Sha1::digest(&bytes[..end]);
        bytes[end..].copy_from_slice(&checksum);
    }
    bytes
}

/// What git says of the work tree without touching the index.
fn told(bench: &Bench) -> [String; 3] {
    let status = bench.git(&["--no-optional-locks", "status", "--porcelain"]);
    [
        status,
        bench.git(&["diff-files"]),
        bench.git(&["ls-files", "-s", "-v", "-t"]),
    ]
}

/// Gives files new metadata, refreshes them, and checks that the index has these and is the same otherwise.
fn check_refresh(bench: &Bench, paths: &[&str]) {
    let clean = told(bench);
    for path in paths {
        let (path, copy) = (bench.path(path), bench.root.join(".git/copy"));
        match fs::read_link(&path) {
            Ok(target) => symlink(target, &copy).unwrap(),
            Err(_) => drop(fs::copy(&path, &copy).unwrap()),
        }
        fs::rename(copy, path).unwrap();
    }
    let before = bench.read(".git/index");
    assert_ne!(
        bench.git(&["diff-files"]),
        clean[1],
        "the metadata differ before"
    );
    refresh(bench, paths).unwrap();
    let after = bench.read(".git/index");
    let stats: Vec<_> = paths
        .iter()
        .map(|path| (*path, stat(bench, path)))
        .collect();
    assert_ne!(after, before);
    assert!(
        after == patched(&before, &stats),
        "nothing but the metadata of these entries changed"
    );
    for (path, ([ctime, ctime_ns, mtime, mtime_ns, dev, ino], [uid, gid, size])) in stats {
        let text = bench.git(&["--literal-pathspecs", "ls-files", "--debug", path]);
        let expected = format!(
            "  ctime: {ctime}:{ctime_ns}\n  mtime: {mtime}:{mtime_ns}\n  dev: {}\tino: {}\n  uid: {uid}\tgid: {gid}\n  size: {size}\t",
            dev & 0xffff_ffff,
            ino & 0xffff_ffff
        );
        assert!(text.contains(&expected), "{text}\n{expected}");
    }
    assert_eq!(told(bench), clean);
    assert!(!bench.exists(".git/index.lock"));
    bench.fsck();
}

/// Files and links whose names come before, between and after each other.
fn files() -> Bench {
    let bench = Bench::with_commit();
    for path in [
        "a",
        "a.b",
        "a/b",
        "a-b/c",
        "dir/sub/x",
        "dir/sub/y",
        "dir/z",
        "tool",
        "\u{e9}",
        "zz",
    ] {
        if path != "a" {
            bench.write(path, path);
        }
    }
    bench.chmod("tool", 0o755);
    symlink("tool", bench.path("link")).unwrap();
    bench.commit("files");
    bench
}

const SOME: [&str; 6] = ["a.b", "a/b", "dir/sub/y", "link", "tool", "zz"];

#[test]
fn only_metadata_change_in_an_index_of_any_version() {
    for version in ["2", "3", "4"] {
        for hash in ["false", "true"] {
            let bench = files();
            bench.git(&["config", "index.skipHash", hash]);
            bench.git(&["config", "index.recordEndOfIndexEntries", "true"]);
            if version != "2" {
                bench.write("intent", "x");
                bench.git(&["add", "-N", "intent"]);
                bench.git(&["update-index", "--skip-worktree", "a-b/c", "dir/sub/x"]);
                bench.git(&["update-index", "--assume-unchanged", "base"]);
            }
            bench.git(&[
                "update-index",
                "--index-version",
                version,
                "--force-write-index",
            ]);
            let index = bench.read(".git/index");
            assert_eq!(index[7], version.as_bytes()[0] - b'0');
            assert_eq!(index.ends_with(&[0; 20]), hash == "true");
            check_refresh(&bench, &SOME);
        }
    }
}

#[test]
fn marked_entries_are_refreshed_like_any_other() {
    let bench = files();
    bench.git(&["update-index", "--skip-worktree", "tool"]);
    bench.git(&["update-index", "--assume-unchanged", "zz"]);
    check_refresh(&bench, &SOME);
}

#[test]
fn an_untracked_cache_stays() {
    let bench = files();
    bench.write("untracked/file", "x");
    bench.git(&["update-index", "--force-untracked-cache"]);
    bench.git(&["status", "--porcelain"]);
    assert!(
        bench
            .read(".git/index")
            .windows(4)
            .any(|name| name == b"UNTR")
    );
    check_refresh(&bench, &SOME);
}

#[test]
fn folders_of_a_sparse_index_stay_folded() {
    let bench = files();
    bench.git(&["sparse-checkout", "init", "--cone", "--sparse-index"]);
    bench.git(&["sparse-checkout", "set", "a"]);
    let index = bench.read(".git/index");
    assert!(index.windows(4).any(|name| name == b"sdir"));
    assert!(places(&index).contains_key(&(b"dir/".to_vec(), 0)));
    check_refresh(&bench, &["a.b", "a/b", "zz"]);
    let before = bench.read(".git/index");
    refresh(&bench, &["dir", "dir/", "dir/z"]).unwrap();
    assert_eq!(bench.read(".git/index"), before);
}

#[test]
fn an_entry_in_conflict_stays_and_the_others_are_refreshed() {
    let bench = files();
    bench.merge_in_conflict("dir/z");
    check_refresh(&bench, &SOME);
    // Whatever the file holds: one of the sides, even.
    bench.write("dir/z", "main\n");
    let before = bench.read(".git/index");
    refresh(&bench, &["dir/z"]).unwrap();
    assert_eq!(bench.read(".git/index"), before);
}

#[test]
fn a_split_index_is_left_alone() {
    let bench = files();
    bench.git(&["update-index", "--split-index"]);
    bench.write("zz", "another");
    bench.git(&["add", "zz"]);
    let all = || {
        let names = fs::read_dir(bench.path(".git"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let index = names.filter(|path| path.to_string_lossy().contains("index"));
        index
            .map(|path| (fs::read(&path).unwrap(), path))
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = all();
    assert_eq!(before.len(), 2);
    refresh(&bench, &SOME).unwrap();
    assert_eq!(all(), before);
}

#[test]
fn a_path_longer_than_its_flags_can_say_is_refreshed() {
    for version in ["2", "4"] {
        let bench = files();
        let (part, mut path) = ("x".repeat(200), String::new());
        let open = |dir: &std::os::fd::OwnedFd, name: &str| {
            rustix::fs::openat(dir, name, OFlags::DIRECTORY, Mode::empty()).unwrap()
        };
        let mut dir = rustix::fs::open(&bench.root, OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..22 {
            rustix::fs::mkdirat(&dir, part.as_str(), Mode::RWXU).unwrap();
            dir = open(&dir, &part);
            path = path + &part + "/";
        }
        let file = rustix::fs::openat(
            &dir,
            "file",
            OFlags::CREATE | OFlags::WRONLY,
            Mode::RUSR | Mode::WUSR,
        )
        .unwrap();
        rustix::io::write(&file, b"base\n").unwrap();
        path += "file";
        assert!(path.len() > 4400);
        let blob = bench.git(&["rev-parse", "HEAD:base"]);
        bench.write(".git/lines", format!("100644 {} 0\t{path}\n", blob.trim()));
        let lines = fs::File::open(bench.path(".git/lines")).unwrap();
        let mut command = std::process::Command::new("git");
        command
            .current_dir(&bench.root)
            .args(["update-index", "--index-info"])
            .stdin(lines);
        assert!(command.status().unwrap().success());
        bench.git(&[
            "update-index",
            "--index-version",
            version,
            "--force-write-index",
        ]);
        let found = rustix::fs::statat(&dir, "file", AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let number = |number: u64| number.cast_signed();
        let times = [
            (found.st_ctime, found.st_ctime_nsec),
            (found.st_mtime, found.st_mtime_nsec),
        ];
        let nanos = times.map(|(_, nanos)| i64::try_from(nanos).unwrap());
        let first = [
            times[0].0,
            nanos[0],
            times[1].0,
            nanos[1],
            number(found.st_dev),
            number(found.st_ino),
        ];
        let deep = (
            first,
            [
                i64::from(found.st_uid),
                i64::from(found.st_gid),
                found.st_size,
            ],
        );
        let before = bench.read(".git/index");
        refresh(&bench, &[&path, "zz"]).unwrap();
        let expected = patched(&before, &[(&path, deep), ("zz", stat(&bench, "zz"))]);
        assert!(bench.read(".git/index") == expected);
        assert!(bench.git(&["ls-files", "-s"]).contains(&path));
        bench.fsck();
    }
}

#[test]
fn what_differs_from_its_entry_is_not_refreshed() {
    let bench = files();
    let identity = || (bench.read(".git/index"), stat(&bench, ".git/index"));
    let before = identity();
    bench.write("zz", "ZZ");
    bench.chmod("tool", 0o644);
    bench.chmod("a.b", 0o755);
    fs::remove_file(bench.path("link")).unwrap();
    bench.write("link", "tool");
    fs::remove_file(bench.path("a/b")).unwrap();
    fs::remove_file(bench.path("dir/z")).unwrap();
    bench.write("dir/z/file", "x");
    bench.write("untracked", "x");
    let told_before = told(&bench);
    refresh(
        &bench,
        &[
            "zz",
            "tool",
            "a.b",
            "link",
            "a/b",
            "dir/z",
            "untracked",
            "nowhere/at/all",
            "",
        ],
    )
    .unwrap();
    assert_eq!(identity(), before, "it is not even written");
    assert_eq!(told(&bench), told_before);
}

#[test]
fn a_damaged_index_is_not_rewritten() {
    let bench = files();
    let good = bench.read(".git/index");
    for at in (0..good.len()).step_by(61).chain([good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        bench.write(".git/index", &bad);
        let error = refresh(&bench, &SOME).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{at}: {error}");
        assert!(bench.read(".git/index") == bad, "{at}");
        assert!(!bench.exists(".git/index.lock"));
    }
    bench.write(".git/index", &good[..good.len() / 2]);
    assert!(refresh(&bench, &SOME).is_err());
}

/// git looks twice at a file that was changed in the second in which the index was written: by then it may look as before.
#[test]
fn a_change_that_only_the_age_of_the_index_shows_stays_visible() {
    let bench = files();
    // A change shows in the ctime, too, unless it is made in the same second.
    bench.git(&["config", "core.trustctime", "false"]);
    let at = SystemTime::now() - Duration::from_secs(1000);
    let set = |path: &str| {
        fs::File::open(bench.path(path))
            .unwrap()
            .set_modified(at)
            .unwrap();
    };
    for path in ["a.b", "dir/z", "zz"] {
        set(path);
    }
    bench.git(&["update-index", "--refresh"]);
    fs::write(bench.path("zz"), "ZZ").unwrap();
    set("zz");
    set(".git/index");
    let before = told(&bench);
    assert_eq!(before[0], " M zz\n", "git knows");
    fs::copy(bench.path("tool"), bench.path("copy")).unwrap();
    fs::rename(bench.path("copy"), bench.path("tool")).unwrap();
    refresh(&bench, &["tool"]).unwrap();
    assert_eq!(told(&bench), before);
    let sizes = bench.git(&["ls-files", "--debug", "a.b", "dir/z", "zz"]);
    let sizes: Vec<_> = sizes
        .lines()
        .filter_map(|line| line.trim().strip_prefix("size: "))
        .collect();
    assert_eq!(
        sizes,
        ["3\tflags: 0", "5\tflags: 0", "0\tflags: 0"],
        "only what did change is doubted"
    );
}
