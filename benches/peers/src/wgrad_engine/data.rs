//! A pass over shuffled pairs in batches with `wgrad::data`.

use std::time::Duration;

use ndarray::ArrayD;
use wgrad::data::Dataset;

use crate::Result;
use crate::cases::Pairs;
use crate::child::{Prepared, timed};

pub struct Passes(Dataset<(ArrayD<f32>, ArrayD<i32>)>);

impl Passes {
    pub fn new(pairs: Pairs) -> Result<Self> {
        let x: Vec<f32> = (0..pairs.len).map(|i| i as f32).collect();
        let y: Vec<i32> = (0..pairs.len).map(|i| i as i32 % 10).collect();
        let batches = Dataset::from_tensor_slices((x, y))?.shuffle(pairs.len).batch(pairs.batch);
        // A thread prepares batches ahead of their use.
        Ok(Passes(if pairs.workers > 0 {
            batches.prefetch(wgrad::data::AUTOTUNE)
        } else {
            batches
        }))
    }
}

impl Prepared for Passes {
    fn run(&mut self) -> Result<Duration> {
        let (time, count) = timed(|| {
            let mut count = 0;
            for batch in &self.0 {
                count += batch?.1.len();
            }
            Ok(count)
        })?;
        std::hint::black_box(count);
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        let (mut x_sum, mut y_sum, mut count) = (0.0, 0.0, 0.0);
        for batch in &self.0 {
            let (x, y) = batch?;
            x_sum += x.iter().map(|x| f64::from(*x)).sum::<f64>();
            y_sum += y.iter().map(|y| f64::from(*y)).sum::<f64>();
            count += 1.0;
        }
        Ok(vec![x_sum, y_sum, count])
    }

    fn device_bytes(&self) -> Option<u64> {
        None
    }
}
