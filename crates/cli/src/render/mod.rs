//! Answers as text for people. Functions from values to strings: nothing here prints or asks the clock.

mod conflict;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod execs;
pub(crate) mod given;
mod http;
pub(crate) mod list;
pub(crate) mod net;
pub(crate) mod paint;
pub(crate) mod problem;
pub(crate) mod promotion;
pub(crate) mod race;
pub(crate) mod reference;
pub(crate) mod refresh;
pub(crate) mod sandbox;
pub(crate) mod snapshots;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod verdict;
pub(crate) mod walk;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod samples;
