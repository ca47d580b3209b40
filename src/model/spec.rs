//! The settings that a run was started with: command, prompt, checks, limits; `resume` uses them again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::format_duration;
use super::{Cause, CheckKind, FeedbackLoop, FolderId, RunId};

/// What a run executes, recorded so that `resume` needs no arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "spec")]
pub struct RunSpec {
    /// The command and its arguments; empty for a run whose loop runs its own commands.
    pub command: Vec<String>,
    /// Where the command starts, relative to the work tree; empty for its root.
    #[serde(default, skip_serializing_if = "FolderId::is_empty")]
    pub dir: FolderId,
    /// How many iterations; `None` without a bound (with `until`).
    pub iterations_total: Option<u32>,
    /// The base prompt.
    pub prompt: Option<String>,
    /// The tasks that are its iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskList>,
    /// Percent of the account's tightest limit that no other task is begun with less of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<u8>,
    /// A shell command that ends the run when it passes.
    pub until: Option<String>,
    /// Where that starts, relative to the work tree.
    #[serde(default, skip_serializing_if = "FolderId::is_empty")]
    pub until_dir: FolderId,
    /// Commands that must pass after the run's command, as the command line gave them.
    #[serde(default)]
    pub feedback: Vec<FeedbackLoop>,
    /// What the configuration added when the run began, and the run keeps; `None` for a run that nothing has supervised yet, or
    /// that began before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<ConfiguredChecks>,
    /// Deadline of one attempt.
    pub timeout_ms: Option<u64>,
    /// Whether that was typed, rather than configured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timeout_typed: bool,
    /// `--idle`: how long an attempt may stand still; `None` as configured, 0 for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// `--max-repeats`: how often in a row an agent may call a tool the same way; `None` as configured, 0 for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<u32>,
    /// `--attempts` / `--retries`: overrides every configured limit of this run.
    pub attempts: Option<u32>,
    /// `--kind`: what the command is, where its programs do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CheckKind>,
    /// `--agent`.
    pub agent: Option<String>,
    /// The profile that starts the command; `None` where the command was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// `--on-failure`.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// `--same-session`, `--fresh`.
    #[serde(default, skip_serializing_if = "SessionMode::is_auto")]
    pub session: SessionMode,
    /// What the loop says it tries.
    pub approach: Option<String>,
    /// What is run once in place of the command when no retry is allowed any more (S9); empty for none.
    #[serde(default)]
    pub fallback: Vec<String>,
    /// Where that starts, relative to the work tree.
    #[serde(default, skip_serializing_if = "FolderId::is_empty")]
    pub fallback_dir: FolderId,
    /// `--notify`: a shell line in place of the configured command that notifies; an empty one notifies nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
    /// The budgets that the run goes on with wherever it is resumed; `None` for one that lies on no remote, whose budgets are
    /// those of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<serde_json::Value>,
    /// The run in whose attempt this one was begun: a command that names none is not about this one while there is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<RunId>,
    /// The work tree that it was given for itself alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated: Option<Isolated>,
    /// Whether the command and its checks write in some places only.
    #[serde(default, skip_serializing_if = "Confine::is_off")]
    pub confine: Confine,
    /// Whether the command gets a terminal of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pty: bool,
    /// The first of the runs of this command that failed here with nothing changed in between: one task with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<RunId>,
    /// The series that the run was begun for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Whether a person asked for a retry with context: then the command gets a prompt, though none was given when it began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_prompt: bool,
    /// The fields above of which a secret was masked, by name: what is run again must not lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<String>,
}

impl RunSpec {
    /// ` of N` behind the number of an iteration; empty where it is not known how many there are.
    pub fn of_total(&self) -> String {
        let total = self.iterations_total;
        total.map_or_else(String::new, |total| format!(" of {total}"))
    }

    /// Which terms are others in `to`, each as a few words; no value of a user's that may be secret is among them.
    pub fn changes(&self, to: &Self) -> Vec<String> {
        let time = |spec: &Self| {
            let millis = spec.timeout_ms.map(Duration::from_millis);
            millis.map_or_else(|| "none".to_owned(), format_duration)
        };
        let count = |number: Option<u32>, without: &str| {
            number.map_or_else(|| without.to_owned(), |number| number.to_string())
        };
        let agent = |spec: &Self| {
            let started = spec.launch.as_ref().map(|launch| &launch.agent);
            started.or(spec.agent.as_ref()).cloned()
        };
        let attempts = |spec: &Self| count(spec.attempts, "as configured");
        let iterations = |spec: &Self| count(spec.iterations_total, "unlimited");
        let named = [
            ("timeout", time(self), time(to)),
            ("attempts", attempts(self), attempts(to)),
            ("iterations", iterations(self), iterations(to)),
            (
                "agent",
                agent(self).unwrap_or_else(|| "auto".to_owned()),
                agent(to).unwrap_or_else(|| "auto".to_owned()),
            ),
        ];
        let named = named.into_iter().filter(|(_, from, to)| from != to);
        let checks = to
            .feedback
            .iter()
            .filter(|check| !self.feedback.contains(check));
        let other = [
            ("another prompt", self.prompt != to.prompt),
            (
                "another command",
                self.command != to.command && agent(self) == agent(to),
            ),
        ];
        named
            .map(|(name, from, to)| format!("{name} {from} -> {to}"))
            .chain(checks.map(|check| format!("check {}", check.name)))
            .chain(
                other
                    .into_iter()
                    .filter(|(_, differs)| *differs)
                    .map(|(what, _)| what.to_owned()),
            )
            .collect()
    }
}

