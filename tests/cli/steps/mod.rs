//! `recover step`: commands that run once, all or nothing, or with a compensation.

pub mod atomic;
pub mod compensate;
pub mod once;
