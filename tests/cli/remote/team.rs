//! What several machines do together: their night on one page.

use super::*;

#[test]
fn the_night_of_a_team_is_one_page_made_from_the_remote_alone() {
    let (server, mut one) = server();
    let run = |env: &TestEnv, name: &str, attempts: &str, script: &str| {
        let begin = ["run", "--run", name, "--remote", "origin"];
        let rest = ["--attempts", attempts, "--", "sh", "-c", script];
        env.recover(&[&begin[..], &rest].concat()).code
    };
    one.set("RECOVER_TEST_NOW", "2026-10-20T08:00:00Z");
    assert_eq!(run(&one, "old", "1", "true"), 0);
    one.set("RECOVER_TEST_NOW", "2026-10-21T23:00:00Z");
    assert_eq!(run(&one, "good", "1", "echo good > good.txt"), 0);
    let mut two = machine(&server, "beta");
    two.set("RECOVER_TEST_NOW", "2026-10-22T02:00:00Z");
    assert_eq!(run(&two, "stuck", "1", "echo 'no | such' >&2; exit 3"), 8);
    // One is at work.
    two.set("RECOVER_TEST_NOW", "2026-10-22T03:00:00Z");
    let words = "run --run busy --remote origin -- sh -c";
    let script = "touch begun; sleep 60";
    let words: Vec<&str> = words.split(' ').chain([script]).collect();
    let at_work = AtWork::start(&two, &words);
    until("the agent begins", || two.exists("begun"));

    let mut reader = machine(&server, "gamma");
    reader.set("RECOVER_TEST_NOW", "2026-10-22T08:00:00Z");
    let report = ["report", "--remote", "origin"];
    let page = reader.recover(&report).expect(0).stdout;
    let json = &reader.json(0, &report)["team"];
    at_work.kill();
    let names: Vec<&str> = json["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["run_id"].as_str())
        .collect();
    assert_eq!(names, ["stuck", "busy", "good"], "{json:#}");
    assert_eq!(json["totals"]["needs_person"], 1, "{json:#}");
    assert_eq!(json["totals"]["attempts"], 3, "{json:#}");
    let (stuck, busy, good) = (&json["runs"][0], &json["runs"][1], &json["runs"][2]);
    assert_eq!(
        (&stuck["held_by"], &stuck["host"]),
        (&Value::Null, &"beta".into())
    );
    assert_eq!(
        (&busy["held_by"], &busy["night"]["state"]),
        (&"beta".into(), &"running".into())
    );
    assert_eq!(good["night"]["files"]["changed"], 1, "{good:#}");
    assert_eq!(good["night"]["state"], "complete");
    assert!(
        page.contains("3 runs: 1 complete, 1 needs you, 1 running; 3 attempts"),
        "{page}"
    );
    let next = "Next: `recover resume --remote origin --run stuck`";
    assert!(
        page.contains(next) && page.contains("no \\| such"),
        "{page}"
    );

    let all = [&report[..], &["--since", "7d"]].concat();
    let all = &reader.json(0, &all)["team"];
    assert_eq!(all["totals"]["runs"], 4, "{all:#}");
    let listed = "runs --remote origin --since 7h";
    let listed: Vec<&str> = listed.split(' ').collect();
    let listed = reader.json(0, &listed);
    assert_eq!(
        listed["runs"].as_array().map(Vec::len),
        Some(2),
        "{listed:#}"
    );

    let html = [&report[..], &["-o", "../night.html"]].concat();
    reader.json(0, &html);
    let html = fs::read_to_string(reader.root().join("night.html")).expect("a page");
    assert!(html.contains("Waiting for a person") && !html.contains("<script"));
    assert_eq!(
        reader.error(2, &[&report[..], &["--format", "pr"]].concat())["code"],
        "usage"
    );
    assert_eq!(
        reader.error(4, &[&report[..], &["nope"]].concat())["code"],
        "run_not_found"
    );
}

/// A worker of a machine, with a list beside its clone.
fn worker<'a>(more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let words = "worker --remote origin --tasks ../list.toml --attempts 1";
    let end = ["--", "sh", "-c", script];
    words
        .split(' ')
        .chain(more.iter().copied())
        .chain(end)
        .collect()
}

fn list(env: &TestEnv, tasks: &[(&str, &str)]) {
    let task = |(id, needs): &(&str, &str)| {
        format!("[[task]]\nid = '{id}'\nprompt = 'Do {id}.'\nneeds = [{needs}]\n")
    };
    let text: String = tasks.iter().map(task).collect();
    fs::write(env.root().join("list.toml"), text).expect("a place of the test's own");
}

/// Where each task stands, by the document of a worker.
fn standing(work: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let runs = work["runs"].as_array().expect("runs").iter();
    let tasks = runs.flat_map(|run| run["tasks"].as_array().expect("tasks"));
    tasks
        .map(|task| (text(&task["id"]), text(&task["status"])))
        .collect()
}

