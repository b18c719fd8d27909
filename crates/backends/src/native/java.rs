//! Whom Java trusts: stores of its own, in a form of its own, wherever a JDK lies.
//!
//! The form is the one that `keytool` calls JKS. Every Java reads it under this name, also where its own store is in another.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::exec::Context;
use ring::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};

/// Where the stores of this machine and of its JDKs are, links followed.
pub(super) fn stores(context: &Context) -> Vec<PathBuf> {
    let variable = |name: &str| {
        let found = context.env.iter().find(|variable| variable.name.0 == name.as_bytes());
        found.map(|variable| OsStr::from_bytes(&variable.value.0).to_owned())
    };
    let installed =
        fs::read_dir(INSTALLED).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let paths =
        variable("PATH").map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>()).unwrap_or_default();
    let programs = paths.into_iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join("java"));
    // `bin/java` of a JDK.
    let of_programs =
        programs.filter_map(|path| Some(fs::canonicalize(path).ok()?.parent()?.parent()?.to_owned()));
    let homes = variable("JAVA_HOME").map(PathBuf::from).into_iter().chain(installed).chain(of_programs);
    let of_homes = homes.flat_map(|home| OF_A_HOME.map(|store| home.join(store)));
    let all =
        MACHINES.iter().map(PathBuf::from).chain(of_homes).filter_map(|path| fs::canonicalize(path).ok());
    all.filter(|path| path.is_file()).collect::<BTreeSet<PathBuf>>().into_iter().collect()
}

/// A store with one certificate more: the machine's own, or one of its bundle where that is in another form.
pub(super) fn with(store: &[u8], bundle: &[u8], name: &str, certificate: &[u8]) -> Vec<u8> {
    let own = entry(name, certificate);
    let (count, entries) = entries(store).unwrap_or_else(|| {
        let certificates = certificates(bundle);
        let entries = certificates
            .iter()
            .enumerate()
            .flat_map(|(number, der)| entry(&format!("machine-{number}"), der));
        (certificates.len() as u32, entries.collect())
    });
    let mut body = [MAGIC, VERSION, count + 1].map(u32::to_be_bytes).concat();
    body.extend(entries);
    body.extend(own);
    let seal = seal(&body);
    body.extend(seal);
    body
}

/// How many there are, and all of them. None: it is in another form.
fn entries(store: &[u8]) -> Option<(u32, Vec<u8>)> {
    let word = |at: usize| Some(u32::from_be_bytes(store.get(at..at + 4)?.try_into().ok()?));
    let is_known = word(0)? == MAGIC && word(4)? == VERSION;
    let end = store.len().checked_sub(digest::SHA1_OUTPUT_LEN)?;
    is_known.then_some((word(8)?, store.get(HEAD..end)?.to_vec()))
}

fn entry(name: &str, certificate: &[u8]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat();
    let time = 0_u64.to_be_bytes();
    let length = (certificate.len() as u32).to_be_bytes();
    [&TRUSTED.to_be_bytes()[..], &text(name), &time, &text("X.509"), &length, certificate].concat()
}

/// Proves nothing, because everybody knows the password, but whoever says the password checks it.
fn seal(body: &[u8]) -> Vec<u8> {
    let mut digest = digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    let password: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    [&password[..], SALT, body].into_iter().for_each(|part| digest.update(part));
    digest.finish().as_ref().to_vec()
}

/// Those of a bundle, as they are without their text form. What cannot be read is left out, as everybody else does.
pub(super) fn certificates(bundle: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(bundle);
    let parts = text.split("-----BEGIN CERTIFICATE-----").skip(1);
    let coded = parts.filter_map(|part| part.split("-----END CERTIFICATE-----").next());
    coded
        .filter_map(|coded| BASE64_STANDARD.decode(coded.split_whitespace().collect::<String>()).ok())
        .collect()
}

/// Debian and its kin, Fedora and its kin, SUSE.
const MACHINES: [&str; 3] = [
    "/etc/ssl/certs/java/cacerts",
    "/etc/pki/ca-trust/extracted/java/cacerts",
    "/var/lib/ca-certificates/java-cacerts",
];
/// Where distributions and vendors install JDKs.
const INSTALLED: &str = "/usr/lib/jvm";
/// Of Java 9 and newer, and of a JDK before that.
const OF_A_HOME: [&str; 2] = ["lib/security/cacerts", "jre/lib/security/cacerts"];

const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
/// Magic, version and count.
const HEAD: usize = 12;
/// The kind of an entry that is a certificate without a key.
const TRUSTED: u32 = 2;
/// Every store of this kind has it, and everybody knows it.
const PASSWORD: &str = "changeit";
/// As `sun.security.provider.JavaKeyStore` has it.
const SALT: &[u8] = b"Mighty Aphrodite";

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLE: &[u8] = b"# one\n-----BEGIN CERTIFICATE-----\nAQID\nBAU=\n-----END CERTIFICATE-----\n\
        -----BEGIN CERTIFICATE-----\nBgc=\n-----END CERTIFICATE-----\n";

    #[test]
    fn one_more_than_there_were() {
        assert_eq!(certificates(BUNDLE), [vec![1, 2, 3, 4, 5], vec![6, 7]]);
        let made = with(b"another form", BUNDLE, "zeno", &[8; 300]);
        let (count, of_three) = entries(&made).unwrap();
        assert_eq!(count, 3);
        let more = with(&made, b"", "more", &[9]);
        let (count, of_four) = entries(&more).unwrap();
        assert_eq!((count, of_four), (4, [of_three, entry("more", &[9])].concat()));
        assert_eq!(more[more.len() - 20..], seal(&more[..more.len() - 20]));
    }

    /// What every Java writes at the end of an empty store with this password.
    #[test]
    fn whoever_knows_the_password_finds_it_whole() {
        let empty = [MAGIC, VERSION, 0].map(u32::to_be_bytes).concat();
        let made: String = seal(&empty).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(made, "e2686e45fb43dfa4d992dd41ceb6b21c6330d792");
    }
}
