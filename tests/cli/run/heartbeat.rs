//! `[notify] heartbeat`: a command that is started again and again while a run is at work or waits.

use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::run::supervision::until;

/// A repository whose user has this heartbeat, once a second.
fn env(command: &str) -> TestEnv {
    let env = TestEnv::repo();
    let text = format!("[notify]\nheartbeat = {{ command = '{command}', every = '1s' }}\n");
    let own = env.root().join("home/.config/recover/config.toml");
    std::fs::create_dir_all(own.parent().expect("a folder")).expect("works");
    std::fs::write(own, text).expect("works");
    env
}

fn beats(env: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(env.root().join("beats")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// While a run is at work, and while it waits; once it has ended there is no more of it.
#[test]
fn a_heart_beats_until_the_run_ends() {
    let env = env("echo $RECOVER_EVENT $RECOVER_RUN_ID $PWD >> ../beats");
    let config = "[cooldown]\nduration = '2s'\n[retry]\nbase_delay = '2s'\n";
    env.write(".ultraplan/recover.toml", config);
    let agent = "sleep 1.2; [ -e ../again ] || { touch ../again; echo failed >&2; exit 1; }";
    let begun = Instant::now();
    env.recover(&["run", "--run", "night", "--", "sh", "-c", agent])
        .expect(0);
    let took = begun.elapsed().as_secs();
    assert!(took >= 4, "it did not wait");
    let all = beats(&env);
    let line = format!("heartbeat night {}", env.work().display());
    assert!(
        all.len() as u64 >= took - 1 && all.iter().all(|one| *one == line),
        "{all:?} in {took} s"
    );
    std::thread::sleep(Duration::from_millis(2500));
    assert!(beats(&env).len() <= all.len() + 1, "it beats on");
}

/// One that fails is said once, and the run goes on; one that hangs holds nothing up, and ends by itself.
#[test]
fn a_heart_that_fails_ends_no_run() {
    let env_fails = env("echo beat >> ../beats; echo no network >&2; exit 7");
    let run = [
        "run",
        "--run",
        "night",
        "--",
        "sh",
        "-c",
        "sleep 3.5; echo done > work.txt",
    ];
    let ran = env_fails.recover(&run).expect(0);
    assert_eq!(
        ran.stderr
            .matches("the heartbeat of run night failed")
            .count(),
        1,
        "{ran:?}"
    );
    assert!(beats(&env_fails).len() >= 3);
    let log = env_fails
        .sh("cat $(find .ultraplan/state -name notify.log)")
        .stdout;
    assert!(log.contains("exit 7 (no network)"), "{log}");

    let env_hangs = env("echo $$ >> ../beats; exec sleep 60");
    let begun = Instant::now();
    env_hangs
        .recover(&["run", "--run", "night", "--", "true"])
        .expect(0);
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    until("it has begun", || !beats(&env_hangs).is_empty());
    let alive = format!("kill -0 {}", beats(&env_hangs)[0]);
    until("it has ended", || env_hangs.sh(&alive).code != 0);
    assert_eq!(beats(&env_hangs).len(), 1);
}

/// A project's own starts nothing before the user trusts it.
#[test]
fn a_project_has_no_heart_unless_it_is_trusted() {
    let env = TestEnv::repo();
    let config = "[notify.heartbeat]\ncommand = 'touch ../beats'\nevery = '1s'\n";
    env.put(".ultraplan/recover.toml", config);
    let run = ["run", "--run", "night", "--", "sleep", "1"];
    let refused = env.error(13, &run);
    assert_eq!(refused["code"], "not_trusted", "{refused:#}");
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("touch ../beats"))
    );
    assert!(!env.exists("../beats"));
    env.recover(&["trust"]).expect(0);
    env.recover(&run).expect(0);
    assert!(env.exists("../beats"));
    env.write(
        ".ultraplan/recover.toml",
        "[notify.heartbeat]\nevery = '0s'\n",
    );
    let wrong = env.error(2, &run);
    assert!(
        wrong["message"]
            .as_str()
            .is_some_and(|text| text.contains("every")),
        "{wrong:#}"
    );
}
