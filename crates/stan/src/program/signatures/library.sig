# The functions of the Stan library, and the types of their arguments and results.
#
# The signatures are those that `stanc --dump-stan-math-signatures` prints (stanc3 2.39), in a compact notation. The
# dump states neither which arguments must be data nor the signatures of higher-order functions. These facts come from
# stanc's error messages. To update the table, expand it (`BuiltinId::signatures`), compare the result with the dump
# of the newer stanc, and edit the lines that differ.
#
# A line without indentation lists functions, and a trailing `\` continues the list on the next line. The indented
# lines below it are the signatures of these functions, in the form `(arguments) -> result`. `|` separates
# alternatives, and every combination of alternatives is a signature. `T[]` is an array of T, `T[2]` is an array with
# two dimensions, and `T[0..7]` stands for T, T[] and so on up to T[7]. The arguments may follow one of these
# prefixes:
#
#   `$ = a|b:`   repeats the line with each of the types in place of `$`;
#   `[0..7]`     repeats the line with each of these numbers of array dimensions around every type marked by `*`.
#
# `any` is every type except arrays, tuples and functions. An argument of type `data T` must not depend on parameters.
# `fn(…) -> T` is the type of a function argument. In it, `...` stands for further arguments, which the call then
# takes as well, and `$slice` stands for the array type that the function takes.
#
# Abbreviations:
class scalar = int|real
class ints = int|int[]
class reals = real|real[]|vector|row_vector
class vectors = vector|vector[]|row_vector|row_vector[]
class sequences = int[]|real[]|vector|row_vector
class numbers = int|int[]|real|real[]|vector|row_vector
class any = int|real|complex|vector|row_vector|matrix|complex_vector|complex_row_vector|complex_matrix

abs
    [0..7] (int*) -> int*
    [0..7] (real*|complex*) -> real*
    [0..7] (vector*|complex_vector*) -> vector*
    [0..7] (row_vector*|complex_row_vector*) -> row_vector*
    [0..7] (matrix*|complex_matrix*) -> matrix*
acos acosh asin asinh atan atanh cos cosh exp log sin sinh sqrt tan tanh
    [0..7] (scalar*) -> real*
    (complex) -> complex
    $ = vector|row_vector|matrix: [0..7] ($*) -> $*
add elt_divide elt_multiply subtract
    $ = int|real|complex: ($, $) -> $
    $ = vector|row_vector|matrix: (real, $) -> $
    $ = complex_vector|complex_row_vector|complex_matrix: (complex, $) -> $
    $ = vector|row_vector|matrix: ($, $|real) -> $
    $ = complex_vector|complex_row_vector|complex_matrix: ($, $|complex) -> $
add_diag
    (matrix, real|vector|row_vector) -> matrix
    (complex_matrix, complex|complex_vector|complex_row_vector) -> complex_matrix
algebra_solver algebra_solver_newton
    (fn(vector, vector, data real[], data int[]) -> vector, vector, vector, data real[], data int[]) -> vector
    (fn(vector, vector, data real[], data int[]) -> vector, vector, vector, data real[], data int[], data real, data real, data real) -> vector
append_array
    $ = any: [0..6] ($[]*, $[]*) -> $[]*
append_col
    (real, row_vector) -> row_vector
    (complex, complex_row_vector) -> complex_row_vector
    (vector|matrix, vector|matrix) -> matrix
    (row_vector, real|row_vector) -> row_vector
    (complex_vector|complex_matrix, complex_vector|complex_matrix) -> complex_matrix
    (complex_row_vector, complex|complex_row_vector) -> complex_row_vector
append_row
    (real, vector) -> vector
    (complex, complex_vector) -> complex_vector
    (vector, real|vector) -> vector
    (row_vector|matrix, row_vector|matrix) -> matrix
    (complex_vector, complex|complex_vector) -> complex_vector
    (complex_row_vector|complex_matrix, complex_row_vector|complex_matrix) -> complex_matrix
arg norm
    (complex) -> real
atan2 beta fdim fmax fmin fmod hypot lbeta lchoose lmultiply log_diff_exp log_falling_factorial log_inv_logit_diff \
log_modified_bessel_first_kind log_rising_factorial
    [0..8] (scalar, scalar*) -> real*
    $ = vector|row_vector|matrix: [0..7] (scalar, $*) -> $*
    $ = vector|row_vector|matrix: [0..7] ($*, $*|int|real) -> $*
    [0..7] (int[]*, int[]*|int|real) -> real[]*
    [0..7] (real[]*, real[]*|int|real) -> real[]*
bernoulli_cdf bernoulli_lccdf bernoulli_lcdf bernoulli_logit_lpmf bernoulli_lpmf poisson_cdf poisson_lccdf poisson_lcdf \
poisson_log_lpmf poisson_lpmf yule_simon_cdf yule_simon_lccdf yule_simon_lcdf yule_simon_lpmf
    (ints, reals) -> real
