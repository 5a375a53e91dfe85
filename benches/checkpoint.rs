//! Measures checkpoints: saving and restoring 500 MB of variables, compared with a plain copy of a file of the same size.
//!
//! `cargo bench --bench checkpoint`, with `-- --folder PATH` on another disk. The copy is synced like a save: its bytes, a
//! small file next to it, the folder twice. All four alternate in one process; `benches/checkpoint.py` does the same with
//! TensorFlow.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use wgrad::train::Checkpoint;
use wgrad::{Device, Parts, Tensor, Trackable, Variable};

/// Variables with these numbers of floats, as in a network: mostly large ones.
struct Weights(Vec<Variable>);

impl Weights {
    fn new(bytes: usize) -> Self {
        let mut left = bytes / 4;
        let mut variables = Vec::new();
        for (i, size) in [4_000_000, 10_000, 250_000, 12_000_000].into_iter().cycle().enumerate() {
            let size = size.min(left);
            if size == 0 {
                break;
            }
            left -= size;
            let values: Vec<f32> = (0..size).map(|j| (i * 31 + j) as f32).collect();
            variables.push(Variable::new(Tensor::from_slice(&values, [size]).unwrap()));
        }
        Weights(variables)
    }
}

impl Trackable for Weights {
    fn track(&self, parts: &mut Parts<'_>) {
        for (i, variable) in self.0.iter().enumerate() {
            parts.add(&format!("v{i}"), variable);
        }
    }
}

fn sync(folder: &Path) {
    if cfg!(unix) {
        File::open(folder).unwrap().sync_all().unwrap();
    }
}

/// A copy with the syncs of a save.
fn copy(from: &Path, folder: &Path) {
    let (to, beside) = (folder.join("copy.tmp"), folder.join("beside.tmp"));
    fs::copy(from, &to).unwrap();
    File::open(&to).unwrap().sync_all().unwrap();
    let mut small = File::create(&beside).unwrap();
    small.write_all(&[1; 1000]).unwrap();
    small.sync_all().unwrap();
    fs::rename(&to, folder.join("copy")).unwrap();
    sync(folder);
    fs::rename(&beside, folder.join("beside")).unwrap();
    sync(folder);
}

fn remove(files: &[PathBuf]) {
    for file in files {
        fs::remove_file(file).unwrap();
    }
}

fn timed(times: &mut Vec<f64>, call: impl FnOnce()) {
    let began = Instant::now();
    call();
    times.push(began.elapsed().as_secs_f64());
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (bytes, rounds) =
        if arguments.iter().any(|a| a == "--test") { (5_000_000, 1) } else { (500_000_000, 7) };
    let at = arguments.iter().position(|a| a == "--folder").and_then(|at| arguments.get(at + 1));
    let folder = at.map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("wgrad-bench-checkpoint-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let device = Device::current().unwrap();
    println!("{}", device.adapter());

    let (weights, restored) = (Weights::new(bytes), Weights::new(bytes));
    device.synchronize().unwrap();
    let source = folder.join("source");
    let checkpoint = Checkpoint::new().with("weights", &weights);
    let other = Checkpoint::new().with("weights", &restored);
    let prefix = folder.join("ckpt");
    let file = |ending: &str| PathBuf::from(format!("{}{ending}", prefix.display()));
    let files = [file(".data-00000-of-00001"), file(".index")];
    checkpoint.write(&prefix).unwrap();
    fs::copy(&files[0], &source).unwrap();
    remove(&files);

    let (mut saves, mut restores, mut copies, mut reads) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        timed(&mut copies, || copy(&source, &folder));
        remove(&[folder.join("copy"), folder.join("beside")]);
        timed(&mut saves, || drop(checkpoint.write(&prefix).unwrap()));
        timed(&mut restores, || {
            other.read(&prefix).unwrap().assert_consumed().unwrap();
            device.synchronize().unwrap();
        });
        timed(&mut reads, || {
            let mut file = File::open(&files[0]).unwrap();
            let mut piece = vec![0; 1 << 20];
            while file.read(&mut piece).unwrap() > 0 {}
        });
        remove(&files);
    }
    fs::remove_dir_all(&folder).unwrap();
    let megabytes = bytes as f64 / 1e6;
    let copy = median(&mut copies);
    println!("{megabytes:.0} MB in {} variables, medians of {rounds}:", weights.0.len());
    for (name, times) in [
        ("a copy with the syncs of a save", &mut copies),
        ("save", &mut saves),
        ("restore", &mut restores),
        ("reading the file alone", &mut reads),
    ] {
        let time = median(times);
        println!(
            "{name}: {:.3} s, {:.0} MB/s, {:.0} % of the copy's speed",
            time,
            megabytes / time,
            100.0 * copy / time
        );
    }
}
