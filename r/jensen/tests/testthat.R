library(testthat)
library(jensen)

test_check("jensen")
