//! The references of runs on a server, and of what was seen of them there.

use crate::git::repo::ref_component;
use crate::model::id::NONE;
use crate::model::id::RunId;
use crate::model::run::RunKey;

/// Where a server has the runs, one reference each.
pub(crate) const RUNS: &str = "refs/recover-runs/";
/// Where a server has what those left who lost a run.
pub(crate) const SIDE: &str = "refs/recover-runs-side/";
/// Where a clone keeps what it saw last of a server's runs.
const TRACKING: &str = "refs/recover-tracking/";
/// Where what was fetched is named until it is verified.
const INCOMING: &str = "refs/recover-incoming/";
/// Where what is pushed is named until it is there.
const PENDING: &str = "refs/recover-pending/";

/// A run's place below [`RUNS`].
pub(crate) fn run_component(key: &RunKey) -> String {
    let id = ref_component(key.run_id.as_str());
    if key.phase == NONE && key.lane == NONE {
        return id;
    }
    // No component has a `+`.
    format!(
        "{id}+{}+{}",
        ref_component(&key.phase),
        ref_component(&key.lane)
    )
}

/// The run's reference on a server.
pub(crate) fn run_ref(key: &RunKey) -> String {
    format!("{RUNS}{}", run_component(key))
}

/// The reference on a server of what the holder of claim `fencing` left when it lost the run.
pub(crate) fn side_ref(key: &RunKey, fencing: u64) -> String {
    format!("{SIDE}{}/{fencing}", run_component(key))
}

/// The reference here of what was seen last of a run on a remote.
pub(crate) fn tracking_ref(remote: &str, key: &RunKey) -> String {
    format!("{TRACKING}{}/{}", ref_component(remote), run_component(key))
}

/// What is on its way to a remote.
pub(crate) fn pending_ref(remote: &str, key: &RunKey) -> String {
    format!("{PENDING}{}/{}", ref_component(remote), run_component(key))
}

/// The reference here of what was seen last of the reference of a run there.
pub(crate) fn tracking_of(remote: &str, there: &str) -> Option<String> {
    below(TRACKING, remote, there)
}

/// Where that is fetched to.
pub(crate) fn incoming_of(remote: &str, there: &str) -> Option<String> {
    below(INCOMING, remote, there)
}

fn below(folder: &str, remote: &str, there: &str) -> Option<String> {
    let component = there
        .strip_prefix(RUNS)
        .filter(|component| !component.contains('/'))?;
    Some(format!("{folder}{}/{component}", ref_component(remote)))
}

/// Whether a reference on a server is that of a run with this id, whatever its phase and lane.
pub(crate) fn is_of_run(there: &str, id: &RunId) -> bool {
    let component = there.strip_prefix(RUNS).unwrap_or_default();
    component.split('+').next() == Some(ref_component(id.as_str()).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_names_of_their_own() {
        let name = |id: &str, phase, lane| run_ref(&RunKey::new(id, phase, lane));
        assert_eq!(name("night", None, None), "refs/recover-runs/night");
        assert_eq!(name("a/b", Some("p"), None), "refs/recover-runs/a%2fb+p+-");
        assert_ne!(name("a", Some("b"), None), name("a", None, Some("b")));
        assert_ne!(name("a+b+-", None, None), name("a", Some("b"), None));
        let key = RunKey::new("night", None, None);
        assert_eq!(side_ref(&key, 3), "refs/recover-runs-side/night/3");
        assert_eq!(
            tracking_of("o/x", &run_ref(&key)).as_ref(),
            Some(&tracking_ref("o/x", &key))
        );
        assert_eq!(tracking_of("o", "refs/heads/main"), None);
        assert!(
            is_of_run(&name("a", Some("b"), None), &"a".into())
                && !is_of_run(&name("ab", None, None), &"a".into())
        );
    }
}
