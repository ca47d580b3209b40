//! Chains are made and read back; whatever is changed in one is noticed.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::checkpoint::Checkpoint;
use crate::model::event::{Event, EventSource, Payload};
use crate::model::manifest::ObjectId;
use crate::model::remote::{Claim, Link, Meta, REMOTE_SCHEMA, RemoteState};
use crate::model::run::{ProcessId, RunKey, RunSpec, RunStatus};
use crate::model::time::Timestamp;

fn key() -> RunKey {
    RunKey::new("night", None, None)
}

fn places() -> Places {
    Places::new(
        "/home/ann/work",
        "/home/ann/work/.ultraplan/state",
        "/home/ann",
    )
}

fn event(seq: u64, payload: Payload) -> Event {
    let at = Timestamp::from_millis(1_790_000_000_000);
    Event {
        seq,
        at,
        schema: payload.schema(),
        run: Some(key()),
        source: EventSource::Recover,
        payload,
    }
}

fn created() -> Payload {
    let spec = RunSpec {
        command: vec!["/home/ann/work/agent.sh".into(), "--token=abcd-1234".into()],
        ..RunSpec::default()
    };
    Payload::RunCreated {
        task_id: None,
        session: "night".into(),
        worktree: "/home/ann/work".into(),
        spec: Box::new(spec),
    }
}

fn status(reason: &str) -> Payload {
    Payload::RunStatusChanged {
        status: RunStatus::Paused,
        reason: reason.to_owned(),
    }
}

fn claim(nonce: &str, fencing: u64) -> Claim {
    Claim {
        holder: "c1".into(),
        host: "a".into(),
        nonce: nonce.into(),
        fencing,
        released: false,
    }
}

fn id(number: u8) -> ObjectId {
    ObjectId(format!("{number:040x}"))
}

/// A state as it would be fetched.
fn raw(
    commit: u8,
    before: Option<&Standing>,
    claim: &Claim,
    payloads: Vec<Payload>,
    more: &[ObjectId],
) -> RawState {
    let link = before
        .map(|before| before.meta.chain.clone())
        .unwrap_or_default();
    let mut segment = Segment::after(&link);
    for (seq, payload) in (100..).zip(payloads) {
        assert!(segment.push(&event(seq, payload), &places()));
    }
    let meta = Meta {
        schema: REMOTE_SCHEMA,
        run: key(),
        state: before.map_or(0, |before| before.meta.state) + 1,
        chain: segment.end.clone(),
        lease_ms: 60_000,
        policy: json!({"max_attempts": 3}),
        base_commit: None,
        creator: "recover".into(),
        stolen_from: None,
        partial: false,
    };
    let files = [
        ("claim.json", serde_json::to_vec(claim).unwrap()),
        ("events.jsonl", segment.text.into_bytes()),
        ("meta.json", serde_json::to_vec(&meta).unwrap()),
    ];
    let file = |(name, content): (&str, Vec<u8>)| RawFile {
        name: name.into(),
        mode: 0o100_644,
        size: content.len(),
        content: Some(content),
    };
    let parents = before
        .map(|before| before.commit.clone())
        .into_iter()
        .chain(more.iter().cloned())
        .collect();
    RawState {
        commit: id(commit),
        parents,
        files: files.into_iter().map(file).collect(),
    }
}

fn edited(raw: &RawState, name: &str, from: &str, to: &str) -> RawState {
    let mut raw = raw.clone();
    let file = raw
        .files
        .iter_mut()
        .find(|file| file.name == name.as_bytes())
        .unwrap();
    let text = String::from_utf8(file.content.clone().unwrap()).unwrap();
    assert!(text.contains(from), "{text}");
    file.content = Some(text.replacen(from, to, 1).into_bytes());
    raw
}

