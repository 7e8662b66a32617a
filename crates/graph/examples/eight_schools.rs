//! Computes the log density and the gradient of the eight schools model (Rubin 1981) in its non-centred form at a few
//! draws.

use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_graph::{Builder, Execution, ExprError};

fn main() -> Result<(), ExprError> {
    let builder = Builder::new();
    let y = builder.data(&[28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]);
    let sigma = builder.data(&[15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]);
    let mu = builder.parameter();
    let tau = builder.parameter().positive();
    let eta = builder.parameters(8);
    let log_density = mu.normal_lpdf(0.0, 5.0)
        + tau.cauchy_lpdf(0.0, 5.0)
        + eta.std_normal_lpdf()
        + y.normal_lpdf(mu + tau * eta, sigma);
    let density = builder.try_density(log_density, Execution::default())?;

    // Row i contains element i of all three draws.
    let (dim, lanes) = (density.dim(), 3);
    let z: Vec<f64> = (0..dim)
        .flat_map(|i| (0..lanes).map(move |lane| 0.1 * i as f64 - 0.5 * lane as f64))
        .collect();
    let mut workspace = density.workspace(lanes);
    let mut values = vec![0.0; lanes];
    let mut gradient = vec![0.0; dim * lanes];
    density.value_grad(
        &mut workspace,
        Lanes::new(&z, dim, lanes),
        &mut values,
        LanesMut::new(&mut gradient, dim, lanes),
    );
    for (lane, value) in values.iter().enumerate() {
        let column: Vec<String> = (0..dim)
            .map(|i| format!("{:.4}", gradient[i * lanes + lane]))
            .collect();
        println!("log density {value:.6}, gradient [{}]", column.join(", "));
    }
    Ok(())
}
