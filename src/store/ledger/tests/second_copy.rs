//! The ledger and its second copy: what befalls one of the two is made good by the other.

use super::*;

/// A ledger of `count` events with its copy, and where those are.
fn with_copy(count: usize) -> (tempfile::TempDir, Store, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let store =
        open(&folder.path().join("state")).with_copy(Some(&made(&folder.path().join("git"))));
    for index in 0..count {
        append(&store, vec![created(&format!("run-{index}"))]);
    }
    let files = [store.ledger_path(), store.copy().unwrap().path().to_owned()];
    (folder, store, files)
}

/// The store as another process opens it.
fn newcomer(store: &Store) -> Store {
    Store {
        recent: Arc::default(),
        unsynced: Arc::default(),
        ..store.clone()
    }
}

#[test]
fn the_copy_is_a_file_of_its_own_and_made_whole_again() {
    let (_folder, store, [ledger, copy]) = with_copy(3);
    let all = fs::read(&ledger).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), all);
    assert_ne!(inode(&ledger), inode(&copy));
    // As version 0.1.0 had it, cut off, emptied, gone, overwritten, another ledger's.
    let link = || {
        fs::remove_file(&copy).unwrap();
        fs::hard_link(&ledger, &copy).unwrap();
    };
    let first = line_of(1, 2);
    let write = |bytes: &[u8]| fs::write(&copy, bytes).unwrap();
    let ways: [&dyn Fn(); 6] = [
        &link,
        &|| write(&all[..all.len() / 2]),
        &|| write(b""),
        &|| fs::remove_file(&copy).unwrap(),
        &|| write(&b"rubbish\n".repeat(200)),
        &|| write(&first),
    ];
    for (number, way) in ways.into_iter().enumerate() {
        way();
        assert_eq!(store.load().unwrap().lines, 3, "way {number}");
        drop(store.lock().unwrap());
        assert_eq!(fs::read(&ledger).unwrap(), all, "way {number}");
        assert_eq!(fs::read(&copy).unwrap(), all, "way {number}");
        assert_ne!(inode(&ledger), inode(&copy), "way {number}");
    }
    // A byte in its middle is found by a whole look, and at the latest when the cache is renewed.
    for late in [false, true] {
        let mut flipped = fs::read(&ledger).unwrap();
        flipped[100] ^= 1;
        write(&flipped);
        if late {
            let events = (0..CACHE_EVERY)
                .map(|index| created(&format!("late-{index}")))
                .collect();
            append(&store, events);
        } else {
            assert_eq!(store.flaws().unwrap()[0].0, copy);
            assert_eq!(store.repair().unwrap().len(), 1);
        }
        assert_eq!(
            fs::read(&copy).unwrap(),
            fs::read(&ledger).unwrap(),
            "{late}"
        );
        assert!(store.flaws().unwrap().is_empty());
    }
}

#[test]
fn what_the_ledger_lost_counts_still_and_comes_back() {
    let (_folder, store, [ledger, copy]) = with_copy(5);
    let all = fs::read(&ledger).unwrap();
    let lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
    let mut flipped = all.clone();
    flipped[lines[0].len() + 40] ^= 1;
    let rubbish = b"rubbish\n".repeat(400);
    let two = lines[..2].concat();
    let lost: [(&str, Option<&[u8]>); 6] = [
        ("cut at a line's end", Some(&two)),
        ("cut in a line", Some(&all[..all.len() - 30])),
        ("emptied", Some(b"")),
        ("gone", None),
        ("a flipped bit", Some(&flipped)),
        ("overwritten", Some(&rubbish)),
    ];
    for (what, bytes) in lost {
        match bytes {
            Some(bytes) => fs::write(&ledger, bytes).unwrap(),
            None => fs::remove_file(&ledger).unwrap(),
        }
        let reader = newcomer(&store);
        assert_eq!(reader.load().unwrap().lines, 5, "{what}");
        assert_eq!(reader.read_lines(0).unwrap().len(), 5, "{what}");
        assert_eq!(
            reader
                .events_of(&RunKey::new("run-1", None, None))
                .unwrap()
                .len(),
            1,
            "{what}"
        );
        assert_eq!(
            fs::read(&ledger).ok().as_deref(),
            bytes,
            "{what}: who reads writes nothing"
        );
        assert_eq!(reader.flaws().unwrap()[0].0, ledger, "{what}");
        store.lock().unwrap();
        assert_eq!(
            (fs::read(&ledger).unwrap(), fs::read(&copy).unwrap()),
            (all.clone(), all.clone()),
            "{what}"
        );
    }
    let aside = |name: &str| fs::read(store.private_dir().join("damaged").join(name)).unwrap();
    assert_eq!(
        (aside("events.jsonl"), aside("events-2.jsonl")),
        (flipped.clone(), rubbish)
    );
    // An event that the copy did not get is not lost with the damage of another one.
    fs::write(&copy, lines[..4].concat()).unwrap();
    fs::write(&ledger, &flipped).unwrap();
    assert_eq!(store.load().unwrap().lines, 5);
    drop(store.lock().unwrap());
    assert_eq!(
        (fs::read(&ledger).unwrap(), fs::read(&copy).unwrap()),
        (all.clone(), all.clone())
    );
    // Neither has all of it: the longer one counts only where nobody knows of more.
    fs::write(&ledger, lines[..2].concat()).unwrap();
    fs::write(&copy, lines[..3].concat()).unwrap();
    assert!(is_corrupt(&store.load()));
    assert!(is_corrupt(&store.lock()));
    fs::write(store.created_marker(), "0").unwrap();
    assert_eq!(store.load().unwrap().lines, 3);
    // The copy's last line lacks its end and nothing else: the ledger had it.
    fs::write(&copy, &all[..all.len() - 1]).unwrap();
    assert_eq!(store.load().unwrap().lines, 5);
    drop(store.lock().unwrap());
    assert_eq!(
        (fs::read(&ledger).unwrap(), fs::read(&copy).unwrap()),
        (all.clone(), all.clone())
    );
    // Another ledger that has less than what was known here.
    fs::write(&copy, &all).unwrap();
    fs::write(&ledger, line_of(1, 2)).unwrap();
    assert!(is_corrupt(&store.load()));
}

