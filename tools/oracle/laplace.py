"""Write crates/stan/tests/reference/laplace.json and models/gp_poisson_laplace/oracle.json: Laplace's approximation of latent
Gaussian models in 60 digits.

    pip install mpmath==1.3.0
    python tools/oracle/laplace.py

Each case is a Stan program without data whose log density is one call of an embedded Laplace approximation, a point, and
there the value and the gradient. The likelihood is written out here a second time. The mode is found by Newton's method
in the latent variables, all derivatives are central differences with steps of 1e-15 in arithmetic of 60 digits, and
the formula is that of Rasmussen and Williams (2006), equation 3.32: ll(f) - f' inv(K) f / 2 - log |I + K W| / 2.
"""

import json
import pathlib
import random

import mpmath
from mpmath import mp, mpf, matrix

mp.dps = 60
H = mpf("1e-15")
ROOT = pathlib.Path(__file__).parents[2]
OUT = ROOT / "crates/stan/tests/reference/laplace.json"
CORPUS = ROOT / "models/gp_poisson_laplace"


def gradient(f, x):
    moved = lambda i, h: [v + (h if k == i else 0) for k, v in enumerate(x)]
    return [(8 * (f(moved(i, H)) - f(moved(i, -H))) - f(moved(i, 2 * H)) + f(moved(i, -2 * H))) / (12 * H)
            for i in range(len(x))]


def hessian(f, x):
    n = len(x)
    def at(i, a, j, b):
        y = list(x)
        y[i] += a * H
        y[j] += b * H
        return f(y)
    out = matrix(n, n)
    for i in range(n):
        for j in range(n):
            mixed = lambda s: (at(i, s, j, s) - at(i, s, j, -s) - at(i, -s, j, s) + at(i, -s, j, -s)) / (4 * s * s * H * H)
            out[i, j] = (4 * mixed(1) - mixed(2)) / 3
    return out


def marginal(ll, covariance, gradient=gradient, hessian=hessian):
    n = covariance.rows
    inverse = covariance ** -1
    theta = [mpf(0)] * n
    objective = lambda t: ll(t) - (matrix(t).T * inverse * matrix(t))[0] / 2
    for _ in range(60):
        slope = matrix(gradient(ll, theta)) - inverse * matrix(theta)
        w = -hessian(ll, theta)
        step = mp.lu_solve(inverse + w, slope)
        scale = mpf(1)
        while objective([t + scale * s for t, s in zip(theta, step)]) < objective(theta) and scale > mpf("1e-20"):
            scale /= 2
        theta = [t + scale * s for t, s in zip(theta, step)]
        if max(abs(s) for s in step) < mpf("1e-24"):
            break
    w = -hessian(ll, theta)
    return objective(theta) - mp.log(mp.det(mp.eye(n) + covariance * w)) / 2


def exponentiated(n, s, l):
    k = lambda i, j: s ** 2 * mp.exp(-((i - j) / l) ** 2 / 2) + (mpf("0.01") if i == j else 0)
    return matrix([[k(i, j) for j in range(n)] for i in range(n)])


Y = [1, 3, 0, 6, 2, 11]
IX = [1, 2, 2, 3, 4, 4]
B = [1, 0, 1, 1, 0, 1]
X = [mpf(x) for x in ("0.3", "-1.2", "2.5", "0.1")]
poisson = lambda y, eta: y * eta - mp.exp(eta) - mp.loggamma(y + 1)
bernoulli = lambda y, eta: -mp.log1p(mp.exp(-eta if y else eta))


def negative_binomial(y, eta, phi):
    mu = mp.exp(eta)
    return (mp.loggamma(y + phi) - mp.loggamma(phi) - mp.loggamma(y + 1)
            + phi * mp.log(phi / (mu + phi)) + y * mp.log(mu / (mu + phi)))


def student(x, nu, mu, sigma):
    return (mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi) / 2 - mp.log(sigma)
            - (nu + 1) / 2 * mp.log1p(((x - mu) / sigma) ** 2 / nu))


FUNCTIONS = """functions {
  matrix K(real s, real l, int n) {
    matrix[n, n] k;
    for (i in 1:n) for (j in 1:n) k[i, j] = s^2 * exp(-0.5 * ((i - j) / l)^2) + (i == j ? 0.01 : 0);
    return k;
  }
  real counts(vector theta, real e, array[] int y) { return poisson_log_lpmf(y | theta + e); }
  real robust(vector theta, real sigma, vector x) { return student_t_lpdf(x | 4, theta, sigma); }
  real paired(vector theta, real c, vector x) {
    real total = 0;
    for (i in 1:2) total += -c * square(theta[2 * i - 1] - sin(theta[2 * i])) - exp(theta[2 * i] * x[i]) + theta[2 * i - 1];
    return total;
  }
}
transformed data {
  array[6] int y = {1, 3, 0, 6, 2, 11};
  array[6] int ix = {1, 2, 2, 3, 4, 4};
  array[6] int b = {1, 0, 1, 1, 0, 1};
  vector[4] x = [0.3, -1.2, 2.5, 0.1]';
}
parameters { real s; real l; real e; }
model { target += CALL; }
"""

