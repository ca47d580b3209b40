//! The families of evidence, and how the table of one is read.

use std::sync::OnceLock;

use super::rule::Rule;
use crate::policy::classify::quoted::Quote;
use crate::policy::patterns::{Matches, Patterns};

/// The families, in the order of [`FAMILIES`](super::FAMILIES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy::classify) enum Family {
    /// A time limit of the command itself.
    CommandLimit,
    /// A test runner's own time limit on one test.
    TestLimit,
    /// A test failed for another reason than its time limit.
    Assertion,
    /// Somebody interrupted it.
    Cancelled,
    /// Memory ran out.
    Memory,
    /// A process died.
    Crashed,
    /// Disk, permissions, limits, locks.
    Machine,
    /// A tool of the machine is missing.
    MissingTool,
    /// A server refused: credentials, trust.
    Refused,
    /// No connection.
    Network,
    /// The runner could not load or build what it should run.
    Load,
    /// The runner counts failed tests.
    TestsFailed,
    /// A wrong flag or configuration.
    Input,
    /// Something named is not there.
    Missing,
    /// A compiler's or linker's own words.
    Compile,
    /// Words that most likely mean that it does not build.
    LikelyBuild,
    /// A linter's, formatter's or type checker's findings.
    Findings,
    /// Words that say only that it did not build.
    WeakBuild,
    /// Words that say only that a check failed.
    WeakCheck,
    /// The log declares a test flaky.
    Flaky,
    /// Words of agents' programs and APIs.
    Agent,
    /// What a line of an agent's program looks like when it is an error.
    AgentLine,
    /// A check's comparison, in a message of one line.
    SummaryAssertion,
    /// What happened, as a message of one line names it.
    SummaryWhole,
    /// What a short message begins with.
    SummaryHead,
}

/// A table and how it is read.
pub(in crate::policy::classify) struct FamilyTable {
    /// The rules, the strongest first.
    pub rules: &'static [Rule],
    /// Kinds of lines that are no evidence for this family.
    pub skips: &'static [Quote],
    /// Whether the first line that matches says the most, rather than the last.
    pub first_line: bool,
    patterns: OnceLock<Patterns>,
}

impl FamilyTable {
    /// The rules that match a text, in the table's order.
    pub(in crate::policy::classify) fn matches(&self, text: &[u8]) -> Vec<&'static Rule> {
        let patterns = self
            .patterns
            .get_or_init(|| Patterns::new(self.rules.iter().map(|rule| rule.pattern)));
        let mut room = Matches::default();
        patterns
            .matches(text, &mut room)
            .iter()
            .map(|number| &self.rules[usize::from(*number)])
            .collect()
    }

    /// A family of which the first line that matches says the most.
    pub(super) fn first_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self {
            rules,
            skips,
            first_line: true,
            patterns: OnceLock::new(),
        }
    }

    /// A family of which the last line that matches says the most.
    pub(super) fn last_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self {
            first_line: false,
            ..Self::first_line(rules, skips)
        }
    }
}
