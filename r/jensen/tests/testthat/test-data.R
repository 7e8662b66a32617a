json <- function(x, dims = integer()) jsonlite::fromJSON(stan_json(x, dims), simplifyVector = FALSE)

test_that("values become the declared types", {
  dims <- declared_dims("data {\n  int<lower=0> N;\n  array[N, K] int<lower=0, upper=f(1, 2)> y;\n  array[N] matrix[2, 3] X;
  vector<lower=0>[N] v;\n  simplex[K] p;\n  real a;\n  cov_matrix[K] S;\n}\nparameters {\n  real b;\n}\n")
  expect_equal(dims, c(N = 0, y = 2, X = 3, v = 1, p = 1, a = 0, S = 2))
  expect_equal(json(list(N = 1, v = 2), dims), list(N = 1L, v = list(2L)))
  expect_equal(json(list(a = array(2.5, 1)), dims), list(a = 2.5))
  expect_equal(json(list(S = 2), dims), list(S = list(list(2L))))
  expect_equal(json(list(X = list(matrix(1:6, 2))), dims)$X[[1]][[2]], list(2L, 4L, 6L))
  expect_equal(json(list(v = numeric(0), y = matrix(0, 0, 3)), dims), list(v = list(), y = list()))
})

test_that("factors, logical values, tables and lists become numbers", {
  expect_equal(json(list(g = factor(c("b", "a", "b")))), list(g = list(2L, 1L, 2L)))
  expect_equal(json(list(t = c(TRUE, FALSE), one = TRUE)), list(t = list(1L, 0L), one = 1L))
  expect_equal(json(list(m = data.frame(a = 1:2, b = 3:4))), list(m = list(list(1L, 3L), list(2L, 4L))))
  expect_equal(json(list(l = list(1:2, 3:4))), list(l = list(list(1L, 2L), list(3L, 4L))))
  values <- json(list(x = array(1:24, c(2, 3, 4))))$x
  expect_equal(values[[2]][[3]][[1]], array(1:24, c(2, 3, 4))[2, 3, 1])
})

test_that("numbers keep all their digits", {
  x <- c(1 / 3, 0.1 + 0.2, 1e-300, 123456789012, -2^0.5)
  text <- stan_json(list(x = x))
  inner <- strsplit(sub("^.*\\[(.*)\\].*$", "\\1", text), ", ")[[1]]
  expect_identical(as.numeric(inner), x)
  expect_match(stan_json(list(x = c(NaN, Inf, -Inf))), "[\"NaN\", \"Inf\", \"-Inf\"]", fixed = TRUE)
})

test_that("an error names a value that is no data", {
  expect_error(stan_json(list(x = c(1, NA))), "`x` has missing values", class = "jensen_error")
  expect_error(stan_json(list(who = "me")), "`who`", class = "jensen_error")
  expect_error(stan_json(list(1, 2)), "with a name", class = "jensen_error")
})

test_that("arguments become flags", {
  expect_equal(
    flags_of(list(seed = 1, importance_resample = TRUE, save = c("a", "b"), out = NULL, tol = 1e-3)),
    c("--seed", "1", "--importance-resample", "--save", "a,b", "--tol", "0.001")
  )
  expect_error(flags_of(list(3)), class = "jensen_error")
})
