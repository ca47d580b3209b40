//! A process on a terminal of its own, with its keys and what it shows.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::env::TestEnv;

/// How long anything may take that should happen soon.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long something that was left on a terminal is waited for.
const LEFT: Duration = Duration::from_secs(2);

/// A process on a terminal.
pub struct Terminal {
    keys: File,
    child: Child,
    said: Arc<Mutex<String>>,
    /// It ends when nobody has the terminal any more, and everything is read.
    reader: JoinHandle<()>,
    /// Whether it may use escape codes.
    escapes: bool,
}

impl Terminal {
    /// `recover` on a terminal of 80 columns and 24 lines that wants no escape codes; `None` where there is no program
    /// that gives a process a terminal.
    pub fn of(env: &TestEnv, args: &[&str]) -> Option<Self> {
        Self::with(env, args, (80, 24), &[("NO_COLOR", "1")])
    }

    /// `recover` on a terminal of so many columns and lines.
    pub fn with(
        env: &TestEnv,
        args: &[&str],
        size: (u16, u16),
        vars: &[(&str, &str)],
    ) -> Option<Self> {
        let mut words = vec![env!("CARGO_BIN_EXE_recover")];
        words.extend(args);
        Self::running(env, &words, size, vars)
    }

    /// Any program.
    pub fn running(
        env: &TestEnv,
        words: &[&str],
        size: (u16, u16),
        vars: &[(&str, &str)],
    ) -> Option<Self> {
        let test = env
            .command("setsid")
            .args(["--ctty", "true"])
            .stderr(Stdio::null())
            .status();
        if !test.is_ok_and(|status| status.success() || status.code() == Some(1)) {
            // Where everything must be run a test that does nothing has failed.
            assert!(
                std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
                "no setsid --ctty (util-linux 2.37 or newer)"
            );
            eprintln!("skipped: no setsid --ctty");
            return None;
        }
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&pty)
            .and_then(|()| unlockpt(&pty))
            .expect("a terminal of our own");
        let (ws_col, ws_row) = size;
        tcsetwinsize(
            &pty,
            Winsize {
                ws_row,
                ws_col,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )
        .expect("a size");
        let name = ptsname(&pty, Vec::new())
            .expect("its name")
            .into_string()
            .expect("UTF-8");
        let end = || {
            Stdio::from(
                File::options()
                    .read(true)
                    .write(true)
                    .open(&name)
                    .expect("its other side"),
            )
        };
        // Whatever these tests were started by ignores (nohup).
        let mut command: Command = env.command("env");
        command
            .args(["--default-signal", "setsid", "--ctty", "--wait"])
            .args(words)
            .env("TERM", "xterm")
            .envs(vars.iter().copied());
        let child = command
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("it starts");
        let keys = File::from(pty);
        let said = Arc::new(Mutex::new(String::new()));
        let (mut output, shared) = (keys.try_clone().expect("a handle"), Arc::clone(&said));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                shared
                    .lock()
                    .expect("no panic")
                    .push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        });
        let escapes = !vars.iter().any(|(name, _)| *name == "NO_COLOR");
        Some(Self {
            keys,
            child,
            said,
            reader,
            escapes,
        })
    }

    /// Of a program that draws on the whole screen whoever asks: without colour it moves the cursor all the same.
    pub fn drawing(self) -> Self {
        Self {
            escapes: true,
            ..self
        }
    }

    /// What it said, a line that was overwritten included.
    pub fn said(&self) -> String {
        self.said.lock().expect("no panic").replace("\r\n", "\n")
    }

    /// What it shows: each line of a terminal of this size, without the blanks at its end.
    pub fn shows(&self, (columns, rows): (u16, u16)) -> String {
        let mut screen = vt100::Parser::new(rows, columns, 0);
        screen.process(self.said.lock().expect("no panic").as_bytes());
        let lines: Vec<String> = screen
            .screen()
            .rows(0, columns)
            .map(|line| line.trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    /// Waits until it shows so.
    #[track_caller]
    pub fn expect_shown(&self, size: (u16, u16), text: &str) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.shows(size);
            std::thread::sleep(Duration::from_millis(10));
            // A screen may come in parts.
            if shown.contains(text) && shown == self.shows(size) {
                return shown;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {text}\n{shown}");
        }
    }

    /// Waits until it has said so.
    #[track_caller]
    pub fn expect(&self, text: &str) {
        self.expect_after(0, text);
    }

    /// Waits until it has said so after the first `from` bytes.
    #[track_caller]
    pub fn expect_after(&self, from: usize, text: &str) {
        let begun = Instant::now();
        while !self
            .said()
            .get(from..)
            .is_some_and(|new| new.contains(text))
        {
            assert!(begun.elapsed() < PATIENCE, "never: {text}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.keys, size).expect("a size");
    }

    /// Its exit code; what it said is plain text where nobody wanted escape codes, and the terminal is as it was.
    #[track_caller]
    pub fn end(mut self) -> (i32, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                self.child.kill().expect("it can be ended");
                panic!("it does not end\n{}", self.said());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let modes = tcgetattr(&self.keys)
            .expect("the terminal's modes")
            .local_modes;
        assert!(
            modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG),
            "{modes:?}"
        );
        // What it left behind may keep the terminal.
        let ended = Instant::now();
        while !self.reader.is_finished() && ended.elapsed() < LEFT {
            std::thread::sleep(Duration::from_millis(5));
        }
        let said = self.said();
        assert!(self.escapes || !said.contains('\u{1b}'), "{said}");
        (status.code().unwrap_or(-1), said)
    }
}
