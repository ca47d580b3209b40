//! A limit or an outage of an agent's provider: which runs it holds, until when, and in which order they begin again.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Timestamp;
use crate::model::failure::{Failure, Weather};

/// The version of the files' form.
pub(crate) const LIMIT_SCHEMA: u32 = 1;

/// A limit that was met, as its file has it. Nothing in it is a secret: the account is a keyed checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    pub schema: u32,
    pub scope: LimitScope,
    pub reason: Weather,
    /// What it was in a word or two: `usage limit`, `529`.
    pub what: String,
    pub met_at: Timestamp,
    pub met_by: RunPlace,
    /// No attempt begins before this.
    pub until: Timestamp,
    /// When an attempt after that first had an answer of the model.
    pub through_at: Option<Timestamp>,
    /// The run that began last of those that waited, and when.
    pub last: Option<(Timestamp, RunPlace)>,
}

/// What a limit is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitScope {
    pub agent: String,
    /// A keyed checksum of what the agent logs in with.
    pub account: String,
    /// The family of models that it is about; `None`: all.
    pub model: Option<String>,
    /// The run that met it named no model, so that it holds those that name none either.
    pub is_default_model: bool,
}

/// A run, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunPlace {
    pub run: String,
    /// Absolute path of its work tree.
    pub worktree: String,
}

/// A limit that lasts longer is not believed: the longest limits are weekly.
const LONGEST: Duration = Duration::from_secs(8 * 24 * 3600);
/// After this time nobody waits any more who waited for it.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// A usage limit is over a little after it says so.
const BUFFER: Duration = Duration::from_secs(60);
/// Families of models that have limits of their own.
const FAMILIES: [&str; 4] = ["opus", "sonnet", "haiku", "flash"];

/// How a limit concerns a run that is about to begin an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Not at all.
    No,
    /// The run is the next one of those that waited.
    Next,
    /// Until this time.
    Until(Timestamp),
    /// An attempt has to find out whether it is over, one at a time.
    Probe,
}

impl Limit {
    /// Whether it is about attempts in this scope.
    pub(crate) fn concerns(&self, scope: &LimitScope) -> bool {
        let is_same = self.scope.agent == scope.agent && self.scope.account == scope.account;
        let of_model = match (&self.scope.model, &scope.model) {
            (None, _) => true,
            (Some(family), Some(model)) => model.contains(family.as_str()),
            (Some(_), None) => self.scope.is_default_model,
        };
        is_same && of_model
    }

    /// Why it cannot be believed.
    pub(crate) fn problem(&self, now: Timestamp) -> Option<&'static str> {
        let is_far = self.until > now.plus(LONGEST);
        is_far.then_some("it lasts longer than any limit")
    }

    /// Whether it holds nobody any more.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        let last = self.last.as_ref().map(|(at, _)| *at);
        let latest = last.max(self.through_at).max(Some(self.until));
        latest.is_none_or(|latest| now > latest.plus(FORGOTTEN))
    }

    /// How it concerns `run`, which has `waited` for it or not; those that waited begin `gap` apart.
    pub(crate) fn holds(
        &self,
        run: &RunPlace,
        waited: bool,
        (now, gap): (Timestamp, Duration),
    ) -> Held {
        if self.is_over(now) || self.through_at.is_some() && !waited {
            return Held::No;
        }
        // Who met it knows by its own decision when to try again.
        if self.through_at.is_none() && self.until > now && self.met_by != *run {
            return Held::Until(self.until);
        }
        let turn = self.last.as_ref().filter(|(_, by)| by != run);
        // A clock that was set back makes no wait longer.
        let turn = turn.map(|(at, _)| (*at).min(now).plus(gap));
        match turn.filter(|turn| *turn > now) {
            Some(turn) => Held::Until(turn),
            None if self.through_at.is_some() => Held::Next,
            None => Held::Probe,
        }
    }

    /// `claude's limit, met by run night in ~/shop`
    pub(crate) fn text(&self, home: &str) -> String {
        let RunPlace { run, worktree } = &self.met_by;
        let below = worktree.strip_prefix(home).filter(|_| !home.is_empty());
        let place = below.filter(|below| below.is_empty() || below.starts_with('/'));
        let place = place.map_or_else(|| worktree.clone(), |below| format!("~{below}"));
        let agent = &self.scope.agent;
        let what = match (self.reason, &self.scope.model) {
            (Weather::UsageLimit, None) => "limit".to_owned(),
            (Weather::UsageLimit, Some(model)) => format!("{model} limit"),
            (Weather::Outage, _) => format!("provider ({})", self.what),
            (Weather::Network, _) => format!("network ({})", self.what),
            (Weather::Login, _) => "login service".to_owned(),
        };
        format!("{agent}'s {what}, met by run {run} in {place}")
    }
}

