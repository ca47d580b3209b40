//! What the integration tests use beside the program itself. Not an interface: it changes with the tests.

pub mod agent {
    pub use crate::agent::Stream;
    pub use crate::agent::detect;
    pub use crate::agent::hooks::read as read_hook;
    pub use crate::agent::read;
}

pub mod cli {
    pub use crate::cli::args::expand_aliases;
    pub use crate::cli::command;
    pub use crate::cli::schema::all;
    pub use crate::cli::schema::of;
}

pub mod config {
    pub use crate::config::Around;
    pub use crate::config::Config;
    pub use crate::config::ConfigError;
    pub use crate::config::NOTIFY_RECIPES;
    pub use crate::config::Origin;
    pub use crate::config::UserConfig;
}

pub mod durable {
    pub use crate::durable::FileLock;
    pub use crate::durable::Root;
}

pub mod engine {
    use std::path::Path;
    use std::time::Duration;

    use crate::engine::base::context::{BrokenConfig, Setup};
    use crate::engine::base::runs::Naming;
    use crate::engine::record::storage::Request;
    use crate::engine::rollback::{self, Options, Restore, Target};
    use crate::engine::{Context, Error, ErrorKind, checkpoint};
    use crate::model::selector::Selector;
    use crate::policy::restore::Edits;
    use crate::process::Interrupts;

    pub use crate::engine::hook::session_run;

    /// The operations of one project as functions, for tests that do thousands of them.
    #[derive(Debug)]
    pub struct Project(Context);

    /// What came of a restore.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Outcome {
        /// Files were changed and verified.
        Changed,
        /// There was nothing to do.
        Unchanged,
        /// Something is in the way.
        Conflicts,
        /// A user edited something.
        HandEdits,
    }

    impl Project {
        /// The project in `root`, with its defaults.
        pub fn open(root: &Path, home: &Path) -> Self {
            let setup = Setup {
                cwd: root.to_owned(),
                home: Some(home.to_owned()),
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
                shows: None,
                env: |_| None,
                note: |_| {},
            };
            Self(Context::new(setup, Interrupts::disconnected()).expect("a project"))
        }

        /// Takes a checkpoint: whether it is a new one, and its id.
        pub fn create(&self, if_changed: bool) -> (bool, String) {
            let options = checkpoint::Options {
                skip_if_unchanged: if_changed,
                ..checkpoint::Options::default()
            };
            let created = checkpoint::create(&self.0, Request::default(), options);
            let created = created.expect("a checkpoint");
            let made = created.checkpoint;
            assert!(!made.partial, "{:?}", made.skipped);
            (created.changed, made.id.into())
        }

        /// Rolls back to the checkpoint `id`, all of it or what fits the glob `path`.
        pub fn rollback(
            &self,
            id: &str,
            path: Option<&str>,
            edits: Edits,
            restore_index: bool,
        ) -> Outcome {
            let options = Options {
                paths: path.into_iter().map(str::to_owned).collect(),
                restore_index,
                ..with(edits)
            };
            let target = Target::Checkpoint(Selector::Id(id.to_owned()));
            outcome(rollback::rollback(&self.0, &target, &options))
        }

        /// Reverts the last restore.
        pub fn undo(&self, edits: Edits) -> Outcome {
            outcome(rollback::undo(&self.0, &with(edits), false))
        }

        /// Does again what was reverted.
        pub fn redo(&self, edits: Edits) -> Outcome {
            outcome(rollback::redo(&self.0, &with(edits)))
        }
    }

    fn with(edits: Edits) -> Options {
        Options {
            edits,
            ..Options::default()
        }
    }

    fn outcome(restored: Result<Restore, Error>) -> Outcome {
        match restored {
            Ok(restore) if restore.changed => {
                let result = restore.result;
                assert!(result.verified && result.success, "{result:?}");
                Outcome::Changed
            }
            Ok(_) => Outcome::Unchanged,
            Err(error) if error.kind == ErrorKind::Conflicts => Outcome::Conflicts,
            Err(error) if error.kind == ErrorKind::HandEdits => Outcome::HandEdits,
            Err(error) => panic!("{error:?}"),
        }
    }
}

