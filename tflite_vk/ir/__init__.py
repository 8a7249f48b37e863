"""The graph between TFLite and the compiler. Nothing after it knows where the model came from."""
