//! What an operation can refuse or fail with: a kind (which decides the exit code), a message, a hint, paths.

use std::path::Path;

use crate::config::ConfigError;
use crate::durable::{LockError, Refused};
use crate::git;
use crate::git::base::Unusable;
use crate::model::state::SelectionError;
use crate::model::{Hint, PathReason};
use crate::process::Signal;
use crate::store::StoreError;

/// Results of operations.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of errors: each with its word in JSON, and what the process ends with.
macro_rules! error_kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal, $code:literal;)*) => {
        /// Why an operation did not do what was asked. Each kind has one code in JSON and one exit code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ErrorKind {
            $($(#[$doc])* $kind,)*
            /// Interrupted by a signal (130, 143).
            Interrupted(i32),
        }

        impl ErrorKind {
            /// The word of an error in JSON, and what the process ends with.
            pub(crate) fn code(self) -> (&'static str, u8) {
                match self {
                    $(Self::$kind => ($word, $code),)*
                    Self::Interrupted(code) => ("interrupted", u8::try_from(code).unwrap_or(1)),
                }
            }
        }
    };
}

error_kinds! {
    /// Failed for another reason.
    Failed = "failed", 1;
    /// Wrong arguments.
    Usage = "usage", 2;
    /// Wrong configuration.
    Config = "config", 2;
    /// Done in part.
    Partial = "partial", 3;
    /// No such run.
    RunNotFound = "run_not_found", 4;
    /// Several runs or checkpoints fit.
    Ambiguous = "ambiguous", 4;
    /// No such checkpoint.
    NoCheckpoint = "no_checkpoint", 4;
    /// No such session.
    NoSession = "no_session", 4;
    /// No such subtask.
    NoSubtask = "subtask_not_found", 4;
    /// No such vault.
    VaultNotFound = "vault_not_found", 4;
    /// No such limit.
    LimitNotFound = "limit_not_found", 4;
    /// Nothing to undo or to redo.
    NothingToUndo = "nothing_to_undo", 4;
    /// Not before a certain time.
    Wait = "wait", 6;
    /// What there is before or after an attempt cannot be captured.
    NotCaptured = "no_checkpoint", 8;
    /// No attempt is left.
    Exhausted = "exhausted", 7;
    /// A person is needed.
    NeedsPerson = "needs_person", 8;
    /// Gave up waiting.
    GaveUpWaiting = "gave_up_waiting", 9;
    /// Neither a repository nor a state directory.
    NoRepository = "no_repository", 10;
    /// A repository that cannot be used.
    UnsupportedRepository = "unsupported_repository", 10;
    /// Another process holds a lock, or a live run is under way.
    Locked = "locked", 11;
    /// Another user holds the run, which lies on a remote.
    Claimed = "claimed", 11;
    /// Not for a process that is part of a supervised attempt.
    InsideAttempt = "inside_attempt", 11;
    /// State or objects are damaged.
    Corrupt = "corrupt", 12;
    /// Unsafe: the branch was switched, or commits of others are in the way.
    HeadMoved = "head_moved", 13;
    /// Unsafe: a person edited paths since the run last wrote.
    HandEdits = "hand_edits", 13;
    /// Unsafe: something stands in the way.
    Conflicts = "conflicts", 13;
    /// The system does not let paths be replaced.
    Blocked = "blocked", 13;
    /// Unsafe: a path that must not be touched.
    UnsafePath = "unsafe_path", 13;
    /// Unsafe: a merge or the like is in progress.
    OperationInProgress = "operation_in_progress", 13;
    /// Refused by the configured safe mode.
    SafeMode = "safe_mode", 13;
    /// Would need an answer, and nobody can be asked.
    ConfirmationNeeded = "confirmation_needed", 13;
    /// Would be sent where nothing was sent before, and nobody consented.
    ConsentNeeded = "confirmation_needed", 13;
    /// A remote that nothing is sent to, or nothing from here.
    RemoteRefused = "remote_refused", 13;
    /// The system cannot confine what is to be confined.
    NotConfined = "not_confined", 13;
    /// The run is neither failed nor interrupted.
    NotFailed = "not_failed", 13;
    /// The manual fix is not verified.
    NotVerified = "not_verified", 13;
    /// A check fails on what would be committed.
    ChecksFail = "checks_failed", 100;
    /// Something of that name is there already.
    AlreadyExists = "already_exists", 13;
    /// Git is not told who commits.
    NoIdentity = "no_identity", 13;
    /// The project or its state belongs to another user.
    ForeignOwner = "foreign_owner", 13;
    /// The state came from elsewhere, and is only read.
    ForeignState = "foreign_state", 13;
    /// The project's configuration asks for what the user does not trust.
    NotTrusted = "not_trusted", 13;
    /// No space, or over a limit.
    NoSpace = "no_space", 14;
    /// Written by a newer version.
    Newer = "newer", 15;
    /// An earlier operation was interrupted.
    CutOff = "cut_off", 16;
}

