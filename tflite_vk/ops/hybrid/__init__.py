"""Float operators with a quantized filter ("dynamic range"): activations are quantized while running."""
