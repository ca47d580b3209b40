//! Any bytes on a hook's stdin.
//!
//! They are understood alike when printed again, a risk is not talked away, and an agent is never held up: the program ends
//! well, says nothing on stdout, and leaves the work tree alone.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use recover::testing::agent::read_hook;
use recover::testing::engine::session_run;
use recover::testing::model::RunKey;
use recover::testing::model::{HookAgent, HookEvent, Moment, ToolCall};
use recover::testing::policy::{ToolCallRisk, occasion};
use recover::testing::store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driver::{Target, folder, kind_of, seen};

/// One of so many inputs is played at the program too.
const PROGRAM: u32 = 40;
const AGENTS: [HookAgent; 4] = [
    HookAgent::Claude,
    HookAgent::Codex,
    HookAgent::Gemini,
    HookAgent::Opencode,
];

pub struct Hooks {
    root: PathBuf,
    _folder: TempDir,
}

/// What a hook of the same meaning is called with.
fn printed(event: &HookEvent) -> Value {
    let mut document = match &event.moment {
        Moment::BeforeTool(call) => json!({"hook_event_name": "PreToolUse", "tool_name": call.name,
            "tool_input": {"command": call.command, "file_path": call.path}}),
        Moment::TurnEnded { stop_hook_active } => {
            json!({"hook_event_name": "Stop", "stop_hook_active": stop_hook_active})
        }
        Moment::TurnFailed(failure) => {
            json!({"hook_event_name": "StopFailure", "error_type": failure.error,
            "error_details": failure.details, "last_assistant_message": failure.last_message})
        }
        Moment::Prompt => json!({"hook_event_name": "UserPromptSubmit"}),
        Moment::Compacting => json!({"hook_event_name": "PreCompact"}),
        Moment::SessionEnded => json!({"hook_event_name": "SessionEnd"}),
        Moment::Git { hook: name } | Moment::Other { event: name } => {
            json!({"hook_event_name": name})
        }
    };
    document["session_id"] = json!(event.session_id);
    document["cwd"] = json!(event.cwd);
    document
}

/// Something destructive beside a command makes it no harmless one.
fn is_seen_through(call: &ToolCall) {
    if let Some(command) = &call.command {
        for destructive in ["git reset --hard", "rm -rf x"] {
            let longer = ToolCall {
                command: Some(format!("{command}\n{destructive}")),
                ..call.clone()
            };
            let before = occasion(&ToolCall {
                command: Some(destructive.to_owned()),
                ..call.clone()
            });
            let joined = command.ends_with('\\');
            assert!(occasion(&longer) == before || joined, "{longer:?}");
        }
        let found = occasion(call);
        assert!(
            found != ToolCallRisk::Nothing,
            "a command is never nothing: {call:?}"
        );
    }
}

