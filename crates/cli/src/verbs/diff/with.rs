//! `zeno diff A B`: what it takes to make the second of the first.

use model::diff::{Between, Detail};

use super::meant::{Asked, Other};
use super::{detail, look, pass_on, shown, tell_beyond};
use crate::api::Api;
use crate::args::diff::Diff;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::progress::Waiting;
use crate::render::diff::{Look, Names};
use crate::render::paint::Paint;
use crate::render::words::count;

pub(super) async fn compare(
    api: &Api,
    typed: &Diff,
    asked: &Asked,
    named: &Other,
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let (one, other, paths, from) = (&asked.one, &named.which, &asked.paths, typed.from.as_ref());
    if typed.form.patch {
        let asked = api.patch_between(one, other, from, paths);
        pass_on(Waiting::begin("comparing").watch(asked).await?).await?;
        let between = api.between(one, other, from, paths, Detail::Paths).await?;
        return Ok(tell_beyond(&between.diff, typed));
    }
    let asked = api.between(one, other, from, paths, detail(typed));
    let between = Waiting::begin("comparing").watch(asked).await?;
    let (one, other) = (typed.sandbox.to_string(), named.called.to_string());
    invocation.answer(&between, |paint| {
        let names = Some(Names { one: &one, other: &other });
        render(&between, typed, Look { names, ..look(typed, invocation, paint) })
    })?;
    if invocation.form == Form::People {
        if between.diff.is_empty() {
            output::note(&format!("`{one}` and `{other}` do not differ\n"));
        }
        if between.apart {
            output::note(
                "they started from different states of the workspace: only what one of them changed is compared\n",
            );
        }
    }
    Ok(DONE)
}

fn render(between: &Between, typed: &Diff, look: Look<'_>) -> String {
    let text = shown(&between.diff, typed, look);
    if typed.form.name_status { text } else { text + &alike(between.same, look.paint) }
}

fn alike(same: u64, paint: Paint) -> String {
    match same {
        0 => String::new(),
        same => format!(
            "{}  {} that both changed to the same\n",
            paint.bold("alike"),
            count(same, "file", "files")
        ),
    }
}
