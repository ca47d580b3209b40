//! Arguments of `agents`.

use clap::Args;

/// Where a program that has no profile here gets one.
const EXAMPLES: &str = r#"Examples:
  # what is installed, and how each is started
  recover agents
  # the same, for a script
  recover agents --json

A program that recover does not know, say mybot, which takes its task as a file and prints text:

  [agent.mybot]
  args = ["--batch", "--task", "{prompt_file}"]
  prompt = "file"
  edit_args = ["--allow-edits"]
  yolo_args = ["--allow-everything"]
  resume_args = ["--continue", "{session}"]
  exit_codes = { 3 = "RATE_LIMITED", 4 = "AUTH_FAILED" }

recover run --agent mybot --prompt "Make the tests pass" then starts mybot --batch --task FILE --allow-edits."#;

/// List the agents that run --agent NAME starts.
///
/// Which are installed, and how each is started. A section [agent.NAME] of the configuration adds one, or changes single keys of a built-in one.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AgentsArgs {}
