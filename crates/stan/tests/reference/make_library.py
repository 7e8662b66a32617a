"""Write library.json: values of library functions at points, from stanli.

    pip install stanli==0.24.0 bridgestan numpy
    python make_library.py

stanli keeps every constant of some densities that Stan's library drops (KEEPS), and uses only the first of several
length-scales of a Gaussian process kernel: such cases are left out.

Every case is a program with one parameter `p`, evaluated at p = 0. Constants of `~` statements are dropped as Stan's
samplers drop them; what counts as constant is decided by which arguments depend on p.
"""

import json
import math
import pathlib

import numpy as np
import stanli

HERE = pathlib.Path(__file__).resolve().parent

S3 = "[[2, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.1]]"
W3 = "[[1.3, -0.2, 0.4], [-0.2, 0.9, 0.1], [0.4, 0.1, 2.2]]"
L3 = "[[1.2, 0, 0], [-0.4, 0.8, 0], [0.3, 0.5, 1.7]]"
M3 = "[[0.9, 0, 0], [0.2, 1.1, 0], [-0.6, 0.4, 0.7]]"
C3 = "[[1, 0.3, -0.2], [0.3, 1, 0.5], [-0.2, 0.5, 1]]"
K3 = "[[1, 0, 0], [0.3, 0.9539392014169457, 0], [-0.2, 0.4, 0.8944271909999159]]"
X = "[[0.3, -1.2], [1.5, 0.4], [-0.7, 0.8], [0.1, 0.2]]"
I, R, V, RV, M = "int", "real", "vector[%d]", "row_vector[%d]", "matrix[%d,%d]"

