//! A pole on a cart, which falls unless the cart is pushed to the left and to the right at the right times.
//!
//! The equations and constants are those of Barto, Sutton and Anderson (1983), "Neuronlike adaptive elements that can solve
//! difficult learning control problems". An episode ends when the cart leaves the track, when the pole leans by more than 12
//! degrees, or after [`LONGEST`] pushes. Every push gives the reward 1.

/// Numbers of a state: position (m) and velocity (m/s) of the cart, angle (rad) and angular velocity (rad/s) of the pole.
pub const STATE: usize = 4;
/// Pushes of an episode that ends with the pole upright.
pub const LONGEST: usize = 200;

const GRAVITY: f64 = 9.8;
const CART_MASS: f64 = 1.0;
const POLE_MASS: f64 = 0.1;
/// Half of the pole's length, in metres.
const HALF_LENGTH: f64 = 0.5;
const FORCE: f64 = 10.0;
/// Seconds from one push to the next.
const INTERVAL: f64 = 0.02;
const TRACK: f64 = 2.4;
const LEANING: f64 = 12.0 * std::f64::consts::PI / 180.0;

pub struct CartPole {
    state: [f64; STATE],
    pushes: usize,
    random: fastrand::Rng,
}

/// What a push led to.
pub struct Outcome {
    /// The state right after the push. If the episode has ended, it is its last one.
    pub state: [f32; STATE],
    /// The pole has fallen or the cart has left the track.
    pub failed: bool,
    /// The number of pushes of the episode that ended with this one.
    pub ended: Option<usize>,
}

impl CartPole {
    pub fn new(seed: u64) -> Self {
        let mut cart =
            CartPole { state: [0.0; STATE], pushes: 0, random: fastrand::Rng::with_seed(seed) };
        cart.restart();
        cart
    }

    pub fn state(&self) -> [f32; STATE] {
        self.state.map(|number| number as f32)
    }

    /// Pushes the cart, and begins a new episode if this one has ended.
    pub fn push(&mut self, to_the_right: bool) -> Outcome {
        let [x, velocity, angle, spin] = self.state;
        let force = if to_the_right { FORCE } else { -FORCE };
        let (sin, cos) = angle.sin_cos();
        let mass = CART_MASS + POLE_MASS;
        let pushed = (force + POLE_MASS * HALF_LENGTH * spin * spin * sin) / mass;
        let spin_rate = (GRAVITY * sin - cos * pushed)
            / (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cos * cos / mass));
        let acceleration = pushed - POLE_MASS * HALF_LENGTH * spin_rate * cos / mass;
        self.state = [
            x + INTERVAL * velocity,
            velocity + INTERVAL * acceleration,
            angle + INTERVAL * spin,
            spin + INTERVAL * spin_rate,
        ];
        self.pushes += 1;
        let failed = self.state[0].abs() > TRACK || self.state[2].abs() > LEANING;
        let state = self.state();
        let ended = (failed || self.pushes == LONGEST).then_some(self.pushes);
        if ended.is_some() {
            self.restart();
        }
        Outcome { state, failed, ended }
    }

    fn restart(&mut self) {
        self.state = std::array::from_fn(|_| (self.random.f64() - 0.5) * 0.1);
        self.pushes = 0;
    }
}
