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
mod summary;
mod time_limits;

pub(super) use summary::COMPARED;

use std::sync::{LazyLock, OnceLock};

use super::quoted::Quote;
use super::verdict::Verdict;
use crate::policy::patterns::{Matches, Patterns};

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
    /// A check's comparison, in a message of one line.
    SummaryAssertion,
    /// What happened, as a message of one line names it.
    SummaryWhole,
    /// What a short message begins with.
    SummaryHead,
}

/// A table and how it is read.
pub(super) struct FamilyTable {
    /// The rules, the strongest first.
    pub rules: &'static [Rule],
    /// Kinds of lines that are no evidence for this family.
    pub skips: &'static [Quote],
    /// Whether the first line that matches tells the most, rather than the last.
    pub first_line: bool,
    patterns: OnceLock<Patterns>,
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
    /// The rules that match a text, in the table's order.
    pub(super) fn matches(&self, text: &[u8]) -> Vec<&'static Rule> {
        let patterns = self.patterns.get_or_init(|| Patterns::new(self.rules.iter().map(|rule| rule.pattern)));
        let mut room = Matches::default();
        patterns.matches(text, &mut room).iter().map(|number| &self.rules[usize::from(*number)]).collect()
    }

    fn first_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self { rules, skips, first_line: true, patterns: OnceLock::new() }
    }

    fn last_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self { first_line: false, ..Self::first_line(rules, skips) }
    }
}

/// Every family's table.
pub(super) static FAMILIES: LazyLock<[FamilyTable; 24]> = LazyLock::new(|| {
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
        first(summary::ASSERTED, ALL),
        first(summary::WHOLE, ALL),
        first(summary::HEAD, ALL),
    ]
});

/// The rules that may hold at some stages, but for those that only an agent's reader asks.
pub(super) struct StageRules {
    /// Their patterns.
    pub patterns: Patterns,
    /// By pattern: the family, and the rule's place in its table.
    pub places: Vec<(usize, usize)>,
}

impl StageRules {
    /// The rules of `stages`, read once.
    pub(super) fn of(stages: u8) -> &'static Self {
        static STAGES: [OnceLock<StageRules>; 1 + ANY as usize] = [const { OnceLock::new() }; 1 + ANY as usize];
        STAGES[usize::from(stages & ANY)].get_or_init(|| Self::read(stages))
    }

    fn read(stages: u8) -> Self {
        let families = FAMILIES.iter().enumerate().take(Family::Agent as usize);
        let places: Vec<(usize, usize)> = families
            .flat_map(|(family, table)| (0..table.rules.len()).map(move |rule| (family, rule)))
            .filter(|(family, rule)| FAMILIES[*family].rules[*rule].stages & stages != 0)
            .collect();
        let patterns = Patterns::new(places.iter().map(|(family, rule)| FAMILIES[*family].rules[*rule].pattern));
        Self { patterns, places }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex::bytes::RegexSetBuilder;

    use super::*;
    use crate::policy::patterns::oracle;

    #[test]
    fn no_rule_goes_unasked_where_it_matches() {
        for family in FAMILIES.iter() {
            oracle::nothing_is_missed(&family.rules.iter().map(|rule| rule.pattern).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_rule_compiles_and_has_a_name_of_its_own() {
        let mut ids = BTreeSet::new();
        for family in FAMILIES.iter() {
            for rule in family.rules {
                let compiled = RegexSetBuilder::new([rule.pattern]).unicode(false).build();
                assert!(compiled.is_ok(), "{}: {:?}", rule.id, compiled.err());
                assert!(ids.insert(rule.id), "{} is there twice", rule.id);
            }
        }
    }
}
