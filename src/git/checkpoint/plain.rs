//! Finds the blobs that git itself would not store as they are.
//! A filter of the attributes (git-crypt, transcrypt) encrypts them first. A checkpoint holds the bytes of the work tree, so
//! they must not leave the machine.
//!
//! No filter is run to find that out: a path with a `filter` attribute other than `lfs` counts, unless its blob is the
//! index's.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use git2::Oid;

use crate::git::base::{EMPTY_BLOB, Error, Result, TREE, oid_of, parse_oid};
use crate::git::odb::trees::{self, child};
use crate::git::odb::{Database, Tree};
use crate::git::repo::repository::Repo;
use crate::git::worktree::ignore_rules::Rules;
use crate::git::worktree::reading::{ATTRIBUTES, outside_files};
use crate::model::{ObjectId, RepoPath};

/// A folder of trees in a trap may go on for ever.
const MAX_DEPTH: usize = 4096;

/// The trees of one moment.
#[derive(Clone, Copy, Debug)]
pub(in crate::git) struct Moment {
    /// HEAD's.
    pub base: Option<Oid>,
    /// The index's.
    pub index: Option<Oid>,
    /// The work tree's.
    pub files: Oid,
}

impl Repo {
    /// The blobs of these checkpoints that git would convert before it stores them, by the attributes of all of them. One that
    /// cannot be read is passed over.
    pub(crate) fn plain_blobs(&self, checkpoints: &[&ObjectId]) -> Result<BTreeSet<ObjectId>> {
        let moment = |commit: &&&ObjectId| -> Result<Moment> {
            let stored = self.load_checkpoint(commit)?;
            let base = oid_of(stored.manifest.head.commit.as_ref())?;
            Ok(Moment {
                base: base.and_then(|base| Some(self.inner.find_commit(base).ok()?.tree_id())),
                index: oid_of(stored.index_tree.as_ref())?,
                files: parse_oid(&stored.tree)?,
            })
        };
        let moments: Vec<Moment> = checkpoints
            .iter()
            .filter_map(|commit| moment(&commit).ok())
            .collect();
        let plain = plain_of(Some(self), &Database::open(self)?, &moments)?;
        Ok(plain
            .into_iter()
            .map(|oid| ObjectId(oid.to_string()))
            .collect())
    }
}

/// The same for trees; `repo` where its attribute files outside the trees count.
pub(in crate::git) fn plain_of(
    repo: Option<&Repo>,
    database: &Database<'_>,
    moments: &[Moment],
) -> Result<HashSet<Oid>> {
    let mut attributes = Attributes::of(repo)?;
    let roots = moments
        .iter()
        .flat_map(|moment| [moment.base, moment.index, Some(moment.files)])
        .flatten();
    for root in roots.collect::<BTreeSet<_>>() {
        attributes.add(database, root)?;
    }
    let mut plain = HashSet::new();
    if !attributes.has_filter {
        return Ok(plain);
    }
    let empty = Oid::from_str(EMPTY_BLOB).map_err(Error::git("read an object's id"))?;
    for moment in moments {
        let index = moment
            .index
            .map(|index| trees::read(database, index))
            .transpose()?
            .unwrap_or_default();
        for (path, (mode, oid)) in trees::read(database, moment.files)? {
            let is_stored =
                oid == empty || index.get(&path).is_some_and(|(_, known)| *known == oid);
            if mode & 0o170_000 == 0o100_000
                && !is_stored
                && !plain.contains(&oid)
                && attributes.filters(&path)
            {
                plain.insert(oid);
            }
        }
    }
    Ok(plain)
}

/// Which paths have a filter, in any of several trees. A set of attribute files is read as one of ignore files, with the
/// lines that set a filter as patterns, and those that take it away as negated ones: both are matched alike.
struct Attributes {
    /// The rules of the folders that have attributes of their own, and of the top; one for each tree that differs.
    trees: Vec<BTreeMap<RepoPath, Rules>>,
    /// What holds for all of them, unless a tree says otherwise.
    outside: Rules,
    /// What holds whatever a tree says.
    info: Rules,
    macros: Macros,
    has_filter: bool,
    /// Trees without attributes in or below them.
    barren: HashSet<Oid>,
}

