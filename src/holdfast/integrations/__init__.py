"""Holdfast in frameworks: one module for each, which alone imports it."""
