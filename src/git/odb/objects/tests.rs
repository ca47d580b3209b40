//! The object writer: what it wrote is read back, by git too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    repo: Repo,
    lock: WorktreeLock,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let repo = Repo::discover(folder.path(), None).unwrap();
        let lock = WorktreeLock::acquire(&repo, Duration::ZERO).unwrap();
        Self {
            _folder: folder,
            repo,
            lock,
        }
    }

    fn writer(&self) -> ObjectWriter {
        ObjectWriter::new(&self.repo, &self.lock).unwrap()
    }

    fn objects(&self) -> PathBuf {
        self.repo.common_dir().join("objects")
    }

    fn git(&self, args: &[&str], input: &str) -> Vec<u8> {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(self.repo.workdir())
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
            .env_remove("GIT_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input.as_bytes()).unwrap());
            child.wait_with_output().unwrap()
        });
        let all = [output.stdout, output.stderr].concat();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&all)
        );
        all
    }

    /// Checks that git and libgit2 read every one of them back.
    fn check(&self, all: &BTreeMap<Oid, Vec<u8>>) {
        let names = all
            .keys()
            .map(Oid::to_string)
            .collect::<Vec<_>>()
            .join("\n");
        let expected: Vec<u8> = all
            .iter()
            .flat_map(|(oid, data)| {
                [
                    format!("{oid} blob {}\n", data.len()).as_bytes(),
                    data,
                    b"\n",
                ]
                .concat()
            })
            .collect();
        assert!(
            self.git(&["cat-file", "--batch"], &names) == expected,
            "git reads something else"
        );
        let repository = git2::Repository::open(self.repo.workdir()).unwrap();
        for (oid, data) in all {
            assert_eq!(repository.find_blob(*oid).unwrap().content(), data);
        }
        assert!(
            !String::from_utf8_lossy(&self.git(&["fsck", "--strict", "--full"], ""))
                .contains("error")
        );
    }

    /// The files beside the packs whose names end so.
    fn packs(&self, ending: &str) -> Vec<PathBuf> {
        let all = fs::read_dir(self.objects().join("pack"));
        let all = all.into_iter().flatten().flatten().map(|file| file.path());
        all.filter(|file| file.to_string_lossy().ends_with(ending))
            .collect()
    }

    fn count(&self, ending: &str) -> usize {
        self.packs(ending).len()
    }

    /// Writes and publishes these, as a capture does.
    fn store(&self, contents: &[Vec<u8>]) -> BTreeMap<Oid, Vec<u8>> {
        let writer = self.writer();
        let all = write_all(&writer, contents);
        writer.publish().unwrap();
        writer.secure().unwrap();
        all
    }

    fn loose(&self) -> usize {
        let count = self.git(&["count-objects"], "");
        String::from_utf8(count)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }
}

/// Content that is neither all the same nor incompressible.
fn content(seed: u64, size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..size)
        .map(|at| {
            if at % 3 == 0 {
                random.u8(..)
            } else {
                b"abcd"[at % 4]
            }
        })
        .collect()
}

