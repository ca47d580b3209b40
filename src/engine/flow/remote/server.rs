//! A git server that runs lie on.

use std::time::Duration;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::remote_consent::{refuse_fork, require_consent};
use crate::git::Repo;
use crate::git::remote::{
    Answer, Limits, NewState, RUNS, Remote, SCRATCH, Update, is_of_run, is_signed, pending_ref, run_ref, tracking_of,
    tracking_ref, write_state,
};
use crate::model::hint::Hint;
use crate::model::id::RunId;
use crate::model::run::RunKey;
use crate::model::snapshot::ObjectId;

/// How long a call may take that moves objects.
const TRANSFER: Duration = Duration::from_secs(30 * 60);
/// How long one may take that only asks.
const QUESTION: Duration = Duration::from_secs(60);
/// How long the program that signs or verifies a state may take.
const SIGNATURE: Duration = Duration::from_secs(30);

/// A server as a command talks to it.
#[derive(Debug)]
pub struct Server<'a> {
    /// Who talks to it, about what.
    pub context: &'a Context,
    /// The remote, as git knows it.
    pub remote: Remote,
    /// Whether a request to stop ends a call: not where the last word is said.
    is_stoppable: bool,
}

/// What came of a call that may have to be made again.
#[derive(Clone, Debug)]
pub enum Reached<T> {
    /// It was answered.
    Yes(T),
    /// The server is away.
    Away(Away),
}

/// Why a server could not be had.
#[derive(Clone, Debug)]
pub struct Away {
    /// In git's words, or its own.
    pub said: String,
    /// When it wants to be asked again.
    pub after: Option<Duration>,
}

impl Away {
    /// As the end of a command that does not wait (9).
    pub fn error(&self, remote: &str) -> Error {
        Error::new(ErrorKind::GaveUpWaiting, format!("the remote {remote} cannot be reached: {}", self.said))
    }
}

