//! The entries in agents' settings, opencode's plugin and git's hooks that call `recover hook`.

pub(crate) use super::json_text::{plain, pretty};

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::json_text::{self, Item, Remainder, items, without_innermost};
use crate::model::hook::HookAgent;

/// What calls the hook. Nothing that it does may stand in an agent's way: whatever becomes of it, the answer is 0.
pub(crate) fn command(program: &str, agent: HookAgent) -> String {
    format!("{program}{}", tail(agent))
}

/// What our commands end with, and nobody else's.
fn tail(agent: HookAgent) -> String {
    format!("{} || true", call_of(agent))
}

fn call_of(agent: HookAgent) -> String {
    format!(" hook run {}", agent.as_str())
}

/// An event that the hook is called for.
struct Entry {
    event: &'static str,
    /// The tools that it is about; empty where the event knows none.
    matcher: &'static str,
    /// Seconds after which the agent gives up on the hook. It gives up on itself before.
    timeout: u64,
}

const fn entry(event: &'static str, matcher: &'static str) -> Entry {
    Entry {
        event,
        matcher,
        timeout: 75,
    }
}

const CLAUDE: &[Entry] = &[
    entry(
        "PreToolUse",
        "Edit|Write|MultiEdit|NotebookEdit|Bash|mcp__.*",
    ),
    entry("UserPromptSubmit", ""),
    entry("PreCompact", ""),
    entry("Stop", ""),
    entry("StopFailure", ""),
    entry("SessionEnd", ""),
];

const CODEX: &[Entry] = &[
    entry("PreToolUse", "Bash|apply_patch|Edit|Write|mcp__.*"),
    entry("UserPromptSubmit", ""),
    entry("PreCompact", ""),
    entry("Stop", ""),
];

/// Its `PreCompress` is no moment of a session: it comes before each request, long before anything is shortened.
const GEMINI: &[Entry] = &[
    entry("BeforeTool", "write_file|replace|run_shell_command|mcp_.*"),
    entry("BeforeAgent", ""),
    entry("AfterAgent", ""),
    entry("SessionEnd", ""),
];

fn entries(agent: HookAgent) -> &'static [Entry] {
    match agent {
        HookAgent::Claude => CLAUDE,
        HookAgent::Codex => CODEX,
        HookAgent::Gemini => GEMINI,
        HookAgent::Opencode | HookAgent::Git => &[],
    }
}

/// The settings of an agent that is set up by JSON.
pub(crate) fn settings(agent: HookAgent, program: &str) -> Value {
    let mut hooks = Map::new();
    for Entry {
        event,
        matcher,
        timeout,
    } in entries(agent)
    {
        // Gemini CLI counts milliseconds.
        let timeout = if agent == HookAgent::Gemini {
            timeout * 1000
        } else {
            *timeout
        };
        let mut hook =
            json!({"type": "command", "command": command(program, agent), "timeout": timeout});
        if agent == HookAgent::Gemini {
            hook["name"] = json!("recover");
        }
        let mut group = Map::new();
        if !matcher.is_empty() {
            group.insert("matcher".to_owned(), json!(matcher));
        }
        group.insert("hooks".to_owned(), json!([hook]));
        hooks.insert((*event).to_owned(), json!([group]));
    }
    json!({"hooks": hooks})
}

/// A file that does not look as the agent's settings must; says what is wrong.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub(crate) struct NotSettings(pub(super) String);

