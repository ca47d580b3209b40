//! The ledger's file against random histories, cuts and flaws.

mod second_copy;

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::model::event::{EVENT_SCHEMA, Event};
use crate::model::run::RunSpec;
use crate::model::time::Timestamp;
use crate::store::{ledger_line, salvage};

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join(".ultraplan/state"));
    (folder, store)
}

fn made(folder: &Path) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    folder.to_owned()
}

/// As each process opens it.
fn open(dir: &Path) -> Store {
    Store::new(dir.to_owned(), Duration::from_secs(5))
}

fn append(store: &Store, events: Vec<NewEvent>) {
    store.lock().unwrap().append(now(), events).unwrap();
}

fn is_corrupt<T>(read: &Result<T, StoreError>) -> bool {
    matches!(read, Err(StoreError::Corrupt { .. }))
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_790_000_000_000)
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
}

fn created(id: &str) -> NewEvent {
    let spec = Box::new(RunSpec {
        iterations_total: Some(3),
        ..RunSpec::default()
    });
    let payload = Payload::RunCreated {
        task_id: None,
        session: id.to_owned(),
        worktree: "/w".into(),
        spec,
    };
    NewEvent::about(&RunKey::new(id, None, None), payload)
}

#[test]
fn what_is_appended_is_loaded_again() {
    let (_folder, store) = store();
    assert!(!store.exists());
    assert_eq!(*store.load().unwrap().state, State::default());
    let mut ledger = store.lock().unwrap();
    ledger
        .append(now(), vec![created("a"), created("b")])
        .unwrap();
    ledger.append(now(), vec![created("c")]).unwrap();
    let state = ledger.state().clone();
    drop(ledger);
    assert_eq!(*store.load().unwrap().state, state);
    assert_eq!(state.last_seq, 3);
    assert_eq!(store.read_lines(1).unwrap().len(), 2);
    assert_eq!(
        fs::read_to_string(store.dir().join(".gitignore")).unwrap(),
        "*\n"
    );
}

#[test]
fn a_torn_last_line_is_dropped_and_the_rest_holds_wherever_it_was_cut() {
    let (_folder, store) = store();
    append(&store, vec![created("a")]);
    let first = fs::read(store.ledger_path()).unwrap();
    append(&store, vec![created("b")]);
    let both = fs::read(store.ledger_path()).unwrap();
    // A line that was appended as a whole is noted: cut off later, it is missed.
    fs::write(store.ledger_path(), &both[..both.len() - 9]).unwrap();
    assert!(is_corrupt(&store.lock()));
    for cut in first.len()..both.len() {
        fs::write(store.created_marker(), "1").unwrap();
        fs::write(store.ledger_path(), &both[..cut]).unwrap();
        assert_eq!(store.load().unwrap().state.runs.len(), 1, "cut at {cut}");
        let mut ledger = store.lock().unwrap();
        ledger.append(now(), vec![created("c")]).unwrap();
        drop(ledger);
        let state = store.load().unwrap().state;
        assert_eq!(
            state
                .runs
                .iter()
                .map(|run| run.key.run_id.as_str())
                .collect::<Vec<_>>(),
            ["a", "c"]
        );
    }
}

#[test]
fn damage_is_never_a_reset() {
    let (_folder, store) = store();
    append(&store, vec![created("a"), created("b"), created("c")]);
    let good = fs::read(store.ledger_path()).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let lines: Vec<_> = good.split_inclusive(|byte| *byte == b'\n').collect();
    let gap = [lines[0], lines[2]].concat();
    let deep = [good.clone(), b"[".repeat(100_000), b"\n".to_vec()].concat();
    for (name, bytes) in [
        ("flipped", flipped),
        ("empty", Vec::new()),
        ("a line lost", gap),
        ("deep", deep),
    ] {
        fs::write(store.ledger_path(), bytes).unwrap();
        assert!(is_corrupt(&store.load()), "{name}");
        assert!(is_corrupt(&store.lock()), "{name}");
    }
    fs::remove_file(store.ledger_path()).unwrap();
    assert!(is_corrupt(&store.load()), "missing");
}

