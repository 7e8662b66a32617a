#!/usr/bin/env python3
"""Measures other topic models on a corpus of `jensen topics build`, and scores all of them in the same way.

    python3 -m venv venv && venv/bin/pip install numpy scipy scikit-learn gensim vowpalwabbit safetensors
    venv/bin/python tools/peers/topics.py CORPUS --topics 100 --jensen target/release/jensen

One pass in batches of 100 with tau 1024 and kappa 0.7. Documents a second are those of training alone; documents a
processor second divide by the time of all threads and processes, which a busy machine does not change much (for Jensen
those of the whole command, scores included). `--peers estimator` is Jensen's estimator in Python on the same matrix in memory
(`pip install '.[sklearn]'` in a clone), where all of `fit` is timed: taking the matrix over, bound and coherence. Every method's topics are scored by the same code: half of each held-out document's tokens, by a seeded shuffle, give its
topic proportions by variational inference at alpha = 1/K; the other half is scored with log sum_k theta_k beta_kv, in
nats a word.
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
    """Mean log predictive probability in nats a word by document completion; its standard error over documents."""
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
        args.topics, learning_method="online", batch_size=args.batch, learning_offset=1024.0, learning_decay=0.7,
        total_samples=train.shape[0], random_state=args.seed, n_jobs=args.jobs,
    )
    start = time.perf_counter()
    for batch in batches(train, order, args.batch):
        model.partial_fit(batch)
    return f"scikit-learn {sklearn.__version__}", time.perf_counter() - start, model.components_


def fit_gensim(train, args):
    import gensim
    from gensim.models import LdaModel

    order = np.random.default_rng(args.seed).permutation(train.shape[0])
    documents = [list(zip(train[d].indices.tolist(), train[d].data.tolist())) for d in order]
    start = time.perf_counter()
    model = LdaModel(
        documents, num_topics=args.topics, id2word={v: str(v) for v in range(train.shape[1])}, chunksize=args.batch,
        passes=1, update_every=1, offset=1024.0, decay=0.7, alpha="symmetric", eta=1.0 / args.topics, eval_every=None,
        random_state=args.seed, dtype=np.float32,
    )
    return f"gensim {gensim.__version__}", time.perf_counter() - start, model.state.get_lambda().astype(float)


def fit_vw(train, args):
    """The learner reads a text file, as its command does; the making of the file is not timed."""
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
        # A workspace with a data file reads all of it as it is finished.
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
        args.topics, batch_size=args.batch, learning_offset=1024.0, max_iter=1, temper=temper, random_state=args.seed
    )
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    own = model.info_["docs_per_second"]
    return f"jensen.sklearn {jensen.__version__}, temper {temper} (training alone {own:.0f})", seconds, model.components_


def fit_jensen(train, args, temper):
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as folder:
        command = [args.jensen, "topics", "fit", args.corpus, "--topics", str(args.topics), "--batch", str(args.batch)]
        command += ["--temper", temper, "--seed", str(args.seed), "--evaluations", "0", "--out", folder, "--json"]
        fit = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        lam = load_file(os.path.join(folder, "approximation.safetensors"))["topics.lambda"].T
    own = fit["heldout_log_predictive"]
    name = f"Jensen {fit['version']}, temper {temper} (its own score {own:.4f})"
    return name, train.shape[0] / fit["docs_per_second"], lam


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes of scikit-learn")
    parser.add_argument("--peers", default="sklearn,gensim,vw")
    parser.add_argument("--jensen", help="the command")
    parser.add_argument("--temper", default="none", help="temperature policies of Jensen, separated by commas")
    args = parser.parse_args()
    train, heldout, _ = read_corpus(args.corpus)
    print("| method | documents | documents/s | documents/processor second | held out, nats/word |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    others = {"sklearn": fit_sklearn, "gensim": fit_gensim, "vw": fit_vw}
    peers = list(filter(None, args.peers.split(",")))
    runs = [others[peer] for peer in peers if peer in others]
    own = [fit_estimator] * ("estimator" in peers) + [fit_jensen] * bool(args.jensen)
    runs += [partial(fit, temper=temper) for fit in own for temper in args.temper.split(",")]
    for run in runs:
        before = processor_seconds()
        name, seconds, lam = run(train, args)
        processor = processor_seconds() - before
        mean, error = score(heldout, lam, 1.0 / args.topics)
        n = train.shape[0]
        print(
            f"| {name} | {n} | {n / seconds:.0f} | {n / processor:.0f} | {mean:.4f} ± {error:.4f} |", flush=True
        )


if __name__ == "__main__":
    main()
