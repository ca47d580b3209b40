//! Repositories inside the work tree: captured by their own checkpoint, linked, verified, restored, pruned.

use serde_json::Value;

use crate::checkpoints::layout_0_1::loosen;
use crate::env::TestEnv;
use crate::seen::{Seen, assert_clean, checkpoint, paths, seen, text};

/// A submodule, an independent repository with one inside it, and one without a commit; each with changes.
fn workspace() -> TestEnv {
    let env = TestEnv::repo();
    let line = "set -e
        git init -q ../library; cd ../library; echo lib > lib.c; git add .; git commit -qm lib; cd ../work
        git -c protocol.file.allow=always submodule --quiet add ../library module; git commit -qm module
        git init -q own; cd own; echo 1 > tracked; git add .; git commit -qm own
        git init -q deeper; echo d > deeper/d; cd ..
        git init -q unborn; echo u > unborn/u
        printf 'vendored\\n' > .gitignore; git init -q vendored; echo v > vendored/v
        echo changed > module/lib.c; echo new > 'module/new file'; echo staged > own/staged; git -C own add staged";
    env.sh(line).expect(0);
    env
}

fn nested(env: &TestEnv, selector: &str) -> Vec<(String, String)> {
    let shown = env.json(0, &["checkpoint", "show", selector]);
    let list = shown["nested"].as_array().expect("a list").iter();
    list.map(|one| {
        (
            text(&one["path"]),
            one["checkpoint"].as_str().unwrap_or_default().to_owned(),
        )
    })
    .collect()
}

fn refs(env: &TestEnv, folder: &str) -> Vec<String> {
    let list = env.git(&[
        "-C",
        folder,
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        "refs/recover",
    ]);
    list.lines().map(str::to_owned).collect()
}

/// The files of a repository, without those that are git's or ours, at any depth.
fn content(env: &TestEnv, folder: &str) -> Seen {
    let own = |path: &[u8]| {
        path.split(|byte| *byte == b'/')
            .any(|name| name == b".git" || name == b".ultraplan")
    };
    seen(&env.work().join(folder))
        .into_iter()
        .filter(|(path, _)| !own(path))
        .collect()
}

// snapshot.md: nested repositories are captured by their own checkpoint inside them and linked.
#[test]
fn they_are_captured_and_linked() {
    let env = workspace();
    let index = env.git(&["-C", "own", "ls-files", "--stage"]);
    let created = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
    assert_eq!(created["skipped"], serde_json::json!([]));
    let links = nested(&env, "latest");
    assert_eq!(
        links
            .iter()
            .map(|(path, _)| path.as_str())
            .collect::<Vec<_>>(),
        ["module", "own", "unborn"]
    );
    for (path, commit) in &links {
        env.git(&["-C", path, "gc", "-q", "--prune=now"]);
        assert_eq!(refs(&env, path).len(), 1, "{path}");
        assert!(
            refs(&env, path)[0].contains(&text(&created["id"]))
                && refs(&env, path)[0].ends_with(commit.as_str())
        );
    }
    let (module, own, unborn) = (&links[0].1, &links[1].1, &links[2].1);
    assert_eq!(
        env.git(&["-C", "module", "show", &format!("{module}:lib.c")]),
        "changed\n"
    );
    assert_eq!(
        env.git(&["-C", "module", "show", &format!("{module}:new file")]),
        "new\n"
    );
    assert_eq!(
        env.git(&["-C", "own", "show", &format!("{own}:staged")]),
        "staged\n"
    );
    assert_eq!(
        env.git(&["-C", "unborn", "show", &format!("{unborn}:u")]),
        "u\n"
    );
    assert_eq!(refs(&env, "own/deeper").len(), 1);
    assert_eq!(env.git(&["-C", "own", "ls-files", "--stage"]), index);
    assert!(!env.exists("vendored/.git/recover"), "ignored");
    let shown = env
        .recover(&["checkpoint", "show", "latest"])
        .expect(0)
        .stdout;
    assert!(shown.contains(&format!("module: {module}")), "{shown}");
    env.json(0, &["checkpoint", "verify"]);
    assert_clean(&env);
}

