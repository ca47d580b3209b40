//! A file of tasks: read as a Markdown checklist, TOML or JSON, put in the order of what each needs, and ticked.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memchr_iter;
use serde::Deserialize;

use super::classify::guess_loop;
use crate::model::time::parse_duration;
use crate::model::{FeedbackLoop, FolderId, Task};

/// More tasks are no list for a run.
const MOST: usize = 1000;
/// How often a fence repeats its character at least.
const FENCE: usize = 3;

/// Why a file is no list of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// 1-based; `None` where it is about the file as a whole.
    pub line: Option<usize>,
    pub message: String,
}

impl Problem {
    fn at(line: usize, message: impl Into<String>) -> Self {
        let line = Some(line);
        let message = message.into();
        Self { line, message }
    }
}

/// What a file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The tasks that are to be done, as they stand in the file, each with its line.
    pub open: Vec<(usize, Task)>,
    /// The ids of those that are done.
    pub done: BTreeSet<String>,
}

/// Reads a file's text; by the end of its name it is `.toml`, `.json`, or else a Markdown checklist.
pub(crate) fn parse(name: &str, text: &str) -> Result<Listed, Problem> {
    let listed = match name.rsplit_once('.').map(|(_, end)| end) {
        Some("toml") => toml_list(text)?,
        Some("json") => json_list(text)?,
        _ => markdown_list(text),
    };
    let mut known = listed.done.clone();
    for (at, (line, task)) in listed.open.iter().enumerate() {
        if at >= MOST {
            return Err(Problem::at(
                *line,
                format!("a list has at most {MOST} tasks"),
            ));
        }
        if task.id.trim().is_empty() || task.id.chars().any(char::is_control) {
            return Err(Problem::at(
                *line,
                "a task's id is one line of text, and not empty",
            ));
        }
        if !known.insert(task.id.clone()) {
            return Err(Problem::at(
                *line,
                format!("task '{}' is there twice", task.id),
            ));
        }
    }
    Ok(listed)
}

/// Puts tasks in an order in which each comes after those that it needs, which is the file's where nothing speaks against it.
/// `done` needs no place: it is met.
pub(crate) fn ordered(
    mut open: Vec<(usize, Task)>,
    done: &BTreeSet<String>,
) -> Result<Vec<Task>, Problem> {
    let ids: BTreeSet<String> = open.iter().map(|(_, task)| task.id.clone()).collect();
    for (line, task) in &open {
        let is_unknown = |id: &&String| !ids.contains(*id) && !done.contains(*id);
        if let Some(unknown) = task.needs.iter().find(is_unknown) {
            let message = format!("task '{}' needs '{unknown}', which is no task", task.id);
            return Err(Problem::at(*line, message));
        }
    }
    let mut placed = done.clone();
    let mut order = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let is_ready = |(_, task): &(usize, Task)| task.needs.iter().all(|id| placed.contains(id));
        let Some(at) = open.iter().position(is_ready) else {
            let ids: Vec<&str> = open.iter().map(|(_, task)| task.id.as_str()).collect();
            let message = format!("tasks need each other in a circle: {}", ids.join(", "));
            return Err(Problem::at(open[0].0, message));
        };
        let (_, task) = open.remove(at);
        placed.insert(task.id.clone());
        order.push(task);
    }
    Ok(order)
}

/// An item of a checklist: whether it is ticked, and its text.
fn item(line: &str) -> Option<(bool, &str)> {
    let rest = line
        .strip_prefix(['-', '*', '+'])?
        .trim_start_matches(' ')
        .strip_prefix('[')?;
    let (tick, text) = rest.split_once(']')?;
    let text = text.strip_prefix([' ', '\t'])?.trim();
    let is_ticked = match tick {
        " " => false,
        "x" | "X" => true,
        _ => return None,
    };
    Some((is_ticked, text)).filter(|_| !text.is_empty())
}

/// The lines of a Markdown text that are items, by their number; what is fenced is none.
fn items(text: &str) -> impl Iterator<Item = (usize, bool, &str)> {
    let mut fence: Option<&str> = None;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let mark = line
            .get(..FENCE)
            .filter(|mark| matches!(*mark, "```" | "~~~"));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let (is_ticked, text) = item(line).filter(|_| fence.is_none())?;
        Some((number, is_ticked, text))
    })
}

