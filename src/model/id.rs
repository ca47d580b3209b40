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
    /// [`RunKey`](super::run_key::RunKey).
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
