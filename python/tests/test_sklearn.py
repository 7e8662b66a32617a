"""The estimators pass scikit-learn's checks, and agree with its estimators, exact answers and the command."""

import json
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from scipy import io, sparse, special, stats  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

import jensen  # noqa: E402
from jensen.sklearn import (  # noqa: E402
    RBF,
    AutoEncoder,
    BayesianGaussianMixture,
    BayesianLinear,
    BayesianLogistic,
    BayesianPoisson,
    Constant,
    FactorialMixture,
    GaussianProcessClassifier,
    GaussianProcessCountRegressor,
    GaussianProcessRegressor,
    HiddenMarkov,
    Kernel,
    LatentDirichletAllocation,
    Linear,
    Matern,
)


def command(*arguments):
    line = [sys.executable, "-m", "jensen._command", *map(str, arguments)]
    subprocess.run(line, check=False, stdout=subprocess.DEVNULL)


# Checks of scikit-learn.

#: Checks with fractional targets, which are no counts.
NOT_COUNTS = {
    name: "y is a count, and this check gives fractions"
    for name in (
        "check_n_features_in_after_fitting",
        "check_regressors_train",
        "check_regressor_data_not_an_array",
        "check_regressors_no_decision_function",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
    )
}

#: Scores of an auto-encoder are Monte-Carlo estimates, whose draws depend on the seed and the index of the row.
DRAWN = {
    name: "score_samples is an estimate whose draws go with the row's number"
    for name in ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
}

ESTIMATORS = [
    (LatentDirichletAllocation(3, max_iter=2), {}),
    # Learning hyperparameters would take minutes, and other tests cover it. The checks are about the interface.
    (GaussianProcessClassifier(learn_hyperparameters=False), {}),
    (GaussianProcessRegressor(learn_hyperparameters=False), {}),
    (GaussianProcessCountRegressor(learn_hyperparameters=False), NOT_COUNTS),
    (BayesianLinear(), {}),
    (BayesianLogistic(), {}),
    (BayesianPoisson(), NOT_COUNTS),
    (BayesianGaussianMixture(), {}),
    (HiddenMarkov(), {}),
    (FactorialMixture(), {}),
    (AutoEncoder(2, hidden=(8,), max_iter=3), DRAWN),
]


@pytest.mark.parametrize(("estimator", "expected"), ESTIMATORS, ids=lambda x: type(x).__name__)
def test_the_checks_of_scikit_learn_pass(estimator, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    # All checks that are expected to fail do fail.
    failed = {check["check_name"] for check in results if check["status"] == "xfail"}
    assert failed == set(expected)


class Rounded:
    """Rounds the fractional targets of the checks to counts."""

    def fit(self, X, y, exposure=None):
        try:
            rounded = np.rint(np.asarray(y, dtype=float))
        except (TypeError, ValueError):
            rounded = np.array(np.nan)
        # Targets that the checks expect to be rejected stay unchanged.
        return super().fit(X, rounded if np.isfinite(rounded).all() else y, exposure)


class RoundedProcess(Rounded, GaussianProcessCountRegressor):
    pass


class RoundedPoisson(Rounded, BayesianPoisson):
    pass


@pytest.mark.parametrize("estimator", [RoundedProcess(learn_hyperparameters=False), RoundedPoisson()], ids=lambda x: type(x).__name__)
def test_regressions_of_counts_pass_the_checks_with_rounded_targets(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(estimator, on_skip=None)


def data_for(estimator):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 3))
    y = np.rint(np.exp(X[:, 0]))
    if isinstance(estimator, LatentDirichletAllocation):
        return rng.poisson(1.0, size=(40, 12)), y
    return X, np.minimum(y, 1) if hasattr(estimator, "predict_proba") else y