bernoulli_logit_glm_lpmf poisson_log_glm_lpmf
    (int, matrix, real|vector, vector) -> real
    (int[], row_vector|matrix, real|vector, vector) -> real
bernoulli_logit_glm_rng
    (row_vector|matrix, vector, vector) -> int[]
bernoulli_logit_rng bernoulli_rng poisson_log_rng poisson_rng yule_simon_rng
    (scalar) -> int
    (sequences) -> int[]
bessel_first_kind bessel_second_kind binary_log_loss lmgamma modified_bessel_first_kind modified_bessel_second_kind
    [0..7] (int, real*) -> real*
    $ = vector|row_vector: [0..7] (int|int[]*, $*) -> $*
    [0..7] (int[2]*|int, matrix*) -> matrix*
    [0..6] (int[]*, real[]*|real) -> real[]*
    (int|int[8], real[8]) -> real[8]
beta_binomial_cdf beta_binomial_lccdf beta_binomial_lcdf beta_binomial_lpmf
    (ints, ints, reals, reals) -> real
beta_binomial_rng
    (int, scalar, scalar) -> int
    (int, scalar, sequences) -> int[]
    (int, sequences, numbers) -> int[]
    (int[], numbers, numbers) -> int[]
beta_cdf beta_lccdf beta_lcdf beta_lpdf cauchy_cdf cauchy_lccdf cauchy_lcdf cauchy_lpdf double_exponential_cdf \
double_exponential_lccdf double_exponential_lcdf double_exponential_lpdf frechet_cdf frechet_lccdf frechet_lcdf \
frechet_lpdf gamma_cdf gamma_lccdf gamma_lcdf gamma_lpdf gumbel_cdf gumbel_lccdf gumbel_lcdf gumbel_lpdf inv_gamma_cdf \
inv_gamma_lccdf inv_gamma_lcdf inv_gamma_lpdf logistic_cdf logistic_lccdf logistic_lcdf logistic_lpdf loglogistic_cdf \
loglogistic_lpdf lognormal_cdf lognormal_lccdf lognormal_lcdf lognormal_lpdf normal_cdf normal_lccdf normal_lcdf \
normal_lpdf pareto_cdf pareto_lccdf pareto_lcdf pareto_lpdf scaled_inv_chi_square_cdf scaled_inv_chi_square_lccdf \
scaled_inv_chi_square_lcdf scaled_inv_chi_square_lpdf uniform_cdf uniform_lccdf uniform_lcdf uniform_lpdf von_mises_cdf \
von_mises_lccdf von_mises_lcdf von_mises_lpdf weibull_cdf weibull_lccdf weibull_lcdf weibull_lpdf
    (reals, reals, reals) -> real
beta_neg_binomial_cdf beta_neg_binomial_lccdf beta_neg_binomial_lcdf beta_neg_binomial_lpmf
    (ints, reals, reals, reals) -> real
beta_neg_binomial_rng
    (scalar, scalar, scalar) -> int
    (scalar, scalar, sequences) -> int[]
    (scalar, sequences, numbers) -> int[]
    (sequences, numbers, numbers) -> int[]
beta_proportion_lccdf beta_proportion_lcdf beta_proportion_lpdf
    (reals, reals, numbers) -> real
beta_proportion_rng
    (real, scalar) -> real
    (real, sequences) -> real[]
    (real[]|vector|row_vector, numbers) -> real[]
beta_rng cauchy_rng double_exponential_rng frechet_rng gamma_rng gumbel_rng inv_gamma_rng logistic_rng loglogistic_rng \
lognormal_rng normal_rng pareto_rng scaled_inv_chi_square_rng uniform_rng von_mises_rng weibull_rng
    (scalar, scalar) -> real
    (scalar, sequences) -> real[]
    (sequences, numbers) -> real[]
binomial_cdf binomial_lccdf binomial_lcdf binomial_logit_lpmf binomial_lpmf
    (ints, ints, reals) -> real
binomial_logit_glm_lpmf
    (int, int, matrix, real|vector, vector) -> real
    (int, int[], matrix, real, vector) -> real
    (int[], int, matrix, real, vector) -> real
    (int[], int[], row_vector|matrix, real|vector, vector) -> real
binomial_rng
    (int, scalar) -> int
    (int, sequences) -> int[]
    (int[], numbers) -> int[]
block
    $ = matrix|complex_matrix: ($, int, int, int, int) -> $
categorical_logit_glm_lpmf
    (ints, row_vector|matrix, vector, matrix) -> real
categorical_logit_lpmf categorical_lpmf
    (ints, vector) -> real
categorical_logit_rng categorical_rng
    (vector) -> int
chi_square_cdf chi_square_lccdf chi_square_lcdf chi_square_lpdf exponential_cdf exponential_lccdf exponential_lcdf \
exponential_lpdf inv_chi_square_cdf inv_chi_square_lccdf inv_chi_square_lcdf inv_chi_square_lpdf rayleigh_cdf \
rayleigh_lccdf rayleigh_lcdf rayleigh_lpdf
    (reals, reals) -> real
