//! Topics of documents.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use jensen::Error;
use jensen::conjugate::documents::{Bag, Documents, MemoryDocuments};
use jensen::conjugate::lda::{self, Inference, Predictor, RULE, Topics};
use jensen::data::corpus::{Corpus, Split, Tokeniser};
use jensen::job::{MEMORY_LIMIT, words};
use jensen::topics::stored::TopicsRun;
use jensen::topics::{Collection, CorpusDocuments, EffectsRequest, TopicModel, TopicsRequest};
use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{computed, fitted, matrix, read_request};
use crate::error::raise;
use crate::regress::{Columns, frame};
use crate::watch::supervised;

enum Given {
    File(PathBuf),
    Rows(MemoryDocuments),
}

/// The rows of a matrix in compressed sparse row format: the start of each row, the indices of the terms, the counts,
/// and the number of terms.
type Rows<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, f32>,
    usize,
);

impl Given {
    fn extract(documents: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(path) = documents.extract::<PathBuf>() {
            return Ok(Self::File(path));
        }
        let (starts, terms, counts, width): Rows<'_> = documents.extract()?;
        let (starts, terms, counts) = (starts.as_slice()?, terms.as_slice()?, counts.as_slice()?);
        let mut rows = MemoryDocuments::new(width);
        for pair in starts.windows(2) {
            let range = pair[0] as usize..pair[1] as usize;
            let bag = Bag {
                terms: terms.get(range.clone()).unwrap_or_default().to_vec(),
                counts: counts.get(range).unwrap_or_default().to_vec(),
            };
            rows.push(&bag).map_err(PyValueError::new_err)?;
        }
        Ok(Self::Rows(rows))
    }
}

/// Fitted topics. The tuple contains λ (topics × terms), the parameters of the priors, α (one per topic) and η, and the
/// number of steps. It also contains the number of documents that the statistics represent, the words if they are
/// known, and whether inference was collapsed.
type Model<'py> = (
    PyReadonlyArray2<'py, f64>,
    Vec<f64>,
    f64,
    u64,
    f64,
    Option<Vec<String>>,
    bool,
);

struct Known {
    topics: Topics,
    words: Option<Vec<String>>,
}

impl Known {
    fn of((components, alpha, eta, steps, population, words, collapsed): Model<'_>) -> Self {
        let (topics, terms) = (components.shape()[0], components.shape()[1]);
        let by_term = components.as_array();
        Self {
            topics: Topics {
                topics,
                terms,
                inference: match collapsed {
                    true => Inference::Cvb0,
                    false => Inference::MeanField,
                },
                alpha,
                eta,
                lambda: by_term.t().iter().map(|x| *x as f32).collect(),
                steps,
                population,
            },
            words,
        }
    }

    fn open(&self, path: &Path) -> Result<Corpus, Error> {
        let corpus = Corpus::open(path)?;
        let same = match &self.words {
            Some(words) => corpus.words() == words,
            None => corpus.terms() == self.topics.terms,
        };
        if same {
            return Ok(corpus);
        }
        Err(Error::Input(format!(
            "the corpus `{}` has another vocabulary than the topics: build it with the vocabulary of the topics",
            path.display()
        )))
    }
}

/// The result of a fit. The tuple contains `fit.json`, λ (topics × terms), α (one per topic), η, the number of steps,
/// the population, the words if the documents have words, and whether inference was collapsed.
type Fitted<'py> = (
    String,
    Bound<'py, PyArray2<f64>>,
    Vec<f64>,
    f64,
    u64,
    f64,
    Option<Vec<String>>,
    bool,
);