/// The text of the settings with ours in them: added at the end of each event's list, in place of what an earlier version
/// put there. All other bytes stay. `None` is a file that is not there; one that was and held nothing ends without a line
/// break now, which is how [`without_ours`] tells them apart.
pub(crate) fn with_ours(
    text: Option<&str>,
    agent: HookAgent,
    program: &str,
) -> Result<String, NotSettings> {
    let ours = settings(agent, program);
    let given = text.unwrap_or_default();
    let indent = indent_of(given);
    check(given, agent)?;
    if is_complete(given, agent, &ours) {
        return Ok(given.to_owned());
    }
    let bare = text.and_then(|text| without_ours(text, agent));
    let Some(mut text) = bare else {
        return Ok(pretty(&ours, indent) + "\n");
    };
    if text.trim().is_empty() {
        return Ok(text + &pretty(&ours, indent));
    }
    for (event, groups) in ours["hooks"].as_object().into_iter().flatten() {
        let hooks = member(&text, &json_text::root(&text), "hooks");
        let list = hooks.and_then(|hooks| member(&text, &hooks.value, event));
        text = match list {
            Some(list) => json_text::with_item(&text, &list.value, &pretty(&groups[0], indent)),
            None => with_member(&text, "hooks", event, groups),
        };
    }
    Ok(text)
}

/// The text with one more member in its object `outer`, which is made where it is missing.
pub(super) fn with_member(text: &str, outer: &str, name: &str, value: &Value) -> String {
    let (root, indent) = (json_text::root(text), indent_of(text));
    let object = json!({ name: value });
    let (span, name, value) = member(text, &root, outer)
        .map_or((root, outer, &object), |found| (found.value, name, value));
    let item = format!("\"{name}\": {}", pretty(value, indent));
    json_text::with_item(text, &span, &item)
}

/// The text of the settings without ours; what was made for them goes too. `None` where that is the whole file.
pub(crate) fn without_ours(text: &str, agent: HookAgent) -> Option<String> {
    let mut text = text.to_owned();
    if text.trim().is_empty() {
        return Some(text);
    }
    while let Some(way) = first_of_ours(&text, agent) {
        let [root, events, groups, _, hooks] = &way;
        // From the hook outwards, as long as what it is in holds nothing else. A group is made for the hooks in it.
        if items(&text, &hooks.0).len() > 1 {
            text = json_text::without_item(&text, &hooks.0, hooks.1);
            continue;
        }
        match without_innermost(&text, &[groups, events, root]) {
            Remainder::Text(left) => text = left,
            Remainder::Whole(left) => return left,
        }
    }
    Some(text)
}

/// Whether there is all of ours and nothing of an earlier version.
fn is_complete(text: &str, agent: HookAgent, ours: &Value) -> bool {
    let Ok(existing) = serde_json::from_str::<Value>(&plain(text)) else {
        return false;
    };
    let holds = |(event, groups): (&String, &Value)| {
        existing["hooks"][event]
            .as_array()
            .is_some_and(|list| list.contains(&groups[0]))
    };
    let all = ours["hooks"]
        .as_object()
        .is_some_and(|ours| ours.iter().all(holds));
    let commands = existing["hooks"]
        .as_object()
        .into_iter()
        .flat_map(|hooks| hooks.values())
        .flat_map(hooks_in);
    all && commands.filter(|hook| is_our_hook(hook, agent)).count() == entries(agent).len()
}

fn hooks_in(groups: &Value) -> impl Iterator<Item = &Value> {
    let groups = groups.as_array().into_iter().flatten();
    groups
        .filter_map(|group| group["hooks"].as_array())
        .flatten()
}

/// Whether ours can be among these settings.
fn check(text: &str, agent: HookAgent) -> Result<(), NotSettings> {
    let wrong = |why: &str| Err(NotSettings(why.to_owned()));
    if text.trim().is_empty() {
        return Ok(());
    }
    let root = json_text::root(text);
    if !text[root.clone()].starts_with('{') {
        return wrong("it holds no JSON object");
    }
    let Some(hooks) = member(text, &root, "hooks") else {
        return Ok(());
    };
    if !text[hooks.value.clone()].starts_with('{') {
        return wrong("its hooks are no JSON object");
    }
    let times = |span: &Range<usize>, name: &str| {
        items(text, span)
            .iter()
            .filter(|item| item.key.as_deref() == Some(name))
            .count()
    };
    if times(&root, "hooks") > 1 {
        return wrong("it holds hooks twice");
    }
    for Entry { event, .. } in entries(agent) {
        let Some(list) = member(text, &hooks.value, event) else {
            continue;
        };
        if !text[list.value].starts_with('[') {
            return wrong(&format!("hooks.{event} is no list"));
        }
        if times(&hooks.value, event) > 1 {
            return wrong(&format!("it holds hooks.{event} twice"));
        }
    }
    Ok(())
}