#[test]
fn a_newer_ledger_is_read_but_never_written() {
    let (_folder, store) = store();
    append(&store, vec![created("a")]);
    let json = format!(
        r#"{{"seq":2,"at":"{}","schema":9,"source":"recover","type":"novelty","payload":{{}}}}"#,
        now()
    );
    let line = format!(
        "{},\"checksum\":\"{:08x}\"}}\n",
        &json[..json.len() - 1],
        crc32fast::hash(json.as_bytes())
    );
    let mut bytes = fs::read(store.ledger_path()).unwrap();
    bytes.extend_from_slice(line.as_bytes());
    fs::write(store.ledger_path(), &bytes).unwrap();
    let loaded = store.load().unwrap();
    assert_eq!((loaded.newer, loaded.state.runs.len()), (Some(9), 1));
    assert!(matches!(
        store.lock(),
        Err(StoreError::Newer { schema: 9, .. })
    ));
    assert_eq!(fs::read(store.ledger_path()).unwrap(), bytes);
}

#[test]
fn the_cached_fold_is_the_fold_and_a_replaced_ledger_is_noticed() {
    let (_folder, store) = store();
    let mut ledger = store.lock().unwrap();
    for index in 0..600 {
        ledger
            .append(now(), vec![created(&format!("run-{index}"))])
            .unwrap();
    }
    let state = ledger.state().clone();
    drop(ledger);
    assert!(store.cache_path().exists());
    let loaded = store.load().unwrap();
    assert!(!loaded.beyond_cache.are_many());
    assert_eq!(*loaded.state, state);
    let lines = store.read_lines(0).unwrap();
    // From the end, in pieces, just as from the beginning.
    for after in [1, 17, 300, 590, 599, 600, 700] {
        assert_eq!(
            store.read_lines(after).unwrap(),
            lines[lines.len().min(usize::try_from(after).unwrap())..]
        );
    }
    let shorter: Vec<_> = lines[..100].iter().map(|(_, line)| line.as_str()).collect();
    fs::write(store.ledger_path(), shorter.join("\n") + "\n").unwrap();
    assert!(is_corrupt(&store.load()), "there were more");
    fs::write(store.created_marker(), "0").unwrap();
    assert_eq!(store.load().unwrap().state.runs.len(), 100);
    fs::write(store.cache_path(), b"rubbish").unwrap();
    assert_eq!(store.load().unwrap().state.runs.len(), 100);
}

#[test]
fn a_cache_that_cannot_be_used_is_renewed() {
    let (_folder, store) = store();
    // Each command is a process.
    let anew = || open(store.dir());
    let append = |index: u64| append(&anew(), vec![created(&format!("run-{index}"))]);
    (0..2 * CACHE_EVERY).for_each(append);
    let whole = fs::read(store.cache_path()).unwrap();
    let at = |text: &[u8], part: &str| {
        text.windows(part.len())
            .position(|window| window == part.as_bytes())
            .unwrap()
    };
    // Another version's, one that is damaged, and one of a ledger that was longer.
    for (part, other) in [
        (env!("CARGO_PKG_VERSION"), "7.7.7"),
        ("run-1", "ruX-1"),
        ("00000000000", "00000000001"),
    ] {
        let mut bytes = whole.clone();
        let at = at(&bytes, part);
        bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
        fs::write(store.cache_path(), &bytes).unwrap();
        assert!(anew().load().unwrap().beyond_cache.are_many(), "{part}");
        append(anew().load().unwrap().lines);
        assert!(!anew().load().unwrap().beyond_cache.are_many(), "{part}");
    }
}

#[test]
fn run_folders_never_leave_the_state_directory() {
    let (_folder, store) = store();
    for id in ["../../etc", "a/b", "..", ".", "a b", "ok-1"] {
        let folder = store.run_dir(&RunKey::new(id, None, None));
        assert_eq!(
            folder.parent(),
            Some(store.private_dir().join("runs").as_path()),
            "{id}"
        );
        assert_ne!(folder.file_name(), None, "{id}");
    }
    assert_ne!(
        store.run_dir(&RunKey::new("a/b", None, None)),
        store.run_dir(&RunKey::new("a_b", None, None))
    );
}

