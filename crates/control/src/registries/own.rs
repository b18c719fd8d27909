//! Where a package manager goes if nobody configures it: it says so itself, in its own files.
//!
//! Read from there, so that what a distribution or a company builds into its tools counts, and no list of ours has to be kept.

use std::io::Read;
use std::path::{Path, PathBuf};

use model::net::{Ecosystem, Rule, Target};

use super::machine::Machine;
use super::rule;
use super::text::pairs;
use super::url::Url;

/// The rules for what is built in. None: the tool is not there, or does not say it where we look.
pub(super) fn rules(ecosystem: Ecosystem, machine: &Machine) -> Vec<Rule> {
    let urls: Vec<Url> = match ecosystem {
        Ecosystem::Cargo => cargo(machine),
        Ecosystem::Npm => npm(machine),
        // They ask npm's, each by its own word for it.
        Ecosystem::Pnpm => [bundle(machine, "pnpm", "dist/pnpm.cjs"), npm(machine)].concat(),
        Ecosystem::Yarn => [bundle(machine, "yarn", "lib/cli.js"), npm(machine)].concat(),
        Ecosystem::Pip | Ecosystem::Uv => pip(machine),
        Ecosystem::Go => go(machine),
        // It has no registry but those in its lists.
        Ecosystem::Apt => Vec::new(),
        Ecosystem::Maven => maven(machine),
    };
    let mut rules: Vec<Rule> = urls.iter().filter_map(|url| rule(ecosystem, url)).collect();
    if ecosystem == Ecosystem::Cargo {
        // Crates lie beside the index; where exactly is known only to who has read it.
        let beside = urls.iter().filter_map(|url| beside(&url.host).map(|to| ecosystem.rule(to, url.port)));
        rules.extend(beside);
    }
    rules
}

/// All names of the same owner: those below the name without its first part.
fn beside(host: &str) -> Option<Target> {
    let (_, domain) = host.split_once('.')?;
    // What is below a top level is everybody's.
    domain.contains('.').then(|| format!("*.{domain}").parse().ok()).flatten()
}

/// In the program: rustup's, which stands for it, says nothing.
fn cargo(machine: &Machine) -> Vec<Url> {
    let rustup = machine.variable("RUSTUP_HOME").map(PathBuf::from).or_else(|| machine.at_home(".rustup"));
    let toolchains = rustup.map(|home| machine.files(&home.join("toolchains"), "")).unwrap_or_default();
    let programs = toolchains.into_iter().map(|toolchain| toolchain.join("bin/cargo"));
    let programs = programs.chain(machine.programs("cargo"));
    first(programs, |path| said_after(machine, path, "sparse+https://"))
}

/// In its definitions of settings, which Debian keeps beside npm instead of below it.
fn npm(machine: &Machine) -> Vec<Url> {
    let roots: Vec<PathBuf> = machine.programs("npm").iter().filter_map(|path| root_of(path)).collect();
    let definitions = |folder: &Path| folder.join("@npmcli/config/lib/definitions/definitions.js");
    let places = roots.iter().flat_map(|root| {
        let above = root.parent().map(definitions);
        [Some(definitions(&root.join("node_modules"))), above].into_iter().flatten()
    });
    first(places, |path| {
        let text = machine.read(path)?;
        let (_, setting) = text.split_once("('registry', {")?;
        Url::all(setting).into_iter().next()
    })
}

