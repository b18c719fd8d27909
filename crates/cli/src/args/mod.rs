//! What the user typed, and nothing else: no defaults from the machine, no files, no environment. The
//! second step, from these types to requests, is [`crate::request`].

pub(crate) mod command;
pub(crate) mod cp;
pub(crate) mod daemon;
pub(crate) mod diff;
pub(crate) mod exec;
pub(crate) mod given;
pub(crate) mod lifecycle;
pub(crate) mod look;
pub(crate) mod machine;
pub(crate) mod mcp;
pub(crate) mod net;
pub(crate) mod port;
pub(crate) mod promote;
pub(crate) mod race;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod snapshot;
pub(crate) mod trial;
pub(crate) mod verify;
pub(crate) mod which;

use std::ffi::OsString;

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
    Try(Box<trial::Trial>),
    Create(Box<run::Create>),
    Exec(exec::Exec),
    Shell(exec::Shell),
    Attach(exec::Attach),
    Execs(exec::Execs),
    Kill(exec::Kill),
    List(look::List),
    Get(look::Get),
    Status(look::Status),
    Diff(diff::Diff),
    Snapshot(snapshot::Snapshot),
    Snapshots(snapshot::Snapshots),
    Rollback(snapshot::Rollback),
    Restore(snapshot::Restore),
    Refresh(promote::Refresh),
    Fork(snapshot::Fork),
    Promote(promote::Promote),
    Promotions(promote::Promotions),
    Undo(promote::Undo),
    Verify(verify::Verify),
    Verdicts(verify::Verdicts),
    Race(Box<race::Race>),
    Races(race::Races),
    Logs(look::Logs),
    Cp(cp::Cp),
    Pause(lifecycle::Pause),
    Resume(lifecycle::Resume),
    Stop(lifecycle::Stop),
    Start(lifecycle::Start),
    Extend(lifecycle::Extend),
    Destroy(lifecycle::Destroy),
    Net(net::Net),
    Requests(net::Requests),
    Env(given::Env),
    Port(port::PortArgs),
    Ports(port::Ports),
    Events(look::Events),
    Gc(snapshot::Gc),
    Doctor(machine::Doctor),
    Demo(machine::Demo),
    Daemon(daemon::Daemon),
    Mcp(mcp::Mcp),
    Completions(machine::Completions),
    Openapi(machine::Openapi),
    Version(machine::Version),
    Reference(machine::Reference),
}

impl Cli {
    /// Reads the command line; ends the program with usage or help where it must.
    pub(crate) fn read() -> Self {
        Hot::understand(std::env::args_os()).unwrap_or_else(Self::parse)
    }
}

/// The verbs whose time people feel. To define all the others costs more than to parse.
#[derive(Parser)]
#[command(name = "zeno")]
struct Hot {
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: HotVerb,
}

#[derive(Subcommand)]
enum HotVerb {
    Run(Box<run::Run>),
    Exec(exec::Exec),
}

impl Hot {
    /// What it does not understand, mistakes among it, is for the whole definition.
    fn understand(words: impl Iterator<Item = OsString>) -> Option<Cli> {
        let words: Vec<_> = words.collect();
        if !["run", "exec"].iter().any(|hot| words.get(1).is_some_and(|verb| verb == hot)) {
            return None;
        }
        let Self { json, verb } = Self::try_parse_from(words).ok()?;
        Some(Cli {
            json,
            verb: match verb {
                HotVerb::Run(run) => Verb::Run(run),
                HotVerb::Exec(exec) => Verb::Exec(exec),
            },
        })
    }
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
        refused(&["run", "--net", "all", "ls"], ErrorKind::ValueValidation);
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

