//! The beat of a run: its training steps, or where none were annotated, the pulse of its loop.

use super::pulse::loop_starts;
use super::traits::StackTraits;
use crate::model::{BEFORE_NS, Process, TimeRange};
use crate::text::t;

/// How few beats still make a rhythm.
const MIN_BEATS: usize = 3;
/// Steps must cover this share of the allocations, else the run's own pulse tells more.
const MIN_COVERED_SHARE: f64 = 0.4;

/// What a beat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BeatUnit {
    /// An annotated training step.
    Step,
    /// An iteration found from what the run allocates again and again.
    Iteration,
    /// A stretch of time.
    Window,
}

impl BeatUnit {
    /// The word for people, one of them.
    pub fn label(self) -> &'static str {
        match self {
            Self::Step => t!("step"),
            Self::Iteration => t!("iteration"),
            Self::Window => t!("window"),
        }
    }

    /// So many of them: `8 steps`.
    pub fn counted(self, count: usize) -> String {
        t!("{count} {unit}s", count, unit = self.label())
    }

    /// One of them: `step 8`.
    pub fn numbered(self, number: i64) -> String {
        t!("{unit} {number}", unit = self.label(), number)
    }

    /// One of them or several in a row: `steps 8 to 15`.
    pub fn from_to(self, first: i64, last: i64) -> String {
        if first == last {
            return self.numbered(first);
        }
        t!("{unit}s {first} to {last}", unit = self.label(), first, last)
    }
}

/// The beats of a run. A beat lasts until the next one begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Rhythm {
    /// What a beat is.
    pub unit: BeatUnit,
    /// When each begins, ascending.
    pub starts_ns: Vec<i64>,
    /// The number that people know each by.
    pub numbers: Vec<i64>,
    /// When the last one ends.
    pub end_ns: i64,
}

impl Rhythm {
    /// The rhythm of a process: its steps where they cover its memory history, else the pulse of its allocations.
    pub fn of_process(process: &Process, traits: &[StackTraits]) -> Option<Self> {
        let steps = Self::of_steps(process).map(|rhythm| rhythm.without_idle_end(process));
        if let Some(rhythm) = &steps {
            let times = &process.allocations.alloc_ns;
            let from = times.partition_point(|&time| time == BEFORE_NS);
            let inside = times.partition_point(|&time| time < rhythm.end_ns)
                - times.partition_point(|&time| time < rhythm.starts_ns[0]);
            if inside as f64 >= MIN_COVERED_SHARE * (times.len() - from) as f64 {
                return steps;
            }
        }
        Self::of_pulse(process, traits).or(steps)
    }

    /// Without last beats that hardly allocate: the profiler opens a step that never comes.
    fn without_idle_end(mut self, process: &Process) -> Self {
        let rows_of = |rhythm: &Self, beat: usize| process.allocations.rows_in(rhythm.range_of(beat)).len();
        let mut counts: Vec<usize> = (0..self.len()).map(|beat| rows_of(&self, beat)).collect();
        counts.sort_unstable();
        let usual = counts.get(counts.len() / 2).copied().unwrap_or(0);
        while self.len() > MIN_BEATS && rows_of(&self, self.len() - 1) * 10 < usual {
            self.starts_ns.pop();
            self.numbers.pop();
        }
        self
    }

    fn of_steps(process: &Process) -> Option<Self> {
        let steps = &process.steps;
        let last = steps.last()?;
        (steps.len() >= MIN_BEATS.min(2)).then(|| Self {
            unit: BeatUnit::Step,
            starts_ns: steps.iter().map(|step| step.range.start_ns).collect(),
            numbers: steps.iter().map(|step| step.number).collect(),
            end_ns: last.range.end_ns.max(process.recorded.end_ns),
        })
    }

    /// The pulse of the loop: see [`loop_starts`].
    fn of_pulse(process: &Process, traits: &[StackTraits]) -> Option<Self> {
        let starts_ns = loop_starts(process, traits)?;
        let last_ns = process.allocations.alloc_ns.last().copied().unwrap_or(i64::MIN);
        Some(Self {
            unit: BeatUnit::Iteration,
            numbers: (0..starts_ns.len() as i64).collect(),
            starts_ns,
            end_ns: process.recorded.end_ns.max(last_ns.saturating_add(1)),
        })
    }

    /// Stretches of equal length.
    pub fn of_windows(range: TimeRange, count: usize) -> Option<Self> {
        let count = count.max(1) as i64;
        let length_ns = range.duration_ns() / count;
        (length_ns > 0).then(|| Self {
            unit: BeatUnit::Window,
            starts_ns: (0..count).map(|nth| range.start_ns + nth * length_ns).collect(),
            numbers: (0..count).collect(),
            end_ns: range.end_ns,
        })
    }

    /// How many beats there are.
    pub fn len(&self) -> usize {
        self.starts_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts_ns.is_empty()
    }

    /// The beat that holds `time_ns`; −1 before the first, the last one after its end.
    pub fn beat_at(&self, time_ns: i64) -> i32 {
        self.starts_ns.partition_point(|&start| start <= time_ns) as i32 - 1
    }

    /// From a beat's start to the next one's.
    pub fn range_of(&self, beat: usize) -> TimeRange {
        let start = self.starts_ns.get(beat).copied().unwrap_or(self.end_ns);
        TimeRange::new(start, self.starts_ns.get(beat + 1).copied().unwrap_or(self.end_ns))
    }

    /// The number of a beat as people know it.
    pub fn number(&self, beat: usize) -> i64 {
        self.numbers.get(beat).copied().unwrap_or(beat as i64)
    }

    /// `every step`, `every 4th step`.
    pub fn every(&self, period: usize) -> String {
        let unit = self.unit.label();
        match (period, period % 10, period % 100) {
            (0 | 1, ..) => t!("every {unit}", unit),
            (2, ..) => t!("every other {unit}", unit),
            (_, _, 11..=13) => t!("every {period}th {unit}", period, unit),
            (_, 1, _) => t!("every {period}st {unit}", period, unit),
            (_, 2, _) => t!("every {period}nd {unit}", period, unit),
            (_, 3, _) => t!("every {period}rd {unit}", period, unit),
            _ => t!("every {period}th {unit}", period, unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_words() {
        let rhythm = Rhythm::of_windows(TimeRange::new(0, 100), 10).expect("a rhythm");
        assert_eq!(rhythm.every(1), "every window");
        assert_eq!(rhythm.every(4), "every 4th window");
        assert_eq!(rhythm.every(22), "every 22nd window");
        assert_eq!(rhythm.beat_at(-5), -1);
        assert_eq!(rhythm.beat_at(15), 1);
        assert_eq!(rhythm.beat_at(1000), 9);
        assert_eq!(rhythm.range_of(9), TimeRange::new(90, 100));
    }
}