# Distribution: kind (f real, m int), then lists of arguments (type, literal), variate first.
UNIVARIATE = {
    "normal": [["1.3", "0.4", "0.7"], ["-2.1", "0.4", "1.7"]],
    "std_normal": [["1.3"], ["-0.2"]],
    "cauchy": [["1.3", "0.4", "0.7"], ["-25.0", "0.4", "1.7"]],
    "student_t": [["1.3", "3.5", "0.4", "0.7"], ["-4.0", "1.2", "0.4", "1.7"]],
    "double_exponential": [["1.3", "0.4", "0.7"], ["-2.1", "0.4", "1.7"]],
    "logistic": [["1.3", "0.4", "0.7"], ["-2.1", "0.4", "1.7"]],
    "gumbel": [["1.3", "0.4", "0.7"], ["-2.1", "0.4", "1.7"]],
    "uniform": [["1.3", "0.4", "2.7"]],
    "skew_normal": [["1.3", "0.4", "0.7", "2.2"], ["-1.1", "0.4", "1.7", "-1.3"]],
    "exp_mod_normal": [["1.3", "0.4", "0.7", "2.2"], ["-1.1", "0.4", "1.7", "0.3"]],
    "skew_double_exponential": [["1.3", "0.4", "0.7", "0.2"], ["-1.1", "0.4", "1.7", "0.6"]],
    "von_mises": [["1.3", "0.4", "0.7"], ["-2.1", "0.4", "5.7"]],
    "lognormal": [["1.3", "0.4", "0.7"], ["0.2", "0.4", "1.7"]],
    "chi_square": [["1.3", "3.4"], ["9.2", "1.7"]],
    "inv_chi_square": [["1.3", "3.4"], ["0.2", "1.7"]],
    "scaled_inv_chi_square": [["1.3", "3.4", "0.8"], ["0.2", "1.7", "1.2"]],
    "exponential": [["1.3", "3.4"], ["0.2", "0.7"]],
    "gamma": [["1.3", "3.4", "0.8"], ["0.2", "0.7", "1.2"]],
    "inv_gamma": [["1.3", "3.4", "0.8"], ["0.2", "0.7", "1.2"]],
    "weibull": [["1.3", "3.4", "0.8"], ["0.2", "0.7", "1.2"]],
    "frechet": [["1.3", "3.4", "0.8"], ["0.2", "0.7", "1.2"]],
    "rayleigh": [["1.3", "3.4"], ["0.2", "0.7"]],
    "pareto": [["1.3", "0.4", "0.8"], ["2.2", "0.7", "1.2"]],
    "pareto_type_2": [["1.3", "0.4", "0.8", "1.2"], ["2.2", "0.7", "1.2", "3.1"]],
    "loglogistic": [["1.3", "3.4", "0.8"], ["0.2", "0.7", "1.2"]],
    "beta": [["0.3", "3.4", "0.8"], ["0.2", "0.7", "1.2"]],
    "beta_proportion": [["0.3", "0.4", "3.8"], ["0.2", "0.7", "1.2"]],
}
COUNTS = {
    "bernoulli": [["1", "0.3"], ["0", "0.3"]],
    "bernoulli_logit": [["1", "0.3"], ["0", "-1.3"]],
    "binomial": [["3", "8", "0.3"], ["0", "5", "0.8"]],
    "binomial_logit": [["3", "8", "0.3"], ["0", "5", "-1.8"]],
    "beta_binomial": [["3", "8", "0.3", "1.7"], ["0", "5", "2.8", "0.6"]],
    "poisson": [["3", "2.2"], ["0", "0.8"]],
    "poisson_log": [["3", "2.2"], ["0", "-0.8"]],
    "neg_binomial": [["3", "2.2", "0.6"], ["0", "0.8", "2.1"]],
    "neg_binomial_2": [["3", "2.2", "0.6"], ["0", "0.8", "2.1"]],
    "neg_binomial_2_log": [["3", "2.2", "0.6"], ["0", "0.8", "2.1"]],
    "beta_neg_binomial": [["3", "2.2", "0.6", "1.4"], ["0", "0.8", "2.1", "3.3"]],
    "yule_simon": [["3", "2.2"], ["1", "0.8"]],
    "hypergeometric": [["2", "4", "5", "6"]],
    "discrete_range": [["2", "1", "6"]],
}
OTHER = {
    "multi_normal": [[(V % 3, "[0.2, 1.1, -0.4]'"), (V % 3, "[0.1, 0.3, 0.2]'"), (M % (3, 3), S3)]],
    "multi_normal_cholesky": [[(V % 3, "[0.2, 1.1, -0.4]'"), (V % 3, "[0.1, 0.3, 0.2]'"), (M % (3, 3), L3)],
                              [("array[2] vector[3]", "{[0.2, 1.1, -0.4]', [1.0, 0.1, 0.3]'}"), (V % 3, "[0.1, 0.3, 0.2]'"), (M % (3, 3), L3)]],
    "multi_normal_prec": [[(V % 3, "[0.2, 1.1, -0.4]'"), (V % 3, "[0.1, 0.3, 0.2]'"), (M % (3, 3), S3)]],
    "multi_student_t": [[(V % 3, "[0.2, 1.1, -0.4]'"), (R, "3.3"), (V % 3, "[0.1, 0.3, 0.2]'"), (M % (3, 3), S3)]],
    "multi_student_t_cholesky": [[(V % 3, "[0.2, 1.1, -0.4]'"), (R, "3.3"), (V % 3, "[0.1, 0.3, 0.2]'"), (M % (3, 3), L3)]],
    "dirichlet": [[("simplex[3]", "[0.2, 0.5, 0.3]'"), (V % 3, "[1.3, 0.4, 2.2]'")]],
    "lkj_corr": [[(M % (3, 3), C3), (R, "1.7")], [(M % (3, 3), C3), (R, "1.0")]],
    "lkj_corr_cholesky": [[(M % (3, 3), K3), (R, "1.7")], [(M % (3, 3), K3), (R, "1.0")]],
    "lkj_cov": [[(M % (3, 3), S3), (V % 3, "[0.1, 0.2, 0.3]'"), (V % 3, "[1.1, 0.7, 0.9]'"), (R, "1.7")]],
    "wishart": [[(M % (3, 3), W3), (R, "4.5"), (M % (3, 3), S3)]],
    "inv_wishart": [[(M % (3, 3), W3), (R, "4.5"), (M % (3, 3), S3)]],
    "wishart_cholesky": [[(M % (3, 3), M3), (R, "4.5"), (M % (3, 3), L3)]],
    "inv_wishart_cholesky": [[(M % (3, 3), M3), (R, "4.5"), (M % (3, 3), L3)]],
    "normal_id_glm": [[(V % 4, "[0.3, 1.2, -0.5, 0.9]'"), (M % (4, 2), X), (R, "0.3"), (V % 2, "[0.7, -0.4]'"), (R, "1.3")],
                      [(V % 4, "[0.3, 1.2, -0.5, 0.9]'"), (M % (4, 2), X), (V % 4, "[0.1, 0.2, 0.3, 0.4]'"), (V % 2, "[0.7, -0.4]'"), (V % 4, "[1.3, 0.9, 0.8, 1.1]'")]],
}
OTHER_COUNTS = {
    "categorical": [[(I, "2"), ("simplex[3]", "[0.2, 0.5, 0.3]'")]],
    "categorical_logit": [[(I, "2"), (V % 3, "[0.2, 0.5, -0.3]'")]],
    "multinomial": [[("array[3] int", "{2, 0, 5}"), ("simplex[3]", "[0.2, 0.5, 0.3]'")]],
    "multinomial_logit": [[("array[3] int", "{2, 0, 5}"), (V % 3, "[0.2, 0.5, -0.3]'")]],
    "dirichlet_multinomial": [[("array[3] int", "{2, 0, 5}"), (V % 3, "[1.2, 0.5, 2.3]'")]],
    "ordered_logistic": [[(I, "2"), (R, "0.4"), (V % 3, "[-0.5, 0.8, 2.1]'")], [("array[3] int", "{1, 4, 2}"), (V % 3, "[0.4, 0.1, 3.0]'"), (V % 3, "[-0.5, 0.8, 2.1]'")]],
    "ordered_probit": [[(I, "2"), (R, "0.4"), (V % 3, "[-0.5, 0.8, 2.1]'")], [(I, "4"), (R, "0.4"), (V % 3, "[-0.5, 0.8, 2.1]'")]],
    "bernoulli_logit_glm": [[("array[4] int", "{1, 0, 0, 1}"), (M % (4, 2), X), (R, "0.3"), (V % 2, "[0.7, -0.4]'")]],
    "binomial_logit_glm": [[("array[4] int", "{1, 0, 3, 1}"), ("array[4] int", "{4, 2, 3, 6}"), (M % (4, 2), X), (R, "0.3"), (V % 2, "[0.7, -0.4]'")]],
    "poisson_log_glm": [[("array[4] int", "{1, 0, 3, 1}"), (M % (4, 2), X), (R, "0.3"), (V % 2, "[0.7, -0.4]'")]],
    "neg_binomial_2_log_glm": [[("array[4] int", "{1, 0, 3, 1}"), (M % (4, 2), X), (R, "0.3"), (V % 2, "[0.7, -0.4]'"), (R, "1.4")]],
    "categorical_logit_glm": [[("array[4] int", "{1, 3, 3, 2}"), (M % (4, 2), X), (V % 3, "[0.1, 0.2, -0.3]'"), (M % (2, 3), "[[0.1, 0.4, 0.3], [-0.2, 0.5, 0.9]]")]],
    "ordered_logistic_glm": [[("array[4] int", "{1, 4, 3, 2}"), (M % (4, 2), X), (V % 2, "[0.7, -0.4]'"), (V % 3, "[-0.5, 0.8, 2.1]'")]],
}

