//! A git server that runs lie on.
//!
//! What a remote's server guarantees: asked for, and before the first run is made there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::remote_consent::{refuse_fork, require_consent, require_given};
use crate::git::remote::{Answer, Examined, Finding, Limits, Missed, NewState, Remote};
use crate::git::{Error as GitError, Repo};
use crate::model::{Claim, Hint, ObjectId, RunId};
use crate::os::since_boot;
use crate::process::Signal;
use crate::store::new_id;

/// How long a call may take that moves objects.
const TRANSFER: Duration = Duration::from_secs(30 * 60);
/// How long one may take that only asks.
const QUESTION: Duration = Duration::from_secs(60);
/// How long the program that signs or verifies a state may take.
pub(super) const SIGNATURE: Duration = Duration::from_secs(30);
/// Said of a run that no try finds at rest.
pub(super) const CHANGES: &str = "it changes while it is read";

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

/// What came of something that may have to be tried again.
pub(crate) type Reach<T> = std::result::Result<T, Miss>;

/// Why it did not come about.
#[derive(Debug)]
pub(crate) enum Miss {
    /// The server is away.
    Away(Away),
    /// Another machine holds the run.
    Held(Box<Held>),
    /// The run changed meanwhile: the next try shows what is there.
    Moved,
    /// The answer to a push was lost: the next try shows what is there.
    Cut(Away),
    /// It failed.
    Failed(Error),
}

/// Why a server cannot be reached.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    /// The remote.
    pub remote: String,
    /// In git's words, or its own.
    pub said: String,
    /// When it wants to be called again.
    pub after: Option<Duration>,
}

/// A run that another machine holds.
#[derive(Debug)]
pub(crate) struct Held {
    /// Its claim.
    pub claim: Claim,
    /// When it is free at the latest, if its holder shows no sign of life.
    pub free_in: Duration,
    /// As the end of a command that does not wait (11).
    pub error: Error,
}

impl Away {
    /// As the end of a command that does not wait (9).
    pub(crate) fn error(&self) -> Error {
        let message = format!(
            "the remote {} cannot be reached: {}",
            self.remote, self.said
        );
        Error::new(ErrorKind::GaveUpWaiting, message)
    }
}

