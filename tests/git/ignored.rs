//! What a capture leaves out as ignored is what git leaves out: `git ls-files` is the judge, byte for byte.
//!
//! `RECOVER_IGNORE_CASES` says how many random cases to play; a failure names its seed, and `RECOVER_IGNORE_SEED` plays
//! that one alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastrand::Rng;
use recover::testing::model::EntryKind;

use crate::bench::Bench;

const CASES: u64 = 150;

type Name = Vec<u8>;

/// A work tree with rules.
#[derive(Debug, Default)]
struct Case {
    /// Every file with what it holds; those with rules among them.
    files: BTreeMap<Name, Vec<u8>>,
    tracked: BTreeSet<Name>,
    /// `info/exclude` and the file of `core.excludesFile`.
    exclude: Vec<u8>,
    user: Vec<u8>,
    /// Whether `core.ignorecase` is set.
    fold: bool,
}

/// Where one case after the other is played: what the last capture knew is there for the next one.
struct Judge {
    bench: Bench,
    config: Vec<u8>,
    user: PathBuf,
}

impl Judge {
    fn new() -> Self {
        let bench = Bench::new();
        let user = bench.folder.path().join("user excludes");
        bench.git(&["config", "core.excludesFile", user.to_str().unwrap()]);
        let config = fs::read(bench.path(".git/config")).unwrap();
        Self {
            bench,
            config,
            user,
        }
    }

    fn set(&self, case: &Case) {
        for entry in fs::read_dir(&self.bench.root).unwrap() {
            let path = entry.unwrap().path();
            match path.file_name().unwrap().as_bytes() {
                b".git" => {}
                _ if path.symlink_metadata().unwrap().is_dir() => fs::remove_dir_all(path).unwrap(),
                _ => fs::remove_file(path).unwrap(),
            }
        }
        for (path, content) in &case.files {
            self.bench.write(path, content);
        }
        let fold = if case.fold {
            "[core]\n\tignorecase = true\n"
        } else {
            ""
        };
        self.bench
            .write(".git/config", [&self.config, fold.as_bytes()].concat());
        self.bench.write(".git/info/exclude", &case.exclude);
        fs::write(&self.user, &case.user).unwrap();
        let _ = fs::remove_file(self.bench.path(".git/index"));
        if !case.tracked.is_empty() {
            let paths: Vec<&[u8]> = case.tracked.iter().map(Vec::as_slice).collect();
            self.git(&["update-index", "--add", "-z", "--stdin"], &paths.join(&0));
        }
    }

    fn git(&self, args: &[&str], input: &[u8]) -> BTreeSet<Name> {
        let mut command = Command::new("git");
        command
            .current_dir(&self.bench.root)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LC_ALL", "C.UTF-8");
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            command.env_remove(name);
        }
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// What a capture and git do not agree about.
    fn differences(&self, case: &Case) -> Vec<String> {
        self.set(case);
        let snapshot = self.bench.capture().snapshot().unwrap();
        let captured = snapshot
            .entries
            .iter()
            .filter(|(_, entry)| entry.kind != EntryKind::EmptyDir);
        let captured: BTreeSet<Name> = captured.map(|(path, _)| path.as_bytes().to_vec()).collect();
        let seen = self.git(&["ls-files", "-z", "-o", "-c", "--exclude-standard"], b"");
        let ignored = self.git(&["ls-files", "-z", "-o", "-i", "--exclude-standard"], b"");
        let left: BTreeSet<Name> = case
            .files
            .keys()
            .filter(|path| !captured.contains(*path))
            .cloned()
            .collect();
        let mut differences = Vec::new();
        for (what, ours, theirs) in [
            ("captured", &captured, &seen),
            ("left out", &left, &ignored),
        ] {
            for name in ours.symmetric_difference(theirs) {
                let by = if ours.contains(name) {
                    "only here"
                } else {
                    "only by git"
                };
                differences.push(format!("{}: {what} {by}", name.escape_ascii()));
            }
        }
        differences
    }
}