chi_square_rng exponential_rng inv_chi_square_rng rayleigh_rng
    (scalar) -> real
    (sequences) -> real[]
chol2inv cholesky_decompose crossprod generalized_inverse inverse inverse_spd matrix_exp \
multiply_lower_tri_self_transpose qr_Q qr_R qr_thin_Q qr_thin_R tcrossprod
    (matrix) -> matrix
cholesky_factor_corr_constrain cholesky_factor_corr_jacobian corr_matrix_constrain corr_matrix_jacobian \
cov_matrix_constrain cov_matrix_jacobian
    [0..7] (vector*, int) -> matrix*
cholesky_factor_corr_unconstrain cholesky_factor_cov_unconstrain corr_matrix_unconstrain cov_matrix_unconstrain
    [0..7] (matrix*) -> vector*
cholesky_factor_cov_constrain cholesky_factor_cov_jacobian
    [0..7] (vector*, int, int) -> matrix*
choose
    [0..7] (int, int*) -> int*
    [0..6] (int[]*, int[]*|int) -> int[]*
col
    (matrix, int) -> vector
    (complex_matrix, int) -> complex_vector
cols rows
    (vector|row_vector|matrix|complex_vector|complex_row_vector|complex_matrix) -> int
columns_dot_product
    (vector, vector) -> row_vector
    $ = row_vector|complex_row_vector: ($, $) -> $
    (matrix, matrix) -> row_vector
    (complex_vector, complex_vector) -> complex_row_vector
    (complex_matrix, complex_matrix) -> complex_row_vector
columns_dot_self
    (vector|row_vector|matrix) -> row_vector
    (complex_vector|complex_row_vector|complex_matrix) -> complex_row_vector
complex_schur_decompose
    (matrix|complex_matrix) -> tuple(complex_matrix, complex_matrix)
complex_schur_decompose_t complex_schur_decompose_u eigenvectors
    (matrix|complex_matrix) -> complex_matrix
conj
    $ = complex|complex_vector|complex_row_vector|complex_matrix: [0..7] ($*) -> $*
csr_extract
    (matrix) -> tuple(vector, int[], int[])
csr_extract_u csr_extract_v
    (matrix) -> int[]
csr_extract_w
    (matrix) -> vector
csr_matrix_times_vector
    (int, int, vector, int[], int[], vector) -> vector
csr_to_dense_matrix
    (int, int, vector, int[], int[]) -> matrix
cumulative_sum
    $ = vector|row_vector|complex_vector|complex_row_vector: ($) -> $
    $ = int|real|complex: ($[]) -> $[]
dae
    (fn(real, vector, vector, ...) -> vector, vector, vector, data real, data real[], ...) -> vector[]
dae_tol
    (fn(real, vector, vector, ...) -> vector, vector, vector, data real, data real[], data real, data real, data int, ...) -> vector[]
determinant log_determinant log_determinant_spd
    (matrix) -> real
diag_matrix
    (vector) -> matrix
    (complex_vector) -> complex_matrix
diag_post_multiply
    (matrix, vector|row_vector) -> matrix
    (complex_matrix, complex_vector|complex_row_vector) -> complex_matrix
diag_pre_multiply
    (vector|row_vector, matrix) -> matrix
    (complex_vector|complex_row_vector, complex_matrix) -> complex_matrix
diagonal eigenvalues_sym
    (matrix) -> vector
    (complex_matrix) -> complex_vector
dims
    (int[0..8]|real[0..8]|complex[0..8]|vector[0..8]|row_vector[0..8]|matrix[0..8]|complex_vector[1..8]|complex_row_vector[1..8]|complex_matrix[1..8]) -> int[]
dirichlet_lpdf
    (vectors, vectors) -> real
dirichlet_multinomial_lpmf multinomial_logit_lpmf multinomial_lpmf
    (int[], vector) -> real
dirichlet_multinomial_rng multinomial_logit_rng multinomial_rng
    (vector, int) -> int[]
dirichlet_rng log_softmax softmax
    (vector) -> vector
discrete_range_cdf discrete_range_lccdf discrete_range_lcdf discrete_range_lpmf
    (ints, ints, ints) -> real
discrete_range_rng
    (int, int) -> int
    (int, int[]) -> int[]
    (int[], ints) -> int[]
distance
    (vector|row_vector, vector|row_vector) -> real
divide
    $ = int|real|complex: ($, $) -> $
    $ = vector|row_vector|matrix: (real, $) -> $
    $ = complex_vector|complex_row_vector|complex_matrix: (complex, $) -> $
    $ = vector|row_vector|matrix: ($, real) -> $
    $ = complex_vector|complex_row_vector|complex_matrix: ($, complex) -> $
dot_product
    (vector|row_vector, vector|row_vector) -> real
    (complex_vector|complex_row_vector, complex_vector|complex_row_vector) -> complex
    $ = real|complex: ($[], $[]) -> $
