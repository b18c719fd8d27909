//! What callers are told when a verb cannot do what it was asked, with the command to use next.

use model::exec::Text;
use model::{Code, Name, Problem, PromotionId, Sandbox, SandboxId, Snapshot, State};

use crate::names::Noun;
use crate::store;

/// The sandbox is in a state in which this cannot be done.
pub(crate) fn not_ready(sandbox: &Sandbox, verb: &str) -> Problem {
    let label = label(sandbox);
    let state = sandbox.state;
    let next = match state {
        State::Ready | State::Active => format!("it runs already: `zeno exec {label} -- COMMAND`"),
        State::Paused => format!("wake it up first: `zeno resume {label}`"),
        State::Stopped | State::Expired | State::Failed => format!("start it first: `zeno start {label}`"),
        State::Requested | State::Provisioning => {
            format!("it is being made; see how far it is: `zeno status {label}`")
        }
        State::Unreachable => format!("zeno keeps asking for it; look again: `zeno status {label}`"),
        State::Destroying | State::Destroyed => "make a new one: `zeno create`".to_owned(),
    };
    let problem = Problem::new(Code::NotReady, format!("cannot {verb} sandbox `{label}`: it is {state}"));
    let causes = sandbox.reason.iter().cloned().collect();
    Problem { causes, ..problem }.hint(next)
}

pub(crate) fn not_found(noun: Noun, which: &str, near: &[Name]) -> Problem {
    let (noun, list) = match noun {
        Noun::Sandbox => ("sandbox", "zeno list"),
        Noun::Snapshot => ("snapshot", "zeno snapshots"),
        Noun::Promotion => ("promotion", "zeno promotions"),
    };
    let problem = Problem::new(Code::NotFound, format!("there is no {noun} `{which}`"));
    let problem = near.iter().fold(problem, |problem, name| problem.hint(format!("did you mean `{name}`?")));
    problem.hint(format!("see which there are: `{list}`"))
}

/// The sandbox never stood on it.
pub(crate) fn foreign_snapshot(label: &str, snapshot: &Snapshot) -> Problem {
    let which = snapshot_label(snapshot);
    Problem::new(
        Code::Refused,
        format!("`{which}` is no snapshot of sandbox `{label}` or of what it was made from"),
    )
    .hint(format!("make a new sandbox of it: `zeno restore {which}`"))
    .hint("see which there are: `zeno snapshots --tree`")
}

pub(crate) fn no_snapshot_yet(label: &str) -> Problem {
    Problem::new(Code::NotFound, format!("sandbox `{label}` stands on no snapshot"))
        .hint(format!("make one first: `zeno snapshot {label}`"))
}

/// What it displaced is gone.
pub(crate) fn forgotten(promotion: PromotionId) -> Problem {
    let days = model::promotion::KEPT.as_hours() / 24;
    Problem::new(
        Code::Refused,
        format!(
            "`{promotion}` cannot be taken back any more: what was there before was kept for {days} days"
        ),
    )
    .hint("git may still have it: git log -p, git stash list")
}

/// What passed the checks is not what is there now.
pub(crate) fn judged_before(label: &str) -> Problem {
    Problem::new(Code::Refused, format!("sandbox `{label}` has changed since its checks passed"))
        .hint(format!("judge it again: `zeno verify {label}`"))
}

pub(crate) fn agreed_before(label: &str) -> Problem {
    Problem::new(Code::Refused, format!("sandbox `{label}` has changed since a person agreed to promote it"))
        .hint("promote it again: the person is asked about what it is now")
}

pub(crate) fn agreed_to_another() -> Problem {
    let detail = "the real folder has changed, and something else would become of it than a person agreed to";
    Problem::new(Code::Refused, detail)
        .hint("promote it again: the person is asked about what it would be now")
}

pub(crate) fn relative_path(path: &Text) -> Problem {
    Problem::new(Code::BadRequest, format!("`{}` is not an absolute path", path.display()))
}

pub(crate) fn fork_count(count: u32, most: u32) -> Problem {
    Problem::new(Code::BadRequest, format!("{count} sandboxes cannot be forked at once: 1 to {most}"))
        .hint("ask for fewer, and ask again")
}

/// What a person calls it.
pub(crate) fn snapshot_label(snapshot: &Snapshot) -> String {
    snapshot.name.as_ref().map_or_else(|| snapshot.id.to_string(), ToString::to_string)
}

pub(crate) fn ambiguous(which: &str, matches: &[String]) -> Problem {
    Problem::new(Code::BadRequest, format!("`{which}` may mean {}", matches.join(" or ")))
        .hint("write more of the id, or use the name")
}

