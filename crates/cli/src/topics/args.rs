//! The command line of `jensen topics`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use jensen::data::corpus::sources::SourceSettings;
use jensen::data::corpus::{DocumentUnit, Extra, Format, Frequency, Pattern, Sources};
use jensen::topics::{CorpusRequest, TopicsRequest};

use crate::failure::Failure;
use crate::terminal::Say;

/// Topic models of text that need not fit in memory.
#[derive(Subcommand)]
pub enum TopicsCommand {
    /// Make a corpus from text or bags of words
    Build(BuildArgs),
    /// Learn topics from a corpus
    Fit(FitArgs),
    /// Update topics with new documents
    Update(UpdateArgs),
    /// Topic proportions of documents, as JSON lines
    Predict(PredictArgs),
    /// Show topics: their sizes, top words and coherence
    Show(ShowArgs),
    /// Write topics as tables: all word probabilities, or top words
    Export(ExportArgs),
    /// Score held-out or new documents
    Evaluate(EvaluateArgs),
    /// Estimate how columns of a table change the shares of topics
    Effects(EffectsArgs),
}

/// The format of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// One JSON object per line
    Jsonl,
    /// Parquet, if this build reads it
    Parquet,
    /// Plain text
    Text,
    /// UCI bag of words: docword.NAME.txt with vocab.NAME.txt
    Uci,
    /// LDA-C: `pairs term:count …`
    Ldac,
    /// Matrix Market coordinates, one row per document
    Mtx,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Jsonl => Self::Jsonl,
            FormatName::Parquet => Self::Parquet,
            FormatName::Text => Self::Text,
            FormatName::Uci => Self::Uci,
            FormatName::Ldac => Self::Ldac,
            FormatName::Mtx => Self::MatrixMarket,
        }
    }
}

/// The unit of a document in plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitName {
    /// Every line
    Line,
    /// Every file
    File,
}

impl From<UnitName> for DocumentUnit {
    fn from(name: UnitName) -> Self {
        match name {
            UnitName::Line => Self::Line,
            UnitName::File => Self::File,
        }
    }
}

/// Characters other than letters that may belong to words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExtraName {
    /// Digits and other numerals: h2o, 2019
    Digits,
    /// Hyphens within a word: covid-19
    Hyphens,
    /// Apostrophes within a word: don't
    Apostrophes,
    /// + # & _ after the first character of a word: c++
    Symbols,
}

impl From<ExtraName> for Extra {
    fn from(name: ExtraName) -> Self {
        match name {
            ExtraName::Digits => Self::Digits,
            ExtraName::Hyphens => Self::Hyphens,
            ExtraName::Apostrophes => Self::Apostrophes,
            ExtraName::Symbols => Self::Symbols,
        }
    }
}

/// Settings of the reader.
#[derive(Args)]
pub struct InputFlags {
    /// Format of the inputs [default: by their names; other names are plain text]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Input")]
    pub format: Option<FormatName>,
    /// Field of a JSON line, or column of a Parquet file, with the text or a list of words, which Jensen does not
    /// change
    #[arg(
        long,
        value_name = "NAME",
        default_value = CorpusRequest::FIELD,
        help_heading = "Input"
    )]
    pub field: String,
    /// Unit of plain text that is a document [default: a file of a folder, a line of a file given by name]
    #[arg(long, value_enum, value_name = "line|file", help_heading = "Input")]
    pub documents: Option<UnitName>,
    /// The words of bags, one per line [default: vocab.txt or NAME.vocab beside them]
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub vocabulary: Option<PathBuf>,
}

impl InputFlags {
    pub fn sources(&self, paths: &[PathBuf], id: Option<&str>) -> Result<Sources, Failure> {
        let settings = SourceSettings {
            format: self.format.map(Format::from),
            field: self.field.clone(),
            id: id.map(str::to_owned),
            unit: self.documents.map(DocumentUnit::from),
            vocabulary: self.vocabulary.clone(),
        };
        Sources::new(paths, &settings).map_err(|error| Failure::input(error.to_string()))
    }
}

const BUILD_EXAMPLES: &str = "\
Examples:
  jensen topics build abstracts.jsonl.xz --out abstracts.corpus
  jensen topics build books/ --documents file --min-df 0.01 --max-df 0.5 --out books.corpus
  jensen topics build docword.nips.txt.gz --out nips.corpus

