//! The clients, where `cargo xtask test` has installed them.

use std::path::PathBuf;

/// E2B's SDK in one of the forms that people use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// The newest in Python, whose calls wait.
    Blocking,
    /// The same with `async` and `await`.
    Async,
    Python2_20,
    Python2_45,
    /// The newest in JavaScript.
    Node,
}

impl Client {
    pub(super) fn program(self) -> PathBuf {
        match self {
            Self::Blocking | Self::Async => installed("ZENO_TEST_PYTHON"),
            Self::Python2_20 => installed("ZENO_TEST_PYTHON_2_20"),
            Self::Python2_45 => installed("ZENO_TEST_PYTHON_2_45"),
            Self::Node => "node".into(),
        }
    }

    /// What scripts are told of it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Blocking | Self::Python2_20 | Self::Python2_45 | Self::Node => "blocking",
        }
    }
}

pub(super) fn node_modules() -> PathBuf {
    installed("ZENO_TEST_NODE_MODULES")
}

/// Skipping would be no test at all: what is to be shown is that the real ones work.
fn installed(name: &str) -> PathBuf {
    let variable = model::env::variables().into_iter().find(|variable| variable.name == name.into());
    match variable {
        Some(variable) => variable.value.as_os_str().into(),
        None => panic!("{name} is not set: `cargo xtask test` installs the SDKs and says where they are"),
    }
}
