"""What the kernels are handed."""

import numpy as np
import pytest

from aggbandit.planning._inputs import ready

POLICY = np.arange(24.0).reshape(2, 3, 4)
READ_ONLY = POLICY.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "array",
    [POLICY, READ_ONLY, np.asfortranarray(POLICY), POLICY[:, ::-1], np.broadcast_to(POLICY[0, 0], (2, 3, 4))],
    ids=["as kernels want it", "read-only", "transposed", "reversed", "of stride 0"],
)
def test_all_layouts_and_flags_become_one(array):
    # kernels used to be compiled anew, for seconds, whenever a policy came read-only or transposed
    writeable = array.flags.writeable
    made = ready(array)
    assert made.flags.c_contiguous
    assert not made.flags.writeable
    np.testing.assert_array_equal(made, array)
    assert np.shares_memory(made, array) == array.flags.c_contiguous  # copied only where it must be
    assert array.flags.writeable == writeable
