//! Keys of the supervised command, of feedback and of classification rules.

use super::{Key, Section, Shape};
use crate::config::value::Kind::{
    self, Bool, Choice, Command, Duration, Folder, Regex, Size, Text, Words,
};
use crate::model::feedback::CheckKind;

const TYPES: &[&str] = &[
    "feedback_failure",
    "timeout",
    "agent_error",
    "claude_error",
    "system_error",
    "cancellation",
    "crash",
];

pub(super) const MANUAL_FIX: Section = Section {
    path: "manual_fix",
    shape: Shape::Table,
    doc: "Watching a person's fix.",
    keys: &[
        Key::new(
            "quiet_period",
            Duration,
            "How long no file may change before the checks run.",
        ),
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
            Text,
            "The agent that it is, or that is started when no command is given: a profile (recover agents), auto or none.",
        ),
        Key::new("timeout", Duration, "Time for one attempt.").optional(),
        Key::new(
            "fallback",
            Command,
            "What to start instead when no retry is allowed any more; [] is none.",
        ),
        Key::new("grace", Duration, "Time between SIGTERM and SIGKILL."),
        Key::new(
            "shell",
            Text,
            "What runs a command that is one string: SHELL -c COMMAND.",
        ),
    ],
};

const OUTPUTS: &[&str] = &[
    "text", "claude", "codex", "gemini", "opencode", "qwen", "copilot", "aider",
];

pub(super) const AGENT: Section = Section {
    path: "agent",
    shape: Shape::Named,
    doc: "Agents that run --agent NAME starts; a section named like a built-in one (recover agents) changes its keys.",
    keys: &[
        Key::new("program", Text, "What is started; NAME itself when absent.").example("\"mybot\""),
        Key::new(
            "args",
            Words,
            "What makes it work without a person; with {prompt} or {prompt_file} where it belongs.",
        )
        .example("[\"--batch\", \"--task\", \"{prompt_file}\"]"),
        Key::new(
            "prompt",
            Choice(&["stdin", "argument", "file"]),
            "How it gets the prompt; stdin when absent.",
        )
        .example("\"file\""),
        Key::new(
            "output",
            Choice(OUTPUTS),
            "Whose records it prints; text, which is none, when absent.",
        )
        .example("\"text\""),
        Key::new(
            "resume_args",
            Words,
            "What goes on in the session {session}; none when absent.",
        )
        .example("[\"--continue\", \"{session}\"]"),
        Key::new(
            "edit_args",
            Words,
            "What lets it edit the work tree without asking, and nothing more.",
        )
        .example("[\"--allow-edits\"]"),
        Key::new(
            "yolo_args",
            Words,
            "What skips all permissions: taken in place of edit_args with --yolo.",
        )
        .example("[\"--allow-everything\"]"),
        Key::new(
            "exit_codes",
            Kind::ExitCodes,
            "What exit codes mean where the output does not tell.",
        )
        .example("{ 3 = \"RATE_LIMITED\", 4 = \"AUTH_FAILED\" }"),
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
        Key::new(
            "log_limit",
            Size,
            "How much of an attempt's output is kept, head and tail.",
        ),
        Key::new(
            "prompt_limit",
            Size,
            "How much failure context goes into a prompt at most.",
        ),
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
    doc: "What is checked besides the exit codes of the feedback commands.",
    keys: &[
        Key::new(
            "flaky",
            Bool,
            "Run a failing loop again unchanged; if it passes, it is flaky.",
        ),
        Key::new(
            "baseline",
            Bool,
            "Run the loops before the first attempt; what fails there is not the attempt's doing.",
        ),
        Key::new(
            "tamper",
            Bool,
            "Notice an attempt that removes or weakens tests or changes the feedback commands.",
        ),
    ],
};

pub(super) const FEEDBACK: Section = Section {
    path: "feedback",
    shape: Shape::List,
    doc: "Checks: commands that must pass, in this order.",
    keys: &[
        Key::new("name", Text, "Its name; unique.").example("\"test\"").required(),
        Key::new("command", Text, "The shell command; it passes with exit code 0.")
            .example("\"cargo test\"")
            .required(),
        Key::new(
            "kind",
            Choice(&CheckKind::NAMES),
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
        Key::new("id", Text, "Its name in classify --explain; unique.")
            .example("\"registry-down\"")
            .required(),
        Key::new("pattern", Regex, "A regular expression for one line.")
            .example("'registry\\.example\\.com.*unreachable'")
            .required(),
        Key::new(
            "source",
            Choice(&["process", "record", "stderr", "stdout"]),
            "Where to look; everywhere when absent.",
        )
        .example("\"stderr\""),
        Key::new(
            "stage",
            Choice(&CheckKind::NAMES),
            "Only in this stage (or loop).",
        )
        .example("\"build\""),
        Key::new("loop", Choice(&CheckKind::NAMES), "stage.").alias("stage"),
        Key::new(
            "type",
            Choice(TYPES),
            "The failure's type; by the cause when absent.",
        )
        .example("\"system_error\""),
        Key::new("cause", Kind::Cause, "The failure's cause.")
            .example("\"NETWORK_ERROR\"")
            .required(),
        Key::new(
            "retryable",
            Bool,
            "Whether the very same again plausibly succeeds; by the cause when absent.",
        )
        .example("true"),
    ],
};
