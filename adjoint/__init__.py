"""Typed program -> gradient program, in the same language: reverse mode by source transformation."""
