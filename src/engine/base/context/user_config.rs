//! The user's own configuration: where it is, and reading it.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::config::{ConfigError, MAX_FILE, Place, UserConfig};
use crate::durable::Root;
use crate::git::repo::owner;

use super::Setup;

/// `$XDG_CONFIG_HOME/recover/config.toml`, by default below `~/.config`; `None` where neither is set.
fn user_file(setup: &Setup) -> Option<PathBuf> {
    let named = (setup.env)("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let folder = named.or_else(|| Some(setup.home.as_ref()?.join(".config")))?;
    Some(folder.join("recover").join("config.toml"))
}

/// Reads it; one that is not there says nothing. A link is followed where what it leads to is the user's own: many keep
/// their settings in a repository and link to them.
///
/// # Errors
/// It cannot be read, belongs to somebody else, or says something without meaning.
pub(super) fn load(setup: &Setup) -> Result<UserConfig, ConfigError> {
    let Some(path) = user_file(setup) else {
        return Ok(UserConfig::default());
    };
    let wrong = |message: String| {
        let place = Place::File {
            path: path.clone(),
            at: None,
        };
        ConfigError {
            place,
            message,
            hint: None,
            refused: None,
        }
    };
    let is_link = match path.symlink_metadata() {
        Ok(found) => found.is_symlink(),
        // What is no folder on the way holds no file.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(UserConfig::default());
        }
        Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
    };
    let real = std::fs::canonicalize(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound if is_link => wrong("is a link to nothing".to_owned()),
        _ => wrong(format!("cannot be read: {error}")),
    })?;
    if let Some(owner) = [&path, &real]
        .into_iter()
        .find_map(|place| owner::foreign(place))
    {
        return Err(wrong(format!("belongs to another user (uid {owner})")));
    }
    let (root, name) = Root::of_file(&real);
    let bytes = root.read_at_most(name.as_ref(), MAX_FILE);
    UserConfig::read(
        &path,
        bytes.map_err(|error| wrong(format!("cannot be read: {error}")))?,
    )
}
