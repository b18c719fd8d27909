use super::super::Net;
use super::*;

#[track_caller]
fn check(net: &str, method: &str, path: &str, expected: Verdict) -> String {
    let net: Net = net.parse().unwrap();
    let attempt = Attempt { name: Some("a.example"), address: None, port: 443 };
    let decision = net.policy().unwrap().decide_request(attempt, Ask { method, path });
    assert_eq!(decision.verdict, expected, "{decision:?}");
    decision.rule
}

const ALLOW: Verdict = Verdict::Allow;
const DENY: Verdict = Verdict::Deny;

#[test]
fn by_method_and_path() {
    let net = "allow:GET|HEAD a.example/v1/*,a.example:443/v2";
    assert_eq!(check(net, "GET", "/v1/x/y", ALLOW), "GET|HEAD a.example/v1/*");
    assert_eq!(check(net, "POST", "/v2", ALLOW), "a.example:443/v2");
    assert_eq!(check(net, "POST", "/v1/x", DENY), "nothing allows POST of this path");
    check(net, "GET", "/v1", DENY);
    check(net, "GET", "/v2/", DENY);
    check("allow:a.example+inspect", "DELETE", "/any/thing", ALLOW);
    check("allow:b.example/v1/*", "GET", "/v1/x", DENY);
}

#[test]
fn a_path_that_can_be_read_in_two_ways_is_none() {
    let net = "allow:a.example/v1/*";
    for path in [
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "/v1/.%2E/x",
        "/v1//x",
        "/v1/%2Fx",
        "/v1/a%5cb",
        "/v1/%zz",
        "/v1/%",
    ] {
        assert_eq!(check(net, "GET", path, DENY), "its path can be read in more than one way", "{path}");
    }
    check(net, "GET", "/%761/%78", ALLOW);
    check(net, "GET", "/v1/", ALLOW);
    // Where no rule asks for a path, any is as good.
    check("allow:GET a.example", "GET", "/v1/../admin", ALLOW);
}

#[test]
fn what_is_denied_in_part_is_open_otherwise() {
    let Net::Gateway(mut policy) = "open".parse().unwrap() else { panic!("not a policy") };
    policy.put_first(Rule::denying("a.example/admin*").unwrap());
    policy.put_first(Rule::denying("DELETE a.example").unwrap());
    let attempt = Attempt { name: Some("a.example"), address: None, port: 443 };
    let decide = |method, path| policy.decide_request(attempt, Ask { method, path }).verdict;
    assert_eq!(policy.decide(attempt).verdict, ALLOW);
    assert_eq!(policy.hears("a.example").verdict, ALLOW);
    assert_eq!(policy.denies("a.example", 443), None);
    assert!(policy.inspects(attempt) && policy.may_inspect());
    assert!(!policy.inspects(Attempt { name: Some("b.example"), ..attempt }));
    assert_eq!((decide("GET", "/"), decide("GET", "/%61dmin")), (ALLOW, DENY));
    // However it is written: there are servers that do not mind.
    assert_eq!((decide("DELETE", "/"), decide("delete", "/"), decide("DeLeTe", "/")), (DENY, DENY, DENY));
    assert_eq!(check("allow:GET a.example", "get", "/", DENY), "nothing allows get of this path");
}

#[test]
fn the_first_rule_that_means_everything_ends_it() {
    let net = |text: &str| text.parse::<Net>().unwrap().policy().unwrap().clone();
    let attempt = Attempt { name: Some("a.example"), address: None, port: 443 };
    assert!(!net("allow:a.example,a.example/v1/*").inspects(attempt));
    assert!(net("allow:a.example/v1/*,a.example").inspects(attempt));
    check("allow:a.example/v1/*,a.example", "GET", "/other", ALLOW);
}

#[test]
fn what_is_typed_is_shown_again() {
    for text in [
        "allow:api.example.org/v1/*",
        "allow:GET|HEAD api.example.org/v1/*,*.b.example+inspect",
        "allow:POST host:8080/hook+private",
        "allow:GET 10.0.0.0/8,[10.0.0.0/8]:80/x,10.0.0.1/v1/*,[::1]/v1",
        "allow:c.example:443+private+inspect",
    ] {
        let net: Net = text.parse().unwrap();
        let again: Net = net.to_string().parse().unwrap();
        assert_eq!(net, again, "{text} -> {net}");
        let wire = serde_json::to_string(&net).unwrap();
        assert_eq!(serde_json::from_str::<Net>(&wire).unwrap(), net);
    }
    for text in [
        "allow:get a.example",
        "allow:GET|a.example",
        "allow:a.example/a b",
        "allow:a.example/x?y",
        "allow:GET ",
    ] {
        assert!(text.parse::<Net>().is_err(), "{text}");
    }
    let rule: Rule = serde_json::from_str(r#"{"to":"a.example","inspect":{"methods":["GET"]}}"#).unwrap();
    assert_eq!(rule.to_string(), "GET a.example");
    assert!(serde_json::from_str::<Rule>(r#"{"to":"a.example","inspect":{"method":"GET"}}"#).is_err());
}

#[test]
fn stars() {
    let holds = |pattern: &str, text: &str| glob(pattern.as_bytes(), text.as_bytes());
    assert!(holds("/v1/*", "/v1/") && holds("*", "") && holds("/a*b*c", "/aXbYbZc"));
    assert!(!holds("/v1/*", "/v1") && !holds("/a*b", "/abX") && !holds("", "x"));
    assert!(!holds(&"*a".repeat(50), &"b".repeat(60_000)));
}