#[test]
fn a_worker_puts_the_files_back_and_says_what_was_given_up() {
    let (_, one) = server();
    list(&one, &[("bad", ""), ("good", ""), ("after", "'bad'")]);
    one.write("mine.txt", "not committed");
    let head = one.git(&["rev-parse", "HEAD"]);
    let script = "echo $RECOVER_TASK > did.txt; echo more >> mine.txt; git add did.txt; \
                  git checkout -q -b made-$RECOVER_TASK; git commit -qm $RECOVER_TASK; test $RECOVER_TASK != bad";
    let plan = one.json(0, &worker(&["--dry-run"], script));
    let (bad, good, after) = ("bad".to_owned(), "good".to_owned(), "after".to_owned());
    let pending = "pending".to_owned();
    let expected = [&bad, &after, &good].map(|id| (id.clone(), pending.clone()));
    assert_eq!(standing(&plan), expected);
    assert_eq!(plan["runs"][0]["run_id"], "list-bad", "{plan:#}");

    let work = one.json(8, &worker(&[], script));
    let expected = [
        (bad, "given_up".to_owned()),
        (after, "waiting".to_owned()),
        (good, "done".to_owned()),
    ];
    assert_eq!(standing(&work), expected);
    assert_eq!(one.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(one.git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert_eq!(one.read("mine.txt"), "not committed");
    assert!(!one.exists("did.txt"));
    // Nothing is tried again.
    let again = one.json(8, &worker(&["--no-wait"], "touch ran"));
    assert_eq!(standing(&again), standing(&work));
    assert!(!one.exists("ran"));
    assert_eq!(
        one.error(2, &worker(&["--lane", "l"], "true"))["code"],
        "usage"
    );
}

#[test]
fn a_worker_waits_for_others_as_long_as_it_may_and_goes_on_with_what_it_was_told() {
    let (server, one) = server();
    let two = machine(&server, "beta");
    let script = "touch begun; test $RECOVER_TEST_HOST = beta || sleep 60";
    for env in [&one, &two] {
        list(env, &[("a", "")]);
    }
    let at_work = AtWork::start(&one, &worker(&[], script));
    until("the agent begins", || one.exists("begun"));
    assert_eq!(one.error(11, &worker(&[], script))["code"], "locked");
    let left = two.json(6, &worker(&["--no-wait"], script));
    assert!(
        left["stopped"]
            .as_str()
            .is_some_and(|why| why.contains("alpha holds list-a"))
    );
    assert_eq!(
        two.error(9, &worker(&["--wait=1s"], script))["code"],
        "gave_up_waiting"
    );
    let pid = at_work.0.id().to_string();
    one.sh(&format!("kill -INT {pid}")).expect(0);
    at_work.end().expect(130);
    assert!(one.exists("begun"), "the next worker here goes on with it");
    // What another machine would start is not what this one was told to.
    let refused = two.json(13, &worker(&[], "touch other"));
    assert!(refused["stopped"].is_string(), "{refused:#}");
    assert!(!two.exists("other") && !two.exists("begun"));
    let done = two.json(0, &worker(&[], script));
    assert_eq!(standing(&done), [("a".to_owned(), "done".to_owned())]);
    assert!(!two.exists("begun"));
    let nothing = one.json(0, &worker(&[], script));
    assert_eq!(nothing["runs"][0]["host"], "beta", "{nothing:#}");
    assert!(!one.exists("begun"), "its files are put back");
}

/// What a killed worker had started goes on in its files: they are put back once that has ended.
#[test]
fn files_are_not_put_back_under_a_run_that_is_at_work() {
    let (_server, env) = server();
    list(&env, &[("one", ""), ("two", "")]);
    env.write("a.txt", "mine\n");
    let script = "echo work >> a.txt; touch ../begun; while ! test -e ../stop; do sleep 0.02; done";
    let first = AtWork::start(&env, &worker(&[], script));
    until("the agent begins", || env.root().join("begun").exists());
    first.kill();
    let error = env.error(11, &worker(&["--no-wait"], script));
    assert!(error.to_string().contains("is at work"), "{error}");
    assert_eq!(env.read("a.txt"), "mine\nwork\n");

    std::fs::write(env.root().join("stop"), "").expect("written");
    until("the run ends", || {
        let runs = env.json(0, &["runs", "--all"]);
        let one = of_run(&runs, "list-one");
        one["status"] == "complete" && one["driver_pid"].is_null()
    });
    env.write("hand.txt", "by hand\n");
    let ended = env.recover(&worker(&["--wait=60s"], script)).expect(0);
    let said = "what was edited since is in checkpoint ";
    let (_, rest) = ended.stderr.split_once(said).expect("a note");
    let checkpoint = rest.split_whitespace().next().expect("its id");
    let shown = env.git(&[
        "show",
        &format!("refs/recover/worker-work/{checkpoint}:hand.txt"),
    ]);
    assert_eq!(shown, "by hand\n");
    assert_eq!(env.read("a.txt"), "mine\n");
}
