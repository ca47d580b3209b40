//! One search for many short strings, letter case aside.
//!
//! The program starts anew for every log, so what counts is that the table is made in no time: the last three bytes of
//! a string lead to it, and the eight bytes before the place that is examined are compared as one number.

/// The longest string that can be looked for: longer ones are cut.
pub(super) const MAX_LENGTH: usize = 8;
/// The shortest one.
pub(super) const MIN_LENGTH: usize = 3;

/// The most places in the table of beginnings, as a power of two, and the fewest.
const MOST_SLOT_BITS: u32 = 14;
const LEAST_SLOT_BITS: u32 = 6;
/// Places for each string, as a power of two: most of them stay empty, and few strings share one.
const SLOT_BITS_FOR_ONE: u32 = 3;

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
    key: u64,
    /// Which bytes count.
    mask: u64,
    /// Its part of `owners`.
    owners: (u32, u32),
    /// The next string with the same hash, counted from 1; 0: none.
    next: u16,
}

impl Finder {
    /// Makes the table of strings of [`MIN_LENGTH`] bytes or more, each with the number that it is found for. `None`
    /// where there are more strings than the table can hold.
    pub(super) fn new<'a>(strings: impl IntoIterator<Item = (&'a [u8], u16)>) -> Option<Self> {
        let mut keys: Vec<(u64, u64, u16)> = strings
            .into_iter()
            .map(|(string, owner)| {
                let string = &string[..string.len().min(MAX_LENGTH)];
                let key = string.iter().fold(0, |key, byte| key << 8 | u64::from(byte.to_ascii_lowercase()));
                (key, u64::MAX >> (64 - 8 * string.len()), owner)
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let bits = (keys.len().max(1).ilog2() + SLOT_BITS_FOR_ONE).clamp(LEAST_SLOT_BITS, MOST_SLOT_BITS);
        let (heads, shift) = (vec![0; 1 << bits], u32::BITS - bits);
        let mut finder = Self { heads, shift, strings: Vec::new(), owners: Vec::new() };
        for group in keys.chunk_by(|one, other| one.0 == other.0 && one.1 == other.1) {
            let (key, mask, _) = group[0];
            let start = u32::try_from(finder.owners.len()).ok()?;
            finder.owners.extend(group.iter().map(|(_, _, owner)| *owner));
            let end = u32::try_from(finder.owners.len()).ok()?;
            let head = &mut finder.heads[slot(key, shift)];
            finder.strings.push(Entry { key, mask, owners: (start, end), next: *head });
            *head = u16::try_from(finder.strings.len()).ok()?;
        }
        Some(finder)
    }

    /// Calls `found` with the owners of each string that is in `text`, once for each place.
    pub(super) fn find(&self, text: &[u8], mut found: impl FnMut(&[u16])) {
        let mut window = 0;
        for byte in text {
            window = window << 8 | u64::from(byte.to_ascii_lowercase());
            let mut next = self.heads[slot(window, self.shift)];
            while let Some(entry) = usize::from(next).checked_sub(1).map(|index| &self.strings[index]) {
                if window & entry.mask == entry.key {
                    found(&self.owners[entry.owners.0 as usize..entry.owners.1 as usize]);
                }
                next = entry.next;
            }
        }
    }
}

/// The place in the table for what ends with these bytes.
fn slot(window: u64, shift: u32) -> usize {
    let last_three = window & 0x00ff_ffff;
    let hash = last_three.wrapping_mul(0x9e37_79b1) & u64::from(u32::MAX);
    (hash >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_is_found_wherever_it_is() {
        let strings = ["abc", "bcd", "abcdefgh", "abcdefghij", "\u{e9}rr", "x y"];
        let finder = Finder::new((0..).zip(strings).map(|(number, text)| (text.as_bytes(), number))).unwrap();
        for (text, expected) in [
            ("", vec![]),
            ("ab", vec![]),
            ("ABC", vec![0]),
            ("zabcd", vec![0, 1]),
            ("abcdefgh", vec![0, 1, 2, 3]),
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
}