pub(super) fn member(text: &str, span: &Range<usize>, name: &str) -> Option<Item> {
    items(text, span)
        .into_iter()
        .find(|item| item.key.as_deref() == Some(name))
}

/// The way to the first of our hooks: what holds the settings, the events, the groups, a group's members and its hooks,
/// each with the number of the item in it that leads on.
fn first_of_ours(text: &str, agent: HookAgent) -> Option<[(Range<usize>, usize); 5]> {
    let named = |span: &Range<usize>, name: &str| {
        items(text, span)
            .into_iter()
            .position(|it| it.key.as_deref() == Some(name))
    };
    let value = |span: &Range<usize>, index: usize| {
        items(text, span)
            .into_iter()
            .nth(index)
            .map(|item| item.value)
    };
    let root = json_text::root(text);
    let at_hooks = named(&root, "hooks")?;
    let events = value(&root, at_hooks)?;
    for (event, groups) in items(text, &events)
        .into_iter()
        .map(|item| item.value)
        .enumerate()
    {
        for (group, members) in items(text, &groups)
            .into_iter()
            .map(|item| item.value)
            .enumerate()
        {
            let Some(at) = named(&members, "hooks") else {
                continue;
            };
            let hooks = value(&members, at)?;
            let is_ours = |item: &Item| {
                serde_json::from_str(&plain(&text[item.value.clone()]))
                    .is_ok_and(|hook: Value| is_our_hook(&hook, agent))
            };
            if let Some(hook) = items(text, &hooks).iter().position(is_ours) {
                return Some([
                    (root, at_hooks),
                    (events, event),
                    (groups, group),
                    (members, at),
                    (hooks, hook),
                ]);
            }
        }
    }
    None
}

fn is_our_hook(hook: &Value, agent: HookAgent) -> bool {
    hook["command"]
        .as_str()
        .is_some_and(|command| is_ours(command, agent))
}

/// Whether a command is one of ours, also where a user gave it a flag or took the `|| true` off.
fn is_ours(command: &str, agent: HookAgent) -> bool {
    let Some((program, rest)) = command.split_once(&call_of(agent)) else {
        return false;
    };
    let edited = || {
        program.contains("recover") && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
    };
    command.ends_with(&tail(agent)) || edited()
}

/// What the first of our commands in a file calls, as a shell reads it.
pub(crate) fn program_in(text: &str, agent: HookAgent) -> Option<String> {
    let call = call_of(agent);
    let of_command = |command: &str| Some(command.split_once(&call)?.0.trim().to_owned());
    match agent {
        HookAgent::Claude | HookAgent::Codex | HookAgent::Gemini => {
            let settings: Value = serde_json::from_str(&plain(text)).ok()?;
            let hooks = settings["hooks"].as_object()?.values().flat_map(hooks_in);
            hooks
                .filter(|hook| is_our_hook(hook, agent))
                .find_map(|hook| of_command(hook["command"].as_str()?))
        }
        HookAgent::Opencode => plugin_line(text).as_deref().and_then(of_command),
        HookAgent::Git => text.lines().find_map(of_command),
    }
}

/// Whether an agent reads settings that hold comments. Claude Code and Codex drop such a file whole, and say nothing.
pub(crate) fn reads_comments(agent: HookAgent) -> bool {
    agent == HookAgent::Gemini
}

/// Whether a file may hold one of our commands at all.
pub(crate) fn may_hold_ours(text: &str, agent: HookAgent) -> bool {
    text.contains(&call_of(agent))
}

