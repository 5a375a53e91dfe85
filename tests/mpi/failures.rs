//! Processes that differ from the others, end, or hang.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::folder::Folder;
use crate::job;

/// The error of a job in which processes make different calls.
fn fails(ranks: usize, program: &str) -> String {
    let folder = Folder::new(&format!("mpi-{program}"));
    let ended = job::run(ranks, program, &folder.path(""), &[]);
    assert!(ended.after < Duration::from_secs(60), "{:?}: {}", ended.after, ended.text);
    ended.text
}

#[test]
fn another_model_is_named() {
    let text = fails(3, "other_model");
    for rank in 0..3 {
        let line = text.lines().find(|line| line.contains(&format!("rank {rank}: "))).unwrap();
        assert!(line.contains("rank 1 ("), "{text}");
        assert!(line.contains("has another model, optimizer or batch"), "{text}");
    }
    let text = fails(3, "other_shape");
    for rank in 0..3 {
        let line = text.lines().find(|line| line.contains(&format!("rank {rank}: "))).unwrap();
        assert!(line.contains("Strategy::reduce: rank 1 ("), "{text}");
    }
    // Even if all variables are alike.
    let text = fails(3, "other_activation");
    assert!(text.contains("has another model, optimizer or batch"), "{text}");
}

/// As if the `mpirun` of another library had started it, which would leave each process alone and the chief.
#[test]
fn another_mpirun_is_an_error() {
    let folder = Folder::new("mpi-another");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", "ranks::values"])
        .env("WGRAD_TEST_FOLDER", folder.path(""))
        .env("OMPI_COMM_WORLD_SIZE", "2");
    let ended = job::wait(job::start(&mut command, &folder.path("")), &folder.path(""));
    assert!(!ended.success);
    assert!(ended.text.contains("mpirun has started 2 processes"), "{}", ended.text);
    assert!(
        ended.text.contains("compiled with (Open MPI") || ended.text.contains("(MPICH"),
        "{}",
        ended.text
    );
}

#[test]
fn unequal_numbers_of_batches_are_an_error() {
    let text = fails(2, "fewer_batches");
    assert!(text.contains("give each the same number of batches"), "{text}");
}

#[test]
fn an_error_in_one_process_ends_the_others() {
    let text = fails(2, "ends_early");
    assert!(text.contains("rank 1: the disk is full"), "{text}");
    let other = text.lines().find(|line| line.contains("rank 0: ")).unwrap();
    assert!(other.contains("rank 1 (") && other.contains("has ended its strategy"), "{text}");
}

#[test]
fn a_panic_ends_all() {
    let folder = Folder::new("mpi-panic");
    let ended = job::run(3, "steps", &folder.path(""), &[("PANIC_RANK", "1")]);
    assert!(!ended.success);
    assert!(ended.after < Duration::from_secs(30), "{:?}: {}", ended.after, ended.text);
    assert!(ended.text.contains("rank 1 panics at step 3"), "{}", ended.text);
}

/// The number of a process, once all make steps.
fn pid_of(folder: &Path, ranks: usize, rank: usize) -> String {
    let began = Instant::now();
    while !(0..ranks).all(|rank| folder.join(format!("steps-{rank}.txt")).exists()) {
        assert!(began.elapsed() < Duration::from_secs(120), "the job makes no steps");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::read_to_string(folder.join(format!("pid-{rank}.txt"))).unwrap()
}

fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().unwrap().success());
}

#[test]
fn a_killed_process_ends_all() {
    let _turn = job::turn();
    let folder = Folder::new("mpi-killed");
    let job = job::start(&mut job::command(3, "steps", &folder.path("")), &folder.path(""));
    let pid = pid_of(&folder.path(""), 3, 2);
    signal("-KILL", &pid);
    let ended = job::wait(job, &folder.path(""));
    assert!(!ended.success);
    assert!(ended.after < Duration::from_secs(30), "{:?}: {}", ended.after, ended.text);
    // MPICH's mpirun names one of the processes that it has ended then, too.
    let named = ["rank 2", "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"];
    assert!(named.iter().any(|name| ended.text.contains(name)), "{}", ended.text);
}

#[test]
fn a_process_that_hangs_is_named() {
    let _turn = job::turn();
    let folder = Folder::new("mpi-hangs");
    let job = job::start(&mut job::command(3, "steps", &folder.path("")), &folder.path(""));
    let pid = pid_of(&folder.path(""), 3, 1);
    signal("-STOP", &pid);
    let ended = job::wait(job, &folder.path(""));
    assert!(!ended.success);
    assert!(ended.after < Duration::from_secs(40), "{:?}: {}", ended.after, ended.text);
    let named = |line: &&str| line.contains("rank 1 (") && line.contains("has not answered for");
    assert!(ended.text.lines().any(|line| named(&line)), "{}", ended.text);
}
