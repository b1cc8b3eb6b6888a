//! Training steps, from annotations that count: `ProfilerStep#8`, `train_step#8`.

use rustc_hash::FxHashMap;

use crate::model::{Annotation, Step, StrId, Strings};

/// What torch.profiler calls its steps.
const PROFILER_STEP: &str = "ProfilerStep";

/// A counted name, `train_step#8` → (`train_step`, 8).
fn counted(name: &str) -> Option<(&str, i64)> {
    let (prefix, number) = name.rsplit_once('#')?;
    (!prefix.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
    Some((prefix, number.parse().ok()?))
}

/// The steps and what they are called.
///
/// The profiler's own steps come first. A counted annotation of the user fills in steps that the profiler doesn't
/// cover, when both number the same moments alike; without profiler steps, the annotation with the most steps serves,
/// if its numbers don't repeat (those of micro-batches do).
pub(super) fn find_steps(annotations: &[Annotation], strings: &Strings) -> (Vec<Step>, String) {
    let mut by_prefix: FxHashMap<&str, Vec<Step>> = FxHashMap::default();
    let mut parsed: FxHashMap<StrId, Option<(&str, i64)>> = FxHashMap::default();
    for annotation in annotations {
        let name = *parsed.entry(annotation.name).or_insert_with(|| counted(strings.get(annotation.name)));
        if let Some((prefix, number)) = name {
            by_prefix.entry(prefix).or_default().push(Step { number, range: annotation.range });
        }
    }
    let mut of_profiler = by_prefix.remove(PROFILER_STEP).unwrap_or_default();
    of_profiler.sort_by_key(|step| (step.number, step.range.start_ns));
    of_profiler.dedup_by_key(|step| step.number);
    let of_user = by_prefix
        .into_iter()
        .filter_map(|(prefix, mut steps)| {
            let count = steps.len();
            steps.sort_by_key(|step| (step.number, step.range.start_ns));
            steps.dedup_by_key(|step| step.number);
            (steps.len() == count).then_some((prefix, steps))
        })
        .max_by_key(|(prefix, steps)| (steps.len(), std::cmp::Reverse(*prefix)));
    let (mut steps, name) = match of_user {
        Some((prefix, steps)) if of_profiler.is_empty() => (steps, prefix),
        Some((_, steps)) => (fill(of_profiler, &steps), PROFILER_STEP),
        None => (of_profiler, PROFILER_STEP),
    };
    steps.sort_by_key(|step| step.range.start_ns);
    // An end that was never recorded is the recording's end: the next step's start is nearer the truth.
    for index in 1..steps.len() {
        let next_ns = steps[index].range.start_ns;
        let range = &mut steps[index - 1].range;
        range.end_ns = range.end_ns.min(next_ns).max(range.start_ns);
    }
    let name = if steps.is_empty() { String::new() } else { name.to_owned() };
    (steps, name)
}

/// The profiler's steps with those of the user's that it lacks, when common numbers mean the same moments.
fn fill(of_profiler: Vec<Step>, of_user: &[Step]) -> Vec<Step> {
    let numbers: FxHashMap<i64, Step> = of_profiler.iter().map(|step| (step.number, *step)).collect();
    let mut common = of_user.iter().filter_map(|step| Some((step, numbers.get(&step.number)?))).peekable();
    let agree = common.peek().is_some() && common.all(|(user, profiler)| user.range.overlaps(profiler.range));
    let mut steps = of_profiler;
    if agree {
        steps.extend(of_user.iter().filter(|step| !numbers.contains_key(&step.number)));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TimeRange;

    fn steps_of(names: &[(&str, i64, i64)]) -> (Vec<i64>, String) {
        let mut strings = Strings::default();
        let annotations: Vec<Annotation> = names
            .iter()
            .map(|&(name, start, end)| Annotation {
                name: strings.intern(name),
                range: TimeRange::new(start, end),
            })
            .collect();
        let (steps, name) = find_steps(&annotations, &strings);
        (steps.iter().map(|step| step.number).collect(), name)
    }

    #[test]
    fn profiler_steps_are_filled_from_the_users_when_they_agree() {
        let agree = [("ProfilerStep#1", 100, 200), ("go#0", 10, 90), ("go#1", 110, 190), ("go#2", 210, 290)];
        assert_eq!(steps_of(&agree), (vec![0, 1, 2], "ProfilerStep".to_owned()));
        let differ = [("ProfilerStep#0", 100, 200), ("go#0", 10, 90), ("go#1", 110, 190)];
        assert_eq!(steps_of(&differ), (vec![0], "ProfilerStep".to_owned()));
    }

    #[test]
    fn numbers_that_repeat_are_not_steps() {
        let names = [
            ("micro#0", 0, 5),
            ("micro#1", 5, 10),
            ("it#7", 0, 10),
            ("micro#0", 10, 15),
            ("micro#1", 15, 20),
            ("it#8", 10, 20),
        ];
        assert_eq!(steps_of(&names), (vec![7, 8], "it".to_owned()));
        assert_eq!(steps_of(&[("Optimizer.step#SGD.step", 0, 1)]), (vec![], String::new()));
    }

    #[test]
    fn an_open_step_ends_where_the_next_begins() {
        let mut strings = Strings::default();
        let mut at = |name: &str, start, end| Annotation {
            name: strings.intern(name),
            range: TimeRange::new(start, end),
        };
        let annotations = [at("s#1", 0, 1000), at("s#2", 10, 20)];
        let (steps, _) = find_steps(&annotations, &strings);
        assert_eq!(steps[0].range, TimeRange::new(0, 10));
    }
}