fn markdown_list(text: &str) -> Listed {
    let lines: Vec<&str> = text.lines().collect();
    let mut listed = Listed::default();
    for (number, is_ticked, text) in items(text) {
        if is_ticked {
            listed.done.insert(text.to_owned());
            continue;
        }
        let belongs = |line: &&&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
        let below: Vec<&str> = lines[number..]
            .iter()
            .take_while(belongs)
            .copied()
            .collect();
        let task = Task {
            id: text.to_owned(),
            prompt: with_more(text, &below),
            ..Task::default()
        };
        listed.open.push((number, task));
    }
    listed
}

/// A text with the lines that are indented below it, as far as all of them are.
fn with_more(text: &str, below: &[&str]) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let all = below.iter().filter(|line| !line.trim().is_empty());
    let least = all.map(indent).min().unwrap_or(0);
    let more: Vec<&str> = below
        .iter()
        .map(|line| line.get(least..).unwrap_or_else(|| line.trim_start()))
        .collect();
    let more = more.join("\n");
    match more.trim_end() {
        "" => text.to_owned(),
        more => format!("{text}\n\n{}", more.trim_start_matches('\n')),
    }
}

/// Shares tasks out to as many runs at once, at most: what needs another comes to the same as that, in their order, and each
/// has about as many.
pub(crate) fn lanes(tasks: &[Task], count: usize) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        let needed =
            |group: &Vec<usize>| group.iter().any(|one| task.needs.contains(&tasks[*one].id));
        let (with, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(needed);
        groups = others;
        groups.push(with.into_iter().flatten().chain([at]).collect());
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group.iter().min().copied()));
    let mut lanes: Vec<Vec<usize>> = vec![Vec::new(); count.min(groups.len())];
    for group in groups {
        if let Some(least) = lanes.iter_mut().min_by_key(|lane| lane.len()) {
            least.extend(group);
        }
    }
    let ids = |mut lane: Vec<usize>| {
        lane.sort_unstable();
        lane.iter().map(|at| tasks[*at].id.clone()).collect()
    };
    lanes.into_iter().map(ids).collect()
}

/// A name for runs, made of a text: what is none of it is kept distinct by a checksum.
pub(crate) fn run_name(text: &str) -> String {
    /// The longest part of the text in it, in characters.
    const LONGEST: usize = 40;
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let words: String = text.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(LONGEST).collect();
    if name == text {
        return name;
    }
    format!("{name}-{:08x}", crc32fast::hash(text.as_bytes()))
}

/// Ticks the items of a Markdown text that `ids` has, or with `done` false takes their ticks back; returns the new text and what
/// of them changed.
pub(crate) fn tick(text: &str, ids: &BTreeSet<String>, done: bool) -> (String, Vec<String>) {
    let changed: BTreeMap<usize, &str> = items(text)
        .filter(|(_, is_ticked, text)| *is_ticked != done && ids.contains(*text))
        .map(|(number, _, text)| (number, text))
        .collect();
    let ticked = if done { "[x]" } else { "[ ]" };
    let line = |(number, line): (usize, &str)| match line.split_once('[') {
        Some((before, after)) if changed.contains_key(&number) => {
            format!("{before}{ticked}{}", &after[2..])
        }
        _ => line.to_owned(),
    };
    let marked = (1..).zip(text.split_inclusive('\n')).map(line).collect();
    (marked, changed.into_values().map(str::to_owned).collect())
}

/// A list as TOML and JSON have it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(alias = "tasks")]
    task: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    prompt: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    feedback: BTreeMap<String, String>,
    attempts: Option<u32>,
    timeout: Option<String>,
    #[serde(default)]
    done: bool,
}

fn toml_list(text: &str) -> Result<Listed, Problem> {
    let document = toml::from_str(text).map_err(|error| Problem {
        line: error
            .span()
            .map(|span| line_at(text.as_bytes(), span.start)),
        message: error.message().to_owned(),
    });
    listed(document?, text)
}

fn json_list(text: &str) -> Result<Listed, Problem> {
    let document = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        Problem::at(error.line(), message)
    });
    listed(document?, text)
}

/// The number of the line that has this byte.
pub(crate) fn line_at(text: &[u8], byte: usize) -> usize {
    memchr_iter(b'\n', text.get(..byte).unwrap_or_default()).count() + 1
}

