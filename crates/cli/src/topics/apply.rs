//! `jensen topics predict`, `evaluate` and `show`, which use the folder of a fit.

use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use jensen::conjugate::documents::Bag;
use jensen::conjugate::lda::{self, Completion, Predictor, PredictorScratch, RULE};
use jensen::data::corpus::{
    BuildSettings, Corpus, Document, NewDocument, Skipped, Split, sequences, stream,
};
use jensen::data::{DataError, RowFormat, write_atomic};
use jensen::topics::{
    Collection, CorpusDocuments, TopicModel, TopicRow, WindowCoherence, bag, rows, rows_judged,
    score, stored,
};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::args::{EvaluateArgs, InputFlags, PredictArgs, ShowArgs};
use super::build::{remark_left_out, remark_missing, watched};
use crate::failure::{CommandResult, Exit, Failure, print};
use crate::rows::{Destination, write_rows};
use crate::terminal::start_threads;

const CHUNK: usize = 4096;

fn is_corpus(path: &Path) -> bool {
    Corpus::is_corpus(path)
}

/// If there is only one input and it is a corpus, returns this corpus. Its words must be those of the model.
fn corpus(inputs: &[PathBuf], model: &TopicModel) -> Result<Option<Corpus>, Failure> {
    if !inputs.iter().any(|path| is_corpus(path)) {
        return Ok(None);
    }
    let [path] = inputs else {
        return Err(Failure::usage("give either one corpus or texts"));
    };
    let corpus = Corpus::open(path)?;
    if corpus.words() != model.words {
        return Err(Failure::input(format!(
            "the corpus `{}` has another vocabulary than the model: give its original texts, which Jensen \
             reads with the model's vocabulary",
            path.display()
        )));
    }
    Ok(Some(corpus))
}

pub fn predict(args: &PredictArgs) -> CommandResult {
    start_threads(args.threads)?;
    let (folder, fitted) = stored::open(&args.dir)?;
    let model = stored::model(&folder)?;
    let corpus = corpus(&args.inputs, &model)?;
    if args.id.is_some() && corpus.is_some() {
        return Err(Failure::usage(
            "--id: a corpus has no document names; give its original texts",
        ));
    }
    let job = Prediction {
        corpus,
        predictor: Predictor::new(&model.topics, RULE, fitted.flags.simd()?),
        topics: model.topics.topics,
        least: args.min_proportion,
        words: &model.words,
        model: &model,
    };
    let format =
        (args.out.as_deref()).and_then(|path| RowFormat::of_name(&path.display().to_string()));
    if let (Some(path), Some(format)) = (&args.out, format) {
        let skipped = job.matrix(args, path, format)?;
        if !args.quiet {
            remark_missing(&skipped);
        }
        return Ok(Exit::Done);
    }
    let mut skipped = Skipped::default();
    let mut failure = None;
    let mut run = |out: &mut dyn Write| -> std::io::Result<()> {
        match job.write(args, out) {
            Ok(counts) => {
                skipped = counts;
                Ok(())
            }
            Err(Stop::Output(error)) => Err(error),
            Err(Stop::Input(error)) => {
                failure = Some(error);
                Err(std::io::Error::other("refused"))
            }
        }
    };
    let written = match &args.out {
        Some(path) => write_atomic(path, |file| run(file)).map_err(Failure::output),
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            match run(&mut out).and_then(|()| out.flush()) {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(
                    Failure::output(format!("cannot write to standard output: {error}")),
                ),
                _ => Ok(()),
            }
        }
    };
    if let Some(failure) = failure {
        return Err(failure);
    }
    written?;
    if !args.quiet {
        remark_missing(&skipped);
    }
    Ok(Exit::Done)
}

enum Stop {
    Input(Failure),
    Output(std::io::Error),
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Self {
        Self::Input(Failure::input(error.to_string()))
    }
}

