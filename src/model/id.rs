//! Ids, each kind a type of its own: one cannot be passed in the place of another.

use std::borrow::Borrow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines ids that are text, in the ledger and in JSON as well as on the command line.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(String);

        impl $name {
            /// As it is recorded and shown.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        /// Collections of ids are searched with what was typed.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )* };
}

ids! {
    /// A run's id, chosen by the user or made when the run begins. Runs of several lanes may share one: the key is
    /// [`RunKey`](RunKey).
    RunId;
    /// What a run works on, as the user names it. A task's attempts are counted over all of its runs.
    TaskId;
    /// A checkpoint's id: `ckpt_<timestamp>_<sequence>`, unique in a state directory.
    CheckpointId;
    /// A restore's id: `op_<sequence>`.
    OperationId;
    /// A manual fix's id: `fix_<sequence>`.
    FixId;
}

/// The value for "no phase" and "no lane".
pub(crate) const NONE: &str = "-";

/// What identifies a run.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct RunKey {
    /// Stable identifier, chosen by the user or made when the run begins.
    pub run_id: RunId,
    /// Phase (`-` for none).
    #[serde(default = "none")]
    pub phase: String,
    /// Lane (`-` for none).
    #[serde(default = "none")]
    pub lane: String,
}

fn none() -> String {
    NONE.to_owned()
}

impl RunKey {
    /// A key; absent parts become `-`.
    pub fn new(run_id: impl Into<RunId>, phase: Option<&str>, lane: Option<&str>) -> Self {
        Self {
            run_id: run_id.into(),
            phase: phase.unwrap_or(NONE).to_owned(),
            lane: lane.unwrap_or(NONE).to_owned(),
        }
    }

    /// The words of a command line that choose this run: `--run ID`, and the phase and the lane where it has them.
    pub fn flags(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (flag, value) in [
            ("--run", self.run_id.as_str()),
            ("--phase", &self.phase),
            ("--lane", &self.lane),
        ] {
            if flag != "--run" && value == NONE {
                continue;
            }
            if value.starts_with('-') {
                // As a word of its own it would be taken for a flag.
                words.push(format!("{flag}={value}"));
            } else {
                words.extend([flag.to_owned(), value.to_owned()]);
            }
        }
        words
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.run_id.as_str())?;
        if self.phase != NONE || self.lane != NONE {
            write!(f, " ({}/{})", self.phase, self.lane)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_name_what_there_is() {
        let flags = |id, phase, lane| RunKey::new(id, phase, lane).flags().join(" ");
        assert_eq!(flags("r", None, None), "--run r");
        assert_eq!(
            flags("r", Some("p"), Some("l")),
            "--run r --phase p --lane l"
        );
        assert_eq!(flags("-r", None, Some("-l")), "--run=-r --lane=-l");
    }
}
