use std::fs;
use std::path::Path;

use model::exec::Context;
use model::net::Net;

use super::*;

/// A machine of files and variables.
struct Yard(tempfile::TempDir);

impl Yard {
    fn new(files: &[(&str, &str)]) -> Self {
        let yard = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = yard.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        yard
    }

    fn complete(&self, net: &str, variables: &[(&str, &str)]) -> (Vec<String>, Completed) {
        let variable =
            |(name, value): &(&str, &str)| Variable { name: (*name).into(), value: (*value).into() };
        let env = [("HOME", "/home/me")].iter().chain(variables).map(variable).collect();
        let context = Context { env, cwd: "/home/me/work/app".into(), ..Context::default() };
        let Net::Gateway(mut policy) = net.parse().unwrap() else { panic!("not a policy") };
        let completed = complete(&mut policy, &Machine::below(Path::new(self.0.path()), &context));
        assert!(!are_in(&policy));
        (policy.rules.iter().map(ToString::to_string).collect(), completed)
    }
}

#[track_caller]
fn check(files: &[(&str, &str)], variables: &[(&str, &str)], net: &str, expected: &[&str]) -> Completed {
    let (rules, completed) = Yard::new(files).complete(net, variables);
    assert_eq!(rules, expected);
    completed
}

fn handed(completed: &Completed) -> Vec<String> {
    let text = |text: &model::exec::Text| text.as_os_str().to_string_lossy().into_owned();
    let variables = completed.variables.iter();
    variables.map(|variable| format!("{}={}", text(&variable.name), text(&variable.value))).collect()
}

#[test]
fn a_machine_without_tools_and_configuration_has_none() {
    let nothing = check(&[], &[], "allow:registries,other.example", &["other.example"]);
    assert_eq!(nothing, Completed::default());
}

