//! Machines: clones of one server's repository, each with a home, a configuration and a host name of its own.

use std::path::Path;

use recover::testing::git::Repo;
use recover::testing::git::{Answer, Limits, Remote};
use recover::testing::model::ObjectId;

use crate::env::TestEnv;
use crate::servers::Server;

use std::time::Duration;

/// The name of the server on every machine.
pub const REMOTE: &str = "origin";

/// A machine of that name, with a clone.
pub fn machine(server: &Server, name: &str) -> TestEnv {
    machine_at(server, server.port, name, &[])
}

/// The same, which reaches the server through a port of a proxy; `how` is for `git clone`.
pub fn machine_at(server: &Server, port: u16, name: &str, how: &[&str]) -> TestEnv {
    let mut env = TestEnv::plain();
    let (settings, variables) = server.login();
    for (name, value) in &variables {
        env.set(name, value);
    }
    env.set("RECOVER_TEST_HOST", name);
    let settings: Vec<String> = settings
        .iter()
        .flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
        .collect();
    // A store has no repository: that is another remote.
    let is_store = server.kind.is_store();
    let url = server.url_at(if is_store { server.port } else { port });
    // What a path names is copied by links without the protocol.
    let url = if url.starts_with('/') && !how.is_empty() {
        format!("file://{url}")
    } else {
        url
    };
    let mut args = vec!["clone", "-q"];
    args.extend(settings.iter().map(String::as_str));
    args.extend(how);
    args.extend([url.as_str(), "."]);
    env.git(&args);
    if is_store {
        env.git(&["remote", "rename", REMOTE, "home"]);
        let url = server.store_url_at(port);
        configure(&env, &format!("[store.{REMOTE}]\nurl = '{url}'\n"));
    }
    env
}

/// Has the user's configuration say this, and where the store is.
pub fn configure(env: &TestEnv, text: &str) {
    let folder = env.root().join("home/.config/recover");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("config.toml");
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    let store = known.find("[store.").map_or("", |at| &known[at..]);
    std::fs::write(file, format!("{text}{store}")).expect("written");
}

/// A file that says how the library is to reach the server: it takes git's configuration from this process.
pub fn repo(env: &TestEnv, server: &Server) -> Repo {
    let (_, variables) = server.login();
    if let Some((_, ssh)) = variables.iter().find(|(name, _)| name == "GIT_SSH_COMMAND") {
        env.git(&["config", "core.sshCommand", ssh]);
    }
    Repo::discover(env.work(), None).expect("a repository")
}

/// The remote as the library has it.
pub fn remote(repo: &Repo) -> Remote {
    Remote::named(repo, REMOTE, None).expect("a remote")
}

/// Half a minute, and nobody stops it.
pub fn limits() -> Limits<'static> {
    Limits::new(Duration::from_secs(30), &|| false)
}

/// A commit with one file, on top of another one.
pub fn commit(env: &TestEnv, content: &str, parent: Option<&ObjectId>) -> ObjectId {
    let blob = env
        .sh(&format!(
            "printf %s '{content}' | git hash-object -w --stdin"
        ))
        .expect(0)
        .stdout;
    let tree = env
        .sh(&format!(
            "printf '100644 blob {}\\tfile\\n' | git mktree",
            blob.trim()
        ))
        .expect(0)
        .stdout;
    let mut args = vec!["commit-tree", tree.trim(), "-m", "state"];
    if let Some(parent) = parent {
        args.extend(["-p", parent.0.as_str()]);
    }
    ObjectId(env.git(&args).trim().to_owned())
}

/// What came of one update.
pub fn push(repo: &Repo, name: &str, old: Option<&ObjectId>, new: Option<&ObjectId>) -> Answer<()> {
    remote(repo).push(repo, name, old, new, &limits())
}

/// Puts an agent and a check on the server's branch.
pub fn push_agent(server: &Server, agent: &str, check: &str) {
    let author = machine(server, "author");
    author.script("agent.sh", agent);
    author.script("check.sh", check);
    author.write("TASK.md", "Make the checks pass.\n");
    author.git(&["add", "-A"]);
    author.git(&["commit", "-qm", "agent and checks"]);
    let home = if server.kind.is_store() {
        "home"
    } else {
        "origin"
    };
    author.git(&["push", "-q", home, "HEAD:main"]);
}

/// A file of random bytes, which nothing compresses.
pub fn noise(path: &Path, length: usize) {
    let mut random = fastrand::Rng::with_seed(length as u64);
    let content: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    std::fs::write(path, content).expect("written");
}

/// An agent that notes its machine in `who.txt` in each iteration, and has its supervisor stop in the second one on machine `a`.
pub const LEAVES_A: &str = "echo \"$RECOVER_TEST_HOST\" >> who.txt; mkdir -p sub; echo x > sub/new.txt\n\
     if [ \"$RECOVER_TEST_HOST $RECOVER_ITERATION\" = 'a 2' ]; then kill -TERM $PPID; sleep 20; fi";

/// The command line of a run of that agent.
pub const NIGHT: [&str; 10] = [
    "run",
    "--run",
    "night",
    "--remote",
    REMOTE,
    "--yes",
    "--iterations",
    "2",
    "--",
    "./agent.sh",
];

/// The command line that resumes it.
pub const RESUME: [&str; 7] = [
    "resume", "--run", "night", "--remote", REMOTE, "--yes", "--trust",
];
