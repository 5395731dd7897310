"""What users and clients of the engine meet."""
