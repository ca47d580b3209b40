//! Which paths git ignores: `.gitignore` of each folder, `info/exclude`, and the user's own excludes file; with git's wildcards.

use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use git2::{ObjectType, Oid};

use crate::git::base::{Error, Result, openat};
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;

/// The repository's own ignore file, in its git folder.
const EXCLUDE: &str = "info/exclude";

/// The name of the file with a folder's rules.
pub(in crate::git) const FILE: &[u8] = b".gitignore";
/// An ignore file over this size holds no rules, as in git.
const MAX_BYTES: u64 = 100 << 20;

/// The rules in force in a folder: a chain from its own file up to those for the whole tree. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::git) struct Rules(Arc<Link>);

#[derive(Debug)]
struct Link {
    above: Option<Rules>,
    content: Vec<u8>,
    /// Read when a path is first asked about: most folders never need it.
    patterns: OnceLock<Patterns>,
    ignore_case: bool,
    /// The length of the folder's path with its slash.
    start: usize,
    id: Oid,
}

impl Rules {
    /// No rules.
    pub(crate) fn none(ignore_case: bool) -> Result<Self> {
        Self::salted(b"", ignore_case)
    }

    fn salted(salt: &[u8], ignore_case: bool) -> Result<Self> {
        let id = hash(&[salt, &[u8::from(ignore_case)]].concat())?;
        let none = Link {
            above: None,
            content: Vec::new(),
            patterns: OnceLock::new(),
            ignore_case,
            start: 0,
            id,
        };
        Ok(Self(Arc::new(none)))
    }

    /// The rules for the whole tree; a private repository has none of a user's. What `salt` holds goes into their id.
    pub(crate) fn of_tree(repo: &Repo, salt: &[u8]) -> Result<Self> {
        let mut ignore_case = false;
        let mut files = Vec::new();
        if !repo.is_private() {
            let config = repo.config()?;
            ignore_case = config.get_bool("core.ignorecase").unwrap_or(false);
            let own = config.get_path("core.excludesfile").ok();
            let own = own.or_else(|| git_home("ignore"));
            // git asks from the top of the work tree.
            files.extend(own.map(|own| repo.workdir().join(own)));
            files.push(repo.common_dir().join(EXCLUDE));
        }
        let mut rules = Self::salted(salt, ignore_case)?;
        for path in files {
            if let Some(content) = read(&path) {
                rules = rules.with(&RepoPath::default(), content)?;
            }
        }
        Ok(rules)
    }

    /// These rules and, before them, the content of an ignore file in `folder`.
    pub(crate) fn with(&self, folder: &RepoPath, content: Vec<u8>) -> Result<Self> {
        let length = folder.as_bytes().len();
        let link = Link {
            id: hash(&[self.0.id.as_bytes(), folder.as_bytes(), b"\0", &content].concat())?,
            above: Some(self.clone()),
            content,
            patterns: OnceLock::new(),
            ignore_case: self.0.ignore_case,
            start: if length == 0 { 0 } else { length + 1 },
        };
        Ok(Self(Arc::new(link)))
    }

    /// These rules and those of the `.gitignore` in an open folder.
    pub(crate) fn with_file(&self, dir: &OwnedFd, folder: &RepoPath) -> Result<Self> {
        let Ok(mut file) = openat::open_file(dir, FILE) else {
            return Ok(self.clone());
        };
        let size = file.metadata().map_or(0, |file| file.len().min(MAX_BYTES));
        // One byte more: the end is found without another read.
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        match file.by_ref().take(MAX_BYTES + 1).read_to_end(&mut content) {
            Ok(length) if length as u64 <= MAX_BYTES => self.with(folder, content),
            _ => Ok(self.clone()),
        }
    }

    /// Equal for equal rules: what one of them said of a path, the other says too.
    pub(crate) fn id(&self) -> Oid {
        self.0.id
    }

    /// Whether the path itself matches; its folders are the caller's to ask about first.
    pub(crate) fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        let mut next = Some(self);
        while let Some(Self(link)) = next {
            if !link.content.is_empty() {
                let patterns = link.patterns.get_or_init(|| Patterns::read(&link.content));
                let said = patterns.verdict(
                    &link.content,
                    &path[link.start..],
                    is_folder,
                    link.ignore_case,
                );
                if let Some(ignored) = said {
                    return ignored;
                }
            }
            next = link.above.as_ref();
        }
        false
    }
}

fn hash(bytes: &[u8]) -> Result<Oid> {
    Oid::hash_object(ObjectType::Blob, bytes).map_err(Error::git("hash the ignore rules"))
}

