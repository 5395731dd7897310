"""What is served: the loaded model, its KV cache, and the requests under way."""
