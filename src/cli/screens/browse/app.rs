//! Where a user is who browses, and what each key does. Pure: nothing is read or drawn here.

use std::collections::BTreeSet;

use strum::{IntoStaticStr, VariantArray};

use super::super::super::keys::Key;
use super::timeline::{Node, Row, label, rows};
use crate::engine::inspect;
use crate::model::{Hint, RunKey, Timestamp};

/// What is shown on the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(super) enum Page {
    Overview,
    Diff,
    Evidence,
    Log,
    Report,
}

impl Page {
    fn next(self) -> Self {
        let at = Self::VARIANTS
            .iter()
            .position(|page| *page == self)
            .unwrap_or(0);
        Self::VARIANTS[(at + 1) % Self::VARIANTS.len()]
    }
}

/// What the page is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Row(Row),
    /// What differs between two checkpoints, the older one first.
    Pair(u64, u64),
    /// Nothing was recorded.
    Nothing,
}

/// What a key came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// What is shown may be another.
    Shown,
    /// The end.
    Leave,
    /// This is to be run; it asks by itself, or was agreed to.
    Run(Hint),
}

/// What the last line asks or says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    None,
    /// Which row is looked for, while it is typed.
    Search(String),
    /// Whether this command is to be run.
    Agree(Hint),
    /// Something to read.
    Note(String),
}

/// Everything that a key can change.
#[derive(Debug)]
pub(super) struct App {
    pub recorded: inspect::Recorded,
    pub rows: Vec<Row>,
    pub at: usize,
    pub open: BTreeSet<RunKey>,
    pub page: Page,
    pub scroll: usize,
    /// The keys move the page, not the list.
    pub in_page: bool,
    /// There is room for the page beside the list.
    pub beside: bool,
    pub prompt: Prompt,
    pub help: bool,
    pub now: Timestamp,
    /// The first of two checkpoints to compare.
    mark: Option<u64>,
    pair: Option<(u64, u64)>,
    found: String,
}

impl App {
    /// The chosen run is open, and its latest row selected.
    pub(super) fn new(recorded: inspect::Recorded, now: Timestamp) -> Self {
        let newest = recorded.state.runs.last().map(|run| run.key.clone());
        let open: BTreeSet<RunKey> = recorded.chosen.clone().or(newest).into_iter().collect();
        let rows = rows(&recorded.state, &open);
        let at = rows
            .iter()
            .position(|row| open.contains(&row.run))
            .unwrap_or(0);
        Self {
            recorded,
            rows,
            at,
            open,
            page: Page::Overview,
            scroll: 0,
            in_page: false,
            beside: true,
            prompt: Prompt::None,
            help: false,
            now,
            mark: None,
            pair: None,
            found: String::new(),
        }
    }

    /// Takes over what was recorded meanwhile; the same row stays selected while it is there.
    pub(super) fn update(&mut self, recorded: inspect::Recorded) {
        let selected = self.rows.get(self.at).cloned();
        // A run that began meanwhile is what a user who watches wants to see.
        let is_new = |key: &RunKey| self.recorded.state.run(key).is_none();
        self.open.extend(
            recorded
                .state
                .runs
                .iter()
                .map(|run| &run.key)
                .filter(|key| is_new(key))
                .cloned(),
        );
        self.recorded = recorded;
        self.list(selected);
    }

    pub(super) fn row(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }

    pub(super) fn subject(&self) -> Subject {
        match (&self.pair, self.row()) {
            (Some((from, to)), _) if self.page == Page::Diff => Subject::Pair(*from, *to),
            (_, Some(row)) => Subject::Row(row.clone()),
            (_, None) => Subject::Nothing,
        }
    }

    pub(super) fn is_marked(&self, row: &Row) -> bool {
        matches!(row.node, Node::Checkpoint(seq) if self.mark == Some(seq))
    }

