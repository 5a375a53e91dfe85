//! bench
use std::time::Instant;
use wgrad as tf;
fn main() -> tf::Result<()> {
    let start = Instant::now();
    env_logger::init();
    let dev = tf::Device::current()?;
    println!("device {:?}", start.elapsed());
    let g = tf::random::Generator::from_seed(1);
    let shapes: [Vec<usize>; 4] = [vec![784, 100], vec![100], vec![100, 10], vec![10]];
    let vars: Vec<tf::Variable> = shapes
        .iter()
        .map(|s| Ok(tf::Variable::new(&(g.normal(s.clone())? * 0.05))))
        .collect::<tf::Result<_>>()?;
    let m: Vec<tf::Variable> = shapes
        .iter()
        .map(|s| Ok(tf::Variable::untrainable("m", &tf::Tensor::zeros(s.clone())?)))
        .collect::<tf::Result<_>>()?;
    let v: Vec<tf::Variable> = shapes
        .iter()
        .map(|s| Ok(tf::Variable::untrainable("v", &tf::Tensor::zeros(s.clone())?)))
        .collect::<tf::Result<_>>()?;
    let xs: Vec<f32> = (0..50 * 784).map(|i| (i % 17) as f32 / 17.0).collect();
    let ys: Vec<i32> = (0..50).map(|i| i % 10).collect();
    let mut t0 = Instant::now();
    let mut s0 = dev.stats();
    for t in 1..=300 {
        let x = tf::Tensor::from_slice(&xs, [50, 784])?;
        let y = tf::Tensor::from_slice(&ys, [50])?;
        let tape = tf::GradientTape::new();
        let h = (x.matmul(&vars[0])? + &vars[1]).relu()?;
        let logits = h.matmul(&vars[2])? + &vars[3];
        let loss =
            tf::sparse_softmax_cross_entropy_with_logits(&y, &logits)?.reduce_mean((), false)?;
        let grads = tape.required_gradient(&loss, &vars)?;
        let alpha = 1e-3 * (1.0 - 0.999f64.powi(t)).sqrt() / (1.0 - 0.9f64.powi(t));
        for i in 0..4 {
            let g = &grads[i];
            let mn = &m[i].read() + (g - &m[i]) * 0.1;
            let vn = &v[i].read() + (g * g - &v[i]) * 0.001;
            let w = &vars[i].read() - &mn * alpha / (vn.sqrt()? + 1e-7);
            m[i].assign(&mn)?;
            v[i].assign(&vn)?;
            vars[i].assign(&w)?;
        }
        dev.flush()?;
        if t == 1 {
            println!("first {:?} loss {}", start.elapsed(), loss.item::<f32>()?);
        }
        if t % 100 == 0 {
            dev.synchronize()?;
            let s = dev.stats();
            let d = t0.elapsed().as_secs_f64() / 100.0;
            println!(
                "{t}: {:.1} steps/s ({:.2} ms) kernels/step {} submits {} hits {} misses {} bindgroups {} buffers {} loss {}",
                1.0 / d,
                d * 1e3,
                (s.kernels - s0.kernels) as f64 / 100.0,
                s.submits - s0.submits,
                s.plan_hits - s0.plan_hits,
                s.plan_misses - s0.plan_misses,
                s.bind_groups - s0.bind_groups,
                s.buffers - s0.buffers,
                loss.item::<f32>()?
            );
            t0 = Instant::now();
            s0 = dev.stats();
        }
    }
    println!("{:?}", dev.stats());
    Ok(())
}
