//! Random trees, random changes of them, random states of the index.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fastrand::Rng;

use crate::oracle::{Name, Node, walk};

/// What git and `recover` keep beside the tree.
pub const ASIDE: [&str; 2] = [".git", ".ultraplan"];

/// Lines that ignore rules are made of.
const RULES: [&str; 8] = [
    "*.ign",
    "/cache/",
    "skip",
    "!keep.ign",
    "sub/",
    "a/out",
    "*.o",
    "!/skip",
];

const MODES: [u32; 8] = [0o644, 0o600, 0o755, 0o700, 0o664, 0o640, 0o444, 0o400];
const DIR_MODES: [u32; 5] = [0o755, 0o700, 0o775, 0o750, 0o711];

/// Names that paths of one case are made of: few, so that changes meet each other.
pub fn names(rng: &mut Rng) -> Vec<Name> {
    let long = vec![b'x'; 255];
    let pool: [&[u8]; 22] = [
        b"a",
        b"b",
        b"a",
        b"src",
        b"sp ace",
        b"new\nline",
        b"\xff\xfe",
        &long,
        "\u{e9}".as_bytes(),
        "e\u{301}".as_bytes(),
        b"keep.ign",
        b"z.ign",
        b"skip",
        b"cache",
        b"sub",
        b"out",
        b"m.o",
        b".hidden",
        b"-dash",
        b"back\\slash",
        b"*",
        b"#h",
    ];
    (0..rng.usize(3..8))
        .map(|_| pool[rng.usize(..pool.len())].to_vec())
        .collect()
}

/// A random tree and what changes it.
pub struct Maker<'a> {
    pub root: &'a Path,
    pub names: Vec<Name>,
    pub rng: Rng,
}

