//! Time stamps in logs: the layouts that occur, and jumps inside a log (daylight saving, midnight).

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use regex::{Captures, Regex};

use crate::model::{Clock, time};
use crate::text::t;

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;
pub(super) const DAY_NS: i64 = 24 * HOUR_NS;

/// Only this much of a line's beginning is searched for its time.
const SEARCHED_BYTES: usize = 96;

/// A time as a log writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds: since 1970 (local times as if they were UTC), or since midnight.
    pub ns: i64,
    /// [`Clock::Unix`], [`Clock::LocalWall`] or [`Clock::LocalTimeOfDay`].
    pub clock: Clock,
}

/// The layouts, the most telling first. Groups: `y mo d h mi s f` (fraction), `mon` (name), `ap` (am, pm), `z` (zone).
static LAYOUTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    const HMS: &str = r"(?P<h>\d{1,2}):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?";
    let day = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
    [
        // 2026/12/01 11:22:03.379, 2026-12-01T11:22:03,379+05:30, 20261201 11:22:03
        format!(
            r"(?:^|[^\d])(?P<y>\d{{4}})[-/.]?(?P<mo>\d\d)[-/.]?(?P<d>\d\d)[ T_]+{HMS}\s?(?P<z>Z|UTC|[+-]\d\d:?\d\d)?(?:[^\d]|$)"
        ),
        // Tue Dec  1 05:53:49 2026, Tue Dec  1 05:53:49 AM UTC 2026
        format!(
            r"{day}\s+(?P<mon>[A-Z][a-z]{{2}})\s+(?P<d>\d{{1,2}})\s+{HMS}(?:\s+(?P<ap>[AP]M))?(?:\s+(?P<z>[A-Z]{{1,5}}))?\s+(?P<y>\d{{4}})"
        ),
        // Fri 21 Nov 2025 11:41:31 PM EST
        format!(
            r"{day},?\s+(?P<d>\d{{1,2}})\s+(?P<mon>[A-Z][a-z]{{2}})\s+(?P<y>\d{{4}})\s+{HMS}(?:\s+(?P<ap>[AP]M))?(?:\s+(?P<z>[A-Z]{{1,5}}))?"
        ),
        // 12/01/2026 11:22:04
        format!(r"(?:^|[^\d])(?P<mo>\d\d)/(?P<d>\d\d)/(?P<y>\d{{4}})[ T,]+{HMS}(?:\s?(?P<ap>[AP]M))?(?:[^\d]|$)"),
        // 1796104323.357 and 1796104323 at the beginning of a line or after a bracket or `ts=`
        r"(?:^\s*|\[|\bts=|\btime=|\btimestamp=)(?P<unix>1\d{9}(?:\.\d{1,9})?)(?:[^\d.]|$)".to_owned(),
        // 11:22:03.379, [12/01 11:22:04 d2.utils], I1201 11:22:04.123: a day without a year says too little.
        format!(r"(?:^|[^\d:]){HMS}(?:[^\d:]|$)"),
    ]
    .iter()
    .filter_map(|layout| Regex::new(layout).ok())
    .collect()
});

