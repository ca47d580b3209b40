//! The copy of a repository outside of its work tree: what an agent removes comes back from it.

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::seen::{Seen, checkpoint, seen, text};

/// What git says of a repository: branches, index, what is staged, HEAD, reflog.
fn of_git(env: &TestEnv) -> Vec<String> {
    [
        &["for-each-ref", "--format=%(refname) %(objectname)"][..],
        &["ls-files", "--stage"],
        &["diff", "--cached", "--name-status"],
        &["symbolic-ref", "HEAD"],
        &["reflog", "--format=%H %gs"],
        &["stash", "list"],
    ]
    .iter()
    .map(|args| env.git(args))
    .collect()
}

/// A repository with a branch, something staged, something untracked and a stash, of which the last checkpoint has all.
fn repository() -> (TestEnv, String) {
    let env = TestEnv::repo();
    env.write("b.txt", "stashed\n");
    env.git(&["add", "b.txt"]);
    env.git(&["stash", "-q"]);
    env.git(&["branch", "other"]);
    for number in 0..30 {
        env.write(
            &format!("src/{number}.rs"),
            format!("fn f{number}() {{}}\n"),
        );
    }
    checkpoint(&env);
    env.write("staged.txt", "staged\n");
    env.git(&["add", "staged.txt"]);
    env.write("a.txt", "two\n");
    let id = checkpoint(&env);
    (env, id)
}

fn vaults(env: &TestEnv) -> Vec<Value> {
    let listed = env.json(0, &["restore-project"]);
    listed["vaults"].as_array().expect("a list").clone()
}

#[track_caller]
fn assert_whole(env: &TestEnv, before: &[String], tree: &Seen) {
    env.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(of_git(env), before);
    assert_eq!(seen(env.work()), *tree);
    env.json(0, &["checkpoint", "verify"]);
    assert_eq!(
        env.json(0, &["doctor"])["problems"],
        Value::Array(Vec::new())
    );
    // And it goes on.
    env.write("after.txt", "more\n");
    checkpoint(env);
}

#[test]
fn a_removed_git_folder_is_put_back() {
    for line in [
        "rm -rf .git",
        "rm -rf .git && git init -q && git add -A && git commit -qm other",
        "rm -rf .git .ultraplan",
        "rm -rf .git .ultraplan && git init -q",
        "rm -rf .git && git clone -q --bare ../elsewhere .git && git config core.bare false",
    ] {
        let (env, _) = repository();
        env.sh("git clone -q . ../elsewhere").expect(0);
        let (before, tree) = (of_git(&env), seen(env.work()));
        env.sh(line).expect(0);
        let tree = if line.contains("ultraplan") {
            seen(env.work())
        } else {
            tree
        };

        let said = env.recover(&["status"]);
        assert!(
            said.stderr.contains("doctor --repair"),
            "{line}: {}{}",
            said.stdout,
            said.stderr
        );
        let refused = env.error(13, &["doctor", "--repair"]);
        assert!(text(&refused["message"]).contains("--yes"), "{refused}");
        let planned = env.json(12, &["--dry-run", "doctor", "--repair"]);
        assert!(
            planned["problems"][0]["repairable"]
                .as_bool()
                .expect("a word"),
            "{planned}"
        );

        let repaired = env.json(0, &["doctor", "--repair", "--yes"]);
        assert!(
            repaired["repaired"].to_string().contains("put "),
            "{line}: {repaired}"
        );
        let has_replaced = env.exists(".git/recover/replaced");
        assert_eq!(
            has_replaced,
            line.contains("init") || line.contains("clone"),
            "{line}"
        );
        assert_whole(&env, &before, &tree);
    }
}

