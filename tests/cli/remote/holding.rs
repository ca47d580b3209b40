//! Who holds a run, while processes of one clone, other machines and people want something of it.

use super::*;

/// What lies on the server of the run.
fn tip(env: &TestEnv) -> String {
    let listed = env.git(&["ls-remote", "origin", "refs/recover-runs/night"]);
    listed
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Who holds the run, as this machine sees it.
#[track_caller]
fn host_of(env: &TestEnv) -> Option<String> {
    let status = env.json(0, &with(&["remote", "status"], &[]));
    let run = of_run(&status, "night");
    run["holder"]
        .is_string()
        .then(|| run["host"].as_str().expect("a name").to_owned())
}

#[test]
fn a_run_that_is_at_work_here_keeps_its_claim() {
    let (server, one) = server();
    one.script(
        "agent.sh",
        "touch begun\nwhile ! [ -e go ]; do sleep 0.1; done",
    );
    let run = AtWork::start(&one, &with(&["run"], &["--", "./agent.sh"]));
    until("the agent begins", || one.exists("begun"));
    for other in [
        &["resume"][..],
        &["remote", "release"],
        &["remote", "release", "--force", "--yes"],
    ] {
        let refused = one.error(11, &with(other, &[]));
        assert!(
            refused["message"]
                .as_str()
                .expect("a text")
                .contains("is under way"),
            "{other:?}: {refused:#}"
        );
        assert_eq!(host_of(&one).as_deref(), Some("alpha"), "{other:?}");
    }
    let two = machine(&server, "beta");
    two.error(11, &with(&["resume"], &["--trust"]));
    one.put("go", "");
    run.end().expect(0);
    assert_eq!(host_of(&one), None);
}

// A step of the agent's notices the loss first: the supervisor notices it all the same.
#[test]
fn a_loss_that_another_process_noticed_stops_the_agent_too() {
    let (server, one) = server();
    configure(&one, &server, "");
    one.script(
        "agent.sh",
        "echo $$ > agent.pid\ntouch begun\nexec sleep 100",
    );
    let run = AtWork::start(&one, &with(&["run"], &["--", "./agent.sh"]));
    until("the agent begins", || one.exists("begun"));
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &["--steal", "--yes"]));
    let begun = Instant::now();
    for _ in 0..2 {
        assert_eq!(
            one.error(
                11,
                &["step", "one", "--run", "night", "--", "touch", "stepped"]
            )["code"],
            "claimed"
        );
    }
    let ran = run.end().expect(11);
    assert!(
        begun.elapsed() < Duration::from_secs(18),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        ran.stderr.contains("taken over by beta")
            && ran.stderr.contains("refs/recover-runs-side/night/1"),
        "{}",
        ran.stderr
    );
    assert!(!one.exists("stepped"));
    assert_ne!(one.sh("pgrep -F agent.pid").code, 0);
}

#[test]
fn a_clone_that_lost_the_run_runs_no_step_of_it() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    one.json(0, &with(&["remote", "claim"], &[]));
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &["--steal", "--yes"]));
    let step = [
        "step",
        "deploy",
        "--run",
        "night",
        "--",
        "sh",
        "-c",
        "echo $RECOVER_FENCING >> steps.txt",
    ];
    for _ in 0..2 {
        assert_eq!(one.error(11, &step)["code"], "claimed");
    }
    assert!(!one.exists("steps.txt"));
    // Who holds it tells its steps by which claim.
    two.recover(&step).expect(0);
    assert_eq!(two.read("steps.txt"), "3\n");
}

#[test]
fn a_dry_run_claims_and_releases_nothing() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let two = machine(&server, "beta");
    // Not even consent is needed for it.
    fs::remove_file(two.root().join("home/.config/recover/config.toml"))
        .expect("the test's own file");
    let before = tip(&one);
    two.json(0, &with(&["--dry-run", "remote", "claim"], &[]));
    one.json(0, &with(&["--dry-run", "remote", "claim"], &[]));
    assert_eq!(tip(&one), before);
    one.json(0, &with(&["remote", "claim"], &[]));
    let held = tip(&one);
    two.error(11, &with(&["--dry-run", "remote", "claim"], &[]));
    two.json(0, &with(&["--dry-run", "remote", "claim"], &["--steal"]));
    two.error(11, &with(&["--dry-run", "remote", "release"], &[]));
    two.json(0, &with(&["--dry-run", "remote", "release"], &["--force"]));
    one.json(0, &with(&["--dry-run", "remote", "release"], &[]));
    assert_eq!(tip(&one), held);
    assert!(!two.exists(".ultraplan/state/events.jsonl"));
    two.error(
        4,
        &[
            "--dry-run",
            "remote",
            "claim",
            "--remote",
            "origin",
            "--run",
            "other",
        ],
    );
}

