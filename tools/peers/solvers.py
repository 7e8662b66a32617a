"""Times gradients by stanli beside the gradients of the example `solver_speed`, in the same run.

    pip install stanli==0.24.0 numpy
    cargo run --release -p jensen-stan --example solver_speed -- models/lynx_hare_predators | python solvers.py
"""

import json
import pathlib
import statistics
import sys
import time

import numpy as np
import stanli


def main():
    given = json.load(sys.stdin)
    folder = pathlib.Path(given["folder"])
    model = stanli.Model(stan_code=(folder / "model.stan").read_text(), data=str(folder / "data.json"))
    points = np.array(given["points"])
    rounds = []
    for _ in range(5):
        start = time.process_time()
        values = [model.log_prob_grad(z)[0] for z in points]
        rounds.append((time.process_time() - start) / len(points))
    peer = statistics.median(rounds)
    # Values may differ by a constant that stanli drops.
    difference = np.array(given["values"]) - np.array(values)
    print(f"stanli {1e6 * peer:.1f} us a gradient, Jensen {1e6 * given['seconds']:.1f} us: {peer / given['seconds']:.1f} "
          f"times; values differ by a constant up to {np.ptp(difference):.1e}")


if __name__ == "__main__":
    main()
