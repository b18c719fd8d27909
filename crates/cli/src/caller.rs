//! Who asks and where they stand: folder, environment, umask. Read only by the verbs that hand it to a sandbox.

use std::path::{Path, PathBuf};
use std::{fs, io};

use model::exec::{Context, Text, Variable};
use model::mask::Masks;
use model::sandbox::Actor;

use crate::failure::Failure;
use crate::invocation::Invocation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) env: Vec<Variable>,
    pub(crate) cwd: PathBuf,
    pub(crate) umask: Option<u32>,
    /// Who asks, where the command line does not say so.
    pub(crate) actor: Actor,
}

impl Caller {
    pub(crate) fn read(invocation: &Invocation) -> Result<Self, Failure> {
        let cwd = std::env::current_dir().map_err(Failure::Cwd)?;
        let status = fs::read_to_string("/proc/self/status").map_err(Failure::Umask)?;
        Ok(Self { env: model::env::variables(), cwd, umask: umask(&status), actor: invocation.actor()? })
    }

    /// The caller's value of a variable, masked or not: naming it on the command line is consent.
    pub(crate) fn variable(&self, name: &Text) -> Option<&Variable> {
        self.env.iter().find(|variable| variable.name == *name)
    }

    /// What a new sandbox starts from: the whole environment, without what points to things that are not
    /// in it.
    pub(crate) fn context(&self) -> Context {
        let masks = Masks::built_in().environment;
        let masked = |variable: &Variable| masks.iter().any(|mask| mask.matches(&variable.name.0));
        Context {
            env: self.env.iter().filter(|variable| !masked(variable)).cloned().collect(),
            cwd: self.cwd.clone().into(),
            umask: self.umask,
            user: None,
        }
    }

    /// What a command on this machine itself starts from: all of it, credentials too.
    pub(crate) fn whole_context(&self) -> Context {
        Context { env: self.env.clone(), cwd: self.cwd.clone().into(), umask: self.umask, user: None }
    }

    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }

    /// The folder as it really is: a workspace is named by where it lies, not by a link to it.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(self.cwd.join(path))
    }
}

/// The kernel has no call that only reads the umask; setting it to read it would race with other threads.
fn umask(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use model::env::Environment;

    use super::*;
    use crate::invocation::Form;

    #[test]
    fn the_umask_is_octal_and_this_kernel_tells_it() {
        assert_eq!(umask("Name:\tx\nUmask:\t0027\n"), Some(0o027));
        assert_eq!(umask("Name:\tx\n"), None);
        let invocation = Invocation { environment: Environment::default(), form: Form::Json };
        assert!(Caller::read(&invocation).unwrap().umask.is_some());
    }

    #[test]
    fn what_is_not_in_the_sandbox_is_not_handed_on() {
        let variable = |name: &str| Variable { name: name.into(), value: "x".into() };
        let env =
            vec![variable("PATH"), variable("SSH_AUTH_SOCK"), variable("TMUX_PANE"), variable("EDITOR")];
        let caller = Caller { env, cwd: "/src".into(), umask: Some(0o22), actor: Actor::Adm };
        let expected = Context {
            env: vec![variable("PATH"), variable("EDITOR")],
            cwd: "/src".into(),
            umask: Some(0o22),
            user: None,
        };
        assert_eq!(caller.context(), expected);
        assert_eq!(caller.variable(&"SSH_AUTH_SOCK".into()), Some(&variable("SSH_AUTH_SOCK")));
    }
}
