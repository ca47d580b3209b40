//! Holds the rule of `src/lib.rs`: which part may know which, read from the sources; and that no two files know each other.
//!
//! Code below a real `#[cfg(test)]` (an item, or the files of a `mod` declared so) is exempt, nothing else is. What a file
//! re-exports (`pub use`) is not its own dependency: who names it depends on the file that it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

/// A top-level module with those it may name.
const LAYERS: [(&str, &[&str]); 13] = [
    ("model", &[]),
    ("policy", &["model"]),
    ("os", &[]),
    ("durable", &["model", "os"]),
    ("config", &["model", "policy", "os", "durable"]),
    ("git", &["model", "policy", "os", "durable"]),
    ("store", &["model", "policy", "os", "durable"]),
    ("process", &["model", "policy", "os", "durable"]),
    ("agent", &["model", "policy", "os", "durable"]),
    ("watch", &["model", "policy", "os", "durable"]),
    (
        "engine",
        &[
            "model", "policy", "os", "durable", "config", "git", "store", "process", "agent",
            "watch",
        ],
    ),
    (
        "cli",
        &[
            "model", "policy", "os", "durable", "config", "git", "store", "process", "agent",
            "watch", "engine",
        ],
    ),
    (
        "testing",
        &[
            "model", "policy", "os", "durable", "config", "git", "store", "process", "agent",
            "watch", "engine", "cli",
        ],
    ),
];

/// What the pure parts do not name: a path that begins so.
const IMPURE_PATHS: [&str; 8] = [
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "std::thread",
    "git2",
    "clap",
    "rustix",
];

/// What the pure parts do not name: these words anywhere.
const CLOCKS: [&str; 2] = ["SystemTime", "Instant"];

/// Files outside of `durable` that open files by their path, and whose those are. Everything of ours goes through
/// `durable::Root`, which follows nothing that somebody put in its place.
const BY_PATH: [(&str, &str); 52] = [
    (
        "cli/commands/attempt.rs",
        "a log or a prompt that the user names, a pipe maybe",
    ),
    (
        "cli/live/github.rs",
        "the summary that GitHub names, and the folder of its repository",
    ),
    ("cli/generate.rs", "a folder that the user names"),
    ("cli/commands/demo.rs", "a folder that the user names"),
    (
        "engine/attempt/preconditions.rs",
        "what errors name, and users' credentials: modes and times of them",
    ),
    (
        "git/remote/store/http.rs",
        "packs on their way, in a folder for the moment",
    ),
    (
        "git/remote/store/mod.rs",
        "packs on their way, in a folder for the moment",
    ),
    (
        "git/remote/store/objects.rs",
        "packs on their way, in a folder for the moment",
    ),
    ("engine/run/guard.rs", "times of the user's files"),
    (
        "engine/base/clock.rs",
        "the zone of the system's local time",
    ),
    (
        "engine/exchange/mod.rs",
        "a file or a folder that the user names",
    ),
    ("engine/exchange/import.rs", "files that the user names"),
    ("engine/inspect.rs", "a file that the user names"),
    ("engine/vault.rs", "a folder that the user names"),
    ("git/checkpoint/branch_commit.rs", "git's objects"),
    (
        "git/checkpoint/bundle.rs",
        "a bundle that the user names, git's list of shallow commits",
    ),
    ("git/repo/health.rs", "git's word of a collection"),
    ("git/odb/database.rs", "git's objects"),
    ("git/prune/mod.rs", "git's objects"),
    (
        "git/restore/outcomes.rs",
        "what the system says that it swaps to",
    ),
    (
        "git/restore/git_file.rs",
        "where git keeps submodules and linked work trees",
    ),
    ("git/history.rs", "git's references and their logs"),
    ("git/worktree/ignore_rules.rs", "the user's ignore rules"),
    ("git/index/locked_index.rs", "git's index"),
    ("git/index/index_file.rs", "git's index"),
    (
        "git/repo/repository.rs",
        "git's configuration and work trees, and whose a folder is",
    ),
    (
        "git/program/linked.rs",
        "the folder of a work tree that is made, which nobody else knows of",
    ),
    (
        "git/program/scratch.rs",
        "a work tree for the moment, outside of the user's",
    ),
    (
        "git/program/mod.rs",
        "the user's files, which their hooks write to",
    ),
    (
        "git/program/staging.rs",
        "a folder for the moment, which git and the hooks write to",
    ),
    (
        "git/remote/check.rs",
        "a hook for the moment, in a folder for the moment",
    ),
    ("git/repo/locks.rs", "git's locks"),
    ("git/repo/nested.rs", "git's repositories inside"),
    (
        "git/repo/unusable.rs",
        "where a file or git's own folder leads",
    ),
    (
        "git/odb/objects.rs",
        "git's objects, and a quarantine that was looked through",
    ),
    ("git/odb/objects/publishing.rs", "git's objects"),
    (
        "git/odb/objects/streaming.rs",
        "a quarantine that was looked through",
    ),
    (
        "git/odb/format.rs",
        "git's objects, and a quarantine that was looked through",
    ),
    (
        "git/odb/pack.rs",
        "git's packs, and a quarantine that was looked through",
    ),
    ("git/odb/unsynced.rs", "git's objects"),
    (
        "git/odb/packing.rs",
        "git's objects, and a quarantine that was looked through",
    ),
    (
        "git/odb/publish.rs",
        "git's objects, and a quarantine that was looked through",
    ),
    ("git/prune/reachability.rs", "git's objects and references"),
    ("git/repo/refs.rs", "git's references"),
    ("git/worktree/reading.rs", "the user's ignore rules"),
    ("git/index/user_index.rs", "git's index"),
    ("git/repo/owner.rs", "whose a folder is"),
    ("store/registry.rs", "the kernel's random bytes"),
    ("os/linux/mod.rs", "what the kernel says of its memory"),
    ("os/linux/processes.rs", "the kernel's table of processes"),
    ("process/signals.rs", "the kernel's word of this process"),
    ("process/spawn.rs", "the programs that could be started"),
];

