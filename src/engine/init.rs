//! `init`: detects what kind of project this is and writes the configuration that fits it (S17).

use schemars::JsonSchema;
use serde::Serialize;

use crate::config;
use crate::durable::{Root, Sync};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::trust;
use crate::model::Hint;
use crate::policy::project::{Found, Project, READ, configuration, recognise};

/// A file of this many bytes is one that a user wrote; a longer one is not looked at.
const LONGEST: u64 = 1024 * 1024;

/// A configuration that was written, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Initialised {
    changed: bool,
    pub path: String,
    /// What the file holds.
    #[serde(skip)]
    pub text: String,
    #[serde(flatten)]
    pub project: Project,
}

/// Writes the project's `recover.toml`: what fits it, or with `full` every key with its default. In a dry run only says
/// what.
///
/// # Errors
/// There is one already and `force` is not set (13); it cannot be written.
pub(crate) fn init(context: &Context, force: bool, full: bool) -> Result<Initialised> {
    let path = context.worktree().join(".ultraplan").join("recover.toml");
    let root = Root::shared(context.worktree());
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
    if root.has(&path).map_err(failed)? && !force {
        let message = format!("{} already exists: --force overwrites it", path.display());
        return Err(Error::new(ErrorKind::AlreadyExists, message).hint(Hint::recover(["config"])));
    }
    let project = recognise(&top(&root, context));
    let text = if full {
        config::template()
    } else {
        configuration(&project)
    };
    if !context.dry_run() {
        context.check_writes("writing a configuration")?;
        if let Some(folder) = path.parent() {
            root.create_dir_all(folder).map_err(failed)?;
        }
        root.write(&path, text.as_bytes(), Sync::All)
            .map_err(failed)?;
        // Who wrote it trusts it.
        trust::trust_own(&context.at(context.cwd())?)?;
    }
    Ok(Initialised {
        changed: !context.dry_run(),
        path: path.to_string_lossy().into_owned(),
        text,
        project,
    })
}

/// What lies at the top of the work tree. What cannot be read suggests nothing.
fn top(root: &Root, context: &Context) -> Vec<Found> {
    let names = root.list(context.worktree()).unwrap_or_default();
    let found = |(name, _): (std::ffi::OsString, _)| {
        let name = name.into_string().ok()?;
        let text = if READ.contains(&name.as_str()) {
            content(root, &context.worktree().join(&name))
        } else {
            None
        };
        Some(Found {
            name,
            content: text.unwrap_or_default(),
        })
    };
    names.into_iter().filter_map(found).collect()
}

fn content(root: &Root, path: &std::path::Path) -> Option<String> {
    let length = root.open(path).ok()?.metadata().ok()?.len();
    let bytes = (length <= LONGEST).then(|| root.read(path).ok())??;
    String::from_utf8(bytes).ok()
}
