//! Any bytes as git's index, with a checksum that fits: what a capture takes from it is what git reads in it.
//! And any bytes as the cache of a capture: the next one says the same as without.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fastrand::Rng;
use git2::{ObjectType, Oid};
use recover::testing::git::Capture;
use recover::testing::git::{Repo, WorktreeLock};
use recover::testing::model::CaptureRules;
use sha1::{Digest as _, Sha1};
use tempfile::TempDir;

use crate::driver::{Target, folder, kind_of, seen};

/// How an index begins.
const MAGIC: &[u8] = b"DIRC";

pub struct Index {
    folder: TempDir,
    repo: Repo,
    lock: WorktreeLock,
    /// The cache that a capture left, and where.
    cache: (PathBuf, Vec<u8>),
    /// The index that goes with the work tree, and the trees of a capture then.
    whole: Vec<u8>,
    trees: (String, Option<String>),
}

/// An entry as `git ls-files --stage --debug` shows it: its mode, its object, its stage, its flags.
type Entry = (u32, String, u8, u32);

impl Index {
    pub fn new() -> Self {
        let folder = folder();
        let root = fs::canonicalize(folder.path()).unwrap();
        git(&root, &["init", "-q", "-b", "main", "--template="]);
        for (path, content) in [("a", "a\n"), ("d/b", "b\n"), ("d/e/c", "c\n")] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), content).unwrap();
        }
        git(&root, &["add", "."]);
        // The blobs of the indexes that are read are nowhere: it is no damage where a server has promised them.
        git(&root, &["config", "remote.origin.promisor", "true"]);
        let repo = Repo::discover(&root, None).unwrap();
        let lock = WorktreeLock::acquire(&repo, Duration::from_secs(5)).unwrap();
        let whole = fs::read(root.join(".git/index")).unwrap();
        let nothing = (PathBuf::new(), Vec::new());
        let mut target = Self {
            folder,
            repo,
            lock,
            cache: nothing,
            whole,
            trees: (String::new(), None),
        };
        let taken = target.capture().unwrap();
        target.trees = trees(&taken);
        taken.keep_objects().unwrap();
        // A cache counts as long as a reference holds its checkpoint.
        let commit = git(&root, &["commit-tree", "-m", "x", &target.trees.0]);
        let commit = commit.trim();
        git(&root, &["update-ref", "refs/recover/r/c", commit]);
        taken.write_cache(
            "refs/recover/r/c",
            &recover::testing::model::ObjectId(commit.to_owned()),
        );
        let cache = root.join(".git/recover/index-cache");
        let content = fs::read(&cache).unwrap();
        target.cache = (cache, content);
        target
    }

    fn capture(&self) -> recover::testing::git::Result<Capture> {
        self.repo
            .capture(&self.lock, &CaptureRules::default(), &BTreeSet::new())
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap()
    }

    /// What git reads in the index; `None` where it cannot, or does not come to an end.
    fn by_git(&self) -> Option<BTreeMap<(Vec<u8>, u8), Entry>> {
        let mut command = command("timeout", &self.root());
        let output = command
            .args(["5", "git", "ls-files", "--stage", "--debug", "-z"])
            .output()
            .unwrap();
        output.status.success().then(|| entries(&output.stdout))
    }

    fn play_index(&self, input: &[u8]) -> u64 {
        fs::write(self.root().join(".git/index"), input).unwrap();
        let taken = match self.capture() {
            Ok(taken) => taken,
            Err(error) => {
                return seen(&kind_of(
                    &error
                        .to_string()
                        .replace(&*self.root().to_string_lossy(), ""),
                ));
            }
        };
        assert_eq!(taken.tree.0, self.trees.0, "the work tree is the same");
        // What these refer to is not in the file.
        if [b"link", b"sdir"]
            .iter()
            .any(|name| memchr::memmem::find(input, *name).is_some())
        {
            return seen(&"split or sparse");
        }
        let Some(entries) = self.by_git() else {
            return seen(&"git does not read it");
        };
        let special = |entry: &Entry| entry.2 > 0 || entry.3 & 0x6000_8000 != 0;
        let expected: BTreeSet<_> = entries
            .iter()
            .filter(|(_, entry)| special(entry))
            .map(|((path, stage), entry)| (path.clone(), *stage, entry.0, entry.1.clone()))
            .collect();
        let found: BTreeSet<_> = taken
            .manifest
            .index_extras
            .iter()
            .map(|one| {
                (
                    one.path.as_bytes().to_vec(),
                    one.stage,
                    one.mode,
                    one.oid.0.clone(),
                )
            })
            .collect();
        assert!(
            expected.is_subset(&found),
            "git: {expected:?}, here: {found:?}"
        );
        let paths = |of: &BTreeSet<(Vec<u8>, u8, u32, String)>| {
            of.iter().map(|one| one.0.clone()).collect()
        };
        let (named, all): (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) = (
            paths(&found),
            entries.keys().map(|(path, _)| path.clone()).collect(),
        );
        assert!(named.is_subset(&all), "git: {all:?}, here: {named:?}");
        if let Some(tree) = tree_of(&entries) {
            assert_eq!(
                taken.index_tree.map(|tree| tree.0),
                Some(tree),
                "{entries:?}"
            );
        }
        seen(&(entries.len(), found.len()))
    }

    fn play_cache(&self, input: &[u8]) -> u64 {
        fs::write(self.root().join(".git/index"), &self.whole).unwrap();
        fs::write(&self.cache.0, input).unwrap();
        let taken = self.capture().unwrap();
        assert_eq!(trees(&taken), self.trees, "as without the cache");
        seen(&(input == self.cache.1, "cache"))
    }
}

