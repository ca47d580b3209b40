//! The user's own configuration, which holds in all projects.

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::parse::{self, Layer};
use super::schema::{Owner, is_user_first};
use super::utf8;

/// What the user set for all projects.
#[derive(Clone, Debug, Default)]
pub struct UserConfig {
    file: PathBuf,
    values: Layer,
}

impl UserConfig {
    /// Reads the content of the user's file; `file` is its name in errors and origins.
    pub fn read(file: &Path, bytes: Vec<u8>) -> Result<Self, ConfigError> {
        let document = parse::parse(file, &utf8(file, bytes)?, Owner::User)?;
        Ok(Self {
            file: file.to_owned(),
            values: document.file,
        })
    }

    /// The file; empty where there is none.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What a project's file goes before, and what goes before it.
    pub(super) fn layers(&self) -> (Layer, Layer) {
        self.values
            .clone()
            .into_iter()
            .partition(|(path, _)| !is_user_first(path))
    }
}