/// Learns topics. If `start` is given, the fit starts from these topics.
#[pyfunction]
#[pyo3(signature = (documents, start, request, threads))]
pub fn fit_topics<'py>(
    py: Python<'py>,
    documents: &Bound<'py, PyAny>,
    start: Option<Model<'py>>,
    request: &str,
    threads: Option<usize>,
) -> PyResult<Fitted<'py>> {
    let given = Given::extract(documents)?;
    let flags: TopicsRequest = read_request(request)?;
    let from_file = matches!(given, Given::File(_));
    let start = start.map(Known::of);
    let (summary, model) = fitted(py, threads, |around| {
        let corpus;
        let collection = match given {
            Given::Rows(rows) => Collection::in_memory(rows),
            Given::File(path) => {
                corpus = match &start {
                    Some(start) => start.open(&path)?,
                    None => Corpus::open(&path)?,
                };
                Collection::of_corpus(&corpus)
            }
        };
        let start = start.map(|start| TopicModel {
            words: collection.words().to_vec(),
            tokeniser: collection.tokeniser().clone(),
            topics: start.topics,
        });
        let run = TopicsRun {
            corpus: PathBuf::new(),
            digest: String::new(),
            update: start.is_some(),
            flags,
        };
        let open_seconds = around.clock.seconds();
        let done =
            jensen::topics::fit_topics(&collection, run, start.as_ref(), open_seconds, around)?;
        let summary = jensen::job::to_json(&done.summary)?;
        Ok((summary, done.made.output.model))
    })?;
    let Topics {
        topics,
        terms,
        inference,
        alpha,
        eta,
        lambda,
        steps,
        population,
    } = model.topics;
    let by_topic = (0..topics)
        .flat_map(|k| lambda[k..].iter().step_by(topics).map(|x| f64::from(*x)))
        .collect();
    Ok((
        summary,
        matrix(py, by_topic, terms)?,
        alpha,
        eta,
        steps,
        population,
        from_file.then_some(model.words),
        inference == Inference::Cvb0,
    ))
}

/// Returns the expected topic proportions of documents, with one row per document. If a corpus is given, the documents
/// are its training documents.
#[pyfunction]
pub fn topic_proportions<'py>(
    py: Python<'py>,
    documents: &Bound<'py, PyAny>,
    model: Model<'py>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let given = Given::extract(documents)?;
    let known = Known::of(model);
    let thetas = computed(py, threads, || {
        let predictor = Predictor::new(&known.topics, RULE, words::simd(None)?);
        Ok(match &given {
            Given::Rows(rows) => predictor.thetas(rows, 0, rows.len()),
            Given::File(path) => {
                let corpus = known.open(path)?;
                let train = CorpusDocuments::new(&corpus, Split::Train);
                predictor.thetas(&train, 0, train.len())
            }
        })
    })?;
    matrix(py, thetas, known.topics.topics)
}

/// Estimates how columns of a table change the shares of topics. Returns the contents of `effects.json`. `words` are the
/// names of the columns of the documents.
#[pyfunction]
#[pyo3(signature = (documents, model, words, columns, path, formula, prior_sd, seed, threads))]
#[allow(clippy::too_many_arguments)]
pub fn topic_effects(
    py: Python<'_>,
    documents: &Bound<'_, PyAny>,
    model: Model<'_>,
    words: Vec<String>,
    columns: Option<Columns<'_>>,
    path: Option<PathBuf>,
    formula: String,
    prior_sd: f64,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<String> {
    let Given::Rows(rows) = Given::extract(documents)? else {
        return Err(PyValueError::new_err(
            "a corpus does not have the order of its documents: give the matrix of counts",
        ));
    };
    let frame = frame(columns, path)?;
    let request = EffectsRequest {
        formula,
        prior_sd,
        seed,
        memory_limit: MEMORY_LIMIT,
    };
    let model = TopicModel {
        words,
        tokeniser: Tokeniser::default(),
        topics: Known::of(model).topics,
    };
    let made = supervised(py, threads, None, |watch| {
        let stopped = |_| watch.cancel.load(Ordering::Relaxed);
        let found = jensen::topics::topic_effects(&model, &rows, &frame, &request, &stopped)?;
        jensen::job::to_json(&found)
    })?;
    made.map_err(|error| raise(&error))
}

/// Scores topics by document completion on the held-out documents of a corpus. Returns the mean log predictive
/// probability of a word in nats, its standard error, the number of scored words and the number of scored documents.
#[pyfunction]
pub fn topic_completion(
    py: Python<'_>,
    documents: &Bound<'_, PyAny>,
    model: Model<'_>,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<(f64, f64, u64, u64)> {
    let given = Given::extract(documents)?;
    let known = Known::of(model);
    let score = computed(py, threads, || {
        let simd = words::simd(None)?;
        let score =
            |documents: &dyn Documents| lda::completion(&known.topics, documents, seed, simd);
        Ok(match &given {
            Given::Rows(rows) => score(rows),
            Given::File(path) => {
                let corpus = known.open(path)?;
                score(&CorpusDocuments::new(&corpus, Split::Heldout))
            }
        })
    })?;
    Ok((
        score.log_predictive,
        score.standard_error,
        score.words,
        score.documents,
    ))
}
