//! The machine as `zeno doctor` shows it: for each thing what was found, what it costs, what mends it.

use std::path::Path;

use model::doctor::{Check, Finding, Report};
use model::limits::Defaults;
use model::units::Size;

use super::{DiskImages, Machine, Overlay, Rights, StateDir, Userns};
use crate::cgroup::{Controller, Standing, Version};

/// Everything worth telling, the indispensable first.
#[must_use]
pub fn report(machine: &Machine, state_dir: &Path) -> Report {
    let mut checks = vec![
        kernel(machine),
        user_namespaces(machine),
        mount_api(machine),
        state(machine, state_dir),
        overlay(machine, state_dir),
        seccomp(machine),
        clock(machine),
        stubs(machine),
    ];
    if machine.rights == Rights::Root {
        checks.push(idmap("idmapped-state", machine.idmap.state_dir, &state_dir.display().to_string()));
        checks.push(idmap("idmapped-root", machine.idmap.root, "/"));
    }
    checks.extend(Controller::ALL.map(|controller| cgroup(machine, controller)));
    checks.extend([
        reflink(machine),
        inotify(machine),
        open_files(machine),
        landlock(machine),
        images(machine),
    ]);
    Report { usable: checks.iter().all(|check| check.verdict != Finding::Missing), checks }
}

fn kernel(machine: &Machine) -> Check {
    let kernel = &machine.kernel;
    let flaws: Vec<&str> = kernel.flaws().map(|flaw| flaw.cve).collect();
    if !flaws.is_empty() {
        let found = format!("{}, with {}", kernel.release, flaws.join(", "));
        return missing(
            "kernel",
            found,
            "a program in a sandbox could become root",
            "update the kernel and reboot",
        );
    }
    if !kernel.is_at_least(6, 8) {
        let cost = "no sandbox can be made: overlays cannot be given their layers one by one";
        return missing(
            "kernel",
            kernel.release.clone(),
            cost,
            "update the kernel to 6.8 or later and reboot",
        );
    }
    good("kernel", kernel.release.clone())
}

fn user_namespaces(machine: &Machine) -> Check {
    match machine.userns {
        Userns::Allowed => good("user-namespaces", "allowed"),
        Userns::Refused { by, errno } => {
            let found = format!("refused ({}, {by:?})", reason(errno));
            missing("user-namespaces", found, "no sandbox can be made", &by.remedy())
        }
    }
}

fn mount_api(machine: &Machine) -> Check {
    if machine.mount_api {
        return good("mount-api", "fsopen, open_tree, move_mount");
    }
    missing(
        "mount-api",
        "not there",
        "no sandbox can be made",
        "update the kernel to 5.2 or later and reboot",
    )
}

fn state(machine: &Machine, state_dir: &Path) -> Check {
    const NAME: &str = "state-directory";
    let path = state_dir.display();
    let elsewhere = "set ZENO_HOME to a directory on ext4, xfs or btrfs";
    match &machine.state_dir {
        StateDir::Unusable { errno } => {
            missing(NAME, format!("{path}: {}", reason(*errno)), "zeno has no place for its state", elsewhere)
        }
        // The kernel takes no overlay as the upper layer of another.
        StateDir::Usable(disk) if disk.file_system == "overlay" => {
            missing(NAME, format!("{path} on overlay"), "no sandbox can keep its changes there", elsewhere)
        }
        StateDir::Usable(disk) => {
            let found = format!("{path} on {}, {} free", disk.file_system, Size(disk.free).rough());
            if disk.free < Defaults::DISK.0 {
                return less(NAME, found, "one sandbox at its limit could fill the disk", elsewhere);
            }
            good(NAME, found)
        }
    }
}

fn overlay(machine: &Machine, state_dir: &Path) -> Check {
    let mode = match machine.rights {
        Rights::Root => "as root, with mapped owners",
        Rights::User { .. } => "as an ordinary user",
    };
    match machine.overlay {
        Overlay::Works => good("overlay", format!("mounts {mode}")),
        Overlay::Fails { errno } => {
            let found = format!("{mode} on {}: {}", state_dir.display(), reason(errno));
            let remedy = match machine.userns {
                Userns::Refused { by, .. } => by.remedy(),
                Userns::Allowed => {
                    "set ZENO_HOME to a directory on ext4, xfs or btrfs; `sudo modprobe overlay`".to_owned()
                }
            };
            missing("overlay", found, "no sandbox can be made", &remedy)
        }
    }
}

fn seccomp(machine: &Machine) -> Check {
    if machine.seccomp {
        return good("seccomp", "filters");
    }
    missing(
        "seccomp",
        "not there",
        "nothing would keep a sandbox from the kernel's interfaces",
        "use a kernel with CONFIG_SECCOMP_FILTER=y",
    )
}

fn clock(machine: &Machine) -> Check {
    match machine.boot_clock {
        Some(seconds) => good("boot-clock", format!("{seconds} s")),
        None => {
            missing("boot-clock", "not there", "lifetimes cannot be kept", "update the kernel and reboot")
        }
    }
}

fn stubs(machine: &Machine) -> Check {
    if machine.data_only_stubs {
        return good("data-only-stubs", "readable by ordinary users' overlays");
    }
    match machine.rights {
        Rights::Root => good("data-only-stubs", "not there, and not needed by root"),
        Rights::User { .. } => less(
            "data-only-stubs",
            "not there",
            "ignored folders such as node_modules are copied instead of read in place",
            "update the kernel to 6.16 or later and reboot, or run zeno as root",
        ),
    }
}

