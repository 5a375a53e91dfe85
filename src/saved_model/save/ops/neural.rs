//! Convolutions, pooling and resized images.

use super::super::builder::{Builder, Out, ints, text};
use super::{Write, int, t};
use crate::dtype::DType;
use crate::graph::attributes::Value;
use crate::ops::{Conv2dOptions, Padding};
use crate::saved_model::graph_def::proto::Attr;
use crate::saved_model::traced::{Found, Number, Site, field};

pub(super) const OPS: &[(&str, Write)] = &[
    ("Conv2D", conv2d),
    ("Conv2DBackpropInput", input_gradient),
    ("Conv2DBackpropFilter", filter_gradient),
    ("DepthwiseConv2D", depthwise),
    ("DepthwiseConv2DBackpropInput", input_gradient),
    ("DepthwiseConv2DBackpropFilter", filter_gradient),
    ("Dilation2D", dilation2d),
    ("ImageResample", resample),
    ("Pool", pool),
];

/// Sizes along rows and columns, for all four axes.
fn of_images([rows, columns]: [usize; 2]) -> Attr {
    ints([1, rows as i64, columns as i64, 1])
}

/// The attributes of a padding.
fn padding_attrs(padding: Padding) -> Vec<(&'static str, Attr)> {
    match padding {
        Padding::Valid => vec![("padding", text("VALID"))],
        Padding::Same => vec![("padding", text("SAME"))],
        Padding::Explicit(edges) => {
            let edges = edges.pairs().iter().flat_map(|(low, high)| [*low as i64, *high as i64]);
            let all = [0, 0].into_iter().chain(edges).chain([0, 0]);
            vec![("padding", text("EXPLICIT")), ("explicit_paddings", ints(all))]
        }
    }
}

fn conv_attrs(site: &Site, options: &Conv2dOptions) -> Vec<(&'static str, Attr)> {
    let mut attrs = padding_attrs(options.padding);
    attrs.push(("strides", of_images(options.strides)));
    attrs.push(("dilations", of_images(options.dilations)));
    attrs.push(t(site.dtype()));
    attrs
}

fn conv2d(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let options = site.get("options")?;
    Ok(b.op("Conv2D", &[&inputs[0], &inputs[1]], conv_attrs(site, &options)))
}

/// TensorFlow's name of the same gradient.
fn gradient_name(site: &Site) -> String {
    site.call().kind.replace("DepthwiseConv2D", "DepthwiseConv2dNative")
}

fn input_gradient(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let options = site.get("options")?;
    let sizes = b.vector(&site.output_shape()?);
    Ok(b.op(&gradient_name(site), &[&sizes, &inputs[1], &inputs[0]], conv_attrs(site, &options)))
}

fn filter_gradient(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let options = site.get("options")?;
    let sizes = b.vector(&site.output_shape()?);
    Ok(b.op(&gradient_name(site), &[&inputs[0], &sizes, &inputs[1]], conv_attrs(site, &options)))
}

fn depthwise(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let options: Conv2dOptions = site.get("options")?;
    let [rows, columns] = options.strides;
    if rows != columns {
        return Err(format!(
            "has the strides {:?}, and TensorFlow's needs two equal ones",
            options.strides
        ));
    }
    if options.dilations == [1, 1] {
        let attrs = conv_attrs(site, &options);
        return Ok(b.op("DepthwiseConv2dNative", &[&inputs[0], &inputs[1]], attrs));
    }
    if rows != 1 {
        return Err("has strides and dilations, of which TensorFlow's has only one".to_string());
    }
    dilated(b, site, inputs, &options)
}

/// TensorFlow's op has no dilations on a CPU: as its Python function does, this makes images of every d-th row and column.
fn dilated(b: &mut Builder, site: &Site, inputs: &[Out], options: &Conv2dOptions) -> Found<Out> {
    let (image, filter) = (site.input_shape(0)?, site.input_shape(1)?);
    let dtype = site.dtype();
    let (mut edges, mut crops) = (Vec::new(), Vec::new());
    for axis in 0..2 {
        let (Number::Known(size), Number::Known(taps)) = (&image[axis + 1], &filter[axis]) else {
            return Err(
                "has dilations, for which TensorFlow needs images of known size".to_string()
            );
        };
        let dilation = options.dilations[axis] as i64;
        let (low, high) = match options.padding {
            Padding::Valid => (0, 0),
            Padding::Same => {
                let all = (taps - 1) * dilation;
                (all / 2, all - all / 2)
            }
            Padding::Explicit(pairs) => {
                let (low, high) = pairs.pairs()[axis];
                (low as i64, high as i64)
            }
        };
        let more = -(size + low + high) % dilation;
        let more = (more + dilation) % dilation;
        edges.extend([low, high + more]);
        crops.extend([0, more]);
    }
    let form = b.i32s(&[2, 2]);
    let pairs = |b: &mut Builder, numbers: &[i64]| {
        let flat = b.i32s(numbers);
        b.op("Reshape", &[&flat, &form], [t(DType::I32), int("Tshape")])
    };
    let (edges, crops) = (pairs(b, &edges), pairs(b, &crops));
    let block: Vec<i64> = options.dilations.iter().map(|size| *size as i64).collect();
    let block = b.i32s(&block);
    let attrs = |name| [t(dtype), int("Tblock_shape"), int(name)];
    let apart = b.op("SpaceToBatchND", &[&inputs[0], &block, &edges], attrs("Tpaddings"));
    let plain = Conv2dOptions::new();
    let attrs_of_conv = conv_attrs(site, &plain);
    let y = b.op("DepthwiseConv2dNative", &[&apart, &inputs[1]], attrs_of_conv);
    Ok(b.op("BatchToSpaceND", &[&y, &block, &crops], attrs("Tcrops")))
}

