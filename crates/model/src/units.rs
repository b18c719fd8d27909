//! Durations, sizes and CPU shares as people write them: `90s`, `1h30m`, `512MiB`, `1.5`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A length of time, written `90s`, `15m`, `1h30m`, `7d`, `250ms`; shown in the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Span(pub Duration);

impl Span {
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan { text: text.to_owned() };
        let mut total = Duration::ZERO;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            let number: u64 = rest[..digits].parse().map_err(|_not_a_number| bad())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let part = match &rest[..letters] {
                "ms" => Some(Duration::from_millis(number)),
                "s" => Some(Duration::from_secs(number)),
                "m" => number.checked_mul(60).map(Duration::from_secs),
                "h" => number.checked_mul(3600).map(Duration::from_secs),
                "d" => number.checked_mul(86_400).map(Duration::from_secs),
                _ => None,
            };
            rest = &rest[letters..];
            total = part.and_then(|part| total.checked_add(part)).ok_or_else(bad)?;
        }
        // A century is beyond any use, and keeps sums with clock readings from overflowing.
        if total.is_zero() || total > Duration::from_secs(100 * 366 * 86_400) {
            Err(bad())
        } else {
            Ok(Self(total))
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut seconds = self.0.as_secs();
        for (size, unit) in [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")] {
            if seconds >= size {
                text += &format!("{}{unit}", seconds / size);
                seconds %= size;
            }
        }
        if self.0.subsec_millis() > 0 || text.is_empty() {
            text += &format!("{}ms", self.0.subsec_millis());
        }
        f.pad(&text)
    }
}

/// A number of bytes, written `512MiB`, `4G`, `100kB` or a plain number. A bare letter is a power of 1024,
/// as in Docker and systemd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = BadSize;

    /// Reads a size somebody asks for, so not zero.
    fn from_str(text: &str) -> Result<Self, BadSize> {
        match Self::read(text)? {
            Self(0) => Err(BadSize { text: text.to_owned() }),
            size => Ok(size),
        }
    }
}

impl Size {
    fn read(text: &str) -> Result<Self, BadSize> {
        let bad = || BadSize { text: text.to_owned() };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().map_err(|_not_a_number| bad())?;
        let factor = match text[digits..].to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(bad()),
        };
        number.checked_mul(factor).map(Self).ok_or_else(bad)
    }
}

/// On the wire a size may also be one that was measured, and that may be zero.
impl TryFrom<String> for Size {
    type Error = BadSize;

    fn try_from(text: String) -> Result<Self, BadSize> {
        Self::read(&text)
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
            .into_iter()
            .find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size))
            .unwrap_or(("B", 1));
        f.pad(&format!("{}{unit}", self.0 / size))
    }
}

impl Size {
    /// Rounded for the eye, not for parsing: `1.4 GiB`.
    #[must_use]
    pub fn rough(self) -> String {
        let mut value = self.0 as f64;
        for unit in ["B", "KiB", "MiB", "GiB"] {
            if value < 1024.0 {
                return if unit == "B" { format!("{} B", self.0) } else { format!("{value:.1} {unit}") };
            }
            value /= 1024.0;
        }
        format!("{value:.1} TiB")
    }
}

/// A share of processors in thousandths: `1.5` is one and a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Cpus(pub u32);

impl FromStr for Cpus {
    type Err = BadCpus;

    fn from_str(text: &str) -> Result<Self, BadCpus> {
        match text.parse::<f64>() {
            // One hundredth of a processor is the smallest quota the kernel takes.
            Ok(number) if (0.01..=4096.0).contains(&number) => Ok(Self((number * 1000.0).round() as u32)),
            Ok(_) | Err(_) => Err(BadCpus { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&(f64::from(self.0) / 1000.0).to_string())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a duration: write for example 90s, 15m, 1h30m or 7d")]
pub struct BadSpan {
    text: String,
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a size: write for example 512MiB, 4G or 100kB")]
pub struct BadSize {
    text: String,
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a number of processors: write for example 0.5, 2 or 1.5")]
pub struct BadCpus {
    text: String,
}

macro_rules! text_form {
    ($type:ty, $error:ty) => {
        impl TryFrom<String> for $type {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}
text_form!(Span, BadSpan);
text_form!(Cpus, BadCpus);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(text.parse::<Span>().unwrap().to_string(), shown);
    }

    #[test]
    fn spans() {
        check("90s", "1m30s");
        check("1h30m", "1h30m");
        check("250ms", "250ms");
        check("7d", "7d");
        for bad in ["", "5", "m", "1x", "-1s", "0s", "1h m", "99999999999999999999s", "99999999999d"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!("512MiB".parse::<Size>().unwrap().0, 512 << 20);
        assert_eq!("4g".parse::<Size>().unwrap().to_string(), "4GiB");
        assert_eq!("100kB".parse::<Size>().unwrap().to_string(), "100000B");
        assert_eq!(serde_json::from_str::<Size>(&serde_json::to_string(&Size(0)).unwrap()).unwrap(), Size(0));
        for bad in ["", "0", "4Q", "-1", "1.5G", "99999999999T"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn cpu_shares() {
        assert_eq!("1.5".parse::<Cpus>().unwrap(), Cpus(1500));
        for bad in ["", "0", "-1", "NaN", "inf", "x"] {
            assert!(bad.parse::<Cpus>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes in 1u64.., millis in 1u64..1_000_000_000_000) {
            prop_assert_eq!(Size(bytes).to_string().parse::<Size>().unwrap(), Size(bytes));
            let span = Span(Duration::from_millis(millis));
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }
}