#[test]
fn a_ledger_that_is_set_back_from_outside_takes_no_budget_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("state");
    let store = open(&dir).with_copy(Some(&made(&folder.path().join("git"))));
    append(&store, vec![created("a")]);
    let early = fs::read(store.ledger_path()).unwrap();
    append(&store, vec![created("b")]);
    // Taken away in the very moment of an append.
    let mut ledger = store.lock().unwrap();
    fs::rename(store.ledger_path(), dir.join("taken")).unwrap();
    ledger.append(now(), vec![created("meanwhile")]).unwrap();
    drop(ledger);
    assert!(
        store
            .lock()
            .unwrap()
            .state()
            .runs
            .iter()
            .any(|run| run.key.run_id == "meanwhile")
    );
    let late = fs::read(store.ledger_path()).unwrap();

    // `git checkout`, `git clean`: the copy knows better, for readers at once, for writers for good.
    for set_back in [Some(&early), None] {
        fs::remove_dir_all(&dir).unwrap();
        if let Some(bytes) = set_back {
            fs::create_dir(&dir).unwrap();
            fs::write(store.ledger_path(), bytes).unwrap();
        }
        assert!(store.exists());
        assert_eq!(store.load().unwrap().state.runs.len(), 3);
        assert_eq!(store.read_lines(0).unwrap().len(), 3);
        drop(store.lock().unwrap());
        assert_eq!(fs::read(store.ledger_path()).unwrap(), late);
    }
    // Emptied, too.
    fs::write(store.ledger_path(), b"").unwrap();
    assert_eq!(store.load().unwrap().state.runs.len(), 3);
    drop(store.lock().unwrap());
    assert_eq!(fs::read(store.ledger_path()).unwrap(), late);
}

#[test]
fn what_another_process_appends_is_seen() {
    let (_folder, store) = store();
    let other = open(store.dir());
    for round in 1..=3 {
        append(&other, vec![created(&format!("other {round}"))]);
        assert_eq!(store.load().unwrap().state.runs.len(), 2 * round - 1);
        append(&store, vec![created(&format!("own {round}"))]);
        assert_eq!(other.load().unwrap().state, store.load().unwrap().state);
    }
}

#[test]
fn a_process_that_appends_for_long_goes_on_from_the_newest_cache() {
    let (_folder, store) = store();
    for index in 0..CACHE_EVERY + 20 {
        append(&store, vec![created(&format!("run-{index}"))]);
    }
    let loaded = store.load().unwrap();
    assert!(!loaded.beyond_cache.are_many(), "{:?}", loaded.beyond_cache);
    let before = inode(&store.cache_path());
    append(&store, vec![created("one more")]);
    let after = inode(&store.cache_path());
    assert_eq!(after, before, "the cache is not renewed each time");
}

/// What becomes of a ledger between two looks at it.
#[derive(Clone, Debug)]
enum Fate {
    /// Whole lines, of one of several kinds.
    Append(u8, u8),
    /// A part of a line, in percent.
    Torn(u8),
    /// The second name of a file that begins with this many of the same lines and goes on with others.
    Replace(u8, u8, u8),
    /// Rewritten in place.
    Rewrite(u8, u8, u8),
    /// Cut to so many percent.
    Truncate(u8),
    /// A line becomes one of another kind, as long as it.
    Exchange(u8, u8),
    /// A byte at this many percent.
    Flip(u8),
    Remove,
    /// By the program.
    Record,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => (0..3_u8, 1..4_u8).prop_map(|(kind, count)| Fate::Append(kind, count)),
        1 => (1..100_u8).prop_map(Fate::Torn),
        2 => (0..8_u8, 0..3_u8, 0..5_u8).prop_map(|(kept, kind, more)| Fate::Replace(kept, kind, more)),
        2 => (0..8_u8, 0..3_u8, 0..5_u8).prop_map(|(kept, kind, more)| Fate::Rewrite(kept, kind, more)),
        1 => (0..=100_u8).prop_map(Fate::Truncate),
        2 => (0..8_u8, 0..3_u8).prop_map(|(at, kind)| Fate::Exchange(at, kind)),
        1 => (0..100_u8).prop_map(Fate::Flip),
        1 => Just(Fate::Remove),
        2 => Just(Fate::Record),
    ]
}

/// A whole line. Those of one number are of the same length, whatever their kind.
fn line_of(seq: usize, kind: u8) -> Vec<u8> {
    let NewEvent {
        run,
        source,
        payload,
    } = created(&format!("{kind}-{seq}"));
    let event = Event {
        seq: seq as u64,
        at: now(),
        schema: EVENT_SCHEMA,
        run,
        source,
        payload,
    };
    ledger_line::encode(&event).unwrap().into_bytes()
}

