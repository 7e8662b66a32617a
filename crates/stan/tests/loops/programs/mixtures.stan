data { int N; int K; vector[N] y; array[N] int h; array[N] vector[K] A; }
parameters { simplex[K] w; ordered[K] m; array[K] real<lower=0> s; matrix[K, K] B; }
//// loops
model {
  to_vector(B) ~ normal(0, 1);
  for (n in 1:N) {
    vector[K] l = log(w);
    for (k in 1:K) l[k] += normal_lpdf(y[n] | m[k], s[k]);
    target += log_sum_exp(l);
    target += log_mix(w[1], normal_lpdf(y[n] | 0, 1), cauchy_lpdf(y[n] | 0, s[2]));
    h[n] ~ categorical_logit(B * A[n]);
  }
}
