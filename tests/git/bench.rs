//! A repository in a temp folder, and the steps of a checkpoint and a rollback as the engine takes them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use recover::testing::git::Capture;
use recover::testing::git::CheckpointRef;
use recover::testing::git::Discarded;
use recover::testing::git::{CheckpointParts, MemoryFile, StoredCheckpoint, write_checkpoint};
use recover::testing::git::{Error, Repo, WorktreeLock};
use recover::testing::git::{Expect, Restored};
use recover::testing::git::{TreeIgnores, TreeLookup};
use recover::testing::model::CaptureRules;
use recover::testing::model::RepoPath;
use recover::testing::model::Timestamp;
use recover::testing::model::{ObjectId, Snapshot};
use recover::testing::policy::Selection;
use recover::testing::policy::{Baseline, Edits, PlanInput, RestorePlan, plan};

pub struct Bench {
    pub folder: tempfile::TempDir,
    pub root: PathBuf,
    pub rules: CaptureRules,
    count: std::cell::Cell<u32>,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        fs::create_dir(&root).unwrap();
        let bench = Self {
            folder,
            root,
            rules: CaptureRules::default(),
            count: std::cell::Cell::new(0),
        };
        bench.git(&["init", "-q", "-b", "main"]);
        for (key, value) in [
            ("user.name", "A"),
            ("user.email", "a@b"),
            ("core.excludesFile", "/dev/null"),
        ] {
            bench.git(&["config", key, value]);
        }
        bench
    }

    /// The repository of another bench, from another process.
    pub fn at(root: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            folder,
            root,
            rules: CaptureRules::default(),
            count: std::cell::Cell::new(std::process::id() * 100),
        }
    }

    pub fn with_commit() -> Self {
        let bench = Self::new();
        bench.write("base", "base\n");
        bench.commit("base");
        bench
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// A merge that stopped at a conflict in a file.
    pub fn merge_in_conflict(&self, path: &str) {
        self.git(&["checkout", "-q", "-b", "other"]);
        self.write(path, "other\n");
        self.commit("other");
        self.git(&["checkout", "-q", "main"]);
        self.write(path, "main\n");
        self.commit("main");
        assert!(Self::git_in(&self.root, &["merge", "other"]).is_err());
    }

    pub fn git_in(folder: &Path, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new("git");
        command.current_dir(folder).args(args);
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            command.env_remove(name);
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.output().context("git does not start")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!(
                "git {args:?}: {}{text}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(text)
    }

    pub fn git(&self, args: &[&str]) -> String {
        Self::git_in(&self.root, args).unwrap()
    }

    pub fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root.join(OsStr::from_bytes(path.as_ref()))
    }

    pub fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap())
            .with_context(|| format!("make way to {}", path.display()))
            .unwrap();
        fs::write(&path, content)
            .with_context(|| format!("write {}", path.display()))
            .unwrap();
    }

    pub fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn read(&self, path: impl AsRef<[u8]>) -> Vec<u8> {
        let path = self.path(path);
        fs::read(&path)
            .with_context(|| format!("read {}", path.display()))
            .unwrap()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    pub fn repo(&self) -> Repo {
        Repo::discover(&self.root, None).unwrap()
    }

    pub fn lock(repo: &Repo) -> WorktreeLock {
        WorktreeLock::acquire(repo, Duration::from_secs(5)).unwrap()
    }

    pub fn try_capture(&self) -> Result<Capture, Error> {
        let repo = self.repo();
        repo.capture(&Self::lock(&repo), &self.rules, &BTreeSet::new())
    }

    pub fn capture(&self) -> Capture {
        self.try_capture().unwrap()
    }

    /// Removes the references of checkpoints.
    pub fn remove_refs(&self, gone: &[ObjectId]) {
        let repo = self.repo();
        let (refs, _) = repo.list_refs().unwrap();
        let names: Vec<_> = refs
            .into_iter()
            .filter(|found| gone.contains(&found.commit))
            .map(|found| found.name)
            .collect();
        assert_eq!(names.len(), gone.len());
        repo.delete_refs(&Self::lock(&repo), &names).unwrap();
    }

    /// Removes the objects that only these held, whose references are gone, once no capture is under way.
    pub fn discard(&self, gone: &[ObjectId]) -> Discarded {
        let repo = self.repo();
        let lock = Self::lock(&repo);
        // Until it runs its program, a process that another test starts holds the locks of captures that are over.
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let done = repo.discard_objects(&lock, gone);
            if done.left.as_deref() != Some("a capture is under way") || Instant::now() > end {
                return done;
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Removes checkpoints, their references first.
    pub fn prune(&self, gone: &[ObjectId]) -> Discarded {
        self.remove_refs(gone);
        let done = self.discard(gone);
        self.fsck();
        done
    }

    /// Takes a checkpoint and sets its reference.
    pub fn checkpoint(&self) -> StoredCheckpoint {
        self.checkpoint_of(&[], &BTreeSet::new())
    }

    pub fn checkpoint_of(
        &self,
        memory: &[MemoryFile],
        also: &BTreeSet<RepoPath>,
    ) -> StoredCheckpoint {
        let repo = self.repo();
        let lock = Self::lock(&repo);
        let captured = repo.capture(&lock, &self.rules, also).unwrap();
        let message = recover::testing::git::format_trailers("a checkpoint", &[("Id", "x")]);
        let at = Timestamp::from_millis(1_700_000_000_000);
        let parts = CheckpointParts {
            memory,
            events_jsonl: b"{}\n",
            copies: None,
            message: &message,
            at,
        };
        let commit = write_checkpoint(&repo, &captured, &parts).unwrap();
        // A process that was killed may have left one of the name.
        let name = loop {
            self.count.set(self.count.get() + 1);
            let name =
                CheckpointRef::name_of(&"run".into(), &format!("ckpt-{}", self.count.get()).into());
            if !repo.ref_exists(&name) {
                break name;
            }
        };
        repo.set_ref(&lock, &name, &commit).unwrap();
        captured.write_cache(&name, &commit);
        let stored = repo.load_checkpoint(&commit).unwrap();
        let snapshot = stored.snapshot(&repo).unwrap();
        assert_eq!(
            snapshot,
            captured.snapshot().unwrap(),
            "what is stored is what was captured"
        );
        assert!(stored.verify(&repo).unwrap().is_empty());
        stored
    }

    /// Restores a checkpoint as a rollback does. Returns the safety checkpoint, the plan and what was done.
    pub fn restore(
        &self,
        target: &StoredCheckpoint,
    ) -> Result<(StoredCheckpoint, RestorePlan, Restored), Error> {
        self.restore_with(target, &Selection::all(), &mut |_, _| {})
    }

    /// The same; `meanwhile` is called between the plan and its execution.
    pub fn restore_with(
        &self,
        target: &StoredCheckpoint,
        selection: &Selection,
        meanwhile: &mut dyn FnMut(&RestorePlan, &WorktreeLock),
    ) -> Result<(StoredCheckpoint, RestorePlan, Restored), Error> {
        let repo = self.repo();
        let wanted = target.snapshot(&repo)?;
        let also: BTreeSet<RepoPath> = wanted.entries.keys().cloned().collect();
        let safety = self.checkpoint_of(&[], &also);
        let lock = Self::lock(&repo);
        let now = safety.snapshot(&repo)?;
        let lookup = TreeLookup::stored(&repo)?;
        let sides = [&safety, target]
            .map(|stored| TreeIgnores::new(&repo, &lookup, stored.view()).unwrap());
        let ignored = |path: &RepoPath, is_folder: bool| {
            sides.iter().any(|side| side.has(path, is_folder).unwrap())
        };
        let plan_of = |now: &Snapshot, target: &Snapshot| {
            plan(&PlanInput {
                now,
                target,
                baseline: &|_| Baseline::Unknown,
                selection,
                ignored: &ignored,
                left_out: &repo.left_out(&self.rules),
                is_output: &|_| false,
                edits: Edits::Discard,
            })
        };
        let planned = plan_of(&now, &wanted);
        let (few_now, few_wanted) = lookup.diff(safety.view(), target.view())?;
        assert_eq!(
            plan_of(&few_now, &few_wanted),
            planned,
            "what is the same on both sides makes no difference"
        );
        meanwhile(&planned, &lock);
        let done = repo.execute_restore(&lock, &planned, Expect::Captured, &|| false)?;
        assert_eq!(repo.verify_restore(&planned, &done)?.differing, []);
        Ok((safety, planned, done))
    }

    pub fn fsck(&self) {
        let report = self.git(&["fsck", "--full", "--strict", "--no-dangling"]);
        assert_eq!(report, "", "fsck");
    }
}

/// The tree id as git's own program makes it from a listing; for comparisons.
pub fn entries(bench: &Bench, commit: &ObjectId) -> String {
    bench.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", &commit.0])
}