/// Names that the paths of a case are made of.
fn names(rng: &mut Rng) -> Vec<Name> {
    const POOL: [&[u8]; 40] = [
        b"a",
        b"b",
        b"ab",
        b"aab",
        b"A",
        b"aB",
        b"a.x",
        b"b.x",
        b"a.X",
        b"a b",
        b"a ",
        b" ",
        b"  a",
        b"a\t",
        b"\t",
        b"a\r",
        b"a\\",
        b"\\",
        b"\\a",
        b"#a",
        b"!a",
        b"!",
        b"*",
        b"a*",
        b"?",
        b"[a]",
        b"[",
        b"]",
        b"{a,b}",
        b"{",
        b"-",
        b"0",
        b"a1",
        b"\xff",
        b"\xffa",
        b"\xc3\xa9",
        b"^",
        b"a\x0b",
        b"_",
        b"$a",
    ];
    (0..rng.usize(3..9))
        .map(|_| POOL[rng.usize(..POOL.len())].to_vec())
        .collect()
}

/// A piece of a pattern.
fn piece(rng: &mut Rng) -> Name {
    const PIECES: [&[u8]; 48] = [
        b"*",
        b"**",
        b"?",
        b"/",
        b"**/",
        b"/**",
        b"/**/",
        b"*/",
        b"\\",
        b"\\\\",
        b"\\*",
        b"[",
        b"]",
        b"[a]",
        b"[!a]",
        b"[^a]",
        b"[a-b]",
        b"[A-C]",
        b"[]-a]",
        b"[b-a]",
        b"[a-]",
        b"[\\]]",
        b"[[]",
        b"[a",
        b"[[:alpha:]]",
        b"[[:digit:]]",
        b"[[:upper:]]",
        b"[[:space:]]",
        b"[![:lower:]]",
        b"[[:punct:]]",
        b"[[:cntrl:]]",
        b"[[:nope:]]",
        b"[[:alnum:]-z]",
        b"[[:alpha]",
        b"[\x80-\xff]",
        b"{a,b}",
        b"{",
        b"}",
        b"!",
        b"#",
        b" ",
        b"\t",
        b"\\ ",
        b"\r",
        b"\xff",
        b"\0",
        b"***",
        b"[[::]]",
    ];
    PIECES[rng.usize(..PIECES.len())].to_vec()
}

/// A pattern: pieces at random, or a path of the case of which some bytes are replaced by what could stand for them.
fn pattern(rng: &mut Rng, names: &[Name]) -> Name {
    let mut line = Vec::new();
    if rng.u8(..3) == 0 {
        for _ in 0..rng.usize(..5) {
            let next = if rng.bool() {
                piece(rng)
            } else {
                names[rng.usize(..names.len())].clone()
            };
            line.extend(next);
        }
    } else {
        for part in 0..rng.usize(1..4) {
            if part > 0 {
                line.extend(
                    [b"/".as_slice(), b"/", b"/", b"/**/", b"/*/", b"**/", b"\\/"][rng.usize(..7)],
                );
            }
            for byte in names[rng.usize(..names.len())].clone() {
                match rng.u8(..16) {
                    0 => line.push(b'?'),
                    1 => line.push(b'*'),
                    2 => line.extend([b'\\', byte]),
                    3 => line.extend([b'[', byte, b']']),
                    4 => line.extend([
                        b'[',
                        byte.wrapping_sub(1).max(1),
                        b'-',
                        byte.saturating_add(1),
                        b']',
                    ]),
                    5 => line.extend(piece(rng)),
                    6 => line.push(byte ^ if byte.is_ascii_alphabetic() { 0x20 } else { 0 }),
                    _ => line.push(byte),
                }
            }
        }
    }
    match rng.u8(..12) {
        0..3 => line.insert(0, b'/'),
        3 => drop(line.splice(0..0, *b"**/")),
        4 => drop(line.splice(0..0, *b"*")),
        _ => {}
    }
    match rng.u8(..14) {
        0..3 => line.push(b'/'),
        3 => line.extend(b"/**"),
        4 => line.extend(b"/*"),
        5 => line.push(b'*'),
        _ => {}
    }
    if rng.u8(..4) == 0 {
        line.insert(0, b'!');
    }
    match rng.u8(..20) {
        0 => line.push(b' '),
        1 => line.extend(b"  "),
        2 => line.push(b'\t'),
        3 => line.extend(b"\\ "),
        4 => line.push(b'\\'),
        5 => line.push(b'\r'),
        _ => {}
    }
    line.retain(|byte| *byte != b'\n');
    line
}

