//! Compressed bitmaps, as git writes them into a split index.

use super::{Input, Result, damaged};

/// A bitmap as it is stored: runs of equal words and literal words.
#[derive(Debug, Default)]
pub(super) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    pub(super) fn parse(input: &mut Input<'_>) -> Result<Self> {
        let _bits = input.number()?;
        let count = input.number()? as usize;
        if count > input.0.len() / 8 {
            return Err(damaged("a bitmap is cut short"));
        }
        let words = (0..count).map(|_| input.long()).collect::<Result<_>>()?;
        let _position_of_the_last_run = input.number()?;
        Ok(Self { words })
    }

    /// The positions of the bits that are set, ascending. One that is not below `limit` is an error, before any memory is
    /// spent on it.
    pub(super) fn positions(&self, limit: usize) -> Result<Vec<usize>> {
        let beyond = || damaged("a bitmap is longer than what it is about");
        let mut positions = Vec::new();
        let mut base = 0_usize;
        let mut words = self.words.iter().copied();
        while let Some(run) = words.next() {
            // One bit for the value, 32 for how many words have it, 31 for how many literal words follow.
            let length = usize::try_from((run >> 1) & 0xffff_ffff).map_err(|_| beyond())?;
            let end = length
                .checked_mul(64)
                .and_then(|bits| base.checked_add(bits))
                .ok_or_else(beyond)?;
            if run & 1 == 1 {
                if end > limit {
                    return Err(beyond());
                }
                positions.extend(base..end);
            }
            base = end;
            for _ in 0..run >> 33 {
                let mut word = words
                    .next()
                    .ok_or_else(|| damaged("a bitmap is cut short"))?;
                while word != 0 {
                    let position = base + word.trailing_zeros() as usize;
                    if position >= limit {
                        return Err(beyond());
                    }
                    positions.push(position);
                    word &= word - 1;
                }
                base = base.checked_add(64).ok_or_else(beyond)?;
            }
        }
        Ok(positions)
    }
}
