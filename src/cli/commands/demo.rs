//! `recover demo`: a small project with an agent that fails in four ways, a night of it, and a walk through the morning.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::args::DemoArgs;
use super::super::screens::{NextStep, next_step};
use super::super::ui::{Reply, Ui};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::Hint;
use crate::process::Signal;

/// What the project holds; the scripts are executable.
const FILES: [(&str, &str); 4] = [
    (".gitignore", "report.html\n"),
    ("text.sh", include_str!("demo/text.sh")),
    ("test.sh", include_str!("demo/test.sh")),
    ("agent.sh", include_str!("demo/agent.sh")),
];

/// The night.
const NIGHT: [&str; 16] = [
    "run",
    "--run",
    "night",
    "--iterations",
    "6",
    "--attempts",
    "2",
    "--timeout",
    "3s",
    "--on-failure",
    "rollback",
    "--prompt",
    "Add one function to text.sh.",
    "--feedback",
    "test=./test.sh",
    "--",
];

/// The morning: what each command is for.
const MORNING: [(&str, &[&str]); 6] = [
    ("What became of the night", &["status"]),
    (
        "Iterations, diffs, logs and evidence (q leaves)",
        &["browse"],
    ),
    (
        "The same as a page for a browser",
        &["report", "-o", "report.html"],
    ),
    (
        "Go back to where iteration 3 began",
        &["rollback", "--iteration", "3"],
    ),
    ("Take that back: nothing is lost", &["undo"]),
    ("Keep what passed, as ordinary commits", &["accept"]),
];

/// How often it is asked whether a command has ended.
const POLL: Duration = Duration::from_millis(50);

/// Where the playground is, and what to do there.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Demo {
    /// Its folder.
    path: PathBuf,
    /// Whether it was made: not in a dry run.
    changed: bool,
    /// What the night's `recover run` ended with.
    exit_code: Option<i32>,
    /// What to type there, in this order.
    commands: Vec<Step>,
}

/// A command of the walk.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "demo_step")]
struct Step {
    /// What it is for.
    description: &'static str,
    /// The command, which works from any folder.
    command: String,
}

/// `recover demo`.
pub(super) fn demo(context: &Context, args: &DemoArgs, ui: &Ui) -> Result<Reply> {
    let named = args.dir.as_ref().map(|dir| context.cwd().join(dir));
    if let Some(folder) = &named {
        require_empty(folder)?;
    }
    if context.dry_run() {
        let path = named.unwrap_or_else(std::env::temp_dir);
        let text = format!(
            "Would make a project in {} and run a night there.\n",
            path.display()
        );
        return Ok(Reply::new(
            Demo::new(path, false, (None, ui.interactive)),
            text,
        ));
    }
    let folder = match named {
        Some(folder) => {
            let made = fs::create_dir_all(&folder);
            made.map_err(|error| Error::cannot("create", &folder, error))?;
            folder
        }
        None => tempfile::Builder::new()
            .prefix("recover-demo-")
            .tempdir()
            .context("cannot create a temporary folder")?
            .keep(),
    };
    let folder =
        fs::canonicalize(&folder).map_err(|error| Error::cannot("open", &folder, error))?;
    note(
        ui,
        &format!(
            "A project with an agent that fails in four ways: {}",
            folder.display()
        ),
    );
    make(&folder)?;
    note(ui, "Its night of six iterations takes about ten seconds:");
    let night = ended(context, ui, recover(&folder, &NIGHT, ui)?.arg("./agent.sh"))?;
    if let Some(signal) = context.interrupts.pending() {
        let stays = format!("interrupted; the playground stays in {}", folder.display());
        return Err(Error::interrupted(signal, stays));
    }
    let walks = ui.interactive && walk(context, ui, &folder)?;
    let demo = Demo::new(folder, true, (night.code(), ui.interactive));
    let text = if walks { demo.place() } else { demo.text() };
    Ok(Reply::new(demo, text))
}

impl Demo {
    fn new(path: PathBuf, changed: bool, (exit_code, asks): (Option<i32>, bool)) -> Self {
        // Since an iteration was given up it prompts on a terminal.
        let yes = |words: &[&str]| (!asks && words == ["accept"]).then_some("--yes");
        let commands = MORNING.iter().map(|(description, words)| Step {
            description,
            command: Hint::recover(words.iter().copied().chain(yes(words)))
                .at(path.clone())
                .to_string(),
        });
        Self {
            commands: commands.collect(),
            path,
            changed,
            exit_code,
        }
    }