fn befall(store: &Store, fate: &Fate) {
    let path = store.ledger_path();
    let mut bytes = fs::read(&path).unwrap_or_default();
    let lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let percent = |part: u8| bytes.len() * usize::from(part) / 100;
    let others = |kept: u8, kind: u8, more: u8| {
        let kept = usize::from(kept).min(lines.len());
        let more = (kept + 1..=kept + usize::from(more)).flat_map(|seq| line_of(seq, kind));
        lines[..kept]
            .concat()
            .into_iter()
            .chain(more)
            .collect::<Vec<u8>>()
    };
    match *fate {
        Fate::Append(kind, count) => {
            let first = lines.len() + 1;
            bytes.extend((first..first + usize::from(count)).flat_map(|seq| line_of(seq, kind)));
        }
        Fate::Torn(part) => {
            let line = line_of(lines.len() + 1, 0);
            bytes.extend_from_slice(&line[..line.len() * usize::from(part) / 100]);
        }
        Fate::Replace(kept, kind, more) => {
            let draft = path.with_extension("draft");
            fs::write(&draft, others(kept, kind, more)).unwrap();
            return fs::rename(draft, path).unwrap();
        }
        Fate::Rewrite(kept, kind, more) => bytes = others(kept, kind, more),
        Fate::Truncate(part) => bytes.truncate(percent(part)),
        Fate::Exchange(at, kind) => {
            let at = usize::from(at);
            bytes = lines
                .iter()
                .enumerate()
                .flat_map(|(n, line)| {
                    if n == at {
                        line_of(n + 1, kind)
                    } else {
                        line.clone()
                    }
                })
                .collect();
        }
        Fate::Flip(part) => {
            let at = percent(part);
            bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
        }
        Fate::Remove => return drop(fs::remove_file(path)),
        Fate::Record => {
            let other = open(store.dir());
            if let Ok(mut ledger) = other.lock() {
                ledger.append(now(), vec![created("recorded")]).unwrap();
            }
            return;
        }
    }
    // The same file as before, where there was one.
    fs::write(path, bytes).unwrap();
}

/// All that a load says.
fn seen(store: &Store) -> Result<(State, Option<u32>, [u64; 3]), String> {
    let loaded = store.load().map_err(|error| error.to_string())?;
    Ok((
        State::clone(&loaded.state),
        loaded.newer,
        [loaded.offset, loaded.lines, loaded.torn],
    ))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_read_before_sees_what_a_newcomer_sees(cached in any::<bool>(), fates in prop::collection::vec(fate(), 1..12)) {
        let (_folder, store) = store();
        store.create_dirs().unwrap();
        let mut ledger = store.lock().unwrap();
        ledger.append(now(), vec![created("0-1"), created("0-2"), created("0-3")]).unwrap();
        if cached {
            ledger.loaded.beyond_cache.count = CACHE_EVERY;
            ledger.append(now(), vec![created("cached")]).unwrap();
            drop(ledger);
            assert!(store.cache_path().exists());
        } else {
            drop(ledger);
        }
        for fate in fates {
            befall(&store, &fate);
            let newcomer = open(store.dir());
            prop_assert_eq!(seen(&store), seen(&newcomer), "{:?}", fate);
        }
    }
}

/// Events that fill `bytes` of the ledger, of several runs in turn.
fn bulk(name: &str, count: usize, bytes: usize) -> Vec<NewEvent> {
    let event = |number: usize| {
        let mut event = created(&format!("{name}-{}", number % 7));
        if let Payload::RunCreated { spec, .. } = &mut event.payload {
            // Packs to a third.
            let mut random = fastrand::Rng::with_seed(number as u64);
            spec.prompt = Some((0..bytes / count).map(|_| random.char('a'..='d')).collect());
        }
        event
    };
    (0..count).map(event).collect()
}

