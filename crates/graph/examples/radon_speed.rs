//! Measures the time per draw of the value, the gradient and the Hessian-vector product of a hierarchical regression,
//! in seconds.
use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Execution, Graph, GraphDensity};
use std::time::Instant;

fn main() {
    let (n, j) = (919usize, 85usize);
    let mut g = Graph::new();
    let z = g.input(j + 4);
    let county: Vec<u32> = (0..n).map(|i| ((i * 7919) % j) as u32 + 4).collect();
    let x: Vec<f64> = (0..n).map(|i| (i % 2) as f64).collect();
    let y: Vec<f64> = (0..n).map(|i| ((i * 31 % 17) as f64 - 8.0) / 6.0).collect();
    let (mu, beta, ls, lt) = (
        g.element(z, 0),
        g.element(z, 1),
        g.element(z, 2),
        g.element(z, 3),
    );
    let eta = g.slice(z, 4, j);
    let tau = g.exp(lt);
    let s = g.exp(ls);
    let te = g.mul(tau, eta);
    let alpha = g.add(mu, te);
    let idx: Vec<u32> = county.iter().map(|c| c - 4).collect();
    let a = g.gather(alpha, &idx);
    let (x, y) = (g.vector(&x), g.vector(&y));
    let bx = g.mul(x, beta);
    let m = g.add(a, bx);
    let r = g.sub(y, m);
    let q = g.square(r);
    let sq = g.sum(q);
    let is = g.recip(s);
    let is2 = g.square(is);
    let t = g.mul(sq, is2);
    let t = g.scale(-0.5, t);
    let logs = g.scale(-(n as f64), ls);
    let e2 = g.square(eta);
    let pe = g.sum(e2);
    let pe = g.scale(-0.5, pe);
    let lp = g.add_all(&[t, logs, pe, lt, ls]);
    g.set_outputs(vec![lp]);
    let start = Instant::now();
    let d = GraphDensity::new(&g, Execution::default());
    println!(
        "build {:?} block {} arena {} instr {}",
        start.elapsed(),
        d.gradient_program().block(),
        d.gradient_program().arena_bytes(),
        d.instructions()
    );
    let (dim, lanes) = (d.dim(), 256);
    let zs: Vec<f64> = (0..dim * lanes)
        .map(|i| ((i * 37 % 101) as f64 - 50.0) / 60.0)
        .collect();
    let mut ws = d.workspace(lanes);
    let (mut out, mut grad) = (vec![0.0; lanes], vec![0.0; dim * lanes]);
    let time = |name: &str, f: &mut dyn FnMut()| {
        f();
        let start = Instant::now();
        let reps = 200;
        for _ in 0..reps {
            f();
        }
        println!(
            "{name}: {:.3} us per draw",
            start.elapsed().as_secs_f64() * 1e6 / reps as f64 / lanes as f64
        );
    };
    time("value", &mut || {
        d.value(&mut ws, Lanes::new(&zs, dim, lanes), &mut out)
    });
    time("gradient", &mut || {
        d.value_grad(
            &mut ws,
            Lanes::new(&zs, dim, lanes),
            &mut out,
            LanesMut::new(&mut grad, dim, lanes),
        )
    });
    d.linearize(&mut ws, Lanes::new(&zs, dim, lanes));
    time("apply", &mut || {
        d.apply(
            &mut ws,
            Lanes::new(&zs, dim, lanes),
            LanesMut::new(&mut grad, dim, lanes),
        )
    });
    time("hvp", &mut || {
        d.hvp(
            &mut ws,
            Lanes::new(&zs, dim, lanes),
            Lanes::new(&zs, dim, lanes),
            LanesMut::new(&mut grad, dim, lanes),
        )
    });
}
