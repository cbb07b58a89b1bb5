"""ONNX files as computation graphs with costs."""
