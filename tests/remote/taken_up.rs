//! A run whose machine is gone goes on in a fresh clone, whatever the server.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::machines::{REMOTE, machine, push_agent};
use crate::servers::Server;

/// Notes what it finds, writes what only exact copies bring back, and does not come to an end on machine `a` in iteration 2.
const AGENT: &str = r#"
notes=$NOTES/$RECOVER_TEST_HOST-$RECOVER_ITERATION
echo "$RECOVER_TEST_HOST $RECOVER_ITERATION.$RECOVER_ATTEMPT $RECOVER_FENCING" >> "$NOTES/attempts"
cp "$RECOVER_PROMPT_FILE" "$notes.prompt"
find . -path ./.git -prune -o -path ./.ultraplan -prune -o -printf '%y %m %p ' -type f -exec sha1sum {} \; -o -printf '\n' | sort > "$notes.files"
echo "$RECOVER_ITERATION" >> done.txt
if [ "$RECOVER_ITERATION" = 1 ]; then
    mkdir -p sub empty; echo x > sub/new.txt; chmod 640 sub/new.txt; printf 'b\000\377' > bytes.bin; ln -s done.txt link; rm a.txt
fi
if [ "$RECOVER_TEST_HOST" = a ] && [ "$RECOVER_ITERATION" = 2 ]; then
    echo half > half.txt; echo $$ > "$NOTES/pid.new"; mv "$NOTES/pid.new" "$NOTES/pid"; exec sleep 600
fi"#;

/// Waits until a file is there.
#[track_caller]
fn wait_for(path: &Path) -> String {
    let begun = Instant::now();
    while !path.exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} does not come: {}",
            path.display(),
            fs::read_to_string(path.with_file_name("log")).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    fs::read_to_string(path).unwrap()
}

fn on(server: &Server, name: &str, notes: &Path) -> TestEnv {
    let mut env = machine(server, name);
    env.set("NOTES", &notes.display().to_string());
    env
}

#[test]
fn a_run_goes_on_in_a_fresh_clone() {
    for server in Server::everywhere() {
        let kind = server.kind;
        let notes = server.root().join("notes");
        fs::create_dir(&notes).unwrap();
        push_agent(&server, AGENT, "test -e done.txt");

        let a = on(&server, "a", &notes);
        let prompt = "Write what is asked for: ünï & 'quotes'";
        let args = [
            "run",
            "--remote",
            REMOTE,
            "--run",
            "night",
            "--yes",
            "--iterations",
            "3",
            "--prompt",
            prompt,
        ];
        let mut run = a.recover_command(
            &[
                &args[..],
                &["--feedback", "check=./check.sh", "--", "./agent.sh"],
            ]
            .concat(),
        );
        let mut run = run
            .stdout(Stdio::null())
            .stderr(fs::File::create(notes.join("log")).unwrap())
            .spawn()
            .unwrap();
        let agent = wait_for(&notes.join("pid"));
        run.kill().unwrap();
        run.wait().unwrap();
        a.sh(&format!("kill -KILL {}", agent.trim()));

        let b = on(&server, "b", &notes);
        let claimed = b.error(
            11,
            &[
                "--yes", "resume", "--remote", REMOTE, "--run", "night", "--trust",
            ],
        );
        assert!(
            claimed["message"].as_str().unwrap().contains("held by a"),
            "{kind:?}: {claimed}"
        );
        let resumed = b.json(
            0,
            &[
                "--yes", "resume", "--remote", REMOTE, "--run", "night", "--trust", "--steal",
            ],
        );
        assert_eq!(resumed["outcome"], "complete", "{kind:?}: {resumed:#}");

        let attempts = fs::read_to_string(notes.join("attempts")).unwrap();
        let attempts: Vec<Vec<&str>> = attempts
            .lines()
            .map(|line| line.split(' ').collect())
            .collect();
        let who: Vec<&str> = attempts.iter().map(|attempt| attempt[0]).collect();
        assert_eq!(who, ["a", "a", "b", "b"], "{kind:?}: {attempts:?}");
        assert!(
            attempts[2][1].starts_with("2.") && attempts[3][1].starts_with("3."),
            "{kind:?}: {attempts:?}"
        );
        let fencing = |attempt: &[&str]| attempt[2].parse::<u64>().unwrap();
        assert!(
            fencing(&attempts[2]) > fencing(&attempts[1]),
            "{kind:?}: {attempts:?}"
        );

        // The same files, byte for byte, with modes, links and empty folders; and the same words.
        let seen = |name: &str| fs::read_to_string(notes.join(name)).unwrap();
        assert_eq!(seen("b-2.files"), seen("a-2.files"), "{kind:?}");
        assert!(
            seen("a-2.files").contains("bytes.bin") && !seen("a-2.files").contains("a.txt"),
            "{kind:?}"
        );
        assert!(
            seen("b-2.prompt").contains(prompt) && seen("b-3.prompt").contains(prompt),
            "{kind:?}"
        );
        assert_eq!(b.read("done.txt"), "1\n2\n3\n", "{kind:?}");
        assert!(
            !b.exists("half.txt"),
            "{kind:?}: what nobody had checkpointed stays on its machine"
        );
    }
}
