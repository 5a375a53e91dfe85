//! Trainings of several processes compared with those of one.

use std::path::Path;

use crate::folder::Folder;
use crate::job;
use crate::models::assert_close;

fn numbers(folder: &Path, name: &str) -> Vec<f32> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn values_are_exchanged() {
    for ranks in [1, 3] {
        let folder = Folder::new(&format!("mpi-values-{ranks}"));
        job::succeeds(ranks, "values", &folder.path(""), &[]);
        job::succeeds(ranks, "values_in_pieces", &folder.path(""), &[]);
        job::succeeds(ranks, "aggregates", &folder.path(""), &[]);
    }
}

#[test]
fn odd_values_are_summed() {
    let folder = Folder::new("mpi-odd");
    for (ranks, compressed) in [(2, false), (3, false), (3, true)] {
        let variables: &[(&str, &str)] = if compressed { &[("COMPRESSED", "1")] } else { &[] };
        job::succeeds(ranks, "odd_sums", &folder.path(""), variables);
    }
}

#[test]
fn the_losses_are_those_of_one_device() {
    let alone = Folder::new("mpi-alone");
    job::succeeds(1, "trains_alone", &alone.path(""), &[]);
    let (hand, fit) = (numbers(&alone.path(""), "hand.txt"), numbers(&alone.path(""), "fit.txt"));
    for ranks in [2, 4] {
        let folder = Folder::new(&format!("mpi-trains-{ranks}"));
        job::succeeds(ranks, "trains", &folder.path(""), &[]);
        for rank in 0..ranks {
            assert_close(&numbers(&folder.path(""), &format!("hand-{rank}.txt")), &hand, 1e-5);
            assert_close(&numbers(&folder.path(""), &format!("fit-{rank}.txt")), &fit, 1e-5);
        }
    }
}

/// Moving averages and dropped values are those of replicas on devices of one process.
#[test]
fn replicas_of_processes_compute_as_replicas_of_one() {
    let folder = Folder::new("mpi-noisy");
    job::succeeds(1, "trains_mirrored", &folder.path(""), &[]);
    let expected = numbers(&folder.path(""), "noisy.txt");
    job::succeeds(2, "trains_noisily", &folder.path(""), &[]);
    for rank in 0..2 {
        assert_close(&numbers(&folder.path(""), &format!("noisy-{rank}.txt")), &expected, 1e-5);
    }
}

#[test]
fn compressed_gradients_train_nearly_alike() {
    let folder = Folder::new("mpi-compressed");
    job::succeeds(1, "trains_alone", &folder.path(""), &[]);
    let expected = numbers(&folder.path(""), "hand.txt");
    job::succeeds(2, "trains_compressed", &folder.path(""), &[]);
    let found = numbers(&folder.path(""), "hand-0.txt");
    assert_close(&found, &expected, 1e-2);
    assert_ne!(found, expected);
    assert_eq!(found, numbers(&folder.path(""), "hand-1.txt"));
}

#[test]
fn only_the_chief_writes() {
    let folder = Folder::new("mpi-writes");
    job::succeeds(2, "writes_once", &folder.path(""), &[]);
}

/// Four processes are cut in the middle of an epoch, two continue and are cut, one completes the training.
#[test]
fn a_training_resumes_with_another_number_of_processes() {
    let whole = Folder::new("mpi-whole");
    job::succeeds(1, "resumes", &whole.path(""), &[("EPOCHS", "4")]);
    let expected = numbers(&whole.path(""), "resumed.txt");

    let folder = Folder::new("mpi-resumes");
    let cut = [("EPOCHS", "4"), ("CUT_RANK", "2"), ("CUT_BATCH", "12")];
    assert!(!job::run(4, "resumes", &folder.path(""), &cut).success);
    assert!(folder.path("backup").exists());
    let cut = [("EPOCHS", "4"), ("CUT_RANK", "0"), ("CUT_BATCH", "9")];
    assert!(!job::run(2, "resumes", &folder.path(""), &cut).success);
    job::succeeds(1, "resumes", &folder.path(""), &[("EPOCHS", "4")]);
    let found = numbers(&folder.path(""), "resumed.txt");
    // The last run resumed in a later epoch, whose values are those of the whole training.
    assert!(!found.is_empty() && found.len() < expected.len(), "{found:?} {expected:?}");
    assert_close(&found, &expected[expected.len() - found.len()..], 1e-5);
    assert!(!folder.path("backup").exists());
}

#[test]
fn all_processes_stop_at_the_same_batch() {
    let folder = Folder::new("mpi-stops");
    job::succeeds(2, "stops_together", &folder.path(""), &[]);
}

#[test]
fn processes_can_read_data_of_their_own() {
    let folder = Folder::new("mpi-own");
    job::succeeds(1, "reads_all_data", &folder.path(""), &[]);
    let ended = job::run(2, "reads_own_data", &folder.path(""), &[]);
    let expected = numbers(&folder.path(""), "all.txt");
    for rank in 0..2 {
        assert_close(&numbers(&folder.path(""), &format!("own-{rank}.txt")), &expected, 1e-5);
    }
    let text = &ended.text;
    assert!(text.contains("rank 1 (") && text.contains("called the end of a dataset"), "{text}");
    assert!(text.contains("give each the same number of batches"), "{text}");
}

/// Kills processes of a training at random moments, and starts it again with another number of processes each time.
fn survives_kills(kills: u64) {
    let whole = Folder::new(&format!("mpi-undisturbed-{kills}"));
    job::succeeds(1, "resumes", &whole.path(""), &[("EPOCHS", "12")]);
    let expected = numbers(&whole.path(""), "resumed.txt");
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut random = seed.as_millis() as u64;
    println!("seed {random}");
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let mut made = 0;
    while made < kills {
        let folder = Folder::new(&format!("mpi-kills-{kills}"));
        loop {
            let ranks = 1 + next(3) as usize;
            let turn = job::turn();
            let mut command = job::command(ranks, "resumes", &folder.path(""));
            let mut job = job::start(command.env("EPOCHS", "12"), &folder.path(""));
            let rank = next(ranks as u64);
            if made < kills {
                std::thread::sleep(std::time::Duration::from_millis(200 + next(2500)));
                let pid = std::fs::read_to_string(folder.path(&format!("pid-{rank}.txt")));
                // A job that has ended cannot be killed any more.
                if let (Ok(pid), Ok(None)) = (pid, job.try_wait()) {
                    let _ = std::process::Command::new("kill").args(["-KILL", &pid]).status();
                    made += 1;
                }
            }
            let ended = job::wait(job, &folder.path(""));
            drop(turn);
            if ended.success {
                break;
            }
            let _ = std::fs::remove_file(folder.path(&format!("pid-{rank}.txt")));
        }
        let found = numbers(&folder.path(""), "resumed.txt");
        assert!(!found.is_empty());
        assert_close(&found, &expected[expected.len() - found.len()..], 1e-5);
    }
}

#[test]
fn three_kills_leave_the_losses_as_they_are() {
    survives_kills(3);
}

#[test]
#[ignore = "takes minutes; `cargo xtask mpi -- --ignored thirty_kills` runs it"]
fn thirty_kills_leave_the_losses_as_they_are() {
    survives_kills(30);
}
