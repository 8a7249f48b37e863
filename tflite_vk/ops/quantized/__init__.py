"""Operator families that compute in the integers of quantized tensors (decision D9)."""
