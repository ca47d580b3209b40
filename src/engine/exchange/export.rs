//! `recover checkpoint export`: a checkpoint as a file, or on standard output.

use std::io::Write;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Format, session_file, to_file, to_stream};
use crate::engine::base::{Context, Result};
use crate::engine::record::select;
use crate::engine::recovery;
use crate::model::{CheckpointId, ObjectId, PathReason, Selector};

/// What is exported, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub selector: Selector,
    pub format: Format,
    /// `-` is standard output; `None` a view in the session's folder.
    pub path: Option<PathBuf>,
    /// Whether a file that is there is replaced.
    pub force: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Exported {
    checkpoint_id: CheckpointId,
    format: Format,
    base_commit: Option<ObjectId>,
    changed: bool,
    /// `null` where it went to standard output.
    pub path: Option<String>,
    /// What stays on this machine, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<PathReason>,
}

impl Request {
    /// Whether it goes to standard output.
    pub(crate) fn is_stream(&self) -> bool {
        self.path
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "-")
    }

    /// Writes it; a dry run only says where.
    pub(crate) fn carry_out(&self, context: &Context, out: &mut dyn Write) -> Result<Exported> {
        let state = recovery::load_recovered(context)?;
        let checkpoint = select::checkpoint(context, &state, &self.selector)?;
        let (path, withheld) = match &self.path {
            Some(_) if self.is_stream() && context.dry_run() => (None, Vec::new()),
            Some(_) if self.is_stream() => {
                (None, to_stream(context, checkpoint, self.format, out)?)
            }
            Some(path) => {
                let force = self.force || context.says_yes();
                let (path, withheld) =
                    to_file(context, checkpoint, self.format, path, force, false)?;
                (Some(path), withheld)
            }
            // What is written in a place of our own is a view: it is written anew.
            None => {
                let path = session_file(context, checkpoint)?;
                if context.dry_run() {
                    (Some(path), Vec::new())
                } else {
                    let (path, withheld) =
                        to_file(context, checkpoint, self.format, &path, true, false)?;
                    (Some(path), withheld)
                }
            }
        };
        Ok(Exported {
            checkpoint_id: checkpoint.id.clone(),
            format: self.format,
            base_commit: checkpoint.base_commit.clone(),
            changed: !context.dry_run() && path.is_some(),
            path: path.map(|path| path.to_string_lossy().into_owned()),
            withheld,
        })
    }
}
