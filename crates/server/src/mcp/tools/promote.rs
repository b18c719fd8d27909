//! What a sandbox changed becomes real, if a person agrees.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use model::exec::Text;
use model::promotion::{
    Action, Agreed, Assessment, Foretold, LeftOut, Planned, PromoteRequest, PromoteStep, Promoted, Promotion,
    Stopped, Unjudged, Walked,
};
use model::{Code, Digest, Problem};
use rmcp::handler::server::tool::{InputResponses, RequestState};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResponse;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::judge::step as judged;
use super::{caveats, inside, label, schema};
use crate::mcp::answer::{Answer, Refused};
use crate::mcp::asking::{self, Asked, BY_HAND, Question};
use crate::mcp::progress::{apart, watch};
use crate::mcp::{Consent, Mcp};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PromoteArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Only these paths, absolute or from where its commands start; all of the frozen folder that git does not ignore if absent
    #[serde(default)]
    paths: Vec<String>,
    /// Only say what would be done; nobody is asked
    #[serde(default)]
    dry_run: bool,
    /// Run the checks of the folder's `zeno.yaml` now, where no verdict says yet that they passed
    #[serde(default)]
    verify: bool,
}

#[tool_router(router = promote_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_promote",
        description = "Bring what a sandbox changed in its frozen folder into the real folder, all or nothing. Changes the real machine, so a \
                       person is asked first. Where the folder declares checks, they have to have passed. Can be undone with `zeno undo`.",
        input_schema = schema::<PromoteArgs>(),
        annotations(title = "Promote changes to the real folder", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = true)
    )]
    async fn sandbox_promote(
        &self,
        Parameters(args): Parameters<PromoteArgs>,
        state: RequestState,
        responses: InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refused> {
        let PromoteArgs { sandbox, paths, dry_run, verify } = args;
        let sandbox = self.sandbox(&sandbox).await?;
        let which = sandbox.id.to_string();
        let mut request = PromoteRequest {
            paths: paths.iter().map(|path| inside(&sandbox, path)).collect(),
            dry_run,
            unjudged: if verify { Unjudged::Verify } else { Unjudged::Refuse },
            actor: Self::ACTOR,
            context: self.caller.context.clone(),
            ..PromoteRequest::default()
        };
        if !dry_run && self.caller.consent != Consent::Given {
            if self.caller.consent == Consent::Impossible {
                return Err(impossible().into());
            }
            let look = self.app.control.look(&which, request.clone()).await?;
            // Where nobody is asked, nothing is applied, whatever it becomes in the next moment.
            if !look.assessment.is_clear() {
                return told(&alone(Promoted::Blocked { assessment: look.assessment }));
            }
            if look.assessment.is_nothing() {
                return told(&alone(Promoted::Planned { assessment: look.assessment, gate: None }));
            }
            let text = question(&label(&sandbox), &look.assessment)?;
            let about = shown(&look.digest, &request.paths, &text);
            match asking::ask(Question { text, about }, &context, state, responses).await? {
                Asked::Agreed => {}
                Asked::First(question) => return Ok(question.into()),
            }
            request.agreed = Some(Agreed { state: look.digest, outline: look.assessment.outline() });
        }
        let lanes = self.app.lanes.clone();
        let walked =
            watch(&context, step, |steps| apart(async move { lanes.walk(&which, request, &steps).await }))
                .await?;
        told(&walked)
    }
}

/// Names what was shown, so that consent is to that and to nothing else.
fn shown(digest: &Digest, paths: &[Text], text: &str) -> String {
    let paths: Vec<_> = paths.iter().map(Text::display).collect();
    let whole = format!("{digest}\n{}\n{text}", paths.join("\n"));
    BASE64_URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, whole.as_bytes()))
}

fn impossible() -> Problem {
    Problem::new(Code::Refused, "nothing is promoted by way of HTTP: nobody can be asked from here")
        .hint(BY_HAND)
        .hint("or whoever owns the daemon allows it: zeno daemon run --allow-promote")
}

/// Names all that would become of the real folder: what a person does not see, nobody agreed to.
fn question(sandbox: &str, assessment: &Assessment) -> Result<String, Problem> {
    let number = assessment.actions.len() + assessment.commits.len();
    if number > ASKED {
        let detail = format!("{number} changes are more than a person can be asked about in one question");
        return Err(Problem::new(Code::TooLarge, detail)
            .hint(format!("promote them in parts of up to {ASKED}, with `paths`"))
            .hint(BY_HAND));
    }
    let root = assessment.root.as_ref().map(|root| plain(&root.display())).unwrap_or_default();
    let changes = listed(assessment, ASKED);
    Ok(format!("Bring the changes of sandbox {sandbox} into {root}?\n{number} in all:\n{changes}"))
}

/// One line, whatever a name holds: names come from the sandbox, and must not say anything beside themselves.
fn plain(text: &str) -> String {
    let spelled = |c: char| if is_plain(c) { c.to_string() } else { c.escape_unicode().to_string() };
    text.chars().map(spelled).collect()
}

/// Neither a line break or another control character, nor one that turns the direction of what follows or shows nothing.
fn is_plain(c: char) -> bool {
    let is_invisible = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !is_invisible
}

/// Where nothing was begun.
fn alone(promoted: Promoted) -> Walked {
    Walked { promoted, stages: Vec::new(), ahead: Vec::new(), stopped: None }
}

fn step(step: &PromoteStep) -> Option<String> {
    match step {
        PromoteStep::Waiting => Some("another promotion of the same folder comes first".to_owned()),
        PromoteStep::Judging { step } => judged(step),
        PromoteStep::Applied { .. } => Some("it is in the folder".to_owned()),
        PromoteStep::Entered { stage } => Some(format!("stage {stage}")),
        PromoteStep::Started { .. }
        | PromoteStep::Ended { .. }
        | PromoteStep::Left { .. }
        | PromoteStep::Walked { .. }
        | PromoteStep::Problem { .. } => None,
    }
}

