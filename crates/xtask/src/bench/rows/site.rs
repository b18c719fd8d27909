//! A sandbox that is sealed, forked or taken back again and again, and is the same before every time.

use std::path::Path;

use model::snapshot::{ForkRequest, RollbackRequest, SnapshotRequest};
use model::{SandboxId, SnapshotId};
use serde::Serialize;

use crate::bench::BenchError;
use crate::bench::sample::{Sample, measured, settle, timed, with_daemon};
use crate::rig::{Connection, RigError, Zeno, saves, zeno};

/// What is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Fork,
    Snapshot,
    Rollback,
}

/// Who does it: a caller of the API on a kept-alive connection, or `zeno VERB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Api,
    Program,
}

#[derive(Debug)]
pub(super) struct Site<'a> {
    zeno: &'a Zeno,
    sandbox: SandboxId,
    /// Where it is before every time.
    base: SnapshotId,
}

impl<'a> Site<'a> {
    /// With the repository around a sandbox that has run this script, and a snapshot of that.
    pub(super) fn new(zeno: &'a Zeno, repository: &Path, script: &str) -> Result<Self, BenchError> {
        let mut connection = zeno.connect()?;
        let sandbox = zeno::create(&mut connection, repository)?;
        zeno::exec(&mut connection, &sandbox, &["sh", "-c", script])?;
        let base = saves::snapshot(&mut connection, sandbox)?;
        Ok(Self { zeno, sandbox, base })
    }

    /// Has the sandbox run a script that changes something, measures what is then done to it, and brings it back.
    pub(super) fn measure(&self, verb: Verb, caller: Caller, script: &str) -> Result<Sample, BenchError> {
        zeno::exec(&mut self.zeno.connect()?, &self.sandbox, &["sh", "-c", script])?;
        settle();
        let mut connection = self.warm_connection()?;
        let (path, body) = (saves::path(self.sandbox, verb.path()), verb.body());
        let sample = with_daemon(self.zeno, || match caller {
            Caller::Api => measured(|| Ok(connection.send("POST", &path, &body).map(drop)?)),
            Caller::Program => timed(self.zeno.command().args(verb.words()).arg(self.sandbox.to_string())),
        })?;
        self.bring_back(&mut connection, verb)?;
        Ok(sample)
    }

    /// One that has been used. It is not kept from one time to the next: what others take meanwhile may be longer than the
    /// daemon waits for a caller.
    fn warm_connection(&self) -> Result<Connection, RigError> {
        let mut connection = self.zeno.connect()?;
        saves::of(&mut connection, self.sandbox)?;
        Ok(connection)
    }

    /// Removes what was made, and makes sure that it was.
    fn bring_back(&self, connection: &mut Connection, verb: Verb) -> Result<(), RigError> {
        let Self { sandbox, base, .. } = *self;
        if verb == Verb::Fork {
            connection.send("DELETE", &format!("/v1/sandboxes/{FORK}"), "")?;
        }
        let mut made = saves::of(connection, sandbox)?;
        made.retain(|snapshot| *snapshot != base);
        if made.len() != usize::from(verb != Verb::Rollback) {
            return Err(RigError::NotSealed { sandbox: sandbox.to_string(), made: made.len() });
        }
        if verb != Verb::Rollback {
            let body = json(&RollbackRequest { snapshot: Some(base.to_string()) });
            connection.send("POST", &saves::path(sandbox, "rollback"), &body)?;
        }
        for snapshot in made {
            saves::remove(connection, snapshot)?;
        }
        let changes = saves::changes(connection, sandbox, Some(base))?;
        if changes > 0 {
            return Err(RigError::NotBack { sandbox: sandbox.to_string(), changes });
        }
        saves::collect_garbage(connection)
    }
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Snapshot => "snapshot",
            Self::Rollback => "rollback",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Snapshot => "snapshots",
            Self::Rollback => "rollback",
        }
    }

    fn body(self) -> String {
        match self {
            Self::Fork => {
                let name = Some(FORK.parse().expect("a plain word is a name"));
                json(&ForkRequest { name, ..ForkRequest::default() })
            }
            Self::Snapshot => json(&SnapshotRequest::default()),
            Self::Rollback => json(&RollbackRequest::default()),
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Fork => &["fork", "--name", FORK],
            Self::Snapshot => &["snapshot"],
            Self::Rollback => &["rollback"],
        }
    }
}

fn json(request: &impl Serialize) -> String {
    serde_json::to_string(request).expect("a request is plain data")
}

/// What a fork is called until it is removed again.
const FORK: &str = "forked";
