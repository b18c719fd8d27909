//! Whatever was done inside: promoted, reality is the same; taken back, it is as before.

use proptest::prelude::*;

use super::families::{expected_families, families, with_times_of_what_stays};
use super::{Lab, Wish, assert_same, expected};

const PLACES: [&str; 16] = [
    "a", "b", "c", "d", "d/a", "d/b", "d/d", "d/d/a", "d/d/b", "e", "e/a b", "e/b", "n", "n/a", "n/d",
    "n/d/x",
];

/// No two are the same: which names are one file is no change by itself.
const FILES: [(&str, &str); 7] = [
    ("a", "one\ntwo\nthree\n"),
    ("b", "no end"),
    ("d/a", "one\ntwo\nthree\nfour\n"),
    ("d/b", "carriage\rreturn\r\n"),
    ("d/d/a", "deep\n"),
    ("d/d/b", "deeper\n"),
    ("e/a b", "blank\n"),
];

/// One file from the start.
const NAMES: [(&str, &str); 1] = [("e/a b", "e/b")];

fn place() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&PLACES[..])
}

/// One thing somebody might do. It may fail: then it did nothing.
fn deed() -> impl Strategy<Value = String> {
    let text = proptest::sample::select(&["x", "x\\n", "one\\ntwo\\n", "\\0bin\\0", ""][..]);
    let mode = proptest::sample::select(&["755", "700", "500", "1777"][..]);
    prop_oneof![
        (place(), text.clone()).prop_map(|(path, text)| format!("printf '{text}' > '{path}'")),
        (place(), text).prop_map(|(path, text)| format!("printf '{text}' >> '{path}'")),
        place().prop_map(|path| format!("rm -rf '{path}'")),
        place().prop_map(|path| format!("mkdir '{path}'")),
        (place(), mode).prop_map(|(path, mode)| format!("chmod {mode} '{path}'")),
        place().prop_map(|path| format!("touch -h -d 2001-02-03T04:05:06.789 '{path}'")),
        (place(), "[xy]").prop_map(|(path, value)| format!("setfattr -h -n user.note -v {value} '{path}'")),
        place().prop_map(|path| format!("setfattr -h -x user.note '{path}'")),
        (place(), place()).prop_map(|(from, to)| format!("mv -T '{from}' '{to}'")),
        (place(), place()).prop_map(|(from, to)| format!("cp -a '{from}' '{to}'")),
        (place(), place()).prop_map(|(from, to)| format!("ln '{from}' '{to}'")),
        (place(), place()).prop_map(|(to, path)| format!("ln -s '{to}' '{path}'")),
        (place(), place()).prop_map(|(one, other)| {
            format!("mv -T '{one}' swap && mv -T '{other}' '{one}' && mv -T swap '{other}'")
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_is_promoted_is_the_same_and_undone_is_as_before(
        deeds in proptest::collection::vec(deed(), 1..14)
    ) {
        let lab = Lab::linked(&FILES, &NAMES);
        let before = lab.tree();
        let families_before = families(&lab.real(), &before);
        let script: String = deeds.iter().map(|deed| format!("{{ {deed}; }} 2>&- || :\n")).collect();
        let seen = lab.inside(&script);
        let families_seen = families(&lab.seen(), &seen);
        let report = lab.assess(&Wish::default());
        prop_assert!(report.is_clear(), "{:?}", report);
        lab.promote(&Wish::default()).unwrap();
        prop_assert_eq!(&report.caveats, &[]);
        let expected = expected(&before, &seen, &report);
        let expected = with_times_of_what_stays(expected, &before, &families_seen, &report);
        assert_same(&lab.tree(), &expected);
        let families_expected = expected_families(&families_before, &families_seen, &report);
        prop_assert_eq!(families(&lab.real(), &lab.tree()), families_expected);
        lab.assert_tidy();
        lab.undo().unwrap();
        assert_same(&lab.tree(), &before);
        prop_assert_eq!(families(&lab.real(), &lab.tree()), families_before);
        lab.assert_tidy();
    }
}
