//! What a driver may do to a program's numbers, each by a name. `Driver` is a choice of them.
//!
//! Numbers and titles of sections are those of the WGSL specification (W3C, draft of August 2026).

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::subgroups::Subgroups;

macro_rules! latitudes {
    ($($group:ident { $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+ })+) => {
        /// What a driver may do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Latitude {$($(
            $(#[doc = $doc])+
            $variant,
        )+)+}

        /// All latitudes, each with its name. A driver has at most one of each group, as they exclude each other.
        const ALL: &[(Latitude, &str, Group)] = &[$($((Latitude::$variant, $name, Group::$group),)+)+];

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Group {$($group),+}

        const GROUPS: &[Group] = &[$(Group::$group),+];
    };
}

latitudes! {
    Denormals {
        /// Operands below the least normal number are zeros of their sign (15.7.2, Differences from IEEE-754: whatever the
        /// table of accuracies lists may flush what comes and what goes).
        FlushOperands = "flush-operands",
        /// Results below the least normal number are zeros of their sign (15.7.2).
        FlushResults = "flush-results",
        /// Operands and results are flushed, and the zeros are positive (15.7.2, which also lets the sign of a zero go).
        FlushToPositive = "flush-to-positive",
    }
    Bitcasts {
        /// `bitcast` from and to floats flushes (15.7.2: what lies between may be flushed in reinterpretations of bits).
        FlushBitcasts = "flush-bitcasts",
    }
    Rounding {
        /// Sums, differences and products round up (15.7.2: no rounding mode is given; 15.7.4, Floating Point Accuracy: both
        /// neighbours of the exact result are correctly rounded).
        RoundUp = "round-up",
        /// They round down (15.7.2, 15.7.4).
        RoundDown = "round-down",
        /// They round toward zero (15.7.2, 15.7.4).
        RoundToZero = "round-to-zero",
        /// They round to the neighbour that is farther away, so that each is off by up to one unit (15.7.2, 15.7.4).
        RoundFar = "round-far",
        /// They round up or down by a hash of the result (15.7.2, 15.7.4).
        RoundByHash = "round-by-hash",
    }
    Overflow {
        /// A sum or a product between the largest number and 2^128 is the largest number (15.7.3, Floating Point Rounding and
        /// Overflow: either direction).
        OverflowToLargest = "overflow-to-largest",
    }
    Quotients {
        /// `a / b` is `a` times the reciprocal of `b`, flushed, so that it is 0 for `b` beyond 2^126 (15.7.4.1, Accuracy of
        /// Concrete Floating Point Expressions: 2.5 ULP for `b` from 2^-126 to 2^126, and nothing beyond).
        QuotientByReciprocal = "quotient-by-reciprocal",
        /// Quotients are too large by up to 2.5 ULP (15.7.4.1).
        QuotientUp = "quotient-up",
        /// Quotients are too small by as much (15.7.4.1).
        QuotientDown = "quotient-down",
        /// Quotients are too large or too small, by a hash of the divisor (15.7.4.1).
        QuotientByHash = "quotient-by-hash",
    }
    Functions {
        /// Built-in functions are larger by nearly as much as the table lets them (15.7.4.1).
        FunctionsUp = "functions-up",
        /// They are smaller by as much (15.7.4.1).
        FunctionsDown = "functions-down",
        /// They are larger or smaller, by a hash of the operand (15.7.4.1).
        FunctionsByHash = "functions-by-hash",
    }
    Contraction {
        /// A product that is added is not rounded before, also in another statement or function, and `fma` is rounded once
        /// (15.7.5, Reassociation and Fusion: what is at least as accurate may be fused).
        Contract = "contract",
        /// No product that is added is fused, and `fma` rounds twice (15.7.4.1: `fma` is as accurate as `x * y + z`).
        Separate = "separate",
    }
    Grouping {
        /// Terms of sums and factors of products come in another order, and cancel where mathematics lets them (15.7.5: any
        /// order that gives the same if nothing is rounded).
        Regroup = "regroup",
    }
    Factors {
        /// `a * b + a * c` is `a * (b + c)`, as compilers make it that reassociate (15.7.5, by a wide reading of order). The
        /// opposite, which needs one operation more, is no order of operations, and no compiler does it.
        Factor = "factor",
    }
    Zeros {
        /// Every zero that an operation gives is positive (15.7.2: the sign of a zero may be ignored).
        ZerosPositive = "zeros-positive",
        /// Every zero that an operation gives is negative (15.7.2).
        ZerosNegative = "zeros-negative",
    }
    Comparisons {
        /// A comparison with NaN is true where IEEE-754 says false, and the other way round, as a compiler does that turns
        /// `!(a < b)` into `a >= b` (15.7.2, Finite Math Assumption: NaN may be taken for impossible).
        CompareNan = "compare-nan",
    }
    Extremes {
        /// `min`, `max` and `clamp` with NaN give their first operand (15.7.2, Finite Math Assumption and its note).
        ExtremesFirst = "extremes-first",
        /// They give their last operand (15.7.2).
        ExtremesLast = "extremes-last",
    }
    Tests {
        /// Tests of the bits of a computed number for NaN and infinity fail, as a compiler finds that sees what they test
        /// (15.7.2, Finite Math Assumption).
        TestsOfBits = "tests-of-bits",
    }
    Identities {
        /// `x - x` is 0, `x / x` is 1, `x * 0` is 0 and `x == x` holds, also where `x` is infinite or NaN (15.7.2, Finite
        /// Math Assumption).
        Identities = "identities",
    }
    Halves {
        /// What becomes `f16` is rounded toward zero (15.7.6, Floating Point Conversion: either neighbour).
        HalvesToZero = "halves-to-zero",
        /// `f32(f16(x))` is `x`. No section allows it; compilers do it (NVIDIA's, driver 580.159).
        HalvesElided = "halves-elided",
    }
    SmallHalves {
        /// What is below the least normal `f16` is 0, in conversions and in `quantizeToF16` (15.7.2; 17.5.47).
        FlushHalves = "flush-halves",
    }
    LargeHalves {
        /// `quantizeToF16` of what no `f16` holds is some number (17.5.47: an indeterminate value).
        QuantizeWild = "quantize-wild",
    }
    Integers {
        /// Integers of more than 24 bits become the `f32` that is nearer to zero (15.7.6: either neighbour).
        IntegersToZero = "integers-to-zero",
    }
    Conversions {
        /// NaN becomes a large integer (15.7.6: an indeterminate value).
        ConvertNan = "convert-nan",
        /// So does a float that the integer type cannot hold. WGSL asks for the nearest integer (15.7.6); SPIR-V
        /// (`OpConvertFToS`), Metal and HLSL do not, and drivers did as their hardware did before compilers clamped.
        ConvertWild = "convert-wild",
    }
    Elements {
        /// What reads beyond an array reads another of its elements, and what writes there writes it (6.5.6, Out-of-Bounds
        /// Access: any place of the buffer).
        OtherElements = "other-elements",
    }
    Nans {
        /// An operation with NaN, or that gives it, gives a number (15.7.2, Finite Math Assumption: an indeterminate value).
        /// No hardware does it.
        NansLost = "nans-lost",
    }
    Infinities {
        /// An operation with an infinity, or that gives one, gives a number (15.7.2). No hardware does it.
        InfinitiesLost = "infinities-lost",
    }
}

