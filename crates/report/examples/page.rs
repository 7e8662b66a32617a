//! Renders a report with invented numbers that resemble the eight schools model: `cargo run -p jensen-report --example
//! page -- FILE`.

use jensen_report::{
    Fact, Khat, Marginal, Parameter, Posterior, Report, Section, Stage, Tone, TracePoint, Verdict,
    Weights, render,
};

/// Uniform numbers in (0, 1) from a 64-bit linear congruential generator, whose quality does not matter here.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.next().ln()).sqrt() * (2.0 * std::f64::consts::PI * self.next()).cos()
    }
}

fn summarise(name: &str, draws: &[f64]) -> Parameter {
    let mut sorted = draws.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    let sd = (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let q = |p: f64| sorted[(p * (n - 1.0)) as usize];
    let mcse = Some(sd / n.sqrt());
    Parameter {
        name: name.into(),
        mean,
        sd,
        q05: q(0.05),
        q50: q(0.5),
        q95: q(0.95),
        mcse,
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "a rule list: the parts of a page, one after another"
)]
fn main() -> std::io::Result<()> {
    let mut u = Uniform(1);
    let draws = 1000;
    let mut marginals: Vec<Marginal> = Vec::new();
    let mut column = |name: String, draws: Vec<f64>| marginals.push(Marginal { name, draws });
    let mu: Vec<f64> = (0..draws).map(|_| 6.3 + 3.6 * u.normal()).collect();
    let tau: Vec<f64> = (0..draws)
        .map(|_| (1.3 + 0.75 * u.normal()).exp())
        .collect();
    let y = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0];
    let thetas: Vec<Vec<f64>> = y
        .iter()
        .map(|y| {
            (0..draws)
                .map(|d| 0.7 * mu[d] + 0.3 * y + 0.4 * tau[d] * u.normal() + 2.0 * u.normal())
                .collect()
        })
        .collect();
    column("mu".into(), mu);
    column("tau".into(), tau);
    for (j, theta) in thetas.into_iter().enumerate() {
        column(format!("theta[{}]", j + 1), theta);
    }
    column(
        "n_above".into(),
        (0..draws)
            .map(|_| (4.0 + 1.4 * u.normal()).round().clamp(0.0, 8.0))
            .collect(),
    );

    let mut stage = |name: &str, count: u64, clock: f64, start: f64, end: f64| Stage {
        name: name.into(),
        points: (0..count)
            .map(|i| {
                let se = 0.12 + 3.0 * (-(i as f64) / 15.0).exp();
                let elbo = end + (start - end) * (-(i as f64) / 14.0).exp() + se * u.normal();
                TracePoint {
                    iteration: 10 * i,
                    seconds: clock + 0.002 * i as f64,
                    elbo,
                    se,
                }
            })
            .collect(),
    };
    let stages = vec![
        stage("step-size adaptation", 15, 0.0, -140.0, -60.0),
        stage("mean-field", 120, 0.03, -70.0, -32.9),
        stage("full-rank", 100, 0.27, -33.5, -31.6),
    ];
    let log_weights = (0..draws)
        .map(|_| 0.7 * u.normal() + 0.25 * -u.next().ln())
        .collect();

    let khat = Khat {
        value: 0.38,
        threshold: 0.67,
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let own = |(k, v): &(&str, &str)| (k.to_string(), v.to_string());
        pairs.iter().map(own).collect()
    };
    let mut facts = vec![Fact::elbo(-31.624, 0.041), Fact::khat(khat)];
    facts.extend(
        [
            ("Iterations", "2 350"),
            ("Dimension", "10"),
            ("Draws", "1 000"),
            ("Time", "0.54 s"),
        ]
        .map(|(label, value)| Fact::new(label, value, "")),
    );
    let report = Report {
        title: "Eight schools".into(),
        subject: pairs(&[
            ("Model", "eight_schools_centred.stan"),
            ("data", "eight_schools.json"),
        ]),
        verdict: Verdict {
            advice: vec![
                "Use draws.csv or draws.nc; reweight them with log_weight for tail probabilities."
                    .into(),
            ],
            ..Verdict::new(
                Tone::Good,
                "Converged, and the draws can be trusted",
                "Converged after 2350 iterations: the bound has not risen by more than its standard error over the \
                 last 300.",
            )
        },
        facts,
        warnings: vec![
            "The mean-field fit had k̂ = 0.91, above 0.67: the full-rank family was fitted from it."
                .into(),
        ],
        sections: vec![
            Section::Bound(stages),
            Section::Weights(Weights {
                refined: false,
                khat: Some(khat),
                log_weights,
            }),
            Section::Posterior(Posterior {
                parameters: marginals
                    .iter()
                    .map(|m| summarise(&m.name, &m.draws))
                    .collect(),
                marginals,
                ..Posterior::default()
            }),
        ],
        settings: pairs(&[
            ("method", "advi"),
            ("family", "auto: mean-field, then full-rank"),
            ("estimator", "sticking the landing, 16 draws"),
            ("optimiser", "adam, step size 0.05"),
            ("seed", "0"),
            ("threads", "2 (avx512)"),
        ]),
        timing: vec![
            ("build".into(), 0.0031),
            ("fit".into(), 0.472),
            ("draws and diagnostics".into(), 0.067),
        ],
        footnote: "The evidence lower bound is in nats. Intervals are those of the approximation."
            .into(),
        version: "0.1.0".into(),
    };
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "report.html".into());
    std::fs::write(path, render(&report))
}
