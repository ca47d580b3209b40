//! A limit that one run meets holds all runs with the same account, whatever repository they are in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};
use crate::interface::completion::asked;
use crate::run::supervision::until;

const EVENING: &str = "2030-03-01T22:00:00.000Z";
/// Midnight after it, in seconds since 1970.
const RESET: &str = "1898640000";

/// Claude Code: it is away while there is a file `away`, else it does as a file `does` says.
const CLAUDE: &str = r#"
root=$(dirname "$0")
echo "$(date +%s%N) $RECOVER_RUN_ID" >> "$root/starts"
cat > /dev/null
echo '{"type":"system","subtype":"init","session_id":"s-'$$'"}'
ends() { printf '{"type":"result","subtype":"success","is_error":%s,"api_error_status":%s,"session_id":"s-'$$'","result":"%s"}\n' "$1" "$2" "$3"; [ "$1" = false ] || exit 1; exit 0; }
[ ! -e "$root/away" ] || ends true 529 'API Error: 529 Overloaded'
[ ! -e "$root/limit" ] || ends true null "$(cat "$root/limit")"
[ ! -e "$root/does" ] || . "$root/does"
echo "$(date +%s%N) $RECOVER_RUN_ID" >> "$root/answers"
echo '{"type":"assistant","session_id":"s-'$$'","message":{"id":"m","content":[{"type":"text","text":"Working."}],"usage":{"input_tokens":1,"output_tokens":1}}}'
echo done > work.txt
ends false null done
"#;

/// The same, without records.
const TEXT: &str = r#"#!/bin/sh
root=$(dirname "$0")
echo "$(date +%s%N) $RECOVER_RUN_ID" >> "$root/starts"
cat > /dev/null
[ ! -e "$root/away" ] || { echo 'API Error: 529 Overloaded'; exit 1; }
. "$root/does"
echo "$(date +%s%N) $RECOVER_RUN_ID" >> "$root/answers"
echo done > work.txt
"#;

/// Repositories of one user, with an agent that they share.
struct Machine {
    env: TestEnv,
    /// Every project's own.
    config: String,
}