/// The model that a command line names.
pub(crate) fn model_of(argv: &[String]) -> Option<String> {
    let mut words = argv.iter();
    let named = words.find_map(|word| match word.split_once('=') {
        Some(("--model", model)) => Some(Some(model)),
        _ => matches!(word.as_str(), "--model" | "-m").then_some(None),
    })?;
    named
        .or_else(|| words.next().map(String::as_str))
        .map(str::to_lowercase)
}

/// The family of models that a usage limit is about, where its message names one.
pub(crate) fn family_of(failure: &Failure) -> Option<String> {
    let message = failure.message.to_lowercase();
    let is_limit = failure.weather() == Some(Weather::UsageLimit);
    let mut named = FAMILIES.iter().filter(|family| message.contains(**family));
    named
        .next()
        .filter(|_| is_limit)
        .map(|family| (*family).to_owned())
}

/// When a limit that names its reset is over.
pub(crate) fn over_at(failure: &Failure) -> Option<Timestamp> {
    Some(failure.retry_after?.plus(BUFFER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_secs(20);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn place(run: &str) -> RunPlace {
        RunPlace {
            run: run.to_owned(),
            worktree: "/home/u/shop".to_owned(),
        }
    }

    fn scope(model: Option<&str>) -> LimitScope {
        LimitScope {
            agent: "claude".to_owned(),
            account: "a".to_owned(),
            model: model.map(str::to_owned),
            is_default_model: false,
        }
    }

    fn met() -> Limit {
        Limit {
            schema: LIMIT_SCHEMA,
            scope: scope(None),
            reason: Weather::UsageLimit,
            what: "usage limit".to_owned(),
            met_at: at(0),
            met_by: place("night"),
            until: at(1000),
            through_at: None,
            last: None,
        }
    }

    fn holds(limit: &Limit, run: &str, waited: bool, now: i64) -> Held {
        limit.holds(&place(run), waited, (at(now), GAP))
    }

    #[test]
    fn others_wait_for_the_reset_then_for_the_probe_then_for_their_turn() {
        let mut limit = met();
        assert_eq!(holds(&limit, "b", false, 10), Held::Until(at(1000)));
        assert_eq!(holds(&limit, "night", false, 10), Held::Probe);
        assert_eq!(holds(&limit, "b", true, 1000), Held::Probe);
        limit.last = Some((at(1000), place("b")));
        assert_eq!(holds(&limit, "c", true, 1005), Held::Until(at(1020)));
        assert_eq!(holds(&limit, "c", true, 1020), Held::Probe);
        limit.through_at = Some(at(1007));
        assert_eq!(holds(&limit, "c", true, 1010), Held::Until(at(1020)));
        assert_eq!(holds(&limit, "c", true, 1020), Held::Next);
        assert_eq!(holds(&limit, "new", false, 1010), Held::No);
    }

    #[test]
    fn no_wait_is_longer_than_it_may_be() {
        let mut limit = met();
        limit.until = at(9 * 24 * 3600);
        assert!(limit.problem(at(0)).is_some());
        assert_eq!(limit.problem(at(2 * 24 * 3600)), None);
        let mut limit = met();
        // Written by a clock that was an hour ahead.
        limit.last = Some((at(5000), place("b")));
        assert_eq!(holds(&limit, "c", true, 1500), Held::Until(at(1520)));
        assert_eq!(holds(&met(), "c", true, 1001 + 3600), Held::No);
    }

    #[test]
    fn a_limit_of_one_model_does_not_hold_another() {
        let mut limit = met();
        assert!(limit.concerns(&scope(Some("sonnet"))) && limit.concerns(&scope(None)));
        limit.scope.model = Some("opus".to_owned());
        assert!(limit.concerns(&scope(Some("claude-opus-4-8"))));
        assert!(!limit.concerns(&scope(Some("sonnet"))) && !limit.concerns(&scope(None)));
        limit.scope.is_default_model = true;
        assert!(limit.concerns(&scope(None)));
        let other = LimitScope {
            account: "b".to_owned(),
            ..scope(None)
        };
        assert!(!limit.concerns(&other));
    }

    #[test]
    fn a_model_is_named_in_any_way_that_agents_take() {
        let of = |line: &str| model_of(&shlex::split(line).unwrap());
        assert_eq!(of("claude -p --model Opus x").as_deref(), Some("opus"));
        assert_eq!(of("codex exec --model=gpt-5 x").as_deref(), Some("gpt-5"));
        assert_eq!(of("gemini -m flash").as_deref(), Some("flash"));
        assert_eq!(of("claude -p --model"), None);
        assert_eq!(of("claude -p x"), None);
    }

    #[test]
    fn its_place_is_said_as_a_user_writes_it() {
        let said = "claude's limit, met by run night in ~/shop";
        assert_eq!(met().text("/home/u"), said);
        assert!(met().text("/home/us").ends_with("in /home/u/shop"));
    }
}