Files may be compressed with gzip, xz or zstd. For bags of words, all words are kept by default. Memory
grows with the number of distinct words, not with the number of documents.";

/// Makes a corpus.
#[derive(Args)]
#[command(after_help = BUILD_EXAMPLES)]
pub struct BuildArgs {
    /// Text (JSON lines, files, folders) or bags of words (UCI, LDA-C, Matrix Market)
    #[arg(required = true, value_name = "TEXT|BAG")]
    pub inputs: Vec<PathBuf>,
    /// The corpus to write, one file (with --shards a folder); an earlier corpus there is replaced
    #[arg(long, value_name = "CORPUS")]
    pub out: PathBuf,
    /// Write a folder of S shards with one vocabulary, for several machines
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub shards: Option<u64>,
    /// Replace the file of --out even if it is not a corpus
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub input: InputFlags,
    /// Keep words that occur in at least this number (10) or share (0.001) of documents [default: 10; of bags: 1]
    #[arg(long, value_name = "N|SHARE", help_heading = "Vocabulary")]
    pub min_df: Option<Frequency>,
    /// Keep words that occur in at most this number or share of documents [default: 0.1; of bags: 1.0]
    #[arg(long, value_name = "N|SHARE", help_heading = "Vocabulary")]
    pub max_df: Option<Frequency>,
    /// Keep the N words with the highest document frequency; 0 keeps all [default: 14000; of bags: 0]
    #[arg(long, value_name = "N", help_heading = "Vocabulary")]
    pub max_terms: Option<usize>,
    /// Remove stop words: english, the words of FILE, or none [default: english; of bags: none]
    #[arg(long, value_name = "english|FILE|none", help_heading = "Vocabulary")]
    pub stop_words: Option<String>,
    /// Characters other than letters that belong to words: digits (h2o), hyphens (covid-19) and apostrophes (don't)
    /// within words, symbols (c++, c#, at&t)
    #[arg(
        long,
        value_enum,
        value_name = "KIND,…",
        value_delimiter = ',',
        help_heading = "Vocabulary"
    )]
    pub keep: Vec<ExtraName>,
    /// Regular expression that defines words as its matches in the lower-case text, such as [a-z][a-z0-9_.-]+
    #[arg(
        long,
        value_name = "REGEX",
        conflicts_with = "keep",
        help_heading = "Vocabulary"
    )]
    pub pattern: Option<Pattern>,
    /// Learn phrases of up to N words, such as new_york, and treat each phrase as a word
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=16), help_heading = "Vocabulary")]
    pub phrases: Option<u64>,
    /// Smallest normalised pointwise mutual information of the two parts of a phrase [default: 0.5]
    #[arg(
        long,
        value_name = "X",
        requires = "phrases",
        help_heading = "Vocabulary"
    )]
    pub phrase_score: Option<f64>,
    /// Minimum number of letters of a word
    #[arg(
        long,
        value_name = "N",
        default_value_t = CorpusRequest::LENGTHS[0],
        help_heading = "Vocabulary"
    )]
    pub min_length: usize,
    /// Maximum number of letters of a word
    #[arg(
        long,
        value_name = "N",
        default_value_t = CorpusRequest::LENGTHS[1],
        help_heading = "Vocabulary"
    )]
    pub max_length: usize,
    /// Share of the documents to hold out, chosen by the seed
    #[arg(long, value_name = "SHARE", default_value_t = CorpusRequest::HELDOUT)]
    pub heldout: f64,
    /// Seed of the choice
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
    /// Print a JSON object to standard output, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no summary
    #[arg(long, short)]
    pub quiet: bool,
}

impl BuildArgs {
    pub fn request(&self) -> CorpusRequest {
        CorpusRequest {
            inputs: self.inputs.clone(),
            format: self.input.format.map(Format::from),
            field: Some(self.input.field.clone()),
            documents: self.input.documents.map(DocumentUnit::from),
            vocabulary: self.input.vocabulary.clone(),
            min_df: self.min_df,
            max_df: self.max_df,
            max_terms: self.max_terms,
            stop_words: self.stop_words.clone(),
            min_length: Some(self.min_length),
            max_length: Some(self.max_length),
            keep: self.keep.iter().copied().map(Extra::from).collect(),
            pattern: self.pattern.clone(),
            phrases: self.phrases.map(|longest| longest as usize),
            phrase_score: self.phrase_score,
            heldout: Some(self.heldout),
            seed: Some(self.seed),
        }
    }
}

