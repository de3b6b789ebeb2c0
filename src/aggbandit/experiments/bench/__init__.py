"""How fast: frozen workloads, measured the same way everywhere."""
