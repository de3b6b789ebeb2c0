"""Fused multiply-add, exponentials, and vectors of replicas as values inside compiled code.

`Lanes` is a vector of LANES doubles, one a replica.  Numba has no such type and its loops over a short last axis do
not keep accumulators in registers; with it a kernel reads like scalar code and runs LANES replicas at once.  LLVM
maps a vector to the widest registers there are.

Every operation is the IEEE one, applied to each lane by itself, and `fma` rounds once by definition: scalar and vector
code that does the same operations in the same order gives the same bits, on any machine, whatever the neighbours are.
"""

import operator

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

# Two registers a vector, and as many rows of a product as the registers hold with their factors.
_FEATURES = get_host_cpu_features()
LANES, ROWS = (16, 14) if _FEATURES.get("avx512f") else (8, 6)

_DOUBLE = ir.DoubleType()
_INT64 = ir.IntType(64)


class LanesType(types.Type):
    """LANES doubles."""

    def __init__(self):
        super().__init__(name=f"lanes_{LANES}")


LANES_T = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(_DOUBLE, LANES))


def _of_floats(*given):
    """The common type of operands that are doubles or vectors of them; None for anything else."""
    if any(not isinstance(t, (LanesType, types.Float)) for t in given):
        return None
    return LANES_T if any(isinstance(t, LanesType) for t in given) else types.float64


def _spread(builder, scalar, element=_DOUBLE):
    """A vector with the same scalar in every lane."""
    vector = ir.VectorType(element, LANES)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _operands(context, builder, signature, arguments):
    """The arguments as doubles or, where the result is a vector, all as vectors."""
    found = []
    for given, value in zip(signature.args, arguments, strict=True):
        if isinstance(given, LanesType):
            found.append(value)
            continue
        value = context.cast(builder, value, given, types.float64)
        found.append(_spread(builder, value) if isinstance(signature.return_type, LanesType) else value)
    return found


def _call(builder, name, operands):
    """An LLVM intrinsic on doubles, or the same on vectors of them."""
    kind = operands[0].type
    suffix = f"v{LANES}f64" if isinstance(kind, ir.VectorType) else "f64"
    function_type = ir.FunctionType(kind, [kind] * len(operands))
    function = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.{suffix}")
    return builder.call(function, operands)


@intrinsic
def fma(typingctx, a, b, c):
    """a b + c, rounded once."""
    common = _of_floats(a, b, c)
    if common is None:
        return None

    def codegen(context, builder, signature, arguments):
        return _call(builder, "fma", _operands(context, builder, signature, arguments))

    return common(a, b, c), codegen


def _binary(name):
    @intrinsic
    def operation(typingctx, a, b):
        common = _of_floats(a, b)
        if common is None:
            return None

        def codegen(context, builder, signature, arguments):
            return getattr(builder, name)(*_operands(context, builder, signature, arguments))

        return common(a, b), codegen

    return operation


_fadd, _fsub, _fmul, _fdiv = (_binary(name) for name in ("fadd", "fsub", "fmul", "fdiv"))


def _overload_operator(python_operator, operation):
    @overload(python_operator, inline="always")
    def choose(a, b):
        if isinstance(a, LanesType) or isinstance(b, LanesType):
            return lambda a, b: operation(a, b)
        return None


_overload_operator(operator.add, _fadd)
_overload_operator(operator.sub, _fsub)
_overload_operator(operator.mul, _fmul)
_overload_operator(operator.truediv, _fdiv)


def _selected(comparison):
    """An intrinsic (a, b) -> a where `a comparison b`, else b."""

    @intrinsic
    def operation(typingctx, a, b):
        common = _of_floats(a, b)
        if common is None:
            return None

        def codegen(context, builder, signature, arguments):
            x, y = _operands(context, builder, signature, arguments)
            return builder.select(builder.fcmp_ordered(comparison, x, y), x, y)

        return common(a, b), codegen

    return operation


greater = _selected(">")
lesser = _selected("<")


@intrinsic
def add_exponent(typingctx, x, shifted):
    """x 2^k, where `shifted` is k + 1.5 2^52: the low bits of such a double are k itself."""
    common = _of_floats(x, shifted)
    if common is None:
        return None

    def codegen(context, builder, signature, arguments):
        value, k = _operands(context, builder, signature, arguments)
        wide = isinstance(signature.return_type, LanesType)
        bits = ir.VectorType(_INT64, LANES) if wide else _INT64
        by = ir.Constant(bits, [52] * LANES if wide else 52)
        moved = builder.add(builder.bitcast(value, bits), builder.shl(builder.bitcast(k, bits), by))
        return builder.bitcast(moved, value.type)

    return common(x, shifted), codegen


