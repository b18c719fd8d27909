//! docs/limits.md: what may be limited, and what holds when nothing is asked for.

use model::limits::{Defaults, Limits};

use super::table::{NOTICE, table};

pub(super) fn page() -> String {
    let mut text = format!("{NOTICE}# Limits\n\n## What can be asked for\n\n");
    text += "A limit that is asked for is enforced hard, or the request is refused.\n\n";
    text += &table(["field", "meaning"], fields());
    text += "\n## What holds otherwise\n\n";
    text += "A default that this machine cannot enforce is a caveat, shown by `zeno status`.\n\n";
    text += &table(["what", "default", "how"], defaults());
    text
}

/// The request's fields with their own doc comments, through its schema.
fn fields() -> Vec<[String; 2]> {
    let schema = schemars::schema_for!(Limits).to_value();
    let fields = schema["properties"].as_object().expect("a struct has properties");
    let described = |schema: &serde_json::Value| {
        schema["description"].as_str().expect("every limit says what it means").replace('\n', " ")
    };
    fields.iter().map(|(name, schema)| [format!("`{name}`"), described(schema)]).collect()
}

fn defaults() -> Vec<[String; 3]> {
    let on_expire = serde_json::to_value(Defaults::ON_EXPIRE).expect("a word");
    let rows: [(&str, String, &str); 8] = [
        ("processes of one user in a sandbox", Defaults::PIDS.to_string(), "hard (RLIMIT_NPROC)"),
        (
            "memory of all sandboxes together",
            format!("{} % of the machine's", Defaults::SHARED_MEMORY_PERCENT),
            "cgroup",
        ),
        (
            "processes of all sandboxes together",
            format!("{} % of the machine's", Defaults::SHARED_PIDS_PERCENT),
            "cgroup",
        ),
        ("bytes written by a sandbox", Defaults::DISK.to_string(), "soft: watched, then stopped"),
        (
            "open files of one process",
            Defaults::OPEN_FILES.to_string(),
            "hard, or the caller's own if that is less",
        ),
        ("output kept in the log", Defaults::LOG.to_string(), "what comes after is streamed, not kept"),
        ("lifetime", Defaults::TTL.to_string(), "measured through suspend"),
        ("when the lifetime is over", on_expire.as_str().expect("a word").to_owned(), ""),
    ];
    rows.map(|(what, value, how)| [what.to_owned(), value, how.to_owned()]).to_vec()
}
