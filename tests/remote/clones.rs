//! A run goes on in clones that do not have all of their repository.

use crate::env::TestEnv;
use crate::machines::{LEAVES_A, NIGHT, REMOTE, RESUME, machine, machine_at, push_agent};
use crate::servers::{Kind, Server};

/// A run that stopped on machine `a`, on a commit that is not the tip of the branch any more.
fn stopped(server: &Server) {
    push_agent(server, LEAVES_A, "exit 0");
    let a = machine(server, "a");
    a.write("large.txt", "a line\n".repeat(1000));
    a.recover(&NIGHT).expect(143);
    let author = machine(server, "later");
    for number in 0..3 {
        author.write("a.txt", format!("{number}\n"));
        author.git(&["commit", "-qam", "later"]);
    }
    author.git(&["push", "-q", "origin", "HEAD:main"]);
}

/// Takes the run up and looks at what came.
fn goes_on(env: &TestEnv, what: &str) {
    let before = env.git(&["config", "--local", "--list"]);
    let fetched = env.recover(&["remote", "fetch", "--run", "night", "--remote", REMOTE]);
    assert_eq!(fetched.code, 0, "{what}: {}", fetched.stderr);
    let ran = env.recover(&RESUME);
    assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
    let who = env.read("who.txt");
    assert!(
        who.starts_with("a\n") && who.ends_with("b\n"),
        "{what}: {who}\n{}",
        ran.stderr
    );
    assert_eq!(env.read("sub/new.txt"), "x\n", "{what}");
    assert_eq!(env.read("large.txt").lines().count(), 1000, "{what}");
    assert_eq!(
        env.git(&["config", "--local", "--list"]),
        before,
        "{what}: the clone is configured as it was"
    );
}

#[test]
fn a_run_goes_on_in_shallow_and_partial_clones() {
    for how in [
        &["--depth=1"][..],
        &["--filter=blob:none"],
        &["--filter=tree:0"],
    ] {
        let Some(server) = Server::start(Kind::Daemon) else {
            return;
        };
        stopped(&server);
        let b = machine_at(&server, server.port, "b", how);
        goes_on(&b, &format!("{how:?}"));
    }
}

/// The server of the runs is not the one that promised what is missing.
#[test]
fn a_partial_clone_takes_up_a_run_from_another_server() {
    let (Some(server), state) = (
        Server::start(Kind::Daemon),
        Server::start(Kind::Path).unwrap(),
    ) else {
        return;
    };
    stopped(&server);
    let name = "refs/recover-runs/night";
    let moved = format!("{name}:{name}");
    server.git(&["push", "-q", &state.url(), &moved]);
    server.git(&["update-ref", "-d", name]);
    let b = machine_at(&server, server.port, "b", &["--filter=blob:none"]);
    b.git(&["remote", "rename", REMOTE, "code"]);
    b.git(&["remote", "add", REMOTE, &state.url()]);
    goes_on(&b, "another server");
}