@pytest.mark.parametrize("estimator", [e for e, _ in ESTIMATORS], ids=lambda x: type(x).__name__)
def test_fits_are_functions_of_the_seed_and_survive_pickling(estimator):
    X, y = data_for(estimator)
    outputs = [name for name in ("transform", "predict", "predict_proba") if hasattr(estimator, name)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = clone(estimator).set_params(random_state=5, threads=1).fit(X, y)
        two = clone(estimator).set_params(random_state=5, threads=3).fit(X, y)
    stored = pickle.loads(pickle.dumps(one))
    assert stored.trusted_ == one.trusted_ and stored.verdict_ == one.verdict_
    for name in outputs:
        expected = getattr(one, name)(X)
        assert np.isfinite(expected).all()
        assert np.array_equal(getattr(two, name)(X), expected)
        assert np.array_equal(getattr(stored, name)(X), expected)


def test_a_fit_that_is_not_trusted_warns_with_the_reason(corpus):
    counts, *_ = corpus
    with pytest.warns(jensen.TrustWarning, match="temperature"):
        hot = LatentDirichletAllocation(4, temper="global=inf", max_iter=1, random_state=0).fit(counts)
    assert not hot.trusted_ and hot.verdict_.startswith("NOT to be trusted") and not hot.info_["trusted"]


def test_pipelines_searches_and_names(corpus):
    counts, *_ = corpus
    search = GridSearchCV(
        LatentDirichletAllocation(max_iter=3, random_state=0), {"n_components": [1, 4]}, cv=3
    ).fit(counts)
    assert search.best_params_["n_components"] == 4
    names = search.best_estimator_.get_feature_names_out()
    assert list(names) == [f"latentdirichletallocation{k}" for k in range(4)]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [1.0, 100.0]
    y = X[:, 0] + X[:, 1] / 100 > 0
    pipe = make_pipeline(StandardScaler(), GaussianProcessClassifier(learn_hyperparameters=False))
    kernels = {"gaussianprocessclassifier__kernel": ["gp(rbf)", RBF(0.01, fixed=True)]}
    tried = GridSearchCV(pipe, kernels, cv=3).fit(X, y)
    assert tried.best_params_["gaussianprocessclassifier__kernel"] == "gp(rbf)" and tried.score(X, y) > 0.9


def test_scikit_learn_is_needed_only_for_its_estimators():
    script = (
        "import sys; sys.modules['sklearn'] = None; import jensen\n"
        "try: import jensen.sklearn\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert "pip install 'jensen[sklearn]'" in said


# Topics.


@pytest.fixture(scope="module")
def corpus():
    """Counts drawn from four topics, held-out counts, and the topics."""
    rng = np.random.default_rng(8)
    topics = rng.dirichlet(np.full(60, 0.2), size=4)

    def documents(n):
        words = [rng.multinomial(40, rng.dirichlet(np.full(4, 0.2)) @ topics) for _ in range(n)]
        return sparse.csr_matrix(np.array(words, dtype=np.int64))

    counts, fresh = documents(400), documents(200)
    # A corpus has no column for a word that never occurs.
    seen = np.flatnonzero(counts.sum(axis=0))
    return counts[:, seen], fresh[:, seen], topics[:, seen]


def stored_topics(folder):
    """λ of a fit of the command, topics × terms."""
    raw = (folder / "approximation.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    name = next(name for name in header if name.endswith("lambda"))
    first, last = header[name]["data_offsets"]
    kind = {"F64": np.float64, "F32": np.float32}[header[name]["dtype"]]
    return np.frombuffer(raw[8 + size + first : 8 + size + last], dtype=kind).reshape(header[name]["shape"]).T


def test_topics_equal_the_topics_of_the_command_bit_for_bit(corpus, tmp_path):
    counts, fresh, _ = corpus
    words = [f"w{'abcdefghij'[v // 10]}{'abcdefghij'[v % 10]}" for v in range(counts.shape[1])]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    io.mmwrite(tmp_path / "docs.mtx", counts)
    io.mmwrite(tmp_path / "new.mtx", fresh)
    built, out = tmp_path / "docs.corpus", tmp_path / "out"
    command("topics", "build", tmp_path / "docs.mtx", "--heldout", 0, "--out", built, "--quiet")
    flags = ["--batch", 32, "--tau", 4, "--seed", 3, "--passes", 3, "--temper", "anneal=1"]
    command("topics", "fit", built, "--topics", 4, *flags, "--out", out, "--quiet")
    ours = LatentDirichletAllocation(
        4, batch_size=32, learning_offset=4, max_iter=3, temper="anneal=1", random_state=3
    )
    from_file = clone(ours).fit(built)
    theirs = stored_topics(out)
    assert np.array_equal(from_file.components_, theirs)
    # A corpus has words in order of decreasing document frequency.
    order = [words.index(word) for word in from_file.vocabulary_]
    counts, fresh = counts[:, order], fresh[:, order]
    from_memory = clone(ours).fit(counts)
    assert np.array_equal(from_memory.components_, theirs)
    assert from_memory.bound_ == json.loads((out / "fit.json").read_text())["elbo"]
    assert from_file.top_words(1)[0][0] in from_file.vocabulary_
    assert np.array_equal(from_file.transform(built), from_memory.transform(counts))
    # A corpus with another vocabulary is an error.
    command("topics", "build", tmp_path / "new.mtx", "--heldout", 0, "--out", tmp_path / "new.corpus", "--quiet")
    for use in (from_file.transform, from_file.partial_fit):
        with pytest.raises(ValueError, match="another vocabulary"):
            use(tmp_path / "new.corpus")
    # Learning from more documents equals the command's update.
    updated = tmp_path / "updated"
    command("topics", "update", out, tmp_path / "new.mtx", "--heldout", 0, "--out", updated, "--quiet")
    assert np.array_equal(from_memory.partial_fit(fresh).components_, stored_topics(updated))
    assert from_memory.n_batch_iter_ == 3 * 13 + 7


def test_effects_of_covariates_on_topics():
    # The share of the first topic rises from 0.2 to 0.8 with the covariate, and groups do not differ.
    rng = np.random.default_rng(6)
    words = np.array([[0.3] * 3 + [0.025] * 4, [0.025] * 4 + [0.3] * 3])
    x = np.linspace(-1, 1, 800)
    theta = rng.beta(2 * np.exp(1.4 * x / 2), 2 * np.exp(-1.4 * x / 2))
    shares = theta[:, None] * words[0] + (1 - theta)[:, None] * words[1]
    X = np.array([rng.multinomial(25, p / p.sum()) for p in shares])
    model = LatentDirichletAllocation(2, random_state=0, batch_size=100).fit(X)
    # Intervals hold for known topics, so the topics have the words from which the documents were drawn.
    model.components_ = 1e6 * words
    group = np.where(np.arange(800) % 3, "a", "b")
    found = model.effects(X, {"x": 1e3 * x, "group": group}, "~ x + group")
    assert found["trusted"] and found["documents"] == 800
    row = {r["column"]: r for r in found["effects"] if r["topic"] == 0}
    # At equal shares, the change of the log share is half of that of the log odds. Each bound fails once in a thousand seeds.
    assert abs(row["x"]["mean"] - 0.7e-3) < 3.3 * row["x"]["sd"] and row["x"]["sd"] < 0.05e-3
    assert abs(row["groupb"]["mean"]) < 3.3 * row["groupb"]["sd"]
    with pytest.raises(ValueError, match="no column `z`"):
        model.effects(X, {"x": x}, "~ z")
    with pytest.raises(ValueError, match="799 rows"):
        model.effects(X, {"x": x[1:]}, "~ x")


def test_topics_predict_as_well_as_scikit_learn(corpus):
    from sklearn.decomposition import LatentDirichletAllocation as Theirs

    counts, fresh, topics = corpus
    mine = LatentDirichletAllocation(4, random_state=0, batch_size=50, max_iter=20, temper="local=5").fit(counts)
    theirs = Theirs(4, random_state=0, learning_method="batch", max_iter=50).fit(counts)
    # The same code scores both.
    judge = clone(mine).fit(counts)
    judge.components_ = theirs.components_
    truth = clone(mine).fit(counts)
    truth.components_ = 1e4 * topics + 0.25
    assert mine.perplexity(fresh) < 1.01 * judge.perplexity(fresh)
    assert mine.perplexity(fresh) < 1.03 * truth.perplexity(fresh)
    assert mine.perplexity(fresh) == pytest.approx(np.exp(-mine.score(fresh)))
    # The fit finds every topic, up to order.
    found = mine.components_ / mine.components_.sum(axis=1, keepdims=True)
    distances = np.abs(found[:, None] - topics[None]).sum(axis=2) / 2
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2, 3] and distances.min(axis=1).max() < 0.1


def test_inducing_points_approach_the_process():
    rng = np.random.default_rng(3)
    X, new = rng.uniform(0, 6, (300, 2)), rng.uniform(0, 6, (50, 2))
    y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + rng.normal(0, 0.1, 300)
    dense, sparse = (
        GaussianProcessRegressor(kernel, hyperparameters="point").fit(X, y)
        for kernel in ("gp(rbf) + intercept()", "svgp(rbf, inducing=100) + intercept()")
    )
    assert dense.trusted_ and sparse.trusted_
    (mean, sd), (own_mean, own_sd) = (model.predict(new, return_std=True) for model in (dense, sparse))
    assert np.abs((own_mean - mean) / sd).max() < 0.3
    assert np.abs(own_sd / sd - 1).max() < 0.1


def test_a_hierarchical_dirichlet_process_finds_the_number_of_topics():
    rng = np.random.default_rng(1)
    counts = np.zeros((500, 60))
    for row in counts:
        # Each document has words of one or two of five subjects with twelve words each.
        subjects = rng.integers(5, size=2)
        np.add.at(row, 12 * rng.choice(subjects, 50) + rng.integers(12, size=50), 1)
    settings = {"batch_size": 50, "learning_offset": 16, "max_iter": 25, "random_state": 0}
    topics = LatentDirichletAllocation(20, learn_alpha="hdp", **settings).fit(counts)
    assert topics.info_["topics_found"] == 5
    assert np.sum(topics.doc_topic_prior_ > 0.01) == 5
    shares = np.sort(topics.transform(counts).mean(0))[::-1]
    assert shares[:5].sum() > 0.99 and shares[4] > 0.1


def test_topics_accept_any_sparse_counts(corpus):
    counts, fresh, _ = corpus
    mine = LatentDirichletAllocation(4, random_state=0, max_iter=2).fit(counts)
    dense = clone(mine).fit(counts.toarray())
    assert np.array_equal(mine.components_, dense.components_)
    # Unsorted, repeated and zero entries have their usual meaning.
    parts = counts.tocoo()
    rows, columns = np.r_[parts.row, parts.row], np.r_[parts.col, parts.col]
    halves = np.r_[parts.data / 2, parts.data / 2]
    untidy = sparse.csr_matrix(counts.shape)
    untidy.indptr = np.r_[0, np.cumsum(np.bincount(rows, minlength=counts.shape[0]))].astype(np.int32)
    order = np.lexsort((-columns, rows))
    untidy.indices, untidy.data = columns[order].astype(np.int32), halves[order]
    kept = untidy.data.copy()
    assert np.array_equal(clone(mine).fit(untidy).components_, mine.components_)
    assert np.array_equal(untidy.data, kept)
    shares = mine.transform(fresh)
    assert np.allclose(shares.sum(axis=1), 1) and shares.min() > 0
    # This matrix would have 80 GB if it were dense.
    indices = np.arange(20_000), np.arange(20_000) * 25
    wide = sparse.csr_matrix((np.ones(20_000), indices), shape=(20_000, 500_000))
    assert LatentDirichletAllocation(2, max_iter=1, random_state=0).fit(wide).components_.shape == (2, 500_000)
    with pytest.raises(ValueError, match="[Nn]egative"):
        mine.fit(-counts)
    with pytest.raises(FileNotFoundError):
        mine.fit("no.corpus")


def test_scores_of_a_corpus_equal_the_scores_of_the_command(corpus, tmp_path):
    counts, fresh, _ = corpus
    words = [f"w{chr(97 + v // 26)}{chr(97 + v % 26)}" for v in range(counts.shape[1])]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    io.mmwrite(tmp_path / "docs.mtx", counts)
    built, out = tmp_path / "docs.corpus", tmp_path / "out"
    command("topics", "build", tmp_path / "docs.mtx", "--heldout", 0.25, "--out", built, "--quiet")
    command("topics", "fit", built, "--topics", 4, "--batch", 32, "--seed", 3, "--out", out, "--quiet")
    mine = LatentDirichletAllocation(4, batch_size=32, learning_offset=64, max_iter=5, random_state=3).fit(built)
    theirs = json.loads((out / "fit.json").read_text())
    assert mine.score(built) == theirs["heldout_log_predictive"] == mine.info_["heldout_log_predictive"]
    assert mine.transform(built).shape == (theirs["documents"], 4) and theirs["heldout_documents"] > 50
    with pytest.raises(ValueError, match="two words"):
        mine.score(fresh * 0)


def test_other_threads_run_during_a_fit():
    counts = np.random.default_rng(0).poisson(0.2, size=(3000, 500))
    fit = threading.Thread(target=LatentDirichletAllocation(50, max_iter=10, random_state=0).fit, args=(counts,))
    fit.start()
    turns = 0
    while fit.is_alive():
        time.sleep(0.001)
        turns += 1
    # A fit that held the interpreter lock would allow one or two iterations.
    assert turns > 20


def test_control_c_stops_a_fit():
    counts = np.random.default_rng(0).poisson(0.2, size=(4000, 500))
    timer = threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT))
    # Background jobs of a shell ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            LatentDirichletAllocation(50, max_iter=100_000, max_seconds=60, random_state=0).fit(counts)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 30


