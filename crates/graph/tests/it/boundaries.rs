//! Tests gradients at points where an operation has an infinite slope. The gradients follow the conventions of Stan
//! Math, and they are finite wherever the gradients of Stan Math are finite.

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Builder, Execution, Expr};

fn derivatives(f: impl for<'b> Fn(Expr<'b>) -> Expr<'b>, z: f64) -> [f64; 3] {
    let builder = Builder::new();
    let target = f(builder.parameter());
    let density = builder
        .try_density(target, Execution::default())
        .expect("a right expression");
    let mut workspace = density.workspace(1);
    let (mut value, mut gradient, mut second) = ([0.0], [0.0], [0.0]);
    let point = [z];
    density.value_grad(
        &mut workspace,
        Lanes::new(&point, 1, 1),
        &mut value,
        LanesMut::new(&mut gradient, 1, 1),
    );
    density.hvp(
        &mut workspace,
        Lanes::new(&point, 1, 1),
        Lanes::new(&[1.0], 1, 1),
        LanesMut::new(&mut second, 1, 1),
    );
    [value[0], gradient[0], second[0]]
}

/// Returns exp(−10⁴ eᶻ). At z = 0, this value and all of its derivatives underflow to 0.
fn underflow(z: Expr<'_>) -> Expr<'_> {
    (-1e4 * z.exp()).exp()
}

#[test]
fn roots_of_what_underflows_add_nothing() {
    type Density = for<'b> fn(Expr<'b>) -> Expr<'b>;
    let cases: [(&str, Density); 5] = [
        ("sqrt", |z| underflow(z).sqrt() + z),
        ("power 0.5", |z| underflow(z).pow(0.5) + z),
        ("power 0.3", |z| underflow(z).pow(0.3) + z),
        ("length", |z| {
            (underflow(z).square() + underflow(z).square()).sqrt() + z
        }),
        ("distance", |z| ((z - z).square() + underflow(z)).sqrt() + z),
    ];
    for (name, density) in cases {
        assert_eq!(derivatives(density, 0.0), [0.0, 1.0, 0.0], "{name}");
    }
}

#[test]
fn powers_keep_the_slopes_that_are_finite_at_zero() {
    // The slope of x¹ᐧ⁵ at 0 is 0. The slope in x of x to the power of z + 1 is 1 at z = 0.
    assert_eq!(derivatives(|z| z.pow(1.5), 0.0)[..2], [0.0, 0.0]);
    assert_eq!(derivatives(|z| z.pow(2.5), 0.0), [0.0, 0.0, 0.0]);
    let [value, slope, _] = derivatives(|z| z.pow(z.exp()), 0.0);
    assert_eq!([value, slope], [0.0, 1.0]);
}

#[test]
fn slopes_beside_zero_are_the_usual_ones() {
    let [value, slope, second] = derivatives(|z| z.sqrt(), 4.0);
    assert_eq!([value, slope], [2.0, 0.25]);
    assert!((second + 1.0 / 32.0).abs() < 1e-16, "{second}");
    let [value, slope, second] = derivatives(|z| z.pow(0.3), 2.0);
    assert!((value - 2f64.powf(0.3)).abs() < 1e-15, "{value}");
    assert!((slope - 0.3 * 2f64.powf(-0.7)).abs() < 1e-15, "{slope}");
    assert!((second + 0.21 * 2f64.powf(-1.7)).abs() < 1e-15, "{second}");
}