/// Of those that are one large file: installed, fetched by corepack into the caller's cache, or the program itself.
fn bundle(machine: &Machine, program: &str, file: &str) -> Vec<Url> {
    let programs = machine.programs(program);
    let installed = programs.iter().filter_map(|path| Some(root_of(path)?.join(file)));
    let cache = machine.variable("COREPACK_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| machine.at_home(".cache/node/corepack"));
    let versions = cache.map(|cache| machine.files(&cache.join("v1").join(program), "")).unwrap_or_default();
    let fetched =
        versions.into_iter().flat_map(|version| [version.join(file), version.join(format!("{program}.js"))]);
    let places = installed.chain(fetched).chain(programs.iter().cloned());
    first(places, |path| said_after(machine, path, "https://registry."))
}

/// In its module about indexes: that of the packages, and where files are.
fn pip(machine: &Machine) -> Vec<Url> {
    let of_python = |folder: &Path| {
        let versions = machine.files(folder, "").into_iter();
        let versions = versions.filter(|version| version.file_name().is_some_and(is_python));
        versions.flat_map(|version| ["site-packages", "dist-packages"].map(|packages| version.join(packages)))
    };
    let pyenv = machine.variable("PYENV_ROOT").map(PathBuf::from).or_else(|| machine.at_home(".pyenv"));
    let pythons = pyenv.map(|root| machine.files(&root.join("versions"), "")).unwrap_or_default();
    let beside_programs = machine.paths().into_iter().filter_map(|folder| Some(folder.parent()?.to_owned()));
    let prefixes = beside_programs.chain(pythons).chain(machine.at_home(".local"));
    let packages: Vec<PathBuf> = prefixes.flat_map(|prefix| of_python(&prefix.join("lib"))).collect();
    let found = packages.into_iter().find_map(|packages| {
        let text = machine.read(&packages.join("pip/_internal/models/index.py"))?;
        let (_, said) = text.split_once("\nPyPI = PackageIndex(")?;
        let (said, _) = said.split_once(')')?;
        let quoted: Vec<&str> = said.split('"').skip(1).step_by(2).collect();
        Some(quoted.iter().flat_map(|text| Url::all(&with_scheme(text))).collect())
    });
    found.unwrap_or_default()
}

fn is_python(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("python3")
}

/// In the settings it comes with or, of older ones, in its source.
fn go(machine: &Machine) -> Vec<Url> {
    let of_program = machine.programs("go").into_iter().filter_map(|path| root_of(&path));
    let roots = machine.variable("GOROOT").map(PathBuf::from).into_iter().chain(of_program);
    let found = roots.into_iter().find_map(|root| {
        let of_settings = machine.read(&root.join("go.env")).map(|text| {
            let wanted = |(name, value): (String, String)| GO.contains(&name.as_str()).then_some(value);
            pairs(&text).into_iter().filter_map(wanted).collect::<Vec<String>>()
        });
        let of_source = || {
            let text = machine.read(&root.join("src/cmd/go/internal/cfg/cfg.go"))?;
            let said = |name: &&str| {
                let (_, rest) = text.split_once(&format!("envOr(\"{name}\", \""))?;
                Some(rest.split('"').next()?.to_owned())
            };
            Some(GO.iter().filter_map(said).collect())
        };
        of_settings.or_else(of_source).filter(|values: &Vec<String>| !values.is_empty())
    });
    found.unwrap_or_default().iter().flat_map(|value| Url::all(&with_scheme(value))).collect()
}

/// In the model that all others inherit from.
fn maven(machine: &Machine) -> Vec<Url> {
    let roots: Vec<PathBuf> = machine.programs("mvn").iter().filter_map(|path| root_of(path)).collect();
    let archives = roots.iter().flat_map(|root| machine.files(&root.join("lib"), ".jar"));
    let archives = archives.filter(|path| path.to_string_lossy().contains("maven-model-builder"));
    let found = archives.into_iter().find_map(|path| {
        let mut archive = zip::ZipArchive::new(machine.open(&path)?).ok()?;
        let model = archive.by_name("org/apache/maven/model/pom-4.0.0.xml").ok()?;
        let mut text = String::new();
        model.take(LONGEST_MODEL).read_to_string(&mut text).ok()?;
        let urls = text.split("<url>").skip(1).filter_map(|rest| rest.split("</url>").next());
        Some(urls.flat_map(Url::all).collect())
    });
    found.unwrap_or_default()
}

/// The first address of a file that begins so.
fn said_after(machine: &Machine, path: &Path, beginning: &str) -> Option<Url> {
    let mut rest = machine.open(path)?.take(LONGEST_PROGRAM);
    let (mut window, mut piece) = (Vec::new(), vec![0; 1 << 20]);
    loop {
        let read = rest.read(&mut piece).ok()?;
        window.extend_from_slice(&piece[..read]);
        let places = window.windows(beginning.len()).enumerate();
        let mut places = places.filter(|(_, bytes)| *bytes == beginning.as_bytes()).map(|(at, _)| at);
        let found = places.find_map(|at| address(&window[at..], beginning.len()));
        if found.is_some() || read == 0 {
            return found;
        }
        // What begins at the end of this piece may go on in the next.
        window.drain(..window.len().saturating_sub(beginning.len() + LONGEST_HOST));
    }
}

/// Texts of a program follow each other without an end: only a whole name with something after it is one.
fn address(bytes: &[u8], beginning: usize) -> Option<Url> {
    let is_of_name = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(byte);
    let length = bytes[beginning..].iter().take_while(|byte| is_of_name(byte)).count();
    let (address, rest) = bytes.split_at(beginning + length);
    let is_whole = matches!(rest.first(), Some(b'/' | b'"' | b'\'' | b'`'));
    let url = Url::all(std::str::from_utf8(address).ok()?).into_iter().next()?;
    (is_whole && url.host.contains('.')).then_some(url)
}

fn first(places: impl Iterator<Item = PathBuf>, look: impl Fn(&Path) -> Option<Url>) -> Vec<Url> {
    places.take(PLACES).find_map(|path| look(&path)).into_iter().collect()
}

/// Of `ROOT/bin/program`.
fn root_of(program: &Path) -> Option<PathBuf> {
    Some(program.parent()?.parent()?.to_owned())
}

fn with_scheme(text: &str) -> String {
    if text.contains("://") { text.to_owned() } else { format!("https://{text}") }
}

const GO: [&str; 2] = ["GOPROXY", "GOSUMDB"];
/// Of one tool.
const PLACES: usize = 16;
const LONGEST_PROGRAM: u64 = 256 << 20;
const LONGEST_MODEL: u64 = 1 << 20;
const LONGEST_HOST: usize = 253;
