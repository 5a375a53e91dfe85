//! Saved plans: a second process plans nothing, and files that do not fit are left alone.

use crate::support::{child, folder::Folder};

use wgrad as tf;
use wgrad::Tensor;

const NAME: &str = "test-step";

/// Runs only the test `name` of this program again, with this cache folder, and returns its output.
fn with_cache(name: &str, cache: &str) -> String {
    let mut command = child::command(module_path!(), name);
    child::passes(command.env("RUST_LOG", "wgrad=debug").env("WGRAD_CACHE", cache))
}

#[test]
#[ignore = "run by others"]
fn part_starts() {
    env_logger::init();
    let total = tf::Variable::new(Tensor::ones([8]).unwrap());
    let f = tf::function(move |x: Tensor| {
        total.assign(total.read().multiply(0.5)?.add(&x)?)?;
        total.read().reduce_sum(())
    });
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [8]).unwrap();
    x.device().flush().unwrap();
    let concrete = f.get_concrete_function((x.clone(),)).unwrap();
    let loaded = concrete.load_plan(NAME).unwrap();
    let before = x.device().stats();
    let sums: Vec<f32> = (0..3).map(|_| f(x.clone()).unwrap().item::<f32>().unwrap()).collect();
    // 8 / 2 + 36, and so on.
    assert_eq!(sums, [40.0, 56.0, 64.0]);
    let after = x.device().stats();
    println!("loaded {loaded}, planned {}", after.plan_misses > before.plan_misses);
    println!("compiled {}", after.pipelines - before.pipelines);
    println!("kernels {:?}", x.device().last_plan().unwrap().wgsl());
    match concrete.save_plan(NAME) {
        Ok(()) => println!("saved"),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn the_next_process_plans_nothing() {
    let folder = Folder::new("saved-plans");
    let path = folder.path("cache");
    let cache = path.to_str().unwrap();
    let first = with_cache("part_starts", cache);
    assert!(first.contains("loaded false, planned true") && first.contains("saved"), "{first}");
    assert!(
        first.contains("test-step does not exist; the function is planned as usual"),
        "{first}"
    );
    let second = with_cache("part_starts", cache);
    assert!(second.contains("loaded true, planned false"), "{second}");
    // By the same kernels as in the first, which the driver has kept.
    for word in ["compiled ", "kernels "] {
        let line = |text: &str| {
            text.lines().find(|line| line.starts_with(word)).unwrap_or_default().to_string()
        };
        assert!(!line(&first).is_empty(), "{first}");
        assert_eq!(line(&second), line(&first));
    }

    let path = path.join("plans").join(NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let third = with_cache("part_starts", cache);
    assert!(third.contains("it is damaged; the function is planned as usual"), "{third}");
    assert!(third.contains("loaded false, planned true"), "{third}");
}

#[test]
fn without_a_cache_folder_nothing_is_saved() {
    let text = with_cache("part_starts", "off");
    assert!(text.contains("loaded false, planned true"), "{text}");
    assert!(text.contains("save_plan: there is no folder for the plan 'test-step'"), "{text}");
}