fn rules(rng: &mut Rng, names: &[Name]) -> Vec<u8> {
    let lines: Vec<Name> = (0..rng.usize(1..6)).map(|_| pattern(rng, names)).collect();
    let end = [b"\n".as_slice(), b"\n", b"\r\n"][rng.usize(..3)];
    let mut content = lines.join(end);
    if rng.bool() {
        content.extend(end);
    }
    if rng.u8(..12) == 0 {
        let bom = [b"\xef\xbb\xbf".as_slice(), b"\xff\xfe", b"\xef\xbb"][rng.usize(..3)];
        content.splice(0..0, bom.iter().copied());
    }
    content
}

fn random(seed: u64) -> Case {
    let rng = &mut Rng::with_seed(seed);
    let names = names(rng);
    let mut case = Case {
        fold: rng.u8(..3) == 0,
        ..Case::default()
    };
    // With case ignored git takes two spellings for one name: each case spells a name in one way.
    let mut spelled: BTreeMap<Name, Name> = BTreeMap::new();
    let mut one = |name: Name| {
        if case.fold {
            spelled
                .entry(name.to_ascii_lowercase())
                .or_insert(name)
                .clone()
        } else {
            name
        }
    };
    let mut folders: BTreeSet<Name> = BTreeSet::from([Vec::new()]);
    for _ in 0..rng.usize(2..14) {
        let parts: Vec<Name> = (0..rng.usize(1..5))
            .map(|_| one(names[rng.usize(..names.len())].clone()))
            .collect();
        let path = parts.join(&b'/');
        let above: Vec<Name> = (1..parts.len())
            .map(|end| parts[..end].join(&b'/'))
            .collect();
        if above.iter().any(|folder| case.files.contains_key(folder)) || folders.contains(&path) {
            continue;
        }
        folders.extend(above);
        case.files.insert(path.clone(), b"x".to_vec());
        if rng.u8(..5) == 0 {
            case.tracked.insert(path);
        }
    }
    for folder in folders {
        if folder.is_empty() || rng.u8(..3) == 0 {
            let separator: &[u8] = if folder.is_empty() { b"" } else { b"/" };
            let path = [&folder, separator, b".gitignore"].concat();
            case.files.insert(path, rules(rng, &names));
        }
    }
    if rng.bool() {
        case.exclude = rules(rng, &names);
    }
    if rng.bool() {
        case.user = rules(rng, &names);
    }
    case
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    })
}

#[test]
fn random_rules_ignore_what_git_ignores() {
    let one = number("RECOVER_IGNORE_SEED");
    let (begin, cases) = one.map_or(
        (1, number("RECOVER_IGNORE_CASES").unwrap_or(CASES)),
        |seed| (seed, 1),
    );
    let judge = Judge::new();
    let (mut failed, mut ignored) = (Vec::new(), 0);
    for seed in begin..begin + cases {
        let case = random(seed);
        let differences = judge.differences(&case);
        ignored += u64::from(
            !judge
                .git(&["ls-files", "-z", "-o", "-i", "--exclude-standard"], b"")
                .is_empty(),
        );
        if !differences.is_empty() {
            failed.push(format!(
                "RECOVER_IGNORE_SEED={seed}\n{differences:#?}\n{}",
                shown(&case)
            ));
        }
        if failed.len() >= 5 {
            break;
        }
    }
    println!(
        "{cases} cases, {ignored} of them with ignored files, {} different",
        failed.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(
        one.is_some() || ignored * 4 > cases,
        "too few of the cases ignore anything: {ignored}"
    );
}

fn shown(case: &Case) -> String {
    let rules = case
        .files
        .iter()
        .filter(|(path, _)| path.ends_with(b".gitignore"));
    let rules = rules
        .map(|(path, content)| format!("  {}: {}", path.escape_ascii(), content.escape_ascii()));
    let files: Vec<String> = case
        .files
        .keys()
        .map(|path| path.escape_ascii().to_string())
        .collect();
    format!(
        "  ignorecase {}\n  exclude: {}\n  excludesFile: {}\n{}\n  files: {files:?}\n",
        case.fold,
        case.exclude.escape_ascii(),
        case.user.escape_ascii(),
        rules.collect::<Vec<_>>().join("\n")
    )
}

/// Its name, the rules, what they ignore, and what they do not.
type Trap = (
    &'static str,
    &'static [u8],
    &'static [&'static [u8]],
    &'static [&'static [u8]],
);

