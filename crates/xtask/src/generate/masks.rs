//! docs/masks.md: what a sandbox is not shown, and why.

use model::mask::Masks;

use super::table::{NOTICE, table};

pub(super) fn page() -> String {
    let masks = Masks::built_in();
    let paths = masks.paths.iter().map(|mask| [format!("`{}`", mask.path), mask.reason.clone()]);
    let names = masks.workspace.iter().map(|mask| [format!("`{}`", mask.name), mask.reason.clone()]);
    let variables = masks.environment.iter().map(|mask| [format!("`{}`", mask.name), mask.reason.clone()]);
    let mut text = format!("{NOTICE}# What a sandbox is not shown\n\n");
    text += "`zeno status` lists what was hidden; `--unmask` shows a path all the same. Masked paths are never promoted.\n\n";
    text += "## Paths\n\n`~` is the caller's home.\n\n";
    text += &table(["path", "reason"], paths);
    text += "\n## Files in the workspace\n\nHidden where git does not track them. `*` stands for any characters.\n\n";
    text += &table(["name", "reason"], names);
    text += "\n## Environment variables\n\nNot handed on.\n\n";
    text += &table(["name", "reason"], variables);
    text
}
