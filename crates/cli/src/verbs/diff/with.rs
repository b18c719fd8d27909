//! `zeno diff A --with B`: what two sandboxes did differently.

use model::diff::Between;
use model::exec::Text;

use crate::api::Api;
use crate::args::diff::Diff;
use crate::args::which::Which;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::words::{clean, count};

pub(super) async fn compare(
    api: &Api,
    typed: &Diff,
    other: &Which,
    paths: &[Vec<u8>],
    invocation: &Invocation,
) -> Result<u8, Failure> {
    let asked = api.between(&typed.sandbox, other, typed.from.as_ref(), paths);
    let between = Waiting::begin("comparing").watch(asked).await?;
    invocation.answer(&between, |_| render(&between, &typed.sandbox.to_string(), &other.to_string()))?;
    Ok(DONE)
}

fn render(between: &Between, one: &str, other: &str) -> String {
    let lines = |word: &str, files: &[Text]| -> String {
        files.iter().map(|file| format!("{word}  {}\n", clean(&file.display()))).collect()
    };
    let width = one.len().max(other.len()) + 5;
    let only = |name: &str| format!("{:width$}", format!("only {name}"));
    lines(&format!("{:width$}", "different"), &between.different)
        + &lines(&only(one), &between.one)
        + &lines(&only(other), &between.other)
        + &format!("{} changed alike\n", count(between.same, "file", "files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_alike_and_differently() {
        let texts = |names: &[&str]| names.iter().map(|name| Text::from(*name)).collect();
        let between =
            Between { one: texts(&["a"]), other: texts(&["d"]), different: texts(&["b c"]), same: 1 };
        insta::assert_snapshot!(render(&between, "first", "web"), @"
        different   b c
        only first  a
        only web    d
        1 file changed alike
        ");
    }
}