#[test]
fn a_rebuilding_that_was_cut_off_loses_nothing() {
    let (_folder, store, [ledger, copy]) = with_copy(4);
    let all = fs::read(&ledger).unwrap();
    // The ledger is damaged, the copy has got its other name.
    let mut damaged = all;
    damaged[30] ^= 1;
    fs::write(&ledger, &damaged).unwrap();
    fs::rename(&copy, store.copy().unwrap().set_aside_path()).unwrap();
    assert!(store.load().is_err());
    let mut events = store.salvage().unwrap().events;
    assert_eq!(events.len(), 4);
    // Fewer than there were are right where it was rebuilt.
    events.truncate(2);
    store
        .lock_for_rebuilding()
        .unwrap()
        .replace(&mut events, now())
        .unwrap();
    assert_eq!(store.load().unwrap().lines, 2);
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&ledger).unwrap());
    assert!(!store.copy().unwrap().set_aside_path().exists());
}

/// What befalls one of the two files: it is cut to a number of thousandths, or a bit is flipped there.
#[derive(Clone, Debug)]
enum Blow {
    Cut(usize),
    Flip(usize),
    Remove,
}

fn blow() -> impl Strategy<Value = Blow> {
    prop_oneof![
        4 => (0..=1000_usize).prop_map(Blow::Cut),
        4 => (0..1000_usize).prop_map(Blow::Flip),
        1 => Just(Blow::Remove),
    ]
}

/// How many events a file says as it stands; `None` where it is not whole.
fn said_by(bytes: &[u8]) -> Option<u64> {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut loaded = Loaded::default();
    store.fold(&mut loaded, bytes).ok().map(|()| loaded.lines)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_fewer_events_than_the_longer_whole_file_has(
        packed in any::<bool>(),
        noted in any::<bool>(),
        blows in prop::collection::vec((any::<bool>(), blow()), 0..4),
    ) {
        let (_folder, store, files) = with_copy(6);
        if packed {
            let lines = fs::read(&files[0]).unwrap();
            let end = memchr::memmem::find(&lines, b"\n{\"seq\":4,").unwrap() + 1;
            let packed = ledger_line::pack(1, &lines[..end]).unwrap();
            fs::write(&files[0], [&packed, &lines[end..]].concat()).unwrap();
            // Each of the two may be compacted alone.
            if blows.len() % 2 == 0 {
                drop(store.lock().unwrap());
            }
        }
        if !noted {
            fs::write(store.created_marker(), "0").unwrap();
        }
        for (which, blow) in &blows {
            let path = &files[usize::from(*which)];
            let Ok(mut bytes) = fs::read(path) else { continue };
            match blow {
                Blow::Cut(part) => bytes.truncate(bytes.len() * part / 1000),
                Blow::Flip(part) => {
                    let at = bytes.len() * part / 1000;
                    bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 4);
                }
                Blow::Remove => {
                    fs::remove_file(path).unwrap();
                    continue;
                }
            }
            fs::write(path, bytes).unwrap();
        }
        let longer = files.iter().filter_map(|path| said_by(&fs::read(path).ok()?)).max();
        let store = newcomer(&store);
        match store.load() {
            Ok(loaded) => {
                prop_assert!(Some(loaded.lines) >= longer, "{} of {:?}", loaded.lines, longer);
                prop_assert!(!noted || loaded.lines == 6);
                // Repaired, it says the same, and both files have it.
                let ledger = store.lock().unwrap();
                prop_assert_eq!(&ledger.loaded.state, &loaded.state);
                drop(ledger);
                prop_assert_eq!(said_by(&fs::read(&files[0]).unwrap()), Some(loaded.lines));
                store.repair().unwrap();
                prop_assert_eq!(fs::read(&files[0]).unwrap(), fs::read(&files[1]).unwrap());
                prop_assert_eq!(newcomer(&store).load().unwrap().state, loaded.state);
            }
            Err(StoreError::Corrupt { .. }) => {
                prop_assert!(!blows.is_empty());
                prop_assert!(store.lock().is_err());
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

/// An attempt's `git clean` is at work while something is recorded.
#[test]
fn what_is_recorded_while_the_folder_is_removed_is_recorded() {
    let (_folder, store, _) = with_copy(1);
    let clean = || {
        for _ in 0..4 {
            // Something may be made in it meanwhile.
            let _ = fs::remove_dir_all(store.dir());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for number in 0..40 {
        std::thread::scope(|scope| {
            scope.spawn(clean);
            let mut ledger = store.lock().unwrap();
            let event = created(&format!("m{number}"));
            ledger.append(now(), vec![event]).unwrap();
        });
    }
    drop(store.lock().unwrap());
    assert_eq!(store.load().unwrap().state.runs.len(), 41);
}
