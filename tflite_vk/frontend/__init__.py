"""TFLite on one side, the graph on the other: a .tflite file or a TfLiteContext becomes a Graph."""
