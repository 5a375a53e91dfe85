//! Tests of flushes: donated and lent values, keys, equal scalars.

use super::Device;
use crate::device::DeviceOptions;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Coincidences, Graph, Key, Taken, Value};
use crate::interop::TensorExt;
use crate::shape::Axes;
use crate::tape::GradientTape;
use crate::tensor::{Tensor, constant};
use std::sync::Arc;

impl Device {
    fn take(&self, lent: &[&Arc<Value>]) -> Taken {
        self.state().stream.take(lent)
    }
}

fn open() -> Device {
    Device::open(&DeviceOptions::default()).unwrap()
}

fn on_a_device(test: impl FnOnce(&Device) -> Result<()>) {
    let device = open();
    device.scope(|| test(&device)).unwrap();
}

fn leaf(first: f32) -> Tensor {
    constant([first, 2.0, 3.0, 4.0]).unwrap()
}

#[test]
fn a_leaf_that_nobody_holds_is_donated() {
    on_a_device(|device| {
        let (x, b, dead) = (leaf(1.0), leaf(2.0), leaf(3.0));
        let y = x.add(&b)?;
        drop(dead.exp()?);
        drop((x, dead));
        let graph = device.take(&[]).graph;
        assert_eq!(graph.donated, [true, false], "and a leaf of dead nodes is none");
        drop(y);
        Ok(())
    });
}

#[test]
fn whoever_holds_a_leaf_keeps_it() {
    on_a_device(|device| {
        // A clone, even one held by another thread.
        let x = leaf(1.0);
        let clone = x.clone();
        let y = x.square()?;
        drop(x);
        assert_eq!(device.take(&[]).graph.donated, [false]);
        let z = clone.square()?;
        let thread = std::thread::spawn(move || drop(clone));
        thread.join().unwrap();
        assert_eq!(device.take(&[]).graph.donated, [true]);
        // A variable, and a tape that keeps inputs for a gradient rule.
        let v = crate::variable::Variable::new(leaf(1.0));
        let w = v.read().square()?;
        assert_eq!(device.take(&[]).graph.donated, [false]);
        let x = leaf(1.0);
        let tape = GradientTape::new();
        let _ = tape.watch(&x);
        let u = x.square()?;
        drop(x);
        assert_eq!(device.take(&[]).graph.donated, [false]);
        drop((y, z, w, u, tape));
        Ok(())
    });
}

#[test]
fn a_shared_buffer_is_not_donated() {
    on_a_device(|device| {
        let x = leaf(1.0);
        let matrix = x.reshape([2, 2])?;
        device.flush()?;
        // Two values share one buffer.
        let y = x.square()?;
        drop(x);
        assert_eq!(device.take(&[]).graph.donated, [false]);
        let z = matrix.square()?;
        drop(matrix);
        assert_eq!(device.take(&[]).graph.donated, [true]);
        // Nor is an application's.
        let usages = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let buffer = device.raw().0.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 16,
            usage: usages,
            mapped_at_creation: false,
        });
        let own = Tensor::from_buffer(device, buffer, [4], DType::F32)?;
        let w = own.square()?;
        drop(own);
        assert_eq!(device.take(&[]).graph.donated, [false]);
        drop((y, z, w));
        Ok(())
    });
}

#[test]
fn lent_handles_do_not_count() {
    on_a_device(|device| {
        let x = leaf(1.0);
        let run = |handles: &[&Tensor]| {
            let y = x.square().unwrap();
            let lent: Vec<_> = handles.iter().map(|t| t.value()).collect();
            let taken = device.take(&lent);
            drop(y);
            (taken.graph.donated[0], taken.lent.len())
        };
        assert_eq!(run(&[]), (false, 0));
        assert_eq!(run(&[&x]), (true, 1));
        // Each handle is lent separately.
        let clone = x.clone();
        assert_eq!(run(&[&x]), (false, 0));
        assert_eq!(run(&[&x, &clone]), (true, 1));
        Ok(())
    });
}

#[test]
fn what_is_replaced_is_given_up_only_if_the_run_is_made() {
    on_a_device(|device| {
        let (x, kept) = (leaf(1.0), leaf(5.0));
        let y = x.add(&kept)?;
        let also_kept = kept.clone();
        device.flush_replacing(&[x.value(), kept.value()], None)?;
        assert_eq!(y.to_vec::<f32>()?, [6.0, 4.0, 6.0, 8.0]);
        // Only the caller held `x`, so it was overwritten; the other one has another holder.
        let error = x.to_vec::<f32>().unwrap_err().to_string();
        assert!(error.contains("after it had been dropped"), "{error}");
        assert_eq!(kept.to_vec::<f32>()?, also_kept.to_vec::<f32>()?);

        // A run that never reaches the queue leaves everything as it was.
        let x = leaf(1.0);
        let big = Tensor::ones([4 << 20])?;
        let z = big.reduce_sum(Axes::ALL.keepdims(true))?.add(&x)?;
        device.set_memory_limit(Some(1 << 20)).unwrap();
        let held = (z, big);
        let error = device.flush_replacing(&[x.value()], None).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        device.set_memory_limit(None).unwrap();
        drop(held);
        Ok(())
    });
}

