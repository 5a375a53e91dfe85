//! `tf.config`: the devices of a process. The lists are those of the process and fixed once used, so this is a program of its
//! own, in which the first physical device is three virtual ones.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::sync::Once;

use tf::config::{self, LogicalDeviceConfiguration};
use tf::{Device, Tensor};
use wgrad as tf;

const MB: usize = 1 << 20;

/// Two virtual devices of 2,048 MB, as in TensorFlow's guide, and a small one. Returns their names.
fn divided() -> [String; 3] {
    static DIVIDED: Once = Once::new();
    let first = &config::list_physical_devices(None).unwrap()[0];
    DIVIDED.call_once(|| {
        let limited = |mb| LogicalDeviceConfiguration::new().memory_limit_mb(mb);
        let parts = [limited(2048), limited(2048), limited(1)];
        config::set_logical_device_configuration(first, &parts).unwrap();
        assert_eq!(config::get_logical_device_configuration(first).unwrap().unwrap(), parts);
    });
    let kind = first.device_type();
    [0, 1, 2].map(|i| format!("/device:{kind}:{i}"))
}

fn devices() -> [Device; 3] {
    divided().map(|name| tf::device(&name).unwrap())
}

#[test]
fn virtual_devices_are_listed_and_named_as_tensorflow_names_them() -> tf::Result<()> {
    let names = divided();
    let kind = config::list_physical_devices(None)?[0].device_type();
    let listed = config::list_logical_devices(kind)?;
    let of_first: Vec<String> = listed.iter().take(3).map(config::LogicalDevice::name).collect();
    assert_eq!(of_first, names);
    assert_eq!(listed[0].memory_limit_mb(), Some(2048));
    assert_eq!(
        format!("{:?}", listed[1]),
        format!("LogicalDevice(name='/device:{kind}:1', device_type='{kind}')")
    );
    let full = |i| format!("/job:localhost/replica:0/task:0/device:{kind}:{i}");
    for (i, name) in names.iter().enumerate() {
        let device = tf::device(name)?;
        assert_eq!(device.name(), Some(full(i)));
        // Every form of the name is the same device.
        assert_eq!(tf::device(&full(i))?, device);
        assert_eq!(tf::device(&format!("/{}:{i}", kind.to_lowercase()))?, device);
        assert_eq!(listed[i].device()?, device);
    }
    // The default device is one of them, so tensors made without a name mix with those made by name.
    assert_eq!(Device::current()?, tf::device(&names[0])?);
    assert_eq!(Device::new()?.name(), None);
    assert!(config::list_logical_devices("TPU")?.is_empty());
    Ok(())
}

#[test]
fn nothing_changes_once_devices_have_been_used() -> tf::Result<()> {
    drop(devices());
    let physical = config::list_physical_devices(None)?;
    let error = config::set_visible_devices(&[], None).unwrap_err().to_string();
    assert!(
        error.contains("the visible devices cannot be changed after devices have been used"),
        "{error}"
    );
    let whole = [LogicalDeviceConfiguration::new()];
    let error =
        config::set_logical_device_configuration(&physical[0], &whole).unwrap_err().to_string();
    assert!(error.contains("the logical devices cannot be changed"), "{error}");
    let error = config::set_visible_devices(&[], "TPU").unwrap_err().to_string();
    assert!(error.contains("\"TPU\"") && error.contains("Write \"GPU\" or \"CPU\""), "{error}");
    assert_eq!(config::get_visible_devices(None)?, physical);
    Ok(())
}

#[test]
fn memory_grows_as_needed() -> tf::Result<()> {
    let first = &config::list_physical_devices(None)?[0];
    config::set_memory_growth(first, true)?;
    assert!(config::get_memory_growth(first)?);
    let error = config::set_memory_growth(first, false).unwrap_err().to_string();
    assert!(error.contains("cannot reserve it in advance"), "{error}");
    Ok(())
}

#[test]
fn virtual_devices_have_memory_and_counters_of_their_own_and_share_kernels() -> tf::Result<()> {
    let names = divided();
    let [a, b, small] = devices();
    let program = || -> tf::Result<f32> {
        let x = Tensor::ones([321, 123])?;
        x.matmul(x.transpose(())?)?.tanh()?.reduce_sum(())?.item::<f32>()
    };
    let first = a.scope(program)?;
    let (before, other) = (b.stats(), a.stats());
    assert_eq!(b.scope(program)?, first);
    let after = b.stats();
    assert!(after.kernels > before.kernels && after.plan_misses > before.plan_misses);
    assert_eq!(after.pipelines, before.pipelines, "the other device has compiled them");
    assert_eq!(a.stats().kernels, other.kernels);

    // A limit of 1 MB is that of one device.
    let error = small.scope(|| Tensor::ones([MB])?.to_vec::<f32>()).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert!(error.to_string().contains("the limit is 1048576"), "{error}");
    assert_eq!(
        small.scope(|| Tensor::ones([MB / 8])?.reduce_sum(())?.item::<f32>())?,
        (MB / 8) as f32
    );
    let kept = b.scope(|| Tensor::from_slice(&vec![1.0_f32; MB], [MB]))?;
    assert!(config::get_memory_info(&names[1])?.current >= 4 * MB as u64);
    assert!(config::get_memory_info(&names[2])?.peak <= MB as u64);
    drop(kept);
    config::reset_memory_stats(&names[1])?;
    let info = config::get_memory_info(&names[1])?;
    assert!(info.peak < 4 * MB as u64, "{info:?}");
    let error = config::get_memory_info("GPU:77").unwrap_err().to_string();
    assert!(error.contains("there is no /job:localhost/replica:0/task:0/device:GPU:77"), "{error}");
    Ok(())
}

