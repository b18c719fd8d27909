use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, UPGRADE};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::*;

/// Serves one kind of answer on loopback, for as long as the test runs.
async fn serve<F, A>(answer: F) -> SocketAddr
where
    F: Fn(Request) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let answer = answer.clone();
                async move { Ok::<_, Infallible>(answer(request.map(Body::new)).await) }
            });
            tokio::spawn(
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades(),
            );
        }
    });
    address
}

/// A door before a service: what is left of `pass` without a sandbox. It closes when the sender says so.
async fn door(service: SocketAddr, idle: Duration, tunnels: Tunnels) -> (SocketAddr, watch::Sender<bool>) {
    let end = watch::Sender::new(false);
    let ends = end.clone();
    let address = serve(move |request| {
        let (mut ends, tunnels) = (ends.subscribe(), tunnels.clone());
        async move {
            let ended = async move { ends.wait_for(|ended| *ended).await.map(drop).unwrap() };
            let stream = TcpStream::connect(service).await.unwrap();
            let (mut parts, body) = request.into_parts();
            let upgrade = xray::hop::take_upgrade(&mut parts).map(|client| (client, tunnels));
            let request = Request::from_parts(parts, body);
            let answered = forward::forward(stream, ended, request, upgrade, idle).await;
            answered.unwrap_or_else(|error| NoAnswer::from(error).told(SandboxId::from_bits(1), 80))
        }
    })
    .await;
    (address, end)
}

async fn ask(door: SocketAddr, head: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(door).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    BufReader::new(stream)
}

/// Up to the line that has this in it.
async fn read_to(stream: &mut BufReader<TcpStream>, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let length = stream.read_line(&mut text).await.unwrap();
        assert_ne!(length, 0, "no `{wanted}` in {text}");
    }
    text
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const LONG: Duration = Duration::from_secs(600);

/// Events that are sent one by one, each when the test says so.
async fn events() -> (SocketAddr, mpsc::Sender<Bytes>) {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let once = Arc::new(Mutex::new(Some(receiver)));
    let address = serve(move |_| {
        let receiver = once.lock().unwrap().take().unwrap();
        let events = stream::unfold(receiver, async |mut receiver| {
            let event = receiver.recv().await?;
            Some((Ok::<_, Infallible>(event), receiver))
        });
        std::future::ready(Body::from_stream(events).into_response())
    })
    .await;
    (address, sender)
}

#[tokio::test]
async fn what_a_service_sends_arrives_before_it_has_sent_all() {
    let (service, events) = events().await;
    let (door, _end) = door(service, LONG, Tunnels::default()).await;
    let mut answer = ask(door, GET).await;
    events.send(Bytes::from_static(b"data: one\n\n")).await.unwrap();
    let head = read_to(&mut answer, "data: one").await;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    events.send(Bytes::from_static(b"data: two\n\n")).await.unwrap();
    read_to(&mut answer, "data: two").await;
    // Who leaves is noticed by the service.
    drop(answer);
    events.closed().await;
}

#[tokio::test]
async fn a_large_body_passes_both_ways() {
    let service = serve(async |request| {
        let length =
            request.headers().get("content-length").map(|length| length.to_str().unwrap().to_owned());
        let bytes = request.into_body().collect().await.unwrap().to_bytes();
        ([("x-length", length.unwrap_or_default())], bytes).into_response()
    })
    .await;
    let (door, _end) = door(service, LONG, Tunnels::default()).await;
    let body: Vec<u8> = (0..8 << 20).map(|byte: u32| byte as u8).collect();
    let head =
        format!("POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut answer = ask(door, &head).await;
    let (mut read, mut write) = tokio::io::split(answer.get_mut());
    let mut back = Vec::new();
    let (sent, _) = tokio::join!(write.write_all(&body), read.read_to_end(&mut back));
    sent.unwrap();
    assert!(back.ends_with(&body), "{} bytes came back", back.len());
    let head = String::from_utf8_lossy(&back[..back.len() - body.len()]).to_ascii_lowercase();
    assert!(head.contains(&format!("x-length: {}", body.len())), "{head}");
}

/// Speaks a protocol of its own once it is asked to: what comes is sent back.
async fn echo() -> SocketAddr {
    serve(async |mut request: Request| {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(TokioIo::new(upgrade.await.unwrap()));
            tokio::io::copy(&mut read, &mut write).await.unwrap_or_default();
        });
        (StatusCode::SWITCHING_PROTOCOLS, [(CONNECTION, "upgrade"), (UPGRADE, "echo")]).into_response()
    })
    .await
}

const SWITCH: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

#[tokio::test]
async fn a_connection_becomes_another_protocols_and_ends_with_the_sandbox() {
    let (door, end) = door(echo().await, LONG, Tunnels::default()).await;
    let mut tunnel = ask(door, SWITCH).await;
    let head = read_to(&mut tunnel, "\r\n\r\n").await.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("upgrade: echo"), "{head}");
    for word in ["one\n", "two\n"] {
        tunnel.get_mut().write_all(word.as_bytes()).await.unwrap();
        assert_eq!(read_to(&mut tunnel, "\n").await, word);
    }
    end.send_replace(true);
    assert_eq!(tunnel.read(&mut [0; 8]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn another_protocol_is_spoken_only_by_who_asked_for_it_and_while_there_is_room() {
    let service = echo().await;
    let (plain, _end) = door(service, LONG, Tunnels::default()).await;
    assert!(read_to(&mut ask(plain, GET).await, "\r\n").await.contains("502"));
    let (full, _end) = door(service, LONG, Tunnels(Arc::new(Semaphore::new(0)))).await;
    assert!(read_to(&mut ask(full, SWITCH).await, "\r\n").await.contains("503"));
}

#[tokio::test]
async fn what_says_nothing_for_too_long_has_ended() {
    let (service, events) = events().await;
    let (door, _end) = door(service, Duration::from_millis(50), Tunnels::default()).await;
    let mut answer = ask(door, GET).await;
    events.send(Bytes::from_static(b"data: one\n\n")).await.unwrap();
    read_to(&mut answer, "data: one").await;
    let mut rest = Vec::new();
    answer.read_to_end(&mut rest).await.unwrap_or_default();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "it was cut off and not ended");
}

#[tokio::test]
async fn a_service_that_hangs_up_is_told_of() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let service = listener.local_addr().unwrap();
    tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    let (door, _end) = door(service, LONG, Tunnels::default()).await;
    assert!(read_to(&mut ask(door, GET).await, "\r\n").await.contains("502"));
}

#[tokio::test]
async fn a_closed_port_is_told_in_the_words_that_clients_look_for() {
    let id = SandboxId::from_bits(1);
    let told = NoAnswer::NotOpen(Problem::new(Code::NotReady, "connection refused")).told(id, 3000);
    assert_eq!(told.status(), StatusCode::BAD_GATEWAY);
    let body = told.into_body().collect().await.unwrap().to_bytes();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let expected = serde_json::json!({
        "sandboxId": id.to_string(),
        "message": "The sandbox is running but port is not open",
        "port": 3000,
        "code": 502,
        "detail": "connection refused",
    });
    assert_eq!(body, expected);
}
