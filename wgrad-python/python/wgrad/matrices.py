"""Functions of `tf.linalg` that are composed of others, or that compute on the host in 64 bits."""

import numpy as np

from . import ops as _ops
from .complex_numbers import ComplexTensor, of as _complex
from .errors import InvalidArgumentError
from .ops import FUNCTIONS as _F
from .tape import custom_gradient
from .tensor import convert_to_tensor


def _square(call, x):
    shape = list(x.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{call}: the input is {shape}; its last two axes must be those of a square matrix.")
    return x


def _read(x):
    """A matrix in 64 bits."""
    return x.numpy().astype("complex128" if isinstance(x, ComplexTensor) else "float64")


def _is_root(root, x, within):
    return np.isfinite(root).all() and np.linalg.norm(root @ root - x, 1) <= within * np.linalg.norm(x, 1)


def _root(x):
    """The principal root of one matrix, by Denman's and Beavers' iteration, or by its eigenvalues; `None` if both find none."""
    y, z = x, np.eye(len(x), dtype=x.dtype)
    try:
        for _ in range(100):
            following, z = 0.5 * (y + np.linalg.inv(z)), 0.5 * (z + np.linalg.inv(y))
            done = np.linalg.norm(following - y, 1) <= 1e-13 * np.linalg.norm(following, 1)
            y = following
            if done or not np.isfinite(y).all():
                break
        if _is_root(y, x, 1e-9):
            return y
    except np.linalg.LinAlgError:
        pass
    # A matrix with eigenvalues of 0, such as a covariance, whose elements were rounded to 32 bits.
    rounding = len(x) * 2.0**-23
    if not np.isfinite(x).all():
        return None
    values, vectors = np.linalg.eig(x.astype("complex128"))
    values = np.where(np.abs(values) <= rounding * np.abs(values).max(initial=0), 0, values)
    try:
        y = vectors @ np.diag(np.sqrt(values)) @ np.linalg.inv(vectors)
    except np.linalg.LinAlgError:
        return None
    if np.isrealobj(x):
        if np.linalg.norm(y.imag, 1) > rounding * np.linalg.norm(y, 1):
            return None
        y = y.real
    return y if _is_root(y, x, 10 * rounding) else None


def sqrtm(input, name=None):
    """TensorFlow's `tf.linalg.sqrtm`: the matrix whose square is the input, and whose eigenvalues have positive real parts. It computes on
    the host in 64 bits."""
    x = _square("sqrtm", convert_to_tensor(input))
    matrices = _read(x)
    roots = np.empty_like(matrices)
    for at in np.ndindex(matrices.shape[:-2]):
        root = _root(matrices[at]) if len(matrices[at]) else matrices[at]
        if root is None:
            raise InvalidArgumentError(
                f"sqrtm: the matrix at {list(at)} has no real root that can be computed. The eigenvalues "
                f"are {np.linalg.eigvals(matrices[at])}."
            )
        roots[at] = root
    result = convert_to_tensor(roots.astype("float32"))

    @custom_gradient
    def call(x):
        def gradient(dy):
            # From dX = dR R + R dR: the gradient g of X solves R' g + g R' = dy.
            given, size = dy.numpy().astype("float64"), roots.shape[-1]
            made = np.empty_like(given)
            for at in np.ndindex(given.shape[:-2]):
                transposed, unit = roots[at].T, np.eye(size)
                system = np.kron(transposed, unit) + np.kron(unit, roots[at])
                try:
                    made[at] = np.linalg.solve(system, given[at].reshape(-1)).reshape(size, size)
                except np.linalg.LinAlgError:
                    raise InvalidArgumentError(f"sqrtm: the matrix at {list(at)} is singular; its root has no gradient.") from None
            return convert_to_tensor(made.astype("float32"))

        return result, gradient

    return _ops.cast(call(x), x._dtype)


def _eigen(call, tensor):
    x = tensor if isinstance(tensor, ComplexTensor) else convert_to_tensor(tensor)
    matrices = _read(_square(call, x))
    if not np.isfinite(matrices).all():
        raise InvalidArgumentError(f"{call}: the input has Inf or NaN values, which have no eigenvalues.")
    return matrices


def eig(tensor, name=None):
    """TensorFlow's `tf.linalg.eig`: the eigenvalues and the eigenvectors, which are complex, in no particular order. It computes on the
    host in 64 bits, without a gradient."""
    values, vectors = np.linalg.eig(_eigen("eig", tensor))
    return _complex(values.astype("complex64")), _complex(vectors.astype("complex64"))


def eigvals(tensor, name=None):
    """TensorFlow's `tf.linalg.eigvals`: the eigenvalues, which are complex, in no particular order. It computes on the host in 64 bits,
    without a gradient."""
    return _complex(np.linalg.eigvals(_eigen("eigvals", tensor)).astype("complex64"))


def logm(input, name=None):
    """TensorFlow's `tf.linalg.logm`: the principal logarithm of complex matrices. It computes on the host in 64 bits, without a
    gradient."""
    if not isinstance(input, ComplexTensor):
        found = np.asarray(input).dtype
        if found.kind != "c":
            raise TypeError(f"logm: the input is {found}; it must be complex, as in TensorFlow: tf.cast(x, tf.complex64).")
        input = _complex(input)
    matrices = _read(_square("logm", input))
    made = np.empty_like(matrices)
    for at in np.ndindex(matrices.shape[:-2]):
        made[at] = _logarithm(matrices[at], at)
    return _complex(made.astype("complex64"))


def _logarithm(x, at):
    """The logarithm of one matrix: of a root that is near 1, by Gregory's series."""
    unit, root, halvings = np.eye(len(x), dtype=x.dtype), x, 0
    while len(x) and np.linalg.norm(root - unit, 1) > 0.25:
        root, halvings = _root(root), halvings + 1
        if root is None or halvings > 60:
            raise InvalidArgumentError(
                f"logm: the matrix at {list(at)} has no principal logarithm: an eigenvalue is negative or 0. The eigenvalues are "
                f"{np.linalg.eigvals(x)}."
            )
    ratio = np.linalg.solve(root + unit, root - unit)
    power, made = ratio, np.zeros_like(x)
    for odd in range(1, 40, 2):
        made += power / odd
        power = power @ ratio @ ratio
    return made * 2.0 ** (halvings + 1)


# ---- factors of matrices ----


def lu_reconstruct(lower_upper, perm, validate_args=False, name=None):
    """TensorFlow's `tf.linalg.lu_reconstruct`: the matrix of the factors that `tf.linalg.lu` returned."""
    factors = convert_to_tensor(lower_upper)
    size = factors._shape[-1]
    lower = _F["linalg.set_diag"](_F["linalg.band_part"](factors, -1, 0), _ops.ones(factors._shape[:-1], factors._dtype))
    made = _F["linalg.matmul"](lower, _F["linalg.band_part"](factors, 0, -1))
    rows = _F["argsort"](convert_to_tensor(perm), axis=-1)
    return _F["gather"](made, rows, axis=len(made._shape) - 2, batch_dims=len(made._shape) - 2) if size else made


def lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None):
    """TensorFlow's `tf.linalg.lu_matrix_inverse`: the inverse of the matrix whose factors `tf.linalg.lu` returned."""
    factors = convert_to_tensor(lower_upper)
    unit = np.broadcast_to(np.eye(factors._shape[-1], dtype="float32"), tuple(factors._shape))
    return _F["linalg.lu_solve"](factors, perm, _ops.cast(unit, factors._dtype))


