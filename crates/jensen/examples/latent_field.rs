//! A Poisson model of oral cancer in the districts of Germany, with an intrinsic field over neighbouring districts.
//!
//! `cargo run --release -p jensen --example latent_field`

use std::path::PathBuf;
use std::time::Instant;

use jensen::Error;
use jensen::data::{Adjacency, Symmetric, Table};
use jensen::latent::{Files, Known, LatentSpec, Learning, Settings, TableModel, fit_table, fitted};
use jensen::run::{Budget, Control, Identity, Silent};

struct Data(PathBuf);

impl Files for Data {
    fn graph(&self, file: &str) -> Result<Adjacency, Error> {
        Ok(Adjacency::read(&self.0.join(file))?)
    }

    fn symmetric(&self, file: &str) -> Result<Symmetric, Error> {
        Ok(Symmetric::read(&self.0.join(file))?)
    }

    fn table(&self, file: &str) -> Result<Table, Error> {
        Ok(Table::read(&self.0.join(file))?)
    }
}

fn main() -> Result<(), Error> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/germany");
    let table = Table::read(&folder.join("oral.csv"))?;
    let request = LatentSpec {
        prior: "icar(graph=germany.graph, on=region)".into(),
        likelihood: "poisson".into(),
        response: Some("cases".into()),
        exposure: Some("expected".into()),
        ..LatentSpec::default()
    };
    let model = TableModel::new(&request, &table, &Data(folder))?;

    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(1000), &clock, &mut silent);
    let identity = Identity {
        algorithm: "latent".into(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    };
    let learning = Learning {
        settings: Settings::default(),
        learn: true,
        integrate: true,
        starts: 1,
        seed: 0,
    };
    let learnt = fit_table(&model, &learning, &identity, &mut control)?;
    println!(
        "bound {:.3} nats, certified to {:.1e}; precision {:.2}",
        learnt.fit.bound,
        learnt.fit.gap.unwrap_or(f64::NAN),
        learnt.theta[0]
    );
    let known = Known::of(&model, &learnt)?;
    let outcome = fitted(&model, &known.predictors);
    println!(
        "log predictive {:.3} nats a district",
        outcome.log_predictive().unwrap_or(f64::NAN)
    );
    let mut risk: Vec<(f64, usize)> = outcome
        .predictor
        .iter()
        .map(|p| p.0.exp())
        .zip(0..)
        .collect();
    risk.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (risk, region) in risk.iter().take(5) {
        println!("district {region}: relative risk {risk:.2}");
    }
    Ok(())
}
