//! Parses a formula as arithmetic: sums, products, comparisons and calls over numbers and names.

/// A visitor that evaluates the parts of an expression.
pub(crate) trait Arithmetic {
    type Value;

    /// An argument of the formula, by its name; `None` if no argument has this name.
    fn name(&mut self, name: &str) -> Option<Self::Value>;
    fn number(&mut self, number: f64) -> Self::Value;
    fn negative(&mut self, a: Self::Value) -> Self::Value;
    /// `a + b`, or `a - b` if it is `less`.
    fn sum(&mut self, a: Self::Value, b: Self::Value, less: bool) -> Self::Value;
    /// `a * b`, or `a / b` if it is `over`.
    fn product(&mut self, a: Self::Value, b: Self::Value, over: bool) -> Self::Value;
    fn comparison(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;
    fn call(&mut self, function: &str, arguments: Vec<Self::Value>) -> Self::Value;
}

/// The value of `text`, or `None` if it is not only arithmetic.
pub(super) fn evaluate<A: Arithmetic>(text: &str, to: &mut A) -> Option<A::Value> {
    let mut reader = Reader { rest: text.trim(), to, depth: 0 };
    let value = reader.comparison()?;
    reader.rest.is_empty().then_some(value)
}

struct Reader<'t, 'a, A> {
    /// The unread rest, without leading spaces.
    rest: &'t str,
    to: &'a mut A,
    /// How many parentheses are open.
    depth: usize,
}

/// Deeper expressions do not count as arithmetic.
const DEEPEST: usize = 32;

impl<'t, A: Arithmetic> Reader<'t, '_, A> {
    /// Consumes `word` if the rest begins with it.
    fn takes(&mut self, word: &str) -> bool {
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    fn comparison(&mut self) -> Option<A::Value> {
        let a = self.sum()?;
        if !["<=", ">=", "==", "!=", "<", ">"].iter().any(|word| self.takes(word)) {
            return Some(a);
        }
        let b = self.sum()?;
        Some(self.to.comparison(a, b))
    }

    fn sum(&mut self) -> Option<A::Value> {
        let mut a = self.product()?;
        loop {
            let less = self.rest.starts_with('-');
            if !self.takes("-") && !self.takes("+") {
                return Some(a);
            }
            let b = self.product()?;
            a = self.to.sum(a, b, less);
        }
    }

    fn product(&mut self) -> Option<A::Value> {
        let mut a = self.factor()?;
        loop {
            let over = self.rest.starts_with('/');
            if !self.takes("/") && !self.takes("*") {
                return Some(a);
            }
            let b = self.factor()?;
            a = self.to.product(a, b, over);
        }
    }

    fn factor(&mut self) -> Option<A::Value> {
        if self.takes("-") {
            let a = self.factor()?;
            return Some(self.to.negative(a));
        }
        if self.takes("(") {
            let a = self.nested()?;
            return self.takes(")").then_some(a);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
        let (mut word, mut rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            // The sign of an exponent does not end a number.
            if word.ends_with('e') && rest.starts_with(['-', '+']) {
                let digits = rest[1..].find(|c: char| !c.is_ascii_digit());
                (word, rest) =
                    self.rest.split_at(word.len() + 1 + digits.unwrap_or(rest.len() - 1));
            }
            let number = word.parse().ok()?;
            self.rest = rest.trim_start();
            return Some(self.to.number(number));
        }
        self.rest = rest.trim_start();
        if !self.takes("(") {
            return self.to.name(word);
        }
        let mut arguments = Vec::new();
        while !self.takes(")") {
            arguments.push(self.nested()?);
            if !self.takes(",") && !self.rest.starts_with(')') {
                return None;
            }
        }
        Some(self.to.call(word, arguments))
    }

    fn nested(&mut self) -> Option<A::Value> {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let a = self.comparison();
        self.depth -= 1;
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an expression with all its parentheses.
    struct Written;

    impl Arithmetic for Written {
        type Value = String;

        fn name(&mut self, name: &str) -> Option<String> {
            ["a", "b", "x"].contains(&name).then(|| name.to_string())
        }

        fn number(&mut self, number: f64) -> String {
            number.to_string()
        }

        fn negative(&mut self, a: String) -> String {
            format!("(-{a})")
        }

        fn sum(&mut self, a: String, b: String, less: bool) -> String {
            format!("({a} {} {b})", if less { '-' } else { '+' })
        }

        fn product(&mut self, a: String, b: String, over: bool) -> String {
            format!("({a} {} {b})", if over { '/' } else { '*' })
        }

        fn comparison(&mut self, a: String, b: String) -> String {
            format!("({a} ? {b})")
        }

        fn call(&mut self, function: &str, arguments: Vec<String>) -> String {
            format!("{function}[{}]", arguments.join(" "))
        }
    }

    #[test]
    fn arithmetic_is_read_by_its_rules() {
        for (text, written) in [
            ("x", "x"),
            ("a - b + x", "((a - b) + x)"),
            ("a - b * x / a", "(a - ((b * x) / a))"),
            ("(a - b) * -(a + 1.5e-3)", "((a - b) * (-(a + 0.0015)))"),
            ("1 / sqrt_4(x)", "(1 / sqrt_4[x])"),
            ("select(divide_4(a, b), V(0), b <= V(0))", "select[divide_4[a b] V[0] (b ? V[0])]"),
            ("-max_4(-a, -b)", "(-max_4[(-a) (-b)])"),
        ] {
            assert_eq!(evaluate(text, &mut Written).as_deref(), Some(written), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not_arithmetic() {
        let deep = format!("{}x{}", "(".repeat(100), ")".repeat(100));
        for text in
            ["", "y", "a + ", "a b", "a & b", "return x;", "V(1", "vec4<f32>(1.0)", "x.x", &deep]
        {
            assert_eq!(evaluate(text, &mut Written), None, "{text}");
        }
    }
}
