//! Remotes against real servers on 127.0.0.1.
//!
//! A bare repository by its path, `git daemon`, `git http-backend` behind lighttpd with basic authentication, and `sshd`; the
//! object stores `SeaweedFS`, moto and s3rver (`RECOVER_STORES` names the folders of their programs, `.ci/run` installs them); with
//! connections that are cut and stalled on the way.
//!
//! A server that is not installed is skipped by its name.

#![allow(clippy::unwrap_used, reason = "a test ends where something is missing")]

mod away;
mod believed;
mod check;
mod clones;
mod collision;
mod consent;
mod cuts;
mod eight;
#[path = "../cli/env.rs"]
mod env;
mod fetched;
mod forgotten;
mod machines;
mod many;
mod outgoing;
mod proxy;
mod same_name;
mod sent;
mod servers;
mod signed;
mod stores;
mod taken_up;
mod transport;
mod whole;
mod worker;
mod workflow;
