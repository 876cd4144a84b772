//! Reads what a process and its children have used: run time of every thread, and resident memory.
//!
//! Run time comes from `/proc/PID/task/*/schedstat`, whose first field counts nanoseconds on a CPU.
//! `/proc/PID/stat` counts ticks of 10 ms, which is too coarse for a window of two seconds. A thread
//! that ended takes its time with it, so the figure is for programs whose threads live on.

use std::fs;

/// Nanoseconds that all threads of `pid` and of its descendants have run. 0 for a process that is
/// gone.
pub fn run_time(pid: u32) -> u64 {
    tree(pid).into_iter().map(threads_run_time).sum()
}

/// Resident memory in bytes of `pid` and its descendants, pages they share counted once each.
pub fn resident(pid: u32) -> u64 {
    tree(pid).into_iter().map(resident_of_one).sum()
}

fn threads_run_time(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

fn resident_of_one(pid: u32) -> u64 {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return 0 };
    status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok()
        })
        .map_or(0, |kib: u64| kib * 1024)
}

/// `pid` and its descendants, parents first. Two levels are enough for a master and its workers,
/// but any depth is followed; a process is listed once.
fn tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while at < found.len() {
        for child in children(found[at]) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        at += 1;
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect()
}
