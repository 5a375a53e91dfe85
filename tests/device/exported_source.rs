//! Models as Rust source (`export_wgpu`): a program with wgpu alone compiles one and runs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use wgrad as tf;
use wgrad::{DType, Tensor};

use crate::support::folder::Folder;

/// The newest library of this name among those that this test is linked with, and their folder.
fn library(name: &str) -> (PathBuf, PathBuf) {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let start = format!("lib{name}-");
    let found = std::fs::read_dir(&deps).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_string_lossy();
        file.starts_with(&start) && file.ends_with(".rlib")
    };
    let newest =
        found.filter(is_it).max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    (newest.unwrap(), deps)
}

/// Compiles a program in the folder; returns what it prints.
fn run(folder: &Path, main: &str) -> String {
    std::fs::write(folder.join("main.rs"), main).unwrap();
    let (wgpu, deps) = library("wgpu");
    let (pollster, _) = library("pollster");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut line = Command::new(rustc);
    line.current_dir(folder).args(["--edition=2024", "-Dwarnings", "main.rs", "-o", "main"]);
    line.arg("-L").arg(format!("dependency={}", deps.display()));
    line.arg("--extern").arg(format!("wgpu={}", wgpu.display()));
    line.arg("--extern").arg(format!("pollster={}", pollster.display()));
    let compiled = line.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(folder.join("main")).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

#[test]
fn a_program_with_wgpu_alone_runs_an_exported_model() {
    let folder = Folder::new("exported-source");
    let weights = tf::Variable::new(tf::random::Generator::from_seed(3).normal([3, 4]).unwrap());
    let f = tf::function(move |(x, truth): (Tensor, Tensor)| {
        let y = x.matmul(weights.read())?.softmax(-1)?;
        Ok(vec![
            y.clone(),
            y.argmax(-1)?.cast(DType::I32)?,
            truth.logical_not()?,
            truth,
            x.cast(DType::U8)?,
        ])
    });
    let x = tf::constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
    let truth = tf::constant([true, false]).unwrap();
    let concrete = f.get_concrete_function(((x.clone(), truth.clone()),)).unwrap();
    concrete.export_wgpu(folder.path("")).unwrap();
    let said = run(
        &folder.path(""),
        r#"
            mod model;
            fn main() {
                let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
                let adapter = pollster::block_on(instance.request_adapter(&Default::default())).unwrap();
                let (device, queue) = pollster::block_on(adapter.request_device(&Default::default())).unwrap();
                let model = model::Model::new(&device, &queue).unwrap();
                let error = model.run(&[1.0], &[true, false]).unwrap_err();
                println!("{error}");
                let required_limits = wgpu::Limits { max_buffer_size: 16, max_storage_buffer_binding_size: 16, ..wgpu::Limits::downlevel_defaults() };
                let small = wgpu::DeviceDescriptor { required_limits, ..Default::default() };
                let (small, queue) = pollster::block_on(adapter.request_device(&small)).unwrap();
                println!("{}", model::Model::new(&small, &queue).err().unwrap());
                for _ in 0..3 {
                    let (y, best, not, truth, bytes): (Vec<f32>, Vec<i32>, Vec<bool>, Vec<bool>, Vec<u8>) =
                        model.run(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[true, false]).unwrap();
                    println!("{y:?} {best:?} {not:?} {truth:?} {bytes:?}");
                }
            }
        "#,
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "input 0 has 1 elements and should have 6: f32 [2, 3]");
    let refused =
        "the model needs max_buffer_size 48, but the device has 16; request it with the device";
    assert_eq!(lines[1], refused);
    assert_eq!(lines.len(), 5);
    let results = concrete.call(&[x, truth]).unwrap();
    let (probabilities, others) = lines[2].split_once(']').unwrap();
    let want = results[0].to_vec::<f32>().unwrap();
    let got = probabilities.trim_start_matches('[').split(", ").map(|x| x.parse::<f32>().unwrap());
    assert_eq!(got.clone().count(), want.len());
    for (got, want) in got.zip(want) {
        assert!((got - want).abs() < 1e-6, "{got} and {want}");
    }
    let best = results[1].to_vec::<i32>().unwrap();
    assert_eq!(others, format!(" {best:?} [false, true] [true, false] [1, 2, 3, 4, 5, 6]"));
    assert!(lines[2..].iter().all(|line| *line == lines[2]));
}