/// What opens files by their path, beside what `std::fs` has.
const OPENERS: [&str; 4] = [
    "File::open",
    "File::create",
    "File::create_new",
    "File::options",
];

/// The rooms of a layer in their order: a room may name those before it. A module that is in none is the layer's own and
/// may name all of them; nobody in a room may name it.
const ROOMS: [(&str, &[&str]); 2] = [
    (
        "engine",
        &[
            "base",
            "record",
            "restore",
            "attempt",
            "recovery",
            "exchange",
            "checkpoint",
            "runs",
            "trust",
        ],
    ),
    (
        "git",
        &[
            "base",
            "repo",
            "odb",
            "history",
            "index",
            "worktree",
            "tree",
            "capture",
            "checkpoint",
            "prune",
            "restore",
            "program",
            "remote",
            "vault",
        ],
    ),
];

/// How many names of a layer another one may use. These limits only ever go down.
const FACADES: [(&str, &str, usize); 4] = [
    ("git", "engine", 40),
    ("store", "engine", 35),
    ("process", "engine", 16),
    ("engine", "cli", 40),
];

/// What a file holds besides tests.
#[derive(Debug, Default)]
struct Code {
    paths: Vec<Named>,
    /// What `use` brings in by which name: names that other files may reach through this one.
    imports: BTreeMap<String, Vec<String>>,
    /// Modules in files of their own that are declared below `#[cfg(test)]`: the name, and the `#[path]`.
    test_modules: Vec<(String, Option<String>)>,
}

/// A path as written, made absolute where it is relative (`self`, `super`): those of this crate begin with `crate`.
#[derive(Debug)]
struct Named {
    segments: Vec<String>,
    renamed: bool,
    /// Part of a `pub use`.
    exported: bool,
    line: usize,
}

impl Code {
    /// Reads a source file of `module`.
    fn read(source: &str, module: &[String]) -> Self {
        let mut code = Self::default();
        let trees: Vec<TokenTree> = TokenStream::from_str(source)
            .expect("Rust source")
            .into_iter()
            .collect();
        let is_test = |at: usize| matches!(attribute(&trees, at), Some((true, content, _)) if is_test(&content));
        // Below `#![cfg(test)]` the whole file is a test.
        if !(0..trees.len()).any(is_test) {
            code.walk(&trees, module);
        }
        code
    }

    fn walk(&mut self, trees: &[TokenTree], module: &[String]) {
        let mut at = 0;
        while at < trees.len() {
            if let Some((_, content, end)) = attribute(trees, at) {
                if is_test(&content) {
                    at = self.skip(trees, at);
                } else {
                    self.walk(&content, module);
                    at = end;
                }
            } else if word(trees, at).is_some_and(|word| word == "mod")
                && let (Some(name), Some(content)) =
                    (word(trees, at + 1), group(trees, at + 2, Delimiter::Brace))
            {
                let inner: Vec<String> = module.iter().cloned().chain([name.to_string()]).collect();
                self.walk(&content, &inner);
                at += 3;
            } else if word(trees, at).is_some_and(|word| word == "use") {
                let exported = at > 0
                    && (word(trees, at - 1).is_some_and(|word| word == "pub")
                        || is_group(&trees[at - 1]));
                let first = self.paths.len();
                at = self.path(trees, at + 1, &[], module, Some(exported));
                for named in &self.paths[first..] {
                    if let Some(name) = named.segments.last().filter(|_| !named.renamed) {
                        self.imports.insert(name.clone(), named.segments.clone());
                    }
                }
            } else if word(trees, at).is_some_and(|word| word == "pub")
                && is_visibility(trees, at + 1)
            {
                // Who may see it is not who it knows.
                at += 2;
            } else if begins_path(trees, at) {
                at = self.path(trees, at, &[], module, None);
            } else {
                match &trees[at] {
                    TokenTree::Group(group) => {
                        self.walk(&group.stream().into_iter().collect::<Vec<_>>(), module);
                    }
                    TokenTree::Literal(literal) => self.text(&literal.to_string(), module),
                    _ => {}
                }
                at += 1;
            }
        }
    }