// `--if-changed` looks into them; what has not changed is linked to the same commit again.
#[test]
fn a_change_inside_is_a_change() {
    let env = workspace();
    checkpoint(&env);
    let first = nested(&env, "latest");
    assert_eq!(
        env.json(0, &["checkpoint", "create", "--if-changed"])["changed"],
        false
    );
    checkpoint(&env);
    assert_eq!(nested(&env, "latest"), first);
    assert_eq!(refs(&env, "module").len(), 2, "one for each");
    env.write("own/deeper/d", "other\n");
    assert_eq!(
        env.json(0, &["checkpoint", "create", "--if-changed"])["changed"],
        true
    );
    let now = nested(&env, "latest");
    assert_eq!((&now[0], &now[2]), (&first[0], &first[2]));
    assert_ne!(now[1], first[1]);
    let diff =
        |args: &[&str]| paths(&env.json(0, &[&["checkpoint", "diff"], args].concat())["changes"]);
    assert_eq!(diff(&["@1", "@3"]), ["own"]);
    assert_eq!(diff(&["@1"]), ["own"]);
    assert_eq!(diff(&["@1", "@2"]), [""; 0]);
    assert_eq!(diff(&["@3"]), [""; 0]);
}

fn kept(document: &Value, path: &str) -> String {
    let all = document["result"]["kept"]
        .as_array()
        .expect("a list")
        .iter();
    text(
        &all.clone()
            .find(|one| one["path"] == path)
            .unwrap_or_else(|| panic!("{document}"))["reason"],
    )
}

// A rollback keeps what is nested, says so, and names a command that brings it back byte for byte.
#[test]
fn the_command_that_kept_names_brings_everything_back() {
    let env = workspace();
    env.write("module/.gitattributes", "* text eol=crlf ident\n");
    env.write("module/crlf", "a $Id$\r\nb\n");
    let before = ["module", "own", "unborn", "own/deeper"].map(|path| content(&env, path));
    checkpoint(&env);
    env.sh("rm module/lib.c; echo x > module/crlf; echo more > module/more; rm own/staged; echo y > own/deeper/d; rm unborn/u; echo z > a.txt")
        .expect(0);
    let after = content(&env, "module");
    let back = env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "one\n");
    assert_eq!(content(&env, "module"), after, "kept");
    let recover = env!("CARGO_BIN_EXE_recover");
    let run = |reason: &str| {
        let (_, command) = reason
            .split_once("comes back with: ")
            .unwrap_or_else(|| panic!("{reason}"));
        env.sh(&format!(
            "cd / && {recover} {} --edits discard",
            command.strip_prefix("recover ").unwrap()
        ))
        .expect(0);
    };
    for path in ["module", "unborn"] {
        run(&kept(&back, path));
    }
    let reason = kept(&back, "own");
    let (_, command) = reason.split_once("comes back with: ").unwrap();
    let inner = format!(
        "{recover} --json {} --edits discard",
        command.strip_prefix("recover ").unwrap()
    );
    let inner = env.sh(&format!("cd / && {inner}")).expect(0).json();
    run(&kept(&inner, "deeper"));
    let now = ["module", "own", "unborn", "own/deeper"].map(|path| content(&env, path));
    assert_eq!(now, before);
    env.json(0, &["-C", "module", "undo"]);
    assert_eq!(content(&env, "module"), after);
    env.json(0, &["-C", "module", "doctor"]);
}

// Never a write into a nested repository, also where the checkpoint had plain files in its place.
#[test]
fn a_folder_that_became_a_repository_is_left_alone() {
    let env = TestEnv::repo();
    env.write("lib/x", "1\n");
    checkpoint(&env);
    env.sh("rm lib/x; git init -q lib; echo 2 > lib/y")
        .expect(0);
    for commit in [false, true] {
        if commit {
            env.sh("cd lib && git add . && git commit -qm y").expect(0);
        }
        let back = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
        assert!(!env.exists("lib/x"), "{back}");
        assert!(kept(&back, "lib/x").contains("nested repository"));
    }
}

