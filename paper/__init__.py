"""What `bench`, `experiments` and `tests` share about the paper: data, models, cases, its protocol and its figures."""
