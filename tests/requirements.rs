//! `tests/REQUIREMENTS.md` says of every requirement which tests prove it.
//!
//! It is made of what stands above the tests: a comment that names a requirement's id (`// S10: …`, `L1–L4`), or a test whose
//! name ends with it (`…_s8_a2`).
//!
//! `RECOVER_TEST_REFRESH=1 cargo test --test requirements` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "tests/REQUIREMENTS.md";

const HEAD: &str = "\
# Requirements, and the tests that prove them

Made from the comments above the tests, which name the ids of what they prove; `tests/requirements.rs` holds it:

```sh
RECOVER_TEST_REFRESH=1 cargo test --test requirements
```

";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A requirement's place in the order of the pages: the documents, then their numbers.
fn order(id: &str) -> (usize, u32) {
    (
        "BLASC".find(&id[..1]).expect("a document"),
        id[1..].parse().expect("a number"),
    )
}

/// The rows `| B1 | what |…` of a page.
fn rows(page: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (id, what) = (cells.next()?, cells.next()?.trim_end_matches(" |"));
        ids(id)
            .contains(id)
            .then(|| (id.to_owned(), what.to_owned()))
    };
    page.lines().filter_map(row).collect()
}

/// The ids that a text names; `S1–S3` and `S1-S3` are three.
fn ids(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut last: Option<(char, u32)> = None;
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '–') {
        for (at, part) in word.split(['-', '–']).enumerate() {
            let mut chars = part.chars();
            let letter = chars.next().filter(|letter| "BLASC".contains(*letter));
            let digits = chars.as_str();
            let plain =
                (1..=2).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_digit());
            let (Some(letter), true) = (letter, plain) else {
                break;
            };
            let number = digits.parse().expect("digits");
            let first = match last {
                Some((other, first)) if at > 0 && other == letter => first,
                _ => number,
            };
            found.extend((first..=number).map(|number| format!("{letter}{number}")));
            last = Some((letter, number));
        }
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// By id: the tests that name it, by file.
fn proofs() -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    files.sort();
    let mut proofs: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for file in files {
        let name = file
            .strip_prefix(root())
            .expect("below the root")
            .to_string_lossy()
            .into_owned();
        for (test, about) in tests(&text(&file)) {
            for id in about {
                proofs
                    .entry(id)
                    .or_default()
                    .entry(name.clone())
                    .or_default()
                    .push(test.clone());
            }
        }
    }
    proofs
}

/// The tests of a source, each with the ids in the comments above and in it, and at the end of its name.
fn tests(source: &str) -> Vec<(String, BTreeSet<String>)> {
    let lines: Vec<&str> = source.lines().collect();
    let is_comment = |line: &&&str| line.trim_start().starts_with("//");
    let mut found = Vec::new();
    for (at, first) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.trim() == "#[test]")
    {
        let name = lines[at..]
            .iter()
            .find_map(|line| line.split("fn ").nth(1)?.split('(').next());
        let name = name.expect("a test has a name").to_owned();
        let above = lines[..at].iter().rev().take_while(is_comment);
        let end = first.replace("#[test]", "}");
        let inside = lines[at..]
            .iter()
            .take_while(|line| **line != end)
            .filter(is_comment);
        let mut about: BTreeSet<String> = above.chain(inside).flat_map(|line| ids(line)).collect();
        about.extend(
            name.split('_')
                .rev()
                .map(str::to_ascii_uppercase)
                .map_while(|word| ids(&word).pop_first()),
        );
        found.push((name, about));
    }
    found
}

fn page(
    requirements: &[(String, String)],
    proofs: &BTreeMap<String, BTreeMap<String, Vec<String>>>,
) -> String {
    let mut page = format!("{HEAD}| id | what | proved by |\n| --- | --- | --- |\n");
    for (id, what) in requirements {
        let by = match proofs.get(id) {
            Some(files) => {
                let of_file = |(file, tests): (&String, &Vec<String>)| {
                    format!(
                        "`{file}`: {}",
                        tests
                            .iter()
                            .map(|test| format!("`{test}`"))
                            .collect::<Vec<_>>()
                            .join(", ")
                    )
                };
                files.iter().map(of_file).collect::<Vec<_>>().join("; ")
            }
            None => "nothing".to_owned(),
        };
        page.push_str(&format!("| {id} | {what} | {by} |\n"));
    }
    page
}

/// The requirements: those that the page lists.
fn requirements() -> Vec<(String, String)> {
    let mut listed = rows(&text(&root().join(PAGE)));
    listed.sort_by_key(|(id, _)| order(id));
    listed
}

#[test]
fn every_requirement_has_its_tests() {
    let (requirements, proofs) = (requirements(), proofs());
    assert!(
        requirements.len() >= 57,
        "{} requirements",
        requirements.len()
    );
    let expected = page(&requirements, &proofs);
    if std::env::var_os("RECOVER_TEST_REFRESH").is_some() {
        fs::write(root().join(PAGE), &expected).expect("written");
    }
    assert!(
        text(&root().join(PAGE)) == expected,
        "{PAGE} is out of date: RECOVER_TEST_REFRESH=1 cargo test --test requirements"
    );
    let known: BTreeSet<&String> = requirements.iter().map(|(id, _)| id).collect();
    let strange: Vec<&String> = proofs.keys().filter(|id| !known.contains(id)).collect();
    assert!(
        strange.is_empty(),
        "tests name what is no requirement: {strange:?}"
    );
    let unproved: Vec<&&String> = known
        .iter()
        .filter(|id| !proofs.contains_key(**id))
        .collect();
    assert!(unproved.is_empty(), "no test proves {unproved:?}");
}

#[test]
fn ids_are_found_in_comments_and_names() {
    let found = |text: &str| ids(text).into_iter().collect::<Vec<_>>();
    assert_eq!(
        found("// S10, L1–L3 and B1 (A2); ASCII, S, S100, UTF-8, C-3"),
        ["A2", "B1", "L1", "L2", "L3", "S10"]
    );
    assert_eq!(found("C1-C3"), ["C1", "C2", "C3"]);
    let source = "// About B2.\n#[test]\nfn one() {\n    // And L4.\n}\n\n// Nothing.\n#[test]\nfn the_table_s8_a2() {}\n";
    let all = tests(source);
    let of = |at: usize| all[at].1.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        (all[0].0.as_str(), of(0), of(1)),
        ("one", vec!["B2", "L4"], vec!["A2", "S8"])
    );
}
