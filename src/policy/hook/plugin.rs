//! The plugin beside the hook, in the form of each agent: commands, a skill and an entry of the MCP server.

use serde_json::{Value, json};

use super::json_text::{self, Remainder, items, plain, pretty, without_innermost};
use super::settings::{NotSettings, may_hold_ours, member, with_member, with_ours, without_ours};
use crate::model::hook::HookAgent;

/// A command of the plugin, as Claude Code has it.
#[derive(Clone, Copy, Debug)]
struct Command {
    name: &'static str,
    text: &'static str,
}

const COMMANDS: [Command; 3] = [
    Command {
        name: "checkpoint",
        text: include_str!("../../../plugin/source/checkpoint.md"),
    },
    Command {
        name: "status",
        text: include_str!("../../../plugin/source/status.md"),
    },
    Command {
        name: "undo",
        text: include_str!("../../../plugin/source/undo.md"),
    },
];

const SKILL: &str = include_str!("../../../plugin/source/SKILL.md");

/// The placeholder of a command's arguments in Claude Code and opencode.
const ARGUMENTS: &str = "$ARGUMENTS";

impl Command {
    /// Its description and what the model gets.
    fn parts(self) -> (&'static str, &'static str) {
        let (head, body) = self.text.split_once("\n---\n").unwrap_or_default();
        let description = head.split_once("description: ").unwrap_or_default().1;
        (description, body)
    }

    /// Gemini CLI's form.
    fn toml(self) -> String {
        let (description, body) = self.parts();
        let body = body.replace(ARGUMENTS, "{{args}}");
        format!("description = \"{description}\"\nprompt = '''\n{body}'''\n")
    }

    /// A skill of this name, for an agent that has no commands.
    fn skill(self, name: &str) -> String {
        let (description, body) = self.parts();
        let body = body.replace(ARGUMENTS, "(what follows the skill's name)");
        format!("---\nname: \"{name}\"\ndescription: {description}\n---\n{body}")
    }
}

/// Where a file belongs, relative to the agent's own folder, and what it holds.
pub(crate) type PluginFile = (String, String);

/// The plugin's files for an agent's own folder, such as `.claude`.
pub(crate) fn files(agent: HookAgent) -> Vec<PluginFile> {
    let of_command = |command: Command| {
        let name = command.name;
        match agent {
            HookAgent::Claude => Some((
                format!("commands/recover/{name}.md"),
                command.text.to_owned(),
            )),
            HookAgent::Gemini => Some((format!("commands/recover/{name}.toml"), command.toml())),
            HookAgent::Codex => Some((
                format!("skills/recover-{name}/SKILL.md"),
                command.skill(&format!("recover:{name}")),
            )),
            // Its plugin brings them along.
            HookAgent::Opencode | HookAgent::Git => None,
        }
    };
    let skill = ("skills/recover/SKILL.md".to_owned(), SKILL.to_owned());
    let commands = COMMANDS.into_iter().filter_map(of_command);
    commands.chain([skill]).collect()
}

/// What opencode's plugin adds to the configuration; what the user has under the same names goes before.
pub(crate) fn opencode_config(program: &str) -> String {
    let command = |command: Command| {
        let (description, body) = command.parts();
        let template = json!({"description": description, "template": body});
        (format!("recover:{}", command.name), template)
    };
    let commands: Value = COMMANDS.into_iter().map(command).collect();
    let servers = json!({"recover": {"type": "local", "command": [program, "mcp"]}});
    format!(
        "\n    config: async (config) => {{\n      config.command = {{ ...{commands}, ...config.command }}\n      \
         config.mcp = {{ ...{servers}, ...config.mcp }}\n    }},"
    )
}

/// Whether opencode's plugin does more than call the hook.
pub(crate) fn has_config(plugin: &str) -> bool {
    plugin.contains("\n    config: async ")
}

/// The commands that make files of their own.
const MAKERS: [&str; 2] = ["plugin", "service"];