impl Latitude {
    /// All latitudes.
    pub fn all() -> impl Iterator<Item = Latitude> {
        ALL.iter().map(|(latitude, ..)| *latitude)
    }

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(known, ..)| *known == self).map_or("", |(_, name, _)| name)
    }

    fn group(self) -> Option<Group> {
        ALL.iter().find(|(known, ..)| *known == self).map(|(.., group)| *group)
    }

    /// Whether a driver that is drawn may have it: no hardware does the last two.
    fn is_drawn(self) -> bool {
        !matches!(self, Latitude::NansLost | Latitude::InfinitiesLost)
    }
}

impl fmt::Display for Latitude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A driver that takes some latitudes: their names, joined by `+`; `draw:SEED` draws some; `none` takes none. A name like
/// `subgroups-32` or `subgroups-8-scattered` gives it subgroups of this size, and `seed-7` another order of terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Driver {
    latitudes: Vec<Latitude>,
    subgroups: Option<Subgroups>,
    seed: u64,
}

impl Driver {
    /// A driver with these latitudes. `seed` decides between ways that are equally good, such as orders of terms.
    ///
    /// # Errors
    /// If two exclude each other.
    pub fn new(latitudes: impl IntoIterator<Item = Latitude>, seed: u64) -> Result<Self> {
        let mut latitudes: Vec<Latitude> = latitudes.into_iter().collect();
        latitudes.sort_unstable();
        latitudes.dedup();
        for pair in latitudes.windows(2) {
            if pair[0].group() == pair[1].group() {
                let [a, b] = [pair[0], pair[1]];
                return Err(Error::new(format!(
                    "{a} and {b} exclude each other; name one of them"
                )));
            }
        }
        Ok(Driver { latitudes, subgroups: None, seed })
    }

