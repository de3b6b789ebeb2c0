"""Vectors of eight doubles: a lane is a column of a table, or a row, and tables are turned eight by eight.

Beside `simd`, where a lane is a replica and vectors are as wide as the machine likes.  Here eight is part of the
algorithm: sorting networks and transposes run inside registers, and LLVM maps a vector to what registers there are.

Sorting keeps an index in the low bits of each double (`tag`), so that a comparator is one `max` and one `min` of whole
vectors, without branches, however the columns are ordered: the value changes by less than 2^(bits - 52) of itself.
"""

import operator

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

_DOUBLE = ir.DoubleType()
_INT64 = ir.IntType(64)
_INT32 = ir.IntType(32)
_VECTOR = ir.VectorType(_DOUBLE, 8)
_BITS = ir.VectorType(_INT64, 8)


class EightType(types.Type):
    """Eight doubles."""

    def __init__(self):
        super().__init__(name="eight_doubles")


EIGHT = EightType()


@register_model(EightType)
class _EightModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VECTOR)


def _pointer(context, builder, array_type, array, offset, kind=_VECTOR):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), kind.as_pointer())


def _spread(builder, scalar, kind=_VECTOR):
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT32, 8), [0] * 8))


def _is_flat(array, dtype=types.float64):
    """Element i of `array.reshape(-1)` is i entries after the first."""
    return isinstance(array, types.Array) and array.dtype == dtype and array.layout == "C"


@intrinsic
def load(typingctx, array, offset):
    """The eight doubles from element `offset` of a contiguous array (as if it had one axis) on."""
    if not _is_flat(array):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.load(_pointer(context, builder, signature.args[0], *arguments), align=8)

    return EIGHT(array, types.int64), codegen


