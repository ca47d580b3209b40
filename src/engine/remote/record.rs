//! A run on a remote: what this clone knows of it, and its states as they were fetched, verified.
//!
//! Known is up to where its events are there, its own claim, and since when it saw no change.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::server::{Held, Miss, Reach, SIGNATURE, Server};
use crate::durable::{FileLock, Sync};
use crate::engine::base::{Context, Error, ErrorKind, Moment, Result};
use crate::git::Repo;
use crate::git::remote::Remote;
use crate::git::repo::CheckpointRef;
use crate::model::remote::{Link, RemoteState};
use crate::model::{Claim, Hint, ObjectId, RunKey};
use crate::policy::remote::{Flaw, Hold, RawState, Standing, decode, follow, hold};

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
    /// It is no longer needed, and could not be given back.
    pub gives_back: bool,
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
    pub sent_checkpoint: Option<ObjectId>,
    /// Files that stayed here so far.
    #[serde(default)]
    pub withheld: u64,
    /// It took the run from another machine: the ledger does not have all that came before it yet.
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
    let folder = context.store().run_dir(key);
    let is_document = |name: &str| name.strip_suffix(".json").is_some();
    let listed = context.store().root().list(&folder).unwrap_or_default();
    let mut names: Vec<String> = listed
        .iter()
        .filter_map(|(file, _)| file.to_str())
        .filter(|name| name.strip_prefix("remote-").is_some_and(is_document))
        .filter_map(|name| Some(read(context, &folder.join(name)).ok()??.remote))
        .collect();
    names.sort();
    names
}

/// States of a run that follow each other.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The state before the first of them; `None` where they are all there are.
    pub before: Option<Standing>,
    /// Oldest first.
    pub states: Vec<RemoteState>,
}

impl Chain {
    /// Where it ends.
    pub(super) fn end(&self) -> Option<Standing> {
        self.states
            .last()
            .map(Standing::from)
            .or_else(|| self.before.clone())
    }
}

/// Where a run stands with a state that was verified before.
pub(super) fn chain_standing(
    repo: &Repo,
    key: &RunKey,
    remote: &str,
    commit: &ObjectId,
) -> Result<Standing> {
    let raw = repo.read_run_state(commit)?;
    let (meta, claim, _) = decode(&raw, key).map_err(|flaw| refused_chain(key, remote, &flaw))?;
    Ok(Standing {
        commit: commit.clone(),
        claim,
        meta,
    })
}

/// A run on a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunThere<'a> {
    server: &'a Server<'a>,
    pub key: &'a RunKey,
}

impl<'a> Deref for RunThere<'a> {
    type Target = Server<'a>;

    fn deref(&self) -> &Self::Target {
        self.server
    }
}

impl<'a> RunThere<'a> {
    pub(crate) fn on(server: &'a Server<'a>, key: &'a RunKey) -> Self {
        Self { server, key }
    }

    /// What is known here of it.
    pub(super) fn record(self) -> Result<Record> {
        Ok(load(self.context, self.key, self.name())?.unwrap_or_default())
    }

