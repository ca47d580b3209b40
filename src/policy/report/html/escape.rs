//! Text of others as maud renders it: masked, and only then escaped.
//!
//! HTML is escaped by maud, control characters by [`crate::policy::escape`].

use maud::{Escaper, Render};
use std::fmt::Write as _;

use crate::policy::escape::{escape, escape_lines};
use crate::policy::redact::redact;

/// One line of text, as content or as the value of an attribute.
pub(super) struct Line<'a>(pub &'a str);

/// Text that keeps its line breaks, for `pre`.
pub(super) struct Lines<'a>(pub &'a str);

impl Render for Line<'_> {
    fn render_to(&self, out: &mut String) {
        escaped(&escape(&redact(self.0)), out);
    }
}

impl Render for Lines<'_> {
    fn render_to(&self, out: &mut String) {
        escaped(&escape_lines(&redact(self.0)), out);
    }
}

fn escaped(text: &str, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = Escaper::new(out).write_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_markup_and_no_control_character_is_left() {
        let hostile = "</pre><script>x('\"')</script>&amp;";
        let markup = maud::html! { p title=(Line(hostile)) { (Line(hostile)) } }.into_string();
        assert!(
            !markup.contains("<script") && !markup.contains("&amp;amp;amp;"),
            "{markup}"
        );
        assert_eq!(
            markup.matches('"').count(),
            2,
            "the quotes of the attribute itself: {markup}"
        );
        assert_eq!(
            Line("a\nb\u{0}\u{1b}[0m\u{202e}").render().into_string(),
            "a\\nb\\u{0}\\u{1b}[0m\\u{202e}"
        );
        let masked = "{&quot;password&quot;:&quot;[redacted]&quot;}";
        assert_eq!(
            Line(r#"{"password":"p<hunter22>"}"#).render().into_string(),
            masked
        );
        assert_eq!(
            Lines(r#"{"password":"p<hunter22>"}"#)
                .render()
                .into_string(),
            masked
        );
        assert_eq!(Lines("a\n\tb\u{0}").render().into_string(), "a\n\tb\\u{0}");
    }
}
