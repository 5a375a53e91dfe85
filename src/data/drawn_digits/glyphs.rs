//! Shapes of the ten handwritten digits: the pen strokes of each, in several styles.
//!
//! This file has the ideal shapes only; the parent module varies them. A digit is about 100 units high, `y`
//! points downwards and `x` has the same unit, so the proportions are true.

/// A point the pen passes through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Knot {
    pub(super) x: f32,
    pub(super) y: f32,
    /// The pen turns sharply here; elsewhere the line is smooth.
    pub(super) corner: bool,
}

/// One way to write a digit.
pub(super) struct Style {
    /// How often it is chosen among the styles of its digit.
    pub(super) weight: u32,
    /// What the pen draws between touching and leaving the paper.
    pub(super) strokes: Vec<Vec<Knot>>,
}

/// The styles of each digit, by digit.
pub(super) fn styles() -> [Vec<Style>; 10] {
    GLYPHS.map(|glyphs| glyphs.iter().map(|(weight, text)| style(*weight, text)).collect())
}

fn style(weight: u32, text: &str) -> Style {
    let stroke = |text: &str| text.split_whitespace().filter_map(knot).collect();
    Style { weight, strokes: text.split('/').map(stroke).collect() }
}

fn knot(text: &str) -> Option<Knot> {
    let (place, corner) = match text.strip_suffix('!') {
        Some(place) => (place, true),
        None => (text, false),
    };
    let (x, y) = place.split_once(',')?;
    // The numbers are integers: parsing floats takes tables of 10 kB, which a browser would load.
    let number = |text: &str| text.parse::<i16>().ok().map(f32::from);
    Some(Knot { x: number(x)?, y: number(y)?, corner })
}

