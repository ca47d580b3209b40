//! When a usage limit resets, read from what the program says.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{Offset, TimeZone};
use regex::{Captures, Regex};

use crate::model::failure::FailureEvidence;
use crate::model::time::Timestamp;
use crate::policy::program::surroundings;

/// A time of day or a span that lies further ahead is not believed: the longest limits are weekly.
const LONGEST: Duration = Duration::from_secs(8 * 24 * 60 * 60);
/// A time of day that passed no longer ago, in milliseconds, means now.
const PASSED: i64 = 60 * 60 * 1000;

static EPOCH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:\||resets?_?(?:at)?\W{1,4}|reset\W{1,4})(1[5-9]\d{8}|[2-9]\d{9})(?:\d{3})?\b",
    )
    .ok()
});

/// What a time follows.
const LEAD: &str = r"\b(?:(?:re)?try(?:ing)?(?: again)?|resets?(?:_?at)?|available|refresh(?:es)?|renews?|come back|wait|until)(?:\s+(?:again|automatically))?";
const WEEKDAY: &str = "mon|tue|wed|thu|fri|sat|sun";
const MONTH: &str = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
/// A date that says everything.
const ISO_DATE: &str = r"(?P<iso_year>\d{4})[-/](?P<iso_month>\d\d)[-/](?P<iso_day>\d\d)";
const TIME: &str = r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::(?P<second>\d\d))?\s*(?P<half>[ap])\.?\s?m\b\.?|(?P<hour24>\d{1,2}):(?P<minute24>\d\d)(?::(?P<second24>\d\d)(?:\.\d+)?)?|(?P<midnight>midnight))";
const ZONE: &str = r"(?:\s*\(?(?:(?:UTC|GMT)?\s?(?P<sign>[+\x{2212}-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?\b|(?P<zone>(?-i:[A-Z])\w+(?:/[\w+-]+)+|UTC\b|GMT\b|Z\b|(?:pacific|mountain|central|eastern)\b|(?-i:[A-Z]{1,4}T)\b))\)?)?";

static SPAN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let unit = "(?:milliseconds?|ms|seconds?|secs?|minutes?|mins?|months?|hours?|hrs?|days?|weeks?|s|m|h|d|w)";
    let number = r"\d+(?:\.\d+)?\s*";
    Regex::new(&format!(
        r#"(?i){LEAD}(?:\s+(?:in|after|for))?\s+(?:about |~)?(?P<span>(?:{number}{unit}[\s,]*(?:and )?)*{number}{unit}\b)|retry[-_ ]?after[-_ ]?ms"?[:=]\s*"?(?P<millis>\d+)|(?:retry[-_ ]?after|resets?_in_seconds)"?[:=]?\s*"?(?P<seconds>\d+)|retryDelay"?[:=]?\s*"?(?P<delay>\d+(?:\.\d+)?)s"#
    ))
    .ok()
});
static PART: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(\d+(?:\.\d+)?)\s*(milli|ms|mo|s|m|h|d|w)").ok());
static CLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let weekday = format!(r"(?:(?P<weekday>{WEEKDAY})[a-z]*,?\s+(?:at\s+)?)?");
    let date = format!(
        r"(?:(?:(?P<month>{MONTH})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?|(?P<first_day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<then_month>{MONTH})[a-z]*\.?(?:,?\s+(?P<then_year>\d{{4}}))?|{ISO_DATE})[\s,]*(?:at\s+|T)?)?"
    );
    Regex::new(&format!(
        r"(?i){LEAD}\W{{0,4}}(?:(?:at|on|by|after|today|(?P<tomorrow>tomorrow))\b[,:]?\s+)*{weekday}{date}{TIME}?{ZONE}"
    ))
    .ok()
});
/// A date and a time without a word that says what they are.
static DATED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)\b{ISO_DATE}(?:\s+|T){TIME}{ZONE}")).ok());