fn object() -> impl Strategy<Value = (u64, usize)> {
    (
        0..40_u64,
        prop_oneof![
            Just(0_usize),
            1..200_usize,
            1..5_000_usize,
            1..200_000_usize
        ],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_threads_write_is_what_git_reads(
        parts in prop::collection::vec(prop::collection::vec(object(), 0..70), 2..5),
        look in any::<bool>(),
    ) {
        let place = Place::new();
        let writer = place.writer();
        let mut all = BTreeMap::new();
        for halves in [0, 1] {
            let written = std::thread::scope(|scope| {
                let work = |part: &Vec<(u64, usize)>| {
                    let half = part.iter().skip(halves).step_by(2);
                    half.map(|(seed, size)| {
                        let data = content(*seed, *size);
                        (writer.write(ObjectType::Blob, &data).unwrap(), data)
                    }).collect::<Vec<_>>()
                };
                let threads: Vec<_> = parts.iter().map(|part| scope.spawn(move || work(part))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            all.extend(written);
            if look {
                let repository = writer.repository().unwrap();
                prop_assert!(all.iter().all(|(oid, data)| repository.find_blob(*oid).unwrap().content() == data));
            }
        }
        prop_assert!(all.keys().all(|oid| writer.contains(*oid).unwrap()));
        prop_assert_eq!((place.loose(), place.count("pack")), (0, 0), "nothing is there before it is published");
        writer.publish().unwrap();
        if !look {
            prop_assert_eq!((place.loose(), place.count(".pack")), if all.len() == 1 { (1, 0) } else { (0, all.len().min(1)) });
        }
        place.check(&all);
        drop(writer);
        let again = place.writer();
        for (oid, data) in &all {
            prop_assert_eq!(again.write(ObjectType::Blob, data).unwrap(), *oid);
        }
        again.publish().unwrap();
        prop_assert_eq!(again.state().published.clone(), Published::default(), "nothing is written twice");
        let refs: BTreeSet<Oid> = all.keys().copied().collect();
        place.git(&["gc", "--quiet", "--prune=never"], "");
        prop_assert!(refs.iter().all(|oid| place.writer().contains(*oid).unwrap()));
        place.check(&all);
    }
}

#[test]
fn large_files_are_streamed_and_a_wrong_size_leaves_nothing() {
    let place = Place::new();
    let data = content(1, 9 << 20);
    let size = data.len() as u64;
    for many in [false, true] {
        let writer = place.writer();
        for number in 0..if many { UNPACK_LIMIT + 1 } else { 2 } {
            writer
                .write(ObjectType::Blob, format!("{many} {number}").as_bytes())
                .unwrap();
        }
        assert_eq!(
            writer
                .write_stream(&mut data.as_slice(), size - 1)
                .unwrap()
                .unwrap(),
            None
        );
        assert_eq!(
            writer
                .write_stream(&mut data.as_slice(), size + 1)
                .unwrap()
                .unwrap(),
            None
        );
        let oid = writer
            .write_stream(&mut data.as_slice(), size)
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(oid, Oid::hash_object(ObjectType::Blob, &data).unwrap());
        writer.publish().unwrap();
        place.check(&BTreeMap::from([(oid, data.clone())]));
    }
    assert_eq!(
        (place.loose(), place.count(".idx")),
        (1, 2),
        "the large one was written once"
    );
}

#[test]
fn files_are_read_only_and_nothing_stays_in_the_quarantine() {
    let place = Place::new();
    let quarantine = place.repo.recover_dir().unwrap().join("quarantine/objects");
    fs::create_dir_all(quarantine.join("ab")).unwrap();
    fs::write(quarantine.join("ab/cut"), "off").unwrap();
    fs::write(quarantine.join("new-1"), "off").unwrap();
    for many in [false, true] {
        let writer = place.writer();
        assert!(!quarantine.join("ab").exists() && !quarantine.join("new-1").exists());
        for number in 0..if many { UNPACK_LIMIT + 1 } else { 3 } {
            writer
                .write(ObjectType::Blob, format!("{many} {number}").as_bytes())
                .unwrap();
        }
        // More than what is kept in memory at once, and few of them: loose objects.
        for seed in 0..if many { 0 } else { 9 } {
            writer
                .write(ObjectType::Blob, &content(seed, LARGE))
                .unwrap();
        }
        writer.repository().unwrap();
        writer.publish().unwrap();
        drop(writer);
        for entry in fs::read_dir(&quarantine).unwrap().flatten() {
            let is_empty = || fs::read_dir(entry.path()).unwrap().next().is_none();
            let name = entry.file_name();
            assert!(
                name == "info" || name == "pack" && is_empty(),
                "{}",
                entry.path().display()
            );
        }
    }
    assert_eq!((place.loose(), place.count(".pack")), (2, 2));
    for folder in fs::read_dir(place.objects()).unwrap().flatten() {
        for file in fs::read_dir(folder.path()).unwrap().flatten() {
            assert_eq!(
                file.metadata().unwrap().permissions().mode() & 0o777,
                0o444,
                "{}",
                file.path().display()
            );
        }
    }
}

#[test]
fn small_packs_become_one_and_are_never_too_many() {
    let place = Place::new();
    let mut all = BTreeMap::new();
    let mut store = |place: &Place, number: u64| {
        let writer = place.writer();
        all.extend(write_all(&writer, &contents(1_000_000 * number, 3)));
        writer.publish().unwrap();
        assert!(!writer.secure().unwrap());
    };
    (0..40).for_each(|number| store(&place, number));
    assert!(
        (2..=18).contains(&place.count(".pack")),
        "{}",
        place.count(".pack")
    );
    assert_eq!(place.loose(), 0);
    // Captures that are under way in other worktrees do not hinder it.
    let elsewhere = owned_objects::lock_shared(&place.repo).unwrap();
    (40..60).for_each(|number| store(&place, number));
    assert!(
        place.count(".pack") <= 18 && place.loose() == 0,
        "{} {}",
        place.count(".pack"),
        place.loose()
    );
    drop(elsewhere);
    // Where it cannot be done, no more are made.
    let others = owned_objects::try_lock_packing(&place.repo).unwrap();
    (60..110).for_each(|number| store(&place, number));
    assert!(
        place.count(".pack") <= 34 && place.loose() > 60,
        "{} {}",
        place.count(".pack"),
        place.loose()
    );
    drop(others);
    store(&place, 110);
    assert!(place.count(".pack") <= 3, "{}", place.count(".pack"));
    let notes = fs::read_dir(place.repo.common_dir().join("recover/written"))
        .unwrap()
        .count();
    assert_eq!(notes, 2, "the packs, and the last small one");
    place.check(&all);
}

// What is published on the way is kept like the rest: `git repack -ad` may have listed the packs before the reference is set.
#[test]
fn a_portion_is_kept_until_the_reference_is_set() {
    let place = Place::new();
    let mut writer = place.writer();
    writer.publish_from(50_000);
    let all = write_all(&writer, &contents(1, 600));
    let before = place.count(".pack");
    assert!(
        before > 0 && place.count("keep") == before,
        "{before} {}",
        place.count("keep")
    );
    place.git(&["repack", "-adq"], "");
    writer.publish().unwrap();
    place.check(&all);
    writer.secure().unwrap();
    assert_eq!(place.count("keep"), 0);
    drop(writer);
    place.check(&all);
}

// Of a damaged pack that is whole which comes before the damage; it stays for what may be read of the rest by hand.
#[test]
fn a_damaged_small_pack_does_not_end_packing() {
    let place = Place::new();
    let mut all = BTreeMap::new();
    let mut store = |number: u64| all.extend(place.store(&contents(1_000_000 * number, 3)));
    store(0);
    let pack = place.packs(".pack").remove(0);
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o644)).unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let length = bytes.len();
    bytes[length - 25] ^= 1;
    fs::write(&pack, bytes).unwrap();
    (1..100).for_each(&mut store);
    assert!(
        place.count(".pack") <= 19 && place.loose() == 0,
        "{} {}",
        place.count(".pack"),
        place.loose()
    );
    assert!(pack.exists() && crate::git::repo::health::is_suspect(place.repo.own()));
    // Written again, it is whole.
    store(0);
    let database = database::Database::open(&place.repo).unwrap();
    assert!(
        all.iter()
            .all(|(oid, data)| database.blob(*oid).unwrap() == *data)
    );
}

// git touches a pack that has what it writes: it becomes part of a larger one all the same, as do those of large captures.
#[test]
fn packs_are_few_whatever_is_captured_and_committed() {
    let place = Place::new();
    let mut all = BTreeMap::new();
    for number in 0..60_u64 {
        let count = if number % 3 == 0 { 300 } else { 3 };
        all.extend(place.store(&contents(1_000_000 * number, count)));
        let later = SystemTime::now() + Duration::from_millis(50);
        for pack in place.packs(".pack") {
            File::open(pack).unwrap().set_modified(later).unwrap();
        }
    }
    assert!(place.count(".pack") <= 24, "{}", place.count(".pack"));
    place.check(&all);
}

#[test]
fn a_pack_that_was_not_published_whole_is_taken_back() {
    let place = Place::new();
    let all = place.store(&contents(1, 3));
    // As a kill leaves it right before the index: the quarantine has both.
    let quarantine = place
        .repo
        .recover_dir()
        .unwrap()
        .join("quarantine/objects/pack");
    fs::create_dir_all(&quarantine).unwrap();
    for file in place.packs("") {
        fs::hard_link(&file, quarantine.join(file.file_name().unwrap())).unwrap();
        if file.extension().is_some_and(|end| end == "idx") {
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!((place.count(".pack"), place.count(".idx")), (1, 0));
    let elsewhere = owned_objects::lock_shared(&place.repo).unwrap();
    let writer = place.writer();
    assert_eq!(place.count(".pack"), 0, "whoever captures meanwhile");
    drop(elsewhere);
    assert_eq!(write_all(&writer, &contents(1, 3)), all);
    writer.publish().unwrap();
    place.check(&all);
}

#[test]
fn an_old_object_that_is_needed_again_becomes_young() {
    let place = Place::new();
    let writer = place.writer();
    let oid = writer.write(ObjectType::Blob, b"x").unwrap();
    writer.publish().unwrap();
    let path = format::loose_path(&place.objects(), oid);
    let old = SystemTime::now() - 20 * FRESH;
    File::open(&path).unwrap().set_modified(old).unwrap();
    place.writer().write(ObjectType::Blob, b"x").unwrap();
    assert!(fs::metadata(&path).unwrap().modified().unwrap() > old + 10 * FRESH);
}

/// For measurements: `cargo test --release -- --ignored --nocapture costs_of_a_writer`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stderr)]
fn costs_of_a_writer() {
    let place = Place::new();
    for round in 0..5_u64 {
        let begun = std::time::Instant::now();
        let writer = place.writer();
        let opened = begun.elapsed();
        for number in 0..45 {
            writer
                .write(ObjectType::Blob, &content(round * 100 + number, 4_000))
                .unwrap();
        }
        let written = begun.elapsed();
        writer.publish().unwrap();
        eprintln!(
            "opened {opened:?}, 45 written {written:?}, published {:?}",
            begun.elapsed()
        );
    }
    for threads in [1, 2] {
        let writer = place.writer();
        let begun = std::time::Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let writer = &writer;
                scope.spawn(move || {
                    for number in 0..4_000 / threads {
                        let seed = 1_000_000 * threads + 10_000 * thread + number;
                        writer
                            .write(ObjectType::Blob, &content(seed, 16_000))
                            .unwrap();
                    }
                });
            }
        });
        let written = begun.elapsed();
        writer.publish().unwrap();
        eprintln!(
            "{threads} threads: 4000 of 16 kB written {written:?}, published {:?}",
            begun.elapsed()
        );
    }
}

/// Writes these as blobs.
fn write_all(writer: &ObjectWriter, contents: &[Vec<u8>]) -> BTreeMap<Oid, Vec<u8>> {
    contents
        .iter()
        .map(|data| (writer.write(ObjectType::Blob, data).unwrap(), data.clone()))
        .collect()
}

fn contents(seed: u64, count: u64) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| content(seed + number, 100))
        .collect()
}

