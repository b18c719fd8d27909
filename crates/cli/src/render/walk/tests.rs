use model::exec::Outcome;
use model::promotion::{Assessment, Counts, OnConflict, Promotion, Resolutions, Task};
use model::sandbox::Actor;
use model::{PromotionId, SandboxId};

use super::*;
use crate::render::samples;

fn promotion(state: PromotionState) -> Promotion {
    Promotion {
        id: PromotionId::from_bits(0),
        sandbox: SandboxId::from_bits(0),
        digest: None,
        made_of: None,
        when: "2026-05-01T11:56:30Z".parse().unwrap(),
        actor: Actor::Adm,
        root: Some("/home/ada/src/app".into()),
        counts: Counts { modified: 2, ..Counts::default() },
        state,
        verdict: None,
        forced: false,
        allowed_executes: false,
        resolutions: Default::default(),
        commits: Vec::new(),
        forgotten: false,
    }
}

fn errand(task: Task, outcome: Judgement, tail: &[&str]) -> Errand {
    Errand {
        log: Some(format!("/home/ada/.zeno/stages/x/2-staging.{task}.log").as_str().into()),
        task,
        line: "./deploy".to_owned(),
        outcome,
        why: None,
        exit: Some(Outcome::Exited { code: i32::from(outcome != Judgement::Pass) }),
        duration_ms: 640,
        tail: tail.iter().map(|line| (*line).to_owned()).collect(),
    }
}

fn visit(stage: &str, state: VisitState, why: Option<&str>, errands: Vec<Errand>) -> Visit {
    Visit {
        stage: stage.parse().unwrap(),
        state,
        why: why.map(str::to_owned),
        actor: Actor::Adm,
        began: "2026-05-01T11:57:00Z".parse().unwrap(),
        duration_ms: errands.iter().map(|errand| errand.duration_ms).sum(),
        errands,
    }
}

fn visits() -> Vec<Visit> {
    let smoke = || Task::Check { check: "smoke".parse().unwrap() };
    let staging = vec![
        errand(Task::Run, Judgement::Pass, &[]),
        errand(smoke(), Judgement::Fail, &["GET /health", "503\x1b[2J"]),
        errand(Task::Rollback, Judgement::Pass, &[]),
    ];
    let why = "`smoke` failed: exit code 1, expected exit code 0";
    vec![
        visit("local", VisitState::Passed, None, Vec::new()),
        visit("staging", VisitState::RolledBack, Some(why), staging),
    ]
}

fn done() -> Promoted {
    let promotion = Box::new(promotion(PromotionState::Applied));
    Promoted::Done { promotion, assessment: Assessment::default() }
}

#[track_caller]
fn shown(stages: Vec<Visit>, ahead: Vec<Stage>, stopped: Option<Stopped>) -> String {
    let walked = Walked { promoted: done(), stages, ahead, stopped };
    super::walked(&walked, &"web".parse().unwrap(), Some(&"production".parse().unwrap()), Paint::Plain)
}

#[test]
fn how_far_it_went_and_what_to_do() {
    let stopped = Stopped::Failed { stage: "staging".parse().unwrap() };
    insta::assert_snapshot!(shown(visits(), Vec::new(), Some(stopped)), @r"
    2 paths modified as praaaaaaaaaaaa  (take it back: zeno undo praaaaaaaaaaaa)
    staging  rolled back       1.9s  `smoke` failed: exit code 1, expected exit code 0
    last words of smoke (/home/ada/.zeno/stages/x/2-staging.smoke.log)
      GET /health
      503\u{1b}[2J
    staging did not pass: its rollback has taken it back, nothing after it was touched
      try: mend it, then zeno promote web --to production
    ");
    let production =
        Stage { name: "production".parse().unwrap(), approval: Some(Approval::Human), ..Stage::local() };
    let passed = vec![visit("staging", VisitState::Passed, None, Vec::new())];
    let stopped = Stopped::Approval { stage: "production".parse().unwrap() };
    insta::assert_snapshot!(shown(passed, vec![production.clone()], Some(stopped)), @"
    2 paths modified as praaaaaaaaaaaa  (take it back: zeno undo praaaaaaaaaaaa)
    staging  passed             0ms
    stopped before production: a person has to agree
      try: at a terminal: zeno promote praaaaaaaaaaaa --to production
    ");
    insta::assert_snapshot!(shown(Vec::new(), vec![Stage::local(), production], None), @"
    2 paths modified as praaaaaaaaaaaa  (take it back: zeno undo praaaaaaaaaaaa)
    stages ahead: local, production (a person has to agree)
    ");
}

#[test]
fn a_list() {
    let mut cut = visits();
    cut[1] = visit(
        "staging",
        VisitState::Interrupted,
        Some("zeno's daemon ended in the middle of it"),
        Vec::new(),
    );
    let plain = vec![visit("local", VisitState::Passed, None, Vec::new())];
    let journey = |stages, state| Journey { promotion: promotion(state), stages };
    let paths = [("a".to_owned(), OnConflict::Ours)].into();
    let insisted = Promotion {
        forced: true,
        allowed_executes: true,
        resolutions: Resolutions { otherwise: OnConflict::Theirs, paths },
        ..promotion(PromotionState::Applied)
    };
    let journeys = [
        journey(plain, PromotionState::Undone),
        Journey { promotion: insisted, stages: visits() },
        journey(cut, PromotionState::Applied),
    ];
    insta::assert_snapshot!(list(&journeys, samples::now(), Paint::Plain), @"
    PROMOTION       STATE    AGE  BY        SANDBOX         WHAT
    praaaaaaaaaaaa  undone   3m   a person  sbaaaaaaaaaaaa  2 paths modified
    praaaaaaaaaaaa  applied  3m   a person  sbaaaaaaaaaaaa  2 paths modified, with --force --allow-executes --on-conflict theirs --on-conflict a=ours
      local    passed            3m ago    0ms
      staging  rolled back       3m ago   1.9s  `smoke` failed: exit code 1, expected exit code 0
    praaaaaaaaaaaa  applied  3m   a person  sbaaaaaaaaaaaa  2 paths modified
      local    passed            3m ago    0ms
      staging  interrupted       3m ago    0ms  zeno's daemon ended in the middle of it
      try: take staging back and enter it again: zeno promote praaaaaaaaaaaa --to staging
      try: take all of it back: zeno undo praaaaaaaaaaaa
    ");
}

#[test]
fn taken_back_or_not() {
    let journey = |stages, state| Journey { promotion: promotion(state), stages };
    let mut back = visits();
    back[1].why = None;
    insta::assert_snapshot!(undone(&journey(back, PromotionState::Undone), Paint::Plain), @"undone: praaaaaaaaaaaa (2 paths modified), taken back: staging");
    let mut stuck = visits();
    stuck[1].state = VisitState::RollbackFailed;
    stuck[1].errands[2] = errand(Task::Rollback, Judgement::Fail, &["no route to host"]);
    insta::assert_snapshot!(undone(&journey(stuck, PromotionState::Applied), Paint::Plain), @"
    last words of rollback (/home/ada/.zeno/stages/x/2-staging.rollback.log)
      no route to host
    staging could not be taken back, so nothing was undone here
      try: take it back there yourself, then zeno undo praaaaaaaaaaaa --leave-stage staging
    ");
}
