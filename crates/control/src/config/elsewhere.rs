//! Who else asks something of what is promoted: worktrees that the sandbox was not made of.
//!
//! A sandbox's own workspace has its checks run on the sandbox. What goes anywhere else (named with `--paths`, in a repository
//! within the workspace, or around it) would pass by the checks and the approval that are declared there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model::config::{Approval, Config, FILE};
use model::promotion::{Action, Assessment, Plan};
use model::{Code, Name, Problem};

use super::{ConfigError, load};

/// A file that asks something of what is promoted, and cannot be heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The folder that `zeno.yaml` lies in.
    pub root: PathBuf,
    /// The first path that would be promoted there.
    pub path: PathBuf,
    pub checks: Vec<Name>,
    /// Does a person have to agree before anything is applied?
    pub approval: bool,
}

/// The first folder, other than the workspace itself, that asks something of what would be promoted into it.
pub fn elsewhere(assessment: &Assessment) -> Result<Option<Elsewhere>, ConfigError> {
    let workspace = assessment.root.as_ref().map(|root| Path::new(root.as_os_str()));
    let mut roots: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
    let mut heard: BTreeSet<PathBuf> = workspace.map(Path::to_owned).into_iter().collect();
    for path in touched(assessment, workspace) {
        let folder = folder(&path);
        let root = roots.entry(folder).or_insert_with_key(|folder| root(folder));
        let Some(root) = root.as_ref().filter(|root| heard.insert((*root).clone())) else { continue };
        let Some(config) = load(root)? else { continue };
        let checks: Vec<Name> = config.checks.0.iter().map(|check| check.name.clone()).collect();
        let approval = asks_a_person(config);
        if approval || !checks.is_empty() {
            return Ok(Some(Elsewhere { root: root.clone(), path, checks, approval }));
        }
    }
    Ok(None)
}

impl Elsewhere {
    /// Why nothing is promoted there, and what to do.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let Self { root, path, checks, approval } = self;
        let names: Vec<_> = checks.iter().map(|name| format!("`{name}`")).collect();
        let mut asks = Vec::new();
        if !names.is_empty() {
            asks.push(format!("that {} pass", names.join(", ")));
        }
        if *approval {
            asks.push("that a person agrees".to_owned());
        }
        let (file, path) = (root.join(FILE), path.display());
        let asks = asks.join(" and ");
        let why = format!("`{}` asks {asks}, and the sandbox was not made of that worktree", file.display());
        Problem::new(Code::Refused, format!("`{path}` cannot be promoted: {why}"))
            .hint(format!("make the sandbox there: zeno create --workspace {}", root.display()))
            .hint("or promote it all the same, which is recorded: --force")
    }
}

/// What would not stay as it is, with absolute paths.
fn touched<'a>(
    assessment: &'a Assessment,
    workspace: Option<&'a Path>,
) -> impl Iterator<Item = PathBuf> + 'a {
    let touched = assessment.actions.iter().filter(|planned| match planned.action {
        Action::Delete | Action::Create | Action::Modify | Action::Merge => true,
        Action::Keep | Action::Same => false,
    });
    touched.map(move |planned| match (Path::new(planned.path.as_os_str()), workspace) {
        (path, Some(root)) if path == Path::new(".") => root.to_owned(),
        (path, Some(root)) => root.join(path),
        (path, None) => path.to_owned(),
    })
}

/// The nearest folder of a path that is there: the path itself, if it is one.
fn folder(path: &Path) -> PathBuf {
    let is_folder = |path: &&Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    path.ancestors().find(is_folder).unwrap_or(Path::new("/")).to_owned()
}

/// What would be the workspace of a sandbox made there: the worktree, or where there is none, the nearest folder above that
/// says something.
fn root(folder: &Path) -> Option<PathBuf> {
    let says = |folder: &&Path| folder.join(FILE).symlink_metadata().is_ok();
    engine::capture::worktree_around(folder).or_else(|| folder.ancestors().find(says).map(Path::to_owned))
}

