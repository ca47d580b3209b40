//! Supervised runs: what the child gets, how attempts end, what a run says and survives.

pub mod agents;
pub mod attempt_conditions;
pub mod attempts;
pub mod cargo_project;
pub mod clock_jumps;
pub mod command_start;
pub mod demo;
pub mod failed_captures;
pub mod fake_clock_night;
pub mod git_settings;
pub mod given_up_iterations;
pub mod guard;
pub mod inside_an_attempt;
pub mod killed;
pub mod liveness;
pub mod log_lines;
pub mod notifications;
pub mod on_terminal;
pub mod outages;
pub mod periodic_checkpoints;
pub mod pty;
pub mod series;
pub mod signals;
pub mod stray_processes;
pub mod supervision;
pub mod wrapped_commands;
