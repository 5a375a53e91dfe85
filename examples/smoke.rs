use wgrad as tf;
fn main() -> tf::Result<()> {
    env_logger::init();
    let a = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
    println!("{}", &a + 1.0);
    println!("{}", a.matmul(&a)?);
    println!("{}", a.transpose(&[])?);
    println!("{}", a.reduce_sum(0, false)?);
    println!("{}", a.softmax(-1)?);
    let x = tf::constant(3.0)?;
    let tape = tf::GradientTape::new();
    tape.watch(&x)?;
    let y = &x * &x;
    println!("{:?}", tape.gradient(&y, &x)?.map(|g| g.item::<f32>()));
    let i = tf::Tensor::ones([2, 5, 5, 3])?;
    let w = tf::random::Generator::from_seed(1).normal([3, 3, 3, 4])?;
    let t = tf::GradientTape::new();
    t.watch(&w)?;
    let y = i.conv2d(&w, tf::Conv2dOptions { padding: tf::Padding::Same, ..Default::default() })?;
    let z = y.max_pool2d(Default::default())?.reduce_sum((), false)?;
    let g = t.gradient(&z, &w)?.unwrap();
    println!("{}", g.reduce_sum((), false)?);
    println!("{}", tf::random::Generator::from_seed(250641).uniform([9])?);
    println!("{:?}", tf::Device::current()?.stats());
    Ok(())
}
