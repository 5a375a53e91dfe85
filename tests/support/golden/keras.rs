//! The golden cases of Keras: layers and initializers, with their public types.

pub mod layers;
pub mod losses;
pub mod metrics;
pub mod optimizers;

use wgrad::keras::Initializer;
use wgrad::random::Generator;

use super::call::{Answer, Call, Stop};
use super::sheet::Sheet;

// ---- initializers -------------------------------------------------------------------------------------------

/// The limits of Keras's initializers for a fan-in and a fan-out, as attributes.
pub fn initialize(c: &Call, sheet: &mut Sheet) -> Answer<()> {
    c.only("truncation", "2 standard deviations")?;
    let fan = |key: &str| Ok::<_, Stop>(c.need(key, c.int(key)?)? as usize);
    let shape = [fan("fan_in")?, fan("fan_out")?];
    let generator = Generator::from_seed(11);
    let draw = |initializer: Initializer| initializer.init(shape, &generator);
    let largest = |w: &[f32]| w.iter().fold(0f32, |a, b| a.max(b.abs())) as f64;

    for (initializer, key) in [
        (Initializer::GlorotUniform, "glorot_uniform_limit"),
        (Initializer::HeUniform, "he_uniform_limit"),
        (Initializer::LecunUniform, "lecun_uniform_limit"),
    ] {
        let limit = c.need(key, c.float(key)?)?;
        let got = largest(&draw(initializer)?.to_vec()?);
        // Of 78,400 draws, the largest is within a thousandth of the limit.
        if got > limit * (1.0 + 1e-6) || got < 0.999 * limit {
            sheet.miss(key, format!("the largest weight is {got}, the limit {limit}"));
        }
    }
    for (initializer, key) in [
        (Initializer::GlorotNormal, "glorot_normal_std_before_truncation"),
        (Initializer::HeNormal, "he_normal_std_before_truncation"),
    ] {
        let stddev = c.need(key, c.float(key)?)?;
        let weights: Vec<f32> = draw(initializer)?.to_vec()?;
        let got = largest(&weights);
        if got > 2.0 * stddev * (1.0 + 1e-6) || got < 1.99 * stddev {
            sheet.miss(key, format!("the largest weight is {got}, the cut at twice {stddev}"));
        }
        let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
        let after = (squares / weights.len() as f64).sqrt() / stddev;
        // The deviation that remains of a normal distribution truncated at two deviations.
        if (after - 0.8796).abs() > 0.01 {
            sheet.miss(key, format!("the deviation is {after} of it"));
        }
    }
    Ok(())
}
