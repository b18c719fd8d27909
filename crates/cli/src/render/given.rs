//! `zeno env`.

use model::exec::{Text, Variable};
use model::given::{Given, Trusted};
use model::net::Target;

use super::paint::Paint;
use super::words::clean;

/// Lines that a shell reads, and comments. What is no name of a shell's variable is a comment, too.
pub(crate) fn given(given: &Given, paint: Paint) -> String {
    let mut text = String::new();
    for variable in &given.variables {
        let name = shown(&variable.name);
        let line = format!("{name}={}", quoted(&shown(&variable.value)));
        text += &if is_name(&name) { format!("export {line}\n") } else { comment(&line, paint) };
    }
    for secret in &given.secrets {
        let hosts: Vec<String> = secret.hosts.iter().map(Target::to_string).collect();
        text += &comment(&format!("{} stands for a secret of {}", secret.name, hosts.join(", ")), paint);
    }
    if let Some(proxy) = &given.proxy {
        text += &comment(&format!("for tools that insist on a proxy: {proxy}"), paint);
    }
    if let Some(Trusted { bundle, subject, fingerprint }) = &given.trusts {
        let own = format!(
            "it trusts an authority of its own, which signs where connections are opened: {}",
            clean(subject)
        );
        text += &comment(&own, paint);
        text += &comment(&format!("its certificate is, as SHA-256, {}", clean(fingerprint)), paint);
        if let Some(bundle) = bundle {
            text += &comment(&format!("it is among those in {}", clean(&shown(bundle))), paint);
        }
    }
    for name in &given.names {
        text += &comment(&format!("{} is {} and {} inside", clean(&name.name), name.ipv4, name.ipv6), paint);
    }
    text
}

/// Lines that a shell reads.
pub(crate) fn exports(variables: &[Variable]) -> String {
    let line = |variable: &Variable| {
        format!("export {}={}\n", shown(&variable.name), quoted(&shown(&variable.value)))
    };
    variables.iter().map(line).collect()
}

fn comment(line: &str, paint: Paint) -> String {
    let line = format!("# {}", line.replace('\n', "\\n"));
    paint.dim(&line) + "\n"
}

fn shown(text: &Text) -> String {
    text.as_os_str().to_string_lossy().into_owned()
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    letters.next().is_some_and(is_letter) && letters.all(|c| is_letter(c) || c.is_ascii_digit())
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use model::given::GivenName;
    use model::net::{Net, Secret};

    use super::*;

    #[test]
    fn what_a_shell_reads_and_the_rest_as_comments() {
        let variable = |name: &str, value: &str| Variable { name: name.into(), value: value.into() };
        let Net::Gateway(mut policy) = "allow:api.example+inspect".parse().unwrap() else {
            panic!("not a policy")
        };
        policy.secrets = vec![Secret {
            name: "TOKEN".to_owned(),
            placeholder: "zeno-placeholder".to_owned(),
            hosts: vec!["api.example".parse().unwrap()],
        }];
        let variables = vec![
            variable("TOKEN", "zeno-placeholder"),
            variable("A", "it's\nhere"),
            variable("npm_config_@a:b", "x"),
        ];
        let names = vec![GivenName {
            name: "api.example".to_owned(),
            ipv4: "198.18.0.1".parse().unwrap(),
            ipv6: "fd7a:656e:6f00::1".parse().unwrap(),
        }];
        let trusted = Trusted {
            bundle: Some("/etc/ssl/bundle.crt".into()),
            subject: "CN=zeno sb-1".to_owned(),
            fingerprint: "AB:CD".to_owned(),
        };
        let text = given(&Given::new(&Net::Gateway(policy), variables, names, Some(trusted)), Paint::Plain);
        insta::assert_snapshot!(text, @r"
        export TOKEN='zeno-placeholder'
        export A='it'\''s
        here'
        # npm_config_@a:b='x'
        # TOKEN stands for a secret of api.example
        # for tools that insist on a proxy: http://zeno.proxy:3128
        # it trusts an authority of its own, which signs where connections are opened: CN=zeno sb-1
        # its certificate is, as SHA-256, AB:CD
        # it is among those in /etc/ssl/bundle.crt
        # api.example is 198.18.0.1 and fd7a:656e:6f00::1 inside
        ");
    }
}
