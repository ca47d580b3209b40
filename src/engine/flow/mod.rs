//! The commands: one file a command, one folder a feature.

pub mod checkpoint;
