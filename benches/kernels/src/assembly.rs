//! Parses the machine code that AMD's compiler prints and analyses its hottest loop.

use std::collections::HashMap;

/// The instructions in a stretch of code.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Mix {
    /// All instructions, without waits and hints.
    pub instructions: u32,
    /// Fused multiply-adds.
    pub fmas: u32,
    /// Bytes that each thread reads from buffers.
    pub loaded: u32,
    /// The number of instructions that read them.
    pub loads: u32,
    /// Bytes that each thread writes to buffers.
    pub stored: u32,
}

impl Mix {
    fn add(&mut self, name: &str) {
        const NO_WORK: [&str; 6] =
            ["s_waitcnt", "s_nop", "s_clause", "s_inst_prefetch", "s_endpgm", "s_code_end"];
        if NO_WORK.iter().any(|none| name.starts_with(none)) {
            return;
        }
        self.instructions += 1;
        self.fmas +=
            u32::from(name.starts_with("v_") && (name.contains("fma") || name.contains("mac_")));
        let words = |width: &str| {
            width.rsplit_once("dwordx").map_or(1, |(_, count)| count.parse().unwrap_or(1))
        };
        let after = |begins: [&str; 2]| begins.iter().find_map(|begin| name.strip_prefix(begin));
        if let Some(width) = after(["buffer_load_", "global_load_"]) {
            self.loads += 1;
            self.loaded += 4 * words(width);
        } else if let Some(width) = after(["buffer_store_", "global_store_"]) {
            self.stored += 4 * words(width);
        }
    }
}

/// The innermost loop with the most multiplications, or else with the most instructions. `Err` has all of the code if there are
/// no loops.
pub fn hottest(code: &str) -> Result<Mix, Mix> {
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let (mut names, mut back) = (Vec::new(), Vec::new());
    for line in code.lines() {
        if let Some(label) = line.strip_suffix(':').filter(|label| label.starts_with("BB")) {
            labels.insert(label, names.len());
            continue;
        }
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next().filter(|name| name.contains('_')) else { continue };
        // A branch to an earlier label is a loop.
        if name.starts_with("s_branch") || name.starts_with("s_cbranch") {
            back.extend(
                words.next().and_then(|label| labels.get(label)).map(|from| (*from, names.len())),
            );
        }
        names.push(name);
    }
    let inner = back.iter().filter(|(from, to)| {
        !back.iter().any(|(f, t)| (f, t) != (from, to) && f >= from && t <= to)
    });
    let mix = |range: &[&str]| {
        let mut mix = Mix::default();
        range.iter().for_each(|name| mix.add(name));
        mix
    };
    let loops = inner.map(|&(from, to)| mix(&names[from..=to]));
    loops.max_by_key(|mix| (mix.fmas, mix.instructions)).ok_or_else(|| mix(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_loop_with_most_products_is_the_hottest() {
        let code = "\
BB0:
\ts_mov_b32 s0, s3                                            ; be800303
BB1:
\tv_add_f32_e32 v0, v1, v2                                    ; 06000501
BB2:
\ts_clause 0x1                                                ; bfa10001
\tbuffer_load_dwordx4 v[80:83], v76, s[20:23], 0 offen        ; e0381000 8005504c
\tbuffer_load_dword v1, v76, s[20:23], 0 offen                ; e0381000 8005504c
\ts_waitcnt vmcnt(0)                                          ; bf8c3f70
\tv_fmac_f32_e32 v0, v80, v81                                 ; 560000a1
\tv_fma_f32 v0, v1, v2, v3                                    ; 560000a1
\ts_cbranch_scc0 BB2                                          ; bf850019
BB3:
\tv_mul_f32_e32 v0, v1, v2                                    ; 10000501
\ts_cbranch_scc0 BB3                                          ; bf850019
\ts_branch BB1                                                ; bf82ffad
BB4:
\ts_endpgm                                                    ; bf810000
";
        assert_eq!(
            hottest(code),
            Ok(Mix { instructions: 5, fmas: 2, loaded: 20, loads: 2, stored: 0 })
        );
        let straight = "BB0:\n\tv_pk_fma_f16 v0, v1, v2, v3 ; c\n\tbuffer_store_dwordx2 v[0:1] ; c\n\ts_endpgm ; bf81\n";
        assert_eq!(
            hottest(straight),
            Err(Mix { instructions: 2, fmas: 1, stored: 8, ..Mix::default() })
        );
        assert_eq!(hottest(""), Err(Mix::default()));
    }
}
