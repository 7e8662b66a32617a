//! Figures in SVG and PNG format: charts, heat maps with contours, and grids of images.
//!
//! A [`Figure`] has a title and a grid of panels. The SVG and the PNG are drawn from the same list of shapes, so both
//! show the same picture. Text in the PNG is drawn with an embedded subset of DejaVu Sans. Drawing never fails.
//! Non-finite values are omitted, and so are values on a logarithmic axis that are not positive.
//!
//! ```
//! use jensen_report::figure::{Axis, Chart, Figure, Series};
//!
//! let curve = |rate: f64| (1..=100).map(move |k| (k as f64, (-rate * k as f64).exp()));
//! let chart = Chart::new("Convergence")
//!     .x(Axis::new("iteration").log())
//!     .y(Axis::new("gap in nats").log())
//!     .series(Series::line("slow", curve(0.05)))
//!     .series(Series::line("fast", curve(0.2)).dashed());
//! let figure = Figure::new("An example").panel(chart);
//! assert!(figure.to_svg().starts_with("<svg"));
//! assert_eq!(&figure.to_png()[1..4], b"PNG");
//! ```
//!
//! | subject | module |
//! | --- | --- |
//! | line and scatter charts, bands | `chart` |
//! | heat maps and contours | `heat` |
//! | grids of grey or colour images | `images` |
//! | axes and their ticks | `axis` |
//! | colours | `colour` |
//! | shapes, and their two outputs | `scene`, `vector`, `raster` |

mod axis;
mod chart;
mod colour;
#[cfg(feature = "pictures")]
mod heat;
#[cfg(feature = "pictures")]
mod images;
#[cfg(feature = "pictures")]
mod raster;
mod scene;
mod vector;

pub use axis::Axis;
pub use chart::{Chart, Series};
#[cfg(feature = "pictures")]
pub use heat::HeatMap;
#[cfg(feature = "pictures")]
pub use images::{Image, ImageGrid};

pub(crate) use chart::ticks_below;
pub(crate) use colour::{Tint, properties};
pub(crate) use scene::{Anchor, Scene, Stroke, text_width};

const GAP: f64 = 14.0;

const TITLE: f64 = 30.0;

/// A figure, which consists of a title and of panels in a grid.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    title: String,
    panels: Vec<Panel>,
    columns: Option<usize>,
}

/// One panel of a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Panel {
    /// A chart of lines and points over two axes.
    Chart(Chart),
    /// A heat map of a function of two variables.
    #[cfg(feature = "pictures")]
    Heat(HeatMap),
    /// A grid of images.
    #[cfg(feature = "pictures")]
    Images(ImageGrid),
}

impl Panel {
    fn size(&self) -> (f64, f64) {
        match self {
            Self::Chart(chart) => chart.size(),
            #[cfg(feature = "pictures")]
            Self::Heat(heat) => heat.size(),
            #[cfg(feature = "pictures")]
            Self::Images(images) => images.size(),
        }
    }

    fn draw(&self, scene: &mut Scene, corner: (f64, f64)) {
        match self {
            Self::Chart(chart) => chart.draw(scene, corner),
            #[cfg(feature = "pictures")]
            Self::Heat(heat) => heat.draw(scene, corner),
            #[cfg(feature = "pictures")]
            Self::Images(images) => images.draw(scene, corner),
        }
    }
}

impl From<Chart> for Panel {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

#[cfg(feature = "pictures")]
impl From<HeatMap> for Panel {
    fn from(heat: HeatMap) -> Self {
        Self::Heat(heat)
    }
}

#[cfg(feature = "pictures")]
impl From<ImageGrid> for Panel {
    fn from(images: ImageGrid) -> Self {
        Self::Images(images)
    }
}

impl Figure {
    /// Creates a figure without panels. `title` may be empty.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Adds a panel after the existing panels.
    pub fn panel(mut self, panel: impl Into<Panel>) -> Self {
        self.panels.push(panel.into());
        self
    }

    /// Sets the number of panels in each row. By default, the grid is as close to a square as possible and has at most
    /// three panels per row.
    pub fn columns(self, columns: usize) -> Self {
        Self {
            columns: Some(columns.max(1)),
            ..self
        }
    }

    /// Returns the figure as the content of an SVG file.
    pub fn to_svg(&self) -> String {
        vector::file(&self.scene(), &self.title)
    }

    /// Returns the figure as the bytes of a PNG file, which has twice as many pixels in each direction as the SVG.
    #[cfg(feature = "pictures")]
    pub fn to_png(&self) -> Vec<u8> {
        raster::render(&self.scene())
    }

    pub(crate) fn scene(&self) -> Scene {
        let columns = self.columns.unwrap_or_else(|| {
            let side = (self.panels.len() as f64).sqrt().ceil() as usize;
            side.clamp(1, 3)
        });
        let sizes: Vec<(f64, f64)> = self.panels.iter().map(Panel::size).collect();
        let mut widths = vec![0.0f64; columns.min(sizes.len()).max(1)];
        for (i, (width, _)) in sizes.iter().enumerate() {
            widths[i % columns] = widths[i % columns].max(*width);
        }
        let heights: Vec<f64> = sizes
            .chunks(columns)
            .map(|row| row.iter().fold(0.0f64, |h, (_, height)| h.max(*height)))
            .collect();
        let header = if self.title.is_empty() { 0.0 } else { TITLE };
        let grid = widths.iter().sum::<f64>() + GAP * (widths.len() + 1) as f64;
        let width = grid.max(scene::text_width(&self.title, 17.0) + 2.0 * GAP);
        let height = header + heights.iter().sum::<f64>() + GAP * (heights.len() + 1) as f64;
        let mut scene = Scene::new(width, height);
        if !self.title.is_empty() {
            scene.text(
                (width / 2.0, GAP + 14.0),
                17.0,
                Anchor::Middle,
                Tint::Ink,
                &self.title,
            );
        }
        let mut y = header + GAP;
        for (row, height) in self.panels.chunks(columns).zip(heights) {
            let mut x = GAP + (width - grid) / 2.0;
            for (panel, width) in row.iter().zip(&widths) {
                panel.draw(&mut scene, (x, y));
                x += width + GAP;
            }
            y += height + GAP;
        }
        scene
    }
}
