//! JSON documents of `hook`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::flow::hook::Handled;
use crate::engine::flow::hook::status::HookStatus;
use crate::model::checkpoint::Checkpoint;
use crate::model::decision::Decision;
use crate::model::failure::Failure;
use crate::model::hook::Moment;
use crate::model::run_key::RunKey;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PrintReply<'a> {
    pub agent: &'a str,
    /// The file that it belongs in, relative to the project.
    pub path: Option<&'a str>,
    pub content: &'a str,
    pub notes: &'a [String],
    /// The content, where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
}

/// Every agent's hook.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusReply<'a> {
    pub hooks: &'a [HookStatus],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "hook_file")]
pub(crate) struct FileLine<'a> {
    pub agent: &'a str,
    pub path: String,
    #[schemars(extend("enum" = ["created", "modified", "deleted", "unchanged"]))]
    pub change: &'a str,
}

/// What an installation changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangesReply<'a> {
    pub changed: bool,
    pub files: &'a [FileLine<'a>],
    pub notes: &'a [String],
}

/// What it would change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangesPlanReply<'a> {
    pub changed: bool,
    pub plan: ChangesPlan<'a>,
    pub notes: &'a [String],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ChangesPlan<'a> {
    pub files: &'a [FileLine<'a>],
}

/// What became of a moment that an agent or git reported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HandledReply<'a> {
    changed: bool,
    moment: MomentLine<'a>,
    run: Option<&'a RunKey>,
    checkpoint: Option<&'a Checkpoint>,
    failure: Option<&'a Failure>,
    decision: Option<&'a Decision>,
    /// Why nothing was done.
    reason: Option<&'a str>,
}

impl<'a> HandledReply<'a> {
    pub(crate) fn new(moment: &'a Moment, handled: &'a Handled) -> Self {
        Self {
            changed: handled.changed,
            moment: moment.into(),
            run: handled.run.as_ref(),
            checkpoint: handled.checkpoint.as_ref(),
            failure: handled.failure.as_ref(),
            decision: handled.decision.as_ref(),
            reason: handled.reason,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "hook_moment")]
#[serde(tag = "name", rename_all = "snake_case")]
enum MomentLine<'a> {
    BeforeTool { tool: &'a str },
    TurnEnded { stop_hook_active: bool },
    TurnFailed {},
    Compacting {},
    SessionEnded {},
    Git { hook: &'a str },
    Other { event: &'a str },
}

impl<'a> From<&'a Moment> for MomentLine<'a> {
    fn from(moment: &'a Moment) -> Self {
        match moment {
            Moment::BeforeTool(call) => Self::BeforeTool { tool: &call.name },
            Moment::TurnEnded(again) => Self::TurnEnded {
                stop_hook_active: *again,
            },
            Moment::TurnFailed(_) => Self::TurnFailed {},
            Moment::Compacting => Self::Compacting {},
            Moment::SessionEnded => Self::SessionEnded {},
            Moment::Git(hook) => Self::Git { hook },
            Moment::Other(event) => Self::Other { event },
        }
    }
}

/// Nothing was done: whoever called the hook is not stopped by that.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TroubleReply<'a> {
    pub changed: bool,
    pub trouble: Trouble<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "hook_trouble")]
pub(crate) struct Trouble<'a> {
    pub code: &'a str,
    pub message: &'a str,
}
