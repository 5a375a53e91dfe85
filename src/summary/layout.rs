//! [`Layout`]: which curves share a chart, for TensorBoard's tab Custom Scalars.

use prost::Message;

use super::payload::Payload;
use super::plugin_proto::{
    CategoryProto, ChartContent, ChartProto, LayoutProto, Margin, Multiline, Series,
};
use super::proto::{TensorProto, metadata};
use super::scope::write;
use super::step::Step;
use crate::error::Result;

/// Charts in categories.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::summary::{self, Category, Layout, MemoryWriter};
/// let writer = MemoryWriter::new();
/// let _default = writer.as_default();
/// let losses = Category::new("losses")
///     .multiline("both", ["loss/train", "loss/validation"])
///     .margin("spread", [("loss/mean", "loss/least", "loss/most")]);
/// summary::custom_layout(Layout::new().category(losses))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Layout(LayoutProto);

impl Layout {
    /// A layout without charts.
    pub fn new() -> Self {
        Layout::default()
    }

    /// Adds a category.
    #[must_use]
    pub fn category(mut self, category: Category) -> Self {
        self.0.category.push(category.0);
        self
    }
}

/// Charts under one title.
#[derive(Debug, Clone)]
pub struct Category(CategoryProto);

impl Category {
    /// A category without charts.
    pub fn new(title: &str) -> Self {
        Category(CategoryProto { title: title.to_string(), ..CategoryProto::default() })
    }

    /// Adds a chart of all scalars whose tags match one of the regular expressions `tags`.
    #[must_use]
    pub fn multiline<S: Into<String>>(
        self,
        title: &str,
        tags: impl IntoIterator<Item = S>,
    ) -> Self {
        let tag = tags.into_iter().map(Into::into).collect();
        self.chart(title, ChartContent::Multiline(Multiline { tag }))
    }

    /// Adds a chart of curves, each with the tags of its values, of their lower and their upper bounds.
    #[must_use]
    pub fn margin<'a>(
        self,
        title: &str,
        series: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Self {
        let series = series.into_iter().map(|(value, lower, upper)| Series {
            value: value.to_string(),
            lower: lower.to_string(),
            upper: upper.to_string(),
        });
        self.chart(title, ChartContent::Margin(Margin { series: series.collect() }))
    }

    /// Shows the category closed at first.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.0.closed = true;
        self
    }

    fn chart(mut self, title: &str, content: ChartContent) -> Self {
        self.0.chart.push(ChartProto { title: title.to_string(), content: Some(content) });
        self
    }
}

/// Writes the layout of the tab Custom Scalars.
///
/// # Errors
/// As [`scalar`](super::scalar), without shape and step.
pub fn custom_layout(layout: Layout) -> Result<bool> {
    let tag = "custom_scalars__config__";
    write("custom_layout", tag, String::new(), Step::from(0), false, || {
        let shown = metadata("custom_scalars", &[]);
        Ok(Payload::Made(shown, TensorProto::strings(&[], vec![layout.0.encode_to_vec()])))
    })
}
