//! One pass over the output: which rules match where.

use super::quoted::Quoted;
use super::rules::{FAMILIES, Family, Rule, StageRules};
use crate::model::failure::{Evidence, EvidenceSource};
use crate::policy::patterns::Matches;
use crate::policy::text::{Line, Text};

/// Where one rule matched in one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hits {
    /// How many lines.
    pub count: u32,
    first: usize,
    last: usize,
}

impl Hits {
    fn note(&mut self, index: usize) {
        if self.count == 0 {
            self.first = index;
        }
        self.last = index;
        self.count += 1;
    }
}

/// A rule that matched, and its line.
#[derive(Clone, Copy)]
pub(super) struct Hit<'a> {
    /// The rule.
    pub rule: &'static Rule,
    /// The stream.
    pub source: EvidenceSource,
    /// The first line that matched, for what a compiler says, else the last.
    pub line: Line<'a>,
    /// How many lines matched.
    pub count: u32,
}

impl Hit<'_> {
    /// The match as evidence.
    pub(super) fn evidence(self) -> Evidence {
        let line = Some(self.line.number).filter(|number| *number > 0);
        Evidence {
            rule: self.rule.id.to_owned(),
            source: self.source,
            line,
            text: self.line.to_text(),
        }
    }
}

/// The two streams and every rule's matches in them.
pub(super) struct Scan<'a> {
    stderr: &'a Text,
    stdout: &'a Text,
    /// By family, by rule: stderr, stdout.
    hits: Vec<Vec<[Hits; 2]>>,
}

impl<'a> Scan<'a> {
    /// Reads both streams once for the rules of `stages`. Where tests run, marked lines are their names.
    pub(super) fn new(stderr: &'a Text, stdout: &'a Text, stages: u8, tests_run: bool) -> Self {
        let rules = StageRules::of(stages);
        let mut hits: Vec<Vec<[Hits; 2]>> = FAMILIES
            .iter()
            .map(|family| vec![[Hits::default(); 2]; family.rules.len()])
            .collect();
        let mut room = Matches::default();
        for (stream, text) in [stderr, stdout].into_iter().enumerate() {
            let mut quotes = Quoted::new(tests_run);
            for (index, line) in text.lines().enumerate() {
                quotes.follow(line.bytes);
                let matched = rules.patterns.matches(line.bytes, &mut room);
                if matched.is_empty() {
                    continue;
                }
                let quote = quotes.kind(line.bytes);
                for (family, rule) in matched
                    .iter()
                    .map(|number| rules.places[usize::from(*number)])
                {
                    if !FAMILIES[family].skips.contains(&quote) {
                        hits[family][rule][stream].note(index);
                    }
                }
            }
        }
        Self {
            stderr,
            stdout,
            hits,
        }
    }

    /// What matched in `family` at `stages`, strongest first: stderr before stdout, then the table's order.
    pub(super) fn matches(&self, family: Family, stages: u8) -> impl Iterator<Item = Hit<'a>> + '_ {
        let table = &self.hits[family as usize];
        let description = &FAMILIES[family as usize];
        let streams = [
            (EvidenceSource::Stderr, self.stderr),
            (EvidenceSource::Stdout, self.stdout),
        ];
        streams
            .into_iter()
            .enumerate()
            .flat_map(move |(stream, (source, text))| {
                let rules = description.rules.iter().zip(table);
                rules.filter_map(move |(rule, hits)| {
                    let hits = hits[stream];
                    let applies = hits.count > 0 && rule.stages & stages != 0;
                    let index = if description.first_line {
                        hits.first
                    } else {
                        hits.last
                    };
                    applies.then(|| Hit {
                        rule,
                        source,
                        line: text.line(index),
                        count: hits.count,
                    })
                })
            })
    }

    /// The strongest match of a family.
    pub(super) fn best(&self, family: Family, stages: u8) -> Option<Hit<'a>> {
        self.matches(family, stages).next()
    }

    /// The last line of one stream that matched in `family`.
    pub(super) fn last_line(&self, family: Family, source: EvidenceSource) -> Option<Line<'a>> {
        let (stream, text) = if source == EvidenceSource::Stderr {
            (0, self.stderr)
        } else {
            (1, self.stdout)
        };
        let hits = self.hits[family as usize]
            .iter()
            .map(|hits| hits[stream])
            .filter(|hits| hits.count > 0);
        hits.map(|hits| hits.last)
            .max()
            .map(|index| text.line(index))
    }

    /// How many lines the rule with this id matched, both streams together.
    pub(super) fn count(&self, family: Family, id: &str) -> u32 {
        let rules = FAMILIES[family as usize]
            .rules
            .iter()
            .zip(&self.hits[family as usize]);
        rules
            .filter(|(rule, _)| rule.id == id)
            .map(|(_, hits)| hits[0].count + hits[1].count)
            .sum()
    }
}