    fn list(&mut self, selected: Option<Row>) {
        self.rows = rows(&self.recorded.state, &self.open);
        let again = selected.and_then(|selected| self.rows.iter().position(|row| *row == selected));
        self.at = again
            .unwrap_or(self.at)
            .min(self.rows.len().saturating_sub(1));
    }

    /// `height` is that of the list and the page, in rows; `most` how far the page can be scrolled.
    pub(super) fn press(&mut self, key: Key, height: usize, most: usize) -> Outcome {
        match std::mem::replace(&mut self.prompt, Prompt::None) {
            Prompt::Search(typed) => return self.search(key, typed),
            Prompt::Agree(command) => {
                return if matches!(key, Key::Char('y' | 'Y')) {
                    Outcome::Run(command)
                } else {
                    Outcome::Shown
                };
            }
            Prompt::None | Prompt::Note(_) => {}
        }
        if std::mem::take(&mut self.help) {
            return Outcome::Shown;
        }
        match key {
            Key::Char('q') => return Outcome::Leave,
            Key::Escape => self.back(),
            Key::Char('?') => self.help = true,
            Key::Char('/') => self.prompt = Prompt::Search(String::new()),
            Key::Char('n') => self.find(1),
            Key::Char('N') => self.find(-1),
            // Where it is not seen yet it is the first one.
            Key::Tab => self.show(if self.beside || self.in_page {
                self.page.next()
            } else {
                self.page
            }),
            Key::Char(digit @ '1'..='5') => {
                self.show(Page::VARIANTS[digit as usize - '1' as usize]);
            }
            Key::Char('d') => self.compare(),
            Key::Char('p') => self.ask(Self::pin),
            Key::Char('r') => {
                if let Some(command) = self.rollback() {
                    return Outcome::Run(command);
                }
            }
            Key::Char('u') => self.ask(|app, run| Some(app.command(&["undo"], run))),
            Key::Char('a') => self.ask(|app, run| Some(app.command(&["accept"], run))),
            Key::Char('c') => self.ask(|app, run| Some(app.command(&["close"], run))),
            Key::Char('m') => self.ask(|app, run| Some(app.command(&["manual-fix"], run))),
            Key::Char('l') | Key::Right | Key::Enter => self.enter(),
            Key::Char('h') | Key::Left => self.leave(),
            _ => self.travel(key, height, most),
        }
        Outcome::Shown
    }

    fn travel(&mut self, key: Key, height: usize, most: usize) {
        let page = height.saturating_sub(1).max(1);
        let (at, last) = if self.in_page {
            (self.scroll, most)
        } else {
            (self.at, self.rows.len().saturating_sub(1))
        };
        let to = match key {
            Key::Up | Key::Char('k') => at.saturating_sub(1),
            Key::Down | Key::Char('j') => at + 1,
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown | Key::Char(' ') => at + page,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return,
        };
        if self.in_page {
            self.scroll = to.min(last);
        } else {
            self.select(to.min(last));
        }
    }

    fn select(&mut self, at: usize) {
        self.at = at;
        self.scroll = 0;
        self.pair = None;
    }

    fn show(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
        // Without room for both the list would hide it.
        self.in_page |= !self.beside;
    }

    /// Into the page, or a run that is closed up is opened.
    fn enter(&mut self) {
        let Some(row) = self.row().cloned() else {
            return;
        };
        if !self.in_page && row.node == Node::Run && self.open.insert((*row.run).clone()) {
            self.list(Some(row));
        } else {
            self.in_page = true;
        }
    }

    /// Out of the page, to the run, or the run is closed up.
    fn leave(&mut self) {
        if std::mem::take(&mut self.in_page) {
            return;
        }
        let Some(row) = self.row().cloned() else {
            return;
        };
        let run = Row {
            node: Node::Run,
            depth: 0,
            ..row.clone()
        };
        if row.node == Node::Run {
            self.open.remove(&*row.run);
        }
        self.list(Some(run));
        self.select(self.at);
    }

