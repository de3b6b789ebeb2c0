"""The text of a kernel as a compiler takes it: sizes, what kernels share, and the kernel's own file."""

from collections.abc import Mapping
from importlib.resources import files

PARTS = {  # what each file is put together from, in order
    "po_known": ("common.cuh", "po_known_rows.cuh", "po_known.cu"),
    "po_known_lanes": ("common.cuh", "po_known_rows.cuh", "products.cuh", "po_known_lanes.cu"),
    "po_unknown": ("common.cuh", "po_unknown.cu"),
    "po_practical": ("common.cuh", "practical.cuh", "po_practical.cu"),
    "po_model_free": ("common.cuh", "practical.cuh", "po_model_free.cu"),
}


def source(name: str, constants: Mapping[str, int | str]) -> str:
    """The whole source of `name`; `constants` become macros."""
    folder = files(__package__)
    defined = "".join(f"#define {key} {value}\n" for key, value in constants.items())
    texts = [f'#line 1 "{part}"\n{folder.joinpath(part).read_text(encoding="utf-8")}' for part in PARTS[name]]
    return defined + "\n".join(texts)
