#!/usr/bin/env python3
"""Measures other topic models on a corpus of `jensen topics build`, and scores all of them in the same way.

    python3 -m venv venv && venv/bin/pip install numpy scipy scikit-learn gensim tomotopy vowpalwabbit safetensors
    venv/bin/python tools/peers/topics.py CORPUS --topics 100 --jensen target/release/jensen
    venv/bin/python tools/peers/topics.py CORPUS --topics 100 --seeds 3 --passes 5 --tau 64 --peers sklearn,gensim,tomotopy \
        --jensen target/release/jensen --inference cvb0,mean-field

One pass in batches of 100 with tau 1024 and kappa 0.7 unless said otherwise; tomotopy's collapsed Gibbs sampling makes
--sweeps sweeps on one thread, with its own priors and its own learning of alpha. Documents a second are those of training alone; documents a
processor second divide by the time of all threads and processes, which a busy machine does not change much (for Jensen
those of the whole command, scores included). `--peers estimator` is Jensen's estimator in Python on the same matrix in memory
(`pip install '.[sklearn]'` in a clone), where all of `fit` is timed: taking the matrix over, bound and coherence. Every method's topics are scored by the same code: half of each held-out document's tokens, by a seeded shuffle, give its
topic proportions; the other half is scored with log sum_k theta_k beta_kv, in nats per word. Proportions are inferred by
the mean field at alpha = 1/K, and both by the mean field and by CVB0 at alpha = 0.01, 0.03, 0.1 and 0.3: what suits a
method's topics best is in the column `best`. Topics in use are exp of the entropy of their shares of the tokens (what a
method put above its prior). NPMI is the mean over topics and pairs of their ten likeliest words, by the training
documents. C_V is that of Röder, Both and Hinneburg (2015) for the same words, with whole documents as windows. Topics
that hold less than a thousandth of an even share of the tokens count neither for NPMI nor for C_V. `--threads` is the
number of threads of Jensen and tomotopy, and of worker processes of gensim. `gensim-hdp`, `tomotopy-hdp` and
`--flags '--learn-alpha hdp'` fit a hierarchical Dirichlet process with at most --topics topics.
"""

import argparse
import json
import os
import resource
import struct
import subprocess
import tempfile
import time
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import psi

BLOCK = 64


