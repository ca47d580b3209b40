//! A git server that runs lie on.
//!
//! The states of a run as they were fetched, verified.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::record::Record;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::remote_consent::{refuse_fork, require_consent, require_given};
use crate::git::remote::{Answer, Limits, NewState, Remote, Update};
use crate::git::{Error as GitError, Repo};
use crate::model::hint::Hint;
use crate::model::id::RunId;
use crate::model::manifest::ObjectId;
use crate::model::remote::RemoteState;
use crate::model::run::RunKey;
use crate::os::since_boot;
use crate::policy::remote::{Flaw, RawState, Standing, decode, follow};

/// How long a call may take that moves objects.
const TRANSFER: Duration = Duration::from_secs(30 * 60);
/// How long one may take that only asks.
const QUESTION: Duration = Duration::from_secs(60);
/// How long the program that signs or verifies a state may take.
const SIGNATURE: Duration = Duration::from_secs(30);

/// A server as a command talks to it.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    /// Who talks to it, about what.
    pub context: &'a Context,
    /// The remote, as git knows it.
    pub remote: Remote,
    stop: Stop,
}

/// What ends a call before its time.
#[derive(Clone, Debug)]
enum Stop {
    /// A request to stop.
    Request,
    /// A request to stop, or this.
    Also(Arc<AtomicBool>),
    /// For a last word, which the request that it follows does not cut off: one more request, or the end of the time for it, by
    /// the clock since the machine's start.
    LastWord { until: Duration, requests: u64 },
}

/// What came of a call that may have to be made again.
#[derive(Clone, Debug)]
pub(crate) enum Reached<T> {
    /// It was answered.
    Yes(T),
    /// The server is away.
    Away(Away),
}

/// Why a server could not be had.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    /// In git's words, or its own.
    pub said: String,
    /// When it wants to be asked again.
    pub after: Option<Duration>,
}

impl Away {
    /// As the end of a command that does not wait (9).
    pub(crate) fn error(&self, remote: &str) -> Error {
        Error::new(
            ErrorKind::GaveUpWaiting,
            format!("the remote {remote} cannot be reached: {}", self.said),
        )
    }
}

impl<'a> Server<'a> {
    /// The server of that name.
    ///
    /// # Errors
    /// No name that git knows (2); a work tree without a repository of the user's (10); a fork's pull request (13).
    pub(crate) fn of(context: &'a Context, name: &str) -> Result<Self> {
        refuse_fork(context)?;
        if !context.has_git() {
            let message = "there is no git repository here, so no remote either";
            return Err(Error::new(ErrorKind::NoRepository, message)
                .hint(Hint::git(["init"]).at(context.worktree())));
        }
        let remote = Remote::named(context.repo()?, name)?;
        Ok(Self {
            context,
            remote,
            stop: Stop::Request,
        })
    }

    /// Asks for the consent to send, if it was not given yet; to be called before anything is recorded or sent.
    pub(crate) fn with_consent(self) -> Result<Self> {
        if !self.context.dry_run() {
            require_consent(self.context, &self.remote)?;
        }
        Ok(self)
    }

    /// The one that was named, else the one that the user's own configuration names.
    pub(crate) fn named(context: &'a Context) -> Result<Self> {
        let name = context.remote_name().ok_or_else(|| {
            let message =
                "no remote is named: --remote NAME, or [remote] name in your own configuration";
            Error::new(ErrorKind::Usage, message).hint(Hint::git(["remote", "--verbose"]))
        })?;
        Self::of(context, &name)
    }

    /// The same, for a last word: a request to stop that was made before does not cut it off, and all its calls together take
    /// no longer than this.
    #[must_use]
    pub(crate) fn for_last_word(self, longest: Duration) -> Self {
        let requests = self.context.interrupts.received().0;
        Self {
            stop: Stop::LastWord {
                until: since_boot() + longest,
                requests,
            },
            ..self
        }
    }

    /// The same, whose calls also end when `flag` is set.
    #[must_use]
    pub(crate) fn stopped_by(self, flag: Arc<AtomicBool>) -> Self {
        Self {
            stop: Stop::Also(flag),
            ..self
        }
    }

    /// Whether its calls are to end.
    pub(crate) fn is_stopped(&self) -> bool {
        let interrupts = &self.context.interrupts;
        match &self.stop {
            Stop::Request => interrupts.pending().is_some(),
            Stop::Also(flag) => flag.load(Ordering::Relaxed) || interrupts.pending().is_some(),
            Stop::LastWord { requests, .. } => interrupts.received().0 > *requests,
        }
    }

