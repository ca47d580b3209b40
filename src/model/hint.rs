//! Command lines for a person to copy, and how words are quoted for a shell.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::id::RunKey;

/// Commands to copy, each run only if the one before it succeeded. [`fmt::Display`] quotes them for a shell.
///
/// `recover` and `git` get the folder they are about (`-C`), so that the line works from any folder: the one from
/// [`Hint::at`], and none where nobody gave one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint(Vec<Command>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Command {
    program: &'static str,
    place: Option<Place>,
    words: Vec<OsString>,
}

/// Where a command works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The work tree, or a folder in it.
    pub folder: PathBuf,
    /// The state directory, if it is not the project's own. Git needs none.
    pub state_dir: Option<PathBuf>,
}

impl<P: Into<PathBuf>> From<P> for Place {
    fn from(folder: P) -> Self {
        Self {
            folder: folder.into(),
            state_dir: None,
        }
    }
}

impl Hint {
    /// `recover` with these words.
    pub fn recover(words: impl IntoIterator<Item: Into<OsString>>) -> Self {
        Self::program("recover").args(words)
    }

    /// `git` with these words.
    pub fn git(words: impl IntoIterator<Item: Into<OsString>>) -> Self {
        Self::program("git").args(words)
    }

    /// Another program, which gets no folder.
    pub fn program(program: &'static str) -> Self {
        Self(vec![Command {
            program,
            place: None,
            words: Vec::new(),
        }])
    }

    /// One more word for the last command.
    #[must_use]
    pub fn arg(self, word: impl Into<OsString>) -> Self {
        self.args([word])
    }

    /// More words for the last command.
    #[must_use]
    pub fn args(mut self, words: impl IntoIterator<Item: Into<OsString>>) -> Self {
        if let Some(last) = self.0.last_mut() {
            last.words.extend(words.into_iter().map(Into::into));
        }
        self
    }

    /// The flags that choose this run, for the last command.
    #[must_use]
    pub fn run<'a>(self, key: impl Into<Option<&'a RunKey>>) -> Self {
        self.args(key.into().map(RunKey::flags).unwrap_or_default())
    }

    /// The place of those commands that have none yet.
    #[must_use]
    pub fn at(mut self, place: impl Into<Place>) -> Self {
        let place = place.into();
        for command in &mut self.0 {
            command.place.get_or_insert_with(|| place.clone());
        }
        self
    }

    /// These commands after it.
    #[must_use]
    pub fn and(mut self, then: Self) -> Self {
        self.0.extend(then.0);
        self
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, command) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { " && " })?;
            command.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        if let Some(place) = self
            .place
            .as_ref()
            .filter(|_| matches!(self.program, "recover" | "git"))
        {
            write!(f, " -C {}", quote(&place.folder))?;
            if let Some(state_dir) = place
                .state_dir
                .as_ref()
                .filter(|_| self.program == "recover")
            {
                write!(f, " --state-dir {}", quote(state_dir))?;
            }
        }
        self.words
            .iter()
            .try_for_each(|word| write!(f, " {}", quote(word)))
    }
}

/// The words as a line for a shell.
pub(crate) fn join(words: impl IntoIterator<Item: AsRef<OsStr>>) -> String {
    words
        .into_iter()
        .map(|word| quote(word.as_ref()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word for a shell; where it is not UTF-8 for one that knows `$'…'`.
pub(crate) fn quote(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    if let Some(word) = word.to_str().and_then(|text| shlex::try_quote(text).ok()) {
        return word.into_owned();
    }
    let mut out = "$'".to_owned();
    for byte in word.as_bytes() {
        match byte {
            b'\'' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            // Three octal digits: a hexadecimal number would go on with the next letter.
            _ => drop(write!(out, "\\{byte:03o}")),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_place_that_they_were_given_first() {
        let state_dir = Some(PathBuf::from("/s t"));
        let here = Place {
            folder: "/a b".into(),
            state_dir,
        };
        assert_eq!(Hint::recover(["doctor"]).to_string(), "recover doctor");
        assert_eq!(
            Hint::recover(["doctor"]).at(here.clone()).to_string(),
            "recover -C '/a b' --state-dir '/s t' doctor"
        );
        assert_eq!(
            Hint::git(["switch", "main"]).at(here.clone()).to_string(),
            "git -C '/a b' switch main"
        );
        let both = Hint::program("mkdir")
            .arg("-p")
            .arg("/it's")
            .and(Hint::git(["status"]).at("/y"));
        let all = both
            .and(Hint::recover(["log"]).run(&RunKey::new("-r", None, Some("l"))))
            .at(here);
        let expected = "mkdir -p \"/it's\" && git -C /y status && recover -C '/a b' --state-dir '/s t' log '--run=-r' --lane l";
        assert_eq!(all.to_string(), expected);
    }

    #[test]
    fn a_shell_reads_the_same_word() {
        for bytes in [&b"/a b"[..], b"/it's", b"/x\xff1'\\\n", b"/x\ny"] {
            let line = format!("printf %s {}", quote(OsStr::from_bytes(bytes)));
            let read = std::process::Command::new("bash")
                .args(["-c", &line])
                .output()
                .unwrap()
                .stdout;
            assert_eq!(read, bytes, "{line}");
        }
    }
}
