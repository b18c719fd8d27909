use VisitState::{Failed, Interrupted, Passed, RollbackFailed, RolledBack, Running};
use model::PromotionId;
use model::promotion::Visit;

use super::*;

/// `local`, `staging` with a rollback, `canary` without one, and `production`, for which a person has to agree.
fn walk(visits: &[(&str, VisitState)]) -> Walk {
    let stage = |name: &str, rollback: Option<&str>| Stage {
        name: name.parse().unwrap(),
        run: Some("x".to_owned()),
        rollback: rollback.map(str::to_owned),
        ..Stage::local()
    };
    let production = Stage { approval: Some(Approval::Human), ..stage("production", Some("back")) };
    let stages = vec![Stage::local(), stage("staging", Some("back")), stage("canary", None), production];
    let visit = |(stage, state): &(&str, VisitState)| Visit {
        stage: stage.parse().unwrap(),
        state: *state,
        why: None,
        actor: Actor::Adm,
        began: Default::default(),
        duration_ms: 0,
        errands: Vec::new(),
    };
    Walk {
        promotion: PromotionId::from_bits(1),
        plan: Plan { stages, checks: Vec::new() },
        whole: true,
        visits: visits.iter().map(visit).collect(),
    }
}

fn names<'a>(names: impl IntoIterator<Item = &'a Name>) -> String {
    names.into_iter().map(Name::as_str).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn comes(visits: &[(&str, VisitState)], to: Option<&str>, expected: &str) {
    let to = to.map(|to| to.parse().unwrap());
    let ahead = ahead(&walk(visits), to.as_ref()).unwrap();
    assert_eq!(names(ahead.iter().map(|stage| &stage.name)), expected);
}

#[test]
fn what_has_not_passed_comes_next_and_all_that_lies_before_what_is_asked_for() {
    comes(&[], None, "local");
    comes(&[], Some("staging"), "local staging");
    comes(&[], Some("production"), "local staging canary production");
    comes(&[("local", Passed)], None, "");
    comes(&[("local", Passed)], Some("staging"), "staging");
    comes(&[("local", Passed), ("staging", Passed)], Some("staging"), "");
    comes(&[("local", Passed), ("staging", Passed)], Some("local"), "");
    comes(&[("local", Passed), ("staging", Passed)], Some("canary"), "canary");
    for state in [Failed, RolledBack, RollbackFailed, Interrupted] {
        comes(&[("local", Passed), ("staging", state)], Some("canary"), "staging canary");
    }
    comes(&[("local", Passed), ("staging", RolledBack), ("staging", Passed)], Some("canary"), "canary");
    comes(&[("local", Passed), ("staging", Passed), ("staging", RolledBack)], Some("staging"), "staging");
    comes(&[("local", Interrupted)], None, "local");
    let unknown = ahead(&walk(&[]), Some(&"stagin".parse().unwrap())).unwrap_err();
    assert_eq!((unknown.to_string(), unknown.known.len()), ("there is no stage `stagin`".to_owned(), 4));
}

#[test]
fn only_a_person_who_agreed_enters_what_asks_for_one() {
    let stages = walk(&[]).plan.stages;
    let (staging, production) = (&stages[1], &stages[3]);
    let agreed: BTreeSet<Name> = ["production".parse().unwrap()].into();
    let nobody = BTreeSet::new();
    assert!(may_enter(staging, Actor::Agt, &nobody));
    assert!(may_enter(production, Actor::Adm, &agreed));
    assert!(!may_enter(production, Actor::Adm, &nobody));
    assert!(!may_enter(production, Actor::Agt, &agreed));
    assert!(!may_enter(production, Actor::Atm, &agreed));
}

#[track_caller]
fn goes_back(visits: &[(&str, VisitState)], leave: &[&str], expected: Result<&str, &str>) {
    let leave = leave.iter().map(|name| name.parse().unwrap()).collect();
    match to_take_back(&walk(visits), &leave) {
        Ok(stages) => assert_eq!(Ok(names(stages.iter().map(|stage| &stage.name)).as_str()), expected),
        Err(error) => assert_eq!(Err(names(&error.stages).as_str()), expected),
    }
}

#[test]
fn what_is_out_is_taken_back_the_last_first() {
    let passed = [("local", Passed), ("staging", Passed)];
    goes_back(&passed[..1], &[], Ok(""));
    goes_back(&passed, &[], Ok("staging"));
    goes_back(&passed, &["staging"], Ok(""));
    goes_back(&[&passed[..], &[("production", Passed)]].concat(), &[], Ok("production staging"));
    goes_back(&[&passed[..], &[("canary", Passed)]].concat(), &[], Err("canary"));
    goes_back(&[&passed[..], &[("canary", Passed)]].concat(), &["canary"], Ok("staging"));
    goes_back(&[&passed[..], &[("canary", Failed)]].concat(), &[], Ok("staging"));
    goes_back(&[("staging", Interrupted)], &[], Ok("staging"));
    goes_back(&[("staging", RollbackFailed)], &[], Ok("staging"));
    goes_back(&[("staging", RolledBack)], &[], Ok(""));
}

#[test]
fn what_was_under_way_is_interrupted_and_nothing_else() {
    let mut cut = walk(&[("local", Passed), ("staging", Running)]);
    assert!(interrupt(&mut cut));
    assert_eq!(cut.visits.iter().map(|visit| visit.state).collect::<Vec<_>>(), [Passed, Interrupted]);
    assert!(!interrupt(&mut cut));
}

#[test]
fn what_a_check_needs_comes_before_it() {
    let mut plan = walk(&[]).plan;
    let check = |name: &str, needs: &[&str]| Check {
        needs: needs.iter().map(|need| need.parse().unwrap()).collect(),
        ..Check::new(name.parse().unwrap(), "x")
    };
    plan.checks = vec![check("smoke", &["build"]), check("other", &[]), check("build", &[])];
    let mut stage = plan.stages[1].clone();
    assert_eq!(checks(&plan, &stage), []);
    stage.checks = ["smoke".parse().unwrap()].into();
    assert_eq!(names(checks(&plan, &stage).iter().map(|check| &check.name)), "build smoke");
}
