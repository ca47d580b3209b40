//! A hermetic place to run `recover` in: own home, own git configuration, no inherited variables, a work tree of its own.

#![allow(
    dead_code,
    reason = "every test program that includes this uses its own part of it"
)]
#![allow(
    clippy::unwrap_used,
    reason = "what went wrong is in the error's context"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::Context as _;
use serde_json::Value;
use tempfile::TempDir;

#[path = "valid.rs"]
mod valid;

/// A home folder and a work tree, removed when dropped.
pub struct TestEnv {
    folder: TempDir,
    work: PathBuf,
    vars: Vec<(String, String)>,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        Self {
            code: output
                .status
                .code()
                .unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code; shows everything when it is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// The document on stdout, which must be all there is.
    #[track_caller]
    pub fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!(
                "{error}\nstdout:\n{}\nstderr:\n{}",
                self.stdout, self.stderr
            )
        });
        assert_eq!(document["schema_version"], 1, "{document}");
        assert!(document["command"].is_string(), "{document}");
        // What `recover schema` says of it is true.
        let wrong = valid::problems(&document);
        assert!(
            wrong.is_empty(),
            "not by the schema: {wrong:#?}\n{document:#}"
        );
        document
    }
}

impl TestEnv {
    /// A git repository with one commit (`a.txt`).
    pub fn repo() -> Self {
        let env = Self::plain();
        env.git(&["init", "-q", "-b", "main"]);
        env.write("a.txt", "one\n");
        env.git(&["add", "a.txt"]);
        env.git(&["commit", "-q", "-m", "first"]);
        env
    }

    /// An empty folder without git.
    pub fn plain() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = std::fs::canonicalize(folder.path()).expect("its real path");
        let work = root.join("work");
        std::fs::create_dir(&work).expect("a work tree");
        std::fs::create_dir(root.join("home")).expect("a home");
        Self {
            folder,
            work,
            vars: Vec::new(),
        }
    }

    /// The work tree.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// The folder that holds work tree and home.
    pub fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).expect("its real path")
    }

    /// Sets a variable for every later command.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.vars.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A command in the work tree with nothing inherited but `PATH`.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let home = self.root().join("home");
        command
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            // A delay that is spread at random may be next to nothing, and a test that expects a wait would fail.
            .env("RECOVER_TEST_SEED", "1")
            // Where the place for temporary files is in memory, too.
            .env("RECOVER_TEST_VAULT", "1")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "A Tester")
            .env("GIT_AUTHOR_EMAIL", "tester@example.com")
            .env("GIT_COMMITTER_NAME", "A Tester")
            .env("GIT_COMMITTER_EMAIL", "tester@example.com")
            .stdin(Stdio::null());
        for (name, value) in &self.vars {
            command.env(name, value);
        }
        command
    }

    /// `recover` with these arguments, not started yet.
    pub fn recover_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_recover"));
        command.args(args);
        command
    }

    /// Runs `recover`.
    pub fn recover(&self, args: &[&str]) -> Ran {
        Ran::of(&self.recover_command(args).output().expect("recover starts"))
    }

    /// Runs `recover … --json`, expects the exit code and returns the document. `--json` goes before a `--`.
    #[track_caller]
    pub fn json(&self, code: i32, args: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend_from_slice(args);
        self.recover(&all).expect(code).json()
    }

    /// The error of a command that ends so.
    #[track_caller]
    pub fn error(&self, code: i32, args: &[&str]) -> Value {
        self.json(code, args)["error"].take()
    }

    /// Runs git and returns what it printed.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let ran = Ran::of(&self.command("git").args(args).output().expect("git starts"));
        assert_eq!(ran.code, 0, "git {args:?}\n{}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Runs a shell line, whatever comes of it.
    pub fn sh(&self, line: &str) -> Ran {
        Ran::of(
            &self
                .command("sh")
                .args(["-c", line])
                .output()
                .expect("sh starts"),
        )
    }

    /// Writes a file of the work tree; its folders are made. A project's configuration is trusted, as its user would; one that
    /// is broken, or in a place that is none, is written all the same.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        self.put(path, content);
        if let Some(project) = path.strip_suffix(".ultraplan/recover.toml") {
            let folder = self.work.join(project);
            let mut trust = self.recover_command(&["trust"]);
            trust.current_dir(&folder).output().expect("recover starts");
        }
    }

    /// Writes a file of the work tree as anybody may have left it; its folders are made.
    #[track_caller]
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        let folder = path.parent().expect("a folder");
        std::fs::create_dir_all(folder)
            .with_context(|| format!("create {}", folder.display()))
            .unwrap();
        std::fs::write(&path, content)
            .with_context(|| format!("write {}", path.display()))
            .unwrap();
    }

    /// Writes an executable script.
    #[track_caller]
    pub fn script(&self, path: &str, body: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.write(path, format!("#!/bin/sh\n{body}\n"));
        let executable =
            std::fs::set_permissions(self.work.join(path), std::fs::Permissions::from_mode(0o755));
        executable
            .with_context(|| format!("make {path} executable"))
            .unwrap();
    }

    /// Reads a file of the work tree as text.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work.join(path))
            .with_context(|| format!("read {path}"))
            .unwrap()
    }

    /// Removes a file of the work tree.
    #[track_caller]
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.work.join(path))
            .with_context(|| format!("remove {path}"))
            .unwrap();
    }

    /// Whether a path of the work tree exists.
    pub fn exists(&self, path: &str) -> bool {
        self.work.join(path).symlink_metadata().is_ok()
    }

    /// Writes a file of the state directory.
    #[track_caller]
    pub fn write_state(&self, path: &str, content: impl AsRef<[u8]>) {
        self.write(&format!(".ultraplan/state/{path}"), content);
    }

    /// Reads a file of the state directory as text.
    #[track_caller]
    pub fn read_state(&self, path: &str) -> String {
        self.read(&format!(".ultraplan/state/{path}"))
    }

    /// The permissions of a path of the work tree, what it leads to where it is a link.
    #[track_caller]
    pub fn mode(&self, path: &str) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(self.work.join(path))
            .with_context(|| format!("the mode of {path}"))
            .unwrap();
        metadata.permissions().mode() & 0o7777
    }

    /// A file of the state directory as JSON.
    #[track_caller]
    pub fn state_json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read_state(path))
            .with_context(|| format!("{path} as JSON"))
            .unwrap()
    }
}