#[test]
fn a_dry_run_in_a_fresh_clone_plans_the_take_over() {
    let (server, one) = server();
    let work = [
        "--no-wait",
        "--attempts",
        "3",
        "--prompt",
        "do it",
        "--",
        "sh",
        "-c",
        "exit 1",
    ];
    one.recover(&with(&["run"], &work)).expect(6);
    let before = tip(&one);
    let two = machine(&server, "beta");
    let planned = two.json(
        0,
        &with(&["--dry-run", "resume"], &["--strategy", "retry_same"]),
    );
    assert_eq!(
        (
            planned["run"]["run_id"].as_str(),
            planned["executed"].as_bool()
        ),
        (Some("night"), Some(false))
    );
    assert!(
        planned["prompt"]
            .as_str()
            .expect("a text")
            .contains("do it"),
        "{planned:#}"
    );
    assert_eq!(tip(&one), before);
    assert!(!two.exists(".ultraplan/state/events.jsonl"));
    one.json(0, &with(&["remote", "claim"], &[]));
    assert_eq!(
        two.error(11, &with(&["--dry-run", "resume"], &[]))["code"],
        "claimed"
    );
}

/// Frozen by its own agent, a supervisor stops nothing. Thawed, it charges nothing and goes on.
#[test]
fn the_agent_of_a_frozen_supervisor_is_ended_in_time() {
    let (_, one) = server();
    one.script(
        "agent.sh",
        "[ -e again ] && exit 0\necho $PPID > supervisor.pid\necho $$ > agent.pid\nkill -STOP $PPID\ntouch begun\nexec sleep 100",
    );
    let run = AtWork::start(
        &one,
        &with(&["run"], &["--attempts", "1", "--", "./agent.sh"]),
    );
    until("the agent begins", || one.exists("begun"));
    let begun = Instant::now();
    // Its parent does not even take note of its end.
    let is_gone = "case $(ps -o stat= -p $(cat agent.pid)) in Z* | '') ;; *) exit 1 ;; esac";
    until("the agent is ended", || one.sh(is_gone).code == 0);
    // The lease is 30 s: nobody may take the run before that.
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(10) && took < Duration::from_secs(27),
        "{took:?}"
    );
    one.put("again", "");
    one.sh("kill -CONT $(cat supervisor.pid)").expect(0);
    let ran = run.end().expect(0);
    assert!(
        ran.stderr
            .contains("no sign of life reached origin in time"),
        "{}",
        ran.stderr
    );
    assert_eq!(one.json(0, &["status"])["retry"]["error_count"], 0);
}

#[test]
fn a_lazy_run_is_stopped_in_time_too() {
    let (one, port, daemon) = behind_daemon("mode = \"lazy\"\n");
    one.script(
        "agent.sh",
        "[ -e again ] && exit 0\necho $$ > agent.pid\ntouch begun\nexec sleep 100",
    );
    let run = AtWork::start(
        &one,
        &with(&["run"], &["--attempts", "1", "--", "./agent.sh"]),
    );
    until("the agent begins", || one.exists("begun"));
    let begun = Instant::now();
    drop(daemon);
    until("the agent is stopped", || {
        one.sh("pgrep -F agent.pid").code != 0
    });
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(10) && took < Duration::from_secs(27),
        "{took:?}"
    );
    one.put("again", "");
    let _daemon = Daemon::start(&one, port);
    let ran = run.end().expect(0);
    assert!(
        ran.stderr
            .contains("no sign of life reached origin in time"),
        "{}",
        ran.stderr
    );
}

#[test]
fn of_several_that_want_a_free_run_the_others_hear_who_has_it() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let machines: Vec<TestEnv> = ["b", "c", "d", "e"]
        .iter()
        .map(|host| machine(&server, host))
        .collect();
    let claims: Vec<AtWork> = machines
        .iter()
        .map(|env| AtWork::start(env, &with(&["remote", "claim"], &[])))
        .collect();
    let ran: Vec<Ran> = claims.into_iter().map(AtWork::end).collect();
    let mut codes: Vec<i32> = ran.iter().map(|ran| ran.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 11, 11, 11], "{ran:#?}");
}