# Gaussian processes.


@pytest.fixture
def waves():
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, size=(80, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1], rng


def test_regression_agrees_with_scikit_learn(waves):
    from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
    from sklearn.gaussian_process.kernels import RBF as Square
    from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

    X, f, rng = waves
    y = f + rng.normal(scale=0.2, size=len(f))
    at = rng.uniform(-3, 3, size=(30, 2))
    settings = {"noise_variance": 0.04, "standardise": False}
    fixed = GaussianProcessRegressor(RBF(0.8, variance=1.5, fixed=True), **settings).fit(X, y)
    theirs = Theirs(ConstantKernel(1.5) * Square(0.8), alpha=0.04, optimizer=None).fit(X, y)
    for mine, other in zip(fixed.predict(at, return_std=True), theirs.predict(at, return_std=True), strict=True):
        assert np.allclose(mine, other, atol=1e-5)
    assert fixed.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)
    # scikit-learn's `alpha` may have one variance for each row.
    sd = rng.uniform(0.1, 0.5, len(y))
    fixed = GaussianProcessRegressor(RBF(0.8, variance=1.5, fixed=True), standardise=False).fit(X, y, sd=sd)
    theirs = Theirs(ConstantKernel(1.5) * Square(0.8), alpha=sd**2, optimizer=None).fit(X, y)
    for mine, other in zip(fixed.predict(at, return_std=True), theirs.predict(at, return_std=True), strict=True):
        assert np.allclose(mine, other, atol=1e-5)
    with pytest.raises(ValueError, match="sd must be positive"):
        GaussianProcessRegressor().fit(X, y, sd=0 * sd)
    with pytest.raises(ValueError, match="sd replaces the likelihood"):
        GaussianProcessRegressor(noise_variance=0.1).fit(X, y, sd=sd)
    # Both learn the hyperparameters at the same maximum.
    point = {"hyperparameters": "point", "standardise": False}
    learnt = GaussianProcessRegressor("gp(rbf)", **point).fit(X, y)
    theirs = Theirs(ConstantKernel() * Square() + WhiteKernel(), n_restarts_optimizer=3, random_state=0).fit(X, y)
    assert learnt.trusted_
    assert learnt.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-3)
    assert np.allclose(learnt.predict(at), theirs.predict(at), atol=1e-2)
    assert learnt.hyperparameters_["likelihood.variance"] == pytest.approx(theirs.kernel_.k2.noise_level, rel=0.01)
    # Other scales give the same function.
    scaled = GaussianProcessRegressor("gp(rbf)").fit(X, 1000 + 50 * y)
    same = 1000 + 50 * GaussianProcessRegressor("gp(rbf)").fit(X, y).predict(at)
    assert np.allclose(scaled.predict(at), same, atol=0.1)


