//! `zeno net` and `zeno requests`.

use jiff::Timestamp;
use model::net::{Net, Otherwise, Secret, Verdict};
use model::request::{Protocol, Request};

use super::http;
use super::paint::Paint;
use super::table::table;
use super::words::{age, clean, took};

/// What a sandbox may reach, a rule a line, in the order in which they are asked.
pub(crate) fn net(net: &Net, paint: Paint) -> String {
    let policy = match net {
        Net::None => return "none: it reaches nothing\n".to_owned(),
        Net::Host => return "host: it reaches all that this machine reaches, unrecorded\n".to_owned(),
        Net::Gateway(policy) => policy,
    };
    let secret = |secret: &Secret| {
        let hosts: Vec<String> = secret.hosts.iter().map(ToString::to_string).collect();
        format!("{}  {} for {}\n", paint.dim("secret"), secret.name, hosts.join(", "))
    };
    let secrets = policy.secrets.iter().map(secret).collect::<String>();
    let rules = policy.rules.iter().map(|rule| {
        let text = rule.to_string();
        format!("{}  {}\n", verdict(rule.verdict, paint), text.trim_start_matches('!'))
    });
    let everything = if policy.rules.is_empty() { "everything" } else { "everything else" };
    let rest = match policy.otherwise {
        Otherwise::Deny => format!("{}  {everything}\n", verdict(Verdict::Deny, paint)),
        Otherwise::Public => format!("{}  {everything} that is public\n", verdict(Verdict::Allow, paint)),
    };
    rules.collect::<String>() + &rest + &secrets
}

/// What was denied last, if anything was.
pub(crate) fn denied(requests: &[Request], now: Timestamp, paint: Paint) -> String {
    if requests.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", paint.dim("denied last:"), list(requests, now, paint))
}

pub(crate) fn list(requests: &[Request], now: Timestamp, paint: Paint) -> String {
    let rows: Vec<[String; 8]> = requests
        .iter()
        .map(|request| {
            [
                request.id.to_string(),
                age(request.time, now),
                sandbox(request),
                request.protocol.to_string(),
                destination(request),
                verdict(request.verdict, Paint::Plain).trim_end().to_owned(),
                process(request),
                outcome(request),
            ]
        })
        .collect();
    table(["ID", "AGE", "SANDBOX", "KIND", "TO", "VERDICT", "BY", "HOW"], &rows, paint)
}

/// One line, as it happens.
pub(crate) fn line(request: &Request, paint: Paint) -> String {
    let number = paint.dim(&format!("{:>5}", request.id));
    let time = paint.dim(&request.time.strftime("%H:%M:%S").to_string());
    let (protocol, sandbox, by) = (request.protocol.as_str(), sandbox(request), process(request));
    let verdict = verdict(request.verdict, paint);
    // Told when it begins, by which rule, and again when it has ended.
    let how = if request.is_open() { clean(&request.rule).into_owned() } else { outcome(request) };
    format!("{number}  {time}  {sandbox:14}  {verdict}  {protocol:5} {}  {by}  {how}\n", destination(request))
}

/// All that is known of one.
pub(crate) fn request(request: &Request, paint: Paint) -> String {
    let mut fields = vec![
        ("time", request.time.to_string()),
        ("sandbox", sandbox(request)),
        ("kind", request.protocol.to_string()),
        ("to", destination(request)),
        ("verdict", verdict(request.verdict, paint).trim_end().to_owned()),
        ("rule", clean(&request.rule).into_owned()),
        ("by", process(request)),
    ];
    fields.extend(request.address.map(|address| ("address", address.to_string())));
    match &request.end {
        Some(end) => {
            if request.protocol != Protocol::Dns {
                fields.push(("sent", format!("{} bytes", end.sent)));
                fields.push(("received", format!("{} bytes", end.received)));
            }
            fields.push(("took", took(end.milliseconds)));
            fields.extend(end.error.as_ref().map(|error| ("error", clean(error).into_owned())));
        }
        None if request.verdict == Verdict::Allow => fields.push(("took", "goes on".to_owned())),
        None => {}
    }
    fields.extend(request.connection.map(|id| ("over", format!("connection {id}"))));
    let fields = fields.iter().map(|(name, value)| format!("{}  {value}\n", paint.dim(&format!("{name:8}"))));
    let exchange = request.http.as_deref().map(|http| http::exchange(http, paint));
    fields.chain(exchange).collect()
}

fn verdict(verdict: Verdict, paint: Paint) -> String {
    match verdict {
        Verdict::Allow => paint.green("allow"),
        Verdict::Deny => paint.red("deny "),
    }
}

fn sandbox(request: &Request) -> String {
    request.sandbox_name.as_ref().map_or_else(|| request.sandbox.to_string(), ToString::to_string)
}

