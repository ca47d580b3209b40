//! Single keys of the terminal on stdin.

use std::io;
use std::sync::mpsc::{Receiver, channel};

use crate::process::{Registered, Suspension, Terminal, Typing, on_suspend};

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A printable character.
    Char(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow to the left.
    Left,
    /// Arrow to the right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Tab.
    Tab,
    /// What takes back a character.
    Backspace,
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Ctrl-D.
    EndOfInput,
    /// The terminal went away: the last one.
    Gone,
    /// No key: another program had the terminal meanwhile, and what was drawn may be gone.
    Again,
}

/// Keys are taken for as long as this lives.
pub(super) struct Keys {
    terminal: Terminal,
    _again: Option<Registered>,
}

impl Keys {
    /// Has `pressed` called for each key, from another thread, until it answers false.
    pub(super) fn listen(
        mut pressed: impl FnMut(Key) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let typed = move |bytes: &[u8]| {
            if bytes.is_empty() {
                pressed(Key::Gone)
            } else {
                keys(bytes).into_iter().all(&mut pressed)
            }
        };
        Ok(Self {
            terminal: Terminal::take(Typing::Keys, typed)?,
            _again: None,
        })
    }

    /// Has the keys sent to the answer.
    pub(super) fn channel() -> io::Result<(Self, Receiver<Key>)> {
        let (sender, keys) = channel();
        let again = sender.clone();
        let listening = Self::listen(move |key| sender.send(key).is_ok())?;
        let registered = on_suspend(move |what| {
            if what == Suspension::Ends {
                // Nobody listens any more at the very end.
                let _ = again.send(Key::Again);
            }
        })?;
        Ok((
            Self {
                _again: Some(registered),
                ..listening
            },
            keys,
        ))
    }

    /// Leaves the terminal alone for a while, or takes it again.
    pub(super) fn pause(&self, paused: bool) {
        self.terminal.pause(paused);
    }
}

/// The keys that sent these bytes: what a terminal sends for one key comes at once.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let here @ [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                let end = sequence
                    .iter()
                    .position(|byte| (0x40..=0x7e).contains(byte));
                let (code, left) = sequence.split_at(end.map_or(sequence.len(), |at| at + 1));
                rest = left;
                keys.extend(match code {
                    [b'A'] => Some(Key::Up),
                    [b'B'] => Some(Key::Down),
                    [b'C'] => Some(Key::Right),
                    [b'D'] => Some(Key::Left),
                    [b'H'] | [b'1' | b'7', b'~'] => Some(Key::Home),
                    [b'F'] | [b'4' | b'8', b'~'] => Some(Key::End),
                    [b'5', b'~'] => Some(Key::PageUp),
                    [b'6', b'~'] => Some(Key::PageDown),
                    _ => None,
                });
            }
            (0x1b, _) => keys.push(Key::Escape),
            (b'\r' | b'\n', _) => keys.push(Key::Enter),
            (0x04, _) => keys.push(Key::EndOfInput),
            (b'\t', _) => keys.push(Key::Tab),
            (0x08 | 0x7f, _) => keys.push(Key::Backspace),
            (b' '..=b'~', _) => keys.push(Key::Char(char::from(*first))),
            (0x80.., _) => {
                let text = here.utf8_chunks().next().map_or("", |chunk| chunk.valid());
                if let Some(c) = text.chars().next() {
                    rest = &here[c.len_utf8()..];
                    keys.push(Key::Char(c));
                }
            }
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        use Key::{Char, Down, EndOfInput, Enter, Escape, Up};
        assert_eq!(
            keys(b"j\x1b[A\x1bOB\r\x04"),
            [Char('j'), Up, Down, Enter, EndOfInput]
        );
        assert_eq!(keys(b"\x1b"), [Escape]);
        assert_eq!(keys(b"\x1b[3~\x1b[1;5Ax\xff"), [Char('x')]);
        assert_eq!(
            keys("é\t\x7f".as_bytes()),
            [Char('é'), Key::Tab, Key::Backspace]
        );
        assert_eq!(
            keys(b"\x1b[C\x1b[D\x1b[5~\x1b[6~"),
            [Key::Right, Key::Left, Key::PageUp, Key::PageDown]
        );
        assert_eq!(
            keys(b"\x1b[H\x1bOF\x1b[1~\x1b[4~"),
            [Key::Home, Key::End, Key::Home, Key::End]
        );
    }
}
