//! Taking a rule apart as it is typed: `GET|HEAD name:443/v1/*+private`.

use std::net::IpAddr;

use super::http::Inspect;
use super::policy::BadRule;
use super::registries::REGISTRIES;

/// A rule as it is typed, with what is about its requests apart from what is about its connections.
pub(super) struct Typed<'a> {
    /// Destination and ports.
    pub(super) rest: &'a str,
    pub(super) private: bool,
    pub(super) inspect: Option<Inspect>,
}

impl<'a> Typed<'a> {
    pub(super) fn split(text: &'a str) -> Result<Self, BadRule> {
        let (mut rest, mut private, mut is_inspected) = (text, false, false);
        loop {
            if let Some(before) = rest.strip_suffix("+private") {
                (rest, private) = (before, true);
            } else if let Some(before) = rest.strip_suffix("+inspect") {
                (rest, is_inspected) = (before, true);
            } else {
                break;
            }
        }
        let mut inspect = Inspect::default();
        let http = |source| BadRule::Http { source };
        if let Some((methods, after)) = rest.split_once(' ') {
            inspect.methods = methods.split('|').map(str::parse).collect::<Result<_, _>>().map_err(http)?;
            rest = after;
        }
        if let Some(place) = path_place(rest) {
            inspect.path = Some(rest[place..].parse().map_err(http)?);
            rest = &rest[..place];
        }
        is_inspected |= inspect.is_partial();
        Ok(Self { rest, private, inspect: is_inspected.then_some(inspect) })
    }
}

/// Where a path begins: at the first slash that says neither how many bits of an address are meant nor which part of a set.
fn path_place(text: &str) -> Option<usize> {
    if text.starts_with(&format!("{REGISTRIES}/")) {
        return None;
    }
    let from = if text.starts_with('[') { text.find(']')? } else { 0 };
    let place = from + text[from..].find('/')?;
    let bits = text[place + 1..].split(':').next().unwrap_or_default();
    let is_bits = !bits.is_empty() && bits.chars().all(|c| c.is_ascii_digit());
    let is_network = is_bits && text[..place].parse::<IpAddr>().is_ok();
    (!is_network).then_some(place)
}