# Expressions of type real; `p` is the parameter, so that nothing is folded.
REALS = """
Phi(-1.7+p) Phi_approx(0.6+p) acos(0.3+p) acosh(1.7+p) asin(0.3+p) asinh(-0.8+p) atan(2.2+p) atanh(0.4+p) cbrt(-2.3+p)
ceil(1.2+p) cos(2.2+p) cosh(0.7+p) digamma(0.3+p) digamma(7.7+p) digamma(-1.3+p) erf(0.6+p) erfc(2.6+p) exp(1.3+p) exp2(1.3+p) expm1(1e-5+p)
floor(-1.2+p) inv(0.3+p) inv_Phi(0.003+p) inv_Phi(0.73+p) inv_cloglog(-0.7+p) inv_erfc(0.3+p) inv_logit(-3.2+p) inv_sqrt(0.7+p) inv_square(0.7+p)
lambert_w0(1.3+p) lambert_w0(-0.3+p) lambert_wm1(-0.2+p) lgamma(3.3+p) lgamma(-1.4+p) log(2.2+p) log10(2.2+p) log2(2.2+p) log1m(0.2+p) log1m_exp(-0.3+p)
log1m_exp(-3.3+p) log1m_inv_logit(0.7+p) log1p(0.4+p) log1p_exp(1.4+p) log_inv_logit(-2.2+p) logit(0.2+p) round(2.5+p) sin(0.3+p) sinh(0.3+p)
sqrt(0.3+p) square(1.3+p) std_normal_log_qf(-2.2+p) std_normal_qf(0.2+p) tan(0.3+p) tanh(0.3+p) tgamma(3.3+p) trigamma(0.7+p) trigamma(9.7+p) trunc(-1.7+p)
atan2(0.3+p,-1.2+p) bessel_first_kind(2,3.3+p) bessel_second_kind(1,3.3+p) beta(1.3+p,2.2+p) binary_log_loss(1,0.3+p)
falling_factorial(3.3+p,2) fdim(2.2+p,1.1+p) fmax(2.2+p,1.1+p) fmin(2.2+p,1.1+p) fmod(5.3+p,2.1+p) gamma_p(1.3+p,0.7+p) gamma_q(1.3+p,4.7+p)
hypot(1.3+p,0.7+p) lbeta(1.3+p,22.2+p) lchoose(7.3+p,2.2+p) ldexp(1.3+p,3) lmgamma(3,2.2+p) lmultiply(1.3+p,2.2+p) log_diff_exp(2.2+p,1.1+p)
log_falling_factorial(5.3+p,2.0+p) log_inv_logit_diff(1.2+p,0.3+p) log_modified_bessel_first_kind(1.3+p,2.2+p) log_rising_factorial(2.2+p,1.4+p)
modified_bessel_first_kind(1,1.3+p) modified_bessel_second_kind(2,1.3+p) owens_t(0.7+p,1.9+p) owens_t(-0.7+p,0.4+p) pow(1.3+p,2.2+p) rising_factorial(2.2+p,3)
fma(1.1+p,2.2+p,3.3+p) abs(-1.3+p) step(0.2+p) log_sum_exp(1.2+p,0.4+p) log_mix(0.3+p,1.2+p,0.4+p)
log_sum_exp([1.2,0.4,-3]'+p) mean([1.2,0.4,-3]'+p) variance([1.2,0.4,-3]'+p) sd([1.2,0.4,-3]'+p) max([1.2,0.4,-3]'+p)
min([1.2,0.4,-3]'+p) sum([1.2,0.4,-3]'+p) prod([1.2,0.4,-3]'+p) dot_self([1.2,0.4,-3]'+p)
squared_distance([1.2,0.4]'+p,[0.1,0.2]'+p) dot_product([1.2,0.4]'+p,[0.1,0.2]'+p)
log_determinant(W+p) quad_form(W+p,v+p) quad_form_sym(S+p,v+p)
choose(7,3)+p
""".split()

