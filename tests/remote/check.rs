//! What a server guarantees is found out, not believed.

use recover::testing::git::{Examined, Remote};

use crate::machines::{limits, machine, remote, repo};
use crate::servers::{Kind, Server};

fn examined(remote: &Remote, repo: &recover::testing::git::Repo) -> Examined {
    remote.examine(repo, "0a1b", 1 << 16, &limits()).unwrap()
}

fn holds(examined: &Examined) -> Vec<(&'static str, Option<bool>)> {
    examined
        .findings
        .iter()
        .map(|finding| (finding.name, finding.holds))
        .collect()
}

#[test]
fn a_git_server_guarantees_all() {
    for server in Server::all() {
        let env = machine(&server, "one");
        let here = repo(&env, &server);
        let found = examined(&remote(&here), &here);
        let all = [
            "create",
            "visible",
            "fast_forward",
            "compare_and_swap",
            "size",
            "delete",
        ];
        assert_eq!(
            holds(&found),
            all.map(|name| (name, Some(true))),
            "{:?}: {found:?}",
            server.kind
        );
        assert!(
            found.is_usable() && found.left.is_none(),
            "{:?}",
            server.kind
        );
        assert_eq!(
            server.git(&["for-each-ref", "refs/recover-runs"]),
            "",
            "{:?}",
            server.kind
        );
        assert_eq!(
            env.git(&["for-each-ref", "refs/recover*"]),
            "",
            "{:?}",
            server.kind
        );
        assert_eq!(
            env.sh("ls -A .git/recover | grep check").stdout,
            "",
            "{:?}",
            server.kind
        );
    }
}

#[test]
fn a_strict_server_lacks_nothing_that_a_run_needs() {
    let server = Server::start(Kind::Path).unwrap();
    server.make_strict();
    let env = machine(&server, "one");
    let here = repo(&env, &server);
    let found = examined(&remote(&here), &here);
    assert!(found.is_usable(), "{found:?}");
    assert_eq!(holds(&found).last(), Some(&("delete", Some(false))));
    let left = found.left.unwrap();
    assert!(left.starts_with(Remote::SCRATCH) && server.at(&left).is_some());
}

#[test]
fn a_server_that_hides_or_refuses_is_not_usable() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let here = repo(&env, &server);
    server.git(&["config", "uploadpack.hideRefs", "refs/recover-runs"]);
    let found = examined(&remote(&here), &here);
    assert!(
        !found.is_usable() && holds(&found).contains(&("visible", Some(false))),
        "{found:?}"
    );
    server.git(&["config", "receive.hideRefs", "refs/recover-runs"]);
    let found = examined(&remote(&here), &here);
    assert!(
        !found.is_usable() && holds(&found)[0] == ("create", Some(false)),
        "{found:?}"
    );
    assert!(found.findings[0].detail.contains("hidden ref"), "{found:?}");
}

/// A server that sets without comparing: a hook moves the reference back between what was read and what is written, as one
/// that serves from copies that are behind would.
#[test]
fn a_server_that_does_not_compare_is_found_out() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let here = repo(&env, &server);
    server.hook(
        "pre-receive",
        "while read -r old new name; do\n\
         case $old in 0000*) ;; *) env -u GIT_QUARANTINE_PATH git update-ref \"$name\" \"$old\" ;; esac\n\
         done",
    );
    let found = examined(&remote(&here), &here);
    assert!(!found.is_usable(), "{found:?}");
    assert!(
        holds(&found).contains(&("compare_and_swap", Some(false))),
        "{found:?}"
    );
}
