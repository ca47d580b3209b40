//! Pure functions over the model: what a failure is, what may happen next, what a restore touches.
//!
//! Nothing here does I/O; the present moment is an argument.

mod patterns;
mod text;

pub mod amounts;
pub mod backoff;
pub mod bisection;
pub mod budget;
pub mod changed;
pub mod check_summary;
pub mod circular;
pub mod classify;
pub mod commit_message;
pub mod condense;
pub mod decide;
pub mod escape;
pub mod excerpt;
pub mod fingerprints;
pub mod foreign_pull_request;
pub mod headline;
pub mod hints;
pub mod hook_settings;
pub mod import;
pub mod masked_event;
pub mod nearest;
pub mod options;
pub mod path_filter;
pub mod places;
pub mod pre_tool;
pub mod preconditions;
pub mod program;
pub mod project;
pub mod prompt;
pub mod rebuild;
pub mod redact;
pub mod remote;
pub mod report;
pub mod restore_plan;
pub mod retention;
pub mod retry_status;
pub mod secret_file;
pub mod settings;
pub mod shell_line;
pub mod signature;
pub mod tamper;

pub use text::plain_text;
pub mod recommended;
