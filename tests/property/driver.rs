//! The operations under test: through the library, or through the built program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recover::testing::engine::Project;
use recover::testing::policy::Edits;
use serde_json::Value;

pub use recover::testing::engine::Outcome;

/// How a rollback is asked for.
#[derive(Clone, Debug)]
pub struct How {
    pub path: Option<String>,
    pub edits: Edits,
    pub restore_index: bool,
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
        self.project().create(if_changed)
    }

    pub fn rollback(&self, id: &str, how: &How) -> Outcome {
        if self.program {
            let mut args = with_edits("rollback", how.edits);
            args.extend(["--to", id]);
            args.extend(how.restore_index.then_some("--restore-index"));
            args.extend(how.path.iter().flat_map(|path| ["--path", path]));
            return restored(&self.run(&args));
        }
        self.project()
            .rollback(id, how.path.as_deref(), how.edits, how.restore_index)
    }

    pub fn undo(&self, edits: Edits) -> Outcome {
        if self.program {
            return restored(&self.run(&with_edits("undo", edits)));
        }
        self.project().undo(edits)
    }

    pub fn redo(&self, edits: Edits) -> Outcome {
        if self.program {
            return restored(&self.run(&with_edits("redo", edits)));
        }
        self.project().redo(edits)
    }

    fn project(&self) -> Project {
        Project::open(&self.root, &self.home)
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
        13 if document["error"]["code"] == "conflicts" => Outcome::Conflicts,
        13 if document["error"]["code"] == "hand_edits" => Outcome::HandEdits,
        code => panic!("ended with {code}: {document}"),
    }
}