/// The tasks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// The file that has them: relative to the work tree where it is in it, else absolute.
    pub file: FolderId,
    /// In the order of their iterations: the first is iteration 1.
    pub tasks: Vec<Task>,
    /// Tasks that an attempt added to the file: none of them is run.
    #[serde(default)]
    pub to_review: Vec<String>,
    /// Whether they are a part of the file's, which other runs have the rest of: then nothing that is added is run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
}

/// A task, with the terms in which it differs from its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its name, one line; of an item of a Markdown list its text.
    pub id: String,
    /// What is added to the run's prompt.
    pub prompt: String,
    /// The tasks that have to pass before it begins.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Its checks, in place of the run's of the same names or beside them.
    #[serde(default)]
    pub feedback: Vec<FeedbackLoop>,
    /// Its attempts, the first included.
    pub attempts: Option<u32>,
    /// The time limit of each attempt.
    pub timeout_ms: Option<u64>,
}

impl TaskList {
    /// How many tasks are run.
    pub fn count(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    /// The longest prompt that a task gets, with the run's in front.
    pub fn longest_prompt(&self, prompt: Option<&str>) -> Option<String> {
        let longest = self.tasks.iter().max_by_key(|task| task.prompt.len())?;
        Some(joined(prompt, longest))
    }

    /// The iteration of a task.
    pub(super) fn iteration_of(&self, id: &str) -> Option<u32> {
        let at = self.tasks.iter().position(|task| task.id == id)?;
        u32::try_from(at).ok()?.checked_add(1)
    }
}

/// The prompt of a run with that of a task.
fn joined(prompt: Option<&str>, task: &Task) -> String {
    match prompt {
        Some(prompt) => format!("{}\n\n{}", prompt.trim_end(), task.prompt),
        None => task.prompt.clone(),
    }
}

impl RunSpec {
    /// The task of an iteration, where the run works through a list.
    pub fn task(&self, iteration: u32) -> Option<&Task> {
        let at = usize::try_from(iteration.checked_sub(1)?).ok()?;
        self.tasks.as_ref()?.tasks.get(at)
    }

    /// The terms of an iteration: those of its task where it has its own, else the run's.
    pub fn terms(&self, iteration: u32) -> Cow<'_, Self> {
        let Some(task) = self.task(iteration) else {
            return Cow::Borrowed(self);
        };
        let mut spec = self.clone();
        spec.prompt = Some(joined(self.prompt.as_deref(), task));
        for own in &task.feedback {
            spec.feedback.retain(|known| known.name != own.name);
            spec.feedback.push(own.clone());
        }
        spec.attempts = task.attempts.or(self.attempts);
        spec.timeout_ms = task.timeout_ms.or(self.timeout_ms);
        Cow::Owned(spec)
    }
}

/// Where a run comes from that has a work tree of its own, which is the run's as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolated {
    /// The work tree in which it was begun.
    pub home: FolderId,
    /// The full name of the branch that was checked out there, which it is merged onto; `null` where there was none.
    pub onto: Option<String>,
    /// The full name of its own branch.
    pub branch: String,
}

/// The checks of the configuration as a run began with them: whoever changes the file while it is at work changes another
/// run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ConfiguredChecks {
    /// What runs a command that is one string.
    pub shell: String,
    /// The checks.
    pub feedback: Vec<FeedbackLoop>,
}

/// Whether the processes of an attempt are confined to some places in what they write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Confine {
    /// They write wherever their user may.
    #[default]
    Off,
    /// They are, or the run is refused.
    On,
    /// They are where the system can do it.
    Try,
}

impl Confine {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde's skip_serializing_if passes a reference"
    )]
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// Where a confined command and all that it starts may write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Files and folders, with all that is in them.
    pub write: Vec<PathBuf>,
    /// What of it is not to be written, where the system can distinguish that.
    pub never: Vec<PathBuf>,
}

impl Places {
    /// Whether a path lies in one of them.
    pub fn allow(&self, path: &Path) -> bool {
        self.write.iter().any(|place| path.starts_with(place))
    }
}

/// Whether an attempt goes on in the agent's session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SessionMode {
    /// Where nothing was restored since its last turn, and it is about the same iteration.
    #[default]
    Auto,
    /// Always, but after a full context, in which no session goes on.
    Same,
    /// Never.
    Fresh,
}

impl SessionMode {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde's skip_serializing_if passes a reference"
    )]
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// What a failed attempt leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OnFailure {
    /// What the policy decides.
    #[default]
    Policy,
    /// Retry within the budgets, never roll files back.
    Retry,
    /// Roll back to the last good checkpoint, then retry within the budgets.
    Rollback,
    /// Stop and wait for a person's fix.
    ManualFix,
    /// Stop at once; what the policy would do is printed as advice.
    Stop,
}

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
pub struct Launch {
    /// The profile's name.
    pub agent: String,
    /// How the prompt is passed.
    pub prompt: PromptMode,
    /// What goes on in the session `{session}`; empty where there are none.
    #[serde(default)]
    pub resume_args: Vec<String>,
    /// What ends it when it has spent `{usd}` dollars; empty where nothing does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budget_args: Vec<String>,
    /// What exit codes mean where the records do not say.
    #[serde(default)]
    pub exit_codes: BTreeMap<String, Cause>,
    /// What lets it edit the work tree without asking.
    #[serde(default)]
    pub edit_args: Vec<String>,
    /// Whether all permissions are skipped.
    #[serde(default)]
    pub yolo: bool,
    /// Whether it is driven by the Agent Client Protocol.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acp: bool,
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
