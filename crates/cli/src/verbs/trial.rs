//! `zeno try`: a command, what it did, and what becomes of that.
//!
//! Its own words go to standard error: standard output is the command's.

mod pick;

use model::diff::{Detail, Diff};
use model::exec::Text;
use model::promotion::{LeftOut, PromoteRequest, Promoted, Unjudged, Walked};
use model::sandbox::Actor;
use model::{Problem, Sandbox, SandboxId};
use serde::Serialize;

use super::walk::{self, Start};
use super::{exec, run};
use crate::api::Api;
use crate::args::trial::{Then, Trial};
use crate::args::which::Which;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::keys::DetachKeys;
use crate::output;
use crate::progress::Waiting;
use crate::prompt::{self, Reply};
use crate::render::diff::{Ignored, Look, stat};
use crate::render::walk as render;
use crate::render::words;
use crate::request;
use crate::session::{Ending, Topic};
use crate::terminal::Terminals;

pub(crate) async fn trial(typed: &Trial, invocation: &Invocation) -> Result<u8, Failure> {
    let caller = Caller::read(invocation)?;
    let request = request::trial(typed, &caller, Terminals::look())?;
    let api = invocation.api().await?;
    // What becomes of it is asked when it has ended, so that it cannot be left before.
    let (keys, form) = (DetachKeys::none(), invocation.form);
    let (ending, sandbox) = run::talked(&api, &request, Topic::Command(&keys), form).await?;
    let Some(sandbox) = sandbox else { return Ok(exec::exit_code(&ending?, &"")) };
    let mut tried =
        Tried { api, invocation, caller, actor: request.create.actor, sandbox, diff: Diff::default() };
    let ending = match ending {
        Ok(ending @ Ending::Command(_)) => ending,
        // Nobody is asked who is on the way out.
        Ok(ending @ (Ending::Left | Ending::Detached(_))) => {
            tried.keep("");
            return Ok(exec::exit_code(&ending, &tried.which()));
        }
        Err(failure) => {
            tried.keep("");
            return Err(failure);
        }
    };
    let which = tried.which();
    let code = exec::exit_code(&ending, &which);
    tried.diff = Waiting::begin("comparing").watch(tried.api.diff(&which, None, &[], Detail::Lines)).await?;
    if tried.diff.is_empty() {
        tried.say("nothing has changed, so there is nothing to keep\n");
        return tried.drop_it(code).await;
    }
    tried.show();
    match typed.then {
        Some(Then::Keep) => tried.kept(code, ""),
        Some(Then::Drop) => tried.drop_it(code).await,
        Some(Then::Promote) => match tried.promote(Vec::new()).await? {
            Outcome::Promoted(walked) => tried.promoted(code, *walked).await,
            Outcome::Not(failed) => tried.kept(failed, ""),
        },
        None if prompt::is_possible(invocation.form) => tried.ask(code).await,
        None => tried.kept(code, "; nobody could be asked: --then promote|keep|drop decides"),
    }
}

/// A command that has ended, and what it left.
struct Tried<'a> {
    api: Api,
    invocation: &'a Invocation,
    caller: Caller,
    actor: Actor,
    sandbox: Sandbox,
    diff: Diff,
}

/// What came of promoting.
enum Outcome {
    Promoted(Box<Walked>),
    /// It was told why not; this is the exit code for it.
    Not(u8),
}

