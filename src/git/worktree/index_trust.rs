//! Whether git's index may say what a file holds.
//!
//! The index knows the blob that git made of a file. Where a filter, an encoding or a conversion of line ends lies
//! between the two, that blob is not what the file holds.

use std::fs;
use std::path::PathBuf;

use super::scan::Scan;
use crate::git::base::error::{Error, Result};
use crate::git::base::openat;
use crate::git::index::user_index::UserIndex;
use crate::git::repo::repository::Repo;

/// The name of a file with attributes.
pub(in crate::git) const ATTRIBUTES: &[u8] = b".gitattributes";

/// The attribute files outside the work tree: the system's, the user's, the repository's. One that cannot be read is empty.
pub(in crate::git) fn outside_files(repo: &Repo) -> Result<[Vec<u8>; 3]> {
    let config = repo
        .inner
        .config()
        .map_err(Error::git("read the configuration"))?;
    let home = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let own = config.get_path("core.attributesfile").ok().or_else(|| {
        let base =
            home("XDG_CONFIG_HOME").or_else(|| home("HOME").map(|home| home.join(".config")))?;
        Some(base.join("git/attributes"))
    });
    let files = [
        Some(PathBuf::from("/etc/gitattributes")),
        own,
        Some(repo.common_dir().join("info/attributes")),
    ];
    Ok(files.map(|path| {
        path.and_then(|path| fs::read(path).ok())
            .unwrap_or_default()
    }))
}

/// How far the index's blobs are the files' content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IndexTrust {
    /// Nothing converts anything.
    Exact,
    /// Line ends may be converted: that changes the size, so a blob as large as the file is its content.
    SameSize,
    /// Content may be anything.
    Never,
}

impl IndexTrust {
    /// Looks at every attribute file that the scan met, those outside the work tree, and the configuration.
    pub(super) fn of(repo: &Repo, scan: &Scan, index: &UserIndex) -> Result<Self> {
        let config = repo
            .inner
            .config()
            .map_err(Error::git("read the configuration"))?;
        let converts = config
            .get_string("core.autocrlf")
            .is_ok_and(|value| !value.eq_ignore_ascii_case("false"));
        let mut trust = if converts {
            Self::SameSize
        } else {
            Self::Exact
        };
        for text in outside_files(repo)? {
            trust = trust.max(Self::in_text(&text));
        }
        let root = openat::open_root(repo.workdir())?;
        let mut met = 0;
        for folder in &scan.folders {
            for _ in scan
                .items(folder)
                .iter()
                .filter(|item| scan.name(item) == ATTRIBUTES)
            {
                let read = openat::open_path(&root, &folder.path)
                    .and_then(|dir| openat::open_file(&dir, ATTRIBUTES))
                    .and_then(|mut file| {
                        let mut text = Vec::new();
                        std::io::Read::read_to_end(&mut file, &mut text).map(|_| text)
                    });
                // What cannot be read may say anything.
                trust = trust.max(read.map_or(Self::Never, |text| Self::in_text(&text)));
                met += usize::from(index.has(folder.path.join(ATTRIBUTES).as_bytes()));
            }
        }
        // git takes one that is only in the index from there.
        Ok(if index.named(ATTRIBUTES).count() > met {
            Self::Never
        } else {
            trust
        })
    }

    /// What the lines of an attribute file allow.
    fn in_text(text: &[u8]) -> Self {
        let words = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii_start().starts_with(b"#"));
        let words = words.flat_map(|line| line.split(u8::is_ascii_whitespace));
        let one = |word: &[u8]| {
            // A leading `-` or `!` takes an attribute away.
            match word.split(|byte| *byte == b'=').next().unwrap_or_default() {
                b"filter" | b"ident" | b"working-tree-encoding" => Self::Never,
                b"text" | b"crlf" | b"eol" => Self::SameSize,
                _ => Self::Exact,
            }
        };
        words.map(one).max().unwrap_or(Self::Exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_convert_are_found() {
        let of = |text: &str| IndexTrust::in_text(text.as_bytes());
        assert_eq!(
            of("*.c diff=cpp\n# text\n*.png binary -text\n"),
            IndexTrust::Exact
        );
        assert_eq!(of("* text=auto\n"), IndexTrust::SameSize);
        assert_eq!(of("*.bat\teol=crlf\n"), IndexTrust::SameSize);
        assert_eq!(of("* text\n*.bin filter=lfs diff=lfs"), IndexTrust::Never);
        assert_eq!(of("[attr]odd ident\n"), IndexTrust::Never);
        assert_eq!(of("*.txt working-tree-encoding=UTF-16"), IndexTrust::Never);
    }
}
