//! Runs the calls of the catalog on a real device, with values, so that the interpreter in `portability/interpreter`
//! receives the kernels of every op with their results. `cargo xtask races` runs this with `WGRAD_KERNEL_CAPTURE`.

use std::cell::Cell;

use super::Catalog;
use crate::dtype::DType;
use crate::error::Result;
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Which calls run: all, or every n-th from a given one on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    first: usize,
    step: usize,
}

impl Share {
    /// `WGRAD_CATALOG_SHARE=3/20` runs call 3 of each twenty, counted from 0; without it all calls run.
    fn of_environment() -> Share {
        let Ok(text) = std::env::var("WGRAD_CATALOG_SHARE") else {
            return Share { first: 0, step: 1 };
        };
        let parts = text.split_once('/').map(|(first, step)| (first.parse(), step.parse()));
        match parts {
            Some((Ok(first), Ok(step))) if first < step => Share { first, step },
            _ => panic!("WGRAD_CATALOG_SHARE is {text:?}, and should be like 3/20"),
        }
    }
}

/// Where the calls of a catalog run, and how many there have been.
pub(super) struct Runner {
    share: Share,
    calls: Cell<usize>,
    ran: Cell<usize>,
    /// The seed of the next tensor's values.
    values: Cell<u64>,
}

impl Runner {
    fn new() -> Self {
        Runner {
            share: Share::of_environment(),
            calls: Cell::new(0),
            ran: Cell::new(0),
            values: Cell::new(1),
        }
    }

    /// Runs a call, if it is one of the share.
    pub(super) fn run<T>(&self, device: &Device, call: &str, f: impl FnOnce() -> Result<T>) {
        let number = self.calls.replace(self.calls.get() + 1);
        if number % self.share.step != self.share.first {
            return;
        }
        // A call's values must not depend on which calls ran before it.
        self.values.set(1 + 1000 * number as u64);
        let results = device.scope(f).unwrap_or_else(|e| panic!("{call}: {e}"));
        device.flush().unwrap_or_else(|e| panic!("{call}: {e}"));
        drop(results);
        self.ran.set(self.ran.get() + 1);
    }

    /// A tensor with numbers from -2 to 2, or from 0 to 4 for integers, which may be used as an index.
    pub(super) fn tensor(&self, device: &Device, shape: Shape, dtype: DType) -> Tensor {
        let mut random = fastrand::Rng::with_seed(self.values.replace(self.values.get() + 1));
        let count = shape.elements();
        device
            .scope(|| match dtype {
                DType::F32 | DType::F16 => {
                    let values: Vec<f32> = (0..count).map(|_| 4.0 * random.f32() - 2.0).collect();
                    Tensor::from_slice(&values, shape)?.cast(dtype)
                }
                _ => {
                    let values: Vec<i32> = (0..count).map(|_| random.i32(0..5)).collect();
                    Tensor::from_slice(&values, shape)?.cast(dtype)
                }
            })
            .unwrap()
    }
}

#[test]
#[ignore = "it takes minutes, and checks little unless WGRAD_KERNEL_CAPTURE is set; `cargo xtask races` runs it"]
fn every_call_runs_on_a_device() {
    let device = Device::new().unwrap();
    assert!(device.caps().f16, "calls with f16 cannot run on {}", device.adapter());
    device.set_tuning(crate::plan::Tuning::Off);
    let mut catalog = Catalog::running(device, Runner::new());
    catalog.gather();
    let runner = catalog.runner.unwrap();
    println!("{} of {} calls have run", runner.ran.get(), runner.calls.get());
    assert!(runner.calls.get() > 1000, "only {} calls", runner.calls.get());
    assert!(runner.ran.get() >= runner.calls.get() / runner.share.step);
}
