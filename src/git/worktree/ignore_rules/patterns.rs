//! The patterns of one ignore file, read and asked as git does it.

use super::wildmatch::{is_wildcard, wildmatch};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The patterns of an ignore file. Where they are in its content is all that is kept of them.
#[derive(Debug)]
pub(super) struct Patterns(Vec<Pattern>);

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

/// What a pattern stands for.
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
    pub(super) fn read(content: &[u8]) -> Self {
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
    pub(super) fn verdict(
        &self,
        content: &[u8],
        path: &[u8],
        is_folder: bool,
        fold: bool,
    ) -> Option<bool> {
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