const TRAPS: [Trap; 34] = [
    (
        "braces are plain characters",
        b"*.{log,txt}",
        &[b"x.{log,txt}"],
        &[b"x.log", b"x.txt"],
    ),
    ("a lone brace", b"{\na}", &[b"{", b"a}"], &[b"a"]),
    ("a POSIX class", b"f[[:digit:]]", &[b"f1"], &[b"fa", b"f:"]),
    (
        "a POSIX class among others",
        b"[x[:upper:]-]",
        &[b"x", b"A", b"-"],
        &[b"a"],
    ),
    (
        "a POSIX class that there is not",
        b"[[:word:]]\n[[:word:]a]",
        &[],
        &[b"a", b"w"],
    ),
    (
        "a POSIX class that is not closed",
        b"[[:alpha]",
        &[b"a", b":", b"["],
        &[b"x"],
    ),
    (
        "a class of spaces without vertical tabs",
        b"[[:space:]]",
        &[b" ", b"\t"],
        &[b"\x0b", b"\x0c"],
    ),
    (
        "a line that is not UTF-8",
        b"*.\xff\ncaf\xe9",
        &[b"a.\xff", b"caf\xe9"],
        &[b"caf\xc3\xa9"],
    ),
    ("? is a byte", b"?", &[b"a", b"\xff"], &[b"\xc3\xa9"]),
    ("bytes in a class", b"[\x80-\xff]", &[b"\xe9"], &[b"a"]),
    ("a tab at the end", b"a\t", &[b"a\t"], &[b"a"]),
    ("a tab alone", b"\t", &[b"\t"], &[b"a"]),
    (
        "spaces at the end",
        b"a  \nb\\ \nc\\  ",
        &[b"a", b"b ", b"c "],
        &[b"a  ", b"b", b"c"],
    ),
    ("spaces at the beginning", b" a", &[b" a"], &[b"a"]),
    (
        "a backslash at the end",
        b"a\\\nb\\\\",
        &[b"b\\"],
        &[b"a", b"a\\"],
    ),
    (
        "escaped wildcards",
        b"\\*\n\\?a\n\\[b]",
        &[b"*", b"?a", b"[b]"],
        &[b"x", b"xa", b"b"],
    ),
    (
        "escaped # and !",
        b"\\#a\n\\!b\n#c",
        &[b"#a", b"!b"],
        &[b"#c", b"a", b"b"],
    ),
    ("a BOM", b"\xef\xbb\xbfa\nb", &[b"a", b"b"], &[]),
    ("no BOM of UTF-16", b"\xff\xfea", &[b"\xff\xfea"], &[b"a"]),
    ("CRLF", b"a\r\nb\r", &[b"a", b"b"], &[b"a\r"]),
    ("a NUL ends the line", b"a\0b\nc", &[b"a", b"c"], &[b"b"]),
    (
        "a class that is not closed",
        b"[a\n[",
        &[],
        &[b"a", b"[a", b"["],
    ),
    (
        "a bracket that comes first in a class",
        b"[]a]",
        &[b"]", b"a"],
        &[b"[]a]"],
    ),
    (
        "a range of which the end comes first",
        b"[c-a]",
        &[],
        &[b"a", b"b", b"-"],
    ),
    (
        "a star does not cross a slash",
        b"d/*.x",
        &[b"d/a.x"],
        &[b"d/e/a.x"],
    ),
    (
        "two stars within a name are one",
        b"d/a**b",
        &[b"d/ab", b"d/axb"],
        &[b"d/a/b"],
    ),
    (
        "two stars behind a literal",
        b"lit**/b",
        &[b"lit/b", b"litx/y/b"],
        &[b"other/b"],
    ),
    (
        "two stars between slashes",
        b"d/**/b",
        &[b"d/b", b"d/x/y/b"],
        &[b"d/bb"],
    ),
    (
        "a slash in the middle anchors",
        b"d/a\n/e",
        &[b"d/a", b"e"],
        &[b"x/d/a", b"x/e"],
    ),
    ("folders only", b"d/", &[b"d/a", b"x/d/a"], &[b"y/d"]),
    (
        "below an excluded folder nothing comes back",
        b"d/\n!d/a\n!a",
        &[b"d/a"],
        &[b"a"],
    ),
    (
        "a negation brings back",
        b"*.x\n!keep.x",
        &[b"a.x"],
        &[b"keep.x", b"d/keep.x"],
    ),
    (
        "what is left of a pattern",
        b"/\n//\n!\n!!\n",
        &[],
        &[b"a", b"!"],
    ),
    (
        "a $ is a plain character",
        b"$a\n\\$b",
        &[b"$a", b"$b"],
        &[b"a", b"b"],
    ),
];

