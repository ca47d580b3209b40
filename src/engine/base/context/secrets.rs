//! What is masked in this process.

use std::path::Path;

use crate::policy::secrets::{Fingerprints, Redactor};
use crate::policy::settings::RedactSettings;

/// Has everything masked from now on that is a secret of this process's environment, that `settings` name, or that is
/// `known` from what was recorded.
pub(crate) fn mask_secrets(settings: &RedactSettings, known: Fingerprints) {
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Redactor::new(env, settings, |value| Path::new(value).exists())
        .knowing(known)
        .install();
}
