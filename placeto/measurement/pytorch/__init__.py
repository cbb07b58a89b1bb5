"""What is measured of PyTorch: the ops of a module's step, and transfers between devices."""
