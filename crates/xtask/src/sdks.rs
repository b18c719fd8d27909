//! The libraries of others that speak to our doors, from the ordinary package registries.
//!
//! Each set of them has a folder of its own below the target folder, which is kept from run to run and made anew when its list
//! changes. What has no version in its list is the newest there was when it was made; what that is, is printed in every run.
//!
//! Never puts anything among the machine's own packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use crate::files::{self, FileError};
use crate::packages::{self, Consent, NeedsError};
use crate::process::{self, ProcessError};

/// What is installed together, and the variable by which tests find it.
#[derive(Debug)]
struct Kit {
    name: &'static str,
    variable: &'static str,
    registry: Registry,
    packages: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registry {
    /// A virtual environment of the machine's own Python, which every user can execute.
    PyPi,
    /// A folder with `node_modules`.
    Npm,
}

const KITS: &[Kit] = &[
    Kit {
        name: "python",
        variable: "ZENO_TEST_PYTHON",
        registry: Registry::PyPi,
        packages: &["e2b", "e2b-code-interpreter", "ipykernel", "jupyter_client", "mcp"],
    },
    Kit {
        name: "python-2.20",
        variable: "ZENO_TEST_PYTHON_2_20",
        registry: Registry::PyPi,
        packages: &["e2b==2.20.0"],
    },
    Kit {
        name: "python-2.45",
        variable: "ZENO_TEST_PYTHON_2_45",
        registry: Registry::PyPi,
        packages: &["e2b==2.45.0"],
    },
    Kit {
        name: "node",
        variable: "ZENO_TEST_NODE_MODULES",
        registry: Registry::Npm,
        packages: &[
            "e2b",
            "@e2b/code-interpreter",
            "@modelcontextprotocol/sdk",
            // Left to itself, npm takes one for Node 20 that cannot send a header.
            "@modelcontextprotocol/inspector@2.12.0",
            "ws",
        ],
    },
];

/// Every kit, made.
#[derive(Debug)]
pub(crate) struct Sdks {
    folder: PathBuf,
}

impl Sdks {
    /// Makes what is not there yet, and says which versions there are.
    pub(crate) fn ensure(consent: Consent) -> Result<Self, SdksError> {
        let sdks = Self { folder: target_folder()?.join("sdks") };
        let mut missing = Vec::new();
        for kit in KITS {
            if !kit.is_made(&sdks.folder)? {
                missing.push(kit);
            }
        }
        if !missing.is_empty() {
            let by_hand = missing.iter().map(|kit| kit.by_hand()).collect::<Vec<_>>().join("; ");
            packages::consented(consent, &by_hand)?;
        }
        for kit in missing {
            println!("== installing below {}: {}", sdks.folder.display(), kit.packages.join(" "));
            kit.make(&sdks.folder)?;
        }
        for kit in KITS {
            println!("{}: {}", kit.name, kit.versions(&sdks.folder)?);
        }
        Ok(sdks)
    }

    /// What tests read to find them.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        KITS.iter().map(|kit| (kit.variable, kit.entry(&self.folder)))
    }

    /// A Python with the newest of E2B's SDK.
    pub(crate) fn python(&self) -> PathBuf {
        KITS[0].entry(&self.folder)
    }

    /// The same where another user can read them: a checkout may lie in a private home.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<Self, SdksError> {
        process::quietly(Command::new("cp").args(["-a", "--reflink=auto"]).arg(&self.folder).arg(folder))?;
        Ok(Self { folder: folder.to_owned() })
    }
}

impl Kit {
    fn folder(&self, sdks: &Path) -> PathBuf {
        sdks.join(self.name)
    }

    fn entry(&self, sdks: &Path) -> PathBuf {
        self.folder(sdks).join(match self.registry {
            Registry::PyPi => "bin/python",
            Registry::Npm => "node_modules",
        })
    }

    fn by_hand(&self) -> String {
        let installer = match self.registry {
            Registry::PyPi => "pip",
            Registry::Npm => "npm",
        };
        format!("{installer} install {}", self.packages.join(" "))
    }

    /// What it is made of: another list or another interpreter makes another kit.
    fn recipe(&self) -> Result<String, SdksError> {
        let program = match self.registry {
            Registry::PyPi => "python3",
            Registry::Npm => "node",
        };
        let version = process::line(Command::new(found(program)?).arg("--version"))?;
        Ok(format!("{version}\n{}\n", self.packages.join("\n")))
    }

