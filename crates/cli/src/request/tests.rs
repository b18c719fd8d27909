//! What is typed against what is asked, whole values on both sides.

use clap::Parser;
use model::exec::Context;
use model::limits::OnExpire;
use model::net::Net;
use model::sandbox::Actor;
use model::units::{Cpus, Size, Span};

use super::*;
use crate::args::{Cli, Verb};

fn variable(name: &str, value: &str) -> Variable {
    Variable { name: name.into(), value: value.into() }
}

fn caller() -> Caller {
    let env =
        vec![variable("PATH", "/bin"), variable("TERM", "xterm"), variable("SSH_AUTH_SOCK", "/run/agent")];
    Caller { env, cwd: "/src/app".into(), umask: Some(0o022), actor: Actor::Adm }
}

fn context() -> Context {
    Context {
        env: vec![variable("PATH", "/bin"), variable("TERM", "xterm")],
        cwd: "/src/app".into(),
        umask: Some(0o022),
        user: None,
    }
}

const WINDOW: Window = Window { rows: 50, columns: 132 };
const AT_A_TERMINAL: Terminals = Terminals { stdin: Input::Terminal, stdout: true, window: Some(WINDOW) };
const IN_A_PIPE: Terminals = Terminals { stdin: Input::Stream, stdout: false, window: None };
const FROM_NOTHING: Terminals = Terminals { stdin: Input::Null, stdout: true, window: Some(WINDOW) };
const INTO_A_PIPE: Terminals = Terminals { stdin: Input::Terminal, stdout: false, window: Some(WINDOW) };

#[track_caller]
fn typed(line: &str) -> Verb {
    let words = std::iter::once("zeno").chain(line.split_whitespace());
    Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).verb
}

