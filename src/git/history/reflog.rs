//! A line in the log of a reference, as git writes it.

use std::fs::OpenOptions;
use std::io::Write as _;

use crate::durable::{create_dir_all, give_to_sudo_caller};
use crate::git::base::error::{Error, Result};
use crate::git::repo::repository::{IDENTITY, Repo};
use crate::model::manifest::ObjectId;

/// A move of a reference.
pub(in crate::git) struct Entry<'a> {
    /// Where it was.
    pub from: Option<&'a ObjectId>,
    /// Where it goes.
    pub to: Option<&'a ObjectId>,
    /// Why.
    pub message: &'a str,
}

/// What stands for no commit.
const NONE: &str = "0000000000000000000000000000000000000000";

/// Appends to the log of HEAD or of a branch, unless the repository keeps none.
pub(in crate::git) fn append(repo: &Repo, name: &str, entry: &Entry<'_>) -> Result<()> {
    let base = if name == "HEAD" {
        repo.git_dir()
    } else {
        repo.common_dir()
    };
    let path = base.join("logs").join(name);
    let config = repo
        .inner
        .config()
        .map_err(Error::git("read the configuration"))?;
    // Unset, it means yes where there is a work tree; `always` is no boolean.
    let wanted = config.get_bool("core.logallrefupdates").unwrap_or(true);
    if !wanted && !path.exists() {
        return Ok(());
    }
    path.parent()
        .map_or(Ok(()), create_dir_all)
        .map_err(Error::at(&path))?;
    let id = |commit: Option<&ObjectId>| commit.map_or(NONE, |commit| commit.0.as_str()).to_owned();
    let now = git2::Signature::now(IDENTITY.0, IDENTITY.1)
        .map_err(Error::git("read the clock"))?
        .when();
    let message = entry.message.replace(['\n', '\r'], " ");
    let line = format!(
        "{} {} {} <{}> {} +0000\t{message}\n",
        id(entry.from),
        id(entry.to),
        IDENTITY.0,
        IDENTITY.1,
        now.seconds()
    );
    let is_new = !path.exists();
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let given = file.and_then(|file| {
        if is_new {
            give_to_sudo_caller(&path).map(|()| file)
        } else {
            Ok(file)
        }
    });
    given
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(Error::at(&path))
}