#[test]
fn tensors_of_virtual_devices_are_copied_by_the_device() -> tf::Result<()> {
    let [a, b, _] = devices();
    let x = a.scope(|| tf::constant([[1.0, 2.0], [3.0, 4.0]]))?;
    let error = x.add(b.scope(|| tf::constant([1.0, 1.0]))?).unwrap_err().to_string();
    assert!(error.contains("copy one of them: x.to(&device)"), "{error}");

    let (reads, uploads) = (a.stats().reads, b.stats().uploaded_bytes);
    let tape = tf::GradientTape::new();
    tape.watch(&x)?;
    // The copy of a value that still waits, of a view, and back.
    let square = x.square()?;
    let y = square.reshape([4])?.to(&b)?.multiply(10.0)?;
    assert_eq!(y.device(), &b);
    let z = y.to(&a)?.add(square.reshape([4])?)?;
    let dx = tape.gradient(&z, &x)?.unwrap();
    assert_eq!(dx.device(), &a);
    a.flush()?;
    b.flush()?;
    assert_eq!(
        (a.stats().reads, b.stats().uploaded_bytes),
        (reads, uploads),
        "the host copies nothing"
    );
    assert_eq!(z.to_vec::<f32>()?, [11.0, 44.0, 99.0, 176.0]);
    assert_eq!(dx.to_vec::<f32>()?, [22.0, 44.0, 66.0, 88.0]);
    for dtype in ["u8", "bool", "empty", "scalar"] {
        let x = a.scope(|| match dtype {
            "u8" => tf::constant([1, 2, 250])?.cast(tf::DType::U8),
            "bool" => tf::constant([1, 0, 3])?.cast(tf::DType::Bool),
            "empty" => Tensor::zeros([0, 3]),
            _ => tf::constant(5.0),
        })?;
        let copy = x.to(&b)?;
        assert_eq!((copy.dtype(), copy.shape()), (x.dtype(), x.shape()));
        let numbers = |x: &Tensor| x.cast(tf::DType::F32)?.to_vec::<f32>();
        assert_eq!(numbers(&copy)?, numbers(&x)?, "{dtype}");
    }
    Ok(())
}

#[test]
fn a_model_trains_on_a_virtual_device() -> tf::Result<()> {
    use tf::keras::{
        CompileOptions, FitOptions, Model, Sequential, layers::Dense, optimizers::Sgd,
    };
    let [a, b, _] = devices();
    let train = || -> tf::Result<Vec<f64>> {
        tf::random::set_seed(5);
        let model = Sequential::new().add(Dense::new(4)).add(Dense::new(1));
        let x = tf::random::uniform([16, 3])?;
        let y = x.reduce_sum(1)?.reshape([16, 1])?;
        model.compile(Sgd::new(0.1), "mse", CompileOptions::new())?;
        let history = model.fit((&x, &y), FitOptions::new().epochs(3).verbose(0))?;
        Ok(history.get("loss").unwrap().to_vec())
    };
    let (on_a, on_b) = (a.scope(train)?, b.scope(train)?);
    assert_eq!(on_a, on_b);
    assert!(on_a[2] < on_a[0], "{on_a:?}");
    Ok(())
}

/// Runs an ignored test of this file in a process with these variables; returns what it writes to standard error.
fn in_a_process(test: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture", "--test-threads=1"]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{test}: {}{text}", String::from_utf8_lossy(&output.stdout));
    text
}

#[test]
fn placements_are_printed_on_request() {
    let kind = config::list_physical_devices(None).unwrap()[0].device_type();
    let lines = in_a_process("printing_placements", &[]);
    let first =
        format!("Executing op MatMul in device /job:localhost/replica:0/task:0/device:{kind}:0\n");
    let second =
        format!("Executing op MatMul in device /job:localhost/replica:0/task:0/device:{kind}:1\n");
    assert_eq!((lines.matches(&first).count(), lines.matches(&second).count()), (1, 1), "{lines}");
    assert!(!lines.contains("Executing op Square"), "{lines}");
}

