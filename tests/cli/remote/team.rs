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
    let json = &reader.json(0, &report)["report"];
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
    let all = &reader.json(0, &all)["report"];
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
