"""Numbers as a person reads them: no more digits than are known, and the same in table, figure and page."""

import math

THIN = "\u202f"  # narrow no-break space between groups of three digits
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def simple(text: str) -> str:
    """The same with ordinary spaces and minus signs, for terminals and what reads from them."""
    return text.replace(THIN, " ").replace("\u2212", "-")


def grouped(value: float, digits: int = 0) -> str:
    """`12 345.6` with narrow spaces; a true minus sign."""
    text = f"{value:,.{digits}f}".replace(",", THIN)
    return text.replace("-", "\u2212")


def counted(count: int, what: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{grouped(count)} {what}{'' if count == 1 else 's'}"


def decimals(value: float, significant: int) -> int:
    """How many decimals show this many significant digits of `value`."""
    if value == 0 or not math.isfinite(value):
        return 0
    exponent = int(f"{value:.{significant - 1}e}".partition("e")[2])  # after rounding: 9.996 is 10.00
    return max(0, significant - 1 - exponent)


def plain(value: float, significant: int = 4) -> str:
    """A number with so many significant digits, whole ones in full."""
    if not math.isfinite(value):
        return "–"
    return grouped(value, decimals(value, significant))


def with_band(mean: float, half: float | None) -> str:
    """`12 345 ± 67`: as many decimals as two digits of the band ask for; without one, four digits."""
    if not math.isfinite(mean):
        return "–"
    if half is None or not half > abs(mean) * 1e-9:  # one replica, or a policy without any randomness
        return plain(mean) + ("" if half is None else " ± 0")
    digits = decimals(half, 2)
    return f"{grouped(mean, digits)} ± {grouped(half, digits)}"


def percent(share: float, half: float | None = None) -> str:
    """`4.2 %`, or `4.2 ± 0.3 %`."""
    if not math.isfinite(share):
        return "–"
    if half is None or not half > 1e-9:
        return f"{plain(100 * share, 3)} %"
    digits = decimals(100 * half, 1)
    return f"{grouped(100 * share, digits)} ± {grouped(100 * half, digits)} %"


def rate(per_second: float) -> str:
    """`412 k`: three significant digits and a prefix."""
    if not math.isfinite(per_second):
        return "–"
    for size, prefix in PREFIXES:
        if per_second >= 0.9995 * size:
            return f"{plain(per_second / size, 3)} {prefix}"
    return plain(per_second, 3)


def duration(seconds: float) -> str:
    """`62 ns`, `12 µs`, `3.4 s`, `2 min 5 s`, `1 h 10 min`."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 1e-6:
        return f"{plain(seconds * 1e9, 3)} ns"
    if seconds < 1e-3:
        return f"{plain(seconds * 1e6, 3)} µs"
    if seconds < 1:
        return f"{plain(seconds * 1e3, 3)} ms"
    if seconds < 59.95:
        return f"{seconds:g} s" if seconds == int(seconds) else f"{plain(seconds, 2 if seconds < 10 else 3)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
