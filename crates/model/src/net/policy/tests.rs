use super::super::Net;
use super::*;

#[track_caller]
fn check(net: &str, name: Option<&str>, address: Option<&str>, port: u16, expected: Verdict) -> String {
    let net: Net = net.parse().unwrap();
    let address = address.map(|address| address.parse().unwrap());
    let decision = net.policy().unwrap().decide(Attempt { name, address, port });
    assert_eq!(decision.verdict, expected, "{decision:?}");
    decision.rule
}

const ALLOW: Verdict = Verdict::Allow;
const DENY: Verdict = Verdict::Deny;

#[test]
fn by_name_and_port() {
    let net = "allow:github.com,*.example.org:443";
    assert_eq!(check(net, Some("github.com"), Some("1.2.3.4"), 22, ALLOW), "github.com");
    assert_eq!(check(net, Some("a.example.org"), None, 443, ALLOW), "*.example.org:443");
    assert_eq!(check(net, Some("a.example.org"), None, 80, DENY), "nothing allows it");
    check(net, Some("example.com"), Some("1.2.3.4"), 443, DENY);
    check(net, None, Some("1.2.3.4"), 443, DENY);
}

#[test]
fn a_name_that_leads_home_is_refused() {
    for address in ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "0.0.0.0"] {
        check("allow:evil.example", Some("evil.example"), Some(address), 80, DENY);
        check("open", Some("evil.example"), Some(address), 80, DENY);
        check("open", None, Some(address), 80, DENY);
        check("allow:*", None, Some(address), 80, DENY);
    }
    check("allow:corp.example+private", Some("corp.example"), Some("10.1.2.3"), 80, ALLOW);
    for address in ["127.0.0.1", "169.254.169.254"] {
        check("allow:corp.example+private", Some("corp.example"), Some(address), 80, DENY);
    }
}

#[test]
fn addresses_by_their_own_rules() {
    check("allow:10.0.0.0/8:5432", None, Some("10.1.1.1"), 5432, ALLOW);
    check("allow:10.0.0.0/8:5432", None, Some("10.1.1.1"), 22, DENY);
    check("allow:169.254.169.254", None, Some("169.254.169.254"), 80, ALLOW);
    check("allow:127.0.0.0/8", None, Some("127.0.0.1"), 80, DENY);
    // A name is not allowed because of where it leads.
    check("allow:1.0.0.0/8", Some("any.example"), Some("1.2.3.4"), 80, DENY);
    check("open", None, Some("1.2.3.4"), 80, ALLOW);
}

