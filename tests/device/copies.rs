//! Copies between devices whose drivers share nothing: the bytes go through the host while both compute.
#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::{Device, DeviceOptions, Tensor, Variable};

fn two() -> tf::Result<(Device, Device)> {
    Ok((Device::new()?, Device::new()?))
}

#[test]
fn a_copy_is_waited_for_where_it_is_read() -> tf::Result<()> {
    let (a, b) = two()?;
    let x = a.scope(|| tf::constant([0.0, 1.0, 2.0, 3.0, 4.0]))?;
    // Read itself, with others, by an op, by a function, by a variable, and not at all.
    assert_eq!(x.to(&b)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0]);
    let (once, twice) = (x.to(&b)?, x.add(1.0)?.to(&b)?);
    assert_eq!((&once * &twice).to_vec::<f32>()?, [0.0, 2.0, 6.0, 12.0, 20.0]);
    let square = tf::function(|x: Tensor| x.square());
    assert_eq!(b.scope(|| square(x.to(&b)?))?.to_vec::<f32>()?, [0.0, 1.0, 4.0, 9.0, 16.0]);
    let variable = Variable::new(&x.to(&b)?);
    variable.assign_add(&x.to(&b)?)?;
    assert_eq!(variable.read().to_vec::<f32>()?, [0.0, 2.0, 4.0, 6.0, 8.0]);
    drop(x.to(&b)?);
    let view = x.to(&b)?.reshape([5, 1])?;
    assert_eq!(view.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0]);
    // Across and back without reading.
    assert_eq!(x.to(&b)?.to(&a)?.to(&b)?.add(1.0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0]);
    Ok(())
}

#[test]
fn a_print_of_a_copy_shows_its_values() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "copies::printing_copies", "--nocapture"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    for turn in 1..=10 {
        assert!(text.contains(&format!("copied [{turn} {}]", turn + 1)), "{turn}: {text}");
    }
}

#[test]
#[ignore = "run by a_print_of_a_copy_shows_its_values"]
fn printing_copies() -> tf::Result<()> {
    let (a, b) = two()?;
    for turn in 0..10 {
        let x = a.scope(|| tf::constant([1.0, 2.0])?.add(turn as f32))?;
        x.to(&b)?.print("copied")?;
        // Something else that waits, so that the device flushes and sends the report.
        let other = b.scope(|| Tensor::ones([4])?.square())?;
        b.synchronize()?;
        drop(other);
    }
    Ok(())
}

#[test]
fn many_copies_are_under_way_at_once() -> tf::Result<()> {
    let (a, b) = two()?;
    let copies: Vec<Tensor> = (0..200)
        .map(|i| a.scope(|| tf::fill([100], i as f32)?.add(0.5))?.to(&b))
        .collect::<tf::Result<_>>()?;
    let mut sum = b.scope(|| Tensor::zeros([100]))?;
    for copy in &copies {
        sum = sum.add(copy)?;
    }
    assert_eq!(sum.to_vec::<f32>()?, [20_000.0; 100]);
    // Copies that nobody reads leave nothing behind.
    let before = b.memory_info().current;
    for _ in 0..10_000 {
        let _ = a.scope(|| tf::constant([1.0, 2.0]))?.to(&b)?;
    }
    assert_eq!(b.scope(|| tf::constant(1.0)?.item::<f32>())?, 1.0);
    assert!(b.memory_info().current <= before + 64 * 256, "{:?}", b.memory_info());
    Ok(())
}

#[test]
fn a_copy_from_a_device_that_is_lost_meanwhile_is_an_error() -> tf::Result<()> {
    let (a, b) = two()?;
    let kept = b.scope(|| tf::constant([1.0, 2.0]))?;
    let x = a.scope(|| Tensor::ones([1 << 16])?.square())?;
    let (read, used, dropped) = (x.to(&b)?, x.to(&b)?, x.to(&b)?);
    let waiting = used.add(1.0)?;
    drop(dropped);
    a.destroy();
    // The copies may have arrived before the loss; if not, every use says so.
    match read.to_vec::<f32>() {
        Ok(values) => assert_eq!(values, [1.0; 1 << 16]),
        Err(error) => {
            assert!(error.is_device_lost(), "{error}");
            assert!(read.to_vec::<f32>().is_err() && read.add(1.0)?.to_vec::<f32>().is_err());
        }
    }
    match waiting.to_vec::<f32>() {
        Ok(values) => assert_eq!(values, [2.0; 1 << 16]),
        Err(error) => assert!(error.is_device_lost(), "{error}"),
    }
    let _ = b.flush();
    b.flush()?;
    assert_eq!((&kept * 3.0).to_vec::<f32>()?, [3.0, 6.0]);
    Ok(())
}

#[test]
fn a_copy_to_a_device_without_room_is_an_error() -> tf::Result<()> {
    let a = Device::new()?;
    let b = Device::open(&DeviceOptions::new().memory_limit(1 << 20))?;
    let x = a.scope(|| Tensor::ones([1 << 20]))?;
    let error = x.to(&b).unwrap_err();
    assert!(
        error.is_out_of_memory() && error.to_string().contains("the limit is 1048576"),
        "{error}"
    );
    // What waits there may hold the room.
    let small = a.scope(|| tf::fill([1 << 16], 2.0))?;
    for _ in 0..10 {
        assert_eq!(small.to(&b)?.square()?.reduce_mean(())?.item::<f32>()?, 4.0);
    }
    Ok(())
}

#[test]
fn threads_copy_in_both_directions() -> tf::Result<()> {
    let (a, b) = two()?;
    let there_and_back = |from: &Device, to: &Device, seed: f32| -> tf::Result<()> {
        for i in 0..50 {
            let x = from.scope(|| tf::fill([1000], seed + i as f32)?.square())?;
            let y = x.to(to)?.multiply(2.0)?.to(from)?.add(&x)?;
            assert_eq!(y.reduce_max(())?.item::<f32>()?, 3.0 * (seed + i as f32).powi(2));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| there_and_back(&a, &b, 1.0)),
            scope.spawn(|| there_and_back(&b, &a, 100.0)),
            scope.spawn(|| there_and_back(&a, &b, 200.0)),
        ];
        for thread in threads {
            thread.join().unwrap()?;
        }
        Ok(())
    })
}
