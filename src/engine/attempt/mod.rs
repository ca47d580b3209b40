//! An attempt: its beginning, its end with everything that follows (A3, L2–L6), and the report.
//! Also the conditions that are detected in what it left, and where its run then stands.

pub mod begin;
pub mod budgets;
pub mod conditions;
pub mod end;
pub mod night;
pub mod preconditions;
pub mod report;
