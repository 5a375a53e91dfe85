//! What a driver takes to compile the functions of `shaders/prelude.wgsl`.

/// What llvmpipe (Mesa 22.3.6, LLVM 15) takes to compile a call of these, in units of ten microseconds: from chains of
/// 1 and of 17 or 48 calls in one kernel. An addition takes 5 of them, a whole kernel of one op 1700.
const COSTS: [(&str, usize); 27] = [
    ("acos_4", 600),
    ("acosh_4", 1500),
    ("asin_4", 600),
    ("asinh_4", 1300),
    ("atan2_4", 450),
    ("atan_4", 200),
    ("atanh_4", 1400),
    ("cos_4", 1500),
    ("divide_4", 40),
    ("erf_4", 1000),
    ("erfc_4", 900),
    ("exp_4", 120),
    ("expm1_4", 550),
    ("floormod_4", 200),
    ("is_inf_4", 40),
    ("is_nan_4", 40),
    ("is_negative_4", 40),
    ("log1p_4", 1000),
    ("log_4", 210),
    ("max_4", 55),
    ("min_4", 55),
    ("philox", 900),
    ("pow_4", 1150),
    ("sin_4", 1500),
    ("softplus_4", 1400),
    ("sqrt_4", 45),
    ("tanh_4", 650),
];

/// What a call of the function `name` costs beyond its characters.
pub(super) fn of(name: &str) -> usize {
    match COSTS.binary_search_by(|(known, _)| (*known).cmp(name)) {
        Ok(at) => COSTS[at].1,
        Err(_) if name.ends_with("_4") => 120,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_searched_by_name() {
        assert!(COSTS.windows(2).all(|pair| pair[0].0 < pair[1].0), "it stands in order");
        assert_eq!((of("tanh_4"), of("max_4"), of("philox")), (650, 55, 900));
        assert_eq!((of("another_4"), of("select")), (120, 0));
    }
}
