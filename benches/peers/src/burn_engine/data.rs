//! A pass over shuffled pairs in batches with Burn's `DataLoader`. A batch is two vectors; no tensor is made.

use std::sync::Arc;
use std::time::Duration;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder};
use burn::data::dataset::InMemDataset;
use burn::tensor::Device;

use crate::Result;
use crate::cases::Pairs;
use crate::child::{Prepared, timed};

type Batch = (Vec<f32>, Vec<i32>);

pub struct Passes(Arc<dyn DataLoader<Batch>>);

struct Unzip;

impl Batcher<(f32, i32), Batch> for Unzip {
    fn batch(&self, items: Vec<(f32, i32)>, _: &Device) -> Batch {
        items.into_iter().unzip()
    }
}

impl Passes {
    pub fn new(pairs: Pairs, device: Device) -> Self {
        let items = (0..pairs.len).map(|i| (i as f32, i as i32 % 10)).collect();
        let loader = DataLoaderBuilder::new(Unzip)
            .batch_size(pairs.batch)
            .shuffle(1)
            .num_workers(pairs.workers)
            .set_device(device)
            .build(InMemDataset::new(items));
        Passes(loader)
    }
}

impl Prepared for Passes {
    fn run(&mut self) -> Result<Duration> {
        let (time, count) = timed(|| {
            let mut count = 0;
            for batch in self.0.iter() {
                count += batch?.1.len();
            }
            Ok(count)
        })?;
        std::hint::black_box(count);
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        let (mut x_sum, mut y_sum, mut count) = (0.0, 0.0, 0.0);
        for batch in self.0.iter() {
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