fn idmap(name: &str, works: bool, path: &str) -> Check {
    if works {
        return good(name, format!("{path} can be mounted with mapped owners"));
    }
    let cost = "what root's sandboxes see of it cannot keep its owners";
    less(
        name,
        format!("{path} cannot be mounted with mapped owners"),
        cost,
        "keep it on ext4, xfs, btrfs or tmpfs",
    )
}

fn cgroup(machine: &Machine, controller: Controller) -> Check {
    let name = format!("cgroup-{controller}");
    let cost = match controller {
        Controller::Cpu => "`--cpus` is refused",
        Controller::Memory => "`--memory` is refused, and nothing caps the memory of all sandboxes together",
        Controller::Pids => "`--pids` is refused, and nothing caps the processes of all sandboxes together",
    };
    let version = |version: &Version| match version {
        Version::V1 => "v1",
        Version::V2 => "v2",
    };
    match machine.cgroup.standing(controller) {
        Standing::Usable(place) => {
            good(&name, format!("{}, {}", version(&place.version), place.base.display()))
        }
        Standing::Forbidden { version: of, mount } => {
            let found = format!("{}, {}, not delegated to this user", version(of), mount.display());
            less(&name, found, cost, &machine.cgroup.remedy(controller))
        }
        Standing::Absent => less(&name, "not there", cost, ""),
    }
}

fn reflink(machine: &Machine) -> Check {
    match &machine.state_dir {
        StateDir::Usable(disk) if disk.reflink => good("reflink", "files are copied without their data"),
        StateDir::Usable(disk) => less(
            "reflink",
            format!("{} has none", disk.file_system),
            "captures and snapshots copy data",
            "set ZENO_HOME to a directory on btrfs or xfs, the same file system as the workspace",
        ),
        StateDir::Unusable { errno } => less("reflink", reason(*errno), "captures copy data", ""),
    }
}

fn inotify(machine: &Machine) -> Check {
    let show = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
    let limits = machine.inotify;
    let found = format!("{} instances, {} watches", show(limits.instances), show(limits.watches));
    let is_enough = |number: Option<u64>, needed: u64| number.is_none_or(|number| number >= needed);
    if is_enough(limits.instances, INSTANCES) && is_enough(limits.watches, WATCHES) {
        return good("inotify", found);
    }
    let raised = |number: Option<u64>, needed: u64| number.map_or(needed, |number| number.max(needed));
    let remedy = format!(
        "sudo sysctl -w fs.inotify.max_user_instances={} fs.inotify.max_user_watches={}",
        raised(limits.instances, INSTANCES),
        raised(limits.watches, WATCHES),
    );
    let cost = "big workspaces are walked at each create; watchers inside sandboxes may fail";
    less("inotify", found, cost, &remedy)
}

fn open_files(machine: &Machine) -> Check {
    if machine.open_files >= Defaults::OPEN_FILES {
        return good("open-files", "enough");
    }
    let found = machine.open_files.to_string();
    let cost = "programs in sandboxes may open fewer files than usual";
    let remedy = format!(
        "raise the hard limit: `* hard nofile {}` in /etc/security/limits.conf",
        Defaults::OPEN_FILES
    );
    less("open-files", found, cost, &remedy)
}

fn landlock(machine: &Machine) -> Check {
    match machine.landlock_abi {
        // Namespaces and seccomp are what sandboxes stand on. Programs inside may still want it for themselves.
        0 => less(
            "landlock",
            "not there",
            "nothing of zeno's; programs in sandboxes cannot confine themselves with it",
            "add landlock to the `lsm=` boot parameter",
        ),
        abi => good("landlock", format!("ABI {abi}")),
    }
}

fn images(machine: &Machine) -> Check {
    let found = match machine.disk_images {
        DiskImages::Usable => return good("disk-images", "loop devices and mkfs.ext4"),
        DiskImages::NotRoot => "only root may mount them",
        DiskImages::NoLoopDevice => "/dev/loop-control cannot be opened",
        DiskImages::NoMkfs => "mkfs.ext4 is not installed",
    };
    let cost = "what a sandbox with `--disk` writes is kept in memory, and `zeno stop` loses it";
    less("disk-images", found, cost, machine.disk_images.remedy())
}

fn good(name: &str, found: impl Into<String>) -> Check {
    check(name, Finding::Good, found.into(), "", "")
}

fn less(name: &str, found: impl Into<String>, cost: &str, remedy: &str) -> Check {
    check(name, Finding::Less, found.into(), cost, remedy)
}

fn missing(name: &str, found: impl Into<String>, cost: &str, remedy: &str) -> Check {
    check(name, Finding::Missing, found.into(), cost, remedy)
}

fn check(name: &str, verdict: Finding, found: String, cost: &str, remedy: &str) -> Check {
    Check { name: name.to_owned(), verdict, found, cost: cost.to_owned(), remedy: remedy.to_owned() }
}

fn reason(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

/// Editors and watchers of a busy developer use a few dozen instances each, and a watch per directory.
const INSTANCES: u64 = 512;
const WATCHES: u64 = 65_536;
