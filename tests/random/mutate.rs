//! Changes of inputs: bytes, lines, words, numbers, and the parts of a JSON document.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Numbers at which something may change.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "127",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999999",
    "1e999",
];

/// A few changes of one of `pool`.
pub fn changed(rng: &mut Rng, pool: &[Vec<u8>], tokens: &[&[u8]], longest: usize) -> Vec<u8> {
    let mut input = one(rng, pool).clone();
    for _ in 0..=rng.usize(..5) {
        change(rng, &mut input, pool, tokens);
        input.truncate(longest);
    }
    input
}

/// The beginning of an input for people.
pub fn shown(input: &[u8]) -> String {
    let part = &input[..input.len().min(2000)];
    let rest = if part.len() < input.len() {
        format!(" … {} bytes", input.len())
    } else {
        String::new()
    };
    format!("{}{rest}", part.escape_ascii())
}

fn one<'a, T>(rng: &mut Rng, all: &'a [T]) -> &'a T {
    &all[rng.usize(..all.len())]
}

/// Begin and length of a part, short ones more often.
fn part(rng: &mut Rng, length: usize) -> (usize, usize) {
    let begin = rng.usize(..=length);
    let most = length - begin;
    let most = if rng.bool() { most.min(16) } else { most };
    (begin, rng.usize(..=most))
}

fn change(rng: &mut Rng, input: &mut Vec<u8>, pool: &[Vec<u8>], tokens: &[&[u8]]) {
    let length = input.len();
    match rng.u8(..16) {
        0 if length > 0 => input[rng.usize(..length)] ^= 1 << rng.u8(..8),
        1 if length > 0 => input[rng.usize(..length)] = rng.u8(..),
        2 => {
            let (begin, length) = part(rng, length);
            input.drain(begin..begin + length);
        }
        3 => {
            let (begin, copied) = part(rng, length);
            let copy = input[begin..begin + copied].to_vec();
            let times = if rng.u8(..8) == 0 { rng.usize(..40) } else { 1 };
            let at = rng.usize(..=length);
            input.splice(at..at, copy.repeat(times));
        }
        4 => input.truncate(rng.usize(..=length)),
        5 => {
            let other = one(rng, pool);
            let (from, to) = (rng.usize(..=other.len()), rng.usize(..=length));
            input.truncate(to);
            input.extend_from_slice(&other[from..]);
        }
        6..=8 if !tokens.is_empty() => {
            let token = one(rng, tokens);
            let at = rng.usize(..=length);
            let over = if rng.bool() {
                token.len().min(length - at)
            } else {
                0
            };
            input.splice(at..at + over, token.iter().copied());
        }
        9 => number(rng, input),
        10 | 11 => lines(rng, input, pool),
        _ => structure(rng, input, pool, tokens),
    }
}

/// Another number in the place of one.
fn number(rng: &mut Rng, input: &mut Vec<u8>) {
    let is_digit = |at: usize| input.get(at).is_some_and(u8::is_ascii_digit);
    let begins: Vec<usize> = (0..input.len())
        .filter(|at| is_digit(*at) && (*at == 0 || !is_digit(*at - 1)))
        .collect();
    if begins.is_empty() {
        return;
    }
    let begin = *one(rng, &begins);
    let end = (begin..input.len())
        .find(|at| !is_digit(*at))
        .unwrap_or(input.len());
    let other = one(rng, &NUMBERS);
    input.splice(begin..end, other.bytes());
}

/// A line removed, doubled, moved, or taken from elsewhere.
fn lines(rng: &mut Rng, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
    let mut lines: Vec<Vec<u8>> = input
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return;
    }
    let (from, to) = (rng.usize(..lines.len()), rng.usize(..lines.len()));
    match rng.u8(..4) {
        0 => drop(lines.remove(from)),
        1 => lines.insert(to, lines[from].clone()),
        2 => lines.swap(from, to),
        _ => {
            let others: Vec<&[u8]> = one(rng, pool)
                .split_inclusive(|byte| *byte == b'\n')
                .collect();
            if !others.is_empty() {
                lines.insert(to, one(rng, &others).to_vec());
            }
        }
    }
    *input = lines.concat();
}

