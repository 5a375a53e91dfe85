//! Information for programs: plans, their shaders, the time of each kernel, submissions, cached pipelines.
#![allow(clippy::unwrap_used)]

use crate::support::child;

use std::path::PathBuf;
use std::time::Duration;

use wgrad as tf;
use wgrad::interop::DeviceExt;
use wgrad::{Device, PlanReport, Tensor};

#[test]
fn a_plan_lists_its_kernels() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        assert!(device.last_plan().is_none());
        let a = Tensor::from_slice(&[1.0; 20], [4, 5])?;
        let b = Tensor::from_slice(&[1.0; 15], [5, 3])?;
        let y = a.matmul(&b)?;
        let z = y.square()?;
        assert!(device.last_plan().is_none(), "nothing has run");
        let values = (y.to_vec::<f32>()?, z.to_vec::<f32>()?);
        assert_eq!(values, (vec![5.0; 12], vec![25.0; 12]));

        let plan = device.last_plan().unwrap();
        let ops: Vec<&str> = plan.kernels().iter().flat_map(|k| k.ops.clone()).collect();
        assert_eq!(ops, ["MatMul", "Square"]);
        for kernel in plan.kernels() {
            assert_eq!(kernel.outputs.last(), Some(&[4, 3].into()));
            assert!(kernel.wgsl.contains("fn main("));
            assert!(kernel.workgroups.iter().all(|n| *n >= 1));
        }
        // The product reads 20 and 15 floats and writes 12, whatever else the kernel computes.
        assert!(plan.kernels()[0].bytes >= 4 * (20 + 15 + 12));
        // Both results are held.
        assert_eq!(plan.buffer_bytes(), 2 * 4 * 12);

        let table = plan.to_string();
        assert!(table.starts_with("plan of "), "{table}");
        for word in ["MatMul", "Square", "[4, 3]", "96 B of buffers"] {
            assert!(table.contains(word), "{word}: {table}");
        }
        assert_eq!(table.lines().count(), 2 + plan.kernels().len());
        assert_every_shader_is_shown(&plan);
        Ok(())
    })
}

#[track_caller]
fn assert_every_shader_is_shown(plan: &PlanReport) {
    let text = plan.wgsl();
    for (i, kernel) in plan.kernels().iter().enumerate() {
        assert!(text.contains(kernel.wgsl.trim_end()));
        assert!(text.contains(&format!("// {} {}: ", i + 1, kernel.label)), "{text}");
    }
}

#[test]
fn a_shader_that_runs_twice_is_shown_once() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let a = Tensor::from_slice(&[1.0; 16], [4, 4])?;
        let y = a.matmul(&a)?.matmul(&a)?;
        assert_eq!(y.to_vec::<f32>()?, [16.0; 16]);
        let plan = device.last_plan().unwrap();
        assert_eq!(plan.kernels().len(), 2);
        assert_eq!(plan.kernels()[0].wgsl, plan.kernels()[1].wgsl);
        assert_eq!(plan.wgsl().matches("fn main(").count(), 1);
        assert_every_shader_is_shown(&plan);
        // A plan that runs again is the last plan again.
        let z = (&a * 2.0).to_vec::<f32>()?;
        assert_eq!(z, [2.0; 16]);
        assert_eq!(device.last_plan().unwrap().kernels().len(), 1);
        assert_eq!(a.matmul(&a)?.matmul(&a)?.to_vec::<f32>()?, [16.0; 16]);
        assert_eq!(device.last_plan().unwrap().kernels().len(), 2);
        Ok(())
    })
}

