"""ONNX graphs: their operators, read as the linear models, trees and networks that they are."""
