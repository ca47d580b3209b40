//! Values as users write them.

use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::engine::base::clock::WaitLimit;
use crate::engine::restore::request::Commits;
use crate::model::checkpoint::{CheckpointType, StorageType};
use crate::model::feedback::CheckKind;
use crate::model::hook::HookAgent;
use crate::model::import::ImportKind;
use crate::model::operation::Scope;
use crate::model::run::OnFailure;
use crate::model::time::parse_duration;
use crate::policy::restore::Edits;
use crate::policy::settings::ColorWhen;

pub(super) use crate::model::lane::STAGES;

/// Reads `90`, `90s`, `10m`, `2h`, `7d`, `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// A number that is `LEAST` or more.
pub(super) fn number<const LEAST: u32>(text: &str) -> Result<u32, String> {
    whole(text, LEAST, u32::MAX)
}

/// A number of lines.
pub(super) fn lines(text: &str) -> Result<usize, String> {
    whole(text, 0, usize::MAX)
}

fn whole<N>(text: &str, least: N, most: N) -> Result<N, String>
where
    N: FromStr<Err = ParseIntError> + PartialOrd + Display + Copy,
{
    match text.parse::<N>() {
        Ok(number) if number >= least => Ok(number),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("the largest number is {most}"))
        }
        _ => Err(format!("a number from {least} up is expected")),
    }
}

/// Reads `100`, `100KiB`, `50MiB`, `10MB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    crate::config::parse_size(text).map_err(|error| error.to_string())
}

/// Reads the name of a run, a phase, a lane or a task: anything but nothing.
pub(crate) fn name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("it is empty".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// A value as it is written on the command line.
pub(crate) fn word_of(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|word| word.get_name().to_owned())
        .unwrap_or_default()
}

/// Makes an enum of the model the value of a flag: each variant with its word and its help.
macro_rules! values {
    ($($type:ident { $($variant:ident $word:literal: $help:literal,)+ })+) => {$(
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let (word, help) = match self {
                    $(Self::$variant => ($word, $help),)+
                };
                Some(PossibleValue::new(word).help(help))
            }
        }
    )+};
}

values! {
    CheckKind {
        Agent "agent": "The agent itself",
        Build "build": "Building or preparing",
        Test "test": "Tests",
        Lint "lint": "Lints and formatting",
        Typecheck "typecheck": "A type checker",
    }
    ImportKind {
        Battle "battle": "A battle's JSON",
        AttemptHistory "attempt_history": "attempt_history.json",
        Lanes "lanes": "checkpoints.json of the lane contract",
        Session "session": "A session's checkpoint, or active_checkpoint.json",
        Recovery "recovery": "recovery.json",
    }
    ColorWhen {
        Auto "auto": "On a terminal, unless `NO_COLOR` is set",
        Always "always": "Always",
        Never "never": "Never",
    }
    Scope {
        All "all": "Files, working memory, and HEAD where it is the run's own to move",
        Files "files": "Files only",
        State "state": "The working memory below the state directory only",
    }
    Commits {
        Refuse "refuse": "Move HEAD only over the run's own commits, else refuse",
        Keep "keep": "Leave HEAD where it is",
        Drop "drop": "Move HEAD back anyway; the commits stay reachable under refs/recover/",
        Revert "revert": "Add one commit with the checkpoint's content",
    }
    Edits {
        Refuse "refuse": "Refuse and list them",
        Keep "keep": "Leave them as they are",
        Discard "discard": "Overwrite them; undo brings them back",
    }
    HookAgent {
        Claude "claude": "Claude Code: .claude/settings.json",
        Codex "codex": "Codex: .codex/hooks.json",
        Gemini "gemini": "Gemini CLI: .gemini/settings.json",
        Opencode "opencode": "opencode: .opencode/plugins/recover.js",
        Git "git": "git: pre-rebase and pre-push",
    }
    CheckpointType {
        Phase "phase": "A milestone",
        Task "task": "A unit of progress",
        Operation "operation": "Before or after a single operation",
    }
    StorageType {
        Snapshot "snapshot": "The hidden commit alone",
        Commit "commit": "Also a commit on the branch",
        Patch "patch": "Also a patch file against HEAD",
    }
    OnFailure {
        Policy "policy": "Do what the policy decides",
        Retry "retry": "Retry within the budgets, never roll files back",
        Rollback "rollback": "Roll back to the last good checkpoint, then retry within the budgets",
        ManualFix "manual-fix": "Wait for a person's fix",
        Stop "stop": "Stop at once",
    }
}

/// `--wait` alone, or with the longest time to wait.
impl FromStr for WaitLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            Ok(Self::Forever)
        } else {
            duration(text).map(Self::AtMost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read() {
        assert_eq!("".parse(), Ok(WaitLimit::Forever));
        assert_eq!("2s".parse(), Ok(WaitLimit::AtMost(Duration::from_secs(2))));
        assert!("soon".parse::<WaitLimit>().is_err());
    }
}