    fn is_made(&self, sdks: &Path) -> Result<bool, SdksError> {
        let recipe = self.folder(sdks).join(RECIPE);
        Ok(recipe.is_file() && files::read(&recipe)? == self.recipe()?)
    }

    fn make(&self, sdks: &Path) -> Result<(), SdksError> {
        let folder = self.folder(sdks);
        files::remove_tree(&folder)?;
        files::make_folder(&folder)?;
        match self.registry {
            Registry::PyPi => self.make_python(&folder)?,
            Registry::Npm => self.make_node(&folder)?,
        }
        // A strict umask at the caller's must not hide it from the test users.
        process::quietly(Command::new("chmod").args(["-R", "a+rX"]).arg(&folder))?;
        // Last: a kit that was not finished is made anew.
        Ok(files::write(&folder.join(RECIPE), &self.recipe()?)?)
    }

    fn make_python(&self, folder: &Path) -> Result<(), SdksError> {
        // Filled by the machine's own pip: Debian's Python has none to give unless python3-venv is there, too.
        process::quietly(Command::new(found("python3")?).args(["-m", "venv", "--without-pip"]).arg(folder))?;
        let mut pip = Command::new(found("pip3")?);
        pip.arg("--python").arg(self.python(folder)).args(["install", "--quiet"]).args(self.packages);
        Ok(process::run(&mut pip)?)
    }

    fn python(&self, folder: &Path) -> PathBuf {
        folder.join("bin/python")
    }

    fn make_node(&self, folder: &Path) -> Result<(), SdksError> {
        files::write(&folder.join("package.json"), "{\"private\": true}\n")?;
        let mut npm = Command::new(found("npm")?);
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
            .args(self.packages)
            .current_dir(folder);
        Ok(process::run(&mut npm)?)
    }

    /// `e2b 2.63.0, ...`
    fn versions(&self, sdks: &Path) -> Result<String, SdksError> {
        let names = self.packages.iter().map(|package| bare(package));
        let told: Result<Vec<String>, SdksError> = match self.registry {
            Registry::PyPi => {
                let mut python = Command::new(self.python(&self.folder(sdks)));
                python.args(["-c", PYTHON_VERSIONS]).args(names);
                let told = process::output(&mut python)?;
                Ok(String::from_utf8_lossy(&told).lines().map(str::to_owned).collect())
            }
            Registry::Npm => names.map(|name| node_version(&self.entry(sdks), name)).collect(),
        };
        Ok(told?.join(", "))
    }
}

/// A package without the version that is asked for: `e2b==2.20.0`, `@scope/name@1.2.3`.
fn bare(package: &str) -> &str {
    let end = package.find("==").or_else(|| package.rfind('@').filter(|at| *at > 0));
    &package[..end.unwrap_or(package.len())]
}

fn node_version(modules: &Path, name: &str) -> Result<String, SdksError> {
    let path = modules.join(name).join("package.json");
    let read = serde_json::from_str(&files::read(&path)?);
    let package: Value =
        read.map_err(|source| SdksError::Told { what: path.display().to_string(), source })?;
    Ok(format!("{name} {}", package["version"].as_str().unwrap_or("of no version")))
}

#[derive(Debug, Deserialize)]
struct Metadata {
    target_directory: PathBuf,
}

fn target_folder() -> Result<PathBuf, SdksError> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(files::root());
    let read = serde_json::from_slice(&process::output(&mut cargo)?);
    let metadata: Metadata =
        read.map_err(|source| SdksError::Told { what: process::shown(&cargo), source })?;
    Ok(metadata.target_directory)
}

/// As every user finds it: a Python of the caller's own may lie where nobody else may look.
fn found(program: &'static str) -> Result<PathBuf, SdksError> {
    process::find(program).ok_or(SdksError::Missing { program })
}

/// What a finished kit was made of.
const RECIPE: &str = "made-of";
const PYTHON_VERSIONS: &str =
    "import sys, importlib.metadata as m\nfor name in sys.argv[1:]: print(name, m.version(name))";

#[derive(Debug, thiserror::Error)]
pub(crate) enum SdksError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Needs(#[from] NeedsError),
    #[error("there is no {program} in the system's own folders")]
    Missing { program: &'static str },
    #[error("{what} cannot be read")]
    Told { what: String, source: serde_json::Error },
}
