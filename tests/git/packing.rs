//! Small packs of many checkpoints become one, and objects go from there with the last checkpoint that held them.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use recover::testing::git::Discarded;
use recover::testing::git::StoredCheckpoint;
use recover::testing::model::ObjectId;

use crate::bench::Bench;

fn loose(bench: &Bench) -> BTreeSet<String> {
    let folders = fs::read_dir(bench.path(".git/objects")).unwrap().flatten();
    let folders = folders.filter(|folder| folder.file_name().len() == 2);
    let name = |path: std::path::PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let inside = |folder: fs::DirEntry| {
        fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .map(|file| file.path())
    };
    folders
        .flat_map(inside)
        .map(|path| name(path.parent().unwrap().to_owned()) + &name(path))
        .collect()
}

fn packs(bench: &Bench) -> usize {
    let Ok(files) = fs::read_dir(bench.path(".git/objects/pack")) else {
        return 0;
    };
    files
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|end| end == "pack"))
        .count()
}

/// This many checkpoints make one pack of those before the last.
const MERGED: u32 = 17;

/// Checkpoints with 8 files each that no other one has, but for one that stays.
fn many(bench: &Bench, numbers: std::ops::Range<u32>) -> Vec<StoredCheckpoint> {
    let mut made = Vec::new();
    for number in numbers {
        let _ = fs::remove_dir_all(bench.path("d"));
        (0..8).for_each(|file| bench.write(format!("d/{file}"), format!("{number} {file}\n")));
        made.push(bench.checkpoint());
    }
    made
}

fn prune(bench: &Bench, gone: &[&StoredCheckpoint]) -> Discarded {
    let commits: Vec<ObjectId> = gone.iter().map(|gone| gone.commit.clone()).collect();
    bench.prune(&commits)
}

fn is_there(bench: &Bench, content: &str) -> bool {
    bench.write(".git/x", content);
    let id = bench.git(&["hash-object", ".git/x"]);
    Bench::git_in(&bench.root, &["cat-file", "-e", id.trim()]).is_ok()
}

fn size(bench: &Bench) -> u64 {
    let list = bench.git(&["count-objects", "-v"]);
    let pack = fs::read_dir(bench.path(".git/objects/pack"))
        .into_iter()
        .flatten()
        .flatten();
    assert!(list.contains("garbage: 0\n"), "{list}");
    pack.map(|file| file.metadata().unwrap().len()).sum::<u64>()
        + loose(bench)
            .iter()
            .map(|id| {
                bench
                    .path(format!(".git/objects/{}/{}", &id[..2], &id[2..]))
                    .metadata()
                    .unwrap()
                    .len()
            })
            .sum::<u64>()
}

#[test]
fn small_packs_become_one_and_what_is_the_users_stays_loose() {
    let bench = Bench::with_commit();
    bench.write("mine", "the user's own\n");
    bench.git(&["hash-object", "-w", "mine"]);
    let own = loose(&bench);
    let mut made: Vec<(StoredCheckpoint, String)> = Vec::new();
    for number in 0..150 {
        let content = format!("{number}\n").repeat(number + 1);
        bench.write(format!("d/{}", number % 5), &content);
        made.push((bench.checkpoint(), content));
        assert!(
            loose(&bench).difference(&own).count() <= 500,
            "after {number}"
        );
    }
    assert!(loose(&bench).is_superset(&own), "the user's are left alone");
    let small = fs::read_dir(bench.path(".git/recover/written"))
        .unwrap()
        .flatten();
    let small = small
        .filter(|file| file.file_name().to_string_lossy().starts_with("small-"))
        .count();
    assert!(
        small <= 17 && (1..=3).contains(&(packs(&bench) - small)),
        "{small} of {}",
        packs(&bench)
    );
    bench.fsck();
    for (number, (checkpoint, content)) in made.iter().enumerate() {
        assert_eq!(
            checkpoint.verify(&bench.repo()).unwrap(),
            Vec::<String>::new()
        );
        if number % 30 == 7 {
            bench.restore(checkpoint).unwrap();
            assert_eq!(bench.read(format!("d/{}", number % 5)), content.as_bytes());
        }
    }
    // Nothing is written twice: what is packed is known to be there.
    let before = loose(&bench).len();
    bench.restore(&made[149].0).unwrap();
    bench.checkpoint();
    assert!(loose(&bench).len() < before + 20);
    // What git repacks is git's.
    bench.git(&["gc", "-q", "--prune=now"]);
    many(&bench, 0..6);
    bench.fsck();
    assert!(
        made.iter()
            .all(|(checkpoint, _)| checkpoint.verify(&bench.repo()).unwrap().is_empty())
    );
}