# ---- matrices of few diagonals ----


def _shifted(diagonal, offset):
    """A matrix with a diagonal above the middle, or below it if the offset is negative."""
    rank = len(diagonal._shape)
    pad = lambda before, after: [[0, 0]] * (rank - 1) + [[before, after]]
    wide = _F["linalg.diag"](diagonal)
    rows, columns = ([0, offset], [offset, 0]) if offset > 0 else ([-offset, 0], [0, -offset])
    return _F["pad"](wide, [[0, 0]] * (rank - 1) + [rows, columns]) if offset else wide


def _three(call, diagonals, form):
    """The diagonals above the middle, in it, and below it, without the elements that lie outside of the matrix."""
    if form == "sequence":
        parts = [convert_to_tensor(part) for part in diagonals]
        if len(parts) != 3:
            raise ValueError(f"{call}: there are {len(parts)} diagonals; a sequence has 3: above, in the middle, below.")
        size = parts[1]._shape[-1]
        above, below = parts[0], parts[2]
        above = above[..., : size - 1]
        below = below[..., 1:] if below._shape[-1] == size else below
        return above, parts[1], below
    made = convert_to_tensor(diagonals)
    shape = list(made._shape)
    if form == "compact":
        if len(shape) < 2 or shape[-2] != 3:
            raise ValueError(f"{call}: the diagonals are {shape}; in the compact format they must be [.., 3, N].")
        return made[..., 0, : shape[-1] - 1], made[..., 1, :], made[..., 2, 1:]
    if form == "matrix":
        _square(call, made)
        part = lambda rows, columns: _F["linalg.diag_part"](made[..., rows, columns])
        rest, most = slice(1, None), slice(0, shape[-1] - 1)
        return part(most, rest), _F["linalg.diag_part"](made), part(rest, most)
    raise ValueError(f"{call}: diagonals_format is {form!r}; it must be 'compact', 'matrix' or 'sequence'.")