    /// A path in a string: `#[serde(with = "crate::…")]`.
    fn text(&mut self, literal: &str, module: &[String]) {
        let text = literal.trim_matches('"');
        let is_path = text.contains("::")
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == ':');
        if let Some(Ok(trees)) = is_path.then(|| TokenStream::from_str(text)) {
            self.walk(&trees.into_iter().collect::<Vec<_>>(), module);
        }
    }

    /// Reads the path at `at` below `above`, those of braces multiplied out: `a::{b, c::d}` is `a::b` and `a::c::d`.
    /// `exported` is known in a `use`. Returns where the code goes on.
    fn path(
        &mut self,
        trees: &[TokenTree],
        at: usize,
        above: &[String],
        module: &[String],
        exported: Option<bool>,
    ) -> usize {
        let mut segments = above.to_vec();
        let mut at = at;
        let line = trees.get(at).map_or(0, |tree| tree.span().start().line);
        if is_colons(trees, at) {
            at += 2;
        }
        loop {
            if let Some(content) = group(trees, at, Delimiter::Brace).filter(|_| exported.is_some())
            {
                let mut inner = 0;
                while inner < content.len() {
                    inner = self.path(&content, inner, &segments, module, exported) + 1;
                }
                return at + 1;
            }
            match trees.get(at) {
                // `a::{self}` is `a`.
                Some(TokenTree::Ident(word)) if segments.is_empty() || word != "self" => {
                    segments.push(word.to_string());
                }
                Some(TokenTree::Punct(mark)) if mark.as_char() == '*' && exported.is_some() => {
                    segments.push("*".to_owned());
                }
                Some(TokenTree::Ident(_)) => {}
                _ => break,
            }
            at += 1;
            if !is_colons(trees, at) {
                break;
            }
            at += 2;
        }
        let segments = absolute(&segments, module);
        let alias = word(trees, at)
            .filter(|word| exported.is_some() && *word == "as")
            .and_then(|_| word(trees, at + 1));
        if let Some(alias) = alias {
            self.imports.insert(alias.to_string(), segments.clone());
        }
        // `use<'a>` in a type has no path.
        if segments.is_empty() {
            return at;
        }
        self.paths.push(Named {
            segments,
            renamed: alias.is_some(),
            exported: exported == Some(true),
            line,
        });
        if alias.is_some() { at + 2 } else { at }
    }

    /// Leaves out the item or field below the attributes at `at`; rather too little than too much.
    fn skip(&mut self, trees: &[TokenTree], mut at: usize) -> usize {
        let mut path = None;
        while let Some((_, content, end)) = attribute(trees, at) {
            if word(&content, 0).is_some_and(|word| word == "path") {
                path = content
                    .last()
                    .map(|text| text.to_string().trim_matches('"').to_owned());
            }
            at = end;
        }
        let begun = at;
        while at < trees.len() && group(trees, at, Delimiter::Brace).is_none() {
            if is_mark(trees, at, ';') || is_mark(trees, at, ',') {
                break;
            }
            at += 1;
        }
        let declared = trees[begun..at.min(trees.len())]
            .split(|tree| matches!(tree, TokenTree::Ident(word) if word == "mod"));
        if let (Some([TokenTree::Ident(name)]), true) =
            (declared.skip(1).last(), is_mark(trees, at, ';'))
        {
            self.test_modules.push((name.to_string(), path));
        }
        at + 1
    }
}

fn word(trees: &[TokenTree], at: usize) -> Option<&Ident> {
    match trees.get(at) {
        Some(TokenTree::Ident(word)) => Some(word),
        _ => None,
    }
}

fn is_mark(trees: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(trees.get(at), Some(TokenTree::Punct(found)) if found.as_char() == mark)
}

fn is_colons(trees: &[TokenTree], at: usize) -> bool {
    is_mark(trees, at, ':') && is_mark(trees, at + 1, ':')
}

fn is_group(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(_))
}

fn group(trees: &[TokenTree], at: usize, delimiter: Delimiter) -> Option<Vec<TokenTree>> {
    match trees.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => {
            Some(group.stream().into_iter().collect())
        }
        _ => None,
    }
}

/// An attribute at `at`: whether it is an inner one (`#![…]`), what it says, and where the code goes on.
fn attribute(trees: &[TokenTree], at: usize) -> Option<(bool, Vec<TokenTree>, usize)> {
    let inner = usize::from(is_mark(trees, at + 1, '!'));
    let content =
        group(trees, at + 1 + inner, Delimiter::Bracket).filter(|_| is_mark(trees, at, '#'))?;
    Some((inner == 1, content, at + 2 + inner))
}

