//! Version 1: one hierarchy per controller.

use model::limits::Limits;

use super::group::Setting;
use super::layout::Controller;

/// What to write into a new cgroup of this controller.
pub(super) fn settings(controller: Controller, limits: &Limits) -> Vec<Setting> {
    match controller {
        Controller::Cpu => limits
            .cpus
            .into_iter()
            .flat_map(|cpus| {
                [
                    Setting::must("cpu.cfs_period_us", PERIOD_US.to_string()),
                    Setting::must("cpu.cfs_quota_us", (PERIOD_US * u64::from(cpus.0) / 1000).to_string()),
                ]
            })
            .collect(),
        // Kernel memory is charged to the same counter. The second limit is memory and swap together, so that
        // swap is no way out; where the kernel does not count swap, nothing is to be swapped.
        Controller::Memory => limits
            .memory
            .into_iter()
            .flat_map(|memory| {
                [
                    Setting::must("memory.limit_in_bytes", memory.0.to_string()),
                    Setting::if_there("memory.memsw.limit_in_bytes", memory.0.to_string()),
                    Setting::if_there("memory.swappiness", "0".to_owned()),
                ]
            })
            .collect(),
        Controller::Pids => {
            limits.pids.into_iter().map(|pids| Setting::must("pids.max", pids.to_string())).collect()
        }
    }
}

pub(super) const MEMORY_PEAK: &str = "memory.max_usage_in_bytes";
pub(super) const MEMORY_USED: &str = "memory.usage_in_bytes";
/// Has a line `oom_kill N`.
pub(super) const MEMORY_EVENTS: &str = "memory.oom_control";

const PERIOD_US: u64 = 100_000;
