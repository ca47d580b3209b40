//! The text of a JSON file, changed in single places: every other byte stays as it is, comments too.
//!
//! The text is known to be JSON once [`plain`] has taken its comments out. What is put into an object or list that is empty
//! stands right behind its bracket, and what is made here has a line break there: so it is seen, when something is taken out
//! again, what was there before.

use std::ops::Range;

/// A member of an object, or an element of a list.
#[derive(Debug)]
pub(crate) struct Item {
    /// The member's name; `None` of an element.
    pub key: Option<String>,
    /// From the name, or the element, to the value's end.
    pub span: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// The whole value that a text holds.
pub(crate) fn root(text: &str) -> Range<usize> {
    let start = skip_space(text, 0);
    start..value_end(text, start)
}

/// What is in the object or list at `span`, brackets included; nothing in any other value.
pub(crate) fn items(text: &str, span: &Range<usize>) -> Vec<Item> {
    let mut items = Vec::new();
    let is_object = match text.as_bytes().get(span.start) {
        Some(b'{') => true,
        Some(b'[') => false,
        _ => return items,
    };
    let mut at = skip_space(text, span.start + 1);
    while at + 1 < span.end {
        let start = at;
        let mut key = None;
        if is_object {
            let end = value_end(text, at);
            key = text
                .get(at..end)
                .and_then(|key| serde_json::from_str(key).ok());
            at = skip_space(text, skip_space(text, end) + 1);
        }
        let value = at..value_end(text, at);
        at = skip_space(text, value.end);
        items.push(Item {
            key,
            span: start..value.end,
            value,
        });
        if text.as_bytes().get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
    }
    items
}

/// The text with one more item at the end of the object or list at `span`; its lines are indented like those around it.
pub(super) fn with_item(text: &str, span: &Range<usize>, item: &str) -> String {
    let all = items(text, span);
    let Some(last) = all.last() else {
        return spliced(
            text,
            span.start + 1..span.start + 1,
            &indented(text, item, line_indent(text, span.start)),
        );
    };
    let before = text.get(..last.span.start).unwrap_or_default();
    let space = before.get(before.trim_end().len()..).unwrap_or_default();
    let indent = space.rsplit_once('\n').map_or("", |(_, indent)| indent);
    let added = format!(",{space}{}", indented(text, item, indent));
    spliced(text, last.span.end..last.span.end, &added)
}

/// The text without the item at `index` of the object or list at `span`.
pub(super) fn without_item(text: &str, span: &Range<usize>, index: usize) -> String {
    let all = items(text, span);
    let at = |index: usize| all.get(index).map(|item| item.span.clone());
    let Some(own) = at(index) else {
        return text.to_owned();
    };
    let taken = match (index.checked_sub(1).and_then(at), at(index + 1)) {
        (Some(before), _) => before.end..own.end,
        (None, Some(after)) => own.start..after.start,
        (None, None) => own,
    };
    spliced(text, taken, "")
}

/// The text without the innermost item that is not alone in what was made for it; `outwards` are what holds the items, from
/// the inside outwards, each with the item's number. Without all of it, `None` is a file that was made for it.
pub(super) fn without_innermost(text: &str, outwards: &[&(Range<usize>, usize)]) -> Remainder {
    let taken = outwards
        .iter()
        .find(|(span, _)| !is_made_for_one(text, span));
    if let Some((span, index)) = taken {
        return Remainder::Text(without_item(text, span, *index));
    }
    let root = root(text);
    let around = (&text[..root.start], &text[root.end..]);
    let left = Some(around).filter(|around| *around != ("", "\n"));
    Remainder::Whole(left.map(|(before, after)| before.to_owned() + after))
}

/// What is left of a file.
#[derive(Debug)]
pub(super) enum Remainder {
    /// Its text without an item.
    Text(String),
    /// What was around all that it held; `None` where there was no file before.
    Whole(Option<String>),
}

/// Whether the object or list at `span` holds one item and nothing else, and was made for it.
fn is_made_for_one(text: &str, span: &Range<usize>) -> bool {
    let is_blank = |range: Range<usize>| {
        text.get(range)
            .is_some_and(|between| between.trim().is_empty())
    };
    matches!(&*items(text, span), [only] if only.span.start > span.start + 1
        && is_blank(span.start + 1..only.span.start)
        && is_blank(only.span.end..span.end - 1))
}

/// The text without its comments.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if let Some(end) = comment_end(text, at) {
            out.push(' ');
            at = end;
            continue;
        }
        let end = if next == '"' {
            string_end(text, at)
        } else {
            at + next.len_utf8()
        };
        out.push_str(text.get(at..end).unwrap_or_default());
        at = end;
    }
    out
}

