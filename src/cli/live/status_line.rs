//! The status line at the bottom of the terminal, fitted to its width.

use std::time::{Duration, Instant};

use itertools::Itertools as _;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::time::Timestamp;

/// Where the run stands, as far as it is shown.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The run's key.
    pub run: String,
    /// `2/5`.
    pub iteration: String,
    /// `1/3`.
    pub attempt: String,
    /// What is being done.
    pub doing: Option<Doing>,
    /// What the feedback loops of this attempt said so far.
    pub results: Vec<(String, bool)>,
    /// What the run has used up so far.
    pub usage: String,
    /// Why it waits, or will.
    pub reason: String,
    /// Keys are taken.
    pub keys: bool,
    /// It stops after this attempt.
    pub stops: bool,
    /// The command has the terminal to itself.
    pub left: bool,
    /// Another program has the terminal, since then.
    pub away: Option<Instant>,
}

/// What is being done, and since when.
#[derive(Debug)]
pub(super) struct Doing {
    /// What.
    pub what: What,
    /// Since when.
    pub since: Instant,
}

/// What is being done.
#[derive(Debug)]
pub(super) enum What {
    /// The run's command runs.
    Command {
        /// How long it may.
        deadline: Option<Duration>,
    },
    /// A feedback loop runs.
    Loop {
        /// Which.
        name: String,
        /// How long it may.
        deadline: Option<Duration>,
        /// Once more, unchanged.
        again: bool,
    },
    /// The next attempt waits.
    Waiting {
        /// Until when.
        until: Timestamp,
        /// For a limit to be reset.
        parked: bool,
    },
    /// Files go back.
    RollingBack,
    /// Our own work between the others'.
    Recording,
}

impl View {
    /// Another program gets the terminal while this one stands still, or it is ours again.
    pub(super) fn suspended(&mut self, begins: bool, now: Instant) {
        if begins {
            self.away = Some(now);
            return;
        }
        // What stood still did not take that long.
        if let (Some(away), Some(doing)) = (self.away.take(), &mut self.doing) {
            doing.since += now.saturating_duration_since(away.max(doing.since));
        }
    }

    /// Whether the next attempt waits.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(
            self.doing,
            Some(Doing {
                what: What::Waiting { .. },
                ..
            })
        )
    }

    /// The line, at most `width` columns; `None` where there is none to be shown.
    pub(super) fn line(&self, width: usize, now: Instant, clock: Timestamp) -> Option<String> {
        let doing = self
            .doing
            .as_ref()
            .filter(|_| !self.left && self.away.is_none())?;
        let place = if self.iteration.is_empty() {
            "baseline".to_owned()
        } else {
            format!("iteration {} attempt {}", self.iteration, self.attempt)
        };
        let short = if self.iteration.is_empty() {
            "baseline".to_owned()
        } else {
            format!("{} #{}", self.iteration, self.attempt)
        };
        let what = doing.text(now, clock);
        let results = self
            .results
            .iter()
            .map(|(name, passed)| format!("{name} {}", if *passed { "ok" } else { "FAILED" }))
            .join(", ");
        let reason = if self.is_waiting() {
            self.reason.as_str()
        } else {
            ""
        };
        let (keys, key) = self.keys();
        let mut parts = [
            self.run.as_str(),
            &place,
            &what,
            reason,
            &results,
            &self.usage,
            keys,
        ];
        let line = |parts: &[&str]| parts.iter().filter(|one| !one.is_empty()).join(" | ");
        // What matters least is left out, or shortened, first.
        for (at, shorter) in [
            (0, ""),
            (3, ""),
            (5, ""),
            (6, key),
            (4, ""),
            (1, &short),
            (6, ""),
        ] {
            if line(&parts).width() <= width {
                break;
            }
            parts[at] = shorter;
        }
        Some(cut(&line(&parts), width))
    }

    /// What can be pressed, at length and in short.
    fn keys(&self) -> (&'static str, &'static str) {
        match (self.stops, self.keys, self.is_waiting()) {
            (true, true, _) => ("stops after this attempt (s: go on)", "stops after this"),
            (true, false, _) => ("stops after this attempt", "stops after this"),
            (false, false, _) => ("", ""),
            (false, true, true) => ("r retry now, s stop here", "r now, s stop"),
            (false, true, false) => ("s stop after this attempt", "s stop"),
        }
    }
}

