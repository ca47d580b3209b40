//! An attempt: its beginning, its end with everything that follows (A3, L2–L6), and the report.
//! Also the conditions that are detected in what it left, and where its run then stands.

pub(crate) mod begin;
pub(crate) mod budgets;
pub(crate) mod conditions;
pub(crate) mod end;
pub(crate) mod night;
pub(crate) mod preconditions;
pub(crate) mod report;
