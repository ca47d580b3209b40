//! Holds the rule of `src/lib.rs`: which part may know which, read from the sources.
//!
//! Code below a real `#[cfg(test)]` (an item, or the files of a `mod` declared so) is exempt, nothing else is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A top-level module with those it may name.
const LAYERS: [(&str, &[&str]); 11] = [
    ("model", &[]),
    ("policy", &["model"]),
    ("durable", &["model"]),
    ("config", &["model", "policy", "durable"]),
    ("git", &["model", "policy", "durable"]),
    ("store", &["model", "policy", "durable"]),
    ("process", &["model", "policy", "durable"]),
    ("agent", &["model", "policy", "durable"]),
    ("watch", &["model", "policy", "durable"]),
    ("engine", &["model", "policy", "durable", "config", "git", "store", "process", "agent", "watch"]),
    ("cli", &["model", "policy", "durable", "config", "git", "store", "process", "agent", "watch", "engine"]),
];

/// What the pure parts do not name: a path that begins so.
const IMPURE_PATHS: [&str; 8] =
    ["std::fs", "std::env", "std::process", "std::net", "std::thread", "git2", "clap", "rustix"];

/// What the pure parts do not name: these words anywhere.
const CLOCKS: [&str; 2] = ["SystemTime", "Instant"];

/// Files outside of `durable` that open files by their path, and whose those are. Everything of ours goes through
/// `durable::Root`, which follows nothing that somebody put in its place.
const BY_PATH: [(&str, &str); 40] = [
    ("cli/commands/attempt.rs", "a log that the user names, a pipe maybe"),
    ("cli/commands/run.rs", "a prompt that the user names, a pipe maybe"),
    ("cli/generate.rs", "a folder that the user names"),
    ("engine/archive.rs", "a folder that the user names"),
    ("engine/export.rs", "a file that the user names"),
    ("engine/import.rs", "files that the user names"),
    ("engine/report.rs", "a file that the user names"),
    ("git/checkpoint/branch_commit.rs", "git's objects"),
    ("git/checkpoint/bundle.rs", "git's list of shallow commits"),
    ("git/repo/gc.rs", "git's word of a collection"),
    ("git/odb/database.rs", "git's objects"),
    ("git/prune/discard.rs", "git's objects"),
    ("git/restore/git_file.rs", "where git keeps submodules and linked work trees"),
    ("git/history/head.rs", "git's references"),
    ("git/worktree/ignore_rules.rs", "the user's ignore rules"),
    ("git/restore/index.rs", "git's index"),
    ("git/index/index_file/expand.rs", "git's index"),
    ("git/repo/linked.rs", "git's linked work trees"),
    ("git/repo/index_lock.rs", "git's locks"),
    ("git/repo/nested.rs", "git's repositories inside"),
    ("git/odb/objects.rs", "git's objects, and a quarantine that was looked through"),
    ("git/odb/objects/present.rs", "git's objects"),
    ("git/odb/objects/streaming.rs", "a quarantine that was looked through"),
    ("git/odb/pack.rs", "a quarantine that was looked through"),
    ("git/odb/pack_folder.rs", "git's objects"),
    ("git/odb/packing.rs", "git's objects, and a quarantine that was looked through"),
    ("git/odb/publish.rs", "git's objects, and a quarantine that was looked through"),
    ("git/prune/reachability.rs", "git's objects"),
    ("git/history/reflog.rs", "git's logs of references"),
    ("git/repo/refs.rs", "git's references"),
    ("git/prune/gc_roots.rs", "git's references"),
    ("git/worktree/index_trust.rs", "the user's ignore rules"),
    ("git/repo/repository.rs", "git's configuration, and whose a folder is"),
    ("git/index/user_index.rs", "git's index"),
    ("git/repo/owner.rs", "whose a folder is"),
    ("git/index/tracked.rs", "git's index"),
    ("git/checkpoint/unbundle.rs", "a bundle that the user names, and a folder for the moment"),
    ("process/table.rs", "the kernel's table of processes"),
    ("store/identity.rs", "the user's own list of ids"),
    ("process/signals.rs", "the kernel's word of this process"),
];