impl Doing {
    fn text(&self, now: Instant, clock: Timestamp) -> String {
        let elapsed = now.saturating_duration_since(self.since);
        let timed = |deadline: Option<Duration>| {
            let limit = deadline
                .map(|deadline| format!(" of {}", span(deadline)))
                .unwrap_or_default();
            format!("{}{limit}", span(elapsed))
        };
        match &self.what {
            What::Command { deadline } => format!("running {}", timed(*deadline)),
            What::Loop {
                name,
                deadline,
                again,
            } => {
                format!(
                    "{name}{} {}",
                    if *again { " again" } else { "" },
                    timed(*deadline)
                )
            }
            What::Waiting { until, parked } => {
                // Rounded up: at 0:00 it goes on.
                let left = until
                    .since(clock)
                    .saturating_add(Duration::from_millis(999));
                format!(
                    "{} {}",
                    if *parked {
                        "waiting for a reset, next in"
                    } else {
                        "waiting, next in"
                    },
                    span(left)
                )
            }
            What::RollingBack => "rolling back".to_owned(),
            What::Recording => "recording".to_owned(),
        }
    }
}

/// `0:42`, `12:03`, `1:02:03`.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// The part of a text that fits.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).collect()
}

/// As much of a text as fits, up to the end of a word.
pub(crate) fn cut_at_word(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let head = cut(text, width.saturating_sub(" ...".len()));
    // Within a word that is longer than half of it all there is no better place.
    let end = head
        .trim_end()
        .rfind(' ')
        .filter(|end| *end > head.len() / 2 && !text[head.len()..].starts_with(' '));
    format!("{} ...", head[..end.unwrap_or(head.len())].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_a_word() {
        for (text, width, expected) in [
            ("all of it", 9, "all of it"),
            (
                "the state before someone looked",
                24,
                "the state before ...",
            ),
            (
                "the state before someone looked",
                20,
                "the state before ...",
            ),
            ("averyveryverylongword", 12, "averyver ..."),
        ] {
            assert_eq!(cut_at_word(text, width), expected, "{width}");
        }
    }

    fn view(what: What) -> View {
        View {
            run: "run-20260301-120000".to_owned(),
            iteration: "2/5".to_owned(),
            attempt: "1/3".to_owned(),
            doing: Some(Doing {
                what,
                since: Instant::now(),
            }),
            results: vec![("lint".to_owned(), true), ("test".to_owned(), false)],
            keys: true,
            ..View::default()
        }
    }

    fn at(view: &View, width: usize, seconds: u64) -> String {
        let since = view
            .doing
            .as_ref()
            .map_or_else(Instant::now, |doing| doing.since);
        let clock = Timestamp::from_millis(i64::try_from(seconds).unwrap() * 1000);
        view.line(width, since + Duration::from_secs(seconds), clock)
            .unwrap_or_default()
    }

    #[test]
    fn the_line_says_as_much_as_fits() {
        let running = view(What::Command {
            deadline: Some(Duration::from_secs(600)),
        });
        let full = "run-20260301-120000 | iteration 2/5 attempt 1/3 | running 0:42 of 10:00 | lint ok, test FAILED | \
                    s stop after this attempt";
        assert_eq!(at(&running, 122, 42), full);
        assert_eq!(
            at(&running, 121, 42),
            full.trim_start_matches("run-20260301-120000 | ")
        );
        assert_eq!(
            at(&running, 79, 42),
            "iteration 2/5 attempt 1/3 | running 0:42 of 10:00 | s stop"
        );
        assert_eq!(
            at(&running, 41, 42),
            "2/5 #1/3 | running 0:42 of 10:00 | s stop"
        );
        assert_eq!(at(&running, 39, 42), "2/5 #1/3 | running 0:42 of 10:00");
        for width in 0..200 {
            assert!(at(&running, width, 4000).width() <= width);
        }
    }

    #[test]
    fn a_wait_counts_down() {
        let waiting = view(What::Waiting {
            until: Timestamp::from_millis(90_000),
            parked: false,
        });
        assert!(
            at(&waiting, 119, 28).contains("waiting, next in 1:02 |"),
            "{}",
            at(&waiting, 119, 28)
        );
        assert!(
            at(&waiting, 119, 100).contains("next in 0:00"),
            "{}",
            at(&waiting, 119, 100)
        );
        assert!(at(&waiting, 119, 0).ends_with("r retry now, s stop here"));
        let stops = View {
            stops: true,
            ..waiting
        };
        assert!(at(&stops, 119, 0).ends_with("stops after this attempt (s: go on)"));
    }

    #[test]
    fn who_has_the_terminal_is_left_alone() {
        let mut view = view(What::Recording);
        view.left = true;
        assert_eq!(
            view.line(79, Instant::now(), Timestamp::from_millis(0)),
            None
        );
        view.left = false;
        let begun = view.doing.as_ref().map(|doing| doing.since).unwrap();
        view.suspended(true, begun + Duration::from_secs(5));
        assert_eq!(view.line(79, begun, Timestamp::from_millis(0)), None);
        view.suspended(false, begun + Duration::from_secs(25));
        assert_eq!(
            view.doing.as_ref().unwrap().since,
            begun + Duration::from_secs(20),
            "it ran for 5 s"
        );
    }
}