impl<'a> Server<'a> {
    /// The server of that name.
    ///
    /// # Errors
    /// No name that git knows (2); a work tree without a repository of the user's (10); a fork's pull request (13).
    pub fn of(context: &'a Context, name: &str) -> Result<Self> {
        refuse_fork(context)?;
        if !context.has_git() {
            let message = "there is no git repository here, so no remote either";
            return Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::git(["init"]).at(context.worktree())));
        }
        let remote = Remote::named(context.repo()?, name)?;
        Ok(Self { context, remote, is_stoppable: true })
    }

    /// The same, before anything is recorded or sent: who has not agreed to that is asked.
    pub fn to_send(context: &'a Context, name: &str) -> Result<Self> {
        let server = Self::of(context, name)?;
        if !context.dry_run() {
            require_consent(context, &server.remote)?;
        }
        Ok(server)
    }

    /// The one that was named, else the one that the user's own configuration names.
    pub fn named(context: &'a Context) -> Result<Self> {
        let name = context.remote_name().ok_or_else(|| {
            let message = "no remote is named: --remote NAME, or [remote] name in your own configuration";
            Error::new(ErrorKind::Usage, message).hint(Hint::git(["remote", "--verbose"]))
        })?;
        Self::of(context, &name)
    }

    /// The same, for a last word that a request to stop does not cut off.
    #[must_use]
    pub fn to_the_end(self) -> Self {
        Self { is_stoppable: false, ..self }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.remote.name
    }

    /// The repository that objects come from and go to.
    pub fn repo(&self) -> Result<&'a Repo> {
        self.context.repo()
    }

    /// Makes a call. What the server refuses is an error in its own words (1).
    fn call<T>(
        &self,
        limit: Duration,
        call: impl FnOnce(&Limits<'_>) -> crate::git::Result<Answer<T>>,
    ) -> Result<Answer<T>> {
        match self.within(limit, call)? {
            Answer::Refused(said) => {
                Err(Error::new(ErrorKind::Failed, format!("the remote {} refuses: {said}", self.name())))
            }
            answer => Ok(answer),
        }
    }

    /// Runs git for as long as that may take.
    fn within<T>(&self, limit: Duration, call: impl FnOnce(&Limits<'_>) -> crate::git::Result<T>) -> Result<T> {
        let stopped = || self.is_stoppable && self.context.interrupts.pending().is_some();
        limited(self.context, &Limits::new(limit, &stopped), call)
    }

    /// Writes a state, signed where the user's commits are.
    pub fn write_state(&self, state: &NewState<'_>) -> Result<ObjectId> {
        let repo = self.repo()?;
        self.within(SIGNATURE, |limits| write_state(repo, state, limits))
    }

    /// What the server has of a run.
    pub fn look(&self, key: &RunKey) -> Result<Reached<Option<ObjectId>>> {
        let name = run_ref(key);
        let repo = self.repo()?;
        Ok(match self.call(QUESTION, |limits| self.remote.list(repo, &[&name], limits))? {
            Answer::Done(found) => Reached::Yes(found.into_iter().find(|(found, _)| *found == name).map(|(_, id)| id)),
            other => Reached::Away(away(other)),
        })
    }

    /// The references of all runs that the server has, or of those with an id.
    pub fn list(&self, id: Option<&RunId>) -> Result<Reached<Vec<(String, ObjectId)>>> {
        let repo = self.repo()?;
        Ok(match self.call(QUESTION, |limits| self.remote.list(repo, &[RUNS], limits))? {
            Answer::Done(mut found) => {
                // What `remote check` tries there is no run.
                found.retain(|(name, _)| !name.starts_with(SCRATCH) && id.is_none_or(|id| is_of_run(name, id)));
                Reached::Yes(found)
            }
            other => Reached::Away(away(other)),
        })
    }

    /// The server's references in a folder.
    pub fn below(&self, folder: &str) -> Result<Vec<(String, ObjectId)>> {
        let repo = self.repo()?;
        match self.call(QUESTION, |limits| self.remote.list(repo, &[folder], limits))? {
            Answer::Done(found) => Ok(found),
            other => Err(away(other).error(self.name())),
        }
    }

    /// Fetches references of runs, each to its own here. `false`: one of them went away meanwhile.
    pub fn fetch(&self, names: &[String]) -> Result<Reached<bool>> {
        let repo = self.repo()?;
        let pair = |name: &String| Some((name.clone(), tracking_of(self.name(), name)?));
        let refs: Vec<(String, String)> = names.iter().filter_map(pair).collect();
        if refs.is_empty() {
            return Ok(Reached::Yes(true));
        }
        Ok(match self.call(TRANSFER, |limits| self.remote.fetch(repo, &refs, limits))? {
            Answer::Done(()) => Reached::Yes(true),
            Answer::Moved => Reached::Yes(false),
            other => Reached::Away(away(other)),
        })
    }

    /// Fetches a commit by its id. `false`: the server does not have it, or does not give it.
    pub fn fetch_commit(&self, commit: &ObjectId) -> Result<Reached<bool>> {
        let repo = self.repo()?;
        let place = format!("refs/recover-tracking/base/{commit}");
        Ok(match self.call(TRANSFER, |limits| self.remote.fetch(repo, &[(commit.0.clone(), place)], limits)) {
            Ok(Answer::Done(())) => Reached::Yes(true),
            Ok(Answer::Moved) => Reached::Yes(false),
            Ok(other) => Reached::Away(away(other)),
            Err(error) if error.kind == ErrorKind::Failed => {
                tracing::debug!(%error, "the commit cannot be had");
                Reached::Yes(false)
            }
            Err(error) => return Err(error),
        })
    }

    /// Gets what a partial clone lacks of a commit's files.
    pub fn backfill(&self, commit: &ObjectId) -> Result<Reached<()>> {
        let repo = self.repo()?;
        Ok(match self.call(TRANSFER, |limits| self.remote.backfill(repo, commit, limits))? {
            Answer::Done(()) => Reached::Yes(()),
            other => Reached::Away(away(other)),
        })
    }

    /// Pushes one update.
    pub fn push(&self, update: Update) -> Result<Answer<()>> {
        let repo = self.repo()?;
        self.call(TRANSFER, |limits| self.remote.push(repo, &[update], limits))
    }

    /// The reference here of what was seen last of a run there.
    pub fn tracking(&self, key: &RunKey) -> String {
        tracking_ref(self.name(), key)
    }

    /// The reference here of what is pushed.
    pub fn pending(&self, key: &RunKey) -> String {
        pending_ref(self.name(), key)
    }

    /// Waits before the server is asked again: as long as it wants, else longer each time.
    ///
    /// # Errors
    /// A request to stop came (130, 143).
    pub fn pause(&self, away: &Away, tried: u32) -> Result<()> {
        let grows = Duration::from_secs(1 << tried.min(6)).mul_f64(0.5 + fastrand::f64() / 2.0);
        let pause = away.after.unwrap_or(grows).clamp(Duration::from_millis(200), Duration::from_secs(15 * 60));
        self.context.interrupts.sleep(pause).map_err(|signal| {
            Error::new(
                ErrorKind::Interrupted(signal.exit_code()),
                format!("stopped while the remote {} was away", self.name()),
            )
        })
    }
}

/// Whether one of the allowed keys signed a state.
pub fn is_signed_by(context: &Context, commit: &ObjectId, signers: &str) -> Result<bool> {
    let repo = context.repo()?;
    let stopped = || context.interrupts.pending().is_some();
    let limits = Limits::new(SIGNATURE, &stopped);
    limited(context, &limits, |limits| is_signed(repo, commit, signers, limits))
}

/// Runs git; one that was stopped is the end of the command.
fn limited<T>(
    context: &Context,
    limits: &Limits<'_>,
    call: impl FnOnce(&Limits<'_>) -> crate::git::Result<T>,
) -> Result<T> {
    match call(limits) {
        Err(crate::git::Error::Stopped) => {
            let code = context.interrupts.pending().map_or(130, crate::process::Signal::exit_code);
            Err(Error::new(ErrorKind::Interrupted(code), "stopped"))
        }
        answer => Ok(answer?),
    }
}

/// Why a call has to be made again.
pub fn away<T>(answer: Answer<T>) -> Away {
    match answer {
        Answer::Away { said, after } => Away { said, after },
        Answer::Cut(said) | Answer::Refused(said) => Away { said, after: None },
        Answer::Moved => Away { said: "what it has changed meanwhile".to_owned(), after: None },
        Answer::Done(_) => Away { said: String::new(), after: None },
    }
}
