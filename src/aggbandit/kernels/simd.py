"""Fused multiply-add, exponentials, and vectors of replicas as values inside compiled code.

`Lanes` is a vector of LANES doubles, one a replica.  Numba has no such type and its loops over a short last axis do
not keep accumulators in registers; with it a kernel reads like scalar code and runs LANES replicas at once.  LLVM
maps a vector to the widest registers there are.

Every operation is the IEEE one, applied to each lane by itself, and `fma` rounds once by definition: scalar and vector
code that does the same operations in the same order gives the same bits, on any machine, whatever the neighbours are.
"""

import operator

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8

_DOUBLE = ir.DoubleType()
_INT64 = ir.IntType(64)


class LanesType(types.Type):
    """LANES doubles."""

    def __init__(self):
        super().__init__(name=f"lanes_{LANES}")


class IntLanesType(types.Type):
    """LANES signed 64-bit integers."""

    def __init__(self):
        super().__init__(name=f"int_lanes_{LANES}")


LANES_T = LanesType()
INT_LANES_T = IntLanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(_DOUBLE, LANES))


@register_model(IntLanesType)
class _IntLanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(_INT64, LANES))


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


@intrinsic
def fma(typingctx, a, b, c):
    """a b + c, rounded once."""
    common = _of_floats(a, b, c)
    if common is None:
        return None

    def codegen(context, builder, signature, arguments):
        return builder.fma(*_operands(context, builder, signature, arguments))

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
