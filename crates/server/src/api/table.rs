//! Every route there is. The router and the OpenAPI document are both made from this list.

use axum::http::StatusCode;
use model::diff::{Between, Diff};
use model::doctor::Report;
use model::event::Event;
use model::exec::{Exec, ExecRequest, RunRequest, Variable};
use model::files::{FileStat, Listing};
use model::given::Given;
use model::port::{Port, PortRequest};
use model::promotion::{AdvanceRequest, Journey, PromoteRequest, PromoteStep, UndoRequest, Walked};
use model::race::{Race, RaceRequest, RaceStep};
use model::refresh::{RefreshRequest, Refreshed};
use model::request::{NetChange, Request};
use model::sandbox::{CreateRequest, CreateStep, Sandbox, Status};
use model::snapshot::{
    ForkRequest, Forks, Garbage, RestoreRequest, RollbackRequest, Snapshot, SnapshotRequest,
};
use model::verdict::{Verdict, VerifyRequest, VerifyStep};

use super::door::OPEN_PATH;
use super::route::Route;
use super::route::Verb::{Delete, Get, Post, Put};
use super::{
    daemon, diff, events, execs, files, log, net, ports, promotions, races, sandboxes, snapshots, steps,
    verdicts,
};
use crate::line::LogLine;

pub(super) fn routes() -> Vec<Route> {
    [
        of_daemon(),
        of_sandboxes(),
        of_snapshots(),
        of_promotions(),
        of_verdicts(),
        of_execs(),
        of_files(),
        of_net(),
        of_ports(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_daemon() -> Vec<Route> {
    vec![
        Route::new(Get, OPEN_PATH, "Is the daemon there?", daemon::health).answers::<daemon::Health>(OK),
        Route::new(Get, "/v1/openapi.json", "This document", daemon::openapi)
            .answers::<serde_json::Value>(OK),
        Route::new(Get, "/v1/doctor", "What this machine can do for sandboxes", daemon::doctor)
            .answers::<Report>(OK),
        Route::new(Post, "/v1/daemon/listen", "Be reached over TCP, too, on loopback", daemon::listen)
            .takes::<daemon::Listen>()
            .answers::<daemon::Health>(OK),
        Route::new(
            Post,
            "/v1/mcp",
            "Speak MCP on this connection, a message a line; only over the Unix socket",
            crate::mcp::speak,
        )
        .takes::<crate::mcp::Opening>()
        .answers_nothing(StatusCode::SWITCHING_PROTOCOLS),
        Route::new(Get, "/v1/daemon/e2b", "The variables that lead E2B's SDKs here", daemon::e2b)
            .answers::<Vec<Variable>>(OK),
        Route::new(Post, "/v1/daemon/stop", "End the daemon; sandboxes go on", daemon::stop)
            .answers_nothing(StatusCode::ACCEPTED),
        Route::new(
            Get,
            "/v1/events",
            "What happened: an array, lines with `follow`, or server-sent events where accepted",
            events::events,
        )
        .query(events::QUERY)
        .answers::<Vec<Event>>(OK),
    ]
}

fn of_sandboxes() -> Vec<Route> {
    vec![
        Route::new(Post, "/v1/sandboxes", "Make a sandbox", sandboxes::create)
            .query(steps::STEPS)
            .takes::<CreateRequest>()
            .answers::<Sandbox>(StatusCode::CREATED)
            .answers_lines::<CreateStep>(),
        Route::new(Get, "/v1/sandboxes", "List sandboxes", sandboxes::list)
            .query(sandboxes::LIST)
            .answers::<Vec<Sandbox>>(OK),
        Route::new(Get, "/v1/sandboxes/{which}", "Show a sandbox's record", sandboxes::show)
            .answers::<Sandbox>(OK),
        Route::new(Delete, "/v1/sandboxes/{which}", "Remove a sandbox and all it wrote", sandboxes::destroy)
            .answers::<Sandbox>(OK),
        Route::new(
            Get,
            "/v1/sandboxes/{which}/status",
            "Show how a sandbox stands to reality",
            sandboxes::status,
        )
        .answers::<Status>(OK),
        Route::new(Get, "/v1/sandboxes/{which}/diff", "Show what a sandbox changed", diff::diff)
            .query(diff::QUERY)
            .answers::<Diff>(OK)
            .answers_as(diff::PATCH_MEDIA),
        Route::new(
            Get,
            "/v1/sandboxes/{which}/between",
            "Show what differs between a sandbox and another, or a snapshot",
            diff::between,
        )
        .query(diff::BETWEEN_QUERY)
        .answers::<Between>(OK)
        .answers_as(diff::PATCH_MEDIA),
        Route::new(Post, "/v1/sandboxes/{which}/pause", "Freeze every process", sandboxes::pause)
            .answers::<Sandbox>(OK),
        Route::new(Post, "/v1/sandboxes/{which}/resume", "Let frozen processes go on", sandboxes::resume)
            .answers::<Sandbox>(OK),
        Route::new(Post, "/v1/sandboxes/{which}/stop", "End every process, keep the files", sandboxes::stop)
            .answers::<Sandbox>(OK),
        Route::new(Post, "/v1/sandboxes/{which}/start", "Start a stopped sandbox again", sandboxes::start)
            .answers::<Sandbox>(OK),
        Route::new(Post, "/v1/sandboxes/{which}/extend", "Let it live this long from now", sandboxes::extend)
            .takes::<sandboxes::Extend>()
            .answers::<Sandbox>(OK),
        Route::new(Get, "/v1/sandboxes/{which}/logs", "Read what its commands wrote", log::logs)
            .query(log::QUERY)
            .answers_lines::<LogLine>(),
    ]
}

fn of_snapshots() -> Vec<Route> {
    vec![
        Route::new(
            Post,
            "/v1/sandboxes/{which}/snapshots",
            "Seal all that a sandbox has written; one that runs goes on",
            snapshots::make,
        )
        .takes::<SnapshotRequest>()
        .answers::<Snapshot>(StatusCode::CREATED),
        Route::new(
            Post,
            "/v1/sandboxes/{which}/rollback",
            "Take a sandbox back to a snapshot",
            snapshots::rollback,
        )
        .takes::<RollbackRequest>()
        .answers::<Sandbox>(OK),
        Route::new(
            Post,
            "/v1/sandboxes/{which}/refresh",
            "Lay what a sandbox changed over its workspace as it is now",
            snapshots::refresh,
        )
        .takes::<RefreshRequest>()
        .answers::<Refreshed>(OK),
        Route::new(
            Post,
            "/v1/sandboxes/{which}/fork",
            "Make sandboxes on what another has written; each is told apart",
            snapshots::fork,
        )
        .takes::<ForkRequest>()
        .answers::<Forks>(OK),
        Route::new(Get, "/v1/snapshots", "List snapshots", snapshots::list)
            .query(snapshots::LIST)
            .answers::<Vec<Snapshot>>(OK),
        Route::new(Get, "/v1/snapshots/{which}", "Show a snapshot's record", snapshots::show)
            .answers::<Snapshot>(OK),
        Route::new(
            Delete,
            "/v1/snapshots/{which}",
            "Remove a snapshot; what was made from it stays whole",
            snapshots::remove,
        )
        .answers::<Snapshot>(OK),
        Route::new(Post, "/v1/snapshots/{which}/restore", "Make a sandbox of a snapshot", snapshots::restore)
            .takes::<RestoreRequest>()
            .answers::<Sandbox>(StatusCode::CREATED),
        Route::new(Post, "/v1/gc", "Remove what nobody refers to any more", snapshots::collect)
            .takes::<snapshots::Collect>()
            .answers::<Garbage>(OK),
    ]
}

fn of_promotions() -> Vec<Route> {
    vec![
        Route::new(
            Post,
            "/v1/sandboxes/{which}/promote",
            "Bring what a sandbox changed into reality, all or nothing, and on to a stage",
            promotions::promote,
        )
        .query(steps::STEPS)
        .takes::<PromoteRequest>()
        .answers::<Walked>(OK)
        .answers_lines::<PromoteStep>(),
        Route::new(Get, "/v1/promotions", "List what was brought into reality", promotions::list)
            .answers::<Vec<Journey>>(OK),
        Route::new(
            Post,
            "/v1/promotions/{which}/advance",
            "Go on with a promotion, to a further stage",
            promotions::advance,
        )
        .query(steps::STEPS)
        .takes::<AdvanceRequest>()
        .answers::<Walked>(OK)
        .answers_lines::<PromoteStep>(),
        Route::new(
            Post,
            "/v1/promotions/{which}/undo",
            "Take a promotion back, from its stages first; applied as before where one of them cannot be",
            promotions::undo,
        )
        .takes::<UndoRequest>()
        .answers::<Journey>(OK),
        Route::new(Post, "/v1/undo", "Take the last promotion back", promotions::undo_last)
            .takes::<UndoRequest>()
            .answers::<Journey>(OK),
    ]
}

fn of_verdicts() -> Vec<Route> {
    vec![
        Route::new(
            Post,
            "/v1/sandboxes/{which}/verify",
            "Seal the state of a sandbox and run checks on copies of it; the verdict is the last line",
            verdicts::verify,
        )
        .takes::<VerifyRequest>()
        .answers_lines::<VerifyStep>(),
        Route::new(Get, "/v1/verdicts", "List what checks said", verdicts::list)
            .query(verdicts::LIST)
            .answers::<Vec<Verdict>>(OK),
        Route::new(
            Post,
            "/v1/races",
            "Run candidates from one state, check and compare them; what came of it is the last line",
            races::run,
        )
        .takes::<RaceRequest>()
        .answers_lines::<RaceStep>(),
        Route::new(Get, "/v1/races", "List what came of races", races::list).answers::<Vec<Race>>(OK),
    ]
}

fn of_execs() -> Vec<Route> {
    vec![
        Route::new(
            Post,
            "/v1/run",
            "Make a sandbox, run a command in it and, unless told to keep it, remove it",
            execs::run,
        )
        .takes::<RunRequest>()
        .converses(),
        Route::new(Post, "/v1/sandboxes/{which}/exec", "Run a command", execs::exec)
            .query(execs::EXEC)
            .takes::<ExecRequest>()
            .converses()
            .answers::<Exec>(StatusCode::ACCEPTED),
        Route::new(Get, "/v1/sandboxes/{which}/execs", "List its commands", execs::list)
            .answers::<Vec<Exec>>(OK),
        Route::new(
            Get,
            "/v1/sandboxes/{which}/execs/{exec}/attach",
            "Join a running command's conversation",
            execs::attach,
        )
        .converses(),
        Route::new(
            Post,
            "/v1/sandboxes/{which}/execs/{exec}/signal",
            "Send a signal to a command's process group",
            execs::signal,
        )
        .takes::<execs::SignalRequest>()
        .answers_nothing(NO_CONTENT),
    ]
}

fn of_files() -> Vec<Route> {
    vec![
        Route::new(Get, "/v1/sandboxes/{which}/files", "Read a file", files::read)
            .query(files::PLAIN)
            .answers_bytes(),
        Route::new(Put, "/v1/sandboxes/{which}/files", "Write a file", files::write)
            .query(files::MODE)
            .takes_bytes()
            .answers_nothing(NO_CONTENT),
        Route::new(Delete, "/v1/sandboxes/{which}/files", "Remove a file or folder", files::remove)
            .query(files::REMOVE)
            .answers_nothing(NO_CONTENT),
        Route::new(Get, "/v1/sandboxes/{which}/files/stat", "Describe a file", files::stat)
            .query(files::PLAIN)
            .answers::<FileStat>(OK),
        Route::new(Get, "/v1/sandboxes/{which}/files/list", "List a folder", files::list)
            .query(files::PLAIN)
            .answers::<Listing>(OK),
        Route::new(
            Post,
            "/v1/sandboxes/{which}/files/mkdir",
            "Make a folder and those above it",
            files::make_dir,
        )
        .query(files::MODE)
        .answers_nothing(NO_CONTENT),
    ]
}

fn of_net() -> Vec<Route> {
    vec![
        Route::new(
            Post,
            "/v1/sandboxes/{which}/net",
            "Allow or deny names while a sandbox runs; connections that are denied now are cut",
            net::change,
        )
        .takes::<NetChange>()
        .answers::<Sandbox>(OK),
        Route::new(
            Get,
            "/v1/requests",
            "What sandboxes tried to reach, and what became of it: an array, lines with `follow`, or server-sent events where accepted",
            net::list,
        )
        .query(net::QUERY)
        .answers::<Vec<Request>>(OK)
        .answers_lines::<Request>(),
        Route::new(Get, "/v1/requests/{id}", "Show one thing a sandbox tried to reach", net::show)
            .answers::<Request>(OK),
    ]
}

fn of_ports() -> Vec<Route> {
    vec![
        Route::new(Get, "/v1/sandboxes/{which}/env", "Show what a sandbox was given", net::given)
            .answers::<Given>(OK),
        Route::new(
            Post,
            "/v1/sandboxes/{which}/ports",
            "Reach a port of a sandbox from this machine, until its processes end",
            ports::open,
        )
        .takes::<PortRequest>()
        .answers::<Port>(StatusCode::CREATED),
        Route::new(
            Delete,
            "/v1/sandboxes/{which}/ports/{port}",
            "End the ways to a port of a sandbox",
            ports::close,
        )
        .answers::<Vec<Port>>(OK),
        Route::new(Get, "/v1/ports", "List the ports of sandboxes that are reached from here", ports::list)
            .query(ports::LIST)
            .answers::<Vec<Port>>(OK),
    ]
}

const OK: StatusCode = StatusCode::OK;
const NO_CONTENT: StatusCode = StatusCode::NO_CONTENT;