#[test]
fn cargo() {
    let config = "[source.crates-io]\nreplace-with = 'mine'\n[source.mine]\nregistry = \"sparse+https://a.example:8443/x/\"\n\
                  [registries.other]\nindex = \"https://b.example/git\"\n[http]\nproxy = \"http://no.example:1\"\n";
    let files = [
        ("home/me/.cargo/config.toml", config),
        (
            "home/me/.cargo/registry/index/a.example-0123/config.json",
            r#"{"dl":"https://c.example/{crate}","api":null}"#,
        ),
        ("home/me/.cargo/registry/index/strange.example-0123/config.json", r#"{"dl":"https://no.example"}"#),
        ("home/me/.cargo/registry/index/b.example-0123/config.json", "garbage"),
    ];
    let expected = [
        "registries/cargo/a.example:8443+private",
        "registries/cargo/b.example:443+private",
        "registries/cargo/c.example:443+private",
    ];
    check(&files, &[], "allow:registries/cargo", &expected);
    check(&files, &[("CARGO_HOME", "/elsewhere")], "allow:registries/cargo", &[]);
    check(&files, &[], "allow:registries/npm", &[]);
}

#[test]
fn what_a_masked_file_says_is_handed_on_without_its_secrets() {
    let npmrc = "registry=https://me:hunter2@a.example/npm/\n//a.example/:_authToken=hunter2\ncafile=/etc/ca.pem\n\
                 @corp:registry=https://b.example/\n";
    let expected = ["registries/npm/a.example:443+private", "registries/npm/b.example:443+private"];
    let completed = check(&[("home/me/.npmrc", npmrc)], &[], "allow:registries/npm", &expected);
    assert_eq!(
        handed(&completed),
        [
            "npm_config_registry=https://a.example/npm/",
            "npm_config_cafile=/etc/ca.pem",
            "npm_config_@corp:registry=https://b.example/"
        ]
    );
    assert!(!format!("{completed:?}").contains("hunter2"));
    let said = [("npm_config_registry", "https://c.example")];
    let (_, completed) = Yard::new(&[("home/me/.npmrc", npmrc)]).complete("allow:registries/npm", &said);
    assert_eq!(handed(&completed).len(), 2, "what the caller says itself stays");
    let yarn = [("home/me/.yarnrc.yml", "npmRegistryServer: \"https://d.example\"\n")];
    let completed = check(&yarn, &[], "allow:registries/yarn", &["registries/yarn/d.example:443+private"]);
    assert_eq!(handed(&completed), ["YARN_NPM_REGISTRY_SERVER=https://d.example"]);
}

#[test]
fn python() {
    let files = [
        ("etc/pip.conf", "[global]\nindex-url = http://10.0.0.7:3141/simple\n"),
        ("home/me/.config/uv/uv.toml", "[[index]]\nurl = \"https://a.example/simple\"\ndefault = true\n"),
    ];
    let variables = [("PIP_EXTRA_INDEX_URL", "https://b.example/x https://c.example")];
    let expected = [
        "registries/pip/b.example:443+private",
        "registries/pip/c.example:443+private",
        "registries/pip/10.0.0.7:3141+private",
        "registries/uv/a.example:443+private",
    ];
    assert_eq!(
        check(&files, &variables, "allow:registries/pip,registries/uv", &expected),
        Completed::default()
    );
}

#[test]
fn this_machines_own_mirror_is_host_and_the_tool_is_told() {
    let completed = check(
        &[],
        &[("GOPROXY", "http://localhost:3000,direct")],
        "allow:registries/go",
        &["registries/go/host:3000+private"],
    );
    assert_eq!(handed(&completed), ["GOPROXY=http://host:3000,direct"]);
    let files = [("etc/apt/sources.list", "deb http://127.0.0.1:8080/debian stable main\n")];
    let completed = check(&files, &[], "allow:registries/apt", &["registries/apt/host:8080+private"]);
    assert!(completed.caveats[0].text.contains("inside it is `host`"), "{completed:?}");
    // Where clouds keep credentials is no registry, whatever a file says.
    check(&[], &[("GOPROXY", "http://169.254.169.254/")], "allow:registries/go", &[]);
}

#[test]
fn what_only_the_project_says_is_not_opened() {
    let files = [("home/me/work/app/.npmrc", "registry=https://evil.example/\n")];
    let completed = check(&files, &[], "allow:registries/npm", &[]);
    assert!(completed.variables.is_empty());
    assert!(completed.caveats[0].text.contains("--allow evil.example:443"), "{completed:?}");
    let both = [files[0], ("etc/npmrc", "registry=https://evil.example/\n")];
    let completed = check(&both, &[], "allow:registries/npm", &["registries/npm/evil.example:443+private"]);
    assert_eq!(completed, Completed::default());
}

#[test]
fn a_proxy_is_not_opened_and_not_handed_on() {
    let variables = [("https_proxy", "http://me:hunter2@proxy.example:3128"), ("NO_PROXY", "x")];
    let completed = check(&[], &variables, "allow:registries/go", &[]);
    assert_eq!(completed.without, ["https_proxy"]);
    let caveats = format!("{:?}", completed.caveats);
    assert!(caveats.contains("http://proxy.example:3128") && !caveats.contains("hunter2"), "{caveats}");
    let allowed = "allow:registries/go,proxy.example:3128";
    let completed = check(&[], &variables, allowed, &["proxy.example:3128"]);
    assert!(completed.without.is_empty() && completed.unknown == [Ecosystem::Go], "{completed:?}");
}

#[test]
fn what_is_built_into_the_tools_is_read_from_them() {
    let program =
        format!("\u{1}ELF sparse+https://iints{}x sparse+https://index.a.example/y", "z".repeat(3 << 20));
    let npm = "  registry: new Definition('registry', {\n    default: 'https://b.example/',\n";
    let pip = "class PackageIndex:\n\nPyPI = PackageIndex(\"https://c.example/\", file_storage_domain=\"d.example\")\n\
               TestPyPI = PackageIndex(\"https://no.example/\")\n";
    let cfg = "\tGOPROXY = envOr(\"GOPROXY\", \"https://f.example,direct\")\n\tGOSUMDB = envOr(\"GOSUMDB\", \"g.example\")\n";
    let files = [
        ("home/me/.rustup/toolchains/stable/bin/cargo", program.as_str()),
        ("usr/lib/npm/bin/npm", ""),
        ("usr/lib/npm/node_modules/@npmcli/config/lib/definitions/definitions.js", npm),
        ("usr/lib/python3.11/site-packages/pip/_internal/models/index.py", pip),
        ("usr/lib/go/bin/go", ""),
        ("usr/lib/go/src/cmd/go/internal/cfg/cfg.go", cfg),
        ("usr/share/pnpm/bin/pnpm", ""),
        ("usr/share/pnpm/dist/pnpm.cjs", "x;var r=\"https://registry.h.example/\";"),
    ];
    let path = [("PATH", "/usr/lib/npm/bin:/usr/bin:/usr/lib/go/bin:/usr/share/pnpm/bin:relative")];
    let set = |net: &str, expected: &[&str]| check(&files, &path, net, expected);
    set(
        "allow:registries/cargo",
        &["registries/cargo/index.a.example:443+private", "registries/cargo/*.a.example:443+private"],
    );
    set("allow:registries/npm", &["registries/npm/b.example:443+private"]);
    set(
        "allow:registries/pnpm",
        &["registries/pnpm/registry.h.example:443+private", "registries/pnpm/b.example:443+private"],
    );
    set(
        "allow:registries/pip",
        &["registries/pip/c.example:443+private", "registries/pip/d.example:443+private"],
    );
    set(
        "allow:registries/go",
        &["registries/go/f.example:443+private", "registries/go/g.example:443+private"],
    );
    // What is typed with the name of the set holds for each of its rules.
    set(
        "allow:GET|HEAD registries,registries/go+inspect",
        &[
            "GET|HEAD registries/cargo/index.a.example:443+private",
            "GET|HEAD registries/cargo/*.a.example:443+private",
            "GET|HEAD registries/npm/b.example:443+private",
            "GET|HEAD registries/pnpm/registry.h.example:443+private",
            "GET|HEAD registries/pnpm/b.example:443+private",
            "GET|HEAD registries/yarn/b.example:443+private",
            "GET|HEAD registries/pip/c.example:443+private",
            "GET|HEAD registries/pip/d.example:443+private",
            "GET|HEAD registries/uv/c.example:443+private",
            "GET|HEAD registries/uv/d.example:443+private",
            "GET|HEAD registries/go/f.example:443+private",
            "GET|HEAD registries/go/g.example:443+private",
            "registries/go/f.example:443+private+inspect",
            "registries/go/g.example:443+private+inspect",
        ],
    );
    set("allow:registries/npm:80-443", &["registries/npm/b.example:443+private"]);
    let none = set("allow:registries/npm:80", &[]);
    assert!(
        none.unknown == [Ecosystem::Npm] && none.caveats[0].text.contains("--allow HOST:443"),
        "{none:?}"
    );
    // pnpm as one program, and yarn as corepack fetched it.
    let alone = [
        ("usr/bin/pnpm", "\u{1}ELF https://registry.i.example/\""),
        ("home/me/.cache/node/corepack/v1/yarn/1.22.22/lib/cli.js", "'https://registry.j.example'"),
    ];
    check(&alone, &path, "allow:registries/pnpm", &["registries/pnpm/registry.i.example:443+private"]);
    check(&alone, &path, "allow:registries/yarn", &["registries/yarn/registry.j.example:443+private"]);
    // A newer go comes with its settings in a file.
    let newer = [
        ("usr/lib/go/bin/go", ""),
        ("usr/lib/go/go.env", "GOPROXY=https://i.example,direct\nGOSUMDB=j.example\n"),
    ];
    check(
        &newer,
        &path,
        "allow:registries/go",
        &["registries/go/i.example:443+private", "registries/go/j.example:443+private"],
    );
}
