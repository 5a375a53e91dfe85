//! Boosted trees reach what scikit-learn's histogram trees reach on three larger tables: `cargo xtask judge`.

use crate::support::folder::Folder;

#[path = "../support/boosting.rs"]
mod boosting;

#[test]
#[ignore = "takes a Python with scikit-learn, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn boosted_trees_are_as_good_as_those_of_scikit_learn() {
    let folder = Folder::new("boosting");
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let lines = boosting::scikit_learn(&python, &folder.path(""), 1);
    for name in ["regression", "binary", "classes"] {
        let here = boosting::wgrad(&lines, &folder.path(""), name, 1);
        let there = |property: &str| boosting::numbers(&lines, name, property)[0];
        println!(
            "{name}: fit {:.2} s, scikit-learn {:.2} s; predict {:.3} s, {:.3} s",
            here.fit[0],
            there("fit"),
            here.predict[0],
            there("predict")
        );
        for (quality, value) in here.qualities {
            let wanted = there(quality);
            println!("  {quality} {value:.5}, scikit-learn {wanted:.5}");
            assert!(
                (value / wanted - 1.0).abs() < 0.005,
                "{name}: {quality} is {value}, not {wanted}"
            );
        }
    }
}
