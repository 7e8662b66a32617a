//! A log density written by hand, for a logistic regression with a normal prior. The type provides the gradient and the
//! Hessian-vector product. The function `fit` treats it in the same way as a Stan program.
//!
//! `cargo run -p jensen --example log_density`

use jensen::prelude::*;

/// The log posterior density of the coefficients `z` of a logistic regression. The rows of `x` are the covariates, `y`
/// contains the outcomes, and the prior of each coefficient is normal(0, 2.5).
struct Logistic {
    x: Vec<[f64; 2]>,
    y: Vec<f64>,
}

const PRIOR_SD: f64 = 2.5;

/// The draws at which Hessian-vector products are evaluated. For each draw, the workspace contains the curvature weight
/// of every record.
#[derive(Default)]
struct Workspace {
    weights: Vec<f64>,
    lanes: usize,
}

impl LogDensity for Logistic {
    type Workspace = Workspace;

    fn dim(&self) -> usize {
        2
    }

    fn workspace(&self, _lanes: usize) -> Workspace {
        Workspace::default()
    }

    fn value(&self, _: &mut Workspace, z: Lanes<'_>, out: &mut [f64]) {
        let constant = -2.0 * (PRIOR_SD.ln() + 0.5 * std::f64::consts::TAU.ln());
        for (l, value) in out.iter_mut().enumerate() {
            let z = [z.row(0)[l], z.row(1)[l]];
            *value = constant - 0.5 * (z[0] * z[0] + z[1] * z[1]) / (PRIOR_SD * PRIOR_SD);
            for (x, y) in self.x.iter().zip(&self.y) {
                let eta = x[0] * z[0] + x[1] * z[1];
                // The expression max(eta, 0) + log(1 + exp(−|eta|)) equals log(1 + exp(eta)), but it does not overflow.
                *value += y * eta - eta.max(0.0) - (-eta.abs()).exp().ln_1p();
            }
        }
    }

    fn value_grad(
        &self,
        ws: &mut Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        self.value(ws, z, out);
        for l in 0..z.lanes() {
            let z = [z.row(0)[l], z.row(1)[l]];
            let mut g = z.map(|z| -z / (PRIOR_SD * PRIOR_SD));
            for (x, y) in self.x.iter().zip(&self.y) {
                let p = 1.0 / (1.0 + (-x[0] * z[0] - x[1] * z[1]).exp());
                g[0] += (y - p) * x[0];
                g[1] += (y - p) * x[1];
            }
            grad.row_mut(0)[l] = g[0];
            grad.row_mut(1)[l] = g[1];
        }
    }
}

impl TwiceDifferentiable for Logistic {
    fn linearize(&self, ws: &mut Workspace, z: Lanes<'_>) {
        ws.lanes = z.lanes();
        ws.weights.clear();
        for l in 0..z.lanes() {
            for x in &self.x {
                let p = 1.0 / (1.0 + (-x[0] * z.row(0)[l] - x[1] * z.row(1)[l]).exp());
                ws.weights.push(p * (1.0 - p));
            }
        }
    }

    fn apply(&self, ws: &mut Workspace, v: Lanes<'_>, mut out: LanesMut<'_>) {
        assert_eq!(
            ws.lanes,
            v.lanes(),
            "`v` and the linearisation have different numbers of draws"
        );
        for (l, weights) in ws.weights.chunks(self.x.len()).enumerate() {
            let v = [v.row(0)[l], v.row(1)[l]];
            let mut product = v.map(|v| -v / (PRIOR_SD * PRIOR_SD));
            for (x, w) in self.x.iter().zip(weights) {
                let slope = x[0] * v[0] + x[1] * v[1];
                product[0] -= w * slope * x[0];
                product[1] -= w * slope * x[1];
            }
            out.row_mut(0)[l] = product[0];
            out.row_mut(1)[l] = product[1];
        }
    }
}

fn main() -> Result<(), Error> {
    // The probability of the outcome 1 increases with the covariate.
    let x: Vec<[f64; 2]> = (0..40).map(|i| [1.0, (i as f64 - 20.0) / 10.0]).collect();
    let y = (0..40).map(|i| f64::from(i % 7 < i / 6)).collect();
    let problem = Bare::named(Logistic { x, y }, ["intercept", "slope"]);

    let fitted = fit(&problem, &Options::default().family(FamilyKind::FullRank))?;
    println!("{}", fitted.status_text());
    for p in fitted.parameters() {
        println!("{}: {:.3} ± {:.3}", p.name, p.mean, p.sd);
    }
    // The posterior is slightly skewed, so no normal approximation matches both of its tails.
    for warning in fitted.warnings() {
        println!("not trusted: {warning}");
    }
    assert!(fitted.fit.converged());
    Ok(())
}