impl<E> From<E> for Miss
where
    Error: From<E>,
{
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Miss {
    /// The same, as something that has to be waited for.
    pub(super) fn waits(self, server: &Server<'_>) -> Self {
        match self {
            Self::Moved => server.away_for(CHANGES, None),
            Self::Cut(away) => Self::Away(away),
            other => other,
        }
    }

    /// As the end of a command that does not wait.
    pub(crate) fn error(self) -> Error {
        match self {
            Self::Away(away) | Self::Cut(away) => away.error(),
            Self::Held(held) => held.error,
            Self::Moved => Error::new(ErrorKind::GaveUpWaiting, CHANGES),
            Self::Failed(error) => error,
        }
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
        let remote = Remote::named(context.repo()?, name, context.config().store_url(name))?;
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
            let message = "no remote is named: --remote NAME, or [remote] name in your own configuration \
                           (~/.config/recover/config.toml); git remote lists those that git knows";
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

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.remote.name
    }

    /// The repository that objects come from and go to.
    pub(crate) fn repo(&self) -> Result<&'a Repo> {
        self.context.repo()
    }

    /// Makes a call. What the server refuses is an error in its own words (1); one that was stopped is the end of the command.
    pub(super) fn call<T>(
        &self,
        limit: Duration,
        call: impl FnOnce(&Limits<'_>) -> Answer<T>,
    ) -> Reach<T> {
        let limit = match self.stop {
            Stop::LastWord { until, .. } => limit.min(until.saturating_sub(since_boot())),
            _ => limit,
        };
        if limit.is_zero() {
            return Err(self.away_for("it took too long", None));
        }
        let stopped = || self.is_stopped();
        call(&Limits::new(limit, &stopped)).map_err(|missed| match missed {
            Missed::Moved => Miss::Moved,
            Missed::Away { said, after } => self.away_for(said, after),
            Missed::Cut(said) => Miss::Cut(self.unreached(said, None)),
            Missed::Refused(said) => {
                let message = format!("the remote {} refuses: {said}", self.name());
                Miss::Failed(Error::new(ErrorKind::Failed, message))
            }
            Missed::Failed(GitError::Stopped) => {
                let pending = self.context.interrupts.pending();
                let code = pending.map_or(130, Signal::exit_code);
                Miss::Failed(Error::new(ErrorKind::Interrupted(code), "stopped"))
            }
            Missed::Failed(error) => error.into(),
        })
    }

    /// It is away, and this is why.
    pub(super) fn away_for(&self, said: impl Into<String>, after: Option<Duration>) -> Miss {
        Miss::Away(self.unreached(said, after))
    }

    fn unreached(&self, said: impl Into<String>, after: Option<Duration>) -> Away {
        Away {
            remote: self.name().to_owned(),
            said: said.into(),
            after,
        }
    }

    /// The server's references of that name, or that begin with what is before a `*`.
    pub(crate) fn below(&self, place: &str) -> Reach<Vec<(String, ObjectId)>> {
        let repo = self.repo()?;
        self.call(QUESTION, |limits| self.remote.list(repo, place, limits))
    }

    /// The references of all runs that the server has, or of those with an id.
    pub(crate) fn list(&self, id: Option<&RunId>) -> Reach<Vec<(String, ObjectId)>> {
        let mut found = self.below(&Remote::runs_of(id))?;
        // What `remote check` tries there is no run.
        found.retain(|(name, _)| {
            !name.starts_with(Remote::SCRATCH) && id.is_none_or(|id| Remote::is_of_run(name, id))
        });
        Ok(found)
    }

    /// Whether the server has runs of these names, which are examined one after another; it is called once.
    pub(crate) fn has(&self) -> Result<impl Fn(&RunId) -> bool + use<>> {
        let there = self.list(None).map_err(Miss::error)?;
        Ok(move |id: &RunId| there.iter().any(|(name, _)| Remote::is_of_run(name, id)))
    }

    /// Has what references of runs name there here, each as a reference of its own that nothing is believed of before it is
    /// verified; what is here already is not fetched again. `false`: one of them went away meanwhile.
    pub(crate) fn obtain(&self, found: &[(String, ObjectId)]) -> Reach<bool> {
        let is_new = |(name, commit): &&(String, ObjectId)| {
            self.obtained(name, commit).as_ref() != Some(commit)
        };
        let pair = |(name, _): &(String, ObjectId)| {
            Some((name.clone(), Remote::incoming_of(self.name(), name)?))
        };
        let refs: Vec<_> = found.iter().filter(is_new).filter_map(pair).collect();
        if refs.is_empty() {
            return Ok(true);
        }
        let repo = self.repo()?;
        match self.call(TRANSFER, |limits| self.remote.fetch(repo, &refs, limits)) {
            Ok(()) => Ok(true),
            Err(Miss::Moved) => Ok(false),
            Err(Miss::Failed(mut error)) if error.kind == ErrorKind::Corrupt => {
                let names = refs.iter().map(|(name, _)| name).join(", ");
                let name = self.name();
                error.message = format!("{name} has what git does not take in {names}: {error}");
                Err(error.hint(self.hint("status")).into())
            }
            Err(missed) => Err(missed),
        }
    }

    /// What is here of a run's reference that named `commit` there: that, or what it had become when it was fetched.
    pub(crate) fn obtained(&self, name: &str, commit: &ObjectId) -> Option<ObjectId> {
        let repo = self.context.repo().ok()?;
        let at = |place: Option<String>| place.and_then(|place| repo.resolve_ref(&place));
        let seen = at(Remote::tracking_of(self.name(), name)).filter(|seen| seen == commit);
        seen.or_else(|| at(Remote::incoming_of(self.name(), name)))
    }

    /// Fetches a commit by its id. `false`: the server does not have it, or does not give it.
    pub(crate) fn fetch_commit(&self, commit: &ObjectId) -> Reach<bool> {
        let place = format!("refs/recover-tracking/base/{commit}");
        let (repo, refs) = (self.repo()?, [(commit.0.clone(), place)]);
        match self.call(TRANSFER, |limits| self.remote.fetch(repo, &refs, limits)) {
            Ok(()) => Ok(true),
            Err(Miss::Moved) => Ok(false),
            Err(Miss::Failed(error))
                if matches!(error.kind, ErrorKind::Failed | ErrorKind::Corrupt) =>
            {
                tracing::debug!(%error, "the commit cannot be had");
                Ok(false)
            }
            Err(missed) => Err(missed),
        }
    }

    /// Gets what a partial clone lacks of a commit's files.
    pub(crate) fn backfill(&self, commit: &ObjectId) -> Reach<()> {
        let repo = self.repo()?;
        self.call(TRANSFER, |limits| {
            self.remote.backfill(repo, commit, limits)
        })
    }

    /// Has the remote remove what nothing names there.
    pub(crate) fn sweep(&self) -> Reach<()> {
        self.call(TRANSFER, |limits| self.remote.sweep(limits))
    }

    /// Writes a state, signed where the user signs.
    pub(crate) fn write_state(&self, state: &NewState<'_>) -> Reach<ObjectId> {
        let repo = self.repo()?;
        self.call(SIGNATURE, |limits| Ok(repo.write_run_state(state, limits)?))
    }

    /// Pushes one update. Whoever comes here, and on what way: nothing is sent without consent.
    pub(crate) fn push(
        &self,
        name: &str,
        old: Option<&ObjectId>,
        new: Option<&ObjectId>,
    ) -> Reach<()> {
        if new.is_some() {
            require_given(self.context, &self.remote)?;
        }
        let repo = self.repo()?;
        self.call(TRANSFER, |limits| {
            self.remote.push(repo, name, old, new, limits)
        })
    }

    /// The command `recover remote WORD` about it.
    pub(super) fn hint(&self, word: &str) -> Hint {
        Hint::recover(["remote", word, "--remote", self.name()])
    }

    /// Waits before the server is called again: as long as it wants, else longer each time, and no longer than `most`.
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
            let message = format!("stopped while the remote {} was away", self.name());
            Error::interrupted(signal, message)
        })
    }
}

