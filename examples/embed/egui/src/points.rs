//! The points that the network learns to tell apart: two classes in a square from -1 to 1.

use std::f32::consts::{PI, TAU};

/// How the two classes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Spirals,
    Moons,
    Rings,
}

impl Shape {
    pub const ALL: [(Self, &'static str); 3] =
        [(Shape::Spirals, "Spirals"), (Shape::Moons, "Moons"), (Shape::Rings, "Rings")];

    /// The place of a class at `share` of its curve, from 0 to 1.
    pub fn place(self, class: usize, share: f32) -> [f32; 2] {
        let side = if class == 0 { 1.0 } else { -1.0 };
        match self {
            Shape::Spirals => {
                let (radius, angle) = (0.12 + 0.73 * share, 1.25 * TAU * share);
                let (sin, cos) = angle.sin_cos();
                [side * radius * cos, side * radius * sin]
            }
            Shape::Moons => {
                let (sin, cos) = (PI * share).sin_cos();
                [side * (0.5 * cos - 0.22), side * (0.6 * sin - 0.16)]
            }
            Shape::Rings => {
                let radius = if class == 0 { 0.3 } else { 0.75 };
                let (sin, cos) = (TAU * share).sin_cos();
                [radius * cos, radius * sin]
            }
        }
    }
}

/// Points and their classes, 0 or 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    pub places: Vec<[f32; 2]>,
    pub classes: Vec<f32>,
}

impl Points {
    /// `count` points of each class, moved by normal noise of this width.
    pub fn new(shape: Shape, count: usize, noise: f32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut points = Points::default();
        for at in 0..2 * count {
            let [x, y] =
                shape.place(at % 2, (at / 2) as f32 / count.max(2).saturating_sub(1) as f32);
            let [a, b] = normal(&mut random);
            let keep = |place: f32| place.clamp(-0.98, 0.98);
            points.places.push([keep(x + noise * a), keep(y + noise * b)]);
            points.classes.push((at % 2) as f32);
        }
        points
    }
}

/// Two normal numbers (Box and Muller).
fn normal(random: &mut fastrand::Rng) -> [f32; 2] {
    let radius = (-2.0 * (1.0 - random.f32()).ln()).sqrt();
    let (sin, cos) = (TAU * random.f32()).sin_cos();
    [radius * cos, radius * sin]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_alternate_and_stay_in_the_square() {
        for (shape, name) in Shape::ALL {
            let points = Points::new(shape, 50, 0.3, 1);
            assert_eq!((points.places.len(), points.classes.len()), (100, 100), "{name}");
            assert_eq!(points.classes.iter().sum::<f32>(), 50.0);
            assert!(points.places.iter().flatten().all(|place| place.abs() <= 0.98));
            assert_eq!(points, Points::new(shape, 50, 0.3, 1));
            assert_ne!(points, Points::new(shape, 50, 0.3, 2));
        }
        assert_eq!(Points::new(Shape::Moons, 1, 0.0, 1).places.len(), 2);
        assert_eq!(Points::new(Shape::Moons, 0, 0.0, 1), Points::default());
    }

    #[test]
    fn without_noise_the_classes_are_apart() {
        for (shape, name) in Shape::ALL {
            let points = Points::new(shape, 60, 0.0, 1);
            for (a, class) in points.places.iter().zip(&points.classes) {
                for (b, other) in points.places.iter().zip(&points.classes) {
                    assert!(class == other || (a[0] - b[0]).hypot(a[1] - b[1]) > 0.15, "{name}");
                }
            }
        }
    }
}