#[test]
#[ignore = "run by placements_are_printed_on_request"]
fn printing_placements() {
    let [a, b, _] = devices();
    config::set_log_device_placement(true);
    for device in [a, b] {
        device.scope(|| Tensor::ones([2, 2])?.matmul(Tensor::ones([2, 2])?)).unwrap();
    }
    config::set_log_device_placement(false);
    Tensor::ones([2]).unwrap().square().unwrap();
}

#[test]
fn names_of_absent_devices_follow_the_soft_placement() {
    in_a_process("placing", &[]);
}

#[test]
#[ignore = "run by names_of_absent_devices_follow_the_soft_placement"]
fn placing() {
    assert!(config::get_soft_device_placement());
    let kind = config::list_physical_devices(None).unwrap()[0].device_type();
    let default = Device::current().unwrap();
    assert_eq!(tf::device("/gpu:31").unwrap().adapter().kind, default.adapter().kind);
    assert_eq!(
        tf::device(&format!("/{kind}:31")).unwrap(),
        tf::device(&format!("/{kind}:0")).unwrap()
    );
    config::set_soft_device_placement(false);
    let error = tf::device("/gpu:31").unwrap_err().to_string();
    assert!(error.contains("there is no /job:localhost/replica:0/task:0/device:GPU:31"), "{error}");
    assert!(tf::device(&format!("/{kind}:0")).is_ok());
}

#[test]
fn the_environment_hides_devices() {
    in_a_process("seeing_nothing", &[("WGRAD_VISIBLE_DEVICES", "-1")]);
    in_a_process("seeing_all", &[("WGRAD_VISIBLE_DEVICES", "0")]);
    in_a_process("seeing_what_is_not_there", &[("WGRAD_VISIBLE_DEVICES", "0,no such card")]);
}

#[test]
#[ignore = "run by the_environment_hides_devices"]
fn seeing_nothing() {
    assert!(config::list_physical_devices(None).unwrap().is_empty());
    assert!(config::list_logical_devices(None).unwrap().is_empty());
    assert!(Device::adapters().is_empty());
    for error in [
        Device::current().unwrap_err(),
        Device::new().unwrap_err(),
        tf::device("/cpu:0").unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("WGRAD_VISIBLE_DEVICES"), "{text}");
    }
}

#[test]
#[ignore = "run by the_environment_hides_devices"]
fn seeing_all() {
    assert_eq!(config::list_physical_devices(None).unwrap().len(), 1);
    assert_eq!(
        tf::constant([1.0, 2.0]).unwrap().square().unwrap().to_vec::<f32>().unwrap(),
        [1.0, 4.0]
    );
}

#[test]
#[ignore = "run by the_environment_hides_devices"]
fn seeing_what_is_not_there() {
    for error in [Device::current().unwrap_err(), Device::new().unwrap_err()] {
        let text = error.to_string();
        assert!(
            text.contains("WGRAD_VISIBLE_DEVICES: no adapter is called \"no such card\""),
            "{text}"
        );
    }
    assert!(config::list_physical_devices(None).is_err());
}

#[test]
fn virtual_devices_are_lost_together() {
    in_a_process("losing_one", &[]);
}

#[test]
#[ignore = "run by virtual_devices_are_lost_together"]
fn losing_one() {
    let [a, b, _] = devices();
    let x = b.scope(|| tf::constant([1.0, 2.0])).unwrap();
    a.destroy();
    assert!(x.to_vec::<f32>().unwrap_err().is_device_lost());
    assert!(x.to(&a).unwrap_err().is_device_lost());
    assert!(
        tf::device(&divided()[0])
            .unwrap()
            .scope(|| tf::constant([1.0]))
            .unwrap_err()
            .is_device_lost()
    );
    // The program can open another one.
    assert_eq!(Device::new().unwrap().scope(|| tf::constant([2.0])?.item::<f32>()).unwrap(), 2.0);
}

#[test]
fn threads_use_virtual_devices_at_the_same_time() -> tf::Result<()> {
    let [a, b, _] = devices();
    let program = |device: &Device, seed: f32| -> tf::Result<f32> {
        device.scope(|| {
            let mut x = tf::fill([64, 64], seed)?;
            for _ in 0..50 {
                x = x.matmul(Tensor::ones([64, 64])?)?.multiply(1.0 / 64.0)?;
            }
            x.reduce_mean(())?.item::<f32>()
        })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let device = if i % 2 == 0 { &a } else { &b };
                scope.spawn(move || program(device, i as f32))
            })
            .collect();
        for (i, thread) in threads.into_iter().enumerate() {
            let mean = thread.join().unwrap().unwrap();
            assert!((mean - i as f32).abs() < 1e-4, "{i}: {mean}");
        }
    });
    Ok(())
}
