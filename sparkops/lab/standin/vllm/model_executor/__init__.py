"""Loads a checkpoint into a model."""