VECTORS = """
softmax(v+p) log_softmax(v+p) cumulative_sum(v+p) sort_asc(v+p) sort_desc(v+p) reverse(v+p) head(v+p,2) tail(v+p,2) segment(v+p,2,2) eigenvalues_sym(S+p)
mdivide_left_tri_low(L+p,v+p) mdivide_left_spd(S+p,v+p) (W+p)\\(v+p) diagonal(W+p) rows_dot_self(B+p) rows_dot_product(B+p,B+1) append_row(v+p,2.2) linspaced_vector(5,1,3)+p
W*(v+p) (v+p).*v (v+p)./(v+2) (v+p).^2 v^1+p 3-(v+p) -(v+p) sub_col(W+p,2,1,2) col(W+p,2) csr_matrix_times_vector(3,3,csr_extract_w(W),csr_extract_v(W),csr_extract_u(W),v+p)
""".split()

MATRICES = """
cholesky_decompose(S+p) inverse(W+p) inverse_spd(S+p) matrix_exp(W+p) crossprod(B+p) tcrossprod(B+p) multiply_lower_tri_self_transpose(L+p)
diag_pre_multiply(v+p,W) diag_post_multiply(W+p,v) quad_form(W+p,B+p) quad_form_sym(S+p,B+p) quad_form_diag(S+p,v) mdivide_left(W+p,B+p) mdivide_right(B'+p,W+p) mdivide_left_tri_low(L+p,B+p)
mdivide_right_tri_low(B'+p,L+p) mdivide_left_spd(S+p,B+p) mdivide_right_spd(B'+p,S+p) add_diag(W+p,v) W*(B+p) (W+p)/S append_col(W+p,v) append_row(W+p,v') block(W+p,2,1,2,2) rep_matrix(v+p,2) to_matrix(v+p,1,3)
gp_exp_quad_cov({0.1,0.9,2.2},1.3+p,0.7+p) gp_exponential_cov({0.1,0.9,2.2},1.3+p,0.7+p) gp_matern32_cov({0.1,0.9,2.2},1.3+p,0.7+p) gp_matern52_cov({0.1,0.9,2.2},1.3+p,0.7+p)
""".split()

