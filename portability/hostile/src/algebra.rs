//! Sums, products and comparisons of floats, as a driver computes them that takes terms and factors in another order,
//! cancels them, and fuses products with sums.

use naga::{BinaryOperator, Expression, Handle, Literal, MathFunction, UnaryOperator};

use crate::builder::{Builder, Numbers};
use crate::error::Result;
use crate::knowledge::{Parts, mixed};
use crate::latitude::Latitude;
use crate::rules::Rules;

type One = Handle<Expression>;

impl Rules<'_> {
    /// `a + b`, or `a - b` if `less`.
    pub(crate) fn sum(&mut self, build: &mut Builder, a: One, b: One, less: bool) -> Result<One> {
        let [a, b, like] = self.alike(build, a, b)?;
        let Some(numbers) = build.floats(like) else { return Ok(a) };
        let mut terms = self.known.terms(a);
        terms.extend(self.known.terms(b).into_iter().map(|(term, minus)| (term, minus != less)));
        let regroup = self.has(Latitude::Regroup);
        let cancels = regroup || (self.has(Latitude::Identities) && terms.len() == 2);
        let fewer = cancels && self.known.cancel(&mut terms);
        let sum = match terms.len() {
            0 => build.number(0.0, numbers)?,
            _ if self.has(Latitude::Factor) && self.common_factor(&terms).is_some() => {
                self.factored(build, &terms)?
            }
            3.. if regroup => self.sum_of(build, &terms)?,
            _ if fewer => self.sum_of(build, &terms)?,
            _ => self.add(build, a, b, less)?,
        };
        self.known.is_sum(sum, terms);
        Ok(sum)
    }

    /// Both operands, a scalar as a vector if the other one is a vector; and one of them.
    fn alike(&mut self, build: &mut Builder, a: One, b: One) -> Result<[One; 3]> {
        let Some(numbers) = self.common(build, a, b) else { return Ok([a, b, a]) };
        let mut both = [a, b];
        for operand in &mut both {
            if build.floats(*operand) != Some(numbers) {
                let (size, value) = (numbers.vector(), *operand);
                if let Some(size) = size {
                    *operand = self.known.add(build, Expression::Splat { size, value })?;
                }
            }
        }
        let [a, b] = both;
        Ok([a, b, a])
    }

    /// The sum of terms in an order that the seed chooses.
    fn sum_of(&mut self, build: &mut Builder, terms: &Parts) -> Result<One> {
        let mut terms = self.shuffled(terms);
        // A sum does not begin with what is taken away, if it need not.
        let first = terms.iter().position(|(_, minus)| !minus).unwrap_or(0);
        let (term, minus) = terms.remove(first);
        let mut sum = if minus { self.negate(build, term)? } else { term };
        for (term, minus) in terms {
            sum = self.add(build, sum, term, minus)?;
        }
        Ok(sum)
    }

    /// The parts in another order.
    fn shuffled(&self, parts: &Parts) -> Parts {
        let mut parts = parts.clone();
        let seed = self.driver.seed();
        parts.sort_by_key(|(part, opposite)| {
            mixed(mixed(mixed(seed, self.known.id(*part)), u64::from(*opposite)), seed)
        });
        parts
    }

    /// One addition or subtraction. A product in it is fused, if the driver fuses.
    fn add(&mut self, build: &mut Builder, a: One, b: One, less: bool) -> Result<One> {
        if self.has(Latitude::Contract) {
            if let Some([x, y]) = self.known.factors_of(b) {
                let x = if less { self.negate(build, x)? } else { x };
                return self.function(build, MathFunction::Fma, &[x, y, a]);
            }
            if let Some([x, y]) = self.known.factors_of(a) {
                let b = if less { self.negate(build, b)? } else { b };
                return self.function(build, MathFunction::Fma, &[x, y, b]);
            }
        }
        let (name, op) = match less {
            true => ("subtract", BinaryOperator::Subtract),
            false => ("add", BinaryOperator::Add),
        };
        self.operation(build, name, &[a, b], Expression::Binary { op, left: a, right: b })
    }

    fn negate(&mut self, build: &mut Builder, x: One) -> Result<One> {
        let own = Expression::Unary { op: UnaryOperator::Negate, expr: x };
        self.operation(build, "negate", &[x], own)
    }

    /// `-x`, of which a compiler knows the terms.
    pub(crate) fn negative(&mut self, build: &mut Builder, x: One) -> Result<One> {
        let terms = self.known.terms(x).into_iter().map(|(term, minus)| (term, !minus)).collect();
        let y = self.negate(build, x)?;
        self.known.is_sum(y, terms);
        Ok(y)
    }

    /// `fma(a, b, c)`: a sum with a product, which may be rounded once or twice.
    pub(crate) fn fused(&mut self, build: &mut Builder, operands: &[One]) -> Result<One> {
        self.function(build, MathFunction::Fma, operands)
    }

    /// `a * b`, or `a / b` if `over`.
    pub(crate) fn product(
        &mut self,
        build: &mut Builder,
        a: One,
        b: One,
        over: bool,
    ) -> Result<One> {
        let [a, b, like] = self.alike(build, a, b)?;
        let Some(numbers) = build.floats(like) else { return Ok(a) };
        if self.has(Latitude::Identities) && !over && [a, b].iter().any(|x| self.is_zero(build, *x))
        {
            return build.number(0.0, numbers);
        }
        let mut factors = self.known.factors(a);
        factors.extend(self.known.factors(b).into_iter().map(|(factor, by)| (factor, by != over)));
        let regroup = self.has(Latitude::Regroup);
        let cancels = regroup || (self.has(Latitude::Identities) && factors.len() == 2);
        let fewer = cancels && self.known.cancel(&mut factors);
        let product = match factors.len() {
            0 => build.number(1.0, numbers)?,
            3.. if regroup => self.product_of(build, &factors, numbers)?,
            _ if fewer => self.product_of(build, &factors, numbers)?,
            _ => self.multiply(build, a, b, over)?,
        };
        self.known.is_product(product, factors);
        Ok(product)
    }

    fn is_zero(&self, build: &Builder, x: One) -> bool {
        matches!(self.literal(build, x), Some(Literal::F32(zero)) if zero == 0.0)
    }

    /// The product of factors in an order that the seed chooses.
    fn product_of(
        &mut self,
        build: &mut Builder,
        factors: &Parts,
        numbers: Numbers,
    ) -> Result<One> {
        let mut factors = self.shuffled(factors);
        let mut product = match factors.iter().position(|(_, over)| !over) {
            Some(first) => factors.remove(first).0,
            None => build.number(1.0, numbers)?,
        };
        for (factor, over) in factors {
            product = self.multiply(build, product, factor, over)?;
        }
        Ok(product)
    }

    fn multiply(&mut self, build: &mut Builder, a: One, b: One, over: bool) -> Result<One> {
        let (name, op) = match over {
            true => ("divide", BinaryOperator::Divide),
            false => ("multiply", BinaryOperator::Multiply),
        };
        let own = Expression::Binary { op, left: a, right: b };
        let y = self.operation(build, name, &[a, b], own)?;
        if !over {
            self.known.multiplied(y, [a, b]);
        }
        Ok(y)
    }

    /// Two terms that are products with a common factor: their places, and the factor's places in them.
    fn common_factor(&self, terms: &Parts) -> Option<[usize; 4]> {
        let factors: Vec<Parts> = terms.iter().map(|term| self.known.factors(term.0)).collect();
        for (i, a) in factors.iter().enumerate() {
            for (j, b) in factors.iter().enumerate().skip(i + 1) {
                if a.len().max(b.len()) < 2 {
                    continue;
                }
                for (k, (x, over)) in a.iter().enumerate() {
                    let same = |(y, o): &(One, bool)| {
                        !over && o == over && self.known.id(*x) == self.known.id(*y)
                    };
                    if let Some(l) = b.iter().position(same) {
                        return Some([i, j, k, l]);
                    }
                }
            }
        }
        None
    }

    /// `a * x + b * x` as `(a + b) * x`, and what else is to be added.
    fn factored(&mut self, build: &mut Builder, terms: &Parts) -> Result<One> {
        let mut rest = terms.clone();
        let Some([i, j, k, l]) = self.common_factor(terms) else {
            return self.sum_of(build, terms);
        };
        let (second, second_minus) = rest.remove(j);
        let (first, first_minus) = rest.remove(i);
        let numbers = build.floats(first).or(build.floats(second));
        let Some(numbers) = numbers else { return self.sum_of(build, terms) };
        let mut others = Vec::new();
        let mut common = None;
        for (term, at) in [(first, k), (second, l)] {
            let mut factors = self.known.factors(term);
            common = Some(factors.remove(at).0);
            let product = self.product_of(build, &factors, numbers)?;
            others.push(product);
        }
        let Some(common) = common else { return self.sum_of(build, terms) };
        let mut sum = others[0];
        if first_minus {
            sum = self.negate(build, sum)?;
        }
        let sum = self.add(build, sum, others[1], second_minus)?;
        let mut all = self.multiply(build, sum, common, false)?;
        for (term, minus) in rest {
            all = self.add(build, all, term, minus)?;
        }
        Ok(all)
    }

    /// A comparison; what is on both sides goes.
    pub(crate) fn comparison(
        &mut self,
        build: &mut Builder,
        (name, op): (&str, BinaryOperator),
        a: One,
        b: One,
        numbers: Numbers,
    ) -> Result<One> {
        let [mut a, mut b, _] = self.alike(build, a, b)?;
        let same = self.known.id(a) == self.known.id(b);
        if self.has(Latitude::Regroup) || (self.has(Latitude::Identities) && same) {
            let mut terms = self.known.terms(a);
            terms.extend(self.known.terms(b).into_iter().map(|(term, minus)| (term, !minus)));
            if self.known.cancel(&mut terms) {
                let (right, left): (Parts, Parts) =
                    terms.into_iter().partition(|(_, minus)| *minus);
                let right: Parts = right.into_iter().map(|(term, _)| (term, false)).collect();
                a = self.side(build, &left, numbers)?;
                b = self.side(build, &right, numbers)?;
            }
        }
        self.operation(build, name, &[a, b], Expression::Binary { op, left: a, right: b })
    }

    /// A side of a comparison: a sum, or 0.
    fn side(&mut self, build: &mut Builder, terms: &Parts, numbers: Numbers) -> Result<One> {
        match terms.is_empty() {
            true => build.number(0.0, numbers),
            false => self.sum_of(build, terms),
        }
    }
}