dot_self
    (vector|row_vector) -> real
    (complex_vector|complex_row_vector) -> complex
e machine_precision negative_infinity not_a_number pi positive_infinity sqrt2 std_normal_rng
    () -> real
eigendecompose
    (matrix|complex_matrix) -> tuple(complex_matrix, complex_vector)
eigendecompose_sym
    (matrix) -> tuple(matrix, vector)
    (complex_matrix) -> tuple(complex_matrix, complex_vector)
eigenvalues
    (matrix|complex_matrix) -> complex_vector
eigenvectors_sym svd_U svd_V symmetrize_from_lower_tri
    $ = matrix|complex_matrix: ($) -> $
exp_mod_normal_cdf exp_mod_normal_lccdf exp_mod_normal_lcdf exp_mod_normal_lpdf pareto_type_2_cdf pareto_type_2_lccdf \
pareto_type_2_lcdf pareto_type_2_lpdf skew_double_exponential_cdf skew_double_exponential_lccdf \
skew_double_exponential_lcdf skew_double_exponential_lpdf skew_normal_cdf skew_normal_lccdf skew_normal_lcdf \
skew_normal_lpdf student_t_cdf student_t_lccdf student_t_lcdf student_t_lpdf
    (reals, reals, reals, reals) -> real
exp_mod_normal_rng pareto_type_2_rng skew_double_exponential_rng skew_normal_rng student_t_rng
    (scalar, scalar, scalar) -> real
    (scalar, scalar, sequences) -> real[]
    (scalar, sequences, numbers) -> real[]
    (sequences, numbers, numbers) -> real[]
falling_factorial rising_factorial
    [0..7] (int, int*) -> int*
    [0..7] (real, int*) -> real*
    $ = vector|row_vector: [0..7] ($*, int|int[]*) -> $*
    [0..7] (matrix*, int[2]*|int) -> matrix*
    [0..6] (int[]*, int[]*|int) -> int[]*
    [0..7] (real[]*, int[]*|int) -> real[]*
fft inv_fft
    (complex_vector) -> complex_vector
fft2 inv_fft2
    (complex_matrix) -> complex_matrix
fma
    (real, real, real) -> real
    $ = vector|row_vector|matrix: (real, real, $) -> $
    $ = vector|row_vector|matrix: (real, $, $|real) -> $
    $ = vector|row_vector|matrix: ($, $|real, $|real) -> $
gamma_p gamma_q owens_t
    [0..8] (real, real*) -> real*
    $ = vector|row_vector|matrix: [0..7] (real, $*) -> $*
    $ = vector|row_vector|matrix: [0..7] ($*, $*|real) -> $*
    [0..7] (real[]*, real[]*|real) -> real[]*
gaussian_dlm_obs_lpdf
    (matrix, matrix, matrix, vector|matrix, matrix, vector, matrix) -> real
generate_laplace_options
    (int|vector) -> tuple(vector, real, int, int, int, int)
get_imag get_real
    [0..7] (complex*) -> real*
    [0..7] (complex_vector*) -> vector*
    [0..7] (complex_row_vector*) -> row_vector*
    [0..7] (complex_matrix*) -> matrix*
gp_dot_prod_cov
    (real[]|vector[], real) -> matrix
    (real[], real[], real) -> matrix
    (vector[], vector[], real) -> matrix
gp_exp_quad_cov gp_exponential_cov gp_matern32_cov gp_matern52_cov
    (real[], real, real) -> matrix
    (vector[], real, real|real[]) -> matrix
    (real[], real[], real, real) -> matrix
    (vector[], vector[], real, real|real[]) -> matrix
gp_periodic_cov
    (real[]|vector[], real, real, real) -> matrix
    (real[], real[], real, real, real) -> matrix
    (vector[], vector[], real, real, real) -> matrix
head tail
    $ = vector|row_vector|complex_vector|complex_row_vector: [0..3] ($*, int) -> $*
    [0..2] (int[]*, int) -> int[]*
    $ = real|complex|matrix|complex_matrix: [0..2] ($[]*, int) -> $[]*
hmm_hidden_state_prob
    (data matrix, data matrix, data vector) -> matrix
hmm_latent_rng
    (matrix, matrix, vector) -> int[]
hmm_marginal multi_gp_cholesky_lpdf multi_gp_lpdf
    (matrix, matrix, vector) -> real
hypergeometric_1F0
    (real, real) -> real
hypergeometric_2F1
    (real, real, real, real) -> real
hypergeometric_3F2 hypergeometric_pFq
    (real[]|vector|row_vector, real[]|vector|row_vector, real) -> real
hypergeometric_lpmf
    (int, int, int, int) -> real
hypergeometric_rng
    (int, int, int) -> int
identity_matrix
    (int) -> matrix
inc_beta inv_inc_beta
    (real, real, real) -> real
int_step
    (scalar) -> int
integrate_1d
    (fn(real, real, real[], data real[], data int[]) -> real, real, real, real[], data real[], data int[]) -> real
    (fn(real, real, real[], data real[], data int[]) -> real, real, real, real[], data real[], data int[], data real) -> real