/// What a file's lines are indented by, so that it keeps its look; two spaces where nothing is indented.
fn indent_of(text: &str) -> &str {
    let indented = text
        .lines()
        .skip(1)
        .find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    indented.map_or("  ", |line| &line[..line.len() - line.trim_start().len()])
}

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
fn plugin_line(plugin: &str) -> Option<String> {
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
/// that is no turn that ended well. `config` is what it has to add to opencode's configuration, in lines of their own.
pub(crate) fn opencode_plugin(program: &str, config: &str) -> String {
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
  return {{{config}
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

    const JSON: [HookAgent; 3] = [HookAgent::Claude, HookAgent::Codex, HookAgent::Gemini];

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_added_is_taken_away_to_the_byte() {
        let theirs = [
            "{}",
            "{ }\n",
            "{\r\n\t\"a\" : 1.00,\r\n\t\"hooks\":{ },\"b\":[1e5 ,2]\r\n}",
            "{\"a\":12345678901234567890123}",
            "{\"hooks\": {\"Stop\": [], \"enabled\": true, \"Notification\": {\"a\": 1}}}",
            "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [ {\"command\": \"theirs\"} ]}\n    ]\n  },\n  \"a\": 1, \"a\": 2\n}\n",
            "  {\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"command\":\"./guard.sh\"}]}]}}",
            "// mine\n{\n  // of the team\n  \"hooks\": { /* none */ \"Stop\": [ // later\n ] },\n  \"a\": 1 // one, more\n}\n",
            "{\n  \"hooks\": { // why\n    \"Stop\": [{\"hooks\": [{\"command\": \"theirs\"} /* last, */]}] // ]\n  }\n}",
            "",
            "\n",
            " \r\n\t",
        ];
        for agent in JSON {
            for text in theirs.map(Some).into_iter().chain([None]) {
                let added = with_ours(text, agent, "recover").unwrap();
                assert_eq!(
                    added.matches(&call_of(agent)).count(),
                    entries(agent).len(),
                    "{added}"
                );
                value(&plain(&added));
                assert_eq!(
                    program_in(&added, agent).as_deref(),
                    Some("recover"),
                    "{added}"
                );
                assert_eq!(
                    with_ours(Some(&added), agent, "recover").unwrap(),
                    added,
                    "installing twice changes nothing"
                );
                let moved = with_ours(Some(&added), agent, "/opt/recover").unwrap();
                assert_eq!(
                    moved.matches("/opt/recover").count(),
                    entries(agent).len(),
                    "in place of the old"
                );
                assert_eq!(without_ours(&added, agent).as_deref(), text, "{added}");
                assert_eq!(without_ours(&moved, agent).as_deref(), text, "{moved}");
            }
            assert_eq!(
                value(&with_ours(None, agent, "recover").unwrap()),
                settings(agent, "recover")
            );
        }
        // Another agent's, and what a user wrote by hand, are not ours to take.
        let hand = "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"recover checkpoint create\"}]}], \"Empty\": []}}";
        assert_eq!(without_ours(hand, HookAgent::Claude).as_deref(), Some(hand));
    }

    #[test]
    fn a_group_of_theirs_keeps_their_hooks() {
        let ours = command("recover", HookAgent::Claude);
        let mixed = format!(
            "{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{{\"command\": \"theirs\"}}, {{\"command\": \"{ours}\"}}]}}]}}}}"
        );
        let left = without_ours(&mixed, HookAgent::Claude);
        assert_eq!(
            left.as_deref(),
            Some("{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"theirs\"}]}]}}")
        );
    }

    #[test]
    fn what_is_no_settings_file_is_told() {
        let twice = "{\"hooks\": {}, \"hooks\": {}}";
        for wrong in [
            "[]",
            "3",
            "{\"hooks\": []}",
            "{\"hooks\": {\"Stop\": {}}}",
            twice,
        ] {
            assert!(
                with_ours(Some(wrong), HookAgent::Claude, "recover").is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_indent_is_the_files_own() {
        for (text, indent) in [
            ("{\n    \"a\": 1\n}", "    "),
            ("{\n\t\"a\": 1\n}", "\t"),
            ("{}", "  "),
            ("", "  "),
        ] {
            assert_eq!(indent_of(text), indent, "{text}");
        }
    }

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
