//! Measuring variants of ops: results are used, stored and correct; damaged ones are ignored.
//!
//! Tuning results are stored in a folder that the environment names, so most parts run in a separate process.
#![allow(clippy::unwrap_used)]

use crate::support::child;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use wgrad as tf;
use wgrad::{Conv2dOptions, Device, DeviceOptions, Padding, Tensor, Tuning};

/// Runs only the test `name` of this program again, in another environment, and returns its output.
fn in_environment(name: &str, variables: &[(&str, &str)]) -> String {
    let mut command = child::command(module_path!(), name);
    let command = command.env_remove("WGRAD_TUNE").env("RUST_LOG", "wgrad=warn");
    child::passes(command.envs(variables.iter().copied()))
}

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Folder(std::env::temp_dir().join(format!("wgrad-tuner-{}-{next}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The only file of tuning results.
    fn findings(&self) -> PathBuf {
        let files: Vec<_> =
            std::fs::read_dir(self.0.join("tuning")).unwrap().map(|f| f.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A text like that of `Device::tuning_findings`, with other findings.
fn with_findings(text: &str, findings: &str) -> String {
    let header = &text[..text.find("checksum ").unwrap()];
    let sum = format!("{header}{findings}").bytes().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{header}checksum {sum:016x}\n{findings}")
}

const KEY: &str = "MatMul f32[70, 64] f32[64, 33]";
/// The simplest variant, which no adapter prefers for these sizes.
const PLAIN: &str = "registers 1x1 8x8";

fn matrices() -> tf::Result<[Tensor; 2]> {
    let numbers = |count: usize, step: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * step) % 101) as f32 / 50.0 - 1.0).collect()
    };
    let a = Tensor::from_slice(&numbers(70 * 64, 7), [70, 64])?;
    let b = Tensor::from_slice(&numbers(64 * 33, 5), [64, 33])?;
    Ok([a, b])
}

/// The product to measure.
fn product() -> tf::Result<Vec<f32>> {
    let [a, b] = matrices()?;
    a.matmul(&b)?.to_vec::<f32>()
}

/// The expected products, summed in f64.
fn expected() -> tf::Result<Vec<f64>> {
    let [a, b] = matrices()?;
    let (a, b) = (a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    let at = |i: usize, j: usize| -> f64 {
        (0..64).map(|k| f64::from(a[i * 64 + k]) * f64::from(b[k * 33 + j])).sum()
    };
    Ok((0..70 * 33).map(|e| at(e / 33, e % 33)).collect())
}

#[track_caller]
fn assert_right(values: &[f32]) {
    // Sums of 64 numbers up to 1, each partial sum rounded: at most 64 * 64 * 2^-24.
    for (i, (y, want)) in values.iter().zip(expected().unwrap()).enumerate() {
        assert!((f64::from(*y) - want).abs() < 2.5e-4, "element {i}: {y} for {want}");
    }
    assert_eq!(values.len(), 70 * 33);
}

/// The shader of the product in the most recent plan.
fn shader(device: &Device) -> String {
    let plan = device.last_plan().unwrap();
    let kernel = plan.kernels().iter().find(|kernel| kernel.ops.contains(&"MatMul")).unwrap();
    kernel.wgsl.to_string()
}

#[test]
#[ignore = "run by others"]
fn part_measures() {
    env_logger::init();
    let device = Device::new().unwrap();
    device.scope(|| {
        assert!(device.tune().unwrap().ops().is_empty(), "nothing has run");
        assert_right(&product().unwrap());
        let report = device.tune().unwrap();
        let [op] = report.ops() else { panic!("{report}") };
        assert_eq!(op.op, KEY);
        let chosen = op.variants.iter().find(|variant| variant.name == op.chosen).unwrap();
        assert!(!chosen.wrong && chosen.time.unwrap() > Duration::ZERO, "{op:?}");
        assert!(op.variants.iter().all(|variant| !variant.wrong), "{op:?}");
        assert!(op.variants.iter().any(|variant| variant.name == PLAIN), "{op:?}");
        assert!(op.gain().unwrap() > 0.0);
        assert!(report.to_string().contains(KEY), "{report}");
        assert!(device.tuning_findings().contains(&format!("\n{}\t{KEY}\n", op.chosen)));

        let misses = device.stats().plan_misses;
        let values = product().unwrap();
        assert!(device.stats().plan_misses > misses, "it is planned again");
        assert_right(&values);
        assert_eq!(product().unwrap(), values, "the same bits");
        assert!(device.tune().unwrap().ops().is_empty(), "all is known");
    });
}

#[test]
#[ignore = "run by others"]
fn part_finds_it_measured() {
    env_logger::init();
    let device = Device::new().unwrap();
    device.scope(|| {
        assert_right(&product().unwrap());
        assert!(device.tune().unwrap().ops().is_empty());
        assert!(device.tuning_findings().contains(&format!("\t{KEY}\n")));
    });
}

#[test]
fn findings_are_kept_for_the_next_process() {
    let folder = Folder::new();
    let cache = [("WGRAD_CACHE", folder.path())];
    let text = in_environment("part_measures", &cache);
    assert!(!text.contains("WARN"), "{text}");
    let kept = std::fs::read_to_string(folder.findings()).unwrap();
    assert!(kept.contains(KEY), "{kept}");
    let text = in_environment("part_finds_it_measured", &cache);
    assert!(!text.contains("WARN"), "{text}");
    // If it is off, nothing is written or read.
    let empty = Folder::new();
    let off = [("WGRAD_CACHE", "off"), ("XDG_CACHE_HOME", empty.path())];
    in_environment("part_measures", &off);
    assert!(!empty.0.join("wgrad").join("tuning").exists());
}

#[test]
#[ignore = "run by others"]
fn part_uses_what_the_file_says() {
    env_logger::init();
    let device = Device::new().unwrap();
    device.scope(|| {
        assert_right(&product().unwrap());
        let found = shader(&device);
        device.set_tuning(Tuning::Off);
        assert_right(&product().unwrap());
        println!("used: {}", found != shader(&device));
        // On again.
        device.set_tuning(Tuning::Found);
        assert_right(&product().unwrap());
        assert_eq!(shader(&device), found);
    });
}

#[test]
fn broken_files_are_left_aside() {
    let folder = Folder::new();
    let cache = [("WGRAD_CACHE", folder.path())];
    in_environment("part_measures", &cache);
    let path = folder.findings();
    let good = std::fs::read_to_string(&path).unwrap();
    let run = |contents: &[u8]| {
        std::fs::write(&path, contents).unwrap();
        in_environment("part_uses_what_the_file_says", &cache)
    };

    // A valid one is used, even if it names the slowest variant.
    let plain = with_findings(&good, &format!("{PLAIN}\t{KEY}\n"));
    let text = run(plain.as_bytes());
    assert!(text.contains("used: true") && !text.contains("WARN"), "{text}");
    // An unknown variant is not used, but causes no warning: another version may have had it.
    let text = run(with_findings(&good, &format!("quick 9x9\t{KEY}\n")).as_bytes());
    assert!(text.contains("used: false") && !text.contains("WARN"), "{text}");

    let noise: Vec<u8> =
        (0..1000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let adapter = good.lines().find(|line| line.starts_with("adapter ")).unwrap();
    let foreign =
        with_findings(&plain.replace(adapter, "adapter of dreams"), &format!("{PLAIN}\t{KEY}\n"));
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("empty", Vec::new(), "holds no findings"),
        ("noise", noise, "is not text"),
        ("truncated", plain.as_bytes()[..plain.len() - 9].to_vec(), "is damaged"),
        ("checksum", plain.replace(PLAIN, "registers 1x1 8x9").into_bytes(), "is damaged"),
        ("foreign", foreign.into_bytes(), "of another adapter"),
    ];
    for (what, contents, why) in cases {
        let text = run(&contents);
        assert!(text.contains("used: false"), "{what}: {text}");
        assert!(text.contains("WARN") && text.contains(why), "{what}: {text}");
    }
    // A damaged file is replaced by the next measurement.
    in_environment("part_measures", &cache);
    let text = in_environment("part_finds_it_measured", &cache);
    assert!(!text.contains("WARN"), "{text}");
}

#[test]
#[ignore = "run by others"]
fn part_loads_and_refuses() {
    let device = Device::new().unwrap();
    device.scope(|| {
        assert_right(&product().unwrap());
        let table = shader(&device);
        let empty = device.tuning_findings();
        assert_eq!(device.load_tuning_findings(&empty).unwrap(), 0);

        let text = with_findings(&empty, &format!("{PLAIN}\t{KEY}\n"));
        assert_eq!(device.load_tuning_findings(&text).unwrap(), 1);
        assert_eq!(device.tuning_findings(), text);
        assert_right(&product().unwrap());
        assert_ne!(shader(&device), table);

        for (text, why) in [
            (String::new(), "holds no findings"),
            (text.replace(KEY, "Conv2D"), "is damaged"),
            (text.replace("version ", "version 9"), "of another adapter, driver or version"),
        ] {
            let error = device.load_tuning_findings(&text).unwrap_err();
            assert!(matches!(error, tf::Error::Data(_)), "{error:?}");
            assert!(error.to_string().contains(why), "{error}");
        }
        assert_eq!(device.tuning_findings(), text, "as it was");
    });
}

#[test]
fn findings_travel_as_text() {
    in_environment("part_loads_and_refuses", &[("WGRAD_CACHE", "off")]);
}

#[test]
#[ignore = "run by others"]
fn part_measures_convolutions() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let numbers = |count: usize| -> Vec<f32> {
            // Halves, whose sums of products are exact in any order.
            (0..count).map(|i| ((i * 7) % 11) as f32 / 2.0 - 2.5).collect()
        };
        let x = Tensor::from_slice(&numbers(2 * 9 * 8 * 3), [2, 9, 8, 3]).unwrap();
        let w = Tensor::from_slice(&numbers(3 * 3 * 3 * 10), [3, 3, 3, 10]).unwrap();
        let same = Conv2dOptions::new().padding(Padding::Same);
        let run = || -> tf::Result<[Vec<f32>; 3]> {
            let tape = tf::GradientTape::new();
            tape.watch(&x)?;
            tape.watch(&w)?;
            let y = x.conv2d(&w, same)?;
            let square = &y * &y;
            let [dx, dw] = tape.required_gradient(&square, [&x, &w])?;
            let [y, dw] = [y.to_vec::<f32>()?, dw.to_vec::<f32>()?];
            Ok([y, dw, dx.to_vec::<f32>()?])
        };
        let adds_patches =
            || device.last_plan().unwrap().to_string().contains("conv2d_add_patches");
        let before = run().unwrap();
        let report = device.tune().unwrap();
        let names = ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"];
        for name in names {
            let begins = |op: &&tf::TunedOp| op.op.split(' ').next() == Some(name);
            let op = report.ops().iter().find(begins).unwrap_or_else(|| panic!("{name}: {report}"));
            assert!(op.variants.iter().all(|variant| !variant.wrong), "{op:?}");
        }
        assert_eq!(report.ops().len(), names.len(), "{report}");
        assert_eq!(run().unwrap(), before);

        // The input's gradient has two variants, and the table selects that of patches for so few channels.
        let op = report.ops().iter().find(|op| op.op.starts_with("Conv2DBackpropInput")).unwrap();
        let ways: Vec<&str> = op.variants.iter().map(|variant| variant.name.as_str()).collect();
        let other: Vec<&&str> = ways.iter().filter(|n| n.starts_with("other way, ")).collect();
        assert_eq!(other.len(), 1, "{ways:?}");
        for (name, adds) in [(ways[0], true), (*other[0], false)] {
            let findings = format!("{name}\t{}\n", op.op);
            let text = with_findings(&device.tuning_findings(), &findings);
            assert_eq!(device.load_tuning_findings(&text).unwrap(), 1);
            assert_eq!(run().unwrap(), before, "{name}");
            assert_eq!(adds_patches(), adds, "{name}");
        }
    });
}

