//! The rules of classification as data: one table for each family of evidence, and how a table is read.
//!
//! Within a family the first rule that matches wins. Which family is asked when is decided elsewhere (`super::decide`).

mod agent;
mod author_message;
mod broken;
mod cancelled;
mod crashed;
mod family;
mod findings;
mod input;
mod machine;
mod missing;
mod network;
mod refused;
mod rule;
mod runners;
mod time_limits;

pub(super) use author_message::COMPARED;
pub(super) use broken::TRACEBACK;
pub(super) use family::Family;
pub(super) use rule::{AGENT, ANY, BUILD, LINT, Rule, TEST, TYPECHECK};

use std::sync::{LazyLock, OnceLock};

use super::quoted::Quote;
use crate::policy::patterns::Patterns;
use family::FamilyTable;

const TOOLS: &[Quote] = &[Quote::Source, Quote::Name];
const WITH_NAMES: &[Quote] = &[Quote::Source];
const WITH_NAMES_ONLY: &[Quote] = &[Quote::Source, Quote::Location];
const WITH_SOURCE: &[Quote] = &[Quote::Name];
const WITHOUT_LOCATIONS: &[Quote] = &[Quote::Source, Quote::Name, Quote::Location];
const WITHOUT_SUCCESS: &[Quote] = &[Quote::Source, Quote::Name, Quote::Success];
const ALL: &[Quote] = &[];
const ALL_BUT_SUCCESS: &[Quote] = &[Quote::Success];

/// Every family's table.
pub(super) static FAMILIES: LazyLock<[FamilyTable; 25]> = LazyLock::new(|| {
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
        first(refused::RULES, WITHOUT_LOCATIONS),
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
        first(author_message::ASSERTED, ALL),
        first(author_message::WHOLE, ALL),
        first(author_message::HEAD, ALL),
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
        static STAGES: [OnceLock<StageRules>; 1 + ANY as usize] =
            [const { OnceLock::new() }; 1 + ANY as usize];
        STAGES[usize::from(stages & ANY)].get_or_init(|| Self::read(stages))
    }

    fn read(stages: u8) -> Self {
        let families = FAMILIES.iter().enumerate().take(Family::Agent as usize);
        let places: Vec<(usize, usize)> = families
            .flat_map(|(family, table)| (0..table.rules.len()).map(move |rule| (family, rule)))
            .filter(|(family, rule)| FAMILIES[*family].rules[*rule].stages & stages != 0)
            .collect();
        let patterns = Patterns::new(
            places
                .iter()
                .map(|(family, rule)| FAMILIES[*family].rules[*rule].pattern),
        );
        Self { patterns, places }
    }
}

/// The patterns of all families.
#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    let rules = FAMILIES.iter().flat_map(|family| family.rules);
    rules.map(|rule| rule.pattern).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex::bytes::RegexSetBuilder;

    use super::*;
    use crate::policy::patterns::oracle;

    #[test]
    fn every_rule_is_found_where_it_matches() {
        oracle::nothing_is_missed(&patterns());
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
