//! The text of a JSON file, changed in single places: every other byte stays as it is.
//!
//! The text is known to be JSON. What is put into an object or list that is empty stands right behind its bracket, and what
//! is made here has a line break there: so it is seen, when something is taken out again, what was there before.

use std::ops::Range;

/// A member of an object, or an element of a list.
#[derive(Debug)]
pub struct Item {
    /// The member's name; `None` of an element.
    pub key: Option<String>,
    /// From the name, or the element, to the value's end.
    pub span: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// The whole value that a text holds.
pub fn root(text: &str) -> Range<usize> {
    let start = skip_space(text, 0);
    start..value_end(text, start)
}

/// What is in the object or list at `span`, brackets included; nothing in any other value.
pub fn items(text: &str, span: &Range<usize>) -> Vec<Item> {
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
            key = text.get(at..end).and_then(|key| serde_json::from_str(key).ok());
            at = skip_space(text, skip_space(text, end) + 1);
        }
        let value = at..value_end(text, at);
        at = skip_space(text, value.end);
        items.push(Item { key, span: start..value.end, value });
        if text.as_bytes().get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
    }
    items
}

/// The text with one more item at the end of the object or list at `span`; its lines are indented like those around it.
pub fn with_item(text: &str, span: &Range<usize>, item: &str) -> String {
    let all = items(text, span);
    let Some(last) = all.last() else {
        return spliced(text, span.start + 1..span.start + 1, &indented(text, item, line_indent(text, span.start)));
    };
    let before = all.len().checked_sub(2).and_then(|index| all.get(index));
    let space = text.get(before.map_or(span.start + 1, |item| item.span.end)..last.span.start).unwrap_or_default();
    let space = space.trim_start_matches(|c: char| c != ',').strip_prefix(',').unwrap_or(space);
    let indent = space.rsplit_once('\n').map_or("", |(_, indent)| indent);
    let added = format!(",{space}{}", indented(text, item, indent));
    spliced(text, last.span.end..last.span.end, &added)
}

/// The text without the item at `index` of the object or list at `span`.
pub fn without_item(text: &str, span: &Range<usize>, index: usize) -> String {
    let all = items(text, span);
    let at = |index: usize| all.get(index).map(|item| item.span.clone());
    let Some(own) = at(index) else { return text.to_owned() };
    let taken = match (index.checked_sub(1).and_then(at), at(index + 1)) {
        (Some(before), _) => before.end..own.end,
        (None, Some(after)) => own.start..after.start,
        (None, None) => own,
    };
    spliced(text, taken, "")
}

/// Whether the object or list at `span` holds one item, and was made for it.
pub fn is_made_for_one(text: &str, span: &Range<usize>) -> bool {
    matches!(&*items(text, span), [only] if only.span.start > span.start + 1)
}

/// A value as text of several lines, indented like those of `text`.
pub fn pretty(value: &serde_json::Value, indent: &str) -> String {
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
    let line = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    line.split(|c: char| c != ' ' && c != '\t').next().unwrap_or_default()
}

fn spliced(text: &str, range: Range<usize>, with: &str) -> String {
    let mut text = text.to_owned();
    text.replace_range(range, with);
    text
}

fn skip_space(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().iter().skip(at);
    at + rest.take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Where the value ends that begins here.
fn value_end(text: &str, at: usize) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for (index, byte) in text.bytes().enumerate().skip(at) {
        if in_text {
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            if !in_text && depth == 0 {
                return index + 1;
            }
            continue;
        }
        if depth == 0 && b"}],: \t\r\n".contains(&byte) {
            return index;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
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
        ] {
            let span = root(text);
            let count = items(text, &span).len();
            let added = with_item(text, &span, item);
            let span = root(&added);
            serde_json::from_str::<serde_json::Value>(&added).unwrap();
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
    }
}
