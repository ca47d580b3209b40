//! Pure functions over the model: what a failure is, what may happen next, what a restore touches.
//!
//! Nothing here does I/O; the present moment is an argument.

mod patterns;
mod text;

pub mod backoff;
pub mod budget;
pub mod changed;
pub mod circular;
pub mod classify;
pub mod condense;
pub mod decide;
pub mod excerpt;
pub mod hints;
pub mod hook_settings;
pub mod import;
pub mod occasion;
pub mod options;
pub mod places;
pub mod prompt;
pub mod rebuild;
pub mod redact;
pub mod report;
pub mod restore_plan;
pub mod retention;
pub mod retry_status;
pub mod selection;
pub mod settings;
pub mod signature;
pub mod summary;
pub mod tamper;
pub mod visible;

pub use text::plain_text;
