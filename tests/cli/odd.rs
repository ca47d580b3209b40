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
        let status = git(&["status", "--porcelain=v2", "--branch", "--untracked-files=all"]);
        (seen(&root), status, git(&["ls-files", "--stage", "-t"]))
    };
    git(&["update-index", "-q", "--refresh"]);
    let before = state();
    at(&["checkpoint", "create"]);
    assert_eq!(at(&["checkpoint", "create", "--if-changed"])["changed"], false);
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
    at(&["rollback", "--to", "latest", "--edits", "discard", "--restore-index"]);
    assert_eq!(state(), before, "with the index");
    at(&["checkpoint", "verify"]);
    git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn places_of_the_git_folder() {
    let env = TestEnv::repo();
    // A linked worktree of a bare repository.
    env.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    env.git(&["-C", "../bare.git", "worktree", "add", "-q", "-b", "linked", "../of-bare"]);
    round_trip(&env, "../of-bare");
    // `core.worktree`, and a git folder elsewhere.
    env.git(&["clone", "-q", "--separate-git-dir", "../elsewhere.git", ".", "../separate"]);
    round_trip(&env, "../separate");
    env.sh("mkdir ../tree && git clone -q . ../owner && cp a.txt ../tree && git -C ../owner config core.worktree ../../tree")
        .expect(0);
    env.sh("echo 'gitdir: ../owner/.git' > ../tree/.git").expect(0);
    round_trip(&env, "../tree");
    // Through a symlinked folder.
    env.sh("mkdir ../real && git clone -q . ../real/clone && ln -s real ../link").expect(0);
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
        assert_eq!(env.git(&["-C", &folder, "show", &format!("{}:other/z", text(&created["commit"]))]), "mine\n");
    }
    // Objects that the server still has are missing in a partial clone, and nothing fetches them.
    env.git(&["config", "uploadpack.allowFilter", "true"]);
    for filter in ["--filter=blob:none", "--filter=tree:0"] {
        let folder = clone(&filter[9..13], &["--sparse", filter]);
        let missing =
            || env.git(&["-C", &folder, "rev-list", "--objects", "--all", "--missing=print"]).matches('?').count();
        let before = missing();
        assert!(before > 0);
        env.json(0, &["-C", &folder, "checkpoint", "create"]);
        env.json(0, &["-C", &folder, "checkpoint", "verify"]);
        // The trees of the index are written; no content is.
        assert!((1..=before).contains(&missing()));
        round_trip(&env, &folder);
    }
    let unborn = TestEnv::plain();
    unborn.sh("git init -q; echo x > a.txt; git add .").expect(0);
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
    env.sh("git add . && git commit -qm b && git commit -q --allow-empty -m c").expect(0);
    let trap = env.root().join("trap");
    let trace = env.root().join("trace");
    env.script("../trap", &format!("echo \"$0 $*\" >> '{}'; cat; exit 1", trace.display()));
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
        ("core.attributesFile", &env.root().join("attributes").to_string_lossy()),
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
            env.git(&["config", "core.hooksPath", &env.root().join("hooks").to_string_lossy()]);
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
        env.json(0, &["rollback", "--to", &first, "--edits", "discard", "--restore-index"]);
        env.json(0, &["undo", "--edits", "discard"]);
        env.json(0, &["rollback", "--to", &first, "--edits", "discard", "--commits", "revert"]);
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
        ("echo more > a.txt; git commit -qam more; git revert HEAD~1", "revert"),
        ("git bisect start; git bisect bad HEAD; git bisect good HEAD~1", "bisect"),
        ("git format-patch -1 --stdout side > ../patch; git am ../patch", "am"),
    ] {
        let env = TestEnv::repo();
        env.sh(line).expect(0);
        env.sh(start);
        let before = (seen(env.work()), env.git(&["ls-files", "--stage"]), env.git(&["status"]));
        let created = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
        let manifest = env.git(&["show", &format!("{}^{{/recover: state}}:manifest.json", text(&created["commit"]))]);
        assert!(manifest.contains(&format!("\"operation\":\"{name}\"")), "{name}: {manifest}");
        env.write("a.txt", "rolled back\n");
        env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
        let after = (seen(env.work()), env.git(&["ls-files", "--stage"]), env.git(&["status"]));
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
    for folder in ["../partial", "../sha256", "../reftable"] {
        let refused = env.json(10, &["-C", folder, "checkpoint", "create"]);
        assert!(text(&refused["error"]["message"]).contains("cannot be used"), "{refused}");
    }
}
