"""Engines that keep their replicas on a GPU: the host hands over losses and reads sums at checkpoints."""
