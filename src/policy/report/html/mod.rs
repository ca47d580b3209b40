//! The report as one HTML file that needs nothing else, readable on a phone, on paper and in the dark.
//! Nothing in it can be run or loaded: the policy in its head forbids everything but its own style sheet.

mod sections;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset};
use maud::{DOCTYPE, Escaper, Markup, PreEscaped, Render, html};
use sha1::{Digest, Sha1};

use super::data::{AttemptLine, Moment, MomentKind, Report};
use super::timeline::with_times;
use super::words;
use super::words::MARK;
use crate::model::{AttemptOutcome, Timestamp};
use crate::policy::secrets::redact;
use crate::policy::text::{escape, escape_lines};

const STYLE: &str = include_str!("style.css");

/// A report, and the time zone of whoever reads it.
pub(super) struct Page<'a> {
    report: &'a Report,
    local: &'a dyn Fn(Timestamp) -> DateTime<FixedOffset>,
}

impl Page<'_> {
    /// `2026-01-05 04:19:02 UTC+01:00`.
    fn date_time(&self, at: Timestamp) -> String {
        format!(
            "{} {}",
            (self.local)(at).format("%Y-%m-%d %H:%M:%S"),
            self.zone(at)
        )
    }

    /// A text of the record with its times as they are here.
    fn local_times(&self, text: &str) -> String {
        with_times(text, &|at| self.date_time(at))
    }

    /// `04:19:02`.
    fn time(&self, at: Timestamp) -> String {
        (self.local)(at).format("%H:%M:%S").to_string()
    }

    /// `2026-01-05`.
    fn date(&self, at: Timestamp) -> String {
        (self.local)(at).format("%Y-%m-%d").to_string()
    }

    /// `UTC+01:00`; `UTC` itself has no offset.
    fn zone(&self, at: Timestamp) -> String {
        let local = (self.local)(at);
        match local.offset().local_minus_utc() {
            0 => "UTC".to_owned(),
            _ => local.format("UTC%:z").to_string(),
        }
    }
}

/// Renders the page, with times as they are `local` to whoever reads it.
pub(crate) fn html(report: &Report, local: &dyn Fn(Timestamp) -> DateTime<FixedOffset>) -> String {
    let title = format!("{}: {}", report.title(), report.summary.run.run_id);
    let body = Page { report, local }.body();
    // A hash of all the text, so that nobody whose text is in it can know the nonce beforehand.
    let nonce = format!("{:x}", Sha1::digest(body.0.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        (PreEscaped(format!("<!-- {MARK} -->")))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                @if let Some(night) = &report.night { meta name="description" content=(Line(&night.line(None))); }
                title { (Line(&title)) }
                style nonce=(nonce) { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string() + "\n"
}

/// A command of which no option is broken in two where a line ends.
fn command(command: &str) -> Markup {
    html! {
        pre.command {
            @for (number, word) in redact(command).split(' ').enumerate() {
                @if number > 0 { " " }
                span { (Line(word)) }
            }
        }
    }
}

/// What an outcome looks like.
fn tone(outcome: Option<AttemptOutcome>) -> &'static str {
    match outcome {
        Some(AttemptOutcome::Passed) => "good",
        Some(AttemptOutcome::Failed) => "bad",
        Some(AttemptOutcome::Cancelled) => "warn",
        None => "calm",
    }
}

/// A section with its heading, and a figure beside it.
fn section(id: &str, heading: &str, figure: Option<String>, content: impl Render) -> Markup {
    html! {
        section id=(id) {
            h2 { (heading) @if let Some(figure) = figure { " " small { (figure) } } }
            (content)
        }
    }
}

/// A section that is folded until it is opened, which takes no script.
fn folded(id: &str, heading: &str, figure: &str, content: impl Render) -> Markup {
    html! {
        details id=(id) {
            summary { h2 { (heading) " " small { (figure) } } }
            (content)
        }
    }
}

/// A term and its description.
fn fact(term: &str, description: impl Render) -> Markup {
    html! { div { dt { (Line(term)) } dd { (description) } } }
}

/// A word in a pill: `tone` is `good`, `bad`, `warn` or `calm`.
fn badge(tone: &str, word: &str) -> Markup {
    html! { span class={ "badge " (tone) } { (Line(word)) } }
}

/// Text in the fixed-width font.
fn mono(content: &str) -> Markup {
    html! { code { (Line(content)) } }
}

/// What stands in a section that has nothing to list.
fn none(text: &str) -> Markup {
    html! { p.none { (text) } }
}

/// How many iterations have a row: the latest ones.
const MAX_ROWS: usize = 40;
/// The chart's width in its own units.
const WIDTH: f64 = 1000.0;

/// The chart; nothing where there is nothing to compare.
fn chart(page: &Page<'_>) -> Markup {
    let report = page.report;
    if report.attempts.len() < 2 {
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
                time datetime=(first) { (page.time(first)) }
                time datetime=(last) { (page.time(last)) }
            }
        }
        p.legend {
            (legend(&report.attempts))
            @if scale.shortened { " Long waits are shortened." }
        }
    };
    let count = words::count(report.attempts.len(), "attempt");
    folded("chart", "Attempts over time", &count, content)
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

/// One line of text, as content or as the value of an attribute.
struct Line<'a>(&'a str);

/// Text that keeps its line breaks, for `pre`.
struct Lines<'a>(&'a str);

impl Render for Line<'_> {
    fn render_to(&self, out: &mut String) {
        escaped(&escape(&redact(self.0)), out);
    }
}

impl Render for Lines<'_> {
    fn render_to(&self, out: &mut String) {
        escaped(&escape_lines(&redact(self.0)), out);
    }
}

fn escaped(text: &str, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = Escaper::new(out).write_str(text);
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

    #[test]
    fn no_markup_and_no_control_character_is_left() {
        let hostile = "</pre><script>x('\"')</script>&amp;";
        let markup = maud::html! { p title=(Line(hostile)) { (Line(hostile)) } }.into_string();
        assert!(
            !markup.contains("<script") && !markup.contains("&amp;amp;amp;"),
            "{markup}"
        );
        assert_eq!(
            markup.matches('"').count(),
            2,
            "the quotes of the attribute itself: {markup}"
        );
        assert_eq!(
            Line("a\nb\u{0}\u{1b}[0m\u{202e}").render().into_string(),
            "a\\nb\\u{0}\\u{1b}[0m\\u{202e}"
        );
        let masked = "{&quot;password&quot;:&quot;[redacted]&quot;}";
        assert_eq!(
            Line(r#"{"password":"p<hunter22>"}"#).render().into_string(),
            masked
        );
        assert_eq!(
            Lines(r#"{"password":"p<hunter22>"}"#)
                .render()
                .into_string(),
            masked
        );
        assert_eq!(Lines("a\n\tb\u{0}").render().into_string(), "a\n\tb\\u{0}");
    }
}