integrate_ode
    (fn(real, real[], real[], data real[], data int[]) -> real[], real[], real, real[], real[], data real[], data int[]) -> real[2]
integrate_ode_adams integrate_ode_bdf integrate_ode_rk45
    (fn(real, real[], real[], data real[], data int[]) -> real[], real[], real, real[], real[], data real[], data int[]) -> real[2]
    (fn(real, real[], real[], data real[], data int[]) -> real[], real[], real, real[], real[], data real[], data int[], data real, data real, data real) -> real[2]
inv_wishart_cholesky_lpdf inv_wishart_lpdf wishart_cholesky_lpdf wishart_lpdf
    (matrix, real, matrix) -> real
inv_wishart_cholesky_rng inv_wishart_rng wishart_cholesky_rng wishart_rng
    (real, matrix) -> matrix
is_inf is_nan
    (real) -> int
laplace_latent_bernoulli_logit_rng
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2)) -> vector
laplace_latent_neg_binomial_2_log_rng
    (int[], int[], vector, vector, data int, fn(...2) -> matrix, tuple(...2)) -> vector
laplace_latent_poisson_log_rng
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2)) -> vector
laplace_latent_rng
    (fn(vector, ...) -> real, tuple(...), data int, fn(...2) -> matrix, tuple(...2)) -> vector
laplace_latent_tol_bernoulli_logit_rng
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> vector
laplace_latent_tol_neg_binomial_2_log_rng
    (int[], int[], vector, vector, data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> vector
laplace_latent_tol_poisson_log_rng
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> vector
laplace_latent_tol_rng
    (fn(vector, ...) -> real, tuple(...), data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> vector
laplace_marginal
    (fn(vector, ...) -> real, tuple(...), data int, fn(...2) -> matrix, tuple(...2)) -> real
laplace_marginal_bernoulli_logit_lpmf
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2)) -> real
laplace_marginal_neg_binomial_2_log_lpmf
    (int[], int[], vector, vector, data int, fn(...2) -> matrix, tuple(...2)) -> real
