"""CUDA C++ kernels, one file for each CPU kernel file of the same name; compiled at run time for the sizes at hand."""
