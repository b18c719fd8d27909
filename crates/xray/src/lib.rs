//! What leaves a sandbox: the gateway that decides about it, and the record of all it was asked for.
//!
//! Everything that arrives here comes from inside a sandbox and is taken as hostile: parsers take any bytes, every wait has
//! an end, every queue a size.
//!
//! Never decides by anything but the sandbox's own policy ([`model::net::Policy`]); never knows HTTP as a server of ours;
//! never prints.

mod follow;
pub mod gateway;
pub mod hop;
mod journal;
mod ports;
mod recorder;
mod redact;

pub use follow::Follow;
pub use gateway::{Gateway, GatewayError};
pub use ports::Ports;
