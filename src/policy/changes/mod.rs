//! A bounded set of changed files with their content before and after: the input of test-tamper detection and reports.

mod circular;
mod tamper;

pub(crate) use circular::{
    NetLines, Tried, failed_checks, goes_in_circle, is_about_the_work, same_failures,
};
pub(crate) use tamper::{
    FAILING_BEFORE, FLAKY, Loop, in_short, is_of_checks, is_test_path, of_tampering, tampering,
    tampering_text,
};

use crate::model::manifest::ObjectId;

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    /// Where it is, relative to the work tree.
    pub path: String,
    /// What it held; `None` where it was not there.
    pub before: Option<Content>,
    /// What it holds; `None` where it is not there any more.
    pub after: Option<Content>,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The object.
    pub oid: ObjectId,
    /// Its text; `None` for what is binary, or too much to be read.
    pub text: Option<String>,
}

impl ChangedFile {
    /// The text before; empty where there was none.
    fn old_text(&self) -> &str {
        text_of(self.before.as_ref())
    }

    /// The text now; empty where there is none.
    fn new_text(&self) -> &str {
        text_of(self.after.as_ref())
    }

    /// Whether what it held and what it holds can be compared line by line.
    pub(crate) fn is_text(&self) -> bool {
        [&self.before, &self.after]
            .into_iter()
            .flatten()
            .all(|content| content.text.is_some())
    }
}

fn text_of(content: Option<&Content>) -> &str {
    content
        .and_then(|content| content.text.as_deref())
        .unwrap_or_default()
}