pub mod git {
    pub use crate::engine::record::stored::format_trailers;
    pub use crate::git::Error;
    pub use crate::git::Repo;
    pub use crate::git::Result;
    pub use crate::git::WorktreeLock;
    pub use crate::git::capture::Capture;
    pub use crate::git::checkpoint::CheckpointParts;
    pub use crate::git::checkpoint::MemoryFile;
    pub use crate::git::checkpoint::StoredCheckpoint;
    pub use crate::git::checkpoint::Unbundled;
    pub use crate::git::checkpoint::write_checkpoint;
    pub use crate::git::prune::Discarded;
    pub use crate::git::remote::Answer;
    pub use crate::git::remote::Examined;
    pub use crate::git::remote::Filter;
    pub use crate::git::remote::Limits;
    pub use crate::git::remote::Missed;
    pub use crate::git::remote::NewState;
    pub use crate::git::remote::Outgoing;
    pub use crate::git::remote::Remote;
    pub use crate::git::repo::CheckpointRef;
    pub use crate::git::repo::resolve;
    pub use crate::git::restore::Expect;
    pub use crate::git::restore::RestoreJournal;
    pub use crate::git::restore::Restored;
    pub use crate::git::restore::Verified;
    pub use crate::git::tree::Objects;
    pub use crate::git::tree::Seen;
    pub use crate::git::tree::TreeIgnores;
    pub use crate::git::tree::TreeLookup;
}

pub mod model {
    pub use crate::model::agent_record::AgentKind;
    pub use crate::model::agent_record::is_session_id;
    pub use crate::model::event::EVENT_SCHEMA;
    pub use crate::model::event::Event;
    pub use crate::model::event::EventSource;
    pub use crate::model::event::Payload;
    pub use crate::model::failure::Cause;
    pub use crate::model::failure::Failure;
    pub use crate::model::failure::FailureEvidence;
    pub use crate::model::feedback::CheckKind;
    pub use crate::model::hook::HookAgent;
    pub use crate::model::hook::HookEvent;
    pub use crate::model::hook::Moment;
    pub use crate::model::hook::ToolCall;
    pub use crate::model::import::ImportKind;
    pub use crate::model::manifest::CaptureRules;
    pub use crate::model::manifest::Change;
    pub use crate::model::manifest::ChangeType;
    pub use crate::model::manifest::Entry;
    pub use crate::model::manifest::EntryKind;
    pub use crate::model::manifest::Head;
    pub use crate::model::manifest::ObjectId;
    pub use crate::model::manifest::Snapshot;
    pub use crate::model::path::FolderId;
    pub use crate::model::path::PathReason;
    pub use crate::model::path::RepoPath;
    pub use crate::model::run::Run;
    pub use crate::model::run::RunKey;
    pub use crate::model::run::RunSpec;
    pub use crate::model::selector::Selector;
    pub use crate::model::state::State;
    pub use crate::model::time::Timestamp;
}

pub mod policy {
    pub use crate::policy::checkpoint_events::masked_payload;
    pub use crate::policy::classify::classify;
    pub use crate::policy::hook::{ToolCallRisk, occasion};
    pub use crate::policy::import::ImportInput;
    pub use crate::policy::import::Part;
    pub use crate::policy::import::Problem;
    pub use crate::policy::import::is_known_history;
    pub use crate::policy::import::read;
    pub use crate::policy::import::recognise;
    pub use crate::policy::remote::Names;
    pub use crate::policy::remote::Places;
    pub use crate::policy::remote::sha256;
    pub use crate::policy::restore::{
        Baseline, Edits, PlanInput, PlannedWrite, RestorePlan, Selection, plan,
    };
    pub use crate::policy::retry::retry_status;
    pub use crate::policy::secrets::redact;
    pub use crate::policy::settings::RetrySettings;
}

pub mod process {
    pub use crate::process::Exit;
    pub use crate::process::GroupEnd;
    pub use crate::process::Interrupts;
    pub use crate::process::Keep;
    pub use crate::process::ProcessId;
    pub use crate::process::Program;
    pub use crate::process::Show;
    pub use crate::process::SpawnErrorKind;
    pub use crate::process::Supervised;
}

pub mod store {
    pub use crate::store::NewEvent;
    pub use crate::store::Store;
    pub use crate::store::StoreError;
    pub use crate::store::salvage;
    pub use crate::store::views::active_checkpoint;
    pub use crate::store::views::attempt_view;
    pub use crate::store::views::battle;
    pub use crate::store::views::encode;
    pub use crate::store::views::lane_records;
    pub use crate::store::views::recovery_state;
}
