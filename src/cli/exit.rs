//! Exit codes (`recover --help` lists them): one enum, matched exhaustively.

use crate::engine::ErrorKind;
use crate::engine::run::{Driven, Outcome};
use crate::model::decision::Standing;

/// What the process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitCode {
    /// Done, or nothing to do.
    Done,
    /// Failed for another reason.
    Failed,
    /// Usage or configuration error.
    Usage,
    /// Done in part.
    Partial,
    /// Run, checkpoint, session or task not found, or ambiguous.
    NotFound,
    /// The attempt failed; a retry is allowed now.
    RetryAllowed,
    /// Wait.
    Wait,
    /// Budget exhausted.
    Exhausted,
    /// A person is needed.
    NeedsPerson,
    /// Gave up waiting.
    GaveUpWaiting,
    /// No state or repository here.
    NoRepository,
    /// Another process holds the lock.
    Locked,
    /// State or objects are corrupt.
    Corrupt,
    /// Refused.
    Refused,
    /// No space, or a size limit.
    NoSpace,
    /// State was written by a newer version.
    Newer,
    /// An earlier operation was cut off.
    CutOff,
    /// A bug in `recover`.
    Bug,
    /// Checks failed.
    VerificationFailed,
    /// Interrupted by a signal (128 + its number), or a child's own code.
    Other(u8),
}

impl ExitCode {
    /// Every code with its meaning, as the man page and the README list them.
    pub(super) const DOCUMENTED: [(Self, &'static str); 22] = [
        (Self::Done, "Done, or nothing to do."),
        (
            Self::Failed,
            "Failed for another reason; treat unknown codes as this.",
        ),
        (Self::Usage, "Usage or configuration error."),
        (
            Self::Partial,
            "Done in part; the document lists what was not, each with a reason.",
        ),
        (
            Self::NotFound,
            "Run, checkpoint, session or task not found, or ambiguous.",
        ),
        (
            Self::RetryAllowed,
            "The attempt failed; a retry is allowed now.",
        ),
        (
            Self::Wait,
            "Wait: cooldown, backoff or parked; the document has retry_after and wait_ms.",
        ),
        (Self::Exhausted, "Budget exhausted."),
        (
            Self::NeedsPerson,
            "A person is needed: escalated, not recoverable, manual fix open.",
        ),
        (Self::GaveUpWaiting, "Gave up waiting."),
        (
            Self::NoRepository,
            "No state or repository here and the command needs one.",
        ),
        (Self::Locked, "Another process holds the lock."),
        (
            Self::Corrupt,
            "State or objects are corrupt; recover doctor reports what.",
        ),
        (
            Self::Refused,
            "Refused: unsafe, not confirmed, or not applicable.",
        ),
        (Self::NoSpace, "No space, or a size limit."),
        (
            Self::Newer,
            "State was written by a newer version; nothing was changed.",
        ),
        (
            Self::CutOff,
            "An earlier operation was cut off; recover doctor --repair or recover undo finishes it.",
        ),
        (Self::Bug, "A bug in recover."),
        (Self::VerificationFailed, "Checks failed."),
        (
            Self::Other(129),
            "Interrupted by SIGHUP: its terminal was closed.",
        ),
        (Self::Other(130), "Interrupted by SIGINT."),
        (Self::Other(143), "Interrupted by SIGTERM."),
    ];

    /// The number.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Partial => 3,
            Self::NotFound => 4,
            Self::RetryAllowed => 5,
            Self::Wait => 6,
            Self::Exhausted => 7,
            Self::NeedsPerson => 8,
            Self::GaveUpWaiting => 9,
            Self::NoRepository => 10,
            Self::Locked => 11,
            Self::Corrupt => 12,
            Self::Refused => 13,
            Self::NoSpace => 14,
            Self::Newer => 15,
            Self::CutOff => 16,
            Self::Bug => 70,
            Self::VerificationFailed => 100,
            Self::Other(number) => number,
        }
    }

    /// From a number that is one already.
    pub(super) fn other(number: i32) -> Self {
        Self::Other(u8::try_from(number).unwrap_or(1))
    }

    /// What a standing means for a script.
    pub(super) fn of_standing(standing: Standing) -> Self {
        match standing {
            Standing::Allowed => Self::Done,
            Standing::Wait(_) => Self::Wait,
            Standing::Exhausted => Self::Exhausted,
            Standing::NeedsPerson => Self::NeedsPerson,
        }
    }

    /// What a failed attempt means for a script.
    pub(super) fn of_failed(standing: Standing) -> Self {
        match standing {
            Standing::Allowed => Self::RetryAllowed,
            other => Self::of_standing(other),
        }
    }

    /// What the end of a run means for a script.
    pub(super) fn of_driven(driven: &Driven) -> Self {
        match driven.outcome {
            _ if driven.unstartable.is_some() => Self::Usage,
            _ if driven.stopped.is_some() => Self::NeedsPerson,
            Outcome::Complete => Self::Done,
            Outcome::Cancelled => Self::other(driven.interrupted.unwrap_or(130)),
            Outcome::Escalated => Self::NeedsPerson,
            Outcome::Failed if driven.run.failure.is_none() => Self::Exhausted,
            Outcome::Failed => Self::of_failed(driven.standing),
            Outcome::Paused | Outcome::Parked => match (driven.interrupted, driven.standing) {
                (Some(code), _) => Self::other(code),
                (None, Standing::NeedsPerson) => Self::NeedsPerson,
                (None, _) => Self::Wait,
            },
        }
    }
}

