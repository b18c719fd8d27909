use jiff::ToSpan;
use model::SandboxId;
use model::exec::Text;
use model::limits::Limits;
use model::sandbox::{Actor, Backend};

use super::*;

const STATES_THAT_SHOULD_RUN: [State; 3] = [State::Ready, State::Active, State::Paused];
const STATES_AT_REST: [State; 3] = [State::Stopped, State::Expired, State::Failed];

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// With an hour to live.
fn record(state: State) -> Record {
    let sandbox = Sandbox {
        id: SandboxId::from_bits(1),
        name: None,
        state,
        reason: None,
        backend: Backend::Native,
        created: now() - 1.hour(),
        changed: now() - 1.hour(),
        expires: Some(now() + 1.hour()),
        workspace: None,
        cwd: Text::from("/"),
        net: Default::default(),
        limits: Limits::default(),
        labels: Default::default(),
        actor: Actor::Adm,
        consumer: None,
        caveats: Vec::new(),
        snapshot: None,
    };
    Record { sandbox, used: false, throwaway: false, traceless: false, restarting: false }
}

fn overdue(state: State, on_expire: OnExpire) -> Record {
    let mut record = record(state);
    record.sandbox.expires = Some(now() - 1.second());
    record.sandbox.limits.on_expire = Some(on_expire);
    record
}

#[test]
fn what_answers_is_taken_over_in_its_state() {
    for state in STATES_THAT_SHOULD_RUN {
        assert_eq!(decide(&record(state), Found::Answering, now()), Action::Adopt(None), "{state}");
    }
    let ready = Action::Adopt(Some(Move::to(State::Ready).by_zeno()));
    assert_eq!(decide(&record(State::Provisioning), Found::Answering, now()), ready);
    assert_eq!(decide(&record(State::Unreachable), Found::Answering, now()), ready);
}

#[test]
fn what_is_gone_has_failed_or_expired() {
    for state in STATES_THAT_SHOULD_RUN.into_iter().chain([State::Unreachable]) {
        let failed = Action::Record(Move::to(State::Failed).because(GONE).by_zeno());
        assert_eq!(decide(&record(state), Found::Gone, now()), failed, "{state}");
        let stop = decide(&overdue(state, OnExpire::Stop), Found::Gone, now());
        let reason = "its time was over at 2027-01-15 07:59:59 UTC";
        assert_eq!(stop, Action::Record(Move::to(State::Expired).because(reason).by_zeno()), "{state}");
        let destroy = decide(&overdue(state, OnExpire::Destroy), Found::Gone, now());
        assert_eq!(destroy, Action::Destroy { reason: Some(reason.to_owned()), keep: EXPIRED }, "{state}");
    }
    let half_made = Action::Record(Move::to(State::Failed).because(HALF_MADE).by_zeno());
    for state in [State::Requested, State::Provisioning] {
        assert_eq!(decide(&record(state), Found::Gone, now()), half_made);
    }
}

#[test]
fn what_is_at_rest_stays_until_it_was_to_be_removed() {
    for state in STATES_AT_REST {
        assert_eq!(decide(&record(state), Found::Gone, now()), Action::Keep, "{state}");
        assert_eq!(decide(&overdue(state, OnExpire::Stop), Found::Gone, now()), Action::Keep, "{state}");
        let removed = decide(&overdue(state, OnExpire::Destroy), Found::Gone, now());
        assert!(matches!(removed, Action::Destroy { .. }), "{state}");
        assert_eq!(decide(&record(state), Found::Answering, now()), Action::End, "{state}");
    }
}

#[test]
fn a_throwaway_goes_with_its_daemon_whatever_is_found() {
    for state in State::ALL {
        for found in [Found::Answering, Found::Gone, Found::Silent] {
            let mut throwaway = record(state);
            throwaway.throwaway = true;
            let action = decide(&throwaway, found, now());
            assert_eq!(
                matches!(action, Action::Destroy { keep: None, .. }),
                state != State::Destroyed,
                "{state}"
            );
        }
    }
}

#[test]
fn what_a_throwaway_wrote_is_kept_if_its_time_ran_out_unseen() {
    for on_expire in [OnExpire::Stop, OnExpire::Destroy] {
        for state in STATES_THAT_SHOULD_RUN.into_iter().chain([State::Unreachable, State::Expired]) {
            let throwaway = Record { throwaway: true, ..overdue(state, on_expire) };
            let reason = "its time was over at 2027-01-15 07:59:59 UTC".to_owned();
            let kept = Action::Destroy { reason: Some(reason), keep: EXPIRED };
            assert_eq!(decide(&throwaway, Found::Gone, now()), kept, "{state}");
        }
        // Half-made, or at its end for another reason.
        for state in [State::Requested, State::Provisioning, State::Stopped, State::Failed, State::Destroying]
        {
            let throwaway = Record { throwaway: true, ..overdue(state, on_expire) };
            let removed = Action::Destroy { reason: Some(THROWAWAY.to_owned()), keep: None };
            assert_eq!(decide(&throwaway, Found::Gone, now()), removed, "{state}");
        }
    }
}

#[test]
fn every_decision_is_a_move_the_table_allows() {
    for state in State::ALL {
        for found in [Found::Answering, Found::Gone, Found::Silent] {
            for record in [record(state), overdue(state, OnExpire::Stop), overdue(state, OnExpire::Destroy)] {
                let path = match decide(&record, found, now()) {
                    Action::Adopt(Some(change)) | Action::Record(change) => change.path().to_vec(),
                    Action::Destroy { .. } if state == State::Destroying => vec![State::Destroyed],
                    Action::Destroy { .. } => vec![State::Destroying, State::Destroyed],
                    Action::Keep | Action::End | Action::Adopt(None) | Action::MakeAnew => Vec::new(),
                };
                let mut at = state;
                for next in path {
                    assert!(at.can_become(next), "{state} and {found:?}: {at} to {next}");
                    at = next;
                }
            }
        }
    }
}

#[test]
fn idle_and_ttl_are_told_apart() {
    let mut record = record(State::Active);
    record.sandbox.limits.idle = Some("5m".parse().unwrap());
    let idle = Move::to(State::Expired).because("no command ran in it for 5m (its idle limit)").by_zeno();
    assert_eq!(expired(&record.sandbox, now()), Action::Record(idle));
    record.sandbox.expires = Some(now());
    let ttl = Move::to(State::Expired).because("its time was over at 2027-01-15 08:00:00 UTC").by_zeno();
    assert_eq!(expired(&record.sandbox, now()), Action::Record(ttl));
}
