//! One search for many short strings, letter case aside.
//!
//! The program starts anew for every log, so what counts is that the table is made in no time: the last three bytes of
//! a string lead to it, and where they are found up to sixteen are compared as one number.

/// The longest string that can be looked for: longer ones are cut.
pub(super) const MAX_LENGTH: usize = 16;
/// The shortest one.
pub(super) const MIN_LENGTH: usize = 3;

/// The most places in the table of beginnings, as a power of two, and the fewest.
const MOST_SLOT_BITS: u32 = 14;
const LEAST_SLOT_BITS: u32 = 6;
/// Places for each string, as a power of two: most of them stay empty, and few strings share one.
const SLOT_BITS_FOR_ONE: u32 = 4;

/// Strings and who looks for them.
#[derive(Debug)]
pub(super) struct Finder {
    /// By hash of the last three bytes: the first string, counted from 1; 0: none.
    heads: Vec<u16>,
    /// How far the hash is shifted to be a place in it.
    shift: u32,
    strings: Vec<Entry>,
    owners: Vec<u16>,
}

#[derive(Debug)]
struct Entry {
    /// The bytes, the last one lowest.
    key: u128,
    /// Which bytes count.
    mask: u128,
    /// Whether the byte before it may be none of a word.
    begins_word: bool,
    /// Its part of `owners`.
    owners: (u32, u32),
    /// The next string with the same hash, counted from 1; 0: none.
    next: u16,
}

impl Finder {
    /// Makes the table of strings of [`MIN_LENGTH`] bytes or more, each with whether it is to begin a word, and with the
    /// number that it is found for. `None` where there are more strings than the table can hold.
    pub(super) fn new<'a>(strings: impl IntoIterator<Item = (&'a [u8], bool, u16)>) -> Option<Self> {
        let mut keys: Vec<(u128, u128, bool, u16)> = strings
            .into_iter()
            .map(|(string, begins_word, owner)| {
                let string = &string[..string.len().min(MAX_LENGTH)];
                let key = string.iter().fold(0, |key, byte| key << 8 | u128::from(byte.to_ascii_lowercase()));
                (key, u128::MAX >> (8 * (MAX_LENGTH - string.len())), begins_word, owner)
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let bits = (keys.len().max(1).ilog2() + SLOT_BITS_FOR_ONE).clamp(LEAST_SLOT_BITS, MOST_SLOT_BITS);
        let (heads, shift) = (vec![0; 1 << bits], u32::BITS - bits);
        let mut finder = Self { heads, shift, strings: Vec::new(), owners: Vec::new() };
        for group in keys.chunk_by(|one, other| (one.0, one.1, one.2) == (other.0, other.1, other.2)) {
            let (key, mask, begins_word, _) = group[0];
            let start = u32::try_from(finder.owners.len()).ok()?;
            finder.owners.extend(group.iter().map(|(.., owner)| *owner));
            let end = u32::try_from(finder.owners.len()).ok()?;
            let [.., a, b, c, d] = key.to_be_bytes();
            let head = &mut finder.heads[slot(u32::from_be_bytes([a, b, c, d]), shift)];
            finder.strings.push(Entry { key, mask, begins_word, owners: (start, end), next: *head });
            *head = u16::try_from(finder.strings.len()).ok()?;
        }
        Some(finder)
    }

    /// Calls `found` with the owners of each string that is in `text`, once for each place.
    pub(super) fn find(&self, text: &[u8], mut found: impl FnMut(&[u16])) {
        let mut last = 0;
        for (at, byte) in text.iter().enumerate() {
            last = last << 8 | u32::from(byte.to_ascii_lowercase());
            let mut next = self.heads[slot(last, self.shift)];
            if next == 0 {
                continue;
            }
            let window = &text[at.saturating_sub(MAX_LENGTH - 1)..=at];
            let window = window.iter().fold(0, |key, byte| key << 8 | u128::from(byte.to_ascii_lowercase()));
            while let Some(entry) = usize::from(next).checked_sub(1).map(|index| &self.strings[index]) {
                if window & entry.mask == entry.key && !(entry.begins_word && is_in_word(text, at, entry)) {
                    found(&self.owners[entry.owners.0 as usize..entry.owners.1 as usize]);
                }
                next = entry.next;
            }
        }
    }
}

/// Whether the byte before the string that ends at this place is one of a word.
fn is_in_word(text: &[u8], end: usize, entry: &Entry) -> bool {
    let before = end.checked_sub(entry.mask.count_ones() as usize / 8).map(|at| text[at]);
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The place in the table for what ends with the last three of these bytes.
fn slot(last: u32, shift: u32) -> usize {
    ((last << 8).wrapping_mul(0x9e37_79b1) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_is_found_wherever_it_is() {
        let strings = ["abc", "bcd", "abcdefgh", "abcdefghijklmnopqrs", "\u{e9}rr", "x y"];
        let finder = Finder::new((0..).zip(strings).map(|(number, text)| (text.as_bytes(), false, number))).unwrap();
        for (text, expected) in [
            ("", vec![]),
            ("ab", vec![]),
            ("ABC", vec![0]),
            ("zabcd", vec![0, 1]),
            ("abcdefgh", vec![0, 1, 2]),
            ("abcdefghijklmnopq", vec![0, 1, 2, 3]),
            ("abcdefghijklmnoXq", vec![0, 1, 2]),
            ("abcdefg", vec![0, 1]),
            ("m\u{e9}rRx Y", vec![4, 5]),
            ("abcabc", vec![0, 0]),
        ] {
            let mut found = Vec::new();
            finder.find(text.as_bytes(), |owners| found.extend_from_slice(owners));
            found.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_is_to_begin_a_word_is_found_where_one_may_begin() {
        let strings = [("sk_", true), ("sk_", false), ("abcdefg", true), ("abcdefghijklmnop", true)];
        let finder = Finder::new((0..).zip(strings).map(|(number, (text, begins))| (text.as_bytes(), begins, number)));
        let finder = finder.unwrap();
        for (text, expected) in [
            ("sk_", vec![0, 1]),
            ("a.Sk_", vec![0, 1]),
            ("é\u{e9}sk_", vec![0, 1]),
            ("task_", vec![1]),
            ("0sk__sk_", vec![1, 1]),
            (" abcdefghijklmnop", vec![2, 3]),
            ("xabcdefghijklmnop", vec![]),
        ] {
            let mut found = Vec::new();
            finder.find(text.as_bytes(), |owners| found.extend_from_slice(owners));
            found.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }
}
