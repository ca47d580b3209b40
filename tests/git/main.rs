//! Capture and restore against real repositories; the `git` program is the judge.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not recognise as such"
)]

mod bench;
mod capture;
mod diff;
mod discard;
mod faults;
mod head;
mod ignored;
mod index;
#[path = "../cli/checkpoints/layout_0_1.rs"]
mod loosen;
mod packing;
mod property;
mod repository;
mod restore;
