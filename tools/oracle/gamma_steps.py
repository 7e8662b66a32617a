"""Computes differences of log gamma, digamma and trigamma functions for `crates/math/tests/it/gamma_steps.rs`.

    pip install mpmath && python tools/oracle/gamma_steps.py
"""

from mpmath import loggamma, mp, mpf, psi

# Differences of numbers near 1e300 that are near 1e-300.
mp.dps = 700

for x in (0.03, 0.7, 3.0, 8.4, 8.6, 40.0, 1e3, 1e7, 1e12, 1e20, 1e150, 1e300):
    for n in (0.5, 1.0, 7.0, 350.0):
        at, end = mpf(x), mpf(x) + mpf(n)
        steps = (loggamma(end) - loggamma(at), psi(0, end) - psi(0, at), psi(1, end) - psi(1, at))
        print(f"    [{x!r}, {n!r}, {', '.join(repr(float(step)) for step in steps)}],")