/// Something else in a JSON document, or in one of the lines that are documents.
fn structure(rng: &mut Rng, input: &mut Vec<u8>, pool: &[Vec<u8>], tokens: &[&[u8]]) {
    let range = if serde_json::from_slice::<Value>(input).is_ok() {
        0..input.len()
    } else {
        let mut begins = vec![0];
        begins.extend(memchr::memchr_iter(b'\n', input).map(|at| at + 1));
        let begin = *one(rng, &begins);
        begin..memchr::memchr(b'\n', &input[begin..]).map_or(input.len(), |at| begin + at)
    };
    let document: Option<Value> = serde_json::from_slice(&input[range.clone()]).ok();
    let Some(mut document) = document else { return };
    let other = donated(rng, pool, tokens);
    change_value(rng, &mut document, other);
    input.splice(range, document.to_string().into_bytes());
}

/// A value from elsewhere.
fn donated(rng: &mut Rng, pool: &[Vec<u8>], tokens: &[&[u8]]) -> Value {
    let text = |bytes: &[u8]| Value::String(String::from_utf8_lossy(bytes).into_owned());
    match rng.u8(..10) {
        0 => one(
            rng,
            &[
                json!(null),
                json!(true),
                json!(false),
                json!([]),
                json!({}),
                json!(""),
            ],
        )
        .clone(),
        1 => serde_json::from_str(NUMBERS[rng.usize(..NUMBERS.len())]).unwrap_or(json!(1e300)),
        2 => {
            let texts = [
                "9999-12-31T23:59:59.999Z",
                "0000-01-01T00:00:00Z",
                "\u{0}",
                "é\u{202e}",
                "/",
                "..",
                "a\nb",
            ];
            json!(one(rng, &texts))
        }
        3 => json!(one(rng, &["a", "/", "\n", "🦀", "\""]).repeat(rng.usize(1..3000))),
        4 => (0..rng.usize(..140)).fold(json!(1), |inner, _| json!([inner])),
        5..=7 if !tokens.is_empty() => text(tokens[rng.usize(..tokens.len())]),
        _ => {
            let other: Option<Value> = serde_json::from_slice(&pool[rng.usize(..pool.len())]).ok();
            let mut value = other.unwrap_or(json!(0.5));
            for _ in 0..rng.usize(..4) {
                value = match value {
                    Value::Array(items) if !items.is_empty() => one(rng, &items).clone(),
                    Value::Object(fields) if !fields.is_empty() => fields
                        .values()
                        .nth(rng.usize(..fields.len()))
                        .cloned()
                        .unwrap_or_default(),
                    value => value,
                };
            }
            value
        }
    }
}

fn change_value(rng: &mut Rng, value: &mut Value, other: Value) {
    let deeper = rng.u8(..5) > 0;
    match value {
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = rng.usize(..items.len());
            match rng.u8(..6) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, items[at].clone()),
                2 => items.insert(at, other),
                _ => change_value(rng, &mut items[at], other),
            }
        }
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let name = fields
                .keys()
                .nth(rng.usize(..fields.len()))
                .cloned()
                .unwrap_or_default();
            match rng.u8(..8) {
                0 => drop(fields.shift_remove(&name)),
                1 => rename(fields, &name, other.as_str().unwrap_or("x")),
                2 => drop(fields.insert(name + "x", other)),
                _ => change_value(rng, &mut fields[&name], other),
            }
        }
        _ => *value = other,
    }
}

/// Gives a field another name, at its place.
fn rename(fields: &mut Map<String, Value>, name: &str, other: &str) {
    let renamed = |(field, value): (String, Value)| {
        (
            if field == name {
                other.to_owned()
            } else {
                field
            },
            value,
        )
    };
    *fields = std::mem::take(fields).into_iter().map(renamed).collect();
}