#[test]
fn a_removed_project_is_made_again() {
    let (env, id) = repository();
    let (before, tree) = (of_git(&env), seen(env.work()));
    let work = env.work().to_str().expect("text").to_owned();
    let busy = env.error(13, &["restore-project", &work]);
    assert_eq!(busy["code"], "already_exists", "{busy}");
    std::fs::remove_dir_all(env.work()).expect("removed");
    let root = env.root();
    let recover = |args: &[&str]| {
        let mut command = env.recover_command(args);
        command.current_dir(&root);
        crate::env::Ran::of(&command.output().expect("recover starts"))
    };
    let listed = recover(&["--json", "restore-project"]).expect(0).json();
    let vault = &listed["vaults"][0];
    assert_eq!(
        (vault["path"].as_str(), vault["state"].as_str()),
        (Some(&*work), Some("gone"))
    );
    assert_eq!(vault["latest_checkpoint"], id);
    assert!(
        vault["size_bytes"].as_u64().expect("a number") > 0,
        "{vault}"
    );
    let table = recover(&["restore-project"]).expect(0).stdout;
    assert!(
        table.contains("PROJECT") && table.contains(&work),
        "{table}"
    );

    recover(&["restore-project", "/no/such/project"]).expect(4);
    recover(&["restore-project", &work, "--to", "ckpt_none"]).expect(4);
    let planned = recover(&["--json", "--dry-run", "restore-project", &work])
        .expect(0)
        .json();
    assert_eq!(planned["changed"], false);
    assert!(!env.work().exists());
    let ran = recover(&["--json", "restore-project", &work]).expect(0);
    assert!(!ran.stderr.contains("damaged"), "{}", ran.stderr);
    let restored = ran.json();
    assert_eq!(restored["checkpoint_id"], id);
    // What the restore itself recorded is one more.
    let now = of_git(&env);
    assert_eq!(now[1..], before[1..]);
    assert!(
        before[0].lines().all(|line| now[0].contains(line)),
        "{}",
        now[0]
    );
    assert_eq!(seen(env.work()), tree);
    env.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(
        env.json(0, &["doctor"])["problems"],
        Value::Array(Vec::new())
    );
}