/// How long one connection may take.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What a remote's server guarantees.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// The remote's name.
    pub remote: String,
    /// Where it is; without user and password.
    pub url: String,
    /// Whether everything holds that a run needs.
    pub usable: bool,
    /// In the order in which they were tried.
    pub guarantees: Vec<Finding>,
    /// The reference for the moment, where the server did not delete it.
    pub left: Option<String>,
}

/// Finds out what the server of a remote guarantees; an object of `size` bytes is sent.
pub(crate) fn check(context: &Context, name: Option<&str>, size: u64) -> Result<Checked> {
    let server = name.map_or_else(|| Server::named(context), |name| Server::of(context, name))?;
    require_consent(context, &server.remote)?;
    let (remote, url) = (server.name().to_owned(), server.remote.url.clone());
    let mut checked = Checked {
        remote,
        url,
        usable: false,
        guarantees: Vec::new(),
        left: None,
    };
    if context.dry_run() {
        return Ok(checked);
    }
    let found = match examine(&server, size) {
        Err(Miss::Away(away)) => {
            let message = format!(
                "remote '{}' ({}) cannot be reached: {}",
                checked.remote, checked.url, away.said
            );
            return Err(Error::new(ErrorKind::Failed, message).hint(context.rerun(&[])));
        }
        found => found.map_err(Miss::error)?,
    };
    checked.usable = found.is_usable();
    if checked.usable {
        remember(&server)?;
    }
    checked.guarantees = found.findings;
    checked.left = found.left;
    Ok(checked)
}

/// Refuses (13) a server that lacks what a run needs. It is examined once: that it has it is remembered with the consent.
pub(super) fn require_guarantees(server: &Server<'_>) -> Reach<()> {
    let (context, remote) = (server.context, &server.remote);
    if context.dry_run() || context.trust_record().is_checked(&remote.url) {
        return Ok(());
    }
    let found = examine(server, 0)?;
    if found.is_usable() {
        return Ok(remember(server)?);
    }
    let missing = found
        .findings
        .iter()
        .filter(|finding| finding.required && finding.holds != Some(true));
    let mut missing = missing.map(|finding| format!("{} ({})", finding.name, finding.detail));
    let message = format!(
        "the server of remote '{}' ({}) lacks what a run needs there: {}",
        remote.name,
        remote.url,
        missing.join(", ")
    );
    Err(Error::new(ErrorKind::RemoteRefused, message)
        .hint(server.hint("check"))
        .into())
}

fn examine(server: &Server<'_>, size: u64) -> Reach<Examined> {
    let repo = server.repo()?;
    let nonce = new_id().map_err(|error| Error::io("no random number can be had", error))?;
    let nonce: String = nonce
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(12)
        .collect();
    server.call(PATIENCE, |limits| {
        server.remote.examine(repo, &nonce, size, limits)
    })
}

fn remember(server: &Server<'_>) -> Result<()> {
    let (context, url) = (server.context, &server.remote.url);
    let remembered = context.trust_record().add_checked(url, context.clock.now());
    remembered.map_err(|error| Error::io(format!("cannot remember that {url} was examined"), error))
}