#[test]
fn what_only_removed_checkpoints_held_goes_from_the_pack() {
    let bench = Bench::with_commit();
    bench.write("stays", "in all of them\n");
    let made = many(&bench, 0..MERGED);
    assert_eq!(packs(&bench), 2);
    let listed = fs::read_to_string(bench.path(".git/recover/written/packs")).unwrap();
    assert_eq!(
        listed
            .lines()
            .filter(|line| line.starts_with("pack "))
            .count(),
        1,
        "{listed}"
    );
    // A commit of the user's, who wrote nothing of it again.
    bench.write("f", "1 7\n");
    bench.git(&["add", "f"]);
    bench.git(&["commit", "-qm", "mine"]);
    // git touched the pack, as it needs something of it.
    let before = size(&bench);
    let done = prune(&bench, &[&made[0]]);
    assert!(
        is_there(&bench, "0 3\n"),
        "the pack stays for an hour: {done:?}"
    );
    for file in fs::read_dir(bench.path(".git/objects/pack"))
        .unwrap()
        .flatten()
    {
        let old = SystemTime::now() - Duration::from_secs(2 * 86_400);
        fs::File::open(file.path())
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    let done = prune(&bench, &[&made[1]]);
    assert!(done.objects >= 20 && done.left.is_none(), "{done:?}");
    assert!(
        !is_there(&bench, "0 3\n") && !is_there(&bench, "1 3\n"),
        "of both"
    );
    assert!(
        is_there(&bench, "1 7\n")
            && is_there(&bench, "in all of them\n")
            && is_there(&bench, "2 3\n")
    );
    assert!(
        before - done.bytes >= size(&bench) && done.bytes > 0,
        "{done:?}"
    );
    assert_eq!(packs(&bench), 2, "without them");
    for checkpoint in &made[2..] {
        assert_eq!(
            checkpoint.verify(&bench.repo()).unwrap(),
            Vec::<String>::new()
        );
    }
    let (safety, ..) = bench.restore(&made[2]).unwrap();
    assert_eq!(bench.read("d/3"), b"2 3\n");
    let rest: Vec<_> = made[2..].iter().chain([&safety]).collect();
    let before = size(&bench);
    let done = prune(&bench, &rest);
    assert!(
        done.objects > 100 && done.left.is_none() && done.bytes > 0,
        "{done:?}"
    );
    assert!(
        size(&bench) <= before - done.bytes
            && !is_there(&bench, "2 3\n")
            && !is_there(&bench, "16 3\n")
    );
    assert!(is_there(&bench, "1 7\n"));
}

#[test]
fn a_pack_that_nothing_needs_goes_whole() {
    let bench = Bench::with_commit();
    let before = size(&bench);
    let made = many(&bench, 0..MERGED);
    let between = size(&bench);
    let done = prune(&bench, &made.iter().collect::<Vec<_>>());
    assert_eq!((packs(&bench), size(&bench)), (0, before), "{done:?}");
    assert_eq!(done.bytes, between - before);
}

#[test]
fn what_was_touched_before_it_was_packed_stays_for_an_hour() {
    let bench = Bench::with_commit();
    let mut made = many(&bench, 0..2);
    // git touches what it needs, and refers to it a moment later.
    bench.write("f", "0 3\n");
    bench.git(&["hash-object", "-w", "f"]);
    fs::remove_file(bench.path("f")).unwrap();
    made.extend(many(&bench, 2..MERGED));
    assert_eq!(packs(&bench), 2);
    let done = prune(&bench, &made.iter().collect::<Vec<_>>());
    assert!(
        is_there(&bench, "0 3\n") && !is_there(&bench, "1 4\n"),
        "{done:?}"
    );
}

// git touches the pack that has what it needs: then it stays for an hour.
#[test]
fn a_small_pack_stays_while_git_needs_something_of_it_and_goes_by_objects() {
    let bench = Bench::with_commit();
    bench.write("both", "shared\n");
    bench.write("f", "only in the first\n");
    let first = bench.checkpoint();
    bench.write("f", "later\n");
    bench.checkpoint();
    assert_eq!(
        (packs(&bench), loose(&bench).len()),
        (2, loose(&Bench::with_commit()).len())
    );
    bench.write(".git/g", "only in the first\n");
    bench.git(&["hash-object", "-w", ".git/g"]);
    let done = prune(&bench, &[&first]);
    assert!(
        done.objects == 0 && is_there(&bench, "only in the first\n"),
        "{done:?}"
    );
    for file in fs::read_dir(bench.path(".git/objects/pack"))
        .unwrap()
        .flatten()
    {
        let old = SystemTime::now() - Duration::from_secs(2 * 86_400);
        fs::File::open(file.path())
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    let done = prune(&bench, &[]);
    assert!(
        done.objects > 3 && done.left.is_none() && !is_there(&bench, "only in the first\n"),
        "{done:?}"
    );
    assert!(is_there(&bench, "shared\n") && is_there(&bench, "later\n"));
}

#[test]
fn packing_beside_a_collection_loses_nothing() {
    let bench = Bench::with_commit();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let made = std::thread::scope(|scope| {
        let root = bench.root.clone();
        let stop = &stop;
        let collector = scope.spawn(move || {
            let mut count = 0_u32;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let arguments: &[&str] = [
                    &["gc", "-q", "--prune=now"][..],
                    &["repack", "-qad"],
                    &["prune-packed", "-q"],
                ][count as usize % 3];
                // One of two collections at once may give up.
                let _ = Bench::git_in(&root, arguments);
                count += 1;
            }
            count
        });
        let mut made = Vec::new();
        for number in 0..24 {
            (0..60).for_each(|file| bench.write(format!("d/{file}"), format!("{number} {file}\n")));
            made.push(bench.checkpoint());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(collector.join().unwrap() > 0);
        made
    });
    bench.fsck();
    for checkpoint in &made {
        assert_eq!(
            checkpoint.verify(&bench.repo()).unwrap(),
            Vec::<String>::new()
        );
    }
    bench.restore(&made[3]).unwrap();
    assert_eq!(bench.read("d/9"), b"3 9\n");
}

#[test]
fn what_cannot_be_packed_is_kept_as_it_is_and_fails_nothing() {
    let bench = Bench::with_commit();
    let mut made = many(&bench, 0..1);
    // A folder lies in the way of the file that names the packs.
    fs::create_dir(bench.path(".git/recover/written/packs")).unwrap();
    made.extend(many(&bench, 1..20));
    assert_eq!(packs(&bench), 20);
    fs::remove_dir(bench.path(".git/recover/written/packs")).unwrap();
    made.extend(many(&bench, 20..21));
    assert_eq!(packs(&bench), 2);
    bench.fsck();
    assert!(
        made.iter()
            .all(|checkpoint| checkpoint.verify(&bench.repo()).unwrap().is_empty())
    );
}
