//! Keys of retries, waits and rollbacks.

use super::{Key, Section, Shape};
use crate::config::preset::PRESETS;
use crate::config::value::Kind::{
    Bool, Choice, Count, Duration, Millis, Money, Retries, Strategy, Total,
};
use crate::model::failure::Cause;

const DELAYS: &[&str] = &[
    "none",
    "immediate",
    "cooldown",
    "delayed",
    "exponential",
    "conditional",
];

pub(super) const TOP: Section = Section {
    path: "",
    shape: Shape::Table,
    doc: "",
    keys: &[
        Key::new(
            "preset",
            Choice(PRESETS),
            "Defaults of a kind of run: battle, loop, actions, state or lane; keys below go before them.",
        )
        .optional(),
        Key::new(
            "skip_permissions",
            Bool,
            "An agent that is started by its profile skips all its permissions, as with --yolo; the user's own value goes before \
             a project's.",
        ),
    ],
};

pub(super) const RETRY: Section = Section {
    path: "retry",
    shape: Shape::Table,
    doc: "How often and how fast to try again. Limits count failed attempts, the first included.",
    keys: &[
        Key::new("enabled", Bool, "Try again without being asked; false: one attempt, then it is over to a person."),
        Key::new(
            "max_attempts",
            Count(1),
            "Attempts (or max_retries, one less); set here, it replaces the default limits of the causes.",
        ),
        Key::new("max_retries", Retries(0), "max_attempts − 1.").alias("max_attempts"),
        Key::new("task_max_attempts", Count(1), "Failed attempts of one task, whatever their causes; always wins."),
        Key::new(
            "session_max_attempts",
            Count(1),
            "Failed attempts of one session (RECOVER_SESSION, else the run), whatever their causes; always wins.",
        ),
        Key::new(
            "delay",
            Choice(DELAYS),
            "What takes the place of the causes' cooldown where no delay of theirs is set (or default_strategy); none: nothing.",
        )
        .optional(),
        Key::new("default_strategy", Strategy, "delay: immediate, delayed, exponential_backoff, conditional.")
            .alias("delay"),
        Key::new(
            "base_delay",
            Duration,
            "First delay of a growing one: base_delay · 2^(n−1) (or initial_delay_ms, in milliseconds).",
        ),
        Key::new("initial_delay_ms", Millis, "base_delay in milliseconds.").alias("base_delay"),
        Key::new("max_delay", Duration, "Longest delay (or max_delay_ms, in milliseconds)."),
        Key::new("max_delay_ms", Millis, "max_delay in milliseconds.").alias("max_delay"),
        Key::new(
            "jitter",
            Choice(&["full", "none"]),
            "full: a random time between zero and the delay; none: the delay itself.",
        ),
        Key::new("max_wall_time", Duration, "Time from the start of a run after which no further attempt starts.")
            .optional(),
        Key::new("max_cost_usd", Money, "Cost, as the agent's records give it, after which no further attempt starts.")
            .optional(),
        Key::new(
            "max_tokens",
            Total,
            "Tokens of all kinds, as the agent's records give them, after which no further attempt starts.",
        )
        .optional(),
        Key::new("max_park", Duration, "Longest wait for the reset of a usage limit; a longer one is escalated."),
        Key::new(
            "on_give_up",
            Choice(&["rollback", "keep"]),
            "Files of an iteration that is given up, before the next begins: rollback (its work stays in its checkpoint) or keep.",
        ),
    ],
};

pub(super) const RETRY_CAUSES: Section = Section {
    path: "retry.causes",
    shape: Shape::Causes,
    doc: "The same for one cause of failure.",
    keys: &[
        Key::new(
            "max_attempts",
            Count(0),
            "Failed attempts until the cause is exhausted (or max_retries, one less); none: no limit.",
        )
        .optional(),
        Key::new("max_retries", Retries(0), "max_attempts − 1.").alias("max_attempts"),
        Key::new(
            "delay",
            Choice(DELAYS),
            "none, immediate, cooldown, delayed (by base_delay), exponential, conditional (on permissions).",
        ),
        Key::new("base_delay", Duration, "First delay; none: as in [retry].").optional(),
        Key::new("max_delay", Duration, "Longest delay; none: as in [retry].").optional(),
        Key::new(
            "max_rollbacks",
            Count(0),
            "Rollbacks to the last good checkpoint, each with another approach, before it is escalated.",
        )
        .only(Cause::BrokenBuild),
        Key::new(
            "service_max_attempts",
            Count(0),
            "max_attempts where it was the agent's service that failed (500, 502).",
        )
        .only(Cause::Unknown),
        Key::new("service_delay", Choice(DELAYS), "delay where it was the agent's service that failed.")
            .only(Cause::Unknown),
        Key::new("overload_factor", Count(1), "How many times longer the delays are when the service is overloaded.")
            .only(Cause::RateLimited),
    ],
};

pub(super) const COOLDOWN: Section = Section {
    path: "cooldown",
    shape: Shape::Table,
    doc: "The pause after an error.",
    keys: &[
        Key::new(
            "duration",
            Duration,
            "How long nothing is tried again after an error (or cooldown_ms, in milliseconds).",
        ),
        Key::new("cooldown_ms", Millis, "duration in milliseconds.").alias("duration"),
    ],
};

pub(super) const ROLLBACK: Section = Section {
    path: "rollback",
    shape: Shape::Table,
    doc: "What may be restored without asking. Every restore can be undone.",
    keys: &[
        Key::new(
            "enabled",
            Bool,
            "Roll back without being asked; false also sets on_error = false, max_rollbacks = 0 and retry.on_give_up = \"keep\".",
        ),
        Key::new(
            "default_strategy",
            Choice(&["checkpoint_restore"]),
            "checkpoint_restore: files go back to what a checkpoint has of them, which is always so.",
        )
        .alias(""),
        Key::new(
            "on_error",
            Bool,
            "Put the working memory back to the last checkpoint when an error is recorded; source code is never touched by that.",
        ),
        Key::new(
            "safe_mode",
            Choice(&["off", "read_only", "dry_run", "conservative"]),
            "read_only: no file of yours is changed, neither by restores nor exports, settings or a memory rollback, while \
             recover's own records and checkpoints go on; dry_run: every command only reports; conservative: restores, \
             removals and automatic rollbacks need --yes.",
        ),
    ],
};
