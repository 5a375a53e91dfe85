//! The files of a run: pictures as SVG, which any browser shows, and its measurements as JSON.

use std::fmt::Write;

use wgrad::data::mnist::Images;

/// The loss of each step, and the mean of the last 20, which shows the trend.
pub fn loss_curve(losses: &[f32]) -> String {
    let (width, height, left, top) = (800.0, 400.0, 60.0, 50.0);
    let highest = losses.iter().copied().filter(|loss| loss.is_finite()).fold(0.1, f32::max);
    let last = losses.len().saturating_sub(1).max(1) as f32;
    let x = |step: f32| left + width * step / last;
    let y = |loss: f32| top + height * (1.0 - loss / highest);
    let line = |values: &mut dyn Iterator<Item = f32>| {
        let shown = values.enumerate().filter(|(_, loss)| loss.is_finite());
        shown.fold(String::new(), |mut points, (step, loss)| {
            write!(points, "{:.1},{:.1} ", x(step as f32), y(loss)).expect("a string takes all");
            points
        })
    };
    let trend = |step: usize| {
        let window = &losses[step.saturating_sub(19)..=step];
        window.iter().sum::<f32>() / window.len() as f32
    };
    let mut svg = svg(900, 500);
    svg += "<text x='450' y='30' font-size='24' text-anchor='middle'>training loss</text>\n";
    for part in 0..=5 {
        let (step, loss) = (last * part as f32 / 5.0, highest * part as f32 / 5.0);
        let (x, y) = (x(step), y(loss));
        let (right, bottom) = (left + width, top + height);
        svg += &format!(
            "<path d='M{left} {y}H{right}M{x} {top}V{bottom}' stroke='#ddd'/>\n\
             <text x='52' y='{y}' text-anchor='end'>{loss:.2}</text>\n\
             <text x='{x}' y='468' text-anchor='middle'>{step:.0}</text>\n"
        );
    }
    svg += "<text x='450' y='490' text-anchor='middle'>step</text>\n\
            <text transform='translate(14 250) rotate(-90)' text-anchor='middle'>mean cross-entropy of the batch</text>\n";
    for (points, look) in [
        (line(&mut losses.iter().copied()), "stroke-opacity='0.35'"),
        (line(&mut (0..losses.len()).map(trend)), "stroke-width='2'"),
    ] {
        svg += &format!("<polyline points='{points}' fill='none' stroke='blue' {look}/>\n");
    }
    svg + "</svg>\n"
}

/// The first hundred misclassified digits, each with its label and the prediction.
pub fn misread_digits(images: &Images, misread: &[(usize, usize)]) -> String {
    const CELL: usize = 84;
    let mut svg = svg(10 * CELL, 10 * CELL);
    for (k, &(index, guess)) in misread.iter().take(100).enumerate() {
        let (left, top) = (k % 10 * CELL, k / 10 * CELL);
        svg += &format!(
            "<text x='{left}' y='{}'>{} read as {guess}</text>\n\
             <g transform='translate({} {}) scale(2)' stroke='black'>\n",
            top + 16,
            images.labels[index],
            left + 12,
            top + 22,
        );
        // The pixels of one shade are one path.
        for shade in 1..16 {
            let pixels = images.image(index).iter().enumerate();
            let path: String = pixels
                .filter(|&(_, &ink)| ink / 16 == shade)
                .map(|(i, _)| format!("M{} {}h1", i % 28, i / 28))
                .collect();
            if !path.is_empty() {
                let opacity = f32::from(shade) / 15.0;
                svg += &format!("<path stroke-opacity='{opacity:.2}' d='{path}'/>\n");
            }
        }
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

fn svg(width: usize, height: usize) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' font-family='sans-serif' font-size='12'>\n\
         <rect width='100%' height='100%' fill='white'/>\n"
    )
}

/// An object with a line for each pair; the values must already be JSON.
pub fn json(pairs: &[(&str, String)]) -> String {
    let lines: Vec<String> =
        pairs.iter().map(|(name, value)| format!("  {}: {value}", json_text(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

pub fn json_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// JSON has no infinities and no NaN.
pub fn json_number(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { "null".to_string() }
}
