"""Compiled layers and nets elsewhere: `mpi`, training by several processes. Only modules in here import engines."""
