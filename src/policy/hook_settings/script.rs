//! The settings that are no JSON: opencode's plugin, and the block in a script of git's.

use super::command;
use crate::model::hook::HookAgent;

/// git's hooks that say something before it happens, and what that is. `reset`, `clean`, `checkout` and `stash` call none
/// before they touch the work tree.
pub(crate) const GIT_HOOKS: [&str; 2] = ["pre-rebase", "pre-push"];

const BEGIN: &str = "# >>> recover >>> (recover hook uninstall git takes these lines away)";
const END: &str = "# <<< recover <<<";
const NEW: &str = "#!/bin/sh\n";

/// Shells that understand the block.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ksh", "zsh", "ash"];

/// The block for one of git's hooks. It reads nothing of what the script may want to read, and changes no exit code.
pub(crate) fn git_block(program: &str, hook: &str) -> String {
    format!("{BEGIN}\n{program} hook run git {hook} </dev/null || true\n{END}\n")
}

/// A script with the block right behind its first line, where nothing has ended it yet; `None` for a script that no shell
/// reads. An earlier block goes.
pub(crate) fn with_block(script: Option<&str>, program: &str, hook: &str) -> Option<String> {
    let script = without_block(script.unwrap_or(NEW));
    let (first, rest) = script
        .split_once('\n')
        .map_or((script.as_str(), ""), |(first, rest)| (first, rest));
    let interpreter = first.strip_prefix("#!")?;
    let mut words = interpreter
        .split_whitespace()
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    let shell = words.find(|word| *word != "env" && !word.starts_with('-'))?;
    SHELLS
        .contains(&shell)
        .then(|| format!("{first}\n{}{rest}", git_block(program, hook)))
}

/// A script without the block.
pub(crate) fn without_block(script: &str) -> String {
    let mut out = String::with_capacity(script.len());
    let mut inside = false;
    for line in script.split_inclusive('\n') {
        match line.trim_end() {
            BEGIN => inside = true,
            END if inside => inside = false,
            _ if inside => {}
            _ => out.push_str(line),
        }
    }
    // A block without an end is none of ours any more.
    if inside { script.to_owned() } else { out }
}

/// Whether a script is nothing but what was made for the block.
pub(crate) fn is_bare(script: &str) -> bool {
    script == NEW
}

/// What the plugin's file begins with.
pub(crate) const PLUGIN_MARK: &str = "// Made by `recover hook install opencode`";

/// The shell's line in the plugin.
pub(crate) fn plugin_line(plugin: &str) -> Option<String> {
    let quoted = plugin
        .lines()
        .find_map(|line| line.split_once(BEFORE_LINE))?
        .1;
    serde_json::Deserializer::from_str(quoted)
        .into_iter()
        .next()?
        .ok()
}

/// What stands before that.
const BEFORE_LINE: &str = "spawn(\"sh\", [\"-c\", ";

/// opencode's plugin: it calls the hook in the words of the other agents. A session that failed is reported as idle too:
/// that is no turn that ended well.
pub(crate) fn opencode_plugin(program: &str) -> String {
    let line = serde_json::Value::from(command(program, HookAgent::Opencode)).to_string();
    format!(
        r#"{PLUGIN_MARK}; `recover hook uninstall opencode` removes it.
import {{ spawn }} from "node:child_process"

export const Recover = async ({{ directory, worktree }}) => {{
  const failed = new Set()
  const cwd = worktree && worktree !== "/" ? worktree : directory
  const tell = (event) =>
    new Promise((done) => {{
      const child = {BEFORE_LINE}{line}], {{ cwd, stdio: ["pipe", "ignore", "ignore"] }})
      const limit = setTimeout(() => child.kill(), 75000)
      const end = () => (clearTimeout(limit), done())
      child.on("error", end)
      child.on("close", end)
      child.stdin.on("error", () => {{}})
      child.stdin.end(JSON.stringify({{ cwd, ...event }}))
    }})
  return {{
    "tool.execute.before": async (input, output) => {{
      await tell({{
        hook_event_name: "PreToolUse",
        session_id: input.sessionID,
        tool_name: input.tool,
        tool_input: output.args,
      }})
    }},
    event: async ({{ event }}) => {{
      const session_id = event.properties?.sessionID
      if (event.type === "session.idle" && !failed.delete(session_id)) {{
        await tell({{ hook_event_name: "Stop", session_id }})
      }}
      if (event.type === "session.error") {{
        const {{ name, data }} = event.properties?.error ?? {{}}
        failed.add(session_id)
        if (name === "MessageAbortedError") return
        await tell({{
          hook_event_name: "StopFailure",
          session_id,
          error: name,
          error_details: data?.message,
        }})
      }}
    }},
  }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_goes_behind_the_first_line_and_out_again() {
        let theirs = "#!/usr/bin/env bash\nset -e\nexec ./lint\n";
        let with = with_block(Some(theirs), "recover", "pre-push").unwrap();
        assert!(
            with.starts_with("#!/usr/bin/env bash\n# >>> recover"),
            "{with}"
        );
        assert!(
            with.contains("\nrecover hook run git pre-push </dev/null || true\n")
                && with.ends_with("exec ./lint\n")
        );
        assert_eq!(
            with_block(Some(&with), "recover", "pre-push").unwrap(),
            with,
            "installing twice changes nothing"
        );
        assert_eq!(without_block(&with), theirs);
        let new = with_block(None, "/a b/recover", "pre-rebase").unwrap();
        assert!(is_bare(&without_block(&new)), "{new}");
    }

    #[test]
    fn scripts_of_others_are_left_alone() {
        for script in [
            "#!/usr/bin/env python3\n",
            "\u{7f}ELF",
            "",
            "echo no first line\n",
            "#!\n",
        ] {
            assert_eq!(
                with_block(Some(script), "recover", "pre-push"),
                None,
                "{script}"
            );
        }
        let torn = format!("#!/bin/sh\n{BEGIN}\nexit 1\n");
        assert_eq!(without_block(&torn), torn);
    }
}
