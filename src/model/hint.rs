//! Command lines for a person to copy, and how words are quoted for a shell.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use itertools::Itertools as _;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::id::RunKey;

/// Commands to copy, each run only if the one before it succeeded. [`fmt::Display`] quotes them for a shell, and documents
/// have the same text.
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
    /// The run that it is about, whose flags come before the word at this index.
    run: Option<(usize, RunKey)>,
}

/// Where a command works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The work tree, or a folder in it.
    pub folder: PathBuf,
    /// The state directory, if it is not the project's own. Git needs none.
    pub state_dir: Option<PathBuf>,
}

/// What a person knows who reads a command on a terminal, and what the command can do without.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// The folder that they are in, and those above it that are in the same project.
    pub folders: Vec<PathBuf>,
    /// The run that every command without flags is about.
    pub run: Option<RunKey>,
    /// The numbers of checkpoints, by id.
    pub numbers: HashMap<String, u64>,
}

impl Reader {
    /// `@7` for the checkpoint of that number, else its id.
    pub fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        match self.numbers.get(id) {
            Some(number) => Cow::Owned(format!("@{number}")),
            None => Cow::Borrowed(id),
        }
    }
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
            run: None,
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
    pub fn run<'a>(mut self, key: impl Into<Option<&'a RunKey>>) -> Self {
        if let (Some(last), Some(key)) = (self.0.last_mut(), key.into()) {
            last.run = Some((last.words.len(), key.clone()));
        }
        self
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

impl Hint {
    /// The words of the last command that are text, without those that name its run and its place.
    pub(crate) fn last_words(&self) -> Vec<&str> {
        let words = self.0.last().map_or(&[][..], |last| &last.words);
        words.iter().filter_map(|word| word.to_str()).collect()
    }

    /// The commands as this reader needs them.
    pub fn for_reader(&self, reader: &Reader) -> String {
        self.0.iter().map(|one| one.for_reader(reader)).join(" && ")
    }

    /// The words of the last command behind its program, for a process.
    pub fn arguments(&self) -> Vec<OsString> {
        let last = self.0.last();
        last.map(|command| command.arguments(&Reader::default()))
            .unwrap_or_default()
    }
}

impl Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.for_reader(&Reader::default()))
    }
}

impl Command {
    fn for_reader(&self, reader: &Reader) -> String {
        join(
            [OsString::from(self.program)]
                .into_iter()
                .chain(self.arguments(reader)),
        )
    }

    fn arguments(&self, reader: &Reader) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        if let Some(place) = &self.place
            && matches!(self.program, "recover" | "git")
        {
            if !reader.folders.contains(&place.folder) {
                all.extend(["-C".into(), place.folder.clone().into()]);
            }
            if let Some(state_dir) = &place.state_dir
                && self.program == "recover"
            {
                all.extend(["--state-dir".into(), state_dir.clone().into()]);
            }
        }
        let named = self.run.as_ref();
        let named = named.filter(|(_, key)| reader.run.as_ref() != Some(key));
        // What comes after it are the words of another program.
        let own = self.words.iter().position(|word| word == "--");
        for at in 0..=self.words.len() {
            if let Some((_, key)) = named.filter(|(before, _)| *before == at) {
                all.extend(key.flags().into_iter().map(OsString::from));
            }
            all.extend(self.words.get(at).map(|word| {
                let text = word.to_str().filter(|_| own.is_none_or(|end| at < end));
                text.map_or_else(|| word.clone(), |text| OsString::from(&*reader.id(text)))
            }));
        }
        all
    }
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A sentence that may have a command in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    before: String,
    command: Option<Hint>,
    after: String,
}

impl<T: Into<String>> From<T> for Advice {
    fn from(text: T) -> Self {
        Self {
            before: text.into(),
            command: None,
            after: String::new(),
        }
    }
}

impl Advice {
    /// A sentence with this command between its two parts.
    pub(crate) fn with(before: impl Into<String>, command: Hint, after: impl Into<String>) -> Self {
        Self {
            before: before.into(),
            command: Some(command),
            after: after.into(),
        }
    }

    /// The sentence with the command as this reader needs it.
    pub(crate) fn for_reader(&self, reader: &Reader) -> String {
        let command = self.command.as_ref().map(|one| one.for_reader(reader));
        format!(
            "{}{}{}",
            self.before,
            command.unwrap_or_default(),
            self.after
        )
    }
}

impl Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.for_reader(&Reader::default()))
    }
}

impl Serialize for Advice {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// In documents both are texts.
macro_rules! texts {
    ($($name:ident)+) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                String::json_schema(generator)
            }
        }
    )+};
}

texts!(Hint Advice);

/// The words as a line for a shell.
pub(crate) fn join(words: impl IntoIterator<Item: AsRef<OsStr>>) -> String {
    let mut words = words.into_iter().map(|word| quote(word.as_ref()));
    words.join(" ")
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
    fn a_reader_gets_no_word_that_is_known() {
        let (key, other) = (
            RunKey::new("r", None, None),
            RunKey::new("r", None, Some("l")),
        );
        let reader = Reader {
            folders: vec!["/a b".into()],
            run: Some(key.clone()),
            numbers: HashMap::from([("ckpt_1_0007".to_owned(), 7)]),
        };
        let short = |hint: Hint| hint.for_reader(&reader);
        let show = |id| Hint::recover(["checkpoint", "show", id]);
        assert_eq!(
            short(show("ckpt_1_0007").run(&key).arg("-x").at("/a b")),
            "recover checkpoint show @7 -x"
        );
        assert_eq!(
            short(show("ckpt_1_0008").run(&other).at("/a")),
            "recover -C /a checkpoint show ckpt_1_0008 --run r --lane l"
        );
        // What is a part of a word stays.
        let fetch = Hint::git(["fetch", "x:refs/ckpt_1_0007", "a --run r"]).at("/a b");
        assert_eq!(short(fetch), "git fetch x:refs/ckpt_1_0007 'a --run r'");
        let advice = Advice::with("do it: ", Hint::recover(["log"]).run(&key), "; then go on");
        assert_eq!(advice.to_string(), "do it: recover log --run r; then go on");
        assert_eq!(advice.for_reader(&reader), "do it: recover log; then go on");
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
