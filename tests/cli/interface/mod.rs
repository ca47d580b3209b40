//! The command line itself: help, hints, errors, output, completion, places.

pub mod completion;
pub mod errors;
pub mod first_contact;
pub mod hints;
pub mod locations;
pub mod output;
pub mod pager;
pub mod schema;
pub mod terminal_text;