laplace_marginal_poisson_log_lpmf
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2)) -> real
laplace_marginal_tol
    (fn(vector, ...) -> real, tuple(...), data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> real
laplace_marginal_tol_bernoulli_logit_lpmf
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> real
laplace_marginal_tol_neg_binomial_2_log_lpmf
    (int[], int[], vector, vector, data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> real
laplace_marginal_tol_poisson_log_lpmf
    (int[], int[], vector, data int, fn(...2) -> matrix, tuple(...2), data tuple(vector, real, int, int, int, int)) -> real
ldexp
    [0..7] (real, int*) -> real*
    $ = vector|row_vector: [0..7] ($*, int|int[]*) -> $*
    [0..7] (matrix*, int[2]*|int) -> matrix*
    [0..7] (real[]*, int[]*|int) -> real[]*
linspaced_array
    (data int, data real, data real) -> real[]
linspaced_int_array
    (int, int, int) -> int[]
linspaced_row_vector
    (data int, data real, data real) -> row_vector
linspaced_vector
    (data int, data real, data real) -> vector
lkj_corr_cholesky_lpdf lkj_corr_lpdf
    (matrix, real) -> real
lkj_corr_cholesky_rng lkj_corr_rng
    (int, real) -> matrix
lkj_cov_lpdf
    (matrix, vector, vector, real) -> real
log10
    () -> real
    [0..7] (scalar*) -> real*
    (complex) -> complex
    $ = vector|row_vector|matrix: [0..7] ($*) -> $*
log2
    () -> real
    [0..7] (scalar*) -> real*
    $ = vector|row_vector|matrix: [0..7] ($*) -> $*
log_mix
    (real, real, real) -> real
    (real[]|vector|row_vector, real[]|vector|vector[]|row_vector|row_vector[]) -> real
log_sum_exp
    [0..8] (scalar, scalar*) -> real*
    $ = vector|row_vector|matrix: [0..7] (scalar, $*) -> $*
    (real[]|vector|row_vector|matrix) -> real
    $ = vector|row_vector|matrix: [0..7] ($*, $*|int|real) -> $*
    [0..7] (int[]*, int[]*|int|real) -> real[]*
    [0..7] (real[]*, real[]*|int|real) -> real[]*
logical_and logical_or modulus
    (int, int) -> int
logical_eq logical_neq
    (scalar, scalar) -> int
    (complex, real|complex) -> int
logical_gt logical_gte logical_lt logical_lte
    (scalar, scalar) -> int
logical_negation
    (int) -> int
lower_bound_constrain lower_bound_jacobian lower_bound_unconstrain upper_bound_constrain upper_bound_jacobian \
upper_bound_unconstrain
    (real, real) -> real
    $ = vector|row_vector|matrix: [0..7] ($*, $*|real) -> $*
    [0..7] (real[]*, real[]*|real) -> real[]*
lower_upper_bound_constrain lower_upper_bound_jacobian lower_upper_bound_unconstrain offset_multiplier_constrain \
offset_multiplier_jacobian offset_multiplier_unconstrain
    (real, real, real) -> real
    $ = vector|row_vector|matrix: [0..7] ($*, $*|real, $*|real) -> $*
    [0..7] (real[]*, real[]*|real, real[]*|real) -> real[]*
map_rect
    (fn(vector, vector, data real[], data int[]) -> vector, vector, vector[], data real[2], data int[2]) -> vector
matrix_exp_multiply
    (matrix, matrix) -> matrix
matrix_power
    (matrix, int) -> matrix
max min
    (int, int) -> int
    (real[]|vector|row_vector|matrix) -> real
    (int[]) -> int
mdivide_left mdivide_left_spd mdivide_left_tri_low
    (matrix, vector) -> vector
    (matrix, matrix) -> matrix
mdivide_right
    (row_vector, matrix) -> row_vector
    $ = matrix|complex_matrix: ($, $) -> $
    (complex_row_vector, complex_matrix) -> complex_row_vector
mdivide_right_spd mdivide_right_tri_low
    (row_vector, matrix) -> row_vector
    (matrix, matrix) -> matrix
mean sd variance
    (real[]|vector|row_vector|matrix) -> real
minus
    $ = any: [0..7] ($*) -> $*
multi_normal_cholesky_lpdf multi_normal_lpdf multi_normal_prec_lpdf
    (vectors, vectors, matrix) -> real
multi_normal_cholesky_rng multi_normal_rng
    (vector|row_vector, matrix) -> vector
    (vector[]|row_vector[], matrix) -> vector[]
multi_student_t_cholesky_lpdf multi_student_t_lpdf
    (vectors, real, vectors, matrix) -> real
multi_student_t_cholesky_rng multi_student_t_rng
    (real, vector|row_vector, matrix) -> vector
    (real, vector[]|row_vector[], matrix) -> vector[]
multiply
    $ = int|real|complex: ($, $) -> $
    (real|matrix, vector) -> vector
    $ = row_vector|matrix: (real, $) -> $
    (complex|complex_matrix, complex_vector) -> complex_vector
    $ = complex_row_vector|complex_matrix: (complex, $) -> $
    (vector, real) -> vector
    (vector, row_vector) -> matrix
    (row_vector, real|matrix) -> row_vector
    (row_vector, vector) -> real
    (matrix, real|matrix) -> matrix
    (complex_vector, complex) -> complex_vector
    (complex_vector, complex_row_vector) -> complex_matrix
    (complex_row_vector, complex|complex_matrix) -> complex_row_vector
    (complex_row_vector, complex_vector) -> complex
    (complex_matrix, complex|complex_matrix) -> complex_matrix
neg_binomial_2_cdf neg_binomial_2_lccdf neg_binomial_2_lcdf neg_binomial_2_log_lpmf neg_binomial_2_lpmf \
neg_binomial_cdf neg_binomial_lccdf neg_binomial_lcdf neg_binomial_lpmf
    (ints, reals, reals) -> real
neg_binomial_2_log_glm_lpmf
    (int, matrix, real|vector, vector, real) -> real
    (int[], row_vector|matrix, real|vector, vector, real) -> real
neg_binomial_2_log_rng neg_binomial_2_rng neg_binomial_rng
    (scalar, scalar) -> int
    (scalar, sequences) -> int[]
    (sequences, numbers) -> int[]
norm1 norm2
    (real[]|vector|row_vector) -> real
normal_id_glm_lpdf
    (real, matrix, real|vector, vector, real|vector) -> real
    (vector, row_vector|matrix, real|vector, vector, real|vector) -> real
num_elements
    (int[1..9]|real[1..9]|complex[1..9]|vector[0..9]|row_vector[0..9]|matrix[0..9]|complex_vector[0..9]|complex_row_vector[0..9]|complex_matrix[0..9]) -> int
ode_adams ode_bdf ode_ckrk ode_rk45
    (fn(real, vector, ...) -> vector, vector, real, real[], ...) -> vector[]
ode_adams_tol ode_bdf_tol ode_ckrk_tol ode_rk45_tol
    (fn(real, vector, ...) -> vector, vector, real, real[], data real, data real, data int, ...) -> vector[]
ode_adjoint_tol_ctl
    (fn(real, vector, ...) -> vector, vector, real, real[], data real, data vector, data real, data vector, data real, data real, data int, data int, data int, data int, data int, ...) -> vector[]
one_hot_array
    (int, int) -> real[]
one_hot_int_array
    (int, int) -> int[]
one_hot_row_vector
    (int, int) -> row_vector
one_hot_vector
    (int, int) -> vector
ones_array zeros_array
    (int) -> real[]
ones_int_array zeros_int_array
    (int) -> int[]
ones_row_vector zeros_row_vector
    (int) -> row_vector
ones_vector uniform_simplex zeros_vector
    (int) -> vector
ordered_constrain ordered_jacobian ordered_unconstrain positive_ordered_constrain positive_ordered_jacobian \
positive_ordered_unconstrain simplex_constrain simplex_jacobian simplex_unconstrain unit_vector_constrain \
unit_vector_jacobian unit_vector_unconstrain
    [0..7] (vector*) -> vector*
ordered_logistic_glm_lpmf
    (ints, row_vector|matrix, vector, vector) -> real
ordered_logistic_lpmf
    (int, real, vector) -> real
    (int[], vector, vector|vector[]) -> real
ordered_logistic_rng ordered_probit_rng
    (real, vector) -> int
ordered_probit_lpmf
    (int, real, vector) -> real
    (int[], real|vector, vector|vector[]) -> real
Phi Phi_approx cbrt ceil digamma erf erfc exp2 expm1 floor inv inv_Phi inv_cloglog inv_erfc inv_logit inv_sqrt \
inv_square lambert_w0 lambert_wm1 lgamma log1m log1m_exp log1m_inv_logit log1p log1p_exp log_inv_logit logit round \
square std_normal_log_qf std_normal_qf tgamma trigamma trunc
    [0..7] (scalar*) -> real*
    $ = vector|row_vector|matrix: [0..7] ($*) -> $*
plus
    $ = int|real|complex|vector|row_vector|matrix: ($) -> $
polar
    (real, real) -> complex
pow
    [0..8] (scalar, scalar*) -> real*
    $ = vector|row_vector|matrix: [0..7] (scalar, $*) -> $*
    [0..8] (complex, complex*) -> complex*
    $ = complex_vector|complex_row_vector|complex_matrix: [0..7] (complex, $*) -> $*
    $ = vector|row_vector|matrix: [0..7] ($*, $*|int|real) -> $*
    $ = complex_vector|complex_row_vector|complex_matrix: [0..7] ($*, $*|complex) -> $*
    [0..7] (int[]*, int[]*|int|real) -> real[]*
    [0..7] (real[]*, real[]*|int|real) -> real[]*
    [0..7] (complex[]*, complex[]*|complex) -> complex[]*
prod sum
    (real[]|vector|row_vector|matrix) -> real
    (complex[]|complex_vector|complex_row_vector|complex_matrix) -> complex
    (int[]) -> int
proj
    (complex) -> complex
qr qr_thin
    (matrix) -> tuple(matrix, matrix)
quad_form quad_form_sym
    (matrix, vector) -> real
    (matrix, matrix) -> matrix
quad_form_diag
    (matrix, vector|row_vector) -> matrix
quantile
    (data real[]|vector|row_vector, data real) -> real
    (data real[]|vector|row_vector, data real[]) -> real[]
rank
    (sequences, int) -> int
reduce_sum reduce_sum_static
    (fn($slice, data int, data int, ...) -> real, $slice, int, ...) -> real
rep_array
    [0..2] (int*, int) -> int[]*
    $ = real|complex|vector|row_vector|matrix|complex_vector|complex_row_vector|complex_matrix: [0..2] ($*, int) -> $[]*
    [0..2] (int*, int, int) -> int[2]*
    $ = real|complex|vector|row_vector|matrix|complex_vector|complex_row_vector|complex_matrix: [0..2] ($*, int, int) -> $[2]*
    [0..2] (int*, int, int, int) -> int[3]*
    $ = real|complex|vector|row_vector|matrix|complex_vector|complex_row_vector|complex_matrix: [0..2] ($*, int, int, int) -> $[3]*
rep_matrix
    (real, int, int) -> matrix
    (complex, int, int) -> complex_matrix
    (vector|row_vector, int) -> matrix
    (complex_vector|complex_row_vector, int) -> complex_matrix
rep_row_vector
    (real, int) -> row_vector
    (complex, int) -> complex_row_vector
rep_vector
    (real, int) -> vector
    (complex, int) -> complex_vector
reverse
    $ = vector|row_vector|complex_vector|complex_row_vector: [0..7] ($*) -> $*
    $ = int|real|complex|matrix|complex_matrix: [0..6] ($[]*) -> $[]*
row
    (matrix, int) -> row_vector
    (complex_matrix, int) -> complex_row_vector
rows_dot_product
    $ = vector|complex_vector: ($, $) -> $
    (row_vector, row_vector) -> vector
    (matrix, matrix) -> vector
    (complex_row_vector, complex_row_vector) -> complex_vector
    (complex_matrix, complex_matrix) -> complex_vector
rows_dot_self
    (vector|row_vector|matrix) -> vector
    (complex_vector|complex_row_vector|complex_matrix) -> complex_vector
scale_matrix_exp_multiply
    (real, matrix, matrix) -> matrix
segment
    $ = vector|row_vector|complex_vector|complex_row_vector: [0..3] ($*, int, int) -> $*
    [0..2] (int[]*, int, int) -> int[]*
    $ = real|complex|matrix|complex_matrix: [0..2] ($[]*, int, int) -> $[]*
singular_values
    (matrix|complex_matrix) -> vector
size
    (any[0..7]) -> int
solve_newton solve_powell
    (fn(vector, ...) -> vector, vector, ...) -> vector
solve_newton_tol solve_powell_tol
    (fn(vector, ...) -> vector, vector, data real, data real, data int, ...) -> vector
sort_asc sort_desc
    $ = vector|row_vector: ($) -> $
    $ = int|real: ($[]) -> $[]
sort_indices_asc sort_indices_desc
    (sequences) -> int[]
squared_distance
    (real, real) -> real
    (vector|row_vector, vector|row_vector) -> real
std_normal_cdf std_normal_lccdf std_normal_lcdf std_normal_lpdf
    (reals) -> real
step
    (real) -> real
stochastic_column_constrain stochastic_column_jacobian stochastic_column_unconstrain stochastic_row_constrain \
stochastic_row_jacobian stochastic_row_unconstrain
    [0..7] (matrix*) -> matrix*
sub_col
    (matrix, int, int, int) -> vector
    (complex_matrix, int, int, int) -> complex_vector
sub_row
    (matrix, int, int, int) -> row_vector
    (complex_matrix, int, int, int) -> complex_row_vector
sum_to_zero_constrain sum_to_zero_jacobian sum_to_zero_unconstrain
    $ = vector|matrix: [0..7] ($*) -> $*
svd
    (matrix) -> tuple(matrix, vector, matrix)
    (complex_matrix) -> tuple(complex_matrix, vector, complex_matrix)
to_array_1d
    (real[1..9]|vector|row_vector|matrix) -> real[]
    (complex_vector|complex_row_vector|complex_matrix) -> complex[]
    (int[1..9]) -> int[]
to_array_2d
    (matrix) -> real[2]
    (complex_matrix) -> complex[2]
to_complex
    () -> complex
    (real) -> complex
    [0..8] (real, real*) -> complex*
    [0..7] (real, vector*) -> complex_vector*
    [0..7] (real, row_vector*) -> complex_row_vector*
    [0..7] (real, matrix*) -> complex_matrix*
    [0..7] (vector*, vector*|real) -> complex_vector*
    [0..7] (row_vector*, row_vector*|real) -> complex_row_vector*
    [0..7] (matrix*, matrix*|real) -> complex_matrix*
    [0..7] (real[]*, real[]*|real) -> complex[]*
to_int
    [0..7] (data scalar*) -> int*
to_matrix
    (int[]|real[]|vector|row_vector|matrix, int, int) -> matrix
    (int[]|real[]|vector|row_vector|matrix, int, int, int) -> matrix
    (int[2]|real[2]|vector|row_vector|row_vector[]|matrix) -> matrix
    (complex[]|complex_vector|complex_row_vector|complex_matrix, int, int) -> complex_matrix
    (complex[]|complex_vector|complex_row_vector|complex_matrix, int, int, int) -> complex_matrix
    (complex[2]|complex_vector|complex_row_vector|complex_row_vector[]|complex_matrix) -> complex_matrix
to_row_vector
    (int[]|real[]|vector|row_vector|matrix) -> row_vector
    (complex[]|complex_vector|complex_row_vector|complex_matrix) -> complex_row_vector
to_vector
    (int[]|real[]|vector|row_vector|matrix) -> vector
    (complex[]|complex_vector|complex_row_vector|complex_matrix) -> complex_vector
trace
    (matrix) -> real
    (complex_matrix) -> complex
trace_dot
    (matrix, matrix) -> real
trace_gen_quad_form
    (matrix, matrix, matrix) -> real
trace_quad_form
    (matrix, vector|matrix) -> real
transpose
    (vector) -> row_vector
    (row_vector) -> vector
    $ = matrix|complex_matrix: ($) -> $
    (complex_vector) -> complex_row_vector
    (complex_row_vector) -> complex_vector
wiener_lccdf_unnorm wiener_lcdf_unnorm
    (real, real, real, real, real) -> real
    (real, real, real, real, real, data real) -> real
    (real, real, real, real, real, real, real, real) -> real
    (real, real, real, real, real, real, real, real, data real) -> real
    (vector, vector, vector, vector, vector) -> real
    (vector, vector, vector, vector, vector, data real) -> real
    (vector, vector, vector, vector, vector, vector, vector, vector) -> real
    (vector, vector, vector, vector, vector, vector, vector, vector, data real) -> real
wiener_lpdf
    (reals, reals, reals, reals, reals) -> real
    (real, real, real, real, real, real) -> real
    (real, real, real, real, real, real, data real) -> real
    (real, real, real, real, real, real, real, real) -> real
    (real, real, real, real, real, real, real, real, data real) -> real
    (vector, vector, vector, vector, vector, vector) -> real
    (vector, vector, vector, vector, vector, vector, data real) -> real
    (vector, vector, vector, vector, vector, vector, vector, vector) -> real
    (vector, vector, vector, vector, vector, vector, vector, vector, data real) -> real
