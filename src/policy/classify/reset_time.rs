//! When a usage limit resets, read from what the program says.

use std::sync::LazyLock;
use std::time::Duration;

use chrono::{
    DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc, Weekday,
};
use jiff::tz::TimeZone;
use regex::{Captures, Regex};

use crate::model::time::Timestamp;

static EPOCH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:\||resets?_?(?:at)?\W{1,4}|reset\W{1,4})(1[5-9]\d{8}|[2-9]\d{9})(?:\d{3})?\b",
    )
    .ok()
});
static ISO: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)").ok()
});
static WAIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let number_unit = r"(?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|s|m|h|d)\b[\s,]*(?:and )?)+";
    Regex::new(&format!(
        r#"(?i)(?:(?:retry|try)(?: again)?|resets?|available|wait|reset)(?: again)?(?: (?:in|after|for))? (?P<span>{number_unit})|retry[-_ ]?after"?[:=]?\s*"?(?P<seconds>\d+)|retryDelay"?[:=]?\s*"?(?P<delay>\d+(?:\.\d+)?)s"#
    ))
    .ok()
});
static PART: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(\d+(?:\.\d+)?)\s*(milli|ms|s|m|h|d)").ok());
static CLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let day = r"(?:(?P<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?";
    let date = r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?(?:,?\s+(?:at\s+)?|\s*$))?";
    let time = r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>[ap])\.?m\b\.?|(?P<hour24>\d{1,2}):(?P<minute24>\d\d))?";
    let zone = r"(?:\s*\(?(?P<zone>[A-Z][A-Za-z]+(?:/[A-Za-z_+-]+\d*)+|UTC|GMT|Z)\)?)?";
    let lead = r"(?:resets?(?:\s+(?:at|on))?|try again(?:\s+(?:at|on))?|reset (?:at|on)|available (?:again )?(?:at|on)|until)\s+(?:tomorrow\s+)?(?:at\s+)?";
    Regex::new(&format!(r"(?i){lead}{day}{date}{time}{zone}")).ok()
});

/// The moment that `message` names, or `None` where it names none that can be understood.
///
/// Epoch seconds come first, then an ISO time, a span ("in 34s", "retry-after: 20"), then a clock time with an optional
/// weekday, date, year and IANA zone. Without a zone the time is UTC. A clock time means its next occurrence, but one
/// that passed within the last hour means now. An unknown zone is `None`: the caller waits its default.
pub(super) fn reset_time(message: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some(found) = EPOCH.as_ref()?.captures(message) {
        let seconds: i64 = found.get(1)?.as_str().parse().ok()?;
        return Some(Timestamp::from_millis(seconds.saturating_mul(1000)));
    }
    if let Some(found) = ISO.as_ref()?.find(message) {
        return found.as_str().parse().ok();
    }
    if let Some(span) = WAIT.as_ref()?.captures(message) {
        return Some(now.plus(span_of(&span)?));
    }
    CLOCK
        .as_ref()?
        .captures_iter(message)
        .find_map(|captures| clock(&captures, now))
}

fn span_of(captures: &Captures<'_>) -> Option<Duration> {
    if let Some(seconds) = captures.name("seconds").or_else(|| captures.name("delay")) {
        let seconds: f64 = seconds.as_str().parse().ok()?;
        return Duration::try_from_secs_f64(seconds.ceil()).ok();
    }
    let mut seconds = 0.0;
    for part in PART
        .as_ref()?
        .captures_iter(captures.name("span")?.as_str())
    {
        let number: f64 = part.get(1)?.as_str().parse().ok()?;
        seconds += number
            * match part.get(2)?.as_str().to_ascii_lowercase().as_str() {
                "milli" | "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => 86400.0,
            };
    }
    // Up to the next second: asking a moment early costs another refusal.
    Duration::try_from_secs_f64(seconds.ceil()).ok()
}

struct Zone(TimeZone);

impl Zone {
    /// A zone by its IANA name, or UTC.
    fn parse(name: Option<&str>) -> Option<Self> {
        let Some(name) = name else {
            return Some(Self(TimeZone::UTC));
        };
        let utc = ["utc", "gmt", "z"]
            .iter()
            .any(|utc| name.eq_ignore_ascii_case(utc));
        if utc {
            Some(Self(TimeZone::UTC))
        } else {
            TimeZone::get(name).ok().map(Self)
        }
    }

    fn today(&self, now: DateTime<Utc>) -> Option<NaiveDate> {
        let offset = self
            .0
            .to_offset(jiff::Timestamp::from_second(now.timestamp()).ok()?);
        Some(
            now.checked_add_signed(TimeDelta::seconds(offset.seconds().into()))?
                .date_naive(),
        )
    }

    /// The instant of a local time: the earlier of two, and after the gap where the clock was put forward.
    fn instant(&self, date: NaiveDate, time: NaiveTime) -> Option<DateTime<Utc>> {
        let [month, day, hour, minute] =
            [date.month(), date.day(), time.hour(), time.minute()].map(i8::try_from);
        let year = i16::try_from(date.year()).ok()?;
        let local = jiff::civil::DateTime::new(
            year,
            month.ok()?,
            day.ok()?,
            hour.ok()?,
            minute.ok()?,
            0,
            0,
        )
        .ok()?;
        DateTime::from_timestamp(self.0.to_timestamp(local).ok()?.as_second(), 0)
    }
}