#[test]
fn a_wide_range_is_about_what_is_public() {
    for net in ["allow:0.0.0.0/0,::/0", "allow:128.0.0.0/1", "allow:8.0.0.0/5", "allow:fc00::/6"] {
        for address in
            ["10.0.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "fd00::1", "fd00:ec2::254"]
        {
            check(net, None, Some(address), 80, DENY);
        }
    }
    check("allow:0.0.0.0/0", None, Some("1.2.3.4"), 80, ALLOW);
    check("allow:128.0.0.0/1", None, Some("151.2.3.4"), 80, ALLOW);
    // What holds nothing else names it, but never where clouds keep their credentials.
    check("allow:192.168.0.0/16", None, Some("192.168.1.1"), 80, ALLOW);
    check("allow:fd00::/8", None, Some("fd00::1"), 80, ALLOW);
    for (net, address) in [
        ("allow:fd00::/8", "fd00:ec2::254"),
        ("allow:100.64.0.0/10", "100.100.100.200"),
        ("allow:169.254.0.0/16", "169.254.169.254"),
        ("allow:169.254.169.254/31", "169.254.169.254"),
    ] {
        check(net, None, Some(address), 80, DENY);
    }
    check("allow:fd00:ec2::254/128", None, Some("fd00:ec2::254"), 80, ALLOW);
}

#[test]
fn a_sandbox_is_reached_only_if_it_is_named() {
    check("allow:b.zeno:3000", Some("b.zeno"), None, 3000, ALLOW);
    for net in ["open", "allow:*", "allow:c.zeno", "allow:b.zeno:80"] {
        check(net, Some("b.zeno"), None, 3000, DENY);
    }
    let policy = "open".parse::<Net>().unwrap().policy().unwrap().clone();
    assert_eq!(policy.hears("b.zeno").verdict, DENY);
}

#[test]
fn a_denied_address_is_denied_in_every_spelling() {
    let Net::Gateway(mut policy) = "open".parse().unwrap() else { panic!("not a policy") };
    policy.put_first(Rule::denying("6.6.6.0/24").unwrap());
    for (address, expected) in [
        ("6.6.6.6", DENY),
        ("::ffff:6.6.6.6", DENY),
        ("64:ff9b::606:606", DENY),
        ("2002:606:606::1", DENY),
        ("::ffff:6.6.7.6", ALLOW),
    ] {
        let address = Some(address.parse().unwrap());
        let attempt = Attempt { name: Some("evil.example"), address, port: 80 };
        assert_eq!(policy.decide(attempt).verdict, expected, "{address:?}");
    }
}

#[test]
fn an_address_of_this_machine_has_to_be_named() {
    let own = |net: &str, name| {
        let address = Some("1.2.3.4".parse().unwrap());
        let net: Net = net.parse().unwrap();
        net.policy().unwrap().decide_own(Attempt { name, address, port: 80 }).verdict
    };
    assert_eq!(own("open", None), DENY);
    assert_eq!(own("allow:a.example", Some("a.example")), DENY);
    assert_eq!(own("allow:a.example+private", Some("a.example")), ALLOW);
    assert_eq!(own("allow:1.2.3.4:80", None), ALLOW);
    for wide in ["allow:0.0.0.0/0", "allow:1.2.3.0/24"] {
        assert_eq!(own(wide, None), DENY, "{wide}");
    }
}

#[test]
fn this_machine_by_its_name_only() {
    check("allow:host:5432", Some("host"), Some("127.0.0.1"), 5432, ALLOW);
    check("allow:host:5432", Some("host"), Some("127.0.0.1"), 22, DENY);
    check("allow:host:5432", None, Some("127.0.0.1"), 5432, DENY);
    check("open", Some("host"), Some("127.0.0.1"), 80, DENY);
    check("allow:*", Some("host"), Some("127.0.0.1"), 80, DENY);
}

#[test]
fn a_name_is_heard_if_any_port_of_it_is_allowed() {
    let hears = |net: &str, name: &str| net.parse::<Net>().unwrap().policy().unwrap().hears(name).verdict;
    assert_eq!(hears("allow:github.com:22", "github.com"), ALLOW);
    assert_eq!(hears("allow:github.com:22", "gitlab.com"), DENY);
    assert_eq!(hears("allow:1.2.3.4", "github.com"), DENY);
    assert_eq!(hears("open", "github.com"), ALLOW);
    assert_eq!(hears("open", "host"), DENY);
    let Net::Gateway(mut policy) = "open".parse().unwrap() else { panic!("not a policy") };
    policy.put_first(Rule::denying("a.example:25").unwrap());
    policy.put_first(Rule::denying("b.example").unwrap());
    assert_eq!((policy.hears("a.example").verdict, policy.hears("b.example").verdict), (ALLOW, DENY));
}

#[test]
fn what_is_put_first_decides_and_replaces() {
    let Net::Gateway(mut policy) = "open".parse().unwrap() else { panic!("not a policy") };
    policy.put_first(Rule::denying("evil.example").unwrap());
    policy.put_first(Rule::denying("6.6.6.0/24").unwrap());
    let decide = |policy: &Policy, name, address: &str| {
        policy.decide(Attempt { name, address: Some(address.parse().unwrap()), port: 443 }).verdict
    };
    assert_eq!(decide(&policy, Some("evil.example"), "1.2.3.4"), DENY);
    // What leads to a denied address is denied, whatever it is called.
    assert_eq!(decide(&policy, Some("good.example"), "6.6.6.6"), DENY);
    assert_eq!(policy.to_string(), "open, !6.6.6.0/24,!evil.example");
    policy.put_first(Rule::allowing("evil.example").unwrap());
    assert_eq!(policy.rules.len(), 2);
    assert_eq!(decide(&policy, Some("evil.example"), "1.2.3.4"), ALLOW);
}
