//! Two machines name checkpoints alike: the same second, the same number.

use crate::machines::{LEAVES_A, NIGHT, RESUME, machine, push_agent};
use crate::servers::{Kind, Server};

const NOW: &str = "2026-10-21T07:28:00Z";

#[test]
fn checkpoints_of_the_same_name_are_kept_apart() {
    let server = Server::start(Kind::Path).unwrap();
    push_agent(&server, LEAVES_A, "exit 0");
    let on = |name: &str| {
        let mut env = machine(&server, name);
        env.set("RECOVER_TEST_NOW", NOW);
        env
    };
    let (a, b) = (on("a"), on("b"));
    a.recover(&NIGHT).expect(143);
    b.write("a.txt", "what is b's alone\n");
    b.recover(&["run", "--run", "local", "--", "true"])
        .expect(0);
    b.git(&["checkout", "-q", "a.txt"]);
    let ids = |env: &crate::env::TestEnv, run: &str| {
        let listed = env.json(0, &["checkpoint", "list", "--run", run]);
        let all = listed["checkpoints"].as_array().unwrap().clone();
        all.iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (of_a, of_b) = (ids(&a, "night"), ids(&b, "local"));
    assert!(
        of_b.iter().any(|id| of_a.contains(id)),
        "that is what it is about: {of_a:?} {of_b:?}"
    );

    b.recover(&RESUME).expect(0);
    assert!(b.read("who.txt").starts_with("a\n") && b.read("who.txt").ends_with("b\n"));
    let (night_here, local) = (ids(&b, "night"), ids(&b, "local"));
    assert_eq!(local, of_b, "the other run has what it had");
    assert!(
        night_here.len() >= of_a.len() && !night_here.iter().any(|id| local.contains(id)),
        "{night_here:?}"
    );
    let first = night_here
        .iter()
        .find(|id| id.starts_with(&of_a[0]) || id.starts_with(of_a.last().unwrap()))
        .unwrap();
    b.recover(&["checkpoint", "verify", "--run", "night"]);
    b.recover(&["checkpoint", "show", first]).expect(0);

    // On the server, and back at the first machine, they have the names that they were taken with.
    a.recover(&RESUME);
    let back = ids(&a, "night");
    assert!(of_a.iter().all(|id| back.contains(id)), "{of_a:?} {back:?}");
    assert!(a.read("who.txt").ends_with("b\n"));
}
