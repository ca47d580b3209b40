//! What an agent used up, as its own records say.

use std::ops::Add;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of a model's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "tokens")]
pub struct Tokens {
    /// Read, without those that came from the provider's cache or went into it.
    pub input: u64,
    /// Written, with those of the model's reasoning.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
    /// All together.
    pub total: u64,
}

impl Tokens {
    /// Counts with their total; one that does not fit is as large as can be.
    pub fn new(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Self {
        let total = [output, cache_read, cache_write]
            .into_iter()
            .fold(input, u64::saturating_add);
        Self {
            input,
            output,
            cache_read,
            cache_write,
            total,
        }
    }

    /// What came on top of `earlier`, for records that count from a session's beginning.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self::new(
            self.input.saturating_sub(earlier.input),
            self.output.saturating_sub(earlier.output),
            self.cache_read.saturating_sub(earlier.cache_read),
            self.cache_write.saturating_sub(earlier.cache_write),
        )
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(
            self.input.saturating_add(other.input),
            self.output.saturating_add(other.output),
            self.cache_read.saturating_add(other.cache_read),
            self.cache_write.saturating_add(other.cache_write),
        )
    }
}

/// Cost and tokens; each is `None` where no record says any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Millionths of a US dollar.
    pub cost_micros: Option<u64>,
    /// Tokens.
    pub tokens: Option<Tokens>,
}

impl Usage {
    /// Dollars.
    #[allow(clippy::cast_precision_loss, reason = "money that is told")]
    pub fn cost_usd(self) -> Option<f64> {
        self.cost_micros.map(|micros| micros as f64 / 1e6)
    }

    /// What came on top of `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let cost = self
            .cost_micros
            .map(|cost| cost.saturating_sub(earlier.cost_micros.unwrap_or(0)));
        let tokens = self
            .tokens
            .map(|tokens| tokens.since(earlier.tokens.unwrap_or_default()));
        Self {
            cost_micros: cost,
            tokens,
        }
    }

    /// `$0.60, 12.3k tokens`; `None` where nothing is known.
    pub fn text(self) -> Option<String> {
        text(self.cost_usd(), self.tokens)
    }
}

/// Cost and tokens in documents, each `null` where no record says any.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct UsageFields {
    pub cost_usd: Option<f64>,
    pub tokens: Option<Tokens>,
}

impl From<Usage> for UsageFields {
    fn from(usage: Usage) -> Self {
        Self {
            cost_usd: usage.cost_usd(),
            tokens: usage.tokens,
        }
    }
}

/// Dollars and tokens in words; `None` where nothing is known.
pub(crate) fn text(cost_usd: Option<f64>, tokens: Option<Tokens>) -> Option<String> {
    let cost = cost_usd.map(|cost| format!("${cost:.2}"));
    let tokens = tokens.map(|tokens| format!("{} tokens", short(tokens.total)));
    match (cost, tokens) {
        (Some(cost), Some(tokens)) => Some(format!("{cost}, {tokens}")),
        (one, other) => one.or(other),
    }
}

impl Add for Usage {
    type Output = Self;

    /// What is known of one counts where the other is unknown.
    fn add(self, other: Self) -> Self {
        fn both<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(add(one, other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            cost_micros: both(self.cost_micros, other.cost_micros, u64::saturating_add),
            tokens: both(self.tokens, other.tokens, Tokens::add),
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Self::add)
    }
}

/// A count in three figures or so: `999`, `12.3k`, `4.56M`.
pub(crate) fn short(count: u64) -> String {
    let in_units = |unit: u64, name: &str| {
        let tenths = count / (unit / 10);
        format!("{}.{}{name}", tenths / 10, tenths % 10)
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => in_units(1_000, "k"),
        1_000_000..1_000_000_000 => in_units(1_000_000, "M"),
        _ => in_units(1_000_000_000, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_usage_stays_unknown_and_known_usage_adds_up() {
        let known = Usage {
            cost_micros: Some(600_000),
            tokens: Some(Tokens::new(1, 20, 300, 4_000)),
        };
        assert_eq!(Usage::default() + Usage::default(), Usage::default());
        assert_eq!(Usage::default() + known, known);
        assert_eq!((known + known).tokens.unwrap().total, 8_642);
        assert_eq!(known.text().unwrap(), "$0.60, 4.3k tokens");
        assert_eq!(Usage::default().text(), None);
        assert_eq!(
            known.tokens.unwrap().since(Tokens::new(1, 10, 0, 5_000)),
            Tokens::new(0, 10, 300, 0)
        );
    }

    #[test]
    fn counts_are_cut_to_a_few_figures() {
        let texts = [0, 999, 1_000, 12_345, 999_999, 1_000_000, 4_567_000_000].map(short);
        assert_eq!(
            texts,
            ["0", "999", "1.0k", "12.3k", "999.9k", "1.0M", "4.5G"]
        );
    }
}
