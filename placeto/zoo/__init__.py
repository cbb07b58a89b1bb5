"""The benchmark models of the papers, as training steps in TensorFlow, and families of models.

TensorFlow is needed by `placeto.zoo.models` and what it imports; families do without.
"""