#[test]
fn a_profile_has_every_kernel_once() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = tf::random::Generator::from_seed(1).normal([128, 128])?;
        let run = || x.matmul(&x)?.tanh()?.reduce_sum(())?.item::<f32>();
        let expected = run()?;
        let waiting = &x + 1.0;

        let profiler = device.profile()?;
        let second = device.profile().unwrap_err().to_string();
        assert!(second.contains("being recorded already"), "{second}");
        let before = device.stats();
        for _ in 0..40 {
            assert_eq!(run()?, expected, "the same value while it is watched");
        }
        let kernels = device.stats().kernels - before.kernels;
        let held = &x * 3.0;
        let profile = profiler.finish()?;

        // One more kernel, of an op that was pending at the end; none of ops called before the start.
        assert_eq!(profile.kernels().len() as u64, kernels + 1);
        assert_eq!(held.to_vec::<f32>()?[0], 3.0 * x.to_vec::<f32>()?[0]);
        let matmul = "matmul";
        let products: Vec<_> =
            profile.kernels().iter().filter(|k| k.label.contains(matmul)).collect();
        assert!(products.len() >= 40, "{profile}");
        // 128^3 multiplications take a measurable time on any device.
        assert!(products.iter().all(|k| k.duration.as_nanos() > 0), "{profile}");
        assert!(products.iter().all(|k| k.bytes >= 3 * 4 * 128 * 128));
        let mut starts = profile.kernels().iter().map(|k| k.start);
        assert_eq!(starts.next().unwrap().as_nanos(), 0);
        assert!(starts.is_sorted(), "one queue, one order");
        let total: f64 = profile.kernels().iter().map(|k| k.duration.as_secs_f64()).sum();
        assert!((profile.total().as_secs_f64() - total).abs() < 1e-6);

        let table = profile.to_string();
        assert!(table.contains(&device.adapter().name), "{table}");
        assert!(table.contains("GFLOP/s"), "{table}");

        let path = std::env::temp_dir().join(format!("wgrad-trace-{}.json", std::process::id()));
        profile.write_chrome_trace(&path)?;
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
        // Its name, then the kernels.
        assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 1 + profile.kernels().len());
        let missing = std::env::temp_dir().join("no such folder").join("trace.json");
        assert!(matches!(profile.write_chrome_trace(missing), Err(tf::Error::Io(_))));

        // The recording ends with the profiler, whether it was finished or not.
        drop(device.profile()?);
        assert_eq!(run()?, expected);
        assert!(device.profile()?.finish()?.kernels().is_empty());
        drop(waiting);
        Ok(())
    })
}

/// `kernels` ops that no planner can fuse: each reads everything that the previous one wrote.
fn chain(x: &Tensor, kernels: usize) -> tf::Result<Tensor> {
    let mut y = x.clone();
    for _ in 0..kernels / 2 {
        y = y.matmul(x)?.transpose([1, 0])?.matmul(x)?;
    }
    Ok(y)
}

#[test]
fn more_kernels_than_one_query_set_holds_are_profiled() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = Tensor::from_slice(&[0.5, 0.5, 0.5, 0.5], [2, 2])?;
        let profiler = device.profile()?;
        let before = device.stats().kernels;
        let y = chain(&x, 1900)?;
        assert_eq!(y.to_vec::<f32>()?, [0.5; 4]);
        let kernels = device.stats().kernels - before;
        assert!(kernels > 1000, "{kernels}");
        let profile = profiler.finish()?;
        assert_eq!(profile.kernels().len() as u64, kernels);
        Ok(())
    })
}

#[test]
fn long_plans_start_early_and_short_ones_stay_whole() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = Tensor::from_slice(&[0.5, 0.5, 0.5, 0.5], [2, 2])?;
        let run = |kernels: usize| -> tf::Result<(u64, u64)> {
            device.synchronize()?;
            let before = device.stats();
            assert_eq!(chain(&x, kernels)?.to_vec::<f32>()?, [0.5; 4]);
            let after = device.stats();
            Ok((after.kernels - before.kernels, after.submits - before.submits))
        };
        let (kernels, submits) = run(20)?;
        assert!((20..96).contains(&kernels) && submits == 1, "{kernels} in {submits}");
        let (kernels, submits) = run(300)?;
        assert!(kernels >= 300, "{kernels}");
        assert!((2..=6).contains(&submits), "{kernels} in {submits}");
        Ok(())
    })
}

