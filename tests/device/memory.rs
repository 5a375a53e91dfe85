//! The pool of device memory: what counts, what a limit refuses, what is released.
#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::{Device, DeviceOptions, Tensor};

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;

fn limited(bytes: u64) -> Device {
    Device::open(&DeviceOptions::new().memory_limit(bytes)).unwrap()
}

/// A computed (not uploaded) tensor with this many bytes.
fn ones(bytes: u64) -> tf::Result<Tensor> {
    Tensor::ones([bytes as usize / 4])
}

fn computed(bytes: u64) -> tf::Result<Tensor> {
    let x = ones(bytes)?;
    x.device().flush()?;
    Ok(x)
}

#[test]
fn what_is_live_and_what_waits_for_reuse_add_up() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes, stats.peak_bytes), (0, 0, 0));
        let a = computed(MB)?;
        let b = computed(3 * MB)?;
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes, stats.peak_bytes), (4 * MB, 0, 4 * MB));
        drop(a);
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes, stats.peak_bytes), (3 * MB, MB, 4 * MB));
        // The freed buffer is reused, so nothing grows.
        let a = computed(MB)?;
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes, stats.peak_bytes), (4 * MB, 0, 4 * MB));
        assert_eq!(stats.buffers, 2);
        drop((a, b));
        assert_eq!(device.trim()?, 4 * MB);
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes, stats.peak_bytes), (0, 0, 4 * MB));
        Ok(())
    })
}

#[test]
fn a_limit_that_is_far_too_small_refuses_everything_and_can_be_raised() -> tf::Result<()> {
    for limit in [0, 100] {
        let device = limited(limit);
        device.scope(|| -> tf::Result<()> {
            let error = tf::constant([1.0, 2.0]).unwrap_err();
            assert!(error.is_out_of_memory(), "{error}");
            let words = format!("256 bytes are requested, 0 are in use and the limit is {limit}");
            assert!(error.to_string().contains(&words), "{error}");
            let error = Tensor::ones([2])?.to_vec::<f32>().unwrap_err();
            assert!(error.is_out_of_memory(), "{error}");
            assert_eq!(device.stats().peak_bytes, 0);
            device.set_memory_limit(Some(512)).unwrap();
            assert_eq!(Tensor::ones([2])?.to_vec::<f32>()?, [1.0, 1.0]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_limit_is_used_to_the_last_byte() -> tf::Result<()> {
    // Buffers are rounded up to classes, unless the limit has no room for that. 4.25 MB would become 5 MB.
    let bytes = 4 * MB + 256 * KB;
    let device = limited(bytes);
    device.scope(|| {
        for _ in 0..2 {
            let x = computed(bytes)?;
            assert_eq!(device.stats().live_bytes, bytes);
            let error = ones(256)?.to_vec::<f32>().unwrap_err();
            assert!(error.to_string().contains("the limit is 4456448"), "{error}");
            drop(x);
        }
        assert_eq!(device.stats().peak_bytes, bytes);
        Ok(())
    })
}

#[test]
fn pooled_memory_counts_and_makes_room() -> tf::Result<()> {
    let device = limited(8 * MB);
    device.scope(|| {
        let kept = computed(MB)?;
        drop((computed(2 * MB)?, computed(3 * MB)?));
        // 1 live; 3 pooled, which include the 2 or are next to it.
        assert!(device.stats().pooled_bytes >= 3 * MB);
        let large = computed(7 * MB)?;
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes), (8 * MB, 0));
        assert!(stats.peak_bytes <= 8 * MB, "{}", stats.peak_bytes);
        assert_eq!(large.reduce_min(()).and_then(|x| x.item::<f32>()).ok(), None);
        drop(large);
        assert_eq!(kept.reduce_sum(())?.item::<f32>()?, (MB / 4) as f32);
        Ok(())
    })
}

#[test]
fn a_limit_below_what_is_live_is_an_error_that_names_the_largest_tensors() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let (a, b) = (computed(4 * MB)?, computed(2 * MB)?);
        let c = b.square()?;
        device.flush()?;
        drop(computed(3 * MB)?);
        assert_eq!(device.stats().pooled_bytes, 3 * MB);
        let error = device.set_memory_limit(Some(3 * MB)).unwrap_err();
        assert!(error.is_out_of_memory());
        assert_eq!(
            error.to_string(),
            "Device: a memory limit of 3145728 bytes is less than the 8388608 bytes in use; the largest tensors are 4194304 \
             bytes: f32 [1048576] made by Fill; 2097152 bytes: f32 [524288] made by Fill; 2097152 bytes: f32 [524288] made by \
             Square. Drop tensors first, or set a limit of at least 8388608 bytes; the limit is as before."
        );
        drop(c);
        // The limit was not set, and nothing was released.
        assert_eq!(ones(MB)?.reduce_max(())?.item::<f32>()?, 1.0);
        device.set_memory_limit(Some(6 * MB))?;
        // Pooled memory is released at once; live memory stays and stays readable.
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes), (6 * MB, 0));
        assert!(computed(256).is_err());
        assert_eq!(b.to_vec::<f32>()?[..2], [1.0, 1.0]);
        drop(a);
        device.set_memory_limit(Some(3 * MB))?;
        let stats = device.stats();
        assert_eq!((stats.live_bytes, stats.pooled_bytes), (2 * MB, 0));
        let c = computed(MB)?;
        assert_eq!(device.stats().live_bytes, 3 * MB);
        assert!(computed(256).is_err());
        drop((b, c));
        assert_eq!(device.stats().pooled_bytes, 3 * MB);
        device.set_memory_limit(None).unwrap();
        assert_eq!(ones(16 * MB)?.reduce_max(())?.item::<f32>()?, 1.0);
        Ok(())
    })
}

