//! What this clone knows of a run on a remote: up to where its events are there, its own claim, and since when it saw no change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::durable::{FileLock, Sync};
use crate::engine::base::{
    clock::Moment,
    context::Context,
    error::{Error, ErrorKind, Result},
};
use crate::git::repo::CheckpointRef;
use crate::model::{
    manifest::ObjectId,
    remote::{Claim, Link},
    run::RunKey,
};

/// How long another process that talks to the server about the same run is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is known of one run on one remote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// The remote, by its name.
    pub remote: String,
    /// The state whose events the ledger has.
    pub tip: Option<ObjectId>,
    /// Where the chain stands with it.
    pub chain: Link,
    /// The ledger's number of the run's last event that is there.
    pub sent_seq: u64,
    /// The nonce of this clone's own claim, while it has one.
    pub nonce: Option<String>,
    /// What was pushed and not confirmed: it may be there.
    pub pending: Vec<Pending>,
    /// When the last confirmed sign of life was sent.
    pub alive: Option<Moment>,
    /// What was seen last there, and since when.
    pub seen: Option<Seen>,
    /// Events of another machine were taken in, and its files are not in place yet.
    pub is_unsettled: bool,
    /// Who took the run from this clone.
    pub lost_to: Option<Claim>,
    /// The URL that the run lies at: what the remote's name means may change.
    pub url: Option<String>,
    /// Why the server could not be had last, since what is there was confirmed.
    pub away: Option<String>,
    /// The checkpoint that was sent last, as it is there.
    pub sent_checkpoint: Option<ObjectId>,
    /// Files that stayed here, of checkpoints that are there.
    pub withheld: u64,
}

/// A push without an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// What was pushed.
    pub commit: ObjectId,
    /// The ledger's number of the last event in it.
    pub sent_seq: u64,
    /// Where the chain stands with it.
    pub chain: Link,
    /// When it was sent.
    pub at: Moment,
    /// The checkpoint that was sent last.
    #[serde(default)]
    pub sent_checkpoint: Option<ObjectId>,
    /// Files that stayed here so far.
    #[serde(default)]
    pub withheld: u64,
    /// It took the run from somebody else: the ledger does not have all that came before it yet.
    #[serde(default)]
    pub takes: bool,
}

/// A state that was seen on the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Its commit.
    pub commit: ObjectId,
    /// Since when nothing else was seen.
    pub since: Moment,
}

impl Record {
    /// Notes what the server has now. Returns for how long it has been that.
    pub(crate) fn see(&mut self, commit: &ObjectId) -> Duration {
        let unchanged = self
            .seen
            .as_ref()
            .filter(|seen| seen.commit == *commit)
            .and_then(|seen| seen.since.age());
        if unchanged.is_none() {
            self.seen = Some(Seen {
                commit: commit.clone(),
                since: Moment::now(),
            });
        }
        unchanged.unwrap_or_default()
    }

    /// What was pushed became what is there.
    pub(crate) fn confirm(&mut self, pushed: &Pending) {
        self.tip = Some(pushed.commit.clone());
        self.chain = pushed.chain.clone();
        self.sent_seq = pushed.sent_seq;
        self.alive = Some(pushed.at.clone());
        self.sent_checkpoint.clone_from(&pushed.sent_checkpoint);
        self.withheld = pushed.withheld;
        self.pending.clear();
        self.away = None;
    }
}

/// The record of a run on a remote, for one process at a time.
#[derive(Debug)]
pub(super) struct Locked {
    path: PathBuf,
    /// As it is to be.
    pub record: Record,
    _lock: FileLock,
}

fn path_of(context: &Context, key: &RunKey, remote: &str) -> PathBuf {
    context
        .store()
        .run_dir(key)
        .join(format!("remote-{}.json", CheckpointRef::component(remote)))
}

/// What is known; `None` where the run was never on that remote.
pub(super) fn load(context: &Context, key: &RunKey, remote: &str) -> Result<Option<Record>> {
    read(context, &path_of(context, key, remote))
}

fn read(context: &Context, path: &Path) -> Result<Option<Record>> {
    let bytes = context
        .store()
        .root()
        .read_present(path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    // One that cannot be read is as good as none: what lies on the server is fetched and compared again.
    Ok(serde_json::from_slice(&bytes)
        .inspect_err(|error| tracing::warn!(%error, "{} is written anew", path.display()))
        .ok())
}

/// Forgets what is known: the run does not lie there any more.
pub(super) fn forget(context: &Context, key: &RunKey, remote: &str) -> Result<()> {
    let path = path_of(context, key, remote);
    if load(context, key, remote)?.is_none() {
        return Ok(());
    }
    let removed = context.store().root().remove_file(&path);
    Ok(removed.with_context(|| format!("cannot remove {}", path.display()))?)
}

/// The remotes that a run is known to lie on.
pub(super) fn remotes_of(context: &Context, key: &RunKey) -> Vec<String> {
    let listed = context
        .store()
        .root()
        .list(&context.store().run_dir(key))
        .unwrap_or_default();
    let is_record = |name: &str| {
        name.strip_prefix("remote-")
            .is_some_and(|rest| rest.strip_suffix(".json").is_some())
    };
    let files = listed
        .iter()
        .filter_map(|(file, _)| file.to_str())
        .filter(|name| is_record(name));
    let mut names: Vec<String> = files
        .filter_map(|file| {
            read(context, &context.store().run_dir(key).join(file))
                .ok()??
                .remote
                .into()
        })
        .collect();
    names.sort();
    names
}

/// Takes it for this process.
pub(super) fn lock(context: &Context, key: &RunKey, remote: &str) -> Result<Locked> {
    let path = path_of(context, key, remote);
    // With its id, so that it is known as made here.
    context.store().create_dirs()?;
    context.create_state_dir(&context.store().run_dir(key))?;
    let lock = FileLock::acquire(
        context.store().root(),
        &path.with_extension("lock"),
        PATIENCE,
    )?;
    let record = load(context, key, remote)?.unwrap_or_default();
    let record = Record {
        remote: remote.to_owned(),
        ..record
    };
    Ok(Locked {
        path,
        record,
        _lock: lock,
    })
}

impl Locked {
    /// Writes it, on disk when this returns.
    pub(super) fn save(&self, context: &Context) -> Result<()> {
        let text = serde_json::to_vec(&self.record).map_err(|error| {
            Error::new(
                ErrorKind::Failed,
                format!("cannot encode {}: {error}", self.path.display()),
            )
        })?;
        let written = context.store().root().replace(&self.path, &text, Sync::All);
        Ok(written.with_context(|| format!("cannot write {}", self.path.display()))?)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::run::ProcessId;

    use super::*;

    #[test]
    fn what_was_seen_ages_only_while_it_is_the_same() {
        let (one, other) = (ObjectId("1".into()), ObjectId("2".into()));
        let mut record = Record::default();
        assert_eq!(record.see(&one), Duration::ZERO);
        if ProcessId::own().boot_id.is_none() {
            return;
        }
        record.seen.as_mut().unwrap().since.millis -=
            1000.min(record.seen.as_ref().unwrap().since.millis);
        assert!(record.see(&one) >= Duration::from_millis(900));
        assert_eq!(record.see(&other), Duration::ZERO);
        // After another start of the machine nobody knows how long that was.
        record.seen.as_mut().unwrap().since = Moment {
            millis: 0,
            boot_id: Some("another".into()),
        };
        assert_eq!(record.see(&other), Duration::ZERO);
    }
}
