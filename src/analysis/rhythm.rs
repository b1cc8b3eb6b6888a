//! The beat of a run: its training steps, or where none were annotated, the pulse of its most regular allocation.

use rustc_hash::FxHashMap;

use super::traits::StackTraits;
use crate::model::{BEFORE_NS, Process, TimeRange};

/// How few beats still make a rhythm.
const MIN_BEATS: usize = 3;
/// Steps must cover this share of the allocations, else the run's own pulse tells more.
const MIN_COVERED_SHARE: f64 = 0.4;
/// A pulse is regular when its lower quartile of intervals is at least this share of the upper one.
const MIN_REGULARITY: f64 = 0.45;

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
            Self::Step => "step",
            Self::Iteration => "iteration",
            Self::Window => "window",
        }
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
        let steps = Self::of_steps(process);
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

    /// The times of the stack that allocates most often at regular intervals through most of the recording.
    fn of_pulse(process: &Process, traits: &[StackTraits]) -> Option<Self> {
        let table = &process.allocations;
        let mut counts: FxHashMap<u64, u32> = FxHashMap::default();
        let key_of = |row: usize| {
            let of_stack = traits.get(table.stack[row].0 as usize)?;
            let key = if of_stack.has_python { of_stack.python_key } else { u64::from(table.op[row].0) << 1 };
            let is_known = of_stack.has_python || table.op[row] != crate::model::OpId::NONE;
            is_known.then_some(key)
        };
        let from = table.alloc_ns.partition_point(|&time| time == BEFORE_NS);
        let (first_ns, last_ns) = (*table.alloc_ns.get(from)?, *table.alloc_ns.last()?);
        for row in from..table.len() {
            if let Some(key) = key_of(row) {
                *counts.entry(key).or_default() += 1;
            }
        }
        // Stacks of inner loops allocate most often, those of the loop itself are still many: look at a bounded number.
        counts.retain(|_, count| *count as usize >= MIN_BEATS + 1);
        let mut keys: Vec<(u64, u32)> = counts.into_iter().collect();
        keys.sort_unstable_by_key(|&(key, count)| (count, key));
        let stride = keys.len().div_ceil(400).max(1);
        let mut times: FxHashMap<u64, Vec<i64>> = keys
            .iter()
            .step_by(stride)
            .map(|&(key, count)| (key, Vec::with_capacity(count as usize)))
            .collect();
        for row in from..table.len() {
            if let Some(times) = key_of(row).and_then(|key| times.get_mut(&key)) {
                times.push(table.alloc_ns[row]);
            }
        }
        let half_ns = last_ns.saturating_sub(first_ns) / 2;
        let best = times
            .into_values()
            .filter(|times| {
                let covered_ns = times.last().zip(times.first()).map_or(0, |(last, first)| last - first);
                covered_ns >= half_ns && regularity(times) >= MIN_REGULARITY
            })
            .max_by_key(|times| (times.len(), std::cmp::Reverse(times.first().copied())))?;
        Some(Self {
            unit: BeatUnit::Iteration,
            numbers: (0..best.len() as i64).collect(),
            starts_ns: best,
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
        let suffix = match (period % 10, period % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        match period {
            0 | 1 => format!("every {unit}"),
            2 => format!("every other {unit}"),
            _ => format!("every {period}{suffix} {unit}"),
        }
    }
}

/// The lower quartile of the intervals as a share of the upper one.
fn regularity(times: &[i64]) -> f64 {
    let mut intervals: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if intervals.len() < MIN_BEATS {
        return 0.0;
    }
    intervals.sort_unstable();
    let quartile = |share: usize| intervals[(intervals.len() - 1) * share / 4] as f64;
    if quartile(3) > 0.0 { quartile(1) / quartile(3) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_times_are_told_from_bursts() {
        let steady: Vec<i64> = (0..20).map(|n| n * 100 + n % 3).collect();
        assert!(regularity(&steady) > 0.9);
        let bursts: Vec<i64> = (0..20).map(|n| n / 4 * 100 + n % 4).collect();
        assert!(regularity(&bursts) < 0.1);
    }

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
