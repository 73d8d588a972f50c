//! Formats and parses times for people, in the zone of `TZ` or `/etc/localtime`.

use jiff::civil::{DateTime, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use takeback_store::Timestamp;

use crate::place::environment;

#[expect(clippy::disallowed_methods, reason = "the binary reads the clock, here alone")]
pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// ISO 8601, UTC.
pub(crate) fn iso(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0)
        .map_or_else(|_| time.0.to_string(), |time| time.to_string())
}

/// Reads ISO 8601, with or without a fraction; without a zone it is UTC.
pub(crate) fn parse_iso(text: &str) -> Option<Timestamp> {
    let time = text.parse::<jiff::Timestamp>().ok();
    let time = time.or_else(|| {
        let local = text.parse::<DateTime>().ok()?;
        Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp())
    });
    Some(Timestamp(time?.as_millisecond()))
}

/// `just now`, `5 min ago`, `3 h ago`, `2 days ago`.
pub(crate) fn ago(time: Timestamp, now: Timestamp) -> String {
    let seconds = (now.0 - time.0).max(0) / 1000;
    let plural = |n: i64, unit: &str| format!("{n} {unit}{} ago", if n == 1 { "" } else { "s" });
    match seconds {
        0..10 => "just now".to_owned(),
        10..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..2_592_000 => plural(seconds / 86_400, "day"),
        _ => plural(seconds / 2_592_000, "month"),
    }
}

/// `14:03:59` in local time; `14:03:59 UTC` if the zone is unknown.
pub(crate) fn clock(time: Timestamp) -> String {
    local(time, "%H:%M:%S")
}

/// Like [`clock`], with the date.
pub(crate) fn moment(time: Timestamp) -> String {
    local(time, "%Y-%m-%d %H:%M:%S")
}

fn local(time: Timestamp, format: &str) -> String {
    let zone = zone();
    let mark = if zone.is_unknown() { " UTC" } else { "" };
    jiff::Timestamp::from_millisecond(time.0).map_or_else(
        |_| time.0.to_string(),
        |time| format!("{}{mark}", time.to_zoned(zone).strftime(format)),
    )
}

/// The local zone; if it is unknown, UTC marked as unknown.
fn zone() -> TimeZone {
    TimeZone::try_system().ok().or_else(bundled_zone).unwrap_or_else(TimeZone::unknown)
}

/// The zone that `TZ` names, from the bundled zone data. The library uses that only if the system has no zone
/// files at all, and some systems have a few.
fn bundled_zone() -> Option<TimeZone> {
    let name = environment("TZ")?.into_string().ok()?;
    let name = name.strip_prefix(':').unwrap_or(&name);
    let name = name.rsplit_once("zoneinfo/").map_or(name, |(_, name)| name);
    TimeZoneDatabase::bundled().get(name).ok()
}

/// The warning if `TZ` names no zone. Without `TZ` and `/etc/localtime` there is no warning: every program
/// uses UTC then.
pub(crate) fn zone_warning() -> Option<String> {
    let name = environment("TZ")?;
    // Searching the system's zone files takes longer than some commands.
    if bundled_zone().is_some() {
        return None;
    }
    let name = name.to_string_lossy();
    zone().is_unknown().then(|| format!("TZ={name} is not a known time zone; times are in UTC"))
}

/// Whether `text` looks like a time of day.
pub(crate) fn looks_like_time(text: &str) -> bool {
    let mut parts = text.split(':');
    let hours = parts.next().is_some_and(|hours| matches!(hours.len(), 1 | 2));
    let rest: Vec<&str> = parts.collect();
    hours
        && matches!(rest.len(), 1 | 2)
        && rest.iter().all(|part| part.len() == 2)
        && text.bytes().all(|byte| byte == b':' || byte.is_ascii_digit())
}