#[test]
fn an_earlier_failure_is_returned_and_nothing_dropped() {
    on_a_device(|device| {
        let x = leaf(1.0);
        device.set_memory_limit(Some(1 << 20)).unwrap();
        let big = Tensor::ones([4 << 20])?;
        assert!(device.flush().is_err());
        device.set_memory_limit(None).unwrap();
        // A call on a failed value: the next flush returns the error.
        let failed = big.square()?;
        let y = x.square()?;
        let error = device.flush_replacing(&[x.value()], None).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(y.to_vec::<f32>()?, [1.0, 4.0, 9.0, 16.0]);
        assert!(device.flush_replacing(&[x.value()], None).is_ok());
        assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0], "no node read it");
        drop(failed);
        Ok(())
    });
}

/// The graph that `f` puts into the stream, with its key.
fn keyed<T>(device: &Device, f: impl FnOnce() -> Result<T>) -> (Graph, Key) {
    let held = f().unwrap();
    let mut graph = device.take(&[]).graph;
    let key = graph.key(&mut Coincidences::default());
    drop(held);
    (graph, key)
}

#[test]
fn keys_distinguish_structures() {
    on_a_device(|device| {
        let (a, b) = (leaf(1.0), leaf(2.0));
        let key = |f: &dyn Fn() -> Result<Vec<Tensor>>| keyed(device, f).1;
        let base = key(&|| Ok(vec![a.add(&b)?]));
        assert_eq!(base, key(&|| Ok(vec![b.add(&a)?])), "which values they are does not matter");
        let dead = key(&|| a.exp().and_then(|_| Ok(vec![a.add(&b)?])));
        assert_eq!(base, dead, "nor what nobody holds");
        assert_eq!(base, key(&|| a.exp().map(drop).and_then(|()| Ok(vec![b.add(&a)?]))));
        let others: [&dyn Fn() -> Result<Vec<Tensor>>; 6] = [
            &|| Ok(vec![a.add(&a)?]),
            &|| Ok(vec![a.subtract(&b)?]),
            &|| Ok(vec![a.add(&b)?.add(&b)?]),
            &|| a.add(&b).and_then(|y| Ok(vec![y.add(&b)?, y])),
            &|| Ok(vec![a.add(&constant([1.0])?)?]),
            // The same, but its input is not held elsewhere.
            &|| Ok(vec![a.add(leaf(2.0))?]),
        ];
        let mut keys: Vec<Key> = others.iter().map(|f| key(f)).collect();
        keys.push(base);
        for (i, one) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|other| other != one), "structure {i}");
        }
        Ok(())
    });
}

#[test]
fn equal_words_are_named_and_keyed() {
    on_a_device(|device| {
        let x = leaf(1.0);
        // Nodes: 3, x * 3, second, (x * 3) + second, third, ... + third.
        let sums = |numbers: [f32; 3]| {
            keyed(device, || x.multiply(numbers[0])?.add(numbers[1])?.add(numbers[2]))
        };
        let (graph, all_differ) = sums([3.0, 4.0, 5.0]);
        assert_eq!(graph.equal_scalars, [None; 6]);
        let (graph, all_agree) = sums([3.0, 3.0, 3.0]);
        assert_eq!(graph.equal_scalars, [None, None, Some(0), None, Some(0), None]);
        let (graph, two_agree) = sums([4.0, 3.0, 3.0]);
        assert_eq!(graph.equal_scalars, [None, None, None, None, Some(2), None]);
        assert!(all_differ != all_agree && all_agree != two_agree && all_differ != two_agree);
        // The numbers themselves do not change the key.
        assert_eq!(sums([6.0, 7.0, 8.0]).1, all_differ);
        assert_eq!(sums([9.0, 9.0, 9.0]).1, all_agree);
        // 0 and -0 are equal numbers of different bits.
        assert_eq!(sums([0.0, -0.0, 1.0]).1, all_differ);
        // Ops of two types never carry the same words.
        let (graph, _) = keyed(device, || {
            let range = crate::tensor::range(0.0, 4.0, 1.0)?;
            Ok((x.add(&range)?, x.add(0.0)?))
        });
        assert_eq!(graph.equal_scalars, [None; 4]);
        Ok(())
    });
}

#[test]
fn numbers_that_coincide_at_random_are_not_planned_for_ever() {
    on_a_device(|device| {
        let x = leaf(0.0);
        for i in 0..150u32 {
            let digits: [u32; 5] = std::array::from_fn(|k| (i * 37) / 4u32.pow(k as u32) % 4);
            let mut y = x.clone();
            for digit in digits {
                y = y.add(digit as f32)?;
            }
            assert_eq!(y.to_vec::<f32>()?[0], digits.iter().sum::<u32>() as f32);
        }
        let stats = device.stats();
        assert!(stats.plan_misses <= 9, "{} plans", stats.plan_misses);
        assert_eq!(stats.plan_hits + stats.plan_misses, 150);
        Ok(())
    });
}
