"""Compiled layers elsewhere: PyTorch, JAX, MPI. Only modules in here import them. None is written yet."""
