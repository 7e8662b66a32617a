"""Computes eigenvalues, eigenvectors, singular values and Schur forms of matrices, with gradients and second derivatives, by mpmath with
40 digits.

    pip install mpmath; python decompositions.py > ../../crates/stan/tests/reference/decompositions.json

Eigenvectors have length 1 and a positive largest component. Eigenvalues are in ascending order of their real parts. Singular vectors are
pairs, which the script rotates together until the largest component of both is positive. It computes singular values and vectors from
the matrix times its adjoint, that is, in another way than the Rust code.
"""

from mpmath import *

from derivatives import case, write

mp.dps = 45


def unit(v, beside=()):
    """A list of numbers of length 1, turned with another one until the largest of all is positive."""
    size = sqrt(fsum(abs(x) ** 2 for x in v))
    largest = max([*v, *beside], key=abs)
    turn = conj(largest) / abs(largest)
    return [x * turn / size for x in v]


def pairs(a):
    values, vectors = eig(a)
    found = [(values[j], unit([vectors[i, j] for i in range(a.rows)])) for j in range(a.rows)]
    return sorted(found, key=lambda pair: (round(float(re(pair[0])), 9), -float(im(pair[0]))))


def svd_of(a):
    """Triples of the left vector, the singular value and the right vector, largest first."""
    found = []
    for value, v in reversed(pairs(a.H * a)):
        s = sqrt(re(value))
        u = [x / s for x in a * matrix(v)]
        found.append((unit(u, v), s, unit(v, u)))
    return found


# The matrices of statements: general ones, real and complex, a Hermitian one, and one with more rows than columns.
REAL = "[[x0, x1, 0.3], [-0.8, 1.5, x0 * x1], [0.2, 0.4, -1]]"
COMPLEX = "to_complex([[x0, x1, 0.3], [-0.8, 1.5, x0 * x1], [0.2, 0.4, -1]], [[0.1, x1, 0], [0.5, x0, 0.7], [-0.6, 0.2, 0.4]])"
HERMITIAN = "to_complex([[x0, x1, 0.3], [x1, 1.5, 0.2], [0.3, 0.2, x0 * x1]], [[0, 0.4, -x0], [-0.4, 0, 0.7], [x0, -0.7, 0]])"
TALL = "to_complex([[x0, x1], [-0.8, 1.5], [0.2, x0]], [[0.1, x1], [0.5, x0], [-0.6, 0.2]])"


def real(a, b):
    return matrix([[a, b, mpf("0.3")], [mpf("-0.8"), mpf("1.5"), a * b], [mpf("0.2"), mpf("0.4"), -1]])


def complex_(a, b):
    imaginary = matrix([[mpf("0.1"), b, 0], [mpf("0.5"), a, mpf("0.7")], [mpf("-0.6"), mpf("0.2"), mpf("0.4")]])
    return real(a, b) + mpc(0, 1) * imaginary


def hermitian(a, b):
    re_ = matrix([[a, b, mpf("0.3")], [b, mpf("1.5"), mpf("0.2")], [mpf("0.3"), mpf("0.2"), a * b]])
    im_ = matrix([[0, mpf("0.4"), -a], [mpf("-0.4"), 0, mpf("0.7")], [a, mpf("-0.7"), 0]])
    return re_ + mpc(0, 1) * im_


def tall(a, b):
    re_ = matrix([[a, b], [mpf("-0.8"), mpf("1.5")], [mpf("0.2"), a]])
    im_ = matrix([[mpf("0.1"), b], [mpf("0.5"), a], [mpf("-0.6"), mpf("0.2")]])
    return re_ + mpc(0, 1) * im_


def some(z):
    """A real number that depends on both parts."""
    return 2 * re(z) + 3 * im(z)


def stan(z):
    return f"2 * get_real({z}) + 3 * get_imag({z})"


CASES = []
POINT = [(0.4, 1.3)]
for text, of in [(REAL, real), (COMPLEX, complex_)]:
    for k in range(3):
        CASES.append((stan(f"eigenvalues({text})[{k + 1}]"), lambda a, b, of=of, k=k: some(pairs(of(a, b))[k][0]), POINT))
    for i, j in [(0, 0), (2, 1), (1, 2)]:
        CASES.append((stan(f"eigenvectors({text})[{i + 1}, {j + 1}]"), lambda a, b, of=of, i=i, j=j: some(pairs(of(a, b))[j][1][i]), POINT))
    CASES.append((stan(f"(eigendecompose({text}).1[1, 2] * eigendecompose({text}).2[3])"), lambda a, b, of=of: some(pairs(of(a, b))[1][1][0] * pairs(of(a, b))[2][0]), POINT))
# A pair of complex numbers of a real matrix.
TURN = "[[x0, -2, 0.1], [1.5, x1, 0.3], [0.2, 0.1, 4]]"
turn = lambda a, b: matrix([[a, -2, mpf("0.1")], [mpf("1.5"), b, mpf("0.3")], [mpf("0.2"), mpf("0.1"), 4]])
for k in range(2):
    CASES.append((stan(f"eigenvalues({TURN})[{k + 1}]"), lambda a, b, k=k: some(pairs(turn(a, b))[k][0]), POINT))
    CASES.append((stan(f"eigenvectors({TURN})[2, {k + 1}]"), lambda a, b, k=k: some(pairs(turn(a, b))[k][1][1]), POINT))
for k in range(3):
    CASES.append((stan(f"eigenvalues_sym({HERMITIAN})[{k + 1}]"), lambda a, b, k=k: some(pairs(hermitian(a, b))[k][0]), POINT))
    CASES.append((stan(f"eigenvectors_sym({HERMITIAN})[2, {k + 1}]"), lambda a, b, k=k: some(pairs(hermitian(a, b))[k][1][1]), POINT))
CASES.append((stan(f"eigendecompose_sym({HERMITIAN}).1[3, 1]"), lambda a, b: some(pairs(hermitian(a, b))[0][1][2]), POINT))
for text, of in [(TALL, tall), (TALL + "'", lambda a, b: tall(a, b).T)]:
    for k in range(2):
        CASES.append((f"singular_values({text})[{k + 1}]", lambda a, b, of=of, k=k: triples(of(a, b))[k][1], POINT))
    CASES.append((stan(f"svd_U({text})[2, 1]"), lambda a, b, of=of: some(triples(of(a, b))[0][0][1]), POINT))
    CASES.append((stan(f"svd_V({text})[1, 2]"), lambda a, b, of=of: some(triples(of(a, b))[1][2][0]), POINT))
    CASES.append((stan(f"(svd({text}).1[1, 2] * svd({text}).2[1] * svd({text}).3[2, 1])"), lambda a, b, of=of: some(triples(of(a, b))[1][0][0] * triples(of(a, b))[0][1] * triples(of(a, b))[0][2][1]), POINT))


def triples(a):
    """The values of the smaller dimension."""
    if a.rows >= a.cols:
        return svd_of(a)
    # A = U S Vᴴ of the adjoint is V S Uᴴ.
    return [(v, s, u) for u, s, v in svd_of(a.H)]


write([case(text, f, point) for text, f, points in CASES for point in points])
