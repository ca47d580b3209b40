//! `checkpoint export`: files that work elsewhere.

use crate::env::TestEnv;
use crate::seen::{checkpoint, text};

fn recorded() -> (TestEnv, String) {
    let env = TestEnv::repo();
    env.write("a.txt", "two\n");
    env.write("new file", b"\x00\x01binary");
    let id = checkpoint(&env);
    (env, id)
}

/// The commit of the only reference of a checkpoint.
fn commit(env: &TestEnv) -> (String, String) {
    let line = env.git(&[
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/recover",
    ]);
    let (name, commit) = line.trim().split_once(' ').expect("one reference");
    (name.to_owned(), commit.to_owned())
}

// Contract: a patch against the base, to a file or to standard output.
#[test]
fn a_patch_is_exported() {
    let (env, id) = recorded();
    let done = env.json(
        0,
        &["checkpoint", "export", "latest", "--patch", "../out.patch"],
    );
    assert_eq!(
        (text(&done["checkpoint_id"]), &done["changed"]),
        (id, &true.into())
    );
    assert_eq!(done["path"], env.root().join("out.patch").to_str().unwrap());
    env.sh("recover=; git stash -qu && git apply ../out.patch && git diff --stat && cat a.txt")
        .expect(0);
    assert_eq!(env.read("a.txt"), "two\n");
    let shown = env
        .recover(&["checkpoint", "export", "latest", "--patch", "-"])
        .expect(0);
    assert_eq!(
        shown.stdout,
        std::fs::read_to_string(env.root().join("out.patch")).unwrap()
    );
    env.json(2, &["checkpoint", "export", "latest", "--patch", "-"]);
    env.recover(&["checkpoint", "export", "latest"]).expect(2);
    env.recover(&[
        "checkpoint",
        "export",
        "latest",
        "--patch",
        "x",
        "--bundle",
        "y",
    ])
    .expect(2);
}

// Contract: what is there is replaced only when that is said; a dry run writes nothing; nothing is left over.
#[test]
fn a_file_that_is_there_stays() {
    let (env, _) = recorded();
    let export = ["checkpoint", "export", "latest", "--patch", "out"];
    let planned = env.json(0, &[&["--dry-run"], &export[..]].concat());
    assert_eq!(
        (&planned["changed"], env.exists("out")),
        (&false.into(), false)
    );
    env.write("out", "mine\n");
    assert_eq!(env.json(13, &export)["error"]["code"], "already_exists");
    assert_eq!(env.read("out"), "mine\n");
    env.json(0, &[&export[..], &["--force"]].concat());
    assert!(env.read("out").starts_with("diff --git"));
    env.write("out", "mine\n");
    env.write(".recover-tmp-999999999-aB3", "left over");
    env.json(0, &[&["--yes"], &export[..]].concat());
    assert!(env.read("out").starts_with("diff --git") && !env.exists(".recover-tmp-999999999-aB3"));
    env.json(
        1,
        &[
            "checkpoint",
            "export",
            "latest",
            "--patch",
            "no/such/folder/out",
        ],
    );
    env.json(2, &["checkpoint", "export", "latest", "--patch", ".."]);
    env.json(4, &["checkpoint", "export", "nope", "--patch", "x"]);
}

// Contract: a bundle is verified and fetched by git, in a clone and in an empty repository.
#[test]
fn a_bundle_is_fetched_anywhere() {
    let (env, _) = recorded();
    let (name, commit) = commit(&env);
    env.json(
        0,
        &[
            "checkpoint",
            "export",
            "latest",
            "--bundle",
            "../out.bundle",
        ],
    );
    assert!(
        env.git(&["bundle", "verify", "../out.bundle"])
            .contains(&commit)
    );
    for folder in [
        "git clone -q . ../clone && cd ../clone",
        "git init -q ../empty && cd ../empty",
    ] {
        let line = format!(
            "{folder} && git fetch -q {}/out.bundle '{name}:{name}'",
            env.root().display()
        );
        env.sh(&line).expect(0);
        let folder = folder.rsplit('/').next().unwrap();
        let there = env.sh(&format!(
            "cd ../{folder} && git rev-parse '{name}' && git show '{name}:a.txt' && git fsck --strict --no-dangling"
        ));
        assert_eq!(
            there.expect(0).stdout,
            format!("{commit}\ntwo\n"),
            "{folder}"
        );
    }
    // Without git as well.
    let plain = TestEnv::plain();
    plain.write("a", "1\n");
    checkpoint(&plain);
    plain.json(
        0,
        &[
            "checkpoint",
            "export",
            "latest",
            "--bundle",
            "../out.bundle",
        ],
    );
    plain.sh("git init -q ../empty && cd ../empty && git fetch -q ../out.bundle 'refs/recover/*:refs/recover/*' && git fsck --strict").expect(0);
}

// A shallow clone names what it does not have as prerequisites.
#[test]
fn a_bundle_of_a_shallow_clone_says_what_it_needs() {
    let env = TestEnv::repo();
    env.sh(
        "echo two > a.txt; git commit -qam second; git clone -q --depth 1 file://$PWD ../shallow",
    )
    .expect(0);
    let inside = env.root().join("shallow");
    env.json(0, &["-C", inside.to_str().unwrap(), "checkpoint", "create"]);
    let out = env.root().join("out.bundle");
    env.json(
        0,
        &[
            "-C",
            inside.to_str().unwrap(),
            "checkpoint",
            "export",
            "latest",
            "--bundle",
            out.to_str().unwrap(),
        ],
    );
    env.git(&[
        "fetch",
        "-q",
        "../out.bundle",
        "refs/recover/*:refs/recover/*",
    ]);
    env.git(&["fsck", "--strict"]);
    assert!(
        !env.sh("git init -q ../empty && cd ../empty && git bundle verify ../out.bundle")
            .stderr
            .is_empty()
    );
}

// Exit 12: what is damaged is not exported.
#[test]
fn a_damaged_checkpoint_is_not_exported() {
    let (env, _) = recorded();
    let (name, _) = commit(&env);
    let blob = env.git(&["rev-parse", &format!("{name}:new file")]);
    let (folder, file) = blob.trim().split_at(2);
    if std::fs::remove_file(env.work().join(".git/objects").join(folder).join(file)).is_ok() {
        env.json(
            12,
            &["checkpoint", "export", "latest", "--bundle", "../out"],
        );
        assert!(!env.root().join("out").exists());
    }
}
