//! The forms of a selector (`good`, `@7`, `iteration:2`), read and written. What each means: `State::select`.

use std::fmt;
use std::str::FromStr;

/// `id`, unique prefix, `@SEQ`, `latest`, `latest~N`, `good`, `initial`, `iteration:N`, `stage:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// An id or a unique prefix of one.
    Id(String),
    /// A sequence number.
    Seq(u64),
    /// The latest but N.
    Latest(usize),
    /// The last good one.
    Good,
    /// The one before the first attempt.
    Initial,
    /// The one after iteration N.
    Iteration(u32),
    /// The latest one of that stage.
    Stage(String),
}

/// Why a text is not a selector.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "'{0}' is not a checkpoint selector (an id, a prefix of one, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME)"
)]
pub struct InvalidSelector(String);

impl FromStr for Selector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSelector(text.to_owned());
        if let Some(seq) = text.strip_prefix('@') {
            return seq.parse().map(Self::Seq).map_err(|_| invalid());
        }
        if let Some(back) = text.strip_prefix("latest~") {
            return back.parse().map(Self::Latest).map_err(|_| invalid());
        }
        if let Some(number) = text.strip_prefix("iteration:") {
            return number.parse().map(Self::Iteration).map_err(|_| invalid());
        }
        if let Some(stage) = text.strip_prefix("stage:") {
            return if stage.is_empty() {
                Err(invalid())
            } else {
                Ok(Self::Stage(stage.to_owned()))
            };
        }
        match text {
            "latest" => Ok(Self::Latest(0)),
            "good" => Ok(Self::Good),
            "initial" => Ok(Self::Initial),
            "" => Err(invalid()),
            id if id
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') =>
            {
                Ok(Self::Id(id.to_owned()))
            }
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Seq(seq) => write!(f, "@{seq}"),
            Self::Latest(0) => f.write_str("latest"),
            Self::Latest(back) => write!(f, "latest~{back}"),
            Self::Good => f.write_str("good"),
            Self::Initial => f.write_str("initial"),
            Self::Iteration(number) => write!(f, "iteration:{number}"),
            Self::Stage(stage) => write!(f, "stage:{stage}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_and_written_alike() {
        for text in [
            "ckpt_20260101_1",
            "@12",
            "latest",
            "latest~3",
            "good",
            "initial",
            "iteration:2",
            "stage:pre_pr",
        ] {
            assert_eq!(text.parse::<Selector>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "@x",
            "latest~",
            "iteration:two",
            "stage:",
            "a b",
            "../x",
        ] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }
}
