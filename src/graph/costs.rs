//! What a driver takes to compile the functions of `shaders/prelude.wgsl`, and how often loops go round.

use std::sync::OnceLock;

use super::lower::{calls, function, functions};

/// What llvmpipe (Mesa 22.3.6, LLVM 15) takes to compile a call of these, in units of ten microseconds: from chains of
/// 1 and of 17 or 48 calls in one kernel. An addition takes 5 of them, a whole kernel of one op 1700.
const COSTS: [(&str, usize); 31] = [
    ("acos_4", 350),
    ("acosh_4", 1900),
    ("asin_4", 300),
    ("asinh_4", 1900),
    ("atan2_4", 570),
    ("atan_4", 270),
    ("atanh_4", 2000),
    ("cos_4", 2300),
    ("cosh_4", 300),
    ("divide_4", 40),
    ("erf_4", 1100),
    ("erfc_4", 700),
    ("exp_4", 250),
    ("expm1_4", 250),
    ("floormod_4", 1300),
    ("is_inf_4", 40),
    ("is_nan_4", 40),
    ("is_negative_4", 40),
    ("log1p_4", 1000),
    ("log_4", 600),
    ("max_4", 55),
    ("min_4", 55),
    ("philox", 900),
    ("pow_4", 2000),
    ("sigmoid_4", 280),
    ("sin_4", 2300),
    ("sinh_4", 350),
    ("softplus_4", 2100),
    ("sqrt_4", 45),
    ("tan_4", 1900),
    ("tanh_4", 400),
];

/// What a call of the function `name` costs beyond its characters.
pub(super) fn of(name: &str) -> usize {
    match COSTS.binary_search_by(|(known, _)| (*known).cmp(name)) {
        Ok(at) => COSTS[at].1,
        Err(_) if name.ends_with("_4") => 120,
        Err(_) => 0,
    }
}

/// Iterations of the loops in `text` and in the functions of the prelude that it calls.
pub(super) fn iterations(text: &str) -> usize {
    static OF_FUNCTIONS: OnceLock<Vec<usize>> = OnceLock::new();
    let known = OF_FUNCTIONS.get_or_init(|| (0..functions().len()).map(of_function).collect());
    count(text, &|at| known[at])
}

fn of_function(at: usize) -> usize {
    let (name, text) = functions()[at];
    // Its head is no call.
    count(&text.replacen(name, "", 1), &of_function)
}

/// Loops count in single steps, or in larger ones, from a number to a number: none makes more iterations than the largest
/// number in its head. `called` are those of the functions.
fn count(text: &str, called: &dyn Fn(usize) -> usize) -> usize {
    let (before, rest) = text.split_once("for (").unwrap_or((text, ""));
    let own: usize = calls(before).filter_map(function).map(called).sum();
    let Some((head, rest)) = rest.split_once('{') else { return own };
    let numbers = head.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    let most: usize = numbers.max().unwrap_or(0);
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    let (inside, after) = rest.split_at(end.unwrap_or(rest.len()));
    own + most * (1 + count(inside, called)) + count(after, called)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_counted_with_what_they_call() {
        assert_eq!(iterations("x + max_4(a, b)"), 0);
        assert_eq!(iterations("for (var i = 0; i < 32; i++) { y = f(y); } return y;"), 32);
        let nested =
            "for (var i = 5u; i > 1u; i--) { if (a) { b; } for (var j = 0; j < 3; j++) { c; } }";
        assert_eq!(iterations(&format!("{nested} {nested}")), 2 * 5 * (1 + 3));
        // The lanes of large angles, and the digits of a quotient.
        assert_eq!((iterations("sin_4(x) + cos_4(y)"), iterations("floormod_4(x, y)")), (8, 35));
        assert_eq!(iterations("for (var i = 0; i < 2; i++) { x = sin_4(x); }"), 10);
    }

    #[test]
    fn the_table_is_searched_by_name() {
        assert!(COSTS.windows(2).all(|pair| pair[0].0 < pair[1].0), "it stands in order");
        assert_eq!((of("tanh_4"), of("max_4"), of("philox")), (400, 55, 900));
        assert_eq!((of("another_4"), of("select")), (120, 0));
    }
}