def test_a_robust_regression_ignores_outliers(waves):
    X, f, rng = waves
    y = f + rng.normal(scale=0.1, size=len(f))
    y[::10] += 15
    plain = GaussianProcessRegressor("gp(rbf)").fit(X, y)
    robust = GaussianProcessRegressor("gp(rbf)", likelihood="student-t").fit(X, y)
    error = [np.abs(model.predict(X) - f).mean() for model in (plain, robust)]
    assert error[1] < 0.25 * error[0]


def test_classification_agrees_with_scikit_learn(waves):
    from sklearn.gaussian_process import GaussianProcessClassifier as Theirs
    from sklearn.gaussian_process.kernels import RBF as Square
    from sklearn.gaussian_process.kernels import ConstantKernel

    X, f, rng = waves
    y = np.where(rng.random(len(f)) < special.expit(2 * f), "yes", "no")
    at = rng.uniform(-3, 3, size=(50, 2))
    theirs = Theirs(ConstantKernel(2.0) * Square(1.0), optimizer=None).fit(X, y)
    for bound in ("exact", "tilted"):
        kernel = RBF(1.0, variance=2.0, fixed=True)
        mine = GaussianProcessClassifier(kernel, bound=bound, standardise=False).fit(X, y)
        assert mine.trusted_ and list(mine.classes_) == ["no", "yes"]
        # Laplace's approximation and the best Gaussian differ by less than this.
        assert np.abs(mine.predict_proba(at) - theirs.predict_proba(at)).max() < 0.03
        assert mine.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=0.5)
    assert (mine.predict(at) == theirs.predict(at)).mean() > 0.95


def test_several_classes(waves):
    X, f, _ = waves
    y = np.digitize(f, [-0.5, 0.5])
    model = GaussianProcessClassifier(RBF(1.0, variance=10.0, fixed=True)).fit(X, y)
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1) and model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="probit"):
        GaussianProcessClassifier(link="probit").fit(X, y)


def test_counts_with_exposures(waves):
    X, f, rng = waves
    exposure = rng.uniform(1, 20, size=len(f))
    y = rng.poisson(exposure * np.exp(f))
    model = GaussianProcessCountRegressor().fit(X, y, exposure=exposure)
    assert model.trusted_
    assert np.corrcoef(np.log(model.predict(X)), f)[0, 1] > 0.95
    assert np.allclose(model.predict(X, exposure=2 * exposure), 2 * exposure * model.predict(X))
    with pytest.raises(ValueError, match="counts"):
        model.fit(X, y + 0.5)
    with pytest.raises(ValueError, match="exposure"):
        model.fit(X, y, exposure=-exposure)


def test_kernels_equal_specifications_of_the_command(waves, tmp_path):
    X, f, _ = waves
    assert str(RBF(2.0, variance=1.5, ard=True) * Linear() + Constant(variance=3, fixed=True)) == (
        "gp(rbf, ard, lengthscale~2.0, variance~1.5) * gp(linear) + gp(constant, variance=3.0)"
    )
    assert (RBF() + Linear()) * Matern(nu=0.5) == Kernel("gp(rbf) * gp(matern12) + gp(linear) * gp(matern12)")
    table = tmp_path / "data.csv"
    rows = ["x1,x2,y", *(f"{a!r},{b!r},{c!r}" for (a, b), c in zip(X.tolist(), f.tolist(), strict=True))]
    table.write_text("\n".join(rows) + "\n")
    prior = "gp(matern52, ard, on=(x1, x2)) + gp(linear, on=x2)"
    flags = ["--likelihood", "gaussian", "--data", table, "--quiet"]
    command("latent", "fit", "--prior", prior, *flags, "--out", tmp_path / "out")
    theirs = json.loads((tmp_path / "out" / "fit.json").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = GaussianProcessRegressor(
            Matern(nu=2.5, ard=True, on=["x1", "x2"]) + Linear(on=["x2"]), random_state=0
        ).fit(X, f)
    assert mine.log_marginal_likelihood_value_ == theirs["bound"]
    assert mine.hyperparameters_ == {row["name"]: row["value"] for row in theirs["hyperparameters"]}
    with pytest.raises(ValueError, match="rbff"):
        GaussianProcessRegressor("gp(rbff)").fit(X, f)


def test_draws_of_functions_are_joint(waves):
    X, f, rng = waves
    model = GaussianProcessRegressor(RBF(), random_state=0).fit(X, f + rng.normal(scale=0.2, size=len(f)))
    at = np.array([X[0], X[0] + 0.01, X[0] + 100.0])
    mean, sd = model.predict(at, return_std=True)
    drawn = model.sample_y(at, n_samples=4000, random_state=3)
    assert drawn.shape == (3, 4000)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=4 * sd.max() / 60)
    np.testing.assert_allclose(drawn.std(axis=1), sd, rtol=0.06)
    # Neighbouring values are correlated.
    assert np.std(drawn[0] - drawn[1]) < 0.3 * sd[0]
    np.testing.assert_array_equal(model.sample_y(at, n_samples=2, random_state=3), drawn[:, :2])


