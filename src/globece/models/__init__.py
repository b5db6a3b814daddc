"""What answers "at which k?": one module per family of models, and `adapt`, which recognises them."""