/// The line on which the entry with this id begins, the `nth` of them.
fn line_of(text: &str, id: &str, nth: usize) -> usize {
    let quoted = serde_json::to_string(id).unwrap_or_default();
    let literal = format!("'{id}'");
    let names = |line: &str| {
        let at = line.find(&quoted).or_else(|| line.find(&literal));
        at.is_some_and(|at| {
            let key = line[..at]
                .trim_end()
                .trim_end_matches(['=', ':'])
                .trim_end();
            key.trim_end_matches(['"', '\'']).ends_with("id")
        })
    };
    let mut found = (1..).zip(text.lines()).filter(|(_, line)| names(line));
    found.nth(nth).map_or(1, |(number, _)| number)
}

fn listed(document: Document, text: &str) -> Result<Listed, Problem> {
    let mut listed = Listed::default();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for entry in document.task {
        let nth = seen.entry(entry.id.clone()).or_default();
        let line = line_of(text, &entry.id, *nth);
        *nth += 1;
        if entry.done && *nth == 1 {
            listed.done.insert(entry.id);
        } else {
            let task = task_of(entry).map_err(|message| Problem::at(line, message))?;
            listed.open.push((line, task));
        }
    }
    Ok(listed)
}

fn task_of(entry: Entry) -> Result<Task, String> {
    let of = |message: String| format!("task '{}': {message}", entry.id);
    if entry.attempts == Some(0) {
        return Err(of("attempts is 1 or more".to_owned()));
    }
    let timeout = entry.timeout.as_deref().map(parse_duration).transpose();
    let timeout = timeout.map_err(|error| of(format!("timeout: {error}")))?;
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(of("timeout is more than 0".to_owned()));
    }
    let check = |(name, command): (String, String)| FeedbackLoop {
        kind: guess_loop(&name, &command),
        name,
        command,
        dir: FolderId::default(),
        timeout_ms: None,
    };
    Ok(Task {
        prompt: entry.prompt.unwrap_or_else(|| entry.id.clone()),
        needs: entry.needs,
        feedback: entry.feedback.into_iter().map(check).collect(),
        attempts: entry.attempts,
        timeout_ms: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        id: entry.id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKDOWN: &str = "# Tonight\n\n- [ ] Fix the parser\n  It loses the last line.\n\n    keep this\n- [x] Old\n* [ ] Port the tests\n\
                            ```\n- [ ] an example\n```\ntext\n- [y] none\n  - [ ] nested\n";

    fn ids(listed: &Listed) -> Vec<(usize, &str)> {
        listed
            .open
            .iter()
            .map(|(line, task)| (*line, task.id.as_str()))
            .collect()
    }

    fn problem(name: &str, text: &str) -> (Option<usize>, String) {
        let problem = parse(name, text)
            .and_then(|listed| ordered(listed.open, &listed.done))
            .unwrap_err();
        (problem.line, problem.message)
    }

    #[test]
    fn lanes_have_whole_groups_and_about_as_many_tasks_each() {
        let task = |text: &str| {
            let mut words = text.split(' ').map(str::to_owned);
            let id = words.next().unwrap_or_default();
            Task {
                id,
                needs: words.collect(),
                ..Task::default()
            }
        };
        let tasks = ["a", "b", "c a", "d b", "e", "f c d", "g", "h g"].map(task);
        let joined = |count| {
            lanes(&tasks, count)
                .iter()
                .map(|lane| lane.join(""))
                .collect::<Vec<_>>()
        };
        assert_eq!(joined(1), ["abcdefgh"]);
        assert_eq!(joined(2), ["abcdf", "egh"]);
        assert_eq!(joined(9), ["abcdf", "gh", "e"]);
    }

    #[test]
    fn a_checklist_has_items_with_what_is_indented_below_them() {
        let listed = parse("TASKS.md", MARKDOWN).unwrap();
        assert_eq!(ids(&listed), [(3, "Fix the parser"), (8, "Port the tests")]);
        assert_eq!(
            listed.open[0].1.prompt,
            "Fix the parser\n\nIt loses the last line.\n\n  keep this"
        );
        assert_eq!(listed.open[1].1.prompt, "Port the tests");
        assert!(listed.done.contains("Old") && listed.done.len() == 1);
    }

    #[test]
    fn ticking_changes_nothing_but_the_box() {
        let done = ["Port the tests", "Old", "an example", "nested"]
            .map(str::to_owned)
            .into();
        let (text, ticked) = tick(MARKDOWN, &done, true);
        assert_eq!(ticked, ["Port the tests"]);
        assert_eq!(text, MARKDOWN.replace("* [ ] Port", "* [x] Port"));
        let windows = "- [ ] a\r\n- [ ] b";
        assert_eq!(
            tick(windows, &["a".to_owned()].into(), true).0,
            "- [x] a\r\n- [ ] b"
        );
        let (text, taken) = tick(
            "- [X] a [x]\n- [x] b\n- [ ] a",
            &["a [x]".to_owned()].into(),
            false,
        );
        assert_eq!(
            (text.as_str(), taken.len()),
            ("- [ ] a [x]\n- [x] b\n- [ ] a", 1)
        );
    }

    #[test]
    fn toml_and_json_say_the_same() {
        let toml = "[[task]]\nid = \"b\"\nneeds = [\"a\", \"old\"]\nfeedback = { test = \"cargo test -p b\" }\nattempts = 2\n\
                    timeout = \"10m\"\n\n[[task]]\nid = 'a'\nprompt = \"Do a.\"\n[[task]]\nid = \"old\"\ndone = true\n";
        let json = r#"{"tasks": [
            {"id": "b", "needs": ["a", "old"], "feedback": {"test": "cargo test -p b"}, "attempts": 2, "timeout": "10m"},
            {"id": "a", "prompt": "Do a."}, {"id": "old", "done": true}]}"#;
        let listed = parse("n.toml", toml).unwrap();
        assert_eq!(ids(&listed), [(2, "b"), (9, "a")]);
        let order = |listed: Listed| ordered(listed.open, &listed.done).unwrap();
        let order = (order(listed), order(parse("n.json", json).unwrap()));
        assert_eq!(order.0, order.1);
        assert_eq!((order.0[0].id.as_str(), order.0[1].id.as_str()), ("a", "b"));
        let b = &order.0[1];
        assert_eq!(
            (b.prompt.as_str(), b.attempts, b.timeout_ms),
            ("b", Some(2), Some(600_000))
        );
        assert_eq!(b.feedback[0].command, "cargo test -p b");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let markdown = "- [ ] a\n- [ ] b\n- [ ] a\n";
        let twice = "[[task]]\nid = \"a\"\n[[task]]\nid = \"a\"\n";
        let unknown = "[[task]]\nid = \"a\"\nneeds = [\"c\"]\n";
        let circle = "[[task]]\nid = \"x\"\nneeds = [\"a\"]\n[[task]]\nid = \"a\"\nneeds = [\"b\"]\n[[task]]\nid = \"b\"\nneeds = [\"a\"]\n";
        for (name, text, line, message) in [
            ("t.md", markdown, 3, "task 'a' is there twice"),
            ("t.toml", twice, 4, "task 'a' is there twice"),
            ("t.toml", unknown, 2, "task 'a' needs 'c', which is no task"),
            (
                "t.toml",
                circle,
                2,
                "tasks need each other in a circle: x, a, b",
            ),
        ] {
            assert_eq!(problem(name, text), (Some(line), message.to_owned()));
        }
        assert_eq!(
            problem("t.toml", "[[task]]\nid = \"a\"\nwhat = 1\n").0,
            Some(3)
        );
        assert_eq!(problem("t.toml", "[[task]]\nid = \"a\"\n\nx\n").0, Some(4));
        assert_eq!(problem("t.json", "{\"tasks\": [\n{\"id\": 1}]}").0, Some(2));
        let timeout = "[[task]]\nid = \"a\"\ntimeout = \"soon\"\n";
        assert!(
            problem("t.toml", timeout)
                .1
                .contains("'soon' is not a duration")
        );
        let many = "- [ ] a\n".repeat(2);
        assert_eq!(problem("t.md", &many).0, Some(2));
    }

    #[test]
    fn names_of_runs_are_plain_and_of_one_text_each() {
        assert_eq!(run_name("fix_it-2"), "fix_it-2");
        let long = "x".repeat(200);
        let names = ["Fix it!", "Fix it?", "fix it", "Ü", &long].map(run_name);
        assert!(names[0].starts_with("Fix-it-"), "{names:?}");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_plain = |name: &String| name.len() < 50 && name.chars().all(plain);
        assert!(names.iter().all(is_plain), "{names:?}");
        let all: BTreeSet<&String> = names.iter().collect();
        assert_eq!(all.len(), names.len(), "{names:?}");
    }
}