const FIT_EXAMPLES: &str = "\
Examples:
  jensen topics fit abstracts.corpus --topics 100 --out topics
  jensen topics fit abstracts.corpus --topics 500 --temper local --passes 2 --out tempered
  jensen topics fit --resume topics --passes 4

The folder of --out holds fit.json, report.html, trace.jsonl, approximation.safetensors (the topics) and what --resume
and the other commands need. The corpus stays where it is.";

/// Learns topics.
#[derive(Args)]
#[command(after_help = FIT_EXAMPLES)]
pub struct FitArgs {
    /// The corpus, as `jensen topics build` made it (may be omitted with --resume)
    #[arg(required_unless_present = "resume")]
    pub corpus: Option<PathBuf>,
    #[command(flatten)]
    pub flags: TopicsRequest,
    #[command(flatten)]
    pub run: RunFlags,
    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Continue the run in this folder from its last checkpoint, with the same bits as an uninterrupted run
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "out",
        help_heading = "Output"
    )]
    pub resume: Option<PathBuf>,
    /// Resume although corpus or settings differ from the stored run
    #[arg(long, requires = "resume", help_heading = "Output")]
    pub force: bool,
}

/// Flags that are not settings of a run.
#[derive(Args)]
pub struct RunFlags {
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count, help_heading = "Run")]
    pub threads: Option<usize>,
    /// Refuse a run that needs more memory than this
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = jensen::job::words::bytes, help_heading = "Run")]
    pub memory_limit: u64,
    /// Print fit.json to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print no progress, warnings or table
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

impl RunFlags {
    pub fn say(&self) -> Say {
        Say {
            json: self.json,
            quiet: self.quiet,
        }
    }
}

const UPDATE_EXAMPLES: &str = "\
Examples:
  jensen topics update topics new.jsonl.gz --out newer
  jensen topics update topics new.jsonl.gz
  jensen topics update topics new.jsonl.gz --new-words 10 --out newer

Without --new-words the vocabulary of the model stays: unknown words are counted and left out. The step sizes continue
from the fit, and the new documents are added to the old ones. Without --out the new topics
replace the old ones. `jensen topics fit --resume DIR` continues a stopped update.";

/// Continues to learn.
#[derive(Args)]
#[command(after_help = UPDATE_EXAMPLES)]
pub struct UpdateArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// New documents: text or bags of words
    #[arg(required = true, value_name = "TEXT|BAG")]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputFlags,
    /// Share of the new documents to hold out
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub heldout: f64,
    /// Add unknown words that occur in at least this number or share of the new documents to the vocabulary
    #[arg(long, value_name = "N|SHARE", help_heading = "Vocabulary")]
    pub new_words: Option<Frequency>,
    /// Do not add words that occur in more than this number or share of the new documents [default: 0.1; of bags: 1.0]
    #[arg(
        long,
        value_name = "N|SHARE",
        requires = "new_words",
        help_heading = "Vocabulary"
    )]
    pub max_df: Option<Frequency>,
    #[command(flatten)]
    pub flags: TopicsRequest,
    #[command(flatten)]
    pub run: RunFlags,
    /// Write the new topics to this folder instead of DIR
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
}

const PREDICT_EXAMPLES: &str = "\
Examples:
  jensen topics predict topics new.jsonl --id id > proportions.jsonl
  jensen topics predict topics abstracts.corpus --out proportions.jsonl

One line per document: {\"document\": number from 1, \"id\": …, \"tokens\": known words, \"unknown\": other words,
\"topics\": [[topic, proportion], …]}, the largest proportion first. A document without a known word has none. For a
corpus, the lines have its training documents in the order of the inputs.";

/// Topic proportions of documents.
#[derive(Args)]
#[command(after_help = PREDICT_EXAMPLES)]
pub struct PredictArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Documents: text, bags of words, or a corpus with the vocabulary of the model
    #[arg(required = true, value_name = "TEXT|BAG|CORPUS")]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputFlags,
    /// Field of a JSON line that names the document; the first column of a matrix in CSV
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub id: Option<String>,
    /// Omit smaller proportions
    #[arg(long, value_name = "P", default_value_t = 0.01)]
    pub min_proportion: f64,
    /// Write to this file instead of standard output; with the ending .csv or .npy, write a matrix with one row per
    /// document and one column per topic
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
    /// Do not report skipped documents
    #[arg(long, short)]
    pub quiet: bool,
}