/// The time that a line begins with.
pub(super) fn find_stamp(line: &str) -> Option<Stamp> {
    let mut end = line.len().min(SEARCHED_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let head = &line[..end];
    // Every layout has at least this many digits; most lines of a log without times stop here.
    if head.bytes().filter(u8::is_ascii_digit).count() < 5 {
        return None;
    }
    LAYOUTS.iter().find_map(|layout| stamp_of(&layout.captures(head)?))
}

/// The time that a cell consists of, and nothing else.
pub(super) fn parse_stamp(cell: &str) -> Option<Stamp> {
    let cell = cell.trim();
    (cell.len() <= 48 && cell.starts_with(|c: char| c.is_ascii_alphanumeric()))
        .then(|| find_stamp(cell))
        .flatten()
}

/// The elapsed time of a progress bar, `[01:23<04:56`.
static ELAPSED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\[(?:(?P<h>\d{1,3}):)?(?P<mi>\d\d):(?P<s>\d\d)<").ok());

/// How long a progress bar in the line has run, in nanoseconds.
pub(super) fn find_elapsed(line: &str) -> Option<i64> {
    let found = ELAPSED.as_ref()?.captures(line)?;
    let number = |name: &str| found.name(name).map_or(Some(0), |group| group.as_str().parse::<i64>().ok());
    Some(number("h")? * HOUR_NS + number("mi")? * MINUTE_NS + number("s")? * SECOND_NS)
}

fn stamp_of(found: &Captures<'_>) -> Option<Stamp> {
    let text = |name: &str| found.name(name).map(|group| group.as_str());
    if let Some(unix) = text("unix") {
        return Some(Stamp { ns: time::parse_decimal_ns(unix, 9)?, clock: Clock::Unix });
    }
    let number = |name: &str| text(name)?.parse::<i8>().ok();
    let hour = match (number("h")?, text("ap")) {
        (12, Some("AM")) => 0,
        (hour, Some("PM")) if hour < 12 => hour + 12,
        (hour, _) => hour,
    };
    let fraction_ns = match text("f") {
        Some(digits) => time::parse_decimal_ns(&format!("0.{digits}"), 9)?,
        None => 0,
    };
    let (minute, second) = (number("mi")?, number("s")?);
    let Some(year) = text("y") else {
        (hour < 24 && minute < 60 && second < 61).then_some(())?;
        let ns = i64::from(hour) * HOUR_NS
            + i64::from(minute) * MINUTE_NS
            + i64::from(second) * SECOND_NS
            + fraction_ns;
        return Some(Stamp { ns, clock: Clock::LocalTimeOfDay });
    };
    let (mut month, mut day) = match text("mon") {
        Some(name) => (month_number(name)?, number("d")?),
        None => (number("mo")?, number("d")?),
    };
    if month > 12 {
        std::mem::swap(&mut month, &mut day);
    }
    let civil =
        DateTime::new(year.parse().ok()?, month, day, hour, minute, second.min(59), fraction_ns as i32)
            .ok()?;
    // Words such as IST or EST name several zones; only an offset or UTC itself is taken at its word.
    let zone = match text("z") {
        Some("Z" | "UTC" | "GMT") => Some(Offset::UTC),
        Some(zone) if zone.starts_with(['+', '-']) => Some(parse_offset(zone)?),
        _ => None,
    };
    let instant = TimeZone::fixed(zone.unwrap_or(Offset::UTC)).to_timestamp(civil).ok()?;
    let ns = i64::try_from(instant.as_nanosecond()).ok()?;
    Some(Stamp { ns, clock: if zone.is_some() { Clock::Unix } else { Clock::LocalWall } })
}

fn parse_offset(text: &str) -> Option<Offset> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let seconds = digits.get(..2)?.parse::<i32>().ok()? * 3600 + digits.get(2..4)?.parse::<i32>().ok()? * 60;
    Offset::from_seconds(if text.starts_with('-') { -seconds } else { seconds }).ok()
}

fn month_number(name: &str) -> Option<i8> {
    let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    names.iter().position(|&month| month == name).map(|index| index as i8 + 1)
}

/// Turns the stamps of one log, in the order of the file, into times that run on through midnight and daylight saving.
#[derive(Debug, Default)]
pub(super) struct Unwrapper {
    last_ns: Option<i64>,
    /// The usual distance between stamps that differ.
    interval_ns: i64,
    shift_ns: i64,
    /// What was done, one sentence each.
    pub notes: Vec<String>,
}

impl Unwrapper {
    /// The time of the next stamp.
    pub(super) fn unwrap(&mut self, stamp: Stamp) -> i64 {
        let mut ns = stamp.ns.saturating_add(self.shift_ns);
        if let Some(last_ns) = self.last_ns {
            let step_ns = ns.saturating_sub(last_ns);
            let jump_ns = match stamp.clock {
                Clock::LocalTimeOfDay if step_ns < -DAY_NS / 2 => Some(DAY_NS),
                Clock::LocalWall => self.daylight_jump(stamp.ns, step_ns),
                _ => None,
            };
            if let Some(jump_ns) = jump_ns {
                self.shift_ns = self.shift_ns.saturating_add(jump_ns);
                ns = ns.saturating_add(jump_ns);
                if stamp.clock == Clock::LocalWall {
                    let time = time::format_unix(stamp.ns).trim_end_matches('Z').replace('T', " ");
                    self.notes.push(if jump_ns > 0 {
                        t!(
                            "the clock was set back by an hour at {time} (daylight saving): later times were moved so that they run on",
                            time
                        )
                    } else {
                        t!(
                            "the clock was set forward by an hour at {time} (daylight saving): later times were moved so that they run on",
                            time
                        )
                    });
                }
            }
            let step_ns = ns.saturating_sub(last_ns);
            if step_ns > 0 && (self.interval_ns == 0 || step_ns < self.interval_ns.saturating_mul(4)) {
                self.interval_ns = step_ns;
            }
        }
        self.last_ns = Some(ns);
        ns
    }

    /// The correction when a step of local time is an hour off what the log's rhythm allows, at a full hour.
    fn daylight_jump(&self, local_ns: i64, step_ns: i64) -> Option<i64> {
        let slack_ns = self.interval_ns.saturating_mul(4).clamp(SECOND_NS, 5 * MINUTE_NS);
        let since_hour_ns = local_ns.rem_euclid(HOUR_NS);
        if since_hour_ns > slack_ns {
            return None;
        }
        if step_ns.saturating_add(HOUR_NS).saturating_abs() <= slack_ns {
            return Some(HOUR_NS);
        }
        let is_regular = self.interval_ns > 0 && self.interval_ns <= MINUTE_NS;
        (is_regular && step_ns.saturating_sub(HOUR_NS).saturating_abs() <= slack_ns).then_some(-HOUR_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_is_read() {
        let wall = 1_796_124_123_000_000_000; // 2026-12-01 11:22:03 as if UTC
        for (line, ns, clock) in [
            ("2026/12/01 11:22:03.379, 0, NVIDIA", wall + 379_000_000, Clock::LocalWall),
            ("2026-12-01 11:22:03,379 INFO step", wall + 379_000_000, Clock::LocalWall),
            ("[2026-12-01 11:22:03] step", wall, Clock::LocalWall),
            (" 20261201   11:22:03      0     97", wall, Clock::LocalWall),
            ("Tue Dec  1 11:22:03 2026", wall, Clock::LocalWall),
            ("Tue Dec  1 11:22:03 AM EST 2026", wall, Clock::LocalWall),
            ("Tue 01 Dec 2026 11:22:03 AM EST", wall, Clock::LocalWall),
            ("12/01/2026 11:22:03 - INFO", wall, Clock::LocalWall),
            ("2026-12-01T11:22:03+05:30 x", wall - 19_800_000_000_000, Clock::Unix),
            ("2026-12-01T11:22:03Z x", wall, Clock::Unix),
            ("1796124123.5 mem", wall + 500_000_000, Clock::Unix),
            ("[12/01 11:22:03 d2.utils.events]:  eta", 40_923_000_000_000, Clock::LocalTimeOfDay),
        ] {
            assert_eq!(find_stamp(line), Some(Stamp { ns, clock }), "{line}");
        }
        for none in ["step 12 loss 2.3 mem 7.41 GB", "99:99:99 x", "2026-13-45 11:22:03", "it 3 [00:12<01:20"]
        {
            let found = find_stamp(none);
            assert!(found.is_none_or(|stamp| stamp.clock == Clock::LocalTimeOfDay), "{none}: {found:?}");
        }
    }

    #[test]
    fn midnight_and_daylight_saving_run_on() {
        let mut unwrapper = Unwrapper::default();
        let of_day = |ns| Stamp { ns, clock: Clock::LocalTimeOfDay };
        assert_eq!(unwrapper.unwrap(of_day(DAY_NS - SECOND_NS)), DAY_NS - SECOND_NS);
        assert_eq!(unwrapper.unwrap(of_day(SECOND_NS)), DAY_NS + SECOND_NS);

        for (jump_ns, sign) in [(-HOUR_NS, "back"), (HOUR_NS, "forward")] {
            let mut unwrapper = Unwrapper::default();
            let start_ns = 500_000 * HOUR_NS;
            for second in -3..4_i64 {
                let jump_ns = if second >= 0 { jump_ns } else { 0 };
                let stamp = Stamp { ns: start_ns + second * SECOND_NS + jump_ns, clock: Clock::LocalWall };
                assert_eq!(unwrapper.unwrap(stamp), start_ns + second * SECOND_NS);
            }
            assert_eq!(unwrapper.notes.len(), 1);
            assert!(unwrapper.notes[0].contains(sign), "{:?}", unwrapper.notes);
        }
    }
}
