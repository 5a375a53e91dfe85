//! [`CategoryEncoding`] on the host.

use super::{CategoryEncoding, OutputMode, positive};
use crate::error::Result;
use crate::host_array::{HostArray, HostDType};
use crate::keras::layers::preprocessing::host_encoding::Encoding;
use crate::keras::layers::preprocessing::host_layer::{HostLayer, integers};

impl HostLayer for CategoryEncoding {
    fn call_host(&self, x: &HostArray<'_>) -> Result<HostArray<'static>> {
        positive("CategoryEncoding", "the number of classes", &[self.num_tokens])?;
        let ids = integers("CategoryEncoding", x)?;
        let encoding = Encoding {
            layer: "CategoryEncoding",
            mode: self.output_mode,
            depth: self.num_tokens,
            dtype: if self.output_mode == OutputMode::Int {
                HostDType::I64
            } else {
                HostDType::F32
            },
            idf: &[],
        };
        encoding.encode(x.shape(), ids)
    }

    fn cardinality(&self) -> Result<Option<usize>> {
        Ok(Some(self.num_tokens).filter(|_| self.output_mode == OutputMode::Int))
    }

    #[cfg(feature = "json")]
    fn describe(&self) -> Result<crate::keras::Config> {
        crate::keras::layers::Configured::config(self)
    }
}
