"""Write models/<name>/oracle.json with reference values from stanli.

    pip install stanli==0.24.0 bridgestan numpy
    python make_oracle.py [MODEL ...]

stanli evaluates a Stan program through Stan's own compiler front end and maths
library. It reports log densities as Stan's samplers see them: constants of `~`
statements dropped, Jacobian included. The other variants come from rewritten
programs (stan_source.py), and the value without Jacobian is the difference to
the density of a program that has the same parameters and an empty model.
"""

import json
import math
import pathlib
import sys
import zlib

import numpy as np
import stanli

import stan_source

# Largest difference of two solvers, relative to values and elements of gradients above 1.
SOLVER_TOLERANCE = 1e-5

MODELS_DIR = pathlib.Path(__file__).resolve().parents[2] / "models"


def points(name, dim):
    """Returns unconstrained points with the source of each."""
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    drawn = [("zeros", np.zeros(dim))]
    drawn += [("normal(0, 0.5)", 0.5 * rng.standard_normal(dim)) for _ in range(3)]
    drawn += [("uniform(-2, 2)", rng.uniform(-2, 2, dim)) for _ in range(3)]
    drawn += [("normal(0, 3)", 3 * rng.standard_normal(dim))]
    return drawn


def near_mode(source, data, name, dim):
    """Returns a point near the optimum, if the optimiser finds one."""
    try:
        found = stanli.Model(stan_code=source, data=data).optimize(seed=1, iter=500).unconstrained
    except RuntimeError:
        return []
    if not np.all(np.isfinite(found)) or np.max(np.abs(found)) > 1e6:
        return []
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode()) + 1))
    return [("mode + normal(0, 0.05)", found + 0.05 * rng.standard_normal(dim))]


def evaluate(model, z):
    try:
        value, gradient = model.log_density_gradient(z)
    except RuntimeError:
        return math.nan, np.full(len(z), math.nan)
    return value, gradient


def ill_conditioned(model, z, value, gradient):
    """Whether value and gradient disagree because of rounding or a kink.

    A probability that rounds to one, for instance, leaves few true digits in the
    logarithm of its complement, and other correct programs would differ there.
    """
    rng = np.random.Generator(np.random.PCG64(0))
    at = lambda step: evaluate(model, z + step)[0]
    for _ in range(6):
        nearby = 1e-13 * rng.choice([-1.0, 1.0], len(z))
        if not abs(at(nearby) - value - gradient @ nearby) <= 1e-10 * max(1, abs(value)):
            return True
        along = rng.choice([-1.0, 1.0], len(z))
        slopes = [(8 * (at(h * along) - at(-h * along)) - at(2 * h * along) + at(-2 * h * along)) / (12 * h)
                  for h in (1e-3, 1e-4, 1e-5, 1e-6)]
        scale = max(1, np.max(np.abs(gradient)), 1e-6 * abs(value))
        if not np.nanmin(np.abs(np.array(slopes) - gradient @ along)) <= 1e-5 * scale:
            return True
    return False


def same(found, expected):
    """Whether value and gradient agree to a tenth of what the tests allow."""
    flat = lambda pair: np.append(pair[1], pair[0])
    a, b = flat(found), flat(expected)
    return bool(np.all(np.abs(a - b) <= 0.1 * SOLVER_TOLERANCE * np.maximum(1, np.abs(b))))


def oracle(name):
    folder = MODELS_DIR / name
    given = (folder / "model.stan").read_text()
    data = (folder / "data.json").read_text()
    # Solve again with a tighter tolerance, and omit points at which this matters.
    source = stan_source.tightened(given)
    loose = stanli.bridgestan_model(stan_code=stan_source.keep_constants(given), data=data)
    build = lambda code: stanli.bridgestan_model(stan_code=code, data=data)
    full = build(stan_source.keep_constants(source))
    dropped = build(source)
    jacobian = build(stan_source.jacobian_only(source))
    answer = {
        "tool": "stanli", "version": stanli.__version__,
        "dim": full.param_unc_num(),
        "names": full.param_unc_names(),
        "constrained_names": full.param_names(include_tp=True),
        "drawn": [], "points": [], "value": [], "gradient": [],
        "value_no_jacobian": [], "value_propto": [], "constrained": [], "skipped": [],
    }
    if source != given:
        answer["tolerance"] = SOLVER_TOLERANCE
    dim = full.param_unc_num()
    for label, z in points(name, dim) + near_mode(source, data, name, dim):
        value, gradient = evaluate(full, z)
        finite = math.isfinite(value) and np.all(np.isfinite(gradient))
        if not finite or ill_conditioned(full, z, value, gradient):
            answer["skipped"].append({"drawn": label, "why": "ill-conditioned" if finite else "not finite",
                                      "point": z.tolist()})
            continue
        if source != given and not same(evaluate(loose, z), (value, gradient)):
            answer["skipped"].append({"drawn": label, "why": "the solver's tolerance shows",
                                      "point": z.tolist()})
            continue
        answer["drawn"].append(label)
        answer["points"].append(z.tolist())
        answer["value"].append(value)
        answer["gradient"].append(gradient.tolist())
        log_jacobian = evaluate(jacobian, z)[0]
        value_propto, gradient_propto = evaluate(dropped, z)
        exact = 1e-10 if source == given else 1e-7
        if not np.allclose(gradient, gradient_propto, rtol=exact, atol=exact * np.max(np.abs(gradient))):
            raise ArithmeticError(f"the gradient depends on the constants at {label}")
        answer["value_no_jacobian"].append(value - log_jacobian)
        answer["value_propto"].append(value_propto)
        answer["constrained"].append(full.param_constrain(z, include_tp=True).tolist())
    return answer


def write(path, answer):
    """Writes one line per list of numbers, so that changes are short."""
    def text(value):
        if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
            return "[\n" + ",\n".join("    " + json.dumps(v) for v in value) + "\n  ]"
        return json.dumps(value)
    path.write_text("{\n" + ",\n".join(f"  {json.dumps(k)}: {text(v)}" for k, v in answer.items()) + "\n}\n")


def main():
    failed = 0
    for name in sys.argv[1:] or sorted(str(p.parent.relative_to(MODELS_DIR))
                                       for p in MODELS_DIR.rglob("model.stan")):
        try:
            answer = oracle(name)
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:600]}")
            continue
        write(MODELS_DIR / name / "oracle.json", answer)
        print(f"{name}: dim {answer['dim']}, {len(answer['points'])} points, skipped "
              f"{[(s['drawn'], s['why']) for s in answer['skipped']]}, values {[float('%.6g' % v) for v in answer['value'][:3]]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
