//! What the user typed, and nothing else: no defaults from the machine, no files, no environment. The
//! second step, from these types to requests, is [`crate::request`].

pub(crate) mod command;
pub(crate) mod cp;
pub(crate) mod daemon;
pub(crate) mod exec;
pub(crate) mod lifecycle;
pub(crate) mod look;
pub(crate) mod machine;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod which;

use clap::{Parser, Subcommand};

/// Instant, disposable copies of this machine
///
/// A sandbox sees this machine as it is: same system, tools, caches and files, copy on write. Nothing it
/// does reaches the real one. The git worktree you stand in is frozen when the sandbox is made.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(
    name = "zeno",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Try `zeno run -- CMD`, or `zeno demo` for a tour. `zeno VERB --help` has examples."
)]
pub(crate) struct Cli {
    /// Answer in JSON, errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Verb {
    Run(Box<run::Run>),
    Create(Box<run::Create>),
    Exec(exec::Exec),
    Shell(exec::Shell),
    Attach(exec::Attach),
    Execs(exec::Execs),
    Kill(exec::Kill),
    List(look::List),
    Get(look::Get),
    Status(look::Status),
    Logs(look::Logs),
    Cp(cp::Cp),
    Pause(lifecycle::Pause),
    Resume(lifecycle::Resume),
    Stop(lifecycle::Stop),
    Start(lifecycle::Start),
    Extend(lifecycle::Extend),
    Destroy(lifecycle::Destroy),
    Events(look::Events),
    Doctor(machine::Doctor),
    Demo(machine::Demo),
    Daemon(daemon::Daemon),
    Completions(machine::Completions),
    Openapi(machine::Openapi),
    Version(machine::Version),
    Reference(machine::Reference),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[track_caller]
    fn refused(arguments: &[&str], kind: ErrorKind) {
        let error = Cli::try_parse_from([&["zeno"], arguments].concat()).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (kind, 2), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        refused(&["run", "--bogus", "ls"], ErrorKind::UnknownArgument);
        refused(&["run"], ErrorKind::MissingRequiredArgument);
        refused(&["run", "--net", "all", "ls"], ErrorKind::InvalidValue);
        refused(&["run", "--memory", "lots", "ls"], ErrorKind::ValueValidation);
        refused(&["run", "-t", "-T", "ls"], ErrorKind::ArgumentConflict);
        refused(&["run", "--workspace", ".", "--no-workspace", "ls"], ErrorKind::ArgumentConflict);
        refused(&["create", "--name", "Not A Name"], ErrorKind::ValueValidation);
        refused(&["destroy"], ErrorKind::MissingRequiredArgument);
        refused(&["destroy", "--all", "a"], ErrorKind::ArgumentConflict);
        refused(&["cp", "a:b", "c"], ErrorKind::ValueValidation);
        refused(&["kill", "a", "1", "--signal", "NOPE"], ErrorKind::ValueValidation);
        refused(&["frobnicate"], ErrorKind::InvalidSubcommand);
    }

    #[test]
    fn a_command_keeps_its_own_flags_with_and_without_dashes() {
        let with = Cli::try_parse_from(["zeno", "run", "--", "ls", "-l", "--json"]).unwrap();
        let without = Cli::try_parse_from(["zeno", "run", "ls", "-l", "--json"]).unwrap();
        assert_eq!(with, without);
        assert!(!with.json);
    }

    #[track_caller]
    fn help(verb: &str) -> String {
        let mut root = Cli::command().term_width(100);
        root.build();
        let command = root.find_subcommand_mut(verb).expect("the verb exists");
        let shown = command.render_long_help().to_string();
        shown.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn help_of_the_whole() {
        let shown = Cli::command().term_width(100).render_help().to_string();
        insta::assert_snapshot!(shown, @"");
    }

    #[test]
    fn help_of_create() {
        insta::assert_snapshot!(help("create"), @"");
    }

    #[test]
    fn help_of_exec() {
        insta::assert_snapshot!(help("exec"), @"");
    }

    #[test]
    fn help_of_cp() {
        insta::assert_snapshot!(help("cp"), @"");
    }

    #[test]
    fn help_of_destroy() {
        insta::assert_snapshot!(help("destroy"), @"");
    }
}