impl ErrorKind {
    /// Whether nothing was done because it is unsafe, or a user would have to allow it (13).
    pub(crate) fn is_refusal(self) -> bool {
        self.code().1 == 13
    }
}

/// An error with what a person needs to go on.
#[derive(Debug)]
pub(crate) struct Error {
    /// What kind it is.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// What to do about it, where there is a command for it.
    pub hint: Option<Hint>,
    /// The paths it is about.
    pub paths: Vec<PathReason>,
    /// Where something would have been sent without consent.
    pub url: Option<Box<str>>,
    source: Option<anyhow::Error>,
}

impl Error {
    /// An error of this kind.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            paths: Vec::new(),
            url: None,
            source: None,
        }
    }

    /// A failure of the operating system with what was being done.
    pub(crate) fn io(message: impl Into<String>, source: std::io::Error) -> Self {
        anyhow::Error::new(source).context(message.into()).into()
    }

    /// A failure of the operating system to `read`, `write` or the like what is at a path.
    pub(crate) fn cannot(what: &str, path: &Path, source: std::io::Error) -> Self {
        Self::io(format!("cannot {what} {}", path.display()), source)
    }

    /// What did not come to its end because of a signal.
    pub(crate) fn interrupted(signal: Signal, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Interrupted(signal.exit_code()), message)
    }

    /// With the command to copy.
    #[must_use]
    pub(crate) fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }

    /// With the command to copy, where there is one.
    #[must_use]
    pub(crate) fn with(self, hint: Option<Hint>) -> Self {
        Self { hint, ..self }
    }

    /// The message and what caused it, in one line.
    pub(crate) fn explained(&self) -> String {
        let mut text = self.message.clone();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            // Some say themselves what they were caused by.
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        text
    }

    /// With the paths it is about.
    #[must_use]
    pub(crate) fn paths(mut self, paths: Vec<PathReason>) -> Self {
        self.paths = paths;
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref()?.source()
    }
}

/// What makes a repository usable again; `None` where no command does.
fn way_out(unusable: &Unusable) -> Option<Hint> {
    let hint = if unusable.repair().is_some() || unusable.is_head_lost() {
        Hint::recover(["doctor", "--repair"])
    } else {
        Hint::git(unusable.git_command()?.split(' '))
    };
    Some(hint.at(&unusable.place))
}

/// What failed with its context, which is the message. A full disk and a place that was refused keep their kinds.
impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        use std::io::ErrorKind as Io;
        let io = error
            .chain()
            .find_map(|cause| cause.downcast_ref::<std::io::Error>());
        if let Some(refused) = io.and_then(Refused::of) {
            return refused.clone().into();
        }
        let (kind, has_room) = match io.map(std::io::Error::kind) {
            Some(Io::StorageFull | Io::QuotaExceeded) => (ErrorKind::NoSpace, false),
            Some(Io::FileTooLarge) => (ErrorKind::NoSpace, true),
            _ => (ErrorKind::Failed, true),
        };
        let hint = (!has_room).then(|| Hint::recover(["checkpoint", "prune", "--dry-run"]));
        let message = error.to_string();
        Self {
            hint,
            source: Some(error),
            ..Self::new(kind, message)
        }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let advice = match refused.state_elsewhere() {
            Some(_) => "; state elsewhere is named with --state-dir or RECOVER_STATE_DIR",
            None => "",
        };
        Self::new(ErrorKind::UnsafePath, format!("{refused}{advice}")).hint(refused.hint())
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::new(ErrorKind::Locked, error.to_string()),
            LockError::Io { file, source } => {
                Self::io(format!("cannot lock {}", file.display()), source)
            }
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Io { source, .. } => Self::io(message, source),
            StoreError::Corrupt { .. } => {
                Self::new(ErrorKind::Corrupt, message).hint(Hint::recover(["doctor", "--rebuild"]))
            }
            StoreError::Newer { .. } => Self::new(
                ErrorKind::Newer,
                format!("{message}: nothing was changed, use that version"),
            ),
            StoreError::Foreign { ref dir, .. } => {
                let message = format!(
                    "{message}: it is read-only until you adopt it; or use another --state-dir ({} is left \
                    unchanged)",
                    dir.display()
                );
                Self::new(ErrorKind::ForeignState, message)
                    .hint(Hint::recover(["trust", "--state"]))
            }
            StoreError::Lock(lock) => lock.into(),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        if let Some(refused) = error.refused {
            return (*refused).into();
        }
        // What would be right is no command.
        let advice = error
            .hint
            .as_ref()
            .map_or(String::new(), |advice| format!(" ({advice})"));
        Self::new(ErrorKind::Config, format!("{error}{advice}"))
    }
}

