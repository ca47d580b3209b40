//! A project's configuration that is broken: who goes on without it, and what that means for the files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::env::TestEnv;

const PROJECT: &str = ".ultraplan/recover.toml";

/// Files that say nothing, each with what is said of it.
const BROKEN: [(&str, &str); 4] = [
    ("[retr", "recover.toml:1:6"),
    (
        "[remote]\nname = 'origin'\n",
        "'remote' does not belong in a project's configuration",
    ),
    ("[retry]\nmax_attempt = 3\n", "did you mean"),
    (
        "[checkpoint]\nlane_file = '../lanes.json'\n",
        "is not in the project",
    ),
];

#[test]
fn nobody_is_kept_from_looking_keeping_and_going_back() {
    let env = TestEnv::repo();
    // Otherwise a rollback would bring back the one that there was.
    env.put(".git/info/exclude", ".ultraplan/recover.toml\n");
    env.recover(&["run", "--", "sh", "-c", "echo two > a.txt"])
        .expect(0);
    for (text, said) in BROKEN {
        env.put(PROJECT, text);
        for args in [
            &["status"][..],
            &["runs"],
            &["log"],
            &["report"],
            &["attempt", "list"],
            &["doctor"],
            &["checkpoint", "create"],
            &["checkpoint", "list"],
            &["checkpoint", "show", "latest"],
            &["rollback", "--to", "@1", "--dry-run"],
            &["rollback", "--to", "@1"],
            &["undo"],
            &["redo"],
            &["undo"],
        ] {
            let warnings = env.json(0, args)["warnings"].to_string();
            let is_said = warnings.contains(said)
                && warnings.contains("recover.toml")
                && warnings.contains("defaults");
            assert!(is_said, "{text} {args:?}: {warnings}");
            assert_eq!(
                warnings.matches(said).count(),
                1,
                "{text} {args:?}: {warnings}"
            );
        }
        assert!(env.recover(&[]).expect(0).stderr.contains(said));
        assert_eq!(env.read("a.txt"), "two\n");
        for args in [
            &["run", "--", "true"][..],
            &["resume"],
            &["step", "s", "--", "true"],
            &["bisect", "--", "true"],
            &["accept"],
            &["attempt", "start"],
            &["retry-status"],
            &["checkpoint", "prune"],
            &["close"],
            &["trust"],
            &["config"],
        ] {
            assert!(
                env.error(2, args)["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(said)),
                "{text} {args:?}"
            );
        }
    }
    // The environment is what somebody says now.
    let mut env = env;
    env.set("RECOVER_MAX_ATTEMPTS", "many");
    assert!(
        env.error(2, &["status"])["message"]
            .as_str()
            .is_some_and(|text| text.contains("RECOVER_MAX_ATTEMPTS"))
    );
    env.set("RECOVER_MAX_ATTEMPTS", "2")
        .set("RECOVER_SAFE_MODE", "read_only");
    env.error(13, &["rollback", "--to", "@1"]);
}

#[test]
fn a_file_that_cannot_be_read_is_broken_too() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    env.put(PROJECT, "");
    let path = env.work().join(PROJECT);
    fs::set_permissions(path, fs::Permissions::from_mode(0o0)).expect("a mode");
    assert!(
        env.json(0, &["status"])["warnings"]
            .to_string()
            .contains("cannot be read")
    );
}

// What the file left out of checkpoints, took in although it is ignored, or took although it is large: with defaults in
// its place nothing of that is lost.
#[test]
fn a_rollback_by_defaults_loses_nothing() {
    let env = TestEnv::repo();
    env.put(PROJECT, "[checkpoint]\nexclude = ['data/**', '*.iso']\ninclude = ['out/**']\nmax_file_size = '100MiB'\n");
    env.write(".gitignore", "out/\n");
    env.write("data/old", "mine, old\n");
    env.write("out/built", "built, one\n");
    let large = |byte: u8| vec![byte; 51 << 20];
    env.write("large.bin", large(b'1'));
    env.write("f.txt", "one\n");
    env.json(0, &["checkpoint", "create"]);
    env.write("f.txt", "two\n");
    env.write("data/old", "mine, changed\n");
    env.write("data/new", "mine, new\n");
    env.write("own.iso", "mine\n");
    env.write("out/built", "built, two\n");
    env.write("out/more", "built later\n");
    env.write("large.bin", large(b'2'));
    env.put(PROJECT, "[checkpoint\n");
    let read = |path: &str| fs::read(env.work().join(path)).expect("a file");
    let mine = || {
        let mine = ["data/old", "data/new", "own.iso"].map(|path| env.read(path));
        assert_eq!(mine, ["mine, changed\n", "mine, new\n", "mine\n"]);
    };
    let done = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(
        (env.read("f.txt").as_str(), env.read("out/built").as_str()),
        ("one\n", "built, one\n")
    );
    assert!(
        read("large.bin") == large(b'2'),
        "defaults do not capture it"
    );
    assert!(done.to_string().contains("over max_file_size"), "{done:#}");
    assert_eq!(
        env.read("out/more"),
        "built later\n",
        "defaults do not capture it"
    );
    mine();
    env.json(0, &["undo"]);
    assert_eq!(
        (env.read("f.txt").as_str(), env.read("out/built").as_str()),
        ("two\n", "built, two\n")
    );
    assert!(read("large.bin") == large(b'2'));
    mine();
}
