//! Tests that figures can be drawn from any input, that they show their data, and that they omit values that have no
//! position.

use jensen_report::figure::{Axis, Chart, Figure, HeatMap, Image, ImageGrid, Series};
use proptest::prelude::*;
use tiny_skia::Pixmap;

fn drawn(figure: &Figure) -> (Pixmap, String) {
    let svg = figure.to_svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert_eq!(svg.matches('<').count(), svg.matches('>').count());
    let picture = Pixmap::decode_png(&figure.to_png()).unwrap();
    (picture, svg)
}

fn pixels(picture: &Pixmap, colour: [u8; 3]) -> usize {
    let near = |a: u8, b: u8| a.abs_diff(b) <= 2;
    let is = |p: &&tiny_skia::PremultipliedColorU8| {
        near(p.red(), colour[0]) && near(p.green(), colour[1]) && near(p.blue(), colour[2])
    };
    picture.pixels().iter().filter(is).count()
}

#[test]
fn a_line_is_where_it_belongs() {
    let line = Series::line("path", [(1.0, 1.0), (100.0, 100.0)]).width(4.0);
    let chart = Chart::new("log–log")
        .x(Axis::new("calls").log().range(1.0, 100.0))
        .y(Axis::new("gap").log().range(1.0, 100.0))
        .series(line);
    let (picture, svg) = drawn(&Figure::new("A <figure> & its title").panel(chart));
    assert!(svg.contains("A &lt;figure&gt; &amp; its title"));
    assert!(svg.contains(">path<") && svg.contains(">100<"));
    // The diagonal is about 500 pixels long and eight pixels wide, because the PNG is twice as large as the figure.
    let blue = pixels(&picture, [0x00, 0x72, 0xb2]);
    assert!((4000..12_000).contains(&blue), "{blue}");
    assert_eq!(picture.width() % 2, 0);
}

#[test]
fn text_is_drawn_in_the_picture_too() {
    let ink = |title: &str| {
        let (picture, _) = drawn(&Figure::new("").panel(Chart::new(title)));
        pixels(&picture, [0x22, 0x22, 0x22])
    };
    assert!(ink("Σ λ₁ ≈ 10⁻³") > ink("") + 300);
}

#[test]
fn images_keep_their_pixels() {
    let red = Image::rgb(1, 1, vec![[250, 10, 10]]).unwrap();
    let grid = ImageGrid::new("", 2)
        .cell(20.0)
        .image(red.clone())
        .image(red);
    let (picture, svg) = drawn(&Figure::new("").panel(grid));
    assert_eq!(pixels(&picture, [250, 10, 10]), 2 * 40 * 40);
    assert_eq!(svg.matches("data:image/png;base64,").count(), 2);
}

#[test]
fn panels_stand_in_rows() {
    let panel = || Chart::new("").sized(200.0, 150.0);
    let figure = |count: usize| (0..count).fold(Figure::new(""), |f, _| f.panel(panel()));
    let size = |figure: &Figure| {
        let (picture, _) = drawn(figure);
        (picture.width() / 2, picture.height() / 2)
    };
    assert_eq!(size(&figure(1)), (228, 178));
    assert_eq!(size(&figure(4)), (442, 342));
    assert_eq!(size(&figure(4).columns(1)), (228, 670));
    assert_eq!(size(&figure(0)), (28, 14));
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        5 => -1e3..1e3,
        1 => any::<f64>(),
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(-1e308),
        1 => Just(1e-310),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_numbers_can_be_drawn(
        points in prop::collection::vec((number(), number()), 0..12),
        ends in prop::collection::vec((number(), number()), 0..12),
        range in (number(), number()),
        log in any::<(bool, bool, bool)>(),
        columns in 0usize..5,
    ) {
        let axis = |log: bool| if log { Axis::new("axis").log() } else { Axis::new("axis") };
        let chart = Chart::new("chart")
            .x(axis(log.0).range(range.0, range.1))
            .y(axis(log.1))
            .series(Series::line("line", points.clone()).band(ends.clone()).marked().dashed())
            .series(Series::scatter("points", ends.clone()).width(range.0));
        let values = points.iter().map(|p| p.0).collect();
        let heat = HeatMap::new("heat", range, (range.1, range.0), columns, values)
            .x(axis(log.0))
            .value(axis(log.2))
            .contours(ends.iter().map(|e| e.0))
            .overlay(Series::line("", points));
        drawn(&Figure::new("").panel(chart).panel(heat).columns(columns));
    }
}
