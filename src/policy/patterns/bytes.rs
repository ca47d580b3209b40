//! Which bytes a text has, and which it must have.

/// A set of bytes, letter case aside. Bytes beyond ASCII stand where control characters do, which hardly any text has:
/// two bytes in one place make a text that has one of them be asked in vain, no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes(u128);

/// Letters and what else is in nearly every text.
const COMMON: Bytes = Bytes::all_of(b" etaoinsrld");
/// What is in many a text.
const FREQUENT: Bytes = Bytes::all_of(b"cumfpghwyb:.-/_,()");
/// What a log is full of.
const DIGITS: Bytes = Bytes::all_of(b"0123456789");

/// Every byte's place, as a set: a text is read by one look a byte.
static PLACES: [u128; 256] = {
    let mut places = [0; 256];
    let mut byte = 0;
    while byte < places.len() {
        places[byte] = 1
            << match byte {
                0x80.. => byte & 0x1f,
                0x41..=0x5a => byte | 0x20,
                _ => byte,
            };
        byte += 1;
    }
    places
};

impl Bytes {
    /// This byte.
    pub(super) const fn of(byte: u8) -> Self {
        Self(PLACES[byte as usize])
    }

    /// All of these.
    pub(super) const fn all_of(bytes: &[u8]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < bytes.len() {
            set |= PLACES[bytes[at] as usize];
            at += 1;
        }
        Self(set)
    }

    /// Those of `text`.
    pub(super) fn in_text(text: &[u8]) -> Self {
        Self(
            text.iter()
                .fold(0, |set, byte| set | PLACES[usize::from(*byte)]),
        )
    }

    /// Whether this byte is one of them, or shares a place with one.
    pub(super) fn has(self, byte: u8) -> bool {
        self.meets(Self::of(byte))
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of either.
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn meets(self, other: Self) -> bool {
        !self.and(other).is_empty()
    }

    /// The only byte, where it is ASCII text.
    pub(super) fn only(self) -> Option<u8> {
        let place = u8::try_from(self.0.trailing_zeros()).ok()?;
        (self.0.is_power_of_two() && place >= b' ').then_some(place)
    }

    /// How many texts have one of them, as a rank. Digits seldom come alone.
    fn frequency(self) -> u32 {
        let count = |of: Self| self.and(of).0.count_ones();
        self.0.count_ones() + 4 * count(FREQUENT) + 16 * count(COMMON) + 64 * count(Self::of(b' '))
    }

    /// How much of a text is one of them, as a rank.
    pub(super) fn commonness(self) -> u32 {
        if self.meets(COMMON) || self.meets(DIGITS) {
            4
        } else if self.meets(FREQUENT) {
            2
        } else {
            0
        }
    }

    /// The one that the fewest texts have.
    fn rarest(self) -> Self {
        let rare = self.0 & !(COMMON.0 | FREQUENT.0);
        let frequent = self.0 & !COMMON.0;
        let left = [rare, frequent]
            .into_iter()
            .find(|set| *set != 0)
            .unwrap_or(self.0);
        Self(left & left.wrapping_neg())
    }
}

/// Bytes that a text must have for something to match it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Required {
    /// Each of these.
    all: Bytes,
    /// One of each of these sets; empty: no set.
    any: [Bytes; 2],
}

impl Required {
    /// Each byte of `text`.
    pub(super) fn each_of(text: &[u8]) -> Self {
        Self {
            all: Bytes::in_text(text),
            ..Self::default()
        }
    }

    /// This byte, too.
    pub(super) fn add(&mut self, byte: u8) {
        self.all = self.all.or(Bytes::of(byte));
    }

    /// One of these, too: the sets that the fewest texts meet are kept.
    pub(super) fn add_any(&mut self, set: Bytes) {
        if set.is_empty() || set.meets(self.all) || self.any.contains(&set) {
            return;
        }
        if let Some(free) = self.any.iter_mut().find(|kept| kept.is_empty()) {
            *free = set;
        } else if let Some(most) = self.any.iter_mut().max_by_key(|kept| kept.frequency())
            && most.frequency() > set.frequency()
        {
            *most = set;
        }
    }

    /// What another part of the same text requires, too.
    pub(super) fn add_part(&mut self, part: &Self) {
        self.all = self.all.or(part.all);
        for set in part.any {
            self.add_any(set);
        }
    }

    /// What is required where this or `other` is.
    pub(super) fn or(&self, other: &Self) -> Self {
        let mut required = Self {
            all: self.all.and(other.all),
            ..Self::default()
        };
        if let (Some(one), Some(two)) = (self.hardest(), other.hardest()) {
            required.add_any(one.or(two));
        }
        required
    }

    /// The set that the fewest texts meet.
    fn hardest(&self) -> Option<Bytes> {
        let sets = self.any.into_iter().chain([self.all.rarest()]);
        sets.filter(|set| !set.is_empty())
            .min_by_key(|set| set.frequency())
    }

    /// Whether a text with the bytes `seen` has them.
    pub(super) fn are_in(&self, seen: Bytes) -> bool {
        self.all.and(seen) == self.all
            && self.any.iter().all(|set| set.is_empty() || set.meets(seen))
    }
}