#[test]
fn a_project_is_made_again_elsewhere_at_an_earlier_checkpoint() {
    let (env, _) = repository();
    let all = env.json(0, &["checkpoint", "list"]);
    let first = all["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| text(&one["id"]))
        .min()
        .expect("one");
    let id = text(&vaults(&env)[0]["id"]);
    env.json(
        0,
        &[
            "restore-project",
            &id[..8],
            "--into",
            "../second",
            "--to",
            &first,
        ],
    );
    let second = env.root().join("second");
    assert_eq!(
        std::fs::read_to_string(second.join("a.txt")).expect("a file"),
        "one\n"
    );
    assert!(!second.join("staged.txt").exists());
    // The one that is there is not touched, and each has its own vault from then on.
    assert_eq!(env.read("a.txt"), "two\n");
    env.recover(&["-C", "../second", "checkpoint", "create"])
        .expect(0);
    checkpoint(&env);
    let all = vaults(&env);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_ne!(all[0]["id"], all[1]["id"]);
    assert_ne!(all[0]["path"], all[1]["path"]);
}

#[test]
fn without_git_the_same_holds() {
    let env = TestEnv::plain();
    env.write("a.txt", "one\n");
    env.write("deep/er/b.bin", [0_u8, 255, 13, 10]);
    let id = checkpoint(&env);
    let tree = seen(env.work());
    env.sh("rm -rf .ultraplan").expect(0);
    let said = env.recover(&["status"]);
    assert!(
        said.stderr.contains("doctor --repair"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    env.json(0, &["doctor", "--repair", "--yes"]);
    env.json(0, &["checkpoint", "verify"]);
    env.write("a.txt", "spoiled\n");
    env.json(0, &["rollback", "--to", &id, "--edits", "discard"]);
    assert_eq!(seen(env.work()), tree);

    let work = env.work().to_str().expect("text").to_owned();
    std::fs::remove_dir_all(env.work()).expect("removed");
    let mut command = env.recover_command(&["restore-project", &work, "--to", &id]);
    command.current_dir(env.root());
    crate::env::Ran::of(&command.output().expect("recover starts")).expect(0);
    assert_eq!(seen(env.work()), tree);
}

#[test]
fn objects_that_git_removed_come_back() {
    let (env, id) = repository();
    let tree = seen(env.work());
    env.sh("rm -rf .git/refs/recover .git/recover/written; sed -i /recover/d .git/packed-refs; git gc -q --prune=now")
        .expect(0);
    env.json(0, &["doctor", "--repair", "--yes"]);
    env.json(0, &["checkpoint", "verify"]);
    env.write("a.txt", "spoiled\n");
    env.remove("src/3.rs");
    env.json(0, &["rollback", "--to", &id, "--edits", "discard"]);
    assert_eq!(seen(env.work()), tree);
}

#[test]
fn a_copy_of_a_project_has_a_vault_of_its_own_and_a_moved_one_keeps_it() {
    let (env, _) = repository();
    let id = text(&vaults(&env)[0]["id"]);
    env.sh("cp -a . ../copy && mv ../copy ../moved-copy")
        .expect(0);
    env.recover(&["-C", "../moved-copy", "checkpoint", "create"])
        .expect(0);
    let all = vaults(&env);
    assert_eq!(all.len(), 2, "{all:?}");
    env.sh("rm -rf ../moved-copy/.git").expect(0);
    // That it was recorded elsewhere is left to say.
    env.recover(&["-C", "../moved-copy", "doctor", "--repair", "--yes"])
        .expect(12);
    let there = env.root().join("moved-copy/.git/recover/vault");
    assert_ne!(std::fs::read_to_string(there).expect("an id").trim(), id);
    assert_eq!(env.read(".git/recover/vault").trim(), id);

    std::fs::rename(env.work(), env.root().join("moved")).expect("moved");
    let mut command = env.recover_command(&["checkpoint", "create"]);
    command.current_dir(env.root().join("moved"));
    crate::env::Ran::of(&command.output().expect("recover starts")).expect(0);
    let moved = std::fs::read_to_string(env.root().join("moved/.git/recover/vault"));
    assert_eq!(moved.expect("an id").trim(), id);
}

#[test]
fn what_is_removed_on_purpose_is_not_missed() {
    let (env, _) = repository();
    env.sh("rm -rf .git && git init -q && git add -A && git commit -qm mine")
        .expect(0);
    env.json(0, &["trust", "--state", "--yes"]);
    let said = env.recover(&["status"]);
    assert!(!said.stderr.contains("doctor --repair"), "{}", said.stderr);
    checkpoint(&env);
    assert_eq!(vaults(&env).len(), 2);

    let id = text(
        &vaults(&env)
            .iter()
            .find(|one| one["state"] == "given_up")
            .expect("one")["id"],
    );
    env.error(13, &["forget", "--vault", &id]);
    env.json(0, &["--dry-run", "forget", "--vault", &id]);
    env.json(0, &["forget", "--vault", &id, "--yes"]);
    env.error(4, &["forget", "--vault", &id, "--yes"]);
    assert_eq!(vaults(&env).len(), 1);
    let gone = env.json(0, &["forget", "--all", "--yes"]);
    assert!(gone["removed"].to_string().contains("/vault/"), "{gone}");
    assert_eq!(vaults(&env).len(), 0);
    assert!(!env.root().join("home/.local/state/recover/vault").exists());
}

#[test]
fn only_the_user_says_whether_and_where() {
    let mut env = TestEnv::repo();
    env.put(".ultraplan/recover.toml", "[vault]\nenabled = false\n");
    env.error(2, &["config"]);
    env.remove(".ultraplan/recover.toml");
    let file = env.root().join("home/.config/recover/config.toml");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    std::fs::write(&file, "[vault]\nenabled = false\n").expect("written");
    checkpoint(&env);
    assert_eq!(vaults(&env).len(), 0);
    assert_eq!(
        env.json(0, &["runs"])["vault"]["off"],
        "[vault] enabled = false"
    );
    // One in the project is no part of its checkpoints.
    let dir = env.work().join("vaults");
    std::fs::write(&file, format!("[vault]\ndir = {dir:?}\n")).expect("written");
    checkpoint(&env);
    assert_eq!(vaults(&env).len(), 1);
    let line = "git ls-tree -r --name-only $(git for-each-ref --format='%(refname)' refs/recover | tail -1)";
    assert_eq!(env.sh(line).expect(0).stdout, "a.txt\n");
    assert!(
        env.json(0, &["runs"])["vault"]["size_bytes"]
            .as_u64()
            .expect("bytes")
            > 0
    );
    env.set("CI", "true");
    let status = env.json(0, &["status"]);
    assert_eq!(status["vault"]["off"], "CI is set");
    assert!(env.recover(&["status"]).stdout.contains("CI is set"));
}

#[test]
fn passwords_are_not_copied() {
    let env = TestEnv::repo();
    env.git(&[
        "remote",
        "add",
        "origin",
        "https://me:hunter22secret@git.example.com/x.git",
    ]);
    env.git(&[
        "config",
        "http.extraHeader",
        "Authorization: basic c2VjcmV0",
    ]);
    checkpoint(&env);
    let found = env.sh("grep -rlE 'hunter22secret|c2VjcmV0' ../home/.local/state/recover/vault");
    assert_eq!(found.stdout, "");
    env.sh("rm -rf .git").expect(0);
    env.json(0, &["doctor", "--repair", "--yes"]);
    assert_eq!(
        env.git(&["remote", "get-url", "origin"]),
        "https://git.example.com/x.git\n"
    );
}

// In the middle of a night.
#[test]
fn an_attempt_that_replaces_the_repository_is_taken_back() {
    let env = quick();
    env.write("mine.txt", "uncommitted\n");
    let (head, branches) = (env.git(&["rev-parse", "HEAD"]), env.git(&["branch"]));
    let agent = "if [ $RECOVER_ATTEMPT = 1 ]; then until rm -rf .git a.txt mine.txt; do :; done; git init -q -b trunk && \
                 echo wrong > wrong.txt && git add -A && git commit -qm wrong; else echo right > right.txt; fi";
    let args = [
        "run",
        "--run",
        "n",
        "--iterations",
        "1",
        "--",
        "sh",
        "-c",
        agent,
    ];
    let ran = env.recover(&args).expect(0);
    assert!(
        ran.stderr.contains("put another git repository"),
        "{}",
        ran.stderr
    );
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(env.git(&["branch"]), branches);
    assert_eq!(
        (env.read("mine.txt"), env.read("right.txt")),
        ("uncommitted\n".into(), "right\n".into())
    );
    assert!(!env.exists("wrong.txt"));
    env.git(&["fsck", "--strict", "--no-dangling"]);
    let report = env.json(0, &["status", "--run", "n"]);
    let first = &report["iterations"][0]["attempts"][0];
    assert_eq!(first["failure"]["type"], "system_error", "{first}");
    assert_eq!(
        first["failure"]["conditions"][0], "repository_removed",
        "{first}"
    );
    // What the attempt committed is not lost.
    let replaced = env
        .sh("git --git-dir=$(ls -d .git/recover/replaced/*) log --format=%s")
        .expect(0);
    assert_eq!(replaced.stdout, "wrong\n");
}

#[test]
fn an_attempt_that_removes_the_whole_folder_is_taken_back() {
    let env = quick();
    env.write("mine.txt", "uncommitted\n");
    let head = env.git(&["rev-parse", "HEAD"]);
    let agent = "[ $RECOVER_ATTEMPT = 2 ] || rm -rf $PWD/* $PWD/.git $PWD/.ultraplan; true";
    let ran = env.recover(&[
        "run",
        "--run",
        "n",
        "--iterations",
        "1",
        "--",
        "sh",
        "-c",
        agent,
    ]);
    let ran = ran.expect(0);
    assert!(
        ran.stderr.contains("removed the git repository"),
        "{}",
        ran.stderr
    );
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(env.read("mine.txt"), "uncommitted\n");
    let listed = env.json(0, &["status", "--run", "n"]);
    assert_eq!(
        listed["iterations"][0]["attempts"]
            .as_array()
            .expect("a list")
            .len(),
        2
    );
}

/// A first copy that cannot be written is none: nothing is brought back from it, and the next one completes it.
#[test]
fn an_incomplete_vault_is_not_believed() {
    let env = TestEnv::repo();
    let recover = env!("CARGO_BIN_EXE_recover");
    // Only that file is larger than any may become.
    let line = "head -c 3000000 /dev/zero > .git/info/large; ulimit -f 2000; trap '' XFSZ";
    let said = env
        .sh(&format!("{line}; {recover} checkpoint create"))
        .expect(0);
    assert!(said.stderr.contains("is not complete"), "{}", said.stderr);
    let vault = vaults(&env)[0].clone();
    assert_eq!(vault["state"], "incomplete", "{vault}");
    let git = std::fs::read_dir(env.work().join(".git"))
        .expect("listed")
        .count();
    env.sh("mv .git ../away").expect(0);
    let into = env.root().join("again");
    let restore = ["restore-project", &text(&vault["id"]), "--into"];
    let refused = env.error(13, &[&restore[..], &[&into.to_string_lossy()]].concat());
    assert!(
        text(&refused["message"]).contains("is incomplete"),
        "{refused}"
    );
    assert!(!into.exists());
    let doctor = env.recover(&["doctor", "--repair", "--yes"]);
    assert!(!doctor.stdout.contains("put "), "{}", doctor.stdout);
    assert!(!env.exists(".git"));
    env.sh("mv ../away .git").expect(0);
    assert!(env.work().join(".git").read_dir().expect("listed").count() >= git);
    env.write("a.txt", "two\n");
    checkpoint(&env);
    assert_eq!(vaults(&env)[0]["state"], "there");
    let tree = seen(env.work());
    env.sh("rm -rf .git").expect(0);
    env.json(0, &["doctor", "--repair", "--yes"]);
    assert_eq!(seen(env.work()), tree);
    env.git(&["fsck", "--strict", "--no-dangling"]);
}

/// Killed at any step, it is repeated, or finished by `doctor --repair` once files were written.
#[test]
fn a_project_is_made_again_whatever_cuts_it_off() {
    let (env, id) = repository();
    if env.sh("command -v strace").code != 0 {
        return;
    }
    let tree = seen(env.work());
    let (place, recover) = (env.work().to_owned(), env!("CARGO_BIN_EXE_recover"));
    let into = place.to_string_lossy().into_owned();
    let calls = "rename,renameat,renameat2";
    for step in [1, 2, 3, 4, 6, 9, 14, 22, 35] {
        std::fs::remove_dir_all(&place).expect("removed");
        let killed = format!(
            "strace -f -qq -o /dev/null -e trace={calls} -e inject={calls}:signal=KILL:when={step} \
             {recover} restore-project {into}"
        );
        let run = |line: &str| {
            let mut command = env.command("sh");
            command.args(["-c", line]).current_dir(env.root());
            crate::env::Ran::of(&command.output().expect("sh starts"))
        };
        run(&killed);
        let again = run(&format!("{recover} restore-project {into}"));
        if again.code != 0 {
            assert_eq!(again.code, 13, "{step}: {}", again.stderr);
            assert!(
                again.stderr.contains("has this project already")
                    && again.stderr.contains("doctor --repair"),
                "{step}: {}",
                again.stderr
            );
            env.recover(&["doctor", "--repair", "--yes"]);
            env.json(
                0,
                &[
                    "checkpoint",
                    "restore",
                    &id,
                    "--edits",
                    "discard",
                    "--restore-index",
                ],
            );
        }
        assert_eq!(seen(&place), tree, "{step}");
        env.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

/// A write over `.git` and the ledger: the packs that were captured, and the ledger, are files of their own in the vault.
#[test]
fn a_ledger_that_was_written_over_comes_back_with_the_repository() {
    let (env, _) = repository();
    let before = env.json(0, &["status"]);
    env.write("a.txt", "lost\n");
    for file in [
        ".git/HEAD",
        ".git/recover/vault",
        ".ultraplan/state/events.jsonl",
        ".ultraplan/state/recover/identity",
    ] {
        env.write(file, "x\n");
    }
    let done = env.json(0, &["doctor", "--repair", "--yes"]);
    assert!(text(&done["repaired"][0]).starts_with("put "), "{done}");
    let after = env.json(0, &["status"]);
    for field in ["run_id", "checkpoints", "status"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    env.json(
        0,
        &["checkpoint", "restore", "latest", "--edits", "discard"],
    );
    assert_ne!(env.read("a.txt"), "lost\n");
    env.json(0, &["doctor"]);
}

/// Every file is written over in place, as root can: those of the vault are files of their own.
#[test]
fn what_is_written_over_in_place_comes_back() {
    for (folders, content) in [
        (".git/objects", "x"),
        (".git .ultraplan [a-z]*", "written over"),
        (
            ".git .ultraplan [a-z]*",
            "$(head -c 3000 /dev/urandom | base64)",
        ),
    ] {
        let (env, _) = repository();
        let (before, tree) = (of_git(&env), seen(env.work()));
        env.sh(&format!(
            "find {folders} -type f -exec sh -c 'chmod u+w \"$@\"; for f; do echo \"{content}\" > \"$f\"; done' sh {{}} +"
        ))
        .expect(0);
        env.json(12, &["doctor"]);
        env.json(0, &["doctor", "--repair", "--yes"]);
        assert_eq!(of_git(&env), before, "{content}");
        env.json(
            0,
            &[
                "checkpoint",
                "restore",
                "latest",
                "--edits",
                "discard",
                "--restore-index",
            ],
        );
        assert_whole(&env, &of_git(&env), &tree);
    }
}

/// Nothing of ours is written where the repository was, as if there were one.
#[test]
fn a_repository_that_an_attempt_moved_away_is_not_taken_for_another_one() {
    let env = quick();
    let agent = "[ $RECOVER_ATTEMPT = 2 ] || mv .git ../away.git";
    let ran = env.recover(&["run", "--iterations", "1", "--", "sh", "-c", agent]);
    let ran = ran.expect(0);
    assert!(
        ran.stderr.contains("removed the git repository"),
        "{}",
        ran.stderr
    );
    assert!(!env.exists(".git/recover/replaced"));
    env.git(&["fsck", "--strict", "--no-dangling"]);
}

/// A clone in the project's place was another repository before the run that it takes over: it stays.
#[test]
fn a_clone_in_the_place_of_a_project_is_no_attempts_doing() {
    let env = quick();
    env.sh("git init -q --bare ../server.git && git remote add origin \"$PWD/../server.git\" && git push -q origin HEAD")
        .expect(0);
    let agent = ["--", "sh", "-c", "echo $RECOVER_ITERATION > done.txt"];
    let begin = [
        "run",
        "--run",
        "night",
        "--remote",
        "origin",
        "--iterations",
        "1",
        "--yes",
    ];
    env.json(0, &[begin.as_slice(), &agent].concat());
    // It is in the vault alone.
    checkpoint(&env);
    env.sh("git clone -q \"$PWD/../server.git\" ../clone && rm -rf .git .ultraplan && mv ../clone/.git .git")
        .expect(0);
    let on = [
        "resume",
        "night",
        "--remote",
        "origin",
        "--iterations",
        "2",
        "--yes",
        "--trust",
    ];
    let ran = env.json(0, &on);
    assert_eq!(ran["outcome"], "complete", "{ran}");
    assert!(!env.work().join(".git/recover/replaced").exists());
}

/// What git ignores is removed with the logs of the run: the checks run all the same.
#[test]
fn an_attempt_that_cleans_away_what_git_ignores_is_checked() {
    let env = quick();
    let agent =
        "[ $RECOVER_ATTEMPT = 2 ] || git clean -q -f -d -x; echo $RECOVER_ATTEMPT > made.txt";
    let args = [
        "--attempts",
        "2",
        "--feedback",
        "test=grep -q 2 made.txt",
        "--",
        "sh",
        "-c",
        agent,
    ];
    let ran = env.json(0, &[&["run", "--run", "n"], args.as_slice()].concat());
    let attempts = ran["iterations"][0]["attempts"].as_array().expect("a list");
    assert_eq!(attempts[0]["failure"]["type"], "feedback_failure", "{ran}");
    assert_eq!(attempts.len(), 2);
}

/// A loss of power leaves the names of files that were not synced, and not their content: they are copied again.
#[test]
fn what_a_loss_of_power_emptied_is_copied_again() {
    let (env, _) = repository();
    let line = "cd ../home/.local/state/recover/vault/*/ && for f in $(find git ! -name '*.sample' -type f -links 1); do \
                touch -r $f ../../time; : > $f; touch -r ../../time $f; done; echo another > synced; touch -d '1 day ago' synced";
    env.sh(line).expect(0);
    env.write("a.txt", "three\n");
    checkpoint(&env);
    let (before, tree) = (of_git(&env), seen(env.work()));
    env.sh("rm -rf .git").expect(0);
    env.json(0, &["doctor", "--repair", "--yes"]);
    assert_whole(&env, &before, &tree);
}

/// The vault of a project that is gone stays for `[vault] keep_gone` from when a run first finds it gone.
#[test]
fn a_vault_whose_project_has_been_gone_for_long_is_removed() {
    let (env, _) = repository();
    env.sh("cp -r . ../other && cd ../other && rm -rf .ultraplan .git/recover")
        .expect(0);
    let other = ["-C", "../other", "--json"];
    env.recover(&[&other[..], &["checkpoint", "create"]].concat())
        .expect(0);
    env.sh("rm -rf ../other").expect(0);
    let run = || env.recover(&["run", "--", "true"]).expect(0);
    run();
    let gone = |state: &str| {
        let all = vaults(&env);
        all.iter().filter(|one| one["state"] == state).count()
    };
    assert_eq!((gone("there"), gone("gone")), (1, 1));
    let mark = "../home/.local/state/recover/vault/*/gone";
    env.sh(&format!("touch -d '29 days ago' {mark}")).expect(0);
    run();
    assert_eq!((gone("there"), gone("gone")), (1, 1));
    env.sh(&format!("touch -d '31 days ago' {mark}")).expect(0);
    run();
    assert_eq!((gone("there"), gone("gone")), (1, 0));
    env.json(0, &["checkpoint", "verify"]);
}

/// A project that is used again is gone no longer, although no run begins in it.
#[test]
fn a_vault_whose_project_came_back_outlives_it() {
    let (env, _) = repository();
    env.sh("cp -r . ../other && cd ../other && rm -rf .ultraplan .git/recover")
        .expect(0);
    let other = ["-C", "../other", "--json", "checkpoint", "create"];
    env.recover(&other).expect(0);
    env.sh("mv ../other ../away").expect(0);
    let run = || env.recover(&["run", "--", "true"]).expect(0);
    run();
    let mark = "../home/.local/state/recover/vault/*/gone";
    env.sh(&format!(
        "mv ../away ../other && touch -d '31 days ago' {mark}"
    ))
    .expect(0);
    env.sh("echo today > ../other/today").expect(0);
    env.recover(&other).expect(0);
    env.sh(&format!("! ls {mark}")).expect(0);
    env.sh("rm -rf ../other").expect(0);
    run();
    let all = vaults(&env);
    assert!(all.iter().any(|one| one["state"] == "gone"), "{all:?}");
}

/// A clock that jumped once, there or back, ends no vault's time.
#[test]
fn a_vault_outlives_a_jump_of_the_clock() {
    let (env, _) = repository();
    env.sh("cp -r . ../other && cd ../other && rm -rf .ultraplan .git/recover")
        .expect(0);
    env.recover(&["-C", "../other", "--json", "checkpoint", "create"])
        .expect(0);
    env.sh("rm -rf ../other").expect(0);
    let mark = "../home/.local/state/recover/vault/*/gone";
    for seen in ["now", "2001-01-01", "now", "2100-01-01", "now"] {
        env.recover(&["run", "--", "true"]).expect(0);
        let all = vaults(&env);
        let is_gone = |one: &&Value| one["state"] == "gone";
        assert_eq!(all.iter().filter(is_gone).count(), 1, "{seen}");
        env.sh(&format!("touch -d {seen} {mark}")).expect(0);
    }
}

/// Packs that the repository merged leave the vault too, though no run begins or ends.
#[test]
fn checkpoints_of_no_run_leave_no_merged_packs_behind() {
    let (env, _) = repository();
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "for n in $(seq 100); do echo $n >> a.txt; {recover} checkpoint create > ../said || exit 1; done"
    ))
    .expect(0);
    let packs = |folder: &str| {
        let listed = env.sh(&format!("ls {folder}/objects/pack | wc -l")).stdout;
        listed.trim().parse::<usize>().expect("a number")
    };
    let (own, copied) = (
        packs(".git"),
        packs("../home/.local/state/recover/vault/*/git"),
    );
    assert!(copied <= 2 * own + 128, "{copied} files for {own}");
    let (before, tree) = (of_git(&env), seen(env.work()));
    env.sh("rm -rf .git").expect(0);
    env.json(0, &["doctor", "--repair", "--yes"]);
    assert_whole(&env, &before, &tree);
}

/// An object of git LFS comes two folders deep: only the inner one's time says that it came.
#[test]
fn large_files_of_git_are_copied_wherever_they_come() {
    let (env, _) = repository();
    let run = || env.recover(&["run", "--", "true"]).expect(0);
    let object = |end: &str| format!(".git/lfs/objects/ab/cd/abcd{end:0>60}");
    env.write(&object("1"), "one");
    env.sh("find .git/lfs -type d -exec touch -d '1 hour ago' {} +")
        .expect(0);
    run();
    env.write(&object("2"), "two");
    run();
    env.sh("rm -rf .git").expect(0);
    env.json(0, &["doctor", "--repair", "--yes"]);
    assert_eq!(env.read(&object("1")) + &env.read(&object("2")), "onetwo");
}
