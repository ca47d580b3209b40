//! The rules: data, one table for each family of evidence.
//!
//! Within a family the first rule that matches wins. Which family is asked when is the decision's business
//! (`super::decide`), in the order of the label rules.

mod agent;
mod broken;
mod cancelled;
mod crashed;
mod findings;
mod input;
mod machine;
mod missing;
mod network;
mod runners;
mod time_limits;

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::quoted::Quote;
use super::verdict::Verdict;

/// At any stage.
pub(super) const ANY: u8 = 0b1_1111;
/// While the agent runs.
pub(super) const AGENT: u8 = 0b0_0001;
/// While something is built, fetched or prepared.
pub(super) const BUILD: u8 = 0b0_0010;
/// While tests run.
pub(super) const TEST: u8 = 0b0_0100;
/// While a linter or formatter runs.
pub(super) const LINT: u8 = 0b0_1000;
/// While a type checker runs.
pub(super) const TYPECHECK: u8 = 0b1_0000;

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name, as evidence shows it.
    pub id: &'static str,
    /// The stages it holds at.
    pub stages: u8,
    /// What a line looks like.
    pub pattern: &'static str,
    /// What that means.
    pub verdict: Verdict,
}

/// A rule of a table.
const fn rule(id: &'static str, stages: u8, pattern: &'static str, verdict: Verdict) -> Rule {
    Rule { id, stages, pattern, verdict }
}

/// The families, in the order of [`FAMILIES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
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
}

/// A table and how it is read.
pub(super) struct FamilyTable {
    /// The rules, the strongest first.
    pub rules: &'static [Rule],
    /// Kinds of lines that are no evidence for this family.
    pub skips: &'static [Quote],
    /// Whether the first line that matches tells the most, rather than the last.
    pub first_line: bool,
    set: OnceLock<RegexSet>,
}

const TOOLS: &[Quote] = &[Quote::Source, Quote::Name];
const WITH_NAMES: &[Quote] = &[Quote::Source];
const WITH_NAMES_ONLY: &[Quote] = &[Quote::Source, Quote::Location];
const WITH_SOURCE: &[Quote] = &[Quote::Name];
const WITHOUT_LOCATIONS: &[Quote] = &[Quote::Source, Quote::Name, Quote::Location];
const WITHOUT_SUCCESS: &[Quote] = &[Quote::Source, Quote::Name, Quote::Success];
const ALL: &[Quote] = &[];
const ALL_BUT_SUCCESS: &[Quote] = &[Quote::Success];

impl FamilyTable {
    /// The rules that match a line, by their place in the table.
    pub(super) fn matches(&self, line: &[u8]) -> impl Iterator<Item = usize> {
        self.set.get_or_init(|| compile(self.rules)).matches(line).into_iter()
    }

    fn first_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self { rules, skips, first_line: true, set: OnceLock::new() }
    }

    fn last_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self { first_line: false, ..Self::first_line(rules, skips) }
    }
}

/// Every family's table.
pub(super) static FAMILIES: LazyLock<[FamilyTable; 21]> = LazyLock::new(|| {
    let first = FamilyTable::first_line;
    let last = FamilyTable::last_line;
    [
        last(time_limits::COMMAND, WITHOUT_LOCATIONS),
        last(time_limits::TEST_LIMIT, WITH_NAMES),
        first(runners::ASSERTION, ALL),
        last(cancelled::RULES, WITHOUT_LOCATIONS),
        last(crashed::MEMORY, WITHOUT_LOCATIONS),
        last(crashed::DIED, WITH_NAMES_ONLY),
        last(machine::RULES, WITHOUT_LOCATIONS),
        first(machine::MISSING_TOOL, WITHOUT_LOCATIONS),
        last(network::RULES, TOOLS),
        first(runners::LOAD, WITH_SOURCE),
        first(runners::TESTS_FAILED, ALL),
        first(input::RULES, WITHOUT_LOCATIONS),
        first(missing::RULES, WITHOUT_LOCATIONS),
        first(broken::COMPILE, TOOLS),
        first(broken::LIKELY, WITHOUT_LOCATIONS),
        first(findings::RULES, ALL),
        first(broken::WEAK, WITHOUT_SUCCESS),
        first(findings::WEAK, ALL_BUT_SUCCESS),
        first(runners::FLAKY, ALL),
        last(agent::RULES, TOOLS),
        last(agent::LINES, TOOLS),
    ]
});

/// Compiles a table. A test compiles every table, so a pattern that does not compile cannot get this far; were it to,
/// the family would be silent rather than the program stopped.
fn compile(rules: &[Rule]) -> RegexSet {
    let patterns = rules.iter().map(|rule| rule.pattern);
    RegexSetBuilder::new(patterns).unicode(false).build().unwrap_or_else(|_| RegexSet::empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_compiles_and_has_a_name_of_its_own() {
        let mut ids = BTreeSet::new();
        for family in FAMILIES.iter() {
            for rule in family.rules {
                let compiled = RegexSetBuilder::new([rule.pattern]).unicode(false).build();
                assert!(compiled.is_ok(), "{}: {:?}", rule.id, compiled.err());
                assert!(ids.insert(rule.id), "{} is there twice", rule.id);
            }
            assert_eq!(compile(family.rules).len(), family.rules.len());
        }
    }
}
