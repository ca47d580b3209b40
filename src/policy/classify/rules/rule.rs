//! One rule, and the stages that it may hold at.

use crate::policy::classify::verdict::Verdict;

/// At any stage.
pub(in crate::policy::classify) const ANY: u8 = 0b1_1111;
/// While the agent runs.
pub(in crate::policy::classify) const AGENT: u8 = 0b0_0001;
/// While something is built, fetched or prepared.
pub(in crate::policy::classify) const BUILD: u8 = 0b0_0010;
/// While tests run.
pub(in crate::policy::classify) const TEST: u8 = 0b0_0100;
/// While a linter or formatter runs.
pub(in crate::policy::classify) const LINT: u8 = 0b0_1000;
/// While a type checker runs.
pub(in crate::policy::classify) const TYPECHECK: u8 = 0b1_0000;

/// One rule.
#[derive(Debug)]
pub(in crate::policy::classify) struct Rule {
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
pub(super) const fn rule(
    id: &'static str,
    stages: u8,
    pattern: &'static str,
    verdict: Verdict,
) -> Rule {
    Rule {
        id,
        stages,
        pattern,
        verdict,
    }
}
