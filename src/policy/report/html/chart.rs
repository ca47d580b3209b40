//! Attempts over time: a row an iteration, a bar an attempt, marks for what was restored.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::model::run::AttemptOutcome;
use crate::model::time::Timestamp;
use crate::policy::report::data::{AttemptLine, Report};
use crate::policy::report::moment::{Moment, MomentKind};
use crate::policy::report::words;

use super::escape::Line;
use super::parts::{section, tone};

/// How many iterations have a row: the latest ones.
const MAX_ROWS: usize = 40;
/// The chart's width in its own units.
const WIDTH: f64 = 1000.0;

/// The chart; nothing where there is nothing to compare.
pub(super) fn chart(report: &Report) -> Markup {
    if report.attempts.is_empty() {
        return Markup::default();
    }
    let scale = Scale::of(&report.attempts, report.generated_at);
    let mut rows: BTreeMap<u32, Vec<Markup>> = BTreeMap::new();
    for (attempt, place) in report.attempts.iter().zip(&scale.bars) {
        rows.entry(attempt.iteration)
            .or_default()
            .push(bar(attempt, *place));
    }
    let skipped = rows.len().saturating_sub(MAX_ROWS);
    let marks = marks(&scale, report);
    let (first, last) = scale.ends();
    let content = html! {
        div.chart {
            @for (iteration, bars) in rows.iter().skip(skipped) { (row(&format!("Iteration {iteration}"), bars)) }
            @if !marks.is_empty() { (row("Rollbacks", &marks)) }
            p.axis {
                time datetime=(first) { (words::time(first)) }
                time datetime=(last) { (words::time(last)) }
            }
        }
        p.legend {
            (legend(&report.attempts))
            @if scale.shortened { " Long waits are shortened." }
        }
    };
    section("chart", "Attempts over time", None, content)
}

/// The colours that are there, with their words.
fn legend(attempts: &[AttemptLine]) -> Markup {
    let mut seen: Vec<Option<AttemptOutcome>> = Vec::new();
    for attempt in attempts {
        if !seen.contains(&attempt.outcome) {
            seen.push(attempt.outcome);
        }
    }
    html! { @for outcome in seen { span class=(tone(outcome)) { (words::outcome(outcome)) } } }
}

fn row(name: &str, shapes: &[Markup]) -> Markup {
    html! {
        div.row {
            span { (name) }
            svg viewBox=(format!("0 0 {WIDTH} 16")) preserveAspectRatio="none" role="img" aria-label=(name) {
                @for shape in shapes { (shape) }
            }
        }
    }
}

fn bar(attempt: &AttemptLine, (from, to): (f64, f64)) -> Markup {
    let width = (to - from - 1.5).max(3.0);
    let took = attempt
        .duration_ms
        .map(|took| format!(", {}", words::span(took)))
        .unwrap_or_default();
    let title = format!(
        "Attempt {}: {}{took}",
        attempt.number,
        words::outcome(attempt.outcome)
    );
    rect(tone(attempt.outcome), from, width, &title)
}

/// A shape of the row's height, with the text that is shown beside the pointer.
fn rect(class: &str, x: f64, width: f64, title: &str) -> Markup {
    html! {
        rect class=(class) x=(format!("{x:.1}")) width=(format!("{width:.1}")) height="16" { title { (Line(title)) } }
    }
}

fn marks(scale: &Scale, report: &Report) -> Vec<Markup> {
    let restored = |kind| {
        matches!(
            kind,
            MomentKind::Rollback | MomentKind::Undo | MomentKind::ManualFix
        )
    };
    let moments = report
        .timeline
        .iter()
        .filter(|moment| restored(moment.kind));
    let mark = |moment: &Moment| {
        rect(
            "mark",
            scale.at(moment.at).clamp(0.0, WIDTH - 4.0),
            4.0,
            &moment.title,
        )
    };
    moments.map(mark).collect()
}

fn end(attempt: &AttemptLine, now: Timestamp) -> Timestamp {
    match attempt.duration_ms {
        Some(took) => attempt
            .started_at
            .plus(std::time::Duration::from_millis(took)),
        None => now.max(attempt.started_at),
    }
}

/// From times to places: attempts have their share of the width and at least a sliver, long waits between them are cut.
struct Scale {
    /// Times with their places, both growing.
    knots: Vec<(Timestamp, f64)>,
    /// Where each attempt begins and ends.
    bars: Vec<(f64, f64)>,
    shortened: bool,
}