    fn place(&self) -> String {
        format!("The playground stays in {}\n", self.path.display())
    }

    /// What to type.
    fn text(&self) -> String {
        let mut text = format!("{}\nThe morning, step by step:\n", self.place());
        for step in &self.commands {
            text += &format!("\n  # {}\n  {}\n", step.description, step.command);
        }
        text
    }
}

/// There is nothing in the folder yet, or no folder.
fn require_empty(folder: &Path) -> Result<()> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(Error::cannot("open", folder, error)),
    };
    if is_empty {
        return Ok(());
    }
    let message = format!("{} is not empty", folder.display());
    // Without a name it takes a folder of its own.
    Err(Error::new(ErrorKind::AlreadyExists, message).hint(Hint::recover(["demo"])))
}

/// The project, with its first commit.
fn make(folder: &Path) -> Result<()> {
    let git = |words: &[&str]| {
        // Neither the user's templates nor their hooks and keys are asked of a playground.
        let status = clean(Command::new("git").current_dir(folder))
            .args([
                "-c",
                "init.defaultBranch=main",
                "-c",
                "core.hooksPath=/dev/null",
            ])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("cannot start git")?;
        if status.success() {
            return Ok(());
        }
        let message = format!("git {} failed", words.join(" "));
        Err(Error::new(ErrorKind::Failed, message))
    };
    git(&["init", "--quiet", "--template="])?;
    for (name, content) in FILES {
        let path = folder.join(name);
        let written = fs::write(&path, content).and_then(|()| {
            let mode = if content.starts_with("#!") {
                0o755
            } else {
                0o644
            };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))
        });
        written.map_err(|error| Error::cannot("write", &path, error))?;
    }
    for (key, value) in [
        ("user.name", "Demo"),
        ("user.email", "demo@example.com"),
        ("commit.gpgSign", "false"),
    ] {
        git(&["config", key, value])?;
    }
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "A small project"])
}

/// This program in the playground; its standard output belongs to our own answer where nobody watches.
fn recover(folder: &Path, words: &[&str], ui: &Ui) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    clean(command.current_dir(folder))
        .env("RECOVER_COOLDOWN", "1s")
        .args(ui.quiet.then_some("--quiet"))
        .args(words);
    if !ui.interactive {
        command.stdin(Stdio::null()).stdout(Stdio::null());
    }
    Ok(command)
}

/// Runs it to its end; a signal that came to this process alone is passed on.
fn ended(context: &Context, ui: &Ui, command: &mut Command) -> Result<ExitStatus> {
    let mut child = command.spawn().context("cannot start this program")?;
    let failed = "cannot wait for this program";
    loop {
        if let Some(status) = child.try_wait().context(failed)? {
            return Ok(status);
        }
        if let Err(signal) = context.interrupts.sleep(POLL) {
            // A terminal sends Ctrl-C to both.
            if !(ui.interactive && signal == Signal::Int) {
                signal.send(child.id());
            }
            return Ok(child.wait().context(failed)?);
        }
    }
}

/// Without what a surrounding run, or another repository, says in the environment.
fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_ours = text.starts_with("RECOVER_") && !text.starts_with("RECOVER_TEST_");
        let is_gits = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].contains(&&*text);
        if is_ours || is_gits {
            command.env_remove(&name);
        }
    }
    command
}

/// The morning on a terminal: each command is shown and run on Enter. `false` where a user leaves before its end.
fn walk(context: &Context, ui: &Ui, folder: &Path) -> Result<bool> {
    for (description, words) in MORNING {
        let shown = format!("\n{description}:\n$ {}", Hint::recover(words));
        match next_step(context, ui, &shown)? {
            NextStep::Run => {
                ended(context, ui, &mut recover(folder, words, ui)?)?;
            }
            NextStep::Skip => {}
            NextStep::Leave => return Ok(false),
        }
    }
    Ok(true)
}

/// With stderr closed there is nobody left to read it.
fn note(ui: &Ui, text: &str) {
    if !ui.quiet {
        let _ = writeln!(io::stderr(), "{text}");
    }
}