struct Prediction<'a> {
    corpus: Option<Corpus>,
    predictor: Predictor<'a>,
    topics: usize,
    least: f64,
    words: &'a [String],
    model: &'a TopicModel,
}

impl Prediction<'_> {
    fn write(&self, args: &PredictArgs, out: &mut dyn Write) -> Result<Skipped, Stop> {
        self.visit(args, &mut |documents| {
            self.lines(documents, out).map_err(Stop::Output)
        })
    }

    fn matrix(
        &self,
        args: &PredictArgs,
        path: &Path,
        format: RowFormat,
    ) -> Result<Skipped, Failure> {
        if args.id.is_some() && format == RowFormat::Npy {
            return Err(Failure::usage(
                "--id: a NumPy array has no document names; name a file that ends in .csv or .jsonl",
            ));
        }
        // The file begins with the number of rows, which is known only when all rows have been computed. The rows are
        // stored in a temporary file, so they need not fit in memory.
        let mut spool = tempfile::tempfile()
            .map_err(|error| Failure::output(format!("no temporary file: {error}")))?;
        let mut ids: Vec<Option<String>> = Vec::new();
        let mut rows = 0;
        let visited = self.visit(args, &mut |documents| {
            rows += documents.len();
            if args.id.is_some() {
                ids.extend(documents.iter().map(|new| new.id.clone()));
            }
            let bytes = self.thetas(documents);
            spool.write_all(&bytes).map_err(Stop::Output)
        });
        let skipped = visited.map_err(|stop| match stop {
            Stop::Input(failure) => failure,
            Stop::Output(error) => Failure::output(error),
        })?;
        let topics = (0..self.topics).map(|k| format!("topic{k}"));
        let names: Vec<String> = args.id.clone().into_iter().chain(topics).collect();
        write_rows(&Destination::Rows(path, format), rows, &names, &mut |out| {
            spool.rewind()?;
            let mut bytes = vec![0; 4 * self.topics];
            let mut spool = BufReader::with_capacity(1 << 16, &mut spool);
            for i in 0..rows {
                spool.read_exact(&mut bytes)?;
                let row = bytes.as_chunks().0.iter();
                let row: Vec<f32> = row.map(|x| f32::from_le_bytes(*x)).collect();
                match ids.get(i) {
                    Some(id) => out.write_named(id.as_deref().unwrap_or_default(), &row)?,
                    None => out.write(&row)?,
                }
            }
            Ok(())
        })?;
        Ok(skipped)
    }

    /// Returns the topic proportions of documents as bytes. The proportions of a document without known words are NaN.
    fn thetas(&self, documents: &[NewDocument]) -> Vec<u8> {
        let rows: Vec<Vec<u8>> = documents
            .par_iter()
            .map_init(PredictorScratch::default, |scratch, document| {
                let mut theta = vec![f64::NAN; self.topics];
                let bag = bag(&document.document);
                if !bag.is_empty() {
                    self.predictor.theta(&bag, scratch, &mut theta);
                }
                theta
                    .iter()
                    .flat_map(|x| (*x as f32).to_le_bytes())
                    .collect()
            })
            .collect();
        rows.concat()
    }

    fn visit(
        &self,
        args: &PredictArgs,
        each: &mut dyn FnMut(&[NewDocument]) -> Result<(), Stop>,
    ) -> Result<Skipped, Stop> {
        let Some(corpus) = &self.corpus else {
            let sources = args
                .input
                .sources(&args.inputs, args.id.as_deref())
                .map_err(Stop::Input)?;
            return stream(&sources, self.words, &self.model.tokeniser, |documents| {
                each(&documents)
            });
        };
        let count = corpus.documents(Split::Train);
        for first in (0..count).step_by(CHUNK) {
            let documents: Vec<NewDocument> = (first..(first + CHUNK).min(count))
                .map(|index| {
                    let mut document = Document::default();
                    corpus.read(Split::Train, index, &mut document);
                    NewDocument {
                        number: index as u64 + 1,
                        id: None,
                        document,
                        unknown: 0,
                    }
                })
                .collect();
            each(&documents)?;
        }
        Ok(Skipped::default())
    }

    fn lines(&self, documents: &[NewDocument], out: &mut dyn Write) -> std::io::Result<()> {
        let lines: Vec<String> = documents
            .par_iter()
            .map_init(PredictorScratch::default, |scratch, document| {
                self.line(document, scratch)
            })
            .collect();
        for line in lines {
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn line(&self, new: &NewDocument, scratch: &mut PredictorScratch) -> String {
        let bag: Bag = bag(&new.document);
        let shares = (!bag.is_empty()).then(|| {
            let mut theta = vec![0.0; self.topics];
            self.predictor.theta(&bag, scratch, &mut theta);
            let all = theta.into_iter().enumerate();
            let mut shares: Vec<(usize, f64)> = all.filter(|share| share.1 >= self.least).collect();
            shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            // The approximation is accurate to fewer than six digits.
            shares
                .into_iter()
                .map(|(topic, share)| json!([topic, (share * 1e6).round() / 1e6]))
                .collect::<Vec<Value>>()
        });
        let mut line = serde_json::Map::new();
        line.insert("document".into(), new.number.into());
        if let Some(id) = &new.id {
            line.insert("id".into(), id.as_str().into());
        }
        line.insert("tokens".into(), (bag.tokens() as u64).into());
        line.insert("unknown".into(), new.unknown.into());
        line.insert("topics".into(), shares.into());
        Value::Object(line).to_string() + "\n"
    }
}

pub fn evaluate(args: &EvaluateArgs) -> CommandResult {
    start_threads(args.threads)?;
    let (folder, fitted) = stored::open(&args.dir)?;
    let model = stored::model(&folder)?;
    let seed = args.seed.or(fitted.flags.seed).unwrap_or(0);
    let simd = fitted.flags.simd()?;
    let mut left_out = None;
    let (completion, name) = if args.inputs.is_empty() {
        let corpus = fitted.open_corpus(&folder)?;
        (
            heldout(&corpus, &model, seed, simd)?,
            corpus.path().display().to_string(),
        )
    } else if let Some(corpus) = corpus(&args.inputs, &model)? {
        (
            heldout(&corpus, &model, seed, simd)?,
            corpus.path().display().to_string(),
        )
    } else {
        // The new documents are written to a temporary corpus, so they need not fit in memory.
        let scratch = tempfile::tempdir()
            .map_err(|error| Failure::output(format!("no temporary folder: {error}")))?;
        let (corpus, built) = new_documents(&args.input, &args.inputs, &model, scratch.path())?;
        left_out = Some(built.tokens_left_out);
        if !args.json {
            remark_left_out(&built);
        }
        let documents = CorpusDocuments::new(&corpus, Split::Train);
        let names: Vec<String> = args
            .inputs
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let completion = lda::completion(&model.topics, &documents, seed, simd);
        (completion, names.join(", "))
    };
    if args.json {
        let answer = json!({
            "documents_from": name,
            "heldout_log_predictive": completion.log_predictive,
            "heldout_log_predictive_se": completion.standard_error,
            "heldout_perplexity": completion.perplexity(),
            "heldout_words": completion.words,
            "heldout_documents": completion.documents,
            "documents_skipped": completion.skipped,
            "tokens_left_out": left_out,
            "seed": seed,
        });
        print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&answer).map_err(Failure::output)?
        ))?;
    } else {
        print(&format!(
            "documents  {} of {name} ({} too short to score)\nheld out   {:.4} ± {:.4} nats/word (perplexity {:.0}), {} words\n",
            completion.documents,
            completion.skipped,
            completion.log_predictive,
            completion.standard_error,
            completion.perplexity(),
            completion.words
        ))?;
    }
    Ok(Exit::Done)
}

