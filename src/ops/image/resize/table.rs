//! Which positions of an axis a resized position sums, and with which weights: TensorFlow's rules, in its `f32`
//! arithmetic.

use crate::graph::attributes::Attribute;

/// How a position of the result weighs the input positions around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
pub(super) enum Rule {
    /// The axis does not change.
    Keep,
    /// The position at the centre (`ResizeNearestNeighbor`).
    Nearest,
    /// The two positions next to the centre (`ResizeBilinear`).
    Linear,
    /// Four positions with Keys's cubic kernel in steps of 1/1024 (`ResizeBicubic`).
    Cubic,
    /// The positions that the result's position covers, weighted by the covered part (`ResizeArea`).
    Area,
    /// A kernel around the centre, which `antialias` widens if the axis shrinks (`ScaleAndTranslate`).
    Kernel { shape: Shape, antialias: bool },
}

/// The sampling kernels of `ScaleAndTranslate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
pub(super) enum Shape {
    Triangle,
    Keys,
    Mitchell,
    Gaussian,
    Lanczos3,
    Lanczos5,
}

impl Shape {
    fn radius(self) -> f32 {
        match self {
            Shape::Triangle => 1.0,
            Shape::Keys | Shape::Mitchell => 2.0,
            Shape::Gaussian => 1.5,
            Shape::Lanczos3 => 3.0,
            Shape::Lanczos5 => 5.0,
        }
    }

    /// The weight at the distance `x`, which is not negative.
    fn at(self, x: f32) -> f32 {
        let radius = self.radius();
        match self {
            Shape::Triangle => (1.0 - x).max(0.0),
            Shape::Keys if x >= 2.0 => 0.0,
            Shape::Keys if x >= 1.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Shape::Keys => ((1.5 * x - 2.5) * x) * x + 1.0,
            Shape::Mitchell if x >= 2.0 => 0.0,
            Shape::Mitchell if x >= 1.0 => {
                (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
            }
            Shape::Mitchell => (((7.0 / 6.0) * x - 2.0) * x) * x + 8.0 / 9.0,
            Shape::Gaussian if x >= radius => 0.0,
            Shape::Gaussian => {
                let sigma = radius / 3.0;
                (-x * x / (2.0 * sigma * sigma)).exp()
            }
            Shape::Lanczos3 | Shape::Lanczos5 if x > radius => 0.0,
            Shape::Lanczos3 | Shape::Lanczos5 if x <= 1e-3 => 1.0,
            Shape::Lanczos3 | Shape::Lanczos5 => {
                let pi = std::f32::consts::PI;
                radius * (pi * x).sin() * (pi * x / radius).sin() / (pi * pi * x * x)
            }
        }
    }
}

/// One axis of a resize from `from` to `to` positions, neither of them 0; with `backward`, its transpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Attribute)]
pub(super) struct Line {
    pub(super) rule: Rule,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) backward: bool,
}

/// The positions that one position of the result sums: those from `start` on, one for each weight.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) weights: Vec<f32>,
}

impl Line {
    /// An axis that does not change.
    pub(super) fn kept(size: usize) -> Self {
        Line { rule: Rule::Keep, from: size, to: size, backward: false }
    }

    pub(super) fn transposed(self) -> Self {
        Line { backward: !self.backward, ..self }
    }

    /// The size of the input.
    pub(super) fn input(&self) -> usize {
        if self.backward { self.to } else { self.from }
    }

    /// The size of the output.
    pub(super) fn output(&self) -> usize {
        if self.backward { self.from } else { self.to }
    }

    /// The span of each position of the result.
    pub(super) fn spans(&self) -> Vec<Span> {
        let forward: Vec<Span> = (0..self.to).map(|i| self.span(i)).collect();
        if !self.backward {
            return forward;
        }
        // Spans move along the axis with their positions, so those that contain a given position are adjacent.
        let mut spans = vec![Span::default(); self.from];
        for (i, span) in forward.iter().enumerate() {
            for (t, &weight) in span.weights.iter().enumerate() {
                let own = &mut spans[span.start + t];
                if own.weights.is_empty() {
                    own.start = i;
                }
                own.weights.resize(i - own.start, 0.0);
                own.weights.push(weight);
            }
        }
        spans
    }

    fn span(&self, i: usize) -> Span {
        let last = self.from - 1;
        let scale = self.from as f32 / self.to as f32;
        let middle = (i as f32 + 0.5) * scale;
        match self.rule {
            Rule::Keep => Span { start: i, weights: vec![1.0] },
            Rule::Nearest => {
                Span { start: (middle.floor() as usize).min(last), weights: vec![1.0] }
            }
            Rule::Linear => {
                let at = middle - 0.5;
                let (low, share) = (at.floor(), at - at.floor());
                let start = (low.max(0.0) as usize).min(last);
                let high = (at.ceil().max(0.0) as usize).min(last);
                match high > start {
                    true => Span { start, weights: vec![1.0 - share, share] },
                    false => Span { start, weights: vec![1.0] },
                }
            }
            Rule::Cubic => self.cubic(middle - 0.5),
            Rule::Area => {
                let (begin, end) = (i as f32 * scale, (i + 1) as f32 * scale);
                let mut span =
                    Span { start: (begin.floor() as usize).min(last), weights: Vec::new() };
                for j in begin.floor() as usize..end.ceil() as usize {
                    let (low, high) = (begin.max(j as f32), end.min((j + 1) as f32));
                    let weight = (high - low) / scale;
                    match span.weights.last_mut() {
                        // Rounding may lead beyond the last position, which then counts again.
                        Some(edge) if j > last => *edge += weight,
                        _ => span.weights.push(weight),
                    }
                }
                span
            }
            Rule::Kernel { shape, antialias } => self.kernel(i, shape, antialias),
        }
    }