impl Tried<'_> {
    /// Until something is decided. Who says nothing keeps it: nothing is lost.
    async fn ask(&self, code: u8) -> Result<u8, Failure> {
        loop {
            let reply = prompt::ask("Promote it, pick files, keep or drop it? [p/f/k/d] ").await?;
            let Reply::Line(word) = reply else { return self.kept(code, "") };
            let paths = match word.as_str() {
                "p" | "promote" => Vec::new(),
                "f" | "files" | "pick" | "pick files" => match self.pick().await? {
                    Some(paths) => paths,
                    None => continue,
                },
                "k" | "keep" => return self.kept(code, ""),
                "d" | "drop" => return self.drop_it(code).await,
                _ => continue,
            };
            if let Outcome::Promoted(walked) = self.promote(paths).await? {
                return self.promoted(code, *walked).await;
            }
            let name = words::name(&self.sandbox);
            self.say(&format!("  try: keep it, mend that, then zeno promote {name}\n"));
        }
    }

    /// Which of the changes; `None`: none of them.
    async fn pick(&self) -> Result<Option<Vec<Text>>, Failure> {
        let choices = pick::choices(&self.diff);
        self.say(&pick::listed(&choices, self.invocation.stderr_paint()));
        let reply = prompt::ask("Which? numbers, ranges like 2-4, or patterns like src/*: ").await?;
        let Reply::Line(line) = reply else { return Ok(None) };
        match pick::chosen(&choices, &line) {
            Ok(paths) if paths.is_empty() => Ok(None),
            Ok(paths) => Ok(Some(paths)),
            Err(bad) => {
                self.say(&format!("{bad}\n"));
                Ok(None)
            }
        }
    }

    async fn promote(&self, paths: Vec<Text>) -> Result<Outcome, Failure> {
        let request = PromoteRequest {
            paths,
            // What was made a moment ago nobody can have judged yet.
            unjudged: Unjudged::Verify,
            actor: self.actor,
            context: self.caller.whole_context(),
            ..PromoteRequest::default()
        };
        let which = self.which();
        let walked = match walk::walk(&self.api, Start::Sandbox(&which), request, self.invocation).await {
            Ok(Some(walked)) => walked,
            Ok(None) => return Ok(Outcome::Not(walk::left())),
            Err(failure) => {
                let problem: Problem = failure.problem();
                self.invocation.complain(&problem);
                return Ok(Outcome::Not(failure.exit()));
            }
        };
        self.say(&render::walked(&walked, &which, None, self.invocation.stderr_paint()));
        match walk::exit(&walked) {
            DONE => Ok(Outcome::Promoted(Box::new(walked))),
            failed => Ok(Outcome::Not(failed)),
        }
    }

    /// It is in reality now. What is not, stays where it is.
    async fn promoted(&self, code: u8, walked: Walked) -> Result<u8, Failure> {
        let rest = match &walked.promoted {
            Promoted::Done { assessment, .. }
            | Promoted::Planned { assessment, .. }
            | Promoted::Blocked { assessment } => has_rest(&assessment.left_out),
            Promoted::Already { .. } => false,
        };
        if rest {
            self.keep(", with what was left out");
        } else {
            self.api.destroy(&self.which()).await?;
        }
        self.tell(Fate::Promoted, Some(walked))?;
        Ok(code)
    }

    fn kept(&self, code: u8, besides: &str) -> Result<u8, Failure> {
        self.keep(besides);
        self.tell(Fate::Kept, None)?;
        Ok(code)
    }

    async fn drop_it(&self, code: u8) -> Result<u8, Failure> {
        self.api.destroy(&self.which()).await?;
        self.tell(Fate::Dropped, None)?;
        Ok(code)
    }

    fn keep(&self, besides: &str) {
        let name = words::name(&self.sandbox);
        self.say(&format!(
            "kept: {name} (zeno diff {name}, zeno promote {name}, zeno destroy {name}){besides}\n"
        ));
    }

    fn show(&self) {
        let home = self.invocation.environment.home.as_deref();
        let look =
            Look { ignored: Ignored::Counted, home, paint: self.invocation.stderr_paint(), names: None };
        self.say(&stat(&self.diff, look));
    }

    fn say(&self, text: &str) {
        if self.invocation.form == Form::People {
            output::note(text);
        }
    }

    /// The last line for a program.
    fn tell(&self, then: Fate, promoted: Option<Walked>) -> Result<(), Failure> {
        if self.invocation.form == Form::People {
            return Ok(());
        }
        let line = Line::Tried { sandbox: self.sandbox.id, then, diff: &self.diff, promoted };
        output::answer(&(serde_json::to_string(&line).map_err(Failure::Encode)? + "\n"))
    }

    fn which(&self) -> Which {
        Which::from(self.sandbox.id)
    }
}

/// After the lines of `zeno run --json`.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Line<'a> {
    Tried {
        sandbox: SandboxId,
        then: Fate,
        diff: &'a Diff,
        #[serde(skip_serializing_if = "Option::is_none")]
        promoted: Option<Walked>,
    },
}

/// What became of the sandbox.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Fate {
    Promoted,
    Kept,
    Dropped,
}

/// Is there something that was not promoted and that somebody may still want?
fn has_rest(left: &LeftOut) -> bool {
    let LeftOut { ignored, machine, unnamed, masked: _, git } = left;
    ignored + machine + unnamed > 0 || !git.is_empty()
}
