//! Commands through the built binary, in an environment of their own: a folder a feature.

// At another system /tmp is a link to somewhere else, and what was recorded is not there.
#[cfg(target_os = "linux")]
mod agents_and_hosts;
mod checkpoints;
mod env;
mod golden;
mod interface;
mod lanes;
mod morning;
mod remote;
mod retry;
mod rollback;
mod run;
mod safety;
mod seen;
mod settings;
mod smoke;
mod state;
mod steps;
mod terminal;
