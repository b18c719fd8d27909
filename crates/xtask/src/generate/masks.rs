//! docs/masks.md: what a sandbox is not shown, and why.

use model::mask::{Masks, NameMask};

use super::table::{NOTICE, table};

pub(super) fn page() -> String {
    let masks = Masks::built_in();
    let paths = masks.paths.iter().map(|mask| [format!("`{}`", mask.path), mask.reason.clone()]);
    let names = masks.workspace.iter().map(|mask| [format!("`{}`", mask.name), mask.reason.clone()]);
    let variables = masks.environment.iter().map(|mask| [format!("`{}`", mask.name), mask.reason.clone()]);
    let mut text = format!("{NOTICE}# What a sandbox is not shown\n\n");
    text += "`zeno status` lists what was hidden; `--unmask` shows a path all the same. Masked paths are never promoted.\n\n";
    text += "## Paths\n\n`~` is every home that zeno can read: the caller's and, for root, everybody's. They are hidden in the\n\
             workspace as well, even if git tracks them. Not in the list: `~/.m2/settings.xml`, because Maven finds its mirrors\n\
             nowhere else; the master password for what is encrypted in it is.\n\n";
    text += &table(["path", "reason"], paths);
    text += &format!(
        "\n## Files in the workspace\n\nHidden where git does not track them. `*` stands for any characters. Folders that git \
         ignores are read live;\nin those, such names are looked for in the first {} levels, and among the first {} names. What \
         lies deeper is shown.\n\n",
        NameMask::LIVE_LEVELS,
        NameMask::LIVE_NAMES
    );
    text += &table(["name", "reason"], names);
    text += "\n## Environment variables\n\nNot handed on.\n\n";
    text += &table(["name", "reason"], variables);
    text
}
