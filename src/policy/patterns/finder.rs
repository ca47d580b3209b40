//! One search for many short strings, letter case aside.
//!
//! The program starts anew for every log, so what counts is that the table is made in no time: three bytes of a string
//! lead to it, those that the fewest texts have, and where they are found it is compared.

use std::ops::ControlFlow;

use super::bytes::Bytes;

/// The shortest string that can be looked for.
pub(super) const MIN_LENGTH: usize = 3;

/// The most places in the table of beginnings, as a power of two, and the fewest.
const MOST_SLOT_BITS: u32 = 14;
const LEAST_SLOT_BITS: u32 = 6;
/// Places for each string, as a power of two: most of them stay empty, and few strings share one.
const SLOT_BITS_FOR_ONE: u32 = 4;
/// How much another string in the same place weighs against common bytes, as [`Bytes::commonness`] has them.
const SHARED: u32 = 4;

/// Strings and who looks for them.
#[derive(Debug)]
pub(super) struct Finder {
    /// By hash of three bytes: the first string, counted from 1; 0: none.
    heads: Vec<u16>,
    /// How far the hash is shifted to be a place in it.
    shift: u32,
    strings: Vec<Entry>,
    /// The strings' bytes.
    bytes: Vec<u8>,
    owners: Vec<u16>,
}

#[derive(Debug)]
struct Entry {
    /// Its part of `bytes`.
    string: (u32, u32),
    /// The bytes that lead to it and, where there is one, the byte before them; and which of these four there are.
    key: u32,
    mask: u32,
    /// How many of its bytes come after those.
    after: u32,
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
    pub(super) fn new<'a>(
        strings: impl IntoIterator<Item = (&'a [u8], bool, u16)>,
    ) -> Option<Self> {
        let mut keys: Vec<(&[u8], bool, u16)> = strings.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        let bits =
            (keys.len().max(1).ilog2() + SLOT_BITS_FOR_ONE).clamp(LEAST_SLOT_BITS, MOST_SLOT_BITS);
        let (heads, shift) = (vec![0; 1 << bits], u32::BITS - bits);
        let mut shared = vec![0; 1 << bits];
        let mut finder = Self {
            heads,
            shift,
            strings: Vec::new(),
            bytes: Vec::new(),
            owners: Vec::new(),
        };
        for group in keys.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let (string, begins_word, _) = group[0];
            let string_at = appended(&mut finder.bytes, string.iter().map(u8::to_ascii_lowercase))?;
            let owners = appended(&mut finder.owners, group.iter().map(|(.., owner)| *owner))?;
            let key = Key::of(string, shift, &shared);
            shared[key.slot] += 1;
            let head = &mut finder.heads[key.slot];
            let after = u32::try_from(string.len() - key.end).ok()?;
            let Key {
                bytes: key, mask, ..
            } = key;
            finder.strings.push(Entry {
                string: string_at,
                key,
                mask,
                after,
                begins_word,
                owners,
                next: *head,
            });
            *head = u16::try_from(finder.strings.len()).ok()?;
        }
        Some(finder)
    }

    /// Calls `found` with the owners of each string that is in `text`, and where its last byte is, once for each place,
    /// until that says to stop.
    pub(super) fn find(
        &self,
        text: &[u8],
        mut found: impl FnMut(&[u16], usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut last = 0;
        for (at, byte) in text.iter().enumerate() {
            last = last << 8 | folded(*byte);
            let mut next = self.heads[slot(last, self.shift)];
            while let Some(entry) = usize::from(next)
                .checked_sub(1)
                .map(|index| &self.strings[index])
            {
                let end = at + entry.after as usize;
                if last & entry.mask == entry.key
                    && text
                        .get(..=end)
                        .is_some_and(|text| self.ends_with(text, entry))
                {
                    found(part(&self.owners, entry.owners), end)?;
                }
                next = entry.next;
            }
        }
        ControlFlow::Continue(())
    }

    fn ends_with(&self, text: &[u8], entry: &Entry) -> bool {
        let string = part(&self.bytes, entry.string);
        let Some((before, end)) = text
            .len()
            .checked_sub(string.len())
            .map(|at| text.split_at(at))
        else {
            return false;
        };
        let is_in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        end.eq_ignore_ascii_case(string)
            && !(entry.begins_word && before.last().is_some_and(is_in_word))
    }
}

