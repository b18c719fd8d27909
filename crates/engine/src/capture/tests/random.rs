//! Any edits in any order: each freeze equals reality, and no pinned state ever changes.

use proptest::prelude::*;

use super::Lab;
use super::edits::Edit;
use super::tree::{Tree, assert_current, assert_same, merged};
use super::{Frozen, Holder};

#[derive(Clone, Debug)]
enum Step {
    Edit(Edit),
    Freeze,
    Release(usize),
    Sweep,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => Edit::any().prop_map(Step::Edit),
        6 => Just(Step::Freeze),
        3 => any::<usize>().prop_map(Step::Release),
        1 => Just(Step::Sweep),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_state_is_right_and_stays_right(steps in steps()) {
        let mut lab = Lab::new();
        let mut kept: Vec<(Holder, Frozen, Tree)> = Vec::new();
        for step in steps.into_iter().chain([Step::Freeze]) {
            match step {
                // An edit that the tree does not allow is no edit.
                Step::Edit(edit) => drop(edit.try_in(&lab.work())),
                Step::Freeze => {
                    let (holder, frozen) = lab.freeze();
                    assert_current(&frozen, &lab.work());
                    let tree = merged(&frozen);
                    kept.push((holder, frozen, tree));
                }
                Step::Release(which) if !kept.is_empty() => {
                    let (holder, ..) = kept.swap_remove(which % kept.len());
                    lab.captures.release(holder);
                }
                Step::Release(_) => {}
                Step::Sweep => {
                    let alive: Vec<_> = kept.iter().map(|(holder, ..)| *holder).collect();
                    lab.captures.sweep(&alive).unwrap();
                }
                Step::Restart => {
                    lab.restart();
                    kept.iter().for_each(|(holder, frozen, _)| lab.captures.adopt(*holder, frozen).unwrap());
                }
            }
            for (_, frozen, tree) in &kept {
                assert_same(tree, &merged(frozen));
            }
        }
    }
}