def _tridiagonal(call, diagonals, form):
    above, middle, below = _three(call, diagonals, form)
    made = _F["linalg.diag"](middle)
    return made + _shifted(above, 1) + _shifted(below, -1) if middle._shape[-1] > 1 else made


def tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False, conjugate_rhs=False, name=None,
                      partial_pivoting=True, perturb_singular=False):
    """TensorFlow's `tf.linalg.tridiagonal_solve`: the solution for a matrix of three diagonals, which is computed as that of a whole
    matrix, with pivots."""
    if perturb_singular:
        raise TypeError("tridiagonal_solve: perturb_singular is not supported; leave it out.")
    matrix, rhs = _tridiagonal("tridiagonal_solve", diagonals, diagonals_format), convert_to_tensor(rhs)
    if transpose_rhs:
        rhs = _F["linalg.matrix_transpose"](rhs)
    vector = len(rhs._shape) == len(matrix._shape) - 1
    made = _F["linalg.solve"](matrix, rhs[..., None] if vector else rhs)
    return made[..., 0] if vector else made


def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    """TensorFlow's `tf.linalg.tridiagonal_matmul`: the product of a matrix of three diagonals and another one."""
    above, middle, below = _three("tridiagonal_matmul", diagonals, diagonals_format)
    rhs = convert_to_tensor(rhs)
    if len(rhs._shape) < 2 or rhs._shape[-2] != middle._shape[-1]:
        raise ValueError(f"tridiagonal_matmul: rhs is {list(rhs._shape)}; it must be [.., {middle._shape[-1]}, K].")
    made = middle[..., None] * rhs
    if middle._shape[-1] == 1:
        return made
    pad = lambda x, before, after: _F["pad"](x, [[0, 0]] * (len(x._shape) - 2) + [[before, after], [0, 0]])
    return made + pad(above[..., None] * rhs[..., 1:, :], 0, 1) + pad(below[..., None] * rhs[..., :-1, :], 1, 0)


def banded_triangular_solve(bands, rhs, lower=True, adjoint=False, name=None):
    """TensorFlow's `tf.linalg.banded_triangular_solve`: the solution for a triangular matrix of few diagonals. `bands` has the middle one
    first if `lower`, and last otherwise."""
    bands, rhs = convert_to_tensor(bands), convert_to_tensor(rhs)
    count, size = bands._shape[-2:]
    if not 0 < count <= max(size, 1):
        raise ValueError(f"banded_triangular_solve: bands are {list(bands._shape)}; there must be 1 to {size}.")
    matrix = None
    for at in range(count):
        # Rows of bands are aligned as TensorFlow's: those below the middle begin with elements outside, those above end with them.
        offset = -at if lower else count - 1 - at
        part = _shifted(bands[..., at, at:] if lower else bands[..., at, : size - offset], offset)
        matrix = part if matrix is None else matrix + part
    return _F["linalg.triangular_solve"](matrix, rhs, lower=lower, adjoint=adjoint)


def eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None):
    """TensorFlow's `tf.linalg.eigh_tridiagonal`: the eigenvalues of a symmetric matrix with the diagonal `alpha` and `beta` next to it, and
    their vectors unless `eigvals_only`."""
    alpha, beta = convert_to_tensor(alpha), convert_to_tensor(beta)
    if len(alpha._shape) != 1 or list(beta._shape) != [alpha._shape[0] - 1]:
        raise ValueError(f"eigh_tridiagonal: alpha is {list(alpha._shape)} and beta {list(beta._shape)}; they must be [N] and [N - 1].")
    matrix = _tridiagonal("eigh_tridiagonal", (beta, alpha, beta), "sequence")
    values, vectors = _F["linalg.eigh"](matrix)
    if select == "i":
        chosen = slice(int(select_range[0]), int(select_range[1]) + 1)
    elif select == "v":
        inside = values.numpy()
        low, high = (float(bound) for bound in select_range)
        found = ((inside > low) & (inside <= high)).nonzero()[0]
        chosen = slice(int(found[0]), int(found[-1]) + 1) if len(found) else slice(0, 0)
    elif select == "a":
        chosen = slice(None)
    else:
        raise ValueError(f"eigh_tridiagonal: select is {select!r}; it must be 'a', 'i' or 'v'.")
    return values[chosen] if eigvals_only else (values[chosen], vectors[:, chosen])


FUNCTIONS = (
    banded_triangular_solve, eig, eigh_tridiagonal, eigvals, logm, lu_matrix_inverse, lu_reconstruct, sqrtm, tridiagonal_matmul,
    tridiagonal_solve,
)


def install(top, linalg):
    """Puts the functions into `tf.linalg`, and those that TensorFlow has at its top there, too."""
    for function in FUNCTIONS:
        linalg[function.__name__] = function
    top.update(eig=eig, eigvals=eigvals, matrix_square_root=sqrtm)
