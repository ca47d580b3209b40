//! Keys of checkpoints and the loop's state.

use super::{Key, Section, Shape};
use crate::config::value::Kind::{
    Bool, Choice, Count, Days, Duration, Globs, Hours, KeepLast, Regexes, Size, Text, Variables,
};

pub(super) const CHECKPOINT: Section = Section {
    path: "checkpoint",
    shape: Shape::Table,
    doc: "What a checkpoint captures, when, and how it is kept.",
    keys: &[
        Key::new(
            "enabled",
            Bool,
            "false: none at an interval, after operations or by hooks. A run's start, its attempts' ends and a restore have theirs.",
        ),
        Key::new("auto_commit", Bool, "Commit each successful iteration on the branch."),
        Key::new(
            "storage",
            Choice(&["snapshot", "commit", "patch"]),
            "snapshot: a hidden commit; commit: also one on the branch; patch: also a patch file.",
        ),
        Key::new("lane_file", Text, "Where the lane records are, relative to the project root."),
        Key::new("max_file_size", Size, "Untracked files over this are left out and listed."),
        Key::new(
            "max_untracked_files",
            Count(0),
            "More untracked files than this are refused (ten times as many without a repository); of what an attempt made, the largest folders are left out.",
        ),
        Key::new(
            "max_untracked_bytes",
            Size,
            "More bytes in untracked files than this are refused (ten times as many without a repository); of what an attempt made, the largest folders are left out.",
        ),
        Key::new("include", Globs, "Ignored paths to capture all the same."),
        Key::new("exclude", Globs, "Paths to leave out; they are never overwritten or deleted either."),
        Key::new(
            "interval",
            Duration,
            "A checkpoint is due when the latest is this old: during attempts, in hooks, --if-due.",
        )
        .optional(),
        Key::new(
            "every_operations",
            Count(1),
            "One is due after this many operations too: steps, an agent's commands, --if-due --trigger operation.",
        )
        .optional(),
    ],
};

pub(super) const CAPTURE: Section = Section {
    path: "capture",
    shape: Shape::Table,
    doc: "Ignored files that have copies in .git/recover, never in a commit.",
    keys: &[Key::new(
        "precious",
        Globs,
        "These files, at any depth: up to 1 MiB each, 100 of them; none where CI is set.",
    )],
};

pub(super) const RETENTION: Section = Section {
    path: "retention",
    shape: Shape::Table,
    doc: "Which checkpoints prune and the end of runs remove. Pinned ones, milestones and what undo needs stay.",
    keys: &[
        Key::new(
            "keep_last",
            Count(0),
            "The newest checkpoints, which stay whatever their age.",
        ),
        Key::new("max_age", Duration, "The others go at this age.").optional(),
        Key::new("max_per_session", Count(1), "Checkpoints of one session.").optional(),
        Key::new(
            "keep_failed",
            Bool,
            "Younger ones with a failed verdict stay.",
        ),
        Key::new(
            "keep_successful",
            Bool,
            "Younger ones with a passed verdict stay.",
        ),
        Key::new(
            "after_end",
            Duration,
            "How long after its end, or after it was accepted or closed, a run keeps all of them.",
        ),
        Key::new(
            "on_success_keep_last",
            Count(0),
            "How many stay then of a run that ended well, milestones aside.",
        )
        .optional(),
        Key::new(
            "on_failure",
            Choice(&["keep_all", "limits"]),
            "Those of a run that failed: keep_all, or what the other limits say.",
        ),
        Key::new(
            "scheduled_max_age",
            Duration,
            "How long after its end a run that failed keeps all, unless it is closed.",
        )
        .optional(),
        Key::new(
            "scheduled_cleanup",
            Bool,
            "Tidy up runs that failed at that age; false also sets scheduled_max_age = \"none\".",
        ),
        Key::new(
            "max_total_size",
            Size,
            "Bytes that all checkpoints may hold beyond what branches hold (before compression).",
        )
        .optional(),
    ],
};

pub(super) const ACCEPT: Section = Section {
    path: "accept",
    shape: Shape::Table,
    doc: "What recover accept leaves out of its commits, besides what looks like a secret.",
    keys: &[
        Key::new(
            "max_new_file",
            Size,
            "New files over this are committed only with --include PATH.",
        ),
        Key::new(
            "leave_out",
            Globs,
            "New files that are not committed, unless --include names one.",
        ),
    ],
};

pub(super) const CHECKPOINTS: Section = Section {
    path: "checkpoints",
    shape: Shape::Alias,
    doc: "[checkpoint] and [retention] in the words of the state recovery specification, also as [state_recovery.checkpoints].",
    keys: &[
        Key::new("enabled", Bool, "checkpoint.enabled.").alias("checkpoint.enabled"),
        Key::new("max_per_session", Count(1), "retention.max_per_session.")
            .alias("retention.max_per_session")
            .optional(),
        Key::new("max_age_hours", Hours, "retention.max_age in hours.")
            .alias("retention.max_age")
            .optional(),
    ],
};

pub(super) const CLEANUP: Section = Section {
    path: "cleanup",
    shape: Shape::Alias,
    doc: "[retention] in the words of the state recovery specification, also as [state_recovery.cleanup].",
    keys: &[
        Key::new("on_success", KeepLast, "retention.on_success_keep_last.")
            .alias("retention.on_success_keep_last"),
        Key::new(
            "on_failure",
            Choice(&["keep_all", "limits"]),
            "retention.on_failure.",
        )
        .alias("retention.on_failure"),
        Key::new("scheduled_cleanup", Bool, "retention.scheduled_cleanup.")
            .alias("retention.scheduled_cleanup"),
        Key::new("max_age_days", Days, "retention.scheduled_max_age in days.")
            .alias("retention.scheduled_max_age")
            .optional(),
    ],
};

pub(super) const MEMORY: Section = Section {
    path: "memory",
    shape: Shape::Table,
    doc: "The loop's own state files: globs below the state directory.",
    keys: &[
        Key::new("long_term", Globs, "Never rolled back."),
        Key::new(
            "loop_state",
            Globs,
            "Cleared after an error, so that the loop starts afresh.",
        ),
        Key::new(
            "max_state_size",
            Size,
            "More state than this in a checkpoint is an error that names the largest file.",
        ),
    ],
};

pub(super) const REDACT: Section = Section {
    path: "redact",
    shape: Shape::Table,
    doc: "What is masked wherever it is shown, beside the usual secrets; every file adds to it.",
    keys: &[
        Key::new(
            "patterns",
            Regexes,
            "Regular expressions; all that one matches is masked.",
        )
        .adds(),
        Key::new(
            "variables",
            Variables,
            "Environment variables whose values are masked, whatever they are called.",
        )
        .adds(),
    ],
};