/// What the attributes that `[attr]` defines say of filters.
type Macros = BTreeMap<Vec<u8>, bool>;

impl Attributes {
    fn of(repo: Option<&Repo>) -> Result<Self> {
        let none = Rules::none(false)?;
        let mut all = Self {
            trees: Vec::new(),
            outside: none.clone(),
            info: none,
            macros: Macros::new(),
            has_filter: false,
            barren: HashSet::new(),
        };
        let Some(repo) = repo else { return Ok(all) };
        let files = outside_files(repo)?;
        for text in &files {
            all.macros.extend(macros_of(text));
        }
        let [system, own, info] = files.map(|text: Vec<u8>| as_patterns(&text, &all.macros));
        all.has_filter = [&system, &own, &info]
            .iter()
            .any(|patterns| !patterns.is_empty());
        let top = RepoPath::default();
        all.outside = all.outside.with(&top, system)?.with(&top, own)?;
        all.info = all.info.with(&top, info)?;
        Ok(all)
    }

    fn add(&mut self, database: &Database<'_>, root: Oid) -> Result<()> {
        let mut macros = self.macros.clone();
        if let Some(top) = Tree::read(database, root)?
            .find(ATTRIBUTES)
            .filter(|entry| entry.mode != TREE)
        {
            macros.extend(macros_of(&database.blob(top.oid)?));
        }
        let mut rules = BTreeMap::from([(RepoPath::default(), self.outside.clone())]);
        self.collect(
            database,
            (&RepoPath::default(), root),
            &macros,
            &self.outside.clone(),
            &mut rules,
        )?;
        let ids = |one: &BTreeMap<RepoPath, Rules>| {
            one.iter()
                .map(|(path, rules)| (path.clone(), rules.id()))
                .collect::<Vec<_>>()
        };
        if !self.trees.iter().any(|known| ids(known) == ids(&rules)) {
            self.trees.push(rules);
        }
        Ok(())
    }

    /// The rules in and below a folder; `false` where nothing there has any.
    fn collect(
        &mut self,
        database: &Database<'_>,
        (folder, tree): (&RepoPath, Oid),
        macros: &Macros,
        above: &Rules,
        rules: &mut BTreeMap<RepoPath, Rules>,
    ) -> Result<bool> {
        if self.barren.contains(&tree) {
            return Ok(false);
        }
        if folder.ancestors().count() > MAX_DEPTH {
            return Err(Error::corrupt(format!("tree {tree} is nested too deeply")));
        }
        let entries = Tree::read(database, tree)?;
        let file = entries.find(ATTRIBUTES).filter(|entry| entry.mode != TREE);
        let mut own = above.clone();
        if let Some(file) = &file {
            let patterns = as_patterns(&database.blob(file.oid)?, macros);
            self.has_filter |= !patterns.is_empty();
            own = own.with(folder, patterns)?;
            rules.insert(folder.clone(), own.clone());
        }
        let mut has_any = file.is_some();
        for entry in entries.entries().filter(|entry| entry.mode == TREE) {
            has_any |= self.collect(
                database,
                (&child(folder, entry.name), entry.oid),
                macros,
                &own,
                rules,
            )?;
        }
        if !has_any {
            self.barren.insert(tree);
        }
        Ok(has_any)
    }

    fn filters(&self, path: &RepoPath) -> bool {
        let folders: Vec<RepoPath> = path.ancestors().collect();
        let top = RepoPath::default();
        let of_tree = |rules: &BTreeMap<RepoPath, Rules>| {
            let nearest = folders
                .iter()
                .rev()
                .chain([&top])
                .find_map(|folder| rules.get(folder));
            nearest.is_some_and(|rules| rules.matches(path.as_bytes(), false))
        };
        self.info.matches(path.as_bytes(), false) || self.trees.iter().any(of_tree)
    }
}