/// As `git prune --expire=now` and `git repack -ad` do where nothing refers to anything.
fn collect(place: &Place) {
    for folder in std::fs::read_dir(place.objects()).unwrap().flatten() {
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            let is_kept = file.path().with_extension("keep").exists();
            if folder.file_name() != "info" && !is_kept {
                std::fs::remove_file(file.path()).unwrap();
            }
        }
    }
}

#[test]
fn what_a_collection_took_before_the_reference_was_set_is_published_again() {
    // Loose objects, a pack, and objects that were there before.
    for (before, count) in [(0, 5), (0, 150), (5, 5), (150, 5), (150, 150)] {
        let place = Place::new();
        let found = contents(1000, before);
        place.store(&found);
        let writer = place.writer();
        let mut all = write_all(&writer, &contents(1, count));
        all.extend(write_all(&writer, &found));
        let large = content(7, 3 << 20);
        let oid = writer
            .write_stream(&mut large.as_slice(), large.len() as u64)
            .unwrap()
            .unwrap()
            .unwrap();
        all.insert(oid, large);
        writer.publish().unwrap();
        collect(&place);
        assert!(writer.secure().unwrap(), "{before} {count}");
        drop(writer);
        place.check(&all);
        assert_eq!(
            (place.loose(), place.count("keep")),
            (0, 0),
            "{before} {count}"
        );
    }
}

