//! git's wildcards, over bytes.

/// Whether a byte is one that a pattern gives a meaning to.
pub(super) fn is_wildcard(byte: u8) -> bool {
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
pub(super) fn wildmatch(pattern: &[u8], text: &[u8], fold: bool) -> bool {
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
