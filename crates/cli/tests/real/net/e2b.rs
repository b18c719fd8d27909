//! E2B's own lists of what may be reached, given by E2B's own SDK.

use super::*;
use crate::e2b::{Client, check, led};

#[test]
fn e2bs_lists_are_held_by_the_gateway() {
    let home = Home::new();
    // A namespace of its own, so that any port is free.
    let world = World::with(&home, &["--listen", "127.0.0.1:7070"]);
    for client in [Client::Blocking, Client::Async, Client::Python2_45] {
        let script = led(&home, client, "network.py", &[client.word()]);
        let mut inside = inside_of(world.machine, script.get_program());
        inside.args(script.get_args()).current_dir(script.get_current_dir().unwrap());
        inside.envs(script.get_envs().filter_map(|(name, value)| Some((name, value?))));
        check(&mut inside, &format!("network.py with {client:?}"));
    }
    home.ok(&["daemon", "stop"]);
    world.end();
}