SMALL = 0.0625  # where `exp_small` holds

_SHIFT = 6755399441055744.0  # 1.5 2^52
_LOG2_E = 1.4426950408889634
_LN2_HIGH = -0.6931471803691238  # 32 bits of -ln 2, so that k times it is exact
_LN2_LOW = -1.9082149292705877e-10


@njit(cache=True, inline="always")
def exp_small(x):
    """exp(x) for |x| <= SMALL, to an ulp: 1 + x + x² q(x), q the minimax polynomial (relative error 5.4e-17)."""
    q = fma(x, 0.00019839790863118316, 0.0013890742271279739)
    q = fma(q, x, 0.008333333497703425)
    q = fma(q, x, 0.0416666662498031)
    q = fma(q, x, 0.1666666666664008)
    q = fma(q, x, 0.5000000000002649)
    q = fma(q, x, 1.0)
    return fma(q, x, 1.0)


@njit(cache=True, inline="always")
def exp_bounded(x):
    """exp(x) for |x| <= 700, to two ulp: x = k ln 2 + r, a minimax polynomial of r (relative error 3.6e-18)."""
    shifted = fma(x, _LOG2_E, _SHIFT)
    k = shifted - _SHIFT
    r = fma(k, _LN2_LOW, fma(k, _LN2_HIGH, x))
    q = fma(r, 2.500007143815505e-08, 2.763023549528393e-07)
    q = fma(q, r, 2.7557586274809706e-06)
    q = fma(q, r, 2.480149313232483e-05)
    q = fma(q, r, 0.00019841269506764886)
    q = fma(q, r, 0.0013888888943600877)
    q = fma(q, r, 0.008333333333494342)
    q = fma(q, r, 0.04166666666653026)
    q = fma(q, r, 0.16666666666666413)
    q = fma(q, r, 0.5000000000000011)
    q = fma(q, r, 1.0)
    return add_exponent(fma(q, r, 1.0), shifted)


class PointerType(types.Type):
    """Where the elements of a contiguous array are, without its sizes or a share in its ownership."""

    def __init__(self, element):
        self.element = element
        super().__init__(name=f"pointer_to_{element}")


@register_model(PointerType)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, dmm.lookup(fe_type.element).get_data_type().as_pointer())


@intrinsic
def pointers(typingctx, arrays):
    """The same NamedTuple with a pointer in place of each array; other fields as they are.

    An array is counted in and out wherever it is handed on, which costs more than the work on a vector; a pointer is
    not.  The caller keeps the arrays alive.
    """
    if not isinstance(arrays, types.BaseNamedTuple):
        return None
    if any(isinstance(field, types.Array) and field.layout != "C" for field in arrays.types):
        return None
    fields = [PointerType(field.dtype) if isinstance(field, types.Array) else field for field in arrays.types]

    def codegen(context, builder, signature, arguments):
        values = []
        for i, field in enumerate(signature.args[0].types):
            value = builder.extract_value(arguments[0], i)
            values.append(
                context.make_array(field)(context, builder, value).data if isinstance(field, types.Array) else value
            )
        return context.make_tuple(builder, signature.return_type, values)

    return types.BaseTuple.from_types(fields, arrays.instance_class)(arrays), codegen


@intrinsic
def _get(typingctx, pointer, i):
    def codegen(context, builder, signature, arguments):
        return builder.load(builder.gep(arguments[0], [arguments[1]]))

    return pointer.element(pointer, types.int64), codegen


@intrinsic
def _set(typingctx, pointer, i, value):
    def codegen(context, builder, signature, arguments):
        builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]]))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, pointer.element), codegen


@overload(operator.getitem, inline="always")
def _pointer_getitem(pointer, i):
    if isinstance(pointer, PointerType) and isinstance(i, types.Integer):
        return lambda pointer, i: _get(pointer, i)
    return None


@overload(operator.setitem, jit_options={"forceinline": True})
def _pointer_setitem(pointer, i, value):
    if isinstance(pointer, PointerType) and isinstance(i, types.Integer):
        return lambda pointer, i, value: _set(pointer, i, value)
    return None


def _vector_at(builder, pointer, offset):
    """A pointer to LANES doubles from element `offset` on."""
    return builder.bitcast(builder.gep(pointer, [offset]), ir.VectorType(_DOUBLE, LANES).as_pointer())


def _points_to_doubles(*given):
    return all(isinstance(t, PointerType) and t.element == types.float64 for t in given)