    /// The same, locked for this process.
    pub(super) fn lock(self) -> Result<Locked<'a>> {
        Locked::acquire(self)
    }

    /// The reference here of what was seen last of it there; all of it was verified.
    pub(super) fn tracking(self) -> String {
        Remote::tracking_ref(self.name(), self.key)
    }

    /// What was seen last of it there.
    pub(super) fn seen(self) -> Result<Option<ObjectId>> {
        Ok(self.repo()?.resolve_ref(&self.tracking()))
    }

    /// What the server has of it.
    pub(super) fn look(self) -> Reach<Option<ObjectId>> {
        let name = Remote::run_ref(self.key);
        let found = self
            .below(&name)?
            .into_iter()
            .find(|(found, _)| *found == name);
        Ok(found.map(|(_, commit)| commit))
    }

    /// Has here what the server has of it, where that was `found`; nothing of it is verified yet. `None`: it is gone meanwhile.
    pub(super) fn obtain(self, found: &ObjectId) -> Reach<Option<ObjectId>> {
        let name = Remote::run_ref(self.key);
        let is_there = self.server.obtain(&[(name.clone(), found.clone())])?;
        Ok(is_there.then(|| self.obtained(&name, found)).flatten())
    }

    /// All that the server has of it, fetched and verified. `None`: nothing.
    pub(super) fn all(self) -> Reach<Option<Chain>> {
        let Some(found) = self.look()? else {
            return Ok(None);
        };
        let tip = self.obtain(&found)?;
        Ok(tip.map(|tip| self.read(&tip, None)).transpose()?)
    }

    /// Where it stands with a state that was verified before.
    pub(super) fn standing(self, commit: &ObjectId) -> Result<Standing> {
        chain_standing(self.repo()?, self.key, self.name(), commit)
    }

    /// How long whoever made that state of it may show no sign of life.
    pub(super) fn lease(self, end: &Standing) -> Duration {
        let own = self.context.settings().remote.lease;
        own.max(Duration::from_millis(end.meta.lease_ms))
    }

    /// Who has it by the state that is there, and after what time it is free at the latest.
    pub(super) fn hold(self, record: &Record, end: &Standing) -> (Hold, Duration) {
        let tip = &end.commit;
        // Two copies of one clone have the same nonce: only what this one pushed is its own.
        let is_pushed = || record.pending.iter().any(|one| one.commit == *tip);
        let is_own = record.tip.as_ref() == Some(tip) || is_pushed();
        let ours = record.nonce.as_deref().filter(|_| is_own);
        let seen = record.seen.as_ref().filter(|seen| seen.commit == *tip);
        let unchanged = seen.and_then(|seen| seen.since.age()).unwrap_or_default();
        let lease = self.lease(end);
        let hold = hold(&end.claim, ours, unchanged, lease);
        (hold, lease.saturating_sub(unchanged))
    }

    /// Its states up to `tip` that come after `known`; from then on it counts as what was seen last there.
    ///
    /// # Errors
    /// Those of [`Self::read`]: then what was seen last stays what it was.
    pub(super) fn verify(self, tip: &ObjectId, known: Option<&ObjectId>) -> Result<Chain> {
        let chain = self.read(tip, known)?;
        let repo = self.repo()?;
        repo.set_tracking(&self.tracking(), tip)?;
        if let Some(incoming) = Remote::incoming_of(self.name(), &Remote::run_ref(self.key)) {
            repo.remove_tracking(&incoming)?;
        }
        Ok(chain)
    }

    /// Reads and verifies the states up to `tip` that come after `known`, which was verified before; all of them where that is
    /// none of them. Checkpoints that came with what was seen last there were looked through before.
    ///
    /// # Errors
    /// What does not fit is damage (12); what a newer version wrote is refused (15), and where `[remote] allowed_signers` is
    /// set what nobody of them signed (13).
    pub(super) fn read(self, tip: &ObjectId, known: Option<&ObjectId>) -> Result<Chain> {
        let (repo, key, remote) = (self.repo()?, self.key, self.name());
        let wrong = |flaw: Flaw| refused_chain(key, remote, &flaw);
        // First what each is about: a newer one is refused before anything else of it is looked at.
        let (mut ids, mut at) = (Vec::new(), Some(tip.clone()));
        let mut before = None;
        while let Some(commit) = at {
            if known == Some(&commit) {
                before = Some(self.standing(&commit)?);
                break;
            }
            let (_, _, previous) = decode(&repo.read_run_state(&commit)?, key).map_err(wrong)?;
            ids.push(commit);
            at = previous;
        }
        let mut chain = Chain {
            before,
            states: Vec::with_capacity(ids.len()),
        };
        let unseen = self
            .seen()?
            .and_then(|seen| ids.iter().position(|commit| *commit == seen))
            .unwrap_or(ids.len());
        let mut names = repo.fetched_names()?;
        for (number, commit) in ids.into_iter().enumerate().rev() {
            let state =
                follow(&repo.read_run_state(&commit)?, key, chain.end().as_ref()).map_err(wrong)?;
            self.require_signed(&state)?;
            for checkpoint in state.checkpoints.iter().filter(|_| number < unseen) {
                if let Some((path, why)) = names.unsafe_in(checkpoint)? {
                    let state = state.meta.state;
                    let what =
                        format!("state {state}: its checkpoint {checkpoint} has {why}, '{path}'");
                    return Err(wrong(Flaw::Damaged(what)));
                }
            }
            chain.states.push(state);
        }
        Ok(chain)
    }

    /// Refuses what the server has now, `tip`, where it has nothing to do with what was seen there `before`. A run that was set
    /// back and went on from there on another machine is damage, unless it `may_fork`; what has another beginning is another run
    /// of that name. Where the ledger has events of the first one, up to the state `own`, it is not forgotten.
    ///
    /// # Errors
    /// Damage (12); another run (13).
    pub(super) fn require_same(
        self,
        own: Option<&ObjectId>,
        before: Option<&ObjectId>,
        tip: &ObjectId,
        may_fork: bool,
    ) -> Result<()> {
        let repo = self.repo()?;
        let Some(before) = before.filter(|before| *before != tip) else {
            return Ok(());
        };
        if repo.is_earlier_state(before, tip)? || repo.is_earlier_state(tip, before)? {
            return Ok(());
        }
        let chain = self.read(tip, None)?;
        let (key, remote) = (self.key, self.name());
        match chain.states.first() {
            Some(root) if repo.is_earlier_state(&root.commit, before)? => {
                if may_fork {
                    return Ok(());
                }
                let message = format!(
                    "{remote} has a rewritten state of run {key}, and the run continued elsewhere; --steal takes the remote's state \
                     and drops what was between"
                );
                let hint = Hint::recover(["remote", "claim", "--steal", "--remote", remote]);
                Err(Error::new(ErrorKind::Corrupt, message).hint(hint.run(key)))
            }
            Some(_) if own.is_some() && self.context.load()?.state.run(key).is_some() => {
                let message = format!(
                    "run {key} was removed from {remote}, and another run {key} lies there now: nothing was changed. The one here \
                     continues with another remote: recover resume --remote NAME --run {id}. To claim the other one, remove the \
                     one here first: recover forget {id}",
                    id = key.run_id
                );
                let hint = Hint::recover(["status"]).run(key);
                Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Refuses (13) a state that none of the allowed keys signed.
    fn require_signed(self, state: &RemoteState) -> Result<()> {
        let Some(signers) = &self.context.settings().remote.allowed_signers else {
            return Ok(());
        };
        let (repo, commit) = (self.repo()?, &state.commit);
        let signed = self.call(SIGNATURE, |limits| {
            Ok(repo.is_signed(commit, signers, limits)?)
        });
        if signed.map_err(Miss::error)? {
            return Ok(());
        }
        let message = format!(
            "state {} of run {} on {} is signed by none of {signers}",
            state.meta.state,
            self.key,
            self.name()
        );
        let hint = Hint::git(["verify-commit", "-v", &commit.0]);
        Err(Error::new(ErrorKind::NotTrusted, message).hint(hint))
    }

    /// Refuses (13) to take what lies at another URL than the run for its place.
    pub(super) fn require_same_place(self, record: &Record) -> Result<()> {
        let Some(url) = record.url.as_ref().filter(|url| **url != self.remote.url) else {
            return Ok(());
        };
        let message = format!(
            "run {} was pushed to {url}, but remote {} now points to {}, which does not have it; nothing was sent. Use another \
             remote name for a second location",
            self.key,
            self.name(),
            self.remote.url
        );
        let error = Error::new(ErrorKind::RemoteRefused, message);
        if self.remote.is_store() {
            return Err(error);
        }
        let hint = Hint::git(["remote", "set-url", self.name(), url]).at(self.context.worktree());
        Err(error.hint(hint))
    }

    /// The command `recover remote WORD` about it.
    pub(super) fn hint(self, word: &str) -> Hint {
        self.server.hint(word).run(self.key)
    }

    /// Another machine holds it (11).
    pub(super) fn held(self, claim: Claim, free_in: Duration) -> Miss {
        let message = format!(
            "run {} is held by {} on {} (claim {}) until it finishes or its lease expires; --steal takes the claim now",
            self.key,
            claim.host,
            self.name(),
            claim.fencing
        );
        let hint = Hint::recover(["remote", "claim", "--steal", "--remote", self.name()]);
        Miss::Held(Box::new(Held {
            claim,
            free_in,
            error: Error::new(ErrorKind::Claimed, message).hint(hint.run(self.key)),
        }))
    }
}

/// The record of a run on a server, for one process at a time.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    /// The run.
    pub there: RunThere<'a>,
    path: PathBuf,
    /// As it is to be.
    pub record: Record,
    _lock: FileLock,
}

impl<'a> Locked<'a> {
    fn acquire(there: RunThere<'a>) -> Result<Self> {
        let store = there.context.store();
        let path = path_of(there.context, there.key, there.name());
        // With its id, so that it is known as made here.
        store.create_dirs()?;
        there.context.create_state_dir(&store.run_dir(there.key))?;
        let lock = FileLock::acquire(store.root(), &path.with_extension("lock"), PATIENCE)?;
        let record = Record {
            remote: there.name().to_owned(),
            ..there.record()?
        };
        Ok(Self {
            there,
            path,
            record,
            _lock: lock,
        })
    }

    /// Writes it, on disk when this returns.
    pub(super) fn save(&self) -> Result<()> {
        let path = self.path.display();
        let text =
            serde_json::to_vec(&self.record).with_context(|| format!("cannot encode {path}"))?;
        let written = self
            .there
            .context
            .store()
            .root()
            .replace(&self.path, &text, Sync::All);
        Ok(written.with_context(|| format!("cannot write {path}"))?)
    }
}

/// What lies under the name of a run and does not say that it is that run.
pub(super) fn misnamed(key: &RunKey, remote: &str, name: &str, raw: &RawState) -> Error {
    let flaw = decode(raw, key).err();
    refused_chain(
        key,
        remote,
        &flaw.unwrap_or_else(|| Flaw::Damaged(format!("{name} is another run's name"))),
    )
}

fn refused_chain(key: &RunKey, remote: &str, flaw: &Flaw) -> Error {
    match flaw {
        Flaw::Newer(what) => {
            let message = format!(
                "run {key} on {remote} was written by a newer version ({what}): nothing was changed, use that one"
            );
            Error::new(ErrorKind::Newer, message)
        }
        Flaw::Damaged(what) => {
            let message =
                format!("run {key} on {remote} is not as recover writes it: {what}; it is ignored");
            Error::new(ErrorKind::Corrupt, message)
                .hint(Hint::recover(["remote", "status", "--remote", remote]).run(key))
        }
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
