//! Tables of text, as reports and profiles print them.

use std::fmt;

/// A column's heading and the side on which its cells are aligned.
pub(crate) struct Column {
    name: &'static str,
    right: bool,
}

impl Column {
    pub(crate) fn left(name: &'static str) -> Self {
        Column { name, right: false }
    }

    pub(crate) fn right(name: &'static str) -> Self {
        Column { name, right: true }
    }
}

/// Writes `rows` under the names of `columns`, each column as wide as its widest cell.
pub(crate) fn write(
    f: &mut fmt::Formatter<'_>,
    columns: &[Column],
    mut rows: Vec<Vec<String>>,
) -> fmt::Result {
    rows.insert(0, columns.iter().map(|column| column.name.to_string()).collect());
    // In characters, as padding counts them.
    let length = |cell: &str| cell.chars().count();
    for (i, column) in columns.iter().enumerate() {
        let width = rows.iter().map(|row| length(&row[i])).max().unwrap_or(0);
        for row in &mut rows {
            let padding = " ".repeat(width - length(&row[i]));
            let at = if column.right { 0 } else { row[i].len() };
            row[i].insert_str(at, &padding);
        }
    }
    rows.iter().try_for_each(|row| writeln!(f, "{}", row.join("  ").trim_end()))
}

/// A number of bytes with three or four digits and its unit.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        struct Two;
        impl fmt::Display for Two {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let rows = [["matmul", "5"], ["x", "1234567"]];
                let rows = rows.map(|row| row.map(str::to_string).to_vec()).to_vec();
                write(f, &[Column::left("kernel"), Column::right("calls")], rows)
            }
        }
        assert_eq!(Two.to_string(), "kernel    calls\nmatmul        5\nx       1234567\n");
    }

    #[test]
    fn bytes_have_a_fitting_unit() {
        let texts = [0, 999, 1000, 1536, 999_949, 999_950, 2_600_000, u64::MAX].map(bytes);
        assert_eq!(
            texts,
            ["0 B", "999 B", "1.0 kB", "1.5 kB", "999.9 kB", "1.0 MB", "2.6 MB", "18446.7 PB"]
        );
    }
}
