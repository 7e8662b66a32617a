use jensen_math::special::*;
fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let w: Vec<&str> = line.split(' ').collect();
        let x: Vec<f64> = w[1..].iter().map(|s| s.parse().unwrap()).collect();
        let j = match w[0] {
            "p" => log_gamma_p_q(x[0], x[1]).0,
            "q" => log_gamma_p_q(x[0], x[1]).1,
            "b" => log_inc_beta(x[0], x[1], x[2]),
            "t" => log_student_cdf(x[0], x[1]),
            _ => log_bessel_i(x[0], x[1]),
        };
        println!("{:e} {:e} {:e} {:e} {:e} {:e}", j.value, j.first[0], j.first[1], j.second[0], j.second[1], j.second[2]);
    }
}
