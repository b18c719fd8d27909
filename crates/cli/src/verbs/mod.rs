//! One verb, one file: take what was typed, call the API, render the answer, give the exit code.

mod attach;
mod completions;
mod cp;
mod create;
pub(crate) mod daemon;
mod demo;
mod destroy;
mod diff;
mod doctor;
mod events;
mod exec;
mod execs;
mod extend;
mod fork;
mod gc;
mod get;
mod given;
mod kill;
mod lifecycle;
mod list;
mod logs;
pub(crate) mod mcp;
mod net;
mod openapi;
mod port;
mod promote;
mod race;
mod reference;
mod refresh;
mod requests;
mod restore;
mod rollback;
mod run;
mod shell;
mod snapshot;
mod snapshots;
mod status;
mod trial;
mod undo;
mod verdicts;
mod verify;
mod version;
mod walk;

use crate::api::Change;
use crate::args::Verb;
use crate::failure::Failure;
use crate::invocation::Invocation;

pub(crate) async fn call(verb: Verb, invocation: &Invocation) -> Result<u8, Failure> {
    match verb {
        Verb::Run(typed) => run::run(&typed, invocation).await,
        Verb::Try(typed) => trial::trial(&typed, invocation).await,
        Verb::Create(typed) => create::create(&typed, invocation).await,
        Verb::Exec(typed) => exec::exec(&typed, invocation).await,
        Verb::Shell(typed) => shell::shell(&typed, invocation).await,
        Verb::Attach(typed) => attach::attach(&typed, invocation).await,
        Verb::Execs(typed) => execs::execs(&typed, invocation).await,
        Verb::Kill(typed) => kill::kill(&typed, invocation).await,
        Verb::List(typed) => list::list(&typed, invocation).await,
        Verb::Get(typed) => get::get(&typed, invocation).await,
        Verb::Status(typed) => status::status(&typed, invocation).await,
        Verb::Diff(typed) => diff::diff(&typed, invocation).await,
        Verb::Snapshot(typed) => snapshot::snapshot(&typed, invocation).await,
        Verb::Snapshots(typed) => snapshots::snapshots(&typed, invocation).await,
        Verb::Rollback(typed) => rollback::rollback(&typed, invocation).await,
        Verb::Refresh(typed) => refresh::refresh(&typed, invocation).await,
        Verb::Restore(typed) => restore::restore(&typed, invocation).await,
        Verb::Promote(typed) => promote::promote(&typed, invocation).await,
        Verb::Promotions(_) => undo::promotions(invocation).await,
        Verb::Undo(typed) => undo::undo(&typed, invocation).await,
        Verb::Fork(typed) => fork::fork(&typed, invocation).await,
        Verb::Verify(typed) => verify::verify(&typed, invocation).await,
        Verb::Verdicts(typed) => verdicts::verdicts(&typed, invocation).await,
        Verb::Race(typed) => race::race(&typed, invocation).await,
        Verb::Races(_) => race::races(invocation).await,
        Verb::Gc(typed) => gc::gc(&typed, invocation).await,
        Verb::Logs(typed) => logs::logs(&typed, invocation).await,
        Verb::Cp(typed) => cp::cp(&typed, invocation).await,
        Verb::Pause(typed) => lifecycle::change(&typed.sandboxes, Change::Pause, invocation).await,
        Verb::Resume(typed) => lifecycle::change(&typed.sandboxes, Change::Resume, invocation).await,
        Verb::Stop(typed) => lifecycle::change(&typed.sandboxes, Change::Stop, invocation).await,
        Verb::Start(typed) => lifecycle::change(&typed.sandboxes, Change::Start, invocation).await,
        Verb::Extend(typed) => extend::extend(&typed, invocation).await,
        Verb::Destroy(typed) => destroy::destroy(&typed, invocation).await,
        Verb::Net(typed) => net::net(&typed, invocation).await,
        Verb::Requests(typed) => requests::requests(&typed, invocation).await,
        Verb::Env(typed) => given::env(&typed, invocation).await,
        Verb::Port(typed) => port::port(&typed, invocation).await,
        Verb::Ports(typed) => port::ports(&typed, invocation).await,
        Verb::Events(typed) => events::events(&typed, invocation).await,
        Verb::Doctor(_) => doctor::doctor(invocation).await,
        Verb::Demo(_) => demo::demo(invocation),
        Verb::Daemon(typed) => daemon::daemon(&typed, invocation).await,
        Verb::Mcp(typed) => mcp::mcp(&typed, invocation).await,
        Verb::Completions(typed) => completions::completions(&typed),
        Verb::Openapi(_) => openapi::openapi(),
        Verb::Version(_) => version::version(invocation),
        Verb::Reference(_) => reference::reference(),
    }
}