#[test]
fn known_traps_are_those_of_git() {
    let judge = Judge::new();
    for (name, rules, ignored, seen) in TRAPS {
        let all = ignored.iter().chain(seen);
        let mut case = Case {
            files: all.map(|path| (path.to_vec(), b"x".to_vec())).collect(),
            ..Case::default()
        };
        case.files.insert(b".gitignore".to_vec(), rules.to_vec());
        let expected: BTreeSet<Name> = ignored.iter().map(|path| path.to_vec()).collect();
        judge.set(&case);
        assert_eq!(
            judge.git(&["ls-files", "-z", "-o", "-i", "--exclude-standard"], b""),
            expected,
            "by git: {name}"
        );
        assert_eq!(judge.differences(&case), [""; 0], "{name}");
        // The same rules in the other places, with nothing of the last capture in the way.
        let rules = case.files.remove(b".gitignore".as_slice()).unwrap();
        case.exclude.clone_from(&rules);
        assert_eq!(judge.differences(&case), [""; 0], "{name}, in info/exclude");
        case.user = std::mem::take(&mut case.exclude);
        assert_eq!(
            judge.differences(&case),
            [""; 0],
            "{name}, in core.excludesFile"
        );
    }
}

#[test]
fn case_is_ignored_where_git_ignores_it() {
    let judge = Judge::new();
    let names = ["a", "b", "c", "d", "e.log", "F", "G"]
        .map(|name| (name.as_bytes().to_vec(), b"x".to_vec()));
    let mut case = Case {
        files: names.into(),
        fold: true,
        ..Case::default()
    };
    // Neither an escaped letter nor one in a class is folded; a range and a named class are.
    case.files.insert(
        b".gitignore".to_vec(),
        b"A\n\\B\n[C]\n[D-D]\n*.LOG\nf\n[[:lower:]][[:lower:]]\n".to_vec(),
    );
    assert_eq!(judge.differences(&case), [""; 0]);
    let ignored = judge.git(&["ls-files", "-z", "-o", "-i", "--exclude-standard"], b"");
    assert_eq!(
        ignored,
        ["F", "a", "d", "e.log"]
            .map(|name| name.as_bytes().to_vec())
            .into()
    );
}

#[test]
fn a_linked_file_holds_no_rules_in_the_tree_and_does_outside() {
    let bench = Bench::new();
    bench.write("rules", "a\n");
    bench.write("a", "x");
    std::os::unix::fs::symlink("rules", bench.path(".gitignore")).unwrap();
    assert_eq!(
        bench.git(&["ls-files", "-o", "--exclude-standard"]),
        ".gitignore\na\nrules\n"
    );
    assert!(
        bench
            .capture()
            .snapshot()
            .unwrap()
            .entries
            .contains_key(&"a".into())
    );
    let outside: &Path = bench.folder.path();
    fs::write(outside.join("linked"), "a\n").unwrap();
    fs::remove_file(bench.path(".git/info/exclude")).unwrap();
    std::os::unix::fs::symlink(outside.join("linked"), bench.path(".git/info/exclude")).unwrap();
    assert_eq!(
        bench.git(&["ls-files", "-o", "--exclude-standard"]),
        ".gitignore\nrules\n"
    );
    assert!(
        !bench
            .capture()
            .snapshot()
            .unwrap()
            .entries
            .contains_key(&"a".into())
    );
}

#[test]
fn a_relative_excludes_file_is_sought_from_the_top() {
    let bench = Bench::new();
    bench.git(&["config", "core.excludesFile", "config/excludes"]);
    bench.write("config/excludes", OsStr::new("*.o\n").as_bytes());
    bench.write("a.o", "x");
    assert_eq!(
        bench.git(&["ls-files", "-o", "--exclude-standard"]),
        "config/excludes\n"
    );
    assert!(
        !bench
            .capture()
            .snapshot()
            .unwrap()
            .entries
            .contains_key(&"a.o".into())
    );
}
