//! Draws digits as pen strokes, much like MNIST's: training data for when the real files are not available.
//!
//! One seed produces the same images on every platform. The module does not render fonts or imitate a particular
//! writer: `glyphs` has the ideal shapes, this file distorts them as a random hand would, and `raster` turns the lines
//! into pixels.

mod glyphs;
mod raster;

use self::glyphs::{Knot, Style};
use self::raster::{Pen, Point, SIDE};
use super::images::Images;

/// Draws `count` images of handwritten-looking digits with their labels, 28 by 28 pixels each.
///
/// As in MNIST, 0 is paper and 255 is ink, a digit is fitted into a box of 20 by 20 pixels, and its centre of mass is
/// in the middle of the field. The ten digits are in random order and equally frequent (their counts differ by at most
/// one). The same `count` and `seed` produce the same images on every platform.
///
/// ```
/// use wgrad::data::drawn_digits::draw_digits;
/// let digits = draw_digits(20, 7);
/// assert_eq!(digits.image(0).len(), 28 * 28);
/// assert_eq!(digits.labels.iter().filter(|&&label| label == 3).count(), 2);
/// assert_eq!(digits, draw_digits(20, 7));
/// ```
pub fn draw_digits(count: usize, seed: u64) -> Images {
    let mut dice = Dice(fastrand::Rng::with_seed(seed));
    let styles = glyphs::styles();
    let mut labels: Vec<u8> = (0..count).map(|i| (i % styles.len()) as u8).collect();
    for last in (1..labels.len()).rev() {
        labels.swap(last, dice.below(last as u64 + 1) as usize);
    }
    let mut pixels = Vec::with_capacity(count * SIDE * SIDE);
    let (mut knots, mut segments) = (Vec::new(), Vec::new());
    for &label in &labels {
        let style = dice.style(&styles[usize::from(label)]);
        let hand = Hand::random(&mut dice, label);
        segments.clear();
        for stroke in &style.strokes {
            knots.clear();
            let mut astray = Point { x: 0.0, y: 0.0 };
            knots.extend(stroke.iter().map(|knot| {
                astray = dice.drift(astray);
                (hand.place(knot, astray), knot.corner)
            }));
            raster::trace(&knots, &mut segments);
        }
        raster::fit(&mut segments, hand.pen);
        let field = raster::centre(&raster::ink(&segments, hand.pen));
        pixels.extend(field.iter().map(|&share| hand.tone(share, &mut dice)));
    }
    Images { pixels, labels }
}

/// One random way to write a digit. Lengths are in the units of [`glyphs`]; the middle of a digit and its top are
/// [`HALF`] units apart.
struct Hand {
    /// How far a knot may be from its ideal position.
    stray: f32,
    /// Width in relation to the height.
    width: f32,
    /// How far the top leans to the right; negative to the left. A share of the height.
    slant: f32,
    /// The sine of a small rotation to the right.
    turn: f32,
    /// How far top and bottom are bent to the right of the middle.
    bow: f32,
    /// How far the left and right ends hang below the middle.
    sag: f32,
    /// How far the middle is moved down, so that the upper half is larger and the lower one smaller.
    waist: f32,
    /// The share by which the bottom is wider than the middle.
    spread: f32,
    pen: Pen,
    /// The ink of the pen; above 1, more pixels reach 255.
    ink: f32,
    /// The share by which the ink of a pixel varies.
    grain: f32,
}

/// Half the height of a digit.
const HALF: f32 = 50.0;
/// The usual middle of a digit from left to right.
const MIDDLE: f32 = 32.0;

impl Hand {
    fn random(dice: &mut Dice, label: u8) -> Self {
        // A one that is strongly bent or kinked looks like a seven; but its line may be very thick.
        let (stray, bow, bold) = if label == 1 { (5.5, 4.2, 0.6) } else { (8.6, 8.4, 0.42) };
        Hand {
            stray: dice.between(1.7, stray),
            width: dice.between(0.64, 1.42),
            slant: 0.09 + 0.26 * dice.bell(),
            turn: 0.1 * dice.bell(),
            bow: bow * dice.bell(),
            sag: 6.8 * dice.bell(),
            waist: 7.5 * dice.bell(),
            spread: 0.18 * dice.bell(),
            pen: Pen {
                radius: (1.3 + bold * dice.bell()).clamp(0.6, 2.9),
                edge: dice.between(0.7, 1.3),
                taper: 0.15 * dice.bell(),
            },
            ink: dice.between(1.0, 1.25),
            grain: dice.between(0.0, 0.3),
        }
    }

    /// The point through which the pen passes for `knot`; 0, 0 is the middle and the height goes from -1 to 1.
    fn place(&self, knot: &Knot, astray: Point) -> Point {
        let x = (knot.x - MIDDLE + self.stray * astray.x) / HALF;
        let y = (knot.y - HALF + self.stray * astray.y) / HALF;
        let x = x * (1.0 + self.spread * y) * self.width;
        let bent = Point {
            x: x + self.bow / HALF * y * y - self.slant * y,
            y: y + self.sag / HALF * x * x + self.waist / HALF * (1.0 - y * y),
        };
        Point { x: bent.x - self.turn * bent.y, y: bent.y + self.turn * bent.x }
    }