/// `cfg(test)`, or `cfg(all(…))` with `test` among what it demands.
fn is_test(attribute: &[TokenTree]) -> bool {
    fn demands(content: &[TokenTree]) -> bool {
        let mut parts =
            content.split(|tree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == ','));
        parts.any(|part| match part {
            [TokenTree::Ident(word)] => word == "test",
            [TokenTree::Ident(word), TokenTree::Group(group)] if word == "all" => {
                demands(&group.stream().into_iter().collect::<Vec<_>>())
            }
            _ => false,
        })
    }
    let content = group(attribute, 1, Delimiter::Parenthesis);
    attribute.len() == 2
        && word(attribute, 0).is_some_and(|word| word == "cfg")
        && content.is_some_and(|c| demands(&c))
}

/// Whether the group at `at` says how far a `pub` reaches: `(crate)`, `(super)`, `(in …)`.
fn is_visibility(trees: &[TokenTree], at: usize) -> bool {
    let content = group(trees, at, Delimiter::Parenthesis).unwrap_or_default();
    match word(&content, 0).map(ToString::to_string).as_deref() {
        Some("crate" | "self" | "super") => content.len() == 1,
        Some("in") => true,
        _ => false,
    }
}

/// Whether a path begins at `at`. That of `Vec<T>::new` does not, that of `::std::fs` does.
fn begins_path(trees: &[TokenTree], at: usize) -> bool {
    let after_colons = at >= 2 && is_colons(trees, at - 2);
    if is_colons(trees, at) {
        return word(trees, at + 2).is_some()
            && !(at > 0 && (is_mark(trees, at - 1, '>') || is_group(&trees[at - 1])));
    }
    word(trees, at).is_some() && !after_colons && !(at > 0 && is_mark(trees, at - 1, '.'))
}

fn absolute(segments: &[String], module: &[String]) -> Vec<String> {
    let mut base = module.to_vec();
    let mut rest = segments;
    match rest.first().map(String::as_str) {
        Some("self" | "super") => {}
        _ => return segments.to_vec(),
    }
    while let Some(first) = rest
        .first()
        .filter(|first| *first == "self" || *first == "super")
    {
        if first == "super" {
            base.pop();
        }
        rest = &rest[1..];
    }
    let root = std::iter::once("crate".to_owned());
    root.chain(base).chain(rest.iter().cloned()).collect()
}

/// What is wrong with a file, given its place below `src`.
fn violations(file: &str, code: &Code) -> Vec<String> {
    let module = module_of(file);
    let mut wrong = Vec::new();
    let own = match module.first() {
        Some(own) => own.as_str(),
        // The crate's root and the program's.
        None => "cli",
    };
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == own) else {
        return vec![format!(
            "{file}: the module {own} has no layer; give it one in tests/layering.rs"
        )];
    };
    let pure = own == "model" || own == "policy";
    for Named {
        segments,
        renamed,
        line,
        ..
    } in &code.paths
    {
        let renamed = *renamed;
        let path = segments.join("::");
        let mut complain = |what: String| wrong.push(format!("{file}:{line}: {what} ({path})"));
        let first = segments[0].as_str();
        let below_root = segments.get(1).map(String::as_str);
        let begins = |with: &str| {
            path == with
                || path
                    .strip_prefix(with)
                    .is_some_and(|rest| rest.starts_with("::"))
        };
        if first == "crate" || (file == "main.rs" && first == "recover") {
            match below_root {
                Some("*") => complain("the whole crate is imported".to_owned()),
                None if renamed => complain("the crate is renamed".to_owned()),
                Some(other)
                    if other != own
                        && !allowed.contains(&other)
                        && LAYERS.iter().any(|(name, _)| *name == other) =>
                {
                    complain(format!("{own} names {other}"));
                }
                _ => {}
            }
        }
        if segments.iter().any(|segment| segment == "git2") && own != "git" {
            complain("only git names git2".to_owned());
        }
        let function = path
            .strip_prefix("std::fs::")
            .is_some_and(|name| name.starts_with(|c: char| c.is_lowercase()));
        let looks = ["canonicalize", "metadata", "symlink_metadata", "read_link"]
            .iter()
            .any(|look| path.ends_with(look));
        let function = function && !looks;
        let by_path =
            function || path == "std::fs" || path == "std::fs::*" || path.ends_with("OpenOptions");
        if (by_path || OPENERS.iter().any(|opener| path.ends_with(opener)))
            && own != "durable"
            && !opens_by_path(file)
        {
            complain("what is ours is opened through durable::Root".to_owned());
        }
        if !pure {
            continue;
        }
        if (segments.len() == 1 && renamed && first == "std") || path == "std::*" {
            complain(format!("{own} hides what it names of std"));
        }
        if IMPURE_PATHS
            .iter()
            .any(|impure| *impure != "git2" && begins(impure))
        {
            complain(format!("{own} is pure"));
        }
        let clock = segments
            .iter()
            .any(|segment| CLOCKS.contains(&segment.as_str()));
        if clock || segments.iter().skip(1).any(|segment| segment == "now") {
            complain(format!("{own} reads a clock"));
        }
    }
    wrong
}

fn opens_by_path(file: &str) -> bool {
    BY_PATH.iter().any(|(listed, _)| *listed == file)
}

