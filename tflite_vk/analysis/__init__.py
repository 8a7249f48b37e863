"""What the command line says of models and devices, as functions that return plain data."""
