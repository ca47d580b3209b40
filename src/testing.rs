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
    pub use crate::engine::Context;
    pub use crate::engine::Error;
    pub use crate::engine::ErrorKind;
    pub use crate::engine::base::context::BrokenConfig;
    pub use crate::engine::base::context::Setup;
    pub use crate::engine::base::runs::Naming;
    pub use crate::engine::checkpoint;
    pub use crate::engine::hook::session_run;
    pub use crate::engine::record::storage::Request;
    pub use crate::engine::restore::request::Commits;
    pub use crate::engine::restore::request::Options;
    pub use crate::engine::restore::request::Restore;
    pub use crate::engine::rollback;
    pub use crate::engine::rollback::Target;
    pub use crate::engine::rollback::undo;
}

pub mod git {
    pub use crate::engine::record::trailers::format as format_trailers;
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
    pub use crate::git::remote::NewState;
    pub use crate::git::remote::Outgoing;
    pub use crate::git::remote::Remote;
    pub use crate::git::remote::Update;
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