fn told(walked: &Walked) -> Result<CallToolResponse, Refused> {
    let mut text = match &walked.promoted {
        Promoted::Done { promotion, assessment } => {
            format!("Promoted.\n{}{}", listed(assessment, SHOWN), undone_by(promotion))
        }
        Promoted::Already { promotion } => format!("It was promoted before.\n{}", undone_by(promotion)),
        Promoted::Planned { assessment, gate: _ } if assessment.is_nothing() => {
            format!("The real folder has all of it already.\n{}", left_out(&assessment.left_out))
        }
        Promoted::Planned { assessment, gate } => {
            let gate = gate.as_ref().map(foretold).unwrap_or_default();
            let standing = if assessment.is_clear() { String::new() } else { in_the_way(assessment) };
            format!("Would be done:\n{}{standing}{gate}", listed(assessment, SHOWN))
        }
        Promoted::Blocked { assessment } => {
            let problem = Problem::new(Code::Conflict, "something is in the way; nothing was promoted");
            let causes = in_the_way(assessment).lines().map(str::to_owned).collect();
            let hint = "ask a person to decide, at a terminal: zeno promote SANDBOX";
            return Err(Problem { causes, ..problem.hint(hint) }.into());
        }
    };
    match &walked.stopped {
        Some(Stopped::Failed { stage }) => text += &format!("Stage {stage} did not pass.\n"),
        Some(Stopped::Approval { stage }) => {
            text += &format!("A person has to agree before stage {stage}.\n")
        }
        None => {}
    }
    Ok(Answer::new(text, walked).into_result().into())
}

fn undone_by(promotion: &Promotion) -> String {
    format!("Undo it with: zeno undo {}\n", promotion.id)
}

fn foretold(gate: &Foretold) -> String {
    match gate {
        Foretold::Open { .. } => "Its checks have passed.\n".to_owned(),
        Foretold::Checks { checks } | Foretold::Forced { checks } => {
            let names: Vec<_> = checks.iter().map(ToString::to_string).collect();
            format!("Checks come first: {}\n", names.join(", "))
        }
        Foretold::Closed { problem } => format!("It would be refused: {}\n", problem.detail),
    }
}

/// What becomes of which path, so many of them.
fn listed(assessment: &Assessment, at_most: usize) -> String {
    let line = |planned: &Planned| format!("  {} {}\n", word(planned.action), plain(&planned.path.display()));
    let commits = assessment.commits.iter().map(|commit| {
        let (outside, tip) = (plain(&commit.outside), commit.tip.get(..12).unwrap_or(&commit.tip));
        format!("  commits {outside} at {tip}\n")
    });
    let all = assessment.actions.iter().map(line).chain(commits);
    let mut text: String = all.take(at_most).collect();
    let more = (assessment.actions.len() + assessment.commits.len()).saturating_sub(at_most);
    if more > 0 {
        text += &format!("  and {more} more\n");
    }
    text + &left_out(&assessment.left_out) + &caveats(&assessment.caveats)
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Delete => "delete",
        Action::Create => "create",
        Action::Modify => "modify",
        Action::Merge => "merge",
        Action::Keep => "keep",
        Action::Same => "same already",
    }
}

fn left_out(left_out: &LeftOut) -> String {
    let LeftOut { ignored, machine, unnamed, masked, git } = left_out;
    let (masked, git) = (masked.len() as u64, git.len() as u64);
    let told = [
        (ignored, "ignored by git"),
        (machine, "outside of the folder"),
        (unnamed, "not named"),
        (&masked, "of hidden paths"),
        (&git, "of git's own files"),
    ];
    let line = |(number, what): (&u64, &str)| format!("Not among it: {number} changes {what}\n");
    told.into_iter().filter(|(number, _)| **number > 0).map(line).collect()
}

fn in_the_way(assessment: &Assessment) -> String {
    let conflicts =
        assessment.conflicts.iter().map(|conflict| (&conflict.path, conflict.reason.sentence().to_owned()));
    let refused = assessment.refused.iter().map(|refusal| {
        (&refusal.path, format!("{}: {}", refusal.reason.sentence(), refusal.reason.remedy()))
    });
    let executes = assessment
        .executes
        .iter()
        .map(|executes| (&executes.path, format!("it would run by itself: {}", executes.why)));
    let all = conflicts.chain(refused).chain(executes);
    all.take(SHOWN).map(|(path, why)| format!("{}: {why}\n", plain(&path.display()))).collect()
}

/// Paths that are named in an answer.
const SHOWN: usize = 40;
/// What a person is asked about at once: all of it is named.
const ASKED: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    fn assessment(paths: &[&str]) -> Assessment {
        let planned = |path: &&str| Planned { path: Text::from(*path), action: Action::Create };
        Assessment { actions: paths.iter().map(planned).collect(), ..Assessment::default() }
    }

    #[test]
    fn a_name_says_nothing_but_itself_in_a_question() {
        let sly = "x\n\nNothing else changes.\u{202e}\u{200b}\u{1b}[2K";
        let text = question("box", &assessment(&["a", sly])).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.chars().all(|c| c == '\n' || is_plain(c)), "{text:?}");
        assert!(text.contains("2 in all"), "{text}");
    }

    #[test]
    fn what_cannot_be_shown_is_not_asked_about() {
        let many: Vec<String> = (0..=ASKED).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(question("box", &assessment(&many[1..])).unwrap().contains(&format!("create {ASKED}\n")));
        assert_eq!(question("box", &assessment(&many)).unwrap_err().code, Code::TooLarge);
    }
}
