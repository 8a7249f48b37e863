"""`tflite_vk.Interpreter`: LiteRT's methods on a model that this package reads and runs itself."""

from tflite_vk.interpreter.interpreter import Interpreter
from tflite_vk.interpreter.signature_runner import SignatureRunner

__all__ = ["Interpreter", "SignatureRunner"]
