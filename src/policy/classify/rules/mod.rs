//! The rules of classification as data: one table for each family of evidence, what a rule concludes, and how a table is read.
//!
//! Within a family the first rule that matches wins. Which family is asked when is decided elsewhere (`super::decide`).

mod diagnostics;
mod ended;
mod input;
mod machine;
mod messages;
mod runners;
mod time_limits;

pub(super) use input::{IN_CONFIGURATION, NO_MATCH};
pub(super) use messages::COMPARED;

use std::sync::{LazyLock, OnceLock};

use crate::model::failure::{Cause, CauseDetail, Condition, FailureType, SuggestedAction};
use crate::model::feedback::CheckKind;
use crate::policy::patterns::Patterns;

/// What a line quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quote {
    /// Nothing: the tool speaks.
    No,
    /// The name of a test and its result.
    Name,
    /// A place in a source file, and what is wrong there.
    Location,
    /// That all is well.
    Success,
    /// Source code, a log, an expected value, the output of a passing test.
    Source,
}

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
        last(ended::INTERRUPTED, WITHOUT_LOCATIONS),
        last(ended::MEMORY, WITHOUT_LOCATIONS),
        last(ended::DIED, WITH_NAMES_ONLY),
        last(machine::RULES, WITHOUT_LOCATIONS),
        first(machine::MISSING_TOOL, WITHOUT_LOCATIONS),
        first(machine::REFUSED_BY_SERVER, WITHOUT_LOCATIONS),
        last(machine::NO_CONNECTION, TOOLS),
        first(runners::LOAD, WITH_SOURCE),
        first(runners::TESTS_FAILED, ALL),
        first(input::RULES, WITHOUT_LOCATIONS),
        first(input::MISSING_RESOURCE, WITHOUT_LOCATIONS),
        first(diagnostics::COMPILE, TOOLS),
        first(diagnostics::LIKELY, WITHOUT_LOCATIONS),
        first(diagnostics::FINDINGS, ALL),
        first(diagnostics::WEAK, WITHOUT_SUCCESS),
        first(diagnostics::WEAK_FINDINGS, ALL_BUT_SUCCESS),
        first(runners::FLAKY, ALL),
        last(messages::RULES, TOOLS),
        last(messages::LINES, TOOLS),
        first(messages::ASSERTED, ALL),
        first(messages::WHOLE, ALL),
        first(messages::HEAD, ALL),
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
/// While a command of this kind runs.
pub(super) fn stage(kind: CheckKind) -> u8 {
    match kind {
        CheckKind::Agent => AGENT,
        CheckKind::Build => BUILD,
        CheckKind::Test => TEST,
        CheckKind::Lint => LINT,
        CheckKind::Typecheck => TYPECHECK,
    }
}
/// While a check runs.
pub(super) const FEEDBACK: u8 = BUILD | TEST | LINT | TYPECHECK;

/// One rule.
#[derive(Clone, Copy, Debug)]
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

/// A row of a table: a rule, where it differs from the rest of the table.
#[derive(Clone, Copy)]
struct Row {
    id: &'static str,
    pattern: &'static str,
    stages: Option<u8>,
    verdict: Option<Verdict>,
}

impl Row {
    /// At these stages rather than the table's.
    const fn at(self, stages: u8) -> Self {
        Self {
            stages: Some(stages),
            ..self
        }
    }

    /// With this verdict rather than the table's.
    const fn means(self, verdict: Verdict) -> Self {
        Self {
            verdict: Some(verdict),
            ..self
        }
    }
}

const fn rule(id: &'static str, pattern: &'static str) -> Row {
    Row {
        id,
        pattern,
        stages: None,
        verdict: None,
    }
}

