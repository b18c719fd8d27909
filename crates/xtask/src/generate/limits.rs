//! docs/limits.md: what may be limited, and what holds when nothing is asked for.

use model::limits::{Defaults, Limits};

use super::table::{NOTICE, table};

pub(super) fn page() -> String {
    let mut text = format!("{NOTICE}# Limits\n\n## What can be asked for\n\n");
    text += "A limit that is asked for is enforced hard, or the request is refused.\n\n";
    text += &table(["field", "meaning"], fields());
    text += "\n## What makes it hard\n\n";
    text += DELEGATION;
    text += &table(["limit", "as root", "as a user with delegated cgroups", "as a user without"], enforced());
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

/// What stands behind each limit, for each kind of user.
fn enforced() -> Vec<[String; 4]> {
    let refused = "refused; with `best_effort` a caveat";
    let shared = "cgroup";
    let memory_disk = "a tmpfs of this size: `ENOSPC` when full; it takes memory and is lost by `zeno stop`, which is a caveat; there are no snapshots of it";
    let clock = "the sandbox's first process keeps the clock, with or without a daemon";
    let rows = [
        ["`cpus`", "cgroup quota: it gets no more time", shared, refused],
        [
            "`memory`",
            "cgroup: at the limit the kernel kills a process of the sandbox, and the command's outcome is `out-of-memory`; \
             swap is no way out",
            shared,
            refused,
        ],
        [
            "`pids`",
            "cgroup: `fork` gives `EAGAIN`",
            shared,
            "refused; with `best_effort` RLIMIT_NPROC of the same number, which is hard too",
        ],
        [
            "`disk`",
            "an ext4 image of this size, some three percent of it for bookkeeping: `ENOSPC` when full, kept by `zeno stop`. \
             Without `mkfs.ext4` or loop devices as for a user. It takes room only as it fills; should the \
             real disk be full before, what was written last is lost and the image turns read-only inside. A snapshot copies \
             all of it, also where nothing runs, and so do forks, checks and promotions: 512 MiB took 6 s on a busy machine of \
             two processors, where without `--disk` it takes 10 ms",
            memory_disk,
            memory_disk,
        ],
        ["`ttl`, `idle`", clock, clock, clock],
        [
            "processes of one user, by default",
            "RLIMIT_NPROC; root inside can be several users, and each is counted by itself",
            "RLIMIT_NPROC; there is only one user",
            "the same",
        ],
        ["memory and processes of all together, by default", shared, shared, "not held: a caveat"],
        [
            "bytes written, by default",
            "not hard: looked at every few seconds, and the sandbox is stopped",
            "the same",
            "the same",
        ],
        [
            "number of files written",
            "with `disk` one for every 8 KiB of it, then `ENOSPC`; by default not limited, and not watched",
            "with `disk` one for every 4 KiB of it, then `ENOSPC`; by default not limited, and not watched",
            "the same",
        ],
        ["open files of one process", "RLIMIT_NOFILE", "the same", "the same"],
    ];
    rows.map(|row| row.map(str::to_owned)).to_vec()
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
        (
            "bytes written by a sandbox",
            Defaults::DISK.to_string(),
            "soft: counted every few seconds, then stopped; a caveat says what is not counted",
        ),
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

const DELEGATION: &str = "\
An ordinary user has cgroups when an administrator delegated some: `zeno doctor` prints the commands. `zeno status` shows each
caveat of a sandbox.

Both versions of cgroups are used. The machines that the tests run on have the controllers on v1: those limits are proven with a
real kernel, those on v2 with files that look like it.

";