@intrinsic
def load(typingctx, pointer, offset):
    """The LANES doubles from element `offset` on."""
    if not (_points_to_doubles(pointer) and isinstance(offset, types.Integer)):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.load(_vector_at(builder, *arguments), align=8)

    return LANES_T(pointer, types.int64), codegen


@intrinsic
def store(typingctx, pointer, offset, lanes):
    """Write LANES doubles from element `offset` on."""
    if not (_points_to_doubles(pointer) and isinstance(offset, types.Integer) and isinstance(lanes, LanesType)):
        return None

    def codegen(context, builder, signature, arguments):
        builder.store(arguments[2], _vector_at(builder, *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, lanes), codegen


@intrinsic
def prefetch(typingctx, pointer, offset):
    """Ask for the cache line of an element that will be read soon; nothing happens where there is none."""

    def codegen(context, builder, signature, arguments):
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [place.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(i32, flag) for flag in (0, 1, 1))])  # to read, into all caches
        return context.get_dummy_value()

    return types.void(pointer, types.int64), codegen


@intrinsic
def spread(typingctx, x):
    """A vector with x in every lane."""

    def codegen(context, builder, signature, arguments):
        return _spread(builder, arguments[0])

    return LANES_T(types.float64), codegen


@intrinsic
def where_equal(typingctx, a, b, x, y):
    """x where a == b, else y."""
    if _of_floats(a, b, x, y) is None:
        return None

    def codegen(context, builder, signature, arguments):
        p, q, x, y = _operands(context, builder, signature, arguments)
        return builder.select(builder.fcmp_ordered("==", p, q), x, y)

    return LANES_T(a, b, x, y), codegen


@intrinsic
def absolute(typingctx, x):
    """|x|"""
    common = _of_floats(x)

    def codegen(context, builder, signature, arguments):
        return _call(builder, "fabs", arguments)

    return common(x), codegen


@intrinsic
def beyond(typingctx, greatest, limit, least, bound):
    """A bit for each lane that is not greatest <= limit and least >= bound; a NaN counts as beyond."""

    def codegen(context, builder, signature, arguments):
        operands = []
        for given, value in zip(signature.args, arguments, strict=True):
            operands.append(value if isinstance(given, LanesType) else _spread(builder, value))
        within = builder.and_(
            builder.fcmp_ordered("<=", operands[0], operands[1]), builder.fcmp_ordered(">=", operands[2], operands[3])
        )
        bits = builder.bitcast(builder.not_(within), ir.IntType(LANES))
        return builder.zext(bits, _INT64) if LANES < 64 else bits

    return types.int64(greatest, types.float64, least, types.float64), codegen


@intrinsic
def is_zero(typingctx, x):
    """Whether every lane is 0."""

    def codegen(context, builder, signature, arguments):
        zeros = ir.Constant(ir.VectorType(_DOUBLE, LANES), [0.0] * LANES)
        bits = builder.bitcast(builder.fcmp_unordered("!=", arguments[0], zeros), ir.IntType(LANES))
        return builder.icmp_unsigned("==", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(x), codegen


@intrinsic
def count_at_most(typingctx, pointer, offset, groups, u):
    """How many of the 8 `groups` entries from element `offset` on are <= u."""
    if not _points_to_doubles(pointer):
        return None
    wide = ir.VectorType(_DOUBLE, 8)

    def codegen(context, builder, signature, arguments):
        first = builder.gep(arguments[0], [arguments[1]])
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
        one = builder.insert_element(ir.Constant(wide, ir.Undefined), arguments[3], ir.Constant(ir.IntType(32), 0))
        limit = builder.shuffle_vector(one, ir.Constant(wide, ir.Undefined), zeros)
        before = builder.block
        loop = builder.append_basic_block("count")
        after = builder.append_basic_block("counted")
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(_INT64)
        count = builder.phi(_INT64)
        pointer = builder.gep(first, [builder.mul(i, ir.Constant(_INT64, 8))])
        values = builder.load(builder.bitcast(pointer, wide.as_pointer()), align=8)
        bits = builder.bitcast(builder.fcmp_ordered("<=", values, limit), ir.IntType(8))
        found = builder.zext(builder.ctpop(bits), _INT64)
        counted = builder.add(count, found)
        following = builder.add(i, ir.Constant(_INT64, 1))
        for phi, value in ((i, following), (count, counted)):
            phi.add_incoming(ir.Constant(_INT64, 0), before)
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, arguments[2]), loop, after)
        builder.position_at_end(after)
        return counted

    return types.int64(pointer, types.int64, types.int64, types.float64), codegen