fn destination(request: &Request) -> String {
    if let Some(http) = &request.http {
        return http::address(http);
    }
    let address = || request.address.map(|address| address.to_string());
    let name = request
        .name
        .as_deref()
        .map(|name| clean(name).into_owned())
        .or_else(address)
        .unwrap_or_else(|| "-".to_owned());
    match request.port {
        Some(port) if name.contains(':') => format!("[{name}]:{port}"),
        Some(port) => format!("{name}:{port}"),
        None => name,
    }
}

fn process(request: &Request) -> String {
    request
        .process
        .as_ref()
        .map_or_else(|| "-".to_owned(), |who| format!("{}[{}]", clean(&who.name), who.pid))
}

fn outcome(request: &Request) -> String {
    match (&request.end, request.verdict) {
        (Some(end), Verdict::Allow) => match &end.error {
            Some(error) => clean(error).into_owned(),
            None if request.protocol == Protocol::Dns => {
                format!("asked for outside, {}", took(end.milliseconds))
            }
            None => {
                let status = request.http.as_ref().and_then(|http| http.status);
                let status = status.map(|status| format!("{status}, ")).unwrap_or_default();
                format!("{status}{} out, {} in, {}", end.sent, end.received, took(end.milliseconds))
            }
        },
        (None, Verdict::Allow) => "goes on".to_owned(),
        (_, Verdict::Deny) => clean(&request.rule).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use model::request::{End, Process};

    use super::*;
    use crate::render::samples;

    fn sample() -> Request {
        Request {
            id: 17,
            time: samples::now(),
            sandbox: samples::sandbox().id,
            sandbox_name: samples::sandbox().name,
            protocol: Protocol::Tcp,
            name: Some("github.com".to_owned()),
            address: Some("140.82.121.4".parse().unwrap()),
            port: Some(443),
            verdict: Verdict::Allow,
            rule: "github.com".to_owned(),
            process: Some(Process { pid: 7, name: "git".to_owned() }),
            end: Some(End { sent: 517, received: 4096, milliseconds: 83, error: None }),
            connection: None,
            http: None,
        }
    }

    fn denied() -> Request {
        let rule = "nothing allows it".to_owned();
        let address = Some("2001:db8::7".parse().unwrap());
        Request {
            id: 18,
            name: None,
            address,
            verdict: Verdict::Deny,
            rule,
            process: None,
            end: None,
            ..sample()
        }
    }

    #[test]
    fn requests() {
        insta::assert_snapshot!(list(&[sample(), denied()], samples::now(), Paint::Plain), @"
        ID  AGE  SANDBOX  KIND  TO                 VERDICT  BY      HOW
        17  0s   web      tcp   github.com:443     allow    git[7]  517 out, 4096 in, 83ms
        18  0s   web      tcp   [2001:db8::7]:443  deny     -       nothing allows it
        ");
        let question = Request { protocol: Protocol::Dns, port: None, process: None, ..sample() };
        insta::assert_snapshot!(line(&question, Paint::Plain), @"   17  12:00:00  web             allow  dns   github.com  -  asked for outside, 83ms");
        let begun = Request { end: None, ..sample() };
        insta::assert_snapshot!(line(&begun, Paint::Plain), @"   17  12:00:00  web             allow  tcp   github.com:443  git[7]  github.com");
        insta::assert_snapshot!(line(&sample(), Paint::Plain), @"   17  12:00:00  web             allow  tcp   github.com:443  git[7]  517 out, 4096 in, 83ms");
        insta::assert_snapshot!(line(&denied(), Paint::Plain), @"   18  12:00:00  web             deny   tcp   [2001:db8::7]:443  -  nothing allows it");
        insta::assert_snapshot!(request(&sample(), Paint::Plain), @"
        time      2026-05-01T12:00:00Z
        sandbox   web
        kind      tcp
        to        github.com:443
        verdict   allow
        rule      github.com
        by        git[7]
        address   140.82.121.4
        sent      517 bytes
        received  4096 bytes
        took      83ms
        ");
    }

    #[test]
    fn what_was_denied_last() {
        assert_eq!(super::denied(&[], samples::now(), Paint::Plain), "");
        insta::assert_snapshot!(super::denied(&[denied()], samples::now(), Paint::Plain), @"

        denied last:
        ID  AGE  SANDBOX  KIND  TO                 VERDICT  BY  HOW
        18  0s   web      tcp   [2001:db8::7]:443  deny     -   nothing allows it
        ");
    }

    #[test]
    fn policies() {
        let shown = |text: &str| net(&text.parse().unwrap(), Paint::Plain);
        insta::assert_snapshot!(shown("allow:github.com,host:5432"), @"
        allow  github.com
        allow  host:5432
        deny   everything else
        ");
        insta::assert_snapshot!(shown("allow:GET|HEAD api.example.org/v1/*,b.example+inspect"), @"
        allow  GET|HEAD api.example.org/v1/*
        allow  b.example+inspect
        deny   everything else
        ");
        insta::assert_snapshot!(shown("open"), @"allow  everything that is public");
        insta::assert_snapshot!(shown("none"), @"none: it reaches nothing");
    }
}