/// Zones by a name that `TZ` does not know, or knows as one that changes with the season, and what `TZ` calls them.
const ZONES: [(&str, &str); 34] = [
    ("ACST", "ACST-9:30"),
    ("AEDT", "AEDT-11"),
    ("AEST", "AEST-10"),
    ("AKDT", "AKDT8"),
    ("AKST", "AKST9"),
    ("AWST", "AWST-8"),
    ("BST", "BST-1"),
    ("CDT", "CDT5"),
    ("CENTRAL", "America/Chicago"),
    ("CEST", "CEST-2"),
    ("CET", "CET-1"),
    ("CST", "CST6"),
    ("CT", "America/Chicago"),
    ("EASTERN", "America/New_York"),
    ("EDT", "EDT4"),
    ("EEST", "EEST-3"),
    ("EET", "EET-2"),
    ("EST", "EST5"),
    ("ET", "America/New_York"),
    ("GMT", "UTC"),
    ("HKT", "HKT-8"),
    ("HST", "HST10"),
    ("IST", "IST-5:30"),
    ("JST", "JST-9"),
    ("KST", "KST-9"),
    ("MDT", "MDT6"),
    ("MOUNTAIN", "America/Denver"),
    ("MST", "MST7"),
    ("PACIFIC", "America/Los_Angeles"),
    ("PDT", "PDT7"),
    ("PST", "PST8"),
    ("PT", "America/Los_Angeles"),
    ("UTC", "UTC"),
    ("Z", "UTC"),
];

/// What a time without a zone may be meant in: the local time of the command, and where that runs elsewhere, UTC.
pub(super) fn local_zones(evidence: &FailureEvidence) -> Vec<TimeZone> {
    let around = evidence.command.as_deref().map(surroundings);
    let around = around.unwrap_or_default();
    let local = around.time_zone.or_else(|| evidence.time_zone.clone());
    // As the C library has it: what is not understood is UTC.
    let local = local.and_then(|name| zone(&name)).unwrap_or(TimeZone::UTC);
    let elsewhere = around.is_elsewhere.then_some(TimeZone::UTC);
    std::iter::once(local).chain(elsewhere).collect()
}

/// The zone that a value of `TZ` means.
fn zone(name: &str) -> Option<TimeZone> {
    let name = name.trim_start_matches(':');
    let name = name.rsplit_once("zoneinfo/").map_or(name, |(_, name)| name);
    TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()
}

/// The moment that `message` names, or `None` where it names none that can be understood.
///
/// Epoch seconds come first, then a span ("in 34s", "retry-after: 20"), then a time of day or a date with a word before it
/// that says what it is, then any date that lies ahead. A time of day means its next occurrence, but one that passed within
/// the last hour means now; a date is believed as it is written. Without a zone it is read in each of `zones`, and the
/// earliest counts. An unknown zone is `None`: the caller waits its default.
pub(super) fn reset_time(message: &str, now: Timestamp, zones: &[TimeZone]) -> Option<Timestamp> {
    if let Some(found) = EPOCH.as_ref()?.captures(message) {
        let seconds: i64 = found.get(1)?.as_str().parse().ok()?;
        return Some(Timestamp::from_millis(seconds.saturating_mul(1000)));
    }
    if let Some(span) = SPAN.as_ref()?.captures(message) {
        return Some(after(span_of(&span)?, now));
    }
    let earliest = |captures: &Captures<'_>| {
        let zones = zones_of(captures, zones);
        let readings = zones
            .iter()
            .filter_map(|zone| clock(captures, zone, now))
            .collect::<Vec<_>>();
        let ahead = readings.iter().filter(|at| is_ahead(**at, now)).min();
        ahead.or(readings.iter().max()).map(|at| *at.max(&now))
    };
    let mut named = CLOCK.as_ref()?.captures_iter(message);
    let mut dated = DATED.as_ref()?.captures_iter(message);
    named
        .find_map(|captures| earliest(&captures))
        .or_else(|| dated.find_map(|captures| earliest(&captures).filter(|at| *at > now)))
}