#[test]
fn during_a_collection_a_pack_is_kept_until_the_reference_is_set() {
    let place = Place::new();
    let found = contents(1000, 3);
    place.store(&found);
    let pid = place.repo.common_dir().join("gc.pid");
    let host = rustix::system::uname()
        .nodename()
        .to_str()
        .unwrap()
        .to_owned();
    std::fs::write(&pid, format!("{} {host}", std::process::id())).unwrap();
    let writer = place.writer();
    let mut all = write_all(&writer, &contents(1, 5));
    all.extend(write_all(&writer, &found));
    writer.publish().unwrap();
    assert_eq!(place.count("keep"), 1);
    collect(&place);
    place.check(&all);
    // Anything that is written later goes the same way.
    all.extend(write_all(&writer, &contents(2000, 120)));
    writer.publish().unwrap();
    collect(&place);
    assert_eq!((place.loose(), place.count("keep")), (0, 2));
    writer.secure().unwrap();
    assert_eq!(place.count("keep"), 0);
    place.check(&all);
    drop(writer);
    // A capture that is given up lets go of its pack too.
    let writer = place.writer();
    write_all(&writer, &contents(3000, 5));
    writer.publish().unwrap();
    assert_eq!(place.count("keep"), 1);
    drop(writer);
    assert_eq!(place.count("keep"), 0);
}

