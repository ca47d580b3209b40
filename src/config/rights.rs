//! Which file may set what: the project's, which comes with a clone, or the user's own.
//!
//! What starts programs or widens rights counts in a project's file only where the user trusts it.

use serde_json::Value as Json;

/// Whose configuration file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// `.ultraplan/recover.toml` of a project.
    Project,
    /// The user's own, for all projects.
    User,
}

/// What may stand in which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// Only in a project's.
    Project,
    /// In a project's where it counts as it stands, and in the user's.
    Both,
    /// Only in the user's.
    User,
}

/// A path, which includes all below it, and the files that it may stand in. The longest that fits decides; what none
/// fits belongs into a project's file.
const FILES: &[(&str, Files)] = &[
    ("agent", Files::Both),
    ("isolated", Files::Both),
    ("notify", Files::Both),
    ("otel", Files::User),
    ("redact", Files::Both),
    // Where something is sent to, what of it, and whose word is taken is never a project's to say.
    ("remote", Files::User),
    ("run", Files::Both),
    // A project's file must not widen it.
    ("run.confine_write", Files::User),
    ("skip_permissions", Files::Both),
    ("store", Files::User),
    ("ui", Files::User),
    // A project's file must not write elsewhere, nor keep from being copied what it comes with.
    ("vault", Files::User),
];

/// Where the user's word goes before the project's.
const USER_FIRST: [&str; 3] = ["notify", "run.confine", "skip_permissions"];

/// What starts programs or widens rights.
const GUARDED: [&str; 11] = [
    "agent",
    "feedback",
    "isolated.setup",
    // What is shared is not isolated.
    "isolated.share",
    "notify",
    // What a stranger has masked is not seen when it is asked about.
    "redact",
    "runner.agent",
    "runner.command",
    "runner.fallback",
    "runner.shell",
    "skip_permissions",
];

/// Whether `path` is `above`, or lies in it.
fn is_in(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a section or key may stand in the file of `owner`.
pub(super) fn may_set(owner: Owner, path: &str) -> bool {
    let fitting = FILES.iter().filter(|(above, _)| is_in(path, above));
    let files = fitting
        .max_by_key(|(above, _)| above.len())
        .map_or(Files::Project, |(_, files)| *files);
    match owner {
        Owner::Project => files != Files::User,
        Owner::User => files != Files::Project,
    }
}

/// Whether a value counts in a project's file only where the user trusts it: it starts something, or permits something.
pub(super) fn is_guarded(path: &str, value: &Json) -> bool {
    let is_harmless = match value {
        Json::Null | Json::Bool(false) => true,
        // No agent of anybody's is named.
        Json::String(word) => path == "runner.agent" && ["auto", "none"].contains(&word.as_str()),
        _ => false,
    };
    !is_harmless && GUARDED.iter().any(|above| is_in(path, above))
}

/// Whether the user's value of a key goes before the project's.
pub(super) fn is_user_first(path: &str) -> bool {
    USER_FIRST.iter().any(|above| is_in(path, above))
}