fn heldout(
    corpus: &Corpus,
    model: &TopicModel,
    seed: u64,
    simd: jensen::math::simd::Simd,
) -> Result<Completion, Failure> {
    score(&Collection::of_corpus(corpus), model, seed, simd).ok_or_else(|| {
        Failure::input(format!(
            "the corpus `{}` has no held-out documents: give documents to score, or build it with --heldout 0.01",
            corpus.path().display()
        ))
    })
}

fn new_documents(
    input: &InputFlags,
    paths: &[PathBuf],
    model: &TopicModel,
    scratch: &Path,
) -> Result<(Corpus, jensen::data::corpus::Built), Failure> {
    let sources = input.sources(paths, None)?;
    let settings = BuildSettings {
        tokeniser: model.tokeniser.clone(),
        fixed: Some(model.words.clone()),
        ..BuildSettings::new(&sources)
    };
    let path = scratch.join("corpus");
    let built = watched(&sources, &path, &settings, true)?;
    Ok((Corpus::open(&path)?, built))
}

pub fn show(args: &ShowArgs) -> CommandResult {
    let (folder, fitted) = stored::open(&args.dir)?;
    let model = stored::model(&folder)?;
    for &topic in &args.topic {
        if topic >= model.topics.topics {
            return Err(Failure::usage(format!(
                "there is no topic {topic}: the fit has {} topics, counted from 0",
                model.topics.topics
            )));
        }
    }
    let summary = stored::summary(&folder)?;
    let mut found = if !args.reference.is_empty() {
        on_windows(args, &model)?
    } else if args.words == fitted.flags.words() {
        summary.topic_rows
    } else {
        let corpus = fitted.open_corpus(&folder)?;
        rows(
            &model,
            args.words,
            &CorpusDocuments::new(&corpus, Split::Train),
        )
    };
    if !args.topic.is_empty() {
        found.retain(|row| args.topic.contains(&row.topic));
    }
    if args.json {
        let text = serde_json::to_string_pretty(&found).map_err(Failure::output)?;
        print(&format!("{text}\n"))?;
    } else {
        print(&topic_table(&found, usize::MAX))?;
    }
    Ok(Exit::Done)
}

