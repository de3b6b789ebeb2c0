"""Doors to other libraries; each module needs its optional package, and nothing else here imports one."""