impl Repo {
    /// The content of the repository's own ignore file.
    pub(crate) fn own_ignore_rules(&self) -> Option<Vec<u8>> {
        read(&self.common_dir().join(EXCLUDE))
    }
}

/// The content of an ignore file. A missing or unreadable one holds no rules, as in git.
fn read(path: &Path) -> Option<Vec<u8>> {
    let readable = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    readable.then(|| fs::read(path).ok()).flatten()
}

/// Where git finds a file of the user's that the configuration does not name.
pub(super) fn git_home(name: &str) -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("git").join(name))
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The patterns of an ignore file. Where they are in its content is all that is kept of them.
#[derive(Debug)]
struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    start: usize,
    length: usize,
    /// The length of what comes before the first wildcard, which is compared as it is.
    literal: usize,
    negated: bool,
    folders_only: bool,
    kind: Kind,
}

/// What a pattern represents.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A path below its file's folder.
    Path,
    /// A name in any folder.
    Name,
    /// A name, and it is a `*` with a literal behind it.
    Suffix,
}

impl Patterns {
    /// Reads an ignore file. Every line is a pattern, whatever its bytes: one that means nothing matches nothing.
    fn read(content: &[u8]) -> Self {
        let mut patterns = Vec::new();
        let mut start = if content.starts_with(BOM) {
            BOM.len()
        } else {
            0
        };
        for line in content[start..].split(|byte| *byte == b'\n') {
            if !matches!(line.first(), None | Some(b'#')) {
                patterns.extend(Pattern::read(line, start));
            }
            start += line.len() + 1;
        }
        Self(patterns)
    }

    /// What the last pattern that matches says of a path below the file's folder: `true` is ignored. `content` is what the
    /// patterns were read from.
    fn verdict(&self, content: &[u8], path: &[u8], is_folder: bool, fold: bool) -> Option<bool> {
        let name = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(path, |slash| &path[slash + 1..]);
        let fits = |pattern: &&Pattern| {
            (is_folder || !pattern.folders_only)
                && pattern.matches(
                    &content[pattern.start..pattern.start + pattern.length],
                    path,
                    name,
                    fold,
                )
        };
        self.0
            .iter()
            .rev()
            .find(fits)
            .map(|pattern| !pattern.negated)
    }
}

impl Pattern {
    /// Reads the line that begins at `start` of the content.
    fn read(line: &[u8], mut start: usize) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // To git a line is a C string.
        let line = line.split(|byte| *byte == 0).next()?;
        let mut line = without_trailing_spaces(line);
        let negated = line.first() == Some(&b'!');
        if negated {
            (line, start) = (&line[1..], start + 1);
        }
        let folders_only = line.last() == Some(&b'/');
        if folders_only {
            line = &line[..line.len() - 1];
        }
        let kind = match line.split_first() {
            _ if line.contains(&b'/') => Kind::Path,
            Some((b'*', rest)) if !rest.iter().copied().any(is_wildcard) => Kind::Suffix,
            _ => Kind::Name,
        };
        if line.first() == Some(&b'/') {
            (line, start) = (&line[1..], start + 1);
        }
        let literal = line
            .iter()
            .position(|byte| is_wildcard(*byte))
            .unwrap_or(line.len());
        let length = line.len();
        (length > 0).then_some(Self {
            start,
            length,
            literal,
            negated,
            folders_only,
            kind,
        })
    }

    fn matches(&self, pattern: &[u8], path: &[u8], name: &[u8], fold: bool) -> bool {
        let same = |a: &[u8], b: &[u8]| {
            if fold {
                a.eq_ignore_ascii_case(b)
            } else {
                a == b
            }
        };
        match self.kind {
            // What follows the literal part is a pattern of its own: `**` at its beginning is one between slashes.
            Kind::Path => {
                let (literal, rest) = pattern.split_at(self.literal);
                let start = path.get(..literal.len());
                start.is_some_and(|start| same(literal, start))
                    && wildmatch(rest, &path[literal.len()..], fold)
            }
            Kind::Name if self.literal == pattern.len() => same(pattern, name),
            Kind::Name => wildmatch(pattern, name, fold),
            Kind::Suffix => {
                let suffix = &pattern[1..];
                name.len() >= suffix.len() && same(suffix, &name[name.len() - suffix.len()..])
            }
        }
    }
}

/// The line without the spaces at its end; one after a backslash belongs to the pattern.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => at += 1,
            b'\\' => {
                at += 2;
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end.min(line.len())]
}

