//! Whether a file of JSON says the same once it was read and written again.

use serde_json::Value;

/// A part of a JSON text.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    /// A string, by what it means: it may be escaped in several ways.
    Text(String),
    /// Anything else, by how it is written.
    Written(String),
}

/// Whether `value`, which `text` was read as, still holds all that the text says: a number of more digits than a float has
/// would be another one, and of a key that comes twice one would be gone.
pub fn keeps(text: &str, value: &Value) -> bool {
    tokens(text) == tokens(&value.to_string())
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(|c: char| c.is_whitespace() || "{}[],:\"".contains(c)).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(match serde_json::from_str::<String>(token) {
            Ok(meaning) => Token::Text(meaning),
            Err(_) => Token::Written(token.to_owned()),
        });
        rest = after.trim_start();
    }
    tokens
}

/// How long the string is that a text begins with, its quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_lost_is_noticed() {
        let kept = [
            "{}",
            " { \"a\" : [ 1, -2, 0.5, 1.0, true, null ],\n\"b\\\"{\": \"\\u00e9\\/ \\\\\" }\n",
            "[18446744073709551615, -9223372036854775808, 31.245270191439438]",
            "\"é\"",
        ];
        for text in kept {
            assert!(keeps(text, &serde_json::from_str(text).unwrap()), "{text}");
        }
        let lost = ["[31.2452701914394381]", "[12345678901234567890123]", "[1.00]", "[1e5]", "{\"a\":1,\"a\":1}"];
        for text in lost {
            assert!(!keeps(text, &serde_json::from_str(text).unwrap()), "{text}");
        }
    }
}
