//! Bringing records and reality together: when the daemon comes back, and when something did not answer.

use jiff::Timestamp;
use model::limits::OnExpire;
use model::snapshot::SnapshotReason;
use model::{Sandbox, State};

use crate::lifetime;
use crate::store::{Move, Record};

/// What was found of a sandbox's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its init answers.
    Answering,
    /// There is none.
    Gone,
    /// There may be one, but it did not answer in time.
    Silent,
}

/// What is to be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Keep,
    /// It runs: take it over, and record the move if there is one.
    Adopt(Option<Move>),
    /// Nothing to do but to record it.
    Record(Move),
    /// Its processes were ended for a moment, and are to be made anew.
    MakeAnew,
    /// It runs and should not: end its processes.
    End,
    /// Remove it, or finish removing it.
    Destroy {
        reason: Option<String>,
        /// First keep what it wrote, for this reason.
        keep: Option<SnapshotReason>,
    },
}

/// Compares a record with what was found.
#[must_use]
pub fn decide(record: &Record, found: Found, now: Timestamp) -> Action {
    let sandbox = &record.sandbox;
    if record.throwaway {
        return throwaway(sandbox, now);
    }
    match (sandbox.state, found) {
        (State::Destroyed, _) => Action::Keep,
        (State::Destroying, _) => Action::Destroy { reason: sandbox.reason.clone(), keep: None },
        (State::Requested, Found::Answering) => {
            Action::Adopt(Some(Move::to(State::Provisioning).then(State::Ready).by_zeno()))
        }
        (State::Provisioning | State::Unreachable, Found::Answering) => {
            Action::Adopt(Some(Move::to(State::Ready).by_zeno()))
        }
        (State::Ready | State::Active | State::Paused, Found::Answering) => Action::Adopt(None),
        (State::Stopped | State::Expired | State::Failed, Found::Answering) => Action::End,
        (State::Requested | State::Provisioning, Found::Gone | Found::Silent) => {
            Action::Record(Move::to(State::Failed).because(HALF_MADE).by_zeno())
        }
        (State::Ready | State::Active | State::Paused, Found::Gone)
            if record.restarting && !lifetime::is_over(sandbox.expires, now) =>
        {
            Action::MakeAnew
        }
        (State::Ready | State::Active | State::Paused, Found::Silent) => {
            Action::Record(Move::to(State::Unreachable).because(SILENT).by_zeno())
        }
        (State::Unreachable, Found::Silent) => Action::Keep,
        (State::Ready | State::Active | State::Paused | State::Unreachable, Found::Gone) => {
            gone(sandbox, now)
        }
        (State::Stopped | State::Expired | State::Failed, Found::Gone | Found::Silent) => {
            resting(sandbox, now)
        }
    }
}

/// Nobody waits for its command any more. If its time is over, that is what ended it as far as anybody can tell, or would
/// have by now; one that was never used, or ended before, has nothing that a clock took.
fn throwaway(sandbox: &Sandbox, now: Timestamp) -> Action {
    let unfinished = match sandbox.state {
        State::Destroyed => return Action::Keep,
        State::Ready | State::Active | State::Paused | State::Unreachable | State::Expired => true,
        State::Requested | State::Provisioning | State::Stopped | State::Failed | State::Destroying => false,
    };
    if unfinished && lifetime::is_over(sandbox.expires, now) {
        Action::Destroy { reason: Some(lifetime::reason(sandbox, now)), keep: EXPIRED }
    } else {
        Action::Destroy { reason: Some(THROWAWAY.to_owned()), keep: None }
    }
}

/// A sandbox without processes lives on as layers, unless it was to be removed when its time is over.
#[must_use]
pub fn resting(sandbox: &Sandbox, now: Timestamp) -> Action {
    match lifetime::on_expire(&sandbox.limits) {
        OnExpire::Destroy if lifetime::is_over(sandbox.expires, now) => {
            Action::Destroy { reason: Some(lifetime::reason(sandbox, now)), keep: EXPIRED }
        }
        OnExpire::Destroy | OnExpire::Stop => Action::Keep,
    }
}

/// Init ended because its clock ran out.
#[must_use]
pub fn expired(sandbox: &Sandbox, now: Timestamp) -> Action {
    let reason = lifetime::reason(sandbox, now);
    match lifetime::on_expire(&sandbox.limits) {
        OnExpire::Stop => Action::Record(Move::to(State::Expired).because(reason).by_zeno()),
        OnExpire::Destroy => Action::Destroy { reason: Some(reason), keep: EXPIRED },
    }
}

fn gone(sandbox: &Sandbox, now: Timestamp) -> Action {
    if lifetime::is_over(sandbox.expires, now) {
        expired(sandbox, now)
    } else {
        Action::Record(Move::to(State::Failed).because(GONE).by_zeno())
    }
}

/// Nothing is lost because a clock ran out.
const EXPIRED: Option<SnapshotReason> = Some(SnapshotReason::Expired);
const THROWAWAY: &str = "made for one command, and nobody waits for that any more";
const HALF_MADE: &str = "its making or starting was given up half-way";
const SILENT: &str = "its init is there but does not answer";
const GONE: &str = "its processes were gone when the daemon came back (machine restarted, or killed)";

#[cfg(test)]
mod tests;