/// Whether a byte is one that a pattern gives a meaning to.
fn is_wildcard(byte: u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[' | b'\\')
}

/// Where to go on when what follows a star does not match.
#[derive(Clone, Copy)]
struct Retry {
    pattern: usize,
    text: usize,
}

/// What a run of stars takes.
enum Stars {
    /// Anything within a name.
    Name,
    /// With the slash behind it: any number of folders.
    Folders,
    /// Anything.
    Everything,
}

/// Whether the whole text matches. `*`, `?` and classes take no slash; `fold` takes ASCII letters of both cases for the
/// same, where git does: neither an escaped one nor one in a class.
///
/// Only the last star within a name, and the last one across folders, are tried again: whatever an earlier one could take
/// instead, they can take as well.
fn wildmatch(pattern: &[u8], text: &[u8], fold: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut within: Option<Retry> = None;
    let mut across: Option<(Retry, Stars)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            let stars;
            (stars, p) = read_stars(pattern, p);
            let retry = Retry {
                pattern: p,
                text: t,
            };
            if let Stars::Name = stars {
                within = Some(retry);
            } else {
                (within, across) = (None, Some((retry, stars)));
            }
            continue;
        }
        match text.get(t) {
            None if p == pattern.len() => return true,
            // Each position of the pattern from here on wants a byte, and wherever a star ended later there would be fewer.
            None => return false,
            Some(byte) => {
                if let Some(length) = take(&pattern[p..], *byte, fold) {
                    (p, t) = (p + length, t + 1);
                    continue;
                }
            }
        }
        if let Some(retry) = within
            .as_mut()
            .filter(|retry| text.get(retry.text).is_some_and(|byte| *byte != b'/'))
        {
            retry.text += 1;
            (p, t) = (retry.pattern, retry.text);
            continue;
        }
        let Some((retry, stars)) = &mut across else {
            return false;
        };
        let further = match stars {
            Stars::Folders => text[retry.text..]
                .iter()
                .position(|byte| *byte == b'/')
                .map(|slash| slash + 1),
            _ => (retry.text < text.len()).then_some(1),
        };
        let Some(further) = further else { return false };
        retry.text += further;
        (p, t, within) = (retry.pattern, retry.text, None);
    }
}

/// The stars at a position of the pattern, and the position behind them.
fn read_stars(pattern: &[u8], at: usize) -> (Stars, usize) {
    let end = at
        + pattern[at..]
            .iter()
            .take_while(|byte| **byte == b'*')
            .count();
    if end - at < 2 || (at > 0 && pattern[at - 1] != b'/') {
        return (Stars::Name, end);
    }
    match &pattern[end..] {
        [b'/', ..] => (Stars::Folders, end + 1),
        [] | [b'\\', b'/', ..] => (Stars::Everything, end),
        _ => (Stars::Name, end),
    }
}