/// The module of a file below `src`: `git/place.rs` is `git::place`.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let parts = path
        .split('/')
        .filter(|part| !matches!(*part, "mod" | "lib" | "main"));
    parts.map(ToOwned::to_owned).collect()
}

/// Where the files of a test module lie that `file` declares: a file or a folder.
fn test_files(file: &Path, name: &str, path: Option<&str>) -> Vec<PathBuf> {
    let folder = file.parent().expect("a folder");
    if let Some(path) = path {
        return vec![folder.join(path)];
    }
    let stem = file
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let own = if matches!(stem.as_str(), "mod" | "lib" | "main") {
        folder.to_owned()
    } else {
        folder.join(stem)
    };
    vec![own.join(format!("{name}.rs")), own.join(name)]
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("src is readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The sources below `src` besides tests: their place there, and what they hold.
fn crate_sources() -> Vec<(String, Code)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files.sort();
    let mut exempt = BTreeSet::new();
    let mut read = Vec::new();
    for file in files {
        let name = file
            .strip_prefix(&src)
            .expect("below src")
            .to_string_lossy()
            .replace('\\', "/");
        let code = Code::read(
            &fs::read_to_string(&file).expect("a source file"),
            &module_of(&name),
        );
        for (name, path) in &code.test_modules {
            exempt.extend(test_files(&file, name, path.as_deref()));
        }
        read.push((file, name, code));
    }
    read.retain(|(file, ..)| !file.ancestors().any(|path| exempt.contains(path)));
    read.into_iter()
        .map(|(_, name, code)| (name, code))
        .collect()
}

/// Which files of the crate each file depends on, by their places in the list.
fn dependencies(files: &[(String, Code)]) -> Vec<BTreeSet<usize>> {
    let modules: BTreeMap<Vec<String>, usize> = (0..files.len())
        .filter(|at| files[*at].0 != "main.rs")
        .map(|at| (module_of(&files[at].0), at))
        .collect();
    let of = |file: usize| {
        let module = module_of(&files[file].0);
        let code = &files[file].1;
        let mut found = BTreeSet::new();
        for named in code.paths.iter().filter(|named| !named.exported) {
            // `mod x;` is no use of it.
            let is_alone = named.segments.len() == 1;
            let path = rooted(&modules, &module, &named.segments)
                .filter(|_| !is_alone)
                .or_else(|| {
                    let (first, rest) = named.segments.split_first()?;
                    rooted(
                        &modules,
                        &module,
                        &[code.imports.get(first)?, rest].concat(),
                    )
                });
            found.extend(path.and_then(|path| defined_in(files, &modules, &path, 8)));
        }
        found.remove(&file);
        found
    };
    (0..files.len()).map(of).collect()
}

/// A path from the crate's root, where it is one of this crate: also one into a module below `module`.
fn rooted(
    modules: &BTreeMap<Vec<String>, usize>,
    module: &[String],
    path: &[String],
) -> Option<Vec<String>> {
    let below = [module, &path[..1]].concat();
    if path.first().is_some_and(|first| first == "crate") {
        return Some(path.to_vec());
    }
    modules
        .contains_key(&below)
        .then(|| [&["crate".to_owned()], module, path].concat())
}

/// The file that defines what an absolute path names, through re-exports.
fn defined_in(
    files: &[(String, Code)],
    modules: &BTreeMap<Vec<String>, usize>,
    path: &[String],
    steps: u32,
) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    if first != "crate" {
        return None;
    }
    let mut module = Vec::new();
    let mut file = *modules.get(&module)?;
    for (at, segment) in rest.iter().enumerate() {
        module.push(segment.clone());
        if let Some(below) = modules.get(&module) {
            file = *below;
            continue;
        }
        return match files[file].1.imports.get(segment) {
            Some(import) if steps > 0 && import != path => {
                let onward = rooted(modules, &module[..at], &[import, &rest[at + 1..]].concat());
                onward
                    .and_then(|onward| defined_in(files, modules, &onward, steps - 1))
                    .or(Some(file))
            }
            _ => Some(file),
        };
    }
    Some(file)
}

/// Files that depend on each other, directly or through others: each circle with its files.
fn circles(dependencies: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reach = |from: usize| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            open.extend(
                dependencies[at]
                    .iter()
                    .copied()
                    .filter(|next| seen.insert(*next)),
            );
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..dependencies.len()).map(reach).collect();
    let circle = |at: usize| -> Vec<usize> {
        (0..dependencies.len())
            .filter(|to| reached[at].contains(to) && reached[*to].contains(&at))
            .collect()
    };
    let all: BTreeSet<Vec<usize>> = (0..dependencies.len()).map(circle).collect();
    all.into_iter()
        .filter(|circle: &Vec<usize>| circle.len() > 1)
        .collect()
}

/// The dependencies that are not between a module and a file directly in it.
fn without_families(
    files: &[(String, Code)],
    dependencies: &[BTreeSet<usize>],
) -> Vec<BTreeSet<usize>> {
    let modules: Vec<Vec<String>> = files.iter().map(|(name, _)| module_of(name)).collect();
    let is_in = |one: usize, above: usize| {
        let parent = modules[one].split_last().map(|(_, parent)| parent);
        parent == Some(&modules[above][..])
    };
    let apart = |from: usize| {
        let all = dependencies[from].iter().copied();
        all.filter(|to| !is_in(from, *to) && !is_in(*to, from))
            .collect()
    };
    (0..files.len()).map(apart).collect()
}