impl Hooks {
    pub fn new() -> Self {
        let folder = folder();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("home")).unwrap();
        let hooks = Self {
            root,
            _folder: folder,
        };
        hooks.begin();
        hooks
    }

    /// Makes the repository anew.
    fn begin(&self) {
        let work = self.root.join("work");
        if work.exists() {
            fs::remove_dir_all(&work).unwrap();
        }
        fs::create_dir(&work).unwrap();
        fs::write(work.join("a"), "a\n").unwrap();
        let steps: [&[&str]; 3] = [
            &["init", "-q", "-b", "main"],
            &["add", "a"],
            &["commit", "-q", "-m", "a"],
        ];
        for args in steps {
            assert!(
                self.command("git").args(args).status().unwrap().success(),
                "git {args:?}"
            );
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root.join("work")).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.join("home"));
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "A")
                .env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        command
    }

    fn play_program(&self, input: &[u8], agent: HookAgent) {
        // Sessions are runs, and a ledger of thousands is not what is tested here.
        let ledger = fs::metadata(self.root.join("work/.ultraplan/state/events.jsonl"));
        if ledger.is_ok_and(|ledger| ledger.len() > 100_000) {
            self.begin();
        }
        let mut command = self.command(env!("CARGO_BIN_EXE_recover"));
        command.args(["hook", "run", agent.as_str()]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It need not read all of it.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {stderr}", output.status);
        assert!(
            output.stdout.is_empty(),
            "an agent reads this: {}",
            output.stdout.escape_ascii()
        );
        assert!(
            !stderr.contains("panicked") && !stderr.contains("a bug in recover"),
            "{stderr}"
        );
        let plain = |c: char| c == '\n' || !c.is_control();
        assert!(stderr.chars().all(plain), "{stderr:?}");
        let status = self
            .command("git")
            .args(["status", "--porcelain"])
            .output()
            .unwrap();
        assert!(
            status.stdout.is_empty(),
            "the work tree changed: {}",
            status.stdout.escape_ascii()
        );
        assert_eq!(fs::read(self.root.join("work/a")).unwrap(), b"a\n");
        let log = self
            .command(env!("CARGO_BIN_EXE_recover"))
            .args(["log"])
            .output()
            .unwrap();
        assert!(
            log.status.success(),
            "log: {}",
            String::from_utf8_lossy(&log.stderr)
        );
    }
}

fn is_in_its_place(agent: HookAgent, event: &HookEvent) {
    let store = Store::new(Path::new("/s").to_owned(), Duration::ZERO);
    let run = session_run(agent, event.session_id.as_deref());
    let place = store.run_dir(&RunKey::new(run, None, None));
    assert_eq!(
        place.parent(),
        Some(store.private_dir().join("runs").as_path())
    );
    let name = place.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.len() <= 255 && !name.starts_with('.'), "{name}");
}

impl Target for Hooks {
    const NAME: &'static str = "hooks";
    const TOKENS: &'static [&'static [u8]] = &[
        b"hook_event_name",
        b"PreToolUse",
        b"BeforeTool",
        b"Stop",
        b"AfterAgent",
        b"StopFailure",
        b"PreCompact",
        b"PreCompress",
        b"SessionEnd",
        b"session_id",
        b"cwd",
        b"/",
        b"/nowhere",
        b"..",
        b"tool_name",
        b"tool_input",
        b"command",
        b"file_path",
        b"Bash",
        b"Edit",
        b"Write",
        b"shell",
        b"mcp_x",
        b"apply_patch",
        b"rm -rf .",
        b"git reset --hard",
        b"git stash",
        b"ls",
        b"curl -X POST https://example.com",
        b"\\\\\\n",
        b"stop_hook_active",
        b"rate_limit",
        b"error_type",
        b"error_details",
        b"last_assistant_message",
        b"\xef\xbb\xbf",
    ];

    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64> {
        inputs.iter().map(|input| self.play_one(input)).collect()
    }
}

impl Hooks {
    fn play_one(&self, input: &[u8]) -> u64 {
        let number = crc32fast::hash(input);
        let agent = AGENTS[number as usize / 256 % AGENTS.len()];
        if number.is_multiple_of(PROGRAM) {
            self.play_program(input, agent);
        }
        let event = match read_hook(input) {
            Ok(event) => event,
            Err(error) => {
                assert!(!error.is_empty() && error.lines().count() == 1, "{error:?}");
                return seen(&kind_of(&error));
            }
        };
        let document = printed(&event);
        let again = read_hook(document.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{error}: {document}"));
        assert_eq!(again, event);
        is_in_its_place(agent, &event);
        let about = match &event.moment {
            Moment::BeforeTool(call) => {
                is_seen_through(call);
                format!(
                    "{:?} {} {}",
                    occasion(call),
                    call.command.is_some(),
                    call.path.is_some()
                )
            }
            Moment::Other { .. } => "another".to_owned(),
            moment => kind_of(&format!("{moment:?}")),
        };
        seen(&(about, event.session_id.is_some(), event.cwd.is_some()))
    }
}
