//! Bare `manual-fix`, on a terminal and without one, and `--edit`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::env::TestEnv;
use crate::live::until;
use crate::manual_fix::failed_run;

/// A process on a terminal of 80 columns and 24 lines.
struct Terminal {
    keys: File,
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Terminal {
    /// `None` where there is no program that gives a process a terminal.
    fn of(env: &TestEnv, args: &[&str]) -> Option<Self> {
        let test = env.command("setsid").args(["--ctty", "true"]).stderr(Stdio::null()).status();
        if !test.is_ok_and(|status| status.success() || status.code() == Some(1)) {
            eprintln!("skipped: no setsid --ctty");
            return None;
        }
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&pty).and_then(|()| unlockpt(&pty)).expect("a terminal of our own");
        tcsetwinsize(&pty, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let name = ptsname(&pty, Vec::new()).expect("its name").into_string().expect("UTF-8");
        let side = || Stdio::from(File::options().read(true).write(true).open(&name).expect("its other side"));
        let mut command: Command = env.command("setsid");
        command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_recover")]).args(args);
        command.env("NO_COLOR", "1");
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("it starts");
        let keys = File::from(pty);
        let said = Arc::new(Mutex::new(String::new()));
        let (mut reader, shared) = (keys.try_clone().expect("a handle"), Arc::clone(&said));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                shared.lock().expect("no panic").push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        });
        Some(Self { keys, child, said })
    }

    fn said(&self) -> String {
        self.said.lock().expect("no panic").replace("\r\n", "\n")
    }

    /// Waits until it has said so since the last time, and answers what it said until then.
    #[track_caller]
    fn expect(&self, text: &str) {
        until(&format!("{text}\n{}", self.said()), || self.said().contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Its exit code; what it said is plain text that fits, and the terminal is as it was.
    #[track_caller]
    fn end(mut self) -> (i32, String) {
        let status = self.child.wait().expect("it ends");
        let modes = tcgetattr(&self.keys).expect("the terminal's modes").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
        std::thread::sleep(std::time::Duration::from_millis(100));
        let said = self.said();
        assert!(!said.contains('\u{1b}'), "{said}");
        (status.code().unwrap_or(-1), said)
    }
}

const QUICK: &str = "[manual_fix]\nquiet_period = \"100ms\"\n[cooldown]\nduration = \"100ms\"\n";
const KEYS: &str = "Keys: v verify now";

fn begun(env: &TestEnv) -> Option<Terminal> {
    env.write(".ultraplan/recover.toml", QUICK);
    let terminal = Terminal::of(env, &["manual-fix"])?;
    terminal.expect(KEYS);
    Some(terminal)
}

// B8: the whole way at a terminal, without a second command.
#[test]
fn a_fix_is_made_at_a_terminal() {
    let env = failed_run();
    let Some(mut terminal) = begun(&env) else { return };
    terminal.expect("Issue: ");
    terminal.press("c");
    terminal.expect("Not verified as it is");
    terminal.press("v");
    terminal.expect("FAILED test: 3 passed, 1 failed");
    terminal.expect("All of it: ");
    env.write("state", "good\n");
    terminal.expect("modified state +1 -1");
    terminal.expect("Press c to continue");
    terminal.press("x");
    terminal.press("c");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Same as: recover manual-fix continue") && said.contains("complete."), "{said}");
    let wide: Vec<_> = said.lines().filter(|line| line.starts_with("  ") && line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    assert_eq!(env.json(0, &["status"])["run"]["status"], "complete");
    assert!(env.read("prompt-3-1.txt").contains("## Manual Fix Applied"));
}

// B8: every way out leaves the terminal and the session as they should be.
#[test]
fn a_fix_can_be_left_open_or_given_up() {
    let env = failed_run();
    for (key, code) in [("\u{3}", 130), ("q", 0), ("\u{4}", 0)] {
        let Some(mut terminal) = begun(&env) else { return };
        terminal.press(key);
        let (ended, said) = terminal.end();
        assert_eq!(ended, code, "{key:?}: {said}");
        assert!(said.contains("Same as: recover manual-fix start"), "{said}");
        assert_eq!(env.json(0, &["manual-fix", "status"])["session"]["status"], "active", "{key:?}");
    }
    let Some(mut terminal) = begun(&env) else { return };
    terminal.press("a");
    let (code, said) = terminal.end();
    assert!(code == 0 && said.contains("Same as: recover manual-fix abort"), "{code}: {said}");
    assert_eq!(env.json(0, &["manual-fix", "status"])["session"]["status"], "aborted");
}

// The contract: without a terminal nothing is asked, and the session is open.
#[test]
fn without_a_terminal_it_is_start_and_status() {
    let env = failed_run();
    assert_eq!(env.json(0, &["manual-fix", "--dry-run"])["session"]["status"], "active");
    env.json(4, &["manual-fix", "status"]);
    let opened = env.json(0, &["manual-fix"]);
    assert_eq!((&opened["command"], &opened["session"]["status"]), (&"manual-fix".into(), &"active".into()));
    env.write("state", "good\n");
    let again = env.json(0, &["manual-fix"]);
    assert_eq!(again["session"]["id"], opened["session"]["id"]);
    assert_eq!(again["session"]["detected_changes"][0]["path"], "state", "{again}");
}

// B8: the editor is opened at the first error that lies in the work tree.
#[test]
fn the_editor_opens_at_the_first_error() {
    let mut env = TestEnv::repo();
    env.write("src/app.py", "a\nb\nc\n");
    let fails = "test=echo '/usr/lib/x.py:1: error: not ours'; echo 'src/app.py:3: error: wrong'; exit 1";
    env.json(8, &["run", "--on-failure", "manual-fix", "--feedback", fails, "--", "true"]);
    env.script("../bin/vim", "echo \"$@\" > ../edited; echo fixed > src/app.py");
    env.script("../bin/code", "echo \"$@\" > ../edited");
    let bin = env.root().join("bin");
    let error = env.json(2, &["manual-fix", "start", "--edit"]);
    assert!(error["error"]["message"].as_str().unwrap().contains("VISUAL"), "{error}");
    assert_eq!(env.json(2, &["manual-fix", "--edit", "verify"])["error"]["code"], "usage");

    env.set("EDITOR", &bin.join("vim").to_string_lossy());
    let document = env.json(0, &["manual-fix", "start", "--edit"]);
    let file = env.work().join("src/app.py");
    assert_eq!(env.read("../edited").trim(), format!("+3 {}", file.display()));
    assert_eq!(document["session"]["detected_changes"][0]["path"], "src/app.py", "{document}");

    env.set("VISUAL", &format!("'{}' --wait", bin.join("code").display()));
    env.write("src/app.py", "a\nb\nc\n");
    env.json(0, &["manual-fix", "--edit"]);
    assert_eq!(env.read("../edited").trim(), format!("--wait --goto {}:3", file.display()));
}
