//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::durable::Refused;

/// Where a configured value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file; the position is absent where the file as a whole is the matter.
    File {
        /// The file.
        path: PathBuf,
        /// Line and column, both 1-based; the column counts characters.
        at: Option<(usize, usize)>,
    },
    /// In an environment variable.
    Environment(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, at: None } => write!(f, "{}", path.display()),
            Self::File {
                path,
                at: Some((line, column)),
            } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
        }
    }
}

/// A usage error (exit 2): the configuration cannot be read or says something that has no meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ConfigError {
    /// Where.
    pub place: Place,
    /// What is wrong, naming the key.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
    /// What stands in the place of the file and is none (exit 13).
    pub refused: Option<Box<Refused>>,
}

impl ConfigError {
    pub(super) fn new(place: Place, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            place,
            message: message.into(),
            hint,
            refused: None,
        }
    }

    /// The file it is about, if it is about one.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::File { path, .. } => Some(path),
            Place::Environment(_) => None,
        }
    }

    /// The 1-based line in the file.
    pub fn line(&self) -> Option<usize> {
        self.position().map(|(line, _)| line)
    }

    /// The 1-based column in the file.
    pub fn column(&self) -> Option<usize> {
        self.position().map(|(_, column)| column)
    }

    fn position(&self) -> Option<(usize, usize)> {
        match self.place {
            Place::File { at, .. } => at,
            Place::Environment(_) => None,
        }
    }
}

/// Line and column of a byte offset, both 1-based.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}