/// A weight and the strokes: knots are `x,y`, a corner ends in `!`, a slash lifts the pen.
type Glyph = (u32, &'static str);

const GLYPHS: [&[Glyph]; 10] = [ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT, NINE];

const ZERO: &[Glyph] = &[
    // An upright oval begun at the top.
    (5, "33,1 12,16 3,50 12,86 34,99 55,84 64,50 55,15 33,1"),
    // A round one whose end runs over its beginning.
    (3, "56,8 34,3 8,26 3,62 22,97 54,92 76,60 72,22 48,3 26,10"),
    // A nearly circular one.
    (3, "44,2 14,16 2,52 16,88 46,98 78,84 88,48 76,14 46,2"),
    // A lean one, closed with a little hook at the upper right.
    (2, "44,4 24,10 5,46 6,84 24,98 46,76 58,36 52,6 36,4 24,18"),
    // Begun at the upper right, its end turned into the inside.
    (2, "60,10 40,3 14,18 2,52 10,86 34,98 60,82 68,50 60,20 44,8 30,12"),
    // A low, broad one.
    (2, "60,4 28,8 2,40 8,76 44,88 88,74 104,38 86,8 54,4"),
];

const ONE: &[Glyph] = &[
    // A single line.
    (12, "30,0 30,50 30,100"),
    // With a flag.
    (2, "12,22 31,1! 31,52 30,100"),
    // With a flag and a foot.
    (1, "10,20 31,1! 31,52 30,98 / 2,98 30,98 60,97"),
    // With a foot but no flag.
    (1, "30,0 30,50 30,98 / 6,98 30,98 56,97"),
    // With a long flag, like a roof's gable.
    (1, "0,44 18,22 34,2! 34,50 34,100"),
];

const TWO: &[Glyph] = &[
    // A swan's neck on a flat base.
    (3, "5,20 18,4 40,1 56,14 55,36 38,64 18,86 2,98! 34,97 68,95"),
    // With a loop at the lower left.
    (4, "6,18 24,2 48,4 58,22 50,50 32,78 12,96 1,90 8,76 28,80 48,93 74,92"),
    // With a short hook and a wavy base.
    (3, "12,14 34,1 54,10 54,34 34,68 4,95! 20,88 42,96 70,94"),
    // Low and wide, its base swinging down to the right.
    (2, "2,26 16,6 42,2 58,18 48,44 24,68 4,84 6,90 26,80 56,88 80,98"),
    // With a big round loop and a head hooked far to the left.
    (3, "2,30 8,8 34,1 54,12 58,38 46,70 24,94 6,98 2,80 18,68 40,76 56,92 76,96"),
    // Like a Z, with a nearly straight neck.
    (2, "4,8 30,3 56,6 54,20 30,56 4,94! 34,96 68,97"),
    // Its loop flat, its base rising.
    (2, "10,22 26,3 48,4 54,24 42,52 20,80 4,92 4,82 22,76 46,84 78,78"),
    // The neck a full bow that ends in a small loop.
    (3, "10,28 14,8 38,0 58,16 58,46 44,78 20,98 4,92 8,76 28,76 50,90 66,82"),
    // The head curled in, the base short.
    (2, "22,28 8,18 22,2 46,4 52,28 40,58 18,82 2,94! 24,90 50,96"),
];

const THREE: &[Glyph] = &[
    // Two bows that meet in a point.
    (5, "6,14 24,2 46,4 54,22 42,39 22,47! 46,51 60,70 50,91 26,99 4,91"),
    // With a small loop between the bows.
    (2, "6,10 28,1 52,8 50,28 32,46 20,50 24,42 44,48 58,68 46,92 22,99 2,90"),
    // With a flat top.
    (1, "4,4 28,3 54,2! 40,20 24,40! 48,46 60,68 46,93 22,99 2,90"),
    // A small head on a wide belly.
    (3, "10,8 32,1 50,12 44,32 24,43! 50,45 66,64 58,86 32,98 2,94"),
    // Thin and angular.
    (2, "8,6 30,2 44,10 38,28 18,44! 38,50 46,66 36,86 8,100"),
    // The upper bow the bigger one.
    (2, "2,16 22,2 50,4 60,24 46,46 22,54! 44,58 54,74 44,92 24,99 6,94"),
];

const FOUR: &[Glyph] = &[
    // Open, with straight lines.
    (4, "12,4 7,28 2,54! 32,53 66,49 / 58,2 53,50 48,100"),
    // Open, its cup round.
    (4, "10,2 3,28 10,50 32,54 56,44 / 60,0 57,48 54,100"),
    // Closed: a triangle crossed by the stem.
    (2, "48,2 26,30 2,62! 34,62 72,60 / 48,2 48,50 47,100"),
    // Open, its stem starting low and its cup wide.
    (3, "8,4 2,34 12,47 40,45 78,40 / 62,12 56,54 50,100"),
    // Open, the cup deep and the stem short.
    (2, "6,4 2,40 8,66 36,68 68,60 / 58,14 56,56 54,100"),
    // A slanted stroke and a bar, both crossed by a short stem.
    (2, "36,0 20,28 2,60! 30,62 62,60 / 46,34 42,64 38,100"),
];

const FIVE: &[Glyph] = &[
    // Stem and belly, then the roof.
    (4, "16,6 12,24 8,44! 30,37 54,50 56,78 34,97 4,92 / 16,6 38,5 66,1"),
    // In one line from the right end of the roof.
    (3, "64,3 40,4 18,6! 14,24 9,44! 32,40 52,56 50,82 30,98 2,94"),
    // Like an S.
    (3, "66,4 38,5 18,20 22,38 44,54 50,76 32,96 4,94"),
    // The belly small, the roof long.
    (2, "84,2 54,6 28,12! 20,32 14,50! 34,50 48,66 40,88 20,98 2,88"),
    // Upright, the roof set apart from the stem.
    (2, "10,14 8,30 6,50! 28,44 50,56 52,80 32,98 4,94 / 12,8 34,4 62,2"),
    // Leaning back, its belly closed nearly to a ring.
    (2, "56,2 36,4 20,6! 14,26 10,46! 34,44 54,62 48,88 24,99 4,88 10,76"),
    // With a flat, square belly.
    (1, "76,4 46,5 14,6! 10,24 8,42! 36,40 62,48 66,72 52,92 20,96 0,92"),
    // A narrow one with a short roof.
    (2, "40,2 26,4 14,8! 12,28 8,46! 28,46 40,62 38,86 22,99 2,92"),
];

const SIX: &[Glyph] = &[
    // A long bow around a round loop.
    (4, "46,1 24,20 7,52 6,84 26,99 50,88 54,66 38,54 18,64 9,82"),
    // Straight down to a small loop.
    (3, "26,0 12,36 3,70 8,94 28,98 44,82 42,66 24,62 6,78"),
    // Bent over at the top.
    (3, "62,6 40,6 16,30 4,64 14,94 40,97 60,78 54,58 32,56 12,74"),
    // With a loop as high as the stem is.
    (3, "34,0 14,24 2,58 8,90 36,100 66,86 70,60 52,44 28,52 14,78"),
    // Its loop left open.
    (2, "44,2 22,24 6,58 8,88 30,99 52,86 52,68 36,60"),
    // A straight stem and a loop that lies flat.
    (2, "14,0 6,36 2,72 10,95 38,98 66,88 64,72 40,68 8,86"),
    // Nearly a straight line with a slim loop.
    (2, "30,0 16,30 4,68 4,92 18,99 32,86 34,68 22,64 8,78"),
];

const SEVEN: &[Glyph] = &[
    // A roof and a straight leg.
    (4, "2,8 30,7 60,4! 46,46 30,100"),
    // With a bar across the leg.
    (2, "2,8 30,6 60,4! 44,46 28,100 / 16,52 36,50 60,47"),
    // With a tick at the beginning of the roof.
    (2, "2,24 6,8! 30,8 62,4! 46,46 36,100"),
    // The roof bending into the leg.
    (3, "2,16 16,6 42,4 58,10 56,26 42,60 32,100"),
    // With a tick and a leg bent inwards.
    (3, "2,26 4,8 28,10 58,4! 58,20 46,54 40,100"),
    // Wide, its leg short and leaning.
    (2, "2,14 26,12 56,8 80,4! 62,44 46,92"),
    // The roof sagging, the leg upright.
    (2, "0,4 6,16 28,18 54,6! 50,50 48,100"),
    // With a long bar low on the leg.
    (2, "4,12 26,8 52,4! 40,46 30,100 / 4,56 32,54 64,50"),
    // A roof bent down at both ends.
    (1, "2,30 8,12 34,4 56,8 58,30 50,64 46,100"),
];

const EIGHT: &[Glyph] = &[
    // In one line, begun at the upper right.
    (4, "54,12 34,1 12,10 12,30 32,47 50,66 46,90 26,99 8,86 14,64 36,44 54,26 54,10"),
    // Begun at the top, the loops about equal.
    (4, "32,1 10,12 10,32 32,46 56,64 54,90 30,99 6,88 8,64 32,46 52,30 52,10 32,1"),
    // Its top left open.
    (2, "62,6 38,2 16,14 18,34 34,52 42,74 32,96 10,96 4,78 24,54 48,34 66,14"),
    // A big head on a thin loop.
    (3, "50,8 28,1 6,12 8,34 28,52 40,72 38,94 24,99 16,88 20,68 38,48 54,28 50,8"),
    // Two crossed slants, the loops narrow.
    (2, "56,4 36,2 22,16 26,40 40,64 44,88 28,99 12,88 20,62 44,36 60,14 54,2"),
    // A small head on a wide loop.
    (2, "44,6 26,2 16,18 28,38 54,56 64,80 38,98 6,90 4,68 26,46 46,28 44,6"),
    // Two rings, one on the other.
    (2, "30,1 8,14 14,40 36,46 54,28 50,8 30,1 / 32,46 8,62 8,88 32,99 58,86 54,60 32,46"),
    // The head open to the right, the loop small.
    (3, "64,4 40,0 14,8 8,24 24,42 38,62 36,88 22,99 10,86 18,66 36,46 58,26"),
    // Wide, its loops lying aslant.
    (2, "74,8 48,0 18,8 14,28 38,44 54,64 44,88 18,98 4,84 18,62 50,42 76,24 72,8"),
];

const NINE: &[Glyph] = &[
    // A loop on a straight stem.
    (4, "50,12 32,2 10,14 4,36 20,48 42,36 54,8! 50,52 44,100"),
    // The tail curved to the left.
    (2, "52,16 34,2 12,10 4,32 20,46 44,36 54,14! 54,50 42,88 12,96"),
    // A round loop running smoothly into a bent tail.
    (3, "48,30 22,44 5,34 10,10 34,1 52,12 52,40 42,72 30,100"),
    // A small loop, the stem long and leaning.
    (3, "46,8 28,3 8,18 10,36 28,38 44,20 48,6 44,44 36,100"),
    // Its loop lying aslant, closed by the stem.
    (4, "54,6 34,10 8,32 6,48 22,48 42,28 56,4! 48,50 38,100"),
    // A big loop on a short stem.
    (3, "58,8 34,1 8,16 2,46 18,62 42,52 58,14 58,30 54,62 50,100"),
    // The loop begun at its foot.
    (2, "46,40 20,46 4,30 14,6 40,1 54,18 52,44 50,70 48,100"),
    // Its tail hooked.
    (2, "52,22 38,4 14,8 6,32 22,46 44,34 54,14 56,48 50,84 30,99 8,88"),
    // A narrow loop, open at the upper right.
    (3, "52,4 30,8 10,26 6,42 20,46 38,34 52,16 50,44 44,72 38,100"),
    // A loop pointed at the left, its stem bent forward.
    (3, "54,10 40,2 20,12 4,36 20,44 40,34 56,12 48,48 34,76 20,100"),
    // Wide and low, the stem steep.
    (2, "66,8 40,0 10,14 2,38 20,52 46,42 66,12! 62,52 60,100"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_tables_is_a_knot() {
        for (digit, glyphs) in GLYPHS.iter().enumerate() {
            assert!(glyphs.len() >= 4, "{digit} has too few styles");
            for (weight, text) in *glyphs {
                assert!(*weight > 0, "{digit}: {text}");
                for stroke in text.split('/') {
                    let words = stroke.split_whitespace().count();
                    assert!(words >= 3, "{digit}: {stroke}");
                    assert_eq!(
                        stroke.split_whitespace().filter_map(knot).count(),
                        words,
                        "{stroke}"
                    );
                }
            }
        }
    }

    #[test]
    fn strokes_and_corners_are_read() {
        let style = style(3, "1,2 -3,4! / 5,6");
        let at = |x, y, corner| Knot { x, y, corner };
        assert_eq!(style.weight, 3);
        assert_eq!(
            style.strokes,
            [vec![at(1.0, 2.0, false), at(-3.0, 4.0, true)], vec![at(5.0, 6.0, false)]]
        );
        assert_eq!(knot("7"), None);
        assert_eq!(knot("7,x"), None);
    }

    #[test]
    fn the_shapes_stay_near_their_box() {
        for knot in styles().iter().flatten().flat_map(|style| style.strokes.iter().flatten()) {
            assert!((0.0..=105.0).contains(&knot.x) && (0.0..=100.0).contains(&knot.y), "{knot:?}");
        }
    }
}
