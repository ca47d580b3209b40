//! Configuration, and whose word counts in it.

pub mod broken_config;
pub mod commands;
pub mod trust;
pub mod trust_table;
pub mod user_config;