/// Whether a time did not pass, or so lately that it means now.
fn is_ahead(at: Timestamp, now: Timestamp) -> bool {
    at.millis() > now.millis() - PASSED
}

/// The moment after a wait, as far as that is believed.
pub(super) fn after(wait: Duration, now: Timestamp) -> Timestamp {
    now.plus(wait.min(LONGEST))
}

fn span_of(captures: &Captures<'_>) -> Option<Duration> {
    let number = |name: &str| captures.name(name)?.as_str().parse::<f64>().ok();
    let parts = || {
        let span = captures.name("span")?.as_str();
        let parts = PART.as_ref()?.captures_iter(span).map(|part| {
            let number: f64 = part[1].parse().ok()?;
            Some(number * seconds_in(&part[2]))
        });
        parts.sum::<Option<f64>>()
    };
    let seconds = number("seconds")
        .or_else(|| number("delay"))
        .or_else(|| Some(number("millis")? / 1000.0))
        .or_else(parts)?;
    // Up to the next second: asking a moment early costs another refusal.
    Duration::try_from_secs_f64(seconds.ceil()).ok()
}

/// The seconds of a unit by its first letters.
fn seconds_in(unit: &str) -> f64 {
    match unit.to_ascii_lowercase().as_str() {
        "milli" | "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        "w" => 7.0 * 86400.0,
        _ => 30.0 * 86400.0,
    }
}

/// The zone that stands beside a time, else the `local` ones; none where it is not known.
fn zones_of(captures: &Captures<'_>, local: &[TimeZone]) -> Vec<TimeZone> {
    let number = |name: &str| captures.name(name)?.as_str().parse::<i32>().ok();
    if let Some(hours) = number("hours") {
        let seconds = hours * 3600 + number("minutes").unwrap_or(0) * 60;
        let sign = if &captures["sign"] == "+" { 1 } else { -1 };
        let offset = Offset::from_seconds(sign * seconds).ok();
        return offset.map(TimeZone::fixed).into_iter().collect();
    }
    let Some(name) = captures.name("zone").map(|name| name.as_str()) else {
        return local.to_vec();
    };
    let known = ZONES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    match known {
        Some((_, meant)) => zone(meant).into_iter().collect(),
        None if name.contains('/') => zone(name).into_iter().collect(),
        // A word in capitals.
        None => local.to_vec(),
    }
}

fn clock(captures: &Captures<'_>, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let number = |names: &[&str]| {
        let found = names.iter().find_map(|name| captures.name(name));
        found.and_then(|found| found.as_str().parse::<i16>().ok())
    };
    let month = ["month", "then_month"]
        .iter()
        .find_map(|name| captures.name(name));
    let month = month
        .and_then(|name| month_number(name.as_str()))
        .or_else(|| number(&["iso_month"]));
    let hour = match (number(&["hour"]), number(&["hour24"])) {
        (Some(hour @ 1..=12), _) => {
            let is_afternoon = captures["half"].eq_ignore_ascii_case("p");
            hour % 12 + if is_afternoon { 12 } else { 0 }
        }
        (None, Some(hour)) => hour,
        (None, None) if captures.name("midnight").is_some() => 0,
        // A date without a time is its beginning; neither is nothing.
        (None, None) if month.is_some() => 0,
        _ => return None,
    };
    let small = |number: Option<i16>| i8::try_from(number.unwrap_or(0)).ok();
    let minute = small(number(&["minute", "minute24"]))?;
    let second = small(number(&["second", "second24"]))?;
    let time = Time::new(small(Some(hour))?, minute, second, 0).ok()?;
    let at = |date: Date| {
        // The earlier of two local times that are the same, and after the gap where the clock was put forward.
        let at = zone.to_timestamp(date.to_datetime(time)).ok()?;
        Some(Timestamp::from_millis(at.as_millisecond()))
    };
    let today = jiff::Timestamp::from_millisecond(now.millis()).ok()?;
    let today = zone.to_datetime(today).date();
    let day_after = |days: i64| today.checked_add(days.days()).ok();
    if let (Some(month), Some(day)) = (month, number(&["day", "first_day", "iso_day"])) {
        let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        let on = |year: i16| at(Date::new(year, month, day).ok()?);
        match number(&["year", "then_year", "iso_year"]) {
            Some(year) => on(year),
            None => (0..5)
                .filter_map(|years| on(today.year() + years))
                .find(|at| is_ahead(*at, now)),
        }
    } else {
        let weekday = captures
            .name("weekday")
            .and_then(|name| weekday(name.as_str()));
        let is_meant = |day: &Date| weekday.is_none_or(|weekday| day.weekday() == weekday);
        // Yesterday, for a quarter of an hour past midnight.
        let first = if captures.name("tomorrow").is_some() {
            1
        } else {
            -1
        };
        let days = (first..=8).filter_map(day_after).filter(is_meant);
        days.filter_map(at).find(|at| is_ahead(*at, now))
    }
}

