use super::*;
use crate::model::run::RunSpec;
use crate::model::time::Timestamp;

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join(".ultraplan/state"), Duration::from_secs(5));
    (folder, store)
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_790_000_000_000)
}

fn created(id: &str) -> NewEvent {
    let spec = Box::new(RunSpec { iterations_total: Some(3), ..RunSpec::default() });
    let payload = Payload::RunCreated { task_id: None, session: id.to_owned(), worktree: "/w".to_owned(), spec };
    NewEvent::about(&RunKey::new(id, None, None), payload)
}

#[test]
fn what_is_appended_is_loaded_again() {
    let (_folder, store) = store();
    assert!(!store.exists());
    assert_eq!(store.load().unwrap().state, State::default());
    let mut ledger = store.lock().unwrap();
    ledger.append(now(), vec![created("a"), created("b")]).unwrap();
    ledger.append(now(), vec![created("c")]).unwrap();
    let state = ledger.state().clone();
    drop(ledger);
    assert_eq!(store.load().unwrap().state, state);
    assert_eq!(state.last_seq, 3);
    assert_eq!(store.read_lines(1).unwrap().len(), 2);
    assert_eq!(fs::read_to_string(store.dir().join(".gitignore")).unwrap(), "*\n");
}

#[test]
fn a_torn_last_line_is_dropped_and_the_rest_holds_wherever_it_was_cut() {
    let (_folder, store) = store();
    store.lock().unwrap().append(now(), vec![created("a")]).unwrap();
    let first = fs::read(store.ledger_path()).unwrap();
    store.lock().unwrap().append(now(), vec![created("b")]).unwrap();
    let both = fs::read(store.ledger_path()).unwrap();
    for cut in first.len()..both.len() {
        fs::write(store.ledger_path(), &both[..cut]).unwrap();
        assert_eq!(store.load().unwrap().state.runs.len(), 1, "cut at {cut}");
        let mut ledger = store.lock().unwrap();
        ledger.append(now(), vec![created("c")]).unwrap();
        drop(ledger);
        let state = store.load().unwrap().state;
        assert_eq!(state.runs.iter().map(|run| run.key.run_id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    }
}

#[test]
fn damage_is_never_a_reset() {
    let (_folder, store) = store();
    store.lock().unwrap().append(now(), vec![created("a"), created("b"), created("c")]).unwrap();
    let good = fs::read(store.ledger_path()).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let lines: Vec<_> = good.split_inclusive(|byte| *byte == b'\n').collect();
    let gap = [lines[0], lines[2]].concat();
    let deep = [good.clone(), b"[".repeat(100_000), b"\n".to_vec()].concat();
    for (name, bytes) in [("flipped", flipped), ("empty", Vec::new()), ("a line lost", gap), ("deep", deep)] {
        fs::write(store.ledger_path(), bytes).unwrap();
        assert!(matches!(store.load(), Err(StoreError::Corrupt { .. })), "{name}");
        assert!(matches!(store.lock(), Err(StoreError::Corrupt { .. })), "{name}");
    }
    fs::remove_file(store.ledger_path()).unwrap();
    assert!(matches!(store.load(), Err(StoreError::Corrupt { .. })), "missing");
}

#[test]
fn a_newer_ledger_is_read_but_never_written() {
    let (_folder, store) = store();
    store.lock().unwrap().append(now(), vec![created("a")]).unwrap();
    let json = format!(r#"{{"seq":2,"at":"{}","schema":9,"source":"recover","type":"novelty","payload":{{}}}}"#, now());
    let line = format!("{},\"checksum\":\"{:08x}\"}}\n", &json[..json.len() - 1], crc32fast::hash(json.as_bytes()));
    let mut bytes = fs::read(store.ledger_path()).unwrap();
    bytes.extend_from_slice(line.as_bytes());
    fs::write(store.ledger_path(), &bytes).unwrap();
    let loaded = store.load().unwrap();
    assert_eq!((loaded.newer, loaded.state.runs.len()), (Some(9), 1));
    assert!(matches!(store.lock(), Err(StoreError::Newer { schema: 9, .. })));
    assert_eq!(fs::read(store.ledger_path()).unwrap(), bytes);
}

#[test]
fn the_cached_fold_is_the_fold_and_a_replaced_ledger_is_noticed() {
    let (_folder, store) = store();
    let mut ledger = store.lock().unwrap();
    for index in 0..600 {
        ledger.append(now(), vec![created(&format!("run-{index}"))]).unwrap();
    }
    let state = ledger.state().clone();
    drop(ledger);
    assert!(store.cache_path().exists());
    let loaded = store.load().unwrap();
    assert!(loaded.beyond_cache < CACHE_EVERY);
    assert_eq!(loaded.state, state);
    let lines = store.read_lines(0).unwrap();
    let shorter: Vec<_> = lines[..100].iter().map(|(_, line)| line.as_str()).collect();
    fs::write(store.ledger_path(), shorter.join("\n") + "\n").unwrap();
    assert_eq!(store.load().unwrap().state.runs.len(), 100);
    fs::write(store.cache_path(), b"rubbish").unwrap();
    assert_eq!(store.load().unwrap().state.runs.len(), 100);
}

#[test]
fn run_folders_never_leave_the_state_directory() {
    let (_folder, store) = store();
    for id in ["../../etc", "a/b", "..", ".", "a b", "ok-1"] {
        let folder = store.run_dir(&RunKey::new(id, None, None));
        assert_eq!(folder.parent(), Some(store.private_dir().join("runs").as_path()), "{id}");
        assert_ne!(folder.file_name(), None, "{id}");
    }
    assert_ne!(store.run_dir(&RunKey::new("a/b", None, None)), store.run_dir(&RunKey::new("a_b", None, None)));
}

#[test]
fn a_ledger_that_is_set_back_from_outside_takes_no_budget_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("state");
    let store = Store::new(dir.clone(), Duration::from_secs(5)).with_twin(&folder.path().join("git"));
    store.lock().unwrap().append(now(), vec![created("a")]).unwrap();
    let early = fs::read(store.ledger_path()).unwrap();
    store.lock().unwrap().append(now(), vec![created("b"), created("c")]).unwrap();
    let late = fs::read(store.ledger_path()).unwrap();

    // `git checkout`, `git clean`: the twin knows better, for readers at once, for writers for good.
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
    // What is damaged is damaged.
    fs::remove_file(store.ledger_path()).unwrap();
    fs::write(store.ledger_path(), b"").unwrap();
    assert!(matches!(store.load(), Err(StoreError::Corrupt { .. })));
}
