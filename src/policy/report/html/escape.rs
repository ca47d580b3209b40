//! Other people's text in HTML: characters, never markup.

use crate::policy::visible::{escape, escape_lines};

/// One line of text, as content or as the value of a quoted attribute.
pub fn text(text: &str) -> String {
    entities(&escape(text))
}

/// Text with its lines, for `pre`.
pub fn lines(text: &str) -> String {
    entities(&escape_lines(text))
}

fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_markup_and_no_control_character_is_left() {
        assert_eq!(text("</pre><script>x('\"')</script>&amp;"), {
            "&lt;/pre&gt;&lt;script&gt;x(&#39;&quot;&#39;)&lt;/script&gt;&amp;amp;"
        });
        assert_eq!(text("a\nb\u{0}\u{1b}[0m\u{202e}"), "a\\nb\\u{0}\\u{1b}[0m\\u{202e}");
        assert_eq!(lines("a\n\tb\u{0}"), "a\n\tb\\u{0}");
    }
}
