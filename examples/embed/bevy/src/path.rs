//! The path that the swarm learns: a closed curve that turns from a heart into a flower into a knot.

use std::f32::consts::TAU;

/// Frames for which a curve stays, and in which it turns into the next one.
const STAY: u64 = 60;
const TURN: u64 = 60;

/// How much of each curve is in the path; they add up to 1.
pub type Blend = [f32; 3];

/// The path's blend in a frame.
pub fn blend(frame: u64) -> Blend {
    let (curve, since) = (frame / (STAY + TURN), frame % (STAY + TURN));
    let share = since.saturating_sub(STAY) as f32 / TURN as f32;
    let share = share * share * (3.0 - 2.0 * share);
    let mut blend = [0.0; 3];
    blend[(curve % 3) as usize] = 1.0 - share;
    blend[((curve + 1) % 3) as usize] = share;
    blend
}

/// The place at `share` of the path's length, in a square from -1 to 1.
pub fn place(share: f32, blend: Blend) -> [f32; 2] {
    let s = share * TAU;
    let (sin, cos) = s.sin_cos();
    let (sin2, cos2) = (2.0 * s).sin_cos();
    let heart = [
        sin.powi(3) * 0.88,
        (13.0 * cos - 5.0 * cos2 - 2.0 * (3.0 * s).cos() - (4.0 * s).cos()) / 18.0 + 0.12,
    ];
    let radius = 0.6 + 0.24 * (5.0 * s).cos();
    let flower = [radius * sin, radius * cos];
    let knot = [(sin + 2.0 * sin2) / 3.6, (cos - 2.0 * cos2) / 3.6];
    let curves = [heart, flower, knot];
    [0, 1].map(|axis| curves.iter().zip(blend).map(|(curve, share)| share * curve[axis]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_closed_smooth_and_in_the_square() {
        for frame in 0..400 {
            let blend = blend(frame);
            assert!((blend.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            let places: Vec<_> = (0..=256).map(|at| place(at as f32 / 256.0, blend)).collect();
            assert!(places.iter().flatten().all(|place| place.abs() < 0.95), "{frame}");
            for pair in places.windows(2) {
                let step = (pair[0][0] - pair[1][0]).hypot(pair[0][1] - pair[1][1]);
                assert!(step < 0.06, "{frame}: {step}");
            }
            let ends = [places[0], places[256]];
            assert!((ends[0][0] - ends[1][0]).hypot(ends[0][1] - ends[1][1]) < 1e-4);
        }
        assert_eq!(blend(0), [1.0, 0.0, 0.0]);
        assert_eq!(blend(120), [0.0, 1.0, 0.0]);
        assert_eq!(blend(330), [0.5, 0.0, 0.5]);
    }
}