def _emit_product(builder, depth, out, rows, add, pointers_and_strides, terms):
    """Emit out[i] (+)= Σ_k x_i(k) y_i(k) for i < rows <= ROWS, all sums kept in registers.

    One loop over k is emitted for each number of rows that there can be.  `pointers_and_strides` are pointers that move
    on with k; `terms(n, pointers)` gives the n pairs (x_i, y_i) of vectors at the current k.
    """
    vector = ir.VectorType(_DOUBLE, LANES)
    zero = ir.Constant(vector, [0.0] * LANES)
    one = ir.Constant(_INT64, 1)
    after = builder.append_basic_block("product")
    choice = builder.switch(rows, after)
    for n in range(1, ROWS + 1):
        entry = builder.append_basic_block(f"rows_{n}")
        loop = builder.append_basic_block(f"rows_{n}_loop")
        done = builder.append_basic_block(f"rows_{n}_done")
        choice.add_case(ir.Constant(_INT64, n), entry)

        builder.position_at_end(entry)
        places = [builder.gep(out, [ir.Constant(_INT64, i)]) for i in range(n)]
        starts = [builder.select(add, builder.load(place, align=8), zero) for place in places]
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(_INT64)
        moving = [builder.phi(pointer.type) for pointer, _ in pointers_and_strides]
        sums = [builder.phi(vector) for _ in range(n)]
        new = [_call(builder, "fma", [x, y, sums[i]]) for i, (x, y) in enumerate(terms(n, moving))]
        following = builder.add(k, one)
        k.add_incoming(ir.Constant(_INT64, 0), entry)
        k.add_incoming(following, loop)
        for phi, (pointer, stride) in zip(moving, pointers_and_strides, strict=True):
            phi.add_incoming(pointer, entry)
            phi.add_incoming(builder.gep(phi, [stride]), loop)
        for phi, start, value in zip(sums, starts, new, strict=True):
            phi.add_incoming(start, entry)
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, depth), loop, done)

        builder.position_at_end(done)
        for place, value in zip(places, new, strict=True):
            builder.store(value, place, align=8)
        builder.branch(after)
    builder.position_at_end(after)


@intrinsic
def multiply(typingctx, matrix, m_offset, m_stride, lanes, l_offset, depth, out, o_offset, rows, add):
    """out[i] = Σ_k matrix[k, i] lanes[k], k = 0 ... depth - 1 in this order, for `rows` <= ROWS vectors out[i].

    matrix[k, i] is element m_offset + k m_stride + i; vector k of `lanes` and `out` is LANES doubles from
    offset + k LANES on.  With `add` the sums start at out[i] instead of 0.
    """
    if not _points_to_doubles(matrix, lanes, out):
        return None

    def codegen(context, builder, signature, arguments):
        matrix, m_offset, m_stride, lanes, l_offset, depth, out, o_offset, rows, add = arguments

        def terms(n, moving):
            row, vector = moving
            shared = builder.load(vector, align=8)
            for i in range(n):
                yield _spread(builder, builder.load(builder.gep(row, [ir.Constant(_INT64, i)]))), shared

        moving = [(builder.gep(matrix, [m_offset]), m_stride)]
        moving.append((_vector_at(builder, lanes, l_offset), ir.Constant(_INT64, 1)))
        _emit_product(builder, depth, _vector_at(builder, out, o_offset), rows, add, moving, terms)
        return context.get_dummy_value()

    i = types.int64
    return types.void(matrix, i, i, lanes, i, i, out, i, i, types.boolean), codegen


@intrinsic
def combine(typingctx, scalars, s_offset, vectors, v_offset, v_stride, depth, out, o_offset, rows, add):
    """out[i] = Σ_k scalars[k] vectors[k, i], otherwise like `multiply`.

    vectors[k, i] is the LANES doubles from element v_offset + k v_stride + i LANES on.
    """
    if not _points_to_doubles(scalars, vectors, out):
        return None

    def codegen(context, builder, signature, arguments):
        scalars, s_offset, vectors, v_offset, v_stride, depth, out, o_offset, rows, add = arguments

        def terms(n, moving):
            scalar, row = moving
            shared = _spread(builder, builder.load(scalar))
            for i in range(n):
                place = _vector_at(builder, row, ir.Constant(_INT64, i * LANES))
                yield shared, builder.load(place, align=8)

        moving = [(builder.gep(scalars, [s_offset]), ir.Constant(_INT64, 1))]
        moving.append((builder.gep(vectors, [v_offset]), v_stride))
        _emit_product(builder, depth, _vector_at(builder, out, o_offset), rows, add, moving, terms)
        return context.get_dummy_value()

    i = types.int64
    return types.void(scalars, i, vectors, i, i, i, out, i, i, types.boolean), codegen
