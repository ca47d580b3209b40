//! Pure functions over the model: what a failure is, what may happen next, what a restore touches.
//!
//! Nothing here does I/O; the present moment is an argument.

mod patterns;
mod text;

pub(crate) mod amounts;
pub(crate) mod backoff;
pub(crate) mod bisection;
pub(crate) mod budget;
pub(crate) mod changed;
pub(crate) mod check_summary;
pub(crate) mod circular;
pub(crate) mod classify;
pub(crate) mod commit_message;
pub(crate) mod condense;
pub(crate) mod decide;
pub(crate) mod escape;
pub(crate) mod excerpt;
pub(crate) mod fingerprints;
pub(crate) mod foreign_pull_request;
pub(crate) mod headline;
pub(crate) mod hints;
pub(crate) mod hook_settings;
pub(crate) mod import;
pub(crate) mod masked_event;
pub(crate) mod nearest;
pub(crate) mod options;
pub(crate) mod path_filter;
pub(crate) mod places;
pub(crate) mod pre_tool;
pub(crate) mod preconditions;
pub(crate) mod program;
pub(crate) mod project;
pub(crate) mod prompt;
pub(crate) mod rebuild;
pub(crate) mod redact;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod restore_plan;
pub(crate) mod retention;
pub(crate) mod retry_status;
pub(crate) mod secret_file;
pub(crate) mod settings;
pub(crate) mod shell_line;
pub(crate) mod signature;
pub(crate) mod tamper;

pub(crate) use text::plain_text;
pub(crate) mod recommended;
