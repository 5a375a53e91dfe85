//! The contents of `--log-dir` for TensorBoard: curves, histograms, filters, misclassified digits, the confusion matrix.

use std::path::Path;

use wgrad as tf;
use wgrad::data::mnist::Images;
use wgrad::keras::Sequential;
use wgrad::summary::{self, FileWriter, Graph, MediaOptions};
use wgrad::{Tensor, Trackable};

/// The interval, in steps, at which histograms of the weights are written.
const HISTOGRAMS: usize = 100;

/// Writes summaries, if `--log-dir` is set.
pub struct Board(Option<FileWriter>);

impl Board {
    pub fn new(folder: Option<&Path>) -> tf::Result<Self> {
        Ok(Board(folder.map(summary::create_file_writer).transpose()?))
    }

    /// The loss of a step, still on the device, and sometimes the weights.
    pub fn step(&self, step: usize, loss: &Tensor, model: &Sequential) -> tf::Result<()> {
        let Some(writer) = &self.0 else { return Ok(()) };
        let _default = writer.as_default_at(step);
        summary::scalar("loss", loss, ())?;
        if step == 1 {
            summary::graph(Graph::of_model(model))?;
        }
        if step % HISTOGRAMS == 1 {
            for (name, variable) in model.named_variables() {
                summary::histogram(&name, variable.read(), ())?;
            }
        }
        Ok(())
    }

    pub fn accuracy(&self, step: usize, accuracy: f32) -> tf::Result<()> {
        let Some(writer) = &self.0 else { return Ok(()) };
        let _default = writer.as_default();
        summary::scalar("accuracy", accuracy, step)?;
        Ok(())
    }

    /// The results after the last step.
    pub fn end(
        self,
        step: usize,
        model: &Sequential,
        images: &Images,
        test: &super::Test,
    ) -> tf::Result<()> {
        let Some(writer) = self.0 else { return Ok(()) };
        let default = writer.as_default_at(step);
        summary::scalar("test/accuracy", test.accuracy, ())?;
        filters(model)?;
        misread(images, &test.misread)?;
        confusion(&test.confusion)?;
        drop(default);
        writer.close()
    }
}

/// The weights of the first layer as a picture for each unit or filter: the smallest weight black, the largest white.
fn filters(model: &Sequential) -> tf::Result<()> {
    let variables = model.trainable_variables();
    let Some(first) = variables.first().map(|variable| variable.read()) else { return Ok(()) };
    let pictures = match *first.shape() {
        // [784, units] of the MLP.
        [784, units] => first.transpose([1, 0])?.reshape([units as i64, 28, 28, 1])?,
        // [5, 5, 1, filters] of the CNN.
        [rows, columns, 1, count] => {
            let sizes = [count as i64, rows as i64, columns as i64, 1];
            first.transpose([3, 0, 1, 2])?.reshape(sizes)?
        }
        _ => return Ok(()),
    };
    let least = pictures.reduce_min(())?;
    let range = pictures.reduce_max(())?.subtract(&least)?;
    let shades = pictures.subtract(&least)?.divide(range)?;
    summary::image_with("filters", shades, (), MediaOptions::new().max_outputs(32))?;
    Ok(())
}

/// The first misclassified digits, each above its label and the prediction.
fn misread(images: &Images, misread: &[(usize, usize)]) -> tf::Result<()> {
    for (at, guess) in misread.iter().take(20) {
        let pixels = images.image(*at);
        let picture = Tensor::from_slice(pixels, [1, 28, 28, 1])?;
        let name = format!("misread/{at}: {} as {guess}", images.labels[*at]);
        summary::image(&name, picture, ())?;
    }
    Ok(())
}

/// The confusion matrix: rows are digits, columns are predictions. Brightness is the share of the row's digits.
fn confusion(counts: &[[usize; 10]; 10]) -> tf::Result<()> {
    const CELL: usize = 12;
    let mut shades = vec![0.0f32; (10 * CELL) * (10 * CELL)];
    for (digit, row) in counts.iter().enumerate() {
        let all = row.iter().sum::<usize>().max(1) as f32;
        for (guess, count) in row.iter().enumerate() {
            // The square root makes rare errors visible.
            let shade = (*count as f32 / all).sqrt();
            for y in 0..CELL - 1 {
                let from = (digit * CELL + y) * 10 * CELL + guess * CELL;
                shades[from..from + CELL - 1].fill(shade);
            }
        }
    }
    let picture = Tensor::from_slice(&shades, [1, 10 * CELL, 10 * CELL, 1])?;
    summary::image("confusion", picture, ())?;
    Ok(())
}