/// The bytes of a string that lead to it.
struct Key {
    /// As in [`Entry`].
    bytes: u32,
    mask: u32,
    /// Where they end in the string.
    end: usize,
    /// Their place in the table.
    slot: usize,
}

impl Key {
    /// Those that the fewest texts have; `shared` says how many strings a place has so far.
    fn of(string: &[u8], shift: u32, shared: &[u32]) -> Self {
        let (mut last, mut best, mut key) = (
            0,
            u32::MAX,
            Self {
                bytes: 0,
                mask: 0,
                end: 0,
                slot: 0,
            },
        );
        for (byte, end) in string.iter().zip(1..) {
            last = last << 8 | folded(*byte);
            let Some(window) = string[..end].last_chunk::<MIN_LENGTH>() else {
                continue;
            };
            let slot = slot(last, shift);
            let common: u32 = window
                .iter()
                .map(|byte| Bytes::of(*byte).commonness())
                .sum();
            let cost = common + SHARED * shared[slot];
            if cost < best {
                let mask = if end > MIN_LENGTH {
                    u32::MAX
                } else {
                    u32::MAX >> 8
                };
                (best, key) = (
                    cost,
                    Self {
                        bytes: last & mask,
                        mask,
                        end,
                        slot,
                    },
                );
            }
        }
        key
    }
}

/// Adds what is given; where it stands. `None` where there is no room for the numbers.
fn appended<T>(all: &mut Vec<T>, more: impl Iterator<Item = T>) -> Option<(u32, u32)> {
    let start = u32::try_from(all.len()).ok()?;
    all.extend(more);
    Some((start, u32::try_from(all.len()).ok()?))
}

fn part<T>(all: &[T], (start, end): (u32, u32)) -> &[T] {
    &all[start as usize..end as usize]
}

/// A byte without a letter's case, and what else differs in that bit.
fn folded(byte: u8) -> u32 {
    u32::from(byte | 0x20)
}

/// The place in the table for what ends with the last three of these bytes.
fn slot(last: u32, shift: u32) -> usize {
    ((last << 8).wrapping_mul(0x9e37_79b1) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owners of all that is found, in order.
    fn found_in(finder: &Finder, text: &str) -> Vec<u16> {
        let mut found = Vec::new();
        let all = finder.find(text.as_bytes(), |owners, _| {
            found.extend_from_slice(owners);
            ControlFlow::Continue(())
        });
        assert!(all.is_continue());
        found.sort_unstable();
        found
    }

    #[test]
    fn every_string_is_found_wherever_it_is() {
        let strings = ["abc", "bcd", "abcdefgh", "abcdefghij", "\u{e9}rr", "x y"];
        let finder = Finder::new(
            (0..)
                .zip(strings)
                .map(|(number, text)| (text.as_bytes(), false, number)),
        )
        .unwrap();
        for (text, expected) in [
            ("", vec![]),
            ("ab", vec![]),
            ("ABC", vec![0]),
            ("zabcd", vec![0, 1]),
            ("abcdefgh", vec![0, 1, 2]),
            ("abcdefghij", vec![0, 1, 2, 3]),
            ("abcdefghX", vec![0, 1, 2]),
            ("abcdefg", vec![0, 1]),
            ("m\u{e9}rRx Y", vec![4, 5]),
            ("abcabc", vec![0, 0]),
        ] {
            assert_eq!(found_in(&finder, text), expected, "{text}");
        }
    }

    #[test]
    fn whoever_has_found_enough_is_asked_no_more() {
        let finder = Finder::new([(b"abc".as_slice(), false, 1), (b"bcd", false, 2)]).unwrap();
        let mut ends = Vec::new();
        let stopped = finder.find(b"xabcdabc", |owners, end| {
            ends.push((owners.to_vec(), end));
            if owners == [2] {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert!(stopped.is_break());
        assert_eq!(ends, [(vec![1], 3), (vec![2], 4)]);
    }

    #[test]
    fn what_is_to_begin_a_word_is_found_where_one_may_begin() {
        let strings = [
            ("sk_", true),
            ("sk_", false),
            ("abcdefg", true),
            ("abcdefghijklmnop", true),
        ];
        let finder = Finder::new(
            (0..)
                .zip(strings)
                .map(|(number, (text, begins))| (text.as_bytes(), begins, number)),
        );
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
            assert_eq!(found_in(&finder, text), expected, "{text}");
        }
    }
}