/// The rules of a table, which hold at `stages` and mean `verdict` where a row says nothing else.
const fn table<const N: usize>(stages: u8, verdict: Verdict, rows: [Row; N]) -> [Rule; N] {
    let mut rules = [Rule {
        id: "",
        stages,
        pattern: "",
        verdict,
    }; N];
    let mut at = 0;
    while at < N {
        rules[at].id = rows[at].id;
        rules[at].pattern = rows[at].pattern;
        if let Some(stages) = rows[at].stages {
            rules[at].stages = stages;
        }
        if let Some(verdict) = rows[at].verdict {
            rules[at].verdict = verdict;
        }
        at += 1;
    }
    rules
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
    /// A user interrupted it.
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
pub(super) struct FamilyTable {
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
    pub(super) fn matches(&self, text: &[u8]) -> Vec<&'static Rule> {
        let patterns = self
            .patterns
            .get_or_init(|| Patterns::new(self.rules.iter().map(|rule| rule.pattern)));
        patterns
            .matches(text)
            .iter()
            .map(|number| &self.rules[usize::from(*number)])
            .collect()
    }

    /// A family of which the first line that matches says the most.
    fn first_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self {
            rules,
            skips,
            first_line: true,
            patterns: OnceLock::new(),
        }
    }

    /// A family of which the last line that matches says the most.
    fn last_line(rules: &'static [Rule], skips: &'static [Quote]) -> Self {
        Self {
            first_line: false,
            ..Self::first_line(rules, skips)
        }
    }
}

/// The labels of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Who failed.
    pub kind: FailureType,
    /// What went wrong.
    pub cause: Cause,
    /// Whether the very same again plausibly succeeds.
    pub retryable: bool,
    /// A finer name that the policy needs.
    pub detail: Option<CauseDetail>,
    /// What is true beside the cause.
    pub condition: Option<Condition>,
}

const fn verdict(kind: FailureType, cause: Cause, retryable: bool) -> Verdict {
    Verdict {
        kind,
        cause,
        retryable,
        detail: None,
        condition: None,
    }
}

const fn agent(cause: Cause, retryable: bool, detail: CauseDetail) -> Verdict {
    Verdict {
        detail: Some(detail),
        ..verdict(FailureType::AgentError, cause, retryable)
    }
}

pub(super) const TIMEOUT: Verdict = verdict(FailureType::Timeout, Cause::ToolTimeout, true);
pub(super) const CANCELLED: Verdict = verdict(FailureType::Cancellation, Cause::Cancelled, false);
pub(super) const OUT_OF_MEMORY: Verdict = verdict(FailureType::Crash, Cause::OutOfMemory, false);
pub(super) const CRASHED: Verdict = verdict(FailureType::Crash, Cause::Crashed, false);
/// A SIGKILL that nothing explains may come from elsewhere, so the same again may succeed.
pub(super) const KILLED: Verdict = verdict(FailureType::Crash, Cause::Crashed, true);

pub(super) const DISK_FULL: Verdict = verdict(FailureType::SystemError, Cause::DiskFull, false);
pub(super) const DENIED: Verdict =
    verdict(FailureType::SystemError, Cause::PermissionDenied, false);
pub(super) const NO_TOOL: Verdict =
    verdict(FailureType::SystemError, Cause::ResourceNotFound, false);
pub(super) const NETWORK: Verdict = verdict(FailureType::SystemError, Cause::NetworkError, true);
/// A server, not an agent's, wants other credentials or none of these.
pub(super) const UNAUTHORIZED: Verdict =
    verdict(FailureType::SystemError, Cause::AuthFailed, false);
pub(super) const LIMIT: Verdict = verdict(FailureType::SystemError, Cause::Unknown, false);
const LOCKED: Verdict = verdict(FailureType::SystemError, Cause::Unknown, true);

pub(super) const BROKEN: Verdict = verdict(FailureType::FeedbackFailure, Cause::BrokenBuild, false);
pub(super) const FAILED: Verdict = verdict(
    FailureType::FeedbackFailure,
    Cause::VerificationFailed,
    false,
);
pub(super) const INVALID: Verdict =
    verdict(FailureType::FeedbackFailure, Cause::InvalidInput, false);
pub(super) const MISSING: Verdict =
    verdict(FailureType::FeedbackFailure, Cause::ResourceNotFound, false);
