//! One call of `zeno`: where its state is, in which form it answers.

use std::io::IsTerminal;
use std::path::PathBuf;

use model::env::Environment;
use model::sandbox::Actor;
use model::{Code, Problem};
use serde::Serialize;

use crate::actor;
use crate::api::Api;
use crate::failure::Failure;
use crate::progress::Waiting;
use crate::render::paint::Paint;
use crate::{output, render};

#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) environment: Environment,
    pub(crate) form: Form,
}

/// For whom the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    People,
    Json,
}

impl Invocation {
    pub(crate) fn home(&self) -> Result<PathBuf, Failure> {
        let is_root = rustix::process::geteuid().is_root();
        self.environment.state_dir(is_root).ok_or(Failure::NoHome)
    }

    /// Who asks, where the command line does not say so. A person sees what is asked, and answers, at a terminal.
    pub(crate) fn actor(&self) -> Result<Actor, Failure> {
        actor::who(&self.environment, std::io::stdin().is_terminal() && std::io::stderr().is_terminal())
    }

    /// The daemon's API; starts the daemon if there is none.
    pub(crate) async fn api(&self) -> Result<Api, Failure> {
        Waiting::begin("starting the daemon").watch(Api::ensure(&self.home()?)).await
    }

    /// Prints an answer: the value itself for programs, what `render` makes of it for people.
    pub(crate) fn answer<T: Serialize>(
        &self,
        value: &T,
        render: impl FnOnce(Paint) -> String,
    ) -> Result<(), Failure> {
        match self.form {
            Form::People => output::answer(&render(self.stdout_paint())),
            Form::Json => {
                output::answer(&(serde_json::to_string_pretty(value).map_err(Failure::Encode)? + "\n"))
            }
        }
    }

    /// Says on standard error what went wrong.
    pub(crate) fn complain(&self, problem: &Problem) {
        output::note(&match self.form {
            // As for a command that somebody stays to watch.
            Form::People if matches!(problem.code, Code::ProgramNotFound | Code::ProgramNotExecutable) => {
                format!("zeno: {}\n", problem.detail)
            }
            Form::People => render::problem::problem(problem, self.stderr_paint()),
            Form::Json => serde_json::to_string(problem).expect("a problem is plain data") + "\n",
        });
    }

    pub(crate) fn stdout_paint(&self) -> Paint {
        self.paint(std::io::stdout().is_terminal())
    }

    pub(crate) fn stderr_paint(&self) -> Paint {
        self.paint(std::io::stderr().is_terminal())
    }

    fn paint(&self, is_terminal: bool) -> Paint {
        if is_terminal && !self.environment.no_color { Paint::Colour } else { Paint::Plain }
    }
}
