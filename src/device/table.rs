//! Tables of text, as reports and profiles print them.

use std::fmt;

/// A column's heading and the side its cells keep to.
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
pub(crate) fn write<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    columns: &[Column; N],
    rows: &[[String; N]],
) -> fmt::Result {
    let mut widths = [0; N];
    for (i, width) in widths.iter_mut().enumerate() {
        let cells = rows.iter().map(|row| row[i].chars().count());
        *width = cells.max().unwrap_or(0).max(columns[i].name.len());
    }
    let mut line = |cells: [&str; N]| {
        let mut text = String::new();
        for (i, cell) in cells.into_iter().enumerate() {
            let gap = if i == 0 { "" } else { "  " };
            let width = widths[i];
            text += &match columns[i].right {
                true => format!("{gap}{cell:>width$}"),
                false => format!("{gap}{cell:<width$}"),
            };
        }
        writeln!(f, "{}", text.trim_end())
    };
    line(columns.each_ref().map(|column| column.name))?;
    rows.iter().try_for_each(|row| line(row.each_ref().map(String::as_str)))
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
                let rows = [["matmul".to_string(), "5".into()], ["x".into(), "1234567".into()]];
                write(f, &[Column::left("kernel"), Column::right("calls")], &rows)
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