def read_corpus(path):
    """Training and held-out documents as sparse matrices, and the words. The layout is in crates/data/src/corpus."""
    data = open(path, "rb").read()
    assert data[:8] == b"JENSENCO" and data[-8:] == b"JENSENCE"
    tail = struct.unpack("<13Q", data[-144:-40])
    parts = [tail[0:4], tail[4:8]]
    words_at, terms, record_at = tail[8], tail[9], tail[10]

    def number(at):
        x = shift = 0
        while True:
            byte = data[at]
            at += 1
            x |= (byte & 127) << shift
            if byte < 128:
                return x, at
            shift += 7

    matrices = []
    for documents, _, _, index in parts:
        indptr, indices, counts = [0], [], []
        for block in range(-(-documents // BLOCK)):
            (at,) = struct.unpack_from("<Q", data, index + 8 * block)
            for _ in range(min(BLOCK, documents - block * BLOCK)):
                _, at = number(at)
                pairs, at = number(at)
                expected = 0
                for _ in range(pairs):
                    code, at = number(at)
                    term, count = expected + (code >> 1), 1
                    if code & 1:
                        count, at = number(at)
                        count += 2
                    indices.append(term)
                    counts.append(count)
                    expected = term + 1
                indptr.append(len(indices))
        matrices.append(csr_matrix((counts, indices, indptr), shape=(documents, terms), dtype=np.float64))
    return matrices[0], matrices[1], data[words_at:record_at].decode().split("\n")[:-1]


def score(heldout, lam, alpha, seed=0):
    """Mean log predictive probability in nats per word by document completion; its standard error over documents."""
    rng = np.random.default_rng(seed)
    elog = np.exp(psi(lam) - psi(lam.sum(1))[:, None])
    beta = lam / lam.sum(1)[:, None]
    scores, words = [], []
    for d in range(heldout.shape[0]):
        row = heldout[d]
        tokens = np.repeat(row.indices, row.data.astype(int))
        if len(tokens) < 2:
            continue
        rng.shuffle(tokens)
        half = len(tokens) // 2
        ids, counts = np.unique(tokens[:half], return_counts=True)
        table = elog[:, ids]
        gamma = np.full(lam.shape[0], alpha + half / lam.shape[0])
        for _ in range(200):
            t = np.exp(psi(gamma))
            new = alpha + t * (table @ (counts / (t @ table + 1e-100)))
            moved = np.abs(new - gamma).sum()
            gamma = new
            if moved < 1e-4 * half:
                break
        theta = gamma / gamma.sum()
        rest = tokens[half:]
        scores.append(np.log(theta @ beta[:, rest]).sum())
        words.append(len(rest))
    scores, words = np.array(scores), np.array(words)
    mean = scores.sum() / words.sum()
    return mean, np.sqrt(((scores - mean * words) ** 2).sum()) / words.sum()


def split(heldout, seed=0):
    """Returns halves of each document: words and counts of the first half, and tokens of the second."""
    rng = np.random.default_rng(seed)
    halves = []
    for d in range(heldout.shape[0]):
        row = heldout[d]
        tokens = np.repeat(row.indices, row.data.astype(int))
        if len(tokens) >= 2:
            rng.shuffle(tokens)
            half = len(tokens) // 2
            halves.append((*np.unique(tokens[:half], return_counts=True), tokens[half:]))
    return halves


def mean_field(counts, table, alpha):
    gamma = np.full(len(table), alpha + counts.sum() / len(table))
    for _ in range(100):
        t = np.exp(psi(gamma))
        new = alpha + t * (table @ (counts / (t @ table + 1e-100)))
        moved = np.abs(new - gamma).sum()
        gamma = new
        if moved < 1e-3 * counts.sum():
            break
    return gamma


def collapsed(counts, table, alpha):
    """CVB0 with all words at once."""
    phi = np.full(table.shape, 1.0 / len(table))
    gamma = alpha + phi @ counts
    for _ in range(100):
        phi = np.maximum(gamma[:, None] - phi, 0) * table
        phi /= phi.sum(0) + 1e-100
        new = alpha + phi @ counts
        moved = np.abs(new - gamma).sum()
        gamma = new
        if moved < 1e-3 * counts.sum():
            break
    return gamma


def best_score(heldout, lam):
    """Returns the best score over methods to infer proportions, and its method."""
    beta = lam / lam.sum(1)[:, None]
    geometric = np.exp(psi(lam) - psi(lam.sum(1))[:, None])
    halves = split(heldout)
    found = []
    for infer, topics in ((mean_field, geometric), (collapsed, beta)):
        for alpha in (0.01, 0.03, 0.1, 0.3):
            total = 0.0
            for words, counts, rest in halves:
                gamma = infer(counts, topics[:, words], alpha)
                total += np.log(gamma / gamma.sum() @ beta[:, rest]).sum()
            found.append((total / sum(len(rest) for *_, rest in halves), f"{infer.__name__} {alpha}"))
    return max(found)


def in_use(lam):
    """exp of the entropy of the topics' shares of the tokens, without the prior that every topic has for every word."""
    shares = np.maximum(lam - lam.min(), 0).sum(1)
    shares = shares[shares > 0] / shares.sum()
    return np.exp(-(shares * np.log(shares)).sum())


def coherence(train, lam, count=10):
    """Returns NPMI and C_V, averaged over topics."""
    seen = (train > 0).astype(np.float64).tocsc()
    documents = train.shape[0]
    beta = lam / lam.sum(1)[:, None]
    topics, similar = [], []
    shares = np.maximum(lam - lam.min(), 0).sum(1)
    for row in beta[shares > 1e-3 * shares.mean()]:
        top = seen[:, np.argsort(-row)[:count]]
        together = np.asarray((top.T @ top).todense()) / documents
        single = np.diag(together)
        pairs = [(i, j) for i in range(count) for j in range(i)]
        values = [
            -1.0 if together[p] == 0 else np.log(together[p] / (single[p[0]] * single[p[1]])) / -np.log(together[p])
            for p in pairs
        ]
        topics.append(np.mean(values))
        # The context vectors hold the NPMI of a word with each word, with the small constant of the authors.
        product, tiny = np.outer(single, single), 1e-12
        informative = np.maximum(product, tiny)
        context = np.log((together + tiny) / informative) / np.maximum(-np.log(together + tiny), tiny)
        whole = context.sum(0)
        lengths = np.linalg.norm(context, axis=1) * np.linalg.norm(whole)
        similar.append(np.mean(context @ whole / np.maximum(lengths, tiny)))
    return np.mean(topics), np.mean(similar)


def batches(train, order, size):
    for start in range(0, len(order), size):
        yield train[order[start : start + size]]


def processor_seconds():
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


def fit_sklearn(train, args):
    import sklearn
    from sklearn.decomposition import LatentDirichletAllocation

    order = np.random.default_rng(args.seed).permutation(train.shape[0])
    model = LatentDirichletAllocation(
        args.topics, learning_method="online", batch_size=args.batch, learning_offset=args.tau, learning_decay=0.7,
        total_samples=train.shape[0], random_state=args.seed, n_jobs=args.jobs, mean_change_tol=args.tolerance,
    )
    start = time.perf_counter()
    for _ in range(args.passes):
        for batch in batches(train, order, args.batch):
            model.partial_fit(batch)
    return f"scikit-learn {sklearn.__version__}", time.perf_counter() - start, model.components_


def fit_gensim(train, args):
    import gensim
    from gensim.models import LdaModel, LdaMulticore

    order = np.random.default_rng(args.seed).permutation(train.shape[0])
    documents = [list(zip(train[d].indices.tolist(), train[d].data.tolist())) for d in order]
    start = time.perf_counter()
    settings = dict(
        num_topics=args.topics, id2word={v: str(v) for v in range(train.shape[1])}, chunksize=args.batch,
        passes=args.passes, offset=args.tau, decay=0.7, alpha="symmetric", eta=1.0 / args.topics, eval_every=None,
        random_state=args.seed, dtype=np.float32,
    )
    if args.threads == 1:
        model = LdaModel(documents, update_every=1, **settings)
    else:
        model = LdaMulticore(documents, workers=args.threads, **settings)
    return f"gensim {gensim.__version__}", time.perf_counter() - start, model.state.get_lambda().astype(float)


def fit_gensim_hdp(train, args):
    import gensim
    from gensim.models import HdpModel

    order = np.random.default_rng(args.seed).permutation(train.shape[0])
    documents = [list(zip(train[d].indices.tolist(), train[d].data.astype(int).tolist())) for d in order]
    words = {v: str(v) for v in range(train.shape[1])}
    start = time.perf_counter()
    model = HdpModel(
        documents, words, T=args.topics, chunksize=args.batch, tau=args.tau, kappa=0.7, random_state=args.seed,
        max_chunks=args.passes * -(-len(documents) // args.batch),
    )
    return f"gensim {gensim.__version__}, HDP", time.perf_counter() - start, model.m_lambda + model.m_eta


def fit_tomotopy(train, args, hdp=False):
    import tomotopy

    if hdp:
        model = tomotopy.HDPModel(initial_k=2, seed=args.seed + 1)
    else:
        model = tomotopy.LDAModel(k=args.topics, seed=args.seed + 1)
    for d in range(train.shape[0]):
        row = train[d]
        model.add_doc([str(v) for v in np.repeat(row.indices, row.data.astype(int))])
    start = time.perf_counter()
    model.train(args.sweeps, workers=args.threads)
    seconds = time.perf_counter() - start
    topics = [k for k in range(model.k) if not hdp or model.is_live_topic(k)]
    lam = np.full((len(topics), train.shape[1]), model.eta)
    words = np.array([int(word) for word in model.used_vocabs])
    for row, k in enumerate(topics):
        lam[row, words] = model.get_topic_word_dist(k, normalize=False)
    return f"tomotopy {tomotopy.__version__}, {'HDP, ' * hdp}{args.sweeps} sweeps", seconds, lam


def fit_vw(train, args):
    """Times the learner, which reads a text file as its command does. The time excludes writing the file."""
    import vowpalwabbit

    order = np.random.default_rng(args.seed).permutation(train.shape[0])
    bits = int(np.ceil(np.log2(train.shape[1])))
    with tempfile.TemporaryDirectory() as folder:
        data, readable = os.path.join(folder, "data.vw"), os.path.join(folder, "model.txt")
        with open(data, "w") as out:
            for d in order:
                row = train[d]
                pairs = " ".join(f"{v}:{int(n)}" for v, n in zip(row.indices, row.data))
                out.write(f"| {pairs}\n")
        start = time.perf_counter()
        learner = vowpalwabbit.Workspace(
            f"-d {data} -b {bits} --lda {args.topics} --lda_alpha {1 / args.topics} --lda_rho {1 / args.topics} "
            f"--lda_D {train.shape[0]} --minibatch {args.batch} --power_t 0.7 --initial_t 1024 --noconstant --quiet "
            f"--random_seed {args.seed} --readable_model {readable}"
        )
        # A finished workspace reads its whole data file.
        learner.finish()
        seconds = time.perf_counter() - start
        lam = np.full((args.topics, train.shape[1]), 1.0 / args.topics)
        for line in open(readable):
            fields = line.split()
            if len(fields) >= args.topics + 1 and fields[0].isdigit() and int(fields[0]) < train.shape[1]:
                lam[:, int(fields[0])] = [float(x) for x in fields[1 : args.topics + 1]]
    return f"Vowpal Wabbit {vowpalwabbit.__version__}", seconds, lam


def fit_estimator(train, args, temper):
    import jensen
    from jensen.sklearn import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        args.topics, batch_size=args.batch, learning_offset=1024.0, max_iter=1, temper=temper, random_state=args.seed,
        inference="mean-field",
    )
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    own = model.info_["docs_per_second"]
    return f"jensen.sklearn {jensen.__version__}, temper {temper} (training alone {own:.0f})", seconds, model.components_


def fit_jensen(train, args, temper, inference):
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as folder:
        command = [args.jensen, "topics", "fit", args.corpus, "--topics", str(args.topics), "--batch", str(args.batch)]
        command += ["--passes", str(args.passes), "--tau", str(args.tau), "--inference", inference]
        command += ["--temper", temper, "--seed", str(args.seed), "--evaluations", "0", "--out", folder, "--json"]
        command += ["--threads", str(args.threads)] + args.flags.split()
        fit = json.loads(subprocess.run(command, capture_output=True).stdout)
        lam = load_file(os.path.join(folder, "approximation.safetensors"))["topics.lambda"].T
    own = fit["heldout_log_predictive"]
    flags = " ".join(["", *args.flags.split()])
    name = f"Jensen {fit['version']}, {inference}, temper {temper}{flags} (its own score {own:.4f})"
    return name, args.passes * train.shape[0] / fit["docs_per_second"], lam


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each method, from --seed on")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--tau", type=float, default=1024.0)
    parser.add_argument("--tolerance", type=float, default=1e-3, help="mean_change_tol of scikit-learn")
    parser.add_argument("--sweeps", type=int, default=200, help="of tomotopy")
    parser.add_argument("--inference", default="mean-field", help="of Jensen, separated by commas")
    parser.add_argument("--flags", default="", help="further flags of Jensen")
    parser.add_argument("--threads", type=int, default=1, help="of Jensen, gensim and tomotopy")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes of scikit-learn")
    parser.add_argument("--peers", default="sklearn,gensim,vw")
    parser.add_argument("--jensen", help="the command")
    parser.add_argument("--temper", default="none", help="temperature policies of Jensen, separated by commas")
    args = parser.parse_args()
    train, heldout, _ = read_corpus(args.corpus)
    print(
        "| method | seed | documents | documents/s | documents/processor second | processor seconds | held out, nats/word "
        "| best | topics in use | NPMI | C_V | seconds of training |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    others = {"sklearn": fit_sklearn, "gensim": fit_gensim, "tomotopy": fit_tomotopy, "vw": fit_vw}
    others |= {"gensim-hdp": fit_gensim_hdp, "tomotopy-hdp": partial(fit_tomotopy, hdp=True)}
    peers = list(filter(None, args.peers.split(",")))
    runs = [others[peer] for peer in peers if peer in others]
    tempers = args.temper.split(",")
    runs += [partial(fit_estimator, temper=temper) for temper in tempers if "estimator" in peers]
    ways = [(way, temper) for way in args.inference.split(",") for temper in tempers if args.jensen]
    runs += [partial(fit_jensen, inference=way, temper=temper) for way, temper in ways]
    first = args.seed
    for run, args.seed in [(run, first + seed) for run in runs for seed in range(args.seeds)]:
        before = processor_seconds()
        name, seconds, lam = run(train, args)
        processor = processor_seconds() - before
        mean, error = score(heldout, lam, 1.0 / args.topics)
        best, way = best_score(heldout, lam)
        npmi, cv = coherence(train, lam)
        n = train.shape[0]
        seen = n * (args.sweeps if "sweeps" in name else args.passes)
        print(
            f"| {name} | {args.seed} | {n} | {seen / seconds:.0f} | {seen / processor:.0f} | {processor:.1f} "
            f"| {mean:.4f} ± {error:.4f} | {best:.4f} ({way}) | {in_use(lam):.1f} | {npmi:.3f} | {cv:.3f} | {seconds:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
