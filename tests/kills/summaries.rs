//! A process that writes summaries is killed at a random moment, or its disk becomes full: everything that it had flushed is
//! there, and nothing is damaged.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wgrad as tf;
use wgrad::summary;

use crate::alone;
use crate::support::child;
use crate::support::folder::Folder;

const FOLDER: &str = "WGRAD_SUMMARY_KILL_FOLDER";

/// Writes until it is killed. After each flush the file `flushed` has the last flushed step.
#[test]
#[ignore = "the part of another test that is killed"]
fn writes_for_ever() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let writer = summary::create_file_writer(folder.join("logs")).unwrap();
    let _default = writer.as_default();
    let one = tf::constant(1.0).unwrap();
    for step in 0..10_000_000i64 {
        if step % 7 == 0 {
            let picture = tf::Tensor::full([1, 40, 40, 1], 0.5).unwrap();
            summary::image("picture", picture, step).unwrap();
        }
        summary::scalar("loss", one.multiply(step as f32).unwrap(), step).unwrap();
        if step % 20 == 19 {
            writer.flush().unwrap();
            fs::write(folder.join("new"), (step + 1).to_string()).unwrap();
            fs::rename(folder.join("new"), folder.join("flushed")).unwrap();
        }
    }
}

/// Writes with a limit on the file's size, which emulates a full disk, and prints which calls failed.
#[test]
#[ignore = "the part of another test whose disk is full"]
fn writes_too_much() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let writer = summary::create_file_writer(Path::new(&folder).join("logs")).unwrap();
    let _default = writer.as_default();
    for step in 0..400i64 {
        if let Err(error) = summary::scalar("loss", step as f64, step) {
            println!("\nstep {step}: {error}");
        }
        if step % 50 == 49 {
            if let Err(error) = writer.flush() {
                println!("\nflush {step}: {error}");
            }
        }
    }
}

#[test]
fn a_full_disk_is_reported_and_leaves_whole_records() {
    let folder = Folder::new("summary-full");
    // Blocks of 512 bytes or of 1,024; a record has about 60 bytes.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --ignored --exact --nocapture \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(child::full_name(module_path!(), "writes_too_much"))
        .env(FOLDER, folder.path(""))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let reported: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("flush ") || line.starts_with("step "))
        .collect();
    // Each flush from the first one without room on fails, and names the file.
    assert!((2..=8).contains(&reported.len()), "{text}");
    assert!(reported.iter().all(|line| line.contains("tfevents")), "{text}");
    let first: i64 = reported[0].split([' ', ':']).nth(1).unwrap().parse().unwrap();
    let events = summary::read(folder.path("logs")).unwrap();
    assert!(
        !events.is_empty() && (events.len() as i64) <= first + 1,
        "{} of {first}",
        events.len()
    );
    for (step, event) in events.iter().enumerate() {
        assert_eq!(event.step, step as i64);
    }
}

#[test]
fn a_killed_process_leaves_whole_records() {
    let _alone = alone();
    let random = &mut fastrand::Rng::with_seed(7);
    let (mut flushed_sum, mut most_behind) = (0, 0);
    for turn in 0..50 {
        let folder = Folder::new(&format!("summary-kill-{turn}"));
        let mut child = child::command(module_path!(), "writes_for_ever")
            .env(FOLDER, folder.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let flushed = || -> i64 {
            let text = fs::read_to_string(folder.path("flushed")).unwrap_or_default();
            text.parse().unwrap_or(0)
        };
        // Some are killed while they start; most while they write.
        let begun = Instant::now();
        while turn % 10 != 0 && flushed() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing was written");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_micros(random.u64(..60_000)));
        child.kill().unwrap();
        child.wait().unwrap();

        let flushed = flushed();
        if !folder.path("logs").exists() {
            assert_eq!(flushed, 0);
            continue;
        }
        let events = match summary::read(folder.path("logs")) {
            Ok(events) => events,
            // It was killed before it had created its file.
            Err(error) if flushed == 0 && error.to_string().contains("no event file") => continue,
            Err(error) => panic!("turn {turn}: {error}"),
        };
        let losses: Vec<_> = events.iter().filter(|event| event.tag == "loss").collect();
        for (step, event) in losses.iter().enumerate() {
            assert_eq!((event.step, event.scalar()), (step as i64, Some(step as f64)));
        }
        let read = losses.len() as i64;
        assert!(read >= flushed, "turn {turn}: {read} losses, and {flushed} were flushed");
        flushed_sum += flushed;
        most_behind = most_behind.max(read - flushed);
    }
    // They must have been killed while they wrote, or nothing was tested.
    assert!(flushed_sum > 1000, "{flushed_sum} steps in all");
    println!("{flushed_sum} steps flushed, at most {most_behind} read beyond");
}
