//! Many sandboxes of one client at once, and nothing left of them.

use super::{Client, Door};
use crate::wait::until;

#[test]
fn a_hundred_at_once_leave_nothing() {
    let door = Door::open();
    // Some that came and went: what the daemon makes once and keeps is there.
    door.run(Client::Async, "crowd.py", &["2"], &[]);
    let before = door.home.all_traces();
    door.run(Client::Async, "crowd.py", &["100"], &[]);
    until("the machine to be as before", || (door.home.all_traces() == before).then_some(()));
}
