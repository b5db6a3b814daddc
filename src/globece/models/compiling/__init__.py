"""From the user's model to one that is followed exactly: recognised, composed with its steps, and checked."""
