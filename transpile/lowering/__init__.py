"""The parts of `transpile/lower.py`: how expressions, indices, reductions and statements become loop
nests.
"""
