//! How an administrator gives a user the right to make cgroups.

use super::layout::{Standing, Version};

/// The exact commands for one controller; empty when nothing is to be done or nothing can be.
pub(super) fn remedy(standing: &Standing, uid: u32) -> String {
    match standing {
        Standing::Usable(_) | Standing::Absent => String::new(),
        Standing::Forbidden { version: Version::V1, mount } => {
            let directory = mount.join(format!("zeno-{uid}"));
            let directory = directory.display();
            format!("sudo mkdir -p {directory} && sudo chown -R {uid} {directory}")
        }
        // Root is refused only where the hierarchy is mounted read-only or our cgroup is full of processes,
        // which is how containers come.
        Standing::Forbidden { version: Version::V2, .. } if uid == 0 => {
            "start the container with its own writable cgroup (`--cgroupns=private`), and zeno in a cgroup below \
             its root"
                .to_owned()
        }
        Standing::Forbidden { version: Version::V2, .. } => "sudo mkdir -p /etc/systemd/system/user@.service.d && \
             printf '[Service]\\nDelegate=cpu memory pids\\n' | \
             sudo tee /etc/systemd/system/user@.service.d/zeno.conf && sudo systemctl daemon-reload && \
             sudo systemctl restart user@$UID; then start the daemon with `systemd-run --user --scope zeno daemon run`"
            .replace("$UID", &uid.to_string()),
    }
}
