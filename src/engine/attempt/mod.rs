//! An attempt: its claim, its end with everything that follows (A3, L2–L6), where its run then stands, and the report.

pub mod begin;
pub mod end;
pub mod report;
pub mod signs;
pub mod standing;