#[test]
fn convolutions_and_their_gradients_are_measured() {
    let text = in_environment("part_measures_convolutions", &[("WGRAD_CACHE", "off")]);
    assert!(!text.contains("WARN"), "{text}");
}

#[test]
#[ignore = "run by others"]
fn part_measures_in_the_background() {
    let device = Device::new().unwrap();
    assert_eq!(device.tuning(), Tuning::Background);
    device.scope(|| {
        let a = Tensor::from_slice(&[1.0, 2.0, 3.0], [1, 3]).unwrap();
        let b = Tensor::from_slice(&[1.0; 12], [3, 4]).unwrap();
        let began = Instant::now();
        while !device.tuning_findings().contains("f32[1, 3] f32[3, 4]") {
            assert_eq!(a.matmul(&b).unwrap().to_vec::<f32>().unwrap(), [6.0; 4]);
            assert!(began.elapsed() < Duration::from_secs(120), "{}", device.tuning_findings());
        }
        assert_eq!(a.matmul(&b).unwrap().to_vec::<f32>().unwrap(), [6.0; 4]);
        assert!(device.tune().unwrap().ops().is_empty());
    });
}

#[test]
fn what_runs_often_is_measured_in_the_background_if_it_may() {
    let variables = [("WGRAD_CACHE", "off"), ("WGRAD_TUNE", "background")];
    in_environment("part_measures_in_the_background", &variables);
}

