use jiff::Timestamp;
use model::request::{Http, Message, Protocol};

use super::super::schema;
use super::*;

fn connection() -> (tempfile::TempDir, Connection) {
    let home = tempfile::tempdir().unwrap();
    let connection = schema::open(&schema::prepare(home.path()).unwrap()).unwrap();
    (home, connection)
}

fn request(sandbox: u64, name: &str) -> Request {
    Request {
        id: 0,
        time: Timestamp::UNIX_EPOCH,
        sandbox: SandboxId::from_bits(sandbox),
        sandbox_name: None,
        protocol: Protocol::Tcp,
        name: Some(name.to_owned()),
        address: None,
        port: Some(443),
        verdict: Verdict::Allow,
        rule: name.to_owned(),
        process: None,
        end: None,
        connection: None,
        http: None,
    }
}

fn with_text(sandbox: u64, length: usize) -> Request {
    let message = |text: String| Message { size: text.len() as u64, text: Some(text), ..Message::default() };
    let http = Http {
        method: "GET".to_owned(),
        scheme: "https".to_owned(),
        host: "api.b.example".to_owned(),
        path: "/".to_owned(),
        status: Some(200),
        request: message("asked".to_owned()),
        response: Some(message("x".repeat(length))),
    };
    Request { http: Some(Box::new(http)), ..request(sandbox, "a.example") }
}

fn put(connection: &Connection, request: &Request) -> u64 {
    insert(connection, &NewRow::of(request).unwrap()).unwrap()
}

fn all(connection: &Connection) -> Vec<Request> {
    read(connection, &Requests { limit: 1000, ..Requests::default() }).unwrap()
}

#[test]
fn texts_are_for_who_looks_at_one() {
    let (_home, connection) = connection();
    let id = put(&connection, &with_text(1, 9));
    let listed = all(&connection).pop().unwrap();
    let http = listed.http.unwrap();
    assert_eq!((http.request.text, http.response.unwrap().text), (None, None));
    assert_eq!(one(&connection, id).unwrap().unwrap(), Request { id, ..with_text(1, 9) });
    // Of one that has no text.
    let bare = put(&connection, &request(1, "a.example"));
    assert_eq!(one(&connection, bare).unwrap().unwrap(), Request { id: bare, ..request(1, "a.example") });
}

#[test]
fn by_name_by_what_it_says_and_by_address() {
    let (_home, connection) = connection();
    let address = Some("2001:db8::7".parse().unwrap());
    for request in
        [request(1, "a.example"), with_text(1, 1), Request { name: None, address, ..request(2, "") }]
    {
        put(&connection, &request);
    }
    let found = |host: &str| {
        let which = Requests { host: Some(host.to_owned()), limit: 1000, ..Requests::default() };
        let of_store: Vec<u64> =
            read(&connection, &which).unwrap().iter().map(|request| request.id).collect();
        let of_live =
            all(&connection).iter().filter(|one| which.has(one)).map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(of_store, of_live, "{host}");
        of_store
    };
    assert_eq!(found("a.example"), [1, 2]);
    assert_eq!(found("b.example"), [2]);
    assert_eq!(found("2001:DB8:0::7"), [3]);
    assert_eq!(found("xample"), [0; 0]);
}

#[test]
fn what_goes_on_when_a_daemon_ends_has_an_end() {
    let (_home, connection) = connection();
    let end = End { sent: 1, received: 2, milliseconds: 3, error: None };
    put(&connection, &request(1, "open.example"));
    put(&connection, &Request { verdict: Verdict::Deny, ..request(1, "denied.example") });
    put(&connection, &Request { end: Some(end.clone()), ..request(1, "ended.example") });
    let lost = End { sent: 0, received: 0, milliseconds: 0, error: Some("the daemon ended".to_owned()) };
    assert_eq!(end_all(&connection, &lost).unwrap(), 1);
    let ends: Vec<Option<End>> = all(&connection).into_iter().map(|request| request.end).collect();
    assert_eq!(ends, [Some(lost.clone()), None, Some(end)]);
    assert_eq!(end_all(&connection, &lost).unwrap(), 0);
}

#[test]
fn one_that_tries_much_pushes_out_nobody_else() {
    let (_home, connection) = connection();
    put(&connection, &request(1, "quiet.example"));
    for _ in 0..20 {
        put(&connection, &with_text(2, 10_000));
    }
    put(&connection, &request(3, "late.example"));
    let of = |sandbox: u64| {
        let sandbox = Some(SandboxId::from_bits(sandbox));
        let which = Requests { sandbox, limit: 1000, ..Requests::default() };
        read(&connection, &which).unwrap().iter().map(|request| request.id).collect::<Vec<_>>()
    };
    // By bytes: a quarter is four of them.
    prune(&connection, Most { rows: 1000, bytes: 4 * 43_000 }).unwrap();
    assert_eq!((of(1), of(2), of(3)), (vec![1], vec![18, 19, 20, 21], vec![22]));
    // By rows.
    prune(&connection, Most { rows: 8, bytes: 1 << 30 }).unwrap();
    assert_eq!((of(1), of(2), of(3)), (vec![1], vec![20, 21], vec![22]));
    // Then the oldest of all.
    for sandbox in 4..10 {
        put(&connection, &request(sandbox, "more.example"));
    }
    prune(&connection, Most { rows: 8, bytes: 1 << 30 }).unwrap();
    assert_eq!((of(1), of(2), of(3), of(9)), (vec![], vec![21], vec![22], vec![28]));
}

#[test]
fn what_an_earlier_zeno_wrote_is_known() {
    let home = tempfile::tempdir().unwrap();
    let path = schema::prepare(home.path()).unwrap();
    let before = schema::MIGRATIONS.iter().position(|tables| tables.contains("requests_by_size")).unwrap();
    {
        let old = Connection::open(&path).unwrap();
        schema::MIGRATIONS[..before].iter().for_each(|tables| old.execute_batch(tables).unwrap());
        old.pragma_update(None, "user_version", before as u32).unwrap();
        for request in [with_text(1, 9), Request { verdict: Verdict::Deny, ..request(1, "denied.example") }] {
            let denied = request.verdict == Verdict::Deny;
            let values = params![denied, request.name, serde_json::to_string(&request).unwrap()];
            old.execute(
                "INSERT INTO requests (sandbox, denied, name, record) VALUES ('x', ?1, ?2, ?3)",
                values,
            )
            .unwrap();
        }
    }
    let connection = schema::open(&path).unwrap();
    assert_eq!(one(&connection, 1).unwrap().unwrap(), Request { id: 1, ..with_text(1, 9) });
    let which = Requests { host: Some("b.example".to_owned()), limit: 9, ..Requests::default() };
    let listed = read(&connection, &which).unwrap();
    assert_eq!((listed.len(), &listed[0].http.as_ref().unwrap().request.text), (1, &None));
    let end = End { sent: 0, received: 0, milliseconds: 0, error: None };
    assert_eq!(end_all(&connection, &end).unwrap(), 1);
    assert_eq!(put(&connection, &request(1, "next.example")), 3);
}