impl Machine {
    fn new(config: &str) -> Self {
        let env = TestEnv::repo();
        env.write("../claude", format!("#!/bin/sh\n{CLAUDE}"));
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(env.root().join("claude"), executable).expect("works");
        let config = config.to_owned();
        Self { env, config }
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::write(self.env.root().join(name), content).expect("works");
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.env.root().join(name)).expect("works");
    }

    fn limits(&self) -> PathBuf {
        self.env.root().join("home/.local/state/recover/limits")
    }

    /// A call of `recover` in the repository `name`, which is made where it is not there.
    fn call(&self, name: &str, args: &[&str]) -> Command {
        let folder = self.env.root().join(name);
        if !folder.exists() {
            let made = self.env.sh(&format!(
                "git clone -q . '{}' && git -C '{}' remote remove origin",
                folder.display(),
                folder.display()
            ));
            made.expect(0);
            let config = folder.join(".ultraplan/recover.toml");
            std::fs::create_dir(folder.join(".ultraplan")).expect("works");
            std::fs::write(config, &self.config).expect("works");
        }
        let mut command = self.env.recover_command(args);
        command.current_dir(folder);
        command
    }

    /// A run in a repository of its own, with the repository's name.
    fn run(&self, name: &str, more: &[&str], agent: &[&str]) -> Command {
        let begin = ["--json", "run", "--run", name, "--prompt", "Do it."];
        let args = [&begin[..], more, &["--", "../claude", "-p"], agent].concat();
        self.call(name, &args)
    }

    fn evening(&self, name: &str, more: &[&str], agent: &[&str]) -> Ran {
        let mut run = self.run(name, more, agent);
        Ran::of(
            &run.env("RECOVER_TEST_NOW", EVENING)
                .output()
                .expect("works"),
        )
    }

    fn begin(&self, name: &str) -> Child {
        let mut run = self.run(name, &[], &[]);
        run.stdout(Stdio::piped()).stderr(Stdio::piped());
        run.spawn().expect("works")
    }

    /// When which run started the agent, or was answered, in seconds.
    fn times(&self, file: &str) -> Vec<(f64, String)> {
        let text = std::fs::read_to_string(self.env.root().join(file)).unwrap_or_default();
        let time = |line: &str| {
            let (at, run) = line.split_once(' ').expect("works");
            (at.parse::<f64>().expect("works") / 1e9, run.to_owned())
        };
        text.lines().map(time).collect()
    }

    fn wait_for_starts(&self, number: usize) {
        let begun = Instant::now();
        while self.times("starts").len() < number {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no start {number}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn json(&self, args: &[&str]) -> Value {
        let args = [&["--json"], args].concat();
        let mut call = self.call("work", &args);
        Ran::of(
            &call
                .env("RECOVER_TEST_NOW", EVENING)
                .output()
                .expect("works"),
        )
        .expect(0)
        .json()
    }
}

/// Until its `status` and `runs` say that another run's outage holds it, and that it is at work.
fn wait_until_held(machine: &Machine, name: &str) {
    let begun = Instant::now();
    loop {
        let status = Ran::of(&machine.call(name, &["status"]).output().expect("works")).stdout;
        let runs = Ran::of(&machine.call(name, &["runs"]).output().expect("works")).stdout;
        let words = "waiting for claude's provider (529), met by run r0 in ";
        if status.contains(words) && runs.contains(words) {
            assert!(!status.contains("not running"), "{status}");
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status}{runs}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn complete(children: Vec<Child>) {
    for child in children {
        Ran::of(&child.wait_with_output().expect("works")).expect(0);
    }
}

/// Eight runs in eight repositories: one meets an outage, no agent of the others is started into it; one tries it, and the
/// others follow one by one.
#[test]
fn eight_runs_meet_one_outage_once() {
    let machine = Machine::new("[weather]\nprobes = ['8s']\ngap = '1s'\n");
    machine.put("away", "");
    let mut runs = vec![machine.begin("r0")];
    machine.wait_for_starts(1);
    // What it met is written down at the attempt's end.
    let begun = Instant::now();
    while !machine.limits().join("salt").exists() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    machine.put("does", "sleep 1");
    runs.extend((1..8).map(|number| machine.begin(&format!("r{number}"))));
    wait_until_held(&machine, "r7");
    machine.remove("away");
    complete(runs);
    let (starts, answers) = (machine.times("starts"), machine.times("answers"));
    assert_eq!((starts.len(), answers.len()), (9, 8), "{starts:?}");
    let runs: std::collections::BTreeSet<&String> = answers.iter().map(|(_, run)| run).collect();
    assert_eq!(runs.len(), 8, "{answers:?}");
    // Nobody came before the one that tried it was answered, and the others came in turn.
    assert!(starts[2].0 > answers[0].0, "{starts:?} {answers:?}");
    let took = starts[8].0 - starts[1].0;
    assert!(took > 5.0, "{took}: {starts:?}");
    println!("agents started after the limit was met: 1 that tried it, 7 in {took:.1} s");
}

/// Twelve runs in four repositories, three work trees each: the first meets what `begin` has in its way, the others are started
/// once that is known, and it is gone by `end`. When the agent was started, and when it was answered.
fn twelve_runs(
    begin: impl FnOnce(&Machine),
    end: impl FnOnce(&Machine),
) -> [Vec<(f64, String)>; 2] {
    let machine = Machine::new("[weather]\nprobes = ['20s']\ngap = '500ms'\n");
    let names: Vec<String> = (0..12).map(|number| format!("r{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        if number < 4 {
            machine.call(name, &[]);
            continue;
        }
        let main = format!("r{}", number % 4);
        let added = format!("git -C ../{main} worktree add -q --detach ../{name}");
        machine.env.sh(&added).expect(0);
    }
    begin(&machine);
    let mut runs = vec![machine.begin(&names[0])];
    until("the limit is written down", || {
        machine.limits().join("salt").exists()
    });
    runs.extend(names[1..].iter().map(|name| machine.begin(name)));
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(machine.times("starts").len(), 1, "started into it");
    end(&machine);
    complete(runs);
    ["starts", "answers"].map(|file| machine.times(file))
}

/// No agent was started into it; one tried it, and the others came in turn, after its answer: how far apart, in seconds.
fn in_turn([starts, answers]: [Vec<(f64, String)>; 2]) -> Vec<f64> {
    assert_eq!((starts.len(), answers.len()), (13, 12), "{starts:?}");
    let runs: std::collections::BTreeSet<&String> = answers.iter().map(|(_, run)| run).collect();
    assert_eq!(runs.len(), 12, "{answers:?}");
    assert!(starts[2].0 > answers[0].0, "{starts:?} {answers:?}");
    let gaps: Vec<f64> = starts[1..]
        .windows(2)
        .map(|two| two[1].0 - two[0].0)
        .collect();
    // Nobody comes before its turn, but for the time that the first agent took to start once it was its own.
    for (turn, (at, _)) in (0_u32..).zip(&starts[1..]) {
        let earliest = starts[1].0 + f64::from(turn) * 0.5 - 1.0;
        assert!(*at >= earliest, "{turn}: {gaps:?}");
    }
    gaps
}

#[test]
fn twelve_runs_meet_one_limit_once() {
    let over = std::cell::Cell::new(0.0);
    let times = twelve_runs(
        |machine| {
            let now = std::time::UNIX_EPOCH.elapsed().expect("works").as_secs();
            let reset = now + 20;
            // A limit is believed to be over three gaps after it says so.
            over.set(reset as f64 + 1.5);
            machine.put("limit", &format!("Claude AI usage limit reached|{reset}"));
        },
        |machine| machine.remove("limit"),
    );
    assert!(times[0][1].0 >= over.get(), "{} {times:?}", over.get());
    println!("gaps after the limit: {:.2?}", in_turn(times));
}

/// Lanes wait for a limit that one of them meets, each has its only attempt still, and both are done after it.
#[test]
fn lanes_wait_for_a_limit_together() {
    let machine = Machine::new("[weather]\ngap = '500ms'\n");
    machine.put("list.md", "- [ ] parser\n- [ ] docs\n");
    let reset = std::time::UNIX_EPOCH.elapsed().expect("works").as_secs() + 6;
    machine.put("limit", &format!("Claude AI usage limit reached|{reset}"));
    let agent = machine.env.root().join("claude").display().to_string();
    let run = ["--json", "run", "--run", "n", "--tasks", "../list.md"];
    let more = ["--lanes", "2", "--attempts", "1", "--", &agent, "-p"];
    let mut lanes = machine.call("r0", &[&run[..], &more].concat());
    lanes.stdout(Stdio::piped()).stderr(Stdio::piped());
    let lanes = lanes.spawn().expect("works");
    until("both lanes wait", || {
        let parked = |name: &str| {
            let status = machine.call("r0", &["--json", "status", "--run", name]);
            let status = Ran::of(&{ status }.output().expect("works"));
            status.code == 0 && status.json()["run"]["status"] == "parked"
        };
        parked("n-1") && parked("n-2")
    });
    let met = machine.times("starts").len();
    machine.remove("limit");
    let done = Ran::of(&lanes.wait_with_output().expect("works")).expect(0);
    let done = done.json();
    assert_eq!(done["lanes"][0]["exit_code"], 0, "{done:#}");
    assert_eq!(done["lanes"][1]["exit_code"], 0, "{done:#}");
    let (starts, answers) = (machine.times("starts"), machine.times("answers"));
    assert_eq!((starts.len(), answers.len()), (met + 2, 2), "{starts:?}");
    // A limit is believed to be over three gaps after it says so.
    let over = reset as f64 + 1.5;
    assert!(starts[met].0 >= over, "{over} {starts:?}");
    assert!(starts[met + 1].0 > answers[0].0, "{starts:?} {answers:?}");
}

#[test]
fn twelve_runs_meet_one_outage_once() {
    let times = twelve_runs(
        |machine| machine.put("away", ""),
        |machine| machine.remove("away"),
    );
    println!("gaps after the outage: {:.2?}", in_turn(times));
}

/// An agent without records is through when it has been alive for three gaps; one with records when its model answers.
#[test]
fn an_agent_without_records_is_through_when_it_stays_alive() {
    for records in [false, true] {
        let machine = Machine::new("[weather]\nprobes = ['6s']\ngap = '500ms'\n");
        machine.put("does", "sleep 7");
        if !records {
            machine.put("claude", TEXT);
        }
        machine.put("away", "");
        let mut runs = vec![machine.begin("r0")];
        until("the outage is written down", || {
            machine.limits().join("salt").exists()
        });
        machine.remove("away");
        runs.push(machine.begin("r1"));
        complete(runs);
        let (starts, answers) = (machine.times("starts"), machine.times("answers"));
        assert_eq!((starts.len(), answers.len()), (3, 2), "{starts:?}");
        let apart = starts[2].0 - starts[1].0;
        if records {
            assert!(starts[2].0 > answers[0].0, "{starts:?} {answers:?}");
        } else {
            assert!((1.4..6.5).contains(&apart), "{starts:?} {answers:?}");
        }
        println!("records: {records}; the second began {apart:.1} s after the first");
    }
}

/// Where the one that tries it is killed, another one does.
#[test]
fn a_killed_run_holds_nobody() {
    let machine = Machine::new("[weather]\nprobes = ['2s']\ngap = '300ms'\n");
    machine.put("away", "");
    let first = machine.begin("r0");
    machine.wait_for_starts(1);
    machine.put("does", "rm \"$root/does\"; kill -9 $PPID; sleep 1; exit 1");
    std::thread::sleep(Duration::from_millis(1500));
    let others = vec![machine.begin("r1"), machine.begin("r2")];
    machine.remove("away");
    let ended: Vec<Ran> = std::iter::once(first)
        .chain(others)
        .map(|child| Ran::of(&child.wait_with_output().expect("works")))
        .collect();
    let codes = |code: i32| ended.iter().filter(|ran| ran.code == code).count();
    assert_eq!((codes(137), codes(0)), (1, 2), "{ended:#?}");
    assert_eq!(machine.times("starts").len(), 4);
}

/// What a person and a script see of it; nothing of it is a secret; and it can be removed.
#[test]
fn a_limit_is_shown_and_removed() {
    let mut machine = Machine::new("");
    machine.env.set("ANTHROPIC_API_KEY", "sk-ant-very-secret");
    machine.put("limit", &format!("Claude AI usage limit reached|{RESET}"));
    machine.evening("night", &["--no-wait"], &[]).expect(6);
    let waits = machine
        .evening("shop", &["--no-wait"], &[])
        .expect(6)
        .json();
    assert_eq!(machine.times("starts").len(), 1, "{waits:#}");
    assert_eq!(waits["outcome"], "parked");

    let status = Ran::of(
        &machine
            .call("shop", &["status"])
            .env("RECOVER_TEST_NOW", EVENING)
            .output()
            .expect("works"),
    );
    let words = "waiting for claude's limit, met by run night in ";
    assert!(
        status.stdout.contains(words)
            && status.stdout.contains("until 2030-03-02 00:0")
            && !status.stdout.contains("Checkpoints:"),
        "{status:?}"
    );
    let mut call = machine.call("shop", &["--json", "status"]);
    let status = Ran::of(
        &call
            .env("RECOVER_TEST_NOW", EVENING)
            .output()
            .expect("works"),
    )
    .json();
    let limit = &status["retry"]["limit"];
    assert_eq!(
        (
            &limit["met_by"]["run"],
            &limit["reason"],
            &status["retry"]["can_retry"]
        ),
        (&json!("night"), &json!("usage_limit"), &json!(false)),
        "{status:#}"
    );

    let listed = machine.json(&["limits"]);
    let limit = &listed["limits"][0];
    assert_eq!(
        (&limit["agent"], &limit["state"], &limit["model"]),
        (&json!("claude"), &json!("waiting"), &Value::Null),
        "{listed:#}"
    );
    let folder = machine.limits();
    let mode =
        |path: &PathBuf| std::fs::metadata(path).expect("works").permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).expect("works") {
        let path = entry.expect("works").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let text = std::fs::read_to_string(&path).expect("works");
        assert!(!text.contains("very-secret"), "{text}");
    }

    let account = limit["account"].as_str().expect("works");
    machine.env.set("RECOVER_TEST_NOW", EVENING);
    assert_eq!(
        asked(&machine.env, &["limits", "--clear", ""]),
        ["claude", account]
    );
    assert_eq!(
        asked(&machine.env, &["limits", "--clear", &account[..3]]),
        [account]
    );
    assert_eq!(
        asked(&machine.env, &["limits", "--clear", "cod"]),
        [] as [&str; 0]
    );
    let planned = machine.json(&["--dry-run", "limits", "--clear", account]);
    assert_eq!(
        (
            &planned["changed"],
            planned["limits"].as_array().expect("works").len()
        ),
        (&json!(false), 1)
    );
    let mut unknown = machine.call("work", &["--json", "limits", "--clear", "codex"]);
    let unknown = Ran::of(&unknown.output().expect("works")).expect(4).json();
    assert_eq!(unknown["error"]["code"], "limit_not_found");
    machine.remove("limit");
    assert_eq!(machine.json(&["limits", "--clear"])["changed"], true);
    assert_eq!(machine.json(&["limits"])["limits"], json!([]));
    machine.evening("another", &[], &[]).expect(0);
}

/// A limit of one model, or of one account, holds no other.
#[test]
fn a_limit_holds_its_model_and_its_account_only() {
    let machine = Machine::new("");
    machine.put("limit", &format!("Claude Opus usage limit reached|{RESET}"));
    machine
        .evening("night", &["--no-wait"], &["--model", "opus"])
        .expect(6);
    machine.remove("limit");
    machine
        .evening("same", &["--no-wait"], &["--model=claude-opus-4-8"])
        .expect(6);
    machine
        .evening("other", &["--no-wait"], &["--model", "sonnet"])
        .expect(0);
    let mut key = machine.run("key", &["--no-wait"], &["--model", "opus"]);
    key.env("RECOVER_TEST_NOW", EVENING)
        .env("ANTHROPIC_API_KEY", "another");
    Ran::of(&key.output().expect("works")).expect(0);
    // After it, by the run's own clock, it goes on.
    machine
        .evening("later", &[], &["--model", "opus"])
        .expect(0);
    let starts = machine.times("starts");
    let runs: Vec<&str> = starts.iter().map(|(_, run)| run.as_str()).collect();
    assert_eq!(runs, ["night", "other", "key", "later"]);
}

/// A limit beyond what the run waits for in all ends it at once, with the reason.
#[test]
fn no_run_waits_longer_than_it_may() {
    let machine = Machine::new("[retry]\nmax_park = '1h'\n");
    machine.put("limit", &format!("Claude AI usage limit reached|{RESET}"));
    machine.evening("night", &["--no-wait"], &[]).expect(8);
    let ended = machine.evening("shop", &[], &[]).expect(6).json();
    assert_eq!(
        (&ended["outcome"], machine.times("starts").len()),
        (&json!("parked"), 1),
        "{ended:#}"
    );
}

/// Whatever lies where limits are, no run is held by what cannot be one.
#[test]
fn what_is_no_limit_holds_nobody() {
    let machine = Machine::new("");
    machine.put("limit", &format!("Claude AI usage limit reached|{RESET}"));
    machine.evening("night", &["--no-wait"], &[]).expect(6);
    machine.remove("limit");
    let folder = machine.limits();
    let files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("works")
        .map(|entry| entry.expect("works").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    let text = std::fs::read_to_string(file).expect("works");
    let mut limit: Value = serde_json::from_str(&text).expect("works");
    limit["until"] = json!("2099-01-01T00:00:00.000Z");
    let far = limit.to_string();
    for (number, content) in [
        far.as_str(),
        "",
        "{",
        "null",
        "[1, 2]",
        &"x".repeat(100_000),
    ]
    .iter()
    .enumerate()
    {
        std::fs::write(file, content).expect("works");
        let ran = machine.evening(&format!("run{number}"), &["--no-wait"], &[]);
        assert!(ran.stderr.contains("a limit is ignored"), "{ran:?}");
        ran.expect(0);
    }
    std::fs::remove_file(file).expect("works");
    std::os::unix::fs::symlink("/etc/passwd", file).expect("works");
    std::fs::create_dir(folder.join("folder.json")).expect("works");
    machine.evening("link", &["--no-wait"], &[]).expect(0);
    assert!(std::fs::read_to_string("/etc/passwd").is_ok());
    std::fs::remove_dir_all(&folder).expect("works");
    std::fs::write(&folder, "no folder").expect("works");
    machine.evening("none", &["--no-wait"], &[]).expect(0);
}

/// Text that an agent ends well with is no limit of anybody's.
#[test]
fn text_of_an_agent_that_ended_well_is_not_shared() {
    let machine = Machine::new("");
    let text = format!("Claude AI usage limit reached|{RESET}");
    let mut run = machine.call(
        "text",
        &[
            "run",
            "--no-wait",
            "--agent",
            "aider",
            "--",
            "sh",
            "-c",
            "echo \"$0\"",
            &text,
        ],
    );
    run.env("RECOVER_TEST_NOW", EVENING)
        .output()
        .expect("works");
    assert_eq!(machine.json(&["limits"])["limits"], json!([]));
}