/// Shows topics.
#[derive(Args)]
pub struct ShowArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Words of each topic
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub words: usize,
    /// Measure coherence on sliding windows of these texts instead of the documents of the corpus
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    pub reference: Vec<PathBuf>,
    /// Words of a window; a shorter text is one window [default: 110]
    #[arg(long, value_name = "N", requires = "reference", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
    #[command(flatten)]
    pub input: InputFlags,
    /// Only this topic (repeatable)
    #[arg(long, value_name = "K")]
    pub topic: Vec<usize>,
    /// Print a JSON list: topic, proportion, words with probabilities, coherence
    #[arg(long)]
    pub json: bool,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  jensen topics export topics --out topics.csv
  jensen topics export topics --out topics.npy --vocabulary words.txt
  jensen topics export topics --top 20 > words.csv

A table has one row per topic and one column per word, with expected probabilities that sum to 1 in each row. CSV
has the words in its first line; NPY has single-precision numbers in the order of --vocabulary.";

/// Writes topics.
#[derive(Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// A .csv or .npy file (repeatable) [default: CSV on standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// Write only the N most probable words of each topic, one line each: topic, rank, word, probability
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub top: Option<u64>,
    /// Write the words to this file, one per line, in the order of the columns
    #[arg(long, value_name = "FILE")]
    pub vocabulary: Option<PathBuf>,
}

const EFFECTS_EXAMPLES: &str = "\
Examples:
  jensen topics effects topics abstracts.jsonl --table abstracts.csv --id id --formula '~ year + field'
  jensen topics effects topics speeches.txt --table speeches.csv --formula '~ party * ns(year, df = 3)' --out effects

Documents have Dirichlet priors whose parameters depend on the columns (Dirichlet-multinomial regression). The words of the
topics stay as they are, and intervals do not contain their error. A formula may contain factors, poly, ns, bs and products,
as in `jensen regress`. The folder of --out gets effects.csv, shares.csv, effects.json and report.html.";

/// Estimates effects of covariates.
#[derive(Args)]
#[command(after_help = EFFECTS_EXAMPLES)]
#[command(override_usage = "jensen topics effects <DIR> <TEXT>... --table FILE --formula F")]
pub struct EffectsArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Documents: text or bags of words
    #[arg(required = true, value_name = "TEXT|BAG")]
    pub inputs: Vec<PathBuf>,
    /// The table of covariates, with one row per document
    #[arg(long, value_name = "FILE")]
    pub table: PathBuf,
    /// The covariates, as in '~ year + source'
    #[arg(long, value_name = "FORMULA")]
    pub formula: String,
    #[command(flatten)]
    pub input: InputFlags,
    /// Field of a JSON line, and column of the table, that names the document [default: rows have the order of the
    /// documents]
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub id: Option<String>,
    /// Prior standard deviation of a coefficient, for columns in units of their standard deviations
    #[arg(long, value_name = "SD", default_value_t = 1.0, value_parser = jensen::job::words::positive)]
    pub prior_sd: f64,
    /// Write results to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print effects.json to standard output, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Seed of every random number
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
    /// Refuse a run that needs more memory than this
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = jensen::job::words::bytes)]
    pub memory_limit: u64,
    /// Print no progress, warnings or table
    #[arg(long, short)]
    pub quiet: bool,
}

const EVALUATE_EXAMPLES: &str = "\
Examples:
  jensen topics evaluate topics
  jensen topics evaluate topics new.jsonl --json

Document completion infers the topics of a document from half of its words, by a seeded shuffle, and scores the other
half. Without documents, the command scores the held-out documents of the fit's corpus.";

/// Scores documents.
#[derive(Args)]
#[command(after_help = EVALUATE_EXAMPLES)]
pub struct EvaluateArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Documents: text, bags of words, or the held-out part of a corpus with the vocabulary of the model
    #[arg(value_name = "TEXT|BAG|CORPUS")]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub input: InputFlags,
    /// Seed of the shuffle [default: the seed of the fit]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
    /// Print a JSON object to standard output, and nothing else
    #[arg(long)]
    pub json: bool,
}