/// A value as text of several lines, indented like those of `text`.
pub(crate) fn pretty(value: &serde_json::Value, indent: &str) -> String {
    use serde::Serialize as _;
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut writer = serde_json::ser::Serializer::with_formatter(&mut out, formatter);
    // A value that was made here has nothing that cannot be written, and memory takes it.
    if value.serialize(&mut writer).is_err() {
        return value.to_string();
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn indented(text: &str, item: &str, indent: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    item.replace('\n', &format!("{end}{indent}"))
}

/// What the line is indented by that holds this place.
fn line_indent(text: &str, at: usize) -> &str {
    let line = text
        .get(..at)
        .unwrap_or_default()
        .rsplit('\n')
        .next()
        .unwrap_or_default();
    line.split(|c: char| c != ' ' && c != '\t')
        .next()
        .unwrap_or_default()
}

fn spliced(text: &str, range: Range<usize>, with: &str) -> String {
    let mut text = text.to_owned();
    text.replace_range(range, with);
    text
}

/// Where something comes again that is neither space nor a comment.
fn skip_space(text: &str, mut at: usize) -> usize {
    while let Some(byte) = text.as_bytes().get(at) {
        at = match comment_end(text, at) {
            Some(end) => end,
            None if byte.is_ascii_whitespace() => at + 1,
            None => break,
        };
    }
    at
}

/// Where the comment ends that begins here, if one does; its line's end is not part of it.
fn comment_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let length = if rest.starts_with("//") {
        rest.find('\n')
    } else if rest.starts_with("/*") {
        rest.get(2..)?.find("*/").map(|end| end + 4)
    } else {
        return None;
    };
    Some(length.map_or(text.len(), |length| at + length))
}

/// Where the text in quotes ends that begins here.
fn string_end(text: &str, at: usize) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(at + 1) {
        if !escaped && byte == b'"' {
            return index + 1;
        }
        escaped = !escaped && byte == b'\\';
    }
    text.len()
}

/// Where the value ends that begins here.
fn value_end(text: &str, mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = text.as_bytes().get(at) {
        let comment = comment_end(text, at);
        if depth == 0 && (comment.is_some() || b"}],: \t\r\n".contains(byte)) {
            return at;
        }
        if let Some(end) = comment {
            at = end;
            continue;
        }
        at = if *byte == b'"' {
            string_end(text, at)
        } else {
            at + 1
        };
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 && b"\"}]".contains(byte) {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_taken_out_to_the_byte() {
        let item = "{\n  \"a\": [\n    1\n  ]\n}";
        for text in [
            "[]",
            "[ ]",
            "[\n]",
            "[1]",
            "[1,2]",
            "[ 1 , 2 ]",
            "[\r\n\t\"x,]\\\"\"\r\n]",
            "[\n  1,\n  {\"b\":[ ]}\n]\n",
            " [[],{}] ",
            "// a, [\n[ // {\n  1, /* , */ 2 // }\n]",
            "[ // nothing yet\n]",
            "[\n  \"//\", // \"\n  {\"a\": 1 /* ] */} // ,\n]\n// end",
        ] {
            let span = root(text);
            let count = items(text, &span).len();
            let added = with_item(text, &span, item);
            let span = root(&added);
            serde_json::from_str::<serde_json::Value>(&plain(&added)).unwrap();
            assert_eq!(items(&added, &span).len(), count + 1, "{added}");
            assert_eq!(without_item(&added, &span, count), text);
            assert!(count > 0 || !is_made_for_one(&added, &span), "{added}");
        }
        let first = "[ 1 , 2 ]";
        assert_eq!(without_item(first, &root(first), 0), "[ 2 ]");
        assert!(is_made_for_one("[\n1]", &root("[\n1]")));
        let named = "{ \"k\" : { \"x\" : 1 } , \"l\":2}";
        let members = items(named, &root(named));
        assert_eq!(members[0].key.as_deref(), Some("k"));
        assert_eq!(&named[members[0].value.clone()], "{ \"x\" : 1 }");
        assert_eq!(&named[members[1].span.clone()], "\"l\":2");
        let kept = "[\n  // why\n  1\n]";
        assert!(
            !is_made_for_one(kept, &root(kept)),
            "somebody's words are in it"
        );
    }

    #[test]
    fn comments_are_no_part_of_the_json() {
        for (text, expected) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            (
                "// x\n{\"a//\": \"/* \\\" */\" /* y */ }",
                " \n{\"a//\": \"/* \\\" */\"   }",
            ),
            ("[1/**/2]", "[1 2]"),
            ("[1, // x", "[1,  "),
            ("/* \u{e4}", " "),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