@intrinsic
def store(typingctx, array, offset, eight):
    """Write eight doubles from element `offset` of a contiguous array on."""
    if not (_is_flat(array) and isinstance(eight, EightType)):
        return None

    def codegen(context, builder, signature, arguments):
        builder.store(arguments[2], _pointer(context, builder, signature.args[0], *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, eight), codegen


@intrinsic
def spread(typingctx, x):
    """Eight times the same."""

    def codegen(context, builder, signature, arguments):
        return _spread(builder, arguments[0])

    return EIGHT(types.float64), codegen


@intrinsic
def spread_from(typingctx, array, offset):
    """Eight times the element at `offset`, which is never negative."""
    if not _is_flat(array):
        return None

    def codegen(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return _spread(builder, builder.load(builder.gep(data, [arguments[1]])))

    return EIGHT(array, types.int64), codegen


@intrinsic
def integer_from(typingctx, array, offset):
    """The integer at `offset`, which is never negative."""
    if not _is_flat(array, types.int64):
        return None

    def codegen(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return types.int64(array, types.int64), codegen


@intrinsic
def fma(typingctx, a, b, c):
    """a b + c, rounded once."""
    if not all(isinstance(x, EightType) for x in (a, b, c)):
        return None

    def codegen(context, builder, signature, arguments):
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64"), arguments)

    return EIGHT(a, b, c), codegen


def _both(operation):
    """An intrinsic on two vectors from `operation(builder, x, y)`."""

    @intrinsic
    def both(typingctx, a, b):
        if not (isinstance(a, EightType) and isinstance(b, EightType)):
            return None

        def codegen(context, builder, signature, arguments):
            return operation(builder, *arguments)

        return EIGHT(a, b), codegen

    return both


def _overload(python_operator, instruction):
    operation = _both(lambda builder, x, y: getattr(builder, instruction)(x, y))

    @overload(python_operator, inline="always")
    def choose(a, b):
        if isinstance(a, EightType) and isinstance(b, EightType):
            return lambda a, b: operation(a, b)
        return None


for _operator, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _overload(_operator, _instruction)

greater = _both(lambda builder, x, y: builder.select(builder.fcmp_ordered(">", x, y), x, y))
lesser = _both(lambda builder, x, y: builder.select(builder.fcmp_ordered("<", x, y), x, y))

# Nineteen comparators sort eight (Knuth, TAOCP 3, 5.3.4); a bitonic merger joins two sorted eights.
SORT_8 = [
    *[(0, 2), (1, 3), (4, 6), (5, 7), (0, 4), (1, 5), (2, 6), (3, 7), (0, 1), (2, 3)],
    *[(4, 5), (6, 7), (2, 4), (3, 5), (1, 4), (3, 6), (1, 2), (3, 4), (5, 6)],
]
MERGE_8_8 = [
    *[(i, 15 - i) for i in range(8)],
    *[(i, i + half) for half in (4, 2, 1) for i in range(16) if not i & half],
]


def merge_exchange(n):
    """Batcher's comparators (i, j), i < j, that sort n items, or n sorted blocks when each is a `merge`."""
    pairs = []
    top = 1
    while top < n:
        top *= 2
    p = top // 2
    while p > 0:
        q, r, d = top // 2, 0, p
        while True:
            pairs += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return pairs


def _offsets(builder, first, stride=8, count=8):
    return [builder.add(first, ir.Constant(_INT64, stride * i)) for i in range(count)]


def _exchange(builder, rows, pairs):
    """The greater of each pair to its first place; equal ones (also a NaN) change places, so that none is lost."""
    for i, j in pairs:
        x, y = rows[i], rows[j]
        above = builder.fcmp_ordered(">", x, y)
        rows[i] = builder.select(above, x, y)
        rows[j] = builder.select(above, y, x)


@intrinsic
def tag(typingctx, eight, mask, index):
    """`eight` with the bits of `mask` replaced by those of `index`."""

    def codegen(context, builder, signature, arguments):
        eight, mask, index = arguments
        kept = builder.and_(builder.bitcast(eight, _BITS), _spread(builder, builder.not_(mask), _BITS))
        return builder.bitcast(builder.or_(kept, _spread(builder, index, _BITS)), _VECTOR)

    return EIGHT(eight, types.int64, types.int64), codegen


@intrinsic
def store_tags(typingctx, array, offset, eight, mask, factor):
    """Write `factor` times the tags of eight doubles to a contiguous array of 64-bit integers."""
    if not _is_flat(array, types.int64):
        return None

    def codegen(context, builder, signature, arguments):
        array, offset, eight, mask, factor = arguments
        tags = builder.and_(builder.bitcast(eight, _BITS), _spread(builder, mask, _BITS))
        place = _pointer(context, builder, signature.args[0], array, offset, _BITS)
        builder.store(builder.mul(tags, _spread(builder, factor, _BITS)), place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, EIGHT, types.int64, types.int64), codegen


def _network(pairs, blocks):
    """An intrinsic that runs vectors of an array through comparators: those of `blocks` runs of eight vectors."""

    def run(context, builder, signature, arguments):
        array, *firsts = arguments
        places = [
            _pointer(context, builder, signature.args[0], array, offset)
            for first in firsts
            for offset in _offsets(builder, first)
        ]
        rows = [builder.load(place, align=8) for place in places]
        _exchange(builder, rows, pairs)
        for place, row in zip(places, rows, strict=True):
            builder.store(row, place, align=8)
        return context.get_dummy_value()

    if blocks == 1:

        @intrinsic
        def network(typingctx, array, first):
            return types.void(array, types.int64), run

    else:

        @intrinsic
        def network(typingctx, array, first, second):
            return types.void(array, types.int64, types.int64), run

    return network


sort = _network(SORT_8, 1)  # (array, offset): sort eight vectors, lane by lane, greatest first
merge = _network(MERGE_8_8, 2)  # (array, offset, other): join two sorted eights, the greater half to the first


def _turned(builder, rows):
    """The transpose of eight vectors."""
    for half in (4, 2, 1):
        low = [j if not j & half else (j ^ half) + 8 for j in range(8)]
        high = [j | half if not j & half else j + 8 for j in range(8)]
        turned = list(rows)
        for i in range(8):
            if not i & half:
                for place, mask in ((i, low), (i | half, high)):
                    eight = ir.Constant(ir.VectorType(_INT32, 8), mask)
                    turned[place] = builder.shuffle_vector(rows[i], rows[i | half], eight)
        rows = turned
    return rows


@intrinsic
def store_turned(typingctx, array, offset, stride, v0, v1, v2, v3, v4, v5, v6, v7):
    """array[offset + stride i + j] = lane i of v_j, for i, j = 0 ... 7."""
    vectors = (v0, v1, v2, v3, v4, v5, v6, v7)
    if any(not isinstance(v, EightType) for v in vectors):
        return None

    def codegen(context, builder, signature, arguments):
        array, offset, stride, *rows = arguments
        for i, row in enumerate(_turned(builder, rows)):
            place = builder.add(offset, builder.mul(stride, ir.Constant(_INT64, i)))
            builder.store(row, _pointer(context, builder, signature.args[0], array, place), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, *vectors), codegen


@intrinsic
def sum_of(typingctx, eight):
    """The eight doubles added, in a fixed order."""

    def codegen(context, builder, signature, arguments):
        parts = [builder.extract_element(arguments[0], ir.Constant(_INT32, i)) for i in range(8)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(parts[i], parts[i + half]) for i in range(half)]
        return parts[0]

    return types.float64(EIGHT), codegen


@intrinsic
def greatest_of(typingctx, eight):
    """The greatest of the eight doubles."""

    def codegen(context, builder, signature, arguments):
        parts = [builder.extract_element(arguments[0], ir.Constant(_INT32, i)) for i in range(8)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [
                builder.select(builder.fcmp_ordered(">", parts[i], parts[i + half]), parts[i], parts[i + half])
                for i in range(half)
            ]
        return parts[0]

    return types.float64(EIGHT), codegen


@intrinsic
def _times_power_of_two(typingctx, x, shifted):
    """x 2^k, where `shifted` is k + 1.5 2^52: the low bits of such a double are k itself."""

    def codegen(context, builder, signature, arguments):
        x, k = (builder.bitcast(argument, _BITS) for argument in arguments)
        return builder.bitcast(builder.add(x, builder.shl(k, ir.Constant(_BITS, [52] * 8))), _VECTOR)

    return EIGHT(EIGHT, EIGHT), codegen


@njit(cache=True, inline="always")
def exp_bounded(x):
    """exp(x) for |x| <= 700, to two ulp: `simd.exp_bounded`, eight at a time."""
    shift = spread(6755399441055744.0)
    shifted = fma(x, spread(1.4426950408889634), shift)
    k = shifted - shift
    r = fma(k, spread(-1.9082149292705877e-10), fma(k, spread(-0.6931471803691238), x))
    q = fma(r, spread(2.500007143815505e-08), spread(2.763023549528393e-07))
    q = fma(q, r, spread(2.7557586274809706e-06))
    q = fma(q, r, spread(2.480149313232483e-05))
    q = fma(q, r, spread(0.00019841269506764886))
    q = fma(q, r, spread(0.0013888888943600877))
    q = fma(q, r, spread(0.008333333333494342))
    q = fma(q, r, spread(0.04166666666653026))
    q = fma(q, r, spread(0.16666666666666413))
    q = fma(q, r, spread(0.5000000000000011))
    q = fma(q, r, spread(1.0))
    return _times_power_of_two(fma(q, r, spread(1.0)), shifted)
