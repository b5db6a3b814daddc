"""What goes into files and comes out of them: results as versioned JSON, written in one piece or not at all."""
