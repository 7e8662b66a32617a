//! Runs a density over lanes.

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Execution, Graph, GraphDensity, GraphWorkspace};
use jensen_math::simd::Simd;

/// The values, gradients and Hessian-vector products of some lanes, each as rows of lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    pub values: Vec<f64>,
    pub gradients: Vec<f64>,
    pub products: Vec<f64>,
}

pub fn run(density: &GraphDensity, ws: &mut GraphWorkspace, z: &[f64], v: &[f64]) -> Results {
    let dim = density.dim();
    let lanes = z.len() / dim;
    let mut results = Results {
        values: vec![0.0; lanes],
        gradients: vec![0.0; dim * lanes],
        products: vec![0.0; dim * lanes],
    };
    let z = Lanes::new(z, dim, lanes);
    density.value_grad(
        ws,
        z,
        &mut results.values,
        LanesMut::new(&mut results.gradients, dim, lanes),
    );
    density.hvp(
        ws,
        z,
        Lanes::new(v, dim, lanes),
        LanesMut::new(&mut results.products, dim, lanes),
    );
    results
}

pub fn density(graph: &Graph, simd: Simd, threads: usize) -> GraphDensity {
    GraphDensity::new(graph, Execution { simd, threads })
}