pub(super) const UNCLEAR: Verdict = verdict(FailureType::FeedbackFailure, Cause::Unknown, false);

pub(super) const THROTTLED: Verdict = agent(Cause::RateLimited, true, CauseDetail::Throttled);
pub(super) const OVERLOADED: Verdict = agent(Cause::RateLimited, true, CauseDetail::Overloaded);
pub(super) const USAGE_LIMIT: Verdict = agent(Cause::RateLimited, true, CauseDetail::UsageLimit);
pub(super) const SERVICE: Verdict = agent(Cause::Unknown, true, CauseDetail::ServiceError);
pub(super) const MAX_TURNS: Verdict = agent(Cause::Unknown, true, CauseDetail::MaxTurns);
const COST_LIMIT: Verdict = agent(Cause::Unknown, true, CauseDetail::CostLimit);
const NO_SESSION: Verdict = agent(Cause::ResourceNotFound, false, CauseDetail::SessionNotFound);
pub(super) const AGENT_UNKNOWN: Verdict = verdict(FailureType::AgentError, Cause::Unknown, true);
pub(super) const NO_MODEL: Verdict =
    verdict(FailureType::AgentError, Cause::ResourceNotFound, false);
pub(super) const AUTH: Verdict = verdict(FailureType::AgentError, Cause::AuthFailed, false);
/// Nothing is left that has been paid for.
pub(super) const QUOTA: Verdict = Verdict {
    condition: Some(Condition::Quota),
    ..AUTH
};
pub(super) const CONTEXT: Verdict =
    verdict(FailureType::AgentError, Cause::ContextExhausted, false);
pub(super) const BAD_REQUEST: Verdict =
    verdict(FailureType::AgentError, Cause::InvalidInput, false);
pub(super) const AGENT_NETWORK: Verdict =
    verdict(FailureType::AgentError, Cause::NetworkError, true);

impl Verdict {
    /// Whether the run can go on without a user mending the machine or an account, and what to do (B1, B5).
    ///
    /// | verdict | recoverable | action |
    /// | --- | --- | --- |
    /// | feedback failure, timeout, cancellation | yes | run the iteration again |
    /// | crash | yes | go back to the checkpoint |
    /// | out of memory, full disk | no | by hand |
    /// | missing tool, refused access | yes | repair it, then go on |
    /// | locks, network, retryable agent errors | yes | run the iteration again |
    /// | credentials, other limits of the machine | no | by hand |
    /// | other agent errors: context, request, model, session | yes | a changed attempt |
    pub(super) fn remedy(self) -> (bool, SuggestedAction) {
        match (self.kind, self.cause) {
            (_, Cause::OutOfMemory | Cause::DiskFull | Cause::AuthFailed) => {
                (false, SuggestedAction::ManualResolution)
            }
            (FailureType::AgentError, Cause::ResourceNotFound) if self.detail.is_none() => {
                (true, SuggestedAction::FixAndContinue)
            }
            (FailureType::AgentError, _) if self.detail == Some(CauseDetail::CostLimit) => {
                (false, SuggestedAction::ManualResolution)
            }
            (
                FailureType::AgentError
                | FailureType::FeedbackFailure
                | FailureType::Timeout
                | FailureType::Cancellation,
                _,
            ) => (true, SuggestedAction::RetryIteration),
            (FailureType::Crash, _) => (true, SuggestedAction::Rollback),
            (FailureType::SystemError, _) if self.retryable => {
                (true, SuggestedAction::RetryIteration)
            }
            (FailureType::SystemError, Cause::PermissionDenied | Cause::ResourceNotFound) => {
                (true, SuggestedAction::FixAndContinue)
            }
            (FailureType::SystemError, _) => (false, SuggestedAction::ManualResolution),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::patterns::tests::nothing_is_missed;
    use regex::bytes::RegexSetBuilder;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_is_found_where_it_matches() {
        nothing_is_missed(&patterns());
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
