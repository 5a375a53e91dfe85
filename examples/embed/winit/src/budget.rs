//! Training under a budget, `--budget-ms`: the kernels of a step are spread over as many frames as they need.

use std::time::Duration;

use wgrad as tf;
use wgrad::interop::TensorExt;
use wgrad::prelude::*;
use wgrad_embed_support::Result;

use crate::network::Network;
use crate::water::Water;
use crate::wrapped;

pub struct Budget {
    /// The heights that the present step reads. The frames during the step overwrite the simulation's buffers, so these are copies.
    inputs: Vec<Tensor>,
    /// The prediction of the present step.
    predicted: Option<Tensor>,
    /// Steps that have ended.
    pub steps: u64,
}

impl Budget {
    pub fn new(device: &tf::Device, water: &Water) -> tf::Result<Self> {
        let inputs = (0..3).map(|_| wrapped(device, water.heights()));
        Ok(Budget { inputs: inputs.collect::<tf::Result<_>>()?, predicted: None, steps: 0 })
    }

    /// Sends kernels for `budget` of the GPU's time. If the step has ended, this returns its prediction and begins the next step, with
    /// `heights`: those of the present frame, of the one before, and of the one before that.
    pub fn frame(
        &mut self,
        budget: Duration,
        network: &mut Network,
        water: &Water,
        heights: [&Tensor; 3],
        speed: &Tensor,
    ) -> Result<Option<Tensor>> {
        let device = speed.device();
        if !device.run_for(budget)? {
            return Ok(None);
        }
        let ended = self.predicted.take();
        self.steps += u64::from(ended.is_some());
        let mut inputs = Vec::with_capacity(3);
        for (old, heights) in std::mem::take(&mut self.inputs).into_iter().zip(heights) {
            let buffer = old.into_buffer()?;
            water.copy(&heights.buffer()?, &buffer);
            inputs.push(wrapped(device, buffer)?);
        }
        if let [next, now, before] = &inputs[..] {
            self.predicted = Some(network.learn(next, now, before, speed)?);
        }
        self.inputs = inputs;
        Ok(ended)
    }
}