    #[test]
    fn the_short_way_reads_what_the_whole_definition_reads() {
        let hot = |line: &str| Hot::understand(format!("zeno {line}").split(' ').map(OsString::from));
        let whole = |line: &str| Cli::try_parse_from(format!("zeno {line}").split(' '));
        for line in [
            "run --memory 1G --json -- ls -l",
            "run true",
            "exec web -u root -- id --json",
            "exec --json a b",
        ] {
            assert_eq!(hot(line), Some(whole(line).unwrap()), "{line}");
        }
        for line in ["run", "run --bogus ls", "exec --help", "list", "--json run ls", "help run"] {
            assert_eq!(hot(line), None, "{line}");
        }
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
        insta::assert_snapshot!(shown, @"
        Instant, disposable copies of this machine

        Usage: zeno [OPTIONS] <COMMAND>

        Commands:
          run          Run a command in a throwaway copy of this machine
          try          Run a command in a sandbox, look at what it did, then decide
          create       Make a sandbox and print its name
          exec         Run a command in a sandbox
          shell        Open a shell in a sandbox
          attach       Join a running command
          execs        List the commands of a sandbox
          kill         Send a signal to a command
          list         List sandboxes [aliases: ls, ps]
          get          Print the record of a sandbox
          status       Show how a sandbox stands to the real machine
          diff         Show what a sandbox changed
          snapshot     Seal all that a sandbox has written, to come back to
          snapshots    List snapshots, or remove some
          rollback     Take a sandbox back to a snapshot
          restore      Make a new sandbox of a snapshot
          refresh      Bring a sandbox up to date with its workspace
          fork         Make new sandboxes of one, on all that it has written
          promote      Bring what a sandbox changed into reality, all or nothing
          promotions   List what was brought into reality, and how far it went out
          undo         Take a promotion back
          verify       Run checks on the state of a sandbox
          verdicts     List what checks said
          race         Try several things from one state, check each, and pick the best
          races        List what came of races
          logs         Print the output of a sandbox's commands
          cp           Copy files between this machine and a sandbox
          pause        Freeze every process of a sandbox
          resume       Let the processes of a paused sandbox go on
          stop         End every process of a sandbox, keep its files
          start        Start a stopped or expired sandbox again
          extend       Give a sandbox a new lifetime, counted from now
          destroy      Remove sandboxes and all they wrote [alias: rm]
          net          Show what a sandbox may reach, or change it while it runs
          requests     List what sandboxes tried to reach, and what became of it
          env          Show what a sandbox was given: variables, names, whom it trusts
          port         Reach a port of a sandbox from this machine
          ports        List the ports of sandboxes that are reached from this machine
          events       Print what happened to sandboxes
          gc           Remove what no sandbox and no snapshot needs any more
          doctor       Say what this machine can do for sandboxes
          demo         Show what zeno does, with real sandboxes on this machine
          daemon       Look at, start and stop the daemon
          mcp          Serve sandboxes as tools over MCP, on standard input and output
          completions  Print the completions of a shell
          openapi      Print the OpenAPI document of the HTTP API
          version      Print the version
          help         Print this message or the help of the given subcommand(s)

        Options:
              --json     Answer in JSON, errors too
          -h, --help     Print help (see more with '--help')
          -V, --version  Print version

        Try `zeno run -- CMD`, or `zeno demo` for a tour. `zeno VERB --help` has examples.
        ");
    }

    #[test]
    fn help_of_create() {
        insta::assert_snapshot!(help("create"), @"
        Make a sandbox and print its name

        Prints the name, or the id where it has none. What `-e`, `-w` and `-u` say holds for every command
        in it.

        Usage: zeno create [OPTIONS]

        Options:
              --json
                  Answer in JSON, errors too

          -h, --help
                  Print help (see a summary with '-h')

        Command:
          -w, --workdir <DIR>
                  Folder to start in

          -e, --env <K[=V]>
                  Set a variable, or hand on the caller's (repeatable)

          -u, --user <USER>
                  Become this user: name, uid or uid:gid

        Sandbox:
              --name <NAME>
                  Name of the sandbox

              --net <NET>
                  What it may reach: none, allow:NAME[:PORT],..., allow:registries, allow:NAME.zeno:PORT
                  (another sandbox of the workspace), open (all that is public), deny or host

              --secret <NAME@HOST,...>
                  Keep this variable outside: inside is a placeholder, and these hosts get your value
                  (repeatable)

              --workspace <DIR>
                  Freeze this folder instead of the git worktree around the current one

              --no-workspace
                  Freeze nothing: read everything live

              --unmask <PATH>
                  Show a masked path all the same (repeatable; `zeno status` lists them)

              --nested
                  Allow user namespaces inside (Chromium's own sandbox needs them)

              --label <KEY=VALUE>
                  Label it (repeatable)

              --actor <ACTOR>
                  Who asks: a person, an agent or automation; else ZENO_ACTOR, or what it looks like

                  [possible values: adm, agt, atm]

              --consumer <TEXT>
                  On whose behalf, in your own words

        Limits:
              --cpus <N>
                  Processors, for example 1.5

              --memory <SIZE>
                  Memory, for example 512MiB

              --pids <N>
                  Processes and threads at once

              --disk <SIZE>
                  What it may write to disk, for example 4G

              --ttl <TIME>
                  Lifetime, for example 2h

              --idle <TIME>
                  Lifetime after the last command ended

              --on-expire <ON_EXPIRE>
                  What happens at the end of its life

                  [possible values: stop, destroy]

              --best-effort
                  Accept limits that this machine cannot enforce; they become caveats

        Examples:
          zeno create --name web --ttl 2h
          sandbox=$(zeno create)
          zeno create --net host --label ticket=1234
        ");
    }

    #[test]
    fn help_of_exec() {
        insta::assert_snapshot!(help("exec"), @"
        Run a command in a sandbox

        Exits with the command's own code, as `zeno run` does. On a terminal, ctrl-p ctrl-q leaves it
        running: `zeno attach` comes back to it.

        Usage: zeno exec [OPTIONS] <SANDBOX> [--] <CMD>...

        Arguments:
          <SANDBOX>
                  Id or name of the sandbox

        Options:
          -d, --detach
                  Start the command, print its number and return

              --json
                  Answer in JSON, errors too

          -h, --help
                  Print help (see a summary with '-h')

        Command:
              --detach-keys <KEYS>
                  Keys that leave the terminal and let the command go on if its sandbox stays, or none

                  [default: ctrl-p,ctrl-q]

          -w, --workdir <DIR>
                  Folder to start in

          -e, --env <K[=V]>
                  Set a variable, or hand on the caller's (repeatable)

          -u, --user <USER>
                  Become this user: name, uid or uid:gid

          -i, --interactive
                  Hand on standard input, even from a terminal

          -t, --tty
                  Run on a terminal (done by itself when standard input and output are terminals)

          -T, --no-tty
                  Run on pipes, even at a terminal

              --timeout <TIME>
                  End the command, and all it started, after this time (exit code 124)

              --output-limit <SIZE>
                  End the command when it has written this much

          <CMD>...
                  The command and its arguments

        Examples:
          zeno exec web -- npm test
          zeno exec web -u postgres -- psql
          zeno exec web -d -- npm start
          tar c src | zeno exec web -w /tmp -- tar x
        ");
    }

    #[test]
    fn help_of_cp() {
        insta::assert_snapshot!(help("cp"), @"
        Copy files between this machine and a sandbox

        `SANDBOX:/PATH` is a place in a sandbox, `-` is standard input or output, anything else is a path on
        this machine (write `./a:b` for a name with a colon). Folders are copied with all they hold,
        permissions are kept. A folder that exists as DST takes SRC inside.

        Usage: zeno cp [OPTIONS] <SRC> <DST>

        Arguments:
          <SRC>
                  Where from

          <DST>
                  Where to

        Options:
              --json
                  Answer in JSON, errors too

          -u, --user <USER>
                  Act as this user in the sandbox: name, uid or uid:gid

          -h, --help
                  Print help (see a summary with '-h')

        Examples:
          zeno cp web:/etc/hosts .
          zeno cp -u root fixtures web:/srv
          echo hello | zeno cp - web:/tmp/greeting
          zeno cp web:/var/log/app.log - | less
          zeno cp web:/srv/data worker:/srv/data
        ");
    }

    #[test]
    fn help_of_destroy() {
        insta::assert_snapshot!(help("destroy"), @"
        Remove sandboxes and all they wrote

        Usage: zeno destroy [OPTIONS] [SANDBOX]...

        Arguments:
          [SANDBOX]...
                  Ids or names

        Options:
              --all
                  Remove every sandbox

              --json
                  Answer in JSON, errors too

          -y, --yes
                  Do not ask

          -h, --help
                  Print help (see a summary with '-h')

        Examples:
          zeno destroy web
          zeno destroy $(zeno list -q)
          zeno destroy --all --yes
        ");
    }
}