#[test]
fn prune_verify_and_leftovers() {
    let env = workspace();
    // The run's first one stays while it is open.
    checkpoint(&env);
    checkpoint(&env);
    env.write("own/tracked", "2\n");
    env.write("own/deeper/d", "2\n");
    checkpoint(&env);
    let all = refs(&env, "own");
    let gone = nested(&env, "@2");
    env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
    for folder in ["module", "own", "unborn", "own/deeper"] {
        assert_eq!(refs(&env, folder).len(), 2, "{folder}");
    }
    let left = refs(&env, "own");
    let stray = all
        .iter()
        .find(|one| !left.contains(one))
        .expect("one that was removed")
        .clone();
    assert!(stray.ends_with(&gone[1].1));
    // A kill between the nested reference and the outer one.
    let (name, commit) = stray.split_once(' ').unwrap();
    env.git(&["-C", "own", "update-ref", name, commit]);
    checkpoint(&env);
    assert!(!refs(&env, "own").contains(&stray), "removed");
    assert_eq!(refs(&env, "own").len(), 3);
    // Somebody else's stay.
    env.git(&[
        "-C",
        "own",
        "update-ref",
        "refs/recover/x/ckpt_20200101_000000_0001-0123456789",
        "HEAD",
    ]);
    checkpoint(&env);
    assert_eq!(refs(&env, "own").len(), 5);
    let blob = env.git(&["-C", "unborn", "hash-object", "u"]);
    let object = format!("unborn/.git/objects/{}/{}", &blob[..2], blob[2..].trim());
    loosen(&env.work().join("unborn"));
    if env.exists(&object) {
        std::fs::remove_file(env.work().join(object)).unwrap();
        let report = env.json(12, &["checkpoint", "verify", "latest"]);
        assert!(
            text(&report["problems"][0]["message"]).contains("nested repository unborn"),
            "{report}"
        );
    }
}

// What cannot be captured is listed with the reason.
#[test]
fn what_cannot_be_captured_is_listed() {
    let env = TestEnv::repo();
    let line = "git init -q --object-format=sha256 sha256
        git init -q elsewhere; mkdir ../aside; git -C elsewhere config core.worktree ../../../aside
        git init -q bare; git -C bare config core.bare true
        mkdir same; echo 'gitdir: ../.git' > same/.git; echo x > same/x
        mkdir gone; echo 'gitdir: ../nowhere' > gone/.git
        git init -q damaged; git -C damaged commit -q --allow-empty -m x; echo x > damaged/.git/index
        git init -q flood; for n in 1 2 3 4 5; do echo > flood/$n; done; mkdir .ultraplan
        printf '[checkpoint]\\nmax_untracked_files = 4\\n' > .ultraplan/recover.toml; echo .ultraplan > .gitignore";
    env.sh(line).expect(0);
    let created = env.json(3, &["checkpoint", "create"])["checkpoint"].clone();
    let reason = |path: &str| {
        let all = created["skipped"].as_array().unwrap();
        text(
            &all.iter()
                .find(|one| one["path"] == path)
                .unwrap_or_else(|| panic!("{path}: {created}"))["reason"],
        )
    };
    for (path, why) in [
        ("sha256", "recover cannot read yet"),
        ("elsewhere", "its work tree is"),
        ("bare", "bare"),
        ("same", "shares its git folder"),
        ("damaged", "damaged: the index"),
        ("flood", "untracked files"),
        ("gone", "there is no repository"),
    ] {
        assert!(
            reason(path).starts_with("nested repository: ") && reason(path).contains(why),
            "{path}: {created}"
        );
    }
    env.sh("rm -r damaged gone").expect(0);
    env.json(0, &["checkpoint", "create"]);
}

