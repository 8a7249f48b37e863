"""The processes that run one engine each. They need the engine and NumPy, and nothing else of ours."""
