//! What people read when the file is wrong.

use std::path::Path;

use model::Problem;
use model::units::Span;

use super::*;

fn read(text: &str) -> Config {
    parse(Path::new("zeno.yaml"), text).unwrap()
}

/// All that a refusal says.
#[track_caller]
fn refusal(text: &str) -> String {
    let problem = Problem::from(parse(Path::new("zeno.yaml"), text).unwrap_err());
    let causes = problem.causes.iter().map(|cause| format!("\n  because: {cause}"));
    let hints = problem.hints.iter().map(|hint| format!("\n  try: {hint}"));
    problem.detail.clone() + &causes.chain(hints).collect::<String>()
}

const WHOLE: &str = "
# What a repository says about itself.
checks:
  - name: build
    run: make
    timeout: 5m
  - name: test
    run: |
      make test
      make lint
    needs: [build]
    expects:
      exit: [0, 77]
      stdout: { contains: ok, matches: '^\\d+ tests' }
promotion:
  stages:
    - name: local
    - { name: staging, run: ./deploy staging, checks: [test], rollback: ./deploy --undo, approval: human }
";

#[test]
fn a_whole_file() {
    let config = read(WHOLE);
    let [build, test] = config.checks.0.as_slice() else { panic!("{config:?}") };
    assert_eq!((build.name.as_str(), build.timeout), ("build", Some(Span::from_secs(300))));
    assert_eq!((test.run.as_str(), test.expects.exit.0.as_slice()), ("make test\nmake lint\n", &[0, 77][..]));
    assert_eq!(config.promotion.stages[1].approval, Some(model::config::Approval::Human));
    assert_eq!(read("checks: {build: make, test: {run: make test}}").checks.0.len(), 2);
    assert_eq!((read(""), read("checks:\n")), (Config::default(), Config::default()));
}

#[test]
fn what_is_chosen_brings_along_what_it_needs() {
    let config = read("checks: {a: x, b: {run: x, needs: [a]}, c: {run: x, needs: [b]}, d: x}");
    let names = |wanted: &[&str]| {
        let wanted: Vec<Name> = wanted.iter().map(|name| name.parse().unwrap()).collect();
        choose(&config, &wanted).unwrap().iter().map(|check| check.name.to_string()).collect::<String>()
    };
    assert_eq!((names(&["c"]), names(&[]), names(&["d", "a"])), ("abc".into(), "abcd".into(), "ad".into()));
    assert!(matches!(choose(&config, &["e".parse().unwrap()]), Err(BadGraph::NotDeclared { .. })));
}

#[test]
fn what_is_wrong_is_told_with_the_line_and_what_would_be_right() {
    let wrong = [
        "cheks: {}",
        "checks:\n  - name: a\n    runn: make",
        "checks:\n  - name: a",
        "checks: 5",
        "checks:\n  a: [make]",
        "checks:\n  a: {run: make, timeout: 5}",
        "checks:\n  a:\n    run: make\n    expects: {exit: bad}",
        "checks:\n  A b: make",
        "checks:\n  a: make\n  a: make test",
        "checks: {a: make",
        "promotion:\n  stages:\n    - {name: staging, run: x, approval: robot}",
    ];
    let same = "\n  try: docs/zeno.schema.json says what may stand in it";
    let told: Vec<_> = wrong.iter().map(|text| refusal(text).replace(same, "")).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    `zeno.yaml` is not as it should be in line 1, `cheks: {}`: unknown field `cheks`, expected one of checks, promotion
    `zeno.yaml` is not as it should be in line 3, `runn: make`: unknown field `runn`, expected one of name, run, timeout, needs, expects
    `zeno.yaml` is not as it should be in line 2, `- name: a`: missing field `run`
    `zeno.yaml` is not as it should be in line 1, `checks: 5`: invalid type: integer `5`, expected a list of checks, each with a `name`, or a map from names to checks
    `zeno.yaml` is not as it should be in line 2, `a: [make]`: invalid type: sequence, expected a command, or a map with `run`
    `zeno.yaml` is not as it should be in line 2, `a: {run: make, timeout: 5}`: `5` is not a duration: write for example 90s, 15m, 1h30m or 7d
    `zeno.yaml` is not as it should be in line 4, `expects: {exit: bad}`: invalid type: string "bad", expected an exit code, or a list of them (0 to 255)
    `zeno.yaml` is not as it should be in line 2, `A b: make`: `A b` is not a name: 1 to 63 of a-z 0-9 . _ -, starting with a letter or digit, and not in the form of an id
    `zeno.yaml` is not as it should be in line 3, `a: make test`: duplicate mapping key: a
    `zeno.yaml` is not as it should be in line 1, `checks: {a: make`: unclosed bracket '{'
    `zeno.yaml` is not as it should be in line 3, `- {name: staging, run: x, approval: robot}`: unknown variant `robot`, expected one of human
    "#);
}

#[test]
fn what_makes_no_sense_together() {
    let wrong = [
        "checks:\n  - {name: a, run: x}\n  - {name: a, run: y}",
        "checks:\n  a: {run: x, needs: [b]}",
        "checks:\n  a: {run: x, needs: [c]}\n  b: {run: x, needs: [a]}\n  c: {run: x, needs: [b]}",
        "checks:\n  a: {run: x, needs: [a]}",
        "checks:\n  a: {run: x, expects: {stderr: {matches: '('}}}",
        "checks:\n  a: ''",
        "promotion: {stages: [{name: staging, run: x}, {name: staging, run: y}]}",
        "checks: {unit: x}\npromotion:\n  stages:\n    - {name: staging, run: x, checks: [units]}",
        "promotion: {stages: [{name: staging}]}",
        "promotion: {stages: [{name: local, run: x}]}",
        "promotion: {stages: [{name: local, rollback: x}]}",
        "promotion:\n  stages:\n    - {name: staging, run: x}\n    - {name: local}",
        "promotion: {stages: [{name: staging, run: ' '}]}",
    ];
    let told: Vec<_> = wrong.iter().map(|text| refusal(text)).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    `zeno.yaml` makes no sense in line 2
      because: two checks are called `a`
    `zeno.yaml` makes no sense in line 2
      because: the check `a` needs `b`, which is none of the checks
      try: the checks are `a`
    `zeno.yaml` makes no sense in line 2
      because: checks need each other in a circle: a -> c -> b -> a
      try: leave out one of these `needs`
    `zeno.yaml` makes no sense in line 2
      because: checks need each other in a circle: a -> a
      try: leave out one of these `needs`
    `zeno.yaml` makes no sense in line 2
      because: `matches` of the check `a` is not a regular expression
      because: regex parse error:
        (
        ^
    error: unclosed group
    `zeno.yaml` makes no sense in line 2
      because: the check `a` has nothing to run
    `zeno.yaml` makes no sense in line 1
      because: two stages are called `staging`
    `zeno.yaml` makes no sense in line 4
      because: the stage `staging` asks for the check `units`, which is none of the checks
      try: the checks are `unit`
    `zeno.yaml` makes no sense in line 1
      because: the stage `staging` has no `run`: only `local` goes without
    `zeno.yaml` makes no sense in line 1
      because: the stage `local` has a `run`: it applies the change to the worktree and nothing else
    `zeno.yaml` makes no sense in line 1
      because: the stage `local` has a `rollback`: what it applied is undone by itself
    `zeno.yaml` makes no sense in line 4
      because: the stage `local` comes after another: it is always the first
    `zeno.yaml` makes no sense in line 1
      because: the stage `staging` has no `run`: only `local` goes without
    "#);
}