#[test]
fn a_name_that_another_machine_holds_is_refused_before_anything_is_recorded() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let two = machine(&server, "beta");
    assert_eq!(
        two.error(13, &with(&["run"], &["--", "touch", "ran"]))["code"],
        "already_exists"
    );
    one.json(0, &with(&["remote", "claim"], &[]));
    assert_eq!(
        two.error(11, &with(&["run"], &["--", "touch", "ran"]))["code"],
        "claimed"
    );
    assert!(!two.exists("ran") && !two.exists(".ultraplan/state/events.jsonl"));
}

#[test]
fn a_run_that_was_given_back_is_put_there_again_where_the_server_was_set_back() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let whole = tip(&one);
    let old = one.git(&[
        "-C",
        &server.to_string_lossy(),
        "rev-parse",
        &format!("{whole}~2"),
    ]);
    let set_back = || {
        one.git(&[
            "-C",
            &server.to_string_lossy(),
            "update-ref",
            "refs/recover-runs/night",
            old.trim(),
        ])
    };
    set_back();
    let status = one.json(0, &with(&["remote", "status"], &[]));
    assert!(
        of_run(&status, "night")["ahead"].as_u64() > Some(0),
        "{status:#}"
    );
    let pushed = one.json(0, &with(&["remote", "push"], &[]));
    assert_eq!(of_run(&pushed, "night")["ahead"], 0);
    one.git(&[
        "-C",
        &server.to_string_lossy(),
        "merge-base",
        "--is-ancestor",
        &whole,
        "refs/recover-runs/night",
    ]);
    // Who has only seen it can do that too.
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &[]));
    two.json(0, &with(&["remote", "release"], &[]));
    let whole = tip(&one);
    set_back();
    two.json(0, &with(&["remote", "claim"], &[]));
    one.git(&[
        "-C",
        &server.to_string_lossy(),
        "merge-base",
        "--is-ancestor",
        &whole,
        "refs/recover-runs/night",
    ]);
}

#[test]
fn a_push_throws_nothing_away() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &[]));
    two.json(0, &["checkpoint", "create", "--run", "night"]);
    two.json(0, &with(&["remote", "release"], &[]));
    one.recover(&["close", "night"]).expect(0);
    let before = tip(&one);
    let refused = one.error(13, &with(&["remote", "push"], &[]));
    let said = refused["message"].as_str().expect("a text");
    assert!(
        said.contains("1 events on origin are not here") && said.contains("1 here are not there"),
        "{said}"
    );
    assert_eq!(
        (
            tip(&one),
            one.json(0, &["status", "--run", "night"])["run"]["status"].as_str()
        ),
        (before, Some("closed"))
    );
    // A claim takes what is there; what is only here is kept aside, each time.
    let aside = || {
        one.git(&["ls-remote", "origin", "refs/recover-runs-side/*"])
            .lines()
            .count()
    };
    for number in 1..=2 {
        one.json(0, &with(&["remote", "claim"], &[]));
        assert_eq!(aside(), number);
        one.json(0, &with(&["remote", "release"], &[]));
        two.json(0, &with(&["remote", "claim"], &[]));
        two.json(0, &["checkpoint", "create", "--run", "night"]);
        two.json(0, &with(&["remote", "release"], &[]));
        one.json(0, &["checkpoint", "create", "--run", "night"]);
    }
}

#[test]
fn one_run_that_is_newer_or_damaged_keeps_nobody_from_the_others() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "2", "--", "false"],
    ))
    .expect(6);
    one.recover(&[
        "run",
        "--remote",
        "origin",
        "--run",
        "good",
        "--attempts",
        "1",
        "--",
        "false",
    ])
    .expect(8);
    for (edit, code) in [
        ("sed -i 's/\"schema\": 1/\"schema\": 2/' meta.json", 15),
        ("printf '{}\\n' > events.jsonl", 12),
    ] {
        let whole = tip(&one);
        tamper(&one, edit);
        let two = machine(&server, "beta");
        for command in [
            &["remote", "status"][..],
            &["remote", "fetch"],
            &["runs"],
            &["runs"],
        ] {
            let listed = two.json(0, &[command, &["--remote", "origin"]].concat());
            let ids: Vec<&str> = listed["runs"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|run| run["run_id"].as_str())
                .collect();
            assert_eq!(ids, ["good"], "{command:?}: {listed:#}");
            assert!(
                listed["warnings"].to_string().contains("night"),
                "{command:?}: {listed:#}"
            );
        }
        two.recover(&with(&["remote", "status"], &[])).expect(code);
        two.recover(&with(&["remote", "status"], &[])).expect(code);
        two.json(
            0,
            &["remote", "claim", "--remote", "origin", "--run", "good"],
        );
        two.json(
            0,
            &["remote", "release", "--remote", "origin", "--run", "good"],
        );
        one.git(&[
            "push",
            "-q",
            "-f",
            "origin",
            &format!("{whole}:refs/recover-runs/night"),
        ]);
    }
}