def test_columns_have_the_names_of_a_data_frame(waves):
    pandas = pytest.importorskip("pandas")
    X, f, rng = waves
    f = f + rng.normal(scale=0.1, size=len(f))
    frame = pandas.DataFrame(X, columns=["sepal width", "y"])
    kernel = RBF(1.0, on=["sepal width"]) + Linear(on=["y"])
    model = GaussianProcessRegressor(kernel).fit(frame, f)
    assert model.score(frame, f) > 0.95
    reordered = frame[["y", "sepal width"]]
    with pytest.raises(ValueError, match="order"):
        model.predict(reordered)


# Linear models.


@pytest.fixture
def design():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 2.0]])
    return X, X @ [1.0, -0.5, 0.25] + 0.7, rng


def test_linear_regression_is_the_exact_conjugate_posterior(design):
    X, f, rng = design
    y = f + rng.normal(scale=0.5, size=len(f))
    model = BayesianLinear(
        prior_variance=2.0, noise_variance=0.3, intercept_variance=9.0, standardise=False
    ).fit(X, y)
    A = np.column_stack([X, np.ones(len(X))])
    prior = np.diag([2.0, 2.0, 2.0, 9.0])
    covariance = np.linalg.inv(A.T @ A / 0.3 + np.linalg.inv(prior))
    mean = covariance @ A.T @ y / 0.3
    assert np.allclose([*model.coef_, model.intercept_], mean, atol=1e-6)
    assert np.allclose([*model.coef_std_, model.intercept_std_], np.sqrt(np.diag(covariance)), atol=1e-6)
    evidence = stats.multivariate_normal(np.zeros(60), A @ prior @ A.T + 0.3 * np.eye(60)).logpdf(y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, abs=1e-5)
    means, deviations = model.predict(X[:5], return_std=True)
    assert np.allclose(means, A[:5] @ mean, atol=1e-6)
    assert np.allclose(deviations, np.sqrt(np.diag(A[:5] @ covariance @ A[:5].T) + 0.3), atol=1e-6)
    assert model.trusted_
    # With known errors of the rows, predictions are of the mean.
    sd = rng.uniform(0.2, 2.0, len(y))
    model = BayesianLinear(prior_variance=2.0, intercept_variance=9.0, standardise=False).fit(X, y, sd=sd)
    covariance = np.linalg.inv((A.T / sd**2) @ A + np.linalg.inv(prior))
    mean = covariance @ (A.T / sd**2) @ y
    assert np.allclose([*model.coef_, model.intercept_], mean, atol=1e-6)
    assert np.allclose(model.predict(X[:5], return_std=True)[1], np.sqrt(np.diag(A[:5] @ covariance @ A[:5].T)), atol=1e-6)


def test_the_marginal_likelihood_determines_variances(design):
    from scipy.optimize import minimize

    X, f, rng = design
    y = f + rng.normal(scale=0.5, size=len(f))
    model = BayesianLinear(fit_intercept=False, hyperparameters="point", standardise=False).fit(X, y)

    def surprise(logs):
        prior, noise = np.exp(logs)
        return -stats.multivariate_normal(np.zeros(60), prior * X @ X.T + noise * np.eye(60)).logpdf(y)

    best = minimize(surprise, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-8})
    assert model.log_marginal_likelihood_value_ == pytest.approx(-best.fun, abs=1e-4)
    learnt = [model.hyperparameters_["fixed.variance"], model.hyperparameters_["likelihood.variance"]]
    assert np.allclose(learnt, np.exp(best.x), rtol=0.02)


def test_raw_columns_agree_with_ridge_regression():
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import BayesianRidge

    X, y = load_diabetes(return_X_y=True)
    model = BayesianLinear().fit(X, y)
    assert model.trusted_ and model.score(X, y) > BayesianRidge().fit(X, y).score(X, y) - 0.01
    # Results do not depend on units.
    moved = BayesianLinear().fit(1e5 + 1e-3 * X, 1e4 + 1e3 * y)
    assert np.allclose(moved.predict(1e5 + 1e-3 * X), 1e4 + 1e3 * model.predict(X), rtol=1e-4)
    assert np.allclose(moved.coef_, 1e6 * model.coef_, rtol=1e-2)


def grid_posterior(log_density):
    """Computes means and standard deviations of a bivariate density by quadrature."""
    axis = np.linspace(-8, 8, 801)
    a, b = np.meshgrid(axis, axis, indexing="ij")
    logs = log_density(a, b)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    means = [(weights * x).sum() for x in (a, b)]
    deviations = [np.sqrt((weights * (x - m) ** 2).sum()) for x, m in zip((a, b), means, strict=True)]
    return np.array(means), np.array(deviations)


def test_logistic_regression_against_integration():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = rng.random(40) < special.expit(X @ [1.5, -1.0])
    model = BayesianLogistic(prior_variance=4.0, fit_intercept=False, standardise=False).fit(X, y)
    signs = np.where(y, 1.0, -1.0)

    def log_density(a, b):
        eta = a[..., None] * X[:, 0] + b[..., None] * X[:, 1]
        return special.log_expit(signs * eta).sum(axis=-1) - (a**2 + b**2) / 8

    means, deviations = grid_posterior(log_density)
    # The posterior is slightly skewed, so the best Gaussian is within a few percent of a standard deviation.
    assert np.abs(model.coef_[0] - means).max() < 0.05 * deviations.min()
    assert np.allclose(model.coef_std_[0], deviations, rtol=0.05)
    assert model.trusted_ and model.score(X, y) > 0.65
    assert np.allclose(model.predict_proba(-X)[:, 1], model.predict_proba(X)[:, 0], atol=1e-9)


def test_poisson_regression_against_integration():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 2))
    exposure = rng.uniform(1, 3, size=50)
    y = rng.poisson(exposure * np.exp(X @ [0.5, -0.3]))
    model = BayesianPoisson(prior_variance=4.0, fit_intercept=False, standardise=False).fit(X, y, exposure=exposure)

    def log_density(a, b):
        eta = a[..., None] * X[:, 0] + b[..., None] * X[:, 1]
        return (y * eta - exposure * np.exp(eta)).sum(axis=-1) - (a**2 + b**2) / 8

    means, deviations = grid_posterior(log_density)
    assert np.abs(model.coef_ - means).max() < 0.05 * deviations.min()
    assert np.allclose(model.coef_std_, deviations, rtol=0.05)
    assert np.allclose(model.predict(X, exposure=exposure), exposure * model.predict(X))