    /// Draws latitudes: of each group none, or any of its members.
    pub fn drawn(seed: u64) -> Self {
        let mut state = seed;
        let mut latitudes = Vec::new();
        for &group in GROUPS {
            let members: Vec<Latitude> =
                Latitude::all().filter(|l| l.group() == Some(group) && l.is_drawn()).collect();
            if members.is_empty() || mixed(&mut state) & 1 == 0 {
                continue;
            }
            latitudes.push(members[(mixed(&mut state) % members.len() as u64) as usize]);
        }
        latitudes.sort_unstable();
        Driver { latitudes, subgroups: None, seed }
    }

    /// The driver with subgroups of this size, whatever the adapter's are.
    #[must_use]
    pub fn with_subgroups(self, subgroups: Subgroups) -> Self {
        Driver { subgroups: Some(subgroups), ..self }
    }

    /// How it forms subgroups, if not as the adapter does.
    pub fn subgroups(&self) -> Option<Subgroups> {
        self.subgroups
    }

    /// Whether the driver takes this latitude.
    pub fn has(&self, latitude: Latitude) -> bool {
        self.latitudes.contains(&latitude)
    }

    /// What the driver takes.
    pub fn latitudes(&self) -> &[Latitude] {
        &self.latitudes
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }
}

/// The seed of a driver that names none.
const SEED: u64 = 1;

/// SplitMix64 (Steele et al. 2014): the next of a sequence of numbers.
fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.latitudes.iter().map(Latitude::to_string).collect();
        names.extend((self.seed != SEED).then(|| format!("seed-{}", self.seed)));
        names.extend(self.subgroups.map(|subgroups| subgroups.to_string()));
        match names.is_empty() {
            true => f.write_str("none"),
            false => f.write_str(&names.join("+")),
        }
    }
}

impl FromStr for Driver {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(seed) = text.strip_prefix("draw:") {
            let seed = seed.parse();
            return seed.map(Driver::drawn).map_err(|_| {
                Error::new(format!(
                    "draw: is followed by a number, as in draw:17; not as in {text}"
                ))
            });
        }
        let mut latitudes = Vec::new();
        let mut subgroups = None;
        let mut seed = SEED;
        for name in text.split('+').filter(|name| *name != "none") {
            if let Some(number) = name.strip_prefix("seed-").and_then(|seed| seed.parse().ok()) {
                seed = number;
                continue;
            }
            match (Subgroups::named(name), ALL.iter().find(|(_, known, _)| *known == name)) {
                (Some(named), _) => subgroups = Some(named?),
                (None, Some((latitude, ..))) => latitudes.push(*latitude),
                (None, None) => {
                    let all: Vec<&str> = ALL.iter().map(|(_, name, _)| *name).collect();
                    let all = all.join(", ");
                    return Err(Error::new(format!(
                        "no latitude is called {name:?}. There are: {all}, subgroups-32, subgroups-32-scattered"
                    )));
                }
            }
        }
        Ok(Driver { subgroups, ..Driver::new(latitudes, seed)? })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_named_by_what_it_takes() {
        let driver: Driver = "round-up+contract".parse().unwrap();
        assert!(driver.has(Latitude::RoundUp) && driver.has(Latitude::Contract));
        assert!(!driver.has(Latitude::RoundDown));
        assert_eq!(driver.to_string(), "round-up+contract");
        assert_eq!("none".parse::<Driver>().unwrap(), Driver::new([], 1).unwrap());
        for name in ["subgroups-8", "round-up+subgroups-64-scattered", "regroup+seed-7"] {
            assert_eq!(name.parse::<Driver>().unwrap().to_string(), name);
        }
        for latitude in Latitude::all() {
            assert_eq!(latitude.name().parse::<Driver>().unwrap().latitudes(), [latitude]);
        }
    }

    #[test]
    fn what_is_no_driver_is_refused() {
        let refused = |text: &str| text.parse::<Driver>().unwrap_err().to_string();
        assert!(
            refused("round-sideways")
                .contains("no latitude is called \"round-sideways\". There are: flush-operands, ")
        );
        assert_eq!(
            refused("round-up+round-down"),
            "round-up and round-down exclude each other; name one of them"
        );
        assert!(refused("subgroups-6").contains("a power of two up to 128"));
        assert!(refused("draw:x").contains("draw:17"));
        assert!(refused("").contains("no latitude is called \"\""));
    }

    #[test]
    fn a_seed_draws_the_same_driver_each_time_and_all_are_drawn() {
        let mut seen: Vec<Latitude> =
            (2..200).flat_map(|seed| Driver::drawn(seed).latitudes).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), ALL.len() - 2);
        for seed in 2..50 {
            let drawn = Driver::drawn(seed);
            assert_eq!(drawn, format!("draw:{seed}").parse().unwrap());
            assert_eq!(drawn.to_string().parse::<Driver>().unwrap(), drawn);
            assert!(Driver::new(drawn.latitudes.clone(), seed).is_ok());
        }
    }
}
