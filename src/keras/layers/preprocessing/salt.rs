//! [`Salt`]: the key of a hash.

/// The key of a hash that others cannot predict (SipHash-2-4): one number, which counts twice, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Salt(pub(super) [i64; 2]);

impl From<i64> for Salt {
    fn from(salt: i64) -> Self {
        Salt([salt, salt])
    }
}

impl From<[i64; 2]> for Salt {
    fn from(salt: [i64; 2]) -> Self {
        Salt(salt)
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for Salt {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        self.0.to_json()
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        <[i64; 2]>::from_json(value).map(Salt)
    }
}