# Mixtures, chains, factors.


@pytest.fixture
def clusters():
    rng = np.random.default_rng(3)
    centres = np.array([[-4.0, 0.0], [0.0, 5.0], [4.0, -1.0]])
    labels = rng.permutation(np.repeat([0, 1, 2], [120, 90, 60]))
    return centres[labels] + rng.normal(size=(270, 2)), labels, centres


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical"])
def test_a_mixture_recovers_clusters_and_agrees_with_scikit_learn(clusters, shape):
    from sklearn.metrics import adjusted_rand_score
    from sklearn.mixture import BayesianGaussianMixture as Theirs

    X, labels, centres = clusters
    mine = BayesianGaussianMixture(3, covariance_type=shape, n_init=5, random_state=0).fit(X)
    theirs = Theirs(n_components=3, covariance_type=shape, n_init=5, random_state=0, max_iter=500).fit(X)
    assert mine.trusted_ and adjusted_rand_score(labels, mine.predict(X)) > 0.98
    assert np.allclose(mine.weights_, np.array([120, 90, 60]) / 270, atol=0.02)
    assert np.allclose(mine.means_, centres, atol=0.4)
    assert adjusted_rand_score(mine.predict(X), theirs.predict(X)) > 0.98
    order = np.argsort(-theirs.weights_)
    assert np.allclose(mine.means_, theirs.means_[order], atol=0.1)
    assert np.abs(mine.predict_proba(X) - theirs.predict_proba(X)[:, order]).max() < 0.15
    # scikit-learn's prior has the covariance of all points, which widens components. Jensen's prior has a tenth of it.
    assert mine.score(X) == pytest.approx(theirs.score(X), abs=0.2)
    own = np.array([np.cov(X[labels == k].T) for k in range(3)])
    expected = {
        "full": own,
        "tied": np.average(own, axis=0, weights=[120, 90, 60]),
        "diag": own.diagonal(axis1=1, axis2=2),
        # One variance for both columns in standardised units is a ratio of variances in the units of the columns.
        "spherical": mine.covariances_[:, :1] * X.var(axis=0) / X[:, 0].var(),
    }
    assert np.allclose(mine.covariances_, expected[shape], atol=0.1)
    drawn, components = mine.sample(20_000)
    for k in range(3):
        assert np.allclose(drawn[components == k].mean(axis=0), mine.means_[k], atol=0.1)
        spread = np.cov(drawn[components == k].T)
        of_component = mine.covariances_ if shape == "tied" else mine.covariances_[k]
        assert np.allclose(spread, of_component if of_component.ndim == 2 else np.diag(of_component), atol=0.1)


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical"])
def test_weights_of_rows_count_copies(clusters, shape):
    X, *_ = clusters
    weights = np.random.default_rng(2).integers(0, 4, len(X))
    make = BayesianGaussianMixture(3, covariance_type=shape, n_init=8, tol=1e-11, random_state=0)
    copies = clone(make).fit(np.repeat(X, weights, axis=0))
    weighted = clone(make).fit(X, sample_weight=weights)
    assert weighted.lower_bound_ == pytest.approx(copies.lower_bound_, rel=1e-8)
    assert np.allclose(weighted.means_, copies.means_, atol=1e-4)
    assert np.allclose(weighted.score_samples(X), copies.score_samples(X), atol=1e-4)
    with pytest.raises(ValueError, match="weight"):
        make.fit(X, sample_weight=-np.ones(len(X)))