/// Whether the files are a module and modules directly in it.
fn is_family(modules: &[Vec<String>]) -> bool {
    modules.iter().any(|top| {
        modules
            .iter()
            .all(|other| other == top || other.split_last().is_some_and(|(_, above)| above == top))
    })
}

#[test]
fn facades_do_not_grow() {
    let files = crate_sources();
    for (of, by, most) in FACADES {
        let users = files
            .iter()
            .filter(|(file, _)| module_of(file).first().is_some_and(|layer| layer == by));
        let names: BTreeSet<&[String]> = users
            .flat_map(|(_, code)| &code.paths)
            .map(|path| path.segments.as_slice())
            .filter(|path| path.len() > 2 && path[..2] == ["crate", of])
            .collect();
        assert!(
            names.len() <= most,
            "{by} uses {} names of {of}, more than {most}: {names:#?}",
            names.len()
        );
    }
}

#[test]
fn only_one_room_knows_systems_apart() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let knows = |file: &Path| {
        let source = fs::read_to_string(file).expect("a source file");
        source.contains("target_os") || source.contains("target_vendor")
    };
    let (own, others): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|file| knows(file))
        .partition(|file| file.starts_with(root.join("os")));
    assert!(!own.is_empty() && others.is_empty(), "{others:?}");
}

