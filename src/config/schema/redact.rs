//! Keys of what is masked.

use super::section::{Key, Section, Shape};
use crate::config::value::Kind::{Regexes, Variables};

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
