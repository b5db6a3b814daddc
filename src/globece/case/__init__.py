"""What is asked and what comes of it: a case, its affected inputs, how far they travel, the model's last word."""