fn dilation2d(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    if *site.raw("find")? != Value::Text("Sum".to_string()) {
        return Err("has no counterpart in TensorFlow".to_string());
    }
    let options: Conv2dOptions = site.get("options")?;
    if matches!(options.padding, Padding::Explicit(_)) {
        return Err("has an explicit padding, which TensorFlow's lacks".to_string());
    }
    let mut attrs = padding_attrs(options.padding);
    attrs.push(("strides", of_images(options.strides)));
    attrs.push(("rates", of_images(options.dilations)));
    attrs.push(t(site.dtype()));
    Ok(b.op("Dilation2D", &[&inputs[0], &inputs[1]], attrs))
}

fn pool(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let op = match site.call().name {
        op @ ("MaxPool" | "AvgPool") => op,
        _ => return Err("has no counterpart in TensorFlow".to_string()),
    };
    let options = site.raw("options")?;
    let padding: Padding = options.field("padding")?;
    if op == "AvgPool" && matches!(padding, Padding::Explicit(_)) {
        return Err("has an explicit padding, which TensorFlow's lacks".to_string());
    }
    let mut attrs = padding_attrs(padding);
    attrs.push(("ksize", of_images(options.field("window")?)));
    attrs.push(("strides", of_images(options.field("strides")?)));
    attrs.push(t(site.dtype()));
    Ok(b.op(op, &[&inputs[0]], attrs))
}

/// How an axis of images is resized.
#[derive(Clone, PartialEq)]
struct Rule {
    name: String,
    /// Of a sampling kernel: its shape, and whether it widens where the image shrinks.
    kernel: Option<(String, bool)>,
}

fn rule(line: &Value) -> Found<Rule> {
    if line.field::<bool>("backward")? {
        return Err("is the gradient of a resize".to_string());
    }
    let value = field(line, "rule").ok_or("has no rule")?;
    let (name, rest) = value.variant()?;
    let kernel = match rest {
        [Value::Text(shape), Value::Bool(antialias)] => Some((shape.clone(), *antialias)),
        _ => None,
    };
    Ok(Rule { name: name.to_string(), kernel })
}

fn resample(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let line = |trace: usize, name| -> Found<&Value> {
        field(&site.calls[trace].attributes, name).ok_or_else(|| format!("has no {name}"))
    };
    let rules = [rule(line(0, "rows")?)?, rule(line(0, "columns")?)?];
    let changed: Vec<&Rule> = rules.iter().filter(|rule| rule.name != "Keep").collect();
    let x = &inputs[0];
    let Some(rule) = changed.first().filter(|rule| changed.iter().all(|other| other == *rule))
    else {
        return match changed.is_empty() {
            true => Ok(x.clone()),
            false => Err("resizes rows and columns in two ways".to_string()),
        };
    };
    let mut sizes = [Vec::new(), Vec::new()];
    for trace in 0..site.calls.len() {
        for (sizes, name) in sizes.iter_mut().zip(["rows", "columns"]) {
            let line = line(trace, name)?;
            sizes.push((line.field::<i64>("from")?, line.field::<i64>("to")?));
        }
    }
    let [rows, columns] = &sizes;
    let to = [site.number(|trace| rows[trace].1)?, site.number(|trace| columns[trace].1)?];
    let size = b.vector(&to);
    let half = [t(site.input_dtype(0)), ("half_pixel_centers", Attr::Bool(true))];
    let mut dtype = DType::F32;
    let y = match (&rule.name[..], &rule.kernel) {
        ("Nearest", _) => {
            dtype = site.input_dtype(0);
            b.op("ResizeNearestNeighbor", &[x, &size], half)
        }
        ("Linear", _) => b.op("ResizeBilinear", &[x, &size], half),
        ("Cubic", _) => b.op("ResizeBicubic", &[x, &size], half),
        ("Area", _) => b.op("ResizeArea", &[x, &size], [t(site.input_dtype(0))]),
        (_, Some((shape, antialias))) => {
            let scale = |sizes: &[(i64, i64)]| {
                let of = |(from, to): &(i64, i64)| *to as f32 / *from as f32;
                match sizes.iter().all(|pair| of(pair) == of(&sizes[0])) {
                    true => Ok(of(&sizes[0])),
                    false => {
                        Err("is resized by a factor that depends on the open sizes".to_string())
                    }
                }
            };
            let floats =
                |b: &mut Builder, values: [f32; 2]| b.constant(&ndarray::arr1(&values).into());
            let scale = floats(b, [scale(rows)?, scale(columns)?]);
            let none = floats(b, [0.0, 0.0]);
            let kind = match &shape[..] {
                "Keys" => "keyscubic".to_string(),
                "Mitchell" => "mitchellcubic".to_string(),
                other => other.to_lowercase(),
            };
            let attrs = [
                t(site.input_dtype(0)),
                ("kernel_type", text(&kind)),
                ("antialias", Attr::Bool(*antialias)),
            ];
            b.op("ScaleAndTranslate", &[x, &size, &scale, &none], attrs)
        }
        (other, _) => return Err(format!("resizes in a way that TensorFlow lacks ({other})")),
    };
    let y = if dtype == site.dtype() { y } else { b.cast(&y, dtype, site.dtype()) };
    // Positions and channels may be one axis here.
    let shape = site.output_shape()?;
    Ok(b.reshape(&y, site.dtype(), &shape))
}
