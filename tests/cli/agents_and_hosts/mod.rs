//! What agents, git and continuous integration call: hooks, MCP, the action.

pub mod action;
pub mod hook_install;
pub mod hook_run;
pub mod mcp;
pub mod plugin;
pub mod telemetry;