#[track_caller]
fn run_of(line: &str, terminals: Terminals) -> RunRequest {
    match typed(line) {
        Verb::Run(typed) => run(&typed, &caller(), terminals).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn plain(argv: &[&str]) -> RunRequest {
    RunRequest {
        create: CreateRequest { context: context(), actor: Actor::Adm, ..CreateRequest::default() },
        exec: ExecRequest {
            argv: argv.iter().map(|word| Text::from(*word)).collect(),
            stdin: true,
            ..ExecRequest::default()
        },
        keep: false,
    }
}

#[test]
fn a_plain_run() {
    assert_eq!(run_of("run -- ls -l", IN_A_PIPE), plain(&["ls", "-l"]));
}

#[test]
fn every_flag_of_run() {
    let asked = run_of(
        "run --keep --name try -w sub -e A=1 -e SSH_AUTH_SOCK -e NOT_SET -u 1000:1000 --net host --cpus 1.5 \
         --memory 2G --pids 100 --disk 4G --timeout 5m --ttl 2h --idle 10m --on-expire destroy --best-effort \
         --unmask ~/.npmrc --nested --workspace / --output-limit 1M --label a=b --label c= --actor agt \
         --consumer ci make",
        IN_A_PIPE,
    );
    let expected = RunRequest {
        create: CreateRequest {
            name: Some("try".parse().unwrap()),
            workspace: WorkspaceChoice::Folder("/".into()),
            net: Net::Host,
            limits: Limits {
                cpus: Some(Cpus(1500)),
                memory: Some(Size(2 << 30)),
                pids: Some(100),
                disk: Some(Size(4 << 30)),
                ttl: Some(Span::from_secs(7200)),
                idle: Some(Span::from_secs(600)),
                on_expire: Some(OnExpire::Destroy),
                best_effort: true,
            },
            unmask: vec!["~/.npmrc".to_owned()],
            secrets: Vec::new(),
            nested: true,
            account: None,
            context: context(),
            labels: [("a", "b"), ("c", "")].map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            actor: Actor::Agt,
            consumer: Some("ci".to_owned()),
        },
        exec: ExecRequest {
            argv: vec!["make".into()],
            // A name the caller does not have is left out; a masked one that is named is handed on.
            env: vec![variable("A", "1"), variable("SSH_AUTH_SOCK", "/run/agent")],
            cwd: Some("/src/app/sub".into()),
            user: Some("1000:1000".to_owned()),
            umask: None,
            tty: None,
            stdin: true,
            timeout: Some(Span::from_secs(300)),
            output_limit: Some(Size(1 << 20)),
        },
        keep: true,
    };
    assert_eq!(asked, expected);
}

#[test]
fn a_terminal_is_used_when_both_ends_are_one() {
    let streams = |line, terminals| {
        let exec = run_of(line, terminals).exec;
        Streams { tty: exec.tty, stdin: exec.stdin }
    };
    let on_tty = Streams { tty: Some(WINDOW), stdin: true };
    assert_eq!(streams("run sh", AT_A_TERMINAL), on_tty);
    assert_eq!(streams("run -T sh", AT_A_TERMINAL), Streams { tty: None, stdin: false });
    assert_eq!(streams("run -T -i sh", AT_A_TERMINAL), Streams { tty: None, stdin: true });
    assert_eq!(streams("run sh", INTO_A_PIPE), Streams { tty: None, stdin: false });
    assert_eq!(streams("run -t sh", INTO_A_PIPE), on_tty);
    assert_eq!(streams("run sh", IN_A_PIPE), Streams { tty: None, stdin: true });
    assert_eq!(streams("run sh", FROM_NOTHING), Streams { tty: None, stdin: false });
    let unseen = Streams { tty: Some(Terminals::DEFAULT_WINDOW), stdin: true };
    assert_eq!(streams("run -t sh", IN_A_PIPE), unseen);
    assert_eq!(streams("run -d sh", AT_A_TERMINAL), Streams { tty: None, stdin: false });
}

#[test]
fn on_a_terminal_its_kind_travels_along() {
    assert_eq!(run_of("run sh", AT_A_TERMINAL).exec.env, [variable("TERM", "xterm")]);
}

#[test]
fn a_detached_run_is_kept() {
    assert!(run_of("run -d sh", IN_A_PIPE).keep);
}

#[test]
fn what_create_is_given_holds_for_the_whole_sandbox() {
    let Verb::Create(typed) = typed("create -e PATH=/opt -w /srv -u web --no-workspace") else { panic!() };
    let expected = CreateRequest {
        workspace: WorkspaceChoice::None,
        context: Context {
            env: vec![variable("TERM", "xterm"), variable("PATH", "/opt")],
            cwd: "/srv".into(),
            umask: Some(0o022),
            user: Some("web".to_owned()),
        },
        actor: Actor::Adm,
        ..CreateRequest::default()
    };
    assert_eq!(create(&typed, &caller()).unwrap(), expected);
}

#[test]
fn a_workspace_that_is_not_there_is_named() {
    let Verb::Create(typed) = typed("create --workspace /no/such/folder") else { panic!() };
    let problem = create(&typed, &caller()).unwrap_err().problem();
    assert_eq!(problem.detail, "cannot use `/no/such/folder` as the workspace");
}

#[test]
fn a_relative_folder_of_exec_lies_below_the_sandboxs_own() {
    let Verb::Exec(typed) = typed("exec web -w sub -- ls") else { panic!() };
    let streams = Streams { tty: None, stdin: false };
    let asked = exec(&typed.command, &caller(), Some(&"/data".into()), streams);
    let expected =
        ExecRequest { argv: vec!["ls".into()], cwd: Some("/data/sub".into()), ..ExecRequest::default() };
    assert_eq!(asked, expected);
}

#[test]
fn a_shell_is_a_login_shell_on_a_terminal() {
    let Verb::Shell(typed) = typed("shell web") else { panic!() };
    let asked = shell(&typed.context, "/bin/zsh".into(), &caller(), None, AT_A_TERMINAL);
    let expected = ExecRequest {
        argv: vec!["/bin/zsh".into(), "-l".into()],
        env: vec![variable("TERM", "xterm")],
        tty: Some(WINDOW),
        stdin: true,
        ..ExecRequest::default()
    };
    assert_eq!(asked, expected);
}