OPTIONS = "(rep_vector(0.1, 4), 1e-9, 200, SOLVER, 50, 1)"
CASES = {
    "counts": ("laplace_marginal(counts, (e, y), 1, K, (s, l, 6))", 6,
               lambda t, e: sum(poisson(y, v + e) for y, v in zip(Y, t))),
    "counts in one block": ("laplace_marginal(counts, (e, y), 6, K, (s, l, 6))", 6,
                            lambda t, e: sum(poisson(y, v + e) for y, v in zip(Y, t))),
    "student": (f"laplace_marginal_tol(robust, (e, x), 1, K, (s, l, 4), {OPTIONS.replace('SOLVER', '3')})", 4,
                lambda t, e: sum(student(x, mpf(4), v, e) for x, v in zip(X, t))),
    "pairs": (f"laplace_marginal_tol(paired, (e, x), 2, K, (s, l, 4), {OPTIONS.replace('SOLVER', '2')})", 4,
              lambda t, e: sum(-e * (t[2 * i] - mp.sin(t[2 * i + 1])) ** 2 - mp.exp(t[2 * i + 1] * X[i]) + t[2 * i]
                               for i in range(2))),
    "poisson": ("laplace_marginal_poisson_log_lpmf(y | ix, rep_vector(e, 4), 1, K, (s, l, 4))", 4,
                lambda t, e: sum(poisson(Y[i], t[ix - 1] + e) for i, ix in enumerate(IX))),
    "poisson tol": (f"laplace_marginal_tol_poisson_log_lpmf(y | ix, rep_vector(e, 4), 1, K, (s, l, 4), {OPTIONS.replace('SOLVER', '1')})", 4,
                    lambda t, e: sum(poisson(Y[i], t[ix - 1] + e) for i, ix in enumerate(IX))),
    "bernoulli": ("laplace_marginal_bernoulli_logit_lpmf(b | ix, rep_vector(e, 4), 1, K, (s, l, 4))", 4,
                  lambda t, e: sum(bernoulli(B[i], t[ix - 1] + e) for i, ix in enumerate(IX))),
    "bernoulli tol": (f"laplace_marginal_tol_bernoulli_logit_lpmf(b | ix, rep_vector(e, 4), 2, K, (s, l, 4), {OPTIONS.replace('SOLVER', '1')})", 4,
                      lambda t, e: sum(bernoulli(B[i], t[ix - 1] + e) for i, ix in enumerate(IX))),
    "negative binomial": ("laplace_marginal_neg_binomial_2_log_lpmf(y | ix, rep_vector(e, 4), [0.1, e, 0.2, 0]', 1, K, (s, l, 4))", 4,
                          lambda t, e: sum(negative_binomial(Y[i], t[ix - 1] + [mpf("0.1"), e, mpf("0.2"), 0][ix - 1], e)
                                           for i, ix in enumerate(IX))),
    "negative binomial tol": (f"laplace_marginal_tol_neg_binomial_2_log_lpmf(y | ix, rep_vector(e, 4), rep_vector(0.3, 4), 1, K, (s, l, 4), {OPTIONS.replace('SOLVER', '1')})", 4,
                              lambda t, e: sum(negative_binomial(Y[i], t[ix - 1] + mpf("0.3"), e)
                                               for i, ix in enumerate(IX))),
}
POINTS = [("0.7", "2.0", "0.4"), ("1.9", "0.6", "1.3")]


def program(data, z):
    """Value with constants and Jacobian, without the Jacobian, and with dropped constants, of the program of the corpus."""
    length, amplitude = mp.exp(z[0]), mp.exp(z[1])
    x, counts = [mpf(v) for v in data["x"]], data["k"]
    n = len(x)
    entry = lambda i, j: (amplitude ** 2 * mp.exp(-((x[i] - x[j]) / length) ** 2 / 2)
                          + (mpf(1e-10) if i == j else 0))
    found = marginal(lambda t: sum(poisson(k, v) for k, v in zip(counts, t)),
                     matrix([[entry(i, j) for j in range(n)] for i in range(n)]),
                     lambda _, t: [k - mp.exp(v) for k, v in zip(counts, t)],
                     lambda _, t: -mp.diag([mp.exp(v) for v in t]))
    kernel = found - amplitude ** 2 / 8 + 24 * mp.log(length) - 4 * length
    constants = -mp.log(2 * mp.pi) / 2 - mp.log(2) + 25 * mp.log(4) - mp.loggamma(25)
    return kernel + constants + z[0] + z[1], kernel + constants, kernel + z[0] + z[1]