    /// Refuses (13) to take what lies at another URL than the run for its place.
    pub(crate) fn require_same_place(&self, key: &RunKey, record: &Record) -> Result<()> {
        let Some(url) = record.url.as_ref().filter(|url| **url != self.remote.url) else {
            return Ok(());
        };
        let message = format!(
            "run {key} lies at {url}, and {} is {} now, which does not have it: nothing was sent. A remote of another name keeps \
             runs of its own",
            self.name(),
            self.remote.url
        );
        let hint = Hint::git(["remote", "set-url", self.name(), url]).at(self.context.worktree());
        Err(Error::new(ErrorKind::RemoteRefused, message).hint(hint))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.remote.name
    }

    /// The repository that objects come from and go to.
    pub(crate) fn repo(&self) -> Result<&'a Repo> {
        self.context.repo()
    }

    /// Makes a call. What the server refuses is an error in its own words (1).
    fn call<T>(
        &self,
        limit: Duration,
        call: impl FnOnce(&Limits<'_>) -> Result<Answer<T>, GitError>,
    ) -> Result<Answer<T>> {
        let limit = match self.stop {
            Stop::LastWord { until, .. } => limit.min(until.saturating_sub(since_boot())),
            _ => limit,
        };
        if limit.is_zero() {
            return Ok(Answer::Away {
                said: "it took too long".to_owned(),
                after: None,
            });
        }
        match self.within(limit, call)? {
            Answer::Refused(said) => Err(Error::new(
                ErrorKind::Failed,
                format!("the remote {} refuses: {said}", self.name()),
            )),
            answer => Ok(answer),
        }
    }

    /// Runs git for as long as that may take.
    fn within<T>(
        &self,
        limit: Duration,
        call: impl FnOnce(&Limits<'_>) -> Result<T, GitError>,
    ) -> Result<T> {
        let stopped = || self.is_stopped();
        limited(self.context, &Limits::new(limit, &stopped), call)
    }

    /// What the server has of a run.
    pub(crate) fn look(&self, key: &RunKey) -> Result<Reached<Option<ObjectId>>> {
        let name = Remote::run_ref(key);
        let repo = self.repo()?;
        Ok(
            match self.call(QUESTION, |limits| self.remote.list(repo, &[&name], limits))? {
                Answer::Done(found) => Reached::Yes(
                    found
                        .into_iter()
                        .find(|(found, _)| *found == name)
                        .map(|(_, id)| id),
                ),
                other => Reached::Away(away(other)),
            },
        )
    }

    /// The references of all runs that the server has, or of those with an id.
    pub(crate) fn list(&self, id: Option<&RunId>) -> Result<Reached<Vec<(String, ObjectId)>>> {
        let repo = self.repo()?;
        Ok(
            match self.call(QUESTION, |limits| {
                self.remote.list(repo, &[Remote::RUNS], limits)
            })? {
                Answer::Done(mut found) => {
                    // What `remote check` tries there is no run.
                    found.retain(|(name, _)| {
                        !name.starts_with(Remote::SCRATCH)
                            && id.is_none_or(|id| Remote::is_of_run(name, id))
                    });
                    Reached::Yes(found)
                }
                other => Reached::Away(away(other)),
            },
        )
    }

    /// The server's references in a folder.
    pub(crate) fn below(&self, folder: &str) -> Result<Vec<(String, ObjectId)>> {
        let repo = self.repo()?;
        match self.call(QUESTION, |limits| self.remote.list(repo, &[folder], limits))? {
            Answer::Done(found) => Ok(found),
            other => Err(away(other).error(self.name())),
        }
    }

    /// Fetches references of runs, each to one of its own here that nothing is believed of before it is verified. `false`: one of
    /// them went away meanwhile.
    fn fetch(&self, names: &[String]) -> Result<Reached<bool>> {
        let repo = self.repo()?;
        let pair = |name: &String| Some((name.clone(), Remote::incoming_of(self.name(), name)?));
        let refs: Vec<(String, String)> = names.iter().filter_map(pair).collect();
        if refs.is_empty() {
            return Ok(Reached::Yes(true));
        }
        let answer = self
            .call(TRANSFER, |limits| self.remote.fetch(repo, &refs, limits))
            .map_err(|mut error| {
                if error.kind == ErrorKind::Corrupt {
                    error.message = format!(
                        "{} has what git does not take in {}: {error}",
                        self.name(),
                        names.join(", ")
                    );
                    return error.hint(Hint::recover([
                        "remote",
                        "status",
                        "--remote",
                        self.name(),
                    ]));
                }
                error
            })?;
        Ok(match answer {
            Answer::Done(()) => Reached::Yes(true),
            Answer::Moved => Reached::Yes(false),
            other => Reached::Away(away(other)),
        })
    }

    /// Has what references of runs name there here, to be verified; what is here already is not fetched again.
    pub(crate) fn obtain(&self, found: &[(String, ObjectId)]) -> Result<Reached<bool>> {
        let is_new = |(name, commit): &&(String, ObjectId)| {
            self.obtained(name, commit).as_ref() != Some(commit)
        };
        let new: Vec<String> = found
            .iter()
            .filter(is_new)
            .map(|(name, _)| name.clone())
            .collect();
        self.fetch(&new)
    }

    /// What is here of a run's reference that named `commit` there: that, or what it had become when it was fetched.
    pub(crate) fn obtained(&self, name: &str, commit: &ObjectId) -> Option<ObjectId> {
        let repo = self.context.repo().ok()?;
        let at = |place: Option<String>| place.and_then(|place| repo.resolve_ref(&place));
        let seen = at(Remote::tracking_of(self.name(), name)).filter(|seen| seen == commit);
        seen.or_else(|| at(Remote::incoming_of(self.name(), name)))
    }

    /// A state of a run was verified: it is what was seen last.
    pub(crate) fn believe(&self, key: &RunKey, tip: &ObjectId) -> Result<()> {
        let repo = self.repo()?;
        repo.set_tracking(&self.tracking(key), tip)?;
        match Remote::incoming_of(self.name(), &Remote::run_ref(key)) {
            Some(incoming) => Ok(repo.remove_tracking(&incoming)?),
            None => Ok(()),
        }
    }

    /// Fetches a commit by its id. `false`: the server does not have it, or does not give it.
    pub(crate) fn fetch_commit(&self, commit: &ObjectId) -> Result<Reached<bool>> {
        let repo = self.repo()?;
        let place = format!("refs/recover-tracking/base/{commit}");
        Ok(
            match self.call(TRANSFER, |limits| {
                self.remote
                    .fetch(repo, &[(commit.0.clone(), place)], limits)
            }) {
                Ok(Answer::Done(())) => Reached::Yes(true),
                Ok(Answer::Moved) => Reached::Yes(false),
                Ok(other) => Reached::Away(away(other)),
                Err(error) if matches!(error.kind, ErrorKind::Failed | ErrorKind::Corrupt) => {
                    tracing::debug!(%error, "the commit cannot be had");
                    Reached::Yes(false)
                }
                Err(error) => return Err(error),
            },
        )
    }

    /// Gets what a partial clone lacks of a commit's files.
    pub(crate) fn backfill(&self, commit: &ObjectId) -> Result<Reached<()>> {
        let repo = self.repo()?;
        Ok(
            match self.call(TRANSFER, |limits| {
                self.remote.backfill(repo, commit, limits)
            })? {
                Answer::Done(()) => Reached::Yes(()),
                other => Reached::Away(away(other)),
            },
        )
    }

    /// Writes a state, signed where the user signs.
    pub(crate) fn write_state(&self, state: &NewState<'_>) -> Result<ObjectId> {
        let repo = self.repo()?;
        match self.call(SIGNATURE, |limits| {
            repo.write_run_state(state, limits).map(Answer::Done)
        })? {
            Answer::Done(commit) => Ok(commit),
            other => Err(away(other).error(self.name())),
        }
    }

    /// Pushes one update. Whoever comes here, and on what way: nothing is sent without consent.
    pub(crate) fn push(&self, update: Update) -> Result<Answer<()>> {
        if update.new.is_some() {
            require_given(self.context, &self.remote)?;
        }
        let repo = self.repo()?;
        self.call(TRANSFER, |limits| self.remote.push(repo, &[update], limits))
    }

    /// The reference here of what was seen last of a run there; all of it was verified.
    pub(crate) fn tracking(&self, key: &RunKey) -> String {
        Remote::tracking_ref(self.name(), key)
    }

    /// The reference here of what is pushed.
    pub(crate) fn pending(&self, key: &RunKey) -> String {
        Remote::pending_ref(self.name(), key)
    }

    /// Waits before the server is asked again: as long as it wants, else longer each time, and no longer than `most`.
    ///
    /// # Errors
    /// A request to stop came (130, 143).
    pub(crate) fn pause(&self, away: &Away, tried: u32, most: Duration) -> Result<()> {
        let grows = Duration::from_secs(1 << tried.min(6)).mul_f64(0.5 + fastrand::f64() / 2.0);
        let pause = away
            .after
            .unwrap_or(grows)
            .clamp(Duration::from_millis(200), Duration::from_secs(15 * 60))
            .min(most);
        if let Stop::LastWord { until, .. } = self.stop {
            // What was requested before does not cut it off.
            std::thread::sleep(
                pause
                    .min(until.saturating_sub(since_boot()))
                    .min(Duration::from_secs(1)),
            );
            return Ok(());
        }
        self.context.interrupts.sleep(pause).map_err(|signal| {
            Error::new(
                ErrorKind::Interrupted(signal.exit_code()),
                format!("stopped while the remote {} was away", self.name()),
            )
        })
    }
}

/// Whether one of the allowed keys signed a state.
fn is_signed_by(context: &Context, commit: &ObjectId, signers: &str) -> Result<bool> {
    let repo = context.repo()?;
    let stopped = || context.interrupts.pending().is_some();
    let limits = Limits::new(SIGNATURE, &stopped);
    limited(context, &limits, |limits| {
        repo.is_signed(commit, signers, limits)
    })
}

/// Runs git; one that was stopped is the end of the command.
fn limited<T>(
    context: &Context,
    limits: &Limits<'_>,
    call: impl FnOnce(&Limits<'_>) -> Result<T, GitError>,
) -> Result<T> {
    match call(limits) {
        Err(GitError::Stopped) => {
            let code = context
                .interrupts
                .pending()
                .map_or(130, crate::process::Signal::exit_code);
            Err(Error::new(ErrorKind::Interrupted(code), "stopped"))
        }
        answer => Ok(answer?),
    }
}

/// Why a call has to be made again.
pub(super) fn away<T>(answer: Answer<T>) -> Away {
    match answer {
        Answer::Away { said, after } => Away { said, after },
        Answer::Cut(said) | Answer::Refused(said) => Away { said, after: None },
        Answer::Moved => Away {
            said: "what it has changed meanwhile".to_owned(),
            after: None,
        },
        Answer::Done(_) => Away {
            said: String::new(),
            after: None,
        },
    }
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

/// Reads and verifies the states up to `tip` that come after `known`, which was verified before; all of them where that is
/// none of them. Checkpoints that came with what was seen last there were looked through before.
///
/// # Errors
/// What does not fit is damage (12); what a newer version wrote is refused (15), and where `[remote] allowed_signers` is set
/// what nobody of them signed (13).
pub(super) fn read_chain(
    context: &Context,
    key: &RunKey,
    remote: &str,
    tip: &ObjectId,
    known: Option<&ObjectId>,
) -> Result<Chain> {
    let repo = context.repo()?;
    let wrong = |flaw: Flaw| refused_chain(key, remote, &flaw);
    // First what each is about: a newer one is refused before anything else of it is looked at.
    let (mut ids, mut at) = (Vec::new(), Some(tip.clone()));
    let mut before = None;
    while let Some(commit) = at {
        if known == Some(&commit) {
            before = Some(chain_standing(repo, key, remote, &commit)?);
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
    let seen = repo.resolve_ref(&Remote::tracking_ref(remote, key));
    let unseen = seen
        .and_then(|seen| ids.iter().position(|commit| *commit == seen))
        .unwrap_or(ids.len());
    let mut names = repo.fetched_names()?;
    for (number, commit) in ids.into_iter().enumerate().rev() {
        let state =
            follow(&repo.read_run_state(&commit)?, key, chain.end().as_ref()).map_err(wrong)?;
        if let Some(signers) = &context.settings().remote.allowed_signers
            && !is_signed_by(context, &commit, signers)?
        {
            let message = format!(
                "state {} of run {key} on {remote} is signed by none of {signers}",
                state.meta.state
            );
            return Err(Error::new(ErrorKind::NotTrusted, message).hint(Hint::git([
                "verify-commit",
                "-v",
                &commit.0,
            ])));
        }
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
            let message = format!(
                "run {key} on {remote} is not as recover writes it: {what}; nothing of it is believed"
            );
            Error::new(ErrorKind::Corrupt, message)
                .hint(Hint::recover(["remote", "status", "--remote", remote]).run(key))
        }
    }
}