def test_a_mixture_accepts_missing_values_and_priors(clusters):
    X, labels, centres = clusters
    holes = X.copy()
    rng = np.random.default_rng(1)
    holes[rng.random(len(X)) < 0.2, 0] = np.nan
    mine = BayesianGaussianMixture(3, n_init=5, random_state=0).fit(holes)
    assert mine.trusted_ and np.allclose(mine.means_, centres, atol=0.5)
    # The density of a row with one missing value is the integral over that value.
    grid = np.column_stack([np.linspace(-60, 60, 2401), np.full(2401, 1.5)])
    whole = np.exp(mine.score_samples(grid)).sum() * 0.05
    assert mine.score_samples([[np.nan, 1.5]])[0] == pytest.approx(np.log(whole), abs=1e-3)
    assert mine.score_samples([[np.nan, np.nan]])[0] == pytest.approx(0, abs=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tight, wide = (
            BayesianGaussianMixture(3, random_state=0, n_init=3, variance_prior=v, variance_prior_weight=500.0).fit(X)
            for v in (0.01, 1.0)
        )
    assert (tight.covariances_[:, 0, 0] < 0.5 * wide.covariances_[:, 0, 0]).all()


def test_a_mixture_equals_the_fit_of_the_command_and_keeps_the_best_start(clusters, tmp_path):
    X, *_ = clusters
    np.save(tmp_path / "X.npy", X)
    command("mixture", "fit", tmp_path / "X.npy", "--components", 3, "--seed", 2, "--out", tmp_path / "out", "--quiet")
    theirs = json.loads((tmp_path / "out" / "fit.json").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = BayesianGaussianMixture(3, random_state=2).fit(X)
        starts = [BayesianGaussianMixture(3, random_state=seed).fit(X).lower_bound_ for seed in range(4)]
        best = BayesianGaussianMixture(3, random_state=0, n_init=4).fit(X)
        small = BayesianGaussianMixture(3, random_state=0, n_init=3, batch_size=30, max_iter=40).fit(X)
    assert mine.lower_bound_ == theirs["elbo"]
    assert mine.means_.tolist() == [row["mean"] for row in theirs["components"]]
    # Two starts may find one optimum with components in different orders, which changes the rounding of sums.
    assert best.lower_bound_ == pytest.approx(max(starts), rel=1e-12)
    assert small.lower_bound_ > max(starts) - 1


def test_a_chain_finds_states_by_their_order():
    rng = np.random.default_rng(0)
    # The emissions overlap, so only the order of the rows identifies the states.
    states = (np.arange(600) // 50) % 2
    X = np.where(states, 1.0, -1.0)[:, None] + rng.normal(size=(600, 1))
    chain = HiddenMarkov(2, n_init=5, random_state=0).fit(X, lengths=[300, 300])
    found = chain.predict(X, lengths=[300, 300])
    assert max((found == states).mean(), (found != states).mean()) > 0.97
    assert np.sort(chain.means_[:, 0]) == pytest.approx([-1, 1], abs=0.25)
    assert np.diag(chain.transmat_).min() > 0.9
    assert np.allclose(chain.transmat_.sum(axis=1), 1) and chain.startprob_.sum() == pytest.approx(1)
    shuffled = rng.permutation(X)
    assert chain.score(X) > chain.score(shuffled) + 0.1
    with pytest.raises(ValueError, match="lengths"):
        chain.predict(X, lengths=[100])


def test_factors_are_found_and_rows_are_their_sums():
    rng = np.random.default_rng(7)
    factors = np.array([[3.0, 0, 0, 3, 0, 0], [0, -4.0, 0, 0, 4, 0], [0, 0, 5.0, 0, 0, 5]])
    on = rng.random((400, 3)) < 0.4
    X = on @ factors + 0.3 * rng.normal(size=(400, 6))
    model = FactorialMixture(3, noise_variance=0.09, factor_variance=4.0, n_init=8, random_state=1).fit(X)
    distances = np.abs(model.components_[:, None] - factors[None]).max(axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2] and distances.min(axis=1).max() < 0.1
    codes = model.transform(X)
    assert ((codes[:, np.argsort(distances.argmin(axis=1))] > 0.5) == on).mean() > 0.99
    assert np.abs(model.inverse_transform(codes) - X).std() < 0.35
    assert list(model.get_feature_names_out()) == [f"factorialmixture{k}" for k in range(3)]


def test_counts_of_parts_are_whole_numbers(clusters):
    X, *_ = clusters
    for kind in (BayesianGaussianMixture, FactorialMixture, HiddenMarkov, AutoEncoder, LatentDirichletAllocation):
        with pytest.raises(ValueError, match="n_components=0: expected at least 1"):
            kind(0).fit(abs(X))
        with pytest.raises(TypeError, match="n_components=2.5: expected a whole number"):
            kind(2.5).fit(abs(X))
    with pytest.raises(TypeError, match="hidden=5: expected a sequence"):
        AutoEncoder(2, hidden=5).fit(X)


# Auto-encoders.


def test_a_linear_auto_encoder_finds_the_subspace():
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(2, 8))
    X = rng.normal(size=(600, 2)) @ directions + 0.3 * rng.normal(size=(600, 8))
    model = AutoEncoder(2, hidden=(), max_iter=400, optimizer="adam", learning_rate=0.01, random_state=0).fit(X)
    assert model.trusted_
    rebuilt = model.inverse_transform(model.transform(X))
    assert np.mean((rebuilt - X) ** 2) < 0.06 * X.var()
    # The bound reaches the log density of the true model.
    covariance = directions.T @ directions + 0.09 * np.eye(8)
    truth = stats.multivariate_normal(np.zeros(8), covariance).logpdf(X).mean()
    assert truth - 0.2 < model.score(X) < truth + 0.1
    assert model.score_samples(X, draws=1).mean() < model.score(X) + 0.02
    drawn = model.sample(4000)
    assert np.allclose(np.cov(drawn.T), covariance, atol=0.2 * np.abs(covariance).max())
    means, deviations = model.transform(X, return_std=True)
    assert np.array_equal(means, model.transform(X)) and (deviations > 0).all() and deviations.max() < 1
    assert list(model.get_feature_names_out()) == ["autoencoder0", "autoencoder1"]


def test_auto_encoders_of_counts_find_kinds_of_cells():
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.full(30, 0.5), size=2)
    kinds, totals = rng.integers(2, size=500), rng.integers(50, 500, size=500)
    X = rng.poisson(totals[:, None] * shares[kinds] * rng.gamma(2, 0.5, size=(500, 30)))
    model = AutoEncoder(
        1, hidden=(12,), decoder="negative-binomial", library_size=True, max_iter=60, optimizer="adam",
        learning_rate=0.01, validation_fraction=0.2, random_state=0,
    ).fit(X)  # fmt: skip
    assert model.trusted_ and model.info_["baseline"]["model"] == "independent negative binomial counts"
    codes = model.transform(X)[:, 0]
    assert max(np.mean((codes > np.median(codes)) == (kinds == kind)) for kind in (0, 1)) > 0.9
    # The density with the sizes and shares that made the rows.
    mean = X.sum(axis=1, keepdims=True) * shares[kinds]
    truth = stats.nbinom(2, 2 / (2 + mean)).logpmf(X).sum(axis=1).mean()
    assert truth - 2 < model.score(X) < truth + 2


def test_auto_encoders_impute_missing_values():
    rng = np.random.default_rng(3)
    loadings = np.array([1.0, -2.0, 0.5, 3.0, 1.5])
    X = rng.normal(size=(400, 1)) * loadings + 0.2 * rng.normal(size=(400, 5)) + 10
    gaps = rng.random(X.shape) < 0.2
    gaps[gaps.all(axis=1)] = False
    model = AutoEncoder(
        1, hidden=(16,), max_iter=300, batch_size=20, optimizer="adam", learning_rate=0.01, random_state=0
    ).fit(np.where(gaps, np.nan, X))
    assert model.info_["missing_values"] == gaps.sum()
    complete = model.impute(np.where(gaps, np.nan, X))
    assert np.array_equal(complete[~gaps], X[~gaps])
    assert np.mean((complete - X)[gaps] ** 2) < 0.15 * np.mean((X - 10)[gaps] ** 2)
    # The density of the values that are present.
    covariance = np.outer(loadings, loadings) + 0.04 * np.eye(5)
    truth = [
        stats.multivariate_normal(np.full((~gap).sum(), 10), covariance[np.ix_(~gap, ~gap)]).logpdf(row[~gap])
        for row, gap in zip(X, gaps, strict=True)
    ]
    assert abs(model.score(np.where(gaps, np.nan, X)) - np.mean(truth)) < 0.5


def test_auto_encoders_of_words_and_given_columns():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    species = np.array(["Adelie", "Chinstrap", "Gentoo"])[rng.integers(3, size=500)]
    code = np.searchsorted(["Adelie", "Chinstrap", "Gentoo"], species)
    frame = pandas.DataFrame(
        {
            "species": species,
            "length": 40 + 5.0 * code + rng.normal(size=500),
            "male": rng.integers(2, size=500),
            "visits": rng.poisson(1 + 2 * code),
        }
    )
    settings = dict(hidden=(24,), batch_size=20, optimizer="adam", learning_rate=0.01, max_iter=80, random_state=0)
    model = AutoEncoder(2, decoder="mixed", columns={"visits": "poisson"}, **settings).fit(frame)
    assert model.trusted_ and model.info_["baseline"]["model"] == "independent columns"
    assert model.categories_ == {"species": ["Adelie", "Chinstrap", "Gentoo"]}
    # The density of the process that made the rows, which a lower bound cannot exceed in expectation.
    density = (
        -np.log(3)
        + stats.norm(40 + 5.0 * code).logpdf(frame["length"])
        - np.log(2)
        + stats.poisson(1 + 2 * code).logpmf(frame["visits"])
    )
    assert density.mean() - 0.4 < model.score(frame) < density.mean() + 0.1
    drawn = model.sample(2000)
    assert set(drawn[:, 0]) == {0, 1, 2} and set(drawn[:, 2]) == {0, 1} and np.all(drawn[:, 3] % 1 == 0)
    assert np.allclose([drawn[drawn[:, 0] == k, 1].mean() for k in range(3)], [40, 45, 50], atol=1)
    gaps = frame.astype({"species": object})
    gaps.loc[::5, "species"] = None
    holed = AutoEncoder(2, decoder="mixed", **settings).fit(gaps)
    assert np.mean(holed.impute(gaps)[::5, 0] == code[::5]) > 0.9

    given = AutoEncoder(1, decoder="gaussian=free", given=["species"], **settings).fit(frame)
    rows = given.sample(1000, given={"species": "Gentoo"})
    assert np.all(rows[:, 0] == 2) and abs(rows[:, 1].mean() - 50) < 0.5
    assert abs(given.sample(1000, given={"species": "Adelie"})[:, 1].mean() - 40) < 0.8
    assert abs(given.inverse_transform([[0.0]], given={"species": "Adelie"})[0, 1] - 40) < 2
    assert given.transform(frame).shape == (500, 1)
    with pytest.raises(ValueError, match="Emperor"):
        given.sample(1, given={"species": "Emperor"})
    with pytest.raises(ValueError, match="species"):
        given.sample(1)
    with pytest.raises(ValueError, match="Emperor"):
        model.score(frame.replace("Gentoo", "Emperor"))
    # An array has the numbers of words, and columns are named by their positions.
    numbers = np.column_stack([code, frame["length"]])
    same = AutoEncoder(1, decoder="mixed", columns={0: "categorical"}, **settings).fit(numbers)
    assert set(same.sample(100)[:, 0]) <= {0, 1, 2} and clone(same).get_params()["columns"] == {0: "categorical"}


def test_auto_encoders_of_images():
    # A square of 3 × 3 pixels lies anywhere in 10 × 8 pixels, and one pixel in fifty is flipped.
    rng = np.random.default_rng(2)
    pictures = np.zeros((700, 10, 8), dtype=bool)
    for picture, row, column in zip(pictures, rng.integers(8, size=700), rng.integers(6, size=700)):
        picture[row : row + 3, column : column + 3] = True
    X = (pictures ^ (rng.random(pictures.shape) < 0.02)).reshape(700, -1).astype(float)
    train, test = X[:400], X[400:]
    settings = dict(decoder="bernoulli", hidden=(32,), activation="relu", optimizer="adam", learning_rate=0.003)
    settings |= dict(max_iter=150)
    for seed in range(3):
        settings["random_state"] = seed
        dense = AutoEncoder(2, **settings).fit(train).score(test)
        model = AutoEncoder(2, image=(10, 8), convolutions=(8, 16), **settings).fit(train)
        assert model.score(test) > dense + 2
    assert model.inverse_transform(model.transform(test)).shape == test.shape
    assert clone(model).get_params()["convolutions"] == (8, 16)
    with pytest.raises(ValueError, match="--image"):
        AutoEncoder(2, convolutions=(8,), **settings).fit(train)


def test_auto_encoders_with_heavy_tails():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 1)) * [1.0, -1.0] + 0.3 * rng.standard_t(2, size=(600, 2))
    settings = dict(hidden=(12,), optimizer="adam", learning_rate=0.01, max_iter=60, random_state=0, free_bits=0.05)
    train, test = X[:400], X[400:]
    normal = AutoEncoder(1, **settings).fit(train).score(test)
    assert AutoEncoder(1, decoder="student-t", **settings).fit(train).score(test) > normal + 0.05