#[test]
fn what_holds_the_memory_is_named_and_a_smaller_batch_goes_on() -> tf::Result<()> {
    use tf::keras::optimizers::{Optimizer, Sgd};
    let device = limited(6 * MB);
    device.scope(|| {
        let weights = tf::Variable::new(Tensor::ones([512, 512])?);
        let sgd = Sgd::new(1e-9);
        let train = |batch: usize| -> tf::Result<f32> {
            let x = Tensor::ones([batch, 512])?;
            let tape = tf::GradientTape::new();
            let loss = x.matmul(weights.read())?.square()?.reduce_mean(())?;
            sgd.minimize(&loss, tape, &weights)?;
            loss.item::<f32>()
        };
        let kept = [computed(MB)?, computed(MB)?];
        let error = train(2048).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        for words in [
            "in use and the limit is 6291456; the largest tensors are",
            "2 times 1048576 bytes: f32 [262144] made by Fill",
            "1048576 bytes: f32 [512, 512] made by Fill",
        ] {
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(train(64)?, 512.0 * 512.0);
        drop(kept);
        Ok(())
    })
}

#[test]
fn no_more_than_ten_tensors_are_named() -> tf::Result<()> {
    let device = limited(2 * MB);
    device.scope(|| {
        let kept: Vec<Tensor> =
            (0..16).map(|i| computed(64 * KB + i * 1024)).collect::<tf::Result<_>>()?;
        let error = computed(2 * MB).unwrap_err().to_string();
        assert_eq!(error.matches("made by").count(), 10, "{error}");
        assert!(error.contains("f32 [20224]") && !error.contains("f32 [16384]"), "{error}");
        drop(kept);
        Ok(())
    })
}

#[test]
fn memory_info_shows_the_present_and_the_peak_since_its_reset() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let (a, b) = (computed(MB)?, computed(2 * MB)?);
        let info = device.memory_info();
        assert_eq!((info.current, info.peak), (3 * MB, 3 * MB));
        drop(b);
        let info = device.memory_info();
        assert_eq!((info.current, info.peak), (MB, 3 * MB));
        device.reset_memory_stats();
        assert_eq!(device.memory_info().peak, MB);
        drop(a);
        let info = device.memory_info();
        assert_eq!((info.current, info.peak), (0, MB));
        // The device's own counters do not start again.
        assert_eq!(device.stats().peak_bytes, 3 * MB);
        Ok(())
    })
}

#[test]
fn a_failed_flush_returns_what_it_took() -> tf::Result<()> {
    let device = limited(4 * MB);
    device.scope(|| {
        // Results of 1, 2 and 3 MB in one plan; there is no memory for the third.
        let all = (ones(MB)?, ones(2 * MB)?, ones(3 * MB)?);
        let error = device.flush().unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert_eq!(device.stats().live_bytes, 0);
        assert!(all.0.to_vec::<f32>().unwrap_err().is_out_of_memory());
        assert_eq!(ones(4 * MB)?.to_vec::<f32>()?.len() as u64, MB);
        Ok(())
    })
}

#[test]
fn uploads_wait_for_a_submission_until_they_are_many() -> tf::Result<()> {
    let device = Device::new()?;
    let before = device.stats().submits;
    let values = vec![1.0f32; 1 << 20];
    let upload = |times: usize| -> tf::Result<Vec<Tensor>> {
        device.scope(|| (0..times).map(|_| Tensor::from_slice(&values, [1 << 20])).collect())
    };
    let _few = upload(16)?;
    assert_eq!(device.stats().submits, before, "64 MiB may wait");
    let _more = upload(2)?;
    assert_eq!(device.stats().submits, before + 1, "more may not");
    Ok(())
}
