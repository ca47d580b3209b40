//! Keys of the supervised command, of feedback and of classification rules.

use super::section::{Key, Section, Shape};
use crate::config::value::Kind::{self, Bool, Choice, Command, Duration, Folder, Regex, Size, Text};

const LOOPS: &[&str] = &["agent", "build", "test", "lint", "typecheck"];
const TYPES: &[&str] =
    &["feedback_failure", "timeout", "agent_error", "claude_error", "system_error", "cancellation", "crash"];

pub(super) const MANUAL_FIX: Section = Section {
    path: "manual_fix",
    shape: Shape::Table,
    doc: "Watching a person's fix.",
    keys: &[
        Key::new("quiet_period", Duration, "How long no file may change before the feedback loops run."),
        Key::new("verify_on_change", Bool, "Run them after each change."),
        Key::new(
            "poll_interval",
            Duration,
            "How often to compare the work tree where the system does not report changes.",
        ),
    ],
};

pub(super) const RUNNER: Section = Section {
    path: "runner",
    shape: Shape::Table,
    doc: "The supervised command.",
    keys: &[
        Key::new(
            "command",
            Command,
            "What run and resume start when no command is given: a string for the shell, or a list; [] is none.",
        ),
        Key::new(
            "agent",
            Choice(&["auto", "claude", "codex", "gemini", "opencode", "aider", "none"]),
            "Whose records its output is read as.",
        ),
        Key::new("timeout", Duration, "Time for one attempt.").optional(),
        Key::new("fallback", Command, "What to start instead when no retry is allowed any more; [] is none."),
        Key::new("grace", Duration, "Time between SIGTERM and SIGKILL."),
        Key::new("shell", Text, "What runs a command that is one string: SHELL -c COMMAND."),
    ],
};

pub(super) const RUN: Section = Section {
    path: "run",
    shape: Shape::Table,
    doc: "One supervised run.",
    keys: &[
        Key::new(
            "on_failure",
            Choice(&["policy", "retry", "rollback", "manual_fix", "stop"]),
            "What follows a failed attempt: what the policy decides, or always the same.",
        ),
        Key::new("log_limit", Size, "How much of an attempt's output is kept, head and tail."),
        Key::new("prompt_limit", Size, "How much failure context goes into a prompt at most."),
        Key::new(
            "leftovers",
            Choice(&["auto", "end", "keep"]),
            "Processes that an attempt left outside its session: end those in the work tree, end all, or keep; all are reported.",
        ),
    ],
};

pub(super) const CHECKS: Section = Section {
    path: "checks",
    shape: Shape::Table,
    doc: "What is checked besides the exit codes of the feedback loops.",
    keys: &[
        Key::new("flaky", Bool, "Run a failing loop again unchanged; if it passes, it is flaky."),
        Key::new(
            "baseline",
            Bool,
            "Run the loops before the first attempt; what fails there is not the attempt's doing.",
        ),
        Key::new("tamper", Bool, "Notice an attempt that removes or weakens tests or changes the feedback commands."),
    ],
};

pub(super) const FEEDBACK: Section = Section {
    path: "feedback",
    shape: Shape::List,
    doc: "Feedback loops: commands that must pass, in this order.",
    keys: &[
        Key::new("name", Text, "Its name; unique.").example("\"test\"").required(),
        Key::new("command", Text, "The shell command; it passes with exit code 0.")
            .example("\"cargo test\"")
            .required(),
        Key::new(
            "kind",
            Choice(LOOPS),
            "agent, build, test, lint or typecheck; guessed from the name and the command when absent.",
        )
        .example("\"test\""),
        Key::new("dir", Folder, "Where it starts, relative to the project; at its root when absent.")
            .example("\"crates/core\"")
            .optional(),
        Key::new("timeout", Duration, "How long it may take.").example("\"10m\"").optional(),
    ],
};

pub(super) const RULE: Section = Section {
    path: "rule",
    shape: Shape::List,
    doc: "Classification rules, tried before the built-in ones; the first match wins.",
    keys: &[
        Key::new("id", Text, "Its name in classify --explain; unique.").example("\"registry-down\"").required(),
        Key::new("pattern", Regex, "A regular expression for one line.")
            .example("'registry\\.example\\.com.*unreachable'")
            .required(),
        Key::new(
            "source",
            Choice(&["process", "record", "stderr", "stdout"]),
            "Where to look; everywhere when absent.",
        )
        .example("\"stderr\""),
        Key::new("stage", Choice(LOOPS), "Only in this stage (or loop).").example("\"build\""),
        Key::new("loop", Choice(LOOPS), "stage.").alias("stage"),
        Key::new("type", Choice(TYPES), "The failure's type; by the cause when absent.").example("\"system_error\""),
        Key::new("cause", Kind::Cause, "The failure's cause.").example("\"NETWORK_ERROR\"").required(),
        Key::new("retryable", Bool, "Whether the very same again plausibly succeeds; by the cause when absent.")
            .example("true"),
    ],
};
