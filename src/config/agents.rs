//! The profiles of agents: the built-in ones, in the form of the configuration, with the file's own on top.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

use super::parse;
use super::rights::Owner;
use crate::policy::settings::AgentProfile;

/// The built-in ones.
const BUILT_IN: &str = include_str!("agents.toml");

/// All profiles by name; `own` are the values of the file by full key path.
pub(super) fn profiles<'a>(
    own: impl Iterator<Item = (&'a str, &'a Json)>,
) -> Result<BTreeMap<String, AgentProfile>, serde_json::Error> {
    let own = own.map(|(path, value)| (path.to_owned(), value.clone()));
    // The tests see to it that it can be read.
    let built_in = parse::parse(Path::new("agents.toml"), BUILT_IN, Owner::Project)
        .map(|document| document.file)
        .unwrap_or_default();
    let built_in = built_in
        .into_iter()
        .map(|(path, stored)| (path, stored.value));
    let mut all: BTreeMap<String, serde_json::Map<String, Json>> = BTreeMap::new();
    for (path, value) in built_in.chain(own) {
        let mut parts = path.splitn(3, '.').skip(1);
        if let (Some(name), Some(key)) = (parts.next(), parts.next()) {
            all.entry(name.to_owned())
                .or_default()
                .insert(key.to_owned(), value);
        }
    }
    let complete = |(name, mut keys): (String, serde_json::Map<String, Json>)| {
        keys.entry("program")
            .or_insert_with(|| Json::from(name.as_str()));
        Ok((name, serde_json::from_value(Json::Object(keys))?))
    };
    all.into_iter().map(complete).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_are_read_and_the_file_changes_single_keys() {
        parse::parse(Path::new("agents.toml"), BUILT_IN, Owner::Project).unwrap();
        let all = profiles(std::iter::empty()).unwrap();
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "aider", "claude", "codex", "copilot", "gemini", "opencode", "qwen"
            ]
        );
        for (name, profile) in &all {
            assert!(
                profile.kind().is_some_and(|kind| kind.as_str() == name),
                "{name}"
            );
            assert!(!profile.yolo_args.is_empty(), "{name}");
        }
        assert!(!all["aider"].has_sessions());
        let model = serde_json::json!(["-p", "--model", "opus"]);
        let changed = profiles([("agent.claude.args", &model)].into_iter()).unwrap();
        assert_eq!(
            changed["claude"].command(false),
            [
                "claude",
                "-p",
                "--model",
                "opus",
                "--permission-mode",
                "acceptEdits"
            ]
        );
        assert_eq!(changed["codex"], all["codex"]);
    }
}
