//! How an agent is started by its name, `[agent.NAME]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::agent_record::AgentKind;
use crate::model::failure::Cause;
use crate::model::spec::{Launch, PromptMode};

/// A program that works on a prompt without a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProfile {
    /// The program; without a slash it is looked for on `PATH`.
    pub program: String,
    /// What makes it work without a person and print its records.
    #[serde(default)]
    pub args: Vec<String>,
    /// How it gets the prompt.
    #[serde(default)]
    pub prompt: PromptMode,
    /// Whose records it prints: the name of an [`AgentKind`], or `text` for none.
    #[serde(default = "text")]
    pub output: String,
    /// What goes on in the session `{session}`; empty where it has none.
    #[serde(default)]
    pub resume_args: Vec<String>,
    /// What lets it edit the work tree without asking, and nothing more.
    #[serde(default)]
    pub edit_args: Vec<String>,
    /// What skips all permissions, in place of the former.
    #[serde(default)]
    pub yolo_args: Vec<String>,
    /// What exit codes mean where the records do not say.
    #[serde(default)]
    pub exit_codes: BTreeMap<String, Cause>,
}

fn text() -> String {
    "text".to_owned()
}

impl AgentProfile {
    /// The `output` of a program that prints no records.
    pub const TEXT: &str = "text";

    /// Whose records it prints.
    pub fn kind(&self) -> Option<AgentKind> {
        AgentKind::from_name(&self.output)
    }

    /// Whether it can go on in an earlier session.
    pub fn has_sessions(&self) -> bool {
        !self.resume_args.is_empty()
    }

    /// The command for a fresh session, in which `{prompt}` and `{prompt_file}` are not filled in yet.
    pub fn command(&self, yolo: bool) -> Vec<String> {
        let permissions = if yolo {
            &self.yolo_args
        } else {
            &self.edit_args
        };
        std::iter::once(&self.program)
            .chain(&self.args)
            .chain(permissions)
            .cloned()
            .collect()
    }

    /// What is recorded of a start under `name`.
    pub fn launch(&self, name: &str, yolo: bool) -> Launch {
        Launch {
            agent: name.to_owned(),
            prompt: self.prompt,
            resume_args: self.resume_args.clone(),
            exit_codes: self.exit_codes.clone(),
            edit_args: self.edit_args.clone(),
            yolo,
        }
    }
}