/// The text with a line by which it is known later whether a user has edited it. It is a comment in each form, and never gets
/// to the model.
pub(crate) fn marked(text: &str, maker: &str) -> String {
    let sum = crc32fast::hash(text.as_bytes());
    let mark = format!("# Made by `recover {maker} install` ({sum:08x}).");
    match text.split_once('\n') {
        Some(("---", rest)) => format!("---\n{mark}\n{rest}"),
        Some((first, rest)) if first.starts_with("<?xml") => {
            format!("{first}\n<!-- {mark} -->\n{rest}")
        }
        _ => format!("{mark}\n{text}"),
    }
}

/// Whose a file that `recover` makes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This program's or an earlier version's, as it was made.
    Ours,
    /// A user has edited it since.
    Edited,
    /// Another program or user made it.
    Theirs,
}

/// Whose the file is that holds this text.
pub(crate) fn owner(text: &str) -> Owner {
    let is_mark = |line: &&str| line.contains("# Made by `recover ");
    let Some(mark) = text.split_inclusive('\n').take(2).find(is_mark) else {
        return Owner::Theirs;
    };
    let made = text.replacen(mark, "", 1);
    if MAKERS.iter().any(|maker| marked(&made, maker) == text) {
        Owner::Ours
    } else {
        Owner::Edited
    }
}

/// The member of an agent's settings that holds MCP servers.
const SERVERS: &str = "mcpServers";
const NAME: &str = "recover";

/// An entry of the MCP server.
fn server(program: &str) -> Value {
    json!({"command": program, "args": ["mcp"]})
}

/// The text of JSON settings with the MCP server in them, in place of one that calls another path; all other bytes stay.
/// What a user added to the entry stays as long as it calls the same. `None` is a file that is not there.
fn with_server(text: Option<&str>, program: &str) -> Result<String, NotSettings> {
    let given = text.unwrap_or_default();
    let servers = || json!({SERVERS: {NAME: server(program)}});
    if given.trim().is_empty() {
        let made = pretty(&servers(), "  ");
        // As with the hook, a file that held nothing ends without a line break.
        return Ok(text.map_or_else(|| made.clone() + "\n", |text| text.to_owned() + &made));
    }
    let root = json_text::root(given);
    let wrong = |why: &str| Err(NotSettings(why.to_owned()));
    if !given[root.clone()].starts_with('{') {
        return wrong("it holds no JSON object");
    }
    let is_servers = |item: &json_text::Item| item.key.as_deref() == Some(SERVERS);
    let found: Vec<_> = items(given, &root).into_iter().filter(is_servers).collect();
    match found.as_slice() {
        [] => {}
        [one] if given[one.value.clone()].starts_with('{') => {}
        [_] => return wrong("its mcpServers are no JSON object"),
        _ => return wrong("it holds mcpServers twice"),
    }
    if let Some(entry) = entry_in(given) {
        if !is_our_server(&entry) {
            return wrong("it has another MCP server that is named recover");
        }
        if entry["command"] == program {
            return Ok(given.to_owned());
        }
        return with_server(without_server(given).as_deref(), program);
    }
    Ok(with_member(given, SERVERS, NAME, &server(program)))
}

/// The text of JSON settings without the MCP server; `None` where that is the whole file.
fn without_server(text: &str) -> Option<String> {
    if !entry_in(text).is_some_and(|entry| is_our_server(&entry)) {
        return Some(text.to_owned());
    }
    let position = |span: &std::ops::Range<usize>, name: &str| {
        let item = |item: &json_text::Item| item.key.as_deref() == Some(name);
        items(text, span).iter().position(item)
    };
    let root = json_text::root(text);
    let way = position(&root, SERVERS).and_then(|at| {
        let servers = member(text, &root, SERVERS)?.value;
        Some(((servers.clone(), position(&servers, NAME)?), (root, at)))
    });
    let Some((in_servers, in_root)) = way else {
        return Some(text.to_owned());
    };
    match without_innermost(text, &[&in_servers, &in_root]) {
        Remainder::Text(left) => Some(left),
        Remainder::Whole(left) => left,
    }
}

fn entry_in(text: &str) -> Option<Value> {
    let settings: Value = serde_json::from_str(&plain(text)).ok()?;
    settings.get(SERVERS)?.get(NAME).cloned()
}

/// Whether an entry starts this program's server, wherever it is.
fn is_our_server(entry: &Value) -> bool {
    entry["args"][0] == "mcp"
}

