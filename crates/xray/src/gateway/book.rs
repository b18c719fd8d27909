//! The addresses that names have inside a sandbox. None of them exists outside.
//!
//! A name has the same number in both families, for as long as the sandbox exists.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Default)]
pub(super) struct Book {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

/// What a name was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Before(u32),
    Now(u32),
}

impl Book {
    pub(super) fn new(names: Vec<String>) -> Self {
        let numbers = names.iter().cloned().zip(0..).collect();
        Self { names, numbers }
    }

    /// The number of a name. `None`: there is no room for another.
    pub(super) fn give(&mut self, name: &str) -> Option<Given> {
        if let Some(number) = self.numbers.get(name) {
            return Some(Given::Before(*number));
        }
        let number = u32::try_from(self.names.len()).ok().filter(|number| *number < MOST)?;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Some(Given::Now(number))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }

    /// Could this name be given a number?
    pub(super) fn has_room_for(&self, name: &str) -> bool {
        self.has(name) || self.names.len() < MOST as usize
    }

    /// What an address stands for.
    pub(super) fn name(&self, address: IpAddr) -> Option<&str> {
        let number = match address.to_canonical() {
            IpAddr::V4(address) => address.to_bits().checked_sub(FIRST4.to_bits())?,
            IpAddr::V6(address) => u32::try_from(address.to_bits().checked_sub(FIRST6.to_bits())?).ok()?,
        };
        self.names.get(number as usize).map(String::as_str)
    }
}

pub(super) fn ipv4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST4.to_bits() + number)
}

pub(super) fn ipv6(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(FIRST6.to_bits() + u128::from(number))
}

/// Of the range for measurements between networks (RFC 2544), which nobody may use otherwise.
const FIRST4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Of the unique local range, made of the letters of our name.
const FIRST6: Ipv6Addr = Ipv6Addr::new(0xfd7a, 0x656e, 0x6f00, 0, 0, 0, 0, 1);
/// Far more than any work asks for; each is a row in the store.
const MOST: u32 = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_addresses() {
        let mut book = Book::new(vec!["a.example".to_owned()]);
        assert_eq!(book.give("a.example"), Some(Given::Before(0)));
        assert_eq!(book.give("b.example"), Some(Given::Now(1)));
        assert_eq!(book.name(ipv4(1).into()), Some("b.example"));
        assert_eq!(book.name(ipv6(0).into()), Some("a.example"));
        assert_eq!(book.name(ipv4(1).to_ipv6_mapped().into()), Some("b.example"));
        for other in ["198.18.0.0", "198.18.0.3", "1.2.3.4", "::1", "fd7a:656e:6f01::1", "ffff::"] {
            assert_eq!(book.name(other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn all_addresses_are_nobodys_outside() {
        use model::net::{Reach, reach};
        assert_eq!(reach(ipv4(0).into()), Reach::Nowhere);
        assert_eq!(reach(ipv4(MOST - 1).into()), Reach::Nowhere);
        let mut full = Book::new((0..MOST).map(|number| format!("{number}.example")).collect());
        assert!(!full.has_room_for("one.more") && full.has_room_for("7.example"));
        assert_eq!((full.give("one.more"), full.give("7.example")), (None, Some(Given::Before(7))));
        assert_ne!(reach(ipv6(MOST - 1).into()), Reach::Public);
    }
}
