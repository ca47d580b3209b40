//! What is masked beside the usual secrets.

use serde::{Deserialize, Serialize};

/// Additions to what is masked wherever it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactSettings {
    /// Regular expressions; all that one matches is masked.
    pub patterns: Vec<String>,
    /// Variables of the environment whose values are masked, whatever they are called.
    pub variables: Vec<String>,
}