def test_families_of_the_posterior():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(4000, 1)) @ [[1.0, -1.0, 0.5]] + 0.5 * rng.normal(size=(4000, 3))
    settings = dict(hidden=(), optimizer="adam", learning_rate=0.01, max_iter=30, random_state=0)
    bounds = {name: AutoEncoder(1, posterior=name, **settings).fit(X) for name in ("gaussian", "laplace")}
    assert bounds["laplace"].info_["architecture"]["posterior"] == "laplace"
    # The exact posterior of a linear factor is normal, so a Laplace posterior costs its divergence of 0.072 nats from a normal one.
    costs = bounds["gaussian"].bound_ - bounds["laplace"].bound_
    assert costs == pytest.approx(0.072, abs=0.06)
    with pytest.raises(ValueError, match="laplace, logistic"):
        AutoEncoder(1, posterior="normal", **settings).fit(X)


def test_auto_encoders_of_binary_rows_and_validation():
    rng = np.random.default_rng(1)
    prototypes = rng.random((4, 20)) < 0.5
    X = (prototypes[rng.integers(4, size=800)] ^ (rng.random((800, 20)) < 0.05)).astype(float)
    model = AutoEncoder(
        2, hidden=(30,), decoder="bernoulli", max_iter=40, validation_fraction=0.2, n_iter_no_change=10, random_state=0
    ).fit(X)
    # The model needs fewer nats than independent pixels with their own frequencies.
    shares = X.mean(axis=0)
    alone = (X * np.log(shares) + (1 - X) * np.log1p(-shares)).sum(axis=1).mean()
    assert model.score(X) > alone + 2
    assert model.info_["validation_records"] == 160 and model.info_["validation_bound"] > alone + 2
    assert set(np.unique(model.sample(50))) == {0.0, 1.0}
    with pytest.raises(ValueError, match="bernoulli"):
        model.fit(X + 0.5)