fn trees(taken: &Capture) -> (String, Option<String>) {
    (
        taken.tree.0.clone(),
        taken.index_tree.as_ref().map(|tree| tree.0.clone()),
    )
}

fn command(program: &str, root: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        command.env_remove(name);
    }
    command
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "A")
            .env(format!("GIT_{who}_EMAIL"), "a@b");
    }
    command
}

fn git(root: &Path, args: &[&str]) -> String {
    let output = command("git", root).args(args).output().unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Each record is `MODE ID STAGE<tab>PATH<nul>` and five lines about the file, of which the last ends in the flags.
fn entries(listing: &[u8]) -> BTreeMap<(Vec<u8>, u8), Entry> {
    let mut found = BTreeMap::new();
    let mut rest = listing;
    while let Some(tab) = memchr::memchr(b'\t', rest) {
        let head = std::str::from_utf8(&rest[..tab]).unwrap();
        let words: Vec<&str> = head.split(' ').collect();
        let nul = memchr::memchr(0, rest).unwrap();
        let path = rest[tab + 1..nul].to_vec();
        rest = &rest[nul + 1..];
        let mut flags = 0;
        for _ in 0..5 {
            let end = memchr::memchr(b'\n', rest).unwrap();
            let line = std::str::from_utf8(&rest[..end]).unwrap();
            if let Some((_, text)) = line.split_once("flags: ") {
                flags = u32::from_str_radix(text, 16).unwrap();
            }
            rest = &rest[end + 1..];
        }
        let stage = words[2].parse().unwrap();
        let entry = (
            u32::from_str_radix(words[0], 8).unwrap(),
            words[1].to_owned(),
            stage,
            flags,
        );
        found.insert((path, stage), entry);
    }
    found
}

#[derive(Default)]
struct Folder {
    files: BTreeMap<Vec<u8>, (u32, Oid)>,
    folders: BTreeMap<Vec<u8>, Folder>,
}

/// The id of the tree of these entries; `None` where no tree can have them.
fn tree_of(entries: &BTreeMap<(Vec<u8>, u8), Entry>) -> Option<String> {
    let mut top = Folder::default();
    for ((path, stage), (mode, id, _, flags)) in entries {
        let usual = matches!(mode, 0o100_644 | 0o100_755 | 0o120_000 | 0o160_000);
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let odd = |part: &&[u8]| {
            part.is_empty() || matches!(*part, b"." | b"..") || part.eq_ignore_ascii_case(b".git")
        };
        if *stage > 0 || !usual || parts.iter().any(odd) {
            return None;
        }
        if flags & 0x2000_0000 != 0 {
            continue;
        }
        let (name, above) = parts.split_last()?;
        let folder = above.iter().fold(&mut top, |folder, part| {
            folder.folders.entry(part.to_vec()).or_default()
        });
        folder
            .files
            .insert(name.to_vec(), (*mode, Oid::from_str(id).ok()?));
    }
    top.id().map(|id| id.to_string())
}

impl Folder {
    fn id(&self) -> Option<Oid> {
        let mut items: Vec<(Vec<u8>, &[u8], u32, Oid)> = Vec::new();
        for (name, folder) in &self.folders {
            if self.files.contains_key(name) {
                return None;
            }
            items.push(([name, &b"/"[..]].concat(), name, 0o40_000, folder.id()?));
        }
        items.extend(
            self.files
                .iter()
                .map(|(name, (mode, id))| (name.clone(), &name[..], *mode, *id)),
        );
        items.sort_unstable();
        let line = |(_, name, mode, id): &(Vec<u8>, &[u8], u32, Oid)| {
            [format!("{mode:o} ").as_bytes(), name, b"\0", id.as_bytes()].concat()
        };
        let bytes: Vec<u8> = items.iter().flat_map(line).collect();
        Oid::hash_object(ObjectType::Tree, &bytes).ok()
    }
}

impl Target for Index {
    const NAME: &'static str = "index";
    const TOKENS: &'static [&'static [u8]] = &[
        b"DIRC\0\0\0\x02",
        b"DIRC\0\0\0\x03",
        b"DIRC\0\0\0\x04",
        b"TREE\0\0\0\x01",
        b"REUC\0\0\0\0",
        b"link\0\0\0\x14",
        b"sdir\0\0\0\0",
        b"UNTR\0\0\0\0",
        b"EOIE\0\0\0\x18",
        b"IEOT\0\0\0\x04\0\0\0\x01",
        b"xxxx\0\0\0\0",
        b"\0\0\x81\xa4",
        b"\0\0\x81\xed",
        b"\0\0\xa0\0",
        b"\0\0\xe0\0",
        b"\0\0\x40\0",
        b"\x40\0",
        b"\x20\0",
        b"\x10\0",
        b"\x30\x01",
        b"\x80\x01",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0\0\0\0\0",
        b"a/b\0",
        b".git/x",
        b"../",
        b"//",
    ];

    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64> {
        let cache: &[u8] = b"cache:";
        let one = |input: &Vec<u8>| match input.strip_prefix(cache) {
            // Applied to the cache that there is, whose times no file of a corpus can know.
            Some(edits) => {
                let mut bytes = self.cache.1.clone();
                for edit in edits.chunks_exact(4) {
                    let at =
                        usize::from(u16::from_be_bytes([edit[0], edit[1]])) % bytes.len().max(1);
                    match edit[2] % 4 {
                        0 => bytes.truncate(at),
                        1 if at < bytes.len() => drop(bytes.remove(at)),
                        2 => bytes.insert(at.min(bytes.len()), edit[3]),
                        _ if at < bytes.len() => bytes[at] ^= edit[3],
                        _ => {}
                    }
                }
                self.play_cache(&bytes)
            }
            None => self.play_index(input),
        };
        inputs.iter().map(one).collect()
    }

    fn complete(&self, input: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
        let Some(length) = input
            .len()
            .checked_sub(20)
            .filter(|_| input.starts_with(MAGIC))
        else {
            return input;
        };
        let content = &input[..length];
        match rng.u8(..8) {
            0 => input,
            1 => [content, &[0; 20]].concat(),
            _ => [content, &Sha1::digest(content)[..]].concat(),
        }
    }
}