/// What the MCP server's table in Codex' configuration begins with.
const TABLE: &str = "# Made by `recover plugin install`; `recover plugin uninstall codex` removes it.\n[mcp_servers.recover]\n";

/// The text of Codex' configuration with the MCP server's table at its end, in place of one that calls another path. A file
/// that did not end with a line break does not now.
fn with_table(text: Option<&str>, program: &str) -> Result<String, NotSettings> {
    let table = format!("{TABLE}command = {}\nargs = [\"mcp\"]\n", json!(program));
    let given = text.unwrap_or_default();
    if given.contains(table.trim_end()) {
        return Ok(given.to_owned());
    }
    let made = match text.map(without_table).transpose()?.flatten() {
        None => table,
        Some(bare) if bare.is_empty() => table.trim_end().to_owned(),
        Some(bare) if bare.ends_with('\n') => bare + &table,
        Some(bare) => format!("{bare}\n{}", table.trim_end()),
    };
    parsed(&made).map(|_| made)
}

/// The text of Codex' configuration without the table and the user's keys in it; `None` where that is the whole file.
fn without_table(text: &str) -> Result<Option<String>, NotSettings> {
    let Some(start) = text.find(TABLE) else {
        return Ok(Some(text.to_owned()));
    };
    let after = start + TABLE.len();
    let is_of_table = |line: &&str| !line.trim().is_empty() && !line.starts_with(['[', '#']);
    let keys = text[after..].split_inclusive('\n').take_while(is_of_table);
    let (before, rest) = (
        &text[..start],
        &text[after + keys.map(str::len).sum::<usize>()..],
    );
    if before.is_empty() && rest.is_empty() && text.ends_with('\n') {
        return Ok(None);
    }
    let ended_bare = rest.is_empty() && !text.ends_with('\n');
    let before = before
        .strip_suffix('\n')
        .filter(|_| ended_bare)
        .unwrap_or(before);
    let left = before.to_owned() + rest;
    if parsed(&left)?
        .get("mcp_servers")
        .is_some_and(|servers| servers.get(NAME).is_some())
    {
        let why = "it has more of the MCP server recover than was installed";
        return Err(NotSettings(why.to_owned()));
    }
    Ok(Some(left))
}

fn parsed(text: &str) -> Result<toml::Table, NotSettings> {
    let wrong =
        |error: toml::de::Error| NotSettings(format!("it is no TOML ({})", error.message()));
    text.parse().map_err(wrong)
}

/// What there is of ours in a file of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The hook.
    Hook,
    /// The MCP server, below `mcpServers` of a JSON file.
    Server,
    /// Both.
    HookAndServer,
    /// The MCP server, in Codex' configuration.
    Table,
}

impl Entry {
    /// Whether a file may hold it at all.
    pub(crate) fn may_be_in(self, text: &str, agent: HookAgent) -> bool {
        match self {
            Self::Hook => may_hold_ours(text, agent),
            Self::Server => text.contains("\"recover\""),
            Self::HookAndServer => {
                Self::Hook.may_be_in(text, agent) || Self::Server.may_be_in(text, agent)
            }
            Self::Table => text.contains(TABLE),
        }
    }

    /// The text with it; `line` is how a shell calls the program, `path` how it is called without one.
    pub(crate) fn with(
        self,
        text: Option<&str>,
        agent: HookAgent,
        (line, path): (&str, &str),
    ) -> Result<String, NotSettings> {
        match self {
            Self::Hook => with_ours(text, agent, line),
            Self::Server => with_server(text, path),
            Self::HookAndServer => with_server(Some(&with_ours(text, agent, line)?), path),
            Self::Table => with_table(text, path),
        }
    }

    /// The text without it; `None` where that is the whole file.
    pub(crate) fn without(
        self,
        text: &str,
        agent: HookAgent,
    ) -> Result<Option<String>, NotSettings> {
        match self {
            Self::Hook => Ok(without_ours(text, agent)),
            Self::Server => Ok(without_server(text)),
            Self::HookAndServer => {
                Ok(without_server(text).and_then(|left| without_ours(&left, agent)))
            }
            Self::Table => without_table(text),
        }
    }
}

#[cfg(test)]
mod tests;