/// The lines of an attribute file that say something: the pattern, or the name that `[attr]` defines, and the attributes.
fn lines(text: &[u8]) -> impl Iterator<Item = (Vec<u8>, impl Iterator<Item = &[u8]>)> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines
        .filter(|line| !matches!(line.first(), None | Some(b'#')))
        .map(|line| {
            let (pattern, rest) = if let Some(quoted) = line.strip_prefix(b"\"") {
                unquoted(quoted)
            } else {
                let end = line
                    .iter()
                    .position(u8::is_ascii_whitespace)
                    .unwrap_or(line.len());
                (line[..end].to_vec(), &line[end..])
            };
            (
                pattern,
                rest.split(u8::is_ascii_whitespace)
                    .filter(|word| !word.is_empty()),
            )
        })
}

/// What stands between quotes, as C writes it, and what follows them.
fn unquoted(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        match (byte, text.get(at)) {
            (b'"', _) => return (out, &text[at..]),
            (b'\\', Some(digit @ b'0'..=b'7')) => {
                let digits = text[at..]
                    .iter()
                    .take(3)
                    .take_while(|byte| matches!(byte, b'0'..=b'7'));
                let digits: Vec<u8> = digits.copied().collect();
                at += digits.len();
                let value = digits
                    .iter()
                    .fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
                out.push(u8::try_from(value).unwrap_or(*digit));
            }
            (b'\\', Some(escaped)) => {
                at += 1;
                out.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                });
            }
            (byte, _) => out.push(*byte),
        }
    }
    (out, &[])
}

/// What these attributes say of a filter that converts: that there is one, that there is none, or nothing.
fn has_filter<'t>(words: impl Iterator<Item = &'t [u8]>, macros: &Macros) -> Option<bool> {
    let said = words.filter_map(|word| match word {
        b"filter" | b"-filter" | b"!filter" | b"filter=" | b"filter=lfs" => Some(false),
        word if word.starts_with(b"filter=") => Some(true),
        word => macros.get(word).copied(),
    });
    said.last()
}

fn macros_of(text: &[u8]) -> Macros {
    let known = Macros::new();
    let defined = lines(text).filter_map(|(name, words)| {
        Some((
            name.strip_prefix(b"[attr]")?.to_vec(),
            has_filter(words, &known)?,
        ))
    });
    defined.collect()
}

/// An attribute file as an ignore file of what has a filter; empty where it says nothing of filters.
fn as_patterns(text: &[u8], macros: &Macros) -> Vec<u8> {
    let mut out = Vec::new();
    // A pattern of attributes cannot be negated.
    for (pattern, words) in lines(text).filter(|(pattern, _)| !pattern.starts_with(b"!")) {
        let Some(is_filtered) =
            has_filter(words, macros).filter(|_| !pattern.starts_with(b"[attr]"))
        else {
            continue;
        };
        let (not, escape): (&[u8], &[u8]) = (
            if is_filtered { b"" } else { b"!" },
            if pattern.starts_with(b"#") {
                b"\\"
            } else {
                b""
            },
        );
        out.extend([not, escape, &pattern, b"\n"].concat());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_filters_become_patterns() {
        let text =
            b"# a\n*.txt text\nvault/** filter=crypt diff=crypt\nvault/open !filter\n*.bin filter=lfs diff=lfs\n\
                     [attr]secret filter=crypt -text\n*.key secret\n\"a\\040b\" filter=x\n!no filter=x\n*.c -secret\n";
        let patterns = as_patterns(text, &macros_of(text));
        assert_eq!(
            String::from_utf8_lossy(&patterns),
            "vault/**\n!vault/open\n!*.bin\n*.key\na b\n",
            "as an ignore file"
        );
        assert!(as_patterns(b"* text=auto\n*.png binary\n", &Macros::new()).is_empty());
    }
}
