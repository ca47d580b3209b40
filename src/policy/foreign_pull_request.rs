//! Whether a CI job works on a pull request from another repository.
//! What a stranger wrote is run there, so that nothing is sent from it with the user's rights, and no run is resumed.

use serde_json::Value;

/// Reads an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The file that describes the event, as GitHub and what follows it name it.
pub(crate) fn event_file(env: Environment<'_>) -> Option<String> {
    let kind = env("GITHUB_EVENT_NAME")?;
    (kind.starts_with("pull_request") || kind == "workflow_run")
        .then(|| env("GITHUB_EVENT_PATH").unwrap_or_default())
}

/// The repository that the pull request of this job comes from, where that is another one; `None` where it is not, or there is
/// none. `event` is what [`event_file`] holds; one that says nothing may be a stranger's.
pub(crate) fn foreign_pull_request(env: Environment<'_>, event: Option<&Value>) -> Option<String> {
    let unknown = || "a repository that is not named".to_owned();
    if event_file(env).is_some() {
        let text = |path: &str| {
            event
                .and_then(|event| event.pointer(path))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let here = text("/repository/full_name").or_else(|| env("GITHUB_REPOSITORY"));
        let is_of_run = env("GITHUB_EVENT_NAME").is_some_and(|kind| kind == "workflow_run");
        let is_pull_request = !is_of_run
            || text("/workflow_run/event").is_none_or(|kind| kind.starts_with("pull_request"));
        let head = text(if is_of_run {
            "/workflow_run/head_repository/full_name"
        } else {
            "/pull_request/head/repo/full_name"
        });
        if is_pull_request && (head.is_none() || head != here) {
            return Some(head.unwrap_or_else(unknown));
        }
    }
    let differ = |one: &str, other: &str| {
        let one = env(one).filter(|one| !one.is_empty())?;
        (Some(&one) != env(other).as_ref()).then_some(one)
    };
    let is =
        |name: &str, value: &str| env(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    // GitLab
    differ(
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID",
        "CI_MERGE_REQUEST_PROJECT_ID",
    )
    .map(|number| env("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH").unwrap_or(number))
    // Azure Pipelines
    .or_else(|| is("SYSTEM_PULLREQUEST_ISFORK", "true").then(unknown))
    // CircleCI
    .or_else(|| env("CIRCLE_PR_USERNAME").filter(|owner| !owner.is_empty()))
    // Jenkins
    .or_else(|| env("CHANGE_FORK").filter(|fork| !fork.is_empty()))
    // Travis CI, AppVeyor
    .or_else(|| differ("TRAVIS_PULL_REQUEST_SLUG", "TRAVIS_REPO_SLUG"))
    .or_else(|| differ("APPVEYOR_PULL_REQUEST_HEAD_REPO_NAME", "APPVEYOR_REPO_NAME"))
    // Buildkite
    .or_else(|| {
        let from = differ("BUILDKITE_PULL_REQUEST_REPO", "BUILDKITE_REPO")?;
        let is_here = env("BUILDKITE_REPO")
            .is_some_and(|here| path_of(&here).eq_ignore_ascii_case(path_of(&from)));
        (!is_here).then_some(from)
    })
}

/// What a URL of git's names on its host, as `owner/name`: the same repository has one for each protocol.
fn path_of(url: &str) -> &str {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        // As ssh's: `host:path`.
        None => url.split_once(':').map_or(url, |(_, path)| path),
    };
    let path = path.trim_matches('/');
    path.strip_suffix(".git").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn from(vars: &[(&str, &str)], event: Option<&Value>) -> Option<String> {
        let env = |name: &str| {
            vars.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        foreign_pull_request(&env, event)
    }

    #[test]
    fn a_forks_pull_request_is_foreign_and_ones_own_is_not() {
        let event = |head: &str| json!({"repository": {"full_name": "me/x"}, "pull_request": {"head": {"repo": {"full_name": head}}}});
        for kind in ["pull_request", "pull_request_target", "pull_request_review"] {
            let vars = [
                ("GITHUB_EVENT_NAME", kind),
                ("GITHUB_EVENT_PATH", "/e.json"),
            ];
            assert_eq!(
                from(&vars, Some(&event("you/x"))).as_deref(),
                Some("you/x"),
                "{kind}"
            );
            assert_eq!(from(&vars, Some(&event("me/x"))), None, "{kind}");
            assert!(from(&vars, None).is_some(), "nothing is known of it");
            let gone = json!({"repository": {"full_name": "me/x"}, "pull_request": {"head": {"repo": null}}});
            assert!(from(&vars, Some(&gone)).is_some(), "the fork was deleted");
        }
        let vars = [("GITHUB_EVENT_NAME", "push"), ("GITHUB_REPOSITORY", "me/x")];
        assert_eq!(from(&vars, None), None);
        let run = |kind: &str, head: &str| {
            let run = json!({"event": kind, "head_repository": {"full_name": head}});
            json!({"repository": {"full_name": "me/x"}, "workflow_run": run})
        };
        let vars = [
            ("GITHUB_EVENT_NAME", "workflow_run"),
            ("GITHUB_EVENT_PATH", "/e.json"),
        ];
        assert!(from(&vars, Some(&run("pull_request", "you/x"))).is_some());
        assert_eq!(from(&vars, Some(&run("push", "you/x"))), None);
        assert_eq!(from(&vars, Some(&run("pull_request", "me/x"))), None);
    }

    #[test]
    fn other_services_name_forks_too() {
        let gitlab = [
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "7"),
            ("CI_MERGE_REQUEST_PROJECT_ID", "5"),
        ];
        assert_eq!(from(&gitlab, None).as_deref(), Some("7"));
        assert_eq!(
            from(&[gitlab[0], ("CI_MERGE_REQUEST_PROJECT_ID", "7")], None),
            None
        );
        for vars in [
            [("SYSTEM_PULLREQUEST_ISFORK", "True")],
            [("CIRCLE_PR_USERNAME", "you")],
            [("CHANGE_FORK", "you")],
        ] {
            assert!(from(&vars, None).is_some(), "{vars:?}");
        }
        assert_eq!(from(&[("SYSTEM_PULLREQUEST_ISFORK", "False")], None), None);
        assert_eq!(from(&[], None), None);
    }

    #[test]
    fn one_repository_has_many_urls() {
        let of = |head: &str, here: &str| {
            from(
                &[
                    ("BUILDKITE_PULL_REQUEST_REPO", head),
                    ("BUILDKITE_REPO", here),
                ],
                None,
            )
            .is_some()
        };
        let here = "git@github.com:acme/x.git";
        for head in [
            here,
            "https://github.com/acme/x.git",
            "https://github.com/Acme/x",
            "ssh://git@github.com:22/acme/x.git/",
            "git://github.com/acme/x.git",
            "",
        ] {
            assert!(!of(head, here), "{head}");
        }
        for head in [
            "https://github.com/you/x.git",
            "git@github.com:you/x",
            "https://github.com/acme/y",
            "acme",
        ] {
            assert!(of(head, here), "{head}");
        }
    }
}