    /// The grey value of a pixel with this share of ink. Paper stays 0, as in MNIST.
    fn tone(&self, share: f32, dice: &mut Dice) -> u8 {
        if share <= 0.0 {
            return 0;
        }
        let grain = 1.0 + self.grain * (dice.unit() - 0.5);
        // A cast from float saturates at 255.
        (share * self.ink * grain * 255.0) as u8
    }
}

/// Makes random numbers from the generator's integers only: its crate has changed how it makes floats and ranges
/// between versions, and the images must not change.
struct Dice(fastrand::Rng);

impl Dice {
    /// From 0 up to but not including 1, in steps of 2^-24.
    fn unit(&mut self) -> f32 {
        (self.0.u64(..) >> 40) as f32 / (1u32 << 24) as f32
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Bell-shaped around 0 with variance 1, never beyond 3 either way.
    fn bell(&mut self) -> f32 {
        let sum = self.unit() + self.unit() + self.unit();
        (sum - 1.5) * 2.0
    }

    /// The offset of the next knot, as a share of `stray`. It keeps half of the last offset, so that lines are bent
    /// rather than kinked. The variance approaches 1 in each direction.
    fn drift(&mut self, last: Point) -> Point {
        Point { x: 0.5 * last.x + 0.866 * self.bell(), y: 0.5 * last.y + 0.866 * self.bell() }
    }

    /// A whole number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.u64(..)) * u128::from(end)) >> 64) as u64
    }

    /// One of the styles of a digit, chosen by their weights.
    fn style<'a>(&mut self, styles: &'a [Style]) -> &'a Style {
        let mut left = self.below(styles.iter().map(|style| u64::from(style.weight)).sum());
        let fits = |style: &&Style| {
            let found = left < u64::from(style.weight);
            left = left.saturating_sub(u64::from(style.weight));
            found
        };
        styles.iter().find(fits).unwrap_or(&styles[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a, to check many bytes with one number.
    fn checksum(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    #[test]
    fn one_seed_gives_the_same_images_for_ever() {
        let digits = draw_digits(200, 42);
        assert_eq!(digits.labels[..12], [8, 9, 8, 8, 2, 1, 4, 8, 4, 9, 3, 6]);
        assert_eq!(checksum(&digits.labels), 0x0536_06f8_fb9b_4633);
        assert_eq!(checksum(&digits.pixels), 0x0854_db9d_0aea_deb1);
        assert_ne!(draw_digits(200, 43).pixels, digits.pixels);
    }

    #[test]
    fn the_digits_are_balanced_and_shuffled() {
        let digits = draw_digits(1003, 1);
        assert_eq!(digits.pixels.len(), 1003 * 28 * 28);
        let mut counts = [0; 10];
        for &label in &digits.labels {
            counts[usize::from(label)] += 1;
        }
        assert_eq!(counts, [101, 101, 101, 100, 100, 100, 100, 100, 100, 100]);
        let runs = digits.labels.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((60..140).contains(&runs), "{runs} neighbours are equal, of about 100 expected");
    }

    #[test]
    fn no_digits_are_no_images() {
        let digits = draw_digits(0, 5);
        assert!(digits.is_empty());
        assert!(digits.pixels.is_empty());
    }

    #[test]
    fn every_image_is_inked_framed_and_centred() {
        let digits = draw_digits(2000, 9);
        for i in 0..digits.len() {
            let image = digits.image(i);
            let mass: f64 = image.iter().map(|&tone| f64::from(tone)).sum();
            let mean = mass / 784.0;
            assert!((3.0..110.0).contains(&mean), "image {i} has mean tone {mean}");
            assert!(image.iter().any(|&tone| tone > 200), "image {i} has no full ink");
            let moment = |at: fn(usize) -> usize| -> f64 {
                let weighed = |(i, &tone): (usize, &u8)| at(i) as f64 * f64::from(tone);
                image.iter().enumerate().map(weighed).sum::<f64>() / mass
            };
            let (x, y) = (moment(|i| i % 28), moment(|i| i / 28));
            assert!((x - 13.5).abs() < 0.8 && (y - 13.5).abs() < 0.8, "image {i}: {x}, {y}");
            let rows = image.chunks(28).filter(|row| row.iter().any(|&tone| tone > 0)).count();
            assert!((8..=22).contains(&rows), "image {i} is {rows} pixels high");
        }
    }

    #[test]
    fn ink_is_about_as_much_as_in_mnist() {
        let digits = draw_digits(5000, 3);
        let sum: u64 = digits.pixels.iter().map(|&tone| u64::from(tone)).sum();
        let mean = sum as f64 / digits.pixels.len() as f64;
        assert!((30.0..38.0).contains(&mean), "mean tone {mean}, in MNIST it is 33.3");
    }
}
