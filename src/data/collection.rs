//! The data sets that can be downloaded: their files, the checksums and the servers.

/// A data set of several files.
#[derive(Debug)]
pub(crate) struct Collection {
    /// The name for messages.
    pub(crate) name: &'static str,
    /// Its folder in the cache.
    pub(crate) folder: &'static str,
    /// The environment variable that may name another folder.
    pub(crate) variable: &'static str,
    /// The servers that hold the files, first choice first. Each address ends in a slash.
    #[cfg_attr(not(feature = "download"), allow(dead_code))]
    pub(crate) mirrors: &'static [&'static str],
    /// The names of the files, and the SHA-256 of their contents in lower-case hexadecimal digits.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The largest size of a file.
    #[cfg_attr(not(feature = "download"), allow(dead_code))]
    pub(crate) most_bytes: u64,
}

impl Collection {
    /// The names of the files.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.files.iter().map(|(name, _)| *name).collect()
    }
}

/// The largest file is 10 MB.
pub(crate) const MNIST: Collection = Collection {
    name: "mnist",
    folder: "mnist",
    variable: "MNIST_DIR",
    mirrors: &[
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ],
    files: &[
        (
            "train-images-idx3-ubyte.gz",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        (
            "t10k-images-idx3-ubyte.gz",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ],
    most_bytes: 16 << 20,
};

/// The largest file is 26 MB.
pub(crate) const FASHION_MNIST: Collection = Collection {
    name: "fashion_mnist",
    folder: "fashion-mnist",
    variable: "FASHION_MNIST_DIR",
    mirrors: &[
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ],
    files: &[
        (
            "train-images-idx3-ubyte.gz",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        ),
        (
            "t10k-images-idx3-ubyte.gz",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ],
    most_bytes: 40 << 20,
};

/// The binary version: the Python version runs code when it is read. It is 170 MB.
pub(crate) const CIFAR10: Collection = Collection {
    name: "cifar10",
    folder: "cifar-10",
    variable: "CIFAR10_DIR",
    mirrors: &["https://www.cs.toronto.edu/~kriz/"],
    files: &[(
        "cifar-10-binary.tar.gz",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    )],
    most_bytes: 200 << 20,
};
