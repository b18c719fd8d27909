//! What the gateway costs: a service of this machine, reached by the same client from inside a sandbox (as `host`) and
//! without one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use super::client::Client;
use super::contenders;
use crate::bench::report::{Bar, Contender, Direction, Row, Series, Unit};
use crate::bench::sample::{Lane, interleave};
use crate::bench::stats::Summary;
use crate::bench::{Bench, BenchError, Effort};
use crate::rig::{RigError, Stage, proc};

pub(super) const SPEED: &str = "gateway-speed";
pub(super) const LATENCY: &str = "gateway-latency";
pub(super) const MANY: &str = "gateway-many";
pub(super) const MEMORY: &str = "gateway-memory";

const CLIENT: &str = include_str!("gateway.py");
const MEBIBYTE: u64 = 1 << 20;
const GIBIBYTE: u64 = 1 << 30;
const AT_ONCE: u64 = 1000;

/// How long a long download takes.
pub(super) fn speed(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let bytes = if bench.effort == Effort::Quick { 256 * MEBIBYTE } else { GIBIBYTE };
    let (stage, service) = (Stage::new(&bench.rig)?, Service::start()?);
    let series = beside(SPEED, &stage, service, bench.effort.rounds(30), &format!("download {bytes}"))?;
    // Of the same work: half the time is twice the throughput.
    let throughput = 1.0 / series[0].ratio_to(&series[1]).median;
    let bars = vec![Bar::new("throughput at least 0.7 of direct", Direction::AtLeast, 0.7, throughput)];
    let title =
        format!("{} from a service of this machine, one connection", model::units::Size(bytes).rough());
    Ok(vec![row(SPEED, title, &series, bars)])
}

/// How long it takes to connect and to hear the first byte.
pub(super) fn latency(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let (stage, service) = (Stage::new(&bench.rig)?, Service::start()?);
    let series = beside(LATENCY, &stage, service, bench.effort.rounds(300), "connect")?;
    let added = series[0].summary().median.median - series[1].summary().median.median;
    let bars = vec![Bar::at_most("adds at most 1 ms to a connection", 1.0, added * 1e3)];
    let title = "a new connection to a service of this machine, to its first byte".to_owned();
    Ok(vec![row(LATENCY, title, &series, bars)])
}

/// As many connections at once, each heard from while all are open.
pub(super) fn many(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let (stage, service) = (Stage::new(&bench.rig)?, Service::start()?);
    let series = beside(MANY, &stage, service, bench.effort.rounds(10), &format!("many {AT_ONCE}"))?;
    let title = format!("{AT_ONCE} connections open at once, each with an answer");
    // No bar: the client says so if one fails, and then there is no figure that could miss one.
    let mut row = row(MANY, title, &series, Vec::new());
    row.notes
        .push("all of them succeeded in every round; where one fails, the row is not measured".to_owned());
    Ok(vec![row])
}

/// What the daemon holds after it has passed on much more than it could.
pub(super) fn memory(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let bytes = match bench.effort {
        Effort::Quick => GIBIBYTE,
        Effort::Usual => 2 * GIBIBYTE,
        Effort::Full => 10 * GIBIBYTE,
    };
    let (stage, service) = (Stage::new(&bench.rig)?, Service::start()?);
    let mut inside = inside(&stage, service)?;
    // What is taken once and kept is not growth.
    inside.measure(&format!("download {}", 64 * MEBIBYTE))?;
    let daemon = stage.zeno.daemon()?;
    let before = proc::pss(daemon)?;
    inside.measure(&format!("download {bytes}"))?;
    let grown = proc::pss(daemon)?.saturating_sub(before) as f64;
    let of = |label: &str, value: f64| Contender::Measured {
        label: label.to_owned(),
        wall: Summary::of(&[value]),
        cpu: None,
        ratio: None,
    };
    let size = model::units::Size(bytes).rough();
    Ok(vec![Row {
        name: MEMORY.to_owned(),
        title: format!("PSS of the daemon that has passed on {size}"),
        unit: Unit::Bytes,
        contenders: vec![of("growth", grown), of("before", before as f64)],
        bars: vec![Bar::at_most("flat: grows by at most 16 MiB", 16.0, grown / MEBIBYTE as f64)],
        notes: Vec::new(),
    }])
}

/// From inside, and without a sandbox.
fn beside(
    name: &str,
    stage: &Stage,
    service: Service,
    rounds: usize,
    order: &str,
) -> Result<Vec<Series>, BenchError> {
    let mut inside = inside(stage, service)?;
    let mut direct = direct(service)?;
    inside.measure(order)?;
    direct.measure(order)?;
    let mut lanes = [
        Lane::new("through the gateway", || inside.measure(order)),
        Lane::new("direct", || direct.measure(order)),
    ];
    let before = stage.zeno.cpu()?;
    let mut series = interleave(name, rounds, &mut lanes)?;
    let ours = series.remove(0).with_daemon_cpu(stage.zeno.cpu()?.since(&before));
    series.insert(0, ours);
    Ok(series)
}

fn row(name: &str, title: String, series: &[Series], bars: Vec<Bar>) -> Row {
    let notes =
        vec!["one client in Python inside, the same without a sandbox; the client takes the time".to_owned()];
    let contenders = contenders(series, &[]);
    Row { name: name.to_owned(), title, unit: Unit::Seconds, contenders, bars, notes }
}

/// On loopback, for as long as this process lives: says a byte, and then as many as it is asked for.
#[derive(Clone, Copy, Debug)]
struct Service {
    port: u16,
}

impl Service {
    fn start() -> Result<Self, BenchError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(RigError::Talk)?;
        // Its usual queue is too short for a thousand who come at once, and then they wait for a second.
        rustix::net::listen(&listener, 4096).map_err(|errno| RigError::Talk(errno.into()))?;
        let port = listener.local_addr().map_err(RigError::Talk)?.port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => drop(thread::spawn(move || serve(stream))),
                    Err(error) => eprintln!("the service of the benchmark: {error}"),
                }
            }
        });
        Ok(Self { port })
    }
}

/// A client that goes away has had enough.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(b"!")?;
    let mut wanted = [0; 8];
    stream.read_exact(&mut wanted)?;
    let mut left = u64::from_be_bytes(wanted);
    let block = vec![0; 256 << 10];
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        stream.write_all(&block[..length])?;
        left -= length as u64;
    }
    Ok(())
}

fn inside(stage: &Stage, service: Service) -> Result<Client, BenchError> {
    let (net, port) = (format!("allow:host:{}", service.port), service.port.to_string());
    let mut command = stage.zeno.command();
    command.args([
        "run",
        "-i",
        "--no-workspace",
        "--net",
        &net,
        "--",
        "python3",
        "-c",
        CLIENT,
        "host",
        &port,
    ]);
    Client::start(command)
}

fn direct(service: Service) -> Result<Client, BenchError> {
    let mut command = Command::new("python3");
    command.args(["-c", CLIENT, "127.0.0.1", &service.port.to_string()]);
    Client::start(command)
}
