//! Decides which failures wait for a change by a person (permissions, credentials), and whether it happened.

use crate::model::attempt::{Precondition, PreconditionKind, Preconditions};
use crate::model::decision::{Action, Decision, Strategy};
use crate::model::failure::{Cause, Failure};
use crate::model::run::Run;
use crate::model::time::Timestamp;

/// How many paths are taken out of a message.
const MAX_CANDIDATES: usize = 64;

/// Whether a failure with this cause depends on something that somebody has to change.
pub(crate) fn is_conditional(cause: Cause) -> bool {
    matches!(cause, Cause::PermissionDenied | Cause::AuthFailed)
}

/// What the run waits for to change. `None` where it waits for nothing of that kind, or its budget is used up.
pub(crate) fn awaited(run: &Run) -> Option<&Preconditions> {
    let failure = run
        .failure
        .as_ref()
        .filter(|failure| is_conditional(failure.cause))?;
    let decision = run.decision.as_ref()?;
    let waits = decision.has(Action::ManualFix)
        && decision.has(Action::Escalate)
        && decision.stopped_by.is_none();
    if !waits || run.status.has_ended() || run.is_being_fixed() {
        return None;
    }
    let iteration = run.iterations.get(failure.iteration?)?;
    iteration
        .attempts
        .iter()
        .rfind(|attempt| Some(attempt.number) == failure.attempt)?
        .preconditions
        .as_deref()
}

/// The decision once something changed: the very same again. `None` while all is as it was.
pub(crate) fn reconsidered(
    run: &Run,
    before: &Preconditions,
    after: &[Precondition],
    now: Timestamp,
) -> Option<Decision> {
    let decision = run.decision.as_ref()?;
    let what = changed(&before.seen, after)?;
    Some(Decision {
        actions: vec![Action::Retry],
        strategy: Some(Strategy::RetrySame),
        reason: format!("{what} since it failed: a retry is allowed"),
        decided_at: now,
        ..decision.clone()
    })
}

/// The first thing that is not as it was, as the beginning of a sentence.
fn changed(before: &[Precondition], after: &[Precondition]) -> Option<String> {
    let state_in = |all: &[Precondition], of: &Precondition| {
        let same = |one: &&Precondition| (one.kind, &one.name) == (of.kind, &of.name);
        all.iter().find(same).and_then(|one| one.state.clone())
    };
    let known = |one: &&Precondition| one.kind != PreconditionKind::Unknown;
    before.iter().chain(after).filter(known).find_map(|one| {
        let (was, is) = (state_in(before, one), state_in(after, one));
        // Without a credential nothing passes that failed with it; whoever looks may simply not have it.
        let may_help = is.is_some()
            || !matches!(
                one.kind,
                PreconditionKind::Variable | PreconditionKind::Credentials
            );
        (was != is && may_help).then(|| sentence(one, was.as_deref(), is.as_deref()))
    })
}

fn sentence(of: &Precondition, was: Option<&str>, is: Option<&str>) -> String {
    let name = &of.name;
    match (of.kind, was, is) {
        (PreconditionKind::User, ..) => "the user or a group of the user's changed".to_owned(),
        (PreconditionKind::Permissions, Some(was), Some(is)) => {
            format!("{name} changed ({was}; now {is})")
        }
        (PreconditionKind::Variable, None, _) => format!("{name} was set"),
        (_, None, _) => format!("{name} was created"),
        (_, _, None) => format!("{name} was removed"),
        _ => format!("{name} changed"),
    }
}

/// What the messages of a failure may name as a path, and whether it is nothing else: a word may be just a word.
pub(crate) fn named_paths(failure: &Failure) -> Vec<(&str, bool)> {
    let texts = failure
        .evidence
        .iter()
        .map(|evidence| evidence.text.as_str())
        .chain([failure.message.as_str()]);
    let mut found: Vec<(&str, bool)> = Vec::new();
    for text in texts {
        let quoted = text
            .split(['\'', '"', '`', '‘', '’', '“', '”'])
            .skip(1)
            .step_by(2)
            .map(|name| (name, true));
        let parts = text
            .split(": ")
            .map(str::trim)
            .map(|part| (part, part.contains('/') && !part.contains(' ')));
        let is_end = |c: char| {
            matches!(
                c,
                ',' | ';' | ':' | '(' | ')' | '[' | ']' | '<' | '>' | '\'' | '"' | '`'
            )
        };
        let words = text
            .split_whitespace()
            .map(|word| word.trim_matches(is_end))
            .map(|word| (word, word.contains('/')));
        for (name, is_explicit) in quoted.chain(parts).chain(words) {
            let is_new = found.iter().all(|(known, _)| *known != name);
            if is_new && !name.is_empty() && !name.contains('\0') && found.len() < MAX_CANDIDATES {
                found.push((name, is_explicit && !name.contains("://")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::classify::known;

    fn one(kind: PreconditionKind, name: &str, state: Option<&str>) -> Precondition {
        Precondition {
            kind,
            name: name.to_owned(),
            state: state.map(str::to_owned),
        }
    }

    #[test]
    fn the_first_thing_that_changed_is_named() {
        use PreconditionKind::{Credentials, Permissions, Unknown, User, Variable};
        let before = [
            one(Permissions, "secret", Some("mode 0000, owner 1:1")),
            one(User, "user", Some("1:1")),
            one(Credentials, "~/.netrc", None),
            one(Variable, "A_TOKEN", Some("aa")),
            one(Unknown, "x", Some("y")),
        ];
        let with = |number: usize, state: Option<&str>| {
            let mut after = before[..4].to_vec();
            after[number].state = state.map(str::to_owned);
            changed(&before, &after)
        };
        assert_eq!(
            changed(&before, &before[..4]),
            None,
            "what is not known is not looked at"
        );
        assert_eq!(
            with(0, Some("mode 0644, owner 1:1")).as_deref(),
            Some("secret changed (mode 0000, owner 1:1; now mode 0644, owner 1:1)")
        );
        assert_eq!(
            with(2, Some("1:2:3:4")).as_deref(),
            Some("~/.netrc was created")
        );
        assert_eq!(with(3, Some("bb")).as_deref(), Some("A_TOKEN changed"));
        // Whoever looks may not have what the attempt had.
        assert_eq!(with(3, None), None);
        let more = [&before[..4], &[one(Variable, "B_TOKEN", Some("cc"))]].concat();
        assert_eq!(changed(&before, &more).as_deref(), Some("B_TOKEN was set"));
    }

    #[test]
    fn paths_are_found_in_messages() {
        for (message, name, is_explicit) in [
            ("cat: secret: Permission denied", "secret", false),
            ("cat: my secret: Permission denied", "my secret", false),
            (
                "cp: cannot create regular file '/usr/bin/x y': Permission denied",
                "/usr/bin/x y",
                true,
            ),
            (
                "PermissionError: [Errno 13] Permission denied: 'out/a.txt'",
                "out/a.txt",
                true,
            ),
            ("sh: 1: ./run.sh: Permission denied", "./run.sh", true),
            (
                "Error: EACCES: permission denied, open '/srv/x'",
                "/srv/x",
                true,
            ),
        ] {
            let failure = Failure {
                message: message.to_owned(),
                ..known::cancelled()
            };
            let found = named_paths(&failure);
            assert!(found.contains(&(name, is_explicit)), "{message}: {found:?}");
        }
    }
}