// A linked worktree inside shares its references with the repository around it.
#[test]
fn a_linked_worktree_inside() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "-b", "one", "trees/one"]);
    env.git(&["worktree", "add", "-q", "-b", "two", "trees/two"]);
    env.write("trees/one/a.txt", "1\n");
    env.write("trees/two/a.txt", "2\n");
    for _ in 0..3 {
        checkpoint(&env);
        let links = nested(&env, "latest");
        assert_eq!(env.git(&["show", &format!("{}:a.txt", links[0].1)]), "1\n");
        assert_eq!(env.git(&["show", &format!("{}:a.txt", links[1].1)]), "2\n");
    }
    assert_eq!(
        env.json(0, &["checkpoint", "list", "--all-runs"])["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(refs(&env, ".").len(), 9);
    // The run's first one stays while it is open.
    env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
    assert_eq!(refs(&env, ".").len(), 6);
    env.json(0, &["checkpoint", "verify"]);
    env.json(0, &["doctor"]);
}

// A work tree holds what others wrote: a `.git` file or link in it is no leave to write into another project.
#[test]
fn a_git_file_that_leads_elsewhere_is_not_followed() {
    let env = TestEnv::repo();
    let line = "set -e
        git init -q ../victim; cd ../victim; echo v > v; git add .; git commit -qm v; cd ../work
        mkdir file linked link folder; for one in file linked link folder; do echo x > $one/x; done
        echo 'gitdir: ../../victim/.git' > file/.git
        git -C ../victim worktree add -q --detach ../beside
        cp ../beside/.git linked/.git
        ln -s ../../victim/.git link/.git
        mkdir folder/.git; cp ../victim/.git/HEAD folder/.git; ln -s ../../../victim/.git/objects folder/.git/objects
        cp -r ../victim/.git/refs ../victim/.git/config folder/.git";
    env.sh(line).expect(0);
    let victim = || seen(&env.root().join("victim/.git"));
    let before = victim();
    let created = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
    assert!(victim() == before, "something was written there");
    let all = created["skipped"].as_array().unwrap();
    let reason = |path: &str| {
        text(
            &all.iter()
                .find(|one| one["path"] == path)
                .unwrap_or_else(|| panic!("{path}: {created}"))["reason"],
        )
    };
    assert!(
        reason("file").contains("does not lead back here"),
        "{created}"
    );
    assert!(reason("linked").contains("git knows"), "{created}");
    assert!(reason("folder").contains("another project"), "{created}");
    assert!(
        reason("link/.git").contains("stands for the repository itself"),
        "{created}"
    );
    env.remove("link/x");
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(env.read("link/x"), "x\n");
    assert!(victim() == before, "something was written there");
}

// A submodule's folder without its repository holds files like any other.
#[test]
fn files_in_the_folder_of_a_submodule_without_its_repository_are_captured() {
    let env = workspace();
    env.sh("rm -r module; mkdir module; echo x > module/x")
        .expect(0);
    assert_eq!(
        env.json(0, &["checkpoint", "create"])["checkpoint"]["skipped"],
        serde_json::json!([])
    );
    env.sh("rm -r module").expect(0);
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(env.read("module/x"), "x\n");
    env.json(0, &["undo"]);
    assert!(!env.exists("module"));
}

/// What the tree at a path of a checkpoint's state commit lists.
fn copied(env: &TestEnv, checkpoint: &str) -> Vec<String> {
    let id = text(&env.json(0, &["checkpoint", "show", checkpoint])["checkpoint"]["commit"]);
    let parents = env.git(&["show", "-s", "--format=%P", &id]);
    let state = parents
        .split_whitespace()
        .next_back()
        .expect("a state commit")
        .to_owned();
    env.git(&["ls-tree", "-r", "--name-only", &state, "nested"])
        .lines()
        .map(str::to_owned)
        .collect()
}

// snapshot.md: their files are also in the outer database, under the outer reference; nothing is copied twice, and what
// only removed checkpoints held goes with them.
#[test]
fn their_files_are_in_the_outer_database_too() {
    let env = workspace();
    env.write("own/large", vec![7_u8; 3 << 20]);
    env.write("own/many/file", "1");
    checkpoint(&env);
    let list = copied(&env, "latest");
    for file in [
        "lib.c",
        "new file",
        "staged",
        "large",
        "many/file",
        "d",
        "u",
    ] {
        assert!(
            list.iter()
                .any(|path| path.ends_with(&format!("tree/{file}"))),
            "{file}: {list:?}"
        );
    }
    env.sh("git gc -q --prune=now").expect(0);
    env.json(0, &["checkpoint", "verify"]);
    let objects = || {
        env.sh("git count-objects -v | awk '/^(count|in-pack)/ {sum += $2} END {print sum}'")
            .stdout
    };
    let before: u64 = objects().trim().parse().unwrap();
    checkpoint(&env);
    let after: u64 = objects().trim().parse().unwrap();
    assert!(after - before < 8, "{before} {after}");
    env.write("own/many/file", "only in this one");
    checkpoint(&env);
    let blob = env.git(&["-C", "own", "hash-object", "many/file"]);
    env.git(&["cat-file", "-e", blob.trim()]);
    env.write("own/many/file", "2");
    checkpoint(&env);
    loosen(env.work());
    env.json(0, &["checkpoint", "prune", "--keep-last", "1", "--yes"]);
    assert_ne!(
        env.sh(&format!("git cat-file -e {}", blob.trim())).code,
        0,
        "pruned"
    );
    env.json(0, &["checkpoint", "verify"]);
    let blob = env.git(&["-C", "own", "hash-object", "many/file"]);
    let object = format!(".git/objects/{}/{}", &blob[..2], blob[2..].trim());
    std::fs::remove_file(env.work().join(object)).unwrap();
    env.json(12, &["checkpoint", "verify", "latest"]);
    env.write("own/many/file", "3");
    checkpoint(&env);
    env.json(0, &["checkpoint", "verify", "latest"]);
}