#[test]
fn a_long_ledger_compacts_itself_and_keeps_all_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("state");
    let store = || open(&dir).with_copy(Some(&made(&folder.path().join("git"))));
    let small = created("first");
    append(&store(), vec![small]);
    let early = fs::read(store().ledger_path()).unwrap();
    let key = RunKey::new("b-3", None, None);
    let mut said = Vec::new();
    let mut size = 0;
    for round in ["a", "b"] {
        let before = said.len() as u64;
        let reader = store();
        assert_eq!(
            reader
                .load()
                .map(|loaded| loaded.lines)
                .unwrap_or_default()
                .max(1),
            before.max(1)
        );
        append(&store(), bulk(round, 300, 9 << 20));
        let own = store().read_lines(before).unwrap();
        said.extend(own);
        let now_has = fs::metadata(store().ledger_path()).unwrap().len();
        assert!(
            now_has < size + (5 << 20),
            "{round}: {now_has} after {size}"
        );
        size = now_has;

        // Who read before, who comes anew, and who has no cache.
        let state = store().load().unwrap().state;
        assert_eq!(reader.load().unwrap().state, state);
        fs::remove_file(store().cache_path()).unwrap();
        assert_eq!(store().load().unwrap().state, state);
        assert_eq!(store().load().unwrap().lines, said.len() as u64);
    }
    assert!(
        said.iter()
            .zip(1..)
            .all(|((event, _), number)| event.seq == number)
    );
    for after in [0, 1, 17, 299, 300, 301, 580, 601] {
        let after_that = &said[said.len().min(after)..];
        assert_eq!(
            store().read_lines(after as u64).unwrap(),
            after_that,
            "after {after}"
        );
    }
    let of_run = said
        .iter()
        .map(|(event, _)| event)
        .filter(|event| event.run.as_ref() == Some(&key));
    assert_eq!(
        store().events_of(&key).unwrap(),
        of_run.cloned().collect::<Vec<_>>()
    );
    assert_eq!(
        store().salvage().unwrap().events,
        said.iter()
            .map(|(event, _)| event.clone())
            .collect::<Vec<_>>()
    );

    // Set back to before it was ever compacted: the copy knows better still.
    let late = fs::read(store().ledger_path()).unwrap();
    for set_back in [
        early.as_slice(),
        &ledger_line::decompress_all(&late)[..late.len() * 2],
    ] {
        fs::remove_file(store().ledger_path()).unwrap();
        let whole = memchr::memrchr(b'\n', set_back).unwrap();
        fs::write(store().ledger_path(), &set_back[..=whole]).unwrap();
        assert_eq!(store().load().unwrap().lines, said.len() as u64);
        drop(store().lock().unwrap());
        assert_eq!(fs::read(store().ledger_path()).unwrap(), late);
    }
    // Cut off anywhere, at a line's end too, by a disk that was full when git wrote it: no torn append, with a copy or
    // without.
    let alone = open(&dir);
    let packed_end = memchr::memmem::find(&late, b"\n{\"seq\":601,").unwrap_or(late.len() / 2);
    let line_end = memchr::memchr(b'\n', &late).unwrap();
    for cut in [
        3,
        200,
        line_end,
        line_end + 1,
        line_end + 12,
        line_end + 5000,
        packed_end - 5,
    ] {
        fs::remove_file(store().ledger_path()).unwrap();
        fs::write(store().ledger_path(), &late[..cut]).unwrap();
        fs::remove_file(store().cache_path()).ok();
        assert!(is_corrupt(&alone.load()), "cut at {cut}");
        assert!(is_corrupt(&alone.lock()), "cut at {cut}");
        assert_eq!(fs::read(store().ledger_path()).unwrap().len(), cut);
        assert_eq!(
            store().load().unwrap().lines,
            said.len() as u64,
            "cut at {cut}"
        );
        drop(store().lock().unwrap());
        assert_eq!(
            fs::read(store().ledger_path()).unwrap(),
            late,
            "cut at {cut}"
        );
    }
    // One that a kill left without its copy: both say the same.
    fs::remove_file(store().ledger_path()).unwrap();
    fs::write(store().ledger_path(), ledger_line::decompress_all(&late)).unwrap();
    drop(store().lock().unwrap());
    assert_eq!(store().read_lines(0).unwrap(), said);

    // A damaged one is an error; what is before the damage is not lost with it.
    let mut damaged = late;
    let at = damaged.len() / 2;
    damaged[at] = b'!';
    fs::write(store().ledger_path(), &damaged).unwrap();
    fs::remove_file(store().cache_path()).ok();
    assert_eq!(
        store().load().unwrap().lines,
        said.len() as u64,
        "the copy is whole"
    );
    fs::write(store().copy().unwrap().path(), &damaged).unwrap();
    assert!(is_corrupt(&store().load()));
    let rest = salvage(&damaged);
    assert!(
        rest.unreadable >= 1 && rest.events.len() > said.len() * 9 / 10,
        "{}",
        rest.events.len()
    );
}