/// An application's device, with those of these features that the adapter has.
fn with_features(wanted: wgpu::Features) -> (Device, wgpu::Features) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapter = pollster::block_on(instance.request_adapter(&Default::default())).unwrap();
    let required_features = adapter.features() & wanted;
    let descriptor = wgpu::DeviceDescriptor { required_features, ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
    (Device::from_wgpu(&adapter, device, queue).unwrap(), required_features)
}

#[test]
fn a_profile_says_by_which_clock_it_was_taken() -> tf::Result<()> {
    let (inside, around) =
        (wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES, wgpu::Features::TIMESTAMP_QUERY);
    for wanted in [wgpu::Features::empty(), around, around | inside] {
        let (device, features) = with_features(wanted);
        let clock = match features {
            has if has.contains(inside) => "clock between kernels",
            has if has.contains(around) => "clock around passes of one kernel each",
            _ => "no timestamps: the host's clock",
        };
        device.scope(|| -> tf::Result<()> {
            let x = Tensor::ones([64, 64])?;
            let profiler = device.profile()?;
            let y = x.matmul(&x)?.matmul(&x)?;
            assert_eq!(y.to_vec::<f32>()?, vec![4096.0; 64 * 64]);
            let profile = profiler.finish()?;
            assert!(profile.to_string().contains(clock), "{profile}");
            let kernels = profile.kernels();
            assert!(kernels.len() >= 2, "{profile}");
            for pair in kernels.windows(2) {
                let end = pair[0].start + pair[0].duration;
                // Each time is rounded to nanoseconds separately.
                assert!(pair[1].start + Duration::from_nanos(1) >= end, "{kernels:?}");
            }
            assert!(profile.total().as_nanos() > 0, "{profile}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Runs only the test `name` of this program again, in another environment, and returns its output.
fn in_environment(name: &str, variables: &[(&str, &str)]) -> String {
    child::passes(child::command(module_path!(), name).envs(variables.iter().copied()))
}

#[test]
#[ignore = "run by others"]
fn a_small_program() {
    env_logger::init();
    let x = tf::constant([1.0, 2.0]).unwrap();
    assert_eq!((x * 2.0).tanh().unwrap().to_vec::<f32>().unwrap().len(), 2);
}

#[test]
fn new_plans_are_logged_on_request() {
    let log = [("RUST_LOG", "wgrad=info")];
    let quiet = in_environment("a_small_program", &log);
    assert!(!quiet.contains("plan of"), "{quiet}");
    let reported = in_environment("a_small_program", &[log[0], ("WGRAD_PRINT_PLANS", "1")]);
    assert_eq!(reported.matches("plan of ").count(), 1, "{reported}");
    assert!(reported.contains("Tanh"), "{reported}");
}

#[test]
fn a_cache_that_cannot_be_used_is_no_error() {
    let folder = std::env::temp_dir().join(format!("wgrad-cache-{}", std::process::id()));
    std::fs::write(&folder, b"a file where a folder should be").unwrap();
    in_environment("a_small_program", &[("WGRAD_CACHE", folder.to_str().unwrap())]);
    std::fs::remove_file(&folder).unwrap();

    // Caches of other adapters under every name that an adapter may have.
    let kept = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder.join("pipelines")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    in_environment("a_small_program", &[("WGRAD_CACHE", folder.to_str().unwrap())]);
    for file in kept() {
        std::fs::write(file, b"not what a driver has made").unwrap();
    }
    let log = ("RUST_LOG", "wgrad=warn");
    let text = in_environment("a_small_program", &[log, ("WGRAD_CACHE", folder.to_str().unwrap())]);
    let refused = text.matches("not a cache of wgrad").count();
    assert_eq!(refused, kept().len(), "{text}");
    let _ = std::fs::remove_dir_all(&folder);
}