pub(crate) fn name_taken(name: &Name, holder: Option<SandboxId>) -> Problem {
    let whose = holder.map(|id| format!(" by {id}")).unwrap_or_default();
    Problem::new(Code::NameTaken, format!("the name `{name}` is taken{whose}"))
        .hint(format!("choose another name, or remove that sandbox: `zeno destroy {name}`"))
}

/// The record says it runs and the processes say otherwise: the end is being recorded just now.
pub(crate) fn just_ended(label: &str) -> Problem {
    Problem::new(Code::NotReady, format!("sandbox `{label}` has just ended"))
        .hint(format!("see why: `zeno status {label}`"))
}

/// Some of its processes could not be frozen, so that none is.
pub(crate) fn restless(problem: Problem, label: &str) -> Problem {
    problem
        .hint(format!("see what it does, and try again when it is done: `zeno exec {label} -- ps ax`"))
        .hint(format!("or end what runs; what it wrote is kept: `zeno stop {label}`"))
}

/// Its frozen copy holds only what changes; the rest is read from the real folder.
pub(crate) fn workspace_gone(workspace: &Text) -> Problem {
    Problem::new(Code::WorkspaceGone, format!("its workspace `{}` is gone", workspace.display()))
        .hint("put the folder back: the sandbox still has all that it wrote")
}

/// What would be needed to start it was never written down.
pub(crate) fn not_kept(label: &str) -> Problem {
    Problem::new(Code::NotReady, format!("sandbox `{label}` was made for one command and goes with it"))
        .hint("keep the next one: `zeno run --keep`")
}

pub(crate) fn closing() -> Problem {
    Problem::new(Code::NotReady, "the daemon is shutting down")
        .hint("try again: the next call starts a new one")
}

pub(crate) fn no_command() -> Problem {
    Problem::new(Code::BadRequest, "no command was given")
        .hint("write it after `--`: `zeno exec NAME -- COMMAND`")
}

pub(crate) fn zero_limit(name: &str) -> Problem {
    Problem::new(Code::BadRequest, format!("the limit `{name}` is zero, and nothing can run under it"))
        .hint(format!("ask for more, or leave `{name}` out for the default"))
}

/// The task that did the work panicked; the log has its message.
pub(crate) fn lost() -> Problem {
    Problem::new(Code::Internal, "zeno lost track of the request")
        .hint("zeno's log says why: `daemon.log` in its home")
}

pub(crate) fn store(error: &store::Error) -> Problem {
    match error {
        store::Error::NameTaken { name } => name_taken(name, None),
        store::Error::SnapshotNameTaken { name } => Problem::from_error(Code::NameTaken, error)
            .hint(format!("choose another name, or remove that snapshot: `zeno snapshots rm {name}`")),
        store::Error::NoSnapshot { .. } => {
            Problem::from_error(Code::NotFound, error).hint("see which there are: `zeno snapshots`")
        }
        store::Error::NoSandbox { .. } => {
            Problem::from_error(Code::NotFound, error).hint("see which there are: `zeno list`")
        }
        store::Error::Refused { id, .. } => {
            Problem::from_error(Code::NotReady, error).hint(format!("look again: `zeno status {id}`"))
        }
        store::Error::Closed => closing(),
        _ if error.is_disk_full() => Problem::from_error(Code::DiskFull, error)
            .hint("make room on the disk that holds zeno's state, for example by `zeno destroy`"),
        _ => Problem::from_error(Code::Internal, error),
    }
}

/// What a person calls it.
pub(crate) fn label(sandbox: &Sandbox) -> String {
    sandbox.name.as_ref().map_or_else(|| sandbox.id.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Move, NewRecord, Store};

    #[tokio::test]
    async fn a_refusal_names_the_state_the_reason_and_the_next_command() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let id = SandboxId::from_bits(1);
        let request =
            model::sandbox::CreateRequest { name: Some("a".parse().unwrap()), ..Default::default() };
        store
            .insert(NewRecord { id, request, expires: None, throwaway: false, snapshot: None })
            .await
            .unwrap();
        let walk = [
            (Move::to(State::Ready), "`zeno exec a -- COMMAND`"),
            (Move::to(State::Paused), "`zeno resume a`"),
            (Move::to(State::Stopped).because("too big"), "`zeno start a`"),
            (Move::to(State::Provisioning), "`zeno status a`"),
            (Move::to(State::Destroying), "`zeno create`"),
        ];
        for (change, command) in walk {
            let sandbox = store.transition(id, change).await.unwrap().sandbox;
            let problem = not_ready(&sandbox, "touch");
            assert_eq!(problem.code, Code::NotReady);
            assert_eq!(problem.detail, format!("cannot touch sandbox `a`: it is {}", sandbox.state));
            assert_eq!(problem.causes, Vec::from_iter(sandbox.reason));
            assert!(problem.hints[0].contains(command), "{problem:?}");
        }
    }
}
