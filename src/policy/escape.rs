//! Escapes control characters in untrusted text.

/// Control characters as escapes, so that a path or a message can neither steer the terminal nor feign a line.
pub(crate) fn escape(text: &str) -> String {
    escape_but(text, &[])
}

/// Like [`escape`], but newlines and tabs stay.
pub(crate) fn escape_lines(text: &str) -> String {
    escape_but(text, &['\n', '\t'])
}

fn escape_but(text: &str, plain: &[char]) -> String {
    // Marks that turn the direction of text around can hide what a line says.
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && !plain.contains(&c)) || turns(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
