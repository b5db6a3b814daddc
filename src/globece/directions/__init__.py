"""Who proposes directions: small generators behind one protocol."""
