//! Random inputs for whatever reads what others wrote: a damaged disk, an agent, a clone, a hand-written file.
//!
//! Each target plays the files of `corpus/TARGET` as they are, then changes of them for a second; every file there was
//! written by a real program or showed a bug. `RECOVER_RANDOM_SECONDS` says for how long, `RECOVER_RANDOM_SEED` with which
//! numbers. An input that breaks a promise is cut down and kept below `target/tmp/random`: it belongs into the corpus.
//!
//! There is no coverage to go by, but each target says what an input led to (an error, the kinds of events, a verdict): an
//! input that leads to something new is changed further.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not recognise as such"
)]

mod classification;
mod configuration;
mod driver;
mod hooks;
mod ignored;
mod imports;
mod index;
mod ledger;
mod mutate;

use driver::run;

#[test]
fn ledgers() {
    run(ledger::Ledger::new());
}

#[test]
fn indexes() {
    run(index::Index::new());
}

#[test]
fn ignore_rules() {
    run(ignored::Ignored::new());
}

#[test]
fn imported_files() {
    run(imports::Imports::new());
}

#[test]
fn hook_input() {
    run(hooks::Hooks::new());
}

#[test]
fn classified_output() {
    run(classification::Classification::new());
}

#[test]
fn configurations() {
    run(configuration::Configuration::new());
}