impl From<SelectionError> for Error {
    fn from(error: SelectionError) -> Self {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let none = ErrorKind::NoCheckpoint;
        let (kind, message) = match &error {
            SelectionError::Ambiguous { .. } => {
                let message = format!("{error}; give more of the id, or @SEQ");
                (ErrorKind::Ambiguous, message)
            }
            SelectionError::NotFound { selector, .. } if is_number(selector) => {
                let number = format!("the one with number {selector} is named @{selector}");
                (none, format!("No checkpoint available: {error}; {number}"))
            }
            SelectionError::NotFound { selector, .. } if selector == "HEAD" => {
                let ours =
                    "which is a name of git's; use latest, or initial for the start of the run";
                (none, format!("No checkpoint available: {error}, {ours}"))
            }
            _ => (none, format!("No checkpoint available: {error}")),
        };
        Self::new(kind, message).hint(Hint::recover(["checkpoint", "list", "--all-runs"]))
    }
}

impl From<git::Error> for Error {
    fn from(error: git::Error) -> Self {
        use ErrorKind as Kind;
        use git::Error as Git;
        let mut message = error.to_string();
        let (kind, hint) = match error {
            Git::Refused(refused) => return refused.into(),
            Git::Io { source, .. } => return Self::io(message, source),
            Git::Git { source, .. } => return anyhow::Error::new(source).context(message).into(),
            Git::Conflict { paths } => {
                let message = format!("Rollback failed - conflicts: {message}");
                let hint = Hint::git(["status", "--short", "--ignored"]);
                return Self::new(Kind::Conflicts, message).paths(paths).hint(hint);
            }
            Git::NotARepository(start) => {
                (Kind::NoRepository, Some(Hint::git(["init"]).at(&start)))
            }
            Git::Unsupported(_) => (Kind::UnsupportedRepository, None),
            Git::Unusable(unusable) => (Kind::UnsupportedRepository, way_out(&unusable)),
            Git::StrayWorktree { place, known } => {
                let is_copy = known.exists();
                let what = if is_copy { "list" } else { "repair" };
                let folder = if is_copy { known } else { place };
                let hint = Hint::git(["worktree", what]).at(&folder);
                (Kind::UnsafePath, Some(hint))
            }
            Git::ForeignOwner { root, .. } => {
                message += ": run recover as its owner, or declare it safe as for git itself";
                let hint = Hint::git(["config", "--global", "--add", "safe.directory"]);
                (Kind::ForeignOwner, Some(hint.arg(&root)))
            }
            Git::UnsafePath { .. } => (Kind::UnsafePath, None),
            Git::Program { .. } => (Kind::Failed, None),
            Git::UnknownRemote { .. } => {
                message += "; git remote add NAME URL gives a URL a name, [store.NAME] in your own configuration an \
                            object store";
                (Kind::Usage, Some(Hint::git(["remote", "--verbose"])))
            }
            Git::RefusedRemote { name, .. } => {
                let hint = Hint::git(["remote", "get-url", "--push", "--all", &name]);
                (Kind::RemoteRefused, Some(hint))
            }
            Git::BadStore { .. } => (Kind::Usage, Some(Hint::recover(["help", "config"]))),
            Git::Stopped => (Kind::Interrupted(130), None),
            Git::HeadMoved { .. } => (Kind::HeadMoved, None),
            Git::NoSpace { .. } => {
                message += ": free some, or remove checkpoints";
                let hint = Hint::recover(["checkpoint", "prune", "--dry-run"]);
                (Kind::NoSpace, Some(hint))
            }
            Git::FileLimit(_) => (Kind::NoSpace, None),
            Git::UntrackedFlood { folder, .. } => {
                message += &format!(
                    ": add the line '/{folder}' to .git/info/exclude, or raise [checkpoint] max_untracked_files"
                );
                let hint = Hint::git(["status", "--short", "--untracked-files=normal"]);
                (Kind::NoSpace, Some(hint))
            }
            Git::Locked { file, .. } => {
                // Ours is released by whoever holds it; git's may have been left.
                let is_gits = file.extension().is_some_and(|end| end == "lock");
                (Kind::Locked, is_gits.then(|| Hint::recover(["doctor"])))
            }
            Git::Corrupt(_) => (Kind::Corrupt, Some(Hint::recover(["doctor"]))),
            Git::Newer(_) => (Kind::Newer, None),
        };
        Self::new(kind, message).with(hint)
    }
}
