skip_without_jensen <- function() {
  testthat::skip_if_not(jensen_is_installed(), "the command `jensen` is not installed")
}

# An environment variable enables the tests that together take more than a minute.
skip_if_short <- function() {
  testthat::skip_if_not(Sys.getenv("JENSEN_TESTS") == "all", "JENSEN_TESTS is not \"all\"")
}

# A normal mean with known scale, whose posterior is exact.
normal_program <- "
data { int<lower=0> N; array[N] real y; }
parameters { real mu; }
model { mu ~ normal(0, 2); y ~ normal(mu, 1); }
generated quantities { array[N] real log_lik; for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | mu, 1); }
"

normal_data <- list(N = 5L, y = c(0.3, 1.9, 1.1, 0.2, 2.4))
