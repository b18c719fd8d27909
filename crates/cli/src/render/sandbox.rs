//! The record of a sandbox: `zeno get`, and the upper part of `zeno status`.

use std::path::Path;

use jiff::Timestamp;
use model::limits::{Limits, OnExpire};
use model::sandbox::Actor;
use model::{Sandbox, State};

use super::paint::Paint;
use super::words::{age, clean, left, name, path};

pub(crate) fn sandbox(sandbox: &Sandbox, home: Option<&Path>, now: Timestamp, paint: Paint) -> String {
    headline(sandbox, paint) + &fields(&record(sandbox, home, now), paint)
}

/// `web  active  sbxxxxxxxxxxxx`, and the reason where there is one.
pub(crate) fn headline(sandbox: &Sandbox, paint: Paint) -> String {
    let state = sandbox.state.as_str();
    let state = match sandbox.state {
        State::Ready | State::Active => paint.green(state),
        State::Failed | State::Unreachable => paint.red(state),
        State::Requested | State::Provisioning | State::Paused | State::Stopped | State::Expired => {
            paint.yellow(state)
        }
        State::Destroying | State::Destroyed => paint.dim(state),
    };
    let mut line = format!("{}  {state}", paint.bold(&name(sandbox)));
    if sandbox.name.is_some() {
        line += &format!("  {}", paint.dim(&sandbox.id.to_string()));
    }
    if let Some(reason) = &sandbox.reason {
        line += &format!("  {}", clean(reason));
    }
    line + "\n"
}

/// The fields that are told, in order; what is absent or default is left out.
pub(crate) fn record(sandbox: &Sandbox, home: Option<&Path>, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut fields = vec![("age", life(sandbox, now))];
    if let Some(workspace) = &sandbox.workspace {
        fields.push(("workspace", path(workspace, home)));
    }
    fields.push(("folder", path(&sandbox.cwd, home)));
    fields.push(("network", sandbox.net.to_string()));
    let limits = limits(&sandbox.limits);
    if !limits.is_empty() {
        fields.push(("limits", limits));
    }
    if !sandbox.labels.is_empty() {
        let labels: Vec<String> =
            sandbox.labels.iter().map(|(key, value)| clean(&format!("{key}={value}")).into_owned()).collect();
        fields.push(("labels", labels.join(", ")));
    }
    let consumer =
        sandbox.consumer.as_ref().map(|consumer| format!(" for {}", clean(consumer))).unwrap_or_default();
    fields.push(("asked by", format!("{}{consumer}", who(sandbox.actor))));
    fields
}

/// Lines of `name  value`, the names dim and aligned.
pub(crate) fn fields(fields: &[(&str, String)], paint: Paint) -> String {
    fields.iter().map(|(name, value)| format!("  {}  {value}\n", paint.dim(&format!("{name:9}")))).collect()
}

fn life(sandbox: &Sandbox, now: Timestamp) -> String {
    let age = age(sandbox.created, now);
    match sandbox.expires {
        Some(expires) => format!("{age}, expires in {}", left(expires, now)),
        None => age,
    }
}

pub(super) fn who(actor: Actor) -> &'static str {
    match actor {
        Actor::Adm => "a person",
        Actor::Agt => "an agent",
        Actor::Atm => "automation",
    }
}

fn limits(limits: &Limits) -> String {
    let on_expire = limits.on_expire.map(|action| match action {
        OnExpire::Stop => "then stop",
        OnExpire::Destroy => "then destroy",
    });
    let told = [
        limits.cpus.map(|cpus| format!("cpus {cpus}")),
        limits.memory.map(|memory| format!("memory {memory}")),
        limits.pids.map(|pids| format!("pids {pids}")),
        limits.disk.map(|disk| format!("disk {disk}")),
        limits.ttl.map(|ttl| format!("ttl {ttl}")),
        limits.idle.map(|idle| format!("idle {idle}")),
        on_expire.map(ToOwned::to_owned),
        limits.best_effort.then(|| "best effort".to_owned()),
    ];
    told.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn records() {
        let shown = |record: &Sandbox| sandbox(record, None, samples::now(), Paint::Plain);
        insta::assert_snapshot!(shown(&samples::sandbox()), @"
        web  active  sbpptx2e6mf2ic
          age        3m, expires in 1h57m
          workspace  /home/ada/src/app
          folder     /home/ada/src/app/web
          network    none
          limits     cpus 1.5, memory 2GiB
          labels     ticket=1234
          asked by   an agent for review bot
        ");
        insta::assert_snapshot!(shown(&samples::nameless()), @"
        sbhaaaaaaaaaaa  failed  init died
          age        3d
          folder     /home/ada/src/app/web
          network    host
          asked by   a person
        ");
    }
}
