//! Keys that are a person's rather than a project's: what notifies them, where runs are sent, how text looks.

use super::{Key, Section, Shape};
use crate::config::value::Kind::{self, Bool, Choice, Choices, Command, Size, Text};

pub(super) const NOTIFY: Section = Section {
    path: "notify",
    shape: Shape::Table,
    doc: "What is started when something happens in a run: it reads the document notify of recover-json(7), RECOVER_SUMMARY is a line for people, RECOVER_EVENT and RECOVER_RUN_ID are what happened and where.",
    keys: &[
        Key::new(
            "command",
            Command,
            "What is started, for 10 s at most: a string for the shell, or a list; [] is none.",
        ),
        Key::new(
            "on",
            Choices(&["needs_person", "parked", "gave_up", "ended"]),
            "What it is started for: a run stands until a person does something; waits for a known time; gave an iteration up; ended otherwise.",
        ),
    ],
};

pub(super) const REMOTE: Section = Section {
    path: "remote",
    shape: Shape::Table,
    doc: "The git remote that keeps a run beyond this machine.",
    keys: &[
        Key::new(
            "name",
            Kind::RemoteName,
            "The remote, by the name that git knows it by; none: nothing is sent.",
        )
        .optional(),
        Key::new(
            "mode",
            Choice(&["strict", "lazy"]),
            "strict: an attempt begins only once its record is there; lazy: sent when an attempt ends.",
        ),
        Key::new(
            "lease",
            Kind::DurationFrom(30),
            "How long a claim holds without a sign of life.",
        ),
        Key::new(
            "consent",
            Text,
            "The URL that may be sent to without a question.",
        )
        .optional(),
        Key::new("max_object", Size, "Files over this stay here."),
        Key::new("untracked", Bool, "Send untracked files."),
        Key::new(
            "filtered",
            Choice(&["withhold", "send"]),
            "Files that git stores through a filter other than lfs (git-crypt, say): withhold: they stay here, in exports too; send: they go as they are in the work tree.",
        ),
        Key::new(
            "setup",
            Command,
            "What is run once after a run was taken over from another machine; [] is none.",
        ),
        Key::new(
            "allowed_signers",
            Text,
            "A file of keys in ssh's format: only what they signed is believed.",
        )
        .optional(),
    ],
};

pub(super) const UI: Section = Section {
    path: "ui",
    shape: Shape::Table,
    doc: "How text looks.",
    keys: &[Key::new(
        "color",
        Choice(&["auto", "always", "never"]),
        "When to use color, as --color.",
    )],
};