    fn cubic(&self, at: f32) -> Span {
        const STEPS: f32 = 1024.0;
        let low = at.floor();
        let offset = ((at - low) * STEPS).round_ties_even() / STEPS;
        let near = |x: f32| (1.5 * x - 2.5) * x * x + 1.0;
        let far = |x: f32| ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0;
        let all = [far(offset + 1.0), near(offset), near(1.0 - offset), far(2.0 - offset)];
        let places = (0..4).map(|k| low as i64 - 1 + k);
        let inside = places.zip(all).filter(|(place, _)| (0..self.from as i64).contains(place));
        let inside: Vec<(i64, f32)> = inside.collect();
        let start = inside.first().map_or(0, |(place, _)| *place as usize);
        normalized(start, inside.into_iter().map(|(_, weight)| weight).collect())
    }

    fn kernel(&self, i: usize, shape: Shape, antialias: bool) -> Span {
        let inverse = 1.0 / (self.to as f32 / self.from as f32);
        let wide = if antialias { inverse.max(1.0) } else { 1.0 };
        let sample = (i as f32 + 0.5) * inverse;
        if sample < 0.0 || sample > self.from as f32 {
            return Span::default();
        }
        let reach = shape.radius() * wide;
        let last = (self.from - 1) as f32;
        let start = (sample - reach - 0.5).ceil().clamp(0.0, last) as usize;
        let end = (sample + reach - 0.5).floor().clamp(0.0, last) as usize;
        let narrow = 1.0 / wide;
        let weight = |place: usize| shape.at(((place as f32 + 0.5 - sample) * narrow).abs());
        normalized(start, (start..=end).map(weight).collect())
    }
}

/// The span with its weights divided by their sum, unless the sum is close to 0.
fn normalized(start: usize, mut weights: Vec<f32>) -> Span {
    let sum: f32 = weights.iter().sum();
    if sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
        let inverse = 1.0 / sum;
        weights.iter_mut().for_each(|weight| *weight *= inverse);
    }
    Span { start, weights }
}

/// The largest number of positions that one position sums.
pub(super) fn taps(spans: &[Span]) -> usize {
    spans.iter().map(|span| span.weights.len()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [Rule; 8] = [
        Rule::Nearest,
        Rule::Linear,
        Rule::Cubic,
        Rule::Area,
        Rule::Kernel { shape: Shape::Triangle, antialias: true },
        Rule::Kernel { shape: Shape::Lanczos5, antialias: false },
        Rule::Kernel { shape: Shape::Mitchell, antialias: true },
        Rule::Kernel { shape: Shape::Gaussian, antialias: true },
    ];

    fn line(rule: Rule, from: usize, to: usize) -> Line {
        Line { rule, from, to, backward: false }
    }

    #[test]
    fn every_place_weighs_one_and_stays_inside() {
        for rule in RULES {
            for (from, to) in [(1, 7), (7, 1), (5, 5), (3, 8), (100, 33), (33, 1000), (977, 3)] {
                let spans = line(rule, from, to).spans();
                assert_eq!(spans.len(), to);
                for span in &spans {
                    let sum: f32 = span.weights.iter().sum();
                    assert!((sum - 1.0).abs() < 1e-4, "{rule:?} {from} {to}: {span:?}");
                    assert!(
                        span.start + span.weights.len() <= from,
                        "{rule:?} {from} {to}: {span:?}"
                    );
                }
                assert!(spans.windows(2).all(|pair| pair[0].start <= pair[1].start));
            }
        }
    }

    #[test]
    fn the_transpose_has_the_same_weights() {
        for rule in RULES {
            for (from, to) in [(1, 7), (7, 1), (3, 8), (20, 7), (5, 5)] {
                let (there, back) =
                    (line(rule, from, to).spans(), line(rule, from, to).transposed().spans());
                assert_eq!(back.len(), from);
                let weight = |spans: &[Span], i: usize, j: usize| {
                    let at = j.checked_sub(spans[i].start);
                    at.and_then(|t| spans[i].weights.get(t)).copied().unwrap_or(0.0)
                };
                for (i, j) in (0..to).flat_map(|i| (0..from).map(move |j| (i, j))) {
                    assert_eq!(weight(&there, i, j), weight(&back, j, i), "{rule:?} {i} {j}");
                }
            }
        }
    }

    #[test]
    fn linear_places_lie_between_the_middles() {
        // 4 to 2: the centres are 0.5 and 2.5; 2 to 4: -0.25 is the edge, then a quarter and three quarters.
        let halves = Span { start: 0, weights: vec![0.5, 0.5] };
        assert_eq!(line(Rule::Linear, 4, 2).spans()[0], halves);
        let spans = line(Rule::Linear, 2, 4).spans();
        assert_eq!(spans[0], Span { start: 0, weights: vec![1.0] });
        assert_eq!(spans[1], Span { start: 0, weights: vec![0.75, 0.25] });
        assert_eq!(spans[3], Span { start: 1, weights: vec![1.0] });
    }
}
