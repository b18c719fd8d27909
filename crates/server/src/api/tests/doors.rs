//! Who is let in, and how a refusal looks.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use http_body_util::BodyExt;
use model::sandbox::CreateRequest;
use model::{Code, Problem};
use tower::ServiceExt;

use super::super::behind;
use super::super::body::{Input, Which, WhichExec};
use super::super::door::{Door, Token};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn router(door: Door) -> Router {
    let router = Router::new()
        .route("/healthz", get(async || StatusCode::OK))
        .route("/echo", post(async |Input(request): Input<CreateRequest>| Json(request)))
        .route("/s/{which}", get(async |Which(which): Which| which))
        .route(
            "/s/{which}/execs/{exec}",
            get(async |WhichExec(which, exec): WhichExec| format!("{which} {exec}")),
        );
    behind(door, router)
}

fn tcp() -> Router {
    router(Door::Tcp { token: Token::parse(TOKEN).unwrap(), address: ([127, 0, 0, 1], 7070).into() })
}

fn request(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let builder =
        headers.iter().fold(Request::get(path), |builder, (name, value)| builder.header(*name, *value));
    builder.body(Body::empty()).unwrap()
}

async fn problem(response: Response) -> Problem {
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    assert_eq!(response.headers()[crate::VERSION_HEADER], crate::VERSION);
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let problem: Problem = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem.status, status.as_u16());
    problem
}

#[track_caller]
fn check(headers: &[(&str, &str)], expected: Result<(), Code>) -> impl Future<Output = ()> {
    let request = request("/s/web", headers);
    let shown = format!("{headers:?}");
    async move {
        let response = tcp().oneshot(request).await.unwrap();
        match expected {
            Ok(()) => assert_eq!(response.status(), StatusCode::OK, "{shown}"),
            Err(code) => assert_eq!(problem(response).await.code, code, "{shown}"),
        }
    }
}

#[tokio::test]
async fn the_tcp_door() {
    let bearer = format!("Bearer {TOKEN}");
    let good = ("authorization", bearer.as_str());
    let host = ("host", "localhost:1");
    check(&[host, good], Ok(())).await;
    check(&[host, good, ("origin", "http://127.0.0.1:1")], Ok(())).await;
    check(&[host], Err(Code::Unauthorized)).await;
    check(&[host, ("authorization", "Bearer 0123456789abcdef0123456789abcdee")], Err(Code::Unauthorized))
        .await;
    check(&[host, ("authorization", "Bearer ")], Err(Code::Unauthorized)).await;
    check(&[host, ("authorization", TOKEN)], Err(Code::Unauthorized)).await;
    check(&[host, good, good], Err(Code::BadRequest)).await;
    check(&[good], Err(Code::Forbidden)).await;
    check(&[("host", "evil.com"), good], Err(Code::Forbidden)).await;
    check(&[host, good, ("origin", "http://evil.com")], Err(Code::Forbidden)).await;
    check(&[host, good, ("origin", "null")], Err(Code::Forbidden)).await;
}

#[tokio::test]
async fn health_needs_no_token_but_a_host() {
    let answer = tcp().oneshot(request("/healthz", &[("host", "[::1]:1")])).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let answer = tcp().oneshot(request("/healthz", &[("host", "evil.com")])).await.unwrap();
    assert_eq!(problem(answer).await.code, Code::Forbidden);
}

#[tokio::test]
async fn the_unix_door_is_open() {
    let answer = router(Door::Unix).oneshot(request("/s/web", &[])).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_is_not_there_is_a_problem() {
    let missing = router(Door::Unix).oneshot(request("/v1/nothing", &[])).await.unwrap();
    assert_eq!(problem(missing).await.code, Code::NotFound);
    let method = router(Door::Unix).oneshot(request("/echo", &[])).await.unwrap();
    assert_eq!(method.headers()["allow"], "POST");
    assert_eq!(problem(method).await.status, 405);
    for bad in ["/s/web/execs/x", "/s/web/execs/-1", "/s/web/execs/99999999999", "/s/%ff"] {
        let answer = router(Door::Unix).oneshot(request(bad, &[])).await.unwrap();
        assert_eq!(problem(answer).await.code, Code::BadRequest, "{bad}");
    }
}

#[tokio::test]
async fn bodies() {
    let send = async |body: String| {
        let request = Request::post("/echo").body(Body::from(body)).unwrap();
        router(Door::Unix).oneshot(request).await.unwrap()
    };
    assert_eq!(send(r#"{"name":"web"}"#.to_owned()).await.status(), StatusCode::OK);
    for bad in ["", "{", "7", r#"{"nane":"web"}"#, r#"{"name":"Not A Name"}"#, "\u{0}"] {
        assert_eq!(problem(send(bad.to_owned()).await).await.code, Code::BadRequest, "{bad:?}");
    }
    let nested = "[".repeat(100_000);
    assert_eq!(problem(send(nested).await).await.code, Code::BadRequest);
    let large = format!(r#"{{"consumer":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(problem(send(large).await).await.code, Code::TooLarge);
}