fn month_number(name: &str) -> Option<i16> {
    let months = MONTH.split('|').zip(1..);
    first_that_begins(months, name)
}

fn weekday(name: &str) -> Option<Weekday> {
    use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};
    let all = [
        Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday,
    ];
    first_that_begins(WEEKDAY.split('|').zip(all), name)
}

/// What belongs to the first of some abbreviations that `name` begins with.
fn first_that_begins<'a, T>(
    mut names: impl Iterator<Item = (&'a str, T)>,
    name: &str,
) -> Option<T> {
    let name = name.to_ascii_lowercase();
    let found = names.find(|(short, _)| name.starts_with(short));
    found.map(|(_, meant)| meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A moment, the zone (two of them behind docker), what is said, and the reset.
    type Case<'a> = (&'a str, &'a str, &'a str, &'a str);

    fn check(cases: &[Case<'_>]) {
        for (now, zones, message, expected) in cases {
            let zones: Vec<TimeZone> = zones.split(' ').map(|name| zone(name).unwrap()).collect();
            let found = reset_time(message, at(now), &zones);
            let expected = (!expected.is_empty()).then(|| at(expected));
            assert_eq!(found, expected, "{message} ({zones:?}, {now})");
        }
    }

    /// All of them at a Sunday afternoon, in UTC.
    fn check_at_noon(cases: &[(&str, &str)]) {
        let cases: Vec<Case<'_>> = cases
            .iter()
            .map(|(message, expected)| ("2026-11-22T14:30:00Z", "UTC", *message, *expected))
            .collect();
        check(&cases);
    }

    #[test]
    fn reset_times_are_read() {
        check_at_noon(&[
            (
                "Claude AI usage limit reached|1795615600",
                "2026-11-25T14:06:40Z",
            ),
            (
                "You've hit your session limit \u{b7} resets 3:45pm (Europe/Berlin)",
                "2026-11-22T14:45:00Z",
            ),
            (
                "session limit \u{b7} resets 1pm (Europe/Berlin)",
                "2026-11-23T12:00:00Z",
            ),
            (
                "session limit \u{b7} resets 3pm (Europe/Berlin)",
                "2026-11-22T14:30:00Z",
            ),
            (
                "Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).",
                "2026-11-22T18:00:00Z",
            ),
            (
                "weekly limit \u{b7} resets Mon 12:00am",
                "2026-11-23T00:00:00Z",
            ),
            (
                "weekly limit \u{b7} resets Sun 9am (UTC)",
                "2026-11-29T09:00:00Z",
            ),
            (
                "weekly limit \u{b7} resets Oct 12, 8am",
                "2027-10-12T08:00:00Z",
            ),
            ("try again at 3:05\u{202f}PM.", "2026-11-22T15:05:00Z"),
            (
                "try again at Jun 11th, 2027 12:27 AM.",
                "2027-06-11T00:27:00Z",
            ),
            (
                "5-hour limit reached \u{2219} resets 3am",
                "2026-11-23T03:00:00Z",
            ),
            ("limit resets 9pm (Atlantis/Center)", ""),
            ("resets some day", ""),
            (
                "Try again later. The limit resets tomorrow at 15:00",
                "2026-11-23T15:00:00Z",
            ),
            (
                "You've reached your weekly limit. Resets Thursday at 10am",
                "2026-11-26T10:00:00Z",
            ),
            ("resets 3pm, OR upgrade", "2026-11-22T15:00:00Z"),
            (
                "free usage resets automatically at midnight Pacific",
                "2026-11-23T08:00:00Z",
            ),
        ]);
    }

    #[test]
    fn dates_are_believed() {
        check_at_noon(&[
            ("Your limit resets Nov 29 at 3pm", "2026-11-29T15:00:00Z"),
            (
                "resets on December 1, 2026 at 00:00 UTC",
                "2026-12-01T00:00:00Z",
            ),
            (
                "resets 2 Dec 2026, 4pm (Asia/Tokyo)",
                "2026-12-02T07:00:00Z",
            ),
            ("Available again on 2026-12-31", "2026-12-31T00:00:00Z"),
            (
                "[1308][Usage limit reached for 5 hour. Your limit will reset at 2026-11-22 18:02:41][20261122]",
                "2026-11-22T18:02:41Z",
            ),
            (
                "您的限额将在 2026-11-22 17:41:44 重置。",
                "2026-11-22T17:41:44Z",
            ),
            (
                r#"{"resetsAt": "2026-12-24T08:00:00+01:00"}"#,
                "2026-12-24T07:00:00Z",
            ),
            (
                "Retry-After: Mon, 23 Nov 2026 07:28:00 GMT",
                "2026-11-23T07:28:00Z",
            ),
            ("resets 2026-11-20 08:00", "2026-11-22T14:30:00Z"),
            // When a line was written is no reset.
            ("2026-11-22 14:29:59 ERROR too many requests", ""),
            (
                "2026-11-22T14:29:59.100Z ERROR limit reached, resets 4:10pm",
                "2026-11-22T16:10:00Z",
            ),
        ]);
    }

    #[test]
    fn spans_are_read() {
        check_at_noon(&[
            ("Please retry in 34.07s.", "2026-11-22T14:30:35Z"),
            ("try again in 1 hour and 5 minutes", "2026-11-22T15:35:00Z"),
            ("retry-after: 20", "2026-11-22T14:30:20Z"),
            (
                "Your quota will reset after 8h44m7s.",
                "2026-11-22T23:14:07Z",
            ),
            ("TRY AGAIN IN 2 HOURS", "2026-11-22T16:30:00Z"),
            ("Limit Resets In 3 Days", "2026-11-25T14:30:00Z"),
            ("Try again in 1h 5m", "2026-11-22T15:35:00Z"),
            (
                "Come back in 3h 47m \u{2014} resets at midnight Pacific",
                "2026-11-22T18:17:00Z",
            ),
            ("[retrying in 17h 42m attempt #1]", "2026-11-23T08:12:00Z"),
            (
                "please wait 1 day, 2 hours before the next",
                "2026-11-23T16:30:00Z",
            ),
            (r#"{"retry-after": "62056"}"#, "2026-11-23T07:44:16Z"),
            ("retry-after-ms=997000", "2026-11-22T14:46:37Z"),
            (r#"{"resets_in_seconds":4000}"#, "2026-11-22T15:36:40Z"),
            (r#""retryDelay": "12.3s""#, "2026-11-22T14:30:13Z"),
            // No limit is as long.
            ("resets in 2 months", "2026-11-30T14:30:00Z"),
            ("retry after 9999999 seconds", "2026-11-30T14:30:00Z"),
            ("try again in 5 models", ""),
        ]);
    }

    #[test]
    fn an_offset_is_an_offset() {
        check_at_noon(&[
            ("Access resets at 10:57 PM GMT-3.", "2026-11-23T01:57:00Z"),
            ("resets 10:30pm (GMT+5:30)", "2026-11-22T17:00:00Z"),
            ("resets 9am (UTC-3)", "2026-11-23T12:00:00Z"),
            ("resets at 18:00 UTC+02:00", "2026-11-22T16:00:00Z"),
            ("resets 8am PST", "2026-11-22T16:00:00Z"),
            ("resets 8am PDT", "2026-11-22T15:00:00Z"),
            ("resets 8am PT", "2026-11-22T16:00:00Z"),
            ("resets 18:00 CET", "2026-11-22T17:00:00Z"),
            ("resets 18:00 CEST", "2026-11-22T16:00:00Z"),
            ("resets 11:15pm IST", "2026-11-22T17:45:00Z"),
            ("resets 2026-11-23 01:00:00 JST", "2026-11-22T16:00:00Z"),
        ]);
        // In summer, too.
        check(&[(
            "2026-07-01T12:00:00Z",
            "Europe/Berlin",
            "resets 18:00 CET",
            "2026-07-01T17:00:00Z",
        )]);
    }

    #[test]
    fn without_a_zone_it_is_local_time() {
        let codex = "You've hit your usage limit. Upgrade to Pro or try again at 2:05 PM.";
        let claude = "You've hit your session limit \u{b7} resets 11:50pm";
        let copilot = "You've hit your weekly rate limit. It resets on Mar 3 at 9:00 AM.";
        let now = "2026-03-01T12:00:00Z";
        check(&[
            (now, "UTC", codex, "2026-03-01T14:05:00Z"),
            (now, "Europe/Berlin", codex, "2026-03-01T13:05:00Z"),
            (now, "Asia/Kolkata", codex, "2026-03-02T08:35:00Z"),
            (now, "America/New_York", codex, "2026-03-01T19:05:00Z"),
            (now, "America/Los_Angeles", codex, "2026-03-01T22:05:00Z"),
            (now, "Asia/Tokyo", codex, "2026-03-02T05:05:00Z"),
            (now, "IST-5:30", codex, "2026-03-02T08:35:00Z"),
            (now, "Europe/Berlin", claude, "2026-03-01T22:50:00Z"),
            (now, "Asia/Kolkata", claude, "2026-03-01T18:20:00Z"),
            (now, "America/New_York", claude, "2026-03-02T04:50:00Z"),
            (now, "America/Los_Angeles", claude, "2026-03-02T07:50:00Z"),
            (now, "Asia/Tokyo", claude, "2026-03-01T14:50:00Z"),
            (now, "Europe/Berlin", copilot, "2026-03-03T08:00:00Z"),
            (now, "Asia/Kolkata", copilot, "2026-03-03T03:30:00Z"),
            (now, "America/New_York", copilot, "2026-03-03T14:00:00Z"),
            (now, "America/Los_Angeles", copilot, "2026-03-03T17:00:00Z"),
            (now, "Asia/Tokyo", copilot, "2026-03-03T00:00:00Z"),
        ]);
    }

    #[test]
    fn of_two_readings_the_earlier_counts_that_lies_ahead() {
        let now = "2026-03-01T12:00:00Z";
        check(&[
            (
                now,
                "Europe/Berlin UTC",
                "resets 2:05pm",
                "2026-03-01T13:05:00Z",
            ),
            (
                now,
                "America/New_York UTC",
                "resets 2:05pm",
                "2026-03-01T14:05:00Z",
            ),
            (now, "Asia/Tokyo UTC", "resets 6pm", "2026-03-01T18:00:00Z"),
            (
                now,
                "Asia/Tokyo UTC",
                "resets 2026-03-01 15:00:00",
                "2026-03-01T15:00:00Z",
            ),
            (
                now,
                "Asia/Tokyo UTC",
                "resets 2026-03-01 22:00:00",
                "2026-03-01T13:00:00Z",
            ),
            // 21:30 in Tokyo was half an hour ago.
            (
                "2026-03-01T13:00:00Z",
                "Asia/Tokyo UTC",
                "resets 9:30pm",
                "2026-03-01T13:00:00Z",
            ),
            (
                now,
                "Asia/Tokyo UTC",
                "resets 2:05pm (Europe/Berlin)",
                "2026-03-01T13:05:00Z",
            ),
        ]);
    }

    #[test]
    fn midnight_and_daylight_saving() {
        check(&[
            (
                "2026-11-23T00:15:00Z",
                "UTC",
                "resets 11:50pm",
                "2026-11-23T00:15:00Z",
            ),
            (
                "2026-11-23T00:55:00Z",
                "UTC",
                "resets 11:50pm",
                "2026-11-23T23:50:00Z",
            ),
            (
                "2026-03-01T23:10:00Z",
                "Europe/Berlin",
                "resets 11:50pm",
                "2026-03-01T23:10:00Z",
            ),
            (
                "2026-03-01T18:40:00Z",
                "Asia/Kolkata",
                "resets 12:20am",
                "2026-03-01T18:50:00Z",
            ),
            (
                "2026-03-01T15:30:00Z",
                "Asia/Tokyo",
                "resets Mon 12am",
                "2026-03-01T15:30:00Z",
            ),
            (
                "2026-03-01T07:30:00Z",
                "America/Los_Angeles",
                "resets 12:50am",
                "2026-03-01T08:50:00Z",
            ),
            // Clocks go forward in Berlin on 28 March 2027 at 02:00: 02:30 does not exist.
            (
                "2027-03-27T22:00:00Z",
                "Europe/Berlin",
                "resets 2:30am",
                "2027-03-28T01:30:00Z",
            ),
            (
                "2027-03-27T22:00:00Z",
                "Europe/Berlin",
                "resets 9am",
                "2027-03-28T07:00:00Z",
            ),
            (
                "2026-10-24T22:00:00Z",
                "Europe/Berlin",
                "resets 9am",
                "2026-10-25T08:00:00Z",
            ),
            // 02:30 comes twice.
            (
                "2026-10-24T22:00:00Z",
                "Europe/Berlin",
                "resets 2:30am",
                "2026-10-25T00:30:00Z",
            ),
            (
                "2026-03-08T05:00:00Z",
                "America/New_York",
                "resets 2:30am",
                "2026-03-08T07:30:00Z",
            ),
            (
                "2026-03-08T05:00:00Z",
                "America/New_York",
                "resets 9am",
                "2026-03-08T13:00:00Z",
            ),
            (
                "2026-11-01T04:30:00Z",
                "America/New_York",
                "resets 1:30am",
                "2026-11-01T05:30:00Z",
            ),
            (
                "2026-03-08T09:30:00Z",
                "America/Los_Angeles",
                "resets 3am",
                "2026-03-08T10:00:00Z",
            ),
            (
                "2026-11-01T06:30:00Z",
                "America/Los_Angeles",
                "resets 6:20am",
                "2026-11-01T14:20:00Z",
            ),
            (
                "2026-03-28T20:00:00Z",
                "Asia/Kolkata",
                "resets 6:30am",
                "2026-03-29T01:00:00Z",
            ),
            (
                "2026-03-28T20:00:00Z",
                "Asia/Tokyo",
                "resets 6:30am",
                "2026-03-28T21:30:00Z",
            ),
        ]);
    }
}
