//! Checkpoints: how they are taken, listed, stored, exported and removed.

pub mod bisect;
pub mod byte_names;
pub mod commands;
pub mod export;
pub mod filtered_files;
pub mod imported_bundles;
pub mod layout_0_1;
pub mod nested_repositories;
pub mod prune;
pub mod storage;
pub mod unsynced_objects;
pub mod unusual_repositories;