impl Scale {
    fn of(attempts: &[AttemptLine], now: Timestamp) -> Self {
        // They come in order.
        let spans: Vec<(Timestamp, Timestamp)> = attempts
            .iter()
            .map(|a| (a.started_at, end(a, now)))
            .collect();
        let active: f64 = spans
            .iter()
            .map(|(from, to)| gap(*from, *to))
            .sum::<f64>()
            .max(1.0);
        let (sliver, longest_gap) = (active / 80.0, active / 6.0);
        let mut knots = vec![(spans[0].0, 0.0)];
        let (mut bars, mut shortened) = (Vec::new(), false);
        for (from, to) in spans {
            let (last, place) = knots[knots.len() - 1];
            let waited = gap(last, from);
            shortened |= waited > longest_gap;
            let begin = place + waited.min(longest_gap);
            let end = begin + gap(from.max(last), to).max(sliver);
            knots.extend([(from.max(last), begin), (to.max(last), end)]);
            bars.push((begin, end));
        }
        let full = knots[knots.len() - 1].1.max(f64::MIN_POSITIVE);
        let scaled = |place: f64| place * WIDTH / full;
        let knots = knots
            .into_iter()
            .map(|(at, place)| (at, scaled(place)))
            .collect();
        let bars = bars
            .into_iter()
            .map(|(begin, end)| (scaled(begin), scaled(end)))
            .collect();
        Self {
            knots,
            bars,
            shortened,
        }
    }

    fn at(&self, time: Timestamp) -> f64 {
        // The last knot of that very time: what begins there begins after what ended there.
        let after = self.knots.partition_point(|(at, _)| *at <= time);
        match (
            after.checked_sub(1).map(|before| self.knots[before]),
            self.knots.get(after),
        ) {
            (Some((from, left)), Some((to, right))) => {
                left + (right - left) * gap(from, time) / gap(from, *to).max(1.0)
            }
            (Some((_, place)), None) => place,
            (None, _) => 0.0,
        }
    }

    fn ends(&self) -> (Timestamp, Timestamp) {
        (self.knots[0].0, self.knots[self.knots.len() - 1].0)
    }
}

fn gap(from: Timestamp, to: Timestamp) -> f64 {
    words::millis(from, to) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::run::IterationStatus;

    fn attempt(started: i64, took: Option<u64>) -> AttemptLine {
        AttemptLine {
            number: 1,
            iteration: 1,
            iteration_status: IterationStatus::Failed,
            subtask: "s".to_owned(),
            approach: None,
            started_at: Timestamp::from_millis(started),
            duration_ms: took,
            outcome: None,
            exit_code: None,
            signal: None,
            timed_out: false,
            failure: None,
            conditions: Vec::new(),
            notes: Vec::new(),
            cost_usd: None,
            tokens: None,
            feedback: Vec::new(),
            decision: None,
            checkpoint_id: None,
            changes: None,
            log_path: None,
        }
    }

    fn bars(attempts: &[AttemptLine]) -> Scale {
        let scale = Scale::of(attempts, Timestamp::from_millis(100_000));
        let places: Vec<f64> = scale
            .bars
            .iter()
            .flat_map(|(from, to)| [*from, *to])
            .collect();
        assert!(
            places.is_sorted()
                && places[0] >= 0.0
                && (places[places.len() - 1] - WIDTH).abs() < 0.01,
            "{places:?}"
        );
        assert!(
            scale.bars.iter().all(|(from, to)| to - from > 3.0),
            "{places:?}"
        );
        scale
    }

    #[test]
    fn every_attempt_is_seen_and_long_waits_are_short() {
        let scale = bars(&[
            attempt(0, Some(1000)),
            attempt(90_000, Some(1000)),
            attempt(91_000, Some(0)),
        ]);
        assert!(
            scale.shortened && scale.bars[1].0 < 600.0,
            "{:?}",
            scale.bars
        );
        assert!(!bars(&[attempt(0, Some(1000)), attempt(1000, Some(9000))]).shortened);
        // All at once, of no length, under way, out of order.
        bars(&[attempt(5, Some(0)), attempt(5, Some(0)), attempt(5, None)]);
        bars(&[
            attempt(0, Some(500)),
            attempt(100, Some(100)),
            attempt(200, Some(1)),
        ]);
    }

    #[test]
    fn marks_are_where_their_time_is() {
        let scale = bars(&[attempt(0, Some(1000)), attempt(2000, Some(1000))]);
        let at = |millis| scale.at(Timestamp::from_millis(millis));
        assert!(
            at(-5).abs() < 0.01
                && at(500) < at(1500)
                && at(1500) < at(2500)
                && (at(9000) - WIDTH).abs() < 0.01
        );
    }
}
