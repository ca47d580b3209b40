//! Any bytes as a configuration: an error at its place, or settings that say the same when they are written out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use recover::testing::config::{Around, Config, ConfigError, Origin, UserConfig};
use recover::testing::durable::Root;
use serde_json::Value;
use tempfile::TempDir;

use crate::driver::{Target, folder, kind_of, seen};

/// What has no line of its own: lists of tables, and what only a flag sets.
const NO_LINES: [&str; 3] = ["feedback", "rule", "retry.override_attempts"];

pub struct Configuration {
    folder: TempDir,
}

impl Configuration {
    pub fn new() -> Self {
        Self { folder: folder() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("recover.toml")
    }

    fn load(&self, content: &[u8]) -> Result<Config, ConfigError> {
        fs::write(self.file(), content).unwrap();
        let around = Around {
            env: &|_| None,
            user: &UserConfig::default(),
            task: None,
            trusts: &|_| true,
        };
        Config::load(&Root::shared(self.folder.path()), &self.file(), around)
    }

    /// The error names a place that there is in the file.
    fn is_placed(&self, error: &ConfigError, input: &[u8]) {
        assert!(
            !error.message.trim().is_empty() && error.file() == Some(&self.file()),
            "{error:?}"
        );
        let text = String::from_utf8_lossy(input);
        let (Some(line), Some(column)) = (error.line(), error.column()) else {
            panic!("no place: {error:?}")
        };
        let lines: Vec<&str> = text.split('\n').collect();
        let found = lines
            .get(line.wrapping_sub(1))
            .unwrap_or_else(|| panic!("no such line: {error}"));
        assert!(
            (1..=found.chars().count() + 1).contains(&column),
            "no such column: {error}"
        );
    }
}

fn values(config: &Config) -> BTreeMap<String, Value> {
    config
        .origins()
        .into_iter()
        .map(|entry| (entry.key, entry.value))
        .collect()
}

/// Every value that the file says, a line each.
fn written(config: &Config) -> String {
    let is_said = |origin: &Origin| matches!(origin, Origin::File { .. });
    let own = config
        .origins()
        .into_iter()
        .filter(|entry| is_said(&entry.origin));
    let own = own.filter(|entry| !NO_LINES.contains(&entry.key.as_str()));
    own.map(|entry| entry.key + " = " + &entry.toml + "\n")
        .collect()
}

impl Target for Configuration {
    const NAME: &'static str = "configuration";
    const TOKENS: &'static [&'static [u8]] = &[
        b"\n",
        b" = ",
        b"[retry]\n",
        b"[retry.causes.UNKNOWN]\n",
        b"[checkpoint]\n",
        b"[rollback]\n",
        b"[runner]\n",
        b"[run]\n",
        b"[[feedback]]\n",
        b"[[rule]]\n",
        b"[agent.own]\n",
        b"[task.\"x\"]\n",
        b"[task.\"x\".retry]\n",
        b"[redact]\n",
        b"[notify]\n",
        b"[remote]\n",
        b"[recovery]\n",
        b"[cleanup]\n",
        b"max_attempts",
        b"max_retries",
        b"preset = \"loop\"\n",
        b"preset",
        b"command",
        b"name",
        b"timeout",
        b"patterns",
        b"variables",
        b"\"none\"",
        b"\"10m\"",
        b"\"50MiB\"",
        b"\"keep_last_3\"",
        b"true",
        b"false",
        b"1.5",
        b"1e400",
        b"-0.0",
        b"inf",
        b"nan",
        b"0x10",
        b"1979-05-27T07:32:00Z",
        b"[]",
        b"{}",
        b"[\"a\", \"b\"]",
        b"{ 3 = \"RATE_LIMITED\" }",
        b"\"\"\"",
        b"'''",
        b"\"\\u0000\"",
        b"\"\\u001b\"",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\xff",
        b"#",
        b"[[",
        b"[a.b.c.d]\n",
        b"x.y.z = 1\n",
    ];

    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64> {
        inputs.iter().map(|input| self.play_one(input)).collect()
    }
}

impl Configuration {
    fn play_one(&self, input: &[u8]) -> u64 {
        let by_user = UserConfig::read(&self.file(), input.to_vec());
        if let Err(error) = &by_user {
            self.is_placed(error, input);
        }
        let config = match self.load(input) {
            Ok(config) => config,
            Err(error) => {
                self.is_placed(&error, input);
                return seen(&kind_of(&error.message));
            }
        };
        let said = values(&config);
        config.agents().unwrap();
        for entry in config.origins() {
            if let Origin::File { line, .. } = entry.origin {
                assert!(
                    (1..=input.split(|byte| *byte == b'\n').count()).contains(&line),
                    "{entry:?}",
                    entry = entry.key
                );
            }
        }
        let is_preset = matches!(config.origin("preset"), Some(origin) if origin.is_explicit());
        // A list that adds to that of a preset would be added twice.
        if !is_preset {
            let text = written(&config);
            let again = self
                .load(text.as_bytes())
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            let mut written = values(&again);
            for list in NO_LINES {
                written.insert(list.to_owned(), said.get(list).cloned().unwrap_or_default());
            }
            let mut said = said.clone();
            for list in NO_LINES {
                said.entry(list.to_owned()).or_default();
            }
            assert_eq!(written, said, "{text}");
        }
        let keys: Vec<&String> = said
            .keys()
            .filter(|key| config.origin(key).is_some_and(Origin::is_explicit))
            .collect();
        seen(&(keys, by_user.is_ok()))
    }
}