fn clock(captures: &Captures<'_>, now: Timestamp) -> Option<Timestamp> {
    let number = |name: &str| {
        captures
            .name(name)
            .and_then(|found| found.as_str().parse::<u32>().ok())
    };
    let time = match (number("hour"), number("hour24")) {
        (Some(hour @ 1..=12), _) => {
            let afternoon = captures
                .name("half")
                .is_some_and(|half| half.as_str().eq_ignore_ascii_case("p"));
            NaiveTime::from_hms_opt(
                hour % 12 + if afternoon { 12 } else { 0 },
                number("minute").unwrap_or(0),
                0,
            )?
        }
        (None, Some(hour)) => NaiveTime::from_hms_opt(hour, number("minute24").unwrap_or(0), 0)?,
        // A date without a time is its beginning; neither is nothing.
        (None, None) if captures.name("month").is_some() => NaiveTime::MIN,
        _ => return None,
    };
    let zone = Zone::parse(captures.name("zone").map(|zone| zone.as_str()))?;
    let today = zone.today(now.datetime())?;
    let not_before = now.datetime() - TimeDelta::hours(1);
    let next = |dates: &mut dyn Iterator<Item = Option<NaiveDate>>| {
        dates
            .flatten()
            .filter_map(|date| zone.instant(date, time))
            .find(|at| *at > not_before)
    };
    let at = if let (Some(month), Some(day)) = (captures.name("month"), number("day")) {
        let month = month_number(month.as_str())?;
        match number("year").and_then(|year| i32::try_from(year).ok()) {
            Some(year) => zone.instant(NaiveDate::from_ymd_opt(year, month, day)?, time),
            None => next(
                &mut (0..5).map(|years| NaiveDate::from_ymd_opt(today.year() + years, month, day)),
            ),
        }
    } else if let Some(weekday) = captures.name("weekday") {
        let weekday: Weekday = weekday.as_str().parse().ok()?;
        let on = |day: NaiveDate| day.weekday() == weekday;
        next(&mut (0..15).map(|days| {
            today
                .checked_add_days(Days::new(days))
                .filter(|day| on(*day))
        }))
    } else {
        // Yesterday, for a quarter of an hour past midnight.
        let yesterday = today.checked_sub_days(Days::new(1))?;
        next(&mut (0..3).map(|days| yesterday.checked_add_days(Days::new(days))))
    }?;
    let latest = now.datetime().checked_add_months(Months::new(24))?;
    (at < latest).then(|| Timestamp::new(at).max(now))
}

fn month_number(name: &str) -> Option<u32> {
    let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let name = name.to_ascii_lowercase();
    months
        .iter()
        .zip(1..)
        .find(|(month, _)| name.starts_with(**month))
        .map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn reset_times_are_read() {
        // A Sunday.
        let now = at("2026-11-22T14:30:00Z");
        for (message, expected) in [
            (
                "Claude AI usage limit reached|1795615600",
                Some("2026-11-25T14:06:40Z"),
            ),
            (
                "You've hit your session limit \u{b7} resets 3:45pm (Europe/Berlin)",
                Some("2026-11-22T14:45:00Z"),
            ),
            (
                "session limit \u{b7} resets 1pm (Europe/Berlin)",
                Some("2026-11-23T12:00:00Z"),
            ),
            (
                "session limit \u{b7} resets 3pm (Europe/Berlin)",
                Some("2026-11-22T14:30:00Z"),
            ),
            (
                "weekly limit \u{b7} resets Mon 12:00am",
                Some("2026-11-23T00:00:00Z"),
            ),
            (
                "weekly limit \u{b7} resets Sun 9am (UTC)",
                Some("2026-11-29T09:00:00Z"),
            ),
            (
                "weekly limit \u{b7} resets Oct 12, 8am",
                Some("2027-10-12T08:00:00Z"),
            ),
            ("try again at 3:05 PM.", Some("2026-11-22T15:05:00Z")),
            (
                "try again at Jun 11th, 2027 12:27 AM.",
                Some("2027-06-11T00:27:00Z"),
            ),
            (
                "5-hour limit reached \u{2219} resets 3am",
                Some("2026-11-23T03:00:00Z"),
            ),
            ("Please retry in 34.07s.", Some("2026-11-22T14:30:35Z")),
            (
                "try again in 1 hour and 5 minutes",
                Some("2026-11-22T15:35:00Z"),
            ),
            ("retry-after: 20", Some("2026-11-22T14:30:20Z")),
            ("limit resets 9pm (Atlantis/Center)", None),
            ("resets some day", None),
        ] {
            assert_eq!(reset_time(message, now), expected.map(at), "{message}");
        }
    }

    #[test]
    fn midnight_and_daylight_saving() {
        let past_midnight = at("2026-11-23T00:15:00Z");
        assert_eq!(
            reset_time("resets 11:50pm (UTC)", past_midnight),
            Some(past_midnight)
        );
        // Clocks go forward in Berlin on 28 March 2027 at 02:00: 02:30 does not exist.
        let before = at("2027-03-27T22:00:00Z");
        assert_eq!(
            reset_time("resets 2:30am (Europe/Berlin)", before),
            Some(at("2027-03-28T01:30:00Z"))
        );
        let winter = at("2026-10-24T22:00:00Z");
        assert_eq!(
            reset_time("resets 9am (Europe/Berlin)", winter),
            Some(at("2026-10-25T08:00:00Z"))
        );
    }
}