def corpus():
    data = json.loads((CORPUS / "data.json").read_text())
    rng = random.Random("gp_poisson_laplace")
    drawn = [("zeros", [0.0, 0.0])]
    drawn += [("normal(0, 0.5)", [rng.gauss(0, 0.5), rng.gauss(0, 0.5)]) for _ in range(3)]
    drawn += [("uniform(-2, 2)", [rng.uniform(-2, 2), rng.uniform(-2, 2)]) for _ in range(3)]
    drawn += [("near the posterior mean", [1.7, 1.05])]
    answer = {"tool": "mpmath", "version": mpmath.__version__, "dim": 2, "names": ["length_scale", "amplitude"],
              "constrained_names": ["length_scale", "amplitude"], "drawn": [label for label, _ in drawn],
              "points": [z for _, z in drawn], "value": [], "gradient": [], "value_no_jacobian": [], "value_propto": [],
              "constrained": [], "skipped": []}
    step = mpf("1e-9")
    for z in answer["points"]:
        at = [mpf(v) for v in z]
        full, plain, dropped = program(data, at)
        moved = lambda i, h: program(data, [v + (h if k == i else 0) for k, v in enumerate(at)])[0]
        answer["value"].append(float(full))
        answer["gradient"].append([float((moved(i, step) - moved(i, -step)) / (2 * step)) for i in range(2)])
        answer["value_no_jacobian"].append(float(plain))
        answer["value_propto"].append(float(dropped))
        answer["constrained"].append([float(mp.exp(v)) for v in at])
    def text(value):
        if isinstance(value, list) and value and isinstance(value[0], list):
            return "[\n" + ",\n".join("    " + json.dumps(v) for v in value) + "\n  ]"
        return json.dumps(value)
    lines = ",\n".join(f"  {json.dumps(k)}: {text(v)}" for k, v in answer.items())
    (CORPUS / "oracle.json").write_text(f"{{\n{lines}\n}}\n")


LARGE = [1000000, 1100000, 1250000, 1400000, 1500000, 1450000, 1300000, 1150000, 1000000, 900000, 850000]


def large():
    """Value and gradient at amplitudes and length scales of a smooth Gaussian process for counts of a million."""
    x = [mpf(-10 + 2 * i) for i in range(11)]
    def of(s, l):
        entry = lambda i, j: s ** 2 * mp.exp(-((x[i] - x[j]) / l) ** 2 / 2) + (mpf(1e-8) if i == j else 0)
        covariance = matrix([[entry(i, j) for j in range(11)] for i in range(11)])
        return marginal(lambda t: sum(poisson(y, v) for y, v in zip(LARGE, t)), covariance,
                        lambda _, t: [y - mp.exp(v) for y, v in zip(LARGE, t)],
                        lambda _, t: -mp.diag([mp.exp(v) for v in t]))
    cases, h = [], mpf("1e-9")
    for s, l in ((5, 6), (20, 10), (5, 1)):
        s, l = mpf(s), mpf(l)
        slopes = [(of(s + h, l) - of(s - h, l)) / (2 * h), (of(s, l + h) - of(s, l - h)) / (2 * h)]
        cases.append({"point": [float(s), float(l)], "value": float(of(s, l)), "gradient": [float(v) for v in slopes]})
    return cases


def main():
    corpus()
    cases = []
    for name, (call, n, ll) in CASES.items():
        for point in POINTS:
            at = [mpf(v) for v in point]
            of = lambda p: marginal(lambda t: ll(t, p[2]), exponentiated(n, p[0], p[1]))
            value = of(at)
            step = mpf("1e-9")
            slopes = []
            for i in range(3):
                moved = lambda h: of([v + (h if k == i else 0) for k, v in enumerate(at)])
                slopes.append((moved(step) - moved(-step)) / (2 * step))
            cases.append({"name": name, "call": call, "point": [float(v) for v in at],
                          "value": float(value), "gradient": [float(v) for v in slopes]})
            print(name, point, mp.nstr(value, 17), flush=True)
    lines = ",\n".join("    " + json.dumps(case) for case in cases)
    counts = ",\n".join("    " + json.dumps(case) for case in large())
    OUT.write_text(f'{{\n  "functions": {json.dumps(FUNCTIONS)},\n  "cases": [\n{lines}\n  ],\n'
                   f'  "large": [\n{counts}\n  ]\n}}\n')


main()
