//! What is left out as ignored, and what a restore makes of it.

use crate::env::TestEnv;
use crate::seen::checkpoint;

// snapshot.md, capture: what git shows as untracked is captured, whatever other programs make of a pattern.
#[test]
fn what_git_shows_as_untracked_comes_back() {
    let env = TestEnv::repo();
    env.write(".gitignore", "*.{log,txt}\nf[[:digit:]]\n");
    env.write("notes.txt", "night\n");
    env.write("f1", "ignored\n");
    assert!(env.git(&["status", "--short"]).contains("?? notes.txt"));
    checkpoint(&env);
    env.write("notes.txt", "clobbered\n");
    env.write("f1", "still mine\n");
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(env.read("notes.txt"), "night\n");
    assert_eq!(env.read("f1"), "still mine\n");
}

fn captured(env: &TestEnv) -> Vec<String> {
    let id = checkpoint(env);
    let commit = env.json(0, &["checkpoint", "show", &id])["checkpoint"]["commit"].as_str().expect("an id").to_owned();
    env.git(&["ls-tree", "-r", "--name-only", &commit]).lines().map(str::to_owned).collect()
}

// The user's own excludes, where git finds them: the default place, another base folder, and a path below the home.
#[test]
fn the_users_excludes_are_found_where_git_finds_them() {
    let mut env = TestEnv::repo();
    let home = env.root().join("home");
    let write = |path: &str, rules: &str| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, rules).expect("written");
    };
    write(".config/git/ignore", "by-default\n");
    write("xdg/git/ignore", "by-xdg\n");
    write("own excludes", "by-own\n");
    for name in ["by-default", "by-xdg", "by-own"] {
        env.write(name, "x\n");
    }
    let without = |name: &str| -> Vec<String> {
        ["a.txt", "by-default", "by-own", "by-xdg"].into_iter().filter(|one| *one != name).map(str::to_owned).collect()
    };
    let agree = |env: &TestEnv, name: &str| {
        let by_git = env.git(&["ls-files", "-c", "-o", "--exclude-standard"]);
        let mut by_git: Vec<&str> = by_git.lines().filter(|path| !path.starts_with(".ultraplan")).collect();
        by_git.sort_unstable();
        assert_eq!(by_git, without(name), "by git");
        assert_eq!(captured(env), without(name));
    };
    agree(&env, "by-default");
    env.set("XDG_CONFIG_HOME", home.join("xdg").to_str().expect("text"));
    agree(&env, "by-xdg");
    env.git(&["config", "core.excludesFile", "~/own excludes"]);
    agree(&env, "by-own");
}

// A linked work tree has the rules of `info/exclude` of the repository it belongs to.
#[test]
fn a_linked_work_tree_has_the_repositorys_excludes() {
    let env = TestEnv::repo();
    env.sh("mkdir -p .git/info; echo mine > .git/info/exclude; git worktree add -q ../linked").expect(0);
    env.sh("cd ../linked; touch mine other").expect(0);
    let linked = env.root().join("linked");
    let linked = linked.to_str().expect("text");
    let id = env.json(0, &["-C", linked, "checkpoint", "create"])["checkpoint"]["commit"].clone();
    let listing = env.git(&["ls-tree", "-r", "--name-only", id.as_str().expect("an id")]);
    assert!(listing.lines().any(|path| path == "other"), "{listing}");
    assert!(!listing.lines().any(|path| path == "mine"), "{listing}");
}
