//! Single keys of the terminal on stdin.

use std::io;
use std::sync::mpsc::{Receiver, channel};

use crate::process::{Registered, Suspension, Terminal, Typing, on_suspend};

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A printable character.
    Char(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
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
pub struct Keys {
    terminal: Terminal,
    _again: Option<Registered>,
}

impl Keys {
    /// Has `pressed` called for each key, from another thread, until it answers false.
    pub fn listen(mut pressed: impl FnMut(Key) -> bool + Send + 'static) -> io::Result<Self> {
        let typed = move |bytes: &[u8]| {
            if bytes.is_empty() { pressed(Key::Gone) } else { keys(bytes).into_iter().all(&mut pressed) }
        };
        Ok(Self { terminal: Terminal::take(Typing::Keys, typed)?, _again: None })
    }

    /// Has the keys sent to the answer.
    pub fn channel() -> io::Result<(Self, Receiver<Key>)> {
        let (sender, keys) = channel();
        let again = sender.clone();
        let listening = Self::listen(move |key| sender.send(key).is_ok())?;
        let registered = on_suspend(move |what| {
            if what == Suspension::Ends {
                // Nobody listens any more at the very end.
                let _ = again.send(Key::Again);
            }
        })?;
        Ok((Self { _again: Some(registered), ..listening }, keys))
    }

    /// Leaves the terminal alone for a while, or takes it again.
    pub fn pause(&self, paused: bool) {
        self.terminal.pause(paused);
    }
}

/// The keys that sent these bytes: what a terminal sends for one key comes at once.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
                let (code, left) = sequence.split_at(end.map_or(sequence.len(), |at| at + 1));
                rest = left;
                match code {
                    [b'A'] => keys.push(Key::Up),
                    [b'B'] => keys.push(Key::Down),
                    _ => {}
                }
            }
            (0x1b, _) => keys.push(Key::Escape),
            (b'\r' | b'\n', _) => keys.push(Key::Enter),
            (0x04, _) => keys.push(Key::EndOfInput),
            (b' '..=b'~', _) => keys.push(Key::Char(char::from(*first))),
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
        assert_eq!(keys(b"j\x1b[A\x1bOB\r\x04"), [Char('j'), Up, Down, Enter, EndOfInput]);
        assert_eq!(keys(b"\x1b"), [Escape]);
        assert_eq!(keys(b"\x1b[3~\x1b[1;5Ax"), [Char('x')]);
        assert_eq!(keys("é\t".as_bytes()), []);
    }
}
