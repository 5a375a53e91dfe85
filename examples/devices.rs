//! Devices: which ones there are, which of them the program uses, one divided into two, the same product on each kind, copies,
//! and a memory limit. The programs of TensorFlow's guide to GPUs, in its order.

use std::time::Instant;

use wgrad as tf;
use wgrad::config::{self, LogicalDeviceConfiguration};
use wgrad::{Result, Tensor};

fn main() -> Result<()> {
    // Before the first tensor: the lists of devices are fixed once one of them is used.
    let physical = config::list_physical_devices(None)?;
    println!("Physical devices:");
    for device in &physical {
        println!("  {device}: {}", device.adapter());
    }
    let gpus = config::list_physical_devices("GPU")?;
    println!("Num GPUs Available: {}", gpus.len());
    if gpus.len() > 2 {
        config::set_visible_devices(&gpus[..2], "GPU")?;
    }
    let visible = config::get_visible_devices(None)?;
    for device in &visible {
        config::set_memory_growth(device, true)?;
    }

    // The first GPU, or where there is none the CPU, becomes two virtual devices of 2,048 MB.
    let Some(first) = gpus.first().or(visible.first()) else {
        // The default device's error says what is missing.
        return tf::Device::current().map(drop);
    };
    let half = LogicalDeviceConfiguration::new().memory_limit_mb(2048);
    config::set_logical_device_configuration(first, &[half.clone(), half])?;
    let logical = config::list_logical_devices(first.device_type())?;
    println!(
        "{} physical, {} logical {}s",
        config::get_visible_devices(first.device_type())?.len(),
        logical.len(),
        first.device_type()
    );
    println!("Number of devices: {}", config::list_logical_devices(None)?.len());

    // Which op runs where.
    config::set_log_device_placement(true);
    let c = tf::device("/gpu:0")?.scope(|| -> Result<Tensor> {
        let a = tf::constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
        let b = tf::constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
        a.matmul(&b)
    })?;
    config::set_log_device_placement(false);
    println!("{c}");

    // The same products on each kind of device.
    for kind in ["CPU", "GPU"] {
        if config::list_logical_devices(kind)?.is_empty() {
            println!("On {kind}: there is none");
            continue;
        }
        let milliseconds = tf::device(&format!("{kind}:0"))?.scope(|| {
            let x = tf::random::uniform([1000, 1000])?;
            assert!(x.device().name().is_some_and(|name| name.ends_with(&format!("{kind}:0"))));
            time_matmul(&x)
        })?;
        println!("On {kind}:\n10 loops: {milliseconds:.2}ms");
    }

    // Tensors of different devices do not mix; a copy does, with its gradient.
    let (here, there) = (logical[0].device()?, logical[1].device()?);
    let x = here.scope(|| tf::constant([1.0, 2.0, 3.0]))?;
    let tape = tf::GradientTape::new();
    tape.watch(&x)?;
    let y = x.to(&there)?.square()?.reduce_sum(())?;
    println!("sum of squares on {}: {}", logical[1].name(), y.item::<f32>()?);
    if let Some(dx) = tape.gradient(&y, &x)? {
        println!("gradient on {}: {:?}", logical[0].name(), dx.to_vec::<f32>()?);
    }

    // What holds the memory, if there is not enough.
    let kept = there.scope(|| Tensor::ones([256, 1024])?.square())?;
    there.flush()?;
    println!("{} takes {:?}", logical[1].name(), config::get_memory_info(&logical[1].name())?);
    there.set_memory_limit(Some(4 << 20))?;
    if let Err(error) = there.scope(|| Tensor::zeros([1 << 20])?.reduce_sum(())?.item::<f32>()) {
        println!("{error}");
    }
    println!("it is still there: {}", kept.reduce_mean(())?.item::<f32>()?);
    Ok(())
}

/// The time of ten products, in milliseconds.
fn time_matmul(x: &Tensor) -> Result<f64> {
    x.matmul(x)?.device().synchronize()?; // compiles the kernels
    let start = Instant::now();
    for _ in 0..10 {
        // A product that nothing holds would not be computed.
        let product = x.matmul(x)?;
        product.device().flush()?;
    }
    x.device().synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}
