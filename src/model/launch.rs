//! How a run's command gets its prompt and goes on in a session, where a profile starts it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::Cause;

/// How a program gets its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PromptMode {
    /// On standard input.
    #[default]
    Stdin,
    /// As an argument: where `{prompt}` stands, else at the end.
    Argument,
    /// As the path of a file: where `{prompt_file}` stands, else at the end.
    File,
}

/// What a profile has to do with a run's command, as it was when the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "launch")]
pub struct Launch {
    /// The profile's name.
    pub agent: String,
    /// How the prompt is passed.
    pub prompt: PromptMode,
    /// What goes on in the session `{session}`; empty where there are none.
    #[serde(default)]
    pub resume_args: Vec<String>,
    /// What exit codes mean where the records do not say.
    #[serde(default)]
    pub exit_codes: BTreeMap<String, Cause>,
    /// What lets it edit the work tree without asking.
    #[serde(default)]
    pub edit_args: Vec<String>,
    /// Whether all permissions are skipped.
    #[serde(default)]
    pub yolo: bool,
}

impl Launch {
    /// The arguments of one attempt: `command` with those of `session`, where it goes on in one, and the prompt.
    pub fn argv(
        &self,
        command: &[String],
        session: Option<&str>,
        prompt: Option<&str>,
        file: Option<&str>,
    ) -> Vec<String> {
        let resumed = session.map(|session| {
            self.resume_args
                .iter()
                .map(move |arg| arg.replace("{session}", session))
        });
        let mut argv: Vec<String> = command
            .iter()
            .cloned()
            .chain(resumed.into_iter().flatten())
            .collect();
        let (mark, value) = match self.prompt {
            PromptMode::Argument => ("{prompt}", prompt),
            PromptMode::File => ("{prompt_file}", file),
            PromptMode::Stdin => return argv,
        };
        let Some(value) = value else { return argv };
        // As a word of its own it would be taken for a flag.
        let word = if value.starts_with('-') {
            format!("\n{value}")
        } else {
            value.to_owned()
        };
        if argv.iter().any(|arg| arg.contains(mark)) {
            for arg in &mut argv {
                *arg = if arg == mark {
                    word.clone()
                } else {
                    arg.replace(mark, value)
                };
            }
        } else {
            argv.push(word);
        }
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_prompt_stands_where_it_is_asked_for() {
        let launch = |prompt| Launch {
            prompt,
            resume_args: words("resume {session} -"),
            ..Launch::default()
        };
        let argv = |prompt, command: &str, session| {
            launch(prompt)
                .argv(
                    &words(command),
                    session,
                    Some("do {session} it"),
                    Some("/p.md"),
                )
                .join("|")
        };
        assert_eq!(
            argv(PromptMode::Stdin, "codex exec", Some("s1")),
            "codex|exec|resume|s1|-"
        );
        assert_eq!(argv(PromptMode::Stdin, "codex exec", None), "codex|exec");
        assert_eq!(
            argv(PromptMode::Argument, "a --p={prompt} -x", None),
            "a|--p=do {session} it|-x"
        );
        assert_eq!(
            argv(PromptMode::Argument, "a", Some("s")),
            "a|resume|s|-|do {session} it"
        );
        assert_eq!(
            argv(PromptMode::File, "aider -f {prompt_file}", None),
            "aider|-f|/p.md"
        );
        assert_eq!(argv(PromptMode::File, "mine", None), "mine|/p.md");
        let launch = Launch {
            prompt: PromptMode::Argument,
            ..Launch::default()
        };
        let argv = |command: &str| {
            launch
                .argv(&words(command), None, Some("- fix it"), None)
                .join("|")
        };
        assert_eq!(argv("a"), "a|\n- fix it");
        assert_eq!(
            argv("a -p {prompt} --q={prompt}"),
            "a|-p|\n- fix it|--q=- fix it"
        );
    }
}
