//! Files that git stores through a filter, encrypted say: their plain text does not leave the machine.

use std::path::Path;

use crate::env::{Ran, TestEnv};

/// A repository whose files in `vault` git stores encoded, with a secret word in one of them.
fn vault() -> TestEnv {
    let env = TestEnv::repo();
    env.script("../clean", "printf 'ENC:'; base64");
    env.script("../smudge", "tail -c +5 | base64 -d");
    let root = env.root();
    let at = |name: &str| root.join(name).to_string_lossy().into_owned();
    env.git(&["config", "filter.enc.clean", &at("clean")]);
    env.git(&["config", "filter.enc.smudge", &at("smudge")]);
    env.git(&["config", "filter.enc.required", "true"]);
    env.write(".gitattributes", "vault/** filter=enc\n*.big filter=lfs\n");
    env.write("vault/settings.yml", "launch-word swordfish\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "vault"]);
    assert!(
        !env.git(&["show", "HEAD:vault/settings.yml"])
            .contains("swordfish")
    );
    env
}

/// Every blob of a repository, as text.
fn blobs(env: &TestEnv, repository: &Path) -> String {
    let at = repository.to_string_lossy();
    let line = format!(
        "git -C '{at}' cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' | \
         while read t o; do [ $t = blob ] && git -C '{at}' cat-file -p $o; done; true"
    );
    env.sh(&line).expect(0).stdout
}

fn bare(env: &TestEnv, name: &str) -> std::path::PathBuf {
    let path = env.root().join(name);
    env.git(&["init", "-q", "--bare", &path.to_string_lossy()]);
    path
}

#[test]
fn plain_text_of_what_a_filter_encrypts_is_not_pushed() {
    let env = vault();
    let server = bare(&env, "state.git");
    env.git(&["remote", "add", "st", &server.to_string_lossy()]);
    let asked = env
        .recover(&["remote", "check", "--remote", "st"])
        .expect(13)
        .stderr;
    assert!(
        asked.contains("1 file that a filter encrypts stays here"),
        "{asked}"
    );
    // The agent copies the file, changes it, moves it out of the vault, and takes the attribute away.
    env.put(
        "../agent.sh",
        "cp vault/settings.yml copy.txt\n\
         if [ -e new.txt ]; then mv vault/settings.yml open.txt; rm .gitattributes; git add -A; fi\n\
         [ -e open.txt ] || echo 'launch-word swordfish2' > vault/settings.yml\n\
         echo 'plain new' > new.txt\n",
    );
    let run = [
        "run",
        "--remote",
        "st",
        "--yes",
        "--run",
        "n",
        "--iterations",
        "2",
        "--",
        "sh",
        "../agent.sh",
    ];
    env.recover(&run).expect(0);
    assert!(env.read("open.txt").contains("swordfish2"));
    env.recover(&["rollback", "--run", "n", "--to", "initial"])
        .expect(0);
    let sent = blobs(&env, &server);
    assert!(sent.contains("plain new"), "the rest is sent");
    assert!(!sent.contains("swordfish"), "{sent}");
}

#[test]
fn plain_text_of_what_a_filter_encrypts_is_in_no_export() {
    let env = vault();
    env.write("vault/settings.yml", "launch-word swordfish3\n");
    env.write("a.txt", "two\n");
    env.recover(&["checkpoint", "create"]).expect(0);
    let export =
        |format: &[&str]| env.json(3, &[&["checkpoint", "export", "latest"], format].concat());
    let stays = |document: &serde_json::Value| {
        document["withheld"]
            .to_string()
            .contains("vault/settings.yml")
    };

    assert!(stays(&export(&["--patch", "../x.patch"])));
    let patch = env.read("../x.patch");
    assert!(
        patch.contains("+two") && !patch.contains("swordfish"),
        "{patch}"
    );

    assert!(stays(&export(&["--bundle", "../x.bundle"])));
    let other = bare(&env, "other.git");
    env.git(&[
        "-C",
        &other.to_string_lossy(),
        "fetch",
        "-q",
        &env.root().join("x.bundle").to_string_lossy(),
        "refs/*:refs/*",
    ]);
    let sent = blobs(&env, &other);
    assert!(
        sent.contains("two\n") && !sent.contains("swordfish"),
        "{sent}"
    );
    env.git(&["-C", &other.to_string_lossy(), "fsck", "--strict"]);

    assert!(stays(&export(&[
        "--format",
        "seed-json",
        "--output",
        "../x.json"
    ])));
    let blob = env.git(&["hash-object", "--no-filters", "vault/settings.yml"]);
    let document = env.read("../x.json");
    assert!(
        document.contains("a.txt") && !document.contains(blob.trim()),
        "{document}"
    );
}

#[test]
fn a_file_that_a_filter_encrypts_leaves_where_the_user_says_so() {
    let env = vault();
    env.put(
        "../home/.config/recover/config.toml",
        "[remote]\nfiltered = \"send\"\n",
    );
    env.write("vault/settings.yml", "launch-word swordfish4\n");
    env.recover(&["checkpoint", "create"]).expect(0);
    env.recover(&["checkpoint", "export", "latest", "--patch", "../x.patch"])
        .expect(0);
    assert!(env.read("../x.patch").contains("swordfish4"));
    // Not for the project to say.
    env.put(".ultraplan/recover.toml", "[remote]\nfiltered = \"send\"\n");
    env.recover(&["trust"]).expect(2);
}

#[test]
fn a_bundle_of_a_partial_clone_holds_what_is_here() {
    let env = TestEnv::repo();
    env.write("big.txt", "of the first commit\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "two"]);
    env.write("big.txt", "of the second commit\n");
    env.git(&["commit", "-q", "-a", "-m", "three"]);
    env.git(&["config", "uploadpack.allowFilter", "true"]);
    env.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", env.work().display());
    let clone = env.root().join("clone");
    env.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        &url,
        &clone.to_string_lossy(),
    ]);
    let recover = |args: &[&str]| {
        let mut command = env.recover_command(args);
        command.current_dir(&clone);
        Ran::of(&command.output().expect("recover starts"))
    };
    std::fs::write(clone.join("a.txt"), "changed in the clone\n").expect("it is written");
    recover(&["checkpoint", "create"]).expect(0);
    recover(&["checkpoint", "export", "latest", "--bundle", "../x.bundle"]).expect(0);
    env.git(&["fetch", "-q", "../x.bundle", "refs/*:refs/taken/*"]);
    let name = env.git(&["for-each-ref", "--format=%(refname)", "refs/taken"]);
    assert_eq!(
        env.git(&["show", &format!("{}:a.txt", name.trim())]),
        "changed in the clone\n"
    );
}