/// An end in time, whatever the server does.
#[test]
fn a_server_that_stalls_delays_no_end() {
    let (one, _, daemon) = behind_daemon("");
    one.script("agent.sh", "touch begun\nexec sleep 100");
    let run = AtWork::start(&one, &with(&["run"], &["--", "./agent.sh"]));
    until("the agent begins", || one.exists("begun"));
    daemon.freeze();
    let begun = Instant::now();
    one.sh(&format!("kill -TERM {}", run.0.id())).expect(0);
    let ran = run.end().expect(143);
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    assert!(ran.stderr.contains("was not given back"), "{}", ran.stderr);
}

#[test]
fn status_says_what_a_server_that_is_away_lacks() {
    let (_, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let remotes = one.json(0, &["status", "--run", "night"])["remotes"].take();
    assert_eq!(
        (
            remotes[0]["remote"].as_str(),
            remotes[0]["held"].as_bool(),
            remotes[0]["ahead"].as_u64()
        ),
        (Some("origin"), Some(false), Some(0)),
        "{remotes:#}"
    );
    assert!(remotes[0]["away"].is_null(), "{remotes:#}");
    one.json(0, &with(&["remote", "claim"], &[]));
    one.json(0, &["checkpoint", "create", "--run", "night"]);
    one.sh("mv ../server.git ../away.git").expect(0);
    one.recover(&["step", "deploy", "--run", "night", "--", "true"]);
    let shown = one.recover(&["status", "--run", "night"]).expect(0).stdout;
    let remotes = one.json(0, &["status", "--run", "night"])["remotes"].take();
    assert!(
        remotes[0]["held"].as_bool() == Some(true) && remotes[0]["ahead"].as_u64() > Some(0),
        "{remotes:#}"
    );
    assert!(
        shown.contains("origin") && shown.contains("not sent"),
        "{shown}"
    );
}

/// A loop of one's own that starts and ends its attempts by commands.
#[test]
fn attempts_of_a_loop_of_ones_own_need_the_claim_and_are_sent() {
    let (server, one) = server();
    one.json(0, &["attempt", "start", "--run", "night"]);
    one.json(0, &with(&["remote", "push"], &[]));
    one.json(
        0,
        &["attempt", "fail", "--run", "night", "--message", "boom"],
    );
    let mut two = machine(&server, "beta");
    two.set("RECOVER_COOLDOWN", "0s");
    two.json(0, &with(&["remote", "claim"], &["--steal", "--yes"]));
    for (command, more) in [
        ("start", &[][..]),
        ("pass", &[]),
        ("fail", &["--message", "boom"]),
    ] {
        let refused = one.error(
            11,
            &[&["attempt", command, "--run", "night"], more].concat(),
        );
        assert_eq!(refused["code"], "claimed", "{command}");
    }
    // Both its beginning and its end are there when the commands return.
    for command in ["start", "pass"] {
        let before = tip(&one);
        two.json(0, &["attempt", command, "--run", "night"]);
        assert_ne!(tip(&one), before, "{command}");
        let status = two.json(0, &with(&["remote", "status"], &[]));
        assert_eq!(
            of_run(&status, "night")["ahead"],
            0,
            "{command}: {status:#}"
        );
    }
}

#[test]
fn a_first_push_that_the_server_refused_is_made_again() {
    let (server, one) = server();
    one.json(0, &["checkpoint", "create", "--run", "night"]);
    let hook = server.join("hooks/update");
    let refuses = "#!/bin/sh\ncase $1 in *check*) ;; *) echo 'not now' >&2; exit 1;; esac\n";
    fs::create_dir_all(server.join("hooks")).expect("a place in the test's own folder");
    fs::write(&hook, refuses).expect("a place in the test's own folder");
    one.sh(&format!("chmod +x '{}'", hook.display())).expect(0);
    one.error(1, &with(&["remote", "push"], &[]));
    fs::remove_file(&hook).expect("it is there");
    let pushed = one.json(0, &with(&["remote", "push"], &[]));
    assert_eq!(pushed["pushed"], serde_json::json!(["night"]), "{pushed}");
}

#[test]
fn a_push_of_a_run_that_was_taken_says_so_though_all_is_sent() {
    let (server, one) = server();
    one.json(0, &["checkpoint", "create", "--run", "night"]);
    one.json(0, &with(&["remote", "claim"], &[]));
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &["--steal", "--yes"]));
    one.error(11, &with(&["remote", "push"], &[]));
    assert_eq!(host_of(&one).as_deref(), Some("beta"));
}