impl From<ErrorKind> for ExitCode {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Failed => Self::Failed,
            ErrorKind::Usage | ErrorKind::Config => Self::Usage,
            ErrorKind::Partial => Self::Partial,
            ErrorKind::RunNotFound
            | ErrorKind::Ambiguous
            | ErrorKind::NoCheckpoint
            | ErrorKind::NoSession
            | ErrorKind::NoSubtask
            | ErrorKind::NothingToUndo => Self::NotFound,
            ErrorKind::Wait => Self::Wait,
            ErrorKind::Exhausted => Self::Exhausted,
            ErrorKind::NeedsPerson | ErrorKind::NotCaptured => Self::NeedsPerson,
            ErrorKind::GaveUpWaiting => Self::GaveUpWaiting,
            ErrorKind::NoRepository | ErrorKind::UnsupportedRepository => Self::NoRepository,
            ErrorKind::Locked | ErrorKind::Claimed | ErrorKind::InsideAttempt => Self::Locked,
            ErrorKind::Corrupt => Self::Corrupt,
            ErrorKind::NoSpace => Self::NoSpace,
            ErrorKind::Newer => Self::Newer,
            ErrorKind::CutOff => Self::CutOff,
            ErrorKind::ChecksFail => Self::VerificationFailed,
            ErrorKind::Interrupted(code) => Self::other(code),
            refusal => {
                debug_assert!(refusal.is_refusal(), "{refusal:?} has no exit code");
                Self::Refused
            }
        }
    }
}

/// The error's word in JSON.
pub(super) fn code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Failed => "failed",
        ErrorKind::Usage => "usage",
        ErrorKind::Config => "config",
        ErrorKind::Partial => "partial",
        ErrorKind::RunNotFound => "run_not_found",
        ErrorKind::Ambiguous => "ambiguous",
        ErrorKind::NoCheckpoint | ErrorKind::NotCaptured => "no_checkpoint",
        ErrorKind::NoSession => "no_session",
        ErrorKind::NoSubtask => "subtask_not_found",
        ErrorKind::NothingToUndo => "nothing_to_undo",
        ErrorKind::Wait => "wait",
        ErrorKind::Exhausted => "exhausted",
        ErrorKind::NeedsPerson => "needs_person",
        ErrorKind::GaveUpWaiting => "gave_up_waiting",
        ErrorKind::NoRepository => "no_repository",
        ErrorKind::UnsupportedRepository => "unsupported_repository",
        ErrorKind::Locked => "locked",
        ErrorKind::Claimed => "claimed",
        ErrorKind::InsideAttempt => "inside_attempt",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::HeadMoved => "head_moved",
        ErrorKind::HandEdits => "hand_edits",
        ErrorKind::Conflicts => "conflicts",
        ErrorKind::Blocked => "blocked",
        ErrorKind::UnsafePath => "unsafe_path",
        ErrorKind::OperationInProgress => "operation_in_progress",
        ErrorKind::SafeMode => "safe_mode",
        ErrorKind::ConfirmationNeeded | ErrorKind::ConsentNeeded => "confirmation_needed",
        ErrorKind::RemoteRefused => "remote_refused",
        ErrorKind::NotFailed => "not_failed",
        ErrorKind::NotVerified => "not_verified",
        ErrorKind::ChecksFail => "checks_failed",
        ErrorKind::AlreadyExists => "already_exists",
        ErrorKind::NoIdentity => "no_identity",
        ErrorKind::ForeignOwner => "foreign_owner",
        ErrorKind::ForeignState => "foreign_state",
        ErrorKind::NotTrusted => "not_trusted",
        ErrorKind::NoSpace => "no_space",
        ErrorKind::Newer => "newer",
        ErrorKind::CutOff => "cut_off",
        ErrorKind::Interrupted(_) => "interrupted",
    }
}
