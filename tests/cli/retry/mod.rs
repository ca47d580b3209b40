//! What happens after a failure: verdicts, budgets, cooldowns, and ways to resume.

pub mod attempt_command;
pub mod budgets;
pub mod classify;
pub mod conditional_retries;
pub mod decisions;
pub mod loop_memory;
pub mod own_loops;
pub mod recommendations;
pub mod resume;
pub mod resume_options;
pub mod task_budget;