#[test]
fn dependencies_point_one_way() {
    let files = crate_sources();
    let mut wrong: Vec<String> = files
        .iter()
        .flat_map(|(name, code)| violations(name, code))
        .collect();
    let top = |name: &str| module_of(name).first().cloned();
    let seen: BTreeSet<String> = files.iter().filter_map(|(name, _)| top(name)).collect();
    for (layer, _) in LAYERS {
        assert!(seen.contains(layer), "no source of {layer} was read");
    }
    for (file, _) in BY_PATH {
        let code = files
            .iter()
            .find(|(name, _)| name == file)
            .map(|(_, code)| code);
        let uses_fs = |code: &Code| {
            code.paths
                .iter()
                .any(|path| path.segments.iter().any(|segment| segment == "fs"))
        };
        assert!(
            code.is_some_and(uses_fs),
            "{file} opens nothing by its path any more"
        );
    }
    let rooms = |name: &str| {
        let module = module_of(name);
        let (_, rooms) = ROOMS
            .iter()
            .find(|(layer, _)| Some(*layer) == module.first().map(String::as_str))?;
        Some((
            module[0].clone(),
            module.get(1).map(|name| {
                let place = rooms.iter().position(|room| *room == name.as_str());
                place.unwrap_or(rooms.len())
            }),
        ))
    };
    for (from, to) in dependencies(&files)
        .iter()
        .enumerate()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, *to)))
    {
        let (from, to) = (files[from].0.as_str(), files[to].0.as_str());
        if let (Some((layer, from_room)), Some((other, to_room))) = (rooms(from), rooms(to))
            && layer == other
            && from_room < to_room
        {
            wrong.push(format!("{from}: names {to}, which is in a later room"));
        }
    }
    assert!(
        wrong.is_empty(),
        "the rule of src/lib.rs is broken:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn no_two_files_know_each_other() {
    let files = crate_sources();
    let dependencies = dependencies(&files);
    let mut circles = circles(&dependencies);
    // A module and its files name each other, which must hide no circle among the files.
    circles.extend(self::circles(&without_families(&files, &dependencies)));
    let mut wrong = Vec::new();
    for circle in &circles {
        let modules: Vec<Vec<String>> = circle.iter().map(|at| module_of(&files[*at].0)).collect();
        if !is_family(&modules) {
            let line = |at: &usize| {
                let within = dependencies[*at]
                    .iter()
                    .filter(|to| circle.contains(to))
                    .map(|to| files[*to].0.as_str());
                format!(
                    "  {} -> {}",
                    files[*at].0,
                    within.collect::<Vec<_>>().join(", ")
                )
            };
            wrong.push(format!(
                "{} files:\n{}",
                circle.len(),
                circle.iter().map(line).collect::<Vec<_>>().join("\n")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} circles:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Whoever reads no more of a file than its first line has read a whole sentence.
#[test]
fn every_file_begins_with_what_it_is_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        sources(&root.join(folder), &mut files);
    }
    let is_whole = |line: &str| line.starts_with("//! ") && line.ends_with(['.', ':']);
    let wrong: Vec<String> = files
        .iter()
        .map(|file| (file, fs::read_to_string(file).expect("a source")))
        .filter_map(|(file, text)| {
            let first = text.lines().next().unwrap_or_default().to_owned();
            (!is_whole(&first)).then(|| format!("{}: {first}", file.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the checker says of `source`, standing in `file`.
fn found(file: &str, source: &str) -> Vec<String> {
    violations(file, &Code::read(source, &module_of(file)))
}

#[test]
fn planted_circles_are_found() {
    let files = |sources: &[(&str, &str)]| -> Vec<(String, Code)> {
        sources
            .iter()
            .map(|(name, source)| ((*name).to_owned(), Code::read(source, &module_of(name))))
            .collect()
    };
    let found = |sources: &[(&str, &str)]| {
        let files = files(sources);
        let circles = circles(&dependencies(&files));
        let names = |circle: &Vec<usize>| {
            circle
                .iter()
                .map(|at| module_of(&files[*at].0))
                .collect::<Vec<_>>()
        };
        circles
            .iter()
            .filter(|circle| !is_family(&names(circle)))
            .count()
    };
    // Files of one module, behind it.
    let behind = |sources: &[(&str, &str)]| {
        let files = files(sources);
        circles(&without_families(&files, &dependencies(&files))).len()
    };
    let top = ("lib.rs", "pub mod a;");
    let module = ("a/mod.rs", "mod x; mod y; pub use x::X; pub use y::Y;");
    let y = ("a/y.rs", "use super::x::X; pub struct Y;");
    let x = |source| ("a/x.rs", source);
    assert_eq!(
        behind(&[top, module, x("use super::Y; pub struct X;"), y]),
        1
    );
    assert_eq!(behind(&[top, module, x("pub struct X;"), y]), 0);
    let root = ("lib.rs", "pub mod a; pub mod b;");
    assert_eq!(
        found(&[
            root,
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B;")
        ]),
        0
    );
    assert_eq!(
        found(&[
            root,
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "fn f() { super::a::f() }")
        ]),
        1
    );
    assert_eq!(
        found(&[
            root,
            ("a.rs", "fn f() { g!(crate::b::B) }"),
            ("b.rs", "use crate::a;")
        ]),
        1
    );
    // Through a re-export, and one that nobody uses.
    let facade = ("a/mod.rs", "mod x; mod y; pub use x::X; pub use y::Y;");
    assert_eq!(
        found(&[
            root,
            facade,
            ("a/x.rs", "use super::Y;"),
            ("a/y.rs", "use crate::a::X;")
        ]),
        1
    );
    assert_eq!(
        found(&[root, facade, ("a/x.rs", "use super::Y;"), ("a/y.rs", "")]),
        0
    );
    // Who may see a definition is no arrow; what a tuple holds is one.
    let visible =
        |a: &str, b: &str| found(&[root, ("a/mod.rs", "mod x;"), ("a/x.rs", a), ("b.rs", b)]);
    assert_eq!(
        visible(
            "use crate::b::B; pub(in crate::a) struct A; struct C(pub(super) u8);",
            "use crate::a;"
        ),
        0
    );
    assert_eq!(
        visible(
            "pub(super) struct C(pub (crate::b::B));",
            "use crate::a::x::C;"
        ),
        1
    );
    // A module and what is in it; but not two that are in it.
    assert_eq!(
        found(&[
            root,
            ("a/mod.rs", "mod x; fn f() { x::f() } pub struct A;"),
            ("a/x.rs", "use super::A;")
        ]),
        0
    );
    assert_eq!(
        found(&[
            root,
            ("a/mod.rs", "mod x; mod y;"),
            ("a/x.rs", "use super::y;"),
            ("a/y.rs", "use super::x;")
        ]),
        1
    );
}

#[test]
fn planted_violations_are_found() {
    for (file, source) in [
        ("model/run.rs", "use crate::policy::decide;"),
        (
            "policy/decide.rs",
            "use crate::{model::run::Run, engine::Context};",
        ),
        (
            "policy/classify/mod.rs",
            "fn f() { super::super::store::Store::new() }",
        ),
        ("git/refs.rs", "pub use crate::store::Ledger as L;"),
        ("store/ledger.rs", "fn f(_: &crate::git::Repo) {}"),
        (
            "process/mod.rs",
            "mod inner { use super::super::agent::Records; }",
        ),
        ("engine/mod.rs", "use super::cli::ui::Ui;"),
        ("config/mod.rs", "type R = crate::engine::Result<()>;"),
        ("durable/lock.rs", "use crate::engine::Error;"),
        ("policy/backoff.rs", "use crate::durable::replace;"),
        ("model/mod.rs", "use super::*;"),
        ("model/mod.rs", "use crate as everything;"),
        (
            "store/ledger_line.rs",
            "#[serde(with = \"crate::git::hex\")] struct Line;",
        ),
        ("engine/record/select.rs", "fn f(_: git2::Oid) {}"),
        ("cli/mod.rs", "extern crate git2;"),
        ("cli/mod.rs", "use ::git2::Repository;"),
        (
            "engine/record/select.rs",
            "#[derive(Debug)] struct S { a: u8, b: git2::Oid }",
        ),
        ("model/time.rs", "use std::{collections::BTreeMap, fs};"),
        ("model/time.rs", "use std::{self as s};"),
        ("model/time.rs", "use std as s;"),
        ("policy/prompt.rs", "fn f() { std::env::var(\"HOME\"); }"),
        ("policy/prompt.rs", "fn f() { ::std::process::exit(1) }"),
        ("policy/prompt.rs", "use ::std::fs;"),
        ("policy/decide.rs", "#[derive(clap::ValueEnum)] enum E {}"),
        ("policy/decide.rs", "fn f() { chrono::Utc::now(); }"),
        (
            "policy/decide.rs",
            "use chrono::Utc as U; fn f() { U::now(); }",
        ),
        (
            "policy/decide.rs",
            "use std::time::*; fn f() { Instant::now(); }",
        ),
        ("policy/decide.rs", "fn f(_: std::time::SystemTime) {}"),
        (
            "policy/decide.rs",
            "#[test] fn f() { std::fs::read(\"a\"); }",
        ),
        ("policy/decide.rs", "#[cfg(any(test, unix))] use std::fs;"),
        ("policy/decide.rs", "#[cfg(not(test))] use std::fs;"),
        ("policy/decide.rs", "#[cfg(test)] use a::b; use std::fs;"),
        (
            "policy/decide.rs",
            "#[cfg(test)] mod tests { fn f() {} } fn g() { std::fs::read(\"}\"); }",
        ),
        (
            "policy/decide.rs",
            "struct S { #[cfg(test)] a: u8, b: std::fs::File }",
        ),
        (
            "policy/decide.rs",
            "const Q: char = '\"'; use std::fs; // \"",
        ),
        (
            "policy/decide.rs",
            "/* a /* nested */ comment */ use std::fs;",
        ),
        ("surprise/mod.rs", "fn f() {}"),
        ("store/ledger.rs", "use std::{fs, io};"),
        ("store/ledger.rs", "fn f() { std::fs::read(\"a\"); }"),
        (
            "engine/record/memory.rs",
            "use std::fs::File; fn f() { File::open(\"a\"); }",
        ),
        ("config/mod.rs", "use std::fs::OpenOptions;"),
        ("git/restore/mod.rs", "use std::fs::read_to_string;"),
    ] {
        assert!(!found(file, source).is_empty(), "{file}: {source}");
    }
}

#[test]
fn lawful_code_is_left_alone() {
    for (file, source) in [
        (
            "policy/decide.rs",
            "use crate::model::run::Run; use super::budget::Budget; use self::inner::X;",
        ),
        (
            "policy/decide.rs",
            "// std::fs and git2\n/* crate::engine */ const TEXT: &str = \"std::fs git2 \\\" clap\";",
        ),
        (
            "policy/decide.rs",
            "const RAW: &str = r#\"use std::fs; \"quoted\" \"#; fn f<'a>(x: &'a str, now: u8) {}",
        ),
        (
            "policy/decide.rs",
            "#[cfg(test)] mod tests { use std::fs; fn f() { crate::agent::read(); } } fn g() {}",
        ),
        (
            "policy/decide.rs",
            "#[cfg(all(test, unix))] mod tests { use std::fs; }",
        ),
        (
            "policy/decide.rs",
            "#[cfg(test)] #[path = \"decide_tests.rs\"] mod tests;",
        ),
        (
            "policy/decide.rs",
            "use std::time::Duration; fn f(now: Timestamp) -> bool { now.since(now).is_zero() }",
        ),
        (
            "git/place.rs",
            "use git2::Repository; use crate::{model::path::P, policy::path_filter, durable};",
        ),
        ("git/place.rs", "mod inner { use super::super::refs::R; }"),
        (
            "engine/mod.rs",
            "use crate::git::Repo; use crate::store::Store; use std::time::Instant;",
        ),
        (
            "store/ledger.rs",
            "use std::fs::File; use std::os::unix::fs::MetadataExt; fn f(_: File) {}",
        ),
        (
            "git/odb/pack.rs",
            "use std::fs; fn f() { fs::File::open(\"a\"); }",
        ),
        (
            "main.rs",
            "fn main() { recover::cli::main(std::env::args_os()) }",
        ),
        ("lib.rs", "pub mod agent; pub mod cli;"),
    ] {
        assert_eq!(
            found(file, source),
            Vec::<String>::new(),
            "{file}: {source}"
        );
    }
}

#[test]
fn the_files_of_test_modules_are_known() {
    let code = Code::read(
        "#[cfg(test)] mod tests; #[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod other; mod real;",
        &["git".to_owned()],
    );
    assert_eq!(
        code.test_modules,
        [
            ("tests".to_owned(), None),
            ("other".to_owned(), Some("x_tests.rs".to_owned()))
        ]
    );
    let files = |file: &str, path| test_files(Path::new(file), "tests", path);
    assert_eq!(
        files("src/git/place.rs", None)[0],
        Path::new("src/git/place/tests.rs")
    );
    assert_eq!(files("src/git/mod.rs", None)[1], Path::new("src/git/tests"));
    assert_eq!(
        files("src/git/place.rs", Some("x_tests.rs")),
        [Path::new("src/git/x_tests.rs")]
    );
}