fn damaged(found: Result<RemoteState, Flaw>) -> String {
    match found {
        Err(Flaw::Damaged(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chain_is_read_back_without_secrets_and_places() {
    let first = raw(
        1,
        None,
        &claim("n", 1),
        vec![
            created(),
            status("see /home/ann/work/log and /home/ann/.cache"),
        ],
        &[],
    );
    let text = String::from_utf8(first.files[1].content.clone().unwrap()).unwrap();
    assert!(
        !text.contains("/home/ann") && !text.contains("abcd-1234"),
        "{text}"
    );
    let read = follow(&first, &key(), None).unwrap();
    assert_eq!(
        (
            read.events.len(),
            read.meta.chain.run_seq,
            read.previous.clone()
        ),
        (2, 2, None)
    );
    let Payload::RunCreated { worktree, spec, .. } = &read.events[0].event.payload else {
        panic!()
    };
    assert_eq!(
        (worktree.text(), spec.command[0].as_str()),
        ("{worktree}", "{worktree}/agent.sh")
    );

    let before = Standing::from(&read);
    let second = raw(2, Some(&before), &claim("n", 1), vec![status("later")], &[]);
    let read = follow(&second, &key(), Some(&before)).unwrap();
    assert_eq!((read.meta.chain.run_seq, read.previous), (3, Some(id(1))));
}

#[test]
fn what_was_changed_is_noticed() {
    let good = raw(
        1,
        None,
        &claim("n", 1),
        vec![created(), status("first"), status("second")],
        &[],
    );
    assert!(follow(&good, &key(), None).is_ok());
    let read = |raw: RawState| damaged(follow(&raw, &key(), None));
    assert!(read(edited(&good, "events.jsonl", "first", "frist")).contains("chain is broken"));
    assert!(
        read(edited(&good, "events.jsonl", "second", "secnod")).contains("not those that it names")
    );
    assert!(
        read(edited(
            &good,
            "events.jsonl",
            "\"run_seq\":2",
            "\"run_seq\":3"
        ))
        .contains("another number")
    );
    assert!(
        read(edited(
            &good,
            "events.jsonl",
            "\"run_id\":\"night\"",
            "\"run_id\":\"other\""
        ))
        .contains("another run")
    );
    assert!(
        read(edited(
            &good,
            "meta.json",
            "\"run_id\":\"night\"",
            "\"run_id\":\"day\""
        ))
        .contains("about run day")
    );
    assert!(
        read(edited(&good, "meta.json", "\"state\":1", "\"state\":0")).contains("counted from 1")
    );
    assert!(
        read(edited(&good, "meta.json", "\"state\":1", "\"state\":2")).contains("none before it")
    );
    assert!(read(edited(&good, "claim.json", "\"a\"", "\"a\\u001b[2J\"")).contains("names nobody"));
    assert!(
        read(edited(
            &good,
            "claim.json",
            "\"fencing\":1",
            "\"fencing\":0"
        ))
        .contains("names nobody")
    );
    let mut longer = good.clone();
    longer.files.push(RawFile {
        name: b".git".to_vec(),
        mode: 0o40_000,
        size: 0,
        content: None,
    });
    assert!(read(longer).contains("no state has"));
    let mut link = good.clone();
    link.files[0].mode = 0o120_000;
    assert!(read(link).contains("no ordinary file"));
    let mut large = good.clone();
    large.files[0].content = Some(vec![b' '; 5 << 10]);
    assert!(read(large).contains("too large"));
    let mut missing = good;
    missing.files.remove(1);
    assert!(read(missing).contains("missing"));
}

#[test]
fn a_newer_version_is_no_damage() {
    let good = raw(1, None, &claim("n", 1), vec![created()], &[]);
    for (name, from, to) in [
        ("meta.json", "\"schema\":1".to_owned(), "\"schema\":2"),
        ("events.jsonl", "\"schema\":1".to_owned(), "\"schema\":99"),
    ] {
        let newer = edited(&good, name, &from, to);
        assert!(
            matches!(follow(&newer, &key(), None), Err(Flaw::Newer(_))),
            "{name}"
        );
    }
    // Whatever else it holds.
    let mut strange = edited(&good, "meta.json", "\"schema\":1", "\"schema\":2");
    strange.files.push(RawFile {
        name: b"index".to_vec(),
        mode: 0o100_644,
        size: 1,
        content: Some(vec![0]),
    });
    assert!(matches!(decode(&strange, &key()), Err(Flaw::Newer(_))));
}

#[test]
fn a_claim_follows_another_one_by_its_fencing() {
    let first = follow(
        &raw(1, None, &claim("n", 1), vec![created()], &[]),
        &key(),
        None,
    )
    .unwrap();
    let before = Standing::from(&first);
    let next = |claim: &Claim| {
        follow(
            &raw(2, Some(&before), claim, vec![], &[]),
            &key(),
            Some(&before),
        )
    };
    assert!(next(&claim("n", 1)).is_ok() && next(&claim("n", 1).released()).is_ok());
    assert!(next(&claim("m", 2)).is_ok());
    assert!(damaged(next(&claim("m", 1))).contains("fencing"));
    assert!(damaged(next(&claim("m", 3))).contains("fencing"));
    assert!(damaged(next(&claim("n", 2))).contains("under way"));
    let released = Standing::from(&next(&claim("n", 1).released()).unwrap());
    let again = raw(3, Some(&released), &claim("n", 1), vec![], &[]);
    assert!(damaged(follow(&again, &key(), Some(&released))).contains("after it was released"));
    let other = raw(3, Some(&released), &claim("n", 1).released(), vec![], &[]);
    assert!(damaged(follow(&other, &key(), Some(&before))).contains("does not follow"));
}

#[test]
fn only_checkpoints_that_are_named_come_along() {
    let mut checkpoint: Checkpoint = serde_json::from_value(json!({
        "id": "ckpt_1", "seq": 1, "run_id": "night", "task_id": null, "type": "task", "trigger": "initial", "stage": null,
        "status": null, "worktree": "{worktree}", "state_dir": "{state}", "after_iteration": 0, "attempt": null,
        "verdict": "unverified", "storage_type": "snapshot", "commit": id(9).0, "tree": id(8).0, "base_commit": id(7).0,
        "head_ref": null, "patch_path": null, "previous": null, "created_at": "2026-11-24T00:00:00.000Z",
        "description": "first", "pinned": false, "captured": {"files": 1, "bytes": 1},
        "changes": {"modified": 0, "created": 0, "deleted": 0}, "skipped": [], "feedback_results": {}, "duration_ms": 1
    }))
    .unwrap();
    let named = |checkpoint: &Checkpoint| Payload::CheckpointCreated {
        checkpoint: Box::new(checkpoint.clone()),
        adopted: false,
        own_commits: Vec::new(),
    };
    let with = raw(
        1,
        None,
        &claim("n", 1),
        vec![created(), named(&checkpoint)],
        &[id(9)],
    );
    let read = follow(&with, &key(), None).unwrap();
    assert_eq!(read.checkpoints, [id(9)]);
    assert_eq!(base(read.events.iter().map(|one| &one.event)), Some(id(7)));
    // One that was removed before it was sent is not there.
    let without = raw(
        1,
        None,
        &claim("n", 1),
        vec![created(), named(&checkpoint)],
        &[],
    );
    assert!(follow(&without, &key(), None).is_ok());
    let other = raw(
        1,
        None,
        &claim("n", 1),
        vec![created(), named(&checkpoint)],
        &[id(9), id(6)],
    );
    assert!(damaged(follow(&other, &key(), None)).contains("no event names"));
    checkpoint.run = RunKey::new("day", None, None);
    let foreign = raw(
        1,
        None,
        &claim("n", 1),
        vec![created(), named(&checkpoint)],
        &[id(9)],
    );
    assert!(damaged(follow(&foreign, &key(), None)).contains("another run's"));
}

#[test]
fn a_process_is_never_taken_for_one_of_another_machine() {
    let child = ProcessId {
        pid: 7,
        start_time: 8,
        session: 7,
        boot_id: Some("b".into()),
        pid_namespace: None,
        heartbeat: None,
    };
    let hidden = places().hide(serde_json::to_value(Payload::ChildStarted { child }).unwrap());
    assert_eq!(hidden["payload"]["child"]["boot_id"], "elsewhere:b");
    assert_eq!(places().show(hidden.clone()), hidden);
    // Neither is one that is said to be of no boot.
    let bare = places().show(json!({"pid": 7, "start_time": 8}));
    assert!(is_elsewhere(bare["boot_id"].as_str().unwrap()));
}

#[test]
fn a_place_is_known_behind_an_option_and_in_a_url() {
    for (text, hidden) in [
        ("-I/home/ann/work/include", "-I{worktree}/include"),
        (
            "-isystem/home/ann/lib --x=/home/ann/work",
            "-isystem{home}/lib --x={worktree}",
        ),
        ("-Wl,-rpath,/home/ann/work/lib", "-Wl,-rpath,{worktree}/lib"),
        ("file:///home/ann/work/x", "file://{worktree}/x"),
        ("A=/home/ann:/home/ann/work", "A={home}:{worktree}"),
    ] {
        assert_eq!(places().hidden(text), hidden);
        assert_eq!(places().shown(hidden), text);
    }
    for text in [
        "/mnt/home/ann/work",
        "x/home/ann",
        "./home/ann",
        "-I../home/ann",
        "https://h/home/ann",
        "/home/ann2",
    ] {
        assert_eq!(places().hidden(text), text, "it is another place");
    }
}

#[test]
fn a_name_that_is_taken_is_longer_here_and_the_same_there() {
    let (one, other) = ("ckpt_20261021_072800_0001", "ckpt_20261021_072800_0002");
    let here = places().with(Names::of(&key()).taken([&one.into()]));
    let shown = here.show(json!({"id": one, "previous": other, "said": format!("after {one}")}));
    let name = shown["id"].as_str().unwrap();
    assert!(name.starts_with(one) && name.len() > one.len(), "{name}");
    assert_eq!(
        (&shown["previous"], &shown["said"]),
        (&other.into(), &format!("after {one}").into())
    );
    let another = places().with(Names::of(&key()));
    assert_eq!(
        another.hide(shown.clone()),
        json!({"id": one, "previous": other, "said": format!("after {one}")})
    );
    let of_another_run = places().with(Names::of(&RunKey::new("other", None, None)));
    assert_eq!(of_another_run.hide(shown.clone()), shown);
}

#[test]
fn a_claim_is_expired_only_after_a_whole_lease_of_silence() {
    let lease = Duration::from_secs(30);
    let held = claim("n", 1);
    let seen = |seconds| hold(&held, None, Duration::from_secs(seconds), lease);
    assert_eq!(
        (seen(0), seen(29), seen(30)),
        (Hold::Held, Hold::Held, Hold::Free)
    );
    assert_eq!(hold(&held, Some("n"), Duration::ZERO, lease), Hold::Ours);
    assert_eq!(
        hold(&held.released(), Some("n"), Duration::ZERO, lease),
        Hold::Free
    );
    // The holder has stopped before anybody may begin, by clocks that differ by a hundredth.
    assert!(stop_after(lease).mul_f64(1.01) < lease.mul_f64(0.99));
    for spread in [-1.0, 0.0, 0.5, 1.0, 9.0] {
        let renewal = renewal_after(lease, spread);
        assert!(renewal <= lease / 3 && renewal >= lease / 4, "{renewal:?}");
    }
    let next = Claim::after(Some(&held), "c2".into(), "b".into(), "m".into());
    assert_eq!((next.fencing, next.released), (2, false));
}

#[test]
fn a_repeated_event_has_the_same_id_and_others_have_not() {
    let one = |seq, payload| {
        let mut segment = Segment::after(&Link::default());
        segment.push(&event(seq, payload), &places());
        let line: serde_json::Value = serde_json::from_str(segment.text.trim_end()).unwrap();
        line["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(one(3, status("a")), one(3, status("a")));
    assert_ne!(one(3, status("a")), one(4, status("a")));
    assert_ne!(one(3, status("a")), one(3, status("b")));
}

proptest! {
    #[test]
    fn places_are_read_back(parts in prop::collection::vec(prop_oneof![
        Just("/home/ann/work".to_owned()), Just("/home/ann".to_owned()), Just("{worktree}".to_owned()),
        Just("{state}".to_owned()), Just("{".to_owned()), Just("=".to_owned()), Just("/home/ann/work/.ultraplan/state".to_owned()),
        Just("/".to_owned()), Just("er".to_owned()), any::<String>(),
    ], 0..8)) {
        let text = parts.concat();
        prop_assert_eq!(places().shown(&places().hidden(&text)), text);
    }

    #[test]
    fn any_flipped_bit_of_the_events_is_noticed(at in 0_usize..4000) {
        let good = raw(1, None, &claim("n", 1), vec![created(), status("first")], &[]);
        let mut bad = good;
        let content = bad.files[1].content.as_mut().unwrap();
        // The last line end says nothing.
        let bits = (content.len() - 1) * 8;
        let at = at % bits;
        content[at / 8] ^= 1 << (at % 8);
        prop_assert!(follow(&bad, &key(), None).is_err());
    }
}
