"""Compiled loops: arrays in, arrays out.  A kernel checks nothing, allocates nothing and overwrites every `out_*`."""