/// What opens files by their path, beside what `std::fs` has.
const OPENERS: [&str; 4] = ["File::open", "File::create", "File::create_new", "File::options"];

/// Words before which a path may begin with `::`.
const KEYWORDS: [&str; 10] = ["use", "as", "return", "in", "mut", "dyn", "impl", "extern", "break", "match"];

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Word,
    Text,
    Mark,
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    text: String,
    line: usize,
}

impl Token {
    fn is(&self, text: &str) -> bool {
        self.kind != Kind::Text && self.text == text
    }
}

/// Splits Rust source into words, string contents and marks; comments, numbers' details and lifetimes do not matter.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut out = Vec::new();
    let (mut at, mut line) = (0, 1);
    let ahead = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let begun = at;
        let first = line;
        let c = chars[at];
        if c == '/' && ahead(at + 1) == '/' {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if c == '/' && ahead(at + 1) == '*' {
            let mut depth = 0;
            loop {
                match (ahead(at), ahead(at + 1)) {
                    ('/', '*') => (depth, at) = (depth + 1, at + 2),
                    ('*', '/') => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 || at >= chars.len() {
                    break;
                }
            }
        } else if let Some((from, to, end)) = string(&chars, at) {
            out.push(Token { kind: Kind::Text, text: chars[from..to].iter().collect(), line });
            at = end;
        } else if c == '\'' {
            // A character ('x', '\n', '\u{1f}') or a lifetime ('a).
            if ahead(at + 1) == '\\' {
                at += 3;
                while at < chars.len() && chars[at] != '\'' {
                    at += 1;
                }
                at += 1;
            } else if ahead(at + 2) == '\'' {
                at += 3;
            } else {
                at += 1;
                while ahead(at).is_alphanumeric() || ahead(at) == '_' {
                    at += 1;
                }
            }
        } else if c.is_alphanumeric() || c == '_' {
            while ahead(at).is_alphanumeric() || ahead(at) == '_' {
                at += 1;
            }
            out.push(Token { kind: Kind::Word, text: chars[at.min(begun)..at].iter().collect(), line });
        } else if c == ':' && ahead(at + 1) == ':' {
            out.push(Token { kind: Kind::Mark, text: "::".to_owned(), line });
            at += 2;
        } else {
            if !c.is_whitespace() {
                out.push(Token { kind: Kind::Mark, text: c.to_string(), line });
            }
            at += 1;
        }
        line = first + chars[begun..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    out
}

/// A string literal that begins at `at`: where its content begins and ends, and where the code goes on.
fn string(chars: &[char], at: usize) -> Option<(usize, usize, usize)> {
    let ahead = |at: usize| chars.get(at).copied().unwrap_or('\0');
    let mut from = at;
    while from < at + 2 && matches!(ahead(from), 'b' | 'c' | 'r') {
        from += 1;
    }
    let raw = from > at && ahead(from - 1) == 'r';
    let mut hashes = 0;
    while raw && ahead(from) == '#' {
        (hashes, from) = (hashes + 1, from + 1);
    }
    if ahead(from) != '"' {
        return None;
    }
    from += 1;
    let mut to = from;
    while to < chars.len() {
        if !raw && chars[to] == '\\' {
            to += 2;
            continue;
        }
        if chars[to] == '"' && (0..hashes).all(|number| ahead(to + 1 + number) == '#') {
            break;
        }
        to += 1;
    }
    Some((from, to.min(chars.len()), (to + 1 + hashes).min(chars.len())))
}

/// What a file holds besides tests.
#[derive(Debug, Default)]
struct Code {
    tokens: Vec<Token>,
    /// Modules in files of their own that are declared below `#[cfg(test)]`: the name, and the `#[path]`.
    test_modules: Vec<(String, Option<String>)>,
}

/// Takes out what stands below `#[cfg(test)]`.
fn without_tests(all: &[Token]) -> Code {
    let mut code = Code::default();
    let mut at = 0;
    let mut path = None;
    while at < all.len() {
        let inner = all[at].is("#") && all.get(at + 1).is_some_and(|token| token.is("!"));
        let open = at + 1 + usize::from(inner);
        if !all[at].is("#") || !all.get(open).is_some_and(|token| token.is("[")) {
            code.tokens.push(all[at].clone());
            (at, path) = (at + 1, None);
            continue;
        }
        let end = closing(all, open);
        let attribute = &all[open + 1..end.saturating_sub(1).max(open + 1)];
        if attribute.first().is_some_and(|token| token.is("path")) {
            path = attribute.last().map(|token| token.text.clone());
        }
        if !is_test(attribute) {
            code.tokens.extend_from_slice(&all[at..end]);
            at = end;
            continue;
        }
        if inner {
            // The whole file is a test.
            return Code::default();
        }
        let mut item = end;
        while item < all.len() && all[item].is("#") {
            let end = closing(all, item + 1);
            if all[item + 2].is("path") {
                path = Some(all[end - 2].text.clone());
            }
            item = end;
        }
        at = item_end(all, item);
        if let [.., word, name, last] = &all[item..at]
            && word.is("mod")
            && last.is(";")
        {
            code.test_modules.push((name.text.clone(), path.take()));
        }
    }
    code
}

/// `cfg(test)`, or `cfg(all(…))` with `test` among what it demands.
fn is_test(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute.iter().map(|token| token.text.as_str()).collect();
    match words.as_slice() {
        ["cfg", "(", "test", ")"] => true,
        ["cfg", "(", "all", "(", rest @ .., ")", ")"] => {
            let mut depth = 0;
            rest.iter().any(|word| {
                match *word {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
                depth == 0 && *word == "test"
            })
        }
        _ => false,
    }
}

/// Behind the bracket that closes the one at `open`.
fn closing(all: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in all.iter().enumerate().skip(open) {
        if token.is("(") || token.is("[") || token.is("{") {
            depth += 1;
        } else if token.is(")") || token.is("]") || token.is("}") {
            depth -= 1;
        }
        if depth == 0 {
            return at + 1;
        }
    }
    all.len()
}

/// Behind the item that begins at `from`; rather too early than too late.
fn item_end(all: &[Token], from: usize) -> usize {
    let mut at = from;
    while at < all.len() {
        if all[at].is(";") || all[at].is(",") {
            return at + 1;
        }
        if all[at].is("{") {
            return closing(all, at);
        }
        if all[at].is("}") {
            return at;
        }
        at = if all[at].is("(") || all[at].is("[") { closing(all, at) } else { at + 1 };
    }
    at
}

/// A path as written, with where it was.
#[derive(Debug)]
struct Named {
    segments: Vec<String>,
    renamed: bool,
    line: usize,
}

/// Every path, those of braces multiplied out: `use a::{b, c::d}` is `a::b` and `a::c::d`. Relative ones (`self`,
/// `super`) are resolved against `module`, those of this crate begin with `crate`.
fn paths(code: &[Token], module: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    // Modules written inline, with the depth at which each ends.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < code.len() {
        let token = &code[at];
        if token.is("mod") && code.get(at + 2).is_some_and(|token| token.is("{")) {
            inline.push((code[at + 1].text.clone(), depth));
            (depth, at) = (depth + 1, at + 3);
            continue;
        }
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth -= 1;
            inline.retain(|(_, outside)| *outside < depth);
        }
        let here: Vec<String> = module.iter().cloned().chain(inline.iter().map(|(name, _)| name.clone())).collect();
        // `Vec<T>::new`: what follows is no path of its own. `::std` is.
        let follows = at > 1 && code[at - 1].is("::") && code[at - 2].is(">");
        let keyword = KEYWORDS.iter().any(|keyword| token.is(keyword));
        if token.kind == Kind::Word && !follows && !keyword {
            let first = found.len();
            at = tree(code, at, &[], &mut found);
            for named in &mut found[first..] {
                named.segments = absolute(&named.segments, &here);
            }
        } else if token.kind != Kind::Text || !looks_like_a_path(&token.text) {
            at += 1;
        } else {
            // `#[serde(with = "crate::…")]`
            let inside: Vec<Token> = tokens(&token.text).into_iter().map(|t| Token { line: token.line, ..t }).collect();
            found.extend(paths(&inside, &here));
            at += 1;
        }
    }
    found
}

fn looks_like_a_path(text: &str) -> bool {
    let path = text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    path && text.contains("::")
}

fn absolute(segments: &[String], module: &[String]) -> Vec<String> {
    let mut base = module.to_vec();
    let mut rest = segments;
    match rest.first().map(String::as_str) {
        Some("self" | "super") => {}
        _ => return segments.to_vec(),
    }
    while let Some(first) = rest.first().filter(|first| *first == "self" || *first == "super") {
        if first == "super" {
            base.pop();
        }
        rest = &rest[1..];
    }
    let root = std::iter::once("crate".to_owned());
    root.chain(base).chain(rest.iter().cloned()).collect()
}

/// Reads the path or tree at `at` below `above`; returns where the code goes on.
fn tree(code: &[Token], at: usize, above: &[String], found: &mut Vec<Named>) -> usize {
    let line = code[at].line;
    let mut segments = above.to_vec();
    let mut at = at;
    loop {
        let token = code.get(at);
        match token {
            Some(token) if token.is("{") && !segments.is_empty() => {
                at += 1;
                while at < code.len() && !code[at].is("}") {
                    at = if code[at].is(",") { at + 1 } else { tree(code, at, &segments, found).max(at + 1) };
                }
                return at + 1;
            }
            Some(token) if token.kind == Kind::Word || (token.is("*") && !segments.is_empty()) => {
                // `a::{self}` is `a`.
                if !token.is("self") || segments.is_empty() {
                    segments.push(token.text.clone());
                }
                at += 1;
            }
            _ => break,
        }
        if !code.get(at).is_some_and(|token| token.is("::")) {
            break;
        }
        at += 1;
    }
    let renamed = code.get(at).is_some_and(|token| token.is("as"));
    found.push(Named { segments, renamed, line });
    if renamed && !above.is_empty() { at + 2 } else { at }
}

/// What is wrong with a file, given its place below `src` and its code without tests.
fn violations(file: &str, code: &[Token]) -> Vec<String> {
    let module = module_of(file);
    let mut wrong = Vec::new();
    let own = match module.first() {
        Some(own) => own.as_str(),
        // The crate's root and the program's.
        None => "cli",
    };
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == own) else {
        return vec![format!("{file}: the module {own} has no layer; give it one in tests/layering.rs")];
    };
    let pure = own == "model" || own == "policy";
    for Named { segments, renamed, line } in paths(code, &module) {
        let path = segments.join("::");
        let mut complain = |what: String| wrong.push(format!("{file}:{line}: {what} ({path})"));
        let first = segments[0].as_str();
        let below_root = segments.get(1).map(String::as_str);
        let begins = |with: &str| path == with || path.strip_prefix(with).is_some_and(|rest| rest.starts_with("::"));
        if first == "crate" || (file == "main.rs" && first == "recover") {
            match below_root {
                Some("*") => complain("the whole crate is imported".to_owned()),
                None if renamed => complain("the crate is renamed".to_owned()),
                Some(other)
                    if other != own && !allowed.contains(&other) && LAYERS.iter().any(|(name, _)| *name == other) =>
                {
                    complain(format!("{own} names {other}"));
                }
                _ => {}
            }
        }
        if segments.iter().any(|segment| segment == "git2") && own != "git" {
            complain("only git names git2".to_owned());
        }
        let function = path.strip_prefix("std::fs::").is_some_and(|name| name.starts_with(|c: char| c.is_lowercase()));
        let looks =
            ["canonicalize", "metadata", "symlink_metadata", "read_link"].iter().any(|look| path.ends_with(look));
        let function = function && !looks;
        let by_path = function || path == "std::fs" || path == "std::fs::*" || path.ends_with("OpenOptions");
        if (by_path || OPENERS.iter().any(|opener| path.ends_with(opener))) && own != "durable" && !opens_by_path(file)
        {
            complain("what is ours is opened through durable::Root".to_owned());
        }
        if !pure {
            continue;
        }
        if (segments.len() == 1 && renamed && first == "std") || path == "std::*" {
            complain(format!("{own} hides what it names of std"));
        }
        if IMPURE_PATHS.iter().any(|impure| *impure != "git2" && begins(impure)) {
            complain(format!("{own} is pure"));
        }
        let clock = segments.iter().any(|segment| CLOCKS.contains(&segment.as_str()));
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
    let parts = path.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main"));
    parts.map(ToOwned::to_owned).collect()
}

/// Where the files of a test module lie that `file` declares: a file or a folder.
fn test_files(file: &Path, name: &str, path: Option<&str>) -> Vec<PathBuf> {
    let folder = file.parent().expect("a folder");
    if let Some(path) = path {
        return vec![folder.join(path)];
    }
    let stem = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let own = if matches!(stem.as_str(), "mod" | "lib" | "main") { folder.to_owned() } else { folder.join(stem) };
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

#[test]
fn dependencies_point_one_way() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files.sort();
    let mut exempt = BTreeSet::new();
    let mut read = Vec::new();
    for file in files {
        let code = without_tests(&tokens(&fs::read_to_string(&file).expect("a source file")));
        for (name, path) in &code.test_modules {
            exempt.extend(test_files(&file, name, path.as_deref()));
        }
        read.push((file, code));
    }
    read.retain(|(file, _)| !file.ancestors().any(|path| exempt.contains(path)));
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (file, code) in &read {
        let name = file.strip_prefix(&src).expect("below src").to_string_lossy().replace('\\', "/");
        seen.extend(module_of(&name).first().cloned());
        wrong.extend(violations(&name, &code.tokens));
    }
    let by_path = |file: &str| {
        let (_, code) = read.iter().find(|(path, _)| path.ends_with(Path::new("src").join(file)))?;
        Some(code.tokens.iter().any(|token| token.is("fs")))
    };
    for (file, _) in BY_PATH {
        assert_eq!(by_path(file), Some(true), "{file} opens nothing by its path any more");
    }
    assert!(wrong.is_empty(), "the rule of src/lib.rs is broken:\n{}", wrong.join("\n"));
    for (layer, _) in LAYERS {
        assert!(seen.contains(layer), "no source of {layer} was read");
    }
}

/// What the checker says of `source`, standing in `file`.
fn found(file: &str, source: &str) -> Vec<String> {
    violations(file, &without_tests(&tokens(source)).tokens)
}

#[test]
fn planted_violations_are_found() {
    for (file, source) in [
        ("model/run.rs", "use crate::policy::decide;"),
        ("policy/decide.rs", "use crate::{model::run::Run, engine::Context};"),
        ("policy/classify/mod.rs", "fn f() { super::super::store::Store::new() }"),
        ("git/refs.rs", "pub use crate::store::Ledger as L;"),
        ("store/ledger.rs", "fn f(_: &crate::git::Repo) {}"),
        ("process/mod.rs", "mod inner { use super::super::agent::Records; }"),
        ("engine/mod.rs", "use super::cli::ui::Ui;"),
        ("config/mod.rs", "type R = crate::engine::Result<()>;"),
        ("durable/lock.rs", "use crate::engine::Error;"),
        ("policy/backoff.rs", "use crate::durable::replace;"),
        ("model/mod.rs", "use super::*;"),
        ("model/mod.rs", "use crate as everything;"),
        ("store/line.rs", "#[serde(with = \"crate::git::hex\")] struct Line;"),
        ("engine/select.rs", "fn f(_: git2::Oid) {}"),
        ("cli/mod.rs", "extern crate git2;"),
        ("cli/mod.rs", "use ::git2::Repository;"),
        ("engine/select.rs", "#[derive(Debug)] struct S { a: u8, b: git2::Oid }"),
        ("model/time.rs", "use std::{collections::BTreeMap, fs};"),
        ("model/time.rs", "use std::{self as s};"),
        ("model/time.rs", "use std as s;"),
        ("policy/prompt.rs", "fn f() { std::env::var(\"HOME\"); }"),
        ("policy/prompt.rs", "fn f() { ::std::process::exit(1) }"),
        ("policy/prompt.rs", "use ::std::fs;"),
        ("policy/decide.rs", "#[derive(clap::ValueEnum)] enum E {}"),
        ("policy/decide.rs", "fn f() { chrono::Utc::now(); }"),
        ("policy/decide.rs", "use chrono::Utc as U; fn f() { U::now(); }"),
        ("policy/decide.rs", "use std::time::*; fn f() { Instant::now(); }"),
        ("policy/decide.rs", "fn f(_: std::time::SystemTime) {}"),
        ("policy/decide.rs", "#[test] fn f() { std::fs::read(\"a\"); }"),
        ("policy/decide.rs", "#[cfg(any(test, unix))] use std::fs;"),
        ("policy/decide.rs", "#[cfg(not(test))] use std::fs;"),
        ("policy/decide.rs", "#[cfg(test)] use a::b; use std::fs;"),
        ("policy/decide.rs", "#[cfg(test)] mod tests { fn f() {} } fn g() { std::fs::read(\"}\"); }"),
        ("policy/decide.rs", "struct S { #[cfg(test)] a: u8, b: std::fs::File }"),
        ("policy/decide.rs", "const Q: char = '\"'; use std::fs; // \""),
        ("policy/decide.rs", "/* a /* nested */ comment */ use std::fs;"),
        ("surprise/mod.rs", "fn f() {}"),
        ("store/ledger.rs", "use std::{fs, io};"),
        ("store/ledger.rs", "fn f() { std::fs::read(\"a\"); }"),
        ("engine/memory.rs", "use std::fs::File; fn f() { File::open(\"a\"); }"),
        ("config/mod.rs", "use std::fs::OpenOptions;"),
        ("git/restore/journal.rs", "use std::fs::read_to_string;"),
    ] {
        assert!(!found(file, source).is_empty(), "{file}: {source}");
    }
}

#[test]
fn lawful_code_is_left_alone() {
    for (file, source) in [
        ("policy/decide.rs", "use crate::model::run::Run; use super::budget::Budget; use self::inner::X;"),
        ("policy/decide.rs", "// std::fs and git2\n/* crate::engine */ const TEXT: &str = \"std::fs git2 \\\" clap\";"),
        ("policy/decide.rs", "const RAW: &str = r#\"use std::fs; \"quoted\" \"#; fn f<'a>(x: &'a str, now: u8) {}"),
        ("policy/decide.rs", "#[cfg(test)] mod tests { use std::fs; fn f() { crate::agent::read(); } } fn g() {}"),
        ("policy/decide.rs", "#[cfg(all(test, unix))] mod tests { use std::fs; }"),
        ("policy/decide.rs", "#[cfg(test)] #[path = \"decide_tests.rs\"] mod tests;"),
        ("policy/decide.rs", "use std::time::Duration; fn f(now: Timestamp) -> bool { now.since(now).is_zero() }"),
        ("git/place.rs", "use git2::Repository; use crate::{model::path::P, policy::selection, durable};"),
        ("git/place.rs", "mod inner { use super::super::refs::R; }"),
        ("engine/mod.rs", "use crate::git::Repo; use crate::store::Store; use std::time::Instant;"),
        ("store/ledger.rs", "use std::fs::File; use std::os::unix::fs::MetadataExt; fn f(_: File) {}"),
        ("git/odb/pack.rs", "use std::fs; fn f() { fs::File::open(\"a\"); }"),
        ("main.rs", "fn main() { recover::cli::main(std::env::args_os()) }"),
        ("lib.rs", "pub mod agent; pub mod cli;"),
    ] {
        assert_eq!(found(file, source), Vec::<String>::new(), "{file}: {source}");
    }
}

#[test]
fn the_files_of_test_modules_are_known() {
    let code =
        without_tests(&tokens("#[cfg(test)] mod tests; #[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod other; mod real;"));
    assert_eq!(code.test_modules, [("tests".to_owned(), None), ("other".to_owned(), Some("x_tests.rs".to_owned()))]);
    let files = |file: &str, path| test_files(Path::new(file), "tests", path);
    assert_eq!(files("src/git/place.rs", None)[0], Path::new("src/git/place/tests.rs"));
    assert_eq!(files("src/git/mod.rs", None)[1], Path::new("src/git/tests"));
    assert_eq!(files("src/git/place.rs", Some("x_tests.rs")), [Path::new("src/git/x_tests.rs")]);
}
