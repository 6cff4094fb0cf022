"""Drives the stages: from a layer file to a written package."""
