//! The operations under test: through the library, or through the built program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use recover::testing::engine::Naming;
use recover::testing::engine::Request;
use recover::testing::engine::Restore;
use recover::testing::engine::checkpoint;
use recover::testing::engine::undo;
use recover::testing::engine::{BrokenConfig, Setup};
use recover::testing::engine::{Context, Error, ErrorKind};
use recover::testing::engine::{Options, Target, rollback};
use recover::testing::model::Selector;
use recover::testing::policy::Edits;
use recover::testing::process::Interrupts;
use serde_json::Value;

/// How a rollback is asked for.
#[derive(Clone, Debug)]
pub struct How {
    pub path: Option<String>,
    pub edits: Edits,
    pub restore_index: bool,
}

/// What came of a restore.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Changed,
    Unchanged,
    /// Something stands in the way.
    Refused,
    /// Something was edited by a person.
    Edited,
}

/// Where the operations take place.
pub struct Driver {
    root: PathBuf,
    home: PathBuf,
    program: bool,
}

impl Driver {
    pub fn new(root: &Path, home: &Path, program: bool) -> Self {
        Self {
            root: root.to_owned(),
            home: home.to_owned(),
            program,
        }
    }

    /// Takes a checkpoint: whether it is a new one, and its id.
    pub fn create(&self, if_changed: bool) -> (bool, String) {
        if self.program {
            let mut args = vec!["checkpoint", "create"];
            args.extend(if_changed.then_some("--if-changed"));
            let (code, document) = self.run(&args);
            assert_eq!(code, 0, "{document}");
            let id = document["checkpoint"]["id"].as_str().unwrap().to_owned();
            return (document["changed"].as_bool().unwrap(), id);
        }
        let created = checkpoint::create(
            &self.context(),
            Request::default(),
            checkpoint::Options {
                skip_if_unchanged: if_changed,
                ..checkpoint::Options::default()
            },
        )
        .unwrap();
        let made = created.checkpoint;
        assert!(!made.partial, "{:?}", made.skipped);
        (created.changed, made.id.into())
    }

    pub fn rollback(&self, id: &str, how: &How) -> Outcome {
        if self.program {
            let mut args = with_edits("rollback", how.edits);
            args.extend(["--to", id]);
            args.extend(how.restore_index.then_some("--restore-index"));
            args.extend(how.path.iter().flat_map(|path| ["--path", path]));
            return restored(&self.run(&args));
        }
        let options = Options {
            paths: how.path.iter().cloned().collect(),
            edits: how.edits,
            restore_index: how.restore_index,
            ..Options::default()
        };
        outcome(rollback::rollback(
            &self.context(),
            &Target::Checkpoint(Selector::Id(id.to_owned())),
            &options,
        ))
    }

    pub fn undo(&self, edits: Edits) -> Outcome {
        if self.program {
            return restored(&self.run(&with_edits("undo", edits)));
        }
        outcome(undo::undo(&self.context(), &how(edits), false))
    }

    pub fn redo(&self, edits: Edits) -> Outcome {
        if self.program {
            return restored(&self.run(&with_edits("redo", edits)));
        }
        outcome(undo::redo(&self.context(), &how(edits)))
    }

    fn context(&self) -> Context {
        let setup = Setup {
            cwd: self.root.clone(),
            home: Some(self.home.clone()),
            state_dir: None,
            naming: Naming::default(),
            remote: None,
            lock_timeout: Duration::from_secs(5),
            allow_home: false,
            dry_run: false,
            yes: false,
            asked: None,
            broken_config: BrokenConfig::Refuses,
            known_config: None,
            begins_run: false,
            reads: false,
            writes: false,
            trust: true,
            trusted: None,
            needs_user_config: false,
            settings_only: false,
            env: |_| None,
            note: |_| {},
        };
        Context::new(setup, Interrupts::disconnected()).unwrap()
    }

    fn run(&self, args: &[&str]) -> (i32, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recover"));
        command
            .current_dir(&self.root)
            .env_clear()
            .env("HOME", &self.home)
            .stdin(Stdio::null());
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .arg("--json")
            .args(args);
        let output = command.output().unwrap();
        let document = serde_json::from_slice(&output.stdout);
        let document = document
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap(), document)
    }
}

fn with_edits(command: &str, edits: Edits) -> Vec<&str> {
    let discard = ["--edits", "discard"]
        .into_iter()
        .filter(|_| edits == Edits::Discard);
    [command].into_iter().chain(discard).collect()
}

fn restored((code, document): &(i32, Value)) -> Outcome {
    match code {
        0 if document["changed"] == true => {
            assert_eq!(document["result"]["verified"], true, "{document}");
            Outcome::Changed
        }
        0 => Outcome::Unchanged,
        13 if document["error"]["code"] == "conflicts" => Outcome::Refused,
        13 if document["error"]["code"] == "hand_edits" => Outcome::Edited,
        code => panic!("ended with {code}: {document}"),
    }
}

fn how(edits: Edits) -> Options {
    Options {
        edits,
        ..Options::default()
    }
}

fn outcome(result: Result<Restore, Error>) -> Outcome {
    match result {
        Ok(Restore {
            changed: true,
            result,
            ..
        }) => {
            assert!(result.verified && result.success, "{result:?}");
            Outcome::Changed
        }
        Ok(_) => Outcome::Unchanged,
        Err(error) if error.kind == ErrorKind::Conflicts => Outcome::Refused,
        Err(error) if error.kind == ErrorKind::HandEdits => Outcome::Edited,
        Err(error) => panic!("{error:?}"),
    }
}
