"""One clear sentence for inputs that do not fit: what they are, and what would fit.

Only shapes and dtypes are looked at, never numbers: that costs next to nothing. What numbers are
asked of is `known_ids`, and only once a look-up has failed.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def check_shapes(**named: tuple[torch.Tensor, str]) -> None:
    """Raise where tensors do not have the axes that are named, or differ in one of the same name.

    Each letter is an axis; "..." in front stands for any number of axes.

    Errors: TypeError for what is no tensor, ValueError for a shape that does not fit.

    >>> check_shapes(x=(torch.ones(2, 3), "...D"), gain=(torch.ones(3), "D"))
    >>> check_shapes(x=(torch.ones(2, 3), "...D"), gain=(torch.ones(4), "D"))
    Traceback (most recent call last):
    ValueError: x (2, 3) and gain (4,) differ in D: 3 and 4; give both the same D
    """
    known = {}
    for name, (x, wanted) in named.items():
        _check_is_tensor(name, x)
        shape, axes = x.shape, wanted.removeprefix("...")
        n = len(shape) - len(axes)
        if n < 0 or (n and axes is wanted):
            form = ", ".join([*(["..."] if axes != wanted else []), *axes])
            raise ValueError(
                f"{name} {tuple(shape)} should have the axes ({form}); reshape it to them"
            )
        for axis, size in zip(axes, shape[n:], strict=True):
            if axis not in known:
                known[axis] = name, size
            elif known[axis][1] != size:
                other, first = known[axis]
                raise ValueError(
                    f"{other} {tuple(named[other][0].shape)} and {name} {tuple(shape)} differ in "
                    f"{axis}: {first} and {size}; give both the same {axis}"
                )


def check_fits(weights: torch.Tensor, **named: torch.Tensor) -> None:
    """Raise where a tensor has another width than a module was built for, or another dtype.

    Errors: ValueError for another width, TypeError for another dtype and for what is no tensor.

    >>> check_fits(torch.ones(7, 6), x=torch.ones(2, 5))
    Traceback (most recent call last):
    ValueError: x (2, 5) has 5 features, and this part was built for 6; build it with d_model=5
    """
    dtype, width = weights.dtype, weights.shape[-1]
    for name, x in named.items():
        _check_is_tensor(name, x)
        if x.dtype != dtype:
            check_numbers(weights=weights, **{name: x})
        if not x.dim():
            raise ValueError(f"{name} () should have the axes (..., D); give it D = {width}")
        if x.shape[-1] != width:
            raise ValueError(
                f"{name} {tuple(x.shape)} has {x.size(-1)} features, and this part was built for "
                f"{width}; build it with d_model={x.size(-1)}"
            )


def check_numbers(**named: torch.Tensor) -> None:
    """Raise a TypeError where tensors do not all hold floating numbers of one dtype.

    >>> check_numbers(q=torch.ones(2), k=torch.ones(2).double())
    Traceback (most recent call last):
    TypeError: q is torch.float32 and k is torch.float64; convert one, as in k.to(q.dtype)
    """
    first = None
    for name, x in named.items():
        _check_is_tensor(name, x)
        if first is None:
            first, dtype = name, x.dtype
            if not dtype.is_floating_point:
                raise TypeError(f"{name} is {dtype}; convert it to real numbers, as in .float()")
        elif x.dtype != dtype:
            raise TypeError(
                f"{first} is {dtype} and {name} is {x.dtype}; convert one, as in "
                f"{name}.to({first}.dtype)"
            )


def check_integers(**named: torch.Tensor) -> None:
    """Raise a TypeError where a tensor does not hold integers.

    >>> check_integers(ids=torch.ones(2))
    Traceback (most recent call last):
    TypeError: ids is torch.float32; convert it to integers, as in .long()
    """
    for name, x in named.items():
        _check_is_tensor(name, x)
        if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.bool:
            raise TypeError(f"{name} is {x.dtype}; convert it to integers, as in .long()")


def check_mask(shape: tuple[int, ...], **named: torch.Tensor | None) -> None:
    """Raise where a mask is not boolean, or does not broadcast to ``shape``; None is no mask.

    Errors: TypeError for a mask that is not boolean, ValueError for its shape.

    >>> check_mask((2, 5), mask=torch.ones(2, 4, dtype=torch.bool))
    Traceback (most recent call last):
    ValueError: mask (2, 4) does not broadcast to (2, 5); give it that shape, or 1 for an axis
    """
    for name, mask in named.items():
        if mask is None:
            continue
        _check_is_tensor(name, mask)
        have = mask.shape
        if mask.dtype == torch.bool and have == shape:
            continue
        if mask.dtype != torch.bool:
            raise TypeError(
                f"{name} is {mask.dtype}, expected torch.bool: True where a query may look, as in "
                f"{name} == 1"
            )
        aligned = zip(reversed(have), reversed(shape), strict=False)
        if len(have) > len(shape) or any(size not in (1, wanted) for size, wanted in aligned):
            raise ValueError(
                f"{name} {tuple(have)} does not broadcast to {tuple(shape)}; give it that shape, "
                "or 1 for an axis"
            )


def check_same_shape(x: torch.Tensor, out: torch.Tensor) -> None:
    """Raise a ValueError where what came out of a sub-layer can't be added to what went in.

    >>> check_same_shape(torch.ones(2, 3), torch.ones(2, 4))
    Traceback (most recent call last):
    ValueError: x (2, 3) went in and (2, 4) came out; a sub-layer gives the shape that it takes
    """
    _check_is_tensor("x", x)
    _check_is_tensor("the output of fn", out)
    if x.shape != out.shape:
        raise ValueError(
            f"x {tuple(x.shape)} went in and {tuple(out.shape)} came out; a sub-layer gives the "
            "shape that it takes"
        )


def check_sizes(**named: int) -> None:
    """Raise where a number of positions or features is no integer, or below zero.

    Errors: TypeError for what is no integer, ValueError for one below zero.

    >>> check_sizes(n=-1)
    Traceback (most recent call last):
    ValueError: n is -1; give it a number from 0 on
    """
    for name, size in named.items():
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            raise TypeError(f"{name} is {size!r}, a {type(size).__name__}; give it an integer")
        if size < 0:
            raise ValueError(f"{name} is {size}; give it a number from 0 on")


@contextmanager
def known_ids(ids: torch.Tensor, table: torch.Tensor) -> Iterator[None]:
    """Look up within it: where that fails, say which id the table does not hold.

    Errors: ValueError for an id below 0 or past the table's last row.

    >>> with known_ids(torch.tensor([1, 7]), torch.ones(5, 2)) as _:
    ...     torch.ones(5, 2)[torch.tensor([1, 7])]
    Traceback (most recent call last):
    ValueError: id 7 is not in a table of 5 rows; ids go from 0 to 4
    """
    try:
        yield
    except IndexError:
        bad = ids[(ids < 0) | (ids >= len(table))]
        if not len(bad):
            raise
        rows = len(table)
        raise ValueError(
            f"id {bad[0].item()} is not in a table of {rows} rows; ids go from 0 to {rows - 1}"
        ) from None


def _check_is_tensor(name: str, x: object) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} is a {type(x).__name__}; make a tensor of it by torch.tensor")