SHARED = f"""vector[3] v = [0.7, -0.4, 1.9]';
  matrix[3, 3] W = [[1.3, -0.2, 0.4], [0.5, 0.9, 0.1], [0.7, -0.3, 2.2]];
  matrix[3, 3] S = {S3};
  matrix[3, 3] L = {L3};
  matrix[3, 2] B = [[0.4, 1.2], [-0.7, 0.3], [0.2, 0.8]];"""


def programs():
    for table, suffix in [(UNIVARIATE, "lpdf"), (COUNTS, "lpmf"), (OTHER, "lpdf"), (OTHER_COUNTS, "lpmf")]:
        for name, calls in table.items():
            for call in calls:
                args = call
                if not isinstance(call[0], tuple):
                    ints = {"lpdf": 0, "lpmf": 1}[suffix]
                    if name in ("binomial", "binomial_logit", "beta_binomial"):
                        ints = 2
                    if name in ("hypergeometric", "discrete_range"):
                        ints = 4
                    args = [(I if i < ints else R, text) for i, text in enumerate(call)]
                yield from density(name, suffix, args)
    for e in REALS:
        yield "function", SHARED, f"target += {e};"
    for e in VECTORS:
        yield "function", SHARED, f"vector[num_elements({e})] r = {e}; target += dot_product(r, linspaced_vector(num_elements(r), 1, 2));"
    for e in MATRICES:
        yield "function", SHARED, (f"vector[num_elements({e})] r = to_vector({e}); "
                                   "target += dot_product(r, linspaced_vector(num_elements(r), 1, 2));")


def density(name, suffix, args):
    n = len(args)
    real = [i for i, (kind, _) in enumerate(args) if "int" not in kind]
    patterns = [set(real)] + [{i} for i in real] if len(real) > 1 else [set(real)]
    for varying in patterns:
        given, local, names = [], [], []
        for i, (kind, text) in enumerate(args):
            kind = kind.replace("simplex", "vector")
            if i in varying:
                if kind.startswith("array"):
                    body = f"{kind} a{i} = {text}; a{i}[1] += 0 * p;"
                else:
                    body = f"{kind} a{i} = {text} + 0 * p;"
                local.append(body)
            else:
                given.append(f"{kind} a{i} = {text};")
            names.append(f"a{i}")
        rest = ", ".join(names[1:])
        if varying == patterns[0]:
            yield "density", "\n  ".join(given), " ".join(local) + f" target += {name}_{suffix}(a0 | {rest});"
            if len(args[0][0]) <= 4 and name + "_lcdf" in CDFS:
                for cdf in ("lcdf", "lccdf", "cdf"):
                    call = f"{name}_{cdf}(a0 | {rest})"
                    yield "tail", "\n  ".join(given), " ".join(local) + f" target += {call};"
        if name not in KEEPS:
            yield "dropped", "\n  ".join(given), " ".join(local) + f" a0 ~ {name}({rest});"


KEEPS = {"multi_student_t", "multi_student_t_cholesky", "lkj_cov", "wishart", "inv_wishart", "wishart_cholesky",
         "inv_wishart_cholesky"}
CDFS = {f"{n}_lcdf" for n in list(UNIVARIATE) + list(COUNTS)} - {
    "bernoulli_logit_lcdf", "binomial_logit_lcdf", "poisson_log_lcdf", "neg_binomial_2_log_lcdf", "hypergeometric_lcdf",
    # A series cut short: three digits.
    "beta_neg_binomial_lcdf"}


def main():
    cases, failed = [], []
    for kind, given, model in programs():
        code = f"transformed data {{\n  {given}\n}}\nparameters {{ real p; }}\nmodel {{ {model} }}\n"
        try:
            value = stanli.bridgestan_model(stan_code=code, data="{}").log_density(np.zeros(1))
        except Exception as error:
            failed.append((model, str(error)[:150].replace("\n", " ")))
            continue
        if not math.isfinite(value):
            failed.append((model, str(value)))
            continue
        cases.append({"kind": kind, "given": given, "model": model, "value": value})
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    (HERE / "library.json").write_text("[\n" + lines + "\n]\n")
    print(len(cases), "cases")
    for model, error in failed:
        print("FAILED", model, error)


if __name__ == "__main__":
    main()