fn asks_a_person(config: Config) -> bool {
    // The first of a plan is `local`, declared or not.
    let local = Plan::of(config).stages.into_iter().next();
    local.is_some_and(|local| matches!(local.approval, Some(Approval::Human)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::exec::Text;
    use model::promotion::Planned;

    use super::*;

    /// A worktree with what it says, a folder in it, another worktree in that, and a folder that is in none.
    struct Yard(tempfile::TempDir);

    impl Yard {
        fn new() -> Self {
            let yard = Self(tempfile::tempdir().unwrap());
            for place in ["outer/src", "outer/inner/src", "loose/deep"] {
                fs::create_dir_all(yard.path(place)).unwrap();
            }
            for place in ["outer", "outer/inner"] {
                fs::create_dir(yard.path(place).join(".git")).unwrap();
                fs::write(yard.path(place).join(".git/HEAD"), "").unwrap();
            }
            yard
        }

        fn path(&self, place: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(place)
        }

        fn says(&self, place: &str, text: &str) {
            fs::write(self.path(place).join(FILE), text).unwrap();
        }

        /// Whose word is missing where a path of this workspace is promoted.
        fn asked(&self, workspace: Option<&str>, path: &str, action: Action) -> Option<PathBuf> {
            let root = workspace.map(|place| Text::from(self.path(place)));
            let inside = workspace.and_then(|place| Path::new(path).strip_prefix(place).ok());
            let path = match inside {
                Some(inside) if inside.as_os_str().is_empty() => PathBuf::from("."),
                Some(inside) => inside.to_owned(),
                None => self.path(path),
            };
            let actions = vec![Planned { path: Text::from(path), action }];
            let found = elsewhere(&Assessment { root, actions, ..Assessment::default() }).unwrap();
            found.map(|found| found.root)
        }
    }

    #[test]
    fn whoever_declares_something_is_asked_whatever_the_sandbox_was_made_of() {
        let yard = Yard::new();
        yard.says("outer", "checks: {never: 'false'}\n");
        let asked = |workspace, path| yard.asked(workspace, path, Action::Modify);
        let outer = Some(yard.path("outer"));
        assert_eq!(asked(None, "outer/src/file"), outer);
        assert_eq!(asked(None, "outer/new/deep/file"), outer, "of what is not there yet");
        assert_eq!(asked(Some("outer/src"), "outer/src/file"), outer);
        assert_eq!(asked(Some("loose"), "outer/src/file"), outer);
        assert_eq!(asked(Some("outer"), "outer/src/file"), None, "its own are run");
        assert_eq!(asked(Some("outer"), "outer"), None);
        assert_eq!(asked(Some("outer"), "outer/inner/src/file"), None, "nothing is declared there");
        assert_eq!(asked(Some("outer"), "loose/file"), None);
        assert_eq!(yard.asked(None, "outer/file", Action::Keep), None, "nothing is promoted");
        yard.says("outer/inner", "promotion: {stages: [{name: local, approval: human}]}\n");
        assert_eq!(asked(Some("outer"), "outer/inner/src/file"), Some(yard.path("outer/inner")));
        yard.says("outer/inner", "promotion: {stages: [{name: staging, run: x, approval: human}]}\n");
        assert_eq!(asked(Some("outer"), "outer/inner/src/file"), None, "it is not `local` that asks");
        yard.says("loose", "checks: {never: 'false'}\n");
        assert_eq!(asked(None, "loose/deep/file"), Some(yard.path("loose")), "without git, too");
        assert_eq!(asked(Some("loose"), "loose/deep/file"), None);
    }

    #[test]
    fn what_is_asked_for_is_told_with_what_to_do() {
        let named = Elsewhere {
            root: "/r".into(),
            path: "/r/file".into(),
            checks: vec!["unit".parse().unwrap()],
            approval: true,
        };
        let problem = named.problem();
        let detail = "`/r/file` cannot be promoted: `/r/zeno.yaml` asks that `unit` pass and that a person agrees, and the \
                      sandbox was not made of that worktree";
        assert_eq!((problem.code, problem.detail.as_str()), (Code::Refused, detail));
        assert_eq!(problem.hints[0], "make the sandbox there: zeno create --workspace /r");
    }
}