/// The length of what the pattern begins with, no star, if it takes the byte.
fn take(pattern: &[u8], byte: u8, fold: bool) -> Option<usize> {
    let folded = |byte: u8| {
        if fold {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    };
    let lower = folded(byte);
    let (first, rest) = pattern.split_first()?;
    match *first {
        b'?' => (byte != b'/').then_some(1),
        b'\\' => (rest.first() == Some(&lower)).then_some(2),
        b'[' => class(rest, lower, fold)
            .filter(|(takes, _)| *takes && byte != b'/')
            .map(|(_, length)| 1 + length),
        literal => (folded(literal) == lower).then_some(1),
    }
}

/// Whether a class takes the byte, and its length with the bracket that ends it; `None` where it is none. `pattern` begins
/// behind the bracket that opens it.
fn class(pattern: &[u8], byte: u8, fold: bool) -> Option<(bool, usize)> {
    let negated = matches!(pattern.first()?, b'!' | b'^');
    let mut at = usize::from(negated);
    let mut takes = false;
    // What a range could begin with.
    let mut before = None;
    loop {
        let here = *pattern.get(at)?;
        let is_range = here == b'-' && pattern.get(at + 1).is_some_and(|end| *end != b']');
        match (here, before) {
            (b'-', Some(low)) if is_range => {
                at += if pattern[at + 1] == b'\\' { 2 } else { 1 };
                let range = low..=*pattern.get(at)?;
                takes |=
                    range.contains(&byte) || (fold && range.contains(&byte.to_ascii_uppercase()));
                before = None;
            }
            (b'[', _) if pattern.get(at + 1) == Some(&b':') => {
                let length = pattern[at + 2..].iter().position(|byte| *byte == b']')?;
                if let Some((b':', name)) = pattern[at + 2..at + 2 + length].split_last() {
                    takes |= named_class(name, byte, fold)?;
                    at += 2 + length;
                    before = None;
                } else {
                    takes |= byte == b'[';
                    before = Some(b'[');
                }
            }
            _ => {
                at += usize::from(here == b'\\');
                let member = *pattern.get(at)?;
                takes |= byte == member;
                before = Some(member);
            }
        }
        at += 1;
        if *pattern.get(at)? == b']' {
            return Some((takes != negated, at + 1));
        }
    }
}

/// Whether a POSIX class takes the byte, which is in lower case where `fold` is; `None` where there is none of the name.
fn named_class(name: &[u8], byte: u8, fold: bool) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        // git's own, which knows no vertical tab and no form feed.
        b"space" => matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => byte.is_ascii_uppercase() || (fold && byte.is_ascii_lowercase()),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(content: &[u8], path: &str) -> Option<bool> {
        Patterns::read(content).verdict(content, path.as_bytes(), path.ends_with("dir"), false)
    }

    #[test]
    fn the_last_pattern_that_matches_counts() {
        assert_eq!(verdict(b"*.log\n!keep.log\n", "a/x.log"), Some(true));
        assert_eq!(verdict(b"*.log\n!keep.log\n", "a/keep.log"), Some(false));
        assert_eq!(verdict(b"*.log\n!keep.log\n", "a/keep"), None);
    }

    #[test]
    fn lines_are_bytes() {
        for (content, path) in [
            (b"\xef\xbb\xbfa".as_slice(), "a"),
            (b"a\r\nb\r", "a"),
            (b"a\r\nb\r", "b"),
            (b"a  ", "a"),
            (b"a\\ ", "a "),
            (b"\t", "\t"),
            (b"a\0b", "a"),
            (b"/dir/", "dir"),
        ] {
            assert_eq!(
                verdict(content, path),
                Some(true),
                "{} {path}",
                content.escape_ascii()
            );
        }
        for (content, path) in [
            (b"#a".as_slice(), "#a"),
            (b"a\t", "a"),
            (b"a\\", "a\\"),
            (b"*.{a,b}", "x.a"),
            (b"/", "a"),
            (b"!", "!"),
            (b"dir/", "x"),
        ] {
            assert_eq!(
                verdict(content, path),
                None,
                "{} {path}",
                content.escape_ascii()
            );
        }
    }
}

#[cfg(test)]
mod wildmatch_tests {
    use super::*;

    #[test]
    fn stars_take_names_or_folders() {
        for (pattern, text) in [
            ("a*c", "abc"),
            ("**/a", "a"),
            ("**/a", "x/y/a"),
            ("a/**/b", "a/b"),
            ("a/**/b", "a/x/y/b"),
            ("a/**", "a/x/y"),
            ("**\\/a", "x/y/a"),
            ("***/a", "x/y/a"),
            ("*/b", "a/b"),
            ("**/*a*/b*c", "x/yaz/w/bab/bxc"),
        ] {
            assert!(
                wildmatch(pattern.as_bytes(), text.as_bytes(), false),
                "{pattern} {text}"
            );
        }
        for (pattern, text) in [
            ("a*c", "a/c"),
            ("a**c", "a/c"),
            ("x**/a", "xy/z/a"),
            ("*", "a/b"),
            ("a/**/b", "ab"),
            ("**/a", "xa"),
            ("?", "/"),
            ("[/]", "/"),
            ("a\\", "a"),
            ("[", "["),
            ("[[:no:]a]", "a"),
        ] {
            assert!(
                !wildmatch(pattern.as_bytes(), text.as_bytes(), false),
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn classes_are_those_of_git() {
        for (pattern, text, fold) in [
            ("[[:digit:]-z]", "-", false),
            ("[]-a]", "^", false),
            ("[!a]", "b", false),
            ("[[:alpha]", "a", false),
            ("[a-]", "-", false),
            ("[\\]]", "]", false),
            ("[[:upper:]]", "a", true),
            ("[A-C]", "b", true),
            ("A", "a", true),
        ] {
            assert!(
                wildmatch(pattern.as_bytes(), text.as_bytes(), fold),
                "{pattern} {text}"
            );
        }
        for (pattern, text, fold) in [
            ("[A]", "a", true),
            ("\\A", "a", true),
            ("[a-Z]", "q", true),
            ("[^a]", "a", false),
        ] {
            assert!(
                !wildmatch(pattern.as_bytes(), text.as_bytes(), fold),
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = b"*a".repeat(40);
        assert!(!wildmatch(
            &[&pattern[..], b"b"].concat(),
            &b"a".repeat(4000),
            false
        ));
        let pattern = b"**/*a".repeat(20);
        assert!(!wildmatch(&pattern, &b"a/".repeat(2000), false));
    }
}