#[test]
#[ignore = "run by others"]
fn part_prints_its_mode() {
    env_logger::init();
    let device = Device::new().unwrap();
    println!("mode: {:?}", device.tuning());
    // However often something runs, nothing is measured without a request.
    device.scope(|| {
        for _ in 0..50 {
            product().unwrap();
        }
        assert!(!device.tuning_findings().contains("MatMul"));
        device.set_tuning(Tuning::Off);
        assert_eq!(device.tuning(), Tuning::Off);
    });
}

#[test]
fn the_environment_names_the_mode() {
    let mode = |value: &str| {
        let variables = [("WGRAD_CACHE", "off"), ("WGRAD_TUNE", value)];
        in_environment("part_prints_its_mode", &variables)
    };
    let text = mode("");
    assert!(text.contains("mode: Found") && !text.contains("WARN"), "{text}");
    let text = mode("off");
    assert!(text.contains("mode: Off") && !text.contains("WARN"), "{text}");
    let text = mode("always");
    assert!(text.contains("mode: Found"), "{text}");
    assert!(
        text.contains("WGRAD_TUNE is \"always\"; it is `off`, `found` or `background`"),
        "{text}"
    );
}

#[test]
#[ignore = "run by others"]
fn part_has_no_memory() {
    env_logger::init();
    // Two inputs and a result of 256 KiB each fit, but not another such set.
    let options = DeviceOptions::new().memory_limit(1 << 20);
    let device = Device::open(&options).unwrap();
    device.scope(|| {
        let a = Tensor::from_slice(&[0.5; 1 << 16], [256, 256]).unwrap();
        let b = Tensor::from_slice(&[1.0; 1 << 16], [256, 256]).unwrap();
        let y = a.matmul(&b).unwrap();
        device.synchronize().unwrap();
        assert!(device.tune().unwrap().ops().is_empty());
        assert_eq!(y.to_vec::<f32>().unwrap(), [128.0; 1 << 16]);
        drop(y);
        assert_eq!(a.matmul(&b).unwrap().to_vec::<f32>().unwrap(), [128.0; 1 << 16]);
        assert!(device.stats().peak_bytes <= 1 << 20);
    });
}

#[test]
fn measuring_heeds_the_memory_limit() {
    let text = in_environment(
        "part_has_no_memory",
        &[("WGRAD_CACHE", "off"), ("RUST_LOG", "wgrad=debug")],
    );
    assert!(text.contains("is not measured"), "{text}");
}

#[test]
fn a_profile_is_not_disturbed() -> tf::Result<()> {
    let device = Device::new()?;
    let profiler = device.profile()?;
    let error = device.tune().unwrap_err().to_string();
    assert!(error.contains("being recorded already"), "{error}");
    assert!(profiler.finish()?.kernels().is_empty());
    Ok(())
}

#[test]
fn the_forged_text_is_as_the_device_writes_it() -> tf::Result<()> {
    let text = Device::new()?.tuning_findings();
    let findings = text[text.find("checksum ").unwrap()..].split_once('\n').unwrap().1;
    assert_eq!(with_findings(&text, findings), text);
    assert!(Path::new(&Folder::new().path()).is_absolute());
    Ok(())
}