/// Computes the coherence of topics on windows of the reference texts.
fn on_windows(args: &ShowArgs, model: &TopicModel) -> Result<Vec<TopicRow>, Failure> {
    let sources = args.input.sources(&args.reference, None)?;
    let window = args
        .window
        .map_or(WindowCoherence::WINDOW, |window| window as usize);
    rows_judged(model, args.words, |topics| {
        let mut coherence = WindowCoherence::new(topics, model.words.len(), window);
        sequences(&sources, &model.words, &model.tokeniser, |documents| {
            coherence.add(&documents);
            Ok::<(), DataError>(())
        })?;
        Ok(coherence.finish())
    })
    .map_err(|error: DataError| Failure::input(error.to_string()))
}

/// Formats a table of the first `limit` topics.
pub fn topic_table(rows: &[TopicRow], limit: usize) -> String {
    let mut text = "topic   share    NPMI   UMass     C_V  most probable words\n".to_owned();
    let number =
        |x: Option<f64>, decimals: usize| x.map_or("–".to_owned(), |x| format!("{x:.decimals$}"));
    for row in rows.iter().take(limit) {
        let words: Vec<&str> = row.words.iter().map(|word| word.0.as_str()).collect();
        text += &format!(
            "{:>5} {:>6.2}% {:>7} {:>7} {:>7}  {}\n",
            row.topic,
            100.0 * row.proportion,
            number(row.coherence.npmi, 3),
            number(row.coherence.umass, 2),
            number(row.coherence.cv, 3),
            words.join(" ")
        );
    }
    if rows.len() > limit {
        text += &format!("… and {} further topics\n", rows.len() - limit);
    }
    text + "\n"
}
