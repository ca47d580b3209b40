//! The documents of `remote`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::flow::remote::{RemoteReport, RemoteRun};
use crate::engine::flow::remote_check::Guarantee;
use crate::model::id::RunId;
use crate::model::run_key::RunKey;

/// The runs on a remote, and what was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RemoteReply<'a> {
    remote: &'a str,
    runs: Vec<RemoteRunLine<'a>>,
    /// Runs of which something was sent.
    pushed: Vec<&'a RunId>,
    /// Runs of which something was fetched.
    fetched: Vec<&'a RunId>,
    /// Runs that were removed there, or would be.
    pruned: Vec<&'a RunId>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "remote_run")]
struct RemoteRunLine<'a> {
    #[serde(flatten)]
    key: &'a RunKey,
    /// The clone that holds it; `null` where none does.
    holder: Option<&'a str>,
    /// The machine that holds it, or had it last; `null` where it is not there.
    host: Option<&'a str>,
    /// How often it was claimed.
    fencing: u64,
    /// For how long this machine has seen it unchanged; `null` where it has not seen it.
    seen_unchanged_ms: Option<u64>,
    /// Events here that are not there.
    ahead: u64,
    /// Events there that are not here.
    behind: u64,
    /// Whether files of its checkpoints stayed where they were taken.
    partial: bool,
}

impl<'a> RemoteReply<'a> {
    pub(crate) fn new(report: &'a RemoteReport) -> Self {
        let ids = |keys: &'a [RunKey]| keys.iter().map(|key| &key.run_id).collect();
        Self {
            remote: &report.remote,
            runs: report.runs.iter().map(RemoteRunLine::from).collect(),
            pushed: ids(&report.pushed),
            fetched: ids(&report.fetched),
            pruned: ids(&report.pruned),
        }
    }
}

impl<'a> From<&'a RemoteRun> for RemoteRunLine<'a> {
    fn from(run: &'a RemoteRun) -> Self {
        let RemoteRun {
            key,
            holder,
            host,
            fencing,
            seen_unchanged_ms,
            ahead,
            behind,
            partial,
        } = run;
        Self {
            key,
            holder: holder.as_deref(),
            host: host.as_deref(),
            fencing: *fencing,
            seen_unchanged_ms: *seen_unchanged_ms,
            ahead: *ahead,
            behind: *behind,
            partial: *partial,
        }
    }
}

/// What a remote's server guarantees.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RemoteCheckReply<'a> {
    /// The remote's name.
    pub remote: &'a str,
    /// Where it is; without user and password.
    pub url: &'a str,
    /// Whether everything holds that a run needs.
    pub usable: bool,
    /// In the order in which they were tried.
    pub guarantees: &'a [Guarantee],
    /// The reference for the moment, where the server did not delete it.
    pub left: Option<&'a str>,
}
