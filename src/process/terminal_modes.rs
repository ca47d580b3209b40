//! Restores terminal modes that a killed program left changed.
//!
//! A program that draws the whole screen switches to another one, hides the cursor, has the mouse reported. It undoes
//! that at its end, if it gets there. Whoever shows its output knows what is still switched, and what switches it back.

use std::collections::BTreeSet;

/// Longer sequences switch nothing.
const LONGEST: usize = 64;
/// Private modes (DECSET) that are on where nobody switched them: wrapping and the cursor.
const ON: [u16; 2] = [7, 25];
/// Private modes that are off: cursor keys, the alternate screens, what reports mouse, focus and pasting, and output
/// that is held back.
const OFF: [u16; 15] = [
    1, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004, 2026,
];
/// Those of another screen; they are left last.
const SCREENS: [u16; 3] = [47, 1047, 1049];

/// What is switched other than a terminal has it by itself.
#[derive(Debug, Default)]
pub(super) struct TerminalModes {
    modes: BTreeSet<u16>,
    /// Colours and other attributes.
    attributes: bool,
    /// The keypad sends codes of its own.
    keypad: bool,
    /// So many keyboard protocols were pushed.
    keyboards: u32,
    /// Where in a sequence the bytes ended.
    sequence: Sequence,
}

#[derive(Debug, Default)]
enum Sequence {
    #[default]
    None,
    Begun,
    Control(Vec<u8>),
}

impl TerminalModes {
    /// Takes note of what was printed.
    pub(super) fn printed(&mut self, mut bytes: &[u8]) {
        loop {
            match &mut self.sequence {
                Sequence::None => {
                    let Some(at) = bytes.iter().position(|byte| *byte == 0x1b) else {
                        return;
                    };
                    bytes = &bytes[at + 1..];
                    self.sequence = Sequence::Begun;
                }
                Sequence::Begun => {
                    let Some((byte, rest)) = bytes.split_first() else {
                        return;
                    };
                    bytes = rest;
                    self.sequence = Sequence::None;
                    match byte {
                        b'[' => self.sequence = Sequence::Control(Vec::new()),
                        0x1b => self.sequence = Sequence::Begun,
                        b'=' => self.keypad = true,
                        b'>' => self.keypad = false,
                        // A full reset.
                        b'c' => *self = Self::default(),
                        _ => {}
                    }
                }
                Sequence::Control(parameters) => {
                    let Some((byte, rest)) = bytes.split_first() else {
                        return;
                    };
                    bytes = rest;
                    match byte {
                        0x20..=0x3f if parameters.len() < LONGEST => parameters.push(*byte),
                        0x40..=0x7e => {
                            let parameters = std::mem::take(parameters);
                            self.sequence = Sequence::None;
                            self.control(&parameters, *byte);
                        }
                        0x1b => self.sequence = Sequence::Begun,
                        _ => self.sequence = Sequence::None,
                    }
                }
            }
        }
    }

    fn control(&mut self, parameters: &[u8], end: u8) {
        let numbers = |text: &[u8]| -> Vec<u16> {
            let text = String::from_utf8_lossy(text).into_owned();
            text.split(';')
                .filter_map(|number| number.parse().ok())
                .collect()
        };
        match (parameters, end) {
            ([b'?', modes @ ..], b'h' | b'l') => {
                for mode in numbers(modes) {
                    let switched = match end {
                        b'h' => OFF.contains(&mode),
                        _ => ON.contains(&mode),
                    };
                    if switched {
                        self.modes.insert(mode);
                    } else {
                        self.modes.remove(&mode);
                    }
                }
            }
            ([b'>', ..], b'u') => self.keyboards = self.keyboards.saturating_add(1),
            ([b'<', count @ ..], b'u') => {
                let count = numbers(count).first().map_or(1, |count| u32::from(*count));
                self.keyboards = self.keyboards.saturating_sub(count);
            }
            (b"!", b'p') => *self = Self::default(),
            ([b'0'..=b'9' | b';' | b':', ..] | [], b'm') => {
                // What follows a reset in the same sequence is set again.
                self.attributes = !matches!(numbers(parameters).last(), None | Some(0));
            }
            _ => {}
        }
    }

    /// What switches everything back; from now on nothing is left. Empty where nothing was.
    pub(super) fn take_back(&mut self) -> Vec<u8> {
        let left = std::mem::take(self);
        let mut out = String::new();
        if left.attributes {
            out.push_str("\x1b[0m");
        }
        if left.keyboards > 0 {
            out.push_str(&format!("\x1b[<{}u", left.keyboards));
        }
        if left.keypad {
            out.push_str("\x1b>");
        }
        let (screens, others): (Vec<u16>, Vec<u16>) =
            left.modes.iter().partition(|mode| SCREENS.contains(mode));
        for mode in others.into_iter().chain(screens) {
            out.push_str(&format!(
                "\x1b[?{mode}{}",
                if ON.contains(&mode) { 'h' } else { 'l' }
            ));
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8]) -> String {
        let mut left = TerminalModes::default();
        // The same in one piece and in many.
        left.printed(bytes);
        let whole = left.take_back();
        for byte in bytes {
            left.printed(&[*byte]);
        }
        assert_eq!(left.take_back(), whole);
        assert!(left.take_back().is_empty());
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn what_is_still_switched_is_switched_back() {
        assert_eq!(after(b"\x1b[?1049h\x1b[?25lscreen"), "\x1b[?25h\x1b[?1049l");
        assert_eq!(
            after(b"\x1b[?1000;1006h\x1b[?2004h"),
            "\x1b[?1000l\x1b[?1006l\x1b[?2004l"
        );
        assert_eq!(after(b"\x1b[1;31mred"), "\x1b[0m");
        assert_eq!(after(b"\x1b[>1u\x1b[>3u\x1b[<u\x1b="), "\x1b[<1u\x1b>");
        assert_eq!(after(b"\x1b[?25l\x1b\x1b[?1h"), "\x1b[?1l\x1b[?25h");
    }

    #[test]
    fn who_tidies_up_leaves_nothing() {
        assert_eq!(
            after(b"plain \x1b[1mbold\x1b[0m \x1b[31mred\x1b[m \x1b[0;32mgreen\x1b[39;0m"),
            ""
        );
        assert_eq!(after(b"\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l"), "");
        assert_eq!(after(b"\x1b[?25l\x1b[?1049h\x1bc"), "");
        assert_eq!(
            after(b"\x1b[?7h\x1b[?25h\x1b[?12l\x1b[?99999999h\x1b[>4;2m\x1b[?6n"),
            ""
        );
    }

    #[test]
    fn rubbish_does_no_harm() {
        let long = [b"\x1b[?".as_slice(), &[b'1'; 1000], b"h"].concat();
        assert_eq!(after(&long), "");
        assert_eq!(after(b"\x1b[?25\nl \x1b]0;title\x07\xff\x1b["), "");
    }
}
