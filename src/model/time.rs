//! Time: `i64` nanoseconds since the Unix epoch, and half-open ranges.
//!
//! `i64` covers 1678 to 2262. Floats are for drawing only, relative to a session's start, since an `f64` steps by
//! 256 ns at this distance from 1970.

use crate::text::t;
use std::fmt;

/// The time of an event that the recording does not show to happen: a block that was never freed.
pub const NEVER_NS: i64 = i64::MAX;
/// The time of an event from before the recording began.
pub const BEFORE_NS: i64 = i64::MIN;

/// The farthest that a time lies from 1970, 146 years: the difference of two such times fits.
const FARTHEST_NS: i64 = 1 << 62;

/// A time as files give it, which may be damaged, no farther from 1970 than times are followed.
pub fn bounded(time_ns: i64) -> i64 {
    time_ns.clamp(-FARTHEST_NS, FARTHEST_NS)
}

const NS_PER_S: i64 = 1_000_000_000;

/// A half-open range of time, `[start_ns, end_ns)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// The first instant inside.
    pub start_ns: i64,
    /// The first instant after.
    pub end_ns: i64,
}

impl TimeRange {
    /// The range between two instants, whichever comes first.
    pub fn new(a_ns: i64, b_ns: i64) -> Self {
        Self { start_ns: a_ns.min(b_ns), end_ns: a_ns.max(b_ns) }
    }

    /// Its length in nanoseconds.
    pub fn duration_ns(self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Whether `time_ns` lies inside.
    pub fn contains(self, time_ns: i64) -> bool {
        self.start_ns <= time_ns && time_ns < self.end_ns
    }

    /// Whether the two share an instant.
    pub fn overlaps(self, other: Self) -> bool {
        self.start_ns < other.end_ns && other.start_ns < self.end_ns
    }

    /// The smallest range that holds both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }

    /// The range moved by `offset_ns`.
    #[must_use]
    pub fn shifted(self, offset_ns: i64) -> Self {
        Self {
            start_ns: self.start_ns.saturating_add(offset_ns),
            end_ns: self.end_ns.saturating_add(offset_ns),
        }
    }
}

/// A length of time in the unit that suits it: `1.25 s`, `312 ms`, `4.2 µs`, `2 min 05 s`.
pub fn format_duration(duration_ns: i64) -> String {
    let sign = if duration_ns < 0 { "−" } else { "" };
    let ns = duration_ns.unsigned_abs();
    let three_digits = |value: f64| {
        let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        format!("{value:.decimals$}")
    };
    let text = match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", three_digits(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", three_digits(ns as f64 / 1e6)),
        1_000_000_000..60_000_000_000 => format!("{} s", three_digits(ns as f64 / 1e9)),
        _ => {
            let s = ns / NS_PER_S as u64;
            match s / 3600 {
                0 => format!("{} min {:02} s", s / 60, s % 60),
                h => format!("{h} h {:02} min", s / 60 % 60),
            }
        }
    };
    format!("{sign}{text}")
}

/// An instant as an offset from the session's start: `+1.250 s`.
pub fn format_offset(time_ns: i64, session_start_ns: i64) -> String {
    let offset_ns = time_ns.saturating_sub(session_start_ns);
    format!("{}{:.3} s", if offset_ns < 0 { '−' } else { '+' }, offset_ns.unsigned_abs() as f64 / 1e9)
}

/// An instant as RFC 3339 in UTC with microseconds: `2026-12-01T05:52:03.357719Z`.
pub fn format_unix(time_ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(time_ns))
        .map_or_else(|_| format!("{time_ns} ns"), |time| format!("{time:.6}"))
}

/// An instant as a person names it, before it is looked up in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeSpec {
    /// `step:8`: the start of that step.
    Step(i64),
    /// An RFC 3339 time or Unix seconds.
    UnixNs(i64),
    /// `+1.25s`: an offset from the session's start.
    OffsetNs(i64),
    /// `40%`: a share of the session, 0 to 1.
    Share(f64),
}

/// Why a text names no instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpecError(pub String);

impl std::error::Error for TimeSpecError {}

impl fmt::Display for TimeSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&t!(
            "not a time: `{text}`; write step:8, +1.25s, 40%, Unix seconds or an RFC 3339 time such as 2026-12-01T05:52:03Z",
            text = self.0
        ))
    }
}

impl std::str::FromStr for TimeSpec {
    type Err = TimeSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || TimeSpecError(text.to_owned());
        let text = text.trim();
        if let Some(step) = text.strip_prefix("step:") {
            return step.trim().parse().map(Self::Step).map_err(|_| error());
        }
        if let Some(share) = text.strip_suffix('%') {
            let share: f64 = share.trim().parse().map_err(|_| error())?;
            return if (0.0..=100.0).contains(&share) {
                Ok(Self::Share(share / 100.0))
            } else {
                Err(error())
            };
        }
        if let Some(offset) = text.strip_prefix('+') {
            return parse_duration(offset).map(Self::OffsetNs).ok_or_else(error);
        }
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return i64::try_from(time.as_nanosecond()).map(Self::UnixNs).map_err(|_| error());
        }
        parse_decimal_ns(text, 9).map(Self::UnixNs).ok_or_else(error)
    }
}

