//! `log --follow` and `status --watch`: what other processes record is told as it comes.

use std::time::Duration;

use crate::env::TestEnv;
use crate::morning::fix_watch::Told;
use crate::morning::manual_fix::failed_run;

fn told(env: &TestEnv, args: &[&str]) -> Told {
    Told::by(env.recover_command(args))
}

// B17: what happens is told while it happens, whoever does it.
#[test]
fn the_log_is_followed_across_processes() {
    let env = failed_run();
    let mut log = told(&env, &["log", "--follow", "--limit", "1"]);
    let first = log.until("the latest event", |_| true);
    assert_eq!(
        first,
        env.recover(&["log", "--limit", "1"]).stdout.trim_end()
    );
    env.json(0, &["manual-fix", "start"]);
    log.until("the session", |line| line.contains("manual_fix_started"));
    env.json(0, &["manual-fix", "abort"]);
    log.until("its end", |line| line.contains("manual_fix_ended"));
    let mut other = told(&env, &["log", "--follow", "--run", "r 1"]);
    other.until("its end", |line| line.contains("manual_fix_ended"));
    env.json(0, &["run", "--run", "another", "--", "true"]);
    log.until("another run", |line| line.contains("another"));
    env.json(0, &["manual-fix", "start", "--run", "r 1"]);
    other.until("the session", |line| line.contains("manual_fix_started"));
    assert!(
        !other.seen.iter().any(|line| line.contains("another")),
        "{:?}",
        other.seen
    );
    let all = env.recover(&["log", "--run", "r 1"]).stdout;
    assert_eq!(
        other.seen,
        all.lines().collect::<Vec<_>>(),
        "each event once, in order"
    );
    log.stop("-INT").expect(130);
    other.stop("-TERM").expect(143);
}

// cli.md: with --json each event is a line of its own, as it is in the document of the log.
#[test]
fn the_log_is_followed_as_json_lines() {
    let env = failed_run();
    let mut log = told(&env, &["log", "--follow", "--json"]);
    log.until("the run's beginning", |line| line.contains("run_created"));
    env.json(0, &["manual-fix", "start"]);
    log.until("the session", |line| line.contains("manual_fix_started"));
    let lines: Vec<serde_json::Value> = log
        .seen
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        env.json(0, &["log"])["events"],
        serde_json::Value::Array(lines)
    );
    log.stop("-INT").expect(130);
}

// One document cannot be what has no end.
#[test]
fn what_has_no_end_is_no_document() {
    let env = failed_run();
    assert_eq!(
        env.json(2, &["status", "--watch"])["error"]["code"],
        "usage"
    );
    env.json(4, &["log", "--run", "nobody"]);
    env.recover(&["log", "--follow", "--run", "nobody"])
        .expect(4);
    env.recover(&["status", "--watch", "--run", "nobody"])
        .expect(4);
}

// B1: the status is told again when it has changed, and only then.
/// The lines but for how long ago the run began: that goes on while they are asked for.
fn without_age<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines
        .map(|line| {
            line.split_once(", started ")
                .map_or(line, |(before, _)| before)
        })
        .collect()
}

#[test]
fn the_status_is_told_again_when_it_changes() {
    let env = failed_run();
    let mut status = told(&env, &["status", "-v", "--watch"]);
    status.until("the status", |line| line.contains("feedback_failure"));
    status.read_on(Duration::from_millis(300));
    let once = status.seen.clone();
    let now = env.recover(&["status", "-v"]).stdout;
    assert_eq!(
        without_age(once.iter().map(String::as_str)),
        without_age(now.lines())
    );
    status.read_on(Duration::from_millis(1500));
    assert_eq!(status.seen, once, "nothing was recorded");
    env.json(0, &["manual-fix", "start"]);
    status.until("being fixed", |line| {
        line.contains("being fixed by a person")
    });
    assert!(
        !status.seen.iter().any(|line| line.contains('\u{1b}')),
        "{:?}",
        status.seen
    );
    status.stop("-INT").expect(130);
}
