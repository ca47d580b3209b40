//! An attempt: its beginning, its end with everything that follows (A3, L2–L6), the conditions that are detected in what it
//! left, where its run then stands, and the report.

pub mod begin;
pub mod conditional;
pub mod conditions;
pub mod end;
pub mod report;
pub mod standing;
