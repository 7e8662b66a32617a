//! Times of density evaluations over the corpus, as ratios to the times of another implementation.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use jensen::data::DataSet;
use jensen::density::LogDensity;
use jensen::stan::{Build, Model};
use jensen::{Problem, time_density};
use serde::Deserialize;

#[derive(Deserialize)]
struct Peer {
    seconds_per_gradient: f64,
}

struct Timing {
    name: String,
    dim: usize,
    gradient: f64,
    hvp: f64,
    further: f64,
    build: f64,
    bytes: usize,
    peer: Option<f64>,
}

/// Measures every folder under `models` and prints the table.
pub fn run(models: &Path, peer: Option<&Path>, lanes: usize, seconds: f64) -> anyhow::Result<()> {
    let peers: BTreeMap<String, Peer> = match peer {
        Some(path) => {
            let text =
                std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            serde_json::from_slice(&text)
                .with_context(|| format!("{} is not a table of peer times", path.display()))?
        }
        None => BTreeMap::new(),
    };
    let mut rows = Vec::new();
    for folder in crate::model_folders(models)? {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let row = measure(&folder, &name, lanes, seconds).map(|row| Timing {
            peer: peers.get(&name).map(|peer| peer.seconds_per_gradient),
            ..row
        });
        match row {
            Ok(row) => rows.push(row),
            Err(error) => eprintln!("{name}: {error:#}"),
        }
    }
    print_table(&rows);
    Ok(())
}

fn measure(folder: &Path, name: &str, lanes: usize, seconds: f64) -> anyhow::Result<Timing> {
    let start = Instant::now();
    let source = std::fs::read_to_string(folder.join("model.stan"))?;
    let data = DataSet::read(&folder.join("data.json"))?;
    let model = Model::compile(&source, name, &data, &Build::default())
        .map_err(|e| anyhow::anyhow!("{e}"))?;
    let build = start.elapsed().as_secs_f64();
    let epoch = Instant::now();
    let clock = move || epoch.elapsed().as_secs_f64();
    let timing = time_density(model.density(), lanes, seconds, &clock);
    Ok(Timing {
        name: name.to_owned(),
        dim: model.density().dim(),
        gradient: timing.seconds_per_gradient,
        hvp: timing.seconds_per_hvp,
        further: timing.seconds_per_further_hvp,
        build,
        bytes: model.density().peak_bytes(),
        peer: None,
    })
}

fn print_table(rows: &[Timing]) {
    println!(
        "| model | dims | gradient (µs/draw) | peer (µs) | peer / Jensen | HVP / gradient | further HVP / gradient | file to graph (ms) | memory (KiB) |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for row in rows {
        let peer = row
            .peer
            .map_or_else(String::new, |peer| format!("{:.2}", peer * 1e6));
        let ratio = row
            .peer
            .map_or_else(String::new, |peer| format!("{:.1}", peer / row.gradient));
        println!(
            "| {} | {} | {:.3} | {peer} | {ratio} | {:.2} | {:.2} | {:.1} | {} |",
            row.name,
            row.dim,
            row.gradient * 1e6,
            row.hvp / row.gradient,
            row.further / row.gradient,
            row.build * 1e3,
            row.bytes / 1024,
        );
    }
    let summary = |what: &str, values: Vec<f64>| {
        if let Some((least, middle, most)) = spread(values) {
            println!("\n{what}: median {middle:.2}, from {least:.2} to {most:.2}");
        }
    };
    summary(
        "peer / Jensen",
        rows.iter()
            .filter_map(|row| Some(row.peer? / row.gradient))
            .collect(),
    );
    summary(
        "HVP / gradient",
        rows.iter().map(|row| row.hvp / row.gradient).collect(),
    );
    summary(
        "file to graph in ms",
        rows.iter().map(|row| row.build * 1e3).collect(),
    );
}

fn spread(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    Some((*values.first()?, values[values.len() / 2], *values.last()?))
}
