//! Any bytes as `.gitignore`: what a capture leaves out is what git leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use recover::testing::git::{Repo, WorktreeLock};
use recover::testing::model::CaptureRules;
use recover::testing::model::EntryKind;
use tempfile::TempDir;

use crate::driver::{Target, folder, seen};

/// What lies in each folder that an input holds the rules of.
const FILES: [&[u8]; 44] = [
    b"a",
    b"b",
    b"ab",
    b"A",
    b"a.x",
    b"a.X",
    b".x",
    b"a b",
    b"a ",
    b" a",
    b"a\t",
    b"a\r",
    b"a\\",
    b"\\a",
    b"#a",
    b"!a",
    b"*",
    b"?",
    b"[a]",
    b"[",
    b"]",
    b"{a,b}",
    b"-",
    b"0",
    b"^",
    b"\xff",
    b"\xc3\xa9",
    b"a\x0b",
    b"a:b",
    b"x.log",
    b"x.pyc",
    b".env",
    b"node_modules/a",
    b"node_modules/b/c.js",
    b"target/a",
    b"d/a",
    b"d/b.x",
    b"d/e/a",
    b"d/e/f/a.x",
    b"d/target/b",
    b"D/a",
    b"build/x/y",
    b"a-b/a",
    b"**/a",
];

pub struct Ignored {
    root: PathBuf,
    repo: Repo,
    lock: WorktreeLock,
    _folder: TempDir,
}

type Left = BTreeMap<usize, BTreeSet<Vec<u8>>>;

impl Ignored {
    pub fn new() -> Self {
        let folder = folder();
        let root = fs::canonicalize(folder.path()).unwrap();
        let status = git(&root)
            .args(["init", "-q", "-b", "main", "--template="])
            .status()
            .unwrap();
        assert!(status.success());
        git(&root)
            .args(["config", "core.excludesFile", "/dev/null"])
            .status()
            .unwrap();
        for at in 0..Self::AT_ONCE {
            for file in FILES {
                let path = root.join(at.to_string()).join(OsStr::from_bytes(file));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            }
        }
        let repo = Repo::discover(&root, None).unwrap();
        let lock = WorktreeLock::acquire(&repo, Duration::from_secs(5)).unwrap();
        Self {
            root,
            repo,
            lock,
            _folder: folder,
        }
    }

    /// The files that git takes, by folder.
    fn by_git(&self) -> Left {
        let output = git(&self.root)
            .args(["ls-files", "-z", "-o", "--exclude-standard"])
            .output()
            .unwrap();
        assert!(output.status.success());
        by_folder(
            output
                .stdout
                .split(|byte| *byte == 0)
                .filter(|path| !path.is_empty()),
        )
    }

    /// The files that a capture takes, by folder.
    fn by_capture(&self) -> Left {
        let taken = self
            .repo
            .capture(&self.lock, &CaptureRules::default(), &BTreeSet::new())
            .unwrap();
        let snapshot = taken.snapshot().unwrap();
        let files = snapshot
            .entries
            .iter()
            .filter(|(_, entry)| entry.kind != EntryKind::EmptyDir);
        by_folder(files.map(|(path, _)| path.as_bytes()))
    }
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

fn by_folder<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Left {
    let mut all = Left::new();
    for path in paths {
        let slash = memchr::memchr(b'/', path).unwrap();
        let at = std::str::from_utf8(&path[..slash])
            .unwrap()
            .parse()
            .unwrap();
        all.entry(at)
            .or_default()
            .insert(path[slash + 1..].to_vec());
    }
    all
}

impl Target for Ignored {
    const NAME: &'static str = "ignored";
    const AT_ONCE: usize = 24;
    const LONGEST: usize = 2 << 10;
    const TOKENS: &'static [&'static [u8]] = &[
        b"\n",
        b"\r\n",
        b"\0",
        b"*",
        b"**",
        b"?",
        b"/",
        b"**/",
        b"/**",
        b"/**/",
        b"*/",
        b"!",
        b"!/",
        b"\\",
        b"\\\\",
        b"\\ ",
        b"\\*",
        b"\\!",
        b"\\#",
        b"#",
        b" ",
        b"  ",
        b"\t",
        b"[",
        b"]",
        b"[a]",
        b"[!a]",
        b"[^a]",
        b"[a-c]",
        b"[]-a]",
        b"[b-a]",
        b"[\\]]",
        b"[[:alpha:]]",
        b"[[:upper:]]",
        b"[[:space:]]",
        b"[![:lower:]]",
        b"[[:punct:]]",
        b"[[:nope:]]",
        b"[[:alpha]",
        b"[\x80-\xff]",
        b"{a,b}",
        b"\xef\xbb\xbf",
        b"\xff",
        b"***",
        b"a",
        b"d/",
        b"d/e",
        b"target",
        b"node_modules/",
        b"*.x",
        b".gitignore",
    ];

    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64> {
        for at in 0..Self::AT_ONCE {
            let content = inputs.get(at).map_or(&b""[..], |input| input);
            fs::write(self.root.join(at.to_string()).join(".gitignore"), content).unwrap();
        }
        let (ours, theirs) = (self.by_capture(), self.by_git());
        let nothing = BTreeSet::new();
        let of = |all: &Left, at| {
            all.get(&at)
                .unwrap_or(&nothing)
                .iter()
                .map(|name| name.escape_ascii().to_string())
                .collect()
        };
        let mut left = Vec::new();
        for at in 0..inputs.len() {
            let (ours, theirs): (Vec<String>, Vec<String>) = (of(&ours, at), of(&theirs, at));
            assert_eq!(ours, theirs, "taken here, and by git");
            left.push(seen(&ours));
        }
        left
    }
}