impl Maker<'_> {
    fn path(&mut self) -> Name {
        let depth = 1 + self.rng.usize(..3);
        let parts: Vec<Name> = (0..depth)
            .map(|_| self.names[self.rng.usize(..self.names.len())].clone())
            .collect();
        parts.join(&b'/')
    }

    fn existing(&mut self) -> Option<(PathBuf, Node)> {
        let world = walk(self.root, &ASIDE);
        let at = (!world.is_empty()).then(|| self.rng.usize(..world.len()))?;
        world
            .into_iter()
            .nth(at)
            .map(|(path, node)| (at_root(self.root, &path), node))
    }

    pub fn content(&mut self) -> Vec<u8> {
        let length = [0, 1, 4, 4, 40, 300, 9000][self.rng.usize(..7)];
        let mut content = vec![b'x'; length];
        for _ in 0..length.min(6) {
            let at = self.rng.usize(..length);
            content[at] = self.rng.u8(..);
        }
        content
    }

    /// Makes room for a path and its folders.
    fn clear(&self, path: &Path) {
        for place in path.ancestors().take_while(|place| *place != self.root) {
            match place.symlink_metadata() {
                Ok(found) if found.is_dir() && place == path => fs::remove_dir_all(place).unwrap(),
                Ok(found) if !found.is_dir() => fs::remove_file(place).unwrap(),
                _ => {}
            }
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
    }

    fn chmod(&mut self, path: &Path, is_dir: bool) {
        let modes: &[u32] = if is_dir { &DIR_MODES } else { &MODES };
        let mode = modes[self.rng.usize(..modes.len())];
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn write(&mut self, path: &Path) {
        self.clear(path);
        fs::write(path, self.content()).unwrap();
        self.chmod(path, false);
    }

    /// A change of the same size, with the time set back: only the content tells.
    fn sneak(&mut self, path: &Path, content: &[u8]) {
        let mut changed = content.to_vec();
        let at = self.rng.usize(..changed.len());
        changed[at] ^= 1;
        let before = path.metadata().unwrap().modified().unwrap();
        let mode = path.metadata().unwrap().permissions();
        fs::remove_file(path).unwrap();
        fs::write(path, changed).unwrap();
        fs::set_permissions(path, mode).unwrap();
        let time = if self.rng.bool() {
            before
        } else {
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
        };
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }

    fn ignore_rules(&mut self, path: &Path) {
        self.clear(path);
        let lines: Vec<&str> = (0..self.rng.usize(..4))
            .map(|_| RULES[self.rng.usize(..RULES.len())])
            .collect();
        fs::write(path, lines.join("\n")).unwrap();
    }

    /// One change, of any kind.
    pub fn change(&mut self) {
        let path = self.path();
        let path = at_root(self.root, &path);
        let existing = self.existing();
        match (self.rng.usize(..16), existing) {
            (0..=5, _) | (_, None) => self.write(&path),
            (6, Some((old, node))) => {
                if node.is_dir() {
                    fs::remove_dir_all(old).unwrap();
                } else {
                    fs::remove_file(old).unwrap();
                }
            }
            (7, _) => {
                self.clear(&path);
                fs::create_dir(&path).unwrap();
                self.chmod(&path, true);
            }
            (8, _) => {
                self.clear(&path);
                let target: &[u8] =
                    [b"a".as_slice(), b"/etc", b"nowhere", b"..", b"\xfe\n"][self.rng.usize(..5)];
                symlink(std::ffi::OsStr::from_bytes(target), &path).unwrap();
            }
            (9 | 10, Some((old, node))) if !matches!(node, Node::Link(_)) => {
                self.chmod(&old, node.is_dir());
            }
            (11 | 12, Some((old, _))) if !path.starts_with(&old) && !old.starts_with(&path) => {
                self.clear(&path);
                // Making room may have removed it.
                let _ = fs::rename(old, &path);
            }
            (13, Some((old, Node::File(_, content)))) if !content.is_empty() => {
                self.sneak(&old, &content);
            }
            (14, _) => self.ignore_rules(&at_root(self.root, b".gitignore")),
            // A file where a folder was, a folder where a file was.
            (15, Some((old, Node::Dir(_)))) => self.write(&old),
            (15, Some((old, _))) => self.write(&old.join("a")),
            _ => self.write(&path),
        }
    }

    /// Rules that no checkpoint holds.
    pub fn exclude(&mut self) -> String {
        self.ignore_rules(&self.root.join(".git/info/exclude"));
        fs::read_to_string(self.root.join(".git/info/exclude")).unwrap()
    }

    /// A random state of the index: staged, other content staged, removed, intent to add, flags, conflicts.
    pub fn stage(&mut self) {
        let repo = git2::Repository::open(self.root).unwrap();
        let mut index = repo.index().unwrap();
        for _ in 0..self.rng.usize(..5) {
            let existing = self.existing().filter(|_| self.rng.u8(..4) > 0);
            let (path, node) = match existing {
                Some((path, node)) => (
                    path.strip_prefix(self.root)
                        .unwrap()
                        .as_os_str()
                        .as_bytes()
                        .to_vec(),
                    node,
                ),
                None => (self.path(), Node::File(0o644, self.content())),
            };
            let (mode, content) = match node {
                Node::File(mode, content) => (
                    if mode & 0o100 == 0 {
                        0o100_644
                    } else {
                        0o100_755
                    },
                    content,
                ),
                Node::Link(target) => (0o120_000, target),
                Node::Dir(_) => continue,
            };
            let kind = self.rng.usize(..10);
            let content = if kind < 3 { content } else { self.content() };
            let entry = |flags: u16, flags_extended: u16, content: &[u8]| git2::IndexEntry {
                ctime: git2::IndexTime::new(0, 0),
                mtime: git2::IndexTime::new(0, 0),
                dev: 0,
                ino: 0,
                mode,
                uid: 0,
                gid: 0,
                file_size: 0,
                id: repo.blob(content).unwrap(),
                flags,
                flags_extended,
                path: path.clone(),
            };
            let entries = match kind {
                0..=4 => vec![entry(0, 0, &content)],
                5 => vec![entry(0x4000, 1 << 13, b"")],
                6 => vec![entry(0x8000, 0, &content)],
                7 => vec![entry(0x4000, 1 << 14, &content)],
                8 => (1..4_u16)
                    .map(|stage| {
                        entry(
                            stage << 12,
                            0,
                            &[&content[..], &stage.to_be_bytes()].concat(),
                        )
                    })
                    .collect(),
                _ => Vec::new(),
            };
            // An index holds a path once or in conflict, and nothing below a file.
            let place = Path::new(std::ffi::OsStr::from_bytes(&path));
            for stage in 0..4 {
                for place in place.ancestors().filter(|place| *place != Path::new("")) {
                    let _ = index.remove(place, stage);
                }
                let _ = index.remove_dir(place, stage);
            }
            for entry in entries {
                // Paths that git's own index does not take are left out.
                let _ = index.add(&entry);
            }
        }
        index.write().unwrap();
    }
}

fn at_root(root: &Path, path: &[u8]) -> PathBuf {
    root.join(std::ffi::OsStr::from_bytes(path))
}
