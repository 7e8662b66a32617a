//! `jensen topics export`.

use std::fmt::Write as _;

use jensen::data::{RowFormat, write_atomic_bytes};
use jensen::topics::{TopicModel, stored};

use super::args::ExportArgs;
use crate::failure::{CommandResult, Exit, Failure, print};
use crate::rows::{Destination, write_rows};

pub fn run(args: &ExportArgs) -> CommandResult {
    let destinations = Destination::all(&args.out)?;
    let (folder, _) = stored::open(&args.dir)?;
    let model = stored::model(&folder)?;
    for destination in &destinations {
        match args.top {
            Some(count) => top(destination, &model, count as usize)?,
            None => table(destination, &model)?,
        }
    }
    if let Some(path) = &args.vocabulary {
        let words = model.words.join("\n") + "\n";
        write_atomic_bytes(path, words.as_bytes()).map_err(Failure::output)?;
    }
    Ok(Exit::Done)
}

fn table(destination: &Destination<'_>, model: &TopicModel) -> Result<(), Failure> {
    let topics = &model.topics;
    let totals = topics.totals();
    let names: Vec<String> = model.words.iter().map(|word| cell(word)).collect();
    write_rows(destination, topics.topics, &names, &mut |out| {
        for (topic, total) in totals.iter().enumerate() {
            let at = |term: usize| f64::from(topics.lambda[term * topics.topics + topic]);
            let row: Vec<f32> = (0..topics.terms)
                .map(|term| (at(term) / total) as f32)
                .collect();
            out.write(&row)?;
        }
        Ok(())
    })
}

fn top(destination: &Destination<'_>, model: &TopicModel, count: usize) -> Result<(), Failure> {
    let mut text = "topic,rank,word,probability\n".to_owned();
    for (topic, words) in model.top_words(count).iter().enumerate() {
        for (rank, (term, probability)) in (1..).zip(words) {
            let word = cell(&model.words[*term as usize]);
            let _ = writeln!(text, "{topic},{rank},{word},{probability:.6e}");
        }
    }
    match destination {
        Destination::Rows(path, RowFormat::Csv) => {
            write_atomic_bytes(path, text.as_bytes()).map_err(Failure::output)
        }
        Destination::Standard => print(&text),
        Destination::Rows(path, RowFormat::Npy) | Destination::Picture(path) => {
            Err(Failure::usage(format!(
                "--out {}: top words need a CSV table; name a file that ends in .csv",
                path.display()
            )))
        }
    }
}

/// Formats a word as a cell of a CSV file. The words of bags may contain any characters.
fn cell(word: &str) -> String {
    match word.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", word.replace('"', "\"\"")),
        false => word.to_owned(),
    }
}
