// Birds marked in six years and seen again: survival and sighting by year (Cormack, Jolly and Seber).
data {
  array[5, 6] int m;
}
parameters {
  vector<lower=0, upper=1>[5] survive;
  vector<lower=0, upper=1>[5] seen;
}
model {
  survive ~ beta(2, 2);
  seen ~ beta(2, 2);
  for (i in 1 : 5) {
    real left = 1;
    real never = 1;
    for (j in i : 5) {
      real chance = left * survive[j] * seen[j];
      target += m[i, j] * log(chance);
      never -= chance;
      left *= survive[j] * (1 - seen[j]);
    }
    target += m[i, 6] * log(never);
  }
}