#[test]
fn a_pack_that_a_dead_process_kept_is_let_go_of() {
    let place = Place::new();
    let (quarantine, packs) = (
        place.repo.recover_dir().unwrap().join("quarantine"),
        place.objects().join("pack"),
    );
    let dead = || {
        std::fs::create_dir_all(quarantine.join("objects/pack")).unwrap();
        for folder in [&packs, &quarantine.join("objects/pack")] {
            std::fs::write(
                folder.join("pack-1.keep"),
                "recover: until the checkpoint's reference is set",
            )
            .unwrap();
        }
        std::fs::write(packs.join("pack-2.keep"), "the user's").unwrap();
    };
    dead();
    drop(place.writer());
    assert_eq!(place.count("keep"), 1);
    // The worktree of the dead one may be gone.
    dead();
    std::fs::remove_dir_all(&quarantine).unwrap();
    assert_eq!(place.repo.discard_objects(&place.lock, &[]).left, None);
    assert_eq!(place.count("keep"), 1);
    assert!(packs.join("pack-2.keep").exists());
}

// snapshot.md (Speed): a capture that is stopped again and again comes to its end, as each one finds what those before it
// have stored, but for the last portion.
#[test]
fn what_was_stored_before_a_capture_was_stopped_is_found_again() {
    let place = Place::new();
    let content = |number: u32| -> Vec<u8> {
        (0..1000)
            .map(|at| {
                Oid::hash_object(ObjectType::Blob, format!("{number} {at}").as_bytes())
                    .unwrap()
                    .as_bytes()[0]
            })
            .collect()
    };
    // How many it had to write of the first `count`.
    let stopped = |count: u32, portion: Option<u64>| {
        let mut writer = place.writer();
        if let Some(portion) = portion {
            writer.publish_from(portion);
        }
        for number in 0..count {
            writer.write(ObjectType::Blob, &content(number)).unwrap();
        }
        let written = writer.state().known.len();
        // What is in the quarantine goes with it, or with the next.
        drop(writer);
        written
    };
    let portion = Some(50_000);
    assert_eq!(
        (stopped(400, None), stopped(400, None)),
        (400, 400),
        "nothing is kept that is not asked for"
    );
    assert_eq!(stopped(400, portion), 400);
    let again = stopped(600, portion);
    assert!(
        (200..380).contains(&again),
        "{again} of 600 were written, 400 of them were before"
    );
    // The last one comes to its end: all of it is there, whoever wrote it.
    let mut writer = place.writer();
    writer.publish_from(50_000);
    let all: BTreeMap<Oid, Vec<u8>> = (0..700)
        .map(|number| {
            (
                writer.write(ObjectType::Blob, &content(number)).unwrap(),
                content(number),
            )
        })
        .collect();
    let last = writer.state().known.len();
    assert!(
        last < 350,
        "{last} of 700 were written, 600 of them were before"
    );
    writer.publish().unwrap();
    assert!(!writer.secure().unwrap());
    drop(writer);
    place.check(&all);
}