    fn back(&mut self) {
        self.in_page = false;
        self.mark = None;
        self.pair = None;
    }

    /// Marks a checkpoint; at the second one their difference is shown.
    fn compare(&mut self) {
        let Some(Row {
            node: Node::Checkpoint(seq),
            ..
        }) = self.row().cloned()
        else {
            self.note("d compares two checkpoints: select one of them");
            return;
        };
        match self.mark.take().filter(|mark| *mark != seq) {
            None => {
                self.note(&format!(
                    "@{seq} is marked: d on another checkpoint shows what differs, Esc forgets it"
                ));
                self.mark = Some(seq);
            }
            Some(mark) => {
                self.pair = Some((mark.min(seq), mark.max(seq)));
                self.show(Page::Diff);
            }
        }
    }

    /// Asks whether a command is to be run, where there is one.
    fn ask(&mut self, command: impl FnOnce(&Self, &Row) -> Option<Hint>) {
        let Some(row) = self.row().cloned() else {
            return;
        };
        match command(self, &row) {
            Some(command) => self.prompt = Prompt::Agree(command),
            None => self.note("select a checkpoint for that"),
        }
    }

    fn note(&mut self, text: &str) {
        self.prompt = Prompt::Note(text.to_owned());
    }

    /// A command about the run of a row.
    fn command(&self, words: &[&str], row: &Row) -> Hint {
        let run = self.recorded.state.run(&row.run);
        let elsewhere = run.and_then(|run| self.recorded.elsewhere.get(&run.worktree));
        let hint = Hint::recover(words).run(&*row.run);
        match elsewhere {
            Some(place) => hint.at(place.clone()),
            None => hint,
        }
    }

    fn pin(&self, row: &Row) -> Option<Hint> {
        let Node::Checkpoint(seq) = row.node else {
            return None;
        };
        let checkpoint = self.recorded.state.checkpoints.get(seq)?;
        let verb = if checkpoint.pinned { "unpin" } else { "pin" };
        Some(self.command(&["checkpoint", verb, checkpoint.id.as_str()], row))
    }

    /// Shows its plan and asks by itself.
    fn rollback(&self) -> Option<Hint> {
        let row = self.row()?;
        let number =
            |number: u32| self.command(&["rollback", "--iteration", &number.to_string()], row);
        Some(match &row.node {
            Node::Run => self.command(&["rollback"], row),
            Node::Iteration(iteration) | Node::Attempt(iteration, _) => number(*iteration),
            Node::Checkpoint(seq) => {
                let id = &self.recorded.state.checkpoints.get(*seq)?.id;
                self.command(&["rollback", "--to", id.as_str()], row)
            }
        })
    }

    fn search(&mut self, key: Key, mut typed: String) -> Outcome {
        match key {
            Key::Escape => return Outcome::Shown,
            Key::Enter => {
                self.found = typed;
                self.find(1);
                return Outcome::Shown;
            }
            Key::Backspace => drop(typed.pop()),
            Key::Char(c) => typed.push(c),
            _ => {}
        }
        self.prompt = Prompt::Search(typed);
        Outcome::Shown
    }

    /// The next row, or the one before, that says what is looked for, whatever its letters' case.
    fn find(&mut self, step: isize) {
        let (count, wanted) = (self.rows.len(), self.found.to_lowercase());
        if wanted.is_empty() || count == 0 {
            return;
        }
        let says = |row: &Row| {
            let label = label(&self.recorded.state, row, true, self.now);
            label.text().to_lowercase().contains(&wanted)
        };
        let there = |distance: usize| {
            let distance = if step < 0 { count - distance } else { distance };
            (self.at + distance) % count
        };
        match (1..=count).map(there).find(|at| says(&self.rows[*at])) {
            Some(at) => self.select(at),
            None => self.note(&format!("nothing here says {}", self.found)),
        }
    }
}
