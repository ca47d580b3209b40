//! Repositories that are set up in unusual ways: captured and put back byte for byte, or refused with a reason.

use crate::env::TestEnv;
use crate::seen::{checkpoint, seen, text};

/// Takes a checkpoint in `folder`, changes everything, goes back and forth. git sees the same before and after.
#[track_caller]
fn round_trip(env: &TestEnv, folder: &str) {
    let at = |args: &[&str]| env.json(0, &[&["-C", folder], args].concat());
    let root = env.work().join(folder);
    let git = |args: &[&str]| env.git(&[&["-C", folder], args].concat());
    let state = || {
        let status = git(&[
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=all",
        ]);
        (seen(&root), status, git(&["ls-files", "--stage", "-t"]))
    };
    git(&["update-index", "-q", "--refresh"]);
    let before = state();
    at(&["checkpoint", "create"]);
    assert_eq!(
        at(&["checkpoint", "create", "--if-changed"])["changed"],
        false
    );
    assert_eq!(state(), before, "a capture changes nothing");
    std::fs::write(root.join("a.txt"), "rolled back\n").expect("written");
    std::fs::write(root.join("new.txt"), "rolled back\n").expect("written");
    let changed = seen(&root);
    at(&["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(state(), before, "rolled back");
    at(&["undo"]);
    assert_eq!(seen(&root), changed, "undone");
    at(&["redo"]);
    assert_eq!(state(), before, "done again");
    at(&[
        "rollback",
        "--to",
        "latest",
        "--edits",
        "discard",
        "--restore-index",
    ]);
    assert_eq!(state(), before, "with the index");
    at(&["checkpoint", "verify"]);
    git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn places_of_the_git_folder() {
    let env = TestEnv::repo();
    // A linked worktree of a bare repository.
    env.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    env.git(&[
        "-C",
        "../bare.git",
        "worktree",
        "add",
        "-q",
        "-b",
        "linked",
        "../of-bare",
    ]);
    round_trip(&env, "../of-bare");
    // `core.worktree`, and a git folder elsewhere.
    env.git(&[
        "clone",
        "-q",
        "--separate-git-dir",
        "../elsewhere.git",
        ".",
        "../separate",
    ]);
    round_trip(&env, "../separate");
    env.sh("mkdir ../tree && git clone -q . ../owner && cp a.txt ../tree && git -C ../owner config core.worktree ../../tree")
        .expect(0);
    env.sh("echo 'gitdir: ../owner/.git' > ../tree/.git")
        .expect(0);
    round_trip(&env, "../tree");
    // Through a symlinked folder.
    env.sh("mkdir ../real && git clone -q . ../real/clone && ln -s real ../link")
        .expect(0);
    round_trip(&env, "../link/clone");
}

#[test]
fn kinds_of_checkouts() {
    let env = TestEnv::repo();
    env.write("dir/one/x", "x\n");
    env.write("dir/two/y", "y\n");
    env.write("other/z", "z\n");
    env.sh("git add . && git commit -qm more").expect(0);
    let clone = |name: &str, args: &[&str]| {
        let url = format!("file://{}", env.work().display());
        env.git(&[&["clone", "-q"], args, &[&url, &format!("../{name}")]].concat());
        format!("../{name}")
    };
    round_trip(&env, &clone("shallow", &["--depth", "1"]));
    let folder = clone("detached", &[]);
    env.git(&["-C", &folder, "checkout", "-q", "--detach"]);
    round_trip(&env, &folder);
    for (name, args) in [
        ("cone", &["--cone", "dir/one"] as &[&str]),
        ("sparse-index", &["--cone", "--sparse-index", "dir/one"]),
        ("no-cone", &["--no-cone", "/a.txt", "/dir/two/"]),
    ] {
        let folder = clone(name, &[]);
        env.git(&[&["-C", &folder, "sparse-checkout", "set"], args].concat());
        round_trip(&env, &folder);
        // A file that is there although the checkout leaves it out.
        std::fs::create_dir_all(env.work().join(&folder).join("other")).unwrap();
        std::fs::write(env.work().join(&folder).join("other/z"), "mine\n").unwrap();
        let created = env.json(0, &["-C", &folder, "checkpoint", "create"])["checkpoint"].clone();
        assert_eq!(
            env.git(&[
                "-C",
                &folder,
                "show",
                &format!("{}:other/z", text(&created["commit"]))
            ]),
            "mine\n"
        );
    }
    // Objects that the server still has are missing in a partial clone, and nothing fetches them.
    env.git(&["config", "uploadpack.allowFilter", "true"]);
    for filter in ["--filter=blob:none", "--filter=tree:0"] {
        let folder = clone(&filter[9..13], &["--sparse", filter]);
        let missing = || {
            env.git(&[
                "-C",
                &folder,
                "rev-list",
                "--objects",
                "--all",
                "--missing=print",
            ])
            .matches('?')
            .count()
        };
        let before = missing();
        assert!(before > 0);
        env.json(0, &["-C", &folder, "checkpoint", "create"]);
        env.json(0, &["-C", &folder, "checkpoint", "verify"]);
        // The trees of the index are written; no content is.
        assert!((1..=before).contains(&missing()));
        round_trip(&env, &folder);
    }
    let unborn = TestEnv::plain();
    unborn
        .sh("git init -q; echo x > a.txt; git add .")
        .expect(0);
    round_trip(&unborn, ".");
}

#[test]
fn settings_of_the_index_and_the_file_system() {
    for (key, value) in [
        ("core.ignorecase", "true"),
        ("core.precomposeunicode", "true"),
        ("core.fileMode", "false"),
        ("core.symlinks", "false"),
        ("core.trustctime", "false"),
        ("core.checkStat", "minimal"),
        ("core.splitIndex", "true"),
        ("index.version", "4"),
        ("index.skipHash", "true"),
        ("feature.manyFiles", "true"),
        ("core.untrackedCache", "true"),
        ("core.autocrlf", "true"),
        ("core.quotePath", "false"),
        ("core.multiPackIndex", "true"),
        ("gc.writeCommitGraph", "true"),
    ] {
        let env = TestEnv::repo();
        env.git(&["config", key, value]);
        env.sh("echo x > 'e\u{301} \u{e9}'; ln -s a.txt link; echo '#!/bin/sh' > run; chmod +x run; git add .; git status -s; git commit -qm x; git gc -q")
            .expect(0);
        env.write("a.txt", "edited\n");
        env.git(&["add", "a.txt"]);
        round_trip(&env, ".");
    }
}

// A capture is byte-exact whatever the attributes say.
#[test]
fn attributes_change_no_byte() {
    let env = TestEnv::repo();
    env.write(
        ".gitattributes",
        "*.crlf text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE text\n* export-subst\n",
    );
    env.write("x.crlf", "a\r\nb\n");
    env.write("x.id", "$Id$ $Id: abc $\n");
    env.write("x.u16", b"a\0\n\0");
    env.sh("git add . && git commit -qm attributes").expect(0);
    env.write("x.crlf", "a\nb\r\n");
    env.write("y.u16", b"odd");
    let before = seen(env.work());
    checkpoint(&env);
    for path in ["x.crlf", "x.id", "x.u16", "y.u16"] {
        env.write(path, "changed");
    }
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(seen(env.work()), before);
}

// No hook, filter, fsmonitor or other configured program is ever run.
#[test]
fn nothing_that_is_configured_is_run() {
    let env = TestEnv::repo();
    env.write("b.txt", "b\n");
    env.sh("git add . && git commit -qm b && git commit -q --allow-empty -m c")
        .expect(0);
    let trap = env.root().join("trap");
    let trace = env.root().join("trace");
    env.script(
        "../trap",
        &format!("echo \"$0 $*\" >> '{}'; cat; exit 1", trace.display()),
    );
    let trap = trap.to_string_lossy().into_owned();
    env.sh(&format!(
        "mkdir ../hooks; for hook in applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit \
         post-index-change post-merge post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit \
         pre-push pre-rebase pre-receive prepare-commit-msg push-to-checkout reference-transaction sendemail-validate \
         update query-watchman; do cp {trap} ../hooks/$hook; cp {trap} .git/hooks/$hook; done
         echo '* filter=trap diff=trap merge=trap' > ../attributes"
    ))
    .expect(0);
    env.write(".gitattributes", "* filter=trap diff=trap merge=trap\n");
    for (key, value) in [
        ("core.fsmonitor", trap.as_str()),
        ("filter.trap.clean", &trap),
        ("filter.trap.smudge", &trap),
        ("filter.trap.process", &trap),
        ("filter.trap.required", "true"),
        ("diff.trap.command", &trap),
        ("diff.trap.textconv", &trap),
        ("diff.external", &trap),
        ("merge.trap.driver", &trap),
        (
            "core.attributesFile",
            &env.root().join("attributes").to_string_lossy(),
        ),
        ("core.pager", &trap),
        ("core.editor", &trap),
        ("core.sshCommand", &trap),
        ("core.alternateRefsCommand", &trap),
        ("uploadpack.packObjectsHook", &trap),
        ("gpg.program", &trap),
        ("commit.gpgSign", "true"),
        ("credential.helper", &trap),
    ] {
        env.git(&["config", key, value]);
    }
    for hooks in [true, false] {
        if hooks {
            env.git(&[
                "config",
                "core.hooksPath",
                &env.root().join("hooks").to_string_lossy(),
            ]);
        } else {
            env.git(&["config", "--unset", "core.hooksPath"]);
        }
        let _ = std::fs::remove_file(&trace);
        let first = checkpoint(&env);
        env.write("a.txt", "changed\n");
        env.write("new", "new\n");
        env.json(0, &["checkpoint", "create"]);
        env.json(0, &["checkpoint", "diff", "latest", "--patch"]);
        env.json(0, &["checkpoint", "diff", &first, "latest", "--patch"]);
        env.json(
            0,
            &[
                "rollback",
                "--to",
                &first,
                "--edits",
                "discard",
                "--restore-index",
            ],
        );
        env.json(0, &["undo", "--edits", "discard"]);
        env.json(
            0,
            &[
                "rollback",
                "--to",
                &first,
                "--edits",
                "discard",
                "--commits",
                "revert",
            ],
        );
        env.json(0, &["checkpoint", "verify"]);
        env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
        env.json(0, &["doctor"]);
        let traced = std::fs::read_to_string(&trace).unwrap_or_default();
        assert_eq!(traced, "", "something was run");
    }
}

// snapshot.md: an operation in progress is noted, and the capture is whole.
#[test]
fn operations_in_progress_are_noted() {
    let line = "git checkout -q -b side; echo side > a.txt; git commit -qam side; git checkout -q main; echo main > a.txt; git commit -qam main";
    for (start, name) in [
        ("git merge side", "merge"),
        ("git rebase side", "rebase"),
        ("git cherry-pick side", "cherry-pick"),
        (
            "echo more > a.txt; git commit -qam more; git revert HEAD~1",
            "revert",
        ),
        (
            "git bisect start; git bisect bad HEAD; git bisect good HEAD~1",
            "bisect",
        ),
        (
            "git format-patch -1 --stdout side > ../patch; git am ../patch",
            "am",
        ),
    ] {
        let env = TestEnv::repo();
        env.sh(line).expect(0);
        env.sh(start);
        let before = (
            seen(env.work()),
            env.git(&["ls-files", "--stage"]),
            env.git(&["status"]),
        );
        let created = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
        let manifest = env.git(&[
            "show",
            &format!(
                "{}^{{/recover: state}}:manifest.json",
                text(&created["commit"])
            ),
        ]);
        assert!(
            manifest.contains(&format!("\"operation\":\"{name}\"")),
            "{name}: {manifest}"
        );
        env.write("a.txt", "rolled back\n");
        env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
        let after = (
            seen(env.work()),
            env.git(&["ls-files", "--stage"]),
            env.git(&["status"]),
        );
        assert_eq!(after, before, "{name}");
    }
}

// What cannot be read in full is refused, never half-read.
#[test]
fn refused_with_a_reason() {
    let env = TestEnv::repo();
    let url = format!("file://{}", env.work().display());
    env.git(&["clone", "-q", &url, "../partial"]);
    env.sh("cd ../partial && git config core.repositoryFormatVersion 1 && git config extensions.partialClone origin")
        .expect(0);
    env.git(&["init", "-q", "--object-format=sha256", "../sha256"]);
    env.git(&["init", "-q", "--ref-format=reftable", "../reftable"]);
    for (folder, why, hint) in [
        ("../partial", "cannot be used", ""),
        (
            "../sha256",
            "uses SHA-256 object names, which recover cannot read yet",
            "",
        ),
        (
            "../reftable",
            "uses the reftable format for references, which recover cannot read yet",
            "refs migrate",
        ),
    ] {
        for command in [
            &["checkpoint", "create"][..],
            &["init"],
            &["hook", "install", "claude"],
        ] {
            let refused = env.error(10, &[&["-C", folder], command].concat());
            assert!(text(&refused["message"]).contains(why), "{refused}");
            assert!(
                refused["hint"].as_str().unwrap_or_default().contains(hint),
                "{refused}"
            );
        }
        // There is nothing to read, either.
        env.json(10, &["-C", folder, "status"]);
    }
}

/// What reads the ledger, and must do so whatever became of the repository.
const READS: [&[&str]; 8] = [
    &["status"],
    &["log"],
    &["runs"],
    &["report"],
    &["checkpoint", "list"],
    &["retry-status"],
    &["attempt", "list"],
    &["hook", "status"],
];

/// Reading works, says what is wrong, and `doctor` names it.
#[track_caller]
fn reads(env: &TestEnv, state: &str) {
    for command in READS {
        let answer = env.json(0, command);
        assert_eq!(
            answer["repository"]["state"], state,
            "{command:?}: {answer}"
        );
        let warned = env.recover(command).expect(0).stderr;
        assert_eq!(
            warned.contains("repository"),
            state != "ok",
            "{command:?}: {warned}"
        );
    }
    let doctor = env.json(if state == "ok" { 0 } else { 12 }, &["doctor"]);
    assert_eq!(doctor["repository"]["state"], state, "{doctor}");
    let named = |problem: &serde_json::Value| problem["code"] == format!("repository_{state}");
    assert_eq!(
        doctor["problems"]
            .as_array()
            .expect("a list")
            .iter()
            .any(named),
        state != "ok",
        "{doctor}"
    );
}

// Tools and agents change `core.bare` and `core.worktree`, and remove `.git`.
#[test]
fn reading_never_needs_a_repository_that_git_can_open() {
    let env = TestEnv::repo();
    env.recover(&[
        "run",
        "--run",
        "n",
        "--attempts",
        "1",
        "--no-wait",
        "--",
        "sh",
        "-c",
        "exit 1",
    ])
    .expect(8);
    reads(&env, "ok");
    for (change, state, left) in [
        ("git config core.bare true", "bare", "git config core.bare"),
        (
            "mkdir -p ../other && git config core.worktree ../../other",
            "elsewhere",
            "git config core.worktree",
        ),
        (
            "git config core.worktree ../../gone",
            "elsewhere",
            "git config core.worktree",
        ),
    ] {
        env.sh(change).expect(0);
        reads(&env, state);
        let refused = env.error(10, &["rollback", "--to", "initial", "--run", "n"]);
        assert!(
            text(&refused["hint"]).ends_with("doctor --repair"),
            "{refused}"
        );
        // It is the user's file: nothing is changed unasked.
        assert_eq!(
            env.error(13, &["doctor", "--repair"])["code"],
            "confirmation_needed"
        );
        env.json(12, &["doctor", "--repair", "--dry-run"]);
        reads(&env, state);
        let repaired = env.json(0, &["doctor", "--repair", "--yes"]);
        assert!(
            text(&repaired["repaired"][0]).contains("core."),
            "{repaired}"
        );
        let left = env.sh(left).stdout;
        assert!(left.is_empty() || left == "false\n", "{left}");
        reads(&env, "ok");
    }
    env.sh("cp .git/config ../config && echo '[core' >> .git/config")
        .expect(0);
    reads(&env, "unsupported");
    env.error(10, &["checkpoint", "create"]);
    env.sh("cp ../config .git/config").expect(0);
    reads(&env, "ok");
    env.sh("mv .git ../saved").expect(0);
    reads(&env, "missing");
    env.sh("git init -q .").expect(0);
    reads(&env, "replaced");
    env.sh("rm -r .git && mv ../saved .git").expect(0);
    reads(&env, "ok");
}

// A power failure can leave HEAD empty or full of zeros; git then says that there is no repository.
#[test]
fn a_damaged_head_is_named_and_written_again() {
    let env = TestEnv::repo();
    env.git(&["checkout", "-q", "-b", "feature/x"]);
    env.recover(&["checkpoint", "create", "--run", "n"])
        .expect(0);
    let restore = ["rollback", "--to", "initial", "--run", "n"];
    for damage in [
        ": > .git/HEAD",
        "echo junk > .git/HEAD",
        "head -c 21 /dev/zero > .git/HEAD",
        "rm .git/HEAD",
    ] {
        env.sh(damage).expect(0);
        reads(&env, "missing");
        let doctor = env.json(12, &["doctor"]);
        assert_eq!(doctor["problems"][0]["repairable"], true, "{doctor}");
        assert!(
            text(&doctor["problems"][0]["message"]).contains(".git/HEAD is missing or damaged"),
            "{doctor}"
        );
        let refused = env.error(10, &restore);
        assert!(
            text(&refused["hint"]).ends_with("doctor --repair"),
            "{refused}"
        );
        env.json(0, &["doctor", "--repair", "--yes"]);
        assert_eq!(env.read(".git/HEAD"), "ref: refs/heads/feature/x\n");
        reads(&env, "ok");
    }
    // What was switched to since is not known to the latest checkpoint.
    env.git(&["checkout", "-q", "-b", "other"]);
    env.sh(": > .git/HEAD").expect(0);
    let doctor = env.json(12, &["doctor", "--repair", "--yes"]);
    assert_eq!(doctor["problems"][0]["repairable"], false, "{doctor}");
    assert_eq!(env.read(".git/HEAD"), "");
    // Detached, and in a linked work tree.
    env.sh("echo ref: refs/heads/other > .git/HEAD; git worktree add -q --detach ../linked")
        .expect(0);
    env.recover(&["-C", "../linked", "checkpoint", "create", "--run", "l"])
        .expect(0);
    let head = env.read(".git/worktrees/linked/HEAD");
    env.sh(": > .git/worktrees/linked/HEAD").expect(0);
    env.recover(&["-C", "../linked", "doctor"]).expect(12);
    env.recover(&["-C", "../linked", "doctor", "--repair", "--yes"])
        .expect(0);
    assert_eq!(env.read(".git/worktrees/linked/HEAD"), head);
}

// A hook that cannot protect anything says so once a session, and does not look as if it did.
#[test]
fn a_hook_that_protects_nothing_says_so_once() {
    let env = TestEnv::repo();
    env.json(0, &["hook", "install", "claude"]);
    env.sh("git config core.bare true").expect(0);
    let call = |session: &str| {
        let event = serde_json::json!({"hook_event_name": "PreToolUse", "session_id": session, "tool_name": "Bash",
            "tool_input": {"command": "rm -rf ."}});
        env.recover_fed(event.to_string(), &["hook", "run", "claude"])
            .expect(0)
            .stderr
    };
    assert!(call("one").contains("nothing was done: core.bare is set"));
    assert_eq!(call("one"), "");
    assert!(call("two").contains("core.bare is set"));
    let status = env.json(0, &["hook", "status"]);
    let claude = status["hooks"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|hook| hook["agent"] == "claude");
    assert!(
        text(&claude.expect("it is installed")["note"]).starts_with("protects nothing here"),
        "{status}"
    );
}

/// Runs `recover` where system calls fail with this error; `None` where there is no `strace` to make them.
fn injected(env: &TestEnv, calls: &str, error: &str, args: &[&str]) -> Option<crate::env::Ran> {
    let traced = env
        .command("strace")
        .arg("-V")
        .output()
        .is_ok_and(|output| output.status.success());
    if !traced {
        return None;
    }
    let (trace, inject) = (
        format!("trace={calls}"),
        format!("inject={calls}:error={error}"),
    );
    let mut command = env.command("strace");
    command.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        &trace,
        "-e",
        &inject,
        env!("CARGO_BIN_EXE_recover"),
    ]);
    Some(crate::env::Ran::of(
        &command.args(args).output().expect("it runs"),
    ))
}

// exFAT, FAT, shared folders of virtual machines: no hard links, or no kernel locks.
#[test]
fn a_file_system_without_links_or_locks() {
    for (calls, error, said) in [
        ("linkat,link", "EPERM", "no hard links"),
        ("linkat,link", "ENOSYS", "no hard links"),
        ("flock", "ENOLCK", "no kernel locks"),
    ] {
        let env = TestEnv::repo();
        env.write("new.txt", "new\n");
        let Some(first) = injected(&env, calls, error, &["checkpoint", "create", "--run", "r"])
        else {
            return;
        };
        assert!(first.expect(0).stderr.contains(said));
        let run = |code: i32, args: &[&str]| {
            let ran = injected(&env, calls, error, args)
                .expect("there is strace")
                .expect(code);
            assert!(
                !ran.stderr.contains(said),
                "it is said once: {}",
                ran.stderr
            );
        };
        env.write("a.txt", "two\n");
        run(0, &["checkpoint", "create", "--run", "r"]);
        run(0, &["rollback", "--run", "r", "--to", "initial"]);
        assert_eq!(env.read("a.txt"), "one\n");
        run(0, &["undo"]);
        assert_eq!(env.read("a.txt"), "two\n");
        run(
            0,
            &[
                "run",
                "--run",
                "n",
                "--attempts",
                "1",
                "--no-wait",
                "--",
                "sh",
                "-c",
                "echo x > made.txt",
            ],
        );
        run(0, &["accept", "--run", "n", "--yes", "--all"]);
        assert!(env.git(&["ls-files"]).contains("made.txt"));
        run(0, &["checkpoint", "verify"]);
        run(0, &["doctor"]);
        env.git(&["fsck", "--strict", "--no-dangling"]);
        let left = env
            .sh("find .git .ultraplan -name '*.lock.held' -o -name '*.lock' -path '.git/[!r]*'")
            .stdout;
        assert_eq!(left, "");
    }
}

#[test]
fn the_current_folder_may_be_gone() {
    let env = TestEnv::repo();
    let program = env!("CARGO_BIN_EXE_recover");
    let work = env.work().display();
    let line = |args: &str| {
        format!("mkdir ../gone && cd ../gone && rmdir ../gone && {program} -C {work} {args}")
    };
    env.sh(&line("checkpoint create")).expect(0);
    env.sh(&line("status")).expect(0);
    assert_eq!(
        env.json(0, &["checkpoint", "list"])["checkpoints"]
            .as_array()
            .expect("a list")
            .len(),
        1
    );
}

// SIGXFSZ ends a process that does not expect it, with 153.
#[test]
fn a_limit_for_files_is_no_space() {
    let env = TestEnv::repo();
    env.sh("head -c 3000000 /dev/urandom > large").expect(0);
    let refused = env.sh(&format!(
        "ulimit -f 100; {} --json checkpoint create",
        env!("CARGO_BIN_EXE_recover")
    ));
    let error = refused.expect(14).json()["error"].take();
    assert!(text(&error["message"]).contains("ulimit -f"), "{error}");
    env.git(&["fsck", "--strict"]);
    env.json(0, &["checkpoint", "create"]);
}

// What the repository's own settings name is somebody's who may write there.
#[test]
fn a_dry_run_starts_nothing_that_the_repository_names() {
    let env = TestEnv::repo();
    let started = env.root().join("started");
    let program = |name: &str, rest: &str| {
        env.script(
            name,
            &format!("echo {name} >> {}; {rest}", started.display()),
        );
    };
    program(".git/hooks/post-index-change", "");
    program(".git/filter", "cat");
    env.sh("git config filter.x.clean \"$PWD/.git/filter\" && git config filter.x.required true")
        .expect(0);
    env.sh("echo '*.txt filter=x' > .gitattributes && git add -A && git commit -qm filter")
        .expect(0);
    env.json(
        0,
        &[
            "run",
            "--run",
            "n",
            "--attempts",
            "1",
            "--",
            "sh",
            "-c",
            "echo two > a.txt; echo n > new.txt",
        ],
    );
    let _ = std::fs::remove_file(&started);
    let plan = env.json(0, &["accept", "--run", "n", "--all", "--yes", "--dry-run"]);
    assert!(!started.exists(), "{:?}", std::fs::read_to_string(&started));
    assert!(
        plan.to_string().contains("new.txt") && plan.to_string().contains("a.txt"),
        "{plan}"
    );
    env.json(0, &["accept", "--run", "n", "--all", "--yes"]);
    assert!(started.exists());
}

// A mirror's `fetch --prune` takes every reference that the other side does not have.
#[test]
fn references_that_something_else_removed_are_set_again() {
    let env = TestEnv::repo();
    for content in ["one\n", "two\n", "three\n"] {
        env.write("a.txt", content);
        env.json(0, &["checkpoint", "create", "--run", "r"]);
    }
    env.sh(
        "git clone -q --bare . ../origin.git && git remote add --mirror=fetch origin ../origin.git",
    )
    .expect(0);
    env.sh("git fetch -q --update-head-ok --prune origin")
        .expect(0);
    assert_eq!(env.git(&["for-each-ref", "refs/recover"]), "");
    let said = env
        .recover(&["checkpoint", "create", "--run", "r"])
        .expect(0)
        .stderr;
    assert_eq!(said.matches("set the reference of").count(), 3, "{said}");
    env.json(0, &["rollback", "--run", "r", "--to", "initial"]);
    assert_eq!(env.read("a.txt"), "one\n");
    env.json(0, &["checkpoint", "verify"]);
}

#[test]
fn the_home_folder_is_a_project_only_with_its_tracked_files() {
    let env = TestEnv::plain();
    let home = env.root().join("home");
    std::fs::create_dir_all(home.join("Music/more")).unwrap();
    for (name, content) in [
        (".bashrc", "one\n"),
        ("Music/song", "la\n"),
        ("Music/more/.tracked", "t\n"),
        ("notes", "n\n"),
    ] {
        std::fs::write(home.join(name), content).unwrap();
    }
    let at = home.display().to_string();
    env.sh(&format!(
        "cd {at} && git init -q . && git add .bashrc Music/more/.tracked && git commit -qm dotfiles"
    ))
    .expect(0);
    let refused = env.error(13, &["-C", &at, "checkpoint", "create"]);
    assert!(
        text(&refused["message"]).contains("--allow-home"),
        "{refused}"
    );
    let created = env.json(
        0,
        &[
            "-C",
            &at,
            "--allow-home",
            "checkpoint",
            "create",
            "--run",
            "r",
        ],
    );
    assert_eq!(created["checkpoint"]["captured"]["files"], 2, "{created}");
    std::fs::write(home.join(".bashrc"), "two\n").unwrap();
    std::fs::write(home.join("Music/new"), "new\n").unwrap();
    // From now on it is known.
    env.json(0, &["-C", &at, "checkpoint", "create", "--run", "r"]);
    env.json(0, &["-C", &at, "rollback", "--run", "r", "--to", "initial"]);
    assert_eq!(
        std::fs::read_to_string(home.join(".bashrc")).unwrap(),
        "one\n"
    );
    assert!(home.join("Music/new").exists() && home.join("notes").exists());
    env.error(
        13,
        &[
            "-C",
            env.root().to_str().unwrap(),
            "--allow-home",
            "checkpoint",
            "create",
        ],
    );
}