#[test]
fn what_was_only_seen_of_a_run_that_is_gone_is_not_put_there_again() {
    let (server, one) = server();
    one.recover(&with(&["run"], &["--", "true"])).expect(0);
    let two = machine(&server, "beta");
    two.json(0, &["checkpoint", "create", "--run", "other"]);
    two.json(0, &with(&["remote", "status"], &[]));
    let gone = tip(&one);
    one.git(&[
        "-C",
        &server.to_string_lossy(),
        "update-ref",
        "-d",
        "refs/recover-runs/night",
    ]);
    two.recover(&["run", "--run", "night", "--", "true"])
        .expect(0);
    two.json(0, &with(&["remote", "push"], &[]));
    let now = tip(&two);
    let before = format!("{now}^@");
    let history = two.git(&["rev-list", &now, &before]);
    assert!(
        !now.is_empty() && !history.contains(&gone),
        "another run of that name: {history}"
    );
}

#[test]
fn what_is_decided_of_a_run_that_lies_there_is_sent_at_once() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &[
            "--iterations",
            "2",
            "--",
            "sh",
            "-c",
            "echo x >> made.txt; echo y > .env",
        ],
    ))
    .expect(0);
    let stands = |env: &TestEnv| {
        let status = env.json(0, &with(&["remote", "status"], &[]));
        let night = of_run(&status, "night").clone();
        (
            night["ahead"].as_u64(),
            night["holder"].is_string(),
            night["fencing"].as_u64(),
        )
    };
    let before = stands(&one).2;
    let sent = one
        .recover(&["rollback", "--iteration", "1", "--run", "night", "--yes"])
        .expect(0);
    assert!(!sent.stderr.contains("warning"), "{}", sent.stderr);
    assert_eq!(
        stands(&one),
        (Some(0), false, before.map(|fencing| fencing + 1)),
        "claimed for it and given back"
    );
    // A claim that is there is kept.
    one.json(0, &with(&["remote", "claim"], &[]));
    one.recover(&["undo", "--run", "night", "--yes"]).expect(0);
    assert!(matches!(stands(&one), (Some(0), true, _)));
    one.json(0, &with(&["remote", "release"], &[]));
    let at = tip(&one);
    one.recover(&["--dry-run", "accept", "--run", "night", "--all", "--yes"])
        .expect(3);
    assert_eq!(tip(&one), at);

    // The next machine knows of it, and has nothing to do.
    one.recover(&["accept", "--run", "night", "--all", "--yes"])
        .expect(3);
    assert_eq!(stands(&one).0, Some(0));
    let two = machine(&server, "beta");
    let listed = two.json(0, &["runs", "--all", "--remote", "origin"]);
    assert_eq!(listed["runs"][0]["status"], "accepted", "{listed:#}");
    two.recover(&with(&["resume"], &["--yes", "--trust"]))
        .expect(0);
    let again = two
        .recover(&[
            "accept", "--run", "night", "--branch", "work", "--all", "--yes",
        ])
        .expect(0);
    assert!(
        again.stdout.contains("Nothing to commit"),
        "{}",
        again.stdout
    );
    assert_eq!(two.git(&["branch", "--list", "work"]), "");
    // What was left out stands beside a commit that is not here.
    assert_eq!(
        one.json(3, &["accept", "--run", "night"])["left_out"][0]["path"],
        ".env"
    );
    let named = two.error(
        13,
        &["accept", "--run", "night", "--include", "made.txt", "--yes"],
    );
    assert!(
        named["message"]
            .as_str()
            .expect("a text")
            .contains("was accepted as"),
        "{named:#}"
    );
}

#[test]
fn what_cannot_be_sent_now_is_a_warning() {
    let (server, one) = server();
    one.recover(&with(&["run"], &["--", "true"])).expect(0);
    one.sh("mv ../server.git ../away.git").expect(0);
    let closed = one.json(0, &["close", "night"]);
    let warned = closed["warnings"].to_string();
    assert!(
        warned.contains("is not on origin yet") && warned.contains("remote push"),
        "{closed:#}"
    );
    one.sh("mv ../away.git ../server.git").expect(0);
    // Neither is what another machine would have to take in first.
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &[]));
    two.json(0, &["checkpoint", "create", "--run", "night"]);
    two.json(0, &with(&["remote", "release"], &[]));
    let closed = one.json(0, &["close", "night"]);
    assert_eq!(closed["runs"], serde_json::json!([]), "{closed:#}");
    one.json(13, &with(&["remote", "push"], &[]));
}