/// Reads `90s`, `10m`, `2h`, `3d` (that long before `now`), and `14:00` or `14:00:30`: the end of that
/// minute or second, the last time it was that.
pub(crate) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some((digits, unit)) = text.char_indices().last().map(|(at, unit)| (&text[..at], unit)) {
        let milliseconds = match unit {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => 0,
        };
        if milliseconds > 0 {
            let count: i64 = digits.parse().ok().filter(|count| *count >= 0)?;
            return Some(Timestamp(now.0.checked_sub(count.checked_mul(milliseconds)?)?));
        }
    }
    if !looks_like_time(text) {
        return None;
    }
    let time: Time =
        format!("{text:0>width$}", width = text.len().next_multiple_of(3) - 1).parse().ok()?;
    let zoned = jiff::Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone());
    let today = zoned.with().time(time).build().ok()?;
    let last = if today > zoned { today.yesterday().ok()? } else { today };
    let lasts = if text.matches(':').count() == 1 { 59_999 } else { 999 };
    Some(Timestamp((last.timestamp().as_millisecond() + lasts).min(now.0)))
}

/// Like [`parse`], and also a date (its beginning), or a date with a time.
pub(crate) fn parse_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let date = || {
        let date = text.parse::<jiff::civil::Date>().ok()?;
        Some(Timestamp(date.to_zoned(zone()).ok()?.timestamp().as_millisecond()))
    };
    let with_zone = || {
        let time = text.parse::<jiff::Timestamp>().ok()?;
        Some(Timestamp(time.as_millisecond()))
    };
    let local = || {
        let time = text.parse::<DateTime>().ok()?;
        Some(Timestamp(time.to_zoned(zone()).ok()?.timestamp().as_millisecond()))
    };
    parse(text, now).or_else(with_zone).or_else(|| if text.len() == 10 { date() } else { local() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_the_unit_that_fits() {
        let now = Timestamp(10_000_000_000);
        let ages: Vec<String> = [0, 9, 59, 60, 3_599, 3_600, 86_399, 86_400, 172_800, 5_184_000]
            .iter()
            .map(|seconds| ago(Timestamp(now.0 - seconds * 1000), now))
            .collect();
        assert_eq!(
            ages,
            [
                "just now",
                "just now",
                "59 s ago",
                "1 min ago",
                "59 min ago",
                "1 h ago",
                "23 h ago",
                "1 day ago",
                "2 days ago",
                "2 months ago"
            ]
        );
    }

    #[test]
    fn times_are_read_backwards_from_now() {
        let now = Timestamp(1_000_000_000);
        assert_eq!(parse("10m", now), Some(Timestamp(now.0 - 600_000)));
        assert_eq!(parse("2h", now), Some(Timestamp(now.0 - 7_200_000)));
        for bad in [
            "",
            "m",
            "-5m",
            "10",
            "10x",
            "25:00",
            "14:0",
            "14:60",
            "1:2:3:4",
            ":",
            "99999999999999999d",
        ] {
            assert_eq!(parse(bad, now), None, "{bad:?}");
        }
        let at = parse("14:00", now).expect("a time of day");
        assert!(at <= now && at.0 > now.0 - 86_400_000);
        assert_eq!((at.0 + 1) % 60_000, 0, "the end of the minute");
        let second = parse("14:00:58", now).expect("a time of day");
        assert_eq!(second.0, at.0 - 1_000);
        assert_eq!(parse("9:05", now), parse("09:05", now));
        let this_minute = clock(now);
        assert_eq!(parse(&this_minute[..5], now), Some(now), "it is not over");
    }

    #[test]
    fn iso_times_are_read_with_and_without_a_zone() {
        let time = Some(Timestamp(1_704_164_645_678));
        for text in [
            "2024-01-02T03:04:05.678Z",
            "2024-01-02T03:04:05.678901",
            "2024-01-02 03:04:05.678",
            "2024-01-02T05:04:05.678+02:00",
        ] {
            assert_eq!(parse_iso(text), time, "{text}");
        }
        assert_eq!(parse_iso("2024-01-02T03:04:05"), Some(Timestamp(1_704_164_645_000)));
        for bad in ["", "now", "1704164645", "2024-13-02T03:04:05", "2024-01-02T25:04:05Z"] {
            assert_eq!(parse_iso(bad), None, "{bad}");
        }
    }
}
