//! The tab that compares.

use super::*;
use vramscope::analysis;

fn side_of(window: &mut Window, side: &str, choice: &str) {
    window.get_by_label(side).click();
    window.run_steps(3);
    window.get_all_by_label_contains(choice).last().expect("the choice").click();
    settle(window);
}

/// The figures are those of `vramscope compare`.
#[test]
fn two_runs_are_compared_at_their_ends() {
    let paths = ["healthy", LEAK].map(|name| sample(name).join("snapshot.pickle.gz"));
    let mut window = window(paths.to_vec(), [1280.0, 860.0], Theme::Dark);
    settle(&mut window);
    click(&mut window, "Tab Compare");
    side_of(&mut window, "What is compared, A", "healthy");
    side_of(&mut window, "What is compared, B", LEAK);
    let found = window.state().state().answers.comparison.clone().expect("a comparison");
    let [healthy, leak] = paths.map(|path| crate::support::open_index(&path));
    let expected = analysis::compare(&healthy, &leak);
    assert_eq!((found.before, found.after), (expected.before, expected.after));
    let changed: Vec<_> = expected.differences.iter().filter(|it| it.before != it.after).collect();
    assert_eq!(found.differences.len(), changed.len());
    assert_eq!(found.differences[0].call_site, changed[0].call_site);

    window.get_all_by_label("record.py:63 validate").last().expect("its row").click();
    settle(&mut window);
    window.get_by_label("The stack that holds most of it");
    click(&mut window, "Swap");
    let swapped = window.state().state().answers.comparison.clone().expect("a comparison");
    assert_eq!((swapped.before, swapped.after), (found.after, found.before));
}

#[test]
fn two_instants_of_one_run_are_compared_by_stack() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    click(&mut window, "Tab Compare");
    window.get_by_label_contains("alive in B");
    let found = window.state().state().answers.comparison.clone().expect("a comparison");
    let rose = found.after.bytes as i64 - found.before.bytes as i64;
    assert_eq!(rose, window.state().state().answers.totals.net_bytes(), "the range's net");
    let kept = found.differences.iter().find(|it| it.call_site == "record.py:63 validate").expect("the leak");
    assert_eq!((kept.delta_bytes(), kept.delta_count()), (599_891_968, 242));
    side_of(&mut window, "Group by", "by stack");
    let by_stack = window.state().state().answers.comparison.clone().expect("a comparison");
    assert_eq!((by_stack.before, by_stack.after), (found.before, found.after));
    assert!(by_stack.differences.len() > found.differences.len());
    click(&mut window, "Sort by in b, sorted from the largest".split(',').next().expect("a name"));
    let sorted = window.state().state().difference_sort;
    assert!(sorted.is_descending);
}
