"""A case: the question, its affected inputs, their minimum scalars, and their verification by the user's model."""