impl TimeSpec {
    /// The instant within a session of this span; `step_ns` looks up the start of a step.
    ///
    /// # Errors
    /// Those of `step_ns`.
    pub fn resolve<E>(self, span: TimeRange, step_ns: impl FnOnce(i64) -> Result<i64, E>) -> Result<i64, E> {
        match self {
            Self::UnixNs(time_ns) => Ok(time_ns),
            Self::OffsetNs(offset_ns) => Ok(span.start_ns.saturating_add(offset_ns)),
            Self::Share(share) => {
                Ok(span.start_ns.saturating_add((span.duration_ns() as f64 * share) as i64))
            }
            Self::Step(number) => step_ns(number),
        }
    }
}

impl fmt::Display for TimeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => write!(f, "step:{step}"),
            Self::UnixNs(ns) => f.write_str(&format_unix(*ns)),
            Self::OffsetNs(ns) => write!(f, "+{}s", *ns as f64 / 1e9),
            Self::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

/// A length of time with its unit: `1.25s`, `300 ms`, `12us`, `2min`, `1h`; without one it is seconds.
pub fn parse_duration(text: &str) -> Option<i64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number = number.trim();
    match unit.trim() {
        "" | "s" | "sec" => parse_decimal_ns(number, 9),
        "ms" => parse_decimal_ns(number, 6),
        "us" | "µs" | "μs" => parse_decimal_ns(number, 3),
        "ns" => parse_decimal_ns(number, 0),
        "min" | "m" => parse_decimal_ns(number, 9)?.checked_mul(60),
        "h" => parse_decimal_ns(number, 9)?.checked_mul(3600),
        _ => None,
    }
}

/// Decimal text times 10^`exponent` as an integer, without a float in between; digits beyond are cut.
///
/// `parse_decimal_ns("5247302593449.899", 3)` reads microseconds into nanoseconds. `None` for anything that is not
/// a plain decimal number or does not fit.
pub fn parse_decimal_ns(text: &str, exponent: u32) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if !digits.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let mut value: i64 = 0;
    let mut decimals: Option<u32> = None;
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                match &mut decimals {
                    Some(seen) if *seen >= exponent => continue,
                    Some(seen) => *seen += 1,
                    None => {}
                }
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            _ => return None,
        }
    }
    let value = value.checked_mul(10_i64.checked_pow(exponent - decimals.unwrap_or(0))?)?;
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_every_digit() {
        assert_eq!(parse_decimal_ns("5247302593449.899", 3), Some(5_247_302_593_449_899));
        // An f64 would give …689.0 for this one.
        assert_eq!(parse_decimal_ns("1712195495519689.047", 3), Some(1_712_195_495_519_689_047));
        assert_eq!(parse_decimal_ns("-0.5", 9), Some(-500_000_000));
        assert_eq!(parse_decimal_ns("1.23456", 3), Some(1_234));
        assert_eq!(parse_decimal_ns("7.", 3), Some(7_000));
        for bad in ["", ".", "-", "1e5", "1.2.3", "99999999999999999999"] {
            assert_eq!(parse_decimal_ns(bad, 3), None, "{bad}");
        }
    }

    #[test]
    fn durations_read_and_write() {
        for (ns, text) in [
            (999, "999 ns"),
            (4_200, "4.20 µs"),
            (312_000_000, "312 ms"),
            (1_250_000_000, "1.25 s"),
            (125_000_000_000, "2 min 05 s"),
            (-1_250_000_000, "−1.25 s"),
            (7_500_000_000_000, "2 h 05 min"),
        ] {
            assert_eq!(format_duration(ns), text);
        }
        for (text, ns) in [
            ("1.25s", 1_250_000_000),
            ("300 ms", 300_000_000),
            ("2min", 120_000_000_000),
            ("3", 3_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Some(ns), "{text}");
        }
        assert_eq!(parse_duration("3 fortnights"), None);
    }

    #[test]
    fn time_specs_name_instants_of_a_session() {
        let span = TimeRange::new(1_000, 3_000);
        let at = |spec: TimeSpec| spec.resolve(span, |step| if step == 8 { Ok(1_500) } else { Err(step) });
        assert_eq!(at(TimeSpec::UnixNs(7)), Ok(7));
        assert_eq!(at(TimeSpec::OffsetNs(250)), Ok(1_250));
        assert_eq!(at(TimeSpec::Share(0.5)), Ok(2_000));
        assert_eq!(at(TimeSpec::Step(8)), Ok(1_500));
        assert_eq!(at(TimeSpec::Step(9)), Err(9));
    }

    #[test]
    fn time_specs_of_every_form() {
        for (text, spec) in [
            ("step:8", TimeSpec::Step(8)),
            ("+1.25s", TimeSpec::OffsetNs(1_250_000_000)),
            ("40%", TimeSpec::Share(0.4)),
            ("1796104323.357719911", TimeSpec::UnixNs(1_796_104_323_357_719_911)),
            ("2026-12-01T05:52:03.357719Z", TimeSpec::UnixNs(1_796_104_323_357_719_000)),
            ("2026-12-01T11:22:03+05:30", TimeSpec::UnixNs(1_796_104_323_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(spec), "{text}");
        }
        for bad in ["", "step:", "step:x", "140%", "+", "yesterday"] {
            assert!(bad.parse::<TimeSpec>().is_err(), "{bad}");
        }
        assert_eq!(format_unix(1_796_104_323_357_719_911), "2026-12-01T05:52:03.357719Z");
    }
}
