"""Tree ensembles: read from any library, compiled into one form, and followed exactly."""
